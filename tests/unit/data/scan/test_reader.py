"""What a read gives: partition values, positions, row ids, and all of Parquet's codecs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from deltalog.data.scan.reader import read_task
from deltalog.errors import (
    DataFileMissingError,
    DataFileUnreadableError,
    InvalidPartitionValueError,
    UnsafePathError,
)
from tests.support import logs
from tests.support.raw_tables import DataTable, rows_of

VECTORS = ["deletionVectors"]
NTZ = ["timestampNtz"]


@pytest.mark.protocol("DF-01")
@pytest.mark.parametrize("path", ["f.parquet", "a/b/c/f.parquet", "a b/ü%20/f.parquet", "f"])
def test_files_may_lie_anywhere(path: str) -> None:
    table = DataTable([("id", "long"), ("p", "long")], partition_by=["p"])
    add = table.add({"id": [1]}, path=path, partitionValues={"p": "2"})
    add["add"]["path"] = path.replace("%", "%25").replace(" ", "%20")
    table.commit(add)
    assert table.rows() == [(1, 2)]


@pytest.mark.protocol("DF-02", "DF-03")
def test_partition_values_come_from_the_log() -> None:
    table = DataTable([("id", "long"), ("p", "string")], partition_by=["p"])
    table.commit(
        # What the path and the file say of p does not count.
        table.add({"id": [1], "p": ["file"]}, path="p=path/1", partitionValues={"p": "log"}),
        table.add({"id": [2]}, path="flat.parquet", partitionValues={"p": "other"}),
        table.add({"id": [3]}, path="p=path/3", partitionValues={}),
    )
    assert sorted(table.rows()) == [(1, "log"), (2, "other"), (3, None)]
    assert table.rows("p = 'log'", ["id"]) == [1]
    assert table.rows("p = 'path' or p = 'file'") == []


@pytest.mark.protocol("NTZ-04")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        # 02:30 is a time that clocks in New York did not show.
        ("2024-03-10 02:30:00", dt.datetime(2024, 3, 10, 2, 30)),  # noqa: DTZ001
        ("2024-03-10 02:30:00.000001", dt.datetime(2024, 3, 10, 2, 30, 0, 1)),  # noqa: DTZ001
        ("", None),
        (None, None),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_partitions_without_a_zone_never_move(text: str | None, value: Any, zone: str) -> None:
    table = DataTable([("id", "long"), ("t", "timestamp_ntz")], partition_by=["t"], features=NTZ)
    table.commit(table.add({"id": [1]}, partitionValues={"t": text}))
    assert rows_of(table.scan(time_zone=zone).to_table()) == [(1, value)]


@pytest.mark.parametrize(("zone", "hour"), [("UTC", 12), ("America/New_York", 17)])
def test_partition_texts_of_timestamps_are_of_the_default_zone(zone: str, hour: int) -> None:
    table = DataTable([("id", "long"), ("t", "timestamp")], partition_by=["t"])
    table.commit(table.add({"id": [1]}, partitionValues={"t": "2024-01-01 12:00:00"}))
    moment = dt.datetime(2024, 1, 1, hour, tzinfo=dt.UTC)
    assert rows_of(table.scan(time_zone=zone).to_table()) == [(1, moment)]
    where = f"t = timestamp'2024-01-01 {hour}:00:00Z'"
    assert table.scan(where, time_zone=zone).count() == 1


def test_a_partition_value_that_is_none_names_its_file() -> None:
    table = DataTable([("id", "long"), ("p", "long")], partition_by=["p"])
    table.commit(table.add({"id": [1]}, partitionValues={"p": "x"}))
    with pytest.raises(InvalidPartitionValueError) as caught:
        table.rows()
    assert "partition column 'p' of file 'part-0.parquet'" in caught.value.__notes__


@pytest.mark.protocol("DV-19")
@pytest.mark.parametrize("group_rows", [1, 3, 100])
def test_positions_are_physical(group_rows: int) -> None:
    table = DataTable([("id", "long")], features=[*VECTORS, "rowTracking"])
    table.commit(
        table.add(
            {"id": list(range(10, 20))},
            baseRowId=100,
            deletionVector=table.vector(0, 1, 5, 9),
            options={"row_group_size": group_rows},
        )
    )
    columns = ["id", "_metadata.row_index", "_metadata.row_id"]
    alive = [(10 + row, row, 100 + row) for row in (2, 3, 4, 6, 7, 8)]
    assert table.rows(columns=columns) == alive
    assert table.rows("id >= 16", columns) == alive[3:]
    assert table.rows("_metadata.row_index = 7", columns) == [alive[4]]
    assert table.rows("_metadata.row_id < 103", columns) == alive[:1]


@pytest.mark.protocol("ROWID-01")
def test_fresh_row_ids_count_from_the_base() -> None:
    table = DataTable([("id", "long")], features=["rowTracking"])
    table.commit(
        table.add({"id": list(range(6))}, baseRowId=4071, defaultRowCommitVersion=3),
        table.add({"id": [9]}),
    )
    columns = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    assert table.rows("id >= 5", columns) == [(5, 4076, 3), (9, None, None)]


ROW_IDS = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
}


@pytest.mark.protocol("ROWID-02")
def test_kept_row_ids_win() -> None:
    table = DataTable([("id", "long")], features=["rowTracking"], configuration=ROW_IDS)
    kept = {"id": [1, 2, 3], "_row-id": [7, None, 9], "_row-version": [None, 1, 2]}
    table.commit(
        table.add(kept, baseRowId=100, defaultRowCommitVersion=5),
        table.add({"id": [4]}, baseRowId=200, defaultRowCommitVersion=6),
    )
    columns = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    expected = [(1, 7, 5), (2, 101, 1), (3, 9, 2), (4, 200, 6)]
    assert table.rows(columns=columns) == expected
    assert table.rows("_metadata.row_id = 9", columns) == [expected[2]]
    assert table.rows() == [1, 2, 3, 4]


def test_where_a_row_lies() -> None:
    table = DataTable([("id", "long")])
    add = table.add({"id": [1]}, path="d/f.parquet", modificationTime=1_700_000_000_123)
    table.commit(add)
    names = ["file_path", "file_name", "file_size", "file_modification_time"]
    scan = table.scan(columns=[f"_metadata.{name}" for name in names])
    moment = dt.datetime.fromtimestamp(1_700_000_000, dt.UTC).replace(microsecond=123_000)
    place = ("memory://table/d/f.parquet", "f.parquet", add["add"]["size"], moment)
    assert rows_of(scan.to_table()) == [place]
    assert table.rows("_metadata.file_name like 'f%'") == [1]


@pytest.mark.protocol("B-38")
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_all_codecs(codec: str, page: str) -> None:
    table = DataTable([("id", "long"), ("s", "string")])
    rows = [(row, "x" * (row % 7)) for row in range(100)]
    ids, texts = zip(*rows, strict=True)
    table.commit(
        table.add(
            {"id": ids, "s": texts}, options={"compression": codec, "data_page_version": page}
        )
    )
    assert table.rows() == rows


def test_a_file_that_is_gone() -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"id": [1]}))
    del table.store.files["part-0.parquet"]
    with pytest.raises(DataFileMissingError, match=r"part-0\.parquet"):
        table.rows()
    # The log alone tells how many rows there are.
    assert table.scan().count() == 1


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100, b"PAR1" + b"\xff" * 20 + b"PAR1"])
def test_a_file_that_is_no_parquet(content: bytes) -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"id": [1]}))
    table.store.files["part-0.parquet"] = content
    with pytest.raises(DataFileUnreadableError, match=r"part-0\.parquet"):
        table.rows()


def test_a_size_in_the_log_may_be_wrong() -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"id": [1]}))
    for size in (1, 100_000):
        add = table.add({"id": [size]})
        add["add"]["size"] = size
        table.commit(add)
    assert sorted(table.rows()) == [1, 1, 100_000]


@pytest.mark.parametrize("path", ["../f.parquet", "a/../../f", "%2e%2e/f", "a/%2E%2E/%2E%2E/f"])
def test_paths_do_not_lead_out_of_the_table(path: str) -> None:
    table = DataTable([("id", "long")])
    table.commit(logs.add(path))
    with pytest.raises(UnsafePathError):
        table.rows()


def test_batches_come_in_the_order_of_the_files() -> None:
    table = DataTable([("id", "long")])
    table.commit(*(table.add({"id": [number] * 3}) for number in range(20)))
    first = [path for path, _ in table.rows(columns=["_metadata.file_path", "id"])[::3]]
    tasks = [f"memory://table/{task.path}" for task in table.scan().tasks()]
    assert first == tasks


def test_a_task_reads_alone() -> None:
    table = DataTable([("id", "long"), ("p", "long")], partition_by=["p"], features=VECTORS)
    table.commit(
        table.add({"id": [1, 2]}, partitionValues={"p": "1"}, deletionVector=table.vector(0)),
        table.add({"id": [3, 4]}, partitionValues={"p": "2"}),
    )
    for task in table.scan("id != 3").tasks():
        found = [tuple(row.values()) for batch in read_task(task) for row in batch.to_pylist()]
        assert found == {"1": [(2, 1)], "2": [(4, 2)]}[task.partition_values["p"] or ""]


def test_long_files_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltalog.data.scan.pieces._PIECE_ROWS", 4)
    table = DataTable([("id", "long")], features=VECTORS)
    data = {"id": list(range(20))}
    table.commit(
        table.add(data, options={"row_group_size": 2}, deletionVector=table.vector(3, 4, 5, 19))
    )
    batches = list(table.scan("id < 10 or id > 15").to_batches())
    found = [row for batch in batches for row in batch.column(0).to_pylist()]
    assert found == [0, 1, 2, 6, 7, 8, 9, 16, 17, 18]
    assert max(batch.num_rows for batch in batches) <= 4
