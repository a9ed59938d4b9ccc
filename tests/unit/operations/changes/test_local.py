"""Rows that a condition selects: the moment that it and the new values mean."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from deltalog import DeltaTable
from deltalog.log.context import utc_context
from tests.support.raw_tables import DataTable

NOW = datetime(2020, 6, 1, 12, tzinfo=UTC)


class ClockAt2020:
    """Tells another moment than the machine does, a minute later each time."""

    def __init__(self) -> None:
        self.asked = 0

    def now_ms(self) -> int:
        self.asked += 1
        return int(NOW.timestamp() * 1000) + (self.asked - 1) * 60_000

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def table() -> DeltaTable:
    raw = DataTable([("id", "long"), ("ts", "timestamp")])
    before, after = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)
    raw.commit(raw.add({"id": [1, 2], "ts": [before, after]}))
    return DeltaTable.from_context(replace(utc_context(raw.store), clock=ClockAt2020()))


@pytest.mark.parametrize("door", ["method", "transaction"])
def test_the_present_is_the_contexts(door: str) -> None:
    found = table()
    if door == "method":
        found.delete("ts < current_timestamp()")
    else:
        with found.transaction() as tx:
            tx.delete("ts < current_timestamp()")
    assert found.scan().to_table().column("id").to_pylist() == [2]


def test_scans_take_it_too() -> None:
    assert table().scan(predicate="ts < current_timestamp()").to_table()["id"].to_pylist() == [1]


def test_condition_and_values_mean_one_moment() -> None:
    found = table()
    found.update({"ts": "current_timestamp()"}, predicate="ts < current_timestamp()")
    moved: Any
    (moved,) = found.scan(predicate="id = 1").to_table().column("ts").to_pylist()
    again = DeltaTable.from_context(replace(utc_context(found.snapshot.store), clock=ClockAt2020()))
    assert NOW <= moved < datetime(2020, 6, 2, tzinfo=UTC)
    assert again.scan(predicate="ts < TIMESTAMP '2020-06-01 00:00:00Z'").to_table().num_rows == 0
