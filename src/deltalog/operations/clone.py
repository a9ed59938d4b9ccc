"""Clone a table: reference (shallow) or copy (deep) the files of another table's version.

This module defines how one table references another table's files, and which metadata is copied.
A repeated clone is incremental: it neither adds nor copies files that the clone already contains.

Protocol: Add File and Remove File (absolute paths), Deletion Vector Descriptor Schema, Row Tracking
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from deltalog._util.kernels import TRUE, compute, exact_sum
from deltalog._util.paths import (
    canonical_path,
    canonical_paths,
    decode_path,
    encode_path,
    is_absolute,
    join,
)
from deltalog.data.scan.plan import descriptor_of
from deltalog.data.scan.transform import load_bitmap
from deltalog.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidInputError,
    ObjectNotFoundError,
    UnsafePathError,
)
from deltalog.log.listing import list_log
from deltalog.operations.convert_files import with_own_vectors
from deltalog.operations.operation import Operation
from deltalog.operations.restore import difference, has_same_partitions
from deltalog.protocol.actions.arrow import DELETION_VECTOR_TYPE, FILE_SCHEMA
from deltalog.protocol.actions.codec import deletion_vector_to_json
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.deletion_vectors import (
    absolute_descriptor,
    check_rows,
    encode_z85,
    location,
    parse_inline,
)
from deltalog.protocol.features.clustering import CLUSTERING_DOMAIN
from deltalog.protocol.features.iceberg_compat import (
    ROW_COMMIT_VERSION_FIELD,
    ROW_ID_FIELD,
    VERSIONS,
    enabled_versions,
)
from deltalog.protocol.features.protocol_change import merge, supported_features, without_feature
from deltalog.protocol.features.support import check_readable
from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.table_change.change import changed_table
from deltalog.protocol.table_change.checks import stored_configuration
from deltalog.protocol.table_change.drop import with_row_ids_of
from deltalog.schema.arrow import parquet_field_id
from deltalog.storage.parquet.reader import check_is_parquet, open_parquet
from deltalog.storage.pool import Background, map_in_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog._util.cards import ProgressCount
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.protocol.actions import DeletionVectorDescriptor
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction

_TIED_FEATURES: Final = ("catalogManaged", "checkpointProtection")
_TIED_PROPERTIES: Final = (
    TableProperties.require_checkpoint_protection_before_version.key,
    TableProperties.materialized_row_id_column_name.key,
    TableProperties.materialized_row_commit_version_column_name.key,
    TableProperties.row_ids_physical_column_name.key,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloned:
    """The result of a clone.

    Args:
        num_source_files: number of logical files of the source.
        source_bytes: total size of the source's files.
        num_added_files: number of files that the clone did not contain before.
        num_removed_files: number of files that were removed because the source no longer has them.
        removed_bytes: total size of the removed files.
        num_copied_files: number of copied physical files.
        copied_bytes: total size of the copied files.
    """

    num_source_files: int
    source_bytes: int
    num_added_files: int
    num_removed_files: int
    removed_bytes: int
    num_copied_files: int = 0
    copied_bytes: int = 0

    def result(self) -> None:
        """Return nothing, because callers get the clone itself."""
        return

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        return {
            "sourceTableSize": self.source_bytes,
            "sourceNumOfFiles": self.num_source_files,
            "numRemovedFiles": self.num_removed_files,
            "removedFilesSize": self.removed_bytes,
            "numCopiedFiles": self.num_copied_files,
            "copiedFilesSize": self.copied_bytes,
        }


@dataclass(frozen=True, slots=True)
class Origin:
    """The kind of source of a clone, and the version that the history shows.

    Args:
        format: format of the source, for the history.
        version: the cloned version in the source's own numbering, for the history; None means the
            version of the snapshot.
        has_log: whether the source has a Delta log. If not (Parquet, Iceberg), the source's
            snapshot and its deletion vectors are only in memory, so that even a shallow clone
            writes the deletion vectors.
    """

    format: str = "delta"
    version: int | None = None
    has_log: bool = True


DELTA: Final = Origin()


def cloned_configuration(
    source: TableConfiguration,
    *,
    target: TableConfiguration | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableConfiguration:
    """Return protocol and metadata of a clone: those of the source, with a new table id.

    The clone assigns new row ids, so its materialized row id columns get new names, too.

    Args:
        source: protocol and metadata of the cloned version.
        target: the table that the clone replaces; the clone preserves its table features.
        properties: additional table properties of the clone.

    Raises:
        InvalidInputError: a property is invalid.
    """
    if target is not None:
        source = with_row_ids_of(source, target)
    protocol = source.protocol
    for feature in _TIED_FEATURES:
        if feature in supported_features(protocol):
            protocol = without_feature(protocol, feature)
    texts = dict(source.metadata.configuration)
    own = {} if target is None else target.metadata.configuration
    for key in _TIED_PROPERTIES:
        texts.pop(key, None)
        if key in own:
            texts[key] = own[key]
    if target is not None:
        protocol = merge(target.protocol, protocol)
    metadata = replace(
        source.metadata,
        id=str(uuid.uuid4()) if target is None else target.metadata.id,
        configuration=stored_configuration(texts, protocol),
    )
    made = TableConfiguration(protocol, metadata)
    if not properties:
        return made
    return changed_table(made, configuration={**metadata.configuration, **properties})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone(Operation[Cloned]):
    """Replace the files of the table by the files of another table's version.

    Args:
        source: the version to clone. A deep clone may read it from a different store.
        is_shallow: whether to reference the source's files by their location instead of copying
            them. Vacuum of the source must then not delete these files while the clone is in use.
        origin: describes the source.
        properties: table properties of the clone, in addition to those of the source.
        allows_foreign_files: whether to also copy or reference files outside of the source's root.
            A source that is itself a shallow clone has such files. Do not allow them for an
            untrusted log, which could name any file that the caller can read.
    """

    source: Snapshot
    is_shallow: bool
    origin: Origin = DELTA
    allows_foreign_files: bool = False
    properties: Mapping[str, str] | None = None
    name: ClassVar[str] = "CLONE"
    doing: ClassVar[str] = "copying files"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Cloned:
        """Copy or reference the new files, and set the source's configuration on the clone.

        Raises:
            InvalidInputError: another file exists at the path of a copy.
            DeltaProtocolError: deltalog cannot read the source.
            TableNotFoundError, VersionNotFoundError: the source no longer exists.

        Cost: a request to check the source's version, and reading the source's file list from its
        log. A deep clone also copies each new file through memory.
        """
        del engine
        target = transaction.snapshot
        if target is not None:
            transaction.record_read(None)
            transaction.set_configuration(
                cloned_configuration(
                    self.source.configuration,
                    target=target.configuration,
                    properties=self.properties,
                )
            )
        check_readable(
            self.source.configuration,
            table=self.source.store.root,
            version=self.source.version,
            operation="clone",
            has_log_tail=self.source.log_tail is not None,
        )
        if self.origin.has_log:
            _check_there(self.source)
        root = transaction.store.root
        files = self.source.files()
        if not self.allows_foreign_files:
            self._check_own(files)
        if _shows_row_ids(transaction.configuration):
            self._check_row_ids(files)
        names = FileNames(self.source.store.root, root, is_shallow=self.is_shallow)
        now = FILE_SCHEMA.empty_table() if target is None else target.files()
        wanted = names.of(files)
        if not self.origin.has_log:
            wanted = with_own_vectors(transaction, now, wanted)
        found = difference(
            now,
            wanted,
            root,
            has_same_partitions=target is None
            or has_same_partitions(target.configuration, self.source.configuration),
        )
        copied = Copied()
        if not self.is_shallow:
            copied = copy_files(
                transaction,
                self.source.store,
                names.copies(files, found.added),
                transaction.progress,
            )
        found.stage(transaction)
        _clone_clustering(transaction, self.source)
        transaction.parameters |= {
            "source": f"{self.origin.format}.`{root_location(self.source.store.root)}`",
            "sourceVersion": (
                self.source.version if self.origin.version is None else self.origin.version
            ),
            "isShallow": self.is_shallow,
        }
        return Cloned(
            num_source_files=files.num_rows,
            source_bytes=exact_sum(files.column("size")),
            num_added_files=found.added.num_rows,
            num_removed_files=found.removed.num_rows,
            removed_bytes=exact_sum(found.removed.column("size")),
            num_copied_files=copied.num_files,
            copied_bytes=copied.num_bytes,
        )

    def _check_row_ids(self, files: pa.Table) -> None:
        """Raise if a file contains row ids: the clone assigns other row ids to the same rows.

        Raises:
            InvalidInputError: a file contains row ids.
        """
        others = with_other_row_ids(self.source.store, files, {})
        if others.true_count:
            raise InvalidInputError(
                f"cannot clone {self.source.store.root} with icebergCompatV3: Iceberg's readers "
                f"would mistake the row ids in {others.true_count} of its files for those of the "
                "clone; clone it with delta.enableIcebergCompatV3 = false and "
                "delta.universalFormat.enabledFormats = '', then optimize.upgrade_uniform(3) "
                "rewrites those files"
            )

    def _check_own(self, files: pa.Table) -> None:
        """Raise if a file is outside of the source's root.

        Raises:
            UnsafePathError: a data file or deletion vector file is outside of the root.
        """
        root = self.source.store.root
        paths: Any = canonical_paths(files.column("path"), root)
        outside = paths.filter(compute.match_substring_regex(paths, ABSOLUTE)).to_pylist()[:1]
        vectors: Any = files.column("deletionVector")
        # Only deletion vectors of type `p` have absolute paths, which may be outside of the root.
        by_path = compute.equal(compute.struct_field(vectors, "storageType"), "p")
        for row in vectors.filter(by_path).to_pylist():
            descriptor = descriptor_of(row)
            place = None if descriptor is None else location(descriptor)
            if place is not None and is_absolute(canonical_path(place, root)):
                outside.append(place)
        if outside:
            raise UnsafePathError(
                f"cannot clone {root}: its log names {outside[0]!r}, which is outside of the table "
                "directory; if you trust this log, for example because the table is a shallow "
                "clone, pass allow_foreign_files=True"
            )


def _check_there(source: Snapshot) -> None:
    """Raise if the source table was deleted, recreated or rolled back since the snapshot was read.

    Otherwise a shallow clone could reference missing files. Commits that log cleanup has deleted
    are not an error.

    Raises:
        TableNotFoundError, VersionNotFoundError: the table or version no longer exists.
    """
    if not source.is_in_place():
        source.refresh(same_table=True)
        source.check_listed(list_log(source.store, from_version=source.version))


def _shows_row_ids(configuration: TableConfiguration) -> bool:
    """Return whether Iceberg readers of the table read row ids from its data files."""
    versions = enabled_versions(configuration.properties)
    return any(VERSIONS[version].needs_row_tracking for version in versions)


def _clone_clustering(pending: PendingTransaction, source: Snapshot) -> None:
    if not pending.configuration.supports("domainMetadata"):
        return
    known = {} if pending.snapshot is None else pending.snapshot.domain_metadata
    current, wanted = known.get(CLUSTERING_DOMAIN), source.domain_metadata.get(CLUSTERING_DOMAIN)
    if wanted is not None and wanted != current:
        pending.set_domain(wanted)
    elif wanted is None and current is not None:
        pending.remove_domain(CLUSTERING_DOMAIN)


# --- Paths and copies of the clone's files


ABSOLUTE: Final = r"^(?:/|[A-Za-z][A-Za-z0-9+.-]*:/)"
# The maximum number of files that are copied at the same time. Each is completely in memory.
_COPIED_AT_ONCE: Final = 2
_NUM_RECORDS: Final = pa.schema([("numRecords", pa.int64())])


class FileNames:
    """Map the paths of the source's files to the paths that the clone's log contains.

    Args:
        source: root of the source table.
        target: root of the clone.
        is_shallow: whether to use the absolute paths of the source's files. If False, the paths of
            their copies are used.
    """

    def __init__(self, source: str, target: str, *, is_shallow: bool) -> None:
        self._source = source
        self._target = target
        self._is_shallow = is_shallow

    def of(self, files: pa.Table) -> pa.Table:
        """Return the files as rows for the clone's log (`FILE_SCHEMA`), without row ids."""
        changed = {
            "path": self._paths(files.column("path")),
            "deletionVector": self._vectors(files.column("deletionVector")),
            "dataChange": pa.repeat(TRUE, files.num_rows),
            "baseRowId": pa.nulls(files.num_rows, pa.int64()),
            "defaultRowCommitVersion": pa.nulls(files.num_rows, pa.int64()),
        }
        columns: list[Any] = [changed.get(name, files.column(name)) for name in FILE_SCHEMA.names]
        return pa.Table.from_arrays(columns, schema=FILE_SCHEMA)

    def copies(self, files: pa.Table, added: pa.Table) -> dict[str, FileCopy]:
        """Return the physical files to copy, by decoded path in the source.

        Args:
            files: the source's files, with the source's paths.
            added: the files that the clone does not yet contain, with the clone's paths.

        Raises:
            DeletionVectorError: an inline deletion vector is damaged. `FileCopy.read` checks the
                deletion vectors in files.
        """
        if self._is_shallow:
            return {}
        new = set(added.column("path").to_pylist())
        found: dict[str, FileCopy] = {}
        rows: list[dict[str, Any]] = files.select(["path", "deletionVector"]).to_pylist()
        counts: list[Any] = parse_stats(files.column("stats"), _NUM_RECORDS)[0].to_pylist()
        for row, num_rows in zip(rows, counts, strict=True):
            path = decode_path(row["path"])
            target = self._copy_of(path)
            if encode_path(target) not in new and row["path"] not in new:
                continue
            found[path] = FileCopy(target)
            descriptor = descriptor_of(row["deletionVector"])
            place = None if descriptor is None else location(descriptor)
            if descriptor is not None and place is None:
                check_rows(parse_inline(descriptor), descriptor, num_rows)
            elif descriptor is not None and place is not None:
                target = location(self._vector(descriptor)) or place
                known = found.get(place, FileCopy(target)).vectors
                found[place] = FileCopy(target, (*known, (descriptor, num_rows)))
        return found

    def _paths(self, encoded: Any) -> Any:
        absolute = compute.match_substring_regex(encoded, ABSOLUTE)
        if self._is_shallow:
            prefix = encode_path(root_location(self._source).rstrip("/") + "/")
            below = compute.binary_join_element_wise(prefix, encoded, "")
            return compute.if_else(absolute, encoded, below)
        if not compute.any(absolute).as_py():
            return encoded
        texts: list[str] = encoded.to_pylist()
        renamed = [
            encode_path(self._copy_of(path)) if is_absolute(path) else text
            for text, path in ((text, decode_path(text)) for text in texts)
        ]
        return pa.array(renamed, pa.string())

    def _copy_of(self, path: str) -> str:
        """Return the path of a file's copy.

        It is the path in the source. A file outside of the source's root gets a new name that is
        derived from its location, so that a repeated clone finds the copy.
        """
        if not is_absolute(path):
            return path
        place = canonical_path(path, self._source)
        if not is_absolute(place):
            return place
        return f"{uuid.uuid5(uuid.NAMESPACE_URL, place)}-{place.rpartition('/')[2]}"

    def _vectors(self, vectors: Any) -> Any:
        if vectors.null_count == len(vectors):
            return vectors
        # Most files have no deletion vector, so convert only valid descriptors to Python objects.
        rows: list[Any] = vectors.filter(vectors.is_valid()).to_pylist()
        renamed = [
            None if found is None else deletion_vector_to_json(self._vector(found))
            for found in map(descriptor_of, rows)
        ]
        mask = vectors.combine_chunks().is_valid()
        places = compute.subtract(compute.cumulative_sum(mask.cast(pa.int64())), 1)
        values = pa.array(renamed, DELETION_VECTOR_TYPE)
        return values.take(compute.if_else(mask, places, pa.scalar(None, pa.int64())))

    def _vector(self, descriptor: DeletionVectorDescriptor) -> DeletionVectorDescriptor:
        if self._is_shallow:
            return absolute_descriptor(descriptor, root_location(self._source))
        place = location(descriptor)
        if place is None or descriptor.storage_type == "u":
            return descriptor
        name = uuid.uuid5(uuid.NAMESPACE_URL, canonical_path(place, self._source))
        return replace(descriptor, storage_type="u", path_or_inline_dv=encode_z85(name.bytes))


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A physical file to copy.

    Args:
        target: decoded path in the clone.
        vectors: the deletion vectors in the file, each with the number of physical rows of its data
            file if the log states it; empty for a data file.
    """

    target: str
    vectors: tuple[tuple[DeletionVectorDescriptor, int | None], ...] = ()

    def read(self, source: Store, path: str) -> bytes:
        """Return the bytes of the file, after checking its content.

        Raises:
            DataFileUnreadableError: a data file is not a Parquet file.
            DeletionVectorError: the file does not contain the expected deletion vectors.
        """
        for descriptor, num_rows in self.vectors:
            load_bitmap(source, descriptor, num_rows=num_rows)
        data = source.read(path)
        if not self.vectors:
            check_is_parquet(data, join(source.root, path))
        return data


@dataclass(frozen=True, slots=True)
class Copied:
    """The number of copied files, and their size in bytes."""

    num_files: int = 0
    num_bytes: int = 0


def copy_files(
    pending: PendingTransaction,
    source: Store,
    copies: Mapping[str, FileCopy],
    progress: ProgressCount,
) -> Copied:
    """Copy files to the target. Files that an earlier attempt copied are not copied again.

    Args:
        pending: transaction of the target; its `own_paths` gets the paths of the copies.
        source: store of the source table.
        copies: decoded path in the source → the copy to make.
        progress: counts the copied files.

    Raises:
        InvalidInputError: another file exists at the path of a copy.
    """
    target = pending.store

    def copy(path: str, wanted: FileCopy) -> tuple[str, int | None]:
        place = wanted.target
        if _is_copied(source, path, target, place):
            return place, None
        data = wanted.read(source, path)
        try:
            target.put_if_absent(place, data)
        except AlreadyExistsError:
            if target.read(place) != data:
                raise
        return place, len(data)

    sizes: list[int] = []
    progress.expect(len(copies))

    def work(path: str, wanted: FileCopy) -> None:
        place, num_bytes = copy(path, wanted)
        if num_bytes is not None:
            pending.own_paths.append(place)
            sizes.append(num_bytes)
        progress.done()

    background: Background[None] = Background(_COPIED_AT_ONCE)
    try:
        for path, wanted in copies.items():
            background.submit(partial(work, path, wanted))
        background.wait()
    except BaseException:
        # Wait for the copies in progress. Their files are then in `own_paths`, and are deleted.
        background.cancel()
        raise
    return Copied(len(sizes), sum(sizes))


def _is_copied(source: Store, path: str, target: Store, place: str) -> bool:
    """Return whether the target already has a copy: a file at that path with the same size.

    Raises:
        InvalidInputError: the file at that path has a different size.
    """
    try:
        there = target.stat(place)
    except ObjectNotFoundError:
        return False
    if there.size_bytes != source.stat(path).size_bytes:
        raise InvalidInputError(
            f"cannot copy {join(source.root, path)} to {join(target.root, place)}: another "
            "file, of a different size, already exists there"
        )
    return True


def root_location(root: str) -> str:
    """Return a root as an absolute URL.

    Readers would resolve a path such as `/x` against their default file system. A local root
    becomes `file:/x`, as in Delta Spark, which does not recognise `file:///x` as the same file.
    """
    if root.startswith("/"):
        return f"file:{root}"
    if not is_absolute(root):
        raise InternalError(f"the root {root!r} is not a location")
    return root


# --- Row ids in data files that Delta and Iceberg readers would interpret differently


_RESERVED: Final = frozenset({ROW_ID_FIELD, ROW_COMMIT_VERSION_FIELD})


def hidden_columns(configuration: TableConfiguration) -> dict[str, int]:
    """Return the materialized row tracking columns: physical name → Iceberg's reserved field id."""
    names = {
        configuration.row_id_column: ROW_ID_FIELD,
        configuration.row_commit_version_column: ROW_COMMIT_VERSION_FIELD,
    }
    return {name: number for name, number in names.items() if name is not None}


def with_other_row_ids(store: Store, files: pa.Table, own: Mapping[str, int]) -> pa.BooleanArray:
    """Return a mask of the files in which Delta and Iceberg readers would find different row ids.

    Args:
        store: store of the table.
        files: the files, with the columns `path` and `size`.
        own: `hidden_columns` of the table that contains the files; if empty, any row id column in
            a file counts as different.

    Cost: reads the footer of every file.
    """

    def look(file: Any) -> bool:
        path, size_bytes = file
        reader = open_parquet(store, decode_path(path), size_bytes=size_bytes, footer_only=True)
        try:
            return any(_is_other(column, own) for column in reader.arrow_schema)
        finally:
            reader.close()

    rows = zip(files.column("path").to_pylist(), files.column("size").to_pylist(), strict=True)
    return pa.array(map_in_pool(look, list(rows)), pa.bool_())


def _is_other(column: pa.Field[Any], own: Mapping[str, int]) -> bool:
    number = parquet_field_id(column)
    return number != own[column.name] if column.name in own else number in _RESERVED
