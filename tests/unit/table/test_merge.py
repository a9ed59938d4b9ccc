"""Merges through the facade: what they may be called with."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from deltalog import (
    DeltaTable,
    Field,
    write_deltalake,
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
        (lambda t: t.merge(ROWS, ["id"]), r"by key columns, use upsert\(data, \['id'\]\)$"),
        (lambda t: t.merge(MERGE, ROWS), r"the rows come first: merge\(rows, condition\)$"),
        (lambda t: t.merge(None, MERGE), "expected rows, such as a dataframe"),
        (lambda t: t.merge(ROWS, MERGE).when_matched_update("v = 1"), "expected a dictionary"),
        (lambda t: t.merge(ROWS, MERGE).execute(), "at least one WHEN clause"),
        (lambda t: t.upsert([{}], "id"), "cannot write 1 row without keys"),
    ],
)
def test_merges_that_mean_nothing(call: Call, message: str) -> None:
    refused(call, message)


FORGOTTEN = r"merge into DeltaTable\(.* was never run: call execute\(\) after the clauses$"


def test_a_merge_that_was_never_run_warns() -> None:
    table = make(ROWS)
    with unchanged(table), pytest.warns(RuntimeWarning, match=FORGOTTEN) as caught:
        table.merge(ROWS, MERGE).when_matched_update_all()
    assert [one.filename for one in caught] == [__file__]


def test_a_merge_that_was_tried_does_not_warn() -> None:
    table = make(ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.merge(ROWS, MERGE)  # without clauses, it could not run
        table.merge(ROWS, MERGE).when_matched_update_all().execute()
        table.merge(ROWS, MERGE).when_matched_delete().execute(dry_run=True)
        table.merge(ROWS, MERGE).when_matched_delete().explain()
        with pytest.raises(InvalidInputError, match="a deletion has no new values"):
            table.merge(ROWS, MERGE).when_matched_update_all().when_matched_delete(_any({}))
        with pytest.raises(InvalidInputError, match="no column 'zzz'"):
            table.merge(ROWS, MERGE).when_matched_update({"zzz": "1"}).execute()
        gc.collect()


def _any(value: Any) -> Any:
    return value


def test_nothing_to_merge_is_no_mistake() -> None:
    table = make(ROWS)
    with unchanged(table):
        assert table.upsert([], "id")["num_source_rows"] == 0
    fields = [Field("n", "long").identity(), Field("id", "long")]
    assert DeltaTable.create(DictStore(), fields).upsert([], "id")["num_output_rows"] == 0
    gone = table.merge([], MERGE).when_not_matched_by_source_delete("id = 1").execute()
    assert gone["num_target_rows_deleted"] == 1


def test_one_name_is_a_name_and_not_its_letters() -> None:
    table = make(ROWS)
    merge = table.merge([{"id": 1, "v": "y"}], MERGE).when_matched_update_all(except_cols="v")
    assert merge.execute()["num_target_rows_updated"] == 1
    assert table.to_pyarrow_table().column("v").to_pylist() == ["x"] * 3
    assert {finding.check for finding in table.doctor(checks="access").findings} == {"access"}


REPLACED = (5, 7, 9, 150, 300)


@pytest.mark.parametrize(
    ("properties", "values", "reads"),
    [
        ({"delta.enableDeletionVectors": "true"}, None, 2),
        ({"delta.enableDeletionVectors": "true"}, {"v": "source.v"}, 4),
        ({"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}, None, 4),
        (
            {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
            None,
            4,
        ),
        ({"delta.enableDeletionVectors": "false"}, None, 4),
    ],
    ids=["replaced", "one column", "row ids", "change feed", "rewritten"],
)
def test_rows_that_are_replaced_are_read_only_to_compare_keys(
    properties: dict[str, str],
    values: dict[str, str] | None,
    reads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deltalog.operations.changes.apply._REPLACED_ROWS", 2)
    table = make([{"id": n, "v": "x"} for n in range(100)], configuration=properties)
    write_deltalake(table, [{"id": n, "v": "x"} for n in range(100, 200)], mode="append")
    seen: list[tuple[int, int]] = []
    merge = table.merge([{"id": n, "v": "y"} for n in REPLACED], MERGE)
    merge = merge.when_matched_update(values) if values else merge.when_matched_update_all()
    merged = merge.when_not_matched_insert_all().execute(
        progress=lambda done, total: seen.append((done, total))
    )
    assert (merged["num_target_rows_updated"], merged["num_target_rows_inserted"]) == (4, 1)
    assert seen[-1] == (reads, reads)
    found = {row["id"]: row["v"] for row in table.to_pyarrow_table().to_pylist()}
    assert found == {
        **dict.fromkeys(range(200), "x"),
        **dict.fromkeys(REPLACED, "y"),
    }
