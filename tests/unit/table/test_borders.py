"""The borders to other libraries: arguments, results and rows that cross them."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import deltalake
import duckdb
import narwhals
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import deltalog
import deltalog.dask
import deltalog.polars
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError, SchemaMismatchError

MAPS = pa.schema(
    [
        ("id", pa.int64()),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("deep", pa.list_(pa.struct([("x", pa.map_(pa.string(), pa.list_(pa.int64())))]))),
    ]
)
MAPPED: list[dict[str, Any]] = [
    {"id": 1, "m": [("a", 1), ("b", None)], "deep": [{"x": [("k", [1, 2])]}]},
    {"id": 2, "m": None, "deep": None},
    {"id": 3, "m": [], "deep": []},
]
DICTS: list[dict[str, Any]] = [
    {"id": 1, "m": {"a": 1, "b": None}, "deep": [{"x": {"k": [1, 2]}}]},
    {"id": 2, "m": None, "deep": None},
    {"id": 3, "m": {}, "deep": []},
]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    rows = pa.table({"id": [1, 2, None], "s": ["x", "y", None], "st": [{"a": 1}, {"a": 2}, None]})
    write_deltalake(tmp_path / "t", rows)
    return DeltaTable(tmp_path / "t")


# --- conditions and columns


def test_every_reader_takes_columns_and_a_condition(table: DeltaTable) -> None:
    lazy = table.to_polars(["id"], "id > 1", lazy=True).collect()
    found: list[list[dict[str, Any]]] = [
        table.to_pandas(columns=["id"], filters="id > 1").to_dict("records"),  # type: ignore[list-item]
        table.to_polars(["id"], "id > 1").to_dicts(),
        lazy.to_dicts(),
        table.to_pyarrow_table(columns=["id"], filters="id > 1").to_pylist(),
        table.scan(["id"], "id > 1").to_table().to_pylist(),
        table.head(10, ["id"], "id > 1").to_pylist(),
        table.to_duckdb(columns=["id"], filters="id > 1").to_arrow_table().to_pylist(),
        table.to_duckdb(filters="id > 1").project("id").to_arrow_table().to_pylist(),
    ]
    assert found == [[{"id": 2}]] * len(found)
    assert table.count("id > 1") == 1
    assert table.count([("id", "=", 1)]) == 1
    assert table.count() == 3


def test_a_relation_of_some_columns(table: DeltaTable) -> None:
    assert table.to_duckdb(columns=["S", "id"]).columns == ["s", "id"]
    nested = table.to_duckdb(columns=["st.a"], filters="id = 2")
    assert nested.to_arrow_table().to_pylist() == [{"st": {"a": 2}}]
    with pytest.raises(InvalidInputError, match=r"there is no column 'zz'"):
        table.to_duckdb(columns=["zz"])


@pytest.mark.parametrize("of", [lambda table: table, lambda table: table.scan()])
def test_a_closed_connection(table: DeltaTable, of: Callable[[DeltaTable], Any]) -> None:
    connection = duckdb.connect()
    connection.close()
    with pytest.raises(InvalidInputError, match="the connection is closed"):
        of(table).to_duckdb(connection)


def test_a_connection_with_an_open_result_is_refused(tmp_path: Path) -> None:
    rows = {"id": [1, 2]}
    write_deltalake(tmp_path, rows, configuration={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(tmp_path)
    table.delete("id = 1")  # the deleted rows are registered on the connection
    connection = duckdb.connect()
    connection.execute("SELECT 1")
    with pytest.raises(InvalidInputError, match=r"cannot make a DuckDB relation: .*unfinished"):
        table.to_duckdb(connection)
    connection.fetchall()
    assert table.to_duckdb(connection).fetchall() == [(2,)]


def test_a_relation_needs_columns(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="the rows have no columns"):
        table.scan([]).to_duckdb()
    with pytest.raises(InvalidInputError, match="the rows have no columns"):
        table.to_duckdb(columns=[])


def test_the_error_names_the_method(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="cannot call to_pyarrow_table with partitions"):
        table.to_pyarrow_table(["id"])
    with pytest.raises(InvalidInputError, match="cannot call to_pandas with partitions"):
        table.to_pandas(["id"])


# --- rows under a name in SQL


FRAME = pl.DataFrame({"aé": [1, 2]})
NAMED: dict[str, Callable[[], Any]] = {
    "Polars": lambda: FRAME,
    "lazy": FRAME.lazy,
    "pandas": FRAME.to_pandas,
    "table": FRAME.to_arrow,
    "batch": lambda: FRAME.to_arrow().to_batches()[0],
    "reader": lambda: FRAME.to_arrow().to_reader(),
    "batches": lambda: iter(FRAME.to_arrow().to_batches()),
    "dicts": lambda: iter(FRAME.to_dicts()),
    "narwhals": lambda: narwhals.from_native(FRAME),
    "narwhals of pandas": lambda: narwhals.from_native(FRAME.to_pandas()),
    "relation": lambda: duckdb.connect().from_arrow(FRAME.to_arrow()),
}


@pytest.mark.parametrize("rows", NAMED.values(), ids=NAMED)
def test_every_kind_of_rows_in_sql(rows: Callable[[], Any]) -> None:
    # The name differs in the case of a letter for which DuckDB is case-sensitive.
    found = deltalog.sql("SELECT sum(AÉ) AS n FROM t", t=rows())
    assert found.to_pylist() == [{"n": 3}]


@pytest.mark.parametrize("rows", NAMED.values(), ids=NAMED)
def test_an_unknown_column_of_every_kind_of_rows(rows: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInputError, match="there is no column 'zz'; known: 'aé'"):
        deltalog.sql("SELECT zz FROM t", t=rows()).to_arrow()


def test_a_lazy_frame_in_sql_makes_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = deltalog.sql("SELECT sum(a) AS n FROM t", t=pl.LazyFrame({"a": [1, 2]}))
        assert found.to_pylist() == [{"n": 3}]


def test_a_relation_is_read_again() -> None:
    connection = deltalog.connect({"t": duckdb.connect().sql("SELECT 1 AS a")})
    for _ in range(2):
        found = connection.sql("SELECT count(*) AS n FROM t x JOIN t y ON x.a = y.a")
        assert found.to_pylist() == [{"n": 1}]


def test_the_index_of_a_frame_is_no_column_in_sql() -> None:
    frame = pd.DataFrame({"a": [1], "b": [2]}).set_index("a")
    with pytest.raises(InvalidInputError, match=r"in the index .* pass frame.reset_index\(\)"):
        deltalog.sql("SELECT a FROM t", t=frame).to_arrow()


@pytest.mark.parametrize(
    ("rows", "advice"),
    [
        (pd.Series([1]), r"to_frame\(\)"),
        (pl.Series([1]), r"to_frame\(\)"),
        (pd.Series([1]).to_numpy(), "make a dataframe of it"),
        (pd.DataFrame({"a": [1]}).groupby("a"), r"aggregate the groups first"),
        (len, "pass a value as a parameter"),
    ],
)
def test_what_is_no_rows_in_sql(rows: Any, advice: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"cannot read t in SQL: .*{advice}"):
        deltalog.sql("SELECT * FROM t", t=rows)


# --- objects of deltalake


def test_tables_of_deltalake_are_named(table: DeltaTable) -> None:
    other: Any = deltalake.DeltaTable(table.table_uri)
    rows = pa.table({"id": [1]})
    for act in (lambda: DeltaTable(other), lambda: write_deltalake(other, rows)):
        with pytest.raises(InvalidInputError, match="found DeltaTable of deltalake; pass its"):
            act()


# --- rows to write


def test_an_iterable_of_lazy_frames(table: DeltaTable) -> None:
    frame = pl.LazyFrame({"id": [7]})
    write_deltalake(table, iter([frame, frame]), mode="append")  # type: ignore[arg-type]
    assert table.count("id = 7") == 2


EXACT = pa.Table.from_pylist(MAPPED, MAPS)
KINDS: dict[str, Any] = {
    "rows": MAPPED,
    "rows of dicts": DICTS,
    "columns": {name: [row[name] for row in DICTS] for name in MAPS.names},
    "pandas": EXACT.to_pandas(),
    "pandas of dicts": pd.DataFrame(DICTS),
    "Arrow dtypes": EXACT.to_pandas(types_mapper=pd.ArrowDtype),
    "arrow": EXACT,
}


@pytest.mark.parametrize("rows", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("way", ["append", "overwrite", "upsert", "merge", "appender", "tx"])
def test_python_values_of_maps(rows: Any, way: str, tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", MAPS)
    if way in {"append", "overwrite"}:
        write_deltalake(table, rows, mode=way)  # type: ignore[arg-type]
    elif way == "upsert":
        table.upsert(rows, "id")
    elif way == "merge":
        table.merge(rows, "s.id = t.id", "s", "t").when_not_matched_insert_all().execute()
    elif way == "appender":
        with table.appender() as appender:
            appender.append(rows)
    else:
        with table.transaction() as staged:
            staged.upsert(rows, "id")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()
    assert found.sort_by("id").to_pylist() == MAPPED


def test_a_field_that_a_map_lacks_is_not_lost(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", MAPS)
    rows = [{"id": 1, "deep": [{"x": {"k": [1]}, "y": 2}]}]
    with pytest.raises(SchemaMismatchError, match=r"'deep\.element\.y' that the table lacks"):
        write_deltalake(table, rows, mode="append")
    with pytest.raises(SchemaMismatchError, match="column 'm' is of type map<string,long>"):
        write_deltalake(table, [{"id": 1, "m": {"a": "x"}}], mode="append")
    assert table.count() == 0


@pytest.mark.parametrize("rows", [pd.DataFrame, list, pa.Table.from_pylist])
def test_a_uuid_in_a_column_of_strings(rows: Callable[[Any], Any], tmp_path: Path) -> None:
    # The bytes of the first one are valid text.
    ids = [uuid.UUID(int=1), None, uuid.UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")]
    table = DeltaTable.create(tmp_path / "t", pa.schema([("s", pa.string())]))
    write_deltalake(table, rows([{"s": one} for one in ids]), mode="append")
    assert table.to_pyarrow_table()["s"].to_pylist() == [
        "00000000-0000-0000-0000-000000000001",
        None,
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    ]


# --- a table that another one replaced


def test_update_incremental_of_a_replaced_table(tmp_path: Path) -> None:
    for versions in (1, 3):
        location = tmp_path / str(versions)
        for number in range(2):
            write_deltalake(location, pa.table({"a": [number]}), mode="append")
        old = DeltaTable(location)
        location.rename(tmp_path / f"moved {versions}")
        for number in range(versions):
            write_deltalake(location, pa.table({"b": [number]}), mode="append")
        with pytest.raises(deltalog.errors.TableNotFoundError, match="was replaced by a table"):
            old.update_incremental()
        assert old.version() == 1
        old.update_incremental(same_table=False)
        assert old.version() == versions - 1
        assert old.schema().names == ("b",)


# --- a follower of an empty table


@pytest.mark.parametrize("changes", [False, True])
def test_following_an_empty_table(changes: bool, tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    table = DeltaTable.create(tmp_path / "t", pa.schema([("id", pa.int64())]), configuration=feed)
    follower = table.follow(changes=changes)
    assert list(follower.available()) == []
    stored = follower.offset.to_json()
    write_deltalake(table, pa.table({"id": [1]}), mode="append")
    for again in (follower, table.follow(stored, changes=changes)):
        (step,) = again.available()
        assert step.to_table()["id"].to_pylist() == [1]


# --- frames of other processes


def test_a_frame_of_dask(table: DeltaTable) -> None:
    frame: Any = dask.dataframe.from_pandas(pd.DataFrame({"id": [1]}), npartitions=1)
    memory = r"pass its rows in memory, as returned by compute\(\)"
    with pytest.raises(InvalidInputError, match=rf"dask\.write\(.* writes them; {memory}"):
        write_deltalake(table, frame, mode="append")
    with pytest.raises(InvalidInputError, match=memory):
        deltalog.sql("SELECT * FROM t", t=frame)


def test_dask_takes_both_names_of_a_condition(table: DeltaTable) -> None:
    option: Any
    for option in ({"filters": "id = 1"}, {"filter": "id = 1"}, {"predicate": "id = 1"}):
        assert len(deltalog.dask.read_deltalake(table, **option)) == 1
    with pytest.raises(InvalidInputError, match="cannot take both filter and filters"):
        deltalog.dask.read_deltalake(table, filter="id = 1", filters="id = 1")
    with pytest.raises(InvalidInputError, match=r"cannot read .*: there is no column 'zz'"):
        deltalog.dask.read_deltalake(table, columns=["zz"])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("read_delta", r"to_polars\(\)"),
        ("write_delta", "write_deltalake"),
        ("zz", "'zz'"),
    ],
)
def test_functions_of_polars(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(deltalog.polars, name)


# --- datasets


@pytest.mark.parametrize(
    "read",
    [
        lambda dataset, condition: dataset.to_table(filter=condition),
        lambda dataset, condition: dataset.count_rows(filter=condition),
        lambda dataset, condition: dataset.filter(condition),
        lambda dataset, condition: next(dataset.get_fragments()).to_table(filter=condition),
    ],
)
def test_a_filter_of_a_dataset_is_an_expression(
    read: Callable[[Any, Any], Any], table: DeltaTable
) -> None:
    with pytest.raises(InvalidInputError, match=r"by 'id = 1': expected an expression of pyarrow"):
        read(table.to_pyarrow_dataset(), "id = 1")


@pytest.mark.parametrize("name", ["filters", "predicate", "where"])
def test_no_option_of_a_dataset_is_ignored(name: str, table: DeltaTable) -> None:
    dataset = table.to_pyarrow_dataset()
    condition = ds.field("id") == 1
    assert dataset.to_table(filter=condition, use_threads=False).num_rows == 1
    with pytest.raises(TypeError, match=f"argument '{name}': did you mean 'filter'"):
        dataset.to_table(**{name: condition})
    with pytest.raises(TypeError, match="'column': did you mean 'columns'"):
        dataset.to_batches(column=["id"])


def test_columns_of_other_types(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match=r"a list of names, such as \['id'\]"):
        table.to_polars([pl.col("id")])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match=r"\[schema\(\)\.names\[at\] for at"):
        table.to_pandas(columns=[0])  # type: ignore[list-item]


def test_an_index_that_is_also_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}).set_index("a", drop=False)
    write_deltalake(tmp_path / "t", frame)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist() == frame.to_dict("records")
    other = frame.set_axis(pd.Index([7, 8], name="a"))
    with pytest.raises(SchemaMismatchError, match="__index_level_0__"):
        write_deltalake(tmp_path / "other", other)
