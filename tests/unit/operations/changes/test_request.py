"""The words of a change of rows."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations.changes.request import (
    Action,
    ChangeMetrics,
    ChangeRequest,
    Clause,
    RowCounts,
    When,
)
from deltalog.operations.merge import Merge
from tests.support.merging import rows
from tests.support.statements import (
    StatedTable,
    by_source_delete,
    insert,
    matched_delete,
    matched_update,
)


def test_a_change_of_nothing_counts_nothing() -> None:
    nothing = ChangeMetrics(rows=RowCounts())
    numbers = {**asdict(nothing.rows), **asdict(nothing.files), **nothing.times()}
    numbers |= {name: found for name, found in asdict(nothing).items() if name.startswith("num")}
    assert len(numbers) > 15
    assert set(numbers.values()) == {0}
    assert set(nothing.logged_times().values()) == {0}


@pytest.mark.parametrize(
    ("clauses", "says"),
    [
        ([], "at least one WHEN clause"),
        ([matched_delete(), matched_update()], "only the last WHEN MATCHED clause"),
        ([insert(), insert()], "only the last WHEN NOT MATCHED clause"),
        ([Clause(when=When.NOT_MATCHED, action=Action.DELETE)], "does not support the clause"),
        ([Clause(when=When.MATCHED, action=Action.INSERT)], "does not support the clause"),
        ([Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.UPDATE)], "needs values"),
        ([Clause(when=When.MATCHED, action=Action.UPDATE, values={})], "at least one column"),
        ([matched_update(y="1")], "there is no column 'y'"),
        ([Clause(when=When.MATCHED, action=Action.UPDATE, values={"s.x": "1"})], "of the source"),
        (
            [Clause(when=When.MATCHED, action=Action.UPDATE, values={"x": "1", "t.x": "2"})],
            "assigned twice",
        ),
        ([insert(id="t.id")], "this clause has no row of the target"),
        ([by_source_delete("s.id = 1")], "has no row of the source"),
        ([matched_delete("id = 1")], "ambiguous: it may be 't.id' or 's.id'"),
        ([matched_delete("t.idd = 1")], "no column 't.idd': did you mean 't.id'"),
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
                ChangeRequest(
                    condition="a.id = a.id",
                    clauses=(matched_delete(),),
                    source_alias="a",
                    target_alias="A",
                )
            ),
        )
