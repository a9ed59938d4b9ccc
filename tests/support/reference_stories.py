"""A table with two writers: the reference and deltalog by turns, and what the reference saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from deltalog import DeltaTable, write_deltalake
from tests.support.reference import Spark
from tests.support.reference_rows import rows_of
from tests.support.reference_scenarios import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A table, and what the reference read right after some of its versions.

    Args:
        path: of the table.
        rows: version → rows, as `rows_of` tells them.
        ours: versions that deltalog wrote.
    """

    path: Path
    rows: dict[int, list[str]] = field(default_factory=dict)
    ours: list[int] = field(default_factory=list)


def play(scenario: Scenario, path: Path, spark: Spark) -> Story:
    """The reference makes a table, deltalog appends, the reference goes on, deltalog appends."""
    story = Story(path=path)
    spark.tell(path, scenario.create)
    _read(story, spark)
    go_on(story, scenario, spark)
    return story


def go_on(story: Story, scenario: Scenario, spark: Spark) -> None:
    """What happens after the table's creation."""
    path = story.path
    for statement in scenario.steps:
        spark.tell(path, statement)
        _read(story, spark)
    _append(story, scenario, spark)
    for statement in scenario.after:
        spark.tell(path, statement)
        _read(story, spark)


def _append(story: Story, scenario: Scenario, spark: Spark) -> None:
    write_deltalake(story.path, spark.query(scenario.append), mode="append")
    story.ours.append(_read(story, spark))


def _read(story: Story, spark: Spark) -> int:
    version = DeltaTable(story.path).version()
    story.rows[version] = rows_of(spark.read(story.path))
    return version
