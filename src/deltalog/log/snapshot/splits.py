"""Split a version into pieces that can be read independently, also by other processes.

A piece is a snapshot with some of the version's files; each live file is in exactly one piece. Most
pieces contain a share of the checkpoint, which consists of row groups. The last piece contains the
commits after the checkpoint. Every piece has the keys of all files in these commits, because these
files are no longer live in the checkpoint.

Protocol: Action Reconciliation, Checkpoints
"""

from __future__ import annotations

import pickle
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

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
    from deltalog.log.segment import CheckpointFiles, LogSegment
    from deltalog.storage.store import Store

    Keys = pa.StringArray | pa.ChunkedArray[pa.StringScalar]

_Result = TypeVar("_Result")

SHARE_BYTES: Final = 16 << 20
"""The target size of a share of a checkpoint in bytes.

A share of this size has several hundred thousand live files if they have no statistics.
"""
MOST_SENT_BYTES: Final = 8 << 20
"""The maximum size of the commits after a checkpoint that are sent to tasks, in bytes of memory."""
_FEWEST_BYTES: Final = 8
"""The minimum number of bytes that a live file needs in a checkpoint, with any compression."""
_ONE_SHARE: Final = 1 << 62


def holds_more_files(snapshot: Snapshot, num_files: int) -> bool:
    """Return whether the checkpoint of a version has more than `num_files` live files.

    Files of later commits are not counted, because they are in memory in any case.

    Cost: none for a small checkpoint. Otherwise reads the footers, if they are not cached. For
    sidecars, reads `_last_checkpoint`, and their footers only if it does not contain the number.
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
    """A version that is split into numbered pieces; small, and picklable.

    Args:
        snapshot: the version.
        shares: the shares of the version's checkpoint.
        commits: the commits after the checkpoint.
    """

    snapshot: Snapshot
    shares: tuple[Split, ...]
    commits: NewerCommits

    @property
    def num_pieces(self) -> int:
        """The number of pieces; the last one contains the commits after the checkpoint."""
        return len(self.shares) + 1

    def piece(self, number: int) -> SnapshotPiece:
        """Return the piece with this number."""
        if number == len(self.shares):
            return SnapshotPiece(self, None, self.commits.actions)
        return SnapshotPiece(self, self._checkpoint(number), _nothing())

    def small_pieces(self, number: int) -> Iterator[SnapshotPiece]:
        """Yield pieces that together contain the live files of a piece, one for each row group.

        They do not contain the tombstones of the checkpoint.
        """
        if number == len(self.shares):
            yield self.piece(number)
            return
        for group in self._checkpoint(number).row_groups():
            yield SnapshotPiece(self, group, _nothing())

    def _checkpoint(self, number: int) -> PartialCheckpoint:
        files = self.snapshot.segment.checkpoint
        assert files is not None  # noqa: S101  # without a checkpoint, there are no shares
        return PartialCheckpoint(self.snapshot.store, files, self.shares[number])


def cut_snapshot(
    snapshot: Snapshot, state: LogState, *, share_bytes: int = SHARE_BYTES
) -> CutSnapshot:
    """Split a version into pieces.

    Args:
        snapshot: the version.
        state: the state of its log, from `Snapshot.read_log`, which retries after errors.
        share_bytes: target size of a share of the checkpoint.

    Cost: reads the commits after the checkpoint, and the top-level file of a V2 checkpoint.
    """
    checkpoint = state.checkpoint
    shares = [] if checkpoint is None else split_checkpoint(checkpoint, share_bytes)
    commits = NewerCommits.of(state)
    return CutSnapshot(snapshot=snapshot, shares=tuple(shares), commits=commits)


class NewerCommits:
    """The reconciled actions of the commits after a checkpoint; small, and picklable.

    If the actions have more than `MOST_SENT_BYTES`, a copy in another process reads the commits
    again when it needs them.

    Args:
        store: the table's store.
        segment: the files of the log that make the version.
        actions: the actions; None if they are not read yet.
        named: the keys of all files that the commits add or remove; None if they are not read yet.
    """

    def __init__(
        self, store: Store, segment: LogSegment, actions: CommitTable | None, named: Keys | None
    ) -> None:
        self._store = store
        self._segment = segment
        self._read = None if actions is None or named is None else (actions, named)

    @classmethod
    def of(cls, state: LogState) -> Self:
        """Return the commits of a state."""
        return cls(state.store, state.segment, *_reconciled(state))

    @property
    def actions(self) -> CommitTable:
        """The live files and the tombstones of the commits.

        Raises:
            ObjectNotFoundError: a commit was deleted before it was read.
        """
        return self._content[0]

    @property
    def named(self) -> Keys:
        """The keys of all files that the commits add or remove; see `actions`."""
        return self._content[1]

    @property
    def _content(self) -> tuple[CommitTable, Keys]:
        if self._read is None:
            self._read = _reconciled(LogState(self._store, self._segment))
        return self._read

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the actions for pickle only if they are small; compressed, as names repeat."""
        read = self._read
        if read is not None:
            actions, named = read
            size = actions.adds.nbytes + actions.removes.nbytes + named.nbytes
            read = read if size <= MOST_SENT_BYTES else None
        packed = None if read is None else zlib.compress(pickle.dumps(read), 1)
        return _sent_commits, (type(self), self._store, self._segment, packed)


