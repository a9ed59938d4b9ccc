"""Converting logical rows to the physical columns of data files.

This module determines physical names and field ids at every depth, and stores variants as two
binary fields. Files have no partition columns (unless a feature requires them) and no void columns,
but may have hidden columns of row tracking.

Protocol: Column Mapping (Writer Requirements), Materialize Partition Columns, Row Tracking,
Variant Encoding
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog._util.kernels import FALSE, Array, arrow, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.protocol import column_mapping
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.features.iceberg_compat import (
    NESTED_IDS_KEY,
    ROW_COMMIT_VERSION_FIELD,
    ROW_ID_FIELD,
)
from deltalog.schema import (
    VARIANT_STORAGE,
    ArrayType,
    MapType,
    PrimitiveType,
    StructType,
    VariantType,
    to_arrow_type,
)
from deltalog.schema.arrow import parquet_id_metadata
from deltalog.schema.conform import spanned
from deltalog.schema.types import BINARY, STRING, VOID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import DataType, Field

# The features that require partition columns in data files, after all other columns.
_MATERIALISING: Final = ("icebergCompatV1", "icebergCompatV2", "icebergCompatV3")


def physical_arrow_schema(
    configuration: TableConfiguration, *, with_row_ids: bool = False
) -> pa.Schema:
    """Return the Arrow schema of a table's new data files.

    Every column is nullable, as in Delta Spark, because a NOT NULL constraint may be dropped later.

    Args:
        configuration: the table's configuration.
        with_row_ids: whether to include the hidden columns of row tracking.
    """
    return Layout(configuration).arrow_schema(with_row_ids=with_row_ids)


def to_physical(
    batch: pa.RecordBatch,
    configuration: TableConfiguration,
    *,
    row_ids: Array | None = None,
    row_commit_versions: Array | None = None,
) -> pa.RecordBatch:
    """Return logical rows with the columns, names and types of data files.

    Args:
        batch: rows in the table's logical schema.
        configuration: the table's configuration.
        row_ids: row ids to preserve, NULL for new rows; None omits the hidden columns.
        row_commit_versions: row commit versions to preserve, NULL for changed rows.

    Cost: copies only variants, and structs with void fields.
    """
    layout = Layout(configuration)
    return layout.encode(batch, row_ids=row_ids, row_commit_versions=row_commit_versions)


class _Column(NamedTuple):
    name: str  # logical name
    field: pa.Field[Any]
    source: DataType
    is_partition: bool = False


class Layout:
    """The physical columns of a table's data files; may be used for many batches.

    Args:
        configuration: the table's configuration.
        extra: additional columns, which follow all other columns.

    Raises:
        InvalidInputError: Parquet cannot store the schema: all columns are void, or a list or map
            has void elements.
    """

    def __init__(
        self, configuration: TableConfiguration, *, extra: Sequence[pa.Field[Any]] = ()
    ) -> None:
        mode = configuration.column_mapping_mode
        fields = list(configuration.data_schema)
        partitions = configuration.partition_schema if is_materialising(configuration) else ()
        self._columns = [
            _Column(field.name, _physical_field(field, mode), field.type)
            for field in fields
            if not _is_void(field.type)
        ]
        self._columns += [
            _Column(field.name, _physical_field(field, mode), field.type, is_partition=True)
            for field in partitions
            if not _is_void(field.type)
        ]
        if not self._columns and fields:
            raise InvalidInputError(
                "cannot write rows that have only void columns: data files would have no column; "
                "if all values are NULL, give the columns types, as in pa.array([None], pa.int64())"
            )
        numbers: tuple[int | None, ...] = (None, None)
        if configuration.is_active("icebergCompatV3"):
            numbers = ROW_ID_FIELD, ROW_COMMIT_VERSION_FIELD
        hidden = configuration.row_id_column, configuration.row_commit_version_column
        self._hidden: list[pa.Field[Any]] = [
            pa.field(name, pa.int64(), metadata=parquet_id_metadata(number))
            for name, number in zip(hidden, numbers, strict=True)
            if name is not None
        ]
        self._plain = pa.schema([*(column.field for column in self._columns), *extra])

    def arrow_schema(self, *, with_row_ids: bool = False) -> pa.Schema:
        """Return the Arrow schema of a file."""
        if not with_row_ids:
            return self._plain
        return pa.schema([*self._plain, *self._hidden])

    def leaves(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the logical path and Parquet's dotted path of each leaf column."""
        for column in self._columns:
            yield from _leaves(column.source, column.field.type, (column.name,), column.field.name)

    def encode(
        self,
        batch: pa.RecordBatch,
        *,
        row_ids: Array | None = None,
        row_commit_versions: Array | None = None,
        extra: Sequence[Array] = (),
    ) -> pa.RecordBatch:
        """Return the batch with physical columns; see `to_physical`."""
        arrays = [
            _physical_array(_as_partitioned(batch, column), column.source, column.field.type)
            for column in self._columns
        ]
        arrays += extra
        with_row_ids = row_ids is not None or row_commit_versions is not None
        if with_row_ids:
            # The draft of row tracking has no row commit versions, so its tables have only one
            # hidden column.
            kept = (row_ids, row_commit_versions)[: len(self._hidden)]
            arrays += [_hidden_array(values, batch.num_rows) for values in kept]
        return pa.RecordBatch.from_arrays(
            arrays, schema=self.arrow_schema(with_row_ids=with_row_ids)
        )


