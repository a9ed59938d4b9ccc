"""New versions of rows, and new rows."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import (
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
)
from deltalog.expressions import parse_type
from deltalog.operations.changes.request import Action, Clause, When
from deltalog.operations.merge import upsert
from deltalog.schema import Field
from tests.support.merging import NUMBERS, pairs, rows
from tests.support.statements import (
    FEED,
    ROW_IDS,
    VECTORS,
    StatedTable,
    by_source_update,
    insert,
    matched_delete,
    matched_update,
)

MODES = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])


def test_update_all_takes_the_values_of_the_source(table: StatedTable) -> None:
    merged = table.merge(rows(2, 3, 9, x=7), "t.id = s.id", matched_update())
    assert pairs(table) == [(1, 0), (2, 7), (3, 7), (4, 0)]
    assert (merged.rows.updated, merged.rows.inserted) == (2, 0)


def test_update_computes_from_both_rows(table: StatedTable) -> None:
    table.merge(
        rows(2, x=7), "t.id = s.id", matched_update(x="t.id * 100 + s.x", id="source.id + 50")
    )
    assert pairs(table) == [(1, 0), (3, 0), (4, 0), (52, 207)]


def test_insert_leaves_other_columns_null(table: StatedTable) -> None:
    table.merge(rows(9, x=7), "t.id = s.id", insert(id="s.id"))
    assert (9, None) in pairs(table)


def test_equal_rows_of_the_source_are_inserted_each(table: StatedTable) -> None:
    table.merge(rows(9, 9), "t.id = s.id", insert())
    assert pairs(table)[-2:] == [(9, 0), (9, 0)]


@pytest.mark.protocol("ROWID-13", "ROWID-15")
@MODES
def test_row_ids_stay_and_new_rows_get_fresh_ones(properties: dict[str, str]) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), properties={**properties, **ROW_IDS})
    table.run_merge(rows(2, 9, x=7), upsert(None, "id"))
    columns = ("id", "_metadata.row_id", "_metadata.row_commit_version")
    found = [tuple(row.values()) for row in table.rows(*columns)]
    assert found[:3] == [(1, 0, 1), (2, 1, 2), (3, 2, 1)]
    fresh = found[3][1]
    assert found[3] == (9, fresh, 2)
    assert fresh > 2


def test_columns_that_are_left_out_stay_or_have_their_default() -> None:
    table = StatedTable(NUMBERS, rows(1))
    table.merge(
        rows(1, 9, x=7),
        "t.id = s.id",
        Clause(when=When.MATCHED, action=Action.UPDATE, except_columns=("x",)),
        Clause(when=When.NOT_MATCHED, action=Action.INSERT, except_columns=("X",)),
    )
    assert pairs(table) == [(1, 0), (9, None)]


IDENTITY = {
    "delta.identity.start": 10,
    "delta.identity.step": 5,
    "delta.identity.allowExplicitInsert": False,
}


def having(*ids: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": number, **more} for number in ids]


def test_values_are_cast_to_the_columns_types() -> None:
    table = StatedTable({"id": "int", "x": "byte"}, having(1, 2, x=0))
    table.run_merge(having(1, x="7"), upsert(None, "id"))
    assert table.values("x") == [0, 7]
    with pytest.raises(SchemaMismatchError):
        table.run_merge(having(1, x=300), upsert(None, "id"))
    table.merge(having(1, x=300), "t.id = s.id", matched_update(), error_on_type_mismatch=False)
    assert table.values("x") == [None, 0]


def test_generated_columns_of_new_and_changed_rows() -> None:
    columns = [
        Field("id", "long"),
        Field("x", "long"),
        Field("twice", "long", metadata={"delta.generationExpression": "x * 2"}),
    ]
    table = StatedTable(columns, having(1, 2, x=1))
    table.run_merge(having(2, 3, x=5), upsert(None, "id"))
    assert table.values("twice") == [2, 10, 10]
    table.merge(having(1), "t.id = s.id", by_source_update(x="0"))
    assert table.values("twice") == [0, 0, 2]
    with pytest.raises(ConstraintViolationError, match="generated column 'twice'"):
        table.run_merge(having(2, x=5, twice=11), upsert(None, "id"))


@pytest.mark.protocol("IDN-04", "IDN-08")
def test_identity_columns_go_on_over_several_clauses() -> None:
    columns = [Field("n", "long", metadata=IDENTITY), *StatedTable.fields(NUMBERS)]
    table = StatedTable(columns, having(1, 2, x=0))
    source = having(2, 3, 4, 5, x=7)
    for _ in range(2):
        table.merge(
            source,
            "t.id = s.id",
            matched_update(x="s.x"),
            insert("s.id = 4", id="s.id", x="40"),
            insert(id="s.id", x="s.x"),
        )
    assert [tuple(row.values()) for row in table.rows()] == [
        (10, 1, 0), (15, 2, 7), (25, 3, 7), (20, 4, 7), (30, 5, 7),
    ]  # fmt: skip
    table.append(having(6, x=0))
    assert max(table.values("n")) == 35
    with pytest.raises(InvalidInputError, match="identity column"):
        table.run_merge(having(1, n=5), upsert(None, "id"))


def test_defaults_of_columns_that_the_source_lacks() -> None:
    columns = [Field("id", "long"), Field("x", "long", metadata={"CURRENT_DEFAULT": "40 + 2"})]
    table = StatedTable(
        columns, having(1, x=0), properties={"delta.feature.allowColumnDefaults": "supported"}
    )
    table.run_merge(having(1, 2), upsert(None, "id"))
    assert table.values("x") == [0, 42]


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])
def test_rules_hold_for_new_and_changed_rows_and_nothing_is_left(
    properties: dict[str, str],
) -> None:
    table = StatedTable(
        [Field("id", "long", nullable=False), Field("s", parse_type("struct<a:long>"))],
        [{"id": 1, "s": {"a": 1}}, {"id": 2, "s": {"a": 1}}],
        properties={**properties, **FEED, "delta.constraints.small": "s.a < 10"},
    )
    paths = {file.path for file in table.store.list_all("")}
    for source, clauses, says in (
        ([{"id": 1, "s": {"a": 11}}], [matched_update()], "small"),
        ([{"id": 3, "s": {"a": 11}}], [insert()], "small"),
        ([{"id": 1, "s": None}], [matched_update(id="NULL")], "NOT NULL"),
        (
            [{"id": 1, "s": {"a": 3}}],
            [insert(), by_source_update(s="named_struct('a', 99L)")],
            "small",
        ),
    ):
        with pytest.raises(ConstraintViolationError, match=says):
            table.merge(source, "t.id = s.id", *clauses)
    assert {file.path for file in table.store.list_all("")} == paths


def test_rows_move_between_partitions_and_partition_columns_are_compared() -> None:
    table = StatedTable(
        {"id": "long", "p": "string"},
        [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}, {"id": 3, "p": None}],
        partition_by=["p"],
        properties={**VECTORS, **FEED},
    )
    source = [{"id": 1, "p": "z"}, {"id": 4, "p": None}]
    table.run_merge(source, upsert(None, "id"))
    table.merge([{"p": "b"}], "t.p <=> s.p", matched_delete())
    table.merge([{"p": None}], "t.p = s.p", matched_delete())
    assert [tuple(row.values()) for row in table.rows()] == [(1, "z"), (3, None), (4, None)]