def _sent_commits(
    kind: type[NewerCommits], store: Store, segment: LogSegment, packed: bytes | None
) -> NewerCommits:
    read = (None, None) if packed is None else pickle.loads(zlib.decompress(packed))  # noqa: S301  # `__reduce__` wrote these bytes
    return kind(store, segment, *read)


def _reconciled(state: LogState) -> tuple[CommitTable, Keys]:
    survivors, commits = state.survivors, state.commits
    actions = replace(
        _nothing(),
        adds=commits.adds.take(survivors.adds),
        removes=commits.removes.take(survivors.removes),
    )
    return actions, survivors.keys


def live_pieces(snapshot: Snapshot, state: LogState) -> tuple[SnapshotPiece, ...]:
    """Return a version's live files as pieces.

    There is one piece for each row group of the checkpoint, and a last piece for the commits after
    it. `state` caches the pieces with their columns; `SnapshotPiece.forget` deletes these columns.

    Args:
        snapshot: the version.
        state: the state of its log, from `Snapshot.read_log`.

    Cost: reads the commits after the checkpoint, and the footers of the checkpoint.
    """
    if state.pieces is None:
        cut = cut_snapshot(snapshot, state, share_bytes=_ONE_SHARE)
        groups = (
            [] if state.checkpoint is None else PartialCheckpoint.each_of_adds(state.checkpoint)
        )
        nothing = _nothing()
        older = (SnapshotPiece(cut, group, nothing) for group in groups)
        state.pieces = (*older, SnapshotPiece(cut, None, cut.commits.actions))
    return state.pieces


class SnapshotPiece(Snapshot):
    """A snapshot that contains only some of a version's files.

    Args:
        cut: the split version to which the piece belongs.
        checkpoint: the share of the checkpoint; None for the piece of the commits after it.
        newer: the actions of the commits, for the last piece; otherwise empty.
    """

    is_piece = True

    def __init__(self, cut: CutSnapshot, checkpoint: Checkpoint | None, newer: CommitTable) -> None:
        whole = cut.snapshot
        self._cut = cut
        self._piece = _PieceState(whole, checkpoint, newer, cut.commits.named)
        super().__init__(
            whole.context,
            self._piece,
            protocol=whole.protocol,
            metadata=whole.metadata,
        )
        self.__dict__["configuration"] = whole.configuration

    def read_log(self, act: Callable[[LogState], _Result]) -> _Result:
        """Return `act(state)`.

        If the checkpoint is damaged, this raises, because other files cannot replace a share of it.
        The caller has the whole version and handles the error.
        """
        return act(self._state)

    @property
    def row_group(self) -> PartialCheckpoint | None:
        """The share of the checkpoint; None for the piece of the commits after the checkpoint."""
        found = self._state.checkpoint
        return found if isinstance(found, PartialCheckpoint) else None

    @cached_property
    def in_checkpoint(self) -> SnapshotPiece:
        """A piece with all adds of the share, even if later commits add or remove the same files.

        It can be read without the paths and deletion vectors of the share.
        """
        state, none = self._piece, pa.chunked_array([], pa.string())
        commits = NewerCommits(state.store, state.segment, _nothing(), none)
        cut = replace(self._cut, commits=commits)
        return SnapshotPiece(cut, self.row_group, _nothing())

    def live_where(self, where: pa.BooleanArray) -> pa.BooleanArray:
        """Return `where` with false for files that later commits add or remove.

        Args:
            where: one boolean for each row of `in_checkpoint.files`.

        Cost: reads paths and deletion vectors of the share.
        """
        return self._piece.live_where(where)

    def stats_where(self, schema: pa.Schema, where: pa.BooleanArray) -> pa.Table:
        """Return typed statistics of some live files, without caching them.

        Args:
            schema: see `stats`.
            where: one boolean for each row of `files`, whether to return its statistics.

        Cost: see `stats`; parses only the JSON strings of the selected files.
        """
        return self._piece.stats_where(schema, where)

    @property
    def held_bytes(self) -> int:
        """The size of the cached columns, in bytes."""
        written: SnapshotPiece | None = self.__dict__.get("in_checkpoint")
        if written is not None:
            return self._piece.held_bytes + written.held_bytes
        of_checkpoint = 0 if self.row_group is None else self.row_group.held_bytes
        return self._piece.held_bytes + of_checkpoint

    def forget(self, *, statistics: bool) -> None:
        """Delete cached columns; with `statistics`, also cached columns of statistics."""
        self._piece.forget(statistics=statistics)
        if (written := self.__dict__.get("in_checkpoint")) is not None:
            written.forget(statistics=statistics)

    def __getstate__(self) -> dict[str, Any]:
        """Raise TypeError, because a pickled copy would contain all files of the version."""
        raise TypeError(
            "cannot pickle a piece of a snapshot: send the CutSnapshot and the piece's number"
        )


