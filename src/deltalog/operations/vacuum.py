"""Vacuum: delete files that no version within the retention period needs.

This module plans which files are deleted, and defines the commits that record a vacuum in the
history. Files are deleted last, after the plan was checked against the newest version. So a failure
can leave unneeded files behind, but never deletes a needed file.

Protocol: Vacuum Protocol Check. Other behaviour follows Delta Spark (requirements D-45 … D-49).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, cast

import pyarrow as pa

from deltalog._util.argument_types import shortened
from deltalog._util.cards import ProgressCount
from deltalog._util.clock import now_ms as present_ms
from deltalog._util.escaping import name_key
from deltalog._util.json import JsonObject, dumps, loads
from deltalog._util.kernels import compute
from deltalog._util.paths import LOG_DIRECTORY, canonical_path, canonical_paths
from deltalog._util.readable import counted
from deltalog.data.scan.plan import descriptor_of
from deltalog.errors import DeltaError, InvalidInputError, MalformedLogError, ObjectNotFoundError
from deltalog.log.branches import check_main, list_branches, on_branch
from deltalog.log.context import MaintenanceOperation
from deltalog.log.listing import list_log
from deltalog.log.names import BEGINNINGS, parse_log_name
from deltalog.log.reader import (
    VERSION_COLUMN,
    concat_commits,
    parse_commits,
    read_commits,
    read_in_batches,
)
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.arguments import as_whole_number
from deltalog.operations.engine import LISTING_SCHEMA, Engine, visible
from deltalog.operations.operation import Operation
from deltalog.protocol.deletion_vectors import location
from deltalog.protocol.features.support import check_writable
from deltalog.storage.atomic import TEMPORARY_NAME
from deltalog.storage.pool import map_in_pool
from deltalog.storage.staging import STAGING_NAME
from deltalog.transaction.maintenance.checksum import check_maintenance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.log.branches import Branch
    from deltalog.log.names import LogFile
    from deltalog.log.reader import CommitTable
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction

__all__ = [
    "VACUUM_SCHEMA",
    "VacuumEnd",
    "VacuumPlan",
    "VacuumStart",
    "confirm_vacuum",
    "delete_planned",
    "plan_vacuum",
    "remember_lite",
]

logger: logging.Logger = logging.getLogger(__name__)

Mode = Literal["lite", "full", "inventory"]
START: Final = "VACUUM START"
END: Final = "VACUUM END"
UNCHECKED: Final = "pass enforce_retention_duration=False"
"""The advice for a short retention period, which SQL and the command line replace by theirs."""
_HOUR_MS: Final = 3_600_000
_LAST_VACUUM_PATH: Final = "_delta_log/_last_vacuum_info"
_LAST_VERSION: Final = "latestCommitVersionOutsideOfRetentionWindow"  # as in Delta Spark
_LAST_CUTOFF: Final = "deltalogCutoffMs"


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumPlan:
    """The files that a vacuum will delete, and its parameters.

    Args:
        files: the files to delete (schema `VACUUM_SCHEMA`), with decoded paths relative to the
            root.
        mode: how the files were found.
        cutoff_ms: only files that were removed before this time may be deleted; milliseconds since
            1970, UTC.
        keep_versions: versions whose files must not be deleted.
        retention_ms: the retention period that the caller requested; None means the table's.
        default_retention_ms: the table's retention period for removed files.
        enforces_retention: whether a retention period shorter than the table's is an error.
        swept_version: the newest version for which this vacuum deletes all files that the version
            or an older version removed. None if mode is not `lite`, if it is unknown, or if an
            earlier lite vacuum recorded a newer version.
    """

    files: pa.Table
    mode: Mode
    cutoff_ms: int
    keep_versions: tuple[int, ...]
    retention_ms: int | None
    default_retention_ms: int
    enforces_retention: bool
    swept_version: int | None

    @property
    def paths(self) -> list[str]:
        """The decoded paths of the files, relative to the root."""
        return cast("list[str]", self.files.column("path").to_pylist())

    @property
    def size_bytes(self) -> int:
        """The total size of the files whose size is known."""
        return compute.sum(self.files.column("size_bytes")).as_py() or 0

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        return {"numFilesToDelete": self.files.num_rows, "sizeOfDataToDelete": self.size_bytes}

    def result(self) -> list[str]:
        """Return the paths."""
        return self.paths


def plan_vacuum(
    snapshot: Snapshot,
    *,
    mode: Mode = "lite",
    inventory: pa.RecordBatchReader | None = None,
    retention_hours: float | None = None,
    enforce_retention_duration: bool = True,
    keep_versions: Sequence[int] = (),
    now_ms: int | None = None,
    engine: Engine,
    deletes: bool = True,
) -> VacuumPlan:
    """Find the files that a vacuum may delete, without deleting them.

    Args:
        snapshot: the newest version.
        mode: `lite` uses the log only. `full` lists every file below the root; it also finds files
            of failed writes and temporary files of killed writers. `inventory` uses a listing from
            the caller.
        inventory: the listing for mode `inventory`; see `inventory_files`.
        retention_hours: retention period of removed files; None means the property
            `delta.deletedFileRetentionDuration`.
        enforce_retention_duration: whether a retention period shorter than the table's is an error.
        keep_versions: versions whose files must not be deleted, whatever their age.
        now_ms: milliseconds since 1970, UTC; None means the current time.
        engine: lists files.
        deletes: whether the plan will be executed. If so, the table's catalog must allow a vacuum.

    Raises:
        InvalidInputError: the retention period is negative, or shorter than the table's; or the
            table's catalog does not allow vacuum.
        DeltaProtocolError: deltalog does not support a reader or writer feature of the table. This
            is checked even if the table does not have the feature vacuumProtocolCheck.
        VersionNotFoundError: a version of `keep_versions` does not exist.

    Protocol: Vacuum Protocol Check
    Cost: `lite` reads commits; `full` lists the whole table. Memory: a few bytes per file.
    """
    check_writable(
        snapshot.configuration,
        table=snapshot.store.root,
        version=snapshot.version,
        operation="vacuum",
        has_log_tail=snapshot.log_tail is not None,
    )
    check_main(
        snapshot.store,
        "vacuum",
        "its files are in the directory of main; vacuum main, which keeps those of all branches",
    )
    if deletes:
        check_maintenance(snapshot, MaintenanceOperation.DATA_CLEANUP, "vacuum")
    if (mode == "inventory") != (inventory is not None):
        raise InvalidInputError(
            "cannot vacuum: mode='inventory' needs inventory=…, and no other mode accepts it"
        )
    default_ms = snapshot.configuration.properties.deleted_file_retention_ms
    asked_ms = _as_ms(retention_hours, snapshot.store.root)
    _check_retention(snapshot, asked_ms, default_ms, enforces=enforce_retention_duration)
    now = present_ms() if now_ms is None else now_ms
    plan = VacuumPlan(
        files=VACUUM_SCHEMA.empty_table(),
        mode=mode,
        cutoff_ms=now - (default_ms if asked_ms is None else asked_ms),
        keep_versions=_as_versions(keep_versions),
        retention_ms=asked_ms,
        default_retention_ms=default_ms,
        enforces_retention=enforce_retention_duration,
        swept_version=None,
    )
    if mode == "lite":
        return confirm_vacuum(_with_old_packs(_planned_lite(snapshot, plan), snapshot), snapshot)
    store, configuration = snapshot.store, snapshot.configuration
    if inventory is not None:
        listed = inventory_files(inventory, store, configuration)
    else:
        listed = engine.list_files(store, configuration)
    files = _outside_tables(old_files(snapshot, listed, cutoff_ms=plan.cutoff_ms), snapshot)
    return confirm_vacuum(_with_old_packs(replace(plan, files=files), snapshot), snapshot)


def _with_old_packs(plan: VacuumPlan, snapshot: Snapshot) -> VacuumPlan:
    """Add the parts of the key index that no live file needs.

    Cost: one listing; nothing for a table without a key.
    """
    if snapshot.configuration.properties.key_index_columns is None:
        return plan
    try:
        from deltalog.operations.key_index import old_packs  # noqa: PLC0415  # needs NumPy
    except ModuleNotFoundError:
        return plan
    found = old_packs(snapshot, cutoff_ms=plan.cutoff_ms)
    columns: list[Any] = [
        pa.array([info.path for info in found], pa.string()),
        pa.array([info.size_bytes for info in found], pa.int64()),
        pa.array([info.modified_ms for info in found], pa.timestamp("ms", "UTC")),
        pa.repeat(pa.scalar(INDEX), len(found)),
    ]
    files = pa.concat_tables([plan.files, pa.Table.from_arrays(columns, schema=VACUUM_SCHEMA)])
    return replace(plan, files=files)


def confirm_vacuum(plan: VacuumPlan, snapshot: Snapshot) -> VacuumPlan:
    """Remove files from the plan that the newest version needs, such as restored files.

    Args:
        plan: plan for the same table.
        snapshot: the newest version.
    """
    needed = needed_files(snapshot, cutoff_ms=plan.cutoff_ms, keep_versions=plan.keep_versions)
    if needed.has_branches:  # as with `keep_versions`, a later vacuum must find the files again
        plan = replace(plan, swept_version=None)
    keep = needed.are_needed(plan.files.column("path"))
    if not compute.any(keep).as_py():
        return plan
    return replace(plan, files=plan.files.filter(compute.invert(keep)))


def delete_planned(
    store: Store,
    plan: VacuumPlan,
    engine: Engine,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Delete the files of a plan, and return their number.

    Args:
        store: store of the table.
        plan: a plan that `confirm_vacuum` has returned.
        engine: deletes files.
        progress: called after each batch with the number of deleted files and the total number of
            files. If it raises, the deletion stops.

    Raises:
        StorageError: files of a batch could not be deleted; the next vacuum finds them again.

    Cost: deletions in batches of `Engine.files_per_deletion`.
    """
    paths, together = plan.paths, engine.files_per_deletion
    for start in range(0, len(paths), together):
        some = paths[start : start + together]
        engine.delete_files(store, some)
        if progress is not None:
            progress(start + len(some), len(paths))
    return len(paths)


