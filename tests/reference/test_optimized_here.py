"""Tables that one writer optimizes and the other goes on with: same rows, ids, feed and history."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable
from deltalog.operations.operation import Operation
from deltalog.operations.optimize import (
    Cluster,
    Compact,
    Optimized,
    Purge,
    ZOrder,
)
from tests.support.reference import Spark
from tests.support.reference_scenarios import FULL

PROPERTIES = (
    "TBLPROPERTIES (delta.enableDeletionVectors = true, delta.enableRowTracking = true, "
    "delta.enableChangeDataFeed = true)"
)
IDS = "id, c, d, _metadata.row_id AS i, _metadata.row_commit_version AS v"
INSERTS = [
    f"INSERT INTO T SELECT /*+ REPARTITION(2) */ id, concat('c', id % 7), id % 5 "  # noqa: S608
    f"FROM range({start}, {start + 20})"
    for start in (0, 20, 40)
]


def make(spark: Spark, path: Path, how: str = "") -> None:
    spark.tell(
        path,
        f"CREATE TABLE T (id BIGINT, c STRING, d BIGINT) USING delta {how} {PROPERTIES}",
        *INSERTS,
        "DELETE FROM T WHERE id % 10 = 3",
    )


def optimize(path: Path, verb: Operation[Optimized]) -> Optimized:
    found = DeltaTable(path).execute(verb).value
    assert found is not None
    return found


def rows(spark: Spark, path: Path) -> list[dict[str, Any]]:
    return spark.read(path, columns=IDS).sort_by("id").to_pylist()


def own_rows(path: Path) -> list[dict[str, Any]]:
    columns = ["id", "c", "d", "_metadata.row_id", "_metadata.row_commit_version"]
    found = DeltaTable(path).scan(columns=columns).to_table()
    return found.rename_columns(["id", "c", "d", "i", "v"]).sort_by("id").to_pylist()


@pytest.mark.protocol("ADD-06", "REM-06", "ROWID-13", "ROWID-14", "B-74")
@pytest.mark.parametrize(
    ("verb", "statement", "how"),
    [
        pytest.param(Compact(), "OPTIMIZE T", "PARTITIONED BY (d)", id="partitions"),
        pytest.param(Purge(), "REORG TABLE T APPLY (PURGE)", "", id="purge"),
        pytest.param(Cluster(), "OPTIMIZE T", "CLUSTER BY (c, d)", id="cluster"),
    ]
    + [
        pytest.param(Compact(), "OPTIMIZE T", "", id="compact"),
        pytest.param(ZOrder(columns=["id", "c"]), "OPTIMIZE T ZORDER BY (id, c)", "", id="z-order"),
    ]
    * FULL,
)
def test_both_do_the_same(
    spark: Spark, tmp_path: Path, verb: Operation[Optimized], statement: str, how: str
) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    make(spark, mine, how)
    shutil.copytree(mine, theirs)
    before = rows(spark, mine)
    spark.tell(theirs, statement)
    optimize(mine, verb)
    version = DeltaTable(mine).version()
    assert version == DeltaTable(theirs).version()
    assert rows(spark, mine) == before
    assert spark.changes(mine, version, version).num_rows == 0
    ours, reference = (spark.history(path)[0] for path in (mine, theirs))
    for name in ("operation", "operationParameters", "isolationLevel", "isBlindAppend"):
        assert ours[name] == reference[name], name
    assert ours["operationMetrics"].keys() == reference["operationMetrics"].keys()
    for name in ("numRemovedFiles", "numAddedFiles", "numDeletionVectorsRemoved"):
        assert ours["operationMetrics"][name] == reference["operationMetrics"][name], name
    # Each goes on with what the other has made, and knows its files by their ids.
    spark.tell(mine, "UPDATE T SET c = 'new' WHERE id % 10 = 4")
    DeltaTable(theirs).update({"c": "'new'"}, predicate="id % 10 = 4")
    assert rows(spark, mine) == rows(spark, theirs) == own_rows(mine) == own_rows(theirs)


@pytest.mark.protocol("B-52")
def test_both_cluster_one_table(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "table"
    make(spark, path, "CLUSTER BY (c, d)")
    optimize(path, Cluster())
    version = DeltaTable(path).version()
    # It knows our cube, and leaves it alone.
    spark.tell(path, "OPTIMIZE T")
    assert DeltaTable(path).version() == version
    spark.tell(path, INSERTS[0], "OPTIMIZE T")
    assert DeltaTable(path).snapshot.num_files == 1
    before = rows(spark, path)
    # And we know that it is clustered now.
    assert optimize(path, Cluster()).removed_sizes == ()
    spark.tell(path, INSERTS[1])
    assert len(optimize(path, Cluster()).added_sizes) == 1
    assert DeltaTable(path).snapshot.num_files == 1
    assert len(rows(spark, path)) == len(before) + 20
