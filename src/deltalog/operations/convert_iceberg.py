"""Plan the conversion of an Iceberg table: write a Delta log for its unchanged data files.

This module checks that Delta can read each data file. Delta readers find columns by the field ids
in the files. They read values in their stored types, or in a wider type that the schema records as
a type change.

This module also chooses the physical names. If a file lacks a field id, Spark's reader looks for
the column by its physical name. So a column's physical name must not be the name of another column
in any file.

Protocol: Column Mapping (mode `id`), Type Widening (Type Change Metadata), Deletion Vectors
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog.errors import DeltaError, InvalidInputError, SchemaMismatchError
from deltalog.operations.convert import Conversion
from deltalog.operations.convert_files import ParquetFile
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import (
    PHYSICAL_NAME_KEY,
    Mode,
    field_id,
    physical_name,
    physical_name_by_id,
)
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.iceberg_compat import NESTED_IDS_KEY, is_iceberg_promotion
from deltalog.schema import ArrayType, MapType, StructType, encode_schema, from_arrow_schema
from deltalog.schema.arrow import parquet_field_id
from deltalog.schema.columns import map_fields, walk, walk_types
from deltalog.schema.evolve import TypeChange, with_change
from deltalog.schema.types import DATE, TIMESTAMP_NTZ, DataType, Field, PrimitiveType
from deltalog.storage.parquet.reader import read_footer
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from deltalog.iceberg.source import IcebergFile, IcebergSource
    from deltalog.log.context import TableContext
    from deltalog.storage.store import Store

_MODE_KEY: Final = TableProperties.column_mapping_mode.key
_TOP: Final = 0
_ROW_LINEAGE: Final = frozenset({"_row_id", "_last_updated_sequence_number"})


def plan_iceberg_conversion(context: TableContext, metadata_name: str | None = None) -> Conversion:
    """Plan a Delta table from the data files of an Iceberg table's current snapshot.

    Args:
        context: context of the table at the location of the Iceberg table.
        metadata_name: name of the metadata file in `metadata/`; None means the newest one.

    Raises:
        InvalidInputError: Delta cannot represent the table: it has defaults, files that are not
            Parquet or columns without field ids; or a row-level delete is not valid for its data
            file.
        SchemaMismatchError: a file contains a type that Delta cannot read as the table's type.
        DataFileMissingError, DataFileUnreadableError, DeletionVectorError: a file with row-level
            deletes is missing or damaged.

    Cost: reads the metadata and manifests, every footer, and every delete file. For equality
    deletes, it also reads their columns from all older data files.
    """
    try:
        from deltalog.iceberg.deleted_rows import (  # noqa: PLC0415  # PyIceberg is an extra
            read_deleted_rows,
        )
        from deltalog.iceberg.source import read_source  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInputError(
            f"cannot convert the Iceberg table at {context.store.root}: PyIceberg is not "
            "installed; pip install 'deltalog[iceberg]'"
        ) from error

    source = read_source(context.store, metadata_name)
    footers = map_in_pool(lambda one: _footer(context.store, source, one), source.files)
    deleted = read_deleted_rows(context.store, source.deletes, source.files)
    ids: dict[tuple[int, str], set[int]] = {}
    for column in {column for footer in footers for column in footer.columns}:
        ids.setdefault((column.parent, name_key(column.name)), set()).add(column.number)
    schema = _with_own_names(source.schema, _TOP, ids)
    schema = _with_type_changes(schema, {one for footer in footers for one in footer.earlier})
    names = {field.name: physical_name(field) for field in schema}
    files = [
        ParquetFile(
            info=one.info,
            num_rows=one.num_rows,
            partition_values={names[name]: text for name, text in one.partition_values.items()},
            deleted=deleted.get(one.location),
        )
        for one in source.files
    ]
    files = [one for one in files if not one.is_deleted]
    return Conversion(
        schema=schema,
        partition_columns=source.partition_columns,
        files=tuple(files),
        source_format="iceberg",
        source_version=source.snapshot_id,
        max_column_id=source.last_column_id,
        description=source.description,
        features=tuple(
            feature
            for feature, is_used in (
                ("deletionVectors", any(one.deleted is not None for one in files)),
                ("typeWidening", any(footer.earlier for footer in footers)),
            )
            if is_used
        ),
    )


def configuration_with_ids(
    wanted: TableConfiguration, conversion: Conversion
) -> TableConfiguration:
    """Return a new table's configuration, with the column ids that the files contain.

    Args:
        wanted: the requested configuration, with column mapping of mode `id`.
        conversion: conversion of an Iceberg table.

    Raises:
        InvalidInputError: the column mapping mode is not `id`, or the configuration enables an
            Iceberg compatibility feature, whose rules the files do not satisfy.
    """
    if wanted.column_mapping_mode is not Mode.ID:
        raise InvalidInputError(
            f"cannot convert an Iceberg table with {_MODE_KEY}={wanted.column_mapping_mode}: its "
            f"files identify columns by id, which needs {_MODE_KEY}=id"
        )
    enabled = [
        key
        for key, text in wanted.metadata.configuration.items()
        if key.startswith(("delta.enableIcebergCompat", "delta.universalFormat"))
        and text.lower() not in {"", "false"}
    ]
    if enabled:
        raise InvalidInputError(
            f"cannot convert an Iceberg table with {', '.join(enabled)}: its files do not satisfy "
            "the rules of these features; after the conversion, enable them with "
            "optimize.upgrade_uniform()"
        )
    metadata = replace(
        wanted.metadata,
        schema_string=encode_schema(conversion.schema),
        configuration={
            **wanted.metadata.configuration,
            TableProperties.column_mapping_max_column_id.key: str(conversion.max_column_id),
        },
    )
    return TableConfiguration(wanted.protocol, metadata)


def mapped_by_id(
    configuration: Mapping[str, str | None] | None, conversion: Conversion
) -> dict[str, str | None]:
    """Return the properties of a table whose files identify columns by their ids.

    The result enables column mapping by id. If rows are deleted, it also enables deletion vectors,
    so that later commands use them, too. Properties that the caller sets have precedence.
    """
    needed: dict[str, str | None] = {_MODE_KEY: Mode.ID.value}
    if "deletionVectors" in conversion.features:
        needed[TableProperties.enable_deletion_vectors.key] = "true"
    given = dict(configuration or {})
    own = {key.lower() for key in given}
    return {**given, **{key: text for key, text in needed.items() if key.lower() not in own}}


class _Stored(NamedTuple):
    """A column of a file, at any depth.

    Args:
        parent: id of the column that contains this column; `_TOP` for a top-level column.
        name: name of the column in the file.
        number: id of the column.
    """

    parent: int
    name: str
    number: int


class _Earlier(NamedTuple):
    """A stored type that is narrower than the table's type for the column.

    Args:
        number: id of the column.
        path: which part of the column has the type, such as `element`; empty for the column itself.
        kind: the type in the file.
    """

    number: int
    path: tuple[str, ...]
    kind: PrimitiveType


class _Footer(NamedTuple):
    """The columns in a file's footer, and the types that are narrower than the table's."""

    columns: frozenset[_Stored]
    earlier: frozenset[_Earlier]


def _footer(store: Store, source: IcebergSource, file: IcebergFile) -> _Footer:
    """Return a file's columns; raise if Delta would read a column differently from Iceberg."""
    path = file.info.path
    footer = read_footer(store, path, size_bytes=file.info.size_bytes)
    if footer.num_rows != file.num_rows:
        raise InvalidInputError(
            f"cannot convert {path!r}: expected {file.num_rows} rows, as the Iceberg metadata of "
            f"{store.root} states, found {footer.num_rows}"
        )
    found = list(
        _checked_fields(list(footer.schema.to_arrow_schema()), source.schema, path, _TOP, "")
    )
    columns = frozenset(one for one in found if isinstance(one, _Stored))
    earlier = frozenset(one for one in found if isinstance(one, _Earlier))
    _check_missing(columns, source, file)
    _check_partitions(earlier, source, path)
    return _Footer(columns, earlier)


