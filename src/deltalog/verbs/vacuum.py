"""Vacuum: delete files that no version within the retention period needs.

Owns which files are deleted, in which order of steps, and what is recorded in the history. Files
are deleted last, after the plan was checked again with the newest version; so a failure can leave
unneeded files behind, but never deletes a needed one.

Protocol: Vacuum Protocol Check; otherwise Delta Spark's vacuum (ledger D-45 … D-49)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, cast

from deltalog._json import JsonObject, dumps, loads
from deltalog.catalog import MaintenanceOperation
from deltalog.clock import now_ms as present_ms
from deltalog.errors import DeltaError, InvalidInputError, MalformedLogError, ObjectNotFoundError
from deltalog.features.support import check_writable
from deltalog.kernels import compute
from deltalog.upkeep.permission import check_maintenance
from deltalog.verbs.needed_files import needed_files
from deltalog.verbs.vacuum_candidates import (
    VACUUM_SCHEMA,
    LiteVacuum,
    inventory_files,
    old_files,
    removed_files,
)
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
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
_HOUR_MS: Final = 3_600_000
_LAST_VACUUM_PATH: Final = "_delta_log/_last_vacuum_info"
_LAST_VERSION: Final = "latestCommitVersionOutsideOfRetentionWindow"  # Delta Spark's
_LAST_CUTOFF: Final = "deltalogCutoffMs"


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumPlan:
    """The files that a vacuum will delete, and its parameters.

    Args:
        files: with `VACUUM_SCHEMA`; paths are relative to the root and decoded.
        mode: how they were found.
        cutoff_ms: files that were removed earlier may be deleted; milliseconds since 1970, UTC.
        keep_versions: versions that stay readable.
        retention_ms: how long removed files are kept, if the caller gave it.
        default_retention_ms: how long the table's properties keep them.
        enforces_retention: whether a retention shorter than the table's raises.
        swept_version: the newest version up to which a lite vacuum has deleted all removed files
            afterwards; None if unknown, or if an earlier one came further.
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
        """The files' decoded paths, relative to the root."""
        return cast("list[str]", self.files.column("path").to_pylist())

    @property
    def size_bytes(self) -> int:
        """The size of the files together, as far as it is known."""
        return compute.sum(self.files.column("size_bytes")).as_py() or 0

    def metrics(self) -> dict[str, int]:
        """Return the metrics as Delta Spark's operationMetrics."""
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
    """Find the files that may be deleted; nothing is deleted.

    Args:
        snapshot: the newest version.
        mode: `lite` uses the log only, `full` lists every file below the root and also finds files
            of failed writes and temporary ones of killed writers, `inventory` takes such a listing
            from the caller.
        inventory: for that mode; see `inventory_files`.
        retention_hours: how long removed files are kept; None is
            `delta.deletedFileRetentionDuration`.
        enforce_retention_duration: whether a retention shorter than the table's raises.
        keep_versions: versions that stay readable, whatever their age.
        now_ms: milliseconds since 1970, UTC; None is the current time.
        engine: lists files.
        deletes: whether the plan is to be carried out, which the table's catalog must allow.

    Raises:
        InvalidInputError: the retention is negative, or shorter than the table's; or the table's
            catalog does not allow it.
        DeltaProtocolError: deltalog does not support a reader or writer feature of the table. Both
            are checked, whether or not the table has the feature vacuumProtocolCheck.
        VersionNotFoundError: a version to keep does not exist.

    Protocol: Vacuum Protocol Check
    Cost: lite reads commits; full lists the whole table. Memory: a few bytes per file.
    """
    check_writable(
        snapshot.configuration,
        table=snapshot.store.root,
        version=snapshot.version,
        operation="vacuum",
        has_log_tail=snapshot.log_tail is not None,
    )
    if deletes:
        check_maintenance(snapshot, MaintenanceOperation.DATA_CLEANUP, "vacuum")
    if (mode == "inventory") != (inventory is not None):
        raise InvalidInputError("an inventory goes with mode='inventory', and with no other")
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
        return confirm_vacuum(_planned_lite(snapshot, plan), snapshot)
    store, configuration = snapshot.store, snapshot.configuration
    if inventory is not None:
        listed = inventory_files(inventory, store, configuration)
    else:
        listed = engine.list_files(store, configuration)
    files = old_files(snapshot, listed, cutoff_ms=plan.cutoff_ms)
    return confirm_vacuum(replace(plan, files=files), snapshot)


