from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import columns, parse_sql, to_sql
from deltalog.expressions.nodes import Call, Column, Lambda, Literal, Variable
from tests.support.sql import values_of

LISTS = pa.array([[1, 2, None], None, [], [3, 0]], pa.list_(pa.int64()))
MAPS = pa.array([[("a", 1), ("b", None)], None, [], [("a", 3)]], pa.map_(pa.string(), pa.int64()))
N = pa.array([10, 20, 30, None], pa.int64())


def test_a_lambda_sees_the_columns_of_its_row() -> None:
    found = values_of("transform(a, x -> x + n)", a=LISTS, n=N)
    assert found == [[11, 12, None], None, [], [None, None]]
    nested = values_of("transform(a, x -> aggregate(a, n, (s, y) -> s + x))", a=LISTS, n=N)
    assert nested == [[13, 16, None], None, [], [None, None]]


def test_a_parameter_hides_a_column_and_an_outer_parameter() -> None:
    assert values_of("transform(x, x -> x + 1)", x=LISTS)[0] == [2, 3, None]
    inner = values_of("transform(a, x -> transform(a, X -> x * 2))", a=LISTS)
    assert inner[3] == [[6, 0], [6, 0]]
    tree = parse_sql("transform(a, x -> x + y)")
    assert columns(tree) == {("a",), ("y",)}


def test_where_spark_stops_no_element_is_computed() -> None:
    assert values_of("exists(a, x -> 3 / x = 1)", a=LISTS.slice(3)) == [True]
    with pytest.raises(InvalidInputError, match="division by zero"):
        values_of("exists(a, x -> 3 / x = 2)", a=LISTS.slice(3))
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array([0, 1]), mask=pa.array([True, False])
    )
    assert values_of("transform(a, x -> 1 / x)", a=hidden) == [None, [1.0]]


def test_entries_below_a_null_map_are_none() -> None:
    taken = MAPS.take(pa.array([3, None, 0, 1]))
    for maps in (taken, taken.slice(1), pa.concat_arrays([taken, MAPS]).slice(2, 4)):
        found = values_of("transform_values(m, (k, v) -> v * 2)", m=maps)
        untyped: Any = maps  # the stubs have no `to_pylist` of maps
        rows = untyped.to_pylist()
        assert found == [row and [(k, v and v * 2) for k, v in row] for row in rows]
    assert values_of("map_filter(m, (k, v) -> v > 1)", m=MAPS) == [[], None, [], [("a", 3)]]


def test_aggregates_fold_rows_of_any_length() -> None:
    sql = "aggregate(a, 0L, (s, x) -> s * 10 + coalesce(x, 9), s -> -s)"
    assert values_of(sql, a=LISTS) == [-129, None, 0, -30]
    pairs = "aggregate(a, named_struct('n', 0), (s, x) -> named_struct('n', s.n + 1), s -> s.n)"
    assert values_of(pairs, a=LISTS) == [3, None, 0, 2]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("transform(a, x -> y)", "no column 'y'"),
        ("x -> x", "expected the end"),
        ("upper(x -> x)", "argument 1 must be a value, not a lambda"),
        ("filter(a, 5)", "argument 2 must be a lambda"),
        ("filter(a, x -> x)", "the lambda must return a boolean, found long"),
        ("transform(a, (x, y, z) -> x)", "takes 1 to 2 parameters, found 3"),
        ("transform(a, (x, x) -> x)", "different names"),
        ("transform(a, () -> 1)", "expected a value"),
        (
            "aggregate(a, 0, (s, x) -> s + x)",
            "the lambda returns long, but the start value is integer",
        ),
        ("transform(n, x -> x)", "an array is expected, found long"),
        ("transform_keys(m, (k, v) -> 1)", "the keys of a map must be different"),
    ],
)
def test_problems(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem.replace("(", r"\(")):
        values_of(sql, a=LISTS, n=N, m=MAPS)


def test_it_is_rendered_as_it_is_read() -> None:
    body = Call("[]", (Variable("x"), Literal("odd name")))
    tree = Call("transform", (Column(("a",)), Lambda(("x", "my i"), body)))
    assert to_sql(tree) == "transform(a, (x, `my i`) -> x['odd name'])"
    assert parse_sql(to_sql(tree)).same_as(tree)
    assert to_sql(parse_sql("filter(a, X -> X.b > 1)")) == "filter(a, x -> x['b'] > 1)"