def _as_partitioned(batch: pa.RecordBatch, column: _Column) -> Array:
    """Return a column's values; in partition columns, "" and b"" become NULL, as in the log."""
    values: Array = batch.column(column.name)
    if not column.is_partition or column.source not in {STRING, BINARY}:
        return values
    empty = pc.equal(pc.binary_length(values), pa.scalar(0, pa.int32()))
    return compute.if_else(empty, pa.scalar(None, values.type), values)


def is_materialising(configuration: TableConfiguration) -> bool:
    """Return whether data files also contain the partition columns."""
    return (
        # This feature is active if the protocol lists it. The features in `_MATERIALISING` also
        # need a property.
        configuration.supports("materializePartitionColumns")
        or any(configuration.is_active(feature) for feature in _MATERIALISING)
        or configuration.properties.write_partition_columns_to_parquet is True
    )


def _physical_field(field: Field, mode: Mode) -> pa.Field[Any]:
    name = column_mapping.physical_name(field, mode)
    number = None if mode is Mode.NONE else column_mapping.field_id(field)
    nested: Any = {} if mode is Mode.NONE else field.metadata.get(NESTED_IDS_KEY, {})
    arrow_type = _physical_type(field.type, mode, nested, name)
    return pa.field(name, arrow_type, metadata=parquet_id_metadata(number))


def _physical_type(
    data_type: DataType, mode: Mode, nested_ids: Mapping[str, int], path: str
) -> pa.DataType:
    def part(name: str, inner: DataType, *, nullable: bool = True) -> pa.Field[Any]:
        if _is_void(inner):
            raise InvalidInputError(
                f"cannot write column {path!r}: a list or map cannot have void elements"
            )
        # IcebergCompatV2 and V3 also require field ids of elements, keys and values.
        here = f"{path}.{name}"
        arrow_type = _physical_type(inner, mode, nested_ids, here)
        return pa.field(name, arrow_type, nullable, parquet_id_metadata(nested_ids.get(here)))

    match data_type:
        case VariantType():
            return VARIANT_STORAGE
        case StructType():
            fields = [
                _physical_field(field, mode) for field in data_type if not _is_void(field.type)
            ]
            if not fields:
                raise InvalidInputError(
                    f"cannot write column {path!r}: a struct cannot have only void fields"
                )
            return pa.struct(fields)
        case ArrayType():
            return pa.list_(part("element", data_type.element_type))
        case MapType():
            key = part("key", data_type.key_type, nullable=False)
            return arrow.map_(key, part("value", data_type.value_type))
        case PrimitiveType() if data_type.primitive.stored_as is not None:
            return data_type.primitive.stored_as(*data_type.parameters)
        case _:
            return to_arrow_type(data_type)


