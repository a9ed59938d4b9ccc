"""Every choice of a history, drawn from its seed: table, statements, turns, failures.

Knows which choices are worth drawing; not what comes of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from deltalog.testing.simulation.model import Condition, Statement
from deltalog.testing.simulation.workers import HARMS, Fate, can_happen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.testing.simulation.model import Column, Kind, Row

    class Running(Protocol):
        """Somebody who goes on call by call."""

        @property
        def is_at_commit(self) -> bool:
            """Whether its next call may make a version."""
            ...

    RunningT = TypeVar("RunningT", bound=Running)

FIRST_ROWS: Final = 8
HOUR_MS: Final = 3_600_000
MOST_SKEW_MS: Final = 5 * 60_000
# A writer may live through a night; old versions and files are kept for longer.
NIGHT_MS: Final = 13 * HOUR_MS
KEPT_MS: Final = 24 * HOUR_MS
# Time in which nobody writes, and after which old versions and files may go.
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
# What a history is about: everything, rows of the same files, or the upkeep of files and log.
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
    """The table of a history.

    Args:
        properties: of the table.
        partition_by: its partition columns.
        has_catalog: whether a catalog manages its commits.
        rows: that it has from the beginning.
    """

    properties: Mapping[str, str]
    partition_by: tuple[str, ...]
    has_catalog: bool
    rows: tuple[Row, ...]


class Schedule:
    """The choices of one history.

    Args:
        seed: decides all of them.
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
        """A source of random numbers of its own for each name."""
        return random.Random(f"{self.seed}-{name}")  # noqa: S311  # it must be repeatable

    def table(self) -> TablePlan:
        """Draw the table."""
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
        """Draw what each writer does, one statement after the other.

        Returns:
            Waves of writers; those of a wave begin together, when those before are done.
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
        """Draw how far a writer's clock is ahead."""
        return self._draw.choice((0, 0, self._draw.randint(-MOST_SKEW_MS, MOST_SKEW_MS)))

    def next_of(self, running: Sequence[RunningT]) -> RunningT:
        """Draw who goes on: often the same as before, or whoever has not come to its commit yet."""
        if self._gathers:
            late = [writer for writer in running if not writer.is_at_commit]
            if late and self._draw.random() < 0.95:
                running = late
        if self._last not in running or self._draw.random() >= self._haste:
            self._last = self._draw.choice(running)
        return cast("RunningT", self._last)

    def fate(self, verb: str) -> Fate:
        """Draw what becomes of a call."""
        if self._draw.random() >= self._harm_rate:
            return Fate.FINE
        return self._draw.choice([fate for fate in HARMS if can_happen(fate, verb)])

    def is_next(self, probability: float) -> bool:
        """Draw whether something else happens before the next call."""
        return self._draw.random() < probability

    def one_of(self, choices: Sequence[int]) -> int:
        """Draw one."""
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
            case "append once":  # the rows of a step are the same, whoever takes it
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
