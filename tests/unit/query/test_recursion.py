"""Recursive queries end at the limits of Spark, with an error that names the query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError

_EDGES = pa.table({"s": [1, 2, 3, 1], "d": [2, 3, 1, 4]})


def _rows(query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in deltalog.sql(query, t=_EDGES).to_pylist()]


def _series(condition: str, clause: str = "", union: str = "UNION ALL") -> str:
    return f"WITH RECURSIVE r(n) {clause} AS (SELECT 1 {union} SELECT n + 1 FROM r {condition})"


@pytest.mark.parametrize("union", ["UNION ALL", "UNION"])
def test_a_recursion_may_have_100_levels(union: str) -> None:
    query = _series("WHERE n < 100", union=union)
    assert _rows(f"{query} SELECT count(*), max(n) FROM r") == [(100, 100)]


@pytest.mark.parametrize("union", ["UNION ALL", "UNION"])
@pytest.mark.parametrize("condition", ["WHERE n < 101", ""])
def test_a_recursion_with_more_levels_fails(condition: str, union: str) -> None:
    with pytest.raises(InvalidInputError, match=r"WITH RECURSIVE r .* 100 levels.*LEVEL 200 AS"):
        _rows(f"{_series(condition, union=union)} SELECT max(n) FROM r")


@pytest.mark.parametrize("union", ["UNION ALL", "UNION"])
def test_a_clause_changes_the_limit_of_levels(union: str) -> None:
    query = _series("WHERE n < 300", "MAX RECURSION LEVEL 300", union)
    assert _rows(f"{query} SELECT max(n) FROM r") == [(300,)]
    query = _series("WHERE n < 300", "MAX RECURSION LEVEL 299", union)
    with pytest.raises(InvalidInputError, match=r"299 levels"):
        _rows(f"{query} SELECT max(n) FROM r")


def test_each_recursion_has_its_own_limit() -> None:
    queries = (
        "WITH RECURSIVE r(n) MAX RECURSION LEVEL 120 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r"
        " WHERE n < 120), q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < {}) "
        "SELECT (SELECT count(*) FROM r) AS r, (SELECT count(*) FROM q) AS q"
    )
    assert _rows(queries.format(100)) == [(120, 100)]
    with pytest.raises(InvalidInputError, match=r"WITH RECURSIVE q .* 100 levels"):
        _rows(queries.format(101))


@pytest.mark.parametrize("clause", ["MAX RECURSION LEVEL", "MAX RECURSION LEVEL x"])
def test_the_limit_must_be_a_number(clause: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a number of levels"):
        _rows(f"{_series('', clause)} SELECT * FROM r")


def test_a_recursion_with_too_many_rows_fails() -> None:
    query = (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r"
        " CROSS JOIN (VALUES (1), (2)) AS v) SELECT count(*) FROM r"
    )
    with pytest.raises(InvalidInputError, match=r"WITH RECURSIVE r .* 1,000,000.*LIMIT"):
        _rows(query)


def test_a_limit_reads_only_the_first_levels() -> None:
    assert _rows(f"{_series('')} SELECT n FROM r LIMIT 7") == [(n,) for n in range(1, 8)]


@pytest.mark.parametrize(
    ("anchor", "step"),
    [
        ("SELECT s, d FROM t WHERE s = 1", "SELECT t.s, t.d FROM t JOIN r ON t.s = r.d"),
        ("SELECT * FROM t WHERE s = 1", "SELECT t.* FROM t JOIN r ON t.s = r.d"),
        ("SELECT * FROM t WHERE s = 1", "SELECT t.s, t.d + 0 FROM t, r WHERE t.s = r.d"),
    ],
)
def test_union_ends_at_a_cycle(anchor: str, step: str) -> None:
    for name in ("r", "r(s, d)"):
        found = _rows(f"WITH RECURSIVE {name} AS ({anchor} UNION {step}) SELECT * FROM r")
        assert sorted(found) == [(1, 2), (1, 4), (2, 3), (3, 1)]


def test_union_all_fails_at_a_cycle() -> None:
    with pytest.raises(InvalidInputError, match="100 levels"):
        _rows(
            "WITH RECURSIVE r AS (SELECT * FROM t UNION ALL SELECT t.* FROM t JOIN r ON t.s = r.d"
            " WHERE t.d < 4) SELECT count(*) FROM r"
        )


def test_null_rows_are_equal_in_a_union() -> None:
    query = (
        "WITH RECURSIVE r(a, b) AS (VALUES (1, 'x'), (1, 'x'), (NULL, NULL)"
        " UNION SELECT a % 2 + 1, b FROM r) SELECT a, b FROM r"
    )
    found = sorted(_rows(query), key=str)
    assert found == [(1, "x"), (2, "x"), (None, None)]


def test_stars_joins_and_subqueries_see_only_the_columns_of_the_query() -> None:
    text = "WITH RECURSIVE r AS (SELECT 1 AS n, 'a' AS p UNION ALL SELECT n + 1, p FROM r q"
    query = f"{text} WHERE n < 3)"
    assert _rows(f"{query} SELECT * FROM r") == [(1, "a"), (2, "a"), (3, "a")]
    assert _rows(f"{query} SELECT count(*) FROM r NATURAL JOIN r AS q") == [(3,)]
    assert _rows(f"{query} SELECT a.*, b.n AS m FROM r a JOIN r b USING (n) WHERE n = 2") == [
        (2, "a", 2)
    ]
    assert _rows(f"{query} SELECT * FROM r AS q(k, v) WHERE k IN (SELECT n FROM r)")[2:] == [
        (3, "a")
    ]
    doubled = "SELECT 1 AS n UNION ALL SELECT n + (SELECT max(n) FROM r) FROM r WHERE n < 5"
    assert _rows(f"WITH RECURSIVE r AS ({doubled}) SELECT * FROM r") == [(1,), (2,), (4,), (8,)]


def test_a_recursion_in_a_subquery_has_the_limit() -> None:
    with pytest.raises(InvalidInputError, match="100 levels"):
        _rows(f"SELECT ({_series('')} SELECT max(n) FROM r) + 1")


@pytest.mark.parametrize(
    "recursion",
    [
        "((SELECT 1 UNION ALL SELECT n + 1 FROM r))",
        "((SELECT 1) UNION ALL (SELECT n + 1 FROM r))",
        "(SELECT 1 UNION ALL SELECT 5 UNION ALL SELECT n + 1 FROM r)",
        "(SELECT 1 UNION ALL (WITH x AS (SELECT * FROM r) SELECT n + 1 FROM x))",
        "(SELECT 1 UNION ALL (SELECT n + 1 FROM r UNION ALL SELECT n + 2 FROM r WHERE n < 2))",
    ],
)
def test_the_limit_holds_in_each_form_of_a_recursion(recursion: str) -> None:
    with pytest.raises(InvalidInputError, match="100 levels"):
        _rows(f"WITH RECURSIVE r(n) AS {recursion} SELECT * FROM r")


def test_the_error_quotes_a_name_as_the_query_must() -> None:
    query = "WITH RECURSIVE `my r`(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM `my r`)"
    with pytest.raises(InvalidInputError, match="WITH RECURSIVE `my r` MAX RECURSION LEVEL"):
        _rows(f"{query} SELECT max(n) FROM `my r`")
