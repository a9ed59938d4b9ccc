"""Tables with Iceberg metadata, read by PyIceberg and DuckDB: the same rows, version by version."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.iceberg import sync
from deltalog.log.snapshot import load_snapshot
from deltalog.testing.stores import CountingStore

if TYPE_CHECKING:
    from pathlib import Path

ON = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
}


def iceberg_rows(table: DeltaTable, snapshot_id: int | None = None) -> pa.Table:
    """What PyIceberg reads of the newest metadata."""
    found = StaticTable.from_metadata(table.sync_iceberg().metadata_location)
    return found.scan(snapshot_id=snapshot_id).to_arrow()


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def same_rows(path: Path) -> None:
    table = DeltaTable(path)
    assert as_rows(iceberg_rows(table)) == as_rows(table.to_pyarrow_table())


EVERY_TYPE = pa.table(
    {
        "whole": pa.array([1, None, -3], pa.int64()),
        "narrow": pa.array([1, 2, None], pa.int16()),
        "tiny": pa.array([-1, 2, None], pa.int8()),
        "text": ["a", "ü" * 50, None],
        "real": pa.array([1.5, float("nan"), None], pa.float64()),
        "single": pa.array([1.5, 2.25, None], pa.float32()),
        "truth": [True, None, False],
        "raw": [b"\x00\xff", b"", None],
        "day": [dt.date(2020, 1, 1), dt.date(1960, 2, 3), None],
        "at": pa.array(
            [dt.datetime(2020, 1, 1, 1, 2, 3, 456789, dt.UTC), None, None],
            pa.timestamp("us", "UTC"),
        ),
        "clock": pa.array(
            [dt.datetime(2020, 1, 1, 1, 2, 3, 456789), None, None],  # noqa: DTZ001
            pa.timestamp("us"),
        ),
        "money": pa.array([Decimal("-1.28"), Decimal("99999999.99"), None], pa.decimal128(10, 2)),
        "large": pa.array([Decimal(-(10**37)), None, Decimal(10**37)], pa.decimal128(38, 0)),
        "inner": pa.array(
            [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}],
            pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]),
        ),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
        "lists": pa.array([[[1], []], None, []], pa.list_(pa.list_(pa.int64()))),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        # PyIceberg 0.12 shows a NULL list of structs as an empty one.
        "structs": pa.array(
            [[{"x": 1}], [], [{"x": None}]], pa.list_(pa.struct([("x", pa.int64())]))
        ),
    }
)


def test_every_type_is_read(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", EVERY_TYPE, configuration=ON)

    table = DeltaTable(tmp_path / "t")

    shown, own = iceberg_rows(table), table.to_pyarrow_table()
    assert shown.column_names == own.column_names
    assert repr(as_rows(shown.select(own.column_names))) == repr(as_rows(own))


def test_each_commit_is_a_snapshot_that_still_reads(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}), configuration=ON)
    write_deltalake(path, pa.table({"id": [4], "v": ["d"]}), mode="append")
    DeltaTable(path).delete("id = 2")
    DeltaTable(path).update(predicate="id = 3", updates={"v": "'z'"})
    DeltaTable(path).optimize.compact()
    table = DeltaTable(path)

    found = StaticTable.from_metadata(table.sync_iceberg().metadata_location)

    assert [one.summary.operation.value for one in found.snapshots() if one.summary] == [
        *("append", "append", "overwrite", "overwrite", "replace"),
    ]
    for version, snapshot in enumerate(found.snapshots()):
        old = DeltaTable(path, version=version).to_pyarrow_table()
        assert as_rows(found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()) == as_rows(old)
    assert found.properties["delta-version"] == str(table.version())
    assert found.properties["delta-timestamp"] == str(table.snapshot.commit_timestamp_ms)
    current = found.current_snapshot()
    assert current is not None
    assert current.summary is not None
    assert current.summary["total-records"] == "3"


def test_partitions_prune_there(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "day": [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None],
            "k": ["a b", "ü/%", ""],
            "v": [1, 2, 3],
        }
    )
    write_deltalake(tmp_path / "t", rows, partition_by=["day", "k"], configuration=ON)

    table = DeltaTable(tmp_path / "t")

    found = StaticTable.from_metadata(table.sync_iceberg().metadata_location)
    scan = found.scan(row_filter="day = '2020-01-02'")
    assert len(list(scan.plan_files())) == 1
    assert scan.to_arrow()["v"].to_pylist() == [2]
    same_rows(tmp_path / "t")


def test_statistics_prune_there(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1, 2], "t": ["a", "b"]}), configuration=ON)
    write_deltalake(path, pa.table({"id": [10, 20], "t": ["x", "y" * 100]}), mode="append")
    found = StaticTable.from_metadata(DeltaTable(path).sync_iceberg().metadata_location)

    counts = [
        len(list(found.scan(row_filter=condition).plan_files()))
        for condition in (
            "id = 2",
            "id > 2",
            "t < 'm'",
            "id is null",
            f"t = '{'y' * 100}'",
            "id > 20",
        )
    ]

    assert counts == [1, 1, 1, 0, 1, 0]


def test_columns_that_were_renamed_added_and_dropped(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"a": [1], "b": ["x"], "c": [1.5]}), configuration=ON)
    table = DeltaTable(path)
    table.alter.rename_column("a", "id")
    table.alter.drop_columns("c")
    write_deltalake(path, pa.table({"id": [2], "b": ["y"]}), mode="append", schema_mode="merge")

    same_rows(path)

    found = StaticTable.from_metadata(DeltaTable(path).sync_iceberg().metadata_location)
    assert len(found.metadata.schemas) > 1
    assert found.schema().find_field("id").field_id == 1


def test_files_from_before_column_mapping_are_read_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "t"
    inner = pa.array(
        [{"x": 1, "l": [1]}], pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int64()))])
    )
    write_deltalake(path, pa.table({"a": [1], "b": ["x"], "s": inner}))
    table = DeltaTable(path)
    table.alter.set_table_properties({**ON, "delta.columnMapping.mode": "name"})
    table.alter.rename_column("a", "id")
    table.alter.rename_column("b", "a")
    table.alter.rename_column("s.x", "y")
    write_deltalake(path, table.to_pyarrow_table(), mode="append")

    same_rows(path)
    assert DeltaTable(path).count() == 2


def test_a_lost_step_is_made_up_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1]}), configuration=ON)
    broken = path / "metadata" / "v2.metadata.json"
    broken.mkdir()  # nobody can put a file there
    with caplog.at_level(logging.ERROR):
        write_deltalake(path, pa.table({"id": [2]}), mode="append")
    assert DeltaTable(path).count() == 2
    assert any("the commit is valid" in record.message for record in caplog.records)
    broken.rmdir()

    write_deltalake(path, pa.table({"id": [3]}), mode="append")

    same_rows(path)
    found = StaticTable.from_metadata(DeltaTable(path).sync_iceberg().metadata_location)
    assert len(found.snapshots()) == 3


def test_an_append_reads_and_writes_a_few_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1]}), configuration=ON)
    for number in range(5):
        write_deltalake(path, pa.table({"id": [number]}), mode="append")
    (path / "metadata" / "v6.metadata.json").unlink()
    (path / "metadata" / "version-hint.text").write_text("5")
    snapshot = DeltaTable(path).snapshot
    store = CountingStore(snapshot.store)
    counted = load_snapshot(replace(snapshot.context, store=store))
    store.reset()

    made = sync(counted)

    assert made.num_snapshots == 1
    assert not made.is_whole
    written = [call for call in store.calls if call.verb in {"put", "put_if_absent"}]
    assert len(written) == 4  # a manifest, the list, the metadata, the hint


def test_what_is_not_written_for_iceberg_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))

    with pytest.raises(InvalidInputError, match=r"optimize\.upgrade_uniform\(2\)"):
        DeltaTable(tmp_path / "t").sync_iceberg()
    with pytest.raises(InvalidInputError, match="enableIcebergCompatV2"):
        DeltaTable(tmp_path / "t").alter.set_table_properties(
            {"delta.universalFormat.enabledFormats": "iceberg"}
        )


def test_metadata_that_names_other_places_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1]}), configuration=ON)
    secret = tmp_path / "secret.avro"
    secret.write_bytes(b"x")
    file = path / "metadata" / "v1.metadata.json"
    text = file.read_text("utf-8")
    start = text.index("file://", text.index("manifest-list"))
    end = text.index('"', start)
    file.write_text(text[:start] + f"file://{secret}" + text[end:], "utf-8")

    write_deltalake(path, pa.table({"id": [2]}), mode="append")

    found = StaticTable.from_metadata(DeltaTable(path).sync_iceberg().metadata_location)
    assert as_rows(found.scan().to_arrow()) == [{"id": 1}, {"id": 2}]
    assert [str(secret) in one.manifest_list for one in found.snapshots()] == [False]
