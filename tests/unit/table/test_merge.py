"""Merges through the facade: what they may be called with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deltalog import (
    DeltaTable,
    Field,
)
from deltalog.errors import InvalidInputError
from tests.support.facade import make, unchanged
from tests.support.logs import DictStore

ROWS = [{"id": n, "v": "x"} for n in range(3)]


Call = Callable[[DeltaTable], object]


def refused(call: Call, message: str) -> None:
    table = make(ROWS)
    with unchanged(table), pytest.raises(InvalidInputError, match=message):
        call(table)


MERGE = "source.id = target.id"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.merge(ROWS, ["id"]), "expected SQL or an expression over both rows"),
        (lambda t: t.merge(ROWS, MERGE).when_matched_update("v = 1"), "expected a dictionary"),
        (lambda t: t.merge(ROWS, MERGE).execute(), "at least one WHEN clause"),
        (lambda t: t.upsert([{}], "id"), "lack the key column 'id'; their columns are none"),
    ],
)
def test_merges_that_mean_nothing(call: Call, message: str) -> None:
    refused(call, message)


def test_nothing_to_merge_is_no_mistake() -> None:
    table = make(ROWS)
    with unchanged(table):
        assert table.upsert([], "id")["num_source_rows"] == 0
    identity = {"delta.identity.start": 1, "delta.identity.step": 1}
    fields = [Field("n", "long", metadata=identity), Field("id", "long")]
    assert DeltaTable.create(DictStore(), fields).upsert([], "id")["num_output_rows"] == 0
    gone = table.merge([], MERGE).when_not_matched_by_source_delete("id = 1").execute()
    assert gone["num_target_rows_deleted"] == 1


def test_one_name_is_a_name_and_not_its_letters() -> None:
    table = make(ROWS)
    merge = table.merge([{"id": 1, "v": "y"}], MERGE).when_matched_update_all(except_cols="v")
    assert merge.execute()["num_target_rows_updated"] == 1
    assert table.to_pyarrow_table().column("v").to_pylist() == ["x"] * 3
    assert {finding.check for finding in table.doctor(checks="access").findings} == {"access"}
