"""Iceberg metadata of our tables, read by Iceberg's own library: each snapshot, with row ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType, NestedField, StructType

from deltalog import DeltaTable, connect, convert_to_deltalake, write_deltalake

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.reference import Spark

ON = {"delta.universalFormat.enabledFormats": "iceberg"}
LINEAGE = ["id", "real", "_row_id", "_last_updated_sequence_number"]
VERSIONS = {
    "V2": {**ON, "delta.enableIcebergCompatV2": "true"},
    "V3": {**ON, "delta.enableIcebergCompatV3": "true", "delta.enableDeletionVectors": "true"},
}


def rows(*numbers: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "k": pa.array([f"k{number % 2}" for number in numbers]),
            "real": pa.array([number / 4 for number in numbers]),
        }
    )


def story(path: Path, configuration: dict[str, str], partition_by: list[str] | None) -> None:
    """A table with all that can happen to its files."""
    write_deltalake(path, rows(*range(10)), configuration=configuration, partition_by=partition_by)
    write_deltalake(path, rows(*range(10, 20)), mode="append")
    DeltaTable(path).delete("id IN (1, 2, 14)")
    DeltaTable(path).update(predicate="id = 3", updates={"real": "-1.0"})
    merger = DeltaTable(path).merge(rows(4, 30), "t.id = s.id", "s", "t")
    merger.when_matched_update({"real": "-2.0"}).when_not_matched_insert_all().execute()
    DeltaTable(path).delete("id = 5")
    DeltaTable(path).restore(2)
    DeltaTable(path).optimize.compact()
    DeltaTable(path).delete("id > 15")
    DeltaTable(path).alter.rename_column("real", "ratio")
    write_deltalake(path, rows(40).rename_columns(["id", "k", "ratio"]), mode="append")


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: int(row["id"]))


@pytest.mark.parametrize(
    ("version", "partition_by"), [("V2", ["k"]), ("V3", None), ("V3", ["k"])], ids=str
)
def test_every_snapshot_is_read_as_it_was(
    tmp_path: Path, spark: Spark, version: str, partition_by: list[str] | None
) -> None:
    path = tmp_path / "t"
    story(path, VERSIONS[version], partition_by)
    table = DeltaTable(path)
    shown = StaticTable.from_metadata(table.sync_iceberg().metadata_location)
    hidden = ["_metadata.row_id", "_metadata.row_commit_version"] if version == "V3" else []
    names = ["_row_id", "_last_updated_sequence_number"] if version == "V3" else []

    for snapshot in shown.snapshots():
        number = snapshot.sequence_number
        assert number is not None
        old = DeltaTable(path, version=number)
        columns = [field.name for field in old.schema()]
        expected = old.scan([*columns, *hidden]).to_table().rename_columns([*columns, *names])
        found = spark.iceberg(path, snapshot.snapshot_id).select(expected.column_names)
        assert as_rows(found) == as_rows(expected), f"version {number}"
    assert len(shown.snapshots()) == table.version()  # all but the one that renames
    assert as_rows(spark.iceberg(path).select(["id"])) == as_rows(
        table.to_pyarrow_table(columns=["id"])
    )


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_rows_that_were_tracked_before_keep_their_ids(
    tmp_path: Path, spark: Spark, writer: str
) -> None:
    """Files hold ids and versions of moved rows; Iceberg finds them once V3 is on."""
    path = tmp_path / "t"
    write_deltalake(path, rows(*range(10)), configuration={"delta.enableRowTracking": "true"})
    write_deltalake(path, rows(*range(10, 20)), mode="append")
    if writer == "ours":
        DeltaTable(path).update(predicate="id IN (3, 4)", updates={"real": "-1.0"})
        DeltaTable(path).optimize.compact()
    else:
        spark.tell(path, "UPDATE T SET real = -1.0 WHERE id IN (3, 4)", "OPTIMIZE T")
    write_deltalake(path, rows(*range(20, 30)), mode="append")
    table = DeltaTable(path)
    names = ["id", "real", "_metadata.row_id", "_metadata.row_commit_version"]
    expected = as_rows(table.scan(names).to_table().rename_columns(LINEAGE))
    assert {row["_last_updated_sequence_number"] for row in expected} >= {0, 1, 2}

    plan = table.optimize.upgrade_uniform(3, dry_run=True)
    assert (plan.num_files, plan.num_files_to_rewrite) == (2, 1)
    table.optimize.upgrade_uniform(3)

    assert as_rows(table.scan(names).to_table().rename_columns(LINEAGE)) == expected
    table.sync_iceberg()
    assert as_rows(spark.iceberg(path).select(LINEAGE)) == expected
    assert as_rows(spark.read(path).select(["id"])) == [{"id": row["id"]} for row in expected]


def test_a_table_that_was_icebergs_is_read_and_written_by_both(
    tmp_path: Path, spark: Spark
) -> None:
    """Iceberg's runtime has no release for this Spark: PyIceberg makes the table."""
    location, clone = tmp_path / "lake" / "n" / "t", tmp_path / "clone"
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("n")
    first = rows(*range(10))
    table = catalog.create_table("n.t", schema=first.schema)
    table.append(first)
    with table.update_spec() as spec:
        spec.add_identity("k")
    table.overwrite(first)
    table.delete("id = 3")
    with table.update_schema() as change:
        change.rename_column("real", "ratio")
        change.add_column(("s",), StructType(NestedField(1, "x", LongType())))
    with table.update_schema() as change:
        change.add_column("real", LongType())
    catalog.close()
    expected = as_rows(table.scan().to_arrow())
    with connect() as db:
        db.sql(f"CREATE TABLE c SHALLOW CLONE iceberg.`{location}` LOCATION '{clone}'")
    convert_to_deltalake(table)

    for path in (clone, location):
        ours = DeltaTable(path)
        assert ours.metadata().partition_columns == ("k",)
        assert as_rows(ours.to_pyarrow_table()) == expected
        assert as_rows(spark.read(path)) == expected
        # Both go on with it.
        spark.tell(
            path,
            "INSERT INTO T (id, k, ratio, real, s) VALUES (50, 'k0', 5.0, 7, struct(8L))",
            "DELETE FROM T WHERE id < 5",
            "ALTER TABLE T ADD COLUMN later STRING",
        )
        ours.update_incremental()
        ours.alter.rename_column("ratio", "share")
        write_deltalake(ours, ours.to_pyarrow_table().slice(0, 1), mode="append")
        assert as_rows(spark.read(path)) == as_rows(ours.to_pyarrow_table())
        assert ours.count() == 7
