"""Names in a merge's SQL, and which side they mean."""

from __future__ import annotations

from deltalog.operations.changes.request import Action, Clause, When
from deltalog.operations.merge import upsert
from tests.support.statements import (
    StatedTable,
    matched_update,
)


def test_names_are_compared_without_case() -> None:
    table = StatedTable({"Id": "long", "X": "long"}, [{"Id": 1, "X": 0}])
    table.run_merge([{"ID": 1, "x": 5}], upsert(None, "id", merge_schema=True))
    assert table.rows() == [{"Id": 1, "X": 5}]


def test_names_that_need_quotes() -> None:
    table = StatedTable(
        {"my id": "long", "a.b": "long"},
        [{"my id": 1, "a.b": 0}],
        properties={"delta.columnMapping.mode": "name"},
    )
    table.merge(
        [{"my id": 1, "a.b": 5}],
        "t.`my id` = s.`my id`",
        Clause(when=When.MATCHED, action=Action.UPDATE, values={"t.`a.b`": "s.`a.b` + 1"}),
    )
    assert table.rows() == [{"my id": 1, "a.b": 6}]


def test_a_column_that_is_called_as_the_other_side() -> None:
    table = StatedTable({"source": "long", "s": "long"}, [{"source": 1, "s": 0}])
    table.merge([{"source": 1, "s": 9}], "t.source = s.source", matched_update(s="s.s + t.source"))
    assert table.rows() == [{"source": 1, "s": 10}]
