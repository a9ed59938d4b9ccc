"""Dask reads tables in partitions, and writes frames in one version, by the tasks of its graph."""

from __future__ import annotations

import datetime as dt
import logging
import math
import pickle
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalog import dask as deltalog_dask
from deltalog.data.scan.rows import DtypeBackend
from deltalog.errors import (
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltalog.integrations.tasks import VersionRead
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.support.engines import FILES, bag, files_of, ids_of, make_table, rows_of_file
from tests.support.raw_tables import RawTable, protocol

BACKENDS: tuple[DtypeBackend, ...] = ("pyarrow", "numpy_nullable")
ONE_FILE = 1  # no two files are one partition


@pytest.fixture(scope="module", autouse=True)
def _in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("table"))
    make_table(path)
    return path


def rows_in(frame: Any) -> pa.Table:
    return pa.Table.from_pandas(frame.compute(), preserve_index=False)


def test_a_frame_has_the_rows_of_the_table(path: str) -> None:
    table = DeltaTable(path)
    frame = deltalog_dask.read(table, partition_bytes=ONE_FILE)
    found = rows_in(frame)
    assert found.schema.types == table.schema().to_arrow().types
    assert bag(found) == bag(table.to_pyarrow_table())
    assert (frame.npartitions, frame.known_divisions, len(frame)) == (FILES, False, 22)
    assert deltalog_dask.read(path).npartitions == 1


def test_types_of_a_frame_are_known_and_those_of_each_partition(path: str) -> None:
    for backend in BACKENDS:
        frame = deltalog_dask.read(path, partition_bytes=ONE_FILE, dtype_backend=backend)
        for part in frame.partitions:
            assert part.compute().dtypes.to_dict() == frame.dtypes.to_dict()


def test_python_values_stay_what_they_are(path: str) -> None:
    frame = deltalog_dask.read(path, columns=["i", "x", "d"], dtype_backend="numpy_nullable")
    row = frame.compute().sort_values("i").iloc[1]
    assert (row["x"], row["d"]) == (Decimal("0.25"), dt.date(2024, 1, 2))


def test_only_columns_of_the_graph_are_read(tmp_path: Path) -> None:
    store = CountingStore(open_store(str(tmp_path / "table")))
    texts = [str(number) * 40 for number in range(100_000)]
    write_deltalake(store, {"id": list(range(100_000)), "s": texts})
    frame = deltalog_dask.read(store)
    sizes = []
    for query in (frame.s.str.len(), frame.id):
        store.reset()
        assert query.sum().compute() > 0
        sizes.append(store.bytes_read)
    assert sizes[1] < sizes[0] / 2


@pytest.mark.parametrize("predicate", ["i > 45", [("i", ">", 45)]], ids=["SQL", "filters"])
def test_a_predicate_leaves_out_files_and_rows(path: str, predicate: Any) -> None:
    store = CountingStore(open_store(path))
    name = "filters" if isinstance(predicate, list) else "predicate"
    frame = deltalog_dask.read(store, partition_bytes=ONE_FILE, **{name: predicate})
    assert frame.npartitions == 1
    store.reset()
    assert sorted(frame.i.compute()) == [50, 51, 53]
    assert store.footers_opened == 1


def test_both_predicates_hold(path: str) -> None:
    frame = deltalog_dask.read(
        path, predicate="i > :n", filters=[("p", "=", 1)], parameters={"n": 13}
    )
    assert sorted(frame.i.compute()) == [40, 41, 43]


def test_columns_are_selected_and_renamed(path: str) -> None:
    frame = deltalog_dask.read(
        path, columns=["st.a", "i", "_metadata.row_index"], predicate="p = 1"
    )
    assert list(frame.columns) == ["st", "i", "_metadata.row_index"]
    found = frame[["_metadata.row_index", "i"]].compute().dropna().sort_values("i")
    assert found.to_numpy().tolist() == [[0, 10], [3, 13], [0, 40], [1, 41], [3, 43]]
    with pytest.raises(InvalidInputError, match="nothing_like_it"):
        deltalog_dask.read(path, columns=["nothing_like_it"])


