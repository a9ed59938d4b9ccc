"""Run queries with `delta_scan` of DuckDB's delta extension: `delta_scan.py DIRECTORY`.

Runs in the environment of `make .cache/tpc/.ready`, whose DuckDB is the one for which the extension
is built. The directory has a Delta table in each directory. Each line of the input is a file with a
query, and each line of the output the seconds that the query took, or the error.
"""

from __future__ import annotations

import sys
import time
from importlib.resources import files
from pathlib import Path

import duckdb


def main(directory: Path) -> None:
    """Run queries until the input ends."""
    (extension,) = Path(str(files("duckdb_extension_delta"))).rglob("*.duckdb_extension")
    database = duckdb.connect()
    database.execute(f"LOAD '{extension}'")
    for table in sorted(directory.iterdir()):
        if (table / "_delta_log").is_dir():
            database.execute(f"CREATE VIEW {table.name} AS FROM delta_scan('{table}')")
    for line in sys.stdin:
        query = Path(line.strip()).read_text("utf-8")
        began = time.perf_counter()
        try:
            database.sql(query).fetchall()
        except duckdb.Error as error:
            print("failed:", str(error).splitlines()[0], flush=True)
            continue
        print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
