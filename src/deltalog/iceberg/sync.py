"""Update the Iceberg metadata of a table to a Delta version.

Each commit since the last converted version becomes an Iceberg snapshot. If the commits cannot be
converted one by one, all files of the version become one snapshot. At the end, one metadata file is
stored with the next number. If another writer has already stored a file with this number, the
update is repeated.

Protocol: Iceberg Compatibility V1, V2, V3, Row Tracking; Iceberg Table Spec: Snapshots, Commit
Conflict Resolution
"""

from __future__ import annotations

import logging
import secrets
import uuid
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

from deltalog._util.cards import ShownFields
from deltalog._util.json import dumps
from deltalog._util.kernels import compute
from deltalog.data.scan.plan import descriptor_of
from deltalog.data.scan.transform import load_bitmap
from deltalog.errors import (
    AlreadyExistsError,
    CommitRetriesExhaustedError,
    DeltaError,
    DeltaProtocolError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
)
from deltalog.iceberg.data_files import LAYOUT, FileColumns, ListedFile, key_of
from deltalog.iceberg.manifests import (
    FILES_PER_MANIFEST,
    ManifestChange,
    hash_of,
    read_entries,
    read_manifest_list,
)
from deltalog.iceberg.metadata import (
    DELTA_VERSION,
    StoredMetadata,
    first_metadata,
    metadata_name,
    next_row_id,
    read_newest,
    store_next,
    upgraded,
    with_properties,
    with_shape,
    with_snapshot,
    without_snapshots_before,
)
from deltalog.iceberg.store_io import StoreIO, metadata_path
from deltalog.log.history import own_time_ms
from deltalog.log.listing import list_commits
from deltalog.log.reader import CommitTable, read_commits
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.iceberg_compat import enabled_versions, format_version
from deltalog.protocol.stats.parse import parse_stats
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyiceberg.manifest import ManifestFile

    from deltalog.iceberg.metadata import TableMetadata
    from deltalog.protocol.actions.model import DeletionVectorDescriptor

logger: logging.Logger = logging.getLogger(__name__)

_MOST_TRIES: Final = 10
# The maximum number of commits that become one snapshot each. If there are more commits, all
# metadata is written again, with one snapshot.
_MOST_COMMITS: Final = 100
_THIRD: Final = 3  # the format version with deletion vectors and row ids


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergVersion(ShownFields):
    """The Iceberg metadata of a table version.

    version: the Delta version: the requested version or a later one.
    metadata_location: the location of the metadata file, for Iceberg readers.
    snapshot_id: the id of the current snapshot; None if the table has never had a file.
    num_snapshots: the number of snapshots that this call added.
    is_whole: whether this call wrote a snapshot from all files of the version, not from commits.
    """

    version: int
    metadata_location: str
    snapshot_id: int | None
    num_snapshots: int
    is_whole: bool


class _CannotFollowError(Exception):
    """The commits since the last conversion cannot be converted one by one.

    Args:
        reason: the reason.
        is_sound: whether the existing metadata is correct, so that it can be extended.
    """

    def __init__(self, reason: object, *, is_sound: bool = True) -> None:
        super().__init__(str(reason))
        self.is_sound = is_sound


def sync(snapshot: Snapshot) -> IcebergVersion:
    """Write the Iceberg metadata of a table version, unless it or a later one is already stored.

    Args:
        snapshot: the snapshot of the Delta version.

    Returns:
        The stored Iceberg metadata.

    Raises:
        InvalidInputError: the table has no icebergCompat feature, or a file has a deletion vector
            and the table lacks icebergCompatV3.
        CommitRetriesExhaustedError: other writers stored metadata before each retry.

    Cost: reads the commits since the last converted version. For each commit, writes a manifest,
    a manifest list, each manifest with a removed file again, and a file for each deletion vector.
    Without metadata to extend, reads all files of the version, and writes a manifest for each
    5,000 files. Four more requests in both cases.
    """
    _check(snapshot)
    for _ in range(_MOST_TRIES):
        before = read_newest(snapshot.store, snapshot.metadata.id)
        if before is not None and before.delta_version >= snapshot.version:
            return _shown(snapshot, before, num_snapshots=0, is_whole=False)
        io = StoreIO(snapshot.store)
        try:
            return _write(io, snapshot, before)
        except AlreadyExistsError:
            io.discard()
    raise CommitRetriesExhaustedError(
        f"cannot store the Iceberg metadata of version {snapshot.version} of "
        f"{snapshot.store.root}: {_MOST_TRIES} times, another writer stored metadata first; the "
        "Delta table is complete, and the next commit or sync_iceberg() writes the metadata"
    )


