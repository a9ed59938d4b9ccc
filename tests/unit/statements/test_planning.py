"""A SELECT is planned as a scan: the same files are read, the same bytes, the same requests."""

from __future__ import annotations

from datetime import date, timedelta
from hashlib import sha512
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from deltalog import DeltaTable, connect, write_deltalake
from deltalog.statements import Connection
from deltalog.storage import open_store
from deltalog.testing import CountingStore

FILES = 40
ROWS_PER_FILE = 50


def _rows(file: int) -> pa.Table:
    ids = range(file * ROWS_PER_FILE, (file + 1) * ROWS_PER_FILE)
    first = date(2025, 1, 1) + timedelta(file)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"n{file:02}-{one % ROWS_PER_FILE:02}" for one in ids],
            "day": [first] * ROWS_PER_FILE,
            "note": pa.array([None if file < 3 else "x"] * ROWS_PER_FILE, pa.string()),
            "part": pa.array([file % 4] * ROWS_PER_FILE, pa.int32()),
            "wide": [
                "".join(sha512(f"{one}-{part}".encode()).hexdigest() for part in range(9))
                for one in ids
            ],
        }
    )


class Counted:
    """A table of many files whose reads are counted."""

    def __init__(self) -> None:
        self._store = open_store(f"memory://planning-{uuid4().hex}")
        for file in range(FILES):
            write_deltalake(self._store, _rows(file), mode="append", partition_by=["part"])
        self.store = CountingStore(self._store)
        self.table = DeltaTable(self.store)
        self.connection: Connection = connect({"t": self.table})

    def sql(self, query: str, parameters: Any = None) -> tuple[list[dict[str, Any]], Any]:
        """The rows of a query, and what was read for them from data files."""
        self.connection.sql("SELECT count(*) FROM t WHERE id < 0").to_arrow()  # warm
        self.store.reset()
        found = self.connection.sql(query, parameters).to_pylist()
        return found, self._read()

    def scan(self, predicate: str, columns: list[str] | None) -> tuple[int, Any]:
        """The number of rows of a scan, and what was read for them from data files."""
        self.store.reset()
        found = self.table.scan(predicate=predicate, columns=columns).to_reader().read_all()
        return found.num_rows, self._read()

    def _read(self) -> tuple[set[str], int]:
        calls = [call for call in self.store.calls if "/part-" in call.paths[0]]
        return {call.paths[0] for call in calls}, sum(call.size_bytes for call in calls)


@pytest.fixture(scope="module")
def counted() -> Counted:
    """The table."""
    return Counted()


@pytest.mark.parametrize(
    ("where", "parameters", "files"),
    [
        ("id = 1234", None, 1),
        ("id = ?", [1234], 1),
        ("id = :id", {"id": 1234}, 1),
        ("id < 100", None, 2),
        ("id >= 1990", None, 1),
        ("1990 <= id", None, 1),
        ("id IN (5, 1234, 1236)", None, 2),
        ("id BETWEEN 100 AND 199", None, 2),
        ("id BETWEEN ? AND ?", [100, 199], 2),
        ("id = 5 OR id = 1234", None, 2),
        ("id < 500 AND part = 1", None, 3),
        ("part = 1 AND id > 1800", None, 1),
        ("part IN (0, 1) AND id < 200", None, 2),
        ("day = DATE'2025-01-05'", None, 1),
        ("day > '2025-02-07'", None, 2),
        ("day = ?", [date(2025, 1, 5)], 1),
        ("name = 'n07-03'", None, 1),
        ("name LIKE 'n07%'", None, 1),
        ("name >= 'n38'", None, 2),
        ("note IS NULL", None, 3),
        ("note IS NOT NULL AND id < 200", None, 1),
        ("id = 100000", None, 0),
        ("false", None, 0),
    ],
)
@pytest.mark.parametrize("end", ["", " ORDER BY id"])  # a scan, and a query of DuckDB's
def test_a_select_reads_the_files_that_a_scan_reads(
    counted: Counted, where: str, parameters: Any, files: int, end: str
) -> None:
    rows, (paths, size_bytes) = counted.sql(
        f"SELECT id, part FROM t WHERE {where}{end}",
        parameters,
    )
    assert len(paths) <= files
    shown = where.replace("?", "'2025-01-05'" if "day" in where else "1234")
    if "BETWEEN ?" in where:
        shown = "id BETWEEN 100 AND 199"
    num_rows, (scanned, scanned_bytes) = counted.scan(shown.replace(":id", "1234"), ["id", "part"])
    assert len(rows) == num_rows
    assert paths == scanned
    # What the filter needs besides the answer is read by both.
    assert size_bytes <= scanned_bytes


def test_only_the_columns_of_the_query_are_read(counted: Counted) -> None:
    for columns in (["id"], ["id", "wide"]):
        _, read = counted.sql(f"SELECT {', '.join(columns)} FROM t WHERE id < 200")
        assert read == counted.scan("id < 200", columns)[1]