def remember_lite(store: Store, plan: VacuumPlan) -> None:
    """Record `swept_version` of a lite vacuum, so that the next lite vacuum skips older commits.

    The record only saves time. So a failure is logged, but not raised.
    """
    if plan.swept_version is None:
        return
    note = {_LAST_VERSION: plan.swept_version, _LAST_CUTOFF: plan.cutoff_ms}
    try:
        store.put(_LAST_VACUUM_PATH, dumps(note))
    except DeltaError as error:
        logger.warning("cannot record the last vacuum of %s: %s", store.root, error)


@dataclass(frozen=True, slots=True)
class VacuumStart(Operation[VacuumPlan]):
    """Record the start of a vacuum, with the planned deletions, in the history."""

    plan: VacuumPlan
    name: ClassVar[str] = START
    needs_latest: ClassVar[bool] = False  # the commit checks the plan again

    def stage(self, transaction: PendingTransaction, engine: Engine) -> VacuumPlan:
        """Set the retention period and the metrics of the plan in the transaction."""
        del engine
        plan = self.plan
        transaction.parameters |= {
            "retentionCheckEnabled": plan.enforces_retention,
            "defaultRetentionMillis": plan.default_retention_ms,
        }
        if plan.retention_ms is not None:
            transaction.parameters["specifiedRetentionMillis"] = plan.retention_ms
        return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumEnd(Operation["VacuumEnd"]):
    """Record the end of a vacuum in the history. The operation is also its own outcome.

    Args:
        num_deleted: number of deleted files; None if the vacuum failed.
    """

    num_deleted: int | None
    name: ClassVar[str] = END
    needs_latest: ClassVar[bool] = False

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Self:
        """Set the status in the transaction: completed or failed."""
        del engine
        transaction.parameters["status"] = "FAILED" if self.num_deleted is None else "COMPLETED"
        return self

    def metrics(self) -> dict[str, int]:
        """Return the number of deleted files under Delta Spark's name."""
        return {} if self.num_deleted is None else {"numDeletedFiles": self.num_deleted}

    def result(self) -> int | None:
        """Return the number of deleted files."""
        return self.num_deleted


