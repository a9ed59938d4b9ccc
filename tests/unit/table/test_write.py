"""`write_deltalake`: what becomes of a table by mode, and what does not go together."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Transaction,
    WriterProperties,
    write_deltalake,
    write_files,
)
from deltalog.errors import (
    CommitConflictError,
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    MetadataChangedError,
    SchemaMismatchError,
    TableExistsError,
)
from deltalog.log.names import commit_path
from deltalog.testing import FaultyStore, InjectedFault
from tests.support.facade import BusyStore, fresh_rows, last, make, rows, store_of, unchanged
from tests.support.logs import DictStore
from tests.support.writes import parquet_file, spec_of, table

NEW = [{"id": 3}]


@pytest.mark.parametrize(
    ("mode", "expected"), [("append", [1, 2, 3]), ("overwrite", [3]), ("ignore", [1, 2])]
)
def test_a_table_that_is_there(mode: Any, expected: list[int]) -> None:
    made = make([{"id": 1}, {"id": 2}])
    write_deltalake(made, NEW, mode=mode)
    assert rows(made) == fresh_rows(made) == expected
    assert made.version() == (0 if mode == "ignore" else 1)


def test_a_table_that_is_there_is_an_error_by_default() -> None:
    made = make([{"id": 1}])
    with (
        unchanged(made),
        pytest.raises(TableExistsError, match="a table already exists, at version 0"),
    ):
        write_deltalake(made, NEW)


@pytest.mark.parametrize("mode", ["error", "append", "overwrite", "ignore"])
def test_a_table_that_is_not_there_is_made(mode: Any) -> None:
    store = DictStore()
    write_deltalake(store, NEW, mode=mode, name="n", description="d", partition_by=None)
    made = DeltaTable(store)
    assert (made.version(), rows(made)) == (0, [3])
    assert (made.metadata().name, made.metadata().description) == ("n", "d")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "replace"}, "mode: expected one of 'error'"),
        ({"mode": "append", "schema_mode": "new"}, "schema_mode"),
        ({"mode": "overwrite", "partition_overwrite": "all"}, "partition_overwrite"),
        ({"mode": "append", "predicate": "id = 1"}, "predicate needs mode='overwrite'"),
        ({"mode": "append", "partition_overwrite": "dynamic"}, "needs mode='overwrite'"),
        (
            {"mode": "overwrite", "partition_overwrite": "dynamic", "predicate": "id = 1"},
            "excludes a predicate",
        ),
        ({"mode": "append", "schema_mode": "overwrite"}, "needs mode='overwrite'"),
        ({"mode": "append", "partition_by": ["id"]}, "with partition_by=\\['id'\\]"),
        ({"mode": "append", "configuration": {"delta.appendOnly": "true"}}, "set_table_prop"),
        ({"mode": "overwrite", "partition_overwrite": "dynamic"}, "has no partition columns"),
        ({"mode": "overwrite", "predicate": "nope = 1"}, "nope"),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], message: str) -> None:
    made = make([{"id": 1}])
    with unchanged(made), pytest.raises(InvalidInputError, match=message):
        write_deltalake(made, NEW, **options)


@pytest.mark.parametrize(
    "configuration",
    [
        {"delta.checkpointInterval": "5", "mine": "x"},
        {"delta.checkpointinterval": "5"},
        {"delta.feature.vacuumProtocolCheck": "supported"},
        {"delta.minWriterVersion": "4"},
        {"delta.enableDeletionVectors": "true"},
        {"delta.columnMapping.mode": "name"},
        {"delta.enableRowTracking": "true"},
        {"delta.constraints.small": "id < 10"},
        {"mine": None},
    ],
)
def test_a_program_may_ask_for_the_same_properties_again(configuration: dict[str, str]) -> None:
    store = DictStore()
    for _ in range(2):
        write_deltalake(store, NEW, mode="append", configuration=configuration)
    assert DeltaTable(store).count() == 2


def test_a_location_that_names_a_version_takes_no_rows(tmp_path: Any) -> None:
    write_deltalake(tmp_path / "t", NEW)
    with pytest.raises(InvalidInputError, match="expected a location without a version"):
        write_deltalake(f"{tmp_path}/t@v0", NEW, mode="append")


@pytest.mark.parametrize(
    "change",
    [
        lambda old: write_deltalake(old, NEW, mode="append"),
        lambda old: old.delete("id = 1"),
        lambda old: old.transaction(),
        lambda old: old.commit(deltalog.write_files(old, NEW)),
        lambda old: old.alter.set_table_name("n"),
        lambda old: old.alter.drop_feature("deletionVectors"),
        lambda old: old.set_domain_metadata("mine", "x"),
    ],
)
def test_a_table_that_went_back_in_time_takes_no_change(change: Any) -> None:
    made = make([{"id": 1}])
    old = DeltaTable(store_of(made), 0)
    with pytest.raises(InvalidInputError, match="update_incremental"):
        change(old)
    old.update_incremental()
    write_deltalake(old, NEW, mode="append")
    assert fresh_rows(made) == [1, 3]


@pytest.mark.protocol("OV-06")
def test_a_copied_directory_is_the_same_table(tmp_path: Any) -> None:
    write_deltalake(tmp_path / "a", [{"id": n, "p": n} for n in range(3)], partition_by=["p"])
    DeltaTable(tmp_path / "a").alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    DeltaTable(tmp_path / "a").delete("id = 1")
    (tmp_path / "a").rename(tmp_path / "b")
    write_deltalake(tmp_path / "b", [{"id": 9, "p": 9}], mode="append")
    assert rows(DeltaTable(tmp_path / "b"), "id") == [0, 2, 9]


def test_an_empty_list_changes_no_column() -> None:
    made = make([{"id": 1}])
    write_deltalake(made, [], mode="append")
    assert rows(made) == [1]
    write_deltalake(made, [], mode="overwrite")
    assert (rows(made), made.schema().names) == ([], ("id",))
    with pytest.raises(InvalidInputError, match="no columns"):
        write_deltalake(made, [], mode="overwrite", schema_mode="overwrite")
    with pytest.raises(InvalidInputError, match="no columns"):
        write_deltalake(DictStore(), [])


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.protocol("OV-01")
def test_rows_that_fail_half_way_leave_nothing(mode: Any) -> None:
    made = make([{"id": 1}])

    def half() -> Any:
        yield pa.record_batch({"id": [5]})
        raise ZeroDivisionError

    with unchanged(made), pytest.raises(ZeroDivisionError):
        write_deltalake(made, half(), mode=mode, target_file_size=1)
    store = DictStore()
    with pytest.raises(ZeroDivisionError):
        write_deltalake(store, half())
    assert not store.files


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_row_that_breaks_a_rule_leaves_nothing(mode: Any) -> None:
    made = make([{"id": 1}])
    made.alter.add_constraint({"small": "id < 10"})
    with unchanged(made), pytest.raises(ConstraintViolationError, match="small"):
        write_deltalake(made, [{"id": 5}, {"id": 50}], mode=mode)
    with unchanged(made), pytest.raises(SchemaMismatchError, match="other"):
        write_deltalake(made, [{"other": 5}], mode=mode)


@pytest.mark.parametrize("call", range(1, 8))
@pytest.mark.protocol("OV-01")
def test_a_store_that_refuses_a_call_leaves_nothing(call: int) -> None:
    """Whatever call it is, the write happened whole or left no file."""
    made = make([{"id": 1, "p": 1}], partition_by=["p"])
    before = dict(store_of(made).files)
    faulty = FaultyStore(store_of(made), InjectedFault(call))
    error: Exception | None = None
    try:
        data = [{"id": 2, "p": 1}, {"id": 3, "p": 2}]
        write_deltalake(DeltaTable(faulty), data, mode="append")
    except DeltaError as raised:
        error = raised
    made.update_incremental()
    if made.version() == 1:
        assert rows(made, "id") == [1, 2, 3]
    else:
        assert error is not None
        assert dict(store_of(made).files) == before


def test_two_objects_of_one_table() -> None:
    one = make([{"id": 1}])
    two = DeltaTable(store_of(one))
    write_deltalake(two, [{"id": 2}], mode="append")
    write_deltalake(one, [{"id": 3}], mode="append")
    assert (one.version(), rows(one)) == (2, [1, 2, 3])
    # An overwrite looks first, and replaces what it sees: rows that can be read only once too.
    write_deltalake(two, iter(pa.table({"id": [4]}).to_batches()), mode="overwrite")
    assert (two.version(), rows(two)) == (3, [4])


def test_an_append_is_staged_anew_when_the_table_changed() -> None:
    one = make([{"id": 1}])
    DeltaTable(store_of(one)).alter.add_constraint({"small": "id < 10"})
    with pytest.raises(ConstraintViolationError):
        write_deltalake(one, [{"id": 30}], mode="append")
    write_deltalake(one, [{"id": 3}], mode="append")
    assert fresh_rows(one) == [1, 3]


def test_rows_that_are_read_once_are_not_staged_anew() -> None:
    one = make([{"id": 1}])
    DeltaTable(store_of(one)).alter.set_table_name("n")
    with unchanged(one), pytest.raises(MetadataChangedError):
        write_deltalake(one, iter(pa.table({"id": [3]}).to_batches()), mode="append")


def test_a_table_is_pickled_after_writes() -> None:
    made = make([{"id": 1}])
    write_deltalake(made, NEW, mode="append")
    copy = pickle.loads(pickle.dumps(made))
    assert (copy.version(), rows(copy)) == (1, [1, 3])
    write_deltalake(copy, [{"id": 4}], mode="append")
    assert rows(copy) == [1, 3, 4]


def test_files_have_the_size_that_is_asked_for() -> None:
    data = pa.table({"id": range(100_000)}).to_batches(max_chunksize=5_000)
    made = make(iter(data), target_file_size=50_000)
    assert made.snapshot.num_files > 3
    assert made.count() == 100_000


def test_parquet_is_written_as_asked() -> None:
    properties = WriterProperties(
        compression="ZSTD",
        column_properties={"id": ColumnProperties(dictionary_enabled=False)},
    )
    made = make([{"id": 1, "s": "x"}], writer_properties=properties)
    [path] = [path for path in store_of(made).files if path.endswith(".parquet")][:1]
    assert path.endswith("zstd.parquet")
    group = parquet_file(spec_of(table(), store=store_of(made)), path).metadata.row_group(0)
    assert {group.column(n).compression for n in (0, 1)} == {"ZSTD"}
    assert not any("DICTIONARY" in encoding for encoding in group.column(0).encodings)


@pytest.mark.protocol("TXN-03", "TXN-04", "D-72")
def test_an_application_writes_a_batch_once() -> None:
    store = DictStore()
    step = CommitProperties(app_transactions=[Transaction("app", 7)])
    for _ in range(2):  # the first one makes the table
        write_deltalake(store, NEW, mode="append", commit_properties=step)
    made = DeltaTable(store)
    assert (made.version(), rows(made), made.transaction_version("app")) == (0, [3], 7)
    # Also for somebody who does not know yet that it happened.
    late = DeltaTable(store)
    step = CommitProperties(app_transactions=[Transaction("app", 8)])
    write_deltalake(made, NEW, mode="append", commit_properties=step)
    with unchanged(made):
        write_deltalake(late, NEW, mode="append", commit_properties=step)
    assert fresh_rows(made) == [3, 3]


@pytest.mark.protocol("D-72")
def test_two_that_make_a_table_with_the_same_step_write_it_once() -> None:
    store = BusyStore()
    step = CommitProperties(app_transactions=[Transaction("app", 1)])
    store.before_commit = lambda: write_deltalake(store, NEW, commit_properties=step)
    write_deltalake(store, NEW, mode="append", commit_properties=step)
    made = DeltaTable(store)
    assert (made.version(), rows(made)) == (0, [3])
    assert len([path for path in store.files if path.endswith(".parquet")]) == 1


@pytest.mark.protocol("B-04")
def test_the_history_tells_of_a_write() -> None:
    made = make([{"id": 1}])
    metadata = {"userMetadata": "nightly", "run": "7"}
    write_deltalake(
        made,
        NEW,
        mode="append",
        commit_properties=CommitProperties(custom_metadata=metadata),
    )
    info = last(made)
    assert (info["operation"], info["operationParameters"]["mode"]) == ("WRITE", "Append")
    assert (info["userMetadata"], info["run"]) == ("nightly", "7")
    assert (info["readVersion"], info["isBlindAppend"]) == (0, True)
    assert info["operationMetrics"]["numOutputRows"] == "1"
    assert info["operationMetrics"]["numFiles"] == "1"
    assert int(info["operationMetrics"]["numOutputBytes"]) > 0
    assert info["engineInfo"].startswith("deltalog/")
    write_deltalake(made, NEW, mode="overwrite")
    info = last(made)
    assert info["operationParameters"]["mode"] == "Overwrite"
    assert (info["isBlindAppend"], info["operationMetrics"]["numRemovedFiles"]) == (False, "2")
    assert made.history(1)[0]["operation"] == "WRITE"


class Racing(list[dict[str, Any]]):
    """Rows that somebody else's write is faster than."""

    def __init__(self, store: DictStore, rows: list[dict[str, Any]]) -> None:
        super().__init__(rows)
        self.store = store

    def __iter__(self) -> Any:
        if not self.store.files:
            write_deltalake(self.store, [{"id": 9}])
        return super().__iter__()


