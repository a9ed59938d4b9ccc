"""The tables, queries and answers of TPC-H and TPC-DS, taken from DuckDB's extensions.

Runs in an environment of its own (`make .cache/tpc/.ready`), whose DuckDB is the one for which the
extensions are built: `python tpc.py KIND SCALE DIRECTORY`. Nothing of TPC is in the repository.

The directory has a Parquet file for each table in `tables`, a text for each query in `queries`, and
its answer in `answers`: all rows, in the order of the query, without the limit at its end, because
any of several equal rows may be within the limit.
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path

LIMIT = re.compile(r"\blimit\s+(\d+)\s*;?\s*$", re.IGNORECASE)


GENERATORS = {"h": ("tpch", "dbgen"), "ds": ("tpcds", "dsdgen")}


def generate(kind: str, scale: str, directory: Path) -> None:
    """Write everything beside the directory, and rename it when it is complete.

    Args:
        kind: a key of `GENERATORS`.
        scale: the scale factor; 1 is about 1 GB of CSV.
        directory: where to write; an existing directory is replaced.
    """
    import duckdb  # of the other environment

    shutil.rmtree(directory, ignore_errors=True)
    new = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    for part in ("tables", "queries", "answers"):
        (new / part).mkdir(parents=True)
    name, generator = GENERATORS[kind]
    package = files(f"duckdb_extension_{name}")
    (extension,) = Path(str(package)).rglob("*.duckdb_extension")
    database = duckdb.connect(str(new / "all.duckdb"))
    database.execute(f"LOAD '{extension}'")
    database.execute(
        "SET default_null_order = 'nulls_first'"
    )  # Spark's order, where a query has none
    database.execute(f"CALL {generator}(sf = {float(scale)})")
    for (table,) in database.execute("SHOW TABLES").fetchall():
        database.execute(f"COPY {table} TO '{new / 'tables' / table}.parquet'")
    for number, text in database.execute(f"FROM {name}_queries()").fetchall():
        (new / "queries" / f"{number:02d}.sql").write_text(text, "utf-8")
        whole = LIMIT.sub("", text).rstrip().rstrip(";")
        database.execute(f"COPY ({whole}) TO '{new / 'answers'}/{number:02d}.parquet'")
    database.close()
    (new / "all.duckdb").unlink()
    new.rename(directory)


if __name__ == "__main__":
    generate(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
