"""Row groups that a predicate leaves out, by the footer's bounds."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.scan.plan import plan_scan
from deltalog.data.scan.row_groups import FooterPruning
from deltalog.data.scan.transform import project_file
from deltalog.storage.parquet.excerpt import PAGED
from deltalog.storage.parquet.paged import PagedReader
from deltalog.storage.parquet.reader import open_parquet
from tests.support.raw_tables import DataTable, struct_of


def survivors(table: DataTable, where: str) -> tuple[int, ...]:
    """Numbers of the row groups of the table's first file."""
    spec = table.scan(where).spec
    reader = open_parquet(table.store, "part-0.parquet")
    matched = project_file(spec.data_columns, reader.arrow_schema, spec.mode, path="f")
    pruning = FooterPruning(spec.predicate, spec.data_columns, matched.leaf_of, reader)
    return pruning.row_groups(PagedReader(table.store, reader))


def one_file(kind: Any, values: pa.Array[Any], **options: Any) -> DataTable:
    """Row groups of two rows each."""
    table = DataTable([("c", kind), ("s", struct_of(("x", "long")))])
    data = pa.table({"c": values, "s": [{"x": row} for row in range(len(values))]})
    table.commit(table.add(data, options={"row_group_size": 2, **options}))
    return table


LONGS = pa.array([1, 2, 3, 4, None, None, 7, None])


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("c = 3", (1,)),
        ("c > 2 and c < 7", (1,)),
        ("c in (1, 7)", (0, 3)),
        ("c is null", (2, 3)),
        ("c is not null", (0, 1, 3)),
        ("c > 7", ()),
        ("s.x = 0", (0, 1, 2, 3)),
        ("c = 3 or s.x = 0", (0, 1, 2, 3)),
        ("c = 3 and s.x = 0", (1,)),
        ("_metadata.row_index = 0", (0, 1, 2, 3)),
        ("_metadata.row_index = 0 and c = 7", (3,)),
    ],
)
def test_the_row_groups_that_are_left(where: str, groups: tuple[int, ...]) -> None:
    assert survivors(one_file("long", LONGS), where) == groups


def test_a_condition_may_be_about_every_column_of_the_file() -> None:
    table = DataTable([("a", "long"), ("b", "long")])
    data = pa.table({"a": [1, 2, 3, 4, 5, 6], "b": [6, 5, 4, 3, 2, 1]})
    table.commit(table.add(data, options={"row_group_size": 2}))
    assert survivors(table, "a = 3 OR b = 6") == (0, 1)
    assert survivors(table, "a < b") == (0, 1)


def test_positions_count_the_row_groups_that_are_left_out() -> None:
    table = one_file("long", LONGS)
    assert table.rows("c = 7", ["_metadata.row_index"]) == [6]
    assert table.rows("c in (1, 7)", ["_metadata.row_index"]) == [0, 6]


def test_without_statistics_every_row_group_is_read() -> None:
    table = one_file("long", LONGS, write_statistics=False)
    assert survivors(table, "c = 3") == (0, 1, 2, 3)
    assert table.rows("c = 3", ["c"]) == [3]


def test_nan_is_not_in_the_bounds() -> None:
    table = one_file("double", pa.array([1.0, math.nan, 2.0, 3.0]))
    assert survivors(table, "c > 100") == (0, 1)
    assert len(table.rows("c > 100")) == 1


@pytest.mark.parametrize(
    ("kind", "values", "where", "expected"),
    [
        ("string", ["a", "b", "é", "z" * 70], f"c = '{'z' * 70}'", ["z" * 70]),
        ("binary", [b"a", b"b", b"\xff", b"\x00"], "c = X'ff'", [b"\xff"]),
        ("boolean", [True, True, False, False], "c = false", [False, False]),
        ("boolean", [True, True, False, False], "not c", [False, False]),
    ],
)
def test_kinds_of_bounds(kind: str, values: list[Any], where: str, expected: list[Any]) -> None:
    assert one_file(kind, pa.array(values)).rows(where, ["c"]) == expected


def test_an_empty_file_has_no_row_group() -> None:
    table = DataTable([("c", "long")])
    table.commit(table.add(pa.table({"c": pa.array([], pa.int64())}), stats={}))
    assert table.rows("c = 1") == []
    assert plan_scan(table.snapshot()).count() == 0


@pytest.mark.parametrize(
    ("kind", "stored", "far"),
    [
        ("date", pa.date32(), 10**7),
        ("timestamp", pa.timestamp("us", "UTC"), 10**18),
        ("timestamp_ntz", pa.timestamp("us"), 10**18),
        ("timestamp", pa.timestamp("ns", "UTC"), 10**18 + 1),
    ],
)
def test_bounds_that_python_has_no_value_for(kind: str, stored: Any, far: int) -> None:
    table = DataTable([("c", kind)], features=["timestampNtz"])
    whole: Any = pa.int32() if kind == "date" else pa.int64()
    values = pa.array([-far, 0, far], whole).view(stored)
    table.commit(table.add(pa.table({"c": values}), options={"row_group_size": 1}))
    assert table.scan(f"c >= {kind}'1970-01-01'").count() == 2
    assert table.scan(f"c = {kind}'1970-01-01'").count() == 1