def _check(snapshot: Snapshot) -> None:
    if not enabled_versions(snapshot.configuration.properties):
        raise InvalidInputError(
            f"cannot write Iceberg metadata of {snapshot.store.root}: expected icebergCompatV1, V2 "
            "or V3, found none; optimize.upgrade_uniform(2) sets all properties that V2 needs"
        )


def _write(io: StoreIO, snapshot: Snapshot, before: StoredMetadata | None) -> IcebergVersion:
    store, configuration = snapshot.store, snapshot.configuration
    now_ms = snapshot.context.clock.now_ms()
    base = None if before is None or before.delta_version < 0 else before.metadata
    if base is not None and base.format_version > (format_version(configuration.properties) or 0):
        # Write all metadata again, because snapshots of version 3 may have deletion vectors or row
        # ids, which older versions do not allow.
        base = None
    start = _nothing_yet(snapshot) if base is None else base
    followed = None
    if base is not None:
        try:
            followed = _follow(io, base, snapshot)
        except _CannotFollowError as error:
            logger.warning("writing all Iceberg metadata of %s again: %s", store.root, error)
            start = _shaped(base, configuration) if error.is_sound else _nothing_yet(snapshot)
    metadata, made = followed or (_whole(io, start, snapshot), 1)
    metadata = with_properties(
        metadata,
        configuration,
        version=snapshot.version,
        timestamp_ms=snapshot.commit_timestamp_ms,
    )
    retention_ms = configuration.properties.deleted_file_retention_ms
    metadata, expired = without_snapshots_before(metadata, now_ms - retention_ms)
    stored, dropped = store_next(io, before, metadata, at_ms=now_ms)
    delete_expired(io, metadata, expired, dropped)
    return _shown(snapshot, stored, num_snapshots=made, is_whole=followed is None)


def _shaped(metadata: TableMetadata, configuration: TableConfiguration) -> TableMetadata:
    """Set the format version, the schema and the partition spec of a table."""
    is_older = metadata.format_version != format_version(configuration.properties)
    return with_shape(upgraded(metadata) if is_older else metadata, configuration)


def _nothing_yet(snapshot: Snapshot) -> TableMetadata:
    return first_metadata(snapshot.store, snapshot.configuration, snapshot.metadata.id)


