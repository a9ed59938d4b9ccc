"""The first rows of an order: the right ones, from as few files as their bounds allow."""

from __future__ import annotations

import math
import pickle
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.testing import CountingStore
from tests.support.facade import make, store_of
from tests.support.logs import DictStore

START = datetime(2026, 1, 1, tzinfo=UTC)


def in_files(files: int, rows: int, **columns: Any) -> DeltaTable:
    """Ids go up from file to file."""
    store = DictStore()
    for number in range(files):
        ids = list(range(number * rows, (number + 1) * rows))
        more = {name: [of(value) for value in ids] for name, of in columns.items()}
        write_deltalake(store, pa.table({"id": ids, **more}), mode="append")
    return DeltaTable(store)


def counted(table: DeltaTable, **asked: Any) -> tuple[list[Any], int]:
    """The ids, and the number of files that were read."""
    store = CountingStore(store_of(table))
    found = DeltaTable(store).scan(**asked).to_table().column("id").to_pylist()
    opened = {call.paths[0] for call in store.calls if call.paths[0].endswith(".parquet")}
    return found, len({path for path in opened if not path.startswith("_delta_log")})


@pytest.mark.parametrize(
    ("order_by", "expected"),
    [
        ("id", [0, 1, 2]),
        ("id desc", [199, 198, 197]),
        (["id"], [0, 1, 2]),
        ([("id", "descending")], [199, 198, 197]),
        (["id DESC NULLS FIRST"], [199, 198, 197]),
        ("ID", [0, 1, 2]),
        ("`id`", [0, 1, 2]),
    ],
)
def test_one_file_is_read_where_bounds_do_not_overlap(order_by: Any, expected: list[int]) -> None:
    table = in_files(20, 10)
    assert counted(table, order_by=order_by, limit=3) == (expected, 1)


def test_as_many_files_as_hold_the_rows_are_read() -> None:
    table = in_files(20, 10)
    assert counted(table, order_by="id desc", limit=25) == (list(range(199, 174, -1)), 3)


def test_overlapping_files_are_read_until_no_other_can_be_better() -> None:
    table = in_files(40, 10, v=lambda number: number % 97)
    ids, files = counted(table, order_by="v desc, id", limit=2)
    assert ids == [96, 193]
    assert files < 40


def test_a_predicate_and_hidden_columns() -> None:
    table = in_files(20, 10, v=lambda number: -number, s=str)
    asked: dict[str, Any] = {
        "order_by": "v",
        "limit": 2,
        "predicate": "id < 150",
        "columns": ["s", "id"],
    }
    ids, files = counted(table, **asked)
    assert (ids, files) == ([149, 148], 1)
    scan = table.scan(**asked)
    assert scan.to_table().column_names == scan.schema.names == ["s", "id"]
    assert pickle.loads(pickle.dumps(scan)).to_table() == scan.to_table()
    assert scan.count() == 2
    assert "order: v ASC NULLS FIRST" in scan.explain()


def test_rows_that_are_deleted_are_none_of_the_first() -> None:
    store = DictStore()
    for start in (0, 10, 20):
        write_deltalake(
            store,
            pa.table({"id": list(range(start, start + 10))}),
            mode="append",
            configuration={"delta.enableDeletionVectors": "true"},
        )
    table = DeltaTable(store)
    table.delete("id >= 25 or id = 19")
    assert counted(table, order_by="id desc", limit=7)[0] == [24, 23, 22, 21, 20, 18, 17]


def test_partition_values_are_bounds() -> None:
    store = DictStore()
    for day in range(10):
        rows = pa.table({"id": [day * 2, day * 2 + 1], "day": [day, day]})
        write_deltalake(store, rows, mode="append", partition_by=["day"])
    assert counted(DeltaTable(store), order_by="day desc, id", limit=2) == ([18, 19], 1)


VALUES: dict[str, list[Any]] = {
    "long": [3, None, -1, 7, 3, None, 0],
    "double": [1.5, None, math.nan, -0.0, 0.0, math.inf, -math.inf],
    "string": ["b", None, "", "ä", "a", "b", "z" * 60],
    "decimal": [Decimal("1.10"), None, Decimal("-3.00"), Decimal("9.99"), None, Decimal(0), None],
    "moment": [START + timedelta(microseconds=n * 333) for n in range(6)] + [None],
    "flag": [True, None, False, True, False, None, True],
    "bytes": [b"b", None, b"", b"\xff", b"a", b"b", b"\x00"],
}


def _spark_order(value: Any) -> Any:
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value.encode() if isinstance(value, str) else value)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("turn", ["ASC", "DESC"])
@pytest.mark.parametrize("nulls", ["", "NULLS FIRST", "NULLS LAST"])
def test_values_are_arranged_as_spark_arranges_them(kind: str, turn: str, nulls: str) -> None:
    values = VALUES[kind] * 3
    random.Random(5).shuffle(values)
    numbered = list(enumerate(values))
    column = pa.array(values) if kind != "decimal" else pa.array(values, pa.decimal128(9, 2))
    rows = pa.table({"id": range(len(values)), "v": column})
    store = DictStore()
    for start in range(0, len(values), 4):
        write_deltalake(store, rows.slice(start, 4), mode="append")
    known = sorted(
        (item for item in numbered if item[1] is not None),
        key=lambda item: _spark_order(item[1]),
        reverse=turn == "DESC",
    )
    unknown = [item for item in numbered if item[1] is None]
    first = nulls == "NULLS FIRST" or (not nulls and turn == "ASC")
    expected = [value for _, value in (unknown + known if first else known + unknown)]
    for limit in (1, 4, 9, 21, 50):
        scan = DeltaTable(store).scan(["v"], order_by=f"v {turn} {nulls}", limit=limit)
        found = scan.to_table().column("v").to_pylist()
        assert list(map(str, found)) == list(map(str, _zeros(expected, found)[:limit]))


def _zeros(expected: list[Any], found: list[Any]) -> list[Any]:
    """0.0 and -0.0 are equal: either may come first."""
    pairs = zip(expected, [*found, *expected[len(found) :]], strict=True)
    return [there if there == here == 0 else here for here, there in pairs]


@pytest.mark.parametrize(
    "order_by", ["", [], "id +", "id + 1", "nobody", 5, [5], [("id", "up")], "n.a"]
)
def test_what_is_no_order(order_by: Any) -> None:
    table = make([{"id": 1, "n": {"a": 1}}])
    with pytest.raises(InvalidInputError):
        table.scan(order_by=order_by, limit=1).to_table()


def test_an_order_needs_a_limit() -> None:
    table = make([{"id": 1}])
    with pytest.raises(InvalidInputError, match="needs a limit"):
        table.scan(order_by="id")
    assert table.scan(order_by="id", limit=0).to_table().num_rows == 0
    assert table.scan(order_by="id", limit=5).to_table().num_rows == 1
