"""Write the flights with deltalog, and read them with other libraries.

The table has partitions, a constraint, a generated column and column mapping. The load runs twice
but is committed once, a column is renamed, and two processes append at the same time.
"""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
from pathlib import Path

import deltalake
import duckdb
import pandas as pd
import pyarrow as pa

from deltalog import (
    AppTransaction,
    CommitProperties,
    DeltaTable,
    Field,
    Schema,
    col,
    write_deltalake,
)
from deltalog.errors import ConstraintViolationError
from examples.saying import say, timed

REFERENCE = Path(__file__).parents[1] / ".cache" / "reference"
NIGHTLY = CommitProperties(app_transactions=[AppTransaction("nightly load", 1)])
APPENDS = 5


def write_and_read(path: Path, flights: pd.DataFrame) -> None:
    """Create, load twice, violate a rule, rename, append concurrently; read with others."""
    data = pa.Table.from_pandas(flights, preserve_index=False)
    say("creating a table: partitions, a constraint, a generated column, column mapping")
    table = create(path, data.schema)
    print(f"  {table.schema().fields[-1]!r}")
    print(f"  {table.protocol()}")
    timed("loading the flights", lambda: load(table, data))
    load(table, data)
    print(f"  repeating the load changes nothing: {table.count():,} flights")
    break_the_rule(table, data)
    say("renaming a column: no file is rewritten")
    table.alter.rename_column("dep_delay", "departure_delay")
    race(path, flights.head(3))
    table.update_incremental()
    for entry in reversed(table.history()):
        print(f"  version {entry['version']}: {entry['operation']}")
    say("reading the table with other libraries")
    read_with_others(path)


def create(path: Path, columns: pa.Schema) -> DeltaTable:
    """Create an empty table with the data's columns and a generated column."""
    flown = Field("flown_on", "date").generated_as("CAST(time_hour AS DATE)")
    return DeltaTable.create(
        path,
        Schema([*Schema.from_arrow(columns), flown]),
        partition_by=["month"],
        constraints={"some_distance": "distance > 0"},
        configuration={"delta.columnMapping.mode": "name"},
    )


def load(table: DeltaTable, data: pa.Table) -> None:
    """Load data. A repeated load is skipped, because it has the same application transaction."""
    write_deltalake(table, data, mode="append", commit_properties=NIGHTLY)


def break_the_rule(table: DeltaTable, data: pa.Table) -> None:
    """Append rows that violate the constraint: nothing is written."""
    say("violating the constraint")
    nowhere = data.slice(0, 2).set_column(
        data.schema.get_field_index("distance"), "distance", pa.array([0.0, -1.0])
    )
    try:
        write_deltalake(table, nowhere, mode="append")
    except ConstraintViolationError as error:
        print(f"  {error}")


def race(path: Path, flights: pd.DataFrame) -> None:
    """Append from two processes at the same time; all appends succeed."""
    say(f"two processes append {APPENDS} times each")
    before = DeltaTable(path).count()
    context = multiprocessing.get_context("spawn")
    runners = [context.Process(target=append_often, args=(path, flights)) for _ in range(2)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    print(f"  {DeltaTable(path).count() - before} flights were added")


def append_often(path: Path, flights: pd.DataFrame) -> None:
    """Append several times, in one of the processes."""
    rows = flights.rename(columns={"dep_delay": "departure_delay"})
    for _ in range(APPENDS):
        write_deltalake(path, rows, mode="append")


def read_with_others(path: Path) -> None:
    """Count rows with DuckDB, deltalake and, if there is a JVM, Delta Spark."""
    mine = DeltaTable(path).scan(predicate=col("month") == 6)
    print(f"  deltalog: {mine.count():,} flights in June")
    with duckdb.connect() as connection:
        connection.register("flights", DeltaTable(path).to_pyarrow_dataset())
        ((june,),) = connection.sql("select count(*) from flights where month = 6").fetchall()
    print(f"  DuckDB over the dataset: {june:,}")
    query = deltalake.QueryBuilder().register("flights", deltalake.DeltaTable(path))
    answer = query.execute("select count(*) as n from flights where month = 6").read_all()
    print(f"  deltalake: {answer['n'][0].as_py():,}")
    python = REFERENCE / "venv" / "bin" / "python"
    if not (REFERENCE / ".ready").exists() or shutil.which("java") is None:
        print("  Delta Spark: not installed (`make reference` needs a JVM and Maven)")
        return
    script = Path(__file__).with_name("spark_reader.py")
    subprocess.run(  # noqa: S603  # our own script, our own paths
        [python, "-W", "ignore", script, REFERENCE / "jars", path],
        check=True,
        stderr=subprocess.DEVNULL,
    )
