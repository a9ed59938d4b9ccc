"""Change the flights in place, and print the metrics of each step.

Deletion vectors mark rows instead of rewriting files. The change feed contains the changed rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from examples.saying import say

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
}


def change(path: Path, flights: pd.DataFrame) -> None:
    """Delete, update, merge; read the change feed; optimize, vacuum, compare, restore."""
    data = pa.Table.from_pandas(flights, preserve_index=False)
    write_deltalake(path, data, configuration=PROPERTIES)
    table = DeltaTable(path)

    say("deleting the flights that never left")
    show(table.delete("dep_time IS NULL"), "num_deleted_rows", "num_copied_rows")
    say("updating the flights of United with very long delays: an hour less")
    found = table.update(
        {"dep_delay": "dep_delay - 60"}, predicate="dep_delay > 300 AND carrier = 'UA'"
    )
    show(found, "num_updated_rows", "num_copied_rows")
    say("merging data of an airline: one correction, one new flight")
    merged = (
        table.merge(
            corrections(flights),
            "target.carrier = source.carrier AND target.flight = source.flight"
            " AND target.time_hour = source.time_hour",
            source_alias="source",
            target_alias="target",
        )
        .when_matched_update({"dep_delay": "source.dep_delay"})
        .when_not_matched_insert_all()
        .execute()
    )
    show(merged, "num_target_rows_updated", "num_target_rows_inserted", "num_target_rows_copied")

    say("the rows that the merge changed, from the change feed")
    feed = table.load_cdf(
        starting_version=table.version(), columns=["carrier", "flight", "dep_delay", "_change_type"]
    )
    print(feed.to_pandas().to_string(index=False))

    say("sorting the rows by carrier and destination, without the deleted rows")
    show(table.optimize.z_order(["carrier", "dest"]), "numFilesRemoved", "numFilesAdded")
    print(table.scan(predicate="carrier = 'HA'").explain())
    say("the files that a vacuum without retention would delete")
    gone = table.vacuum_report(retention_hours=0, enforce_retention_duration=False)
    for row in gone.select(["reason", "size_bytes"]).to_pylist():
        print(f"  {row['reason']}: {row['size_bytes']} bytes")
    say("the differences between the first version and this one")
    print(table.diff(0, table.version()))
    say("restoring the first version")
    show(table.restore(0), "numRestoredFile", "numRemovedFile")
    print(f"  {table.count():,} flights, as at the beginning; {table.doctor()}")


def corrections(flights: pd.DataFrame) -> pd.DataFrame:
    """Return an existing flight with another delay, and a new flight."""
    rows = flights.head(2).copy()
    rows.loc[rows.index[0], "dep_delay"] = 0.0
    rows.loc[rows.index[1], "flight"] = 9_999
    return rows


def show(found: dict[str, Any], *names: str) -> None:
    """Print some metrics of an operation."""
    milliseconds = found.get("execution_time_ms")
    cost = "" if milliseconds is None else f" ({milliseconds} ms)"
    print("  " + ", ".join(f"{name} {found.get(name)}" for name in names) + cost)
