"""deltalog makes the table that the reference would have made; then both go on with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog import DeltaTable
from deltalog.protocol.column_mapping import strip
from deltalog.protocol.features.clustering import CLUSTERING_DOMAIN
from tests.support.reference import Spark
from tests.support.reference_rows import ours
from tests.support.reference_scenarios import ALL_SCENARIOS, FULL, Scenario
from tests.support.reference_stories import Story, go_on

# What a table gets by itself, and nobody asks for.
ASSIGNED = {
    "delta.columnMapping.maxColumnId",
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
}
# What statements ask for by `delta.feature.…`, and no property or column that is left tells.
ASKED_BY_NAME = {"allowColumnDefaults", "timestampNtz"}
SHORT = {
    "types",
    "column-mapping-id",
    "identity-always",
    "generated-columns",
    "row-tracking",
    "clustering",
    "iceberg-compat-v3",
    "char-varchar",
}


@pytest.mark.protocol("UPG-03", "B-39", "B-06")
@pytest.mark.parametrize(
    "scenario", [each for each in ALL_SCENARIOS if FULL or each.name in SHORT], ids=str
)
def test_a_table_made_here_is_like_one_made_there(
    scenario: Scenario, spark: Spark, tmp_path: Path
) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    spark.tell(theirs, scenario.create)
    model = DeltaTable(theirs)
    table = _create_like(model, mine)
    assert table.schema() == strip(model.schema()) or _is_mapped(model)
    assert _features(table) == _features(model)
    assert set(table.metadata().configuration) == set(model.metadata().configuration)

    story = Story(path=mine)
    go_on(story, scenario, spark)
    assert story.ours
    for version, rows in story.rows.items():
        assert ours(mine, version) == rows, f"version {version}"


def _create_like(model: DeltaTable, path: Path) -> DeltaTable:
    metadata = model.metadata()
    clustering = model.snapshot.configuration
    wanted = {name: value for name, value in metadata.configuration.items() if name not in ASSIGNED}
    supported = {
        f"delta.feature.{name}": "supported" for name in _features(model) if name in ASKED_BY_NAME
    }
    return DeltaTable.create(
        path,
        strip(model.schema()),
        partition_by=list(clustering.partition_columns),
        configuration={**wanted, **supported},
        cluster_by=_clustering(model),
    )


def _clustering(model: DeltaTable) -> list[str | tuple[str, ...]] | None:
    if CLUSTERING_DOMAIN not in model.snapshot.domain_metadata:
        return None
    return list(model.detail()["clusteringColumns"])


def _is_mapped(table: DeltaTable) -> bool:
    return "delta.columnMapping.mode" in table.metadata().configuration


def _features(table: DeltaTable) -> set[str]:
    return set(table.detail()["tableFeatures"])
