"""Ray reads tables in blocks, and writes datasets in one version, by its own tasks."""

from __future__ import annotations

import logging
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import ray
from ray.data.expressions import col

from deltalog import DeltaTable, WrittenFiles, sql, write_deltalake
from deltalog.errors import (
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedFeatureError,
)
from deltalog.integrations import ray as deltalog_ray
from deltalog.integrations.ray import DeltaDatasource
from deltalog.integrations.tasks import VersionRead
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.support.engines import FILES, bag, files_of, ids_of, make_table, rows_of_file
from tests.support.raw_tables import RawTable, protocol

pytestmark = [
    pytest.mark.slow("starts Ray, which takes ten seconds"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    """One worker beside this process, which the end of the module stops."""
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100 * 1024 * 1024,
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel("ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("table"))
    make_table(path)
    return path


def rows_in(dataset: Any) -> pa.Table:
    return pa.concat_tables(ray.get(dataset.to_arrow_refs()))


def test_a_dataset_has_the_rows_of_the_table(path: str) -> None:
    table = DeltaTable(path)
    dataset = deltalog_ray.read(table, override_num_blocks=3)
    assert dataset.schema().base_schema.types == table.schema().to_arrow().types
    found = rows_in(dataset)
    assert found.schema.types == table.schema().to_arrow().types
    assert bag(found) == bag(table.to_pyarrow_table())


def test_the_log_tells_how_many_rows_there_are(path: str) -> None:
    store = CountingStore(open_store(path))
    dataset = deltalog_ray.read(store)
    store.reset()
    assert dataset.count() == 22
    assert store.footers_opened == 0
    assert len(dataset.input_files()) == FILES


def test_rows_are_counted_without_columns(tmp_path: Path) -> None:
    """Ray asks for no columns, and a block without columns has no length in Ray."""
    path = str(tmp_path / "table")
    rows = {"id": list(range(100)), "p": [number % 2 for number in range(100)]}
    write_deltalake(path, rows, partition_by=["p"])
    read = deltalog_ray.read
    assert read(path, predicate="id > 50").count() == 49
    assert read(path, columns=["p"], predicate="id > 50").count() == 49
    assert read(path, predicate="p = 1").count() == 50
    assert read(path, predicate="p = 1 and id < 0").count() == 0
    assert read(path, predicate="id > 50").select_columns(["p"]).count() == 49
    assert read(path).filter(expr=col("id") > 50).count() == 49
    assert read(path, predicate="id > 50").filter(expr=col("p") == 1).count() == 25
    bare = read(path, predicate="id > 50").select_columns([])
    assert (bare.count(), bare.schema().names if bare.schema() else []) == (49, [])


def source_of(store: Any, **options: Any) -> DeltaDatasource:
    return DeltaDatasource(VersionRead.of(DeltaTable(store), **options))


def test_tasks_are_of_about_the_same_size(path: str) -> None:
    source = source_of(path)
    for parallelism, count in ((1, 1), (2, 2), (4, 4), (50, FILES)):
        tasks = source.get_read_tasks(parallelism)
        assert len(tasks) == count
        assert sum(task.metadata.num_rows for task in tasks) == 22
        assert sum(len(task.metadata.input_files) for task in tasks) == FILES
        assert (
            sum(task.metadata.size_bytes for task in tasks) == source.estimate_inmemory_data_size()
        )
    (first, *_) = source.get_read_tasks(50, per_task_row_limit=2)
    assert (first.metadata.num_rows, sum(block.num_rows for block in first())) == (2, 2)


@pytest.mark.parametrize(
    ("expression", "count", "files"),
    [
        (col("i") > 45, 3, 1),
        ((col("i") > 45) & (col("s") == "t53ü"), 1, 1),
        ((col("i") < 3) | (col("s") == "t53ü"), 3, 2),
        (col("p") == 2, 8, 2),
        (col("i").is_in([1, 20]), 2, 2),
        (col("i").is_null(), 6, 6),
        (~(col("f") >= 0.0), 5, 6),
    ],
    ids=str,
)
def test_filters_leave_out_files_and_rows(
    path: str, expression: Any, count: int, files: int
) -> None:
    store = CountingStore(open_store(path))
    source = source_of(store).apply_predicate(expression).apply_projection({"st": "st"})
    store.reset()
    blocks = [block for task in source.get_read_tasks(50) for block in task()]
    in_memory = DeltaTable(path).to_pyarrow_table().filter(expression.to_pyarrow())
    assert in_memory.num_rows == count
    assert bag(pa.concat_tables(blocks)) == bag(in_memory.select(["st"]))
    assert store.footers_opened == files
    assert all(task.metadata.num_rows is None for task in source.get_read_tasks(50))


def test_what_a_dataset_selects_is_pushed_into_the_read(path: str) -> None:
    dataset = deltalog_ray.read(path).filter(expr=col("i") > 45).select_columns(["s"])
    assert bag(rows_in(dataset)) == [f"['t{n}ü']" for n in (50, 51, 53)]
    with pytest.warns(UserWarning, match="expr"):
        plain = deltalog_ray.read(path).filter(lambda row: row["i"] == 50)
    assert [row["s"] for row in plain.take_all()] == ["t50ü"]


def test_only_selected_columns_are_read(tmp_path: Path) -> None:
    store = CountingStore(open_store(str(tmp_path / "table")))
    texts = [str(number) * 40 for number in range(100_000)]
    write_deltalake(store, {"id": list(range(100_000)), "s": texts})
    sizes = []
    for names in (["id", "s"], ["id"]):
        source = source_of(store).apply_projection({name: name for name in names})
        store.reset()
        assert sum(block.num_rows for task in source.get_read_tasks(4) for block in task()) > 0
        sizes.append(store.bytes_read)
    assert sizes[1] < sizes[0] / 2


def test_arguments_narrow_the_dataset(path: str) -> None:
    dataset = deltalog_ray.read(
        path, columns=["st.a", "i"], predicate="i > :n", parameters={"n": 45}, version=5
    )
    assert sorted(dataset.take_all(), key=str) == [{"st": {"a": n}, "i": n} for n in (50, 51, 53)]
    with pytest.raises(InvalidInputError, match="nothing_like_it"):
        deltalog_ray.read(path, columns=["nothing_like_it"])


def test_a_table_without_rows_is_a_dataset_without_rows(tmp_path: Path) -> None:
    schema = pa.table({"id": [1], "s": [""]}).schema
    DeltaTable.create(tmp_path / "table", schema)
    dataset = deltalog_ray.read(tmp_path / "table")
    assert dataset.schema().base_schema == schema
    assert (dataset.count(), dataset.take_all()) == (0, [])


def test_unreadable_tables_are_refused_before_any_task(tmp_path: Path) -> None:
    raw = RawTable(tmp_path / "table")
    raw.create()
    named = {**protocol(), "readerFeatures": ["fromTheFuture"], "writerFeatures": ["fromTheFuture"]}
    raw.commit(1, [{"protocol": named}])
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        deltalog_ray.read(str(raw.path))


def test_every_type_makes_the_way_there_and_back(path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    assert deltalog_ray.write(deltalog_ray.read(path, override_num_blocks=3), copy) == 0
    found, expected = DeltaTable(copy).to_pyarrow_table(), DeltaTable(path).to_pyarrow_table()
    assert found.schema.types == expected.schema.types
    assert bag(found) == bag(expected)


def test_modes_append_overwrite_and_replace(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    frame = pd.DataFrame({"id": [3, 4], "p": ["a", "a"]})
    two = ray.data.from_pandas(frame)
    assert deltalog_ray.write(two, path, partition_by=["p"]) == 0
    with pytest.raises(TableExistsError):
        deltalog_ray.write(two, path)
    assert deltalog_ray.write(two, path, mode="ignore") is None
    write_deltalake(path, {"id": [1, 2], "p": ["a", "b"]}, mode="append")
    table = DeltaTable(path)
    assert deltalog_ray.write(two, table, mode="append") == 2
    assert (table.version(), table.count()) == (2, 6)
    assert deltalog_ray.write(two, table, mode="overwrite", predicate="p = 'a'") == 3
    assert ids_of(table) == [2, 3, 4]
    assert deltalog_ray.write(two, path, mode="overwrite", partition_overwrite="dynamic") == 4
    assert DeltaTable(path).count() == 3
    wider = ray.data.from_pandas(frame.assign(more=1.5))
    with pytest.raises(SchemaMismatchError, match="more"):
        deltalog_ray.write(wider, path, mode="append")
    assert deltalog_ray.write(wider, path, mode="append", schema_mode="merge") == 5
    assert DeltaTable(path).schema().names == ("id", "p", "more")
    nothing = two.filter(expr=col("id") > 100)
    assert deltalog_ray.write(nothing, path, mode="overwrite") == 6
    assert DeltaTable(path).count() == 0


def test_rows_that_break_a_rule_leave_the_table_and_no_file(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1]})
    DeltaTable(path).alter.add_constraint({"small": "id < 5"})
    before = files_of(path)
    dataset = ray.data.from_items([{"id": n} for n in (2, 3, 4, 5)], override_num_blocks=4)
    with pytest.raises(ConstraintViolationError, match="small"):
        deltalog_ray.write(dataset, path, mode="append")
    assert DeltaTable(path).version() == 1
    assert files_of(path) == before


def test_a_task_that_fails_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1]})
    before = files_of(path)

    def failing(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == 3:
            raise RuntimeError("the caller's own code")
        return row

    dataset = ray.data.from_items([{"id": n} for n in (2, 3)], override_num_blocks=2)
    with pytest.raises(Exception, match="own code"):
        deltalog_ray.write(dataset.map(failing), path, mode="append")
    table = DeltaTable(path)
    assert (table.version(), table.count()) == (0, 1)
    assert files_of(path) == before


def test_blocks_of_one_task_may_differ_in_types(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1], "s": ["a"]})
    sink = deltalog_ray._DeltaDatasink(_job_of(path))
    blocks = [
        pa.table({"id": [2], "s": pa.nulls(1)}),
        pd.DataFrame({"s": ["b"], "id": [3]}),
        pa.table({"id": pa.array([4], pa.int8()), "s": pa.array(["c"], pa.large_string())}),
    ]
    report = sink.write(iter(blocks), _Context())
    assert isinstance(report, WrittenFiles)
    DeltaTable(path).commit(report)
    assert ids_of(DeltaTable(path)) == [1, 2, 3, 4]
    other = sink.write(iter([blocks[1], pa.table({"id": [1]})]), _Context())
    assert isinstance(other, SchemaMismatchError)


