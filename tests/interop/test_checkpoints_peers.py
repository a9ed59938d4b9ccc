"""Checkpoints, compacted logs and a cleaned log, as another implementation reads them.

The peer must get by without the commits: they are deleted, so that only what was written here can
give the version.
"""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.log.checkpoints.writer import CheckpointLayout
from deltalog.log.context import utc_context
from deltalog.log.names import LAST_CHECKPOINT_PATH, commit_path, compaction_name, log_path
from deltalog.log.snapshot import load_snapshot
from deltalog.storage import open_store
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from deltalog.transaction.maintenance.checksum import write_checksum
from deltalog.transaction.maintenance.cleanup import cleanup_metadata, compact_logs
from tests.support.raw_tables import RawTable

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "s": ["a", 'é"\\', None],
        "f": [1.5, float("nan"), float("-inf")],
        "n": pa.array(
            [decimal.Decimal("1.50"), None, decimal.Decimal("-9.99")], pa.decimal128(5, 2)
        ),
        "t": pa.array(
            [dt.datetime(2024, 2, 29, 1, 2, 3, 456, dt.UTC)] * 3, pa.timestamp("us", "UTC")
        ),
        "d": pa.array([dt.date(2024, 2, 29), None, dt.date(1970, 1, 1)]),
        "p": ["x", "y z", "é/%"],
    }
)
SETTINGS = {
    "both": {},
    "no JSON": {"delta.checkpoint.writeStatsAsJson": "false"},
    "no structs": {"delta.checkpoint.writeStatsAsStruct": "false"},
}


def written_by_deltalake(path: Path, **configuration: str) -> list[Any]:
    """A table with several commits and a removed file; its rows."""
    for start in range(3):
        deltalake.write_deltalake(
            str(path),
            ROWS.set_column(0, "id", pa.array([start * 10 + n for n in range(3)], pa.int64())),
            mode="append",
            partition_by=["p"],
            configuration=dict(configuration) if start == 0 else None,
        )
    deltalake.DeltaTable(str(path)).delete("id = 11")
    return rows_of(path)


def rows_of(path: Path, version: int | None = None) -> list[Any]:
    table = deltalake.DeltaTable(str(path), version=version)
    return sorted(map(repr, pa.table(table.to_pyarrow_table()).to_pylist()))


def forget_commits(path: Path, last: int) -> None:
    for version in range(last + 1):
        (path / commit_path(version)).unlink(missing_ok=True)


@pytest.mark.protocol("CKPT-11", "CKPT-12", "CKPT-14", "CKPT-15", "CKPT-16", "B-25")
@pytest.mark.parametrize("part_rows", [None, 3], ids=["one file", "parts"])
@pytest.mark.parametrize("configuration", SETTINGS.values(), ids=SETTINGS.keys())
def test_deltalake_reads_our_checkpoints(
    tmp_path: Path, configuration: dict[str, str], part_rows: int | None
) -> None:
    rows = written_by_deltalake(tmp_path, **configuration)
    create_checkpoint(load_snapshot(utc_context(open_store(str(tmp_path)))), part_rows=part_rows)
    forget_commits(tmp_path, 2)  # the last one stays: a cleanup keeps it, and writers read it
    assert rows_of(tmp_path) == rows
    table = deltalake.DeltaTable(str(tmp_path))
    assert table.version() == 3
    assert table.metadata().partition_columns == ["p"]
    wanted = pa.table(table.to_pyarrow_table(filters=[("p", "=", "é/%"), ("id", ">", 10)]))
    assert sorted(map(repr, wanted.column("id").to_pylist())) == ["12", "22"]
    # It goes on writing and deleting from there, and we read that.
    deltalake.write_deltalake(table, ROWS, mode="append")
    table.delete("id = 22")
    ours = load_snapshot(utc_context(open_store(str(tmp_path))))
    assert ours.version == 5
    assert ours.num_files == len(table.file_uris())


@pytest.mark.protocol("CKPT-02", "LAST-03")
def test_deltalakes_own_checkpoint_holds_the_same_files(tmp_path: Path) -> None:
    written_by_deltalake(tmp_path)
    path = tmp_path / "_delta_log" / f"{3:020d}.checkpoint.parquet"
    create_checkpoint(load_snapshot(utc_context(open_store(str(tmp_path)))))
    ours = files_in(path)
    path.unlink()
    (tmp_path / LAST_CHECKPOINT_PATH).unlink()
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    assert files_in(path) == ours


def files_in(path: Path) -> list[tuple[str, Any, int]]:
    rows = pq.read_table(path).column("add").drop_null().to_pylist()
    found = [(row["path"], row["partitionValues"], row["size"]) for row in rows if row is not None]
    return sorted(found, key=repr)


@pytest.mark.protocol("B-15")
@pytest.mark.parametrize("layout", [CheckpointLayout.V2_JSON, CheckpointLayout.V2_PARQUET])
def test_deltalake_reads_our_v2_checkpoints(tmp_path: Path, layout: CheckpointLayout) -> None:
    table = RawTable(tmp_path / "t")
    table.create()
    features = ["deletionVectors", "v2Checkpoint"]
    lists = {"readerFeatures": features, "writerFeatures": features}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}}
    _, vector = table.deletion_vector([0])
    table.commit(1, [protocol, table.add([1, 2], 0, vector), table.add([3], 1), table.add([4], 1)])
    create_checkpoint(
        load_snapshot(utc_context(open_store(str(table.path)))), layout=layout, part_rows=2
    )
    forget_commits(table.path, 1)
    peer = deltalake.DeltaTable(str(table.path))
    assert peer.version() == 1
    found = deltalake.QueryBuilder().register("t", peer).execute("select id, p from t order by id")
    assert pa.table(found.read_all()).to_pylist() == [
        {"id": 2, "p": 0},
        {"id": 3, "p": 1},
        {"id": 4, "p": 1},
    ]


@pytest.mark.protocol("B-18", "B-19", "B-24")
def test_deltalake_reads_a_log_that_was_looked_after(tmp_path: Path) -> None:
    rows = written_by_deltalake(tmp_path)
    store = open_store(str(tmp_path))
    write_checksum(load_snapshot(utc_context(store)), whole=True)
    compact_logs(load_snapshot(utc_context(store)), 0, 2)
    assert (tmp_path / log_path(compaction_name(0, 2))).exists()
    assert rows_of(tmp_path) == rows
    create_checkpoint(load_snapshot(utc_context(store), version=2))
    at_ms = load_snapshot(utc_context(store)).commit_timestamp_ms + 40 * 86_400_000
    cleanup_metadata(load_snapshot(utc_context(store)), at_ms=at_ms)
    assert not (tmp_path / commit_path(1)).exists()
    assert rows_of(tmp_path) == rows
    assert len(rows_of(tmp_path, version=2)) == 9
