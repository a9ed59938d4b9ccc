"""The plan to take over an Iceberg table: its data files stay, and get a Delta log.

Owns what is checked of a data file before it counts: Delta finds columns by the field ids in the
files, and reads values in the types that they are stored in. And the physical names: Spark's reader
takes a column by its name where a file lacks the id, so it may not be that of another one there.

Protocol: Column Mapping (mode `id`)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog.actions.properties import TableProperties
from deltalog.column_mapping import (
    PHYSICAL_NAME_KEY,
    Mode,
    field_id,
    physical_name,
    physical_name_by_id,
)
from deltalog.configuration import TableConfiguration
from deltalog.errors import DeltaError, InvalidInputError, SchemaMismatchError
from deltalog.schema import ArrayType, MapType, StructType, encode_schema, from_arrow_schema
from deltalog.storage.parquet import read_footer
from deltalog.storage.pool import map_in_pool
from deltalog.verbs.convert import Conversion
from deltalog.verbs.convert_files import ParquetFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.context import TableContext
    from deltalog.schema.types import DataType

_MODE_KEY: Final = TableProperties.column_mapping_mode.key
_FIELD_ID: Final = b"PARQUET:field_id"
_TOP: Final = 0
_ROW_LINEAGE: Final = frozenset({"_row_id", "_last_updated_sequence_number"})


def plan_iceberg_conversion(context: TableContext, metadata_name: str | None = None) -> Conversion:
    """Plan a Delta table of the data files of an Iceberg table's current snapshot.

    Args:
        context: at the location of the Iceberg table.
        metadata_name: of the file in `metadata/` that describes it; None is the newest.

    Raises:
        InvalidInputError: the table has no equal in Delta: row-level deletes, defaults, files that
            are not Parquet, or that hold columns without field ids.
        SchemaMismatchError: a file holds another type than the table has, as after a promotion.

    Cost: the metadata and manifests, and every footer.
    """
    try:
        from deltalog.iceberg.source import read_source  # noqa: PLC0415  # PyIceberg is an extra
    except ImportError as error:
        raise InvalidInputError(
            f"cannot take over the Iceberg table at {context.store.root}: PyIceberg is not "
            "installed; pip install 'deltalog[iceberg]'"
        ) from error

    source = read_source(context.store, metadata_name)

    def check(path: str, size_bytes: int) -> frozenset[_Stored]:
        footer = read_footer(context.store, path, size_bytes=size_bytes)
        arrow = footer.schema.to_arrow_schema()
        return _checked(arrow, source.schema, source.partition_columns, path)

    ids: dict[tuple[int, str], set[int]] = {}
    checked = map_in_pool(lambda one: check(one.info.path, one.info.size_bytes), source.files)
    for stored in set(checked):
        for column in stored:
            ids.setdefault((column.parent, column.name.lower()), set()).add(column.number)
    schema = _with_own_names(source.schema, _TOP, ids)
    names = {field.name: physical_name(field) for field in schema}
    return Conversion(
        schema=schema,
        partition_columns=source.partition_columns,
        files=tuple(
            ParquetFile(
                info=one.info,
                num_rows=one.num_rows,
                partition_values={names[name]: text for name, text in one.partition_values.items()},
            )
            for one in source.files
        ),
        source_format="iceberg",
        source_version=source.snapshot_id,
        max_column_id=source.last_column_id,
        description=source.description,
    )


def configuration_with_ids(
    wanted: TableConfiguration, conversion: Conversion
) -> TableConfiguration:
    """Return a new table's configuration with the ids that the files have.

    Args:
        wanted: of the table as users ask for it, with column mapping of mode `id`.
        conversion: of an Iceberg table.

    Raises:
        InvalidInputError: the column mapping mode is another one, or files were to follow more
            rules than they were written by.
    """
    if wanted.column_mapping_mode is not Mode.ID:
        raise InvalidInputError(
            f"cannot take over an Iceberg table with {_MODE_KEY}={wanted.column_mapping_mode}: its "
            "files hold columns by their ids, which only the mode id follows"
        )
    enabled = [
        key
        for key, text in wanted.metadata.configuration.items()
        if key.startswith(("delta.enableIcebergCompat", "delta.universalFormat"))
        and text.lower() not in {"", "false"}
    ]
    if enabled:
        raise InvalidInputError(
            f"cannot take over an Iceberg table with {', '.join(enabled)}: its files were not "
            "written by these rules; switch them on afterwards, by optimize.upgrade_uniform()"
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


def mapped_by_id(configuration: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """Return the properties of a table whose files hold columns by their ids."""
    given = dict(configuration or {})
    return given if any(key.lower() == _MODE_KEY.lower() for key in given) else {
        **given, _MODE_KEY: Mode.ID.value,
    }  # fmt: skip


class _Stored(NamedTuple):
    """A column of a file, at any depth.

    Args:
        parent: the id of the column that it is a part of; `_TOP` of none.
        name: there.
        number: its id.
    """

    parent: int
    name: str
    number: int


def _with_own_names(
    struct: StructType, parent: int, ids: Mapping[tuple[int, str], set[int]]
) -> StructType:
    """Return the columns with physical names that are no other column's in any file."""
    fields = []
    for field in struct:
        number = field_id(field) or 0
        kind = _parts_with_own_names(field.type, number, ids)
        metadata = dict(field.metadata)
        if ids.get((parent, field.name.lower()), set()) - {number}:
            metadata[PHYSICAL_NAME_KEY] = physical_name_by_id(number)
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