class _Context:
    task_idx = 0


def _job_of(path: str) -> Any:
    from deltalog.integrations.tasks import Sent
    from deltalog.operations.changes.task_writes import WriteJob

    return Sent(WriteJob(spec=DeltaTable(path).write_spec()))


def test_nan_is_no_null(tmp_path: Path) -> None:
    dataset = ray.data.from_arrow(pa.table({"f": [math.nan, None, 1.0]}))
    deltalog_ray.write(dataset, tmp_path / "table")
    found: list[Any] = DeltaTable(tmp_path / "table").to_pyarrow_table()["f"].to_pylist()
    nan, null, one = found
    assert (math.isnan(nan), null, one) == (True, None, 1.0)


def test_options_of_nobody_are_refused(path: str) -> None:
    """Ray ignores options that it does not have, so all rows would be returned."""
    assert deltalog_ray.read(path, filters="1 = 0", override_num_blocks=1).count() == 0
    with pytest.raises(TypeError, match="argument 'where': did you mean 'predicate'"):
        deltalog_ray.read(path, where="1 = 0")
    with pytest.raises(TypeError, match=r"use head\(n\) or limit\(n\) of the result"):
        deltalog_ray.read(path, limit=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        deltalog_ray.read(path, nothing=1)


def test_objects_that_ray_pickles_are_refused(tmp_path: Path) -> None:
    dataset: Any = ray.data.from_items([{"a": object()}])
    with pytest.raises(InvalidInputError, match="cannot store the Python objects of column 'a'"):
        deltalog_ray.write(dataset, tmp_path / "t")


def test_datasets_are_not_rows_in_memory(tmp_path: Path) -> None:
    dataset: Any = ray.data.from_items([{"id": 1}])
    with pytest.raises(InvalidInputError, match=r"ray\.write\(rows, table\) writes them"):
        write_deltalake(tmp_path / "table", dataset)
    with pytest.raises(InvalidInputError, match=r"pass its rows .* returned by to_pandas\(\)"):
        sql("SELECT * FROM t", t=dataset)


def test_other_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"ray\.data\.Dataset"):
        deltalog_ray.write(pd.DataFrame({"a": [1]}), tmp_path / "table")


def test_workers_get_credentials_and_nobody_else_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2-hunter2"  # noqa: S105  # of nothing
    options = {"AWS_SECRET_ACCESS_KEY": secret}
    path = str(tmp_path / "table")
    write_deltalake(path, rows_of_file(1), storage_options=options)
    with caplog.at_level(logging.DEBUG):
        dataset = deltalog_ray.read(path, storage_options=options, columns=["i", "s"])
        deltalog_ray.write(dataset, str(tmp_path / "copy"), storage_options=options)
        shown = [repr(dataset), dataset.stats(), repr(dataset._logical_plan.dag)]
    assert not any(secret in text for text in [*shown, caplog.text])
    table = DeltaTable(path, storage_options=options)
    (task,) = DeltaDatasource(VersionRead.of(table)).get_read_tasks(1)
    assert secret not in repr(task.read_fn)
    (file,) = pickle.loads(pickle.dumps(task.read_fn.args[0])).value.tasks
    assert file.store._options == options
