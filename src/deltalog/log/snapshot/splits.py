"""Split a version into pieces that can be read independently, also by other processes.

Owns the splitting. The checkpoint is split by its row groups; the commits after it are one more
piece. Every piece has the keys of the files that these commits name. A piece has the interface of a
snapshot, with some of its files; each live file is in exactly one piece.

Protocol: Action Reconciliation, Checkpoints
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.kernels import compute, numbered
from deltalog.log.checkpoints.layout import CheckpointFile, Leaf, open_checkpoint_file
from deltalog.log.checkpoints.reader import Checkpoint
from deltalog.log.listing import read_hint
from deltalog.log.reader import CommitTable, concat_commits
from deltalog.log.replay import Survivors, not_mentioned
from deltalog.log.snapshot.snapshot import Snapshot
from deltalog.log.snapshot.state import KEY_COLUMNS, LogState
from deltalog.protocol.stats.parse import leaf_of, nest, parse_stats
from deltalog.protocol.stats.schema import leaves_of_schema, schema_of_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.log.segment import CheckpointFiles
    from deltalog.storage.store import Store

    Keys = pa.StringArray | pa.ChunkedArray[pa.StringScalar]

_Result = TypeVar("_Result")

SHARE_BYTES: Final = 16 << 20
"""Target size of a share of a checkpoint: a few hundred thousand files without statistics."""
_FEWEST_BYTES: Final = 8
"""Minimum size of a live file in a checkpoint, for any compression."""
_ONE_SHARE: Final = 1 << 62


def holds_more_files(snapshot: Snapshot, num_files: int) -> bool:
    """Return whether the checkpoint of a version has more than `num_files` live files.

    Files of later commits do not count, because they are in memory anyway.

    Cost: none for small checkpoints; else the footers that were read to open it. With sidecars,
    the hint, or their footers if the hint has no count.
    """

    def ask(state: LogState) -> bool:
        checkpoint = state.checkpoint
        if checkpoint is None:
            return False
        size = sum(info.size_bytes for info in checkpoint.data_files)
        if size < num_files * _FEWEST_BYTES:
            return False
        if checkpoint.data_files is not checkpoint.files.files:
            hint = read_hint(snapshot.store)
            if hint is not None and hint.version == checkpoint.version and hint.num_add_files:
                return hint.num_add_files > num_files
        return checkpoint.num_actions("add") > num_files

    return snapshot.read_log(ask)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSnapshot:
    """A version split into numbered pieces; picklable, and small.

    Args:
        snapshot: the version.
        shares: its checkpoint's shares.
        newer: the reconciled actions of the commits after the checkpoint.
        named: the keys of all files that these commits name.
    """

    snapshot: Snapshot
    shares: tuple[Split, ...]
    newer: CommitTable
    named: Keys

    @property
    def num_pieces(self) -> int:
        """The number of pieces; the last one contains the commits after the checkpoint."""
        return len(self.shares) + 1

    def piece(self, number: int) -> SnapshotPiece:
        """Return the piece with this number."""
        if number == len(self.shares):
            return SnapshotPiece(self, None, self.newer)
        return SnapshotPiece(self, self._checkpoint(number), _nothing())

    def small_pieces(self, number: int) -> Iterator[SnapshotPiece]:
        """Yield the live files of a piece, as pieces of one row group each; without tombstones."""
        if number == len(self.shares):
            yield self.piece(number)
            return
        for group in self._checkpoint(number).row_groups():
            yield SnapshotPiece(self, group, _nothing())

    def _checkpoint(self, number: int) -> PartialCheckpoint:
        files = self.snapshot.segment.checkpoint
        assert files is not None  # noqa: S101  # there are shares of it
        return PartialCheckpoint(self.snapshot.store, files, self.shares[number])


def cut_snapshot(
    snapshot: Snapshot, state: LogState, *, share_bytes: int = SHARE_BYTES
) -> CutSnapshot:
    """Split a version into pieces.

    Args:
        snapshot: the version.
        state: the state of its log, from `Snapshot.read_log`, which retries on errors.
        share_bytes: target size of a checkpoint's share.

    Cost: the commits after the checkpoint; the top-level file of a V2 checkpoint.
    """
    survivors, commits = state.survivors, state.commits
    newer = replace(
        _nothing(),
        adds=commits.adds.take(survivors.adds),
        removes=commits.removes.take(survivors.removes),
    )
    checkpoint = state.checkpoint
    shares = [] if checkpoint is None else split_checkpoint(checkpoint, share_bytes)
    return CutSnapshot(snapshot=snapshot, shares=tuple(shares), newer=newer, named=survivors.keys)


def live_pieces(snapshot: Snapshot, state: LogState) -> tuple[SnapshotPiece, ...]:
    """Return a version's live files as pieces: one per row group, then one for the commits.

    The state keeps the pieces and their cached columns; `SnapshotPiece.forget` drops these columns.

    Args:
        snapshot: the version.
        state: the state of its log, from `Snapshot.read_log`.

    Cost: the commits after the checkpoint; the footers of the checkpoint.
    """
    if state.pieces is None:
        cut = cut_snapshot(snapshot, state, share_bytes=_ONE_SHARE)
        groups = (
            [] if state.checkpoint is None else PartialCheckpoint.each_of_adds(state.checkpoint)
        )
        nothing = _nothing()
        older = (SnapshotPiece(cut, group, nothing) for group in groups)
        state.pieces = (*older, SnapshotPiece(cut, None, cut.newer))
    return state.pieces


class SnapshotPiece(Snapshot):
    """Some of a version's files, as a snapshot of these files only.

    Args:
        cut: the split of the version.
        checkpoint: the share of the checkpoint, or None.
        newer: actions besides those of the share.
    """

    is_piece = True

    def __init__(self, cut: CutSnapshot, checkpoint: Checkpoint | None, newer: CommitTable) -> None:
        whole = cut.snapshot
        self._cut = cut
        self._piece = _PieceState(whole, checkpoint, newer, cut.named)
        super().__init__(
            whole.context,
            self._piece,
            protocol=whole.protocol,
            metadata=whole.metadata,
        )
        self.__dict__["configuration"] = whole.configuration

    def read_log(self, act: Callable[[LogState], _Result]) -> _Result:
        """Return `act(state)`.

        If the checkpoint is damaged, no other files can replace a piece of it. The caller, who has
        the whole version, handles the error.
        """
        return act(self._state)

    @property
    def row_group(self) -> PartialCheckpoint | None:
        """The share of the checkpoint; None for the commits after it."""
        found = self._state.checkpoint
        return found if isinstance(found, PartialCheckpoint) else None

    @cached_property
    def in_checkpoint(self) -> SnapshotPiece:
        """All files of the share, also those in later commits; reads no keys."""
        cut = replace(self._cut, named=pa.chunked_array([], pa.string()))
        return SnapshotPiece(cut, self.row_group, _nothing())

    def live_where(self, where: pa.BooleanArray) -> pa.BooleanArray:
        """Mark selected files of the share that no later commit names.

        Args:
            where: selects the files, one boolean for each row of `in_checkpoint.files`.

        Cost: their paths and deletion vectors.
        """
        return self._piece.live_where(where)

    def stats_where(self, schema: pa.Schema, where: pa.BooleanArray) -> pa.Table:
        """Return statistics of some live files, typed; they are not cached.

        Args:
            schema: as in `stats`.
            where: selects the files, one boolean for each row of `files`.

        Cost: as `stats`; only the JSON strings of the selected files are parsed.
        """
        return self._piece.stats_where(schema, where)

    @property
    def held_bytes(self) -> int:
        """Return the size of the cached columns."""
        written: SnapshotPiece | None = self.__dict__.get("in_checkpoint")
        if written is not None:
            return self._piece.held_bytes + written.held_bytes
        of_checkpoint = 0 if self.row_group is None else self.row_group.held_bytes
        return self._piece.held_bytes + of_checkpoint

    def forget(self, *, statistics: bool) -> None:
        """Drop the cached columns, and with `statistics` also the cached statistics."""
        self._piece.forget(statistics=statistics)
        if (written := self.__dict__.get("in_checkpoint")) is not None:
            written.forget(statistics=statistics)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse to pickle, because the copy would contain all files."""
        raise TypeError(
            "cannot pickle a piece of a snapshot: send the CutSnapshot and the piece's number"
        )


