"""The table as a pyarrow dataset, read by pyarrow, DuckDB and Polars."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from pyarrow import acero

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.dataset import DeltaDataset
from deltalog.errors import InvalidInputError
from deltalog.expressions import col
from deltalog.storage import Store
from deltalog.testing import CountingStore
from tests.support.raw_tables import DataTable, mapped, rows_of


@pytest.fixture
def table() -> DataTable:
    """Renamed columns, a deleted row, two partitions: what only the log knows."""
    table = DataTable(
        [
            mapped("id", "long", 1, "x1"),
            mapped("s", "string", 2, "x2"),
            mapped("p", "date", 3, "x3"),
        ],
        partition_by=["p"],
        features=["deletionVectors", "columnMapping"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    for number in range(2):
        ids = [3 * number + row for row in range(3)]
        bounds = {"numRecords": 3, "minValues": {"x1": ids[0]}, "maxValues": {"x1": ids[-1]}}
        table.commit(
            table.add(
                {"x1": ids, "x2": [f"s{value}" for value in ids]},
                partitionValues={"x3": f"2024-01-0{number + 1}"},
                stats=bounds,
                deletionVector=table.vector(1),
            )
        )
    return table


def dataset(table: DataTable, store: Store | None = None, **options: Any) -> DeltaDataset:
    return DeltaDataset(table.snapshot(store=store), **options)


FIRST, SECOND = dt.date(2024, 1, 1), dt.date(2024, 1, 2)


def test_the_rows_are_the_tables(table: DataTable) -> None:
    found = dataset(table)
    assert found.schema.names == ["id", "s", "p"]
    assert found.schema.types == [pa.int64(), pa.string(), pa.date32()]
    rows = [(0, "s0", FIRST), (2, "s2", FIRST), (3, "s3", SECOND), (5, "s5", SECOND)]
    assert sorted(rows_of(found.to_table())) == rows
    assert sum(batch.num_rows for batch in found.to_batches()) == 4
    assert found.head(1).num_rows == 1
    assert found.take([0, 3]).num_rows == 2
    assert found.count_rows() == 4
    assert found.scanner(columns=["p", "id"]).to_table().column_names == ["p", "id"]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (pc.field("id") > 2, [3, 5]),
        (pc.field("p") == pa.scalar(FIRST), [0, 2]),
        (pc.field("s").isin(["s0", "s4"]), [0]),
        ((pc.field("id") == 0) | ~(pc.field("p") == pa.scalar(FIRST)), [0, 3, 5]),
        (pc.field("s").is_null(), []),
        (pc.starts_with(pc.field("s"), "s5"), [5]),
        (pc.bit_wise_and(pc.field("id"), pc.scalar(1)) == 1, [3, 5]),  # not one of our functions
    ],
)
def test_filters_of_pyarrow(table: DataTable, wanted: Any, ids: list[int]) -> None:
    found = dataset(table)
    assert sorted(rows_of(found.to_table(columns=["id"], filter=wanted))) == ids
    assert found.count_rows(filter=wanted) == len(ids)
    assert sorted(rows_of(found.filter(wanted).to_table(columns=["id"]))) == ids
    assert found.filter(wanted).count_rows() == len(ids)
    assert found.filter(wanted).filter(pc.field("id") > 100).count_rows() == 0


def test_filters_may_name_columns_by_number() -> None:
    table = DataTable([("a", "long"), ("b", "long"), ("c", "long")])
    table.commit(table.add({"a": [1, 2], "b": [2, 1], "c": [5, 6]}))
    found = dataset(table)
    for number, row in ((0, {"b": 2}), (1, {"b": 1}), (2, {"b": 2})):
        wanted = pc.field(number) == (5 if number == 2 else 1)
        assert found.to_table(columns=["b"], filter=wanted).to_pylist() == [row]
        assert found.count_rows(filter=wanted) == 1


@pytest.mark.parametrize("name", ["a b", "a.b", 'a"b', "a\nb", "ü", "`x`", "x'", "FieldPath(0)"])
def test_names_of_any_characters(name: str) -> None:
    table = DataTable(
        [mapped(name, "long", 1, "c1"), mapped("id", "long", 2, "c2")],
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    table.commit(table.add({"c1": [1, 2], "c2": [3, 4]}))
    found = dataset(table)
    assert rows_of(found.to_table(columns=["id"], filter=pc.field(name) == 2)) == [4]
    assert rows_of(found.to_table(columns=[name], filter=pc.field("id") == 3)) == [1]


def test_columns_may_be_computed(table: DataTable) -> None:
    columns = {"twice": pc.multiply(pc.field("id"), 2)}
    assert sorted(rows_of(dataset(table).to_table(columns=columns))) == [0, 4, 6, 10]


def test_unknown_columns_are_an_error(table: DataTable) -> None:
    with pytest.raises(pa.ArrowInvalid, match="nothing"):
        dataset(table).to_table(columns=["nothing"])
    with pytest.raises(pa.ArrowInvalid, match="nothing"):
        dataset(table).to_table(filter=pc.field("nothing") == 1)


def test_pushed_filters_prune_files(table: DataTable) -> None:
    store = CountingStore(table.store)
    found = dataset(table, store)
    store.reset()
    assert found.to_table(filter=pc.field("p") == pa.scalar(FIRST)).num_rows == 2
    assert store.footers_opened == 1
    store.reset()
    assert found.to_table(filter=pc.field("id") > 100).num_rows == 0
    assert store.footers_opened == 0


def test_a_predicate_of_ours_goes_before(table: DataTable) -> None:
    found = dataset(table, predicate=col("id") > 2)
    assert sorted(rows_of(found.to_table(columns=["id"]))) == [3, 5]
    assert found.count_rows() == 2
    assert found.to_table(filter=pc.field("id") < 5)["id"].to_pylist() == [3]


def test_types_may_be_shown_otherwise(table: DataTable) -> None:
    fields: list[pa.Field[Any]] = [pa.field("s", pa.large_string()), pa.field("id", pa.int32())]
    other = pa.schema(fields)
    shown = dataset(table).replace_schema(other)
    assert shown.to_table().schema == other
    assert shown.to_table(filter=pc.field("s") == "s3")["id"].to_pylist() == [3]
    with pytest.raises(InvalidInputError, match="'nothing'"):
        dataset(table).replace_schema(pa.schema([("nothing", pa.int64())]))


def test_fragments_have_the_rows(table: DataTable) -> None:
    found = dataset(table)
    (fragment,) = found.get_fragments()
    assert fragment.physical_schema == found.schema
    assert fragment.to_table().equals(found.to_table())
    assert fragment.count_rows() == found.count_rows()
    wanted = pc.field("id") > 2
    assert fragment.to_table(columns=["s"], filter=wanted)["s"].to_pylist() == ["s3", "s5"]
    assert fragment.head(1).num_rows == 1
    assert next(fragment.to_batches(batch_size=1)).num_rows == 1
    (fragment,) = found.filter(wanted).get_fragments()
    assert fragment.count_rows() == 2
    with pytest.raises(InvalidInputError, match="expected the dataset's schema"):
        fragment.scanner(pa.schema([("id", pa.string())]))


def test_files_that_pyarrow_reads_are_fragments(tmp_path: Path) -> None:
    for number in range(3):
        rows = {"id": [number, None], "p": [f"{number}/x", None]}
        write_deltalake(tmp_path, rows, mode="append", partition_by=["p"])
    found = DeltaTable(tmp_path).to_pyarrow_dataset()
    fragments = list(found.get_fragments())
    assert len(fragments) == 6
    keys = [ds.get_partition_keys(one.partition_expression)["p"] for one in fragments]
    assert sorted(keys, key=repr) == ["0/x", "1/x", "2/x", None, None, None]
    with pytest.raises(AttributeError, match=r"no attribute 'path', .*file_uris\(\) lists"):
        getattr(fragments[0], "path")  # noqa: B009  # type checkers know that there is none
    rows_of = [row for one in fragments for row in one.to_table(schema=found.schema).to_pylist()]
    assert sorted(map(repr, rows_of)) == sorted(map(repr, found.to_table().to_pylist()))
    wanted = (pc.field("id") == 1) & (pc.field("p") == "1/x")
    assert len(list(found.get_fragments(wanted))) == 1
    assert list(found.get_fragments(pc.field("id") == 7)) == []
    assert sum(one.count_rows(filter=wanted) for one in fragments) == 1
    assert sum(one.to_table(columns=["p"], filter=wanted).num_rows for one in fragments) == 1
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    DeltaTable(tmp_path).delete("id = 1")
    fragments = list(DeltaTable(tmp_path).to_pyarrow_dataset().get_fragments())
    assert sum(one.count_rows() for one in fragments) == 5


def test_batches_are_no_larger_than_asked(table: DataTable) -> None:
    sizes = [batch.num_rows for batch in dataset(table).to_batches(batch_size=1)]
    assert sum(sizes) == 4
    assert max(sizes) == 1


def test_sorting_and_joining(table: DataTable) -> None:
    found = dataset(table)
    assert found.sort_by([("id", "descending")]).to_table()["id"].to_pylist() == [5, 3, 2, 0]
    other = pa.dataset.dataset(pa.table({"id": [3], "more": ["x"]}))
    joined = found.join(other, "id", join_type="inner").to_table()
    assert joined["more"].to_pylist() == ["x"]


def test_a_dataset_is_picklable(table: DataTable) -> None:
    found = dataset(table, predicate=col("id") > 2).filter(pc.field("id") < 5)
    again = pickle.loads(pickle.dumps(found))  # our own
    assert again.to_table().equals(found.to_table())
    assert repr(again) == "DeltaDataset('memory://table', version 2)"


def test_an_empty_table() -> None:
    table = DataTable([("id", "long")])
    found = dataset(table)
    assert found.to_table().schema == found.schema
    assert found.count_rows() == 0
    assert found.head(5).num_rows == 0


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("id > 2", [3, 5]),
        ("p = DATE '2024-01-01'", [0, 2]),
        ("s IN ('s0', 's5') AND id < 5", [0]),
        ("s LIKE '%5'", [5]),
        ("id = 1", []),
    ],
)
def test_duckdb(table: DataTable, where: str, ids: list[int]) -> None:
    with duckdb.connect() as connection:
        connection.register("t", dataset(table))
        found = connection.execute(f"SELECT id FROM t WHERE {where} ORDER BY id").fetchall()  # noqa: S608
        assert [row[0] for row in found] == ids
        assert connection.execute(f"SELECT count(*) FROM t WHERE {where}").fetchone() == (len(ids),)  # noqa: S608


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (pl.col("id") > 2, [3, 5]),
        (pl.col("p") == FIRST, [0, 2]),
        (pl.col("s").is_in(["s0", "s4"]), [0]),
        (pl.col("s").str.contains("5"), [5]),
    ],
)
def test_polars(table: DataTable, where: Any, ids: list[int]) -> None:
    lazy = pl.scan_pyarrow_dataset(dataset(table))
    assert sorted(lazy.filter(where).select("id").collect()["id"].to_list()) == ids
    assert lazy.select(pl.len()).collect().item() == 4


def _union(found: Any) -> Any:
    make: Any = ds.UnionDataset  # the stubs know no constructor
    return make(found.schema, [found])


def _declared(found: Any) -> Any:
    options: Any = getattr(acero, "ScanNodeOptions")  # noqa: B009  # the stubs lack it
    return acero.Declaration("scan", options(found)).to_table()


@pytest.mark.parametrize(
    "use",
    [
        lambda x: ds.dataset([x, x]).to_table(),
        lambda x: ds.dataset([x, x]).count_rows(),
        lambda x: _union(x).head(1),
        lambda x: _union(x).children[0].to_table(),
        lambda x: ds.Scanner.from_dataset(x).to_table(),
        lambda x: ds.Scanner.from_dataset(x, filter=ds.field("id") == 1).count_rows(),
        lambda x: ds.dataset(pa.table({"id": [1]})).join(x, "id"),
        lambda x: ds.dataset(pa.table({"id": [1]})).join_asof(x, "id", [], 0),
        _declared,
    ],
    ids=["list", "count", "union", "child", "scanner", "filter", "join", "join_asof", "acero"],
)
def test_pyarrow_s_own_scan_of_the_dataset_is_an_error(
    table: DataTable, use: Callable[[Any], Any]
) -> None:
    """Its C++ knows no dataset of Python's; it used to end the process."""
    found = dataset(table)
    with pytest.raises(InvalidInputError, match=r"to_table\(\)"):
        use(found)
    assert found.count_rows() == found.to_table().num_rows == 4


