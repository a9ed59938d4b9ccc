"""Tables that grow old as fast as a test likes: the store, the writers and vacuum share a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from deltalog.data.scan import plan_scan
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.delete import Delete
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import execute, stage
from deltalog.operations.operation import Operation, OutcomeT_co
from deltalog.operations.vacuum import VacuumPlan, confirm_vacuum, delete_planned, plan_vacuum
from deltalog.operations.write import Write
from deltalog.protocol.table_change.change import new_table
from deltalog.schema import from_arrow_schema
from deltalog.storage.store import Store
from deltalog.testing.simulation.model import SteadyClock
from deltalog.transaction import PendingTransaction, PostCommitHookProperties
from deltalog.transaction.commit import commit, stage_and_commit
from deltalog.transaction.properties import CommitOptions
from tests.support.contexts import moved
from tests.support.logs import DictStore

_Result = TypeVar("_Result")
DAY_MS = 86_400_000
START_MS = 1_700_000_000_000
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
}


@dataclass
class AgingStore(DictStore):
    """Files get the time of the store's own clock."""

    now_ms: int = START_MS

    def put(self, path: str, data: bytes) -> None:
        """As `Store`."""
        super().put(path, data)
        self.times_ms[path] = self.now_ms


@dataclass
class AgingTable:
    """A table whose clock a test sets.

    Args:
        kept: where the files are.
        store: what reads and writes them; the same unless a test puts a faulty one before it.
    """

    kept: AgingStore = field(default_factory=AgingStore)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.store = self.kept

    def wait(self, days: float) -> None:
        """Let time pass."""
        self.kept.now_ms += round(days * DAY_MS)

    def create(
        self,
        data: Mapping[str, Any] | pa.Table,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Version 0, with rows."""
        rows = data if isinstance(data, pa.Table) else pa.table(dict(data))
        configuration = new_table(
            from_arrow_schema(rows.schema),
            partition_columns=partition_by,
            configuration=properties or {},
            created_time_ms=self.kept.now_ms,
        )
        pending = PendingTransaction(
            replace(utc_context(self.store), clock=self._clock),
            None,
            operation="WRITE",
            configuration=configuration,
        )
        stage(Write(data=rows), pending, LocalEngine())
        commit(pending, CommitOptions(hooks=NO_HOOKS))

    def append(self, data: Mapping[str, Any]) -> None:
        """More rows, in files of their own."""
        self.do(Write(data=pa.table(dict(data))))

    def delete(self, where: str | None = None) -> None:
        """Fewer rows."""
        verb = Delete.where(where)  # a version in any case
        self.run(verb.name, lambda pending: stage(verb, pending, LocalEngine()))

    def do(self, verb: Operation[OutcomeT_co]) -> OutcomeT_co:
        """Any verb, on the newest version; what it did."""
        done = execute(verb, self._timed, LocalEngine(), CommitOptions(hooks=NO_HOOKS))
        assert done.value is not None
        return done.value

    def run(self, operation: str, stage: Callable[[PendingTransaction], _Result]) -> _Result:
        """Stage and commit; what staging gave."""
        ran = stage_and_commit(
            self._timed, stage, operation=operation, options=CommitOptions(hooks=NO_HOOKS)
        )
        assert ran.value is not None or not ran.committed.skipped
        return ran.value  # type: ignore[return-value]  # some stages give None

    def _timed(self) -> Snapshot:
        return moved(self.snapshot(), clock=self._clock)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The table now, or at a version."""
        return load_snapshot(utc_context(self.store), version=version)

    def rows(self, version: int | None = None, columns: Sequence[str] | None = None) -> list[Any]:
        """Sorted rows, as tuples of the columns."""
        table = plan_scan(self.snapshot(version), columns=columns).to_table()
        return sorted(
            (tuple(row.values()) for row in table.to_pylist()),
            key=lambda row: [(value is not None, value) for value in row],
        )

    def plan(self, **options: Any) -> VacuumPlan:
        """What vacuum would delete now."""
        return plan_vacuum(
            self.snapshot(), now_ms=self.kept.now_ms, engine=LocalEngine(), **options
        )

    def vacuum(self, **options: Any) -> list[str]:
        """Delete it; the paths, sorted."""
        plan = confirm_vacuum(self.plan(**options), self.snapshot())
        delete_planned(self.store, plan, LocalEngine())
        return sorted(plan.paths)

    def data_files(self) -> list[str]:
        """Whatever is there besides the log, sorted."""
        return sorted(path for path in self.kept.files if not path.startswith("_delta_log/"))

    @property
    def _clock(self) -> SteadyClock:
        return SteadyClock(self.kept.now_ms)