class _PieceState(LogState):
    def __init__(
        self, whole: Snapshot, checkpoint: Checkpoint | None, newer: CommitTable, named: Keys
    ) -> None:
        segment = replace(whole.segment, checkpoint=None, commits=(), compactions=(), checksum=None)
        super().__init__(whole.store, segment, checkpoint=checkpoint)
        # Set the values that `cached_property` would keep.
        self.__dict__["commits"] = newer
        self.__dict__["survivors"] = Survivors(
            adds=_all_rows(newer.adds), removes=_all_rows(newer.removes), keys=named
        )

    def live_where(self, where: pa.BooleanArray) -> pa.BooleanArray:
        """Mark selected adds of the checkpoint that no later commit names.

        Args:
            where: selects the adds, one boolean for each.
        """
        if self.checkpoint is None or not self.names_files:
            return where
        keys = self._keys(self.checkpoint.columns("add", KEY_COLUMNS).filter(where))
        kept: Any = not_mentioned(keys, self.survivors.keys)
        live: Any = compute.replace_with_mask(where, where, _as_one(kept))
        return live  # type: ignore[no-any-return]  # booleans

    @property
    def held_bytes(self) -> int:
        """Return the size of the cached columns of live files."""
        columns = (*self._live.values(), *self._live_stats.values())
        return sum(column.nbytes for column in columns)

    def forget(self, *, statistics: bool) -> None:
        """Drop the cached columns, but not the number and the selection of live files.

        Args:
            statistics: whether statistics are dropped, too.
        """
        self._live = {}
        if statistics:
            self._live_stats = {}
            self._nested_stats = {}
        if self.checkpoint is not None:
            self.checkpoint.forget(statistics=statistics)

    def stats_where(self, schema: pa.Schema, where: pa.BooleanArray) -> pa.Table:
        """Return statistics of some live files.

        Args:
            schema: as in `stats`.
            where: selects the files, one boolean for each.
        """
        leaves = leaves_of_schema(schema)
        if all(leaf in self._live_stats for leaf in leaves):
            return self.stats(schema).filter(where)
        texts = self.live_commit_adds.column("stats")
        older_files = len(where) - len(texts)
        table = parse_stats(texts.filter(where.slice(older_files)), schema_of_leaves(leaves))
        columns = [leaf_of(table, path) for path, _ in leaves]
        if self.checkpoint is not None:
            of_adds: Any = where.slice(0, older_files)
            if (kept := self._kept_adds) is not None:
                of_adds = compute.replace_with_mask(_as_one(kept), _as_one(kept), of_adds)
            older = numbered(self.checkpoint.stats_where(leaves, of_adds))
            columns = pa.concat_tables([older, numbered(columns)]).columns
        return nest([(leaf[0], column) for leaf, column in zip(leaves, columns, strict=True)])