def _is_void(data_type: DataType) -> bool:
    return data_type == VOID


def _physical_array(array: Array, source: DataType, target: Any) -> Array:
    if isinstance(source, PrimitiveType):
        return _physical_values(array, source, target)
    if not _needs_copy(source):
        # Only names and field ids differ, so the result can share the buffers.
        return array.view(target)
    match source:
        case VariantType():
            return _variant_parts(array.storage if isinstance(array, pa.ExtensionArray) else array)
        case StructType():
            kept = [field for field in source if not _is_void(field.type)]
            children = [
                _physical_array(field_of(array, field.name), field.type, target.field(number).type)
                for number, field in enumerate(kept)
            ]
            return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(array))
        case ArrayType():
            offsets, values = spanned(array, array.values)
            values = _physical_array(values, source.element_type, target.value_type)
            return pa.ListArray.from_arrays(offsets, values, type=target, mask=_mask(array))
        case MapType():
            offsets, keys = spanned(array, array.keys)
            _, items = spanned(array, array.items)
            keys = _physical_array(keys, source.key_type, target.key_type)
            items = _physical_array(items, source.value_type, target.item_type)
            return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_mask(array))
        case _:
            return array


def _physical_values(array: Array, source: PrimitiveType, target: Any) -> Array:
    row = source.primitive
    if row.check is not None:
        try:
            row.check(array)
        except ValueError as error:
            raise InvalidInputError(f"cannot write a value of type {source}: {error}") from error
    if row.stored_as is None:
        return array
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array)
    return array.view(target)


def _variant_parts(array: Array) -> Array:
    """Return variants as structs of two required binaries, empty where the struct is NULL."""
    parts = [field_of(array, field.name) for field in VARIANT_STORAGE]
    is_there = array.is_valid()
    if any(pc.any(pc.and_(is_there, part.is_null())).as_py() for part in parts):
        raise InvalidInputError("cannot write a variant that lacks its metadata or its value")
    filled = [pc.fill_null(part, pa.scalar(b"")) for part in parts]
    return pa.StructArray.from_arrays(
        filled, fields=list(VARIANT_STORAGE), mask=pc.invert(is_there) if array.null_count else None
    )


def _needs_copy(data_type: DataType) -> bool:
    """Whether a conversion copies the array: for void fields, variants and special file types."""
    match data_type:
        case StructType():
            return any(_needs_copy(field.type) for field in data_type)
        case ArrayType():
            return _needs_copy(data_type.element_type)
        case MapType():
            return _needs_copy(data_type.key_type) or _needs_copy(data_type.value_type)
        case PrimitiveType():
            return _is_void(data_type) or data_type.primitive.stored_as is not None
        case _:
            return isinstance(data_type, VariantType)


def _mask(array: Array) -> Array | None:
    return array.is_null() if array.null_count else None


def _hidden_array(values: Array | None, num_rows: int) -> Array:
    if values is None:
        return pa.nulls(num_rows, pa.int64())
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.cast(pa.int64())


def _leaves(
    source: DataType, target: Any, path: tuple[str, ...], dotted: str
) -> Iterator[tuple[tuple[str, ...], str]]:
    match source:
        case StructType():
            kept = [field for field in source if not _is_void(field.type)]
            for number, field in enumerate(kept):
                inner = target.field(number)
                yield from _leaves(
                    field.type, inner.type, (*path, field.name), f"{dotted}.{inner.name}"
                )
        case ArrayType():
            inner_path = (*path, "element")
            yield from _leaves(
                source.element_type, target.value_type, inner_path, f"{dotted}.list.element"
            )
        case MapType():
            for name, inner_type, arrow_type in (
                ("key", source.key_type, target.key_type),
                ("value", source.value_type, target.item_type),
            ):
                yield from _leaves(
                    inner_type, arrow_type, (*path, name), f"{dotted}.key_value.{name}"
                )
        case VariantType():
            yield path, f"{dotted}.metadata"
            yield path, f"{dotted}.value"
        case _:
            yield path, dotted


