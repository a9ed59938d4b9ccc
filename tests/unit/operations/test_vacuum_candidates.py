"""Files that vacuum looks at: listed, in an inventory, or told by the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog.errors import (
    InvalidInputError,
)
from deltalog.testing import CountingStore
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support.aging import START_MS, AgingStore, AgingTable
from tests.support.logs import PROTOCOL, commit, metadata, remove
from tests.support.vacuuming import (
    BOTH,
    FULL,
    LITE,
    WEEK,
    logged,
    masked,
    old_and_new,
    put,
    rows,
)


@pytest.mark.protocol("D-46")
def test_hidden_files_are_not_touched_unless_they_are_partitions() -> None:
    table = logged(
        partitionColumns=["_p"],
        schemaString=metadata()["metaData"]["schemaString"].replace('"p"', '"_p"'),
    )
    seen = ["x", "a/b/x", "_p=1/x", "_delta_index/x", "_change_data/x", "a/_p=1/x", "metadata_x"]
    hidden = ["_x", ".x", "a/.x", "_x/y", "a/_tmp/y", ".a/y", "metadata/x", "_q=1/x", "_p/x"]
    put(table, *seen, *hidden, "_delta_log/junk")
    assert sorted(table.plan(**FULL).paths) == sorted(seen)


@pytest.mark.protocol("D-47")
@BOTH
def test_change_files_go_by_age_alone(how: Mapping[str, Any]) -> None:
    table = AgingTable()
    table.create(rows(1, 2), properties={"delta.enableChangeDataFeed": "true"})
    table.delete("id = 1")
    table.wait(WEEK - 1)
    table.delete("id = 2")
    table.append(rows(3))
    old, *young = sorted(
        (path for path in table.data_files() if path.startswith("_change_data/")),
        key=lambda path: table.kept.times_ms[path],
    )
    table.wait(2)
    plan = table.plan(**how)
    assert old in plan.paths
    assert not set(young) & set(plan.paths)
    reasons = dict(zip(plan.paths, plan.files.column("reason").to_pylist(), strict=True))
    assert reasons[old] == "change data"


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_file_with_many_tombstones_is_named_once(*, checkpointed: bool) -> None:
    table = masked(days=0)
    table.delete()
    table.wait(30)
    if checkpointed:
        create_checkpoint(table.snapshot(), at_ms=START_MS)
    assert table.snapshot().tombstones().num_rows == 3
    paths = table.plan(**LITE).paths
    assert len(paths) == len(set(paths)) == 3  # the file and two vectors


@pytest.mark.protocol("D-45")
@BOTH
def test_nothing_outside_of_the_root_is_touched(how: Mapping[str, Any]) -> None:
    paths = ["memory:///other/x", "file:///x", "s3://b/x", "/x", "../other/x", "a/../../x"]
    table = AgingTable(AgingStore(root="memory:///table"))
    removes = [remove(path, deletionTimestamp=1) for path in paths]
    commit(table.kept, 0, PROTOCOL, metadata(), *removes, time_ms=START_MS)
    table.wait(30)
    assert table.plan(**how).paths == []


def test_a_log_that_removes_its_own_files_keeps_them() -> None:
    table = logged(
        *(
            remove(path, deletionTimestamp=1)
            for path in ("_delta_log/00000000000000000000.json", "_secret/x", "a")
        )
    )
    assert table.plan(**LITE).paths == ["a"]


def test_what_a_killed_job_has_staged_is_temporary() -> None:
    staged = ".staged.0123456789abcdef0123456789abcdef.tmp"
    attempt = f"{staged}/_temporary/0/_temporary/attempt_1"
    old = [
        f"{staged}/part-0.parquet",
        f"{staged}/_SUCCESS",
        f"{attempt}/part-1.parquet",
        f"{attempt}/.part-1.parquet.crc",
        # What a table would have of this name is something else.
        f"{staged}/_change_data/c.parquet",
        f"{staged}/deletion_vector_0f2dc6a1-4c29-4ae1-8c6d-1d1a4f1b2c3d.bin",
    ]
    table = old_and_new()
    put(table, *old)
    put(table, f"{staged}/young.parquet", age_days=WEEK - 0.5)
    put(table, f"d/{staged}/hidden.parquet", ".staged/hidden.parquet")
    plan = table.plan(**FULL)
    reasons = dict(zip(plan.paths, plan.files.column("reason").to_pylist(), strict=True))
    found = {path: reason for path, reason in reasons.items() if "staged" in path}
    assert found == dict.fromkeys(old, "temporary file of a write that was cut off")


@pytest.mark.protocol("D-49", "OV-01")
def test_files_of_writers_under_way_stay() -> None:
    table = old_and_new()
    put(table, "young", age_days=WEEK - 0.5)
    put(table, "old", age_days=WEEK + 0.5)
    assert set(table.plan(**FULL).paths) & {"young", "old"} == {"old"}


def test_lite_finds_what_a_checkpoint_has_forgotten() -> None:
    table = old_and_new()
    create_checkpoint(table.snapshot(), at_ms=table.kept.now_ms)
    assert table.snapshot().tombstones().num_rows == 0
    assert len(table.vacuum()) == 1


def test_lite_asks_for_no_data_file() -> None:
    table = old_and_new()
    table.store = counted = CountingStore(table.kept)
    table.plan()
    assert "list_all" not in counted.counts
    assert "stat" not in counted.counts


def inventory_of(table: AgingTable, **renamed: str) -> pa.RecordBatchReader:
    found = [
        {
            "path": f"{table.kept.root}/{path}",
            "length": len(data),
            "isDir": False,
            "modificationTime": table.kept.times_ms[path],
        }
        for path, data in table.kept.files.items()
    ]
    found.append({"path": "some/dir", "length": 0, "isDir": True, "modificationTime": 0})
    found.append(
        {"path": "memory:///elsewhere/x", "length": 0, "isDir": False, "modificationTime": 0}
    )
    rows = pa.Table.from_pylist(found)
    names = [renamed.get(name, name) for name in rows.column_names]
    return rows.rename_columns(names).to_reader()


@pytest.mark.parametrize(
    "renamed", [{}, {"length": "size", "modificationTime": "MODIFICATION_TIME"}]
)
def test_an_inventory_stands_for_a_listing(renamed: dict[str, str]) -> None:
    table = old_and_new()
    put(table, "left/behind")
    expected = table.plan(**FULL)
    table.store = counted = CountingStore(table.kept)
    found = table.plan(mode="inventory", inventory=inventory_of(table, **renamed))
    assert sorted(found.files.to_pylist(), key=str) == sorted(expected.files.to_pylist(), key=str)
    assert "list_all" not in counted.counts


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("us", "UTC")], ids=str)
def test_an_inventory_may_have_times_finer_than_milliseconds(kind: pa.DataType) -> None:
    table = old_and_new()
    expected = table.plan(**FULL)
    rows = inventory_of(table).read_all()
    micros = pc.add(pc.multiply(rows["modificationTime"], 1000), 7).cast(pa.timestamp("us"))
    place = rows.column_names.index("modificationTime")
    inventory = rows.set_column(place, "modificationTime", micros.cast(kind)).to_reader()
    found = table.plan(mode="inventory", inventory=inventory)
    assert sorted(found.files.to_pylist(), key=str) == sorted(expected.files.to_pylist(), key=str)


def test_an_inventory_needs_its_columns() -> None:
    table = old_and_new()
    with pytest.raises(InvalidInputError, match="lacks size_bytes"):
        table.plan(mode="inventory", inventory=inventory_of(table, length="len"))
    with pytest.raises(InvalidInputError, match="mode='inventory'"):
        table.plan(mode="inventory")