def _as_one(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    whole: Any = column.combine_chunks()
    return whole  # type: ignore[no-any-return]  # an array


def _all_rows(table: pa.Table) -> pa.Int64Array:
    return pa.array(range(table.num_rows), pa.int64())


def _nothing() -> CommitTable:
    return concat_commits([])


# --- parts of a checkpoint: row groups of its files


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupRange:
    """A range of a file's row groups, one of `count` ranges of about equal size.

    Args:
        file: the file with the row groups.
        number: the number of the range, from 0.
        count: number of ranges of the file.
    """

    file: FileInfo
    number: int = 0
    count: int = 1


Split = tuple[RowGroupRange, ...]


def split_checkpoint(checkpoint: Checkpoint, split_bytes: int) -> list[Split]:
    """Split the checkpoint's files; every row group is in exactly one split.

    Args:
        checkpoint: the whole.
        split_bytes: target size of a split; a row group is never cut.

    Cost: none, except for the top-level file of a V2 checkpoint.
    """
    splits: list[Split] = []
    small: list[RowGroupRange] = []
    left_bytes = split_bytes
    for info in checkpoint.data_files:
        count = -(-info.size_bytes // max(1, split_bytes))
        if count > 1:
            splits += [(RowGroupRange(file=info, number=n, count=count),) for n in range(count)]
            continue
        if small and info.size_bytes > left_bytes:
            splits.append(tuple(small))
            small, left_bytes = [], split_bytes
        small.append(RowGroupRange(file=info))
        left_bytes -= info.size_bytes
    return [*splits, tuple(small)] if small else splits


class PartialCheckpoint(Checkpoint):
    """A split of a checkpoint, read as if it were the whole.

    Args:
        store: the table's store.
        files: the top-level files of the whole.
        split: the split to read.
    """

    def __init__(self, store: Store, files: CheckpointFiles, split: Split) -> None:
        super().__init__(store, files)
        self._split = split
        self._parts: dict[str, Sequence[CheckpointFile]] = {}

    def row_groups(self) -> Iterator[PartialCheckpoint]:
        """Yield the adds of this split, one row group at a time; without the removes."""
        with self._unreadable():
            adds = self._sources("add")
        for part in adds:
            yield PartialCheckpoint._of_adds(self, part)

    @classmethod
    def _of_adds(cls, whole: Checkpoint, part: CheckpointFile) -> PartialCheckpoint:
        one = cls(whole.store, whole.files, ())
        one._parts = {"add": [part], "remove": []}
        return one

    @classmethod
    def each_of_adds(cls, whole: Checkpoint) -> Sequence[PartialCheckpoint]:
        """Return the adds of a checkpoint, one row group each, in order; without the removes.

        The checkpoint keeps the row groups with the columns that they cache.

        Cost: the footers, which are read at once.
        """
        if whole.held_row_groups is None:
            parts = whole.parts_of_adds()
            whole.held_row_groups = [cls._of_adds(whole, part) for part in parts]
        return cast("Sequence[PartialCheckpoint]", whole.held_row_groups)

    def bounds(self, leaves: Sequence[Leaf]) -> Mapping[Leaf, pa.Array[Any]]:
        """Return the smallest and largest value of some leaves of its adds, from the footer.

        Args:
            leaves: paths below `add`.

        Returns:
            Smallest and largest value of each leaf, if the footer records them and every add has a
            value. Empty for several row groups.
        """
        with self._unreadable():
            parts = self._sources("add")
            return parts[0].bounds("add", leaves) if len(parts) == 1 else {}

    def _sources(self, kind: str) -> Sequence[CheckpointFile]:
        if kind not in self._parts:
            found: list[CheckpointFile] = []
            for one in self._split:
                # The footer's null counts show which row groups contain such actions.
                parts = open_checkpoint_file(self._store, one.file).parts(kind, least_bytes=0)
                first = len(parts) * one.number // one.count
                found += parts[first : len(parts) * (one.number + 1) // one.count]
            self._parts[kind] = found
        return self._parts[kind]

    def __getstate__(self) -> tuple[Store, CheckpointFiles]:
        """Refuse to pickle, because `Checkpoint` would restore the whole."""
        raise TypeError("a part of a checkpoint is not picklable: send its split")
