"""Writers and readers over a store that fails, in every order: the table stays right.

Each history interleaves a few workers at every store call, harms some calls, and looks at the log
after each step: versions without a hole, never changed; every acknowledged operation once, every
failed one never; the rows at every version are what the operations, one after the other, make.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow.compute as pc
import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from deltalog._util.json import iter_objects
from deltalog.errors import CommitOutcomeUnknownError, DeltaError
from deltalog.expressions import as_expression, resolve_predicate
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions import AddFile
from deltalog.storage.store import Store
from deltalog.testing.simulation.model import SteadyClock
from deltalog.testing.simulation.workers import (
    HARMS,
    CommonStore,
    CrashedError,
    Fate,
    Worker,
    free_cached_properties,
)
from deltalog.transaction import (
    AppTransaction,
    CommitProperties,
    PendingTransaction,
    Ran,
    stage_and_commit,
)
from deltalog.transaction.properties import CommitOptions
from tests.support import logs
from tests.support.contexts import moved

pytestmark = pytest.mark.slow("writers are interleaved in many ways")

HISTORIES = int(os.environ.get("DELTALOG_HISTORIES", "120"))
PARTS = 2
WORKERS = 4
compute: Any = pc  # the stubs know no map column
free_cached_properties()
NAMES = {"append": "WRITE", "once": "WRITE", "delete": "DELETE", "compact": "OPTIMIZE"}
SLOTS = st.integers(0, WORKERS - 1)
KINDS = st.sampled_from(["append", "append", "once", "delete", "compact", "read"])
# Most calls go well: a history of failures alone would never get anywhere.
FATES = st.sampled_from([Fate.FINE] * 16 + HARMS)
Rows = frozenset[int]
Kind = Literal["append", "once", "delete", "compact", "read"]


@dataclass
class Operation:
    """What a worker does, and what has come of it."""

    number: int
    kind: Kind
    rows: Rows
    partition: int
    app_version: int
    worker: Worker = field(init=False)

    @property
    def outcome(self) -> Literal["running", "made", "skipped", "failed", "unknown"]:
        error = self.worker.error
        if not self.worker.is_done:
            return "running"
        if error is None:
            result = self.worker.result
            return "skipped" if isinstance(result, Ran) and result.committed.skipped else "made"
        if isinstance(error, CommitOutcomeUnknownError | CrashedError):
            return "unknown"
        assert isinstance(error, DeltaError), error
        return "failed"

    def applied_to(self, rows: Rows) -> Rows:
        """The rows of the table after the operation."""
        if self.kind in {"append", "once"}:
            assert not self.rows & rows, "rows that are there already"
            return rows | self.rows
        if self.kind == "delete":
            return frozenset(row for row in rows if row % 2 != self.partition)
        return rows


def _file(name: str, rows: Rows, partition: int, *, data_change: bool = True) -> AddFile:
    return AddFile(
        path=f"p={partition}/{name}.parquet",
        partition_values={"p": str(partition)},
        size_bytes=1,
        modification_time_ms=1,
        data_change=data_change,
        stats=f'{{"numRecords":{len(rows)}}}',
        tags={"rows": ",".join(map(str, sorted(rows)))},
    )


def _rows_of(tags: Any) -> Rows:
    return frozenset(int(row) for row in dict(tags)["rows"].split(",") if row)


class TimedStore(logs.DictStore):
    """Files have the time of a clock."""

    def __init__(self, clock: SteadyClock) -> None:
        super().__init__()
        self.clock = clock

    def put(self, path: str, data: bytes) -> None:
        """As `Store`."""
        super().put(path, data)
        self.times_ms[path] = self.clock.now_ms()


class Histories(RuleBasedStateMachine):
    """The log, the workers, and the model."""

    @initialize(
        dialect=st.sampled_from(["none", "rowTracking", "rowIds"]),
        has_own_times=st.booleans(),
        checkpoint_interval=st.sampled_from([2, 3, 10]),
        kinds=st.lists(KINDS, min_size=2, max_size=WORKERS),
    )
    def create(
        self, dialect: str, has_own_times: bool, checkpoint_interval: int, kinds: list[Kind]
    ) -> None:
        features = ["domainMetadata"] if dialect == "rowTracking" else []
        features += [] if dialect == "none" else [dialect]
        features += ["inCommitTimestamp"] if has_own_times else []
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
        configuration = {"delta.checkpointInterval": str(checkpoint_interval)}
        if has_own_times:
            configuration["delta.enableInCommitTimestamps"] = "true"
        self.clock = SteadyClock()
        store = TimedStore(self.clock)
        info = {"commitInfo": {"inCommitTimestamp": 1_700_000_000_000, "operation": "CREATE TABLE"}}
        metadata = logs.metadata(partitionColumns=["p"], configuration=configuration)
        logs.commit(store, 0, info, {"protocol": protocol}, metadata)
        self.store = store
        self.shared = CommonStore(store)
        self.operations: list[Operation] = []
        self.workers: dict[int, Operation] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self.next_row = 0
        self.seen: tuple[list[bytes], int] = ([], -1)
        self.states: list[Rows] = []
        self.has_own_times = has_own_times
        self.dialect = dialect
        for slot, kind in enumerate(kinds):
            self.start(slot, kind, slot % 2, 1 + slot % 3, is_stale=False)

    # What workers do.

    @rule(
        slot=SLOTS,
        kind=KINDS,
        partition=st.integers(0, 1),
        app_version=st.integers(1, 3),
        is_stale=st.booleans(),
    )
    def start(
        self, slot: int, kind: Kind, partition: int, app_version: int, is_stale: bool
    ) -> None:
        running = self.workers.get(slot)
        if running is not None:
            running.worker.finish()
            self._note(slot)
        rows: Rows = frozenset()
        if kind == "append":
            self.next_row += 2
            rows = frozenset({1000 + self.next_row + partition})
        elif kind == "once":  # the rows of a step are the same, whoever takes it
            rows, partition = frozenset({2 * app_version}), 0
        operation = Operation(len(self.operations), kind, rows, partition, app_version)
        known = self.snapshots.get(slot) if is_stale else None
        operation.worker = Worker(
            self.shared,
            (lambda store: load_snapshot(utc_context(store)))
            if kind == "read"
            else lambda store: self._write(store, operation, known),
        )
        self.operations.append(operation)
        self.workers[slot] = operation

    def _write(self, store: Store, operation: Operation, known: Snapshot | None) -> Ran[None]:
        kind, number, partition = operation.kind, operation.number, operation.partition
        snapshots = iter([known] if known is not None else [])

        def load() -> Snapshot:
            found = next(snapshots, None)
            if found is None:
                found = load_snapshot(utc_context(store))
            found._state.store = store
            return moved(found, store=store, clock=self.clock)

        def stage(pending: PendingTransaction) -> None:
            snapshot = pending.snapshot
            assert snapshot is not None
            if kind in {"append", "once"}:
                name = f"{number}-v{snapshot.version}"
                pending.add_files([_file(name, operation.rows, partition)])
                return
            files = snapshot.files()
            schema = snapshot.configuration.schema
            predicate = resolve_predicate(as_expression(f"p = '{partition}'", schema), schema)
            values: Any = pc.map_lookup(files.column("partitionValues"), "p", "first")
            files = files.filter(compute.equal(values, str(partition)))
            is_delete = kind == "delete"
            pending.record_read(predicate, files)
            pending.remove_files(files, data_change=is_delete)
            if kind == "compact" and files.num_rows:
                kept = frozenset[int]().union(
                    *(_rows_of(tags) for tags in files.column("tags").to_pylist())
                )
                name = f"{number}-v{snapshot.version}"
                pending.add_files([_file(name, kept, partition, data_change=False)])

        once = [AppTransaction("app", operation.app_version)] if kind == "once" else None
        return stage_and_commit(
            load,
            stage,
            operation=NAMES[kind],
            options=CommitOptions(
                properties=CommitProperties({"number": str(number)}, app_transactions=once),
                on_conflict="retry" if number % 2 else "raise",
            ),
        )

    # What happens to them.

    @rule(events=st.lists(st.tuples(SLOTS, FATES), min_size=5, max_size=25))
    def steps(self, events: list[tuple[int, Fate]]) -> None:
        for slot, fate in events:
            operation = self.workers.get(slot)
            if operation is not None and not operation.worker.is_done:
                operation.worker.step(fate)
                self._note(slot)
                self.log_is_valid()

    @precondition(lambda self: self.shared.delayed)
    @rule()
    def deliver(self) -> None:
        self.shared.deliver()

    def _note(self, slot: int) -> None:
        """A writer goes on with the snapshot that its commit gave."""
        operation = self.workers[slot]
        if not operation.worker.is_done or operation.worker.error is not None:
            return
        result = operation.worker.result
        snapshot = result.committed.snapshot if isinstance(result, Ran) else result
        moved(snapshot, store=self.store)._state.store = self.store
        self.snapshots[slot] = snapshot
        self._check_snapshot(snapshot)

    # What must hold.

    @invariant()
    def log_is_valid(self) -> None:
        if not hasattr(self, "store"):
            return
        commits = self._commits()
        done = sum(operation.worker.is_done for operation in self.operations)
        if (commits, done) == self.seen:
            return
        assert commits[: len(self.seen[0])] == self.seen[0], "a commit was changed"
        self.seen = commits, done
        self.states = list(self._replay(commits))

    def _commits(self) -> list[bytes]:
        found: list[bytes] = []
        while commit_path(len(found)) in self.store.files:
            found.append(self.store.files[commit_path(len(found))])
        count = sum(path.endswith(".json") for path in self.store.files)
        assert len(found) == count, "versions with a hole"
        return found

    def _replay(self, commits: list[bytes]) -> Iterator[Rows]:
        live: dict[str, Rows] = {}
        rows: Rows = frozenset()
        made: dict[int, int] = {}
        ids: set[int] = set()
        last_time_ms = 0
        for version, data in enumerate(commits):
            info, *rest = iter_objects(data)
            info = info["commitInfo"]
            if self.has_own_times:
                assert info["inCommitTimestamp"] > last_time_ms
                last_time_ms = info["inCommitTimestamp"]
            self._apply(rest, live, ids)
            if version:
                number = int(info["number"])
                assert number not in made, "an operation was committed twice"
                made[number] = version
                rows = self.operations[number].applied_to(rows)
            assert sorted(row for found in live.values() for row in found) == sorted(rows)
            yield rows
        self._check_outcomes(made)

    def _apply(self, actions: list[Any], live: dict[str, Rows], ids: set[int]) -> None:
        for action in actions:
            if "remove" in action:
                assert action["remove"]["path"] in live, "a file that was not there was removed"
                del live[action["remove"]["path"]]
        for action in actions:
            add = action.get("add")
            if add is None:
                continue
            assert add["path"] not in live
            live[add["path"]] = found = _rows_of(add["tags"])
            if self.dialect != "none":
                given = set(range(add["baseRowId"], add["baseRowId"] + len(found)))
                assert not given & ids, "a row id was given twice"
                ids |= given

    def _check_outcomes(self, made: dict[int, int]) -> None:
        once: dict[int, list[int]] = {}
        for operation in self.operations:
            if operation.outcome == "made" and operation.kind != "read":
                assert operation.number in made, "an acknowledged commit is not there"
                assert operation.worker.result.committed.version == made[operation.number]
            if operation.outcome in {"failed", "skipped"}:
                assert operation.number not in made, "a failed commit is there"
            if operation.kind == "once" and operation.number in made:
                once.setdefault(operation.app_version, []).append(operation.number)
        for operation in self.operations:
            if operation.kind == "once" and operation.outcome == "skipped":
                assert any(version >= operation.app_version for version in once), "nothing to skip"

    def _check_snapshot(self, snapshot: Snapshot) -> None:
        """A snapshot shows the rows of its version, whatever happened while it was made."""
        self.log_is_valid()
        tags = snapshot.files(["tags"]).column("tags").to_pylist()
        assert sorted(row for found in tags for row in _rows_of(found)) == sorted(
            self.states[snapshot.version]
        )

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        try:
            for operation in self.operations:
                operation.worker.finish()
            while self.shared.delayed:
                self.shared.deliver()
            self.log_is_valid()
        finally:
            for operation in self.operations:
                operation.worker.kill()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.protocol("OV-01", "OV-05", "LOG-06", "D-27", "TXN-03", "TXN-04", "D-37")
def test_every_history_leaves_a_right_table(part: int) -> None:
    seeded = seed(part)(Histories)  # the parts look at different histories
    run_state_machine_as_test(
        seeded,
        settings=settings(max_examples=HISTORIES // PARTS, stateful_step_count=15, deadline=None),
    )
