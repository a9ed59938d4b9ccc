"""Clone: a table with the files of another table's version, referenced (shallow) or copied (deep).

Owns how files of one table are referenced from another, and which metadata is taken over. Repeated
clones are incremental: files that the clone has are neither added nor copied again.

Protocol: Add File and Remove File (absolute paths), Deletion Vector Descriptor Schema, Row Tracking
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from deltalog.actions.arrow import DELETION_VECTOR_TYPE, FILE_SCHEMA
from deltalog.actions.codec import deletion_vector_to_json
from deltalog.actions.properties import TableProperties
from deltalog.configuration import TableConfiguration
from deltalog.deletion_vectors import absolute_descriptor, encode_z85, location
from deltalog.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidInputError,
    ObjectNotFoundError,
    UnsafePathError,
)
from deltalog.features.clustering import CLUSTERING_DOMAIN
from deltalog.features.protocol_change import merge, supported_features, without_feature
from deltalog.features.support import check_readable
from deltalog.kernels import compute
from deltalog.paths import (
    canonical_path,
    canonical_paths,
    decode_path,
    encode_path,
    is_absolute,
    join,
)
from deltalog.progress import Steps
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import descriptor_of
from deltalog.storage.parquet import check_is_parquet
from deltalog.storage.pool import Background
from deltalog.table_change import changed_table, with_row_ids_of
from deltalog.table_change.properties import stored_configuration
from deltalog.verbs.restore import difference
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.actions import DeletionVectorDescriptor
    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction

_TIED_FEATURES: Final = ("catalogManaged", "checkpointProtection")
_TIED_PROPERTIES: Final = (
    TableProperties.require_checkpoint_protection_before_version.key,
    TableProperties.materialized_row_id_column_name.key,
    TableProperties.materialized_row_commit_version_column_name.key,
    TableProperties.row_ids_physical_column_name.key,
)
_ABSOLUTE: Final = r"^(?:/|[A-Za-z][A-Za-z0-9+.-]*:/)"
_COPIED_AT_ONCE: Final = 2  # whole files are in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloned:
    """The result of a clone.

    Args:
        num_source_files: logical files of the source.
        source_bytes: their size.
        num_added_files: files that the clone did not have before.
        num_removed_files: files of the clone that are no longer in the source.
        removed_bytes: their size.
        num_copied_files: physical files that were copied.
        copied_bytes: their size.
    """

    num_source_files: int
    source_bytes: int
    num_added_files: int
    num_removed_files: int
    removed_bytes: int
    num_copied_files: int = 0
    copied_bytes: int = 0

    def result(self) -> None:
        """Return nothing: callers get the clone itself."""
        return

    def metrics(self) -> dict[str, int]:
        """Return the metrics as Delta Spark's operationMetrics."""
        return {
            "sourceTableSize": self.source_bytes,
            "sourceNumOfFiles": self.num_source_files,
            "numRemovedFiles": self.num_removed_files,
            "removedFilesSize": self.removed_bytes,
            "numCopiedFiles": self.num_copied_files,
            "copiedFilesSize": self.copied_bytes,
        }


