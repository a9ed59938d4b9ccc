"""The reference and deltalog write the same table by turns, and both read the same.

Each scenario is played once (`reference_stories.play`); the tests look at what came out.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable
from tests.reference.conftest import StoryOf
from tests.support.reference import Spark
from tests.support.reference_rows import our_changes, our_row_ids, ours, rows_of
from tests.support.reference_scenarios import FULL, SCENARIOS, Scenario

ROW_IDS = "*, _metadata.row_id, _metadata.row_commit_version"
# Whose checkpoints have parts of their own.
CHECKPOINTED = (
    "deletion-vectors",
    "v2-checkpoints",
    "statistics-as-struct",
    "row-tracking",
    "variant",
)
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


def _named(part: str) -> pytest.MarkDecorator:
    found = [scenario for scenario in SCENARIOS if part in scenario.name]
    assert found
    return pytest.mark.parametrize("scenario", found, ids=str)


@pytest.mark.protocol(
    "B-61", "B-50", "B-51", "B-58", "CM-12", "CM-15", "DV-10", "GEN-01", "IDN-03", "CON-01",
)  # fmt: skip
@every_scenario
def test_the_rows_are_the_same_at_every_version(scenario: Scenario, story_of: StoryOf) -> None:
    story = story_of(scenario)
    assert story.rows[DeltaTable(story.path).version()] != []
    for version, theirs in story.rows.items():
        assert ours(story.path, version) == theirs, f"version {version}"


@pytest.mark.protocol("B-04", "PROV-01")
@every_scenario
def test_the_history_and_the_details_are_the_same(
    scenario: Scenario, story_of: StoryOf, spark: Spark
) -> None:
    path = story_of(scenario).path
    table = DeltaTable(path)
    told = [_told(commit) for commit in spark.history(path)]
    assert [(c["version"], c["timestamp"], c["operation"]) for c in table.history()] == told
    detail, theirs = table.detail(), spark.detail(path)
    for name in ("id", "partitionColumns", "numFiles", "sizeInBytes", "properties"):
        assert detail[name] == theirs[name], name
    assert sorted(detail["tableFeatures"]) == sorted(theirs["tableFeatures"])


@pytest.mark.protocol("CKPT-02", "CKPT-12", "CKPT-20", "CKPT-21", "CKPT-24")
@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if FULL or each.name in CHECKPOINTED], ids=str
)
def test_the_reference_reads_a_checkpoint_of_ours(
    scenario: Scenario, story_of: StoryOf, spark: Spark, tmp_path: Path
) -> None:
    story = story_of(scenario)
    copy = tmp_path / "copy"
    shutil.copytree(story.path, copy)
    table = DeltaTable(copy)
    table.create_checkpoint()
    _forget_commits(copy)
    assert rows_of(spark.read(copy)) == story.rows[table.version()]
    spark.tell(copy, "ALTER TABLE T SET TBLPROPERTIES ('went' = 'on')")
    assert ours(copy) == story.rows[table.version()]


@pytest.mark.parametrize("scenario", SCENARIOS if FULL else SCENARIOS[:1], ids=str)
def test_the_reference_travels_to_every_version(
    scenario: Scenario, story_of: StoryOf, spark: Spark
) -> None:
    path = story_of(scenario).path
    for version, theirs in spark.versions(path, range(DeltaTable(path).version() + 1)).items():
        assert ours(path, version) == rows_of(theirs), f"version {version}"


@pytest.mark.protocol("CDC-04", "CDC-05", "DF-08")
@_named("change-data-feed")
def test_the_change_feed_is_the_same(scenario: Scenario, story_of: StoryOf, spark: Spark) -> None:
    path = story_of(scenario).path
    for start in range(DeltaTable(path).version() + 1):
        theirs = spark.changes(path, start).drop_columns(["_commit_timestamp"])
        assert our_changes(path, start) == rows_of(theirs), f"from version {start}"


@pytest.mark.protocol("ROWID-01", "ROWID-02", "ROWID-09", "B-75")
@_named("row-tracking")
def test_the_row_ids_are_the_same(scenario: Scenario, story_of: StoryOf, spark: Spark) -> None:
    path = story_of(scenario).path
    theirs = spark.read(path, columns=ROW_IDS)
    assert our_row_ids(path) == rows_of(theirs)
    numbers = theirs.column("row_id").to_pylist()
    assert len(set(numbers)) == len(numbers)


@pytest.mark.protocol("B-22")
@_named("in-commit-timestamps")
def test_commit_times_grow_over_both_writers(scenario: Scenario, story_of: StoryOf) -> None:
    path = story_of(scenario).path
    times = [
        commit["inCommitTimestamp"]
        for commit in DeltaTable(path).history()
        if "inCommitTimestamp" in commit
    ]
    assert len(times) >= 3
    assert times == sorted(set(times), reverse=True)


@pytest.mark.protocol("IDN-04")
@_named("identity")
def test_identity_values_are_never_given_twice(
    scenario: Scenario, story_of: StoryOf, spark: Spark
) -> None:
    values = spark.read(story_of(scenario).path, columns="id").column("id").to_pylist()
    assert len(set(values)) == len(values) >= 5


def _forget_commits(path: Path) -> None:
    """Leave the newest checkpoint and its commit, without which the reference does not start."""
    log = path / "_delta_log"
    newest = max(file.name[:20] for file in log.glob("*.checkpoint*"))
    for file in log.iterdir():
        older = file.name[:20].isdigit() and file.name[:20] < newest
        if older or file.suffix == ".crc":
            file.unlink()


def _told(commit: dict[str, Any]) -> tuple[int, int, str]:
    moment_ms = round(commit["timestamp"].timestamp() * 1000)
    return commit["version"], moment_ms, commit["operation"]