def _as_ms(hours: object, root: str) -> int | None:
    if hours is None:
        return None
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not isfinite(hours):
        raise InvalidInputError(
            f"cannot vacuum {root} with retention_hours={shortened(hours)}: expected a number "
            "of hours"
        )
    return round(hours * _HOUR_MS)


def _as_versions(versions: object) -> tuple[int, ...]:
    given = list(versions) if isinstance(versions, Iterable) else [None]
    found = [number for one in given if (number := as_whole_number(one)) is not None]
    if len(found) < len(given):
        raise InvalidInputError(
            f"keep_versions: expected a list of version numbers, found {versions!r}"
        )
    return tuple(sorted(set(found)))


def _check_retention(
    snapshot: Snapshot, asked_ms: int | None, default_ms: int, *, enforces: bool
) -> None:
    if asked_ms is None:
        return
    if asked_ms < 0:
        raise InvalidInputError(
            f"cannot vacuum {snapshot.store.root}: retention_hours must not be negative"
        )
    if enforces and asked_ms < default_ms:
        raise InvalidInputError(
            f"cannot vacuum {snapshot.store.root} with a retention of "
            f"{counted(asked_ms / _HOUR_MS, 'hour')}: the table keeps removed files for "
            f"{counted(default_ms / _HOUR_MS, 'hour')} "
            "(delta.deletedFileRetentionDuration), because readers of old versions and running "
            f"writers may need them; if there are none, {UNCHECKED}"
        )


