"""The same update or merge, done by the reference and by us: the same rows, ids and feed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.scan import open_changes
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.changes.request import Action, Clause, When
from deltalog.storage import open_store
from tests.support.reference import Spark
from tests.support.reference_scenarios import FULL
from tests.support.statements import (
    StatedTable,
    by_source_delete,
    by_source_update,
    in_order,
    insert,
    matched_delete,
    matched_update,
)

CREATE = (
    "CREATE TABLE T (k INT, g STRING, x INT, s STRUCT<u: INT, w: STRING>) USING delta {by}"
    " TBLPROPERTIES ('delta.enableChangeDataFeed'='true', 'delta.enableRowTracking'='true',"
    " 'delta.enableDeletionVectors'='{vectors}')"
)
FILL = (
    "INSERT INTO T SELECT /*+ COALESCE(1) */ * FROM VALUES"
    " (1, 'a', 10, named_struct('u', 1, 'w', 'x')), (2, 'b', 20, NULL),"
    " (3, NULL, 30, named_struct('u', 3, 'w', NULL)),"
    " (NULL, 'd', 40, named_struct('u', 4, 'w', 'y')), (5, 'e', NULL, NULL)"
)
SOURCE: list[dict[str, Any]] = [
    {"k": 1, "g": "z", "x": 100, "s": {"u": 9, "w": "q"}},
    {"k": 2, "g": None, "x": None, "s": None},
    {"k": None, "g": "d", "x": 7, "s": None},
    {"k": 8, "g": "h", "x": 8, "s": {"u": 8, "w": None}},
]
KINDS: list[tuple[str, pa.DataType]] = [
    ("k", pa.int32()),
    ("g", pa.string()),
    ("x", pa.int32()),
    ("s", pa.struct([("u", pa.int32()), ("w", pa.string())])),
]
ROWS = (
    "(SELECT * FROM VALUES (1, 'z', 100, named_struct('u', 9, 'w', 'q')), (2, NULL, NULL, NULL),"
    " (NULL, 'd', 7, NULL), (8, 'h', 8, named_struct('u', 8, 'w', NULL)) AS v(k, g, x, s))"
)
Ours = Callable[[StatedTable], object]


def merging(on: str, *clauses: Clause) -> Ours:
    return lambda table: table.merge(
        pa.Table.from_pylist(SOURCE, schema=pa.schema(KINDS)), on, *clauses
    )


CASES: dict[str, tuple[str, Ours]] = {
    "upsert": (
        (
            "MERGE INTO T t USING ROWS s ON t.k = s.k"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
        merging("t.k = s.k", matched_update(), insert()),
    ),
    "every clause": (
        (
            "MERGE INTO T t USING ROWS s ON t.k <=> s.k AND t.x < 35"
            " WHEN MATCHED AND s.g IS NULL THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET t.x = t.x + s.x, t.s.u = s.k"
            " WHEN NOT MATCHED AND s.x > 7 THEN INSERT (k, g) VALUES (s.k, concat(s.g, '!'))"
            " WHEN NOT MATCHED BY SOURCE AND t.k = 5 THEN"
            " UPDATE SET g = 'alone', s = named_struct('u', 1, 'w', 'n')"
            " WHEN NOT MATCHED BY SOURCE AND t.k = 3 THEN DELETE"
        ),
        merging(
            "t.k <=> s.k AND t.x < 35",
            matched_delete("s.g IS NULL"),
            Clause(
                when=When.MATCHED,
                action=Action.UPDATE,
                values={"t.x": "t.x + s.x", "t.s.u": "s.k"},
            ),
            insert("s.x > 7", k="s.k", g="concat(s.g, '!')"),
            by_source_update("t.k = 5", g="'alone'", s="named_struct('u', 1, 'w', 'n')"),
            by_source_delete("t.k = 3"),
        ),
    ),
    "no equal keys": (
        (
            "MERGE INTO T t USING ROWS s ON t.x > s.x AND s.k = 8"
            " WHEN MATCHED THEN UPDATE SET x = t.x - s.x"
        ),
        merging("t.x > s.x AND s.k = 8", matched_update(x="t.x - s.x")),
    ),
    "inserts": (
        "MERGE INTO T t USING ROWS s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *",
        merging("t.k = s.k", insert()),
    ),
    "deletes": (
        "MERGE INTO T t USING ROWS s ON t.g = s.g WHEN MATCHED THEN DELETE",
        merging("t.g = s.g", matched_delete()),
    ),
    "update": (
        "UPDATE T SET s.u = k * 2, x = NULL WHERE k > 1 OR k IS NULL",
        lambda table: table.update({"s.u": "k * 2", "x": "NULL"}, "k > 1 OR k IS NULL"),
    ),
    "delete": ("DELETE FROM T WHERE x > 10", lambda table: table.delete("x > 10")),
    "move": (
        "UPDATE T SET g = 'moved' WHERE x >= 30",
        lambda table: table.update({"g": "'moved'"}, "x >= 30"),
    ),
}


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="statements-", ignore_cleanup_errors=True) as path:
        yield Path(path)


def rows_by_the_reference(spark: Spark, path: Path) -> list[dict[str, Any]]:
    columns = "*, _metadata.row_id AS id, _metadata.row_commit_version AS version"
    return in_order(spark.read(path, columns=columns).to_pylist())


def feed(table: StatedTable) -> list[dict[str, Any]]:
    found = open_changes(table.snapshot, start=2, end=2).to_table()
    return in_order(found.drop_columns(["_commit_version", "_commit_timestamp"]).to_pylist())


def opened(path: Path) -> StatedTable:
    table = StatedTable.__new__(StatedTable)
    table.store = open_store(str(path))
    table.snapshot = load_snapshot(utc_context(table.store))
    return table


@pytest.mark.protocol(
    "CDC-02", "CDC-04", "DF-08", "ROWID-13", "ROWID-15", "ROWID-16", "DV-10", "DV-18"
)
@pytest.mark.parametrize(
    ("case", "by", "vectors"),
    [
        pytest.param(case, by, vectors, id=f"{case}-{kind}-{how}")
        for number, case in enumerate(CASES)
        for by, kind in (("", "whole"), ("PARTITIONED BY (g)", "partitioned"))
        for vectors, how in (("false", "rewritten"), ("true", "masked"))
        # By turns; tests/spark/parity has all statements on all tables, without the reference.
        if FULL or ((by == "") is (vectors == "true") is (number % 2 == 0))
    ],
)
def test_a_statement_does_the_same_by_both(
    spark: Spark, place: Path, case: str, by: str, vectors: str
) -> None:
    sql, ours = CASES[case]
    theirs, mine = place / "theirs", place / "mine"
    spark.tell(theirs, CREATE.format(by=by, vectors=vectors), FILL)
    shutil.copytree(theirs, mine)
    spark.tell(theirs, sql.replace("ROWS", ROWS))
    ours(opened(mine))
    expected, found = (rows_by_the_reference(spark, path) for path in (theirs, mine))
    # Ids of new rows are each writer's own to give.
    kept = [[row for row in rows if row["id"] < 5] for rows in (expected, found)]
    assert kept[0] == kept[1]
    bare = [[{**row, "id": 0} for row in rows] for rows in (expected, found)]
    assert in_order(bare[0]) == in_order(bare[1])
    assert feed(opened(mine)) == feed(opened(theirs))
