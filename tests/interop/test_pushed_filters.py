"""Filters that DuckDB pushes into the dataset: its own answer, and no file that cannot match.

The truth is what DuckDB makes of the same rows in memory.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.storage import open_store
from deltalog.testing import CountingStore

FILES = 10
ROWS_PER_FILE = 4
DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def _rows(file: int) -> pa.Table:
    """Values that grow from file to file; in the last one there is nothing but NULL and NaN."""
    numbers = [10 * file + row for row in range(ROWS_PER_FILE)]
    moments = [DAY + dt.timedelta(days=number) for number in numbers]
    floats = [float(number) for number in numbers]
    columns: dict[str, pa.Array[Any]] = {
        "i": pa.array(numbers, pa.int64()),
        "small": pa.array(numbers, pa.int16()),
        "f": pa.array(floats),
        "s": pa.array([f"t{number:03}" for number in numbers]),
        "y": pa.array([f"t{number:03}".encode() for number in numbers]),
        "d": pa.array([moment.date() for moment in moments]),
        "t": pa.array(moments, pa.timestamp("us", "UTC")),
        "n": pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us")),
        "x": pa.array([Decimal(number) / 2 for number in numbers], pa.decimal128(10, 2)),
        "st": pa.array([{"a": number, "b": {"c": number}} for number in numbers]),
        "flag": pa.array([number % 2 == 0 for number in numbers]),
    }
    if file == FILES - 1:
        nothing = {name: pa.nulls(ROWS_PER_FILE, column.type) for name, column in columns.items()}
        columns = {**nothing, "f": pa.array([float("nan"), 0.0, -0.0, None])}
    return pa.table(columns)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CountingStore:
    store = CountingStore(open_store(str(tmp_path_factory.mktemp("table"))))
    for file in range(FILES):
        write_deltalake(store, _rows(file), mode="append")
    return store


@pytest.fixture(scope="module")
def connection(store: CountingStore) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("pushed", DeltaTable(store).to_pyarrow_dataset())
        held = pa.concat_tables(_rows(file) for file in range(FILES))
        connection.register("held", held)
        connection.execute("create table rows as select * from held")
        yield connection


@pytest.mark.parametrize(
    ("where", "most_files"),
    [
        ("i = 12", 1),
        ("i <> 12", 9),
        ("i < 10", 1),
        ("i >= 70 and i < 90", 2),
        ("i between 30 and 42", 2),
        ("i in (12)", 1),
        ("i in (12, 42, 600)", 2),
        ("i not in (12, 42)", 9),
        ("i in (12, 42) or i is null", 3),
        ("i in (12, 42) and s is not null", 2),
        ("i = 12 or i = 42", 2),
        ("i = 12 or s = 't042'", 2),
        ("(i = 12 and s = 't012') or (i = 42 and s = 't000')", 1),
        ("i is null", 1),
        ("i is not null", 9),
        ("small in (12, 42)", 2),
        ("small = 12", 1),
        ("f = 12", 2),
        ("f in (12, 42.0)", 3),
        ("f in (0.0, 12)", 10),  # zeros differ in pyarrow's set, and DuckDB's filter is kept
        ("s = 't012'", 1),
        ("s >= 't01' and s < 't02'", 1),
        ("s in ('t012', 't042')", 2),
        ("y = 't012'::blob", 10),
        ("y in ('t012'::blob, 't042'::blob)", 10),  # the log has no bounds of binaries
        ("d = date '2024-01-13'", 1),
        ("d between '2024-01-11' and '2024-01-14'", 1),
        ("d in (date '2024-01-13', date '2024-02-12')", 2),
        ("cast(d as timestamp) > timestamp '2024-03-11 12:00:00'", 2),
        ("t = timestamptz '2024-01-13 00:00:00+00'", 1),
        (
            "t in (timestamptz '2024-01-13 00:00:00+00', timestamptz '2024-02-12 00:00:00+00')",
            2,
        ),
        ("n >= timestamp '2024-03-20 00:00:00'", 1),
        ("n in (timestamp '2024-01-13', timestamp '2024-02-12')", 2),
        ("x = 6.0", 1),
        ("x > 40", 1),
        ("x between 5.0 and 6.5", 1),  # with `5`, DuckDB casts the column
        ("st.a = 12", 1),
        ("st.b.c = 12", 1),
        ("st.a in (12, 42)", 2),
        ("flag = true", 10),
    ],
)
def test_a_filter_of_duckdb_reads_only_files_that_may_match(
    store: CountingStore, connection: duckdb.DuckDBPyConnection, where: str, most_files: int
) -> None:
    expected = connection.execute(f"select i, f from rows where {where}").fetchall()  # noqa: S608
    store.reset()
    found = connection.execute(f"select i, f from pushed where {where}").fetchall()  # noqa: S608
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert store.footers_opened == most_files


@pytest.mark.parametrize(
    "where",
    [
        "s like 't01%'",
        "s like 't%2'",
        "s like '%12'",
        "prefix(s, 't01')",
        "f > 85",
        "f between 10 and 13",
        "f <> 12",
        "f = 'nan'",
        "f < 0.5",
        "i = 12.0",
        "i > 84.5",
        "x in (6.0, 21.0)",
        "flag",
        "not flag",
        "i in (12, null)",
        "i not in (12, null)",
        "i is distinct from 12",
        "i is not distinct from null",
        "i % 2 = 0",
        "cast(i as varchar) = '12'",
        "i in (select 12 union all select 42)",
        "st is null",
        "st.a is null",
    ],
)
def test_what_duckdb_filters_itself_is_its_own_answer(
    connection: duckdb.DuckDBPyConnection, where: str
) -> None:
    expected = connection.execute(f"select i, f from rows where {where}").fetchall()  # noqa: S608
    found = connection.execute(f"select i, f from pushed where {where}").fetchall()  # noqa: S608
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