def _check_missing(columns: frozenset[_Stored], source: IcebergSource, file: IcebergFile) -> None:
    """Raise if a file lacks a column, unless the column is NULL in all rows of the file."""
    there = {one.number for one in columns}
    top = {one.number for one in columns if one.parent == _TOP}
    for field in source.schema:
        is_needed = not field.nullable and field.name not in source.partition_columns
        if is_needed and field_id(field) not in top:
            raise SchemaMismatchError(
                f"cannot convert {file.info.path!r}: it lacks the required column {field.name!r}"
            )
    for path, field in walk(source.schema):
        if field_id(field) in file.constants and field_id(field) not in there:
            raise SchemaMismatchError(
                f"cannot convert {file.info.path!r}: it lacks the column {'.'.join(path)!r}, "
                "whose value is only in the Iceberg metadata; rewrite the file with Iceberg's "
                "writer"
            )


def _check_partitions(earlier: frozenset[_Earlier], source: IcebergSource, path: str) -> None:
    """Raise if a partition column of type timestamp_ntz has type date in the file.

    It is unclear whether the partition value in the metadata is in days or in microseconds.
    """
    names = source.partition_columns
    partitions = {field_id(one): one.name for one in source.schema if one.name in names}
    for one in earlier:
        if one.kind == DATE and one.number in partitions:
            raise SchemaMismatchError(
                f"cannot convert {path!r}: its partition column {partitions[one.number]!r} is of "
                "type date, but the table's column is of type timestamp_ntz; rewrite the file with "
                "Iceberg's writer"
            )


