"""Plans of Polars: which files it reads itself, which rows it returns, what it prunes."""

from __future__ import annotations

import datetime as dt
import gc
import os
import pickle
import weakref
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from deltalog import DeltaTable, Field, write_deltalake
from deltalog.data.scan import polars_files
from deltalog.data.scan.polars_files import PolarsDataset, pruning_predicate, reads_as_expected
from deltalog.errors import DataFileMissingError
from deltalog.storage import open_store
from deltalog.testing import CountingStore

c = pl.col


def reads_itself(table: DeltaTable, **query: Any) -> bool:
    """Whether the answer to Polars is a scan of Parquet files."""
    frame, _ = PolarsDataset(table.snapshot).to_dataset_scan(**query)
    return "Parquet SCAN" in frame.explain()


def test_the_interface_of_polars_is_as_expected() -> None:
    assert reads_as_expected()


def test_an_unknown_release_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl, "__version__", "99.1.0")
    assert polars_files.has_datasets()
    monkeypatch.setattr(pl, "__version__", "2.0.9")
    assert not polars_files.has_datasets()


QUERIES: dict[str, Callable[[Any], Any]] = {
    "all": lambda frame: frame,
    "filtered": lambda frame: frame.filter(c.id > 12),
    "nan": lambda frame: frame.filter(c.f > 2),
    "counted": lambda frame: frame.select(pl.len()),
    "filtered, counted": lambda frame: frame.filter(id=13).select(pl.len()),
    "partition": lambda frame: frame.select("p"),
    "of a partition": lambda frame: frame.filter(p=1).select("s", "id"),
    "null partition": lambda frame: frame.filter(c.p.is_null()),
    "grouped": lambda frame: frame.group_by("p", "s").agg(c.id.sum()),
    "joined": lambda frame: frame.join(frame, on="id").select("id", "s", "s_right"),
    "positions": lambda frame: frame.with_row_index().select("index"),
    "last rows, counted": lambda frame: frame.tail(4).select(pl.len()),
    "slice, counted": lambda frame: frame.slice(-5, 2).select(pl.len()),
    "joined by position": lambda frame: frame.with_row_index().select("index", "id").tail(3),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = str(tmp_path_factory.mktemp("table"))
    for first in range(0, 20, 5):
        rows: dict[str, Any] = {
            "p": pa.array([first % 2] * 3 + [None] * 2, pa.int32()),
            "s": ["a", "b c", "2020-01-01", "ä", None],
            "id": list(range(first, first + 5)),
            "f": [1.0, float("nan"), None, 2.0, 3.0],
        }
        properties = {"delta.enableDeletionVectors": "true"}
        write_deltalake(
            path, pa.table(rows), mode="append", partition_by=["p"], configuration=properties
        )
    found = DeltaTable(path)
    found.delete("id in (3, 7, 19)")
    return found


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_polars_returns_the_rows_of_the_table(
    table: DeltaTable, query: Callable[[Any], Any], engine: Any
) -> None:
    assert reads_itself(table)
    found = query(table.to_polars(lazy=True)).collect(engine=engine)
    assert_frame_equal(found, query(table.to_polars()), check_row_order=False)


def test_frames_are_collected_together_and_written(table: DeltaTable, tmp_path: Path) -> None:
    lazy = table.to_polars(lazy=True)
    total, rows = pl.collect_all([lazy.select(c.id.sum()), lazy.filter(c.id > 3)])
    assert (total.item(), rows.height) == (sum({*range(20)} - {3, 7, 19}), 14)
    lazy.sink_parquet(tmp_path / "rows.parquet")
    assert pl.read_parquet(tmp_path / "rows.parquet").height == 17


def test_columns_are_selected_in_order(table: DeltaTable) -> None:
    lazy = table.to_polars(["s", "id"], lazy=True)
    assert lazy.collect_schema().names() == lazy.collect().columns == ["s", "id"]


def test_a_dataset_can_be_pickled(table: DeltaTable) -> None:
    copied = pickle.loads(pickle.dumps(PolarsDataset(table.snapshot)))
    frame, _ = copied.to_dataset_scan()
    assert frame.collect().height == 17


def test_rows_are_counted_without_their_files(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), {"id": [1, 2, 3]})
    lazy = DeltaTable(str(tmp_path)).to_polars(lazy=True)
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    assert lazy.select(pl.len()).collect().item() == 3
    with pytest.raises(DataFileMissingError, match="a vacuum deletes files"):
        lazy.collect()