@pytest.mark.parametrize(
    ("mode", "expected"), [("append", [3, 9]), ("overwrite", [3]), ("ignore", [9])]
)
def test_a_table_that_somebody_else_makes_meanwhile(mode: Any, expected: list[int]) -> None:
    store = DictStore()
    write_deltalake(store, Racing(store, NEW), mode=mode)
    made = DeltaTable(store)
    assert rows(made) == expected
    files = {path for path in store.files if path.endswith(".parquet")}
    assert len(files) == (1 if mode == "ignore" else 2)


def test_a_table_that_somebody_else_makes_meanwhile_is_an_error_by_default() -> None:
    store = DictStore()
    with pytest.raises(TableExistsError):
        write_deltalake(store, Racing(store, NEW))
    assert rows(DeltaTable(store)) == [9]
    assert len([path for path in store.files if path.endswith(".parquet")]) == 1


def test_rows_that_are_read_once_cannot_go_to_the_table_of_somebody_else() -> None:
    store = DictStore()

    def racing() -> Any:
        write_deltalake(store, [{"id": 9}])
        yield pa.record_batch({"id": [3]})

    with pytest.raises(CommitConflictError):
        write_deltalake(store, racing(), mode="append")
    assert rows(DeltaTable(store)) == [9]


@pytest.mark.protocol("OV-05")
def test_rows_that_somebody_added_meanwhile_are_overwritten() -> None:
    made = make([{"id": 1}])
    other = DeltaTable(store_of(made))

    class Slow(list[dict[str, Any]]):
        def __iter__(self) -> Any:
            if other.version() == 0:
                write_deltalake(other, [{"id": 9}], mode="append")
            return super().__iter__()

    write_deltalake(made, Slow(NEW), mode="overwrite")
    assert (made.version(), fresh_rows(made)) == (2, [3])


