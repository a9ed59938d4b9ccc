"""Delta Spark reads and writes a table as if its branches did not exist."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from tests.support.reference import Spark
from tests.support.reference_rows import our_changes, ours, rows_of

PROPERTIES = (
    "TBLPROPERTIES (delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true,"
    " delta.enableRowTracking = true)"
)


def test_the_reference_sees_main_only(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "table"
    spark.tell(
        path,
        f"CREATE TABLE T (id BIGINT) USING delta {PROPERTIES}",
        "INSERT INTO T SELECT /*+ COALESCE(1) */ id FROM range(8)",
    )
    before = ours(path)
    draft = DeltaTable(path).branch("nightly")
    draft.delete("id IN (2, 3)")
    draft.update({"id": "id + 100"}, predicate="id = 4")
    write_deltalake(draft, pa.table({"id": pa.array([50], pa.int64())}), mode="append")
    assert rows_of(spark.read(path)) == before
    spark.tell(path, "DELETE FROM T WHERE id = 100000")
    version = draft.publish().version
    assert rows_of(spark.read(path)) == ours(path) != before
    feed = spark.changes(path, version).drop_columns(["_commit_timestamp"])
    assert our_changes(path, version) == rows_of(feed)
    spark.tell(path, "INSERT INTO T VALUES (9)")
    ids = "*, _metadata.row_id"
    assert len({row.split(",")[-1] for row in rows_of(spark.read(path, columns=ids))}) == 8
    assert rows_of(spark.read(path)) == ours(path)
