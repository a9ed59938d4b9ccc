"""Tables that Iceberg's writers made, in Delta's words: columns with their ids, and data files.

Columns keep their field ids, by which the data files hold them, so that renamed, dropped and added
columns are found as Iceberg finds them. Owns which tables have an equal in Delta; whatever has none
is refused by name, because leaving it out would change rows. Metadata is not trusted: files outside
of the table are refused.

Protocol: Column Mapping, Partition Value Serialization; Iceberg Table Spec: Table Metadata,
Manifests, Partitioning, Schemas and Data Types
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyiceberg import types
from pyiceberg.exceptions import ValidationError
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent
from pyiceberg.serializers import FromInputFile
from pyiceberg.transforms import IdentityTransform

from deltalog.column_mapping import ID_KEY, PHYSICAL_NAME_KEY
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    ObjectNotFoundError,
    UnsafePathError,
    UnsupportedTypeError,
)
from deltalog.iceberg.metadata import hinted_number
from deltalog.iceberg.store_io import METADATA_DIRECTORY, StoreIO
from deltalog.partition_values import encode_value
from deltalog.paths import FileInfo, canonical_path, check_confined, is_absolute
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    Field,
    MapType,
    StructType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

    from deltalog.schema.types import DataType
    from deltalog.storage.store import Store

_METADATA_NAME: Final = re.compile(r"(v?)([0-9]{1,18})(?:-[^/]*)?(?:\.gz)?\.metadata\.json")
_ENDING: Final = ".metadata.json"
_COMMENT: Final = "comment"
# What PyIceberg raises for Avro files that are none, or hold something else.
_FAILURES: Final = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, EOFError,
    MemoryError, RecursionError, NotImplementedError, SystemError, struct.error, zlib.error,
)  # fmt: skip
_NO_SNAPSHOT: Final = (None, -1)
_EPOCH_DAY: Final = date(1970, 1, 1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_TYPES: Final[dict[type[types.IcebergType], DataType]] = {
    types.BooleanType: BOOLEAN,
    types.IntegerType: INTEGER,
    types.LongType: LONG,
    types.FloatType: FLOAT,
    types.DoubleType: DOUBLE,
    types.DateType: DATE,
    types.TimestampType: TIMESTAMP_NTZ,
    types.TimestamptzType: TIMESTAMP,
    types.StringType: STRING,
    types.BinaryType: BINARY,
    types.FixedType: BINARY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFile:
    """A data file.

    Args:
        info: path, size, and the moment of the snapshot that added it.
        num_rows: as the manifest has it.
        partition_values: serialised, by name of the column.
    """

    info: FileInfo
    num_rows: int
    partition_values: dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSource:
    """The current snapshot of an Iceberg table.

    Args:
        snapshot_id: of the snapshot; None is a table without one.
        schema: with the field ids as ids of column mapping, and the names as physical names.
        last_column_id: the highest field id that was ever given.
        partition_columns: those whose value every file has as a whole.
        files: of the snapshot, ordered by path.
        description: the table's comment.
    """

    snapshot_id: int | None
    schema: StructType
    last_column_id: int
    partition_columns: tuple[str, ...]
    files: tuple[IcebergFile, ...]
    description: str | None


def read_source(store: Store, metadata_name: str | None = None) -> IcebergSource:
    """Read the current snapshot of an Iceberg table.

    Args:
        store: at the location of the table.
        metadata_name: of the file in `metadata/` that describes it; None is the newest, of tables
            whose files tell which one that is.

    Raises:
        InvalidInputError: there is no metadata, or it does not tell which one is current; files
            have row-level deletes, or are not Parquet; or a part of it has no equal in Delta.
        UnsupportedTypeError: Delta has no such type.
        UnsafePathError: metadata names files that are not in the table.

    Cost: a listing of `metadata/`, the metadata, the manifest list, and each manifest. Manifests
    become Python objects: some 100,000 files a second.
    """
    io = StoreIO(store)
    name = metadata_name or _newest(store)
    try:
        metadata = FromInputFile.table_metadata(io.new_input(io.location(name)))
    except ObjectNotFoundError as error:
        raise InvalidInputError(
            f"cannot read the Iceberg table at {store.root}: it has no {METADATA_DIRECTORY}/{name}"
        ) from error
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise InvalidInputError(
            f"cannot read the Iceberg table at {store.root}: {METADATA_DIRECTORY}/{name} is no "
            f"table metadata ({error})"
        ) from error
    try:
        return _Reading(store, io, metadata).source()
    except UnsafePathError as error:
        raise UnsafePathError(
            f"cannot read the Iceberg table at {store.root}: its metadata names a file that is not "
            f"in the table ({error}); a table whose files are elsewhere, or that was moved, cannot "
            "be taken over"
        ) from error
    except DeltaError:
        raise
    except _FAILURES as error:
        raise InvalidInputError(
            f"cannot read the Iceberg table at {store.root}: its manifests are damaged "
            f"({type(error).__name__}: {error})"
        ) from error


class _Reading:
    """One read of a table's metadata."""

    def __init__(self, store: Store, io: StoreIO, metadata: TableMetadata) -> None:
        self._root = store.root
        self._io = io
        self._metadata = metadata
        self._schema: Schema = metadata.schema()
        self._specs = metadata.specs()
        self._types: dict[str, DataType] = {}
        self._times_ms = {one.snapshot_id: one.timestamp_ms for one in metadata.snapshots}

    def source(self) -> IcebergSource:
        snapshot = self._metadata.current_snapshot()
        if snapshot is None and self._metadata.current_snapshot_id not in _NO_SNAPSHOT:
            number = self._metadata.current_snapshot_id
            raise self._refused(f"its current snapshot is {number}, which it does not have")
        schema = _struct(self._schema.fields, self._root)
        self._types = {field.name: field.type for field in schema}
        entries = list(self._entries())
        identities = [self._identities(spec) for spec in {one.spec_id for _, one in entries}]
        default = self._identities(self._metadata.default_spec_id)
        wanted = {
            number: name
            for number, name in default.items()
            if all(number in one for one in identities)
        }
        files = [self._file(added_in, data_file, wanted) for added_in, data_file in entries]
        return IcebergSource(
            snapshot_id=None if snapshot is None else snapshot.snapshot_id,
            schema=schema,
            last_column_id=self._metadata.last_column_id,
            partition_columns=tuple(wanted.values()),
            files=tuple(sorted(files, key=lambda one: one.info.path)),
            description=self._metadata.properties.get(_COMMENT),
        )

    def _entries(self) -> Iterator[tuple[int | None, DataFile]]:
        """The files of the current snapshot, each with the snapshot that added it."""
        snapshot = self._metadata.current_snapshot()
        for manifest in () if snapshot is None else snapshot.manifests(self._io):
            entries = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
            if manifest.content is not ManifestContent.DATA and entries:
                raise self._refused(
                    "it has row-level deletes, such as those of "
                    f"{entries[0].data_file.file_path!r}: rewrite its data files with Iceberg's "
                    "writer first (rewrite_data_files), so that files hold just their rows"
                )
            for entry in entries:
                yield entry.snapshot_id, self._checked(entry.data_file)

    def _checked(self, file: DataFile) -> DataFile:
        if file.content is not DataFileContent.DATA or file.file_format is not FileFormat.PARQUET:
            found = f"{file.file_format.value.lower()} file {file.file_path!r}"
            raise self._refused(f"expected data files in Parquet, found the {found}")
        if file.key_metadata is not None:
            raise self._refused(f"the file {file.file_path!r} is encrypted")
        return file

    def _identities(self, spec_id: int) -> dict[int, str]:
        """The columns of which a spec has the whole value: id → name."""
        spec = self._specs.get(spec_id)
        if spec is None:
            raise self._refused(f"files have the partition spec {spec_id}, which it does not have")
        own = {field.field_id: field.name for field in self._schema.fields}
        return {
            field.source_id: own[field.source_id]
            for field in spec.fields
            if isinstance(field.transform, IdentityTransform) and field.source_id in own
        }

    def _file(self, added_in: int | None, file: DataFile, wanted: dict[int, str]) -> IcebergFile:
        path = canonical_path(file.file_path, self._root)
        check_confined(path, allow_absolute=False)
        if is_absolute(path):
            raise UnsafePathError(f"found {file.file_path!r}")
        spec = self._specs[file.spec_id]
        values: dict[str, str | None] = {}
        for place, field in enumerate(spec.fields):
            if field.source_id in wanted and isinstance(field.transform, IdentityTransform):
                name = wanted[field.source_id]
                values[name] = self._text(file.partition[place], name)
        time_ms = self._times_ms.get(added_in or 0, self._metadata.last_updated_ms)
        info = FileInfo(path, int(file.file_size_in_bytes), time_ms)
        return IcebergFile(info=info, num_rows=int(file.record_count), partition_values=values)

    def _text(self, value: Any, name: str) -> str | None:
        """A partition value as Delta stores it."""
        if value is None:
            return None
        if value in ("", b""):
            raise self._refused(
                f"a file has an empty text as the value of the partition column {name!r}, which "
                "Delta cannot tell from NULL"
            )
        kind = self._types[name]
        try:
            if kind == DATE:
                value = _EPOCH_DAY + timedelta(days=value)
            elif kind in {TIMESTAMP, TIMESTAMP_NTZ}:
                moment = _EPOCH + timedelta(microseconds=value)
                value = moment if kind == TIMESTAMP else moment.replace(tzinfo=None)
            return encode_value(value, kind)
        except (ArithmeticError, TypeError, ValueError, DeltaError) as error:
            raise self._refused(
                f"the value {value!r} of the partition column {name!r} has no text in Delta "
                f"({error})"
            ) from error

    def _refused(self, why: str) -> InvalidInputError:
        return InvalidInputError(f"cannot take over the Iceberg table at {self._root}: {why}")


