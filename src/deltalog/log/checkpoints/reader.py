"""Read a checkpoint by column: only requested columns, and each column once.

This module finds the actions of a checkpoint in its top-level files and sidecars, and caches
columns. It raises every failure as `CheckpointUnreadableError`, so that the caller can use an older
checkpoint instead. `snapshot` decides which files are live.

Protocol: Checkpoints, V2 Spec, Checkpoint Schema
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog import errors
from deltalog._util.cached import cached_property
from deltalog._util.json import JsonObject
from deltalog._util.kernels import compute
from deltalog._util.paths import FileInfo
from deltalog.log.checkpoints.layout import open_checkpoint_file, sidecar_location
from deltalog.log.checkpoints.rows import (
    PARTITION_VALUES,
    PARTITION_VALUES_PARSED,
    SMALL_KINDS,
    chunked,
    member,
    nulls,
    texts_of_values,
)
from deltalog.protocol.actions.arrow import FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.protocol.actions.codec import sidecar_from_json
from deltalog.protocol.stats.collect import encode_stats_column
from deltalog.protocol.stats.parse import AddBatch, StatsLeaf, leaf_of, parsed_leaves
from deltalog.protocol.stats.schema import conform_stats, leaves_of_schema, schema_of_leaves
from deltalog.storage.pool import map_in_pool, read_ahead
from deltalog.storage.store import Store, native_path
from deltalog.storage.stores.local_files import FileState, Recent, is_settled, local_state

if TYPE_CHECKING:
    from deltalog.log.checkpoints.layout import CheckpointFile, Leaf
    from deltalog.log.segment import CheckpointFiles


# --- Typed statistics of the files in a checkpoint


_PARSED: Final = ("add", "stats_parsed")
_JSON: Final = ("add", "stats")
_BATCH_ROWS: Final = 1 << 15
_ALIASES: Final = {"nullCount": "nullCounts"}
_CURRENT: Final = {alias: name for name, alias in _ALIASES.items()}


def read_stats(
    file: CheckpointFile,
    leaves: Sequence[StatsLeaf],
    where: pa.BooleanArray | None = None,
) -> list[pa.ChunkedArray[Any]]:
    """Return the statistics of `add` actions: one column for each leaf, one row for each action.

    Args:
        file: a file of the checkpoint.
        leaves: the leaves of the statistics.
        where: a boolean for each `add` of the file, whether to return its row; None means all.

    Cost: reads the leaves of `stats_parsed`. If the file lacks a leaf, reads the JSON strings up to
    the last selected row, and parses the selected strings once.
    """
    sources = stats_sources(set(file.leaves("add")), leaves)
    if _JSON not in sources and where is None:
        return stats_of(file.actions("add", sources), leaves)
    # Parse in batches, because JSON strings need much more memory than the parsed columns.
    parts = []
    row = 0
    end = _end(where)
    for actions in file.batches("add", sources, _BATCH_ROWS) if end != 0 else ():
        wanted = None if where is None else where.slice(row, len(actions))
        row += len(actions)
        if wanted is None:
            parts.append(stats_of(actions, leaves))
        elif wanted.true_count:
            parts.append(stats_of(actions.filter(wanted), leaves))
        if end is not None and row >= end:
            break
    return [
        chunked([chunk for part in parts for chunk in part[number].chunks], kind)
        for number, (_, kind) in enumerate(leaves)
    ]


def _end(where: pa.BooleanArray | None) -> int | None:
    """Return the number of rows up to the last selected row; None means all rows."""
    if where is None:
        return None
    wanted = compute.indices_nonzero(where)
    return wanted[-1].as_py() + 1 if len(wanted) else 0


def stats_sources(
    have: Collection[tuple[str, ...]], leaves: Sequence[StatsLeaf]
) -> list[tuple[str, ...]]:
    """Return the columns from which to get `leaves`.

    These are the leaves of `stats_parsed` and, if it lacks some of `leaves`, the column `stats`.
    """
    stored = [_stored_as(path, have) for path, _ in leaves]
    fields = [source for source in stored if source is not None]
    return [*fields, _JSON] if len(fields) < len(leaves) and _JSON in have else fields


def stats_of(
    actions: pa.ChunkedArray[Any], leaves: Sequence[StatsLeaf]
) -> list[pa.ChunkedArray[Any]]:
    """Return one column for each leaf, computed from the columns of `stats_sources`."""
    have = set(_members(actions.type))
    parsed = [leaf for leaf in leaves if _stored_as(leaf[0], have) is not None]
    others = [leaf for leaf in leaves if _stored_as(leaf[0], have) is None]
    found: dict[tuple[str, ...], pa.ChunkedArray[Any]] = {}
    if parsed:
        table = conform_stats(member_of(actions, "stats_parsed"), schema_of_leaves(parsed))
        found.update({path: leaf_of(table, path) for path, _ in parsed})
    if others and _JSON in have:
        columns = parsed_leaves(member_of(actions, "stats"), others)
        found.update({path: column for (path, _), column in zip(others, columns, strict=True)})
    else:
        rows = len(actions)
        found.update({path: chunked([nulls(rows, kind)], kind) for path, kind in others})
    return [found[path] for path, _ in leaves]


def _members(action_type: Any) -> Iterator[tuple[str, ...]]:
    for field in action_type:
        yield ("add", field.name)
        if field.name == _PARSED[1] and pa.types.is_struct(field.type):
            yield from ((*_PARSED, *path) for path, _ in leaves_of_schema(pa.schema(field.type)))


def texts_of_stats(actions: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return `stats_parsed` as JSON strings, for a checkpoint without the column `stats`.

    Cost: some kernels for each statistic.
    """
    chunks: list[pa.Array[Any]] = []
    structs: Any = member_of(actions, "stats_parsed").chunks
    for chunk in structs:
        names = [_CURRENT.get(field.name, field.name) for field in chunk.type]
        chunks.extend(encode_stats_column(pa.Table.from_arrays(chunk.flatten(), names)).chunks)
    return chunked(chunks, pa.string())


