from __future__ import annotations

import pytest

from deltalog.expressions import col, columns, conjuncts, is_deterministic, map_columns, parse_sql
from deltalog.expressions.nodes import Call, Column
from deltalog.expressions.trees import children, walk

ROUND = (
    "CASE WHEN a.b > 1 AND c IN (d, 2) THEN upper(e) ELSE CAST(f AS INT) END LIKE g OR h IS NULL"
)


def test_columns_of_every_node_are_found() -> None:
    found = columns(parse_sql(ROUND))
    assert found == {("a", "b"), *((name,) for name in "cdefgh")}


def test_columns_of_every_node_are_replaced() -> None:
    renamed = map_columns(parse_sql(ROUND), lambda column: Column(("s", *column.path)))
    assert columns(renamed) == {("s", "a", "b"), *(("s", name) for name in "cdefgh")}


def test_walking_comes_to_parents_first() -> None:
    tree = parse_sql("a = 1 AND b = 2")
    assert next(walk(tree)) is tree
    assert len(list(walk(tree))) == 7
    assert len(children(tree)) == 2


@pytest.mark.parametrize(
    ("sql", "parts"),
    [("a AND (b AND c)", 3), ("a OR b", 1), ("NOT (a AND b)", 1), ("a", 1)],
)
def test_conjuncts(sql: str, parts: int) -> None:
    assert len(conjuncts(parse_sql(sql))) == parts


def test_the_present_makes_a_value_differ() -> None:
    assert is_deterministic(col("a") > 1)
    assert not is_deterministic(col("a") > Call("NOW"))
