"""Vacuum beside deltalake 1.6.6: the same files where it is right, and live ones where it is not.

When the half of B2 that shows the peer's fault fails, the peer was mended, and it may go.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Literal

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.engine import LocalEngine
from deltalog.operations.vacuum import delete_planned, plan_vacuum
from deltalog.storage import open_store

OLD_SECONDS = time.time() - 30 * 86_400


def age(table: Path) -> None:
    """Let every file be a month old."""
    for path in table.rglob("*"):
        os.utime(path, (OLD_SECONDS, OLD_SECONDS))


def vacuum(table: Path, *, mode: Literal["lite", "full"], forced: bool = False) -> list[str]:
    """Delete as the facade does it."""
    store = open_store(table)
    plan = plan_vacuum(
        load_snapshot(utc_context(store)),
        mode=mode,
        retention_hours=0 if forced else None,
        enforce_retention_duration=not forced,
        engine=LocalEngine(),
    )
    delete_planned(store, plan, LocalEngine())
    return sorted(plan.paths)


def masked(table: Path) -> None:
    """Live rows that a deletion vector in a file decides on."""
    rows = pa.table({"id": list(range(5000))})
    properties = {"delta.enableDeletionVectors": "true"}
    deltalog.write_deltalake(table, rows, configuration=properties)
    deltalog.DeltaTable(table).delete("id % 2 = 0")
    assert len(list(table.glob("deletion_vector_*.bin"))) == 1
    age(table)


@pytest.mark.protocol("D-48")
@pytest.mark.parametrize("mode", ["lite", "full"])
def test_b2_live_deletion_vectors_survive(tmp_path: Path, mode: Literal["lite", "full"]) -> None:
    """The peer deletes them, and nobody can read the table afterwards."""
    masked(tmp_path / "ours")
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    expected = deltalog.DeltaTable(tmp_path / "ours").to_pyarrow_table().sort_by("id")

    assert vacuum(tmp_path / "ours", mode=mode) == []
    assert deltalog.DeltaTable(tmp_path / "ours").to_pyarrow_table().sort_by("id") == expected
    # Nor when everything goes that can.
    vacuum(tmp_path / "ours", mode=mode, forced=True)
    assert deltalog.DeltaTable(tmp_path / "ours").to_pyarrow_table().sort_by("id") == expected

    deltalake.DeltaTable(tmp_path / "theirs").vacuum(full=True, dry_run=False)
    with pytest.raises(deltalog.errors.DataFileMissingError):
        deltalog.DeltaTable(tmp_path / "theirs").to_pyarrow_table()


def test_b2_deletion_vectors_that_nobody_needs_go(tmp_path: Path) -> None:
    """The peer's vacuum by the log leaves them for ever."""
    masked(tmp_path / "ours")
    deltalog.DeltaTable(tmp_path / "ours").delete()
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    vacuum(tmp_path / "ours", mode="lite", forced=True)
    assert list((tmp_path / "ours").glob("*.*")) == []

    peer = deltalake.DeltaTable(tmp_path / "theirs")
    peer.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert list((tmp_path / "theirs").glob("*.bin"))


def partitioned(table: Path) -> None:
    """Files that left the table, and files that were never in it."""
    rows = pa.table({"id": [1, 2, 3, 4], "p": ["a b", "a b", "c/d", None]})
    deltalake.write_deltalake(table, rows, partition_by=["p"])
    deltalake.DeltaTable(table).delete("p = 'a b'")
    deltalake.write_deltalake(table, rows.slice(2), mode="append")
    pq.write_table(rows, table / "stray.parquet")
    (table / "_hidden").mkdir()
    pq.write_table(rows, table / "_hidden" / "kept.parquet")
    age(table)


def test_both_find_the_same_files(tmp_path: Path) -> None:
    partitioned(tmp_path)
    theirs = deltalake.DeltaTable(tmp_path).vacuum(0, enforce_retention_duration=False, full=True)
    assert len(theirs) == 2
    assert vacuum(tmp_path, mode="full", forced=True) == sorted(theirs)
    assert (tmp_path / "_hidden" / "kept.parquet").exists()
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 4


def test_the_peer_reads_on(tmp_path: Path) -> None:
    partitioned(tmp_path)
    assert len(vacuum(tmp_path, mode="lite", forced=True)) == 1
    assert len(vacuum(tmp_path, mode="full", forced=True)) == 1
    assert vacuum(tmp_path, mode="full", forced=True) == []
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 4
