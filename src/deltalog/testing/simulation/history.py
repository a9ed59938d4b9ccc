"""One history of a simulated table. It is drawn from a seed, and compared with the model.

The history decides which writer makes the next call and whether the call fails, compares the table
with the model after each step, and records a trace. The same seed always produces the same trace
and the same bytes in every commit.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeVar, cast

from deltalog._util.json import dumps, iter_objects, loads
from deltalog.errors import CommitConflictError, CommitRetriesExhaustedError, DeltaError
from deltalog.log.names import commit_path
from deltalog.table.write import write_deltalake
from deltalog.testing.simulation.model import (
    Condition,
    Machine,
    SimulatedCatalog,
    SimulatedStore,
    Statement,
    SteadyClock,
    differences,
)
from deltalog.testing.simulation.workers import (
    HARMS,
    CommonStore,
    CrashedError,
    Fate,
    StatementRun,
    Worker,
    Writer,
    as_arrow,
    can_happen,
    open_table,
    read_rows,
    state_of,
)
from deltalog.transaction import CatalogCommitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog.log.context import Committer
    from deltalog.storage.store import Store
    from deltalog.testing.simulation.model import Column, Kind, Row, TableState

    class Running(Protocol):
        """A writer that runs from call to call."""

        @property
        def is_at_commit(self) -> bool:
            """Whether the next call may create a version."""
            ...

    RunningT = TypeVar("RunningT", bound=Running)


# --- the random choices of a history: the table, the statements, their order, the failures


FIRST_ROWS: Final = 8
HOUR_MS: Final = 3_600_000
MOST_SKEW_MS: Final = 5 * 60_000
# A writer may pause for one night (`NIGHT_MS`). Old versions and files are retained for a longer
# time (`KEPT_MS`).
NIGHT_MS: Final = 13 * HOUR_MS
KEPT_MS: Final = 24 * HOUR_MS
# A period without writes, after which old versions and files may be deleted.
PAUSE_MS: Final = 50 * HOUR_MS
_PARTITIONS: Final = "ab"
_KINDS: Final[Mapping[Kind, int]] = {
    "append": 5,
    "append once": 3,
    "append wide": 1,
    "overwrite": 1,
    "replace where": 1,
    "delete": 5,
    "update": 5,
    "upsert": 3,
    "merge delete": 2,
    "add column": 2,
    "restore": 2,
    "compact": 4,
    "purge": 1,
    "vacuum": 3,
    "clean up": 2,
    "checkpoint": 2,
    "publish": 2,
    "read": 3,
}
_PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
    "delta.enableDeletionVectors": ("true", "true", "false"),
    "delta.enableRowLevelConcurrency": ("true", "false"),
    "delta.enableRowTracking": ("true", "false", "false"),
    "delta.enableChangeDataFeed": ("true", "false", "false"),
    "delta.checkpointInterval": ("2", "3", "3", "100"),
    "delta.checkpointPolicy": ("classic", "classic", "v2"),
    "delta.columnMapping.mode": ("none", "none", "name"),
    "deltalog.maxDeletedRowsRatio": ("0.3", "1"),
}
# Sets of kinds of statements. A history uses only the kinds of one set: all kinds, kinds that
# change the same files, or maintenance.
_THEMES: Final[tuple[frozenset[Kind], ...]] = (
    frozenset(_KINDS),
    frozenset({"append", "delete", "update", "upsert", "merge delete", "compact", "purge"}),
    frozenset({"delete", "update"}),
    frozenset(
        {"append", "append once", "delete", "add column", "restore", "compact", "vacuum",
         "clean up", "checkpoint", "publish", "read"}
    ),
)  # fmt: skip
_HARM_RATES: Final = (0.0, 0.005, 0.02, 0.08)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """The table of a history, as it is created.

    Args:
        properties: the properties of the table.
        partition_by: the partition columns.
        has_catalog: whether a catalog coordinates the commits of the table.
        rows: the rows of the first version.
    """

    properties: Mapping[str, str]
    partition_by: tuple[str, ...]
    has_catalog: bool
    rows: tuple[Row, ...]


class Schedule:
    """The random choices of one history.

    Args:
        seed: the seed. It determines all choices.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._draw = self.chance("schedule")
        self._theme = self._draw.choice((_THEMES[0], *_THEMES))
        self._harm_rate = self._draw.choice(_HARM_RATES)
        self._haste = self._draw.choice((0.0, 0.5, 0.9))
        self._gathers = self._draw.random() < 0.4
        self._last: Any = None

    def chance(self, name: str) -> random.Random:
        """Return a source of random numbers that depends only on the seed and on a name."""
        return random.Random(f"{self.seed}-{name}")  # noqa: S311  # the numbers must be repeatable

    def table(self) -> TablePlan:
        """Draw the properties and the first rows of the table."""
        draw = self._draw
        has_catalog = draw.random() < 0.2
        properties = {name: draw.choice(values) for name, values in _PROPERTIES.items()}
        if self._theme is _THEMES[2]:
            properties |= dict.fromkeys(
                ("delta.enableDeletionVectors", "delta.enableRowLevelConcurrency"), "true"
            )
        properties["delta.enableInCommitTimestamps"] = (
            "true" if has_catalog or draw.random() < 0.3 else "false"
        )
        properties["delta.deletedFileRetentionDuration"] = f"interval {KEPT_MS // HOUR_MS} hours"
        properties["delta.logRetentionDuration"] = f"interval {KEPT_MS // HOUR_MS} hours"
        return TablePlan(
            properties=properties,
            partition_by=draw.choice(((), ("p",))),
            has_catalog=has_catalog,
            rows=tuple(self._row(number) for number in range(FIRST_ROWS)),
        )

    def waves(self, *, has_catalog: bool) -> list[list[list[Statement]]]:
        """Draw the statements of all writers.

        Returns:
            For each wave, for each writer in it, the statements. The writers of a wave begin
            together, as soon as the previous wave is finished.
        """
        draw = self._draw
        writers: list[list[Statement]] = [[] for _ in range(draw.choice((2, 2, 3, 4)))]
        weights = {
            kind: weight
            for kind, weight in _KINDS.items()
            if kind in self._theme and kind != ("clean up" if has_catalog else "publish")
        }
        for number in range(draw.randint(len(writers), 7)):
            writer = writers[number] if number < len(writers) else draw.choice(writers)
            [kind] = draw.choices(list(weights), list(weights.values()))
            writer.append(self._statement(number, kind))
        first = draw.choice((1, 2, len(writers), len(writers)))
        return [wave for wave in (writers[:first], writers[first:]) if wave]

    def skew_ms(self) -> int:
        """Draw the number of milliseconds by which a writer's clock is ahead of the true time."""
        return self._draw.choice((0, 0, self._draw.randint(-MOST_SKEW_MS, MOST_SKEW_MS)))

    def next_of(self, running: Sequence[RunningT]) -> RunningT:
        """Draw the writer of the next call: often the previous one, or one before its commit."""
        if self._gathers:
            late = [writer for writer in running if not writer.is_at_commit]
            if late and self._draw.random() < 0.95:
                running = late
        if self._last not in running or self._draw.random() >= self._haste:
            self._last = self._draw.choice(running)
        return cast("RunningT", self._last)

    def fate(self, verb: str) -> Fate:
        """Draw the outcome of a call: it succeeds, or a failure is injected."""
        if self._draw.random() >= self._harm_rate:
            return Fate.FINE
        return self._draw.choice([fate for fate in HARMS if can_happen(fate, verb)])

    def is_next(self, probability: float) -> bool:
        """Draw whether an event with this probability happens before the next call."""
        return self._draw.random() < probability

    def one_of(self, choices: Sequence[int]) -> int:
        """Draw one of the choices."""
        return self._draw.choice(choices)

    def _row(self, number: int, **more: Any) -> Row:
        draw = self._draw
        return {"id": number, "p": draw.choice(_PARTITIONS), "v": draw.randint(0, 9), **more}

    def _statement(self, number: int, kind: Kind) -> Statement:
        draw = self._draw
        new = [100 * (number + 1) + n for n in range(draw.randint(1, 3))]
        some = draw.sample(range(FIRST_ROWS), draw.randint(1, 3))
        condition = self._condition() if kind in {"delete", "update"} else Condition(None)
        rows: list[Row] = []
        app_version = draw.choice((1, 1, 2)) if kind == "append once" else 0
        match kind:
            case "append" | "overwrite":
                rows = [self._row(n) for n in new]
            # All writers append the same rows for the same version of the application transaction.
            case "append once":
                rows = [{"id": 1000 + app_version, "p": "a", "v": app_version}]
            case "append wide":
                rows = [self._row(n, w=n) for n in new]
            case "replace where":
                part = draw.choice(_PARTITIONS)
                condition = Condition("p", part, part)
                rows = [{**self._row(n), "p": part} for n in new]
            case "upsert" | "merge delete":
                rows = [self._row(n) for n in some + new[:1]]
            case _:
                pass
        return Statement(
            number=number,
            kind=kind,
            rows=tuple(rows),
            condition=condition,
            added=draw.randint(1, 9) if kind == "update" else 0,
            app_version=app_version,
            reopens=draw.random() < 0.5,
        )

    def _condition(self) -> Condition:
        draw = self._draw
        column: Column = draw.choice((None, "id", "id", "id", "id", "v", "v", "p"))
        if column == "p":
            part = draw.choice(_PARTITIONS)
            return Condition("p", part, part)
        low = draw.randint(0, FIRST_ROWS)
        return Condition(column, low, low + draw.choice((0, 0, 1, 3)))