def confirm_vacuum(plan: VacuumPlan, snapshot: Snapshot) -> VacuumPlan:
    """Return the plan without files that the newest version needs, such as restored ones.

    Args:
        plan: of the same table.
        snapshot: the newest version.
    """
    needed = needed_files(snapshot, cutoff_ms=plan.cutoff_ms, keep_versions=plan.keep_versions)
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
        store: of the table.
        plan: from `confirm_vacuum`.
        engine: deletes files.
        progress: called after each batch with the numbers of deleted files and of all files; an
            exception from it ends the deletion.

    Raises:
        StorageError: a batch failed; the next vacuum finds the files that are left.

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
    """Record how far a lite vacuum came, so that the next one need not read those commits.

    The record only saves time, so a failure is only logged.
    """
    if plan.swept_version is None:
        return
    note = {_LAST_VERSION: plan.swept_version, _LAST_CUTOFF: plan.cutoff_ms}
    try:
        store.put(_LAST_VACUUM_PATH, dumps(note))
    except DeltaError as error:
        logger.warning("cannot note the last vacuum of %s: %s", store.root, error)


@dataclass(frozen=True, slots=True)
class VacuumStart(Verb[VacuumPlan]):
    """Record in the history what will be deleted."""

    plan: VacuumPlan
    name: ClassVar[str] = START
    needs_latest: ClassVar[bool] = False  # the plan is checked again with what the commit finds

    def stage(self, transaction: PendingTransaction, engine: Engine) -> VacuumPlan:
        """Record the retention."""
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
class VacuumEnd(Verb["VacuumEnd"]):
    """Record in the history how a vacuum ended; the verb is its own outcome.

    Args:
        num_deleted: number of deleted files; None if the vacuum failed.
    """

    num_deleted: int | None
    name: ClassVar[str] = END
    needs_latest: ClassVar[bool] = False

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Self:
        """Record the status."""
        del engine
        transaction.parameters["status"] = "FAILED" if self.num_deleted is None else "COMPLETED"
        return self

    def metrics(self) -> dict[str, int]:
        """Return the number of deleted files as Delta Spark's operationMetrics."""
        return {} if self.num_deleted is None else {"numDeletedFiles": self.num_deleted}

    def result(self) -> int | None:
        """Return the number of deleted files."""
        return self.num_deleted


def _as_ms(hours: object, root: str) -> int | None:
    if hours is None:
        return None
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not isfinite(hours):
        raise InvalidInputError(
            f"cannot vacuum {root} with retention_hours={hours!r}: expected a number of hours"
        )
    return round(hours * _HOUR_MS)


def _as_versions(versions: object) -> tuple[int, ...]:
    found: list[Any] = list(versions) if isinstance(versions, Iterable) else [None]
    if not all(type(version) is int for version in found):
        raise InvalidInputError(f"keep_versions: expected a list of numbers, found {versions!r}")
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
            f"cannot vacuum {snapshot.store.root} with a retention of {asked_ms / _HOUR_MS:g} "
            f"hours: the table keeps removed files for {default_ms / _HOUR_MS:g} "
            "(delta.deletedFileRetentionDuration), and readers of old versions and writers under "
            "way may need them; if there are none, pass enforce_retention_duration=False"
        )


def _planned_lite(snapshot: Snapshot, plan: VacuumPlan) -> VacuumPlan:
    last = _last_lite(snapshot.store)
    files, swept = removed_files(snapshot, cutoff_ms=plan.cutoff_ms, since=last)
    # Files that were kept for a version are left, so a later vacuum must read these commits again.
    is_behind = last is not None and swept is not None and swept < last.swept_version
    is_known = not plan.keep_versions and not is_behind
    return replace(plan, files=files, swept_version=swept if is_known else None)


def _last_lite(store: Store) -> LiteVacuum | None:
    """Return how far an earlier lite vacuum came; None if the record is absent or unreadable."""
    try:
        node = JsonObject(loads(store.read(_LAST_VACUUM_PATH), "note"), _LAST_VACUUM_PATH)
        return LiteVacuum(
            swept_version=node.required(_LAST_VERSION, int),
            cutoff_ms=node.optional(_LAST_CUTOFF, int),
        )
    except (ObjectNotFoundError, MalformedLogError):
        return None