def _checked(
    arrow: pa.Schema, schema: StructType, partition_columns: Sequence[str], path: str
) -> frozenset[_Stored]:
    """Return the columns of a file; one that Delta would read otherwise than Iceberg is refused."""
    found = frozenset(_checked_fields(list(arrow), schema, path, _TOP, ""))
    there = {one.number for one in found if one.parent == _TOP}
    for field in schema:
        is_needed = not field.nullable and field.name not in partition_columns
        if is_needed and field_id(field) not in there:
            raise SchemaMismatchError(
                f"cannot take over {path!r}: it lacks the column {field.name!r}, which is required"
            )
    return found


def _checked_fields(
    fields: Sequence[pa.Field[Any]], struct: StructType, path: str, parent: int, prefix: str
) -> Iterator[_Stored]:
    known = {number: field for field in struct if (number := field_id(field)) is not None}
    for arrow in fields:
        text = (arrow.metadata or {}).get(_FIELD_ID)
        if text is None and not prefix and arrow.name in _ROW_LINEAGE:
            continue
        if text is None:
            raise InvalidInputError(
                f"cannot take over {path!r}: its column {prefix + arrow.name!r} has no field id, "
                "by which Delta would find it; rewrite the file with Iceberg's writer"
            )
        number = int(text)
        yield _Stored(parent, arrow.name, number)
        if number in known:  # the others were dropped
            name = prefix + known[number].name
            yield from _checked_parts(arrow.type, known[number].type, path, number, name)


def _checked_parts(
    arrow: Any, kind: DataType, path: str, parent: int, name: str
) -> Iterator[_Stored]:
    match kind:
        case StructType() if pa.types.is_struct(arrow):
            parts = [arrow.field(at) for at in range(arrow.num_fields)]
            yield from _checked_fields(parts, kind, path, parent, f"{name}.")
        case ArrayType() if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
            element = f"{name}.element"
            yield from _checked_parts(arrow.value_type, kind.element_type, path, parent, element)
        case MapType() if pa.types.is_map(arrow):
            yield from _checked_parts(arrow.key_type, kind.key_type, path, parent, f"{name}.key")
            value = f"{name}.value"
            yield from _checked_parts(arrow.item_type, kind.value_type, path, parent, value)
        case _:
            stored = _stored_type(arrow)
            if stored != kind:
                raise SchemaMismatchError(
                    f"cannot take over {path!r}: its column {name!r} is of type {stored or arrow}, "
                    f"and the table's of type {kind}; rewrite the file with Iceberg's writer"
                )


def _stored_type(arrow: Any) -> DataType | None:
    try:
        return from_arrow_schema(pa.schema([pa.field("value", arrow)])).fields[0].type
    except DeltaError:
        return None
