from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.write import FileWriter, WriterProperties, write_files
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    SchemaMismatchError,
    StorageError,
)
from deltalog.schema import Field, StructType
from deltalog.storage import open_store
from deltalog.testing import FaultyStore, InjectedFault
from tests.support.logs import DictStore
from tests.support.writes import (
    batch_of,
    file_table,
    parquet_file,
    rows,
    spec_of,
    table,
    temporary_files,
    write,
)

PLAIN = table(Field("a", "long"), Field("p", "string"))


BY_P = table(Field("a", "long"), Field("p", "string"), partition_by=["p"])


def files_in(store: DictStore) -> list[str]:
    return sorted(store.files)


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
    assert "of a failed write; vacuum deletes the rest" in caplog.text
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