@pytest.mark.parametrize("values", [["a/b"], ["ä"], ["x y"], ["a%20"], ["1=2"], [None, "a"]])
def test_partition_values_are_those_of_the_log(tmp_path: Path, values: list[str | None]) -> None:
    write_deltalake(str(tmp_path), {"p": values, "id": [1] * len(values)}, partition_by=["p"])
    table = DeltaTable(str(tmp_path))
    assert reads_itself(table)
    assert reads_itself(table, projection=["id"])
    assert_frame_equal(
        table.to_polars(lazy=True).collect(), table.to_polars(), check_row_order=False
    )


@pytest.mark.parametrize(
    "value",
    [dt.date(2024, 2, 29), 7, -1, True, 1.5, float("nan"), -0.0, Decimal("1.50"), b"x",
     dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(1, 1, 1)], ids=repr,  # noqa: DTZ001
)  # fmt: skip
def test_partition_values_have_their_types(tmp_path: Path, value: Any) -> None:
    write_deltalake(str(tmp_path), {"p": [value, None], "id": [1, 2]}, partition_by=["p"])
    table = DeltaTable(str(tmp_path))
    assert reads_itself(table)
    lazy = table.to_polars(lazy=True)
    assert_frame_equal(lazy.collect(), table.to_polars())
    for predicate in (c.p.is_null(), c.p.is_not_null(), c.p == value, c.id > 1):
        assert_frame_equal(lazy.filter(predicate).collect(), table.to_polars().filter(predicate))
    assert_frame_equal(lazy.select("p").collect(), table.to_polars().select("p"))


def test_a_partition_value_that_python_lacks(tmp_path: Path) -> None:
    far = pa.array([2_932_897], pa.int32()).cast(pa.date32())  # the first day of the year 10000
    rows = pa.table({"p": far, "id": [1]})
    write_deltalake(str(tmp_path), rows, partition_by=["p"])
    table = DeltaTable(str(tmp_path))
    assert reads_itself(table)
    lazy = table.to_polars(lazy=True)
    assert lazy.select("id").collect().rows() == [(1,)]
    assert lazy.select(c.p.to_physical()).collect().rows() == [(2_932_897,)]


def test_a_directory_that_looks_like_a_partition(tmp_path: Path) -> None:
    path = tmp_path / "x=1"
    write_deltalake(str(path), {"p": [1], "id": [1]}, partition_by=["p"])
    table = DeltaTable(str(path))
    assert table.to_polars(lazy=True).collect().rows() == [(1, 1)]
    assert table.to_polars(lazy=True).select("id").collect().rows() == [(1,)]
    path = tmp_path / "id=7" / "t"  # a directory above the table has the name of a column
    write_deltalake(str(path), {"id": [1, 2], "p": ["a", "b"]}, partition_by=["p"])
    lazy = DeltaTable(str(path)).to_polars(lazy=True)
    assert sorted(lazy.collect().rows()) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_columns(tmp_path: Path, mode: str) -> None:
    properties = {"delta.columnMapping.mode": mode, "delta.enableDeletionVectors": "true"}
    rows = {"id": [1, 2, 3], "s": ["a", None, "c"], "p": ["x/y", "x/y", None]}
    write_deltalake(tmp_path, rows, partition_by=["p"], configuration=properties)
    table = DeltaTable(tmp_path)
    table.alter.rename_column("s", "id of s")
    table.alter.rename_column("p", "s")
    table.alter.add_columns([Field("new", "double")])
    write_deltalake(table, {"id": [4], "id of s": ["d"], "s": ["z"], "new": [0.5]}, mode="append")
    table.delete("id = 1")
    assert reads_itself(table)
    assert reads_itself(table, projection=["s"])
    lazy, every = table.to_polars(lazy=True), table.to_polars()
    assert_frame_equal(lazy.collect(), every)
    for predicate in (c.id > 2, c.s == "z", c.s.is_null(), c.new > 0, c.new.is_null(), c.s < "y"):
        assert_frame_equal(lazy.filter(predicate).collect(), every.filter(predicate))
        names = ["new", "s"]
        assert_frame_equal(
            lazy.filter(predicate).select(names).collect(), every.filter(predicate).select(names)
        )
    assert lazy.select(pl.len()).collect().item() == 3
    assert lazy.head(1).select(pl.len()).collect().item() == 1
    assert lazy.with_row_index().select("index").collect()["index"].to_list() == [0, 1, 2]


