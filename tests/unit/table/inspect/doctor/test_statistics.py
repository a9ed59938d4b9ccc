"""What the doctor says of statistics."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.support.aging import AgingTable
from tests.support.examining import commit, look, make, with_stats
from tests.support.logs import Json


def test_bounds_that_are_cut_or_rounded_are_not_wrong() -> None:
    moment = datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    columns: dict[str, Any] = {
        "text": pa.array(["x" * 100, None]),
        "at": pa.array([moment, moment], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("12345678901234567890.12"), None], pa.decimal128(30, 2)),
        "part": pa.array([{"a": 1, "b": [1]}, None]),
        "raw": pa.array([b"1", b"2"]),
        "yes": pa.array([True, None]),
    }
    table = AgingTable()
    table.create(pa.table(columns))
    assert look(table, checks=["statistics"]).findings == ()


WRONG = [
    ({"numRecords": 2}, "numRecords is 2"),
    ({"nullCount": {"id": 1, "f": 1}}, "nullCount of id is 1"),
    ({"minValues": {"id": 5}}, "the minimum of id is 5, but 4 occurs"),
    ({"maxValues": {"id": 3}}, "the maximum of id is 3, but 4 occurs"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_statistics_that_are_wrong(changes: Json, message: str) -> None:
    table = make()
    commit(table, 1, lambda line: with_stats(line, **changes))
    (finding,) = look(table, checks=["statistics"]).findings
    assert message in finding.message


def test_values_that_python_does_not_have_are_told() -> None:
    table = AgingTable()
    late = pa.array([4_000_000], pa.int32()).cast(pa.date32())
    table.create(pa.table({"d": late}))
    commit(table, 0, lambda line: with_stats(line, maxValues={"d": "2024-01-01"}))
    (finding,) = look(table, checks=["statistics"]).findings
    assert "the maximum of d is datetime.date(2024, 1, 1), but '+12921-08-18' occurs" in (
        finding.message
    )


def test_only_samples_of_the_data_are_read() -> None:
    table = make()
    for number in range(6):
        table.append({"id": [number], "p": [0], "f": [None]})
        commit(table, 2 + number, lambda line: with_stats(line, numRecords=9))
    assert len(look(table, checks=["statistics"], num_samples=3).findings) == 2