# --- the run of a history, and its comparison with the model


_MOST_STEPS: Final = 20_000
_SLACK_MS: Final = 4 * MOST_SKEW_MS


class WrongHistoryError(AssertionError):
    """The error of a history in which the table differs from the model.

    Attributes:
        seed: the seed of the history.
        trace: the steps before the difference was found.
    """

    def __init__(self, seed: int, problem: str, trace: list[str]) -> None:
        super().__init__(f"{problem}; replay it with: deltalog simulate --seed {seed}")
        self.seed = seed
        self.problem = problem
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error including its attributes."""
        return type(self), (self.seed, self.problem, self.trace)


@dataclass(frozen=True, slots=True)
class Made:
    """A version that a history has created.

    Args:
        data: the content of the commit file.
        path: the path of the commit file when it was written.
        outcome: the run of the statement that has created the version; None for the first versions.
        state: the state of the table according to the model.
    """

    data: bytes
    path: str
    outcome: StatementRun | None
    state: TableState


class History:
    """A table, its writers and the model.

    Args:
        seed: the seed of the history.
        wrap_store: see `simulate`.
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
        """The writers that have not finished."""
        return [writer for writer in self.writers if not writer.worker.is_done]

    @property
    def committer(self) -> Committer | None:
        """A committer for the catalog, without injected failures; None without a catalog."""
        return None if self.catalog is None else CatalogCommitter(self.catalog)

    def play(self) -> None:
        """Run the history from the first step to the last."""
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
        """Raise the error that describes a problem.

        Raises:
            WrongHistoryError: always.
        """
        raise WrongHistoryError(self.schedule.seed, problem, self.trace)

    # --- the table and its writers

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
        described = ", ".join(f"{name}={value}" for name, value in sorted(plan.properties.items()))
        managed = ", managed by a catalog" if plan.has_catalog else ""
        self.trace.append(f"table by {plan.partition_by}{managed}: {described}")
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
            described = "; ".join(map(str, statements))
            self.trace.append(f"writer {number}, {writer.machine.skew_ms} ms ahead: {described}")
            writer.worker = Worker(self.shared, writer.work)
            self.writers.append(writer)

    def _begin(self, outcome: StatementRun) -> None:
        """Record the start of a statement, and draw the version that it restores or reads."""
        outcome.state, outcome.started_ms = "running", self.clock.time_ms
        if outcome.statement.kind == "restore" or (
            outcome.statement.kind == "read" and self.schedule.is_next(0.5)
        ):
            # The files of the version to restore must still exist when the statement commits.
            since_ms = self.clock.time_ms - (KEPT_MS - NIGHT_MS - HOUR_MS)
            recent = [v for v in range(len(self.made)) if self.ended_ms(v) > since_ms]
            outcome.target = self.schedule.one_of(recent)

    def ended_ms(self, version: int) -> int:
        """Return the time at which a version ended: later statements may then delete its files."""
        return min(
            (made.outcome.started_ms for made in self.made[version + 1 :] if made.outcome),
            default=self.clock.time_ms,
        )

    # --- the steps of a run

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
        while self.shared.delayed:  # delayed requests arrive within this time
            self._deliver()
        self.trace.append(f"{time_ms // HOUR_MS} hours pass")
        self.clock.time_ms += time_ms

    # --- invariants

    def check_steps(self) -> None:
        """Compare the table after the last step with the model."""
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
        """Record a new version, with its statement and its expected state."""
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
        """Compare the rows of a read with the rows of the model.

        Raises:
            WrongHistoryError: the rows or the columns differ.
        """
        if version >= len(self.made):
            self.fail(f"{what}: there is no such version")
        found = differences(self.made[version].state, columns, rows)
        if found:
            self.fail(f"{what}: {'; '.join(found)}")

    def _check_failure(self, outcome: StatementRun) -> None:
        """Check that a failed statement failed because of an injected failure or a conflict."""
        error = outcome.error
        if outcome.is_harmed or isinstance(
            error, CommitConflictError | CommitRetriesExhaustedError
        ):
            return
        if outcome.statement.kind == "checkpoint" and self.catalog is not None:
            return  # the version of the checkpoint may be unpublished
        self.fail(f"{outcome.statement} failed without a reason: {error!r}")

    def must_be_readable(self, version: int) -> bool:
        """Return whether a version is so recent that all of its files must still exist."""
        return self.ended_ms(version) > self.clock.time_ms - KEPT_MS + _SLACK_MS

    def must_tell_changes(self, version: int) -> bool:
        """Return whether a version is so recent that its change data files must still exist."""
        outcome = self.made[version].outcome
        kept_since_ms = self.clock.time_ms - KEPT_MS + _SLACK_MS
        return outcome is not None and outcome.started_ms > kept_since_ms

    def digest(self) -> str:
        """Return the SHA-256 of the trace and of the content of all commits."""
        found = hashlib.sha256()
        for line in self.trace:
            found.update(f"{line}\n".encode())
        for made in self.made:
            found.update(made.data)
        return found.hexdigest()


def _catalog_managed(commit: bytes) -> bytes:
    """Return the first commit of a table, changed so that a catalog coordinates the commits."""
    lines = [loads(line, "") for line in commit.splitlines()]
    for line in lines:
        if "protocol" in line:
            protocol = line["protocol"]
            for kind in ("readerFeatures", "writerFeatures"):
                protocol[kind] = sorted({*protocol.get(kind, []), "catalogManaged"})
            protocol |= {"minReaderVersion": 3, "minWriterVersion": 7}
    return b"\n".join(map(dumps, lines)) + b"\n"
