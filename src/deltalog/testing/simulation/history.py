"""One history of a simulated table: it is played from a seed, and compared with the model.

Owns the loop (who goes on, what becomes of the call), what is compared after each step and at the
end, and the trace. The same seed gives the same trace, to the byte of every commit.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from deltalog._json import dumps, iter_objects, loads
from deltalog.errors import CommitConflictError, CommitRetriesExhaustedError, DeltaError
from deltalog.log.names import commit_path
from deltalog.table.write import write_deltalake
from deltalog.testing.simulation.model import differences
from deltalog.testing.simulation.process import Machine, SteadyClock
from deltalog.testing.simulation.schedule import (
    HOUR_MS,
    KEPT_MS,
    MOST_SKEW_MS,
    NIGHT_MS,
    PAUSE_MS,
    Schedule,
    TablePlan,
)
from deltalog.testing.simulation.store import SimulatedCatalog, SimulatedStore
from deltalog.testing.simulation.workers import (
    CommonStore,
    CrashedError,
    Fate,
    Worker,
)
from deltalog.testing.simulation.writers import (
    StatementRun,
    Writer,
    as_arrow,
    open_table,
    read_rows,
    state_of,
)
from deltalog.transaction import CatalogCommitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.catalog import Committer
    from deltalog.storage.store import Store
    from deltalog.testing.simulation.model import Statement, TableState

_MOST_STEPS: Final = 20_000
_SLACK_MS: Final = 4 * MOST_SKEW_MS


class WrongHistoryError(AssertionError):
    """A history after which the table is not what the model says.

    Attributes:
        seed: of the history.
        trace: its steps until then.
    """

    def __init__(self, seed: int, problem: str, trace: list[str]) -> None:
        super().__init__(f"{problem}; replay it with: deltalog simulate --seed {seed}")
        self.seed = seed
        self.problem = problem
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it with all that it says."""
        return type(self), (self.seed, self.problem, self.trace)


@dataclass(frozen=True, slots=True)
class Made:
    """A version that was made.

    Args:
        data: its commit.
        path: of the commit when it was made.
        outcome: of the statement that made it; None for the first versions.
        state: of the table.
    """

    data: bytes
    path: str
    outcome: StatementRun | None
    state: TableState


