from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    SchemaMismatchError,
    StorageError,
)
from deltalog.schema import Field, StructType
from deltalog.storage import open_store
from deltalog.testing import FaultyStore, InjectedFault
from deltalog.write import FileWriter, WriterProperties, WriteSpec, write_files
from deltalog.write.rows_to_files import WriteLimits
from tests.support.logs import DictStore
from tests.support.writes import (
    batch_of,
    file_table,
    parquet_file,
    read_back,
    rows,
    spec_of,
    stats_of,
    table,
    write,
)

PLAIN = table(Field("a", "long"), Field("p", "string"))
BY_P = table(Field("a", "long"), Field("p", "string"), partition_by=["p"])


def files_in(store: DictStore) -> list[str]:
    return sorted(store.files)


@pytest.mark.protocol("DF-04", "ADD-02")
def test_a_file_has_a_name_of_its_own() -> None:
    spec = spec_of(PLAIN)
    first, second = (write_files(spec, [{"a": 1}]).adds[0] for _ in range(2))
    assert first.path != second.path
    uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    assert re.fullmatch(f"part-00000-{uuid}-c000.snappy.parquet", first.path)


@pytest.mark.protocol("ADD-01", "ADD-12", "DF-01")
def test_the_action_says_what_the_file_is() -> None:
    spec = spec_of(BY_P)
    written = write_files(spec, [{"a": 1, "p": "x"}, {"a": 2, "p": None}])
    first, second = written.adds
    assert first.size_bytes == len(spec.store.read(first.path))
    assert first.modification_time_ms > 0
    assert first.data_change
    assert (first.partition_values, second.partition_values) == ({"p": "x"}, {"p": None})
    assert (written.num_rows, written.num_bytes) == (2, first.size_bytes + second.size_bytes)
    assert written.table_id == spec.configuration.metadata.id


@pytest.mark.protocol("ADD-06")
def test_rows_that_were_there_before_change_no_data() -> None:
    (add,) = write(PLAIN, [{"a": 1}], data_change=False).adds
    assert not add.data_change


@pytest.mark.protocol("D-05", "D-07")
def test_partitions_have_hive_directories() -> None:
    configuration = table(
        Field("a", "long"), Field("s", "string"), Field("t", "timestamp"), partition_by=["s", "t"]
    )
    moment = pa.array([1_704_067_200_500_000, None], pa.timestamp("us", "UTC"))
    spec = spec_of(configuration)
    written = write_files(spec, pa.table({"a": [1, 2], "s": ["x:y é/%", ""], "t": moment}))
    assert [add.path.rpartition("/")[0] for add in written.adds] == [
        "s=x%3Ay é%2F%25/t=2024-01-01 00%3A00%3A00.5",
        "s=__HIVE_DEFAULT_PARTITION__/t=__HIVE_DEFAULT_PARTITION__",
    ]
    assert read_back(spec, written).column("s").to_pylist() == ["x:y é/%", None]


@pytest.mark.protocol("CM-18")
@pytest.mark.parametrize(
    ("options", "length"),
    [
        ({"randomizeFilePrefixes": "true"}, 2),
        ({"randomizeFilePrefixes": "true", "randomPrefixLength": "5"}, 5),
        ({"mapping": "name"}, 2),
        ({"mapping": "id"}, 2),
    ],
)
@pytest.mark.parametrize("partition_by", [[], ["p"]])
def test_directories_that_tell_nothing(
    options: dict[str, str], length: int, partition_by: list[str]
) -> None:
    configuration = table(
        Field("a", "long"), Field("p", "string"),
        partition_by=partition_by, mapping=options.get("mapping", "none"),
        **{name: text for name, text in options.items() if name != "mapping"},
    )  # fmt: skip
    (add,) = write(configuration, [{"a": 1, "p": "x"}]).adds
    directory, _, name = add.path.partition("/")
    assert re.fullmatch(f"[A-Za-z0-9]{{{length}}}", directory)
    assert name.startswith("part-00000-")


@pytest.mark.protocol("STAT-01", "STAT-09", "STAT-12")
def test_statistics_are_collected_over_all_batches() -> None:
    data = pa.table({"a": [3, 1, None, 2], "p": ["b", "a", "c", None]})
    (stats,) = stats_of(write(PLAIN, data.to_batches(max_chunksize=1)))
    assert stats == {
        "numRecords": 4,
        "minValues": {"a": 1, "p": "a"},
        "maxValues": {"a": 3, "p": "c"},
        "nullCount": {"a": 1, "p": 1},
    }
    assert stats_of(write(BY_P, [{"a": 3, "p": "x"}])) == [
        {"numRecords": 1, "minValues": {"a": 3}, "maxValues": {"a": 3}, "nullCount": {"a": 0}}
    ]


