"""Transform physical batches into logical ones.

Owns how columns of a data file are matched to the table's columns (by name, by physical name or by
field id), which Parquet leaves are read for them, and how the arrays are assembled: missing columns
and nested fields become NULL, widened types are promoted, old calendars are rebased, shredded
variants are reassembled.

Protocol: Column Mapping (Reader Requirements for Column Mapping), Type Widening, Variant Shredding
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.column_mapping import Mode, field_id, physical_name
from deltalog.errors import DataFileUnreadableError
from deltalog.names import name_key
from deltalog.scan.promote import promotion
from deltalog.scan.rebase import file_rebase
from deltalog.schema import (
    VARIANT,
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    VariantType,
    to_arrow_type,
)
from deltalog.schema.arrow import parquet_field_id
from deltalog.variant import unshred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from deltalog.scan.rebase import Rebase
    from deltalog.storage.parquet import ParquetReader

    # Arrow types and arrays are Any where the code branches on their kind at run time: the stubs
    # have a class for each kind.
    Adapter = Callable[[Any], pa.Array[Any]]

_MOST_KEPT: Final = 8


@dataclass(frozen=True, slots=True)
class FileProjection:
    """Which leaves of a file to read, and how to make logical columns of them.

    Args:
        leaves: indices of the Parquet leaf columns, ascending.
        columns: for each logical column its name in the file (None: missing), and the function
            that adapts its arrays (None: not needed).
        schema: of the logical columns.
        leaf_of: index of the file's leaf, for each logical column that is a single leaf and is
            not rebased, so that the footer's bounds hold for its values.
    """

    leaves: tuple[int, ...]
    columns: tuple[tuple[str | None, Adapter | None], ...]
    schema: pa.Schema
    leaf_of: Mapping[str, int]

    def apply(self, table: pa.Table) -> list[pa.ChunkedArray[Any]]:
        """Make the logical columns from a physical table that holds the columns of `leaves`."""
        found: list[pa.ChunkedArray[Any]] = []
        for (name, adapter), column in zip(self.columns, self.schema, strict=True):
            if name is None:
                missing = pa.nulls(table.num_rows, column.type)
                found.append(pa.chunked_array([missing], column.type))
                continue
            chunks = table.column(name)
            if adapter is not None:
                chunks = pa.chunked_array([adapter(chunk) for chunk in chunks.chunks], column.type)
            found.append(chunks)
        return found


def kept_projection(
    columns: StructType, reader: ParquetReader, mode: Mode, path: str, time_zone: str
) -> FileProjection:
    """As `project_file`, of an open file; kept with its footer for other scans of these columns.

    `time_zone` is that of old writers who did not record theirs.
    """
    known, key = reader.footer.projections, (columns, mode, path, time_zone)
    found: FileProjection | None = known.get(key)
    if found is None:
        rebase = file_rebase(reader.metadata, time_zone)
        schema = reader.arrow_schema
        if rebase is None:
            found = _RECENT.get(columns, mode, schema)
        if found is None:
            found = project_file(columns, schema, mode, path=path, rebase=rebase)
            if rebase is None:
                _RECENT.keep(columns, mode, schema, found)
        known[key] = found
    return found


class _RecentProjections:
    """The last projections that convert nothing, for other files with the same columns.

    Most files of a table have the same ones, and matching thousands by name takes longer than
    comparing two schemas.
    """

    def __init__(self) -> None:
        self._kept: tuple[tuple[StructType, Mode, pa.Schema, FileProjection], ...] = ()

    def get(self, columns: StructType, mode: Mode, schema: pa.Schema) -> FileProjection | None:
        """The projection of these columns in files of this schema, if it is known."""
        for known_columns, known_mode, known_schema, projection in self._kept:
            is_same = known_mode is mode and known_columns == columns
            if is_same and known_schema.equals(schema, check_metadata=True):  # with ids of fields
                return projection
        return None

    def keep(
        self, columns: StructType, mode: Mode, schema: pa.Schema, found: FileProjection
    ) -> None:
        """Keep a projection that converts nothing: what does names its own file in errors."""
        if all(adapter is None for _, adapter in found.columns):
            self._kept = ((columns, mode, schema, found), *self._kept[: _MOST_KEPT - 1])


_RECENT: Final = _RecentProjections()


def project_file(
    columns: StructType,
    file_schema: pa.Schema,
    mode: Mode,
    *,
    path: str,
    rebase: Rebase | None = None,
) -> FileProjection:
    """Match the table's `columns` to the columns of the file at `path`.

    Args:
        columns: logical columns wanted, pruned to the nested leaves wanted.
        file_schema: of the Parquet file, with field ids in the fields' metadata.
        mode: the table's column mapping.
        path: for messages.
        rebase: for a file in the hybrid calendar.

    Raises:
        DataFileUnreadableError: a column's type cannot be read as the table's type, two columns
            match one name, or the table maps by id and the file has no ids.

    Protocol: Reader Requirements for Column Mapping
    """
    matcher = _ColumnMatcher(mode=mode, path=path, rebase=rebase)
    if mode is Mode.ID and len(columns) and not matcher.has_ids(file_schema):
        raise DataFileUnreadableError(
            f"cannot read data file {path!r}: the table maps columns by id, "
            "expected field ids in the file, found none; the file was not written for this table"
        )
    first_leaf: dict[str, int] = {}
    position = 0
    for column in file_schema:
        first_leaf.setdefault(column.name, position)
        position += _num_leaves(column.type)
    found: list[tuple[str | None, Adapter | None]] = []
    leaf_of: dict[str, int] = {}
    fields = _Fields(file_schema)
    for wanted in columns:
        match = matcher.find(wanted, fields)
        if match is None:
            found.append((None, None))
            continue
        adapter = matcher.adapt(wanted.name, wanted.type, match.type, first_leaf[match.name])
        found.append((match.name, adapter))
        leaf = first_leaf[match.name]
        if isinstance(wanted.type, PrimitiveType) and leaf not in matcher.rebased:
            leaf_of[wanted.name] = leaf
    return FileProjection(
        leaves=tuple(sorted(matcher.leaves)),
        columns=tuple(found),
        schema=pa.schema([pa.field(wanted.name, to_arrow_type(wanted.type)) for wanted in columns]),
        leaf_of=leaf_of,
    )


class _Fields:
    """An index of the fields of one level of a file."""

    def __init__(self, fields: Iterable[pa.Field[Any]]) -> None:
        self._by_folded_name: dict[str, list[pa.Field[Any]]] = {}
        self._by_id: dict[int, list[pa.Field[Any]]] = {}
        for field_ in fields:
            self._by_folded_name.setdefault(name_key(field_.name), []).append(field_)
            number = parquet_field_id(field_)
            if number is not None:
                self._by_id.setdefault(number, []).append(field_)

    def named(self, name: str) -> list[pa.Field[Any]]:
        """The fields of this name in any case: names of a table's columns never differ in it."""
        return self._by_folded_name.get(name_key(name), [])

    def with_id(self, number: int | None) -> list[pa.Field[Any]]:
        """The fields with this field id."""
        return [] if number is None else self._by_id.get(number, [])