def _named(info: FileInfo) -> re.Match[str] | None:
    return _METADATA_NAME.fullmatch(info.name)


def _newest(store: Store) -> str:
    """The name of the newest metadata, where the names tell.

    Tables of a catalog have the numbers of their metadata from their writers, and only the catalog
    knows which of several with one number counts.
    """
    named = [
        (info.name, found)
        for info in store.list_from(METADATA_DIRECTORY, "")
        if (found := _named(info)) is not None
    ]
    own = [(int(found[2]), name) for name, found in named if found[1]]
    hint = hinted_number(store)
    if own and (hint is None or max(own)[0] >= hint):
        return max(own)[1]
    others = [(int(found[2]), name) for name, found in named if not found[1]]
    newest = [name for number, name in others if number == max(others)[0]]
    if len(newest) == 1 and not own:
        return newest[0]
    found_names = ", ".join(sorted(newest)[:2]) or "none that counts"
    raise InvalidInputError(
        f"cannot read the Iceberg table at {store.root}: expected one newest *{_ENDING} in "
        f"{METADATA_DIRECTORY}/, found {found_names}; give the metadata file that the table's "
        "catalog names, or its PyIceberg table"
    )


def _struct(fields: Sequence[types.NestedField], root: str) -> StructType:
    return StructType([_field(field, root) for field in fields])