# --- Values of nested columns, and paths that must not be NULL


Path = tuple[str, ...]


def values_at(array: Array, path: Sequence[str]) -> tuple[Array, Array | None]:
    """Return the values at a path below a column, and the row number of each value.

    A field of a NULL struct is NULL. A NULL or empty list or map has no values.

    Args:
        array: the column's array.
        path: the path below the column, with `element`, `key` and `value` for lists and maps.

    Returns:
        The values; and their row numbers, or None if each row has exactly one value.
    """
    rows: Array | None = None
    for name in path:
        if not pa.types.is_struct(array.type):
            lists = _entries(array) if pa.types.is_map(array.type) else array
            parents = _parents(lists)
            rows = parents if rows is None else rows.take(parents)
            array = lists.flatten()
            if name == "element":
                continue
        array = field_of(array, name)
    return array, rows


def not_null_paths(schema: StructType) -> Iterator[Path]:
    """Yield the paths that must not be NULL: fields, elements, keys and values."""
    for field in schema:
        if not field.nullable:
            yield (field.name,)
        yield from _not_null_below(field.type, (field.name,))


def field_of(array: Array, name: str) -> Array:
    """Return the field of a struct; NULL where the struct is NULL."""
    # Use the field's index, because Arrow would parse a name such as `.x` as a path.
    return pc.struct_field(array, [array.type.get_field_index(name)])


def rows_where(mask: Array, rows: Array | None) -> Array:
    """Return the distinct row numbers of the marked values, ascending.

    Args:
        mask: one boolean per value; NULL counts as false.
        rows: the row numbers of the values, as returned by `values_at`.
    """
    marked: Array = pc.indices_nonzero(pc.fill_null(mask, FALSE))
    if rows is None:
        return marked
    found = rows.take(marked).unique()
    return found.take(pc.array_sort_indices(found))


def _entries(maps: Array) -> Array:
    """Return maps as lists of structs, without a copy."""
    # `view` would fail for NULL variants, because their two fields are not nullable.
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], ["key", "value"])
    return pa.Array.from_buffers(
        pa.list_(entries.type),
        len(maps),
        maps.buffers()[:2],
        offset=maps.offset,
        children=[entries],
    )


def _parents(lists: Array) -> Array:
    """Return, for each value of `lists.flatten()`, the index of its list.

    Arrow's kernel `list_parent_indices` cannot be used: it also counts hidden values of NULL lists.
    """
    lengths: Array = pc.fill_null(pc.list_value_length(lists), pa.scalar(0, pa.int32()))
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    total = offsets[-1].as_py()
    parents: Array = pc.list_parent_indices(pa.LargeListArray.from_arrays(offsets, pa.nulls(total)))
    return parents


def _not_null_below(data_type: DataType, path: Path) -> Iterator[Path]:
    match data_type:
        case StructType():
            for inner in not_null_paths(data_type):
                yield (*path, *inner)
        case ArrayType():
            yield from _not_null_part(
                data_type.element_type, (*path, "element"), nullable=data_type.contains_null
            )
        case MapType():
            yield from _not_null_part(data_type.key_type, (*path, "key"), nullable=False)
            yield from _not_null_part(
                data_type.value_type, (*path, "value"), nullable=data_type.value_contains_null
            )
        case _:
            return


def _not_null_part(data_type: DataType, path: Path, *, nullable: bool) -> Iterator[Path]:
    if not nullable:
        yield path
    yield from _not_null_below(data_type, path)