def test_retries_can_be_forbidden() -> None:
    one = make([{"id": 1}])
    write_deltalake(DeltaTable(store_of(one)), NEW, mode="append")
    none = CommitProperties(max_commit_retries=0)
    with unchanged(one), pytest.raises(DeltaError, match="1 attempt"):
        write_deltalake(one, NEW, mode="append", commit_properties=none)


def test_columns_of_other_types_are_cast_by_every_write() -> None:
    table = make([{"n": 1, "s": "x"}])
    write_deltalake(table, [{"n": "2", "s": 5}], mode="append")
    written = write_files(table.write_spec(), [{"n": "3", "s": 6.5}])
    table.commit(written)
    assert fresh_rows(table) == [(1, "x"), (2, "5"), (3, "6.5")]
    with unchanged(table), pytest.raises(SchemaMismatchError, match="'many'"):
        write_deltalake(table, [{"n": "many", "s": "y"}], mode="append")


def test_a_schema_that_is_overwritten_where_a_predicate_holds_only_grows() -> None:
    table = make([{"Id": 1, "v": "x"}, {"Id": 2, "v": "y"}])
    new: list[dict[str, Any]] = [{"id": 2, "V": "z", "more": 1}]
    options: dict[str, Any] = {
        "mode": "overwrite",
        "schema_mode": "overwrite",
        "predicate": "Id = 2",
    }
    write_deltalake(table, new, **options)
    assert table.schema().names == ("Id", "v", "more")
    assert fresh_rows(table) == [(1, "x", None), (2, "z", 1)]
    with unchanged(table), pytest.raises(InvalidInputError, match=r"lacks the columns \['more'\]"):
        write_deltalake(table, [{"id": 2, "v": "z"}], **options)
    with unchanged(table), pytest.raises(InvalidInputError, match=r"partition_by=\['v'\]"):
        write_deltalake(table, new, partition_by=["v"], **options)
    with unchanged(table), pytest.raises(SchemaMismatchError):
        write_deltalake(table, [{**new[0], "more": "text"}], **options)