def test_row_groups_without_values_leave_the_bounds_of_the_others() -> None:
    texts = pa.array(["a", "b", None, None, "y", "z"])
    assert survivors(one_file("string", texts), "c = 'a'") == (0,)
    assert survivors(one_file("string", texts), "c > 'b'") == (2,)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("c = 13", [(10, 20)]),
        ("c > 25 and c < 41", [(20, 50)]),
        ("c in (5, 95)", [(0, 10), (90, 100)]),
        ("c = 13 or s.x = 0", [(0, 100)]),
        ("c = 13 and s.x = 0", [(10, 20)]),
        ("c is null", [(60, 80)]),
        ("c = 63", []),
        ("c = 13 and t = '13'", [(10, 14)]),
        ("c = 13 or t = '17'", [(10, 28)]),
        ("d > 1e9", [(0, 100)]),
    ],
)
def test_the_rows_whose_pages_are_left(
    where: str, rows: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of ten numbers and of fourteen texts: the bounds of both decide at once."""
    monkeypatch.setattr(PAGED, "least_rows", 1)
    table = DataTable(
        [("c", "long"), ("t", "string"), ("d", "double"), ("s", struct_of(("x", "long")))]
    )
    numbers = pa.array([None if 60 <= row < 70 else row for row in range(100)])
    texts = [f"{row:02}" for row in range(100)]
    data = pa.table(
        {
            "c": numbers,
            "t": texts,
            "d": [float(row) for row in range(100)],
            "s": [{"x": row} for row in range(100)],
        }
    )
    options = {"write_page_index": True, "use_dictionary": False, "write_batch_size": 2}
    # Pages end with the batch of two values that fills them; a NULL takes no bytes.
    table.commit(table.add(data, options={**options, "data_page_size": 73}))
    spec = table.scan(where).spec
    reader = open_parquet(table.store, "part-0.parquet")
    matched = project_file(spec.data_columns, reader.arrow_schema, spec.mode, path="f")
    pruning = FooterPruning(spec.predicate, spec.data_columns, matched.leaf_of, reader)
    paged = PagedReader(table.store, reader)
    paged.load_index([0], pruning.leaves, pruning.leaves)
    assert pruning.rows([0], paged) == rows
    assert pruning.rows([0], paged) == rows  # by what is remembered of the footer
    monkeypatch.setattr(PAGED, "is_on", False)
    assert pruning.rows([0], paged) == [(0, 100)]


NANOS = 1_700_000_000_123_456_789


@pytest.mark.parametrize(
    ("kind", "values", "wheres"),
    [
        (
            "timestamp_nanos_ntz",
            pa.array([NANOS + n for n in (0, 1, 2, 3)], pa.timestamp("ns")),
            {
                "c = TIMESTAMP_NTZ'2023-11-14 22:13:20.123456791'": (1,),
                "c > TIMESTAMP_NTZ'2023-11-14 22:13:20.12345679'": (1,),
                "c <= TIMESTAMP_NTZ'2023-11-14 22:13:20.12345679'": (0,),
                "c IN (TIMESTAMP_NTZ'2023-11-14 22:13:20.123456789', TIMESTAMP_NTZ'3000-01-01')": (
                    0,
                ),
                "c < TIMESTAMP_NTZ'3000-01-01'": (0, 1),
                "c > TIMESTAMP_NTZ'3000-01-01'": (),
                "c IS NULL": (),
            },
        ),
        (
            "interval year to month",
            pa.array([-5, -4, 12, 13], pa.int32()),
            {
                "c > INTERVAL '1' YEAR": (1,),
                "c = INTERVAL '-0-4' YEAR TO MONTH": (0,),
                "c IN (INTERVAL 1 MONTH, INTERVAL 2 MONTHS)": (),
            },
        ),
        (
            "interval day to second",
            pa.array([-5, -4, 12, 13], pa.int64()),
            {
                "c < INTERVAL 0 SECONDS": (0,),
                "c >= INTERVAL 13 MICROSECONDS": (1,),
                "c > INTERVAL 1 DAY": (),
            },
        ),
    ],
)
def test_footers_bound_nanoseconds_and_intervals(
    kind: str,
    values: pa.Array[Any],
    wheres: dict[str, tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DELTALOG_PREVIEWS", "timestampNanos,intervalTypes")
    table = one_file(kind, values)
    for where, groups in wheres.items():
        assert survivors(table, where) == groups, where


def test_bounds_of_microseconds_are_compared_with_nanoseconds() -> None:
    # Bounds of microseconds may be cut down to milliseconds, wherever they stand.
    micros = pa.array([NANOS // 1000 + n * 10_000 for n in (0, 1, 2, 3)], pa.timestamp("us"))
    table = one_file("timestamp_ntz", micros)
    between = "CAST('2023-11-14 22:13:20.138456500' AS TIMESTAMP_NANOS_NTZ)"
    assert survivors(table, f"c > {between}") == (1,)
    assert survivors(table, f"c < {between}") == (0,)
    assert survivors(table, f"c = {between}") == ()