def test_the_nearest_row_is_joined(table: DataTable) -> None:
    right = ds.dataset(pa.table({"at": [2], "name": ["two"]}))
    joined = dataset(table).join_asof(right, "id", [], 0, right_on="at").to_table()
    assert joined.select(["id", "name"]).to_pydict() == {
        "id": [0, 2, 3, 5],
        "name": [None, "two", None, None],
    }


@pytest.mark.parametrize("name", ["files", "filesystem", "format", "partitioning"])
def test_it_is_no_dataset_of_files(table: DataTable, name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(dataset(table), name)


def test_filters_with_long_lists_of_strings_that_pyarrow_cannot_show(tmp_path: Path) -> None:
    """pyarrow cuts a list of strings for messages, perhaps inside a character."""
    long = "東京都" * 12
    rows = pa.table({"id": [1, 2], "s": [long, "b"], "t": [{"y": long}, {"y": "b"}]})
    write_deltalake(tmp_path, rows)
    dataset = DeltaTable(tmp_path).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("t", "y").isin([long])).num_rows == 1
    assert dataset.to_table(filter=pc.field("s").isin([long, "q"])).num_rows == 1
    query = "SELECT id FROM dataset WHERE t.y IN ($long, 'q')"
    found: Any = duckdb.sql(query, params={"long": long})
    assert found.fetchall() == [(1,)]
    inexact = pc.field("s").isin([long]) & (pc.utf8_length(pc.field("s")) > 1)
    with pytest.raises(InvalidInputError, match="with long strings"):
        DeltaTable(tmp_path).to_pyarrow_table(filters=inexact)


def test_uses_of_tables_and_frames_are_answered() -> None:
    write_deltalake("memory://answers", {"id": [1]}, mode="overwrite")
    dataset: Any = DeltaTable("memory://answers").to_pyarrow_dataset()
    for name, hint in (
        ("to_pandas", r"use to_table\(\)\.to_pandas\(\)"),
        ("count", r"use count_rows\(\)"),
        ("to_tabel", "did you mean 'to_table'"),
    ):
        with pytest.raises(AttributeError, match=hint):
            getattr(dataset, name)
    assert dataset.schema.names == ["id"]
    with pytest.raises(pa.ArrowNotImplementedError, match=r"cannot filter .* by \(id == \"x\"\)"):
        dataset.to_table(filter=pc.field("id") == "x")