def _with_type_changes(schema: StructType, earlier: Collection[_Earlier]) -> StructType:
    """Record the types in the files as type changes in the schema, from narrow to wide."""
    found: dict[int, dict[tuple[str, ...], set[PrimitiveType]]] = {}
    for one in earlier:
        found.setdefault(one.number, {}).setdefault(one.path, set()).add(one.kind)

    def changed(field: Field) -> Field:
        for path, kinds in sorted(found.get(field_id(field) or 0, {}).items()):
            newest = dict(walk_types(field.type))[path]
            steps: list[DataType] = [*sorted(kinds, key=_width), newest]
            for before, after in pairwise(steps):
                field = with_change(field, TypeChange(before, after, path))
        return field

    return map_fields(schema, changed)


def _width(kind: PrimitiveType) -> int:
    return kind.precision if kind.is_decimal else kind.primitive.bits


def _with_own_names(
    struct: StructType, parent: int, ids: Mapping[tuple[int, str], set[int]]
) -> StructType:
    """Replace each physical name that is the name of another column in any file."""
    fields = []
    for field in struct:
        number = field_id(field) or 0
        kind = _parts_with_own_names(field.type, number, ids)
        metadata = dict(field.metadata)
        if ids.get((parent, name_key(field.name)), set()) - {number}:
            name = metadata[PHYSICAL_NAME_KEY] = physical_name_by_id(number)
            if NESTED_IDS_KEY in metadata:
                nested: Any = metadata[NESTED_IDS_KEY]
                metadata[NESTED_IDS_KEY] = {
                    name + path.removeprefix(field.name): part for path, part in nested.items()
                }
        fields.append(replace(field, type=kind, metadata=metadata))
    return StructType(fields)


def _parts_with_own_names(
    kind: DataType, parent: int, ids: Mapping[tuple[int, str], set[int]]
) -> DataType:
    match kind:
        case StructType():
            return _with_own_names(kind, parent, ids)
        case ArrayType():
            element = _parts_with_own_names(kind.element_type, parent, ids)
            return ArrayType(element, contains_null=kind.contains_null)
        case MapType():
            key, value = (
                _parts_with_own_names(one, parent, ids) for one in (kind.key_type, kind.value_type)
            )
            return MapType(key, value, value_contains_null=kind.value_contains_null)
        case _:
            return kind


def _checked_fields(
    fields: Sequence[pa.Field[Any]], struct: StructType, path: str, parent: int, prefix: str
) -> Iterator[_Stored | _Earlier]:
    known = {number: field for field in struct if (number := field_id(field)) is not None}
    for arrow in fields:
        number = parquet_field_id(arrow)
        if number is None and not prefix and arrow.name in _ROW_LINEAGE:
            continue
        if number is None:
            raise InvalidInputError(
                f"cannot convert {path!r}: its column {prefix + arrow.name!r} has no field id, "
                "which Delta readers need; rewrite the file with Iceberg's writer"
            )
        yield _Stored(parent, arrow.name, number)
        if number in known:  # other columns were dropped from the table
            place = _Place(path, number, prefix + known[number].name)
            yield from _checked_parts(arrow.type, known[number].type, place)


@dataclass(frozen=True, slots=True)
class _Place:
    """A part of a column in a file.

    Args:
        file: path of the file.
        number: id of the column.
        column: name of the column, for error messages.
        parts: path of the part in the column, such as `element`.
    """

    file: str
    number: int
    column: str
    parts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return ".".join((self.column, *self.parts))

    def part(self, name: str) -> _Place:
        return replace(self, parts=(*self.parts, name))


def _checked_parts(arrow: Any, kind: DataType, place: _Place) -> Iterator[_Stored | _Earlier]:
    match kind:
        case StructType() if pa.types.is_struct(arrow):
            parts = [arrow.field(at) for at in range(arrow.num_fields)]
            prefix = f"{place.name}."
            yield from _checked_fields(parts, kind, place.file, place.number, prefix)
        case ArrayType() if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
            yield from _checked_parts(arrow.value_type, kind.element_type, place.part("element"))
        case MapType() if pa.types.is_map(arrow):
            yield from _checked_parts(arrow.key_type, kind.key_type, place.part("key"))
            yield from _checked_parts(arrow.item_type, kind.value_type, place.part("value"))
        case _:
            stored = _stored_type(arrow)
            if isinstance(stored, PrimitiveType) and _is_promoted(stored, kind):
                yield _Earlier(place.number, place.parts, stored)
            elif stored != kind:
                raise SchemaMismatchError(
                    f"cannot convert {place.file!r}: its column {place.name!r} is of type "
                    f"{stored or arrow}, which Delta cannot read as the table's type {kind}; "
                    "rewrite the file with Iceberg's writer"
                )


def _is_promoted(stored: PrimitiveType, kind: DataType) -> bool:
    """Return whether Iceberg promotes `stored` to `kind` and Delta can widen it, too."""
    is_date = (stored, kind) == (DATE, TIMESTAMP_NTZ)  # allowed since Iceberg format version 3
    return is_date or is_iceberg_promotion(stored, kind)


def _stored_type(arrow: Any) -> DataType | None:
    try:
        return from_arrow_schema(pa.schema([pa.field("value", arrow)])).fields[0].type
    except DeltaError:
        return None
