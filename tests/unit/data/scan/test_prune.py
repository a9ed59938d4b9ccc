"""Which files are left, by partition values and by statistics."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from deltalog.data.scan import Pruned, prune
from deltalog.expressions import parse_sql, resolve_predicate
from tests.support import logs
from tests.support.raw_tables import DataTable, mapped


def pruned(table: DataTable, where: str | None) -> Pruned:
    snapshot = table.snapshot()
    if where is None:
        return prune(snapshot, None)
    return prune(snapshot, resolve_predicate(parse_sql(where), snapshot.configuration.schema))


def left(table: DataTable, where: str | None) -> list[str]:
    paths: list[Any] = pruned(table, where).files(["path"])["path"].to_pylist()
    return sorted(paths)


def entry(path: str, p: str | None = None, **stats: Any) -> dict[str, Any]:
    """A file of which only the log's line is looked at."""
    return logs.add(path, partitionValues={"p": p}, stats=json.dumps(stats) if stats else None)


@pytest.fixture
def table() -> DataTable:
    table = DataTable([("id", "long"), ("s", "string"), ("p", "date")], partition_by=["p"])
    table.commit(
        entry("w", "2024-01-01", numRecords=2, minValues={"id": 1}, maxValues={"id": 5}),
        entry("x", "2024-01-02", numRecords=2, minValues={"id": 4}, maxValues={"id": 9}),
        entry("y", None, numRecords=2, nullCount={"id": 2}),
        entry("z", "2024-01-01"),
    )
    return table


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        (None, "wxyz"),
        ("p = date'2024-01-01'", "wz"),
        ("p is null", "y"),
        ("p is not null and p != date'2024-01-01'", "x"),
        ("year(p) = 2024", "wxz"),
        ("id > 5", "xz"),
        ("id < 4", "wz"),
        ("id is null", "wxyz"),
        ("id is not null", "wxz"),
        ("p = date'2024-01-01' and id > 5", "z"),
        ("p = date'2024-01-02' or id < 4", "wxz"),
        ("id > 5 and s like 'x%'", "xz"),
        ("length(s) > 3", "wxyz"),
        ("1 = 2", ""),
    ],
)
def test_the_files_that_are_left(table: DataTable, where: str | None, paths: str) -> None:
    assert "".join(left(table, where)) == paths


@pytest.mark.parametrize(
    ("where", "is_exact"),
    [
        (None, True),
        ("p = date'2024-01-01'", True),
        ("id > 5", False),
        ("p = date'2024-01-01' and id > 5", False),
        ("p = date'2024-01-01' or id > 5", False),
    ],
)
def test_only_partition_values_decide_for_every_row(
    table: DataTable, where: str | None, is_exact: bool
) -> None:
    assert pruned(table, where).is_exact is is_exact


def test_the_account(table: DataTable) -> None:
    found = pruned(table, "p = date'2024-01-01' and id > 5")
    assert (found.num_files, found.num_by_partition, found.num_by_statistics) == (4, 2, 1)
    lines = found.explain()
    assert lines[:3] == [
        "files: 4 in the table, 1 to read",
        "pruned by partition values: 2",
        "pruned by statistics: 1",
    ]


def test_rows_are_known_if_every_file_tells(table: DataTable) -> None:
    assert pruned(table, None).num_live_rows() is None
    assert pruned(table, "p > date'2024-01-01'").num_live_rows() == 2


@pytest.mark.protocol("STAT-12")
def test_statistics_of_partition_columns_do_not_count() -> None:
    table = DataTable([("id", "long"), ("p", "long")], partition_by=["p"])
    wrong = {"minValues": {"p": 7}, "maxValues": {"p": 7}, "nullCount": {"p": 1}}
    table.commit(table.add({"id": [1]}, partitionValues={"p": "1"}, stats=wrong))
    assert table.rows("p = 1") == [(1, 1)]
    assert table.rows("p = 7 or p is null") == []


@pytest.mark.protocol("STAT-05")
def test_bounds_are_no_values() -> None:
    table = DataTable([("s", "string"), ("t", "timestamp")])
    # Both are cut off as writers do: the text at 4 characters, the time at milliseconds.
    moment = dt.datetime(2024, 1, 1, 0, 0, 0, 123_456, tzinfo=dt.UTC)
    stats = {
        "numRecords": 1,
        "minValues": {"s": "abcd", "t": "2024-01-01T00:00:00.123Z"},
        "maxValues": {"s": "abce", "t": "2024-01-01T00:00:00.123Z"},
        "nullCount": {"s": 0, "t": 0},
    }
    table.commit(table.add({"s": ["abcdefgh"], "t": [moment]}, stats=stats))
    assert table.rows("s = 'abcdefgh'") == [("abcdefgh", moment)]
    assert table.rows("t > timestamp'2024-01-01T00:00:00.1234Z'") == [("abcdefgh", moment)]
    assert table.scan("s = 'abcd'").count() == 0
    assert table.scan("s = 'abce'").count() == 0
    assert table.scan("t = timestamp'2024-01-01T00:00:00.123Z'").count() == 0


@pytest.mark.protocol("NTZ-05")
@pytest.mark.parametrize("form", ["2024-01-01T00:00:00.123", "2024-01-01 00:00:00.123"])
def test_statistics_without_a_zone(form: str) -> None:
    table = DataTable([("t", "timestamp_ntz")], features=["timestampNtz"])
    moment = dt.datetime(2024, 1, 1, 0, 0, 0, 123_999)  # noqa: DTZ001
    stats = {"numRecords": 1, "minValues": {"t": form}, "maxValues": {"t": form}}
    table.commit(table.add({"t": [moment]}, stats=stats))
    assert table.rows("t > timestamp_ntz'2024-01-01 00:00:00.123'") == [moment]
    for where in ("t >= timestamp_ntz'2024-01-01 00:00:00.2'", "t < timestamp_ntz'2024-01-01'"):
        assert left(table, where) == []


def test_statistics_and_partitions_go_by_physical_name() -> None:
    table = DataTable(
        [mapped("id", "long", 1, "x"), mapped("p", "long", 2, "y")],
        partition_by=["p"],
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    low, high = {"x": 1, "id": 90}, {"x": 2, "id": 99}
    add = entry("f", numRecords=1, minValues=low, maxValues=high)
    add["add"]["partitionValues"] = {"y": "3", "p": "4"}
    table.commit(add)
    assert left(table, "id = 2 and p = 3") == ["f"]
    assert left(table, "id > 2") == left(table, "p = 4") == []


@pytest.mark.parametrize("stats", ["", "{", "[]", '{"minValues":{"id":"x"}}', "null", '{"a":1}'])
def test_statistics_that_are_none_keep_the_file(stats: str) -> None:
    table = DataTable([("id", "long")])
    add = table.add({"id": [1]})
    add["add"]["stats"] = stats
    table.commit(add, table.add({"id": [2]}, stats={"numRecords": 1, "maxValues": {"id": 2}}))
    assert table.rows("id = 1") == [1]
    assert sorted(table.rows("id >= 1")) == [1, 2]