def _field(field: types.NestedField, root: str) -> Field:
    if field.initial_default is not None or field.write_default is not None:
        raise InvalidInputError(
            f"cannot take over the Iceberg table at {root}: column {field.name!r} has a default, "
            "which files that were there before do not hold"
        )
    metadata: dict[str, Any] = {ID_KEY: field.field_id, PHYSICAL_NAME_KEY: field.name}
    if field.doc is not None:
        metadata[_COMMENT] = field.doc
    kind = _type(field.field_type, field.name, root)
    return Field(field.name, kind, nullable=not field.required, metadata=metadata)


def _type(kind: types.IcebergType, name: str, root: str) -> DataType:
    match kind:
        case types.DecimalType():
            return decimal_type(kind.precision, kind.scale)
        case types.StructType():
            return _struct(kind.fields, root)
        case types.ListType():
            element = _type(kind.element_type, f"{name}.element", root)
            return ArrayType(element, contains_null=not kind.element_required)
        case types.MapType():
            key = _type(kind.key_type, f"{name}.key", root)
            value = _type(kind.value_type, f"{name}.value", root)
            return MapType(key, value, value_contains_null=not kind.value_required)
        case _:
            pass
    found = _TYPES.get(type(kind))
    if found is None:
        raise UnsupportedTypeError(
            f"cannot take over the Iceberg table at {root}: column {name!r} is of type {kind}, "
            "which Delta does not have"
        )
    return found
