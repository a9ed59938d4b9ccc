"""Repair: what the store has lost leaves the table, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from deltalog._util.paths import FileInfo
from deltalog.errors import DataFileMissingError, DeltaError
from deltalog.operations.restore import LostFiles, Repair, find_lost_files
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from tests.support.aging import AgingStore, AgingTable
from tests.support.contexts import moved
from tests.support.logs import PROTOCOL, add, commit, metadata

VECTORS = {"delta.enableDeletionVectors": "true"}


def broken() -> tuple[AgingTable, str]:
    """A table that lacks one of its three files."""
    table = AgingTable()
    table.create({"id": [1, 2, 3], "p": ["a b", "a b", "c"]}, partition_by=["p"])
    table.append({"id": [4], "p": ["c"]})
    lost = next(path for path in table.data_files() if path.startswith("p=a b/"))
    table.kept.delete_many([lost])
    return table, lost


def repair(table: AgingTable) -> LostFiles:
    return table.do(Repair())


def test_lost_files_leave_the_table() -> None:
    table, lost = broken()
    with pytest.raises(DataFileMissingError):
        table.rows()
    assert find_lost_files(table.snapshot()).paths == [lost]
    assert repair(table).paths == [lost]
    assert table.rows() == [(3, "c"), (4, "c")]
    history = table.snapshot().history(1)[0]
    assert (history["operation"], history["operationMetrics"]["numRemovedFiles"]) == ("FSCK", "1")
    assert repair(table).paths == []


def test_a_sound_table_costs_one_listing() -> None:
    table = AgingTable()
    table.create({"id": [1], "p": ["a b"]}, partition_by=["p"])
    snapshot = table.snapshot()
    snapshot.files()
    counted = CountingStore(table.kept)
    moved(snapshot, store=counted)
    assert find_lost_files(snapshot).paths == []
    assert counted.counts == {"list_all": 1}


def test_files_elsewhere_are_asked_for_one_by_one() -> None:
    table = AgingTable(AgingStore(root="memory:///table"))
    adds = [add("memory:///other/here"), add("memory:///other/gone"), add("memory:///table/x")]
    commit(table.kept, 0, PROTOCOL, metadata(), *adds)
    table.kept.files |= {"memory:///other/here": b"", "x": b""}
    assert find_lost_files(table.snapshot()).paths == ["memory:///other/gone"]


class SlowListing(AgingStore):
    """A store whose listings lack what was written last."""

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """As `Store`."""
        return iter(list(super().list_all(directory))[:1])


def test_a_listing_that_is_behind_costs_no_file() -> None:
    table = AgingTable(SlowListing())
    table.create({"id": [1, 2, 3], "p": [1, 2, 3]}, partition_by=["p"])
    assert find_lost_files(table.snapshot()).paths == []


def test_a_file_without_its_deletion_vector_is_told_and_stays() -> None:
    table = AgingTable()
    table.create({"id": list(range(4000))}, properties=VECTORS)
    table.delete("id % 3 = 0")
    (data,) = (path for path in table.data_files() if path.endswith(".parquet"))
    table.kept.delete_many([path for path in table.data_files() if path.endswith(".bin")])
    found = repair(table)
    assert (found.paths, found.without_vector) == ([], (data,))
    assert table.snapshot().num_files == 1


def test_a_crash_anywhere_leaves_the_old_version_or_the_new_one() -> None:
    for number in range(1, 100):
        table, lost = broken()
        table.store = faulty = FaultyStore(table.kept, InjectedFault(call=number, harm=Harm.CRASH))
        with contextlib.suppress(DeltaError):
            repair(table)
        table.store = table.kept
        if table.snapshot().version == 2:
            assert table.rows() == [(3, "c"), (4, "c")]
        else:
            assert find_lost_files(table.snapshot()).paths == [lost]
        if not faulty.crashed:
            break
    assert number > 4
