"""Daft reads tables lazily, and writes frames in one version; `test_daft` runs these cases."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import math
import pickle
from pathlib import Path
from typing import Any

import daft
import pyarrow as pa
import pytest
from daft import col
from daft.io.pushdowns import Pushdowns

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedFeatureError,
)
from deltalog.integrations import daft as deltalog_daft
from deltalog.integrations.daft import _DaftSource, _DeltaTask
from deltalog.integrations.tasks import Sent, VersionRead
from deltalog.operations.changes.task_writes import WriteJob
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.support.corpora import Entry, readable_entries
from tests.support.engines import DAY, bag, files_of, ids_of, make_table, rows_of_file
from tests.support.raw_tables import RawTable, protocol


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("table"))
    make_table(path)
    return path


@pytest.fixture(scope="module")
def in_memory(path: str) -> daft.DataFrame:
    return daft.from_arrow(DeltaTable(path).to_pyarrow_table())


def test_a_frame_has_the_rows_of_the_table(path: str) -> None:
    table = DeltaTable(path)
    frame = deltalog_daft.read(table)
    expected = table.to_pyarrow_table()
    assert frame.schema() == daft.Schema.from_pyarrow_schema(expected.schema)
    found = frame.to_arrow()
    assert bag(found) == bag(expected)
    assert frame.count_rows() == 22


NAN = math.nan
PREDICATES: list[tuple[Any, int]] = [
    (col("i") > 45, 1),
    (col("i") == 20, 1),
    (col("i") <= 20, 3),
    ((col("i") > 45) & (col("s").upper() == "T53Ü"), 1),
    ((col("i") < 3) | (col("s") == "t53ü"), 2),
    ((col("i") < 3) | (col("s").upper() == "T53Ü"), 6),
    (col("i").is_in([1, 20]), 2),
    (col("i").between(10, 22), 2),
    (col("p") == 2, 2),
    (col("i").is_null() & (col("p") == 1), 2),
    (~(col("i") > 11), 2),
    (col("i") != 20, 6),
    (col("d") == dt.date(2024, 1, 14), 1),
    (col("t") < DAY + dt.timedelta(days=5), 1),
    (col("f") > 2.0, 6),
    (~(col("f") > 2.0), 6),
    (col("f") == NAN, 6),
    (col("i") > 45.5, 6),
    (col("b"), 6),
    (col("st")["a"] == 20, 6),
    (col("x").cast("int64") > 12, 6),
    (daft.lit(value=True), 6),
]


@pytest.mark.parametrize(
    ("predicate", "most_files"), PREDICATES, ids=[str(p) for p, _ in PREDICATES]
)
def test_a_filter_gives_the_rows_that_it_gives_in_memory(
    path: str, in_memory: daft.DataFrame, predicate: Any, most_files: int
) -> None:
    store = CountingStore(open_store(path))
    frame = deltalog_daft.read(store)
    for names in ([], ["s"], ["f", "i"], ["st", "p"], ["p", "d", "st"]):
        expected, found = in_memory.where(predicate), frame.where(predicate)
        if names:
            expected, found = expected.select(*names), found.select(*names)
        store.reset()
        assert bag(found.to_arrow()) == bag(expected.to_arrow())
        assert store.footers_opened <= most_files
    assert frame.where(predicate).count_rows() == in_memory.where(predicate).count_rows()
    assert frame.where(predicate).limit(1).count_rows() == min(
        1, in_memory.where(predicate).count_rows()
    )


# --- Files that Daft reads itself


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six files in partitions, two of them with a deletion vector, and one without columns."""
    path = str(tmp_path_factory.mktemp("plain"))
    properties = {"delta.enableDeletionVectors": "true"}
    write_deltalake(
        path, {"i": [7], "p": pa.array([None], pa.int32())}, partition_by=["p"],
        configuration=properties,
    )  # fmt: skip
    for file in range(6):
        write_deltalake(path, rows_of_file(file), mode="append", schema_mode="merge")
    DeltaTable(path).delete("i in (11, 30)")
    return path


