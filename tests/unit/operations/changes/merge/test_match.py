"""Several rows of the source for one row of the table, and the other way round."""

from __future__ import annotations

import pytest

from deltalog.errors import AmbiguousMergeError
from tests.support.merging import pairs, rows
from tests.support.statements import (
    StatedTable,
    matched_delete,
    matched_update,
)


def test_several_rows_for_one_are_an_error_that_shows_keys(table: StatedTable) -> None:
    before = table.rows()
    with pytest.raises(AmbiguousMergeError, match=r"1 row\(s\).*'id': 2.*'x': 5.*'x': 6"):
        table.merge([*rows(2, x=5), *rows(2, x=6)], "t.id = s.id", matched_update())
    assert table.rows() == before


def test_several_rows_are_shown_each_with_its_own(table: StatedTable) -> None:
    source = [*rows(1, x=5), *rows(2, x=7), *rows(1, x=6), *rows(2, x=8)]
    with pytest.raises(AmbiguousMergeError) as found:
        table.merge(source, "t.id = s.id", matched_update())
    text = str(found.value)
    assert "2 row(s)" in text
    assert [text.count(f"'x': {x}") for x in (5, 6, 7, 8)] == [1, 1, 1, 1]
    assert text.index("'x': 5") < text.index("'x': 6") < text.index("'x': 7") < text.index("'x': 8")


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


def test_several_rows_that_delete_on_a_condition_are_an_error_as_in_delta_spark(
    table: StatedTable,
) -> None:
    before = table.rows()
    with pytest.raises(AmbiguousMergeError):
        table.merge(rows(2, 2), "t.id = s.id", matched_delete("t.id > 0"))
    assert table.rows() == before


def test_one_row_of_the_source_may_change_many(table: StatedTable) -> None:
    table.merge(rows(2), "t.id >= s.id", matched_update(x="9"))
    assert pairs(table) == [(1, 0), (2, 9), (3, 9), (4, 9)]