@dataclass(slots=True)
class _ColumnMatcher:
    """Builds adapters for matched columns, and collects the leaves that they need."""

    mode: Mode
    path: str
    rebase: Rebase | None
    leaves: set[int] = field(default_factory=set)
    rebased: set[int] = field(default_factory=set)

    def has_ids(self, fields: Iterable[pa.Field[Any]]) -> bool:
        return any(parquet_field_id(column) is not None for column in fields)

    def find(self, wanted: Field, fields: _Fields) -> pa.Field[Any] | None:
        if self.mode is Mode.ID:
            found = fields.with_id(field_id(wanted))
        else:
            name = wanted.name if self.mode is Mode.NONE else physical_name(wanted)
            found = fields.named(name)
        if len(found) > 1:
            raise DataFileUnreadableError(
                f"cannot read column {wanted.name!r} of data file {self.path!r}: expected one "
                f"column of that name, found {[column.name for column in found]!r}"
            )
        return found[0] if found else None

    def adapt(self, name: str, wanted: DataType, found: Any, first: int) -> Adapter | None:
        """Return a function that converts arrays of the file's type to the table's type.

        `first` is the index of the first leaf below the file's column.
        """
        match wanted:
            case StructType() if pt.is_struct(found):
                return self._struct(name, wanted, found, first)
            case ArrayType() if _is_list(found):
                return self._list(name, wanted, found, first)
            case MapType() if pt.is_map(found):
                return self._map(name, wanted, found, first)
            case VariantType() if pt.is_struct(_storage(found)):
                self._take(found, first)
                return _variant
            case PrimitiveType() if not pt.is_nested(found):
                self._take(found, first)
                with contextlib.suppress(TypeError):
                    adapter = self._leaf(found, to_arrow_type(wanted), first)
                    return _checked(adapter, name, self.path)
            case _:
                pass
        raise DataFileUnreadableError(
            f"cannot read column {name!r} of data file {self.path!r}: "
            f"expected {wanted}, found {found}, which no reader can take for it"
        )

    def _leaf(self, found: Any, wanted: Any, leaf: int) -> Adapter | None:
        promote = promotion(found, wanted)
        if self.rebase is None:
            return promote
        if pt.is_date32(found):  # a date that was widened to a timestamp is rebased as a date
            old = self.rebase.adapter(leaf, found)
            steps = (old, promote)
        else:
            old = self.rebase.adapter(leaf, wanted)
            steps = (promote, old)
        if old is not None:
            self.rebased.add(leaf)
        return _chained(*steps)

    def _take(self, found: Any, first: int) -> None:
        self.leaves.update(range(first, first + _num_leaves(found)))

    def _struct(self, name: str, wanted: StructType, found: Any, first: int) -> Adapter | None:
        starts: dict[str, int] = {}
        position = first
        fields = list(found)
        for child in fields:
            starts[child.name] = position
            position += _num_leaves(child.type)
        before = len(self.leaves)
        parts: list[tuple[str | None, Adapter | None]] = []
        known = _Fields(fields)
        for child in wanted:
            match = self.find(child, known)
            if match is None:
                parts.append((None, None))
                continue
            inner = self.adapt(f"{name}.{child.name}", child.type, match.type, starts[match.name])
            parts.append((match.name, inner))
        if len(self.leaves) == before and fields:
            # None of the wanted fields is in the file: read a leaf to learn which structs are NULL.
            self._take(_first_leaf_type(found), first)
        return _StructAdapter(tuple(parts), to_arrow_type(wanted))

    def _list(self, name: str, wanted: ArrayType, found: Any, first: int) -> Adapter | None:
        element = found.value_type
        inner = self.adapt(f"{name}.element", wanted.element_type, element, first)
        return _ListAdapter(inner, to_arrow_type(wanted), is_plain=pt.is_list(found))

    def _map(self, name: str, wanted: MapType, found: Any, first: int) -> Adapter | None:
        key_type, item_type = found.key_type, found.item_type
        keys = self.adapt(f"{name}.key", wanted.key_type, key_type, first)
        # Without all leaves of its key, Arrow would read the map as a list.
        self._take(key_type, first)
        items = self.adapt(
            f"{name}.value", wanted.value_type, item_type, first + _num_leaves(key_type)
        )
        return _MapAdapter(keys, items, to_arrow_type(wanted))


