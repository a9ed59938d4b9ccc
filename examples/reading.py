"""What other writers made, read by deltalog.

The `deltalake` package writes the flights and deletes some of them. Where DELTALOG_CORPUS names the
tables of other writers, one of Delta Spark's with deletion vectors and column mapping is read too.
"""

from __future__ import annotations

from pathlib import Path

import deltalake
import duckdb
import pandas as pd
import pyarrow as pa

from deltalog import DeltaTable, col
from examples.saying import say, timed

SPARK_TABLE = "delta-golden/dv-with-columnmapping"


def write(path: Path, flights: pd.DataFrame) -> None:
    """Two commits of another library: the flights, and a deletion."""
    say("writing the flights with deltalake, partitioned by month")
    deltalake.write_deltalake(path, pa.Table.from_pandas(flights), partition_by=["month"])
    say("deleting the flights that never left")
    deltalake.DeltaTable(path).delete("dep_time IS NULL")


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
    deleted = sum(mask.count(False) for mask in masks if mask)
    print(f"  {table.count():,} rows; deletion vectors hide {deleted} more, in {len(masks)} files")
    print(table.scan(limit=5).to_pandas().to_string(index=False))