class _PieceState(LogState):
    def __init__(
        self, whole: Snapshot, checkpoint: Checkpoint | None, newer: CommitTable, named: Keys
    ) -> None:
        segment = replace(whole.segment, checkpoint=None, commits=(), compactions=(), checksum=None)
        super().__init__(whole.store, segment, checkpoint=checkpoint)
        # Set the cached properties `commits` and `survivors`, so that they are not computed.
        self.__dict__["commits"] = newer
        self.__dict__["survivors"] = Survivors(
            adds=_all_rows(newer.adds), removes=_all_rows(newer.removes), keys=named
        )

    def live_where(self, where: pa.BooleanArray) -> pa.BooleanArray:
        """Return `where` with false for adds whose files later commits add or remove.

        Args:
            where: one boolean for each add of the checkpoint's share.
        """
        if self.checkpoint is None or not self.names_files:
            return where
        keys = self._keys(self.checkpoint.columns("add", KEY_COLUMNS).filter(where))
        kept: Any = not_mentioned(keys, self.survivors.keys)
        live: Any = compute.replace_with_mask(where, where, _as_one(kept))
        return live  # type: ignore[no-any-return]  # a `BooleanArray`

    @property
    def held_bytes(self) -> int:
        """The size of the cached columns of live files, in bytes."""
        columns = (*self._live.values(), *self._live_stats.values())
        return sum(column.nbytes for column in columns)

    def forget(self, *, statistics: bool) -> None:
        """Delete cached columns, but not the marks of which adds are live.

        Args:
            statistics: whether to delete columns of statistics, too.
        """
        self._live = {}
        if statistics:
            self._live_stats = {}
            self._nested_stats = {}
        if self.checkpoint is not None:
            self.checkpoint.forget(statistics=statistics)

    def stats_where(self, schema: pa.Schema, where: pa.BooleanArray) -> pa.Table:
        """Return statistics of some live files; see `SnapshotPiece.stats_where`."""
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
    return whole  # type: ignore[no-any-return]  # an `Array`


def _all_rows(table: pa.Table) -> pa.Int64Array:
    return pa.array(range(table.num_rows), pa.int64())


def _nothing() -> CommitTable:
    return concat_commits([])


# --- Splits of a checkpoint, which consist of row groups


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupRange:
    """One of `count` ranges of a file's row groups; the ranges have about the same size.

    Args:
        file: the file with the row groups.
        number: the number of the range, counted from 0.
        count: the number of ranges of the file.
    """

    file: FileInfo
    number: int = 0
    count: int = 1


Split = tuple[RowGroupRange, ...]


def split_checkpoint(checkpoint: Checkpoint, split_bytes: int) -> list[Split]:
    """Split the checkpoint's files; every row group is in exactly one split.

    Args:
        checkpoint: the whole checkpoint.
        split_bytes: target size of a split in bytes. A row group is never split.

    Cost: reads the top-level file of a V2 checkpoint; otherwise nothing.
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
    """A split of a checkpoint, with the interface of a whole checkpoint.

    Args:
        store: the table's store.
        files: the top-level files of the whole checkpoint.
        split: the split to read.
    """

    def __init__(self, store: Store, files: CheckpointFiles, split: Split) -> None:
        super().__init__(store, files)
        self._split = split
        self._parts: dict[str, Sequence[CheckpointFile]] = {}

    def row_groups(self) -> Iterator[PartialCheckpoint]:
        """Yield a checkpoint for each row group with adds; it does not contain removes."""
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
        """Return for each row group with adds a checkpoint of these adds, without removes.

        `whole` caches the result, which in turn caches columns.

        Cost: reads all footers in parallel.
        """
        if whole.held_row_groups is None:
            parts = whole.parts_of_adds()
            whole.held_row_groups = [cls._of_adds(whole, part) for part in parts]
        return cast("Sequence[PartialCheckpoint]", whole.held_row_groups)

    def bounds(self, leaves: Sequence[Leaf]) -> Mapping[Leaf, pa.Array[Any]]:
        """Return the smallest and largest value of leaves, from the footer.

        Args:
            leaves: paths of leaves; each begins with `add`.

        Returns:
            Leaf → array of its smallest and largest value in all adds. It contains only leaves for
            which the footer records these values, and for which every add has a value. It is empty
            if the adds are in several row groups.
        """
        with self._unreadable():
            parts = self._sources("add")
            return parts[0].bounds("add", leaves) if len(parts) == 1 else {}

    def _sources(self, kind: str) -> Sequence[CheckpointFile]:
        if kind not in self._parts:
            found: list[CheckpointFile] = []
            for one in self._split:
                # With `least_bytes=0`, each row group with actions of this kind is one part.
                parts = open_checkpoint_file(self._store, one.file).parts(kind, least_bytes=0)
                first = len(parts) * one.number // one.count
                found += parts[first : len(parts) * (one.number + 1) // one.count]
            self._parts[kind] = found
        return self._parts[kind]

    def __getstate__(self) -> tuple[Store, CheckpointFiles]:
        """Raise TypeError, because `Checkpoint.__setstate__` would restore the whole checkpoint."""
        raise TypeError("a part of a checkpoint is not picklable: send its split")