def _chained(first: Adapter | None, second: Adapter | None) -> Adapter | None:
    if first is None or second is None:
        return first or second
    return lambda array: second(first(array))


def _checked(adapter: Adapter | None, name: str, path: str) -> Adapter | None:
    if adapter is None:
        return None

    def adapt(array: Any) -> pa.Array[Any]:
        try:
            return adapter(array)
        except pa.ArrowInvalid as error:
            raise DataFileUnreadableError(
                f"cannot read column {name!r} of data file {path!r}: "
                f"a value can't be shown in the table's type: {error}"
            ) from error

    return adapt


def _variant(array: Any) -> pa.Array[Any]:
    plain = unshred(array.storage if isinstance(array, pa.ExtensionArray) else array)
    return pa.ExtensionArray.from_storage(VARIANT, plain)


@dataclass(frozen=True, slots=True)
class _StructAdapter:
    parts: tuple[tuple[str | None, Adapter | None], ...]
    kind: Any

    def __call__(self, array: Any) -> pa.Array[Any]:
        children: list[pa.Array[Any]] = []
        fields = list(self.kind)
        for (name, adapter), child in zip(self.parts, fields, strict=True):
            if name is None:
                children.append(pa.nulls(len(array), child.type))
                continue
            values = array.field(name)
            children.append(values if adapter is None else adapter(values))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


@dataclass(frozen=True, slots=True)
class _ListAdapter:
    inner: Adapter | None
    kind: Any
    is_plain: bool

    def __call__(self, array: Any) -> pa.Array[Any]:
        if not self.is_plain:
            array = array.cast(pa.list_(array.type.value_field))
        values = array.values
        values = values if self.inner is None else self.inner(values)
        return _with_children(array, self.kind, values)


@dataclass(frozen=True, slots=True)
class _MapAdapter:
    keys: Adapter | None
    items: Adapter | None
    kind: Any

    def __call__(self, array: Any) -> pa.Array[Any]:
        keys, items = array.keys, array.items
        keys = keys if self.keys is None else self.keys(keys)
        items = items if self.items is None else self.items(items)
        fields = [self.kind.key_field, self.kind.item_field]
        entries = pa.StructArray.from_arrays([keys, items], fields=fields)
        return _with_children(array, self.kind, entries)


def _with_children(array: Any, kind: Any, child: pa.Array[Any]) -> pa.Array[Any]:
    """Replace the values of lists or maps; validity and offsets are shared."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), [validity, offsets], -1, array.offset, children=[child]
    )


def _storage(kind: Any) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_list(kind: Any) -> bool:
    return pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)


def _num_leaves(kind: Any) -> int:
    """The number of Parquet leaf columns of a type; they are ordered depth first."""
    if pt.is_map(kind):
        return _num_leaves(kind.key_type) + _num_leaves(kind.item_type)
    if _is_list(kind):
        return _num_leaves(kind.value_type)
    if pt.is_struct(kind):
        return sum(_num_leaves(child.type) for child in kind)
    if isinstance(kind, pa.BaseExtensionType):
        return _num_leaves(kind.storage_type)
    return 1


def _first_leaf_type(kind: Any) -> Any:
    """The type of the first leaf or map below: a map cannot be read in part."""
    while pt.is_struct(kind) or _is_list(kind):
        kind = kind.field(0).type if pt.is_struct(kind) else kind.value_type
    return kind
