"""What becomes of the rows that a merge found."""

from __future__ import annotations

from deltalog.expressions import col, lit
from deltalog.operations.changes.request import Action, Clause, When
from tests.support.merging import pairs, rows
from tests.support.statements import (
    StatedTable,
    by_source_delete,
    by_source_update,
    insert,
    matched_delete,
    matched_update,
)


def test_delete_removes_rows_that_match(table: StatedTable) -> None:
    merged = table.merge(rows(2, 3, 9), "t.id = s.id", matched_delete("s.id < 3"))
    assert pairs(table) == [(1, 0), (3, 0), (4, 0)]
    assert merged.rows.deleted == 1


def test_insert_adds_rows_that_match_nothing(table: StatedTable) -> None:
    merged = table.merge(
        rows(3, 8, 9, x=7), "t.id = s.id", insert("s.id < 9", id="s.id", x="s.x + 1"), insert()
    )
    assert pairs(table) == [(1, 0), (2, 0), (3, 0), (4, 0), (8, 8), (9, 7)]
    assert merged.rows.inserted == 2


def test_rows_without_a_row_of_the_source_change_too(table: StatedTable) -> None:
    merged = table.merge(
        rows(2, x=7),
        "t.id = s.id",
        by_source_delete("t.id = 1"),
        by_source_update("id > 3", x="x - 1"),
    )
    assert pairs(table) == [(2, 0), (3, 0), (4, -1)]
    assert (
        merged.rows.deleted_not_matched_by_source,
        merged.rows.updated_not_matched_by_source,
    ) == (1, 1)


def test_all_clauses_together_and_the_feed_tells_it(table: StatedTable) -> None:
    table.merge(
        rows(1, 2, 9, x=7),
        "t.id = s.id",
        matched_delete("s.id = 1"),
        matched_update(),
        insert(),
        by_source_delete("id = 3"),
        by_source_update(x="-1"),
    )
    assert pairs(table) == [(2, 7), (4, -1), (9, 7)]
    assert [tuple(row.values()) for row in table.changes()] == [
        (1, 0, "delete"),
        (2, 0, "update_preimage"),
        (2, 7, "update_postimage"),
        (3, 0, "delete"),
        (4, -1, "update_postimage"),
        (4, 0, "update_preimage"),
        (9, 7, "insert"),
    ]


def test_inserts_and_deletes_alone_are_told_by_the_files(table: StatedTable) -> None:
    table.merge(rows(1, 9), "t.id = s.id", matched_delete(), insert())
    found = [(row["id"], row["_change_type"]) for row in table.changes()]
    assert found == [(1, "delete"), (9, "insert")]


def test_a_merge_that_only_inserts_touches_no_file(table: StatedTable) -> None:
    paths = set(table.files()["path"].to_pylist())
    merged = table.merge(rows(2, 9), "t.id = s.id", insert())
    assert paths < set(table.files()["path"].to_pylist())
    assert (merged.files.num_removed_files, merged.num_change_files) == (0, 0)


def test_conditions_and_values_may_be_expressions_and_parameters(table: StatedTable) -> None:
    table.merge(
        rows(1, 2, x=7),
        "t.id = s.id AND s.x = :seven",
        Clause(
            when=When.MATCHED,
            action=Action.UPDATE,
            values={"x": col("s.x") + lit(1)},
            condition=col("t.id") > 1,
        ),
        parameters={"seven": 7},
    )
    assert pairs(table) == [(1, 0), (2, 8), (3, 0), (4, 0)]


def test_values_may_be_constants(table: StatedTable) -> None:
    table.merge(rows(1), "t.id = s.id", matched_update(x=5))
    assert pairs(table)[0] == (1, 5)
