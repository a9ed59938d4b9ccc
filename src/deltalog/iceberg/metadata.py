"""Table metadata files, in the layout of Hadoop tables.

A commit of Iceberg metadata creates `metadata/v<n>.metadata.json`, if no other writer has created
it. `metadata/version-hint.text` contains the newest number, for engines that open a table by its
directory.

Protocol: Iceberg Table Spec: Table Metadata, Row Lineage, File System Tables
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyiceberg import types
from pyiceberg.exceptions import ValidationError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV2, TableMetadataV3
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import MetadataLogEntry, SnapshotLogEntry
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import IcebergBaseModel

from deltalog._util.json import dumps
from deltalog.errors import (
    InvalidMetadataError,
    ObjectNotFoundError,
    StorageError,
    UnsupportedTypeError,
)
from deltalog.iceberg.store_io import METADATA_DIRECTORY, StoreIO, location_of
from deltalog.protocol.column_mapping import field_id, physical_name
from deltalog.protocol.features.iceberg_compat import NESTED_IDS_KEY, format_version
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    MapType,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema.types import DataType, Field
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)

DELTA_VERSION: Final = "delta-version"
DELTA_TIMESTAMP: Final = "delta-timestamp"
_NAME_MAPPING: Final = "schema.name-mapping.default"
_OWN_PROPERTIES: Final = "delta.universalformat.config.iceberg."
_HINT: Final = f"{METADATA_DIRECTORY}/version-hint.text"
_MOST_LOGGED: Final = 100

TableMetadata = TableMetadataV2 | TableMetadataV3
MetadataT = TypeVar("MetadataT", TableMetadataV2, TableMetadataV3, TableMetadata)
_MODELS: Final[dict[int, type[TableMetadata]]] = {2: TableMetadataV2, 3: TableMetadataV3}


@dataclass(frozen=True, slots=True)
class StoredMetadata:
    """Table metadata and the number in its file name.

    Args:
        number: the number of the metadata file.
        metadata: the content of the file; None if the file is unreadable or belongs to another
            table. The next sync then writes all metadata again.
    """

    number: int
    metadata: TableMetadata | None

    @property
    def delta_version(self) -> int:
        """The Delta version of the metadata; -1 if the metadata does not record it."""
        properties = {} if self.metadata is None else self.metadata.properties
        text = properties.get(DELTA_VERSION, "")
        return int(text) if text.isascii() and text.isdigit() else -1


def metadata_name(number: int) -> str:
    """Return the name of the metadata file with a number."""
    return f"v{number}.metadata.json"


def read_newest(store: Store, table_id: str) -> StoredMetadata | None:
    """Return the newest metadata of the table; None if there is no metadata file.

    The `metadata` of the result is None if the file cannot be extended: it belongs to an earlier
    table at this location, it was copied from another location, it has an unsupported format
    version, or it is unreadable.

    Args:
        store: the store of the table.
        table_id: the id of the table.

    Cost: two requests, and one for each file that is newer than the hint; a listing if the hint is
    missing or wrong.
    """
    number = hinted_number(store)
    found = None if number is None else _read(store, number)
    if number is None or found is None:
        number = _listed(store)
        found = _read(store, number)
    if found is None:
        return None
    while (newer := _read(store, number + 1)) is not None:
        number, found = number + 1, newer
    try:
        metadata = TableMetadataUtil.parse_raw(found.decode())
    except (ValueError, KeyError, TypeError, ValidationError):
        return StoredMetadata(number, None)
    is_here = metadata.location.rstrip("/") == location_of(store)
    is_ours = is_here and metadata.table_uuid == _uuid(table_id)
    return StoredMetadata(
        number, metadata if is_ours and isinstance(metadata, TableMetadata) else None
    )


def first_metadata(store: Store, configuration: TableConfiguration, table_id: str) -> TableMetadata:
    """Return the first metadata of a table, without a snapshot."""
    schema = iceberg_schema(configuration.schema)
    spec = partition_spec(configuration)
    members: dict[str, Any] = {
        "location": location_of(store),
        "table-uuid": _uuid(table_id),
        "last-column-id": _highest_id(configuration, schema),
        "schemas": [schema],
        "current-schema-id": schema.schema_id,
        "partition-specs": [spec],
        "default-spec-id": spec.spec_id,
        "last-partition-id": FIRST_PARTITION_ID - 1 + len(spec.fields),
        "sort-orders": [UNSORTED_SORT_ORDER],
        "default-sort-order-id": UNSORTED_SORT_ORDER.order_id,
        "last-sequence-number": 0,
    }
    return _MODELS[format_version(configuration.properties) or 2](**members)


def upgraded(metadata: TableMetadata) -> TableMetadataV3:
    """Upgrade metadata to format version 3, without changing its snapshots."""
    if isinstance(metadata, TableMetadataV3):
        return metadata
    members = metadata.model_dump(by_alias=True, exclude_none=True, exclude={"format_version"})
    return TableMetadataV3(**members)


def with_shape(metadata: MetadataT, configuration: TableConfiguration) -> MetadataT:
    """Set the schema and partition spec of a table; reuse the ids if the metadata contains them."""
    schema = iceberg_schema(configuration.schema)
    known = next((one for one in metadata.schemas if one.fields == schema.fields), None)
    changes: dict[str, Any] = {}
    if known is None:
        number = 1 + max((one.schema_id for one in metadata.schemas), default=-1)
        known = iceberg_schema(configuration.schema, number)
        changes["schemas"] = [*metadata.schemas, known]
    changes["current_schema_id"] = known.schema_id
    changes["last_column_id"] = max(metadata.last_column_id, _highest_id(configuration, known))
    spec = _numbered(partition_spec(configuration), metadata)
    same = next((one for one in metadata.partition_specs if one.fields == spec.fields), None)
    if same is None:
        changes["partition_specs"] = [*metadata.partition_specs, spec]
        same = spec
    changes["default_spec_id"] = same.spec_id
    changes["last_partition_id"] = max(
        metadata.last_partition_id or FIRST_PARTITION_ID - 1,
        *(one.field_id for one in same.fields),
        FIRST_PARTITION_ID - 1,
    )
    return metadata.model_copy(update=changes)


def next_row_id(metadata: TableMetadata) -> int | None:
    """Return the first unused row id; None if rows have no ids."""
    return metadata.next_row_id or 0 if isinstance(metadata, TableMetadataV3) else None


def with_snapshot(metadata: MetadataT, snapshot: IcebergSnapshot) -> MetadataT:
    """Add a snapshot, which becomes the current snapshot."""
    rows: dict[str, Any] = {}
    if snapshot.first_row_id is not None:
        rows["next_row_id"] = snapshot.first_row_id + (snapshot.added_rows or 0)
    log: dict[str, Any] = {
        "snapshot-id": snapshot.snapshot_id,
        "timestamp-ms": snapshot.timestamp_ms,
    }
    branch: dict[str, Any] = {
        "snapshot-id": snapshot.snapshot_id,
        "type": SnapshotRefType.BRANCH,
    }
    return metadata.model_copy(
        update={
            "snapshots": [*metadata.snapshots, snapshot],
            "snapshot_log": [*metadata.snapshot_log, SnapshotLogEntry(**log)],
            "current_snapshot_id": snapshot.snapshot_id,
            "last_sequence_number": snapshot.sequence_number,
            "refs": {**metadata.refs, MAIN_BRANCH: SnapshotRef(**branch)},
            **rows,
        }
    )


def with_properties(
    metadata: MetadataT,
    configuration: TableConfiguration,
    *,
    version: int,
    timestamp_ms: int,
) -> MetadataT:
    """Set the properties of a table version."""
    own = {
        key[len(_OWN_PROPERTIES) :]: value
        for key, value in configuration.metadata.configuration.items()
        if key.lower().startswith(_OWN_PROPERTIES)
    }
    return metadata.model_copy(
        update={
            "properties": {
                **own,
                _NAME_MAPPING: name_mapping(configuration.schema),
                DELTA_VERSION: str(version),
                DELTA_TIMESTAMP: str(timestamp_ms),
            }
        }
    )


def without_snapshots_before(
    metadata: MetadataT, oldest_ms: int
) -> tuple[MetadataT, list[IcebergSnapshot]]:
    """Remove snapshots before `oldest_ms`, whose files may have been deleted.

    Return the new metadata and the removed snapshots.
    """
    current = metadata.current_snapshot_id
    expired = [
        one
        for one in metadata.snapshots
        if one.timestamp_ms < oldest_ms and one.snapshot_id != current
    ]
    if not expired:
        return metadata, []
    gone = {one.snapshot_id for one in expired}
    kept = [one for one in metadata.snapshots if one.snapshot_id not in gone]
    log = [one for one in metadata.snapshot_log if one.snapshot_id not in gone]
    return metadata.model_copy(update={"snapshots": kept, "snapshot_log": log}), expired


def store_next(
    io: StoreIO, before: StoredMetadata | None, metadata: TableMetadata, *, at_ms: int
) -> tuple[StoredMetadata, list[str]]:
    """Store metadata under the next number.

    Args:
        io: the metadata files of the table.
        before: the newest stored metadata.
        metadata: the metadata to store.
        at_ms: milliseconds since 1970, UTC.

    Returns:
        The stored metadata, and the locations of old metadata files that the metadata log no longer
        contains.

    Raises:
        AlreadyExistsError: another writer has already stored metadata with this number.

    Cost: two requests.
    """
    number = 1 if before is None else before.number + 1
    dropped: list[str] = []
    logged: list[MetadataLogEntry] = []
    if before is not None and before.metadata is not None:
        members: dict[str, Any] = {
            "metadata-file": io.location(metadata_name(before.number)),
            "timestamp-ms": before.metadata.last_updated_ms,
        }
        logged = [*before.metadata.metadata_log, MetadataLogEntry(**members)]
        dropped = [one.metadata_file for one in logged[:-_MOST_LOGGED]]
    metadata = metadata.model_copy(
        update={
            "metadata_log": logged[-_MOST_LOGGED:],
            "last_updated_ms": max(at_ms, logged[-1].timestamp_ms if logged else 0),
        }
    )
    # PyIceberg's model of format version 3 raises an error when it is written, because PyIceberg
    # cannot write manifests of version 3. So call the method of the base class.
    text = IcebergBaseModel.model_dump_json(metadata).encode()
    io.store.put_if_absent(f"{METADATA_DIRECTORY}/{metadata_name(number)}", text)
    try:
        io.store.put(_HINT, str(number).encode())
    except StorageError as error:  # with an old hint, readers only need more requests
        logger.warning("could not update the version hint of %s: %s", io.store.root, error)
    return StoredMetadata(number, metadata), dropped


def hinted_number(store: Store) -> int | None:
    """Return the number in the hint; None if there is no hint."""
    try:
        text = store.read(_HINT).decode("ascii", "replace").strip()
    except ObjectNotFoundError:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _listed(store: Store) -> int:
    numbers = [
        int(middle)
        for info in store.list_from(METADATA_DIRECTORY, "v")
        if info.name.startswith("v") and info.name.endswith(".metadata.json")
        if (middle := info.name[1 : -len(".metadata.json")]).isdigit() and len(middle) < 19
    ]
    return max(numbers, default=1)


def _read(store: Store, number: int) -> bytes | None:
    try:
        return store.read(f"{METADATA_DIRECTORY}/{metadata_name(number)}")
    except ObjectNotFoundError:
        return None


def _numbered(spec: PartitionSpec, metadata: TableMetadata) -> PartitionSpec:
    """Return the spec with the next spec id. Fields of earlier specs have the same field ids."""
    known = {
        (field.source_id, str(field.transform)): field.field_id
        for one in metadata.partition_specs
        for field in one.fields
    }
    last = metadata.last_partition_id or FIRST_PARTITION_ID - 1
    fields = []
    for field in spec.fields:
        number = known.get((field.source_id, str(field.transform)))
        if number is None:
            last += 1
            number = last
        fields.append(field.model_copy(update={"field_id": number}))
    next_id = 1 + max((one.spec_id for one in metadata.partition_specs), default=-1)
    return PartitionSpec(*fields, spec_id=next_id)


def _highest_id(configuration: TableConfiguration, schema: Schema) -> int:
    return max(configuration.properties.column_mapping_max_column_id, schema.highest_field_id)


def _uuid(table_id: str) -> uuid.UUID:
    """Return the table's id as a UUID. If the id is not a UUID, derive a UUID from its hash."""
    try:
        return uuid.UUID(table_id)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_OID, table_id)


