"""The tables, the 99 queries and the answers of TPC-DS, taken from DuckDB's extension.

Runs in an environment of its own (`make .cache/tpcds/.ready`), whose DuckDB is the one that the
extension is built for: `python tpcds.py SCALE DIRECTORY`. Nothing of TPC is in the repository.

The directory has a Parquet file for each table in `tables`, a text for each query in `queries`, and
its answer in `answers`: all rows, in the order of the query, without the limit at its end, because
which of several equal rows a limit leaves is nobody's to say.
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path

LIMIT = re.compile(r"\blimit\s+(\d+)\s*;?\s*$", re.IGNORECASE)


def generate(scale: str, directory: Path) -> None:
    """Write everything beside the directory, and rename it when it is complete."""
    import duckdb  # of the other environment

    shutil.rmtree(directory, ignore_errors=True)
    new = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    for name in ("tables", "queries", "answers"):
        (new / name).mkdir(parents=True)
    package = files("duckdb_extension_tpcds")
    (extension,) = Path(str(package)).rglob("*.duckdb_extension")
    database = duckdb.connect(str(new / "all.duckdb"))
    database.execute(f"LOAD '{extension}'")
    database.execute("SET default_null_order = 'nulls_first'")  # as in Spark, where texts say none
    database.execute(f"CALL dsdgen(sf = {float(scale)})")
    for (name,) in database.execute("SHOW TABLES").fetchall():
        database.execute(f"COPY {name} TO '{new / 'tables' / name}.parquet'")
    for number, text in database.execute("FROM tpcds_queries()").fetchall():
        (new / "queries" / f"{number:02d}.sql").write_text(text, "utf-8")
        whole = LIMIT.sub("", text).rstrip().rstrip(";")
        database.execute(f"COPY ({whole}) TO '{new / 'answers'}/{number:02d}.parquet'")
    database.close()
    (new / "all.duckdb").unlink()
    new.rename(directory)


if __name__ == "__main__":
    generate(sys.argv[1], Path(sys.argv[2]))