def _shown(
    snapshot: Snapshot, stored: StoredMetadata, *, num_snapshots: int, is_whole: bool
) -> IcebergVersion:
    metadata = stored.metadata
    return IcebergVersion(
        version=stored.delta_version,
        metadata_location=StoreIO(snapshot.store).location(metadata_name(stored.number)),
        snapshot_id=None if metadata is None else metadata.current_snapshot_id,
        num_snapshots=num_snapshots,
        is_whole=is_whole,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    """One commit that is not converted yet, and the table's configuration after the commit."""

    version: int
    actions: CommitTable
    configuration: TableConfiguration
    timestamp_ms: int


def _follow(io: StoreIO, base: TableMetadata, snapshot: Snapshot) -> tuple[TableMetadata, int]:
    """Add a snapshot for each unconverted commit; return the metadata and the number of snapshots.

    Raises:
        _CannotFollowError: the commits cannot be converted one by one.
    """
    metadata, made = base, 0
    for commit in _commits(snapshot, base):
        metadata = _shaped(metadata, commit.configuration)
        try:
            metadata, is_new = _followed(io, metadata, snapshot, commit)
        except (MalformedLogError, ObjectNotFoundError) as error:
            raise _CannotFollowError(error, is_sound=False) from error
        made += is_new
    return metadata, made


def _commits(snapshot: Snapshot, base: TableMetadata) -> Iterator[_Commit]:
    """Yield the commits after the version of `base`.

    Raises:
        _CannotFollowError: there are more than `_MOST_COMMITS` commits, a commit is missing, or the
            table had another format at a commit.
    """
    first = int(base.properties[DELTA_VERSION]) + 1
    if snapshot.version - first >= _MOST_COMMITS:
        raise _CannotFollowError(f"{snapshot.version - first + 1} commits are not converted yet")
    try:
        commits = list_commits(snapshot.store, first, log_tail=snapshot.log_tail)
        configuration = snapshot.configuration
        if snapshot.version > first:
            configuration = load_snapshot(snapshot.context, version=first - 1).configuration
    except (ObjectNotFoundError, DeltaProtocolError) as error:
        raise _CannotFollowError(error) from error
    commits = [one for one in commits if one.version <= snapshot.version]
    if len(commits) != snapshot.version - first + 1:
        raise _CannotFollowError(f"commits from version {first} on are missing")
    last_ms = max((one.timestamp_ms for one in base.snapshots), default=0)
    for commit in commits:
        actions = read_commits(snapshot.store, [commit], commit_infos=True)
        is_last = commit.version == snapshot.version
        configuration = snapshot.configuration if is_last else _after(configuration, actions)
        if format_version(configuration.properties) != base.format_version:
            raise _CannotFollowError(f"version {commit.version} was written for another format")
        if has_vectors(actions.adds) and not _is_third(configuration):
            raise _CannotFollowError(f"version {commit.version} has deletion vectors")
        info = actions.commit_infos.get(commit.version, {})
        own_ms = own_time_ms(info, commit.version, configuration.in_commit_timestamps)
        last_ms = max(last_ms, commit.info.modified_ms if own_ms is None else own_ms)
        yield _Commit(
            version=commit.version,
            actions=actions,
            configuration=configuration,
            timestamp_ms=last_ms,
        )


def _after(configuration: TableConfiguration, actions: CommitTable) -> TableConfiguration:
    """Return the table's configuration after a commit."""
    if not actions.protocol_nodes and not actions.metadata_nodes:
        return configuration
    protocol = actions.protocols[-1][1] if actions.protocol_nodes else configuration.protocol
    metadata = actions.metadatas[-1][1] if actions.metadata_nodes else configuration.metadata
    return TableConfiguration(protocol, metadata)


def _followed(
    io: StoreIO, metadata: TableMetadata, snapshot: Snapshot, commit: _Commit
) -> tuple[TableMetadata, bool]:
    """Add the snapshot of one commit; return the metadata, and whether there is a snapshot."""
    actions = commit.actions
    columns = _file_columns(snapshot, commit.configuration)
    adds, removed = actions.adds, set(columns.locations(actions.removes))
    if not len(adds) and not removed:
        return metadata, False
    added = columns.locations(adds)
    # The files that the commit removes and adds again. They are already in a manifest.
    again = removed.intersection(added)
    removed -= again
    changes_data = adds.column("dataChange").to_pylist()
    suspects = {one for one, changes in zip(added, changes_data, strict=True) if not changes}
    change = new_change(io, metadata, commit.version)
    data, vectors = _manifests(io, metadata)
    _remove(change, data, removed, removed)
    known = again | (change.present(suspects - again) if suspects - again else set())
    had_vectors = actions.removes.filter(actions.removes.column("deletionVector").is_valid())
    _remove(change, vectors, removed | known, set(columns.locations(had_vectors)))
    is_new = pa.array([location not in known for location in added], pa.bool_())
    fresh = adds.filter(is_new)
    stats = parse_stats(adds.column("stats"), columns.stats_schema())
    change.add(_by_hash(columns.data_files(fresh.select(columns.names), stats.filter(is_new))))
    counts = stats.column("numRecords")
    change.add_vectors(_by_hash(write_vectors(io, columns, adds.select(VECTOR_COLUMNS), counts)))
    if change.is_empty:
        return metadata, False
    change.merge_small()
    keeps_rows = not any(changes_data) and not _any_change(actions.removes)
    operation = Operation.REPLACE if keeps_rows else operation_of(change)
    current = metadata.current_snapshot()
    earlier = {} if current is None or current.summary is None else current.summary
    return with_change(metadata, change, commit.timestamp_ms, operation, earlier), True


def _remove(
    change: ManifestChange,
    manifests: Sequence[ManifestFile],
    locations: set[str],
    listed: set[str],
) -> None:
    """Remove the entries of some data files from manifests.

    Raises:
        _CannotFollowError: a file in `listed` is not in a manifest.
    """
    if not locations:
        change.keep(manifests)
        return
    missing = listed - change.remove(manifests, locations)
    if missing:
        reason = f"it does not list {min(missing)!r}, which was removed"
        raise _CannotFollowError(reason, is_sound=False)


def _whole(io: StoreIO, metadata: TableMetadata, snapshot: Snapshot) -> TableMetadata:
    """Add a snapshot with new manifests for all files of the version."""
    columns = _file_columns(snapshot, snapshot.configuration)
    change = new_change(io, metadata, snapshot.version)
    files = snapshot.files([*columns.names, "deletionVector"])
    if has_vectors(files) and not _is_third(snapshot.configuration):
        raise InvalidInputError(
            f"cannot write Iceberg metadata of {snapshot.store.root}: files have deletion vectors, "
            "which Iceberg readers would ignore; rewrite them with optimize.purge()"
        )
    stats = snapshot.stats(columns.stats_schema())
    hashes = pa.array([hash_of(one) for one in columns.locations(files)], pa.int64())
    order = compute.sort_indices(hashes)

    def data_files() -> Iterator[ListedFile]:
        for start in range(0, len(order), FILES_PER_MANIFEST):
            part = order.slice(start, FILES_PER_MANIFEST)
            yield from columns.data_files(files.take(part), stats.take(part))

    change.add(data_files())
    counts = stats.column("numRecords")
    change.add_vectors(_by_hash(write_vectors(io, columns, files.select(VECTOR_COLUMNS), counts)))
    is_first = metadata.current_snapshot_id is None
    operation = Operation.APPEND if is_first else Operation.OVERWRITE
    return with_change(metadata, change, snapshot.commit_timestamp_ms, operation, {})


def _is_third(configuration: TableConfiguration) -> bool:
    return (format_version(configuration.properties) or 0) >= _THIRD


def _manifests(
    io: StoreIO, metadata: TableMetadata
) -> tuple[list[ManifestFile], list[ManifestFile]]:
    """Return the current snapshot's manifests of data files, and those of deletion vectors."""
    current = metadata.current_snapshot()
    found = [] if current is None else read_manifest_list(io, current.manifest_list)
    vectors = [one for one in found if one.content == ManifestContent.DELETES]
    return [one for one in found if one.content != ManifestContent.DELETES], vectors


def _file_columns(snapshot: Snapshot, configuration: TableConfiguration) -> FileColumns:
    return FileColumns(
        configuration,
        snapshot.store.root,
        snapshot.context.time_zone,
        has_row_ids=_is_third(configuration),
    )


def _by_hash(files: Iterable[ListedFile]) -> list[ListedFile]:
    return sorted(files, key=lambda one: hash_of(key_of(one.data_file)))


def _any_change(removes: pa.Table) -> bool:
    return any(removes.column("dataChange").to_pylist())


# --- Deletion of metadata files without references


def delete_expired(
    io: StoreIO,
    metadata: TableMetadata,
    expired: Sequence[IcebergSnapshot],
    dropped: Sequence[str],
) -> None:
    """Delete unreferenced metadata files; errors are logged but not raised."""
    try:
        paths = [metadata_path(one, io.store) for one in dropped]
        if expired:
            # If the oldest remaining snapshot does not use a manifest of an expired snapshot, no
            # later snapshot uses it. The same is true for deletion vectors.
            oldest = min(metadata.snapshots, key=lambda one: one.sequence_number or 0)
            kept = read_manifest_list(io, oldest.manifest_list)
            names = {one.manifest_path for one in kept}
            gone: dict[str, ManifestFile] = {}
            for one in expired:
                paths.append(metadata_path(one.manifest_list, io.store))
                for manifest in read_manifest_list(io, one.manifest_list):
                    if manifest.manifest_path not in names:
                        gone[manifest.manifest_path] = manifest
            vectors = _vectors_of(io, gone.values()) - _vectors_of(io, kept)
            paths += [metadata_path(one, io.store) for one in (*gone, *vectors)]
        if paths:
            io.store.delete_many(sorted(set(paths)))
    except DeltaError as error:
        logger.warning("could not delete old Iceberg metadata of %s: %s", io.store.root, error)


def _vectors_of(io: StoreIO, manifests: Iterable[ManifestFile]) -> set[str]:
    """Return the locations of the deletion vectors in manifests."""
    return {
        entry.data_file.file_path
        for manifest in manifests
        if manifest.content == ManifestContent.DELETES
        for entry in read_entries(io, manifest)
    }


# --- A new snapshot: its manifests and its summary


_ID_BITS: Final = 63
_TOTALS: Final = (
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
)


def new_change(io: StoreIO, metadata: TableMetadata, version: int) -> ManifestChange:
    """Return an empty change of manifests for the snapshot of a Delta version."""
    return ManifestChange(
        io=io,
        format_version=metadata.format_version,
        schemas=[*metadata.schemas, metadata.schema()],
        specs=metadata.specs(),
        spec=metadata.spec(),
        snapshot_id=secrets.randbits(_ID_BITS),
        sequence_number=version,
        first_row_id=next_row_id(metadata),
    )


def operation_of(change: ManifestChange) -> Operation:
    """Return the operation that the snapshot's summary records for a change."""
    if change.added.files:
        is_append = not change.removed.files and not change.added_vectors.files
        return Operation.APPEND if is_append else Operation.OVERWRITE
    # If deletion vectors are replaced by vectors with fewer rows, deleted rows are restored.
    brings_rows = change.removed_vectors.rows > change.added_vectors.rows and not (
        change.removed.files
    )
    return Operation.OVERWRITE if brings_rows else Operation.DELETE


def with_change(
    metadata: TableMetadata,
    change: ManifestChange,
    timestamp_ms: int,
    operation: Operation,
    earlier: Mapping[str, Any],
) -> TableMetadata:
    """Add a snapshot with the changed manifests.

    Args:
        metadata: the metadata before the snapshot.
        change: the changed manifests.
        timestamp_ms: the time of the Delta version, in milliseconds since 1970 (UTC).
        operation: the Iceberg operation.
        earlier: the previous snapshot's summary, which contains the totals before the change.
    """
    parent = metadata.current_snapshot_id
    manifest_list = change.write_list(parent)
    members: dict[str, Any] = {
        "snapshot-id": change.snapshot_id,
        "parent-snapshot-id": parent,
        "sequence-number": change.sequence_number,
        "timestamp-ms": timestamp_ms,
        "manifest-list": manifest_list,
        "summary": Summary(operation=operation, **_summary(change, earlier)),
        "schema-id": metadata.current_schema_id,
    }
    if change.first_row_id is not None:
        members["first-row-id"] = change.first_row_id
        members["added-rows"] = change.next_row_id - change.first_row_id
    return with_snapshot(metadata, IcebergSnapshot(**members))


def _summary(change: ManifestChange, earlier: Mapping[str, Any]) -> dict[str, str]:
    added, removed = change.added, change.removed
    counts = {
        "added-data-files": added.files,
        "added-records": added.rows,
        "added-files-size": added.size_bytes,
        "deleted-data-files": removed.files,
        "deleted-records": removed.rows,
        "removed-files-size": removed.size_bytes,
        "added-delete-files": change.added_vectors.files,
        "added-dvs": change.added_vectors.files,
        "added-position-deletes": change.added_vectors.rows,
        "removed-delete-files": change.removed_vectors.files,
        "removed-dvs": change.removed_vectors.files,
        "removed-position-deletes": change.removed_vectors.rows,
    }
    totals = {
        total: int(earlier.get(total) or 0) + counts[plus] - counts[minus]
        for total, plus, minus in _TOTALS
    }
    named = {name: str(number) for name, number in counts.items() if number}
    return {**named, **{name: str(max(0, number)) for name, number in totals.items()}}


# --- Deletion vectors in Iceberg: each has a Puffin file and a manifest entry


VECTOR_COLUMNS: Final = ("path", "partitionValues", "deletionVector")

_MAGIC: Final = b"PFA1"
_NO_FLAGS: Final = bytes(4)
_LENGTH_BYTES: Final = 4
_BLOB_TYPE: Final = "deletion-vector-v1"
_POSITION_FIELD: Final = 2147483645  # the field id of `_pos`, a row's position in its file
_PATH_FIELD: Final = 2147483546  # the field id of `file_path` in position deletes
_INHERITED: Final = -1
_AT_A_TIME: Final = 1_000
_NUM_RECORDS: Final = "numRecords"


def has_vectors(files: pa.Table) -> bool:
    """Return whether any of the files has a value in the column `deletionVector`."""
    vectors = files.column("deletionVector")
    return vectors.null_count < len(vectors)


def write_vectors(
    io: StoreIO, columns: FileColumns, files: pa.Table, num_records: pa.ChunkedArray[Any]
) -> list[ListedFile]:
    """Write the deletion vectors of files for Iceberg, and return their entries.

    Args:
        io: the metadata files of the table; the next flush stores the new files.
        columns: the converter of the table's files.
        files: files with the columns `VECTOR_COLUMNS`; files without a vector are skipped.
        num_records: the number of physical rows of each file; NULL without statistics.

    Raises:
        DataFileMissingError: the file with a deletion vector is missing.
        DeletionVectorError: a vector is damaged.

    Cost: one request to read each vector that is not inline, and one to write each Puffin file.
    """
    if not has_vectors(files):
        return []
    files = files.append_column(_NUM_RECORDS, num_records)
    files = files.filter(files.column("deletionVector").is_valid())
    found: list[ListedFile] = []
    for start in range(0, len(files), _AT_A_TIME):
        part = files.slice(start, _AT_A_TIME)
        rows = zip(
            columns.locations(part),
            columns.partitions(part),
            _contents(io, part),
            strict=True,
        )
        found += [_written(io, *row) for row in rows]
        io.flush()
    return found


def _contents(io: StoreIO, files: pa.Table) -> list[tuple[bytes, int]]:
    """Return the bitmap of each vector with its magic number, and its number of rows."""
    vectors: list[Any] = files.column("deletionVector").to_pylist()
    counts: list[Any] = files.column(_NUM_RECORDS).to_pylist()

    def content(one: tuple[DeletionVectorDescriptor, int | None]) -> tuple[bytes, int]:
        descriptor, num_rows = one
        bitmap = load_bitmap(io.store, descriptor, num_rows=num_rows)
        return bitmap.encode(), bitmap.cardinality

    found = zip(map(descriptor_of, vectors), counts, strict=True)
    return map_in_pool(content, [(one, count) for one, count in found if one is not None])


def _written(io: StoreIO, location: str, partition: Any, content: tuple[bytes, int]) -> ListedFile:
    bitmap, cardinality = content
    blob = b"".join(
        (
            len(bitmap).to_bytes(_LENGTH_BYTES, "big"),
            bitmap,
            zlib.crc32(bitmap).to_bytes(_LENGTH_BYTES, "big"),
        )
    )
    puffin = _puffin(blob, location, cardinality)
    output = io.new_output(io.location(f"{uuid.uuid4()}-dv.puffin"))
    with output.create() as stream:
        stream.write(puffin)
    bound = {_PATH_FIELD: location.encode()}
    return ListedFile(
        DataFile.from_args(
            _table_format_version=LAYOUT,
            content=DataFileContent.POSITION_DELETES,
            file_path=output.location,
            file_format=FileFormat.PUFFIN,
            partition=partition,
            record_count=cardinality,
            file_size_in_bytes=len(puffin),
            # Readers that ignore `referenced_data_file` find the data file by these bounds.
            lower_bounds=bound,
            upper_bounds=bound,
            referenced_data_file=location,
            content_offset=len(_MAGIC),
            content_size_in_bytes=len(blob),
        )
    )


def _puffin(blob: bytes, location: str, cardinality: int) -> bytes:
    """Encode a Puffin file with one deletion vector."""
    footer = dumps(
        {
            "blobs": [
                {
                    "type": _BLOB_TYPE,
                    "fields": [_POSITION_FIELD],
                    "snapshot-id": _INHERITED,
                    "sequence-number": _INHERITED,
                    "offset": len(_MAGIC),
                    "length": len(blob),
                    "properties": {
                        "referenced-data-file": location,
                        "cardinality": str(cardinality),
                    },
                }
            ],
            "properties": {"created-by": "deltalog"},
        }
    )
    length = len(footer).to_bytes(_LENGTH_BYTES, "little")
    return b"".join((_MAGIC, blob, _MAGIC, footer, length, _NO_FLAGS, _MAGIC))
