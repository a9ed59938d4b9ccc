"""Rows into files, however many, in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog.data.write import FileWriter, WriterProperties, write_files
from deltalog.data.write.rows_to_files import WriteLimits
from deltalog.errors import InvalidInputError
from deltalog.schema import Field
from deltalog.storage import open_store
from tests.support.logs import DictStore
from tests.support.writes import (
    batch_of,
    file_table,
    parquet_file,
    read_back,
    spec_of,
    stats_of,
    table,
    temporary_files,
    write,
)

PLAIN = table(Field("a", "long"), Field("p", "string"))


BY_P = table(Field("a", "long"), Field("p", "string"), partition_by=["p"])


def test_a_file_that_is_large_enough_is_closed() -> None:
    data = pa.table({"a": range(100_000)})
    written = write(PLAIN, data, target_file_size_bytes=100_000)
    sizes = [add.size_bytes for add in written.adds]
    assert len(sizes) > 3
    assert max(sizes) < 250_000
    assert sum(stats["numRecords"] for stats in stats_of(written)) == 100_000


def test_partitions_have_files_of_their_size_too() -> None:
    data = pa.table({"a": range(100_000), "p": ["x", "y"] * 50_000})
    spec = spec_of(BY_P, target_file_size_bytes=100_000)
    written = write_files(spec, data)
    assert len(written.adds) >= 4
    assert set(read_back(spec, written).column("a").to_pylist()) == set(range(100_000))


class ThreadedStore(DictStore):
    """Remembers which threads put files."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.writers.add(threading.get_ident())
        super().put_if_absent(path, data)

    @cached_property
    def writers(self) -> set[int]:
        return set()


@pytest.mark.parametrize(("data", "is_alone"), [(["x"], True), (["x", "y"], False)])
def test_a_single_file_is_written_by_who_waits_for_it(data: list[str], *, is_alone: bool) -> None:
    store = ThreadedStore()
    spec = spec_of(BY_P, store=store)
    written = write_files(spec, pa.table({"a": range(len(data)), "p": data}))
    assert len(written.adds) == len(data)
    assert (store.writers == {threading.get_ident()}) == is_alone


def test_rows_stay_in_order_where_they_are_split_side_by_side() -> None:
    rows = 30_000
    data = pa.table({"a": range(rows), "p": ["x", "y", "z"] * (rows // 3)})
    spec = spec_of(BY_P)
    limits = WriteLimits(row_group_bytes=20_000)  # some two dozen times
    with FileWriter(spec, limits=limits) as writer:
        for batch in data.to_batches(max_chunksize=500):
            writer.write(batch)
        written = writer.finish()
    adds = {add.partition_values["p"]: add for add in written.adds}
    assert len(written.adds) == len(adds) == 3
    for first, add in enumerate(adds[p] for p in "xyz"):
        assert file_table(spec, add.path).column("a").to_pylist() == list(range(first, rows, 3))


@pytest.mark.parametrize("place", [0, 20_000, 29_999])
def test_a_value_without_a_text_fails_wherever_it_is_split(tmp_path: Path, place: int) -> None:
    values = [b"x"] * 30_000
    values[place] = b"\xff"  # no UTF-8: the protocol has no text for it
    by_bytes = table(Field("a", "long"), Field("t", "binary"), partition_by=["t"])
    spec = spec_of(by_bytes, store=open_store(tmp_path))
    data = pa.table({"a": range(30_000), "t": values})

    def write_all() -> None:
        with FileWriter(spec, limits=WriteLimits(row_group_bytes=20_000)) as writer:
            for batch in data.to_batches(max_chunksize=500):
                writer.write(batch)
            writer.finish()

    with pytest.raises(InvalidInputError, match="partition column 't'"):
        write_all()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_small_batches_make_one_row_group() -> None:
    spec = spec_of(PLAIN)
    batches = (pa.record_batch({"a": [number]}) for number in range(50))
    (add,) = write_files(spec, batches).adds
    assert parquet_file(spec, add.path).metadata.num_row_groups == 1
    assert file_table(spec, add.path).column("a").to_pylist() == list(range(50))


def test_few_files_are_open_and_few_rows_wait_whatever_the_data(tmp_path: Path) -> None:
    spec = spec_of(BY_P, store=open_store(str(tmp_path)))
    # No partition alone has rows enough for a row group; all together have too many.
    limits = WriteLimits(row_group_bytes=8_000, waiting_bytes=10_000, open_files=3, files_at_once=1)
    opened: list[int] = []
    with FileWriter(spec, limits=limits) as writer:
        for start in range(0, 40_000, 1_000):
            numbers = range(start, start + 1_000)
            partitions = [str(number % 20) for number in numbers]
            writer.write(batch_of(BY_P, a=list(numbers), p=partitions))
            opened.append(temporary_files(tmp_path))
        written = writer.finish()
    # After ten thousand rows a partition alone would still wait.
    assert max(opened[:10]) > 0
    # Three, and what the background has not closed yet.
    assert max(opened) <= 3 + limits.files_at_once + 1
    assert len(written.adds) > 20
    assert written.num_rows == 40_000
    assert temporary_files(tmp_path) == 0


def test_rows_of_a_stream_are_not_held() -> None:
    properties = WriterProperties(max_row_group_size=1_000)
    most = 0
    before = pa.total_allocated_bytes()

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for _ in range(300):
            most = max(most, pa.total_allocated_bytes() - before)
            yield pa.record_batch({"a": pa.repeat(pa.scalar(7), 1_000)})

    written = write(PLAIN, batches(), writer_properties=properties)
    assert written.num_rows == 300_000
    # Some row groups of 8 KB, and the encoder's own pages; not the 2.4 MB of all rows.
    assert most < 1_500_000


class NowhereStore(DictStore):
    """No file has a path of the operating system, as in a store that is reached by requests."""

    def native_path(self, path: str) -> str | None:
        del path
        return None


@pytest.mark.parametrize("store", [DictStore(), NowhereStore()])
def test_files_that_are_held_in_memory_are_closed_earlier(store: DictStore) -> None:
    properties = WriterProperties(max_row_group_size=100)
    spec = spec_of(BY_P, store=store, writer_properties=properties)
    limits = WriteLimits(waiting_bytes=1_000, open_bytes=5_000, files_at_once=1)
    with FileWriter(spec, limits=limits) as writer:
        for start in range(0, 10_000, 1_000):
            numbers = list(range(start, start + 1_000))
            writer.write(batch_of(BY_P, a=numbers, p=[str(number % 10) for number in numbers]))
        assert len(store.files) > 10
        written = writer.finish()
    assert set(read_back(spec, written).column("a").to_pylist()) == set(range(10_000))


class MeetingStore(DictStore):
    """Files are put in place by two threads at once, or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.meeting = threading.Barrier(2, timeout=30)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.meeting.wait()
        super().put_if_absent(path, data)


def test_files_grow_side_by_side_where_there_are_rows_enough() -> None:
    # Every row closes a file, and closing the first one waits for the second.
    spec = spec_of(PLAIN, store=MeetingStore(), target_file_size_bytes=1)
    with FileWriter(spec, limits=WriteLimits(split_bytes=0, files_at_once=2)) as writer:
        writer.write(batch_of(PLAIN, a=[1, 2], p=["x", "y"]))
        written = writer.finish()
    assert len(written.adds) == 2
    assert set(read_back(spec, written).column("a").to_pylist()) == {1, 2}