def test_divisions_are_known_where_files_do_not_overlap(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for first in (20, 0, 10):
        rows = {"id": [first + n for n in (3, 1, 2)], "s": [f"{first + n:02}" for n in range(3)]}
        write_deltalake(path, {**rows, "x": [0.5, 1.5, 2.5]}, mode="append")
    frame = deltalog_dask.read(path, index="id", partition_bytes=ONE_FILE)
    assert frame.divisions == (1, 11, 21, 23)
    assert frame.loc[11:12].x.compute().tolist() == [1.5, 2.5]
    assert list(frame.x.compute().index) == [1, 2, 3, 11, 12, 13, 21, 22, 23]
    assert deltalog_dask.read(path, index="id").divisions == (1, 23)
    assert deltalog_dask.read(path, index="s", partition_bytes=ONE_FILE).divisions == (
        "00", "10", "20", "22"
    )  # fmt: skip
    some = deltalog_dask.read(path, predicate="id > 12", index="id", columns=["id"])
    assert sorted(some.compute().index) == [13, 21, 22, 23]


@pytest.mark.parametrize(
    "rows", [{"id": [5, 13]}, {"id": [None, 30]}, {"id": [12, 12]}], ids=["overlap", "NULL", "same"]
)
def test_divisions_are_unknown_where_files_overlap(tmp_path: Path, rows: dict[str, Any]) -> None:
    path = str(tmp_path / "table")
    for some in ({"id": [1, 2]}, {"id": [11, 12]}, rows):
        write_deltalake(path, some, mode="append")
    frame = deltalog_dask.read(path, index="id", partition_bytes=ONE_FILE)
    assert not frame.known_divisions
    assert len(frame.compute()) == 6
    with pytest.raises(InvalidInputError, match="other"):
        deltalog_dask.read(path, index="other")
    with pytest.raises(InvalidInputError, match="'id'"):
        deltalog_dask.read(path, columns=[], index="id")


def test_indices_of_other_types_have_unknown_divisions(path: str) -> None:
    for name in ("x", "t", "d", "p"):
        frame = deltalog_dask.read(path, index=name, columns=[name, "s"])
        assert not frame.known_divisions
        assert frame.compute().index.name == name


def test_a_table_without_rows_is_a_frame_without_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    DeltaTable.create(path, pa.table({"id": [1], "s": [""]}).schema)
    assert not deltalog_dask.read(path, index="id").known_divisions
    frame = deltalog_dask.read(path)
    assert frame.npartitions == 1
    assert frame[frame.id > 3].compute().shape == (0, 2)
    assert str(frame.compute().dtypes["id"]) == "int64[pyarrow]"


def test_a_frame_keeps_its_version(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1, 2]})
    table = DeltaTable(path)
    frame = deltalog_dask.read(table)
    write_deltalake(path, {"id": [3]}, mode="append")
    assert sorted(frame.id.compute()) == [1, 2]
    assert len(deltalog_dask.read(path)) == 3
    assert len(deltalog_dask.read(path, version=0)) == 2
    table.update_incremental()
    assert len(deltalog_dask.read(table, version=0)) == 2
    assert table.version() == 1
    with pytest.raises(VersionNotFoundError):
        deltalog_dask.read(path, version=7)
    with pytest.raises(TableNotFoundError):
        deltalog_dask.read(str(tmp_path / "elsewhere"))


def test_unreadable_tables_are_refused_before_any_task(tmp_path: Path) -> None:
    raw = RawTable(tmp_path / "table")
    raw.create()
    named = {**protocol(), "readerFeatures": ["fromTheFuture"], "writerFeatures": ["fromTheFuture"]}
    raw.commit(1, [{"protocol": named}])
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        deltalog_dask.read(str(raw.path))


