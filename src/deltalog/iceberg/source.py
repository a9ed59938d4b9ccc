"""Tables that Iceberg's writers made, in Delta's words: columns with their ids, and data files.

Columns keep their field ids, by which the data files hold them, so that renamed, dropped and added
columns are found as Iceberg finds them. Owns which tables have an equal in Delta; whatever has none
is refused by name, because leaving it out would change rows. Row-level deletes are listed, with the
data files that they may apply to; `deleted_rows` reads them. Metadata is not trusted: files outside
of the table are refused.

Protocol: Column Mapping, Partition Value Serialization; Iceberg Table Spec: Table Metadata,
Manifests, Partitioning, Schemas and Data Types
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent
from pyiceberg.serializers import FromInputFile
from pyiceberg.transforms import IdentityTransform, VoidTransform

from deltalog.errors import DeltaError, InvalidInputError, ObjectNotFoundError, UnsafePathError
from deltalog.iceberg.data_files import member
from deltalog.iceberg.deletes import (
    DeleteFile,
    EqualityKey,
    RowDeletes,
    Scope,
    Target,
    refused,
    scope_of,
)
from deltalog.iceberg.manifests import decoded_entries
from deltalog.iceberg.metadata import hinted_number
from deltalog.iceberg.source_schema import delta_schema, equality_column
from deltalog.iceberg.store_io import METADATA_DIRECTORY, StoreIO
from deltalog.partition_values import encode_value
from deltalog.paths import FileInfo, canonical_path, check_confined, is_absolute
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.primitives.moments import value_or_count
from deltalog.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

    from deltalog.schema.types import DataType, StructType
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
_PATH_FIELD: Final = 2147483546  # `file_path` of position deletes
_FORMATS: Final = {
    DataFileContent.DATA: (FileFormat.PARQUET,),
    DataFileContent.POSITION_DELETES: (FileFormat.PARQUET, FileFormat.PUFFIN),
    DataFileContent.EQUALITY_DELETES: (FileFormat.PARQUET,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFile:
    """A data file.

    Args:
        info: path, size, and the moment of the snapshot that added it.
        location: as the metadata has it.
        num_rows: as the manifest has it, deleted ones too.
        partition_values: serialised, by name of the column.
        constants: ids of further columns of which only the manifest may have the value, because it
            is the same in all rows.
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
        snapshot_id: of the snapshot; None is a table without one.
        schema: with the field ids as ids of column mapping, and the names as physical names.
        last_column_id: the highest field id that was ever given.
        partition_columns: those whose value every file has as a whole.
        files: of the snapshot, ordered by path.
        deletes: of rows of these files.
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
        store: at the location of the table.
        metadata_name: of the file in `metadata/` that describes it; None is the newest, of tables
            whose files tell which one that is.

    Raises:
        InvalidInputError: there is no metadata, or it does not tell which one is current; files
            are not Parquet; rows are deleted in a way that the specification does not have; or a
            part of it has no equal in Delta.
        UnsupportedTypeError: Delta has no such type.
        UnsafePathError: metadata names files that are not in the table.

    Cost: a listing of `metadata/`, the metadata, the manifest list, and each manifest. Manifests
    become Python objects: some 25,000 files a second.
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


class _Listed(NamedTuple):
    """A file that a manifest lists.

    Args:
        file: data or deletes.
        spec_id: of its partition.
        added_in: the snapshot that added it.
        sequence_number: of the commit that its rows are from.
    """

    file: DataFile
    spec_id: int
    added_in: int | None
    sequence_number: int

    @property
    def scope(self) -> Scope:
        """Its partition."""
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
            raise self._refused(f"its current snapshot is {number}, which it does not have")
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
            raise self._refused("its manifests list a data file twice")
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
        """The files of the current snapshot."""
        snapshot = self._metadata.current_snapshot()
        for manifest in () if snapshot is None else snapshot.manifests(self._io):
            for entry in decoded_entries(self._io, manifest):
                yield self._checked(manifest, entry)

    def _checked(self, manifest: ManifestFile, entry: ManifestEntry) -> _Listed:
        file = entry.data_file
        is_data = file.content is DataFileContent.DATA
        if is_data is not (manifest.content == ManifestContent.DATA):
            raise self._refused(
                f"a manifest of {ManifestContent(manifest.content).name.lower()} lists the file "
                f"{file.file_path!r} of {file.content.name.lower()}"
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
                    f"the equality deletes in {one.file.file_path!r} name no column"
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
                f"a deletion vector in {one.file.file_path!r} does not say of which file or where "
                "it is"
            )
        return self._delete(one, one.scope, (int(offset), int(length)))

    def _spec(self, spec_id: int) -> PartitionSpec:
        spec = self._specs.get(spec_id)
        if spec is None:
            raise self._refused(f"files have the partition spec {spec_id}, which it does not have")
        return spec

    def _identities(self, spec_id: int) -> dict[int, str]:
        """The columns of the table of which a spec has the whole value: id → name."""
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
        """The path in the table of a file that metadata names."""
        path = canonical_path(location, self._root)
        check_confined(path, allow_absolute=False)
        if is_absolute(path):
            raise UnsafePathError(f"found {location!r}")
        return path

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
            if kind in {DATE, TIMESTAMP, TIMESTAMP_NTZ}:
                value = value_or_count(pa.scalar(value, to_arrow_type(kind)))
            return encode_value(value, kind)
        except (ArithmeticError, TypeError, ValueError, DeltaError) as error:
            raise self._refused(
                f"the value {value!r} of the partition column {name!r} has no text in Delta "
                f"({error})"
            ) from error

    def _refused(self, why: str) -> InvalidInputError:
        return refused(self._root, why)


def _identities_of(spec: PartitionSpec) -> list[int]:
    """The ids of the columns of which a spec has the whole value; the table may have lost some."""
    return [
        field.source_id for field in spec.fields if isinstance(field.transform, IdentityTransform)
    ]


def _referenced(file: DataFile) -> str | None:
    """The only data file that deletes are about: named, or the only one within the bounds."""
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