def tasks_of(path: str, pushdowns: Pushdowns | None = None) -> tuple[int, int]:
    """The numbers of tasks of Daft's reader, and of deltalog's."""
    source = _DaftSource(VersionRead.of(DeltaTable(path)))

    async def gather() -> list[Any]:
        return [task async for task in source.get_tasks(pushdowns or Pushdowns())]

    tasks = asyncio.run(gather())
    own = sum(isinstance(task, _DeltaTask) for task in tasks)
    return len(tasks) - own, own


@pytest.mark.parametrize("predicate", [p for p, _ in PREDICATES], ids=str)
def test_a_filter_gives_the_same_rows_of_files_that_daft_reads(plain: str, predicate: Any) -> None:
    table, frame = DeltaTable(plain), deltalog_daft.read(plain)
    in_memory = daft.from_arrow(table.to_pyarrow_table())
    for names in ([], ["s"], ["f", "i"], ["st", "p"], ["p", "d", "st"]):
        expected, found = in_memory.where(predicate), frame.where(predicate)
        if names:
            expected, found = expected.select(*names), found.select(*names)
        assert bag(found.to_arrow()) == bag(expected.to_arrow())
    rows = in_memory.where(predicate).count_rows()
    assert frame.where(predicate).count_rows() == rows
    for limit in (1, 20_000):
        assert frame.where(predicate).limit(limit).count_rows() == min(limit, rows)


def test_daft_reads_files_without_deletion_vectors(plain: str) -> None:
    assert tasks_of(plain) == (5, 1)
    # Daft leaves out files whose partition is another one, and reads no rows by their NaN.
    assert tasks_of(plain, Pushdowns(filters=col("p") == 2)) == (2, 0)
    assert tasks_of(plain, Pushdowns(filters=(col("p") == 2) & (col("i") > 40))) == (1, 0)
    assert tasks_of(plain, Pushdowns(filters=col("f") > 0.1))[0] == 0
    assert tasks_of(plain, Pushdowns(filters=col("st")["a"] > 0))[0] == 0
    assert tasks_of(plain, Pushdowns(filters=(col("p") == 2) | (col("i") > 40)))[0] == 0
    assert tasks_of(plain, Pushdowns(limit=10))[0] == 0  # the first file may be enough
    assert tasks_of(plain, Pushdowns(limit=20_000)) == (5, 1)


def test_rows_are_in_the_order_of_the_files(plain: str) -> None:
    expected = DeltaTable(plain).to_pyarrow_table(columns=["i"])
    assert deltalog_daft.read(plain).to_pydict()["i"] == expected["i"].to_pylist()


