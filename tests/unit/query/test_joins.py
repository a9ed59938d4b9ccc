"""Joins by names of columns give their columns in Spark's order, and compare as Spark does."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError

_MAP: Final = pa.map_(pa.int32(), pa.int32())
_TABLES: Final = {
    "t": pa.table({"k": [1, 2], "F": [10, 20]}),
    "u": pa.table({"v": [1, 2], "f": [10, 30]}),
    "w": pa.table({"m": [7, 8], "v": [1, 5], "k": [1, 9]}),
    "floats": pa.table({"n": [1, 2], "f": pa.array([0.1, 16777216.0], pa.float32())}),
    "doubles": pa.table({"n": [1, 2], "f": [0.1, 16777216.0]}),
    "whole": pa.table({"f": pa.array([1, 16777217], pa.int32())}),
    "long": pa.table({"f": [1, 2]}),
    "decimals": pa.table({"f": pa.array([Decimal("0.1")], pa.decimal128(3, 1))}),
    "texts": pa.table({"f": ["0.1", "x"]}),
    "one": pa.table({"a": [1]}),
    "other": pa.table({"b": [5, 6]}),
    "none": pa.table({"c": pa.array([], pa.int64())}),
    "maps": pa.table({"f": pa.array([[(1, 2)]], _MAP), "n": [1]}),
    "lists": pa.table({"f": pa.array([[[(1, 2)]]], pa.list_(_MAP))}),
    "structs": pa.table({"f": [{"x": 1}]}),
}


def _rows(query: str) -> pa.Table:
    return deltalog.connect(_TABLES).sql(query).to_arrow()


def _found(query: str) -> tuple[list[str], list[tuple[object, ...]]]:
    found = _rows(query)
    columns = [column.to_pylist() for column in found.columns]
    return found.column_names, sorted(zip(*columns, strict=True), key=repr)


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        ("SELECT * FROM t JOIN u USING (f)", ["F", "k", "v"], [(10, 1, 1)]),
        ("SELECT * FROM t NATURAL JOIN w", ["k", "F", "m", "v"], [(1, 10, 7, 1)]),
        ("SELECT * FROM t LEFT JOIN u USING (f)", ["F", "k", "v"], [(10, 1, 1), (20, 2, None)]),
        ("SELECT * FROM t RIGHT JOIN u USING (f)", ["f", "k", "v"], [(10, 1, 1), (30, None, 2)]),
        ("SELECT * FROM t FULL JOIN u USING (f)", ["F", "k", "v"],
         [(10, 1, 1), (20, 2, None), (30, None, 2)]),
        ("SELECT * FROM t LEFT SEMI JOIN u USING (f)", ["F", "k"], [(10, 1)]),
        ("SELECT * FROM t LEFT ANTI JOIN u USING (f)", ["F", "k"], [(20, 2)]),
        ("SELECT * FROM t JOIN u USING (f) JOIN w USING (v)", ["v", "F", "k", "m", "k"],
         [(1, 10, 1, 7, 1)]),
        ("SELECT * FROM t JOIN w USING (k) JOIN u ON u.v = w.v AND u.f = t.F",
         ["k", "F", "m", "v", "v", "f"], [(1, 10, 7, 1, 1, 10)]),
        ("SELECT * FROM t JOIN (u JOIN w USING (v)) USING (f, k)", ["F", "k", "v", "m"],
         [(10, 1, 1, 7)]),
        ("SELECT q.*, t.* FROM t JOIN (u JOIN w USING (v)) q USING (k)",
         ["k", "v", "f", "m", "k", "F"], [(1, 1, 10, 7, 1, 10)]),
        ("SELECT u.*, t.* FROM t JOIN u USING (f)", ["f", "v", "F", "k"], [(10, 1, 10, 1)]),
        ("SELECT count(*) AS n FROM t JOIN u USING (f)", ["n"], [(1,)]),
        ("SELECT * EXCEPT (f) FROM t JOIN u USING (f)", ["k", "v"], [(1, 1)]),
        ("SELECT a.*, 1 AS one FROM t AS a JOIN u USING (f)", ["F", "k", "one"], [(10, 1, 1)]),
        ("SELECT * FROM (SELECT * FROM t JOIN u USING (f)) JOIN w USING (k)",
         ["k", "F", "v", "m", "v"], [(1, 10, 1, 7, 1)]),
        (("WITH q AS (SELECT * FROM t JOIN u USING (f)), r AS (SELECT * FROM q)"
          " SELECT * FROM w JOIN r USING (v)"), ["v", "m", "k", "F", "k"], [(1, 7, 1, 10, 1)]),
        ("SELECT * FROM t JOIN u USING (f) UNION ALL SELECT 0.5, 2, 3", ["F", "k", "v"],
         [(Decimal("0.5"), 2, 3), (Decimal("10.0"), 1, 1)]),
        ("SELECT k FROM t WHERE (F, k, 1) IN (SELECT * FROM t JOIN u USING (f))", ["k"], [(1,)]),
        ("SELECT k FROM t WHERE EXISTS (SELECT * FROM u JOIN w USING (v) WHERE f = t.F)",
         ["k"], [(1,)]),
        ("SELECT * FROM (SELECT F + 1 - 1 AS f, k FROM t) JOIN u USING (f)", ["f", "k", "v"],
         [(10, 1, 1)]),
        ("SELECT f FROM structs JOIN structs AS s USING (f)", ["f"], [({"x": 1},)]),
        ("SELECT * FROM one NATURAL JOIN other", ["a", "b"], [(1, 5), (1, 6)]),
        ("SELECT b FROM one NATURAL JOIN other", ["b"], [(5,), (6,)]),
        ("SELECT other.*, one.a + b AS s FROM one NATURAL JOIN other", ["b", "s"],
         [(5, 6), (6, 7)]),
        ("SELECT * FROM one NATURAL LEFT JOIN none", ["a", "c"], [(1, None)]),
        ("SELECT * FROM none NATURAL RIGHT JOIN one", ["c", "a"], [(None, 1)]),
        ("SELECT * FROM none NATURAL FULL JOIN one", ["c", "a"], [(None, 1)]),
        ("SELECT * FROM one NATURAL JOIN none", ["a", "c"], []),
        ("SELECT * FROM t NATURAL JOIN one NATURAL JOIN u", ["F", "k", "a", "v"], [(10, 1, 1, 1)]),
        ("SELECT * FROM t NATURAL JOIN (one NATURAL JOIN u)", ["F", "k", "a", "v"],
         [(10, 1, 1, 1)]),
        (("WITH c AS (SELECT * FROM one NATURAL JOIN other), d AS (SELECT a AS k, b FROM c)"
          " SELECT * FROM d NATURAL JOIN t WHERE b = 5"), ["k", "b", "F"], [(1, 5, 10)]),
        ("SELECT 'x NATURAL JOIN y' AS s, a FROM one NATURAL JOIN none UNION ALL SELECT 'z', 2",
         ["s", "a"], [("z", 2)]),
        ("SELECT k FROM t WHERE k IN (SELECT a FROM one NATURAL JOIN other)", ["k"], [(1,)]),
    ],
)  # fmt: skip
def test_columns_that_are_compared_come_first(
    query: str, names: list[str], rows: list[tuple[object, ...]]
) -> None:
    assert _found(query) == (names, rows)


def test_a_parameter_of_a_side_is_bound() -> None:
    query = "SELECT * FROM (SELECT * FROM t WHERE k = :k) JOIN u USING (f)"
    found = deltalog.connect(_TABLES).sql(query, {"k": 1}).to_arrow()
    assert found.to_pylist() == [{"F": 10, "k": 1, "v": 1}]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT n FROM floats JOIN doubles USING (n, f)", [(2,)]),
        ("SELECT long.f FROM long JOIN whole USING (f)", [(1,)]),
        ("SELECT f FROM doubles FULL JOIN whole USING (f)", [(0.1,), (1.0,), (16777216.0,),
                                                             (16777217.0,)]),
    ],
)  # fmt: skip
def test_numbers_are_compared_as_spark_does(query: str, rows: list[tuple[object, ...]]) -> None:
    assert _found(query)[1] == rows


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 FROM floats JOIN whole USING (f)", "f of float and of integer"),
        ("SELECT * FROM floats NATURAL JOIN whole", "character 35: columns f of float and of int"),
        ("SELECT * FROM floats JOIN decimals USING (f)", "join ON a condition"),
        ("SELECT * FROM long JOIN texts USING (f)", "f of long and of string"),
        ("SELECT 1 FROM maps JOIN maps AS m USING (f)", "map<.*> cannot be compared: they have"),
        ("SELECT n FROM maps NATURAL JOIN maps AS m", "they have maps"),
        ("SELECT 1 FROM lists JOIN lists AS m USING (f)", "they have maps"),
        ("SELECT k FROM t NATURAL LEFT SEMI JOIN w", "cannot be NATURAL and SEMI"),
        ("SELECT k FROM t NATURAL LEFT ANTI JOIN one", "cannot be NATURAL and ANTI"),
        ("SELECT * FROM decimals FULL JOIN whole USING (f)", "cannot be joined by name"),
        ("SELECT * FROM t JOIN u USING (nothing)", "nothing"),
        ("SELECT x.* FROM t JOIN u USING (f)", "no table of this join is called x"),
        ("SELECT * EXCEPT (z) FROM t JOIN u USING (f)", "the star has no column z"),
        ("SELECT t.* EXCEPT (k, f) FROM t JOIN u USING (f)", "EXCEPT removes all columns"),
        ("SELECT * FROM t JOIN w ON true JOIN w AS x USING (k)", "k"),
        ("SELECT * FROM t JOIN u USING (f) LATERAL VIEW explode(array(1)) e AS y", "LATERAL"),
    ],
)  # fmt: skip
def test_what_is_not_joined_as_spark_does_is_refused(query: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _rows(query)


def test_a_recursion_may_join_by_names() -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT 1 AS k, 0 AS depth UNION ALL"
        " SELECT k, depth + 1 FROM r JOIN t USING (k) WHERE depth < 3) SELECT depth FROM r"
    )
    assert _found(query)[1] == [(0,), (1,), (2,), (3,)]


def test_a_star_in_a_recursion_gives_the_columns_in_the_order_of_its_first_query() -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT 10 AS f, 0 AS depth UNION ALL SELECT q.* FROM"
        " (SELECT * FROM (SELECT depth + 1 AS depth, f FROM r WHERE depth < 2) JOIN t USING (f)) q"
        " WHERE false) SELECT * FROM r"
    )
    with pytest.raises(InvalidInputError, match=r"(?i)columns"):
        _rows(query)


@pytest.mark.parametrize("text", ["deltalog_mark_0_", "deltalog_natural_0_ ", "deltalog_mark_9_"])
def test_texts_stay_whatever_names_they_have(text: str) -> None:
    rows = pa.table({"v": [2]})
    query = f"SELECT '{text}' AS a, pow(v, 2) AS b FROM t NATURAL JOIN t AS u"
    assert deltalog.sql(query, t=rows).to_pylist() == [{"a": text, "b": 4.0}]
