"""Queries of many conditions: DuckDB is asked for the types of all of them at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog.query import running
from deltalog.query.query_trees import is_safe

ROWS = pa.table({"a": range(1000), "s": [str(number) for number in range(1000)]})


def asked(monkeypatch: pytest.MonkeyPatch, query: str, **sources: Any) -> tuple[Any, int]:
    """The one number that a query gives, and how often DuckDB was asked for types."""
    count = 0
    decide = running._Run._decide

    def counted(*arguments: Any) -> None:
        nonlocal count
        count += 1
        decide(*arguments)

    monkeypatch.setattr(running._Run, "_decide", counted)
    (row,) = deltalog.sql(query, **sources).to_pylist()
    return next(iter(row.values())), count


@pytest.mark.parametrize(
    ("condition", "expected", "most"),
    [
        (" AND ".join(f"a <> {number}" for number in range(300)), 700, 1),
        (" OR ".join(f"a = {number}" for number in range(300)), 300, 1),
        (" OR ".join(f"s LIKE '{number}'" for number in range(300)), 300, 1),
        (" OR ".join(f"(a = {one} AND s = '{one}')" for one in range(200)), 200, 2),
        (" AND ".join(f"t.a + {one} > 0" for one in range(200)), 999, 1),
        (" OR ".join(f"a > {one} AND a < {one + 2}" for one in range(0, 300, 3)), 100, 1),
    ],
)
def test_conditions_of_a_chain_have_their_types_at_once(
    monkeypatch: pytest.MonkeyPatch, condition: str, expected: int, most: int
) -> None:
    query = f"SELECT count(*) AS n FROM t WHERE {condition}"
    found, count = asked(monkeypatch, query, t=ROWS)
    assert found == expected
    assert count <= most


def test_a_chain_of_another_query_has_its_own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.table({"a": ["1.0", "2", "x"]})
    query = (
        "SELECT count(*) + (SELECT count(*) FROM u WHERE a = '1.0' OR a = '2') AS n "
        "FROM t WHERE a = 3 OR a = 4"
    )
    found, _ = asked(monkeypatch, query, t=ROWS, u=texts)
    assert found == 4


def test_the_same_text_in_another_query_is_another_part() -> None:
    texts = pa.table({"a": ["1", "2", "3"]})
    query = (
        "SELECT (SELECT max(a + 1) FROM u WHERE a = 1 OR a = 3) AS u, "
        "(SELECT max(a + 1) FROM t WHERE a = 1 OR a = 3) AS t, max(a + 1) AS v FROM t"
    )
    (row,) = deltalog.sql(query, t=ROWS, u=texts).to_pylist()
    assert row == {"u": 4, "t": 4, "v": 1000}


def test_long_chains_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def counted(node: Any) -> bool:
        nonlocal count
        count += 1
        return is_safe(node)

    monkeypatch.setattr("deltalog.query.query_trees.is_safe", counted)
    condition = " OR ".join(f"(a = {one} AND s = '{one}')" for one in range(200))
    query = f"SELECT count(*) AS n FROM t WHERE {condition}"
    assert deltalog.sql(query, t=ROWS).to_pylist() == [{"n": 200}]
    assert count < 100 * 200