def _planned_lite(snapshot: Snapshot, plan: VacuumPlan) -> VacuumPlan:
    last = _last_lite(snapshot.store)
    files, swept = removed_files(snapshot, cutoff_ms=plan.cutoff_ms, since=last)
    # With `keep_versions`, some removed files are not deleted. Without a stored `swept_version`, a
    # later vacuum finds them again.
    is_behind = last is not None and swept is not None and swept < last.swept_version
    is_known = not plan.keep_versions and not is_behind
    return replace(plan, files=files, swept_version=swept if is_known else None)


def _last_lite(store: Store) -> LiteVacuum | None:
    """Return the record of the last lite vacuum; None if there is no record or it is unreadable."""
    try:
        node = JsonObject(loads(store.read(_LAST_VACUUM_PATH), "note"), _LAST_VACUUM_PATH)
        return LiteVacuum(
            swept_version=node.required(_LAST_VERSION, int),
            cutoff_ms=node.optional(_LAST_CUTOFF, int),
        )
    except (ObjectNotFoundError, MalformedLogError):
        return None


# --- Candidates for vacuum: from a listing of the table's directory, an inventory, or the log


_VACUUM_FIELDS: Final[list[pa.Field[Any]]] = [
    pa.field("path", pa.string(), nullable=False),
    pa.field("size_bytes", pa.int64()),
    pa.field("modification_time", pa.timestamp("ms", "UTC")),
    pa.field("reason", pa.string(), nullable=False),
]
VACUUM_SCHEMA: Final = pa.schema(_VACUUM_FIELDS)
"""The files to delete, one per row. In lite mode, modification times and some sizes are NULL."""

REMOVED: Final = "removed from the table"
UNKNOWN: Final = "not in the log"
CHANGES: Final = "change data"
VECTORS: Final = "deletion vectors"
INDEX: Final = "key index of files that are not in the table"
TEMPORARY: Final = "temporary file of a write that was cut off"

