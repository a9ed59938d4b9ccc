"""Times the 99 queries of TPC-DS: `python -m tests.support.tpcds_seconds DIRECTORY`.

Each query has a process of its own, and a line for each way: seconds, rows, and what is wrong with
the answer. A query that takes more than a minute is ended. The tables are written beside those of
the generator, unless they are there.
"""

# ruff: noqa: T201  # a report for the terminal

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa

import deltalog
from tests.support.tpcds_answers import (
    NUMBERS,
    Benchmark,
    difference,
    in_spark_sql,
    write_tables,
)

MOST_SECONDS = 60


def by_sql(made: Benchmark, number: int) -> pa.Table:
    """The answer of `deltalog.sql`."""
    return deltalog.sql(in_spark_sql(made.query(number)), **made.tables).to_arrow()


def by_duckdb(made: Benchmark, number: int) -> pa.Table:
    """The answer of DuckDB over our datasets."""
    with duckdb.connect(config={"default_null_order": "nulls_first"}) as connection:
        for name, table in made.tables.items():
            connection.register(name, table.to_pyarrow_dataset())
        found: pa.Table = connection.sql(made.query(number)).to_arrow_table()
        return found


WAYS: dict[str, Callable[[Benchmark, int], pa.Table]] = {"sql": by_sql, "duckdb": by_duckdb}


def one(place: Path, number: int, way: str) -> None:
    """Answer a query, and print the seconds and what is wrong."""
    made = write_tables(place, place / "delta")
    began = time.perf_counter()
    found = WAYS[way](made, number)
    seconds = time.perf_counter() - began
    wrong = difference(found, made.answer(number), made.query(number))
    print(f"{seconds:.1f} s, {found.num_rows} rows{'' if wrong is None else f', WRONG: {wrong}'}")


def told(place: Path, number: int, way: str) -> str:
    """The same in a process of its own, which ends after a minute."""
    command = [sys.executable, "-m", __spec__.name, str(place), str(number), way]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS + 15
        )
    except subprocess.TimeoutExpired:
        return f"more than {MOST_SECONDS} s"
    text = done.stdout if done.returncode == 0 else done.stderr
    return (text.strip().splitlines() or [f"ended with {done.returncode}"])[-1]


def every(place: Path) -> None:
    """Time all queries, one after the other."""
    write_tables(place, place / "delta")
    for number in NUMBERS:
        shown = "; ".join(f"{way} {told(place, number, way)}" for way in WAYS)
        print(f"query {number:2}: {shown}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        one(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    else:
        every(Path(sys.argv[1]))
