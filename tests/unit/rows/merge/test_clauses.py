"""What each clause of a merge does, alone and beside others."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import AmbiguousMergeError, InvalidInputError
from deltalog.expressions import col, lit
from deltalog.rows.changes import Action, Clause, RowChanges, When
from deltalog.verbs.merge import Merge, Merged, upsert
from tests.support.statements import (
    FEED,
    ROW_IDS,
    VECTORS,
    StatedTable,
    by_source_delete,
    by_source_update,
    insert,
    matched_delete,
    matched_update,
)

MODES = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])
NUMBERS = {"id": "long", "x": "long"}


def rows(*ids: int, x: int = 0) -> list[dict[str, Any]]:
    return [{"id": number, "x": x} for number in ids]


def pairs(table: StatedTable) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.rows()]


@pytest.fixture(params=[{}, VECTORS], ids=["rewritten", "masked"])
def table(request: pytest.FixtureRequest) -> StatedTable:
    return StatedTable(NUMBERS, rows(1, 2), rows(3, 4), properties={**FEED, **request.param})


def test_update_all_takes_the_values_of_the_source(table: StatedTable) -> None:
    merged = table.merge(rows(2, 3, 9, x=7), "t.id = s.id", matched_update())
    assert pairs(table) == [(1, 0), (2, 7), (3, 7), (4, 0)]
    assert (merged.rows.updated, merged.rows.inserted) == (2, 0)


def test_update_computes_from_both_rows(table: StatedTable) -> None:
    table.merge(
        rows(2, x=7), "t.id = s.id", matched_update(x="t.id * 100 + s.x", id="source.id + 50")
    )
    assert pairs(table) == [(1, 0), (3, 0), (4, 0), (52, 207)]


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


def test_insert_leaves_other_columns_null(table: StatedTable) -> None:
    table.merge(rows(9, x=7), "t.id = s.id", insert(id="s.id"))
    assert (9, None) in pairs(table)


def test_rows_without_a_row_of_the_source_change_too(table: StatedTable) -> None:
    merged = table.merge(
        rows(2, x=7),
        "t.id = s.id",
        by_source_delete("t.id = 1"),
        by_source_update("id > 3", x="x - 1"),
    )
    assert pairs(table) == [(2, 0), (3, 0), (4, -1)]
    assert (merged.rows.deleted_by_source, merged.rows.updated_by_source) == (1, 1)


def test_the_first_clause_whose_condition_holds_decides(table: StatedTable) -> None:
    table.merge(
        rows(1, 2, 3, 4, 5, 6, x=7),
        "t.id = s.id",
        matched_update("s.id = 1", x="1"),
        matched_delete("s.id <= 2"),
        matched_update("s.id <= 3", x="3"),
        insert("s.id = 5", id="s.id", x="5"),
        insert(id="s.id", x="6"),
    )
    assert pairs(table) == [(1, 1), (3, 3), (4, 0), (5, 5), (6, 6)]


def test_conditions_that_are_unknown_do_not_hold(table: StatedTable) -> None:
    source = [{"id": 1, "x": None}, {"id": 9, "x": None}]
    before = table.version
    table.merge(source, "t.id = s.id", matched_delete("s.x > 0"), insert("s.x > 0"))
    assert table.version == before


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


# --- several rows of the source for one row of the table


def test_several_rows_for_one_are_an_error_that_shows_keys(table: StatedTable) -> None:
    before = table.rows()
    with pytest.raises(AmbiguousMergeError, match=r"1 row\(s\).*'id': 2.*'x': 5.*'x': 6"):
        table.merge([*rows(2, x=5), *rows(2, x=6)], "t.id = s.id", matched_update())
    assert table.rows() == before


def test_several_rows_may_match_where_one_of_them_acts(table: StatedTable) -> None:
    source = [*rows(2, x=5), *rows(2, x=6)]
    table.merge(source, "t.id = s.id", matched_update("s.x = 6"))
    assert (2, 6) in pairs(table)


def test_several_rows_may_agree_on_deleting(table: StatedTable) -> None:
    merged = table.merge(rows(2, 2, 2), "t.id = s.id", matched_delete())
    assert merged.rows.deleted == 1
    assert pairs(table) == [(1, 0), (3, 0), (4, 0)]


def test_deleting_and_updating_the_same_row_is_an_error(table: StatedTable) -> None:
    with pytest.raises(AmbiguousMergeError):
        table.merge(
            [*rows(2, x=5), *rows(2, x=6)],
            "t.id = s.id",
            matched_delete("s.x = 5"),
            matched_update(),
        )


def test_one_row_of_the_source_may_change_many(table: StatedTable) -> None:
    table.merge(rows(2), "t.id >= s.id", matched_update(x="9"))
    assert pairs(table) == [(1, 0), (2, 9), (3, 9), (4, 9)]


def test_equal_rows_of_the_source_are_inserted_each(table: StatedTable) -> None:
    table.merge(rows(9, 9), "t.id = s.id", insert())
    assert pairs(table)[-2:] == [(9, 0), (9, 0)]


# --- metrics and ids


@MODES
def test_metrics_are_those_of_the_reference(properties: dict[str, str]) -> None:
    always = {"deltalog.maxDeletedRowsRatio": "1"}  # as the reference does
    table = StatedTable(
        NUMBERS, rows(0, 1, 2, 3, 4, 5), rows(6, 7, 8), properties={**properties, **always}
    )
    merged = table.merge(
        rows(6, 7, 10),
        "t.id = s.id",
        matched_delete("t.id = 6"),
        matched_update(x="1"),
        insert(),
        by_source_delete("t.id = 0"),
        by_source_update("t.id < 3", x="2"),
    )
    found = Merged(merged).metrics()
    expected = {
        "numSourceRows": 3,
        "numTargetRowsInserted": 1,
        "numTargetRowsUpdated": 3,
        "numTargetRowsMatchedUpdated": 1,
        "numTargetRowsNotMatchedBySourceUpdated": 2,
        "numTargetRowsDeleted": 2,
        "numTargetRowsMatchedDeleted": 1,
        "numTargetRowsNotMatchedBySourceDeleted": 1,
        "numTargetRowsCopied": 0 if properties else 4,
        "numOutputRows": 4 if properties else 8,
        "numTargetFilesAdded": 1,
        "numTargetFilesRemoved": 0 if properties else 2,
        "numTargetDeletionVectorsAdded": 2 if properties else 0,
        "numTargetDeletionVectorsRemoved": 0,
    }
    assert {name: found[name] for name in expected} == expected


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


# --- what cannot be


@pytest.mark.parametrize(
    ("clauses", "says"),
    [
        ([], "at least one WHEN clause"),
        ([matched_delete(), matched_update()], "only the last WHEN MATCHED clause"),
        ([insert(), insert()], "only the last WHEN NOT MATCHED clause"),
        ([Clause(when=When.NOT_MATCHED, action=Action.DELETE)], "no clause"),
        ([Clause(when=When.MATCHED, action=Action.INSERT)], "no clause"),
        ([Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.UPDATE)], "needs values"),
        ([Clause(when=When.MATCHED, action=Action.UPDATE, values={})], "at least one column"),
        ([matched_update(y="1")], "there is no column 'y'"),
        ([Clause(when=When.MATCHED, action=Action.UPDATE, values={"s.x": "1"})], "of the source"),
        (
            [Clause(when=When.MATCHED, action=Action.UPDATE, values={"x": "1", "t.x": "2"})],
            "assigned twice",
        ),
        ([insert(id="t.id")], "there is no row of the target"),
        ([by_source_delete("s.id = 1")], "there is no row of the source"),
        ([matched_delete("id = 1")], "ambiguous: it may be 't.id' or 's.id'"),
        ([matched_delete("t.idd = 1")], "did you mean 'target.id'"),
        ([matched_delete("idx = 1")], "did you mean"),
        ([matched_delete("t.x + 1")], "condition is expected"),
        ([Clause(when=When.MATCHED, action=Action.UPDATE, except_columns=("y",))], "no column 'y'"),
    ],
)
def test_clauses_that_mean_nothing_are_refused(
    table: StatedTable, clauses: list[Clause], says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says):
        table.merge(rows(1), "t.id = s.id", *clauses)


def test_source_and_target_need_different_names(table: StatedTable) -> None:
    with pytest.raises(InvalidInputError, match="cannot both be called"):
        table.run_merge(
            rows(1),
            Merge(
                RowChanges(
                    condition="a.id = a.id",
                    clauses=(matched_delete(),),
                    source_alias="a",
                    target_alias="A",
                )
            ),
        )


# --- forms


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


def test_upsert_by_several_keys_and_with_null_as_a_key() -> None:
    table = StatedTable({"a": "long", "b": "string", "x": "long"}, [{"a": 1, "b": None, "x": 0}])
    source = [{"a": 1, "b": None, "x": 5}, {"a": 1, "b": "y", "x": 6}]
    table.run_merge(source, upsert(None, ["a", "b"], null_safe=True))
    assert pairs(table) == [(1, None, 5), (1, "y", 6)]
    table.run_merge(source[:1], upsert(None, ["a", "b"]))
    assert pairs(table) == [(1, None, 5), (1, None, 5), (1, "y", 6)]
    with pytest.raises(InvalidInputError, match="at least one key"):
        upsert(None, [])


def test_columns_that_are_left_out_stay_or_have_their_default() -> None:
    table = StatedTable(NUMBERS, rows(1))
    table.merge(
        rows(1, 9, x=7),
        "t.id = s.id",
        Clause(when=When.MATCHED, action=Action.UPDATE, except_columns=("x",)),
        Clause(when=When.NOT_MATCHED, action=Action.INSERT, except_columns=("X",)),
    )
    assert pairs(table) == [(1, 0), (9, None)]
