"""Log clean-up: delete log files that no version within the retention period needs.

The clean-up deletes files before a checkpoint: the newest checkpoint that is not after the last
expired commit. It first verifies this checkpoint by reading it.

Protocol: Metadata Cleanup, Checkpoint Protection
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import JsonObject, dumps, iter_objects
from deltalog._util.paths import LOG_DIRECTORY, FileInfo, canonical_path
from deltalog._util.readable import FILE, counted
from deltalog.errors import (
    AlreadyExistsError,
    CheckpointUnreadableError,
    InvalidInputError,
    VersionNotFoundError,
)
from deltalog.log.checkpoints.layout import sidecar_location
from deltalog.log.checkpoints.reader import Checkpoint
from deltalog.log.context import MaintenanceOperation
from deltalog.log.history import file_times_ms, find_version_at
from deltalog.log.listing import list_log
from deltalog.log.names import (
    SIDECAR_DIRECTORY,
    STAGED_DIRECTORY,
    LogFileKind,
    commit_path,
    compaction_name,
    log_path,
    parse_log_name,
)
from deltalog.log.reader import VERSION_COLUMN, read_commits, read_in_batches
from deltalog.log.replay import Survivors, file_keys, reconcile
from deltalog.protocol.actions.codec import sidecar_from_json
from deltalog.protocol.features.support import check_writable
from deltalog.transaction.maintenance.checkpoint import inspect_checkpoint
from deltalog.transaction.maintenance.checksum import check_maintenance

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from deltalog.log.names import LogFile
    from deltalog.log.segment import CheckpointFiles, LogListing
    from deltalog.log.snapshot import Snapshot
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)

_DAY_MS: Final = 86_400_000
_MOST_TABLES: Final = 1_000
_CHECKPOINT_KINDS: Final = frozenset(
    {LogFileKind.CHECKPOINT, LogFileKind.CHECKPOINT_PART, LogFileKind.CHECKPOINT_V2}
)


def cleanup_metadata(
    snapshot: Snapshot, *, retention_ms: int | None = None, at_ms: int | None = None
) -> list[str]:
    """Delete the log files that only expired versions need.

    All versions that were current at any time within the retention period remain readable. A few
    older versions also remain readable, because the period begins at midnight UTC, and only files
    before a checkpoint can be deleted.

    Args:
        snapshot: the latest version.
        retention_ms: retention period of versions; None means `delta.logRetentionDuration`.
        at_ms: the end of the retention period; None means the current time.

    Returns:
        The deleted paths, relative to the table's root.

    Raises:
        DeltaProtocolError: the table needs a feature that deltalog cannot write.
        InvalidInputError: the table's catalog does not allow log clean-up.

    Protocol: Metadata Cleanup
    Cost: one listing of the log. With sidecars, also one listing of sidecars, and reading the names
    of sidecars from every remaining checkpoint.
    """
    store = snapshot.store
    at_ms = snapshot.context.clock.now_ms() if at_ms is None else at_ms
    checkpoints, others = plan_cleanup(snapshot, retention_ms=retention_ms, at_ms=at_ms)
    # Delete commits before checkpoints. Otherwise an interrupted clean-up could leave old commits
    # without their checkpoint, and the log would appear to contain versions that cannot be read.
    for paths in (others, checkpoints):
        store.delete_many(paths)
    deleted = others + checkpoints
    if deleted:
        logger.info("deleted %s of the log of %s", counted(len(deleted), FILE), store.root)
    orphans = _orphaned_sidecars(store, _midnight(at_ms) - _DAY_MS)
    store.delete_many(orphans)
    return deleted + orphans


def plan_cleanup(
    snapshot: Snapshot, *, at_ms: int, retention_ms: int | None = None
) -> tuple[list[str], list[str]]:
    """Return the log files that `cleanup_metadata` deletes, except sidecars.

    Returns:
        The paths of checkpoints, and those of all other files.

    Raises:
        DeltaProtocolError: see `cleanup_metadata`.
        InvalidInputError: see `cleanup_metadata`.

    Cost: two listings of the log.
    """
    _check_allowed(snapshot)
    listing = list_log(snapshot.store, from_version=0)
    boundary = _boundary(snapshot, listing, _cutoff_ms(snapshot, retention_ms, at_ms))
    if boundary is None or _is_protected(snapshot, boundary.version):
        return [], []
    return _expired(snapshot.store, boundary.version, _first_listed(snapshot))


def cleanup_once_a_day(snapshot: Snapshot, *, at_ms: int) -> None:
    """Run `cleanup_metadata`, unless this process has already run it for the table on this day.

    The retention period begins at midnight UTC, so a second clean-up on the same day would delete
    nothing. Without this check, a writer of many commits would list the log at every checkpoint.

    Args:
        snapshot: the latest version.
        at_ms: the current time, in milliseconds since 1970, UTC.

    Cost: that of `cleanup_metadata`, or none.
    """
    table = snapshot.store.root, snapshot.metadata.id
    cutoff_ms = _cutoff_ms(snapshot, None, at_ms)
    if _cleaned_to_ms.get(table) == cutoff_ms:
        return
    cleanup_metadata(snapshot, at_ms=at_ms)
    if len(_cleaned_to_ms) >= _MOST_TABLES:
        _cleaned_to_ms.clear()
    _cleaned_to_ms[table] = cutoff_ms


_cleaned_to_ms: dict[tuple[str, str], int] = {}


def _cutoff_ms(snapshot: Snapshot, retention_ms: int | None, at_ms: int) -> int:
    """Return the beginning of the retention period."""
    if retention_ms is None:
        retention_ms = snapshot.configuration.properties.log_retention_ms
    return _midnight(at_ms - retention_ms)


def _check_allowed(snapshot: Snapshot) -> None:
    store = snapshot.store
    check_writable(
        snapshot.configuration,
        table=store.root,
        version=snapshot.version,
        operation="clean up the log of",
        has_log_tail=snapshot.log_tail is not None,
    )
    check_maintenance(snapshot, MaintenanceOperation.METADATA_CLEANUP, "clean up the log of")


def _midnight(time_ms: int) -> int:
    return time_ms // _DAY_MS * _DAY_MS


def _boundary(snapshot: Snapshot, listing: LogListing, cutoff_ms: int) -> CheckpointFiles | None:
    """Return the newest checkpoint from which all unexpired versions can be read, or None."""
    last_expired = _last_expired_version(snapshot, listing, cutoff_ms)
    if last_expired is None:
        return None
    for files in reversed(listing.checkpoints):
        if files.version > last_expired:
            continue
        try:
            inspect_checkpoint(snapshot.store, files)
        except CheckpointUnreadableError as error:
            logger.warning("not cleaning up to a checkpoint of %s: %s", snapshot.store.root, error)
            continue
        return files
    return None


def _last_expired_version(snapshot: Snapshot, listing: LogListing, cutoff_ms: int) -> int | None:
    """Return the version that was current at the cutoff, or None."""
    times = file_times_ms(listing.commits.values())
    by_file = max((version for version, time in times.items() if time <= cutoff_ms), default=None)
    in_commit = snapshot.configuration.in_commit_timestamps
    if by_file is None or in_commit is None:
        return by_file
    # File times of a copied log are newer than its commits, and clocks differ. So a version has
    # expired only if both its file time and its in-commit timestamp have expired.
    try:
        by_commit = find_version_at(
            snapshot.store,
            listing,
            cutoff_ms,
            in_commit_timestamps=in_commit,
            now_ms=max(cutoff_ms, snapshot.context.clock.now_ms()),
        )
    except VersionNotFoundError:
        return None
    return min(by_file, by_commit)


def _is_protected(snapshot: Snapshot, boundary: int) -> bool:
    """Return whether checkpoint protection forbids deleting the versions before `boundary`.

    Protocol: Checkpoint Protection
    """
    if not snapshot.configuration.supports("checkpointProtection"):
        return False
    before = snapshot.configuration.properties.require_checkpoint_protection_before_version
    return boundary < before


def _first_listed(snapshot: Snapshot) -> float:
    """Return the first version whose commit the catalog still lists for readers."""
    tail = snapshot.log_tail
    return tail.commits[0].version if tail is not None and tail.commits else float("inf")


def _expired(store: Store, boundary: int, first_listed: float) -> tuple[list[str], list[str]]:
    """Return the checkpoints before `boundary`, and all other log files to delete.

    Staged commits of published versions are deleted, except commits that the catalog still lists.
    All versions before a checkpoint are published, so their staged commits are either copies of the
    published commits, or can never be ratified.
    """
    checkpoints: list[str] = []
    others: list[str] = []
    for info in store.list_from(LOG_DIRECTORY, ""):
        file = parse_log_name(info)
        if file is None:
            continue
        if file.kind is LogFileKind.COMPACTION:
            # After the clean-up, no reader uses a log compaction that starts at or before the
            # boundary.
            if file.version <= boundary:
                others.append(info.path)
        elif file.version < boundary:
            (checkpoints if file.kind in _CHECKPOINT_KINDS else others).append(info.path)
    others += [
        info.path
        for info in store.list_from(STAGED_DIRECTORY, "")
        if _staged_version(info) <= boundary and _staged_version(info) < first_listed
    ]
    return checkpoints, others


def _staged_version(info: FileInfo) -> float:
    digits = info.name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdecimal() else float("inf")


def _orphaned_sidecars(store: Store, older_than_ms: int) -> list[str]:
    """Find old sidecars to which no checkpoint refers.

    Protocol: Metadata Cleanup (younger sidecars may belong to a checkpoint that is being written)
    """
    old = [
        info
        for info in store.list_from(SIDECAR_DIRECTORY, "")
        if info.modified_ms < older_than_ms and info.name.endswith(".parquet")
    ]
    if not old:
        return []
    try:
        # List checkpoints after sidecars. Otherwise, the clean-up could delete a sidecar of a
        # checkpoint that was written between the two listings. Incomplete checkpoints also protect
        # their sidecars.
        named = set(_named_sidecars(store, list_log(store, from_version=0).checkpoints))
    except CheckpointUnreadableError as error:
        logger.warning("cannot delete old sidecars of %s: %s", store.root, error)
        return []
    return [info.path for info in old if canonical_path(info.path, store.root) not in named]


def _named_sidecars(store: Store, checkpoints: Iterable[CheckpointFiles]) -> Iterable[str]:
    for files in checkpoints:
        for row in Checkpoint(store, files).values(["sidecar"])["sidecar"]:
            sidecar = sidecar_from_json(JsonObject(row, f"{files.name}: sidecar"))
            yield canonical_path(sidecar_location(sidecar), store.root)


# --- Log compaction: the reconciled actions of a range of commits, in one file


# Kind of action → the member that identifies an action; empty if a version has only one action of
# this kind. Of several actions with the same identity, only the newest is written.
_NAMES: Final = {
    "protocol": "",
    "metaData": "",
    "rowIdHighWaterMark": "",
    "txn": "appId",
    "domainMetadata": "domain",
}


def compact_logs(snapshot: Snapshot, start: int, end: int) -> str:
    """Write the reconciled actions of the commits `start` to `end` as one file.

    The commits are not deleted. History and the change data feed need them, because the compaction
    contains no `commitInfo` and no `cdc` actions. It contains tombstones and removed domains,
    because they cancel older actions.

    Args:
        snapshot: snapshot of the table, at `end` or later.
        start: the first version.
        end: the last version, inclusive.

    Returns:
        The path of the file, relative to the table's root.

    Raises:
        InvalidInputError: there is no such range of published commits.
        DeltaProtocolError: the table needs a feature that deltalog cannot write.

    Protocol: Log Compaction Files
    Cost: reads each commit twice; the reconciled actions are in memory as strings.
    """
    store = snapshot.store
    check_writable(
        snapshot.configuration,
        table=store.root,
        version=snapshot.version,
        operation="compact the log of",
        has_log_tail=snapshot.log_tail is not None,
    )
    if not 0 <= start < end <= snapshot.version:
        raise InvalidInputError(
            f"cannot compact commits {start} to {end} of {store.root}: expected two versions or "
            f"more, up to {snapshot.version}"
        )
    path = log_path(compaction_name(start, end))
    data = _compacted(store, _commits(store, start, end))
    with contextlib.suppress(AlreadyExistsError):  # another writer's file is equivalent
        store.put_if_absent(path, data)
    return path


def _commits(store: Store, start: int, end: int) -> list[LogFile]:
    listing = list_log(store, from_version=start)
    commits = [file for version, file in listing.commits.items() if version <= end]
    if len(commits) != end - start + 1 or any(
        file.info.path != commit_path(file.version) for file in commits
    ):
        raise InvalidInputError(
            f"cannot compact commits {start} to {end} of {store.root}: some commits do not exist"
        )
    return commits


def _compacted(store: Store, commits: Sequence[LogFile]) -> bytes:
    live = _survivors(store, commits)
    wanted = {"add": set(live.adds.to_pylist()), "remove": set(live.removes.to_pylist())}
    seen = {"add": 0, "remove": 0}
    small: dict[tuple[str, Any], bytes] = {}
    files: list[bytes] = []
    for batch in read_in_batches(store, commits):
        for file, data in batch:
            for values in iter_objects(data, f"version {file.version}"):
                for kind, value in values.items():
                    if value is None:
                        continue
                    if kind in seen:
                        if seen[kind] in wanted[kind]:
                            files.append(dumps({kind: value}))
                        seen[kind] += 1
                    elif (name := _NAMES.get(kind)) is not None:
                        small[kind, value.get(name)] = dumps({kind: value})
    # Readers treat an empty compaction as damaged, so write at least a line break.
    return b"".join(line + b"\n" for line in (*small.values(), *files)) or b"\n"


def _survivors(store: Store, commits: Sequence[LogFile]) -> Survivors:
    table = read_commits(store, commits)

    def keys(files: pa.Table) -> Any:
        paths: Any = files.column("path")
        return file_keys(paths, files.column("deletionVector"), store.root)

    return reconcile(
        keys(table.adds),
        table.adds.column(VERSION_COLUMN),
        keys(table.removes),
        table.removes.column(VERSION_COLUMN),
    )
