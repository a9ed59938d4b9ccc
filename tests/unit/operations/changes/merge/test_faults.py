"""Updates and merges whose store fails: at every call the table is what it was, or what it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from deltalog.errors import DeltaError
from deltalog.operations.merge import upsert
from deltalog.testing import FaultyStore, Harm, InjectedFault
from tests.support.logs import DictStore
from tests.support.statements import FEED, ROW_IDS, VECTORS, StatedTable

Statement = Callable[[StatedTable], object]


def merge(table: StatedTable) -> object:
    return table.run_merge([{"id": 2, "x": 9}, {"id": 7, "x": 9}], upsert(None, "id"))


def update(table: StatedTable) -> object:
    return table.update({"x": "9"}, "id > 1")


@pytest.mark.parametrize("statement", [merge, update])
@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])
@pytest.mark.parametrize("harm", [Harm.CRASH, Harm.REFUSE])
def test_every_call_may_fail(statement: Statement, properties: dict[str, str], harm: Harm) -> None:
    made = DictStore()
    rows = [{"id": 1, "x": 1}, {"id": 2, "x": 1}, {"id": 3, "x": 1}]
    before = StatedTable(
        {"id": "long", "x": "long"},
        rows[:2],
        rows[2:],
        properties={**FEED, **ROW_IDS, **properties},
        store=made,
    ).rows()
    seen = []
    for call in range(1, 200):
        inner = DictStore(files=dict(made.files))
        table = StatedTable.__new__(StatedTable)
        store = FaultyStore(inner, InjectedFault(call=call, harm=harm))
        table.store = store
        with contextlib.suppress(DeltaError):
            statement(table)
        table.store = inner
        seen.append(table.rows())
        if store.faults[0].seen < call:
            break
    after = seen[-1]
    assert sum(row["x"] == 9 for row in after) == 2
    assert all(rows in (before, after) for rows in seen)
    assert before in seen
