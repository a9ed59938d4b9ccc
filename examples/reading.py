"""Read tables of other writers with deltalog.

The `deltalake` package writes the flights and deletes some of them. If DELTALOG_CORPUS names a
directory of tables of other writers, a table of Delta Spark with deletion vectors and column
mapping is read, too.
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
    """Make two commits with another library: the flights, and a deletion."""
    say("writing the flights with deltalake, partitioned by month")
    deltalake.write_deltalake(path, pa.Table.from_pandas(flights), partition_by=["month"])
    say("deleting the flights that never left")
    deltalake.DeltaTable(path).delete("dep_time IS NULL")


def read(path: Path) -> None:
    """Print schema and history; run a pruned scan, time travel and SQL."""
    table = timed("opening the table with deltalog", lambda: DeltaTable(path))
    print(table)

    say("the schema")
    for field in table.schema().fields:
        print(f"  {field.name}: {field.type}")

    say("the history")
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

    say("SQL on the same table: DuckDB pushes columns and filters down into the dataset")
    dataset = table.to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("flights", dataset)
        query = """
            select carrier, count(*) as late, round(avg(dep_delay)) as minutes
            from flights where month <= 3 and dep_delay > 60
            group by carrier order by late desc limit 5
        """
        timed("running the query", lambda: connection.sql(query).show())


def read_spark_table(corpus: Path) -> None:
    """Read a table of Delta Spark with deletion vectors and column mapping."""
    path = corpus / SPARK_TABLE
    say(f"a table that Delta Spark wrote: {SPARK_TABLE}")
    table = DeltaTable(path)
    print(f"  protocol: {table.protocol()}")
    print(f"  properties: {table.metadata().configuration}")
    masks = table.deletion_vectors().read_all()["selection_vector"].to_pylist()
    deleted = sum(mask.count(False) for mask in masks if mask)
    print(f"  {table.count():,} rows; deletion vectors hide {deleted} more, in {len(masks)} files")
    print(table.scan(limit=5).to_pandas().to_string(index=False))