def test_dynamic_overwrite_adds_columns() -> None:
    table = make({"p": ["x", "y"], "v": [1, 2]}, partition_by=["p"])
    new: dict[str, Any] = {"p": ["x"], "v": [100], "w": ["new"]}
    options: dict[str, Any] = {"mode": "overwrite", "partition_overwrite": "dynamic"}
    with pytest.raises(SchemaMismatchError, match="'w'"):
        write_deltalake(table, pa.table(new), **options)
    write_deltalake(table, pa.table(new), schema_mode="merge", **options)
    assert rows(table) == [("x", 100, "new"), ("y", 2, None)]
    # Columns that the data lacks are NULL.
    write_deltalake(table, pa.table({"p": ["y"]}), schema_mode="merge", **options)
    assert rows(table) == [("x", 100, "new"), ("y", None, None)]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_other_columns_change_beside_a_null_struct_whose_field_is_not_null(vectors: str) -> None:
    struct = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    data = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "s": pa.array([None, {"a": 1, "b": 2}], struct),
            "v": pa.array([1, 2], pa.int32()),
        }
    )
    made = make(data, configuration={"delta.enableDeletionVectors": vectors})
    # Other writers take the struct of such a row for one without fields.
    store = store_of(made)
    path = commit_path(0)
    text = store.files[path].decode()
    field = r"{\"name\":\"a\",\"type\":\"integer\",\"nullable\":"
    assert text.count(f"{field}true") == 1
    store.files[path] = text.replace(f"{field}true", f"{field}false").encode()
    store.files.pop("_delta_log/00000000000000000000.crc", None)
    made = DeltaTable(store)
    assert made.update(updates={"v": "v + 1"})["num_updated_rows"] == 2
    source = pa.table({"id": pa.array([1], pa.int32())})
    merge = made.merge(source, "t.id = x.id", source_alias="x", target_alias="t")
    merge.when_matched_update({"v": "t.v + 10"}).execute()
    made.update(predicate="id = 2", updates={"s.b": "7"})
    expected: list[Any] = [(1, None, 12), (2, {"a": 1, "b": 7}, 3)]
    assert rows(made) == expected
    for given in ({"s": "NULL"}, {"s.a": "NULL"}, {"s": "named_struct('a', NULL, 'b', 1)"}):
        with pytest.raises(ConstraintViolationError, match=r"NOT NULL of column 's\.a'"):
            made.update(predicate="id = 2", updates=given)
    assert rows(made) == expected