def test_frames_of_dask_become_tables(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows = pd.DataFrame({"id": range(10), "s": list("abcdefghij"), "x": [0.5] * 9 + [math.nan]})
    frame = dd.from_pandas(rows, npartitions=3)
    assert deltalog_dask.write(frame, path, partition_by="s") == 0
    assert bag(DeltaTable(path).to_pyarrow_table(columns=["id", "s"])) == bag(
        pa.Table.from_pandas(rows[["id", "s"]])
    )
    assert DeltaTable(path).history()[0]["operationMetrics"]["numFiles"] == "10"
    with pytest.raises(TableExistsError):
        deltalog_dask.write(frame, path)
    assert deltalog_dask.write(frame, path, mode="ignore") is None
    assert DeltaTable(path).version() == 0


def test_every_type_makes_the_way_there_and_back(path: str, tmp_path: Path) -> None:
    expected = DeltaTable(path).to_pyarrow_table()
    for number, backend in enumerate(BACKENDS):
        copy = str(tmp_path / backend)
        frame = deltalog_dask.read(path, partition_bytes=ONE_FILE, dtype_backend=backend)
        schema = DeltaTable(path).schema() if number else None
        assert deltalog_dask.write(frame, copy, schema=schema) == 0
        found = DeltaTable(copy).to_pyarrow_table()
        assert found.schema.types == expected.schema.types
        if backend == "numpy_nullable":  # where NaN counts as NA, as everywhere in pandas
            nan_as_null = pc.if_else(pc.is_nan(expected["f"]), None, expected["f"])
            expected = expected.set_column(3, "f", nan_as_null)
        assert bag(found) == bag(expected)


def test_modes_append_overwrite_and_replace(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1, 2], "p": ["a", "b"]}, partition_by=["p"])
    table = DeltaTable(path)
    two = dd.from_pandas(pd.DataFrame({"id": [3, 4], "p": ["a", "a"]}), npartitions=2)
    assert deltalog_dask.write(two, table, mode="append") == 1
    assert (table.version(), table.count()) == (1, 4)
    assert deltalog_dask.write(two, table, mode="overwrite", predicate="p = 'a'") == 2
    assert ids_of(table) == [2, 3, 4]
    assert deltalog_dask.write(two, path, mode="overwrite", partition_overwrite="dynamic") == 3
    assert DeltaTable(path).count() == 3
    assert deltalog_dask.write(two, path, mode="overwrite") == 4
    assert DeltaTable(path).count() == 2
    wider = two.assign(more=1.5)
    with pytest.raises(SchemaMismatchError, match="more"):
        deltalog_dask.write(wider, path, mode="append")
    assert deltalog_dask.write(wider, path, mode="append", schema_mode="merge") == 5
    assert DeltaTable(path).schema().names == ("id", "p", "more")


def test_a_repeated_write_is_skipped(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    frame = dd.from_pandas(pd.DataFrame({"id": [1, 2]}), npartitions=2)
    step = CommitProperties(app_transactions=[Transaction("nightly", 1)])
    assert deltalog_dask.write(frame, path, commit_properties=step) == 0
    assert deltalog_dask.write(frame, path, mode="append", commit_properties=step) is None
    assert DeltaTable(path).count() == 2


def test_rows_that_break_a_rule_leave_the_table_and_no_file(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1]})
    DeltaTable(path).alter.add_constraint({"small": "id < 5"})
    before = files_of(path)
    frame = dd.from_pandas(pd.DataFrame({"id": [2, 3, 4, 5]}), npartitions=4)
    with pytest.raises(ConstraintViolationError, match="small"):
        deltalog_dask.write(frame, path, mode="append")
    with pytest.raises(ConstraintViolationError):
        deltalog_dask.write(frame, path, mode="overwrite", predicate="id = 1")
    assert DeltaTable(path).version() == 1
    assert files_of(path) == before


def _failing(part: pd.DataFrame) -> pd.DataFrame:
    if 3 in set(part["id"]):
        raise RuntimeError("the caller's own code")
    return part