def cloned_configuration(
    source: TableConfiguration,
    *,
    target: TableConfiguration | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableConfiguration:
    """Return protocol and metadata of a clone: the source's, with a table id of its own.

    The clone assigns its own row ids, so it also has its own materialized row id columns.

    Args:
        source: of the version that is cloned.
        target: of the table that the clone replaces; its features stay.
        properties: set on the clone in addition.

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
class Clone(Verb[Cloned]):
    """Replace the files of the table by those of another table's version.

    Args:
        source: the version to clone; its store can be another one for a deep clone.
        is_shallow: name the source's files by their location. Vacuum in the source must leave
            them alone as long as the clone is needed. Otherwise they are copied.
        properties: set on the clone besides the source's.
        allows_foreign_files: whether files outside of the source's root, which its log names as
            that of a shallow clone does, may be copied or named, too. A log is not to be trusted:
            it could name any file that the caller can read.
    """

    source: Snapshot
    is_shallow: bool
    allows_foreign_files: bool = False
    properties: Mapping[str, str] | None = None
    name: ClassVar[str] = "CLONE"
    doing: ClassVar[str] = "copying files"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Cloned:
        """Copy or reference the new files, and take over the source's configuration.

        Raises:
            InvalidInputError: another file exists at the path of a copy.
            DeltaProtocolError: deltalog cannot read the source.

        Cost: the log's columns of the source's files; a deep clone also copies each new file
        through memory.
        """
        del engine
        if transaction.snapshot is not None:
            transaction.set_configuration(
                cloned_configuration(
                    self.source.configuration,
                    target=transaction.snapshot.configuration,
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
        root = transaction.store.root
        files = self.source.files()
        if not self.allows_foreign_files:
            self._check_own(files)
        names = _FileNames(self.source.store.root, root, is_shallow=self.is_shallow)
        wanted = names.of(files)
        now = (
            FILE_SCHEMA.empty_table()
            if transaction.snapshot is None
            else transaction.snapshot.files()
        )
        added, removed = difference(now, wanted, root)
        copied = _Copied()
        if not self.is_shallow:
            copied = _copy(
                transaction, self.source.store, names.copies(files, added), transaction.steps
            )
        transaction.add_rows(added)
        if transaction.snapshot is not None:
            transaction.read(None)
            transaction.remove_files(removed, data_change=True)
        _clone_clustering(transaction, self.source)
        transaction.parameters |= {
            "source": f"delta.`{_location(self.source.store.root)}`",
            "sourceVersion": self.source.version,
            "isShallow": self.is_shallow,
        }
        return Cloned(
            num_source_files=files.num_rows,
            source_bytes=_sum(files),
            num_added_files=added.num_rows,
            num_removed_files=removed.num_rows,
            removed_bytes=_sum(removed),
            num_copied_files=copied.num_files,
            copied_bytes=copied.num_bytes,
        )

    def _check_own(self, files: pa.Table) -> None:
        """Refuse files outside of the source's root.

        Raises:
            UnsafePathError: a data file, or the file of a deletion vector.
        """
        root = self.source.store.root
        paths: Any = canonical_paths(files.column("path"), root)
        outside = paths.filter(compute.match_substring_regex(paths, _ABSOLUTE)).to_pylist()[:1]
        vectors = files.column("deletionVector")
        for row in vectors.filter(vectors.is_valid()).to_pylist():
            descriptor = descriptor_of(row)
            place = None if descriptor is None else location(descriptor)
            if place is not None and is_absolute(canonical_path(place, root)):
                outside.append(place)
        if outside:
            raise UnsafePathError(
                f"cannot clone {root}: its log names {outside[0]!r}, which is not in the table; "
                "where that is meant, as in a shallow clone, allow_foreign_files=True clones such "
                "files, too"
            )


class _FileNames:
    """The paths of one table's files in the log of another table.

    Args:
        source: root of the table that has the files.
        target: root of the clone.
        is_shallow: absolute paths of the source's files; otherwise the paths of their copies.
    """

    def __init__(self, source: str, target: str, *, is_shallow: bool) -> None:
        self._source = source
        self._target = target
        self._is_shallow = is_shallow

    def of(self, files: pa.Table) -> pa.Table:
        """Return the files' rows for the clone's log, with `FILE_SCHEMA` and without row ids."""
        changed = {
            "path": self._paths(files.column("path")),
            "deletionVector": self._vectors(files.column("deletionVector")),
            "dataChange": pa.repeat(pa.scalar(value=True), files.num_rows),
            "baseRowId": pa.nulls(files.num_rows, pa.int64()),
            "defaultRowCommitVersion": pa.nulls(files.num_rows, pa.int64()),
        }
        columns: list[Any] = [changed.get(name, files.column(name)) for name in FILE_SCHEMA.names]
        return pa.Table.from_arrays(columns, schema=FILE_SCHEMA)

    def copies(self, files: pa.Table, added: pa.Table) -> dict[str, _Copy]:
        """The physical files to copy, by decoded path in the source."""
        if self._is_shallow:
            return {}
        new = set(added.column("path").to_pylist())
        found: dict[str, _Copy] = {}
        rows: list[dict[str, Any]] = files.select(["path", "deletionVector"]).to_pylist()
        for row in rows:
            path = decode_path(row["path"])
            target = self._copy_of(path)
            if encode_path(target) not in new and row["path"] not in new:
                continue
            found[path] = _Copy(target)
            descriptor = descriptor_of(row["deletionVector"])
            place = None if descriptor is None else location(descriptor)
            if descriptor is not None and place is not None:
                target = location(self._vector(descriptor)) or place
                known = found.get(place, _Copy(target)).vectors
                found[place] = _Copy(target, (*known, descriptor))
        return found

    def _paths(self, encoded: Any) -> Any:
        absolute = compute.match_substring_regex(encoded, _ABSOLUTE)
        if self._is_shallow:
            prefix = encode_path(_location(self._source).rstrip("/") + "/")
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
        """Return the path of a copy: the same, or a new name for a file outside of the source.

        The new name is derived from the location, so that a repeated clone finds the copy.
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
        # Only files with a vector are turned into Python objects.
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
            return absolute_descriptor(descriptor, _location(self._source))
        place = location(descriptor)
        if place is None or descriptor.storage_type == "u":
            return descriptor
        name = uuid.uuid5(uuid.NAMESPACE_URL, canonical_path(place, self._source))
        return replace(descriptor, storage_type="u", path_or_inline_dv=encode_z85(name.bytes))


@dataclass(frozen=True, slots=True)
class _Copy:
    """A physical file to copy.

    Args:
        target: decoded path in the clone.
        vectors: that are in the file; none for a data file.
    """

    target: str
    vectors: tuple[DeletionVectorDescriptor, ...] = ()

    def read(self, source: Store, path: str) -> bytes:
        """The bytes of the file, which is what the log says that it is.

        Raises:
            DataFileUnreadableError: it is no Parquet file.
            DeletionVectorError: it does not hold the deletion vectors.
        """
        for descriptor in self.vectors:
            load_bitmap(source, descriptor)
        data = source.read(path)
        if not self.vectors:
            check_is_parquet(data, join(source.root, path))
        return data


@dataclass(frozen=True, slots=True)
class _Copied:
    num_files: int = 0
    num_bytes: int = 0


def _copy(
    pending: PendingTransaction,
    source: Store,
    copies: Mapping[str, _Copy],
    steps: Steps,
) -> _Copied:
    """Copy files that the target does not have; copies of an earlier attempt are kept."""
    target = pending.store

    def copy(path: str, wanted: _Copy) -> tuple[str, int | None]:
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
    steps.expect(len(copies))

    def work(path: str, wanted: _Copy) -> None:
        place, num_bytes = copy(path, wanted)
        if num_bytes is not None:
            pending.own_paths.append(place)
            sizes.append(num_bytes)
        steps.done()

    background = Background(_COPIED_AT_ONCE)
    try:
        for path, wanted in copies.items():
            background.submit(partial(work, path, wanted))
        background.wait()
    except BaseException:
        background.cancel()  # and wait, so that running copies are recorded and cleaned up
        raise
    return _Copied(len(sizes), sum(sizes))


def _is_copied(source: Store, path: str, target: Store, place: str) -> bool:
    """Whether the target has the copy: a file of that path and size.

    Raises:
        InvalidInputError: the file at that path has another size.
    """
    try:
        there = target.stat(place)
    except ObjectNotFoundError:
        return False
    if there.size_bytes != source.stat(path).size_bytes:
        raise InvalidInputError(
            f"cannot copy {join(source.root, path)} to {join(target.root, place)}: there is "
            "another file of that name"
        )
    return True


def _clone_clustering(pending: PendingTransaction, source: Snapshot) -> None:
    if not pending.configuration.supports("domainMetadata"):
        return
    known = {} if pending.snapshot is None else pending.snapshot.domain_metadata
    current, wanted = known.get(CLUSTERING_DOMAIN), source.domain_metadata.get(CLUSTERING_DOMAIN)
    if wanted is not None and wanted != current:
        pending.set_domain(wanted)
    elif wanted is None and current is not None:
        pending.remove_domain(CLUSTERING_DOMAIN)


def _location(root: str) -> str:
    """Return a root as an absolute URL, as `/x` is relative to the reader's file system.

    Local roots get one slash: Delta Spark does not recognise its files as `file:///x`.
    """
    if root.startswith("/"):
        return f"file:{root}"
    if not is_absolute(root):
        raise InternalError(f"the root {root!r} is no location")
    return root


def _sum(files: pa.Table) -> int:
    return compute.sum(files.column("size")).as_py() or 0
