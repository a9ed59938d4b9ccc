"""The model of a simulated table: what statements make of rows."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.testing.simulation.model import (
    Condition,
    Kind,
    Statement,
    TableState,
    differences,
)

ROWS = {n: {"id": n, "p": "ab"[n % 2], "v": 10 * n} for n in range(4)}
TABLE = TableState(frozenset({"id", "p", "v"}), ROWS)
NEW = ({"id": 2, "p": "b", "v": 7}, {"id": 9, "p": "b", "v": 8})


@pytest.mark.parametrize(
    ("kind", "condition", "expected"),
    [
        ("append", None, {0: 0, 1: 10, 2: 7, 3: 30, 9: 8}),
        ("upsert", None, {0: 0, 1: 10, 2: 7, 3: 30, 9: 8}),
        ("merge delete", None, {0: 0, 1: 10, 3: 30}),
        ("overwrite", None, {2: 7, 9: 8}),
        ("replace where", Condition("p", "b", "b"), {0: 0, 2: 7, 9: 8}),
        ("delete", Condition("v", 10, 20), {0: 0, 3: 30}),
        ("update", Condition("id", 1, 1), {0: 0, 1: 15, 2: 20, 3: 30}),
        ("compact", None, {0: 0, 1: 10, 2: 20, 3: 30}),
    ],
)
def test_what_a_statement_makes_of_rows(
    kind: Kind, condition: Condition | None, expected: dict[int, int]
) -> None:
    has_rows = kind not in {"delete", "update", "compact"}
    statement = Statement(
        number=1,
        kind=kind,
        rows=NEW if has_rows else (),
        condition=condition or Condition(None),
        added=5,
    )
    found = statement.applied_to(TABLE)
    assert {n: row["v"] for n, row in found.rows.items()} == expected
    assert found.columns == TABLE.columns


def test_new_columns_are_null_in_old_rows() -> None:
    wide: tuple[dict[str, Any], ...] = ({"id": 9, "p": "a", "v": 1, "w": 5},)
    found = Statement(number=1, kind="append wide", rows=wide).applied_to(TABLE)
    assert [row["w"] for row in found.rows.values()] == [None] * 4 + [5]
    found = Statement(number=3, kind="add column").applied_to(found)
    assert found.columns == {"id", "p", "v", "w", "c3"}
    assert {row["c3"] for row in found.rows.values()} == {None}
    assert Statement(number=4, kind="restore").applied_to(found, TABLE) == TABLE


def test_a_reader_that_sees_something_else_is_told_what() -> None:
    rows = [*ROWS.values()]
    assert differences(TABLE, ["v", "p", "id"], rows) == []
    wrong = [rows[0], rows[0], {**rows[1], "v": 11}, rows[3], {"id": 5, "p": "a", "v": 0}]
    assert differences(TABLE, ["id", "p"], wrong) == [
        "columns ['id', 'p'], expected ['id', 'p', 'v']",
        "row 0 twice",
        "row 2 is missing",
        "row 5 is too many",
        "row 1 is {'id': 1, 'p': 'b', 'v': 11}, expected {'id': 1, 'p': 'b', 'v': 10}",
    ]
