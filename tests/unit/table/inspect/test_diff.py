"""What differs between two versions, without a change feed."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from deltalog.operations.update import Update
from deltalog.schema import Field, PrimitiveType
from deltalog.table.inspect.diff import diff_snapshots
from deltalog.testing import CountingStore
from tests.support.aging import FEATURES, AgingTable
from tests.support.contexts import moved
from tests.support.diffing import diff, make, told
from tests.support.examples import examples

VECTORS = {"delta.enableDeletionVectors": "true"}


C = Field("c", PrimitiveType("long"))


IDS = {"delta.enableRowTracking": "true"}


def rewrite(table: AgingTable, rows: dict[str, Any]) -> None:
    table.delete()
    table.append(rows)


@pytest.mark.parametrize("properties", [{}, VECTORS, FEATURES], ids=["plain", "vectors", "all"])
def test_rows_that_came_and_went(properties: dict[str, str]) -> None:
    table = make(properties, partition_by=["p"])
    table.append({"id": [4, 4], "p": [1, 1]})
    table.delete("id = 1")
    assert told(diff(table, 0, 2)) == [(1, 0, "delete"), (4, 1, "insert"), (4, 1, "insert")]
    assert told(diff(table, 2, 0)) == [(1, 0, "insert"), (4, 1, "delete"), (4, 1, "delete")]
    assert told(diff(table, 1, 1)) == []
    assert diff(table, 0, 2).summary() == {"added": 2, "removed": 1, "changed": 0}


def test_rows_that_were_written_anew_are_no_difference() -> None:
    table = make()
    rewrite(table, {"id": [3, 2, 2], "p": [1, 0, 0]})
    assert told(diff(table, 0, 2)) == [(1, 0, "delete"), (2, 0, "insert")]


def test_a_key_tells_changed_rows() -> None:
    table = make()
    rewrite(table, {"id": [1, 2, 4], "p": [0, 7, 4]})
    found = diff(table, 0, 2, key=["ID"])
    assert found.changed.to_pylist() == [
        {"id": 2, "p": 0, "_change_type": "update_preimage"},
        {"id": 2, "p": 7, "_change_type": "update_postimage"},
    ]
    assert found.added.column("id").to_pylist() == [4]
    assert found.removed.column("id").to_pylist() == [3]


def test_a_key_that_several_rows_have_pairs_as_many_as_it_can() -> None:
    table = make()
    rewrite(table, {"id": [1, 1, 2], "p": [5, 6, 0]})
    counts = diff(table, 0, 2, key=["id"]).summary()
    assert counts == {"added": 1, "removed": 1, "changed": 1}


def test_row_ids_tell_changed_rows_across_files() -> None:
    table = make(IDS | VECTORS)
    table.do(Update.where("id = 2", {"p": "p + 1"}))
    found = diff(table, 0, 1)
    assert found.keys == ("_metadata.row_id",)
    assert told(found) == [(2, 0, "update_preimage"), (2, 1, "update_postimage")]


def test_row_ids_tell_changed_rows_beside_a_column_metadata() -> None:
    table = AgingTable()
    own = [{"row_id": 7}, {"row_id": 7}]
    mapped = {**IDS, "delta.columnMapping.mode": "name"}
    table.create({"id": [1, 2], "x": [0, 0], "_metadata": own}, properties=mapped)
    table.do(Update.where("id = 2", {"id": "3"}))
    assert told(diff(table, 0, 1)) == [
        (2, 0, {"row_id": 7}, "update_preimage"),
        (3, 0, {"row_id": 7}, "update_postimage"),
    ]
    # Now x is another column, so that each version is read in its own schema.
    table.do(alter.DropColumns(["x", "_metadata"]))
    table.do(alter.AddColumns([Field("x", PrimitiveType("string"))]))
    assert told(diff(table, 0, 3)) == [(2, "update_preimage"), (3, "update_postimage")]


def test_a_column_called_as_row_ids_is_none() -> None:
    table = AgingTable()
    mapped = {**IDS, "delta.columnMapping.mode": "name"}
    table.create({"id": [1, 2], "_metadata.row_id": [7, 7]}, properties=mapped)
    rewrite(table, {"id": [1, 3], "_metadata.row_id": [7, 7]})
    found = diff(table, 0, 2)
    assert found.keys == ()
    assert found.summary() == {"added": 1, "removed": 1, "changed": 0}


def test_only_files_that_differ_are_read() -> None:
    table = make(VECTORS)
    table.append({"id": [4], "p": [1]})
    table.append({"id": [5], "p": [1]})
    snapshots = table.snapshot(1), table.snapshot(2)
    store = CountingStore(table.kept)
    for snapshot in snapshots:
        moved(snapshot, store=store)
    assert diff_snapshots(*snapshots).summary()["added"] == 1
    assert store.footers_opened == 1
    assert diff_snapshots(*snapshots).file_counts == {
        "added": 1,
        "removed": 0,
        "other_rows_deleted": 0,
        "same": 2,
    }


def test_another_deletion_vector_is_read_by_positions() -> None:
    table = make({**VECTORS, "deltalog.maxDeletedRowsRatio": "1"})
    table.delete("id = 1")
    table.delete("id = 3")
    found = diff(table, 1, 2)
    assert found.file_counts["other_rows_deleted"] == 1
    assert told(found) == [(3, 1, "delete")]
    assert told(diff(table, 2, 1)) == [(3, 1, "insert")]


def test_rows_are_compared_across_an_added_column() -> None:
    table = make({"delta.columnMapping.mode": "name"})
    table.do(alter.AddColumns([C]))
    rewrite(table, {"id": [1, 2, 3], "p": [0, 0, 1], "c": [None, None, 9]})
    changed = diff(table, 0, 3, key=["id"]).to_table()
    assert changed.column("id").to_pylist() == [3, 3]
    assert changed.column("c").to_pylist() == [None, 9]
    assert diff(table, 3, 0, key=["id"]).summary() == {"added": 0, "removed": 0, "changed": 0}


def test_a_version_from_before_deletion_vectors_is_compared() -> None:
    table = make()
    table.do(alter.SetTableProperties(VECTORS))
    table.delete("id = 2")
    assert told(diff(table, 0, 2)) == [(2, 0, "delete")]
    assert told(diff(table, 2, 0)) == [(2, 0, "insert")]


def test_columns_may_be_chosen() -> None:
    table = make()
    rewrite(table, {"id": [1, 2, 3], "p": [9, 9, 9]})
    assert told(diff(table, 0, 2, columns=["id"])) == []
    with pytest.raises(InvalidInputError, match="nope"):
        diff(table, 0, 2, columns=["nope"])


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "delete", "overwrite"]), st.integers(0, 4)),
    min_size=1,
    max_size=5,
)


@settings(deadline=None, max_examples=examples(25))
@given(
    steps=STEPS,
    properties=st.sampled_from([{}, VECTORS, FEATURES]),
    versions=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_a_diff_is_the_difference_of_the_rows_of_two_versions(
    steps: list[tuple[str, int]], properties: dict[str, str], versions: tuple[int, int]
) -> None:
    table = make(properties, partition_by=["p"])
    for step, number in steps:
        rows = {"id": [number, number, 2], "p": [0, 1, number % 2]}
        match step:
            case "append":
                table.append(rows)
            case "delete":
                table.delete(f"id = {number}")
            case _:
                rewrite(table, rows)
    last = table.snapshot().version
    old, new = (min(version, last) for version in versions)
    then, now = Counter(table.rows(old)), Counter(table.rows(new))
    found = told(diff(table, old, new))
    gone = Counter(row[:2] for row in found if row[2] in {"delete", "update_preimage"})
    come = Counter(row[:2] for row in found if row[2] in {"insert", "update_postimage"})
    if properties == FEATURES:  # rows that were written anew have other ids
        assert then - now <= gone
        assert then - gone + come == now
    else:
        assert (gone, come) == (then - now, now - then)


def test_the_card_counts_rows_of_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make()
    rewrite(table, {"id": [1, 2, 4], "p": [0, 7, 4]})
    page = diff(table, 0, 2, key=["id"])._repr_html_()
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page.partition(">rows</summary>")[2])
    # The rows of `make` are 1, 2 and 3 with p = 0, 0 and 1.
    assert cells[:6] == ["added", "1", "removed", "1", "changed", "1"]
    monkeypatch.setattr("deltalog.table.inspect.diff._MOST_COMPARED_BYTES", 10)
    snapshots = [table.snapshot(version) for version in (0, 2)]
    store = CountingStore(table.kept)
    for snapshot in snapshots:
        moved(snapshot, store=store)
    page = diff_snapshots(*snapshots)._repr_html_()
    assert ">the files are large: summary() compares their rows</td>" in page
    assert store.footers_opened == 0