def member_of(actions: pa.ChunkedArray[Any], name: str) -> pa.ChunkedArray[Any]:
    """Return a member of a struct column with its own type; empty if the struct lacks it."""
    if actions.type.get_field_index(name) < 0:
        return chunked([], pa.struct([]))
    member: pa.ChunkedArray[Any] = compute.struct_field(actions, name)
    return member


def _stored_as(path: tuple[str, ...], have: Collection[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the path of a leaf in `stats_parsed`; None if `have` does not contain the leaf.

    Some writers use other names for statistics (`_ALIASES`).
    """
    spellings = (path[0], _ALIASES.get(path[0], path[0]))
    for name in spellings:
        if (*_PARSED, name, *path[1:]) in have:
            return (*_PARSED, name, *path[1:])
    return None


# --- The whole checkpoint


_STATS_AHEAD: Final = 2
# The maximum size in bytes of a small checkpoint. From a small checkpoint, all kinds except file
# actions are read together, because the additional bytes cost less than another request.
_SMALL_BYTES: Final = 1024 * 1024
_MOST_RECENT_VALUES: Final = 100  # the maximum number of actions to cache for one checkpoint
_RECENT_VALUES: Final = Recent[Mapping[str, list[dict[str, Any]]]](32)
_SCHEMAS: Final = {"add": FILE_SCHEMA, "remove": REMOVE_SCHEMA}


class Checkpoint:
    """The actions of one checkpoint, read on demand.

    Columns are cached, but not pickled. If two threads request the same column at the same time,
    both may read it, with equal results.

    Args:
        store: the table's store.
        files: the checkpoint's files.

    Attributes:
        held_row_groups: for each row group with adds, a checkpoint of these adds; None until
            `PartialCheckpoint.each_of_adds` is called.
    """

    def __init__(self, store: Store, files: CheckpointFiles) -> None:
        self._store = store
        self.files = files
        self._columns: dict[tuple[str, str], pa.ChunkedArray[Any]] = {}
        self._stats: dict[StatsLeaf, pa.ChunkedArray[Any]] = {}
        self._values: dict[str, list[dict[str, Any]]] = {}
        self.held_row_groups: Sequence[Checkpoint] | None = None

    @property
    def version(self) -> int:
        """The table version of the checkpoint."""
        return self.files.version

    @property
    def holds_columns(self) -> bool:
        """Whether any column of file actions is cached."""
        return bool(self._columns or self._stats) or any(
            part.holds_columns for part in self.held_row_groups or ()
        )

    @property
    def store(self) -> Store:
        """The store of the table."""
        return self._store

    def parts_of_adds(self) -> list[CheckpointFile]:
        """Return the row groups with adds, in order. Cost: reads all footers in parallel."""
        with self._unreadable():
            files = self._sources("add")
            parts = map_in_pool(lambda file: file.parts("add", least_bytes=0), files)
        return [part for of_file in parts for part in of_file]

    @property
    def held_bytes(self) -> int:
        """The size of the cached columns, in bytes."""
        columns = (*self._columns.values(), *self._stats.values())
        return sum(column.nbytes for column in columns)

    def forget(self, *, statistics: bool) -> None:
        """Delete cached columns; with `statistics`, also cached columns of statistics."""
        self._columns = {}
        if statistics:
            self._stats = {}

    def __getstate__(self) -> tuple[Store, CheckpointFiles]:
        return self._store, self.files

    def __setstate__(self, state: tuple[Store, CheckpointFiles]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # without cached columns

    def values(self, kinds: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
        """Return the actions of some kinds as dicts, such as `protocol`; not for file actions.

        Cost: reads the leaves of these kinds, in the row groups that have such actions, but no
        sidecar. From a small checkpoint, all kinds except file actions are read together, because a
        writer needs all of them. For a local checkpoint they are cached in this process, also for
        other objects of this table.
        """
        if self._is_small and not self._values:
            # Ignore an unreadable kind here, because the requested kinds may still be readable.
            with suppress(errors.CheckpointUnreadableError):
                self._read_small_values()
        self._read_values([kind for kind in kinds if kind not in self._values])
        return {kind: self._values[kind] for kind in kinds}

    @cached_property
    def _is_small(self) -> bool:
        return sum(file.size_bytes for file in self.files.files) <= _SMALL_BYTES

    def _read_small_values(self) -> None:
        states = self._local_states()
        stay = all(map(is_settled, states))  # check this before the files are read
        known = _RECENT_VALUES.get(*states) if states else None
        if known is None:
            self._read_values(SMALL_KINDS)
            if states and stay and sum(map(len, self._values.values())) <= _MOST_RECENT_VALUES:
                _RECENT_VALUES.keep(dict(self._values), *states)
        else:
            self._values.update(known)

    def _local_states(self) -> list[FileState]:
        """Return the states of the top-level files; empty if they are not local."""
        paths = [native_path(self._store, file.path) for file in self.files.files]
        try:
            return [local_state(path) for path in paths if path is not None]
        except OSError:
            return []  # reading the file raises the error

    def _read_values(self, kinds: Sequence[str]) -> None:
        found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        if kinds:
            with self._unreadable():
                for part in map_in_pool(lambda file: file.values(kinds), self._top_files):
                    for kind, values in part.items():
                        found[kind] += values
        self._values.update(found)

    def columns(self, kind: str, names: Sequence[str]) -> pa.Table:
        """Return columns of all `add` or `remove` actions, in the order of the checkpoint's files.

        Args:
            kind: `add` or `remove`.
            names: names of columns of `FILE_SCHEMA` or `REMOVE_SCHEMA`.

        Returns:
            One row for each action. Every call returns the same rows in the same order.

        Cost: reads the leaves of the columns that are not cached.
        """
        schema, held = _SCHEMAS[kind], self._columns  # another thread may replace `_columns`
        missing = [name for name in names if (kind, name) not in held]
        if missing:
            wanted = [schema.field(name) for name in missing]
            with self._unreadable():
                parts = map_in_pool(partial(_read_members, kind, wanted), self._sources(kind))
            for number, field in enumerate(wanted):
                chunks = [chunk for part in parts for chunk in part[number].chunks]
                held[kind, field.name] = chunked(chunks, field.type)
        with self._unreadable():  # a corrupt footer leads to columns of different lengths
            return pa.Table.from_arrays([held[kind, name] for name in names], list(names))

    def iter_adds(self, leaves: Sequence[StatsLeaf], *, batch_rows: int) -> Iterator[AddBatch]:
        """Yield all `add` actions, with all members and some statistics, in the order of `columns`.

        Args:
            leaves: the leaves of the statistics.
            batch_rows: maximum number of rows in a batch.

        Returns:
            Batches, which `AddBatch.decode` converts to columns.

        Cost: reads the leaves that are not cached, and does not cache them.
        """
        columns = dict(self._columns)
        held = [name for name in FILE_SCHEMA.names if ("add", name) in columns]
        missing = [field for field in FILE_SCHEMA if field.name not in held]
        row = 0
        with self._unreadable():
            for file in self._sources("add"):
                sources = _member_sources("add", missing, file)
                sources += stats_sources(file.leaves("add"), leaves)
                for actions in file.batches("add", list(dict.fromkeys(sources)), batch_rows):
                    rows = len(actions)
                    known = {name: columns["add", name].slice(row, rows) for name in held}
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
        """Return the number of `add` or `remove` actions.

        Cost: reads the footers; if they have no null counts, also one column.
        """
        with self._unreadable():
            return sum(map_in_pool(lambda file: file.count(kind), self._sources(kind)))

    def stats(self, leaves: Sequence[StatsLeaf]) -> list[pa.ChunkedArray[Any]]:
        """Return statistics of all `add` actions: one column for each leaf.

        The rows are those of `columns`, in the same order.

        Args:
            leaves: path and type of each leaf, as in `protocol.stats.schema`.

        Cost: reads the leaves that are not cached; see `read_stats`.
        """
        held = self._stats  # another thread may replace `_stats`
        missing = [leaf for leaf in leaves if leaf not in held]
        if missing:
            with self._unreadable():
                files = [part for file in self._sources("add") for part in file.parts("add")]
                # Read few files at a time, because JSON strings need much more memory than columns.
                parts = list(
                    read_ahead(lambda file: read_stats(file, missing), files, depth=_STATS_AHEAD)
                )
            for number, leaf in enumerate(missing):
                chunks = [chunk for part in parts for chunk in part[number].chunks]
                held[leaf] = chunked(chunks, leaf[1])
        return [held[leaf] for leaf in leaves]

    def stats_where(
        self, leaves: Sequence[StatsLeaf], where: pa.BooleanArray
    ) -> list[pa.ChunkedArray[Any]]:
        """Return statistics of some `add` actions, one column for each leaf, without caching them.

        Args:
            leaves: path and type of each leaf, as in `protocol.stats.schema`.
            where: a boolean for each action, whether to return its row.

        Cost: reads the leaves; parses only the selected JSON strings.
        """
        parts = []
        row = 0
        with self._unreadable():
            for file in self._sources("add"):
                rows = file.count("add")
                parts.append(read_stats(file, leaves, where.slice(row, rows)))
                row += rows
        return [
            chunked([chunk for part in parts for chunk in part[number].chunks], kind)
            for number, (_, kind) in enumerate(leaves)
        ]

    @cached_property
    def _top_files(self) -> Sequence[CheckpointFile]:
        infos = self.files.files
        return [
            open_checkpoint_file(self._store, one, keeps_bytes=len(infos) == 1) for one in infos
        ]

    @cached_property
    def data_files(self) -> Sequence[FileInfo]:
        """The files that contain file actions: the sidecars, or else the top-level files."""
        rows = self.values(["sidecar"])["sidecar"]
        if not rows:
            return self.files.files
        with self._unreadable():
            sidecars = [
                sidecar_from_json(JsonObject(row, f"{self.files.name}: sidecar")) for row in rows
            ]
            return [
                FileInfo(sidecar_location(one), one.size_bytes, one.modification_time_ms)
                for one in sidecars
            ]

    @cached_property
    def _data_files(self) -> Sequence[CheckpointFile]:
        infos = self.data_files
        if infos is self.files.files:
            return self._top_files  # these objects may have cached footers
        return [open_checkpoint_file(self._store, info) for info in infos]

    def _sources(self, kind: str) -> Sequence[CheckpointFile]:
        """Return the files from which actions of a kind are read."""
        del kind
        return self._data_files

    @contextmanager
    def _unreadable(self) -> Iterator[None]:
        try:
            yield
        except errors.CheckpointUnreadableError:
            raise
        except (
            errors.DataFileMissingError,
            errors.DataFileUnreadableError,
            errors.ObjectNotFoundError,
            errors.MalformedLogError,
            pa.ArrowException,
            UnicodeDecodeError,  # Arrow checks UTF-8 only when it creates Python strings
        ) as error:
            raise errors.CheckpointUnreadableError(
                f"cannot read checkpoint {self.files.name} of {self._store.root}: {error}"
            ) from error


def _read_members(
    kind: str, fields: Sequence[pa.Field[Any]], file: CheckpointFile
) -> list[pa.ChunkedArray[Any]]:
    """Return one column for each member of `fields`, with one row for each action of the file."""
    return _members_of(kind, fields, file.actions(kind, _member_sources(kind, fields, file)))


def _member_sources(kind: str, fields: Sequence[pa.Field[Any]], file: CheckpointFile) -> list[Leaf]:
    """Return the leaves of a file from which the members of `fields` can be computed."""
    if kind != "add" or {field.name for field in fields}.isdisjoint(_FROM_TYPED):
        return [(kind, field.name) for field in fields]
    present = {leaf[1] for leaf in file.leaves(kind)}
    names = [
        field.name if field.name in present else _FROM_TYPED.get(field.name, (field.name,))[0]
        for field in fields
    ]
    return [(kind, name) for name in names]


def _members_of(
    kind: str, fields: Sequence[pa.Field[Any]], actions: pa.ChunkedArray[Any]
) -> list[pa.ChunkedArray[Any]]:
    """Return one column for each member, computed from the leaves of `_member_sources`."""
    present = {field.name for field in actions.type}
    columns = []
    for field in fields:
        parsed, texts_of = _FROM_TYPED.get(field.name, ("", None))
        if kind == "add" and texts_of and field.name not in present and parsed in present:
            columns.append(texts_of(actions))
        else:
            columns.append(member(actions, field.name, field.type))
    return columns


# Untyped member → the typed member, and a function that converts it to the untyped form. A writer
# may omit the untyped member if it writes the typed member.
_FROM_TYPED: Final[Mapping[str, tuple[str, Callable[..., pa.ChunkedArray[Any]]]]] = {
    PARTITION_VALUES: (PARTITION_VALUES_PARSED, texts_of_values),
    "stats": ("stats_parsed", texts_of_stats),
}
