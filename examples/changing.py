"""The flights changed in place: each step says what it cost.

Deletion vectors mark rows instead of rewriting files; the change feed tells what happened.
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
    """Delete, update, merge; look at the feed; optimize, vacuum, compare, restore."""
    data = pa.Table.from_pandas(flights, preserve_index=False)
    write_deltalake(path, data, configuration=PROPERTIES)
    table = DeltaTable(path)

    say("deleting the flights that never left")
    show(table.delete("dep_time IS NULL"), "num_deleted_rows", "num_copied_rows")
    say("giving back an hour to those of United that were very late")
    found = table.update(
        {"dep_delay": "dep_delay - 60"}, predicate="dep_delay > 300 AND carrier = 'UA'"
    )
    show(found, "num_updated_rows", "num_copied_rows")
    say("merging what an airline sends: one correction, one new flight")
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

    say("what the change feed tells of the merge")
    feed = table.load_cdf(
        starting_version=table.version(), columns=["carrier", "flight", "dep_delay", "_change_type"]
    )
    print(feed.to_pandas().to_string(index=False))

    say("sorting the rows by carrier and destination; the masked rows are left behind")
    show(table.optimize.z_order(["carrier", "dest"]), "numFilesRemoved", "numFilesAdded")
    print(table.scan(predicate="carrier = 'HA'").explain())
    say("what a vacuum without retention would delete")
    gone = table.vacuum_report(retention_hours=0, enforce_retention_duration=False)
    for row in gone.select(["reason", "size_bytes"]).to_pylist():
        print(f"  {row['reason']}: {row['size_bytes']} bytes")
    say("what differs between the first version and this one")
    print(table.diff(0, table.version()))
    say("restoring the first version")
    show(table.restore(0), "numRestoredFile", "numRemovedFile")
    print(f"  {table.count():,} flights, as in the beginning; {table.doctor()}")


def corrections(flights: pd.DataFrame) -> pd.DataFrame:
    """A flight that is there with another delay, and one that is not."""
    rows = flights.head(2).copy()
    rows.loc[rows.index[0], "dep_delay"] = 0.0
    rows.loc[rows.index[1], "flight"] = 9_999
    return rows


def show(found: dict[str, Any], *names: str) -> None:
    """Some of what an operation returned."""
    milliseconds = found.get("execution_time_ms")
    cost = "" if milliseconds is None else f" ({milliseconds} ms)"
    print("  " + ", ".join(f"{name} {found.get(name)}" for name in names) + cost)
