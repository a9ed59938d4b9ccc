"""Read the metadata of an Iceberg table for its conversion to Delta.

The Delta columns get the field ids of the data files, so renamed, dropped and added columns are
read as in Iceberg. If the table has a feature that Delta cannot represent, this module raises an
error, because ignoring the feature would change rows. It lists row-level deletes with the data
files to which they may apply; `deleted_rows` reads the deletes. Metadata is not trusted: a location
outside of the table is an error.

Protocol: Column Mapping, Partition Value Serialization; Iceberg Table Spec: Table Metadata,
Manifests, Partitioning, Schemas and Data Types
"""

from __future__ import annotations

import dataclasses
import re
import struct
import zlib
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyiceberg import types
from pyiceberg.exceptions import ValidationError
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent
from pyiceberg.transforms import IdentityTransform, VoidTransform

from deltalog._util.paths import FileInfo, canonical_path, check_confined, is_absolute
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    ObjectNotFoundError,
    UnsafePathError,
    UnsupportedTypeError,
)
from deltalog.iceberg.data_files import member
from deltalog.iceberg.manifests import decoded_entries, decoded_manifest_list, read_table_metadata
from deltalog.iceberg.metadata import hinted_number
from deltalog.iceberg.store_io import METADATA_DIRECTORY, StoreIO
from deltalog.protocol.column_mapping import ID_KEY, PHYSICAL_NAME_KEY
from deltalog.protocol.features.iceberg_compat import NESTED_IDS_KEY
from deltalog.protocol.partition_values import encode_value
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.primitives.moments import value_or_count
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
    PrimitiveType,
    StructType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

    from deltalog.schema.types import DataType
    from deltalog.storage.store import Store