# --- The Iceberg schema, partition spec and name mapping of a table


FIRST_PARTITION_ID: Final = 1000
_COMMENT: Final = "comment"

# Delta type → Iceberg type. BYTE and SHORT become integers. Other Delta types have no equivalent.
_PRIMITIVES: Final[Mapping[PrimitiveType, types.PrimitiveType]] = {
    STRING: types.StringType(),
    BYTE: types.IntegerType(),
    SHORT: types.IntegerType(),
    INTEGER: types.IntegerType(),
    LONG: types.LongType(),
    FLOAT: types.FloatType(),
    DOUBLE: types.DoubleType(),
    BOOLEAN: types.BooleanType(),
    BINARY: types.BinaryType(),
    DATE: types.DateType(),
    TIMESTAMP: types.TimestamptzType(),
    TIMESTAMP_NTZ: types.TimestampType(),
}


def iceberg_schema(schema: StructType, schema_id: int = 0) -> Schema:
    """Return the Iceberg schema of a table's logical schema.

    Args:
        schema: the schema with column mapping ids.
        schema_id: the id of the schema in the Iceberg table.

    Raises:
        InvalidMetadataError: a column, list element, map key or map value has no id.
        UnsupportedTypeError: Iceberg has no such type.
    """
    return Schema(*[_nested_field(field) for field in schema.fields], schema_id=schema_id)