def test_a_dropped_column_is_not_read_for_a_new_one(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path, {"id": [1, 2], "s": ["a", "b"]}, configuration=properties)
    table = DeltaTable(tmp_path)
    table.alter.drop_columns(["s"])
    table.alter.add_columns([Field("s", "string")])
    assert reads_itself(table)
    assert table.to_polars(lazy=True).collect().rows() == [(1, None), (2, None)]


def test_files_with_other_ids_are_read_by_deltalog(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path / "ids", {"id": [1], "s": ["a"]}, configuration=properties)
    table = DeltaTable(tmp_path / "ids")
    (file,) = (tmp_path / "ids").rglob("*.parquet")
    rows = pq.read_table(file)
    file.unlink()
    turned = [
        one.with_metadata(other.metadata)
        for one, other in zip(rows.schema, [*rows.schema][::-1], strict=True)
    ]
    pq.write_table(rows.cast(pa.schema(turned)), file)
    assert not reads_itself(table)
    assert table.to_polars(lazy=True).collect().rows() == [(1, "a")]
    # without column mapping, ids in files have no meaning
    write_deltalake(tmp_path / "none", {"id": [1], "s": ["a"], "p": ["x/y"]}, partition_by=["p"])
    table = DeltaTable(tmp_path / "none")
    assert reads_itself(table)
    (file,) = (tmp_path / "none").rglob("*.parquet")
    rows = pq.read_table(file, partitioning=None)
    file.unlink()
    numbered = [
        one.with_metadata({"PARQUET:field_id": str(2 - place)})
        for place, one in enumerate(rows.schema)
    ]
    pq.write_table(rows.cast(pa.schema(numbered)), file)
    assert not reads_itself(table)
    assert table.to_polars(lazy=True).collect().rows() == [(1, "a", "x/y")]


def test_a_plan_of_the_same_columns_is_used_again(tmp_path: Path) -> None:
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(str(tmp_path), {"id": [1, 2], "s": ["a", "b"]}, configuration=vectors)
    for file in tmp_path.glob("*.parquet"):
        os.utime(file, (0, 0))  # a file that has just changed may change again in the same tick
    table = DeltaTable(str(tmp_path))

    def planned(**query: Any) -> pl.LazyFrame:
        return PolarsDataset(table.snapshot).to_dataset_scan(**query)[0]

    assert planned(projection=["id"]) is planned(projection=["id"])
    assert planned() is planned(projection=["id", "s"])
    assert planned(projection=["s", "id"]).collect_schema().names() == ["s", "id"]
    assert planned(projection=["id"], filter_columns=["id"]) is not planned(projection=["id"])
    assert planned(projection=["id"], limit=10**6) is not planned(projection=["id"])
    assert table.to_polars(lazy=True).select("id").collect().rows() == [(1,), (2,)]
    known = weakref.ref(table.snapshot)
    table.delete("id = 1")
    gc.collect()
    assert known() is None
    assert planned(projection=["id"]) is not planned(projection=["id"])
    assert table.to_polars(lazy=True).collect().rows() == [(2, "b")]


def test_int96_is_read_by_deltalog(tmp_path: Path) -> None:
    moment = dt.datetime(2400, 1, 1, tzinfo=dt.UTC)
    write_deltalake(str(tmp_path), pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC"))}))
    (file,) = tmp_path.glob("*.parquet")
    rows = pq.read_table(file)
    file.unlink()
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)
    table = DeltaTable(str(tmp_path))
    assert not reads_itself(table)
    assert table.to_polars(lazy=True).collect().rows() == [(moment,)]


def test_wider_integers_and_absent_columns(tmp_path: Path) -> None:
    path = str(tmp_path)
    properties = {"delta.enableTypeWidening": "true"}
    narrow = pa.table({"i": pa.array([1, None], pa.int16())})
    write_deltalake(path, narrow, configuration=properties)
    wide = pa.table({"i": pa.array([2**40]), "s": ["x"]})
    write_deltalake(path, wide, mode="append", schema_mode="merge")
    table = DeltaTable(path)
    assert reads_itself(table)
    lazy = table.to_polars(lazy=True)
    assert_frame_equal(lazy.collect(), table.to_polars(), check_row_order=False)
    assert lazy.filter(c.i > 1).collect().rows() == [(2**40, "x")]
    assert lazy.filter(c.s.is_null()).collect().height == 2


