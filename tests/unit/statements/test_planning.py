"""A SELECT is planned as a scan: the same files are read, the same bytes, the same requests."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, connect, write_deltalake
from deltalog.statements import Connection
from deltalog.testing import CountingStore
from tests.support.logs import DictStore

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
            "wide": ["w" * 200 + str(one) for one in ids],
        }
    )


class Counted:
    """A table of many files whose reads are counted."""

    def __init__(self) -> None:
        self._store = DictStore()
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
        found = self.table.scan(predicate=predicate, columns=columns).to_arrow()
        return found.num_rows, self._read()

    def _read(self) -> tuple[set[str], int]:
        calls = [call for call in self.store.calls if call.path.endswith(".parquet")]
        return {call.path for call in calls}, sum(call.size_bytes for call in calls)


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
def test_a_select_reads_the_files_that_a_scan_reads(
    counted: Counted, where: str, parameters: Any, files: int
) -> None:
    rows, (paths, size_bytes) = counted.sql(
        f"SELECT id, part FROM t WHERE {where}",
        parameters,  # noqa: S608  # of this test
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
    _, (_, narrow) = counted.sql("SELECT id FROM t WHERE id < 200")
    _, (_, wide) = counted.sql("SELECT id, wide FROM t WHERE id < 200")
    assert narrow * 2 < wide
    _, (_, filtered) = counted.sql("SELECT id FROM t WHERE name = 'n07-03'")
    assert filtered < wide


def test_a_limit_ends_the_reading(counted: Counted) -> None:
    rows, (paths, _) = counted.sql("SELECT wide FROM t LIMIT 3")
    assert len(rows) == 3
    assert len(paths) < FILES


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
