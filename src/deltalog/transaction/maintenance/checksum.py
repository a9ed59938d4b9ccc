"""Version checksums: derived from the previous checksum and the commit, or counted from all files.

This module decides whether a checksum can be derived. A checksum is optional: if its values are not
certain, none is written.

Protocol: Version Checksum File
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import compute, exact_sum
from deltalog.errors import AlreadyExistsError, InvalidInputError, ObjectNotFoundError
from deltalog.log.checksum import (
    DELETED_COUNT_BOUNDARIES,
    FILE_SIZE_BOUNDARIES,
    VersionChecksum,
    encode_checksum,
    histogram,
    parse_checksum,
)
from deltalog.log.names import checksum_name, log_path
from deltalog.log.reader import VERSION_COLUMN
from deltalog.storage.store import unsynced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.log.context import MaintenanceOperation
    from deltalog.log.snapshot import Snapshot
    from deltalog.log.snapshot.state import LogState

logger: logging.Logger = logging.getLogger(__name__)

_MOST_BYTES: Final = (1 << 63) - 1


def write_checksum(
    snapshot: Snapshot,
    *,
    previous: VersionChecksum | None = None,
    whole: bool = False,
    txn_id: str | None = None,
) -> VersionChecksum | None:
    """Write the checksum of a version that was just committed.

    Args:
        snapshot: the version.
        previous: the checksum of the previous version; None reads it, if it exists.
        whole: whether to compute the checksum from all files if it cannot be derived.
        txn_id: id of the transaction.

    Returns:
        The checksum, for the next commit; None if it could not be determined.

    Protocol: Version Checksum File
    Cost: one request to write. To derive the checksum, reads the actions of one commit and, unless
    it is given, the previous checksum. To compute it from all files, reads two columns of the file
    list.
    """
    if previous is None and snapshot.version > 0 and not whole:
        previous = read_checksum(snapshot, snapshot.version - 1)
    found = None if previous is None else _carried_on(previous, snapshot)
    if found is None and (whole or snapshot.version == 0):
        found = count_checksum(snapshot)
    if found is None or found.table_size_bytes > _MOST_BYTES:
        return None
    in_commit = snapshot.configuration.in_commit_timestamps is not None
    found = replace(
        found,
        txn_id=txn_id,
        in_commit_timestamp_ms=snapshot.commit_timestamp_ms if in_commit else None,
    )
    try:
        path = log_path(checksum_name(snapshot.version))
        # Write without fsync, because readers ignore a checksum that a power failure has damaged.
        unsynced(snapshot.store).put_if_absent(path, encode_checksum(found))
    except AlreadyExistsError:
        logger.debug("version %d of %s has a checksum", snapshot.version, snapshot.store.root)
    return found


def read_checksum(snapshot: Snapshot, version: int) -> VersionChecksum | None:
    """Return the checksum of a version; None if it is missing or damaged. Cost: one request."""
    try:
        return parse_checksum(snapshot.store.read(log_path(checksum_name(version))))
    except ObjectNotFoundError:
        return None


def count_checksum(snapshot: Snapshot) -> VersionChecksum:
    """Compute the checksum of a version from all its files.

    Cost: reads sizes and deletion vectors of all live files from the log.
    """
    files = snapshot.files(["size", "deletionVector"])
    facts = _VersionFacts(files)
    vectors = snapshot.configuration.may_have_deletion_vectors
    properties = snapshot.configuration.properties
    remembered = properties.set_transaction_retention_ms is None
    return VersionChecksum(
        table_size_bytes=facts.size_bytes,
        num_files=files.num_rows,
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        set_transactions=tuple(snapshot.app_transactions.values()) if remembered else None,
        domain_metadata=tuple(snapshot.domain_metadata.values()),
        num_deleted_records=facts.num_deleted if vectors else None,
        num_deletion_vectors=facts.num_vectors if vectors else None,
        file_size_histogram=_size_histogram(facts.sizes),
        deleted_record_counts=tuple(facts.deleted_counts) if vectors else None,
    )


class _VersionFacts:
    """The totals of files for a checksum."""

    def __init__(self, files: pa.Table) -> None:
        self.sizes: pa.ChunkedArray[Any] = files.column("size")
        self.size_bytes: int = exact_sum(self.sizes)
        vectors = files.column("deletionVector")
        hidden = compute.struct_field(vectors, "cardinality")
        self.num_vectors: int = len(vectors) - vectors.null_count
        self.num_deleted: int = compute.sum(hidden).as_py() or 0
        per_file = compute.coalesce(hidden, pa.scalar(0, pa.int64()))
        self.deleted_counts = histogram(per_file, DELETED_COUNT_BOUNDARIES)[0]


def _size_histogram(sizes: pa.ChunkedArray[Any]) -> dict[str, Any]:
    counts, sums = histogram(sizes, FILE_SIZE_BOUNDARIES)
    return {
        "sortedBinBoundaries": list(FILE_SIZE_BOUNDARIES),
        "fileCounts": counts,
        "totalBytes": sums,
    }


def _carried_on(previous: VersionChecksum, snapshot: Snapshot) -> VersionChecksum | None:
    """Derive a checksum from that of the previous version; None if this is not possible."""
    adds, removes = snapshot.read_log(lambda state: _changes(state, snapshot.version))
    if not _are_plain(adds, removes):
        return None
    joined, left = _VersionFacts(adds), _VersionFacts(removes)
    num_files = previous.num_files + adds.num_rows - removes.num_rows
    size_bytes = previous.table_size_bytes + joined.size_bytes - left.size_bytes
    if num_files < 0 or size_bytes < 0:
        return None  # the previous checksum was wrong
    remembered = snapshot.configuration.properties.set_transaction_retention_ms is None
    return VersionChecksum(
        table_size_bytes=size_bytes,
        num_files=num_files,
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        set_transactions=tuple(snapshot.app_transactions.values()) if remembered else None,
        domain_metadata=tuple(snapshot.domain_metadata.values()),
        file_size_histogram=_sizes_carried_on(previous.file_size_histogram, joined, left),
        **_vectors_carried_on(previous, snapshot, joined, left),
    )


def _changes(state: LogState, version: int) -> tuple[pa.Table, pa.Table]:
    commits = state.commits
    return _of_newest(commits.adds, version), _of_newest(commits.removes, version)


def _of_newest(actions: pa.Table, version: int) -> pa.Table:
    """Return the actions of the newest version, which are the last rows."""
    versions = actions.column(VERSION_COLUMN)
    rows = 0
    for number in reversed(range(versions.num_chunks if actions.num_rows else 0)):
        chunk: Any = versions.chunk(number)
        if not len(chunk):
            continue
        found = compute.sum(compute.equal(chunk, version)).as_py()
        rows += found
        if found < len(chunk):
            break
    return actions.slice(actions.num_rows - rows)


def _are_plain(adds: pa.Table, removes: pa.Table) -> bool:
    """Return whether every add is a new file and every remove was a live file.

    The result depends only on the actions of the commit. Some commits add live files again, with
    new statistics or row ids, or remove files that were never live, such as deletion vector files.
    Such commits do not change data, and contain only adds or only removes.
    """
    if removes.column("size").null_count:
        return False
    changing = [compute.any(table.column("dataChange")).as_py() for table in (adds, removes)]
    if adds.num_rows and not removes.num_rows:
        return bool(compute.all(adds.column("dataChange")).as_py())
    return bool(not removes.num_rows or adds.num_rows or changing[1])


def _sizes_carried_on(
    before: Mapping[str, Any] | None, joined: _VersionFacts, left: _VersionFacts
) -> dict[str, Any] | None:
    if before is None:
        return None
    boundaries = before.get("sortedBinBoundaries")
    if not isinstance(boundaries, list) or not boundaries:
        return None
    plus, minus = histogram(joined.sizes, boundaries), histogram(left.sizes, boundaries)
    carried: dict[str, Any] = {"sortedBinBoundaries": boundaries}
    for number, name in enumerate(("fileCounts", "totalBytes")):
        values = _sum(before.get(name), plus[number], minus[number])
        if values is None:
            return None
        carried[name] = values
    return carried


def _vectors_carried_on(
    previous: VersionChecksum, snapshot: Snapshot, joined: _VersionFacts, left: _VersionFacts
) -> dict[str, Any]:
    known = (previous.num_deleted_records, previous.num_deletion_vectors)
    if not snapshot.configuration.may_have_deletion_vectors or None in known:
        return {}
    deleted = (known[0] or 0) + joined.num_deleted - left.num_deleted
    vectors = (known[1] or 0) + joined.num_vectors - left.num_vectors
    if deleted < 0 or vectors < 0:
        return {}
    counts = _sum(previous.deleted_record_counts, joined.deleted_counts, left.deleted_counts)
    return {
        "num_deleted_records": deleted,
        "num_deletion_vectors": vectors,
        "deleted_record_counts": None if counts is None else tuple(counts),
    }


def _sum(before: object, plus: Sequence[int], minus: Sequence[int]) -> list[int] | None:
    if not isinstance(before, list | tuple) or len(before) != len(plus):
        return None
    values = [old + new - gone for old, new, gone in zip(before, plus, minus, strict=True)]
    return values if min(values, default=0) >= 0 else None


# --- Maintenance that a catalog allows for a catalog-managed table


def allows_maintenance(snapshot: Snapshot, operation: MaintenanceOperation) -> bool:
    """Return whether a client may run the operation; always true for tables without a catalog."""
    if not snapshot.configuration.is_catalog_managed:
        return True
    tail = snapshot.log_tail
    return tail is not None and operation in tail.allowed


def check_maintenance(snapshot: Snapshot, operation: MaintenanceOperation, doing: str) -> None:
    """Raise for an operation that the table's catalog does not allow.

    "By default, maintenance operations are prohibited unless the managing catalog explicitly
    permits the client to run them."

    Args:
        snapshot: the version that would be changed.
        operation: the operation that the catalog must allow.
        doing: description of the operation for the error message.

    Raises:
        InvalidInputError: the catalog does not allow the operation.
    """
    if not allows_maintenance(snapshot, operation):
        raise InvalidInputError(
            f"cannot {doing} {snapshot.store.root}: the table's catalog does not allow clients to "
            f"run {operation.value}, which the catalog does itself; if you manage a Unity Catalog "
            "server that cannot grant this, open the catalog with "
            f"UnityCatalog(…, maintenance=[{operation.value!r}])"
        )
