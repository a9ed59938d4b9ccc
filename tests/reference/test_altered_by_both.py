"""The same change of a table, by a statement of the reference and by `table.alter`.

After each one both tables have the same schema, properties, features and history, and at the end
each writer goes on with the other's.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable, Field, StructType
from deltalog._util.json import loads
from deltalog.protocol.column_mapping import strip
from tests.support.reference import Spark
from tests.support.reference_rows import ours, rows_of
from tests.support.reference_scenarios import FULL

PROPERTIES = (
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true',"
    " 'delta.feature.allowColumnDefaults' = 'supported')"
)
CREATE = (
    "CREATE TABLE T (id BIGINT NOT NULL, v INT, s STRUCT<x: INT, y: STRING>) USING delta "
    + PROPERTIES,
    "INSERT INTO T VALUES (1, 1, named_struct('x', 1, 'y', 'a')), (2, NULL, NULL)",
)
# The reference's statement after `ALTER TABLE T`, and ours.
Change = Callable[[DeltaTable], object]
CHANGES: list[tuple[str, Change]] = [
    ("ADD COLUMNS (w STRING)", lambda t: t.alter.add_columns(Field("w", "string"))),
    (
        "ADD COLUMNS (s.z INT COMMENT 'deep' AFTER x)",
        lambda t: t.alter.add_columns(
            Field("z", "integer", metadata={"comment": "deep"}), parent="s", where=("after", "x")
        ),
    ),
    ("RENAME COLUMN s.y TO yy", lambda t: t.alter.rename_column("s.y", "yy")),
    ("ALTER COLUMN v TYPE BIGINT", lambda t: t.alter.set_column_type("v", "long")),
    ("ALTER COLUMN v COMMENT 'wide'", lambda t: t.alter.set_column_comment("v", "wide")),
    ("ALTER COLUMN w FIRST", lambda t: t.alter.move_column("w", "first")),
    ("ALTER COLUMN id DROP NOT NULL", lambda t: t.alter.drop_column_not_null("id")),
    ("ALTER COLUMN w SET DEFAULT 'none'", lambda t: t.alter.set_column_default("w", "'none'")),
    ("DROP COLUMN s.x", lambda t: t.alter.drop_columns(["s.x"])),
    (
        "ADD CONSTRAINT small CHECK (id < 100)",
        lambda t: t.alter.add_constraint({"small": "id < 100"}),
    ),
    (
        "ADD CONSTRAINT more CHECK (v IS NULL OR v > 0)",
        lambda t: t.alter.add_constraint({"more": "v IS NULL OR v > 0"}),
    ),
    ("DROP CONSTRAINT more", lambda t: t.alter.drop_constraint("more")),
    (
        "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'own' = '1')",
        lambda t: t.alter.set_table_properties(
            {"delta.enableDeletionVectors": "true", "own": "1"}, raise_if_not_exists=False
        ),
    ),
    (
        "UNSET TBLPROPERTIES IF EXISTS ('own')",
        lambda t: t.alter.unset_table_properties("own", raise_if_not_exists=False),
    ),
]
# What a writer assigns by itself.
ASSIGNED = "delta.columnMapping.maxColumnId"
FEATURES = ("deletionVectors", "rowTracking", "columnMapping")
SAME = ("operation", "operationParameters", "isolationLevel", "isBlindAppend")


@pytest.mark.protocol("CM-16", "CM-03", "B-50", "B-58", "CON-04", "CON-05", "TF-06")
def test_both_change_a_table_the_same_way(spark: Spark, tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    spark.tell(theirs, *CREATE)
    shutil.copytree(theirs, mine)
    table = DeltaTable(mine)
    for statement, change in CHANGES:
        spark.tell(theirs, f"ALTER TABLE T {statement}")
        change(table)
        assert described(mine) == described(theirs), statement
        assert ours(mine) == ours(theirs), statement
    assert rows_of(spark.read(mine)) == ours(mine)
    expected, found = (spark.history(path)[: len(CHANGES)] for path in (theirs, mine))
    assert [told(commit) for commit in found] == [told(commit) for commit in expected]
    spark.tell(mine, "INSERT INTO T (id, v) VALUES (3, 5000000000)", "DELETE FROM T WHERE id = 1")
    other = DeltaTable(theirs)
    other.merge(
        [{"id": 3, "v": 5_000_000_000}], "source.id = target.id"
    ).when_not_matched_insert_all().execute()
    other.delete("id = 1")
    assert rows_of(spark.read(mine)) == rows_of(spark.read(theirs)) == ours(mine) == ours(theirs)
    assert ours(mine) != []


def told(commit: dict[str, Any]) -> dict[str, Any]:
    found = {name: commit[name] for name in SAME}
    parameters = dict(commit["operationParameters"])
    if "column" in parameters:
        column: Any = loads(parameters["column"], "column")
        del column["metadata"]  # physical names are each writer's own
        parameters["column"] = column
    return {**found, "operationParameters": parameters}


def described(path: Path) -> dict[str, Any]:
    table = DeltaTable(path)
    properties = dict(table.metadata().configuration)
    detail = table.detail()
    assert int(properties.pop(ASSIGNED, "0")) >= 0
    return {
        "version": table.version(),
        "schema": _bare(strip(table.schema())),
        "properties": properties,
        "features": sorted(detail["tableFeatures"]),
    }


def _bare(schema: StructType) -> str:
    return repr(schema.to_json())


@pytest.mark.protocol("B-52", "D-55")
def test_both_cluster_by_the_same(spark: Spark, tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    spark.tell(theirs, "CREATE TABLE T (a BIGINT, b STRING) USING delta CLUSTER BY (a)")
    shutil.copytree(theirs, mine)
    for by, columns in (("(b, a)", ["b", "a"]), ("NONE", None)):
        spark.tell(theirs, f"ALTER TABLE T CLUSTER BY {by}")
        DeltaTable(mine).alter.set_clustering_columns(columns)
        expected, found = (spark.detail(path)["clusteringColumns"] for path in (theirs, mine))
        assert found == expected == (columns or [])
        expected, found = (spark.history(path)[0] for path in (theirs, mine))
        assert told(found) == told(expected)


@pytest.mark.protocol("B-07")
@pytest.mark.parametrize("feature", FEATURES if FULL else FEATURES[:1])
def test_what_one_drops_the_other_does_not_miss(spark: Spark, tmp_path: Path, feature: str) -> None:
    path = tmp_path / "table"
    spark.tell(
        path,
        "CREATE TABLE T (id BIGINT, v STRING) USING delta TBLPROPERTIES ("
        "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true',"
        " 'delta.columnMapping.mode' = 'name')",
        "INSERT INTO T SELECT /*+ COALESCE(1) */ id, 'x' FROM range(5)",
        "DELETE FROM T WHERE id = 2",
    )
    before = ours(path)
    table = DeltaTable(path)
    table.alter.drop_feature(feature)
    assert feature not in table.detail()["tableFeatures"]
    assert rows_of(spark.read(path)) == before == ours(path)
    assert spark.detail(path)["tableFeatures"] == sorted(table.detail()["tableFeatures"])
    spark.tell(path, "INSERT INTO T VALUES (9, 'y')", "DELETE FROM T WHERE id = 1")
    assert rows_of(spark.read(path)) == ours(path)
    assert len(ours(path)) == len(before)
