"""A checkpoint, read by column: only what is asked for, and each column once.

Owns where the actions of a checkpoint are, across its files and sidecars, and keeps the columns
that were read. Whatever makes it unusable leaves as `CheckpointUnreadableError`: then there may be
an older checkpoint. What is live is for `snapshot`.

Protocol: Checkpoints, V2 Spec, Checkpoint Schema
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._json import JsonObject
from deltalog.actions.arrow import FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.actions.codec import sidecar_from_json
from deltalog.checkpoints.layout import open_checkpoint_file, sidecar_location
from deltalog.checkpoints.schema import (
    PARTITION_VALUES,
    PARTITION_VALUES_PARSED,
    chunked,
    member,
    texts_of_values,
)
from deltalog.checkpoints.stats import read_stats, stats_of, stats_sources, texts_of_stats
from deltalog.errors import (
    CheckpointUnreadableError,
    DataFileMissingError,
    DataFileUnreadableError,
    MalformedLogError,
    ObjectNotFoundError,
)
from deltalog.paths import FileInfo
from deltalog.storage.pool import map_in_pool, read_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog.checkpoints.layout import CheckpointFile, Leaf
    from deltalog.checkpoints.stats import StatsLeaf
    from deltalog.log.segment import CheckpointFiles
    from deltalog.storage.store import Store

_STATS_AHEAD: Final = 2
_SCHEMAS: Final = {"add": FILE_SCHEMA, "remove": REMOVE_SCHEMA}


@dataclass(frozen=True, slots=True)
class AddBatch:
    """Some live files on their way out of the log.

    Args:
        num_rows: how many.
        decode: gives a table of `FILE_SCHEMA` and a column per leaf of the statistics; may be
            called in another thread.
    """

    num_rows: int
    decode: Callable[[], tuple[pa.Table, list[pa.ChunkedArray[Any]]]]


class Checkpoint:
    """The actions of one checkpoint, read on demand.

    Columns that were read stay in memory; a pickled copy starts without them. Two threads that
    ask for the same column at once may both read it: they get equal columns.

    Args:
        store: of the table.
        files: which files it has.
    """

    def __init__(self, store: Store, files: CheckpointFiles) -> None:
        self._store = store
        self.files = files
        self._columns: dict[tuple[str, str], pa.ChunkedArray[Any]] = {}
        self._stats: dict[StatsLeaf, pa.ChunkedArray[Any]] = {}
        self._values: dict[str, list[dict[str, Any]]] = {}

    @property
    def version(self) -> int:
        """The table version that it holds."""
        return self.files.version

    @property
    def holds_columns(self) -> bool:
        """Whether any column of file actions is in memory."""
        return bool(self._columns or self._stats)

    def __getstate__(self) -> tuple[Store, CheckpointFiles]:
        return self._store, self.files

    def __setstate__(self, state: tuple[Store, CheckpointFiles]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # a copy is made anew, without the columns

    def values(self, kinds: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
        """The actions of these kinds as dicts (`protocol`, `metaData`, `txn`, …; not files).

        Cost: their leaves, in the row groups that have any; never a sidecar.
        """
        missing = [kind for kind in kinds if kind not in self._values]
        if missing:
            found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in missing}
            with self._unreadable():
                for part in map_in_pool(lambda file: file.values(missing), self._top_files):
                    for kind, values in part.items():
                        found[kind] += values
            self._values.update(found)
        return {kind: self._values[kind] for kind in kinds}

    def columns(self, kind: str, names: Sequence[str]) -> pa.Table:
        """Members of all `add` or `remove` actions, in the order of the files.

        Args:
            kind: `add` or `remove`.
            names: of `FILE_SCHEMA` or `REMOVE_SCHEMA`.

        Returns:
            One row per action; every call gives the same rows in the same order.

        Cost: the leaves of the columns that were not read before.
        """
        schema = _SCHEMAS[kind]
        missing = [name for name in names if (kind, name) not in self._columns]
        if missing:
            wanted = [schema.field(name) for name in missing]
            with self._unreadable():
                parts = map_in_pool(partial(_read_members, kind, wanted), self._sources(kind))
            for number, field in enumerate(wanted):
                chunks = [chunk for part in parts for chunk in part[number].chunks]
                self._columns[kind, field.name] = chunked(chunks, field.type)
        with self._unreadable():  # a damaged footer can tell columns of different lengths
            return pa.Table.from_arrays([self._columns[kind, name] for name in names], list(names))

    def iter_adds(self, leaves: Sequence[StatsLeaf], *, batch_rows: int) -> Iterator[AddBatch]:
        """Every `add` whole, in the order of `columns`, with its statistics, for a single pass.

        Args:
            leaves: of the statistics that are wanted.
            batch_rows: how many at a time.

        Returns:
            Batches that are read and yet to be decoded.

        Cost: the leaves that are not in memory; what is read is not kept.
        """
        held = [name for name in FILE_SCHEMA.names if ("add", name) in self._columns]
        missing = [field for field in FILE_SCHEMA if field.name not in held]
        row = 0
        with self._unreadable():
            for file in self._sources("add"):
                sources = _member_sources("add", missing, file)
                sources += stats_sources(file.leaves("add"), leaves)
                for actions in file.batches("add", list(dict.fromkeys(sources)), batch_rows):
                    rows = len(actions)
                    known = {name: self._columns["add", name].slice(row, rows) for name in held}
                    yield AddBatch(rows, partial(self._decode, actions, known, missing, leaves))
                    row += rows

    def _decode(
        self,
        actions: pa.ChunkedArray[Any],
        known: Mapping[str, pa.ChunkedArray[Any]],
        missing: Sequence[pa.Field[Any]],
        leaves: Sequence[StatsLeaf],
    ) -> tuple[pa.Table, list[pa.ChunkedArray[Any]]]:
        with self._unreadable():
            names = [field.name for field in missing]
            found = dict(zip(names, _members_of("add", missing, actions), strict=True), **known)
            columns = [found[name] for name in FILE_SCHEMA.names]
            return pa.Table.from_arrays(columns, schema=FILE_SCHEMA), stats_of(actions, leaves)

    def num_actions(self, kind: str) -> int:
        """How many `add` or `remove` actions there are.

        Cost: the footers, or one small column where they do not tell.
        """
        with self._unreadable():
            return sum(map_in_pool(lambda file: file.count(kind), self._sources(kind)))

    def stats(self, leaves: Sequence[StatsLeaf]) -> list[pa.ChunkedArray[Any]]:
        """Statistics of all `add` actions, a column per leaf, rows as in `columns`.

        Args:
            leaves: paths with types, as in `stats.schema`.

        Cost: what was not read before; see `checkpoints.stats`.
        """
        missing = [leaf for leaf in leaves if leaf not in self._stats]
        if missing:
            with self._unreadable():
                files = [part for file in self._sources("add") for part in file.parts("add")]
                # Few at a time: the texts are many times bigger than what is taken from them.
                parts = list(
                    read_ahead(lambda file: read_stats(file, missing), files, depth=_STATS_AHEAD)
                )
            for number, leaf in enumerate(missing):
                chunks = [chunk for part in parts for chunk in part[number].chunks]
                self._stats[leaf] = chunked(chunks, leaf[1])
        return [self._stats[leaf] for leaf in leaves]

    @cached_property
    def _top_files(self) -> Sequence[CheckpointFile]:
        return [open_checkpoint_file(self._store, info) for info in self.files.files]

    @cached_property
    def data_files(self) -> Sequence[FileInfo]:
        """The files that hold file actions: the sidecars, or the top-level files."""
        rows = self.values(["sidecar"])["sidecar"]
        if not rows:
            return self.files.files
        with self._unreadable():
            sidecars = [
                sidecar_from_json(JsonObject(row, f"{self.files.name}: sidecar")) for row in rows
            ]
            return [
                FileInfo(
                    sidecar_location(sidecar), sidecar.size_bytes, sidecar.modification_time_ms
                )
                for sidecar in sidecars
            ]

    @cached_property
    def _data_files(self) -> Sequence[CheckpointFile]:
        infos = self.data_files
        if infos is self.files.files:
            return self._top_files  # their footers may be known
        return [open_checkpoint_file(self._store, info) for info in infos]

    def _sources(self, kind: str) -> Sequence[CheckpointFile]:
        """Where the actions of a kind are read from."""
        del kind
        return self._data_files

    @contextmanager
    def _unreadable(self) -> Iterator[None]:
        try:
            yield
        except CheckpointUnreadableError:
            raise
        except (
            DataFileMissingError,
            DataFileUnreadableError,
            ObjectNotFoundError,
            MalformedLogError,
            pa.ArrowException,
        ) as error:
            raise CheckpointUnreadableError(
                f"cannot read checkpoint {self.files.name} of {self._store.root}: {error}"
            ) from error


def _read_members(
    kind: str, fields: Sequence[pa.Field[Any]], file: CheckpointFile
) -> list[pa.ChunkedArray[Any]]:
    """One column per member, one row per action of the file."""
    sources = _member_sources(kind, fields, file)
    return _members_of(kind, fields, file.actions(kind, sources))


def _member_sources(kind: str, fields: Sequence[pa.Field[Any]], file: CheckpointFile) -> list[Leaf]:
    """What has to be read of a file to make the members."""
    if kind != "add" or {field.name for field in fields}.isdisjoint(_STAND_INS):
        return [(kind, field.name) for field in fields]
    present = {leaf[1] for leaf in file.leaves(kind)}
    names = [
        field.name if field.name in present else _STAND_INS.get(field.name, (field.name,))[0]
        for field in fields
    ]
    return [(kind, name) for name in names]


def _members_of(
    kind: str, fields: Sequence[pa.Field[Any]], actions: pa.ChunkedArray[Any]
) -> list[pa.ChunkedArray[Any]]:
    """The members, from what `_member_sources` named."""
    present = {field.name for field in actions.type}
    columns = []
    for field in fields:
        parsed, texts_of = _STAND_INS.get(field.name, ("", None))
        if kind == "add" and texts_of and field.name not in present and parsed in present:
            columns.append(texts_of(actions))
        else:
            columns.append(member(actions, field.name, field.type))
    return columns


# What a writer may leave out when it has it typed, and how to make it again.
_STAND_INS: Final[Mapping[str, tuple[str, Callable[..., pa.ChunkedArray[Any]]]]] = {
    PARTITION_VALUES: (PARTITION_VALUES_PARSED, texts_of_values),
    "stats": ("stats_parsed", texts_of_stats),
}
