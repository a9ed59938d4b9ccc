from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from io import BytesIO, StringIO
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from arro3 import core as arro3
from pydantic import BaseModel

from deltalog.data.write import is_rereadable, open_batches
from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.schema import from_arrow_schema

# pyarrow's stubs leave the C interfaces untyped.
TABLE: Any = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


class OnlyArray:
    """An object of another library, with one of Arrow's C interfaces."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


class OnlyStream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


def duck() -> Any:
    return duckdb.connect().sql("values (1, 'x'), (2, null), (3, 'z')").project("col0 a, col1 b")


SOURCES: dict[str, Any] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "dataset": lambda: ds.dataset(TABLE),
    "scanner": lambda: ds.dataset(TABLE).scanner(),
    "c array": OnlyArray,
    "c stream": OnlyStream,
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
    "duckdb": duck,
    "dicts": lambda: [{"a": 1, "b": "x"}, {"a": 2}, {"a": 3, "b": "z"}],
    "batches": lambda: iter(TABLE.to_batches(max_chunksize=1)),
    "tables": lambda: [TABLE.slice(0, 1), TABLE.slice(1)],
    "frames": lambda: [TABLE.to_pandas()[:2], TABLE.to_pandas()[2:]],
}


@pytest.mark.parametrize("name", SOURCES)
def test_whatever_holds_rows_is_read(name: str) -> None:
    found = open_batches(SOURCES[name]()).read_all().to_pydict()
    assert found == {"a": [1, 2, 3], "b": ["x", None, "z"]}


@pytest.mark.parametrize("name", SOURCES)
def test_what_can_be_read_again_is_known(name: str) -> None:
    once = {"reader", "scanner", "c stream", "batches"}
    assert is_rereadable(SOURCES[name]()) is (name not in once)


FRAME = pd.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]})


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (FRAME.groupby("k").sum(), {"v": [4, 2], "k": ["a", "b"]}),
        (
            FRAME.set_index(["k", "v"]).assign(z=0),
            {"z": [0] * 3, "k": ["a", "b", "a"], "v": [1, 2, 3]},
        ),
        (FRAME[["v"]].rename_axis("row"), {"v": [1, 2, 3], "row": [0, 1, 2]}),
        (FRAME[["v"]].loc[[2, 0, 1]], {"v": [3, 1, 2], "__index_level_0__": [2, 0, 1]}),
        (pd.DataFrame({"v": [1]}, index=["x"]), {"v": [1], "__index_level_0__": ["x"]}),
        (FRAME[["v"]], {"v": [1, 2, 3]}),
    ],
    ids=["named", "levels", "named range", "picked rows", "labels", "range"],
)
def test_an_index_is_a_column_unless_it_only_counts(frame: Any, expected: Any) -> None:
    assert open_batches(frame).read_all().to_pydict() == expected


def test_a_key_that_only_a_later_dict_has_is_a_column() -> None:
    found = open_batches([{"a": 1}, {"b": 2}]).read_all().to_pydict()
    assert found == {"a": [1, None], "b": [None, 2]}


@pytest.mark.parametrize("empty", [[], iter(())])
def test_no_rows_have_no_columns(empty: object) -> None:
    reader = open_batches(empty)
    assert (reader.schema.names, reader.read_all().num_rows) == ([], 0)


def test_tables_without_rows_have_a_schema() -> None:
    assert open_batches([TABLE.slice(0, 0)]).schema == TABLE.schema


def test_an_iterator_is_read_as_far_as_needed() -> None:
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for batch in TABLE.to_batches(max_chunksize=1):
            read += 1
            yield batch

    reader = open_batches(batches())
    assert read == 1
    reader.read_next_batch()
    assert read == 1


def test_batches_of_another_schema_are_refused() -> None:
    other = pa.record_batch({"a": ["text"]})
    with pytest.raises(SchemaMismatchError, match=r"batch 2 .* expected a: int64.* found a: str"):
        open_batches([*TABLE.to_batches(), other]).read_all()


@pytest.mark.parametrize(
    "data",
    [3, "a.parquet", None, [1], [{"a": 1}, 2], [TABLE.to_batches()[0], 2]],
    ids=repr,
)
def test_anything_else_is_refused_with_what_is_taken(data: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a"):
        open_batches(data).read_all()


def test_values_without_a_common_type_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="'a': they have no common Arrow type"):
        open_batches([{"a": 1}, {"a": "x"}])


@dataclass
class Point:
    x: int
    y: str | None = None
    inner: dict[str, int] = field(default_factory=dict)


class Model(BaseModel):
    x: int
    y: str | None = None


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1, 2, 3], "b": ["x", None, "z"]},
        {"a": np.array([1, 2, 3]), "b": pa.array(["x", None, "z"])},
        {"a": (n for n in (1, 2, 3)), "b": pa.chunked_array([["x"], [None, "z"]])},
        {"a": pd.Series([1, 2, 3]), "b": ("x", None, "z")},
    ],
)
def test_a_dict_has_columns(columns: Any) -> None:
    assert open_batches(columns).read_all().equals(TABLE)


def test_arrays_of_other_libraries_are_columns() -> None:
    numbers = arro3.Array([1, 2, 3], arro3.DataType.int64())
    views = arro3.ChunkedArray([arro3.Array(["x", None, "z"], arro3.DataType.string_view())])
    columns: Any = {"a": numbers, "b": views, "c": [7, 8, 9]}
    found = open_batches(columns).read_all()
    assert found.select(["a", "b"]).cast(TABLE.schema).equals(TABLE)
    with pytest.raises(
        InvalidInputError, match=r"column 'a' of a dict: expected a list .* a Table"
    ):
        open_batches({"a": arro3.Table.from_pydict({"x": numbers})})


def test_dataclasses_and_models_are_rows() -> None:
    points = open_batches([Point(1, "a", {"k": 1}), Point(2)]).read_all()
    assert points.to_pylist() == [
        {"x": 1, "y": "a", "inner": {"k": 1}},
        {"x": 2, "y": None, "inner": {"k": None}},
    ]
    models = open_batches(iter([Model(x=1, y="a"), Model(x=2)])).read_all()
    assert models.to_pylist() == [{"x": 1, "y": "a"}, {"x": 2, "y": None}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1, "x"]}, "the values of 'a': they have no common Arrow type"),
        ({"a": [1], "b": [1, 2]}, "columns of the same length, found a: 1, b: 2"),
        ({"a": 1}, "the column 'a' of a dict: expected a list or an array of values, found an int"),
        ({"a": "xyz"}, "found a str; to write rows, pass a list of dicts"),
        ([Point(1), 3], "item 1 of the list: expected a dict, a dataclass or a pydantic model"),
        (pd.DataFrame({"a": [1, "x"]}), "'x' (str, in row 2); cast the column to one type"),
    ],
)
def test_columns_of_several_kinds_are_refused(data: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        open_batches(data)


@pytest.mark.parametrize("num_rows", [3, 0])
def test_a_reader_that_was_read_is_not_one_without_rows(num_rows: int) -> None:
    reader = TABLE.slice(0, num_rows).to_reader()
    assert open_batches(reader).read_all().num_rows == num_rows
    with pytest.raises(InvalidInputError, match="an earlier call has read it"):
        open_batches(reader)


def test_a_reader_that_was_read_in_part_has_the_rest() -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=1))
    open_batches(reader).read_next_batch()
    assert open_batches(reader).read_all().num_rows == 2


@pytest.mark.parametrize("num_rows", [3, 0])
def test_a_generator_that_has_ended_is_not_one_without_rows(num_rows: int) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield from TABLE.slice(0, num_rows).to_batches()

    generator = rows()
    assert open_batches(generator).read_all().num_rows == num_rows
    with pytest.raises(InvalidInputError, match="the generator rows: it has ended"):
        open_batches(generator)


@pytest.mark.parametrize("data", [set(), frozenset(), range(0), StringIO(), BytesIO()])
def test_what_has_no_rows_is_refused_also_if_it_is_empty(data: Any) -> None:
    with pytest.raises(InvalidInputError, match="cannot write the data, a"):
        open_batches(data)


class Color(Enum):
    RED = 1


class Pair(NamedTuple):
    id: int
    name: str


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([Pair(1, "a")], "[row._asdict() for row in rows]"),
        ([(1, "a")], "[dict(zip(names, row)) for row in rows]"),
        ([1, 2], "name the column, as in {'id': values}"),
        ([pa.array([1])], "it is one column, not a table"),
        (Point(1, "a"), "it is one row: pass a list, [row]"),
        (Model(x=1), "it is one row: pass a list, [row]"),
        (pa.schema([("a", pa.int64())]), "DeltaTable.create(location, schema)"),
        ('[{"a": 1}]', "parse JSON first, as with json.loads(text)"),
        (duckdb.connect(), "pass the relation that connection.sql(query) returns"),
        (pd.DataFrame({"a": [2**70]}), f"column 'a': {2**70} is too large for a long"),
        (pd.DataFrame({"a": [Color.RED]}), "write the values of an enum"),
        ([{"a": Color.RED}], "write the values of an enum"),
        ([{"a": "\ud800"}], "without lone surrogates"),
        ([{"a": Decimal("NaN")}], "Decimal('NaN') is not a finite number"),
        ([{"a": {"x": [Decimal("Infinity")]}}], "Decimal('Infinity') is not a finite number"),
        (duckdb.sql("SELECT '101'::BIT AS b"), "cast it first, as in CAST(b AS VARCHAR)"),
        (duckdb.sql("SELECT 1::BIGNUM AS b"), "the column 'b', a BIGNUM of DuckDB"),
    ],
)
def test_an_error_names_how_to_convert_the_data(data: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        open_batches(data).read_all()
    assert message in str(caught.value)


def test_days_of_numpy_are_dates() -> None:
    days = [np.datetime64("2024-02-29"), np.datetime64("NaT"), None]
    found = open_batches({"a": days}).read_all()
    assert found.to_pydict() == {"a": [date(2024, 2, 29), None, None]}


def test_a_relation_whose_connection_has_an_open_result_is_refused() -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS id")
    connection.execute("SELECT 2")
    with pytest.raises(InvalidInputError, match="cannot write the data, a DuckDBPyRelation"):
        open_batches(relation)
    connection.fetchall()
    assert open_batches(relation).read_all().num_rows == 1


@pytest.mark.parametrize("query", ["SELECT [1::BIGNUM] AS a", "SELECT {'x': 1::BIGNUM} AS a"])
def test_bytes_that_only_duckdb_reads_are_refused_at_any_depth(query: str) -> None:
    relation: Any = duckdb.sql(query)
    rows = relation.to_arrow_table()
    with pytest.raises(InvalidInputError, match=r"BIGNUM values of DuckDB of column 'a\."):
        from_arrow_schema(rows.schema)


def test_tensors_that_would_lose_their_shape_are_refused() -> None:
    square = pa.field("a", pa.fixed_shape_tensor(pa.int32(), [2, 2]))
    with pytest.raises(InvalidInputError, match=r"the tensors of column 'a' of the shape \[2, 2\]"):
        from_arrow_schema(pa.schema([square]))
    flat = pa.field("a", pa.fixed_shape_tensor(pa.int32(), [4]))
    assert from_arrow_schema(pa.schema([flat])).names == ("a",)


@pytest.mark.parametrize("is_dict", [True, False])
def test_rows_of_too_many_levels(is_dict: bool) -> None:
    value: Any = 1
    for _ in range(2_000):
        value = {"a": value} if is_dict else [value]
    with pytest.raises(InvalidInputError, match="expected types of at most 90 levels"):
        open_batches([{"a": value}])