@pytest.mark.protocol("STAT-03")
def test_bounds_are_tight_where_they_could_be_wide() -> None:
    configuration = table(Field("a", "long"), features=["deletionVectors"])
    (stats,) = stats_of(write(configuration, [{"a": 1}]))
    assert stats["tightBounds"] is True


@pytest.mark.protocol("STAT-10")
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_the_table_chooses_which_columns_have_statistics(mapping: str) -> None:
    fields = [Field(f"c{number}", "long") for number in range(40)]
    row = [dict.fromkeys((field.name for field in fields), 1)]

    def counted(**properties: str) -> int:
        (stats,) = stats_of(write(table(*fields, mapping=mapping, **properties), row))
        return len(stats["nullCount"])

    assert counted() == 32
    assert counted(dataSkippingNumIndexedCols="3") == 3
    assert counted(dataSkippingNumIndexedCols="-1") == 40
    assert counted(dataSkippingStatsColumns="c39,C38,gone") == 2


@pytest.mark.protocol("STAT-06")
def test_texts_are_cut_as_the_table_says() -> None:
    configuration = table(Field("s", "string"), dataSkippingStringPrefixLength="3")
    (stats,) = stats_of(write(configuration, [{"s": "abcdef"}]))
    assert (stats["minValues"], stats["maxValues"]) == ({"s": "abc"}, {"s": "abc\x7f"})


@pytest.mark.protocol("NTZ-03")
def test_timestamps_are_microseconds_in_utc_or_in_no_zone() -> None:
    configuration = table(
        Field("t", "timestamp"), Field("n", "timestamp_ntz"), features=["timestampNtz"]
    )
    spec = spec_of(configuration)
    moments = pa.array([1_704_067_200_000_001], pa.timestamp("us"))
    (add,) = write_files(spec, pa.table({"t": moments, "n": moments})).adds
    kinds = [parquet_file(spec, add.path).schema.column(number) for number in range(2)]
    assert [kind.physical_type for kind in kinds] == ["INT64", "INT64"]
    assert ["isAdjustedToUTC=true" in str(kind.logical_type) for kind in kinds] == [True, False]
    assert all("timeUnit=microseconds" in str(kind.logical_type) for kind in kinds)


@pytest.mark.protocol("SCH-04", "D-69")
def test_small_decimals_are_integers() -> None:
    fields = [Field("a", "decimal(5,2)"), Field("b", "decimal(18,0)"), Field("c", "decimal(38,10)")]
    spec = spec_of(table(*fields))
    (add,) = write_files(spec, [{"a": None}]).adds
    schema = parquet_file(spec, add.path).schema
    kinds = [schema.column(number).physical_type for number in range(3)]
    assert kinds == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]


@pytest.mark.protocol("D-71")
@pytest.mark.parametrize(
    "data", [[], pa.table({"a": pa.array([], pa.int64())})], ids=["list", "table"]
)
def test_no_rows_make_no_file(data: Any) -> None:
    written = write(PLAIN, data)
    assert (written.adds, written.num_rows) == ((), 0)


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


def test_small_batches_make_one_row_group() -> None:
    spec = spec_of(PLAIN)
    batches = (pa.record_batch({"a": [number]}) for number in range(50))
    (add,) = write_files(spec, batches).adds
    assert parquet_file(spec, add.path).metadata.num_row_groups == 1
    assert file_table(spec, add.path).column("a").to_pylist() == list(range(50))


def temporary_files(directory: Path) -> int:
    """How many files are open there: their names are given at the end."""
    return sum(path.is_file() and path.suffix != ".parquet" for path in directory.rglob("*"))


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


def test_files_that_are_held_in_memory_are_closed_earlier() -> None:
    spec = spec_of(BY_P, writer_properties=WriterProperties(max_row_group_size=100))
    assert isinstance(spec.store, DictStore)
    limits = WriteLimits(waiting_bytes=1_000, open_bytes=5_000, files_at_once=1)
    with FileWriter(spec, limits=limits) as writer:
        for start in range(0, 10_000, 1_000):
            numbers = list(range(start, start + 1_000))
            writer.write(batch_of(BY_P, a=numbers, p=[str(number % 10) for number in numbers]))
        assert len(spec.store.files) > 10
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


# --- failures


