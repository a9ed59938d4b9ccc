"""Compact: few full files instead of many small ones, and the same rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deltalog import DeltaTable, Field, Schema, write_files
from deltalog.operations.optimize import Compact
from tests.support.logs import DictStore
from tests.support.optimizing import IDS, OptimizedTable, numbered
from tests.support.statements import FEED, ROW_IDS, VECTORS

COLUMNS = {"id": "long", "p": "string"}


ALL = {**VECTORS, **ROW_IDS, **FEED}


@pytest.mark.protocol("ADD-06", "REM-06", "ROWID-13")
def test_small_files_become_one_and_nobody_sees_a_change() -> None:
    table = OptimizedTable(COLUMNS, *(numbered(n, n + 2) for n in (0, 2, 4)), properties=ALL)
    before = table.rows("id", *IDS)
    done = table.optimize(Compact)
    assert (len(done.removed_sizes), len(done.added_sizes)) == (3, 1)
    assert table.files().num_rows == 1
    assert table.rows("id", *IDS) == before
    assert table.changes() == []
    actions = [*table.actions("add"), *table.actions("remove")]
    assert {action["dataChange"] for action in actions} == {False}
    assert table.info()["isolationLevel"] == "SnapshotIsolation"


def test_rows_keep_their_order() -> None:
    table = OptimizedTable(COLUMNS, *([{"id": n}, {"id": n - 9}] for n in (5, 3, 4)))
    table.optimize(Compact)
    (file,) = table.physical_rows("id")
    pairs = [file[n : n + 2] for n in range(0, 6, 2)]
    assert all(second[0] == first[0] - 9 for first, second in pairs)


def test_the_second_time_there_is_nothing_to_do() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4))
    table.optimize(Compact)
    version = table.version
    done = table.optimize(Compact)
    assert table.version == version
    assert done.result()["numFilesAdded"] == 0
    assert done.result()["totalFilesSkipped"] == 1


@pytest.mark.protocol("APP-02")
def test_a_table_that_only_grows_is_rearranged() -> None:
    properties = {"delta.appendOnly": "true"}
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4), properties=properties)
    table.optimize(Compact)
    assert table.files().num_rows == 1


def test_files_of_a_partition_stay_in_it() -> None:
    files = [[{"id": n, "p": p}] for p in ("a", "b", None) for n in (1, 2)]
    table = OptimizedTable(COLUMNS, *files, [{"id": 9, "p": "c"}], partition_by=["p"])
    before = table.rows()
    done = table.optimize(Compact)
    assert done.result()["partitionsOptimized"] == 3
    assert table.files().num_rows == 4
    assert table.rows() == before


def test_files_of_one_moment_stay_as_their_commit_names_them() -> None:
    """Their names are random, and each writer begins to count at 0."""
    store = DictStore()
    made = DeltaTable.create(store, Schema([Field("id", "long")]))
    parts = [write_files(made, [{"id": number}]) for number in range(12)]
    made.commit(
        [
            replace(part, adds=tuple(replace(add, modification_time_ms=1) for add in part.adds))
            for part in parts
        ]
    )
    done = made.optimize.compact()
    assert done["preserveInsertionOrder"]
    assert made.to_pyarrow_table()["id"].to_pylist() == list(range(12))