def partition_spec(configuration: TableConfiguration, spec_id: int = 0) -> PartitionSpec:
    """Return the partition spec, with an identity transform for each partition column."""
    fields = configuration.partition_schema.fields
    if not fields:
        return UNPARTITIONED_PARTITION_SPEC
    return PartitionSpec(
        *[
            PartitionField(
                source_id=column_id(field),
                field_id=FIRST_PARTITION_ID + number,
                transform=IdentityTransform(),
                name=field.name,
            )
            for number, field in enumerate(fields)
        ],
        spec_id=spec_id,
    )


def name_mapping(schema: StructType) -> str:
    """Return the name mapping as JSON, by which readers find columns in files without field ids.

    Such files were written before the table had column mapping. Their column names equal the
    current physical names, even if the logical column was renamed later.

    Args:
        schema: the schema with the ids and physical names of column mapping.
    """
    return dumps([_mapped(field) for field in schema.fields]).decode()


def column_id(field: Field) -> int:
    """Return the column mapping id of a column.

    Raises:
        InvalidMetadataError: the column has no id.
    """
    number = field_id(field)
    if number is None:
        raise InvalidMetadataError(
            f"cannot show column {field.name!r} as Iceberg: expected a column mapping id, "
            "found none; set delta.columnMapping.mode = name"
        )
    return number


