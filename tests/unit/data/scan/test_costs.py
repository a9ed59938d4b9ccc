"""What a read costs, in requests, bytes and footers: numbers that hold on any machine."""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, col, write_deltalake
from deltalog.data.scan import Scan, open_changes, plan_scan
from deltalog.expressions import parse_sql
from deltalog.storage.parquet.reader import ParquetReader
from deltalog.testing import CountingStore
from tests.support import logs
from tests.support.meeting import MeetingStore
from tests.support.raw_tables import DataTable

NUM_FILES = 6


@pytest.fixture
def read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size are read as large ones are: the footer, then the column chunks."""
    monkeypatch.setattr("deltalog.storage.parquet.footer._SMALL_FILE_BYTES", 0)
    monkeypatch.setattr("deltalog.storage.parquet.footer._TAIL_BYTES", 16 * 1024)
    monkeypatch.setattr("deltalog.data.scan.pieces._TOGETHER_BYTES", 0)


@pytest.fixture
def table() -> DataTable:
    """Six files in three partitions, with statistics; two have their rows deleted in part."""
    table = DataTable(
        [("id", "long"), ("s", "string"), ("p", "long")],
        partition_by=["p"],
        features=["deletionVectors", "changeDataFeed"],
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    vectors = table.vectors([0], [1])
    adds = []
    for number in range(NUM_FILES):
        ids = list(range(1000 * number, 1000 * number + 1000))
        bounds = {"minValues": {"id": ids[0]}, "maxValues": {"id": ids[-1]}}
        vector = vectors[number] if number < 2 else None
        adds.append(
            table.add(
                {"id": ids, "s": [f"text {value} " * 9 for value in ids]},
                partitionValues={"p": str(number // 2)},
                stats={"numRecords": 1000, **bounds},
                options={"row_group_size": 100, "compression": "none"},
                deletionVector=vector,
            )
        )
    table.commit(*adds)
    return table


def counted(
    table: DataTable, where: str | None = None, **options: object
) -> tuple[CountingStore, Scan]:
    """A scan of a snapshot that is loaded already, and what it asks for from now on."""
    store = CountingStore(table.store)
    snapshot = table.snapshot(store=store)
    predicate = None if where is None else parse_sql(where)
    scan = plan_scan(snapshot, predicate=predicate, **options)  # type: ignore[arg-type]  # as given
    store.reset()
    return store, scan


def data_paths(store: CountingStore) -> list[str]:
    return [path for path in store.paths() if not path.startswith("_delta_log")]


@pytest.mark.parametrize("where", [None, "p = 1", "id = 7", "p = 1 and id > 3500"])
def test_planning_opens_no_data_file(table: DataTable, where: str | None) -> None:
    store, scan = counted(table, where)
    assert list(scan.tasks())
    assert scan.explain()
    assert data_paths(store) == []


@pytest.mark.parametrize("where", [None, "p = 1", "id < 0", "p = 7"])
def test_counting_opens_no_data_file(table: DataTable, where: str | None) -> None:
    store, scan = counted(table, where)
    assert scan.count() == {None: 5998, "p = 1": 2000}.get(where, 0)
    assert data_paths(store) == []


def test_counting_without_statistics_opens_footers_only(table: DataTable) -> None:
    table.commit(table.add({"id": [1, 2, 3]}, partitionValues={"p": "9"}, stats={}))
    store, scan = counted(table, "p = 9")
    assert scan.count() == 3
    assert store.counts == {"read_ranges": 1}
    assert store.footers_opened == 1


@pytest.mark.usefixtures("read_in_parts")
def test_a_point_look_up_opens_one_file_and_reads_one_row_group(table: DataTable) -> None:
    store, scan = counted(table, "id = 3210")
    assert scan.to_table().num_rows == 1
    assert set(data_paths(store)) == {"part-4.parquet"}
    assert store.footers_opened == 1
    # The footer, then the row group's `id`, then its other column.
    assert store.counts == {"read_ranges": 3}
    size = len(table.store.files["part-4.parquet"])
    assert store.bytes_read < size / 4


def test_a_small_file_is_one_request(table: DataTable) -> None:
    store, scan = counted(table, "id = 3210")
    assert scan.to_table().num_rows == 1
    assert store.counts == {"read_ranges": 1}
    assert store.bytes_read == len(table.store.files["part-4.parquet"])
    store, scan = counted(table)
    assert scan.to_table().num_rows == 5998
    assert store.counts == {"read_ranges": NUM_FILES + 2}  # two deletion vectors


def many_files() -> DataTable:
    table = DataTable([("id", "long"), ("s", "string")])
    stored = {"compression": "none", "use_dictionary": False}
    data = ({"id": [number], "s": ["x" * 40_000]} for number in range(80))
    table.commit(*(table.add(rows, options=stored) for rows in data))
    return table


@pytest.mark.parametrize(
    ("turn", "where"), [(1, None), (2, None), (2, "id % 1 = 0"), (3, "id >= 0")]
)
@pytest.mark.usefixtures("read_in_parts")
def test_requests_under_way_do_not_depend_on_cores(turn: int, where: str | None) -> None:
    table = many_files()
    store = MeetingStore(table.store, 40, turn=turn)
    snapshot = table.snapshot(store=store)
    scan = plan_scan(snapshot, predicate=None if where is None else parse_sql(where))
    assert scan.to_table().column("id").to_pylist() == list(range(80))
    assert store.still_to_meet == 0


@pytest.mark.parametrize(("where", "most_requests"), [(None, 3), ("id % 1 = 0", 6)])
@pytest.mark.usefixtures("read_in_parts")
def test_what_is_fetched_ahead_fits_into_the_memory(
    where: str | None, most_requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.storage.pool.MOST_BYTES", 1)
    table = many_files()
    store, scan = counted(table, where)
    batches = scan.to_batches()
    assert next(batches)["id"].to_pylist() == [0]
    before = -1
    while before != store.total_calls:  # what was sent is answered
        before = store.total_calls
        time.sleep(0.2)
    paths = data_paths(store)
    columns = [path for path in set(paths) if paths.count(path) > 1]
    assert len(columns) <= most_requests  # a piece in each stage, and `pieces_ahead` decoded
    assert sum(batch.num_rows for batch in scan.to_batches()) == 80


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.usefixtures("read_in_parts")
def test_a_few_bytes_of_other_columns_come_with_the_predicate_s(
    table: DataTable, monkeypatch: pytest.MonkeyPatch, *, together: bool
) -> None:
    if together:
        monkeypatch.setattr("deltalog.data.scan.pieces._TOGETHER_BYTES", 10**6)
    store, scan = counted(table, "id % 1000 = 500 and p = 1")
    assert scan.to_table().column("id").to_pylist() == [2500, 3500]
    assert store.counts == {"read_ranges": 4 if together else 6}


@pytest.mark.usefixtures("read_in_parts")
def test_a_look_up_in_vain_reads_no_other_column(table: DataTable) -> None:
    store, scan = counted(table, "id % 1000 = 500 and id > 3000 and id < 3500")
    assert scan.to_table().num_rows == 0
    assert store.counts == {"read_ranges": 2}


@pytest.mark.usefixtures("read_in_parts")
def test_only_the_columns_asked_for_are_read() -> None:
    table = DataTable([("id", "long"), ("s", "string")])
    texts = [f"{value:0999}" for value in range(1000)]
    table.commit(table.add({"id": range(1000), "s": texts}, options={"compression": "none"}))
    narrow, scan = counted(table, columns=["id"])
    scan.to_table()
    wide, scan = counted(table)
    scan.to_table()
    assert narrow.counts == wide.counts == {"read_ranges": 2}
    assert wide.bytes_read - narrow.bytes_read > 980 * 1000


def test_partition_columns_take_no_column_of_the_file(table: DataTable) -> None:
    store, scan = counted(table, "p = 1", columns=["p"])
    assert scan.to_table().num_rows == 2000
    assert store.counts == {"read_ranges": 2}  # the footers


def test_each_deletion_vector_is_read_once(table: DataTable) -> None:
    store, scan = counted(table, columns=["id"])
    assert scan.to_table().num_rows == 5998
    vectors = [path for path in data_paths(store) if path.endswith(".bin")]
    assert len(vectors) == 2  # two of one file, for two data files


def test_a_limit_opens_no_more_files_than_it_needs(table: DataTable) -> None:
    store, scan = counted(table, limit=1000)
    assert scan.to_table().num_rows == 1000
    assert store.footers_opened == 2  # the first file has 999 rows left
    store, scan = counted(table, limit=0)
    assert scan.to_table().num_rows == 0
    assert store.total_calls == 0


def test_footers_are_read_once_per_scan(table: DataTable) -> None:
    store, scan = counted(table, "s like 'text 1%' and _metadata.row_index < 900")
    scan.to_table()
    assert store.footers_opened == NUM_FILES
    assert "stat" not in store.counts  # the log has the sizes


def test_a_newer_snapshot_reads_the_new_commits_only(table: DataTable) -> None:
    store = CountingStore(table.store)
    snapshot = table.snapshot(store=store)
    plan_scan(snapshot).to_table()
    table.commit(table.add({"id": [1]}, partitionValues={"p": "1"}))
    store.reset()
    newer = snapshot.refresh()
    assert plan_scan(newer).count() == 5999
    assert store.paths("read", "read_many") == ["_delta_log/00000000000000000002.json"]
    assert data_paths(store) == []


def test_changes_read_the_commits_of_their_range_only(table: DataTable) -> None:
    for number in range(5):
        table.commit(table.add({"id": [number]}, partitionValues={"p": "1"}))
    store = CountingStore(table.store)
    snapshot = table.snapshot(store=store)
    store.reset()
    changes = open_changes(snapshot, start=4, end=5, columns=["id"])
    assert data_paths(store) == []
    store.reset()
    assert changes.to_table().num_rows == 2
    read = store.paths("read", "read_many")
    assert read == [f"_delta_log/{version:020d}.json" for version in (4, 5)]
    assert store.footers_opened == 2


def test_statistics_of_other_columns_are_not_looked_at() -> None:
    table = DataTable([("id", "long"), ("other", "long")])
    add = table.add({"id": [1], "other": [1]}, stats={"numRecords": 1, "minValues": {"id": 5}})
    logs.classic_checkpoint(
        table.store, table.commit(add), [table.protocol(), table.metadata(), add]
    )
    assert table.rows("other = 1") == [(1, 1)]
    assert table.scan("id = 1").count() == 0  # as its statistics say, wrongly


@pytest.mark.usefixtures("read_in_parts")
def test_row_groups_without_a_row_that_is_left_are_not_fetched() -> None:
    texts = [f"{value:0999}" for value in range(400)]
    stored = {"row_group_size": 100, "compression": "none", "use_dictionary": False}
    table = DataTable([("s", "string")], features=["deletionVectors"])
    (vector,) = table.vectors([*range(100, 200), 7])
    table.commit(table.add({"s": texts}, options=stored, deletionVector=vector))
    store, scan = counted(table)
    assert scan.to_table().column("s").to_pylist() == [*texts[:7], *texts[8:100], *texts[200:]]
    assert store.bytes_read < 330 * 1000


@pytest.mark.usefixtures("read_in_parts")
def test_only_row_groups_with_matches_are_read_whole(table: DataTable) -> None:
    """Statistics do not tell where these rows are; once their ids were read, it is known."""
    read = {}
    for where in ("id % 1000 = 999", "id % 100 = 99"):
        store, scan = counted(table, where)
        found = scan.to_table()
        assert found.column("s").to_pylist() == [
            f"text {value} " * 9 for value in found.column("id").to_pylist()
        ]
        read[found.num_rows] = store.bytes_read
    texts = sum(len(f"text {value} " * 9) for value in range(1000 * NUM_FILES))
    assert read[10 * NUM_FILES] - read[NUM_FILES] > 0.85 * texts


def test_no_reader_outlives_its_scan(table: DataTable) -> None:
    # A cycle through Arrow's file would never be freed, with all bytes of small files.
    before = {id(one) for one in gc.get_objects() if isinstance(one, ParquetReader)}
    for where in (None, "id % 1000 = 500", "p = 1"):
        scan = plan_scan(table.snapshot(), predicate=None if where is None else parse_sql(where))
        assert scan.to_table().num_rows
        assert next(scan.to_batches()).num_rows
        del scan
    # What was begun ahead for a scan that ended early is still being read.
    for _ in range(100):
        gc.collect()
        left = {id(one) for one in gc.get_objects() if isinstance(one, ParquetReader)} - before
        if not left:
            break
        time.sleep(0.1)
    assert not left


def test_a_second_lookup_takes_few_steps(tmp_path: Path) -> None:
    """What the first found out of table and file is not found out again, whatever the value."""
    path = tmp_path / "t"
    rows = pa.table({"id": range(50_000), "t": [f"text {row % 100}" for row in range(50_000)]})
    write_deltalake(path, rows)
    for file in path.glob("*.parquet"):  # what changed just now is not kept
        os.utime(file, (1, 1))
    table = DeltaTable(path)
    for row in (7, 20_007):
        assert table.scan(predicate=col("id") == row).to_table()["id"].to_pylist() == [row]
    steps = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal steps
        steps += event == "call"

    sys.setprofile(count)
    try:
        found = table.scan(predicate=col("id") == 23_456).to_table()
    finally:
        sys.setprofile(None)
    assert found.to_pylist() == [{"id": 23_456, "t": "text 56"}]
    assert steps < 1_600