def test_a_violation_in_the_middle_leaves_nothing() -> None:
    store = DictStore()
    configuration = table(Field("a", "long"), constraints__small="a < 1000")
    batches = (pa.record_batch({"a": [number] * 10}) for number in (1, 2, 3, 1000))
    with pytest.raises(ConstraintViolationError):
        write(configuration, batches, store=store, target_file_size_bytes=1)
    assert files_in(store) == []


@pytest.mark.parametrize("error", [ValueError("torn"), KeyboardInterrupt()], ids=repr)
def test_a_source_that_fails_leaves_nothing(error: BaseException) -> None:
    store = DictStore()
    seen: list[str] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(30):
            yield pa.record_batch({"a": [number] * 10})
        seen.extend(files_in(store))
        raise error

    with pytest.raises(type(error)):
        write(PLAIN, batches(), store=store, target_file_size_bytes=1)
    assert seen
    assert files_in(store) == []


@pytest.mark.parametrize("call", [1, 2, 5])
def test_a_store_that_fails_keeps_nothing_of_the_write(call: int) -> None:
    store = DictStore()
    faulty = FaultyStore(store, InjectedFault(call=call, verb="put_if_absent"))
    batches = (pa.record_batch({"a": [number] * 10}) for number in range(8))
    with pytest.raises(StorageError):
        write(PLAIN, batches, store=faulty, target_file_size_bytes=1)
    assert files_in(store) == []


def test_a_store_that_deletes_nothing_does_not_hide_the_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = DictStore()
    faulty = FaultyStore(
        store, InjectedFault(call=3, verb="put_if_absent"), InjectedFault(verb="delete_many")
    )
    batches = (pa.record_batch({"a": [number] * 10}) for number in range(8))
    with pytest.raises(StorageError, match="put_if_absent"):
        write(PLAIN, batches, store=faulty, target_file_size_bytes=1)
    assert "stay until vacuum" in caplog.text
    assert files_in(store) != []


def test_local_files_are_removed_too(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    data = [pa.table({"a": [1]}), pa.table({"a": ["no"]})]
    with pytest.raises(SchemaMismatchError):
        write(BY_P, data, store=store, target_file_size_bytes=1)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_that_are_open_are_removed_too(tmp_path: Path) -> None:
    properties = WriterProperties(max_row_group_size=1)
    spec = spec_of(PLAIN, store=open_store(str(tmp_path)), writer_properties=properties)
    writer = FileWriter(spec)
    for number in range(10):
        writer.write(batch_of(PLAIN, a=[number], p=["x"]))
    assert temporary_files(tmp_path) > 0
    writer.abandon()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_nothing_is_written_where_a_rule_cannot_be_evaluated() -> None:
    store = DictStore()
    configuration = table(Field("a", "long"), constraints__odd="udf(a)")
    with pytest.raises(DeltaError, match="'odd'"):
        write(configuration, [{"a": 1}], store=store)
    assert files_in(store) == []


# --- workers


@pytest.mark.protocol("OV-01")
def test_a_worker_gets_a_spec_and_gives_files_in_pickles(tmp_path: Path) -> None:
    spec = WriteSpec(store=open_store(str(tmp_path)), configuration=BY_P, time_zone="UTC")
    there: WriteSpec = pickle.loads(pickle.dumps(spec))
    written = write_files(there, [{"a": 1, "p": "x"}])
    assert pickle.loads(pickle.dumps(written)) == written
    assert (tmp_path / written.adds[0].path).is_file()


def test_kept_row_ids_go_with_their_rows() -> None:
    configuration = table(
        Field("a", "long"), Field("p", "string"),
        partition_by=["p"], features=["rowTracking"],
        rowTracking__materializedRowIdColumnName="_id",
        rowTracking__materializedRowCommitVersionColumnName="_v",
    )  # fmt: skip
    spec = spec_of(configuration)
    batch = batch_of(configuration, a=[1, 2, 3], p=["x", "y", "x"])
    with FileWriter(spec) as writer:
        writer.write(batch, row_ids=pa.array([10, 20, 30]))
        writer.write(batch)
        written = writer.finish()
    found = [file_table(spec, add.path).to_pydict() for add in written.adds]
    assert sorted(found, key=str) == sorted(
        [
            {"a": [1, 3], "_id": [10, 30], "_v": [None, None]},
            {"a": [2], "_id": [20], "_v": [None]},
            {"a": [1, 3]},
            {"a": [2]},
        ],
        key=str,
    )


def test_nested_columns_come_back() -> None:
    inner = StructType([Field("x", "long"), Field("y", "string")])
    row = {"s": {"x": 1, "y": None}}
    assert rows(table(Field("s", inner)), [row, {"s": None}]) == [row["s"], None]
