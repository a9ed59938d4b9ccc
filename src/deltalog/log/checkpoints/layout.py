"""Read one file of a checkpoint, in Parquet or JSON.

This module reads single files, and finds the location of sidecars. `segment` chooses the files of a
checkpoint. `replay` decides which of their file actions are live.

Protocol: Checkpoints, V2 Spec, Sidecar Files
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.json import iter_objects
from deltalog._util.paths import FileInfo, check_confined, is_absolute
from deltalog.log.checkpoints.rows import MARKERS, chunked, valid_rows
from deltalog.log.names import SIDECAR_DIRECTORY
from deltalog.protocol.actions.arrow import adds_from_json, removes_from_json
from deltalog.storage.parquet.parts import decode_bounds
from deltalog.storage.parquet.reader import ParquetReader, open_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.protocol.actions.model import Sidecar
    from deltalog.storage.parquet.facts import Footer
    from deltalog.storage.parquet.footer import NullCounts
    from deltalog.storage.store import Store

_BATCH_ROWS: Final = 1 << 15
PARTS_BYTES: Final = 16 << 20
"""The minimum size in bytes of a file whose row groups are processed in parallel."""

Leaf = tuple[str, ...]


class CheckpointFile(Protocol):
    """One top-level file or sidecar of a checkpoint, or some row groups of such a file."""

    def values(self, kinds: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
        """Return the actions of each kind as dicts, for all kinds except file actions."""
        ...

    def leaves(self, kind: str) -> Sequence[Leaf]:
        """Return the leaf columns of a kind that the file has; each path starts with `kind`."""
        ...

    def actions(self, kind: str, fields: Sequence[Leaf]) -> pa.ChunkedArray[Any]:
        """Return the actions of a kind in the order of the file, as structs of the given leaves.

        Leaves that the file lacks are missing in the structs.
        """
        ...

    def parts(self, kind: str, *, least_bytes: int = PARTS_BYTES) -> Sequence[CheckpointFile]:
        """Return parts of the file that can be read in parallel, in the order of the file.

        A file in which the actions of this kind have less than `least_bytes` bytes is one part.
        """
        ...

    def count(self, kind: str) -> int:
        """Return the number of actions of the kind."""
        ...

    def bounds(self, kind: str, leaves: Sequence[Leaf]) -> Mapping[Leaf, pa.Array[Any]]:
        """Return for each leaf its smallest and largest value, as an array of two values.

        The result contains only leaves for which the file records these values, and which are not
        NULL in any action of this kind.
        """
        ...

    def batches(
        self, kind: str, fields: Sequence[Leaf], batch_rows: int
    ) -> Iterator[pa.ChunkedArray[Any]]:
        """Yield the result of `actions` in batches; only one batch is in memory."""
        ...


def sidecar_location(sidecar: Sidecar) -> str:
    """Return the path of a sidecar. A relative path is relative to `_delta_log/_sidecars`.

    Raises:
        UnsafePathError: a relative path is outside of this directory.

    Protocol: Sidecar File Information
    """
    check_confined(sidecar.path)
    return sidecar.path if is_absolute(sidecar.path) else f"{SIDECAR_DIRECTORY}/{sidecar.path}"


def open_checkpoint_file(
    store: Store, info: FileInfo, *, keeps_bytes: bool = False
) -> CheckpointFile:
    """Return an object that reads a Parquet or JSON file of a checkpoint. No I/O happens yet.

    Args:
        store: the table's store.
        info: the file's path, size and time.
        keeps_bytes: whether to cache the bytes of a small file, which are read together with its
            footer. Thousands of small sidecars would need too much memory.
    """
    if info.name.endswith(".json"):
        return JsonCheckpointFile(store, info)
    return ParquetCheckpointFile(store, info, keeps_bytes=keeps_bytes)


class ParquetCheckpointFile:
    """A Parquet file of actions. It reads only requested leaves, in row groups with such actions.

    Args:
        store: the table's store.
        info: the file's path, size and time.
        footer: the footer, if it is already read.
        group: the only row group to read; None means all row groups.
        keeps_bytes: see `open_checkpoint_file`.
    """

    def __init__(
        self,
        store: Store,
        info: FileInfo,
        *,
        footer: Footer | None = None,
        group: int | None = None,
        keeps_bytes: bool = False,
    ) -> None:
        self._store = store
        self._info = info
        self._footer = footer
        self._known_nulls: NullCounts | None = None
        self._group = group
        self._keeps_bytes = keeps_bytes

    @cached_property
    def _leaves(self) -> Sequence[Leaf]:
        return self._open().leaves

    def _open(self) -> ParquetReader:
        # Each call opens a new reader, because threads cannot share a reader. All readers share the
        # footer.
        size = self._info.size_bytes or None
        reader = open_parquet(self._store, self._info.path, size_bytes=size, footer=self._footer)
        footer = reader.footer
        is_kept = self._keeps_bytes or footer.tail is None
        self._footer = footer if is_kept else replace(footer, tail=None)
        return reader

    def leaves(self, kind: str) -> Sequence[Leaf]:
        """See `CheckpointFile`. Cost: reads the footer once."""
        return [leaf for leaf in self._leaves if leaf[0] == kind]

    def values(self, kinds: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
        """See `CheckpointFile`.

        Cost: reads the leaves of these kinds, in the row groups that have such actions. They are
        read in batches, because only two of a million rows may have such an action.
        """
        reader = self._open()
        found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        by_groups: dict[tuple[int, ...], list[str]] = {}
        for kind in kinds:
            groups = tuple(self._row_groups(reader, kind))
            if groups:
                by_groups.setdefault(groups, []).append(kind)
        for groups, present in by_groups.items():
            for batch in reader.iter_batches(
                row_groups=groups, columns=[(kind,) for kind in present], batch_size=_BATCH_ROWS
            ):
                for kind in present:
                    column: Any = batch.column(kind)
                    if column.null_count < len(column):
                        found[kind] += column.drop_null().to_pylist()
        return found

    def actions(self, kind: str, fields: Sequence[Leaf]) -> pa.ChunkedArray[Any]:
        """See `CheckpointFile`. Cost: reads these leaves in the row groups with such actions."""
        reader = self._open()
        groups = self._row_groups(reader, kind)
        if not groups:
            return chunked([], pa.struct([]))
        fields = _with_marker(reader, kind, fields)
        return valid_rows(reader.read(columns=fields, row_groups=groups), kind)

    def batches(
        self, kind: str, fields: Sequence[Leaf], batch_rows: int
    ) -> Iterator[pa.ChunkedArray[Any]]:
        """See `CheckpointFile`.

        Cost: see `actions`. From a remote store, a whole row group is in memory at a time.
        """
        reader = self._open()
        groups = self._row_groups(reader, kind)
        fields = _with_marker(reader, kind, fields) if groups else fields
        for batch in reader.iter_batches(groups, fields, batch_rows):
            actions = valid_rows(pa.Table.from_batches([batch]), kind)
            if len(actions):
                yield actions

    def parts(self, kind: str, *, least_bytes: int = PARTS_BYTES) -> Sequence[CheckpointFile]:
        """Return the row groups with such actions as parts; the whole file if it is small."""
        reader = self._open()
        groups = self._row_groups(reader, kind)
        stored = sum(reader.metadata.row_group(group).total_byte_size for group in groups)
        if len(groups) < 2 or stored < least_bytes:
            return [self]
        return [self._part(group) for group in groups]

    def _part(self, group: int) -> ParquetCheckpointFile:
        part = ParquetCheckpointFile(self._store, self._info, footer=self._footer, group=group)
        part._known_nulls = self._known_nulls
        return part

    def count(self, kind: str) -> int:
        """See `CheckpointFile`.

        Cost: reads the footer; if it has no null counts, also one column.
        """
        reader = self._open()
        marker = reader.leaf_indices([(kind, MARKERS[kind])])
        if len(marker) != 1:
            return 0
        groups = self._row_groups(reader, kind)
        nulls = [self._nulls(reader)[group][marker[0]] for group in groups]
        if any(count is None for count in nulls):
            return len(self.actions(kind, []))
        rows = sum(reader.metadata.row_group(group).num_rows for group in groups)
        return rows - sum(count or 0 for count in nulls)

    def bounds(self, kind: str, leaves: Sequence[Leaf]) -> Mapping[Leaf, pa.Array[Any]]:
        """See `CheckpointFile`. The result is empty if several row groups have such actions.

        Cost: reads the footer.
        """
        reader = self._open()
        marker = reader.leaf_indices([(kind, MARKERS[kind])])
        groups = self._row_groups(reader, kind)
        if len(groups) != 1:
            return {}
        chunks = reader.column_chunks()[groups[0]]
        absent = chunks[marker[0]].null_count
        found: dict[Leaf, pa.Array[Any]] = {}
        for leaf in leaves:
            index = reader.leaf_indices([leaf])
            # Use the bounds only if each action has a value of the leaf. Then the null counts are
            # equal.
            if len(index) != 1 or absent is None or chunks[index[0]].null_count != absent:
                continue
            chunk, kind_of_leaf = chunks[index[0]], _type_at(reader.arrow_schema, leaf)
            if kind_of_leaf is None:
                continue
            bounds = decode_bounds(
                [chunk.min_value, chunk.max_value],
                are_ordered=chunk.is_ordered,
                physical_type=reader.metadata.schema.column(index[0]).physical_type,
                arrow_type=kind_of_leaf,
            )
            if bounds is not None and not bounds.null_count:
                found[leaf] = bounds
        return found

    def _row_groups(self, reader: ParquetReader, kind: str) -> list[int]:
        """Return the row groups that may contain actions of a kind, from null counts in the footer.

        If this object is one row group, return at most this row group.
        """
        marker = reader.leaf_indices([(kind, MARKERS[kind])])
        if len(marker) != 1:
            return []
        groups = []
        for group, columns in enumerate(self._nulls(reader)):
            nulls = columns[marker[0]]
            if nulls is None or nulls < reader.metadata.row_group(group).num_rows:
                groups.append(group)
        return [group for group in groups if self._group in {None, group}]

    def _nulls(self, reader: ParquetReader) -> NullCounts:
        if self._known_nulls is None:
            self._known_nulls = reader.null_counts()
        return self._known_nulls


def _type_at(schema: pa.Schema, leaf: Leaf) -> pa.DataType | None:
    """Return the type of a leaf; None if it does not exist, or is inside of a list or map."""
    found: Any = pa.struct(schema)
    for name in leaf:
        place = found.get_field_index(name) if pa.types.is_struct(found) else -1
        if place < 0:
            return None
        found = found.field(place).type
    kind: pa.DataType = found
    return None if pa.types.is_nested(kind) else kind


def _with_marker(reader: ParquetReader, kind: str, fields: Sequence[Leaf]) -> Sequence[Leaf]:
    """Return the fields, and the marker leaf if it is needed to find the rows with such an action.

    The other fields are enough if the struct column is nullable and the file has one of them.
    """
    if not reader.arrow_schema.field(kind).nullable or not reader.leaf_indices(fields):
        return [*fields, (kind, MARKERS[kind])]
    return fields


class JsonCheckpointFile:
    """The top-level file of a V2 checkpoint in JSON, which is small. It is read as a whole."""

    def __init__(self, store: Store, info: FileInfo) -> None:
        self._store = store
        self._info = info

    @cached_property
    def _actions(self) -> Mapping[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for values in iter_objects(self._store.read(self._info.path), self._info.name):
            for kind, value in values.items():
                if value is not None:
                    found.setdefault(kind, []).append(value)
        return found

    @cached_property
    def _tables(self) -> Mapping[str, pa.Table]:
        return {
            "add": adds_from_json(self._actions.get("add", [])),
            "remove": removes_from_json(self._actions.get("remove", [])),
        }

    def leaves(self, kind: str) -> Sequence[Leaf]:
        """See `CheckpointFile`."""
        table = self._tables.get(kind)
        return [] if table is None else [(kind, name) for name in table.column_names]

    def values(self, kinds: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
        """See `CheckpointFile`."""
        return {kind: self._actions.get(kind, []) for kind in kinds}

    def actions(self, kind: str, fields: Sequence[Leaf]) -> pa.ChunkedArray[Any]:
        """See `CheckpointFile`."""
        table = self._tables[kind]
        names = [field[1] for field in fields if field[1] in table.column_names]
        structs: pa.ChunkedArray[Any] = table.select(names or [MARKERS[kind]]).to_struct_array()
        return structs

    def parts(self, kind: str, *, least_bytes: int = PARTS_BYTES) -> Sequence[CheckpointFile]:
        """See `CheckpointFile`."""
        del kind, least_bytes
        return [self]

    def batches(
        self, kind: str, fields: Sequence[Leaf], batch_rows: int
    ) -> Iterator[pa.ChunkedArray[Any]]:
        """See `CheckpointFile`."""
        del batch_rows
        if self._tables[kind].num_rows:
            yield self.actions(kind, fields)

    def count(self, kind: str) -> int:
        """See `CheckpointFile`."""
        return self._tables[kind].num_rows

    def bounds(self, kind: str, leaves: Sequence[Leaf]) -> Mapping[Leaf, pa.Array[Any]]:
        """See `CheckpointFile`."""
        del kind, leaves
        return {}