_METADATA_NAME: Final = re.compile(r"(v?)([0-9]{1,18})(?:-[^/]*)?(?:\.gz)?\.metadata\.json")
_ENDING: Final = ".metadata.json"
_COMMENT: Final = "comment"
# The exceptions that PyIceberg raises for a file that is not Avro or has unexpected content.
_FAILURES: Final = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, EOFError,
    MemoryError, RecursionError, NotImplementedError, SystemError, struct.error, zlib.error,
)  # fmt: skip
_NO_SNAPSHOT: Final = (None, -1)
_PATH_FIELD: Final = 2147483546  # the field id of `file_path` in position deletes
_FORMATS: Final = {
    DataFileContent.DATA: (FileFormat.PARQUET,),
    DataFileContent.POSITION_DELETES: (FileFormat.PARQUET, FileFormat.PUFFIN),
    DataFileContent.EQUALITY_DELETES: (FileFormat.PARQUET,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFile:
    """A data file of an Iceberg table.

    Args:
        info: the path and size of the file, and the time of the snapshot that added it.
        location: the location of the file in the metadata.
        num_rows: the number of rows that the manifest records, including deleted rows.
        partition_values: column name → serialised value.
        constants: the ids of further columns that have one value in all rows. The file may omit
            these columns.
    """

    info: FileInfo
    location: str
    num_rows: int
    partition_values: dict[str, str | None]
    constants: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSource:
    """The current snapshot of an Iceberg table.

    Args:
        snapshot_id: the id of the snapshot; None for a table without a snapshot.
        schema: the schema. The field ids are its column mapping ids, and the column names are its
            physical names.
        last_column_id: the highest field id that was ever assigned.
        partition_columns: the Delta partition columns: columns with a single value in each file.
        files: the data files, ordered by path.
        deletes: the row-level deletes of these files.
        description: the table's comment.
    """

    snapshot_id: int | None
    schema: StructType
    last_column_id: int
    partition_columns: tuple[str, ...]
    files: tuple[IcebergFile, ...]
    deletes: RowDeletes
    description: str | None


def read_source(store: Store, metadata_name: str | None = None) -> IcebergSource:
    """Read the current snapshot of an Iceberg table.

    Args:
        store: the store at the location of the table.
        metadata_name: the name of the current metadata file in `metadata/`. None means the newest
            file, if the file names show which file is the newest.

    Raises:
        InvalidInputError: there is no metadata, or several files may be the current one; files are
            not Parquet; deletes violate the specification; or Delta cannot represent a feature.
        UnsupportedTypeError: Delta has no type for a column.
        UnsafePathError: the metadata refers to files outside of the table.

    Cost: lists `metadata/`; reads the metadata, the manifest list and each manifest. Manifests
    become Python objects, at about 25,000 files per second.
    """
    io = StoreIO(store)
    name = metadata_name or _newest(store)
    try:
        metadata = read_table_metadata(io.new_input(io.location(name)))
    except ObjectNotFoundError as error:
        raise InvalidInputError(
            f"cannot read the Iceberg table at {store.root}: it has no {METADATA_DIRECTORY}/{name}"
        ) from error
    except DeltaError:
        raise
    except (*_FAILURES, ValidationError, OSError) as error:
        raise InvalidInputError(
            f"cannot read the Iceberg table at {store.root}: {METADATA_DIRECTORY}/{name} is "
            f"not table metadata ({error})"
        ) from error
    try:
        return _Reading(store, io, metadata).source()
    except UnsafePathError as error:
        # The advice after the semicolon is about metadata of a Delta table, which can be replaced.
        problem = str(error).partition(";")[0]
        raise UnsafePathError(
            f"cannot read the Iceberg table at {store.root}: its metadata refers to a file outside "
            f"of the table ({problem}); a table that was moved, or has files elsewhere, cannot be "
            "converted: convert it where its metadata says that it is"
        ) from error
    except DeltaError:
        raise
    except _FAILURES as error:
        raise InvalidInputError(
            f"cannot read the Iceberg table at {store.root}: its manifests are damaged "
            f"({type(error).__name__}: {error})"
        ) from error


class _Listed(NamedTuple):
    """A file that a manifest lists.

    Args:
        file: a data file or a delete file.
        spec_id: the id of the file's partition spec.
        added_in: the id of the snapshot that added the file.
        sequence_number: the number of the commit that wrote the file's rows.
    """

    file: DataFile
    spec_id: int
    added_in: int | None
    sequence_number: int

    @property
    def scope(self) -> Scope:
        """The partition of the file."""
        partition = self.file.partition
        return scope_of(self.spec_id, (partition[place] for place in range(len(partition))))


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
            raise self._refused(f"its current snapshot {number} does not exist")
        schema = delta_schema(self._schema.fields, self._root)
        self._types = {field.name: field.type for field in schema}
        listed: dict[DataFileContent, list[_Listed]] = defaultdict(list)
        for one in self._listed():
            listed[one.file.content].append(one)
        data = listed[DataFileContent.DATA]
        identities = {number: self._identities(number) for number in {one.spec_id for one in data}}
        default = self._identities(self._metadata.default_spec_id)
        wanted = {
            number: name
            for number, name in default.items()
            if all(number in one for one in identities.values())
        }
        files = [self._file(one, wanted) for one in data]
        if len({one.info.path for one in files}) < len(files):
            raise self._refused("its manifests list the same data file twice")
        return IcebergSource(
            snapshot_id=None if snapshot is None else snapshot.snapshot_id,
            schema=schema,
            last_column_id=self._metadata.last_column_id,
            partition_columns=tuple(wanted.values()),
            files=tuple(sorted(files, key=lambda one: one.info.path)),
            deletes=self._deletes(data, listed),
            description=self._metadata.properties.get(_COMMENT),
        )

    def _listed(self) -> Iterator[_Listed]:
        """Yield the files of the current snapshot."""
        snapshot = self._metadata.current_snapshot()
        if snapshot is None:
            return
        for manifest in decoded_manifest_list(self._io, snapshot.manifest_list):
            for entry in decoded_entries(self._io, manifest):
                yield self._checked(manifest, entry)

    def _checked(self, manifest: ManifestFile, entry: ManifestEntry) -> _Listed:
        file = entry.data_file
        is_data = file.content is DataFileContent.DATA
        if is_data is not (manifest.content == ManifestContent.DATA):
            raise self._refused(
                f"a manifest for {ManifestContent(manifest.content).name.lower()} lists the file "
                f"{file.file_path!r} with {file.content.name.lower()}"
            )
        if file.file_format not in _FORMATS[file.content]:
            what = "data files" if is_data else "row-level deletes"
            found = f"{file.file_format.value.lower()} file {file.file_path!r}"
            raise self._refused(
                f"expected {what} in Parquet, found the {found}; rewrite the table's data files "
                "with Iceberg's writer first (rewrite_data_files)"
            )
        if file.key_metadata is not None:
            raise self._refused(f"the file {file.file_path!r} is encrypted")
        number = entry.sequence_number
        if number is None and manifest.sequence_number:
            raise self._refused(f"the file {file.file_path!r} has no sequence number")
        return _Listed(file, manifest.partition_spec_id, entry.snapshot_id, number or 0)

    def _deletes(
        self, data: Iterable[_Listed], listed: dict[DataFileContent, list[_Listed]]
    ) -> RowDeletes:
        positions = listed[DataFileContent.POSITION_DELETES]
        equalities: dict[EqualityKey, list[DeleteFile]] = defaultdict(list)
        for one in listed[DataFileContent.EQUALITY_DELETES]:
            numbers = tuple(sorted(set(member(one.file, "equality_ids") or ())))
            if not numbers:
                raise self._refused(
                    f"the equality deletes in {one.file.file_path!r} have no columns"
                )
            spec = self._spec(one.spec_id)
            is_global = all(isinstance(field.transform, VoidTransform) for field in spec.fields)
            scope = None if is_global else one.scope
            equalities[scope, numbers].append(self._delete(one, scope))
        used = {number for _, numbers in equalities for number in numbers}
        older = sorted(self._metadata.schemas, key=lambda one: one.schema_id, reverse=True)
        schemas = [self._schema, *older]
        targets: dict[str, Target] = {}
        has_deletes = bool(positions or equalities)
        for one in data if has_deletes else ():
            identities = frozenset(_identities_of(self._spec(one.spec_id)))
            targets[one.file.file_path] = Target(one.sequence_number, one.scope, identities)
        return RowDeletes(
            root=self._root,
            targets=targets,
            vectors=[
                self._vector(one) for one in positions if one.file.file_format is FileFormat.PUFFIN
            ],
            positions=[
                self._delete(one, one.scope)
                for one in positions
                if one.file.file_format is FileFormat.PARQUET
            ],
            equalities=equalities,
            columns={number: equality_column(schemas, number, self._root) for number in used},
        )

    def _delete(
        self, one: _Listed, scope: Scope | None, place: tuple[int, int] | None = None
    ) -> DeleteFile:
        file = one.file
        return DeleteFile(
            path=self._path(file.file_path),
            size_bytes=int(file.file_size_in_bytes),
            num_rows=int(file.record_count),
            sequence_number=one.sequence_number,
            scope=scope,
            referenced=_referenced(file),
            place=place,
        )

    def _vector(self, one: _Listed) -> DeleteFile:
        names = ("referenced_data_file", "content_offset", "content_size_in_bytes")
        referenced, offset, length = (member(one.file, name) for name in names)
        if referenced is None or offset is None or length is None:
            raise self._refused(
                f"the manifest does not record the data file or the offset of a deletion vector in "
                f"{one.file.file_path!r}"
            )
        return self._delete(one, one.scope, (int(offset), int(length)))

    def _spec(self, spec_id: int) -> PartitionSpec:
        spec = self._specs.get(spec_id)
        if spec is None:
            raise self._refused(f"files have the partition spec {spec_id}, which does not exist")
        return spec

    def _identities(self, spec_id: int) -> dict[int, str]:
        """Return the columns with an identity transform in a spec, as a mapping of id to name."""
        own = {field.field_id: field.name for field in self._schema.fields}
        found = _identities_of(self._spec(spec_id))
        return {number: own[number] for number in found if number in own}

    def _file(self, one: _Listed, wanted: dict[int, str]) -> IcebergFile:
        file, spec = one.file, self._specs[one.spec_id]
        values: dict[str, str | None] = {}
        constants: list[int] = []
        for place, field in enumerate(spec.fields):
            if not isinstance(field.transform, IdentityTransform):
                continue
            if field.source_id in wanted:
                name = wanted[field.source_id]
                values[name] = self._text(file.partition[place], name)
            elif file.partition[place] is not None:
                constants.append(field.source_id)
        time_ms = self._times_ms.get(one.added_in or 0, self._metadata.last_updated_ms)
        info = FileInfo(self._path(file.file_path), int(file.file_size_in_bytes), time_ms)
        return IcebergFile(
            info=info,
            location=file.file_path,
            num_rows=int(file.record_count),
            partition_values=values,
            constants=tuple(constants),
        )

    def _path(self, location: str) -> str:
        """Convert a location in the metadata to a path relative to the table."""
        path = canonical_path(location, self._root)
        check_confined(path, allow_absolute=False)
        if is_absolute(path):
            raise UnsafePathError(f"found {location!r}")
        return path

    def _text(self, value: Any, name: str) -> str | None:
        """Serialise a partition value for Delta."""
        if value is None:
            return None
        if value in ("", b""):
            raise self._refused(
                f"a file has an empty string as the value of the partition column {name!r}, which "
                "Delta cannot distinguish from NULL"
            )
        kind = self._types[name]
        try:
            if kind in {DATE, TIMESTAMP, TIMESTAMP_NTZ}:
                value = value_or_count(pa.scalar(value, to_arrow_type(kind)))
            return encode_value(value, kind)
        except (ArithmeticError, TypeError, ValueError, DeltaError) as error:
            raise self._refused(
                f"the value {value!r} of the partition column {name!r} has no string form in Delta "
                f"({error})"
            ) from error

    def _refused(self, why: str) -> InvalidInputError:
        return refused(self._root, why)


def _identities_of(spec: PartitionSpec) -> list[int]:
    """Return the ids of columns with an identity transform, including dropped columns."""
    return [
        field.source_id for field in spec.fields if isinstance(field.transform, IdentityTransform)
    ]


def _referenced(file: DataFile) -> str | None:
    """Return the only data file that a delete file refers to; None if there may be several.

    The manifest names the data file, or has equal lower and upper bounds of its path.
    """
    named: str | None = member(file, "referenced_data_file")
    if named is not None:
        return named
    lower, upper = (
        (bounds or {}).get(_PATH_FIELD) for bounds in (file.lower_bounds, file.upper_bounds)
    )
    return lower.decode() if lower is not None and lower == upper else None


def _named(info: FileInfo) -> re.Match[str] | None:
    return _METADATA_NAME.fullmatch(info.name)


def _newest(store: Store) -> str:
    """Return the name of the newest metadata file, if the file names show it.

    For a table in a catalog, several metadata files may have the same number. Only the catalog then
    records which of the files is current.
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
    found_names = ", ".join(sorted(newest)[:2]) or "none"
    raise InvalidInputError(
        f"cannot read the Iceberg table at {store.root}: expected one newest *{_ENDING} in "
        f"{METADATA_DIRECTORY}/, found {found_names}; pass the metadata file that the table's "
        "catalog records, or the PyIceberg table"
    )


# --- Conversion of columns to Delta's types, with their field ids


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


def delta_schema(fields: Sequence[types.NestedField], root: str) -> StructType:
    """Convert the columns of a table or of a struct.

    Args:
        fields: the columns; their ids become column mapping ids.
        root: the location of the table, for messages.

    Raises:
        InvalidInputError: a column has a default.
        UnsupportedTypeError: Delta has no such type.
    """
    return StructType([_field(field, root) for field in fields])


def equality_column(schemas: Iterable[Schema], number: int, root: str) -> EqualityColumn:
    """Return a column of equality deletes by its id. The column may have been dropped since.

    Args:
        schemas: the schemas of the table; the first schema with the column determines its type.
        number: the id of the column.
        root: the location of the table, for messages.

    Raises:
        InvalidInputError: the column does not exist, has a default, or cannot be compared.
        UnsupportedTypeError: Delta has no such type.
    """
    path = next((path for one in schemas if (path := _path_to(one.fields, number))), ())
    if not path:
        raise refused(
            root,
            f"equality deletes use the column with id {number}, which does not exist or is in a "
            "list or map",
        )
    for one in path:
        _check_default(one, root)
    leaf = path[-1]
    kind = _type(leaf.field_type, leaf.name, root)
    if not isinstance(kind, PrimitiveType) or kind in {FLOAT, DOUBLE}:
        raise refused(
            root,
            f"equality deletes use the column {leaf.name!r}, whose type {kind} cannot be compared",
        )
    field = Field(leaf.name, kind, metadata={ID_KEY: leaf.field_id})
    for one in reversed(path[:-1]):
        field = Field(one.name, StructType([field]), metadata={ID_KEY: one.field_id})
    inner = tuple(one.name for one in path[1:])
    return EqualityColumn(replace(field, name=str(leaf.field_id)), kind, inner)


def _path_to(fields: Sequence[types.NestedField], number: int) -> tuple[types.NestedField, ...]:
    """Return the enclosing structs and the column itself; empty if the column does not exist."""
    for field in fields:
        if field.field_id == number:
            return (field,)
        if isinstance(field.field_type, types.StructType):
            inner = _path_to(field.field_type.fields, number)
            if inner:
                return (field, *inner)
    return ()


def _field(field: types.NestedField, root: str) -> Field:
    _check_default(field, root)
    metadata: dict[str, Any] = {ID_KEY: field.field_id, PHYSICAL_NAME_KEY: field.name}
    nested = dict(_nested_ids(field.field_type, field.name))
    if nested:
        metadata[NESTED_IDS_KEY] = nested
    if field.doc is not None:
        metadata[_COMMENT] = field.doc
    kind = _type(field.field_type, field.name, root)
    return Field(field.name, kind, nullable=not field.required, metadata=metadata)


def _check_default(field: types.NestedField, root: str) -> None:
    if field.initial_default is not None or field.write_default is not None:
        raise refused(
            root,
            f"column {field.name!r} has an Iceberg default value, which Delta cannot represent",
        )


def _nested_ids(kind: types.IcebergType, path: str) -> Iterator[tuple[str, int]]:
    """Yield the path and id of each list element, map key and map value."""
    match kind:
        case types.ListType():
            yield f"{path}.element", kind.element_id
            yield from _nested_ids(kind.element_type, f"{path}.element")
        case types.MapType():
            yield f"{path}.key", kind.key_id
            yield f"{path}.value", kind.value_id
            yield from _nested_ids(kind.key_type, f"{path}.key")
            yield from _nested_ids(kind.value_type, f"{path}.value")
        case _:
            return


def _type(kind: types.IcebergType, name: str, root: str) -> DataType:
    match kind:
        case types.DecimalType():
            return decimal_type(kind.precision, kind.scale)
        case types.StructType():
            return delta_schema(kind.fields, root)
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
            f"cannot convert the Iceberg table at {root}: column {name!r} has the type {kind}, "
            "which Delta does not have"
        )
    return found


# --- Row-level deletes, and the rules that assign deletes to data files


Scope = tuple[int, tuple[object, ...]]
"""A partition: the id of the partition spec, and the partition values in comparable form."""

_NAN: Final = "NaN"


@dataclass(frozen=True, slots=True)
class Target:
    """The facts about a data file that decide which deletes apply to it.

    Args:
        sequence_number: the number of the commit that wrote the rows of the file.
        scope: the partition of the file.
        identities: the ids of the columns whose value is a partition value of the file.
    """

    sequence_number: int
    scope: Scope
    identities: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A delete file, or a deletion vector in a Puffin file.

    Args:
        path: the decoded path relative to the table.
        size_bytes: the size of the file.
        num_rows: the number of deletes.
        sequence_number: the number of the commit that wrote the deletes.
        scope: the partition to which the deletes apply; None means all partitions.
        referenced: the location of the only data file to which the deletes apply; None means that
            there may be several.
        place: the offset and length of a deletion vector.
    """

    path: str
    size_bytes: int
    num_rows: int
    sequence_number: int
    scope: Scope | None
    referenced: str | None = None
    place: tuple[int, int] | None = None

    def applies_to(self, location: str, target: Target) -> bool:
        """Return whether the deletes may apply to rows of a data file."""
        return (
            self.referenced in {None, location}
            and target.scope == self.scope
            and target.sequence_number <= self.sequence_number
        )


@dataclass(frozen=True, slots=True)
class EqualityColumn:
    """A column of equality deletes.

    Args:
        field: the top-level field to read: the column itself, or its enclosing struct without other
            fields. Its name is the column's id, because a dropped and a new column may have the
            same name.
        kind: the type of the column.
        path: the path of the column in the field; empty if the field is the column.
    """

    field: Field
    kind: DataType
    path: tuple[str, ...] = ()


EqualityKey = tuple["Scope | None", tuple[int, ...]]
"""Partition and column ids. Equality deletes with the same key are processed together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDeletes:
    """All row-level deletes of a snapshot.

    Args:
        root: the location of the table.
        targets: the data files by their location in the metadata.
        vectors: the deletion vectors.
        positions: the position delete files.
        equalities: the equality delete files.
        columns: the columns of equality deletes, by id.
    """

    root: str
    targets: Mapping[str, Target]
    vectors: Sequence[DeleteFile] = ()
    positions: Sequence[DeleteFile] = ()
    equalities: Mapping[EqualityKey, Sequence[DeleteFile]] = dataclasses.field(default_factory=dict)
    columns: Mapping[int, EqualityColumn] = dataclasses.field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there are no deletes."""
        return not (self.vectors or self.positions or self.equalities)

    def vectors_by_file(self) -> dict[str, DeleteFile]:
        """Return the deletion vectors by location of the data file.

        Raises:
            InvalidInputError: a data file has two vectors, or its vector is older than the file or
                belongs to another partition.
        """
        found: dict[str, DeleteFile] = {}
        for vector in self.vectors:
            location = vector.referenced or ""
            target = self.targets.get(location)
            if target is None:
                continue  # the data file was removed later
            if location in found:
                raise self.refused(f"the file {location!r} has more than one deletion vector")
            if not vector.applies_to(location, target):
                raise self.refused(
                    f"the deletion vector of {location!r} in {vector.path!r} belongs to another "
                    "partition, or is older than the file"
                )
            found[location] = vector
        return found

    def positions_in_use(self) -> list[DeleteFile]:
        """Return the position delete files that may apply to a data file."""
        oldest = self._oldest()
        found = []
        for file in self.positions:
            if file.referenced is not None:
                target = self.targets.get(file.referenced)
                is_used = target is not None and file.applies_to(file.referenced, target)
            else:
                number = oldest.get(file.scope)
                is_used = number is not None and number <= file.sequence_number
            if is_used:
                found.append(file)
        return found

    def equalities_in_use(self) -> dict[EqualityKey, list[DeleteFile]]:
        """Return the equality delete files that may apply to a data file.

        Such a file is newer than a data file of its partition.
        """
        oldest = self._oldest()
        found: dict[EqualityKey, list[DeleteFile]] = defaultdict(list)
        for key, files in self.equalities.items():
            number = oldest.get(key[0])
            for file in files:
                if number is not None and number < file.sequence_number:
                    found[key].append(file)
        return dict(found)

    def refused(self, why: str) -> InvalidInputError:
        """Return the error with the reason why the table cannot be converted."""
        return refused(self.root, why)

    def _oldest(self) -> dict[Scope | None, int]:
        """Return the lowest sequence number of data files by partition, and of all files (None)."""
        found: dict[Scope | None, int] = {}
        for target in self.targets.values():
            for scope in (target.scope, None):
                number = found.get(scope, target.sequence_number)
                found[scope] = min(number, target.sequence_number)
        return found


def scope_of(spec_id: int, values: Iterable[Any]) -> Scope:
    """Return a file's partition. Floats are compared by their bits, but all NaN are equal."""
    return spec_id, tuple(map(_comparable, values))


def refused(root: str, why: str) -> InvalidInputError:
    """Return the error with the reason why an Iceberg table cannot be converted."""
    return InvalidInputError(f"cannot convert the Iceberg table at {root}: {why}")


def _comparable(value: Any) -> object:
    if not isinstance(value, float):
        return value
    return _NAN if value != value else struct.pack(">d", value)  # noqa: PLR0124  # true for NaN
