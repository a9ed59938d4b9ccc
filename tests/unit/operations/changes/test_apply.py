"""Rows that change: masked, or rewritten where they were."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

from deltalog._util.json import iter_objects
from deltalog.data.scan import plan_scan
from deltalog.errors import DeltaError
from deltalog.log.names import commit_path
from deltalog.protocol.actions import AddCDCFile, actions_from_json
from deltalog.testing import FaultyStore, InjectedFault
from tests.support.logs import DictStore
from tests.support.statements import FEED, VECTORS, StatedTable

NUMBERS = {"id": "long", "x": "long"}


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": number, "x": 10 * number} for number in ids]


def test_rewritten_files_keep_the_order_of_their_rows() -> None:
    table = StatedTable(NUMBERS, rows(5, 3, 4, 1, 2))
    table.update({"x": "0"}, "id = 4")
    assert plan_scan(table.snapshot).to_table()["id"].to_pylist() == [5, 3, 4, 1, 2]


@pytest.mark.protocol("DV-01")
def test_masked_rows_unite_with_those_that_were_masked_before() -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3, 4), properties=VECTORS)
    table.delete("id = 1")
    updated = table.update({"x": "0"}, "id = 2")
    vectors = pc.struct_field(table.files()["deletionVector"], "cardinality").to_pylist()
    assert sorted(vectors, key=str) == [2, None]
    assert (updated.files.num_vectors_updated, updated.files.num_vectors_removed) == (1, 1)
    assert table.rows() == [{"id": 2, "x": 0}, {"id": 3, "x": 30}, {"id": 4, "x": 40}]


def test_nothing_that_matches_makes_no_version() -> None:
    table = StatedTable(NUMBERS, rows(1))
    before = table.version
    assert table.update({"x": "0"}, "id = 9").rows.all_updated == 0
    assert table.version == before


def test_what_matches_nothing_counts_nothing() -> None:
    table = StatedTable(NUMBERS, rows(1), properties=VECTORS)
    files = table.delete("id = 7").files
    assert (files.num_removed_files, files.num_removed_bytes, files.num_copied_rows) == (0, 0, 0)
    assert (files.num_vectors_added, files.num_vectors_updated, files.num_vectors_removed) == (
        0, 0, 0,
    )  # fmt: skip


def test_rows_move_between_partitions() -> None:
    columns = {"id": "long", "p": "string"}
    table = StatedTable(
        columns,
        [{"id": 1, "p": "a"}, {"id": 2, "p": "a"}, {"id": 3, "p": "b"}],
        partition_by=["p"],
    )
    table.update({"p": "'b'"}, "id = 1")
    assert table.rows() == [{"id": 1, "p": "b"}, {"id": 2, "p": "a"}, {"id": 3, "p": "b"}]
    values: list[Any] = table.files()["partitionValues"].to_pylist()
    assert sorted(dict(value)["p"] for value in values) == ["a", "b", "b"]


@pytest.mark.protocol("DF-06")
def test_change_files_lie_in_directories_of_their_partitions() -> None:
    table = StatedTable(
        {"id": "long", "p": "long"},
        [{"id": 1, "p": 1}, {"id": 2, "p": 2}],
        partition_by=["p"],
        properties=FEED,
    )
    table.update({"id": "id + 1"})
    cdc = [action for action in _actions(table) if isinstance(action, AddCDCFile)]
    assert {action.path.rpartition("/")[0] for action in cdc} == {
        "_change_data/p=1",
        "_change_data/p=2",
    }


def _actions(table: StatedTable) -> list[Any]:
    path = commit_path(table.version)
    objects = list(iter_objects(table.store.read(path), path))
    return list(actions_from_json(objects, path))


@pytest.mark.parametrize("properties", [{**FEED}, {**FEED, **VECTORS}], ids=["rewritten", "masked"])
def test_a_write_that_fails_leaves_the_old_version_and_no_file(properties: dict[str, str]) -> None:
    inner = DictStore()
    table = StatedTable(NUMBERS, rows(1, 2, 3), properties=properties, store=inner)
    files, before = set(inner.files), table.rows()
    table.store = FaultyStore(inner, InjectedFault(path="_change_data", times=99))
    with pytest.raises(DeltaError):
        table.update({"x": "0"}, "id = 2")
    table.store = inner
    assert table.rows() == before
    assert set(inner.files) == files
