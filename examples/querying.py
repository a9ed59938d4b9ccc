"""The flights with SQL only: create, load, merge, compact, and query an older version.

The same statements run twice: with a location for the table, and with names of a catalog. The
catalog is moto's emulator of AWS Glue, a server for tests on this machine. It stores the names;
the tables are local files. Finally, one transaction changes two tables of the catalog.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from deltalog import CatalogTransactions, DeltaTable, connect
from deltalog.catalogs import GlueCatalog, NamedTable
from deltalog.statements import Connection
from examples.saying import check, say, timed

KEYS = ("carrier", "flight", "origin", "time_hour")
COLUMNS = (*KEYS, "dest", "month", "dep_delay")
CREATE = """\
CREATE TABLE {table} (
  carrier STRING NOT NULL, flight BIGINT, origin STRING, time_hour TIMESTAMP, dest STRING,
  month INT, dep_delay DOUBLE
) USING DELTA PARTITIONED BY (month) {place}
TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"""
COUNT = "SELECT count(*) AS n FROM {table}"
LOAD = "INSERT INTO {table} SELECT * FROM arrivals WHERE month {months}"
MERGE = """\
MERGE INTO {table} t USING corrections s
ON t.carrier = s.carrier AND t.flight = s.flight AND t.origin = s.origin
  AND t.time_hour = s.time_hour
WHEN MATCHED THEN UPDATE SET dep_delay = s.dep_delay
WHEN NOT MATCHED THEN INSERT *"""
ISLANDS = "SELECT count(*) AS n, sum(dep_delay) AS late FROM {table} WHERE carrier = 'HA'"
DATABASE = "nyc"


def query(directory: Path, flights: pd.DataFrame) -> None:
    """Run the statements with a location, and with names of a catalog."""
    arrivals = flights.loc[:, list(COLUMNS)]
    corrections = corrected(arrivals)
    rows = {name: pa.Table.from_pandas(found, preserve_index=False)
            for name, found in (("arrivals", arrivals), ("corrections", corrections))}  # fmt: skip
    say("SQL only: a table with a location")
    with connect(rows) as db:
        walk(db, "flights", f"LOCATION '{directory / 'flights'}'", arrivals)
    say("SQL with a catalog: moto's emulator of AWS Glue on this machine")
    with glue(directory / "warehouse") as catalog, connect(
        rows, catalog=catalog, schema=DATABASE
    ) as db:  # fmt: skip
        walk(db, "flights", "", arrivals)
        print(
            f"  Glue lists {', '.join('.'.join(name) for name in catalog.list_tables((DATABASE,)))}"
        )
        change_both(db, catalog, directory / "journals")


def corrected(arrivals: pd.DataFrame) -> pd.DataFrame:
    """Return the flights to Hawaii without delays, and a new flight."""
    found = arrivals[arrivals["carrier"] == "HA"].assign(dep_delay=0.0)
    return pd.concat([found, found.tail(1).assign(flight=9999)])


def walk(db: Connection, table: str, place: str, arrivals: pd.DataFrame) -> None:
    """Create, load, merge and compact; read history and an older version; compare with pandas."""
    islands = arrivals[arrivals["carrier"] == "HA"]
    db.sql(CREATE.format(table=table, place=place))
    for months in ("<= 6", "> 6"):
        load = LOAD.format(table=table, months=months)
        timed(f"INSERT … WHERE month {months}", partial(db.sql, load))
    check("flights", ask(db, COUNT.format(table=table)), {"n": len(arrivals)})
    merged = timed("MERGE INTO … USING corrections", lambda: db.sql(MERGE.format(table=table)))
    check("merged rows", merged.num_affected_rows, len(islands) + 1)
    now = {"n": len(islands) + 1, "late": 0.0}
    check("corrected flights to Hawaii", ask(db, ISLANDS.format(table=table)), now)
    timed("OPTIMIZE", lambda: db.sql(f"OPTIMIZE {table}"))
    check("the same after OPTIMIZE", ask(db, ISLANDS.format(table=table)), now)
    history = db.sql(f"DESCRIBE HISTORY {table}").to_pylist()
    operations = [row["operation"] for row in reversed(history)]
    check("history", operations, ["CREATE TABLE", "WRITE", "WRITE", "MERGE", "OPTIMIZE"])
    before = {"n": len(islands), "late": float(islands["dep_delay"].sum())}
    check(
        "the version before the merge",
        ask(db, ISLANDS.format(table=f"{table} VERSION AS OF 2")),
        before,
    )


def change_both(db: Connection, catalog: GlueCatalog, journals: Path) -> None:
    """Append to one table and update another one, in one transaction."""
    say("two tables of the catalog in one transaction")
    db.sql("CREATE TABLE totals (carrier STRING, flights BIGINT) USING DELTA")
    db.sql("INSERT INTO totals SELECT carrier, count(*) FROM flights GROUP BY carrier")
    (last,) = db.sql("SELECT * FROM flights WHERE flight = 9999").to_pylist()
    transactions = CatalogTransactions(catalog, journals)
    with transactions.begin() as tx:
        tx.table((DATABASE, "flights")).append([{**last, "flight": 10000}])
        tx.table((DATABASE, "totals")).update(
            {"flights": "flights + 1"}, predicate="carrier = 'HA'"
        )
    print(f"  committed: {tx.versions}")
    check("unfinished transactions", transactions.unfinished(), [])
    counted = DeltaTable(NamedTable(catalog=catalog, name=(DATABASE, "totals")))
    rows = counted.scan(["flights"], "carrier = 'HA'").to_table().to_pylist()
    check("both tables agree", rows, db.sql(
        "SELECT count(*) AS flights FROM flights WHERE carrier = 'HA'"
    ).to_pylist())  # fmt: skip


def ask(db: Connection, statement: str) -> dict[str, Any]:
    """Return the only row of a query."""
    (row,) = db.sql(statement).to_pylist()
    return row


@contextmanager
def glue(warehouse: Path) -> Iterator[GlueCatalog]:
    """Provide a catalog with one database on this machine, for the duration of the block."""
    # Slow, and only needed here.
    import boto3  # noqa: PLC0415
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it logs each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {
            "endpoint_url": f"http://{host}:{port}",
            "region_name": "us-east-1",
            "aws_access_key_id": "anybody",
            "aws_secret_access_key": "anything",
        }
        print(f"  Glue is available at {options['endpoint_url']}")
        place = {"Name": DATABASE, "LocationUri": warehouse.as_uri()}
        boto3.client("glue", **options).create_database(DatabaseInput=place)
        # By default, a catalog must not refer to files on this machine.
        yield GlueCatalog(client_options=options, allows_local_files=True)
    finally:
        server.stop()