def test_rows_are_counted_without_their_files(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_deltalake(path, {"id": [1, 2, 3]})
    write_deltalake(path, {"id": [4]}, mode="append")
    frame = deltalog_daft.read(path)
    for file in files_of(str(path)):
        (path / file).unlink()
    assert frame.count_rows() == 4
    assert deltalog_daft.read(path, version=0).count_rows() == 3


@pytest.mark.parametrize("name", ["a b", "a#b", "a%20b", "a*[1]?", "é", "a+b&c"])
def test_names_of_directories_are_no_patterns(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_deltalake(path, {"id": [1, 2], "p": [name, "x"]}, partition_by=["p"])
    assert tasks_of(str(path)) == (2, 0)
    assert sorted(deltalog_daft.read(path).to_pydict()["p"]) == sorted([name, "x"])


def test_a_number_that_is_nan_is_above_all_others(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_deltalake(path, {"x": [1.0, math.nan], "i": [1, 2]})
    assert deltalog_daft.read(path).where(col("x") > 2).to_pydict()["i"] == [2]
    assert tasks_of(str(path)) == (1, 0)


def test_renamed_columns_are_read_by_deltalog(path: str) -> None:
    assert tasks_of(path)[0] == 0


@pytest.mark.parametrize("entry", readable_entries(), ids=str)
def test_tables_of_other_writers(entry: Entry) -> None:
    table = DeltaTable(entry.path)
    try:
        expected = table.to_pyarrow_table()
        frame = deltalog_daft.read(table)
    except DeltaError:
        return  # what is refused, and how, is the subject of `test_corpus`
    assert frame.count_rows() == expected.num_rows
    if "variant" in str(entry):
        return  # Daft has no values of variants
    found = frame.to_arrow()
    assert found.column_names == expected.column_names
    assert bag(found) == bag(expected)


def test_only_columns_of_the_query_are_read(tmp_path: Path) -> None:
    store = CountingStore(open_store(str(tmp_path / "table")))
    texts = [str(number) * 40 for number in range(100_000)]
    write_deltalake(store, {"id": list(range(100_000)), "s": texts})
    frame = deltalog_daft.read(store)
    sizes = []
    for query in (frame, frame.where(col("id") >= 0).select("id")):
        store.reset()
        assert query.to_arrow().num_rows == 100_000
        sizes.append(store.bytes_read)
    assert sizes[1] < sizes[0] / 2


def test_a_few_rows_need_the_first_file_only(path: str) -> None:
    store = CountingStore(open_store(path))
    frame = deltalog_daft.read(store)
    store.reset()
    assert frame.limit(2).to_arrow().num_rows == 2
    assert store.footers_opened == 1


def test_arguments_narrow_the_frame(path: str) -> None:
    frame = deltalog_daft.read(
        path,
        columns=["st.a", "i", "_metadata.row_index"],
        predicate="i > :n",
        parameters={"n": 45},
        version=5,
    )
    assert frame.column_names == ["st", "i", "_metadata.row_index"]
    assert frame.sort("i").to_pydict() == {
        "st": [{"a": n} for n in (50, 51, 53)],
        "i": [50, 51, 53],
        "_metadata.row_index": [0, 1, 3],
    }
    assert frame.where(col("i") > 51).select("st").to_pydict() == {"st": [{"a": 53}]}
    with pytest.raises(InvalidInputError, match="nothing_like_it"):
        deltalog_daft.read(path, columns=["nothing_like_it"])


def test_a_table_without_rows_is_a_frame_without_rows(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "table", pa.table({"id": [1], "s": [""]}).schema)
    frame = deltalog_daft.read(tmp_path / "table")
    assert frame.column_names == ["id", "s"]
    assert frame.where(col("id") > 3).to_pydict() == {"id": [], "s": []}


def test_a_frame_keeps_its_version(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1, 2]})
    table = DeltaTable(path)
    frame = deltalog_daft.read(table)
    write_deltalake(path, {"id": [3]}, mode="append")
    assert sorted(frame.to_pydict()["id"]) == [1, 2]
    assert deltalog_daft.read(path).count_rows() == 3
    assert deltalog_daft.read(path, version=0).count_rows() == 2


def test_unreadable_tables_are_refused_before_any_task(tmp_path: Path) -> None:
    raw = RawTable(tmp_path / "table")
    raw.create()
    named = {**protocol(), "readerFeatures": ["fromTheFuture"], "writerFeatures": ["fromTheFuture"]}
    raw.commit(1, [{"protocol": named}])
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        deltalog_daft.read(str(raw.path))


def test_every_type_makes_the_way_there_and_back(path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    assert deltalog_daft.write(deltalog_daft.read(path), copy) == 0
    found, expected = DeltaTable(copy).to_pyarrow_table(), DeltaTable(path).to_pyarrow_table()
    assert found.schema.types == expected.schema.types
    assert bag(found) == bag(expected)


def test_modes_append_overwrite_and_replace(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    two = daft.from_pydict({"id": [3, 4], "p": ["a", "a"]})
    assert deltalog_daft.write(two, path, partition_by=["p"]) == 0
    with pytest.raises(TableExistsError):
        deltalog_daft.write(two, path)
    assert deltalog_daft.write(two, path, mode="ignore") is None
    write_deltalake(path, {"id": [1, 2], "p": ["a", "b"]}, mode="append")
    table = DeltaTable(path)
    assert deltalog_daft.write(two, table, mode="append") == 2
    assert (table.version(), table.count()) == (2, 6)
    assert deltalog_daft.write(two, table, mode="overwrite", predicate="p = 'a'") == 3
    assert ids_of(table) == [2, 3, 4]
    assert deltalog_daft.write(two, path, mode="overwrite", partition_overwrite="dynamic") == 4
    assert DeltaTable(path).count() == 3
    wider = two.with_column("more", daft.lit(1.5))
    with pytest.raises(SchemaMismatchError, match="more"):
        deltalog_daft.write(wider, path, mode="append")
    assert deltalog_daft.write(wider, path, mode="append", schema_mode="merge") == 5
    assert DeltaTable(path).schema().names == ("id", "p", "more")
    nothing = two.where(col("id") > 100)
    assert deltalog_daft.write(nothing, path, mode="overwrite") == 6
    assert DeltaTable(path).count() == 0


def test_rows_are_gathered_into_files(tmp_path: Path) -> None:
    frame = daft.from_pydict({"id": list(range(1000))}).into_batches(100)
    for number, (batch_rows, files) in enumerate([(1024 * 1024, 1), (250, 4), (None, 10)]):
        path = str(tmp_path / str(number))
        deltalog_daft.write(frame, path, batch_rows=batch_rows)
        assert len(DeltaTable(path).file_uris()) == files
        assert DeltaTable(path).count() == 1000


def test_rows_that_break_a_rule_leave_the_table_and_no_file(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1]})
    DeltaTable(path).alter.add_constraint({"small": "id < 5"})
    before = files_of(path)
    frame = daft.from_pydict({"id": [2, 3, 4, 5]})
    with pytest.raises(ConstraintViolationError, match="small"):
        deltalog_daft.write(frame, path, mode="append", batch_rows=1)
    assert DeltaTable(path).version() == 1
    assert files_of(path) == before


def test_a_task_that_fails_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1]})

    @daft.func  # type: ignore[untyped-decorator]  # Daft's
    def failing(number: int) -> int:
        if number == 3:
            raise RuntimeError("the caller's own code")
        return number

    frame = daft.from_pydict({"id": [2, 3]}).into_batches(1)
    with pytest.raises(Exception, match="own code"):
        deltalog_daft.write(frame.select(failing(col("id"))), path, mode="append")
    table = DeltaTable(path)
    assert (table.version(), table.count()) == (0, 1)
    # What tasks had written before is nobody's: vacuum finds it in time.
    left = files_of(path) - set(table.get_add_actions()["path"].to_pylist())
    assert set(table.vacuum(0, enforce_retention_duration=False, full=True)) == left