def test_a_task_that_fails_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1]})
    before = files_of(path)
    frame = dd.from_pandas(pd.DataFrame({"id": [2, 3]}), npartitions=2)
    frame = frame.map_partitions(_failing, meta=frame._meta)
    with pytest.raises(RuntimeError, match="own code"):
        deltalog_dask.write(frame, path, mode="append")
    table = DeltaTable(path)
    assert (table.version(), table.count()) == (0, 1)
    assert files_of(path) == before


def test_types_of_the_frame_are_checked_before_any_task(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1]})

    def never(_: pd.DataFrame) -> pd.DataFrame:
        pytest.fail("a task has run")

    frame = dd.from_pandas(pd.DataFrame({"id": [1], "other": [2]}), npartitions=1)
    with pytest.raises(SchemaMismatchError, match="other"):
        deltalog_dask.write(frame.map_partitions(never, meta=frame._meta), path, mode="append")


def test_columns_of_objects_need_a_type_in_a_new_table_only(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows = pd.DataFrame({"id": [1, 2, 3], "x": [Decimal("1.25"), None, Decimal(2)]})
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(rows, npartitions=3)
    with pytest.raises(InvalidInputError, match=r"'x'.*schema="):
        deltalog_dask.write(frame, path)
    kind = pa.decimal128(9, 2)
    assert deltalog_dask.write(frame, path, schema=pa.schema([pa.field("x", kind)])) == 0
    assert deltalog_dask.write(frame, path, mode="append") == 1
    found = DeltaTable(path).to_pyarrow_table()
    assert found["x"].to_pylist() == [Decimal("1.25"), None, Decimal("2.00")] * 2
    with pytest.raises(InvalidInputError, match="'y'"):
        deltalog_dask.write(frame, path, mode="append", schema=pa.schema([pa.field("y", kind)]))
    with dask.config.set({"dataframe.convert-string": False}):
        mixed = dd.from_pandas(pd.DataFrame({"id": [1], "x": [object()]}), npartitions=1)
    with pytest.raises(InvalidInputError, match="'x'"):
        deltalog_dask.write(mixed, path, mode="append")


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": [1.5, 2.5]}, index=pd.Index([7, 8], name="id"))
    frame = dd.from_pandas(rows, npartitions=2)
    for number, (index, names) in enumerate([(None, ("id", "x")), (False, ("x",))]):
        path = str(tmp_path / str(number))
        deltalog_dask.write(frame, path, index=index)
        assert DeltaTable(path).schema().names == names
    filtered = frame.reset_index()
    filtered = filtered[filtered.x > 2]
    deltalog_dask.write(filtered, str(tmp_path / "filtered"))
    assert DeltaTable(tmp_path / "filtered").to_pyarrow_table().to_pylist() == [{"id": 8, "x": 2.5}]


def test_categories_are_written_as_their_values(tmp_path: Path) -> None:
    frame = dd.from_pandas(pd.DataFrame({"c": ["a", "b", None]}, dtype="category"), npartitions=2)
    deltalog_dask.write(frame, tmp_path / "table")
    assert DeltaTable(tmp_path / "table").to_pyarrow_table()["c"].to_pylist() == ["a", "b", None]


def test_each_partition_has_identity_values_of_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    identity = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": False,
    }
    schema = Schema.from_arrow(pa.table({"id": [1], "s": [""]}).schema)
    fields = [schema.fields[0].__class__("id", "long", True, identity), schema.fields[1]]
    DeltaTable.create(path, Schema(fields))
    frame = dd.from_pandas(pd.DataFrame({"s": list("abcdef")}), npartitions=3)
    for version in (1, 2):
        assert deltalog_dask.write(frame, path, mode="append") == version
    ids = DeltaTable(path).to_pyarrow_table()["id"].to_pylist()
    assert len(set(ids)) == 12