_REMOVE_COLUMNS: Final = ("path", "size", "deletionTimestamp", "deletionVector")
_GONE_KINDS: Final = (b'"remove"', b'"cdc"')
_VECTOR_NAME: Final = r"(?:^|/)deletion_vector_[0-9a-fA-F-]{36}\.bin$"
_INVENTORY_NAMES: Final = {
    "size_bytes": ("length", "size", "size_bytes"),
    "modification_time": ("modificationtime", "modification_time"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteVacuum:
    """The record of an earlier lite vacuum.

    Args:
        swept_version: a version; all files that this version or an older version removed have been
            deleted.
        cutoff_ms: a time in milliseconds since 1970, UTC; all files that were removed before this
            time have been deleted. None if unknown.
    """

    swept_version: int
    cutoff_ms: int | None


def inventory_files(
    inventory: pa.RecordBatchReader, store: Store, configuration: TableConfiguration
) -> pa.Table:
    """Return a listing of files from the caller's table, such as a bucket's inventory.

    Args:
        inventory: the listing. Columns: `path` (absolute, or relative to the root; not
            percent-encoded), `length` in bytes, `modificationTime` in milliseconds or as a
            timestamp, and optionally `isDir`. Files outside of the root are ignored.
        store: store of the table.
        configuration: configuration of the table.

    Raises:
        InvalidInputError: a column is missing.
    """
    names = {name_key(name): name for name in inventory.schema.names}
    wanted = {"path": ("path",), **_INVENTORY_NAMES}
    chosen = {
        column: next(names[text] for text in spellings if text in names)
        for column, spellings in wanted.items()
        if not names.keys().isdisjoint(spellings)
    }
    missing = [column for column in wanted if column not in chosen]
    if missing:
        raise InvalidInputError(
            f"cannot vacuum by this inventory: it lacks {', '.join(missing)}; expected the columns "
            f"path, length and modificationTime, found {', '.join(inventory.schema.names)}"
        )
    tables = [LISTING_SCHEMA.empty_table()]
    for batch in inventory:
        rows = pa.Table.from_batches([batch])
        if "isdir" in names:
            rows = rows.filter(compute.invert(rows.column(names["isdir"])))
        found: dict[str, Any] = {column: rows.column(name) for column, name in chosen.items()}
        times = found["modification_time"]
        if pa.types.is_timestamp(times.type):
            found["modification_time"] = times.cast(pa.timestamp("ms", times.type.tz), safe=False)
        texts: list[str] = found["path"].to_pylist()
        found["path"] = pa.array([canonical_path(text, store.root) for text in texts], pa.string())
        listed = pa.table(found).cast(LISTING_SCHEMA)
        tables.append(visible(confined(listed), configuration))
    return pa.concat_tables(tables)


def old_files(snapshot: Snapshot, listed: pa.Table, *, cutoff_ms: int) -> pa.Table:
    """Return the listed files that were modified before the cutoff, each with a reason.

    Newer files may belong to a commit that is still in progress.

    Returns:
        A table with `VACUUM_SCHEMA`.
    """
    times = listed.column("modification_time")
    old = listed.filter(compute.less(times, pa.scalar(cutoff_ms, pa.int64())))
    paths = old.column("path")
    removed = snapshot.tombstones(["path"]).column("path")
    known: Any = canonical_paths(removed, snapshot.store.root)
    reasons = compute.if_else(
        compute.is_in(paths, value_set=known.combine_chunks()), REMOVED, UNKNOWN
    )
    reasons = compute.if_else(compute.match_substring_regex(paths, _VECTOR_NAME), VECTORS, reasons)
    reasons = compute.if_else(compute.starts_with(paths, "_change_data/"), CHANGES, reasons)
    left = compute.match_substring_regex(paths, f"(?:^|/){TEMPORARY_NAME}|^{STAGING_NAME}/")
    reasons = compute.if_else(left, TEMPORARY, reasons)
    columns: list[Any] = [
        paths,
        old.column("size_bytes"),
        old.column("modification_time").cast(pa.timestamp("ms", "UTC")),
        reasons,
    ]
    return pa.Table.from_arrays(columns, schema=VACUUM_SCHEMA)


def _outside_tables(files: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Return the files that are not in the directory of another table below the root.

    Cost: one listing for each directory that has such files, but no file of the table, and is not
    the directory of a partition.
    """
    found = _directories(files.column("path"))
    if found:
        live = canonical_paths(snapshot.files(["path"]).column("path"), snapshot.store.root)
        found -= _directories(live)
    tables = [directory for directory in sorted(found) if _is_table(snapshot.store, directory)]
    if not tables:
        return files
    logger.info("vacuum of %s leaves out the tables %s in it", snapshot.store.root, tables)
    inside = "|".join(map(re.escape, tables))
    is_inside = compute.match_substring_regex(files.column("path"), f"^(?:{inside})/")
    return files.filter(compute.invert(is_inside))


def _directories(paths: Any) -> set[str]:
    """Return all directories above files, except those of partitions."""
    nearest: Any = compute.unique(compute.replace_substring_regex(paths, "/?[^/]*$", ""))
    return {
        above
        for directory in nearest.to_pylist()
        for above in accumulate(directory.split("/"), "{}/{}".format)
        if above and "=" not in above.rpartition("/")[2]
    }


def _is_table(store: Store, directory: str) -> bool:
    files = map(parse_log_name, store.list_from(f"{directory}/{LOG_DIRECTORY}", ""))
    return any(file is not None and file.kind in BEGINNINGS for file in files)


def removed_files(
    snapshot: Snapshot, *, cutoff_ms: int, since: LiteVacuum | None
) -> tuple[pa.Table, int | None]:
    """Return the files of expired tombstones in the log, and old change data files.

    Checkpoints do not contain expired tombstones, so commits before the checkpoint are read, too.

    Args:
        snapshot: the newest version.
        cutoff_ms: tombstones from before this time have expired; milliseconds since 1970, UTC.
        since: the last lite vacuum; files that it deleted are not returned. None if there is none.

    Returns:
        The files (schema `VACUUM_SCHEMA`, distinct paths below the root), and the newest version
        whose tombstones have all expired; None if there is no such version.

    Cost: reads the existing commits since that vacuum; lists no data files.
    """
    listing = list_log(
        snapshot.store,
        from_version=0 if since is None else since.swept_version,
        log_tail=snapshot.log_tail,
    )
    commits = {
        version: file for version, file in listing.commits.items() if version <= snapshot.version
    }
    older = _read_behind_checkpoint(snapshot, commits)
    removes = pa.concat_tables(
        [snapshot.tombstones(_REMOVE_COLUMNS), older.removes.select(_REMOVE_COLUMNS)]
    )
    old_versions = list(
        takewhile(lambda version: commits[version].info.modified_ms < cutoff_ms, sorted(commits))
    )
    cdc = pa.concat_tables([older.cdc, snapshot.read_log(lambda state: state.commits.cdc)])
    is_old = compute.is_in(cdc.column(VERSION_COLUMN), value_set=pa.array(old_versions, pa.int64()))
    files = _gone(
        snapshot.store.root,
        _expired(removes, cutoff_ms, since),
        cdc.filter(is_old),
        may_repeat=older.removes.num_rows > 0,
    )
    # A malformed log may contain a `remove` for a file in `_delta_log`, which must not be deleted.
    return visible(files, snapshot.configuration), max(old_versions, default=None)


def _read_behind_checkpoint(snapshot: Snapshot, commits: Mapping[int, LogFile]) -> CommitTable:
    """Read actions from the commits before the checkpoint that are not in the checkpoint.

    These are tombstones that had expired when the checkpoint was written, and all `cdc` actions.
    """
    checkpoint = snapshot.segment.checkpoint
    if checkpoint is None:
        return read_commits(snapshot.store, [])
    written_ms = min(file.modified_ms for file in checkpoint.files)
    forgotten_ms = written_ms - snapshot.configuration.properties.deleted_file_retention_ms
    has_changes = snapshot.configuration.supports("changeDataFeed")
    files = [
        file
        for version, file in commits.items()
        if version <= checkpoint.version and (has_changes or file.info.modified_ms < forgotten_ms)
    ]
    return concat_commits(
        [
            parse_commits([(file, _lines_with(_GONE_KINDS, data)) for file, data in batch])
            for batch in read_in_batches(snapshot.store, files)
        ]
    )


def _lines_with(words: Sequence[bytes], data: bytes) -> bytes:
    """Return the lines that contain any of the words, so that most commits need not be parsed."""
    if not any(word in data for word in words):
        return b""
    lines = data.split(b"\n")
    return b"\n".join(line for line in lines if any(word in line for word in words))


def _expired(removes: pa.Table, cutoff_ms: int, since: LiteVacuum | None) -> pa.Table:
    times = deletion_times(removes)
    expired = compute.less(times, pa.scalar(cutoff_ms, pa.int64()))
    if since is not None and since.cutoff_ms is not None:
        # A `remove` without a timestamp may be newer than the last vacuum, so include it.
        later = compute.greater_equal(times, pa.scalar(since.cutoff_ms, pa.int64()))
        timeless = removes.column("deletionTimestamp").is_null()
        expired = compute.and_(expired, compute.or_(later, timeless))
    return removes.filter(expired)


def _gone(root: str, removes: pa.Table, changes: pa.Table, *, may_repeat: bool) -> pa.Table:
    vectors = vector_paths(removes.column("deletionVector"), root)
    parts = [
        _with_reason(canonical_paths(removes.column("path"), root), removes["size"], REMOVED),
        _with_reason(canonical_paths(changes.column("path"), root), changes["size"], CHANGES),
        _with_reason(vectors, pa.nulls(len(vectors), pa.int64()), VECTORS),
    ]
    files = pa.concat_tables(parts)
    # Two tombstones of a snapshot have the same path only if their deletion vectors differ.
    has_vectors = removes.column("deletionVector").null_count < removes.num_rows
    return confined(_distinct(files) if may_repeat or has_vectors else files)


def confined(files: pa.Table) -> pa.Table:
    """Return the files whose canonical paths are below the root."""
    paths = files.column("path")
    odd = compute.match_substring_regex(paths, r"^[A-Za-z][A-Za-z0-9+.-]*:/|\.\.|[\\\x00]|^/|^$")
    return files.filter(compute.invert(odd)) if compute.any(odd).as_py() else files


def _with_reason(paths: Any, sizes: Any, reason: str) -> pa.Table:
    columns: list[Any] = [
        paths,
        sizes,
        pa.nulls(len(paths), pa.timestamp("ms", "UTC")),
        pa.repeat(pa.scalar(reason), len(paths)),
    ]
    return pa.Table.from_arrays(columns, schema=VACUUM_SCHEMA)


def _distinct(files: pa.Table) -> pa.Table:
    """Return the first row of each path."""
    codes: Any = files.column("path").combine_chunks().dictionary_encode().indices
    if not len(codes):
        return files
    highest = compute.cumulative_max(codes)
    first = pa.concat_arrays([pa.array([True]), compute.greater(highest[1:], highest[:-1])])
    return files.filter(first)


# --- Files that versions still need: data files and deletion vector files


Paths = pa.StringArray
FILE_COLUMNS: Final = ("path", "deletionVector")
_VECTOR_FILE: Final = ("storageType", "pathOrInlineDv")


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededFiles:
    """Files that must not be deleted.

    Args:
        paths: the canonical paths of these files.
        names: the file names of those paths that are outside of the table's root. Such a path may
            be another spelling of a path below the root, so any file of the same name is needed.
        has_branches: whether files of branches are among them.
    """

    paths: Paths
    names: Paths
    has_branches: bool = False

    def are_needed(self, paths: Any) -> Any:
        """Return for each canonical path below the root whether its file must not be deleted."""
        needed = compute.is_in(paths, value_set=self.paths)
        if not len(self.names):
            return needed
        return compute.or_(needed, compute.is_in(names_of(paths), value_set=self.names))


def needed_files(
    snapshot: Snapshot, *, cutoff_ms: int, keep_versions: Sequence[int] = ()
) -> NeededFiles:
    """Return the files of live adds, of unexpired tombstones, and of `keep_versions`.

    A tombstone without a timestamp has expired. A tombstone whose timestamp equals the cutoff has
    not expired (requirement D-17).

    Args:
        snapshot: the newest version.
        cutoff_ms: tombstones from before this time have expired; milliseconds since 1970, UTC.
        keep_versions: versions of the same table that must remain readable.

    Raises:
        VersionNotFoundError, MalformedLogError: a version of `keep_versions` cannot be read.
        DeltaProtocolError: a deletion vector has an unknown storage type.

    Cost: reads the columns for paths and deletion vectors from the log. Python objects exist only
    for distinct deletion vector files.
    """
    root = snapshot.store.root
    now_ms = snapshot.context.clock.now_ms()
    branches = [one for one in list_branches(snapshot.store) if not one.is_abandoned(now_ms)]
    tombstones = snapshot.tombstones([*FILE_COLUMNS, "deletionTimestamp"])
    young = compute.greater_equal(deletion_times(tombstones), pa.scalar(cutoff_ms, pa.int64()))
    files = [snapshot.files(FILE_COLUMNS), tombstones.filter(young).select(FILE_COLUMNS)]
    for version in keep_versions:
        kept = load_snapshot(snapshot.context, version=version)
        files += [kept.files(FILE_COLUMNS), _changes_of(kept)]
    files += [table for branch in branches for table in _files_of_branch(snapshot, branch)]
    named = paths_of(pa.concat_tables(files), root)
    outside = compute.match_substring_regex(named, "^[A-Za-z][A-Za-z0-9+.-]*:/")
    return NeededFiles(
        paths=named, names=names_of(named.filter(outside)), has_branches=bool(branches)
    )


def _files_of_branch(snapshot: Snapshot, branch: Branch) -> Iterator[pa.Table]:
    """Yield the files of a branch's last version, and of its earlier versions.

    Raises:
        DeltaError: the branch cannot be read, so its files are not known.
    """
    try:
        head = load_snapshot(on_branch(snapshot.context, branch))
        yield head.files(FILE_COLUMNS)
        yield head.tombstones(FILE_COLUMNS)
    except DeltaError as error:
        error.add_note(
            f"while looking for the files of the branch {branch.name!r} of {snapshot.store.root}; "
            "if it cannot be read, drop it: branches() lists it, and drop_branch() deletes it"
        )
        raise


def paths_of(files: pa.Table, root: str) -> Paths:
    """Return canonical paths of data files and of their deletion vectors' files.

    Args:
        files: files with the columns `FILE_COLUMNS`, as in the log.
        root: the table's location.
    """
    data: Any = canonical_paths(files.column("path"), root)
    vectors = vector_paths(files.column("deletionVector"), root)
    found: pa.StringArray = pa.concat_arrays([*data.chunks, vectors])
    return found


def vector_paths(vectors: Any, root: str) -> Paths:
    """Return distinct canonical paths of deletion vector files; inline vectors are ignored."""
    present = vectors.filter(vectors.is_valid())
    if not len(present):
        return pa.array([], pa.string())
    table = pa.table({name: compute.struct_field(present, name) for name in _VECTOR_FILE})
    table = table.filter(compute.not_equal(table.column("storageType"), "i"))
    distinct = table.group_by(list(_VECTOR_FILE), use_threads=False).aggregate([])
    found = {vector_path(row) for row in distinct.to_pylist()}
    return pa.array([canonical_path(path, root) for path in found if path], pa.string())


def vector_path(row: dict[str, Any]) -> str | None:
    """Return the decoded path of one deletion vector's file; None if it is inline.

    Args:
        row: value of a `deletionVector` column. Only `storageType` and `pathOrInlineDv` are used.
    """
    descriptor = descriptor_of({"offset": None, "sizeInBytes": 0, "cardinality": 0, **row})
    return None if descriptor is None else location(descriptor)


def deletion_times(tombstones: pa.Table) -> Any:
    """Return the time of each removal; 0 if `deletionTimestamp` is absent (requirement D-17)."""
    return compute.coalesce(tombstones.column("deletionTimestamp"), pa.scalar(0, pa.int64()))


def names_of(paths: Any) -> Any:
    """Return the file name of each path."""
    return compute.replace_substring_regex(paths, "(?s)^.*/", "")


def existing(
    snapshot: Snapshot, paths: Iterable[str], progress: ProgressCount | None = None
) -> set[str]:
    """Return the decoded paths at which a file exists.

    Args:
        snapshot: a version of the table.
        paths: decoded paths.
        progress: counts the paths.

    Cost: one request for each path, several at a time.
    """
    asked = sorted(paths)
    store = snapshot.store
    progress = progress or ProgressCount(None)
    progress.expect(len(asked))

    def is_there(path: str) -> bool:
        try:
            store.stat(path)
            found = True
        except ObjectNotFoundError:
            found = False
        progress.done()
        return found

    there = map_in_pool(is_there, asked, batch_size=16)
    return {path for path, found in zip(asked, there, strict=True) if found}


def _changes_of(kept: Snapshot) -> pa.Table:
    """Return the change data files and removed files of a version.

    They are needed to read the version's change data feed. Empty if the feed is not enabled.
    """
    empty = kept.files(FILE_COLUMNS).slice(0, 0)
    if not kept.configuration.change_data_feed_enabled:
        return empty
    listing = list_log(kept.store, from_version=kept.version, log_tail=kept.log_tail)
    commit = listing.commits.get(kept.version)
    if commit is None:
        return empty
    actions = read_commits(kept.store, [commit])
    changes = actions.cdc.select(["path"]).append_column(
        "deletionVector", pa.nulls(actions.cdc.num_rows, empty.schema.field("deletionVector").type)
    )
    return pa.concat_tables([actions.removes.select(FILE_COLUMNS), changes])
