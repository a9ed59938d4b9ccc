"""Queries of TPC-H on a store with a latency of 25 ms, for the page of `benchmarks.tpc`.

The tables are links to the files that the local comparison wrote, in the directory that the S3
server of `benchmarks.wire` serves. Each query opens its tables, so its time includes the log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import deltalake
import duckdb
import pyarrow as pa

import deltalog
from benchmarks.wire.control import Control
from benchmarks.wire.server import BUCKET, options, running
from tests.support.tpc_answers import Benchmark, in_spark_sql

LATENCY_MS: Final = 25
QUERIES: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("lineitem",),
    3: ("customer", "lineitem", "orders"),
    6: ("lineitem",),
}
"""The tables of each query."""


@contextmanager
def sides(made: Benchmark) -> Iterator[dict[str, Callable[[int], pa.Table]]]:
    """Return the engines for the tables in the store; each runs the query with a number.

    Args:
        made: the local tables.
    """
    directory = made.place / "wire"
    for name in {name for names in QUERIES.values() for name in names}:
        target = directory / BUCKET / name
        if not target.exists():
            shutil.copytree(_local(made, name), target, copy_function=os.link)
    with running(directory) as wire, Control(wire.control_port) as control:
        control.set_latency(LATENCY_MS)
        storage_options = options(wire.port)

        def open_tables(number: int) -> dict[str, Any]:
            return {
                name: deltalog.DeltaTable(f"s3://{BUCKET}/{name}", storage_options=storage_options)
                for name in QUERIES[number]
            }

        def by_sql(number: int) -> pa.Table:
            return deltalog.sql(in_spark_sql(made.query(number)), **open_tables(number)).to_arrow()

        def by_dataset(number: int) -> pa.Table:
            with duckdb.connect(config={"default_null_order": "nulls_first"}) as connection:
                for name, table in open_tables(number).items():
                    connection.register(name, table.to_pyarrow_dataset())
                found: pa.Table = connection.sql(made.query(number)).to_arrow_table()
                return found

        def by_query_builder(number: int) -> pa.Table:
            queries: Any = deltalake.QueryBuilder()
            for name in QUERIES[number]:
                table = deltalake.DeltaTable(
                    f"s3://{BUCKET}/{name}", storage_options=storage_options
                )
                queries = queries.register(name, table)
            return pa.table(queries.execute(made.query(number)).read_all())

        yield {
            "deltalog.sql": by_sql,
            "DuckDB over `to_pyarrow_dataset()`": by_dataset,
            "deltalake `QueryBuilder`": by_query_builder,
        }


def _local(made: Benchmark, name: str) -> Path:
    return Path(made.tables[name].table_uri.removeprefix("file://"))
