"""Upserts of many callers in few versions."""

from __future__ import annotations

import datetime as dt
import math
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, Schema
from deltalog.errors import (
    AmbiguousMergeError,
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
)
from tests.support.facade import make
from tests.support.logs import DictStore

LONG_MS = 60_000.0


def table_of(*ids: int | None) -> DeltaTable:
    return make(pa.table({"id": pa.array(ids, pa.int64()), "v": ["old"] * len(ids)}))


def row(key: int | None, value: str = "new") -> pa.Table:
    return pa.table({"id": pa.array([key], pa.int64()), "v": [value]})


def content(table: DeltaTable) -> list[tuple[Any, ...]]:
    table.update_incremental()
    found = [tuple(one.values()) for one in table.to_pyarrow_table().to_pylist()]
    return sorted(found, key=str)


def upserted(table: DeltaTable, *parts: Any, upsert: Any = "id") -> list[int | BaseException]:
    """Upsert parts in one window; return the result of each caller."""
    with table.appender(upsert=upsert, wait_ms=LONG_MS) as appender:
        futures = [appender.append(part) for part in parts]
        appender.flush()
    return [future.exception() or future.result() for future in futures]


def test_the_rows_of_a_window_are_one_merge() -> None:
    table = table_of(1, 2, 3)
    before = table.version()
    assert upserted(table, row(2), row(9), row(3)) == [before + 1] * 3
    assert content(table) == [(1, "old"), (2, "new"), (3, "new"), (9, "new")]
    assert table.history(1)[0]["operation"] == "MERGE"


def test_the_last_row_of_a_key_counts() -> None:
    table = table_of(1)
    before = table.version()
    results = upserted(table, row(1, "a"), row(5, "a"), row(1, "b"), row(5, "b"), row(1, "c"))
    assert results == [before + 1] * 5
    assert content(table) == [(1, "c"), (5, "b")]


def test_rows_without_a_key_are_inserted() -> None:
    table = table_of(1)
    upserted(table, row(None, "a"), row(None, "b"), row(1))
    assert content(table) == [(1, "new"), (None, "a"), (None, "b")]


def test_a_part_with_two_rows_of_a_key_fails_alone() -> None:
    table = table_of(1)
    twice = pa.concat_tables([row(1, "x"), row(1, "y")])
    first, wrong, last = upserted(table, row(7), twice, row(8))
    assert isinstance(wrong, AmbiguousMergeError)
    assert isinstance(first, int)
    assert isinstance(last, int)
    assert content(table) == [(1, "old"), (7, "new"), (8, "new")]


def test_invalid_rows_fail_alone() -> None:
    table = table_of(1)
    table.alter.add_constraint({"short": "length(v) < 4"})
    first, wrong, other, last = upserted(
        table, row(1), row(2, "too long"), pa.table({"id": [4], "w": [1]}), row(3)
    )
    assert isinstance(wrong, ConstraintViolationError)
    assert isinstance(other, SchemaMismatchError)
    assert isinstance(first, int)
    assert isinstance(last, int)
    assert content(table) == [(1, "new"), (3, "new")]


def test_parts_without_some_columns_do_not_change_these_columns() -> None:
    table = make(pa.table({"id": [1], "a": [10], "b": [20]}))
    upserted(table, pa.table({"id": [1, 2], "a": [11, 12]}), pa.table({"id": [1], "b": [21]}))
    assert content(table) == [(1, 11, 21), (2, 12, None)]


def test_keys_of_several_columns_and_strings_by_a_collation() -> None:
    schema = Schema(
        [
            Field("k", "string", metadata={"__COLLATIONS": {"k": "spark.UTF8_LCASE"}}),
            Field("n", "long"),
            Field("v", "string"),
        ]
    )
    table = DeltaTable.create(DictStore({}), schema)
    before = table.version()
    parts = [
        pa.table({"k": [key], "n": [number], "v": [value]})
        for key, number, value in (("A", 1, "x"), ("a", 1, "y"), ("a", 2, "z"), ("A", 1, "last"))
    ]
    assert upserted(table, *parts, upsert=["k", "n"]) == [before + 1] * 4
    assert [found[1:] for found in content(table)] == [(1, "last"), (2, "z")]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [0.0, -0.0, math.nan, math.nan]),
        (pa.decimal128(5, 2), [Decimal("1.0"), Decimal("1.00"), Decimal(2), Decimal("2.00")]),
        (pa.date32(), [dt.date(2024, 1, 1)] * 2 + [dt.date(2024, 1, 2)] * 2),
        (pa.bool_(), [True, True, False, False]),
        (pa.binary(), [b"", b"", b"a", b"a"]),
    ],
)
def test_equal_keys_of_a_window_are_one_row(kind: Any, values: list[Any]) -> None:
    table = DeltaTable.create(DictStore(), pa.schema([("id", kind), ("v", pa.int64())]))
    before = table.version()
    parts = [pa.table({"id": pa.array([key], kind), "v": [at]}) for at, key in enumerate(values)]
    assert upserted(table, *parts) == [before + 1] * 4
    table.update_incremental()
    found: list[Any] = table.to_pyarrow_table()["v"].to_pylist()
    assert sorted(found) == [1, 3]


def test_true_means_the_columns_of_the_key_index() -> None:
    table = table_of(1)
    with pytest.raises(InvalidInputError, match="set_key_index"):
        table.appender(upsert=True)
    table.alter.set_key_index(["id"])
    upserted(table, row(1), upsert=True)
    assert content(table) == [(1, "new")]


@pytest.mark.parametrize("key", ["ID2", ["id", "no"]])
def test_an_unknown_column_is_an_error(key: Any) -> None:
    with pytest.raises(DeltaError, match="no"):
        table_of(1).appender(upsert=key)


def test_many_threads_upsert_in_few_versions() -> None:
    table = table_of(*range(50))
    before = table.version()
    with table.appender(upsert="id", wait_ms=20) as appender, ThreadPoolExecutor(16) as threads:
        keys = [number % 100 for number in range(400)]
        list(threads.map(lambda key: appender.append(row(key)).result(), keys))
    assert content(table) == sorted([(key, "new") for key in range(100)], key=str)
    assert table.version() - before < 200