@pytest.mark.parametrize("columns", ["*", "wide", "id AS x, WIDE"])
def test_a_limit_ends_the_reading(counted: Counted, columns: str) -> None:
    rows, (paths, _) = counted.sql(f"SELECT {columns} FROM t LIMIT 3")
    assert len(rows) == 3
    assert len(paths) == 1
    (row,) = counted.sql("SELECT id AS x, part FROM t LIMIT 1")[0]
    assert set(row) == {"x", "part"}


@pytest.mark.parametrize(
    ("query", "num_rows"),
    [
        ("SELECT count(*) AS n FROM t LIMIT 3", 1),
        ("SELECT DISTINCT part FROM t LIMIT 10", 4),
        ("SELECT id FROM t ORDER BY id DESC LIMIT 1", 1),
        ("SELECT id FROM t LIMIT 3 OFFSET 5", 3),
        ("SELECT part, count(*) AS n FROM t GROUP BY part LIMIT 10", 4),
        ("SELECT id FROM t QUALIFY row_number() OVER (ORDER BY id) = 1 LIMIT 5", 1),
        ("SELECT id FROM t WHERE id % 1000 = 7 LIMIT 5", 2),
        ("SELECT id FROM (SELECT id FROM t LIMIT 7)", 7),
        ("SELECT a.id FROM t a, t b WHERE a.id = b.id + 1990 LIMIT 100", 10),
        ("SELECT explode(array(1, 2)) AS x FROM t LIMIT 3", 3),
    ],
)
def test_a_limit_of_what_is_computed_is_no_limit_of_rows(
    counted: Counted, query: str, num_rows: int
) -> None:
    assert len(counted.sql(query)[0]) == num_rows


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        # Conditions that a row without a partner meets say nothing about the partner's table.
        (("SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.id + 1999 WHERE b.note IS NULL AND "
         "a.id IN (5, 1999)"), [5, 1999]),
        (("SELECT b.id FROM t a RIGHT JOIN t b ON a.id = b.id + 1999 WHERE a.id IS NULL AND "
         "b.id IN (0, 7)"), [7]),
        ("SELECT a.id FROM t a FULL JOIN t b ON a.id = b.id WHERE a.id IN (5, 1234)", [5, 1234]),
        ("SELECT id FROM t WHERE NOT (id IN (5, 6) OR id > 7)", [0, 1, 2, 3, 4, 7]),
        ("SELECT id FROM t WHERE id NOT BETWEEN 3 AND 1997", [0, 1, 2, 1998, 1999]),
        ("SELECT id FROM t WHERE name LIKE 'n00-0_' AND id > 7", [8, 9]),
        ("SELECT id FROM t WHERE name LIKE '%-49' AND name LIKE 'n0%' AND id < 120", [49, 99]),
        ("SELECT id FROM t WHERE id IN (5, NULL, 6)", [5, 6]),
        (("SELECT id FROM t x WHERE x.id IN (5) AND EXISTS "
          "(SELECT 1 FROM t y WHERE y.id = x.id AND part IN (0, 1, 2, 3))"), [5]),
        ("SELECT a.id FROM t a WHERE a.id IN (SELECT b.id FROM t b WHERE b.id IN (1, 2000))", [1]),
        ("SELECT a.id FROM t a LEFT ANTI JOIN t b ON a.id = b.id + 1 WHERE a.id IN (0, 5)", [0]),
        (("WITH t AS (SELECT id + 1000 AS id FROM t WHERE id IN (5, 900)) SELECT id FROM t WHERE "
         "id IN (1005)"), [1005]),
        ("SELECT id FROM (SELECT id * 10 AS id FROM t) q WHERE id IN (19990)", [19990]),
    ],
)  # fmt: skip
def test_pruning_changes_no_answer(counted: Counted, query: str, ids: list[int]) -> None:
    assert sorted(row["id"] for row in counted.sql(query)[0]) == ids


def test_a_filter_on_one_side_of_a_join_prunes_it(counted: Counted) -> None:
    rows, (paths, _) = counted.sql(
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE a.id = 5 AND b.id = 5"
    )
    assert rows == [{"id": 5}]
    assert len(paths) == 1


def test_an_expression_that_scan_cannot_take_is_answered_by_duckdb(counted: Counted) -> None:
    rows, _ = counted.sql("SELECT id FROM t WHERE id % 1000 = 5 AND length(name) = 6")
    assert sorted(row["id"] for row in rows) == [5, 1005]


def test_a_warm_select_makes_no_request_but_for_news(counted: Counted) -> None:
    """Without reads of data, a statement asks the log once for new versions."""
    counted.connection.sql("SELECT 1 FROM t WHERE id < 0").to_arrow()
    counted.store.reset()
    counted.connection.sql("SELECT 1 FROM t WHERE id < 0").to_arrow()
    assert counted.store.total_calls <= 1, counted.store.calls


def test_an_old_version_is_pruned_as_well(counted: Counted) -> None:
    rows, (paths, _) = counted.sql("SELECT id FROM t VERSION AS OF 10 WHERE id = 120")
    assert rows == [{"id": 120}]
    assert len(paths) == 1
    rows, (paths, _) = counted.sql("SELECT id FROM t VERSION AS OF 10 WHERE id = 1234")
    assert (rows, paths) == ([], set())