def test_names_of_dask_deltatable(path: str, tmp_path: Path) -> None:
    frame = deltalog_dask.read_deltalake(path, version=5, columns=["i"], filter=[("i", ">", 50)])
    assert sorted(frame.i.compute()) == [51, 53]
    with pytest.raises(InvalidInputError, match="datetime"):
        deltalog_dask.read_deltalake(path, version=5, datetime="2024-01-01")
    copy = str(tmp_path / "copy")
    deltalog_dask.to_deltalake(copy, frame)
    deltalog_dask.to_deltalake(
        copy, frame.rename(columns={"i": "j"}), mode="overwrite", overwrite_schema=True
    )
    assert DeltaTable(copy).schema().names == ("j",)


@pytest.mark.parametrize("given", [pd.DataFrame({"a": [1]}), "frame"], ids=["pandas", "text"])
def test_other_frames_are_refused(tmp_path: Path, given: Any) -> None:
    with pytest.raises(InvalidInputError, match="Dask"):
        deltalog_dask.write(given, tmp_path / "table")


def test_a_column_of_a_frame_is_refused(tmp_path: Path) -> None:
    frame = dd.from_pandas(pd.DataFrame({"a": [1]}), npartitions=1)
    with pytest.raises(InvalidInputError, match="Series"):
        deltalog_dask.write(frame.a, tmp_path / "table")


def test_misuse_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match="partition_bytes"):
        deltalog_dask.read(path, partition_bytes=0)
    with pytest.raises(InvalidInputError, match="dtype_backend"):
        deltalog_dask.read(path, dtype_backend="numpy")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("limit", "use head(n) of the dataframe"),
        ("npartitions", "use partition_bytes=…, or repartition(…)"),
        ("path", "use source=…"),
        ("column", "did you mean 'columns'?"),
    ],
)
def test_options_of_other_readers_are_answered(path: str, option: str, message: str) -> None:
    read: Any = deltalog_dask.read
    with pytest.raises(TypeError, match=re.escape(message)) as caught:
        read(path, **{option: 1})
    assert f"deltalog.dask.read() got an unexpected keyword argument {option!r}" in str(
        caught.value
    )
    with pytest.raises(TypeError, match=r"deltalog\.dask\.read\(\) missing 1 required"):
        read()


def test_options_of_other_engines_are_answered() -> None:
    engine: Any = deltalog_dask.DaskEngine
    with pytest.raises(TypeError, match=r"DaskEngine\(\) got .*'n_workers': use num_tasks=…"):
        engine(n_workers=2)


@pytest.mark.parametrize("name", ["write_deltalake", "write_delta"])
def test_names_of_writers_are_answered_by_the_writer(name: str) -> None:
    with pytest.raises(AttributeError, match=r"use write\(frame, location\)"):
        getattr(deltalog_dask, name)


def test_workers_get_credentials_and_nobody_else_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2-hunter2"  # noqa: S105  # of nothing
    options = {"AWS_SECRET_ACCESS_KEY": secret}
    path = str(tmp_path / "table")
    write_deltalake(path, rows_of_file(1), storage_options=options)
    with caplog.at_level(logging.DEBUG):
        frame = deltalog_dask.read(path, storage_options=options, columns=["i", "s"])
        shown = [repr(frame), str(frame.expr), frame.dask.__repr__(), repr(dict(frame.dask))]
        deltalog_dask.write(frame, str(tmp_path / "copy"), storage_options=options)
    assert not any(secret in text for text in [*shown, caplog.text])
    (part,) = frame.expr.optimize().operand("iterables")[0]
    (task,) = pickle.loads(pickle.dumps(part)).value.tasks
    assert task.store._options == options


def test_other_processes_read_and_write(path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    frame = deltalog_dask.read(path, partition_bytes=ONE_FILE)
    with dask.config.set(scheduler="processes", num_workers=2):
        assert deltalog_dask.write(frame, copy) == 0
    assert bag(DeltaTable(copy).to_pyarrow_table()) == bag(DeltaTable(path).to_pyarrow_table())


def test_a_read_can_be_pickled(path: str) -> None:
    rows = VersionRead.of(DeltaTable(path), columns=["i"], predicates=["i > 45"])
    again = pickle.loads(pickle.dumps(rows))
    assert again.scan().to_table().num_rows == 3