def _mapped(field: Field) -> dict[str, Any]:
    name = physical_name(field)
    return _mapping(column_id(field), name, _mapped_parts(field.type, field, name))


def _mapped_parts(data_type: DataType, field: Field, path: str) -> list[dict[str, Any]]:
    match data_type:
        case StructType():
            return [_mapped(inner) for inner in data_type.fields]
        case ArrayType():
            parts = {"element": data_type.element_type}
        case MapType():
            parts = {"key": data_type.key_type, "value": data_type.value_type}
        case _:
            parts = {}
    return [
        _mapping(
            _nested_id(field, f"{path}.{name}"), name, _mapped_parts(part, field, f"{path}.{name}")
        )
        for name, part in parts.items()
    ]


def _mapping(number: int, name: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"field-id": number, "names": [name]}
    return {**found, "fields": parts} if parts else found


def _nested_field(field: Field) -> types.NestedField:
    comment = field.metadata.get(_COMMENT)
    return types.NestedField(
        field_id=column_id(field),
        name=field.name,
        field_type=_type(field.type, field, physical_name(field)),
        required=not field.nullable,
        doc=comment if isinstance(comment, str) else None,
    )


def _type(data_type: DataType, field: Field, path: str) -> types.IcebergType:
    """Return the Iceberg type; the metadata of `field` contains the ids of its lists and maps."""
    match data_type:
        case PrimitiveType():
            if data_type.is_decimal:
                return types.DecimalType(data_type.precision, data_type.scale)
            found = _PRIMITIVES.get(data_type)
            if found is not None:
                return found
        case StructType():
            return types.StructType(*[_nested_field(inner) for inner in data_type.fields])
        case ArrayType():
            return types.ListType(
                element_id=_nested_id(field, f"{path}.element"),
                element_type=_type(data_type.element_type, field, f"{path}.element"),
                element_required=not data_type.contains_null,
            )
        case MapType():
            return types.MapType(
                key_id=_nested_id(field, f"{path}.key"),
                key_type=_type(data_type.key_type, field, f"{path}.key"),
                value_id=_nested_id(field, f"{path}.value"),
                value_type=_type(data_type.value_type, field, f"{path}.value"),
                value_required=not data_type.value_contains_null,
            )
        case _:
            pass
    raise UnsupportedTypeError(
        f"cannot show column {field.name!r} as Iceberg: Iceberg has no type for {data_type}"
    )


def _nested_id(field: Field, path: str) -> int:
    ids: Any = field.metadata.get(NESTED_IDS_KEY)
    number = ids.get(path) if isinstance(ids, dict) else None
    if number is None:
        raise InvalidMetadataError(
            f"cannot show column {field.name!r} as Iceberg: expected an id for {path!r} in "
            f"{NESTED_IDS_KEY}, found none; set delta.enableIcebergCompatV2 = true"
        )
    return int(number)