def test_each_batch_has_identity_values_of_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    identity = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": False,
    }
    fields = [Field("id", "long", metadata=identity), Field("s", "string")]
    DeltaTable.create(path, Schema(fields))
    frame = daft.from_pydict({"s": list("abcdef")})
    for version in (1, 2):
        assert deltalog_daft.write(frame, path, mode="append", batch_rows=2) == version
    ids = DeltaTable(path).to_pyarrow_table()["id"].to_pylist()
    assert len(set(ids)) == 12


def test_other_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="Daft"):
        deltalog_daft.write(pa.table({"a": [1]}), tmp_path / "table")


def test_workers_get_credentials_and_nobody_else_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "hunter2-hunter2"  # noqa: S105  # of nothing
    options = {"AWS_SECRET_ACCESS_KEY": secret}
    path = str(tmp_path / "table")
    write_deltalake(path, rows_of_file(1), storage_options=options)
    with caplog.at_level(logging.DEBUG):
        frame = deltalog_daft.read(path, storage_options=options, columns=["i", "s"])
        frame.where(col("i") > 3).explain(show_all=True)
        deltalog_daft.write(frame, str(tmp_path / "copy"), storage_options=options)
    assert not any(secret in text for text in [repr(frame), caplog.text, *capfd.readouterr()])
    table = DeltaTable(path, storage_options=options)
    source = pickle.loads(pickle.dumps(_DaftSource(VersionRead.of(table))))
    assert source._rows.value.snapshot.store._options == options
    job = Sent(WriteJob(spec=table.write_spec()))
    sink = pickle.loads(pickle.dumps(deltalog_daft._DeltaSink(job)))
    assert sink._job.value.spec.store._options == options
