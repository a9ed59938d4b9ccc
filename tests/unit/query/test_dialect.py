"""DuckDB's answers to Spark's words are Spark's, by its reference and its ANSI mode."""

from __future__ import annotations

from typing import Any

import pytest

import deltalog
from deltalog.errors import InvalidInputError


def _rows(sql: str) -> list[tuple[Any, ...]]:
    found = deltalog.sql(sql).to_arrow()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 5 / 2, 7 DIV 2, -7 DIV 2, 7 % 3", [(2.5, 3, -3, 1)]),
        ("SELECT 1 / x FROM VALUES (2), (4) AS t(x)", [(0.5,), (0.25,)]),
        ("SELECT TRY_CAST('x' AS INT), CAST('5' AS INT)", [(None, 5)]),
        ("SELECT nvl(NULL, 1), coalesce(NULL, 2), if(true, 1, 2)", [(1, 2, 1)]),
        ("SELECT array(1, 2)[0], element_at(array(1, 2), 1), size(array(1, 2))", [(1, 1, 2)]),
        ("SELECT NULL <=> NULL, 'abc' RLIKE 'b+'", [(True, True)]),
        ("SELECT x FROM VALUES (2), (NULL), (1) AS t(x) ORDER BY x", [(None,), (1,), (2,)]),
        ("SELECT x FROM VALUES (2), (NULL) AS t(x) ORDER BY x DESC", [(2,), (None,)]),
        ("SELECT 'a\\'b', 'it''s', \"double\", r'raw\\n'", [("a'b", "it's", "double", "raw\\n")]),
        ("SELECT collect_list(x) FROM VALUES (1), (NULL), (2) AS t(x)", [([1, 2],)]),
        ("SELECT transform(array(1, 2), x -> x + 1)", [([2, 3],)]),
        ("SELECT /*+ BROADCAST(t) */ x FROM VALUES (1) AS t(x)", [(1,)]),
        ("SELECT * FROM range(3)", [(0,), (1,), (2,)]),
        ("SELECT id FROM range(1, 7, 2) AS r", [(1,), (3,), (5,)]),
        ("SELECT r.id FROM range(0, 2, 1, 8) r", [(0,), (1,)]),
        ("SELECT * FROM generate_series(1, 3)", [(1,), (2,), (3,)]),
        ("SELECT n FROM generate_series(1, 5, 2) AS g(n)", [(1,), (3,), (5,)]),
        ("SELECT * FROM explode(array('a', 'b'))", [("a",), ("b",)]),
        ("SELECT x FROM VALUES (array(1, 2)) AS t(xs) LATERAL VIEW explode(xs) e AS x",
         [(1,), (2,)]),
        ("SELECT y FROM VALUES (1), (2) AS t(x) CROSS JOIN LATERAL (SELECT x * 10 AS y)",
         [(10,), (20,)]),
        ("SELECT 'a\\\\''b', \"x\"\"y''z\", '\\\\'", [("a\\'b", "x\"y''z", "\\")]),
        ("SELECT a.x FROM VALUES (1), (2) AS a(x) LEFT SEMI JOIN VALUES (2) AS b(x) ON a.x = b.x",
         [(2,)]),
        ("SELECT a.x FROM VALUES (1), (2) AS a(x) LEFT ANTI JOIN VALUES (2) AS b(x) ON a.x = b.x",
         [(1,)]),
        ("SELECT 1 MINUS SELECT 1", []),
    ],
)  # fmt: skip
def test_answers_are_sparks(sql: str, rows: list[tuple[Any, ...]]) -> None:
    assert _rows(sql) == rows


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("VALUES (1, 'a'), (2, 'b')", ["col1", "col2"]),
        ("SELECT * FROM VALUES (1, 'a')", ["col1", "col2"]),
        ("SELECT * FROM VALUES 1, 2 AS t", ["col1"]),
        ("SELECT * FROM VALUES (1, 2) AS t(a, b)", ["a", "b"]),
        ("SELECT * FROM range(1)", ["id"]),
    ],
)
def test_names_of_columns_are_sparks(sql: str, names: list[str]) -> None:
    assert deltalog.sql(sql).schema.names == names


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT 1 / 0", "division by zero"),
        ("SELECT 1 / x FROM VALUES (1), (0) AS t(x)", "division by zero"),
        ("SELECT 1.5 / (x - x) FROM VALUES (1) AS t(x)", "division by zero"),
        ("SELECT 1 DIV 0", "division by zero"),
        ("SELECT 1 % 0", "division by zero"),
        ("SELECT CAST('x' AS INT)", "cannot cast 'x' to integer"),
        ("SELECT 'x'::INT", "cannot cast 'x' to integer"),
        ("SELECT CAST(300 AS TINYINT)", "out of range"),
        ("SELECT 2147483647 + 1", "Overflow"),
    ],
)
def test_what_ansi_spark_refuses_is_refused(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        deltalog.sql(sql).to_arrow()
