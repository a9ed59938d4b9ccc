"""Executors, Python workers and drivers that are killed while they write: nothing is lost.

The store kills: at the first data file that some work puts there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable
from tests.support.cluster import Cluster, Driver
from tests.support.emulators import Emulator, at_put

NUM_ROWS = 40


@dataclass
class Tables:
    """A source of streams, and a table that is changed."""

    store: Emulator
    scratch: Path

    @property
    def url(self) -> str:
        return f"{self.store.url}/table"

    @property
    def source(self) -> str:
        return f"{self.store.url}/source"

    def fill(self, driver: Driver) -> None:
        for url in (self.url, self.url, self.source):
            first = 0 if not self.is_there(url) else NUM_ROWS
            driver.do("append", table=url, options=self.store.options, first=first, count=NUM_ROWS)

    def is_there(self, url: str) -> bool:
        return DeltaTable.is_deltatable(url, storage_options=self.store.options)

    def counted(self) -> list[int]:
        """Rows, ids and the sum of `n`, as this process reads them."""
        table = DeltaTable(self.url, storage_options=self.store.options).to_pyarrow_table()
        ids: list[Any]
        values: list[Any]
        ids, values = (table.column(name).to_pylist() for name in ("id", "n"))
        return [len(ids), len(set(ids)), sum(values)]

    def arguments(self, work: str) -> dict[str, object]:
        match work:
            case "append":
                more: dict[str, object] = {"first": 2 * NUM_ROWS, "count": NUM_ROWS}
            case "merge":
                more = {"first": NUM_ROWS, "count": 2 * NUM_ROWS}
            case "stream":
                where = str(self.scratch / "checkpoint")
                return {
                    "source": self.source,
                    "target": self.url,
                    "checkpoint": where,
                    "options": self.store.options,
                }
            case _:
                more = {}
        return {"table": self.url, "options": self.store.options, **more}


def sevens(first: int, last: int) -> int:
    """The sum of `n` of new rows."""
    return sum(number % 7 for number in range(first, last))


BEFORE = [2 * NUM_ROWS, 2 * NUM_ROWS, sevens(0, 2 * NUM_ROWS)]
AFTER = {
    "append": [3 * NUM_ROWS, 3 * NUM_ROWS, sevens(0, 3 * NUM_ROWS)],
    "merge": [3 * NUM_ROWS, 3 * NUM_ROWS, sevens(0, 3 * NUM_ROWS) + NUM_ROWS],
    "optimize": BEFORE,
    "stream": [3 * NUM_ROWS, 2 * NUM_ROWS, BEFORE[2] + sevens(0, NUM_ROWS)],
}
LONG = pytest.mark.slow("each kill costs seconds, until Spark has replaced what was killed")


@pytest.fixture
def tables(driver: Driver, s3: Emulator, tmp_path: Path) -> Tables:
    found = Tables(s3, tmp_path)
    found.fill(driver)
    assert found.counted() == BEFORE
    return found


@LONG
@pytest.mark.parametrize("victim", ["kill_executors", "kill_python_workers"])
@pytest.mark.parametrize("work", ["append", "merge", "optimize", "stream"])
def test_what_runs_tasks_is_killed(
    cluster: Cluster, driver: Driver, tables: Tables, work: str, victim: str
) -> None:
    killed: list[int] = []
    at_put(tables.store, ".parquet", lambda: killed.extend(getattr(cluster, victim)()))
    driver.do(work, **tables.arguments(work))
    assert killed
    assert not set(killed) & set(cluster.executors() + cluster.python_workers())
    assert tables.counted() == AFTER[work]


@LONG
@pytest.mark.parametrize("work", ["append", "merge", "optimize", "stream"])
def test_a_driver_is_killed(
    start_driver: Callable[..., Driver], driver: Driver, tables: Tables, work: str
) -> None:
    """The other driver does the same work again."""
    dying, reached = start_driver(f"dying-{work}"), threading.Event()

    def kill() -> None:
        dying.kill()
        reached.set()

    at_put(tables.store, ".parquet", kill)
    dying.begin(work, **tables.arguments(work))
    assert reached.wait(120)
    assert tables.counted() == BEFORE
    driver.do(work, **tables.arguments(work))
    assert tables.counted() == AFTER[work]
    table = DeltaTable(tables.url, storage_options=tables.store.options)
    assert table.doctor().is_healthy


@pytest.fixture
def other(start_driver: Callable[..., Driver]) -> Iterator[Driver]:
    driver = start_driver("other")
    yield driver
    driver.close()


@LONG
def test_two_drivers_write_to_one_table(driver: Driver, other: Driver, tables: Tables) -> None:
    for number in range(3):
        for index, one in enumerate((driver, other)):
            first = (2 + 2 * number + index) * NUM_ROWS
            one.begin(
                "append",
                table=tables.url,
                options=tables.store.options,
                first=first,
                count=NUM_ROWS,
            )
        driver.end()
        other.end()
    assert tables.counted() == [8 * NUM_ROWS, 8 * NUM_ROWS, sevens(0, 8 * NUM_ROWS)]
    expected = tables.counted()
    for one in (driver, other):
        assert one.do("total", table=tables.url, options=tables.store.options) == expected


@LONG
def test_two_drivers_merge_into_one_table(driver: Driver, other: Driver, tables: Tables) -> None:
    """Both change the same rows; a merge that loses against the other driver is run again."""
    for _ in range(3):
        for one in (driver, other):
            one.begin("merge", **tables.arguments("merge"))
        driver.end()
        other.end()
    merges = 6 * NUM_ROWS + 5 * NUM_ROWS  # the first one inserts
    assert tables.counted() == [3 * NUM_ROWS, 3 * NUM_ROWS, sevens(0, 3 * NUM_ROWS) + merges]


@LONG
def test_speculation_writes_no_row_twice(
    start_driver: Callable[..., Driver], tables: Tables, tmp_path: Path
) -> None:
    speculating = start_driver(
        "speculating",
        **{
            "spark.speculation": "true",
            "spark.speculation.interval": "200ms",
            "spark.speculation.minTaskRuntime": "2s",
            "spark.speculation.quantile": "0.5",
        },
    )
    flag = tmp_path / "attempts"
    flag.mkdir()
    arguments = tables.arguments("append")
    assert speculating.do("speculated", flag=str(flag), **arguments) == 2
    assert tables.counted() == AFTER["append"]
    speculating.close()
