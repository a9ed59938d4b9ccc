"""Run a vacuum: plan, commit its start, check the plan again, delete files, commit its end.

Owns the order; each step is a function or verb of `verbs.vacuum`.

Protocol: Vacuum Protocol Check
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.progress import shown
from deltalog.transaction.properties import USUAL
from deltalog.verbs.vacuum import (
    VacuumEnd,
    VacuumStart,
    confirm_vacuum,
    delete_planned,
    plan_vacuum,
    remember_lite,
)
from deltalog.write.source import open_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.progress import Progress
    from deltalog.table.target import LatestTable
    from deltalog.transaction import CommitOptions
    from deltalog.verbs.vacuum import VacuumPlan


class TableVacuum:
    """Vacuums of one table; `DeltaTable.vacuum` explains the arguments.

    Args:
        table: that shows the latest version.
    """

    def __init__(self, table: LatestTable) -> None:
        self._table = table

    def plan(
        self,
        retention_hours: float | None = None,
        *,
        enforce_retention_duration: bool = True,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: object = None,
    ) -> VacuumPlan:
        """Return the files that would be deleted, each with a reason."""
        if full and inventory is not None:
            raise InvalidInputError("full lists files, an inventory replaces that: pass one")
        self._table.update_incremental(
            same_table=True
        )  # an old version does not know files that newer ones need
        return plan_vacuum(
            self._table.snapshot,
            mode="full" if full else "lite" if inventory is None else "inventory",
            inventory=None if inventory is None else open_batches(inventory),
            retention_hours=retention_hours,
            enforce_retention_duration=enforce_retention_duration,
            keep_versions=() if keep_versions is None else keep_versions,
            engine=self._table.engine,
        )

    def carry_out(
        self,
        plan: VacuumPlan,
        options: CommitOptions = USUAL,
        *,
        progress: Progress | None = None,
    ) -> list[str]:
        """Delete the planned files that no newer version needs; return their paths."""
        store = self._table.snapshot.store
        if not plan.files.num_rows:
            remember_lite(store, plan)
            return []
        self._table.carry_out(VacuumStart(plan), options)
        plan = confirm_vacuum(plan, self._table.snapshot)
        try:
            with shown(progress, "deleting files") as tell:
                deleted = delete_planned(store, plan, self._table.engine, progress=tell)
        except BaseException:
            with suppress(DeltaError):  # raise the original error, not this one
                self._table.carry_out(VacuumEnd(num_deleted=None), options)
            raise
        self._table.carry_out(VacuumEnd(num_deleted=deleted), options)
        remember_lite(store, plan)
        return plan.paths