class History:
    """A table, its writers and the model.

    Args:
        seed: of the history.
        wrap_store: as for `simulate`.
    """

    def __init__(self, seed: int, wrap_store: Callable[[Store], Store]) -> None:
        self.schedule: Schedule = Schedule(seed)
        self.clock: SteadyClock = SteadyClock()
        self.machine: Machine = Machine(self.clock, self.schedule.chance("table"))
        self.store: SimulatedStore = SimulatedStore(self.clock)
        self.shared: CommonStore = CommonStore(wrap_store(self.store))
        self.plan: TablePlan = self.schedule.table()
        self.catalog: SimulatedCatalog | None = (
            SimulatedCatalog() if self.plan.has_catalog else None
        )
        self.made: list[Made] = []
        self.trace: list[str] = []
        self.outcomes: dict[int, StatementRun] = {}
        self.steps: int = 0
        self.writers: list[Writer] = []

    @property
    def running(self) -> list[Writer]:
        """The writers that are not done."""
        return [writer for writer in self.writers if not writer.worker.is_done]

    @property
    def committer(self) -> Committer | None:
        """The way to the catalog without any harm, if there is one."""
        return None if self.catalog is None else CatalogCommitter(self.catalog)

    def play(self) -> None:
        """Play it from the first to the last step."""
        try:
            self._create()
            for number, wave in enumerate(self.schedule.waves(has_catalog=self.plan.has_catalog)):
                if number and self.schedule.is_next(0.7):
                    self._pass_time(PAUSE_MS)
                self._start(wave)
                while running := self.running:
                    self._step(self.schedule.next_of(running))
                    self.check_steps()
            while self.shared.delayed:
                self._deliver()
        finally:
            for writer in self.writers:
                writer.worker.kill()

    def fail(self, problem: str) -> NoReturn:
        """Say what is wrong.

        Raises:
            WrongHistoryError: always.
        """
        raise WrongHistoryError(self.schedule.seed, problem, self.trace)

    # The table and its writers.

    def _create(self) -> None:
        plan = self.plan
        write_deltalake(
            self.store,
            as_arrow(plan.rows),
            configuration=plan.properties,
            partition_by=list(plan.partition_by) or None,
        )
        if self.catalog is not None:
            self.store.put(commit_path(0), _catalog_managed(self.store.read(commit_path(0))))
            self.catalog.register(self.store.root, 0)
        told = ", ".join(f"{name}={value}" for name, value in sorted(plan.properties.items()))
        managed = ", managed by a catalog" if plan.has_catalog else ""
        self.trace.append(f"table by {plan.partition_by}{managed}: {told}")
        self._note(self.store.read(commit_path(0)), commit_path(0))

    def _start(self, wave: list[list[Statement]]) -> None:
        for number, statements in enumerate(wave, len(self.writers)):
            writer = Writer(
                number=number,
                outcomes=[StatementRun(statement=statement) for statement in statements],
                machine=Machine(
                    self.clock, self.schedule.chance(f"writer {number}"), self.schedule.skew_ms()
                ),
                catalog=self.catalog,
                begins=self._begin,
            )
            self.outcomes |= {outcome.statement.number: outcome for outcome in writer.outcomes}
            told = "; ".join(map(str, statements))
            self.trace.append(f"writer {number}, {writer.machine.skew_ms} ms ahead: {told}")
            writer.worker = Worker(self.shared, writer.work)
            self.writers.append(writer)

    def _begin(self, outcome: StatementRun) -> None:
        """A writer begins a statement; only then it is known to which version it can go back."""
        outcome.state, outcome.started_ms = "running", self.clock.time_ms
        if outcome.statement.kind == "restore" or (
            outcome.statement.kind == "read" and self.schedule.is_next(0.5)
        ):
            # What is restored must outlive the time until the commit.
            since_ms = self.clock.time_ms - (KEPT_MS - NIGHT_MS - HOUR_MS)
            recent = [v for v in range(len(self.made)) if self.ended_ms(v) > since_ms]
            outcome.target = self.schedule.one_of(recent)

    def ended_ms(self, version: int) -> int:
        """When a version's files may have begun to leave: with the first statement after it."""
        return min(
            (made.outcome.started_ms for made in self.made[version + 1 :] if made.outcome),
            default=self.clock.time_ms,
        )

    # The steps.

    def _step(self, writer: Writer) -> None:
        if self.shared.delayed and self.schedule.is_next(0.1):
            self._deliver()
        if not any(other.has_seen_night for other in self.running) and self.schedule.is_next(0.004):
            self._pass_time(NIGHT_MS)
            for other in self.running:
                other.has_seen_night = True
        worker = writer.worker
        verb, paths = worker.at or ("", ())
        outcome, fate = writer.current, self.schedule.fate(verb)
        outcome.is_harmed = outcome.is_harmed or fate is not Fate.FINE
        self.steps += 1
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        what = f"{verb} {paths[0] if paths else ''}{more}"
        happens = "" if fate is Fate.FINE else f": {fate.value}"
        self.trace.append(
            f"{self.steps} writer {writer.number} #{outcome.statement.number} {what}{happens}"
        )
        worker.step(fate)
        if self.steps > _MOST_STEPS:
            self.fail(f"writer {writer.number} comes to no end")
        if worker.is_done and isinstance(worker.error, CrashedError):
            writer.current.state = "unknown"
        elif worker.is_done and worker.error is not None:
            raise WrongHistoryError(
                self.schedule.seed, f"{writer.current.statement}: {worker.error!r}", self.trace
            ) from worker.error

    def _deliver(self) -> None:
        self.trace.append("a delayed request arrives")
        self.shared.deliver()
        self.check_steps()

    def _pass_time(self, time_ms: int) -> None:
        while self.shared.delayed:  # no request is under way for so long
            self._deliver()
        self.trace.append(f"{time_ms // HOUR_MS} hours pass")
        self.clock.time_ms += time_ms

    # What must hold.

    def check_steps(self) -> None:
        """Compare what the last step left with the model."""
        for data, path in self._new_commits():
            self._note(data, path)
            self._check_newest()
        for outcome in self.outcomes.values():
            if outcome.found is not None:
                version, columns, rows = outcome.found
                outcome.found = None
                self.compare(version, columns, rows, f"{outcome.statement} at version {version}")
            if outcome.state == "failed":
                self._check_failure(outcome)

    def _new_commits(self) -> Iterator[tuple[bytes, str]]:
        while True:
            version = len(self.made)
            path = (
                commit_path(version)
                if self.catalog is None
                else self.catalog.ratified.get(version, "")
            )
            if path not in self.store.files:
                return
            yield self.store.files[path], path

    def _note(self, data: bytes, path: str) -> None:
        """A version was made: by whom, and what must it be?"""
        version = len(self.made)
        info = next(iter(iter_objects(data))).get("commitInfo", {})
        number = info.get("number")
        if number is None and version == 0:
            self.made.append(Made(data, path, None, state_of(self.plan.rows)))
            return
        if number is None:
            self.fail(f"nobody made version {version}")
        outcome, before = self.outcomes[int(number)], self.made[-1].state
        statement = outcome.statement
        if statement.kind != "vacuum" and any(made.outcome is outcome for made in self.made):
            self.fail(f"{statement} was committed twice, the second time as version {version}")
        restored = None if outcome.target is None else self.made[outcome.target].state
        self.made.append(Made(data, path, outcome, statement.applied_to(before, restored)))
        self.trace.append(f"version {version} is made by {statement}")

    def _check_newest(self) -> None:
        version = len(self.made) - 1
        try:
            table = open_table(self.store, self.committer)
            columns, rows = read_rows(table)
        except DeltaError as error:
            raise WrongHistoryError(
                self.schedule.seed, f"cannot read version {version}: {error!r}", self.trace
            ) from error
        if table.version() != version:
            self.fail(f"the newest version is {version}, and {table.version()} was opened")
        self.compare(version, columns, rows, f"version {version}, when it was made")

    def compare(self, version: int, columns: Any, rows: Any, what: str) -> None:
        """Compare rows that somebody read with the model's.

        Raises:
            WrongHistoryError: they differ.
        """
        if version >= len(self.made):
            self.fail(f"{what}: there is no such version")
        found = differences(self.made[version].state, columns, rows)
        if found:
            self.fail(f"{what}: {'; '.join(found)}")

    def _check_failure(self, outcome: StatementRun) -> None:
        """Without harm, only another writer is a reason to fail."""
        error = outcome.error
        if outcome.is_harmed or isinstance(
            error, CommitConflictError | CommitRetriesExhaustedError
        ):
            return
        if outcome.statement.kind == "checkpoint" and self.catalog is not None:
            return  # its version may not be published yet
        self.fail(f"{outcome.statement} failed without a reason: {error!r}")

    def must_be_readable(self, version: int) -> bool:
        """Whether no vacuum and no clean-up may have taken anything of a version."""
        return self.ended_ms(version) > self.clock.time_ms - KEPT_MS + _SLACK_MS

    def must_tell_changes(self, version: int) -> bool:
        """Whether no vacuum may have taken change files of a version: they go by their age."""
        outcome = self.made[version].outcome
        kept_since_ms = self.clock.time_ms - KEPT_MS + _SLACK_MS
        return outcome is not None and outcome.started_ms > kept_since_ms

    def digest(self) -> str:
        """The SHA-256 of the trace and of all commits."""
        found = hashlib.sha256()
        for line in self.trace:
            found.update(f"{line}\n".encode())
        for made in self.made:
            found.update(made.data)
        return found.hexdigest()


def _catalog_managed(commit: bytes) -> bytes:
    """The first commit of a table that a catalog manages from then on."""
    lines = [loads(line, "") for line in commit.splitlines()]
    for line in lines:
        if "protocol" in line:
            protocol = line["protocol"]
            for kind in ("readerFeatures", "writerFeatures"):
                protocol[kind] = sorted({*protocol.get(kind, []), "catalogManaged"})
            protocol |= {"minReaderVersion": 3, "minWriterVersion": 7}
    return b"\n".join(map(dumps, lines)) + b"\n"