FILTERS: list[tuple[pl.Expr, int]] = [
    (c.i > 45, 1),
    (c.i.is_in([1, 13]), 2),
    (c.i.is_between(10, 22), 2),
    ((c.i < 5) | (c.s == "t53"), 2),
    ((c.i < 5) & (c.s.str.to_uppercase() == "T01"), 1),
    (~(c.i >= 10), 1),
    (c.i < -2, 0),
    (c.d == dt.date(2024, 1, 14), 1),
    (c.t < dt.datetime(2024, 1, 5, tzinfo=dt.UTC), 1),
    (c.n < dt.datetime(2024, 1, 5), 1),  # noqa: DTZ001  # wall-clock time
    (c.s.str.starts_with("t5"), 1),
    (c.s.is_null(), 0),
    (c.s.is_not_null(), 6),
    (c.f > 1000.0, 6),  # Polars orders NaN otherwise than Arrow
    (c.b, 6),
    (pl.lit(value=True), 6),
]  # fmt: skip


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = str(tmp_path_factory.mktemp("days"))
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    for first in range(0, 60, 10):
        numbers = range(first, first + 4)
        moments = [start + dt.timedelta(days=number) for number in numbers]
        rows: dict[str, Any] = {
            "i": list(numbers),
            "s": [f"t{number:02}" for number in numbers],
            "f": [float(number) for number in numbers],
            "b": [True] * 4,
            "d": [moment.date() for moment in moments],
            "t": pa.array(moments, pa.timestamp("us", "UTC")),
            "n": pa.array([m.replace(tzinfo=None) for m in moments], pa.timestamp("us")),
        }
        write_deltalake(path, pa.table(rows), mode="append")
    return DeltaTable(path)


@pytest.mark.parametrize(("predicate", "num_files"), FILTERS, ids=str)
def test_a_filter_prunes_by_the_log(days: DeltaTable, predicate: pl.Expr, num_files: int) -> None:
    asked: list[list[str]] = []

    class Dataset(PolarsDataset):
        def to_dataset_scan(self, **query: Any) -> Any:
            frame, key = super().to_dataset_scan(**query)
            code = query.get("pyarrow_predicate")
            condition = None if code is None else pruning_predicate(code, days.snapshot)
            scan = days.scan(predicate=condition)
            asked.append([task.path for task in scan.tasks()])
            return frame, key

    lazy = polars_files._frame(Dataset(days.snapshot)).filter(predicate)
    assert_frame_equal(lazy.collect(), days.to_polars().filter(predicate), check_row_order=False)
    assert [len(paths) for paths in asked] == [num_files]


@pytest.mark.parametrize(
    "code",
    ["__import__('os')", "pa.compute.field('i') > open('x')", "(lambda: 1)()",
     "pa.compute.field(i)", "pa.compute.field('no') > 1", "'i' > 1", "f'{1}'",
     "pa.compute.field('i').cast('int32') > 1",
     "pa.compute.field('i') > 'x'", "to_py_date('x')", "to_py_datetime(1, 'y')", "1", "-True"],
)  # fmt: skip
def test_unknown_code_prunes_nothing(days: DeltaTable, code: str) -> None:
    assert pruning_predicate(code, days.snapshot) is None


def test_the_rest_of_a_filter_with_unknown_code(days: DeltaTable) -> None:
    code = "((pa.compute.field('i') > 45) & pa.compute.unknown(pa.compute.field('s')))"
    assert str(pruning_predicate(code, days.snapshot)) == str(
        pruning_predicate("pa.compute.field('i') > 45", days.snapshot)
    )


def test_other_stores_return_rows(tmp_path: Path) -> None:
    store = CountingStore(open_store(str(tmp_path)))
    write_deltalake(store, {"id": [1, 2]})
    store.reset()
    assert DeltaTable(store).to_polars(lazy=True).collect().height == 2
    assert store.bytes_read


def test_a_few_rows_need_few_files(table: DeltaTable) -> None:
    assert not reads_itself(table, limit=3)  # deltalog opens one file after the other
    assert reads_itself(table, limit=3, filter_columns=["id"])
    lazy = table.to_polars(lazy=True)
    eager = table.to_polars()
    for first, length in [(0, 3), (5, 4), (2, None), (-3, 2), (16, 9)]:
        found = lazy.slice(first, length).collect()
        assert_frame_equal(found, eager.slice(first, length))
    kept = lazy.head(12).filter(c.id > 8).collect()
    assert_frame_equal(kept, eager.head(12).filter(c.id > 8))
