"""Writers that change different rows of one file."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import CommitConflictError, DeltaError, StorageError
from deltalog.operations.delete import Delete
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import stage
from deltalog.testing import FaultyStore, Harm, InjectedFault
from deltalog.transaction import PendingTransaction, commit
from tests.support.facade import FEED, VECTORS, BusyStore, actions, changes, last, rows
from tests.support.logs import DictStore
from tests.support.transactions import condition

ROW_LEVEL = {**VECTORS, "delta.enableRowLevelConcurrency": "true"}


DATA = [{"id": n, "v": 0} for n in range(10)]


Operation = Callable[[DeltaTable], Any]


def _busy(data: Any = DATA, **configuration: str) -> BusyStore:
    store = BusyStore()
    write_deltalake(store, data, configuration={**ROW_LEVEL, **configuration})
    return store


def _race(store: BusyStore, winner: Operation, loser: Operation) -> DeltaTable:
    """The loser has planned its commit when the winner makes its own."""
    mine, theirs = DeltaTable(store), DeltaTable(store)
    store.before_commit = lambda: winner(theirs)
    loser(mine)
    return mine


def _delete(where: str) -> Operation:
    return lambda table: table.delete(where)


def _update(where: str, value: str = "1") -> Operation:
    return lambda table: table.update({"v": value}, predicate=where)


def _upsert(*ids: int, value: int = 2) -> Operation:
    return lambda table: table.upsert([{"id": n, "v": value} for n in ids], "id")


def _reads(table: DeltaTable) -> list[int]:
    """The version that each commit after the first read."""
    return [
        actions(table, version)[0]["commitInfo"]["readVersion"]
        for version in range(1, table.version() + 1)
    ]


@pytest.mark.parametrize(
    ("winner", "loser", "left"),
    [
        (_delete("id = 1"), _delete("id = 2"), {n: 0 for n in range(10) if n not in {1, 2}}),
        (_update("id = 1"), _delete("id = 2"), {n: int(n == 1) for n in range(10) if n != 2}),
        (_delete("id = 1"), _update("id = 2"), {n: int(n == 2) for n in range(10) if n != 1}),
        (_update("id < 4"), _update("id > 5"), {n: int(n not in {4, 5}) for n in range(10)}),
        (_delete("id = 1"), _upsert(2, 3), {n: 2 * (n in {2, 3}) for n in range(10) if n != 1}),
        (_upsert(2, 3), _delete("id = 1"), {n: 2 * (n in {2, 3}) for n in range(10) if n != 1}),
    ],
)
def test_both_get_in_without_another_evaluation(
    winner: Operation, loser: Operation, left: dict[int, int]
) -> None:
    store = _busy()
    mine = _race(store, winner, loser)
    assert dict(rows(mine)) == dict(rows(DeltaTable(store))) == left
    # An evaluation on the winner's version would have read that one.
    assert _reads(mine) == [0, 0]


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        (_delete("id = 1"), _delete("id < 3")),
        (_update("id = 1"), _update("id = 1", "2")),
        (_delete("id < 10"), _delete("id = 1")),
        (_delete("id = 1"), _delete("true")),
        (lambda table: table.optimize.compact(), _delete("id = 1")),
        (lambda table: table.delete("id = 1", use_deletion_vectors=False), _delete("id = 2")),
        (lambda table: table.restore(1), _delete("id = 3")),
    ],
    ids=["same row", "same update", "whole file", "all rows", "compacted", "rewritten", "restored"],
)
def test_rows_that_meet_are_a_conflict(winner: Operation, loser: Operation) -> None:
    store = _busy()
    DeltaTable(store).delete("id = 9")
    DeltaTable(store).delete("id = 8")
    mine = _race(store, winner, loser)
    assert _reads(mine)[-1] == mine.version() - 1


def test_without_the_property_a_shared_file_is_a_conflict() -> None:
    store = _busy(**{"delta.enableRowLevelConcurrency": "false"})
    mine = _race(store, _delete("id = 1"), _delete("id = 2"))
    assert rows(mine, "id") == [0, 3, 4, 5, 6, 7, 8, 9]
    assert _reads(mine) == [0, 1]


def _pending(store: DictStore, where: str, operation: str = "DELETE") -> PendingTransaction:
    snapshot = DeltaTable(store).snapshot
    pending = PendingTransaction(snapshot.context, snapshot, operation=operation)
    stage(Delete.where(condition(where, snapshot)), pending, LocalEngine())
    return pending


def test_rows_that_move_into_reach_are_a_conflict() -> None:
    store = _busy()
    mine = _race(store, _update("id = 1", "9"), _delete("id = 2 or v > 5"))
    assert rows(mine, "id") == [0, 3, 4, 5, 6, 7, 8, 9]
    assert _reads(mine) == [0, 1]


def test_who_has_read_the_file_otherwise_conflicts() -> None:
    store = _busy()
    mine = _pending(store, "id = 2")
    mine.record_read_files(DeltaTable(store).snapshot.files())
    DeltaTable(store).delete("id = 1")
    with pytest.raises(CommitConflictError):
        commit(mine)


def test_a_merge_that_inserts_what_it_misses_needs_the_rows_that_stay() -> None:
    store = _busy()

    def merge(table: DeltaTable) -> None:
        source = pa.table({"id": [1, 2], "v": [7, 7]})
        merger = table.merge(source, "target.id = source.id")
        merger = merger.when_matched_update_all("target.id = 2").when_not_matched_insert_all()
        merger.execute()

    mine = _race(store, _delete("id = 1"), merge)
    assert dict(rows(mine))[1] == 7  # it was gone, so it is inserted
    assert _reads(mine) == [0, 1]


def test_many_winners_are_united_one_after_the_other() -> None:
    store = _busy(**FEED)
    mine = _pending(store, "id = 5")
    for number in range(4):
        DeltaTable(store).delete(f"id = {number}")
    DeltaTable(store).update({"v": "3"}, predicate="id = 6")
    committed = commit(mine)
    table = DeltaTable(store)
    assert (committed.version, committed.num_retries) == (6, 1)
    assert dict(rows(table)) == {4: 0, 6: 3, 7: 0, 8: 0, 9: 0}
    (add,) = [action["add"] for action in actions(table) if "add" in action]
    (remove,) = [action["remove"] for action in actions(table) if "remove" in action]
    assert add["deletionVector"]["cardinality"] == 6
    assert remove["deletionVector"]["cardinality"] == 5
    assert add["path"] == remove["path"]
    assert [row[0] for row in changes(table)] == ["delete"]


def test_a_file_of_which_both_leave_nothing_is_gone() -> None:
    store = _busy()
    mine = _race(store, _delete("id < 5"), _delete("id >= 5"))
    assert mine.count() == DeltaTable(store).snapshot.num_files == 0
    assert not [action for action in actions(mine) if "add" in action]
    assert _reads(mine) == [0, 0]


@pytest.mark.parametrize("feed", [{}, FEED], ids=["no feed", "feed"])
def test_row_ids_and_the_feed_tell_of_the_own_rows(feed: dict[str, str]) -> None:
    store = _busy(**{"delta.enableRowTracking": "true", **feed})
    names = ["id", "_metadata.row_id"]
    before = dict(rows(DeltaTable(store), *names))
    mine = _race(store, _update("id = 1"), _update("id in (2, 3)"))
    assert dict(rows(mine, *names)) == before
    if feed:
        kinds = ["update_postimage", "update_preimage"]
        assert changes(mine, 1) == [(kind, 1) for kind in kinds]
        assert changes(mine, 2) == [(kind, n) for kind in kinds for n in (2, 3)]


def _vectors(store: DictStore) -> set[str]:
    return {path for path in store.files if path.endswith(".bin")}


NUMBERS = pa.table({"id": range(20_000), "v": [0] * 20_000})


def test_vectors_that_were_replaced_are_removed() -> None:
    store = _busy(NUMBERS)
    mine = _race(store, _delete("id % 7 = 3"), _delete("id % 7 = 5"))
    assert rows(mine, "id") == [n for n in range(20_000) if n % 7 not in {3, 5}]
    live = {
        action["add"]["deletionVector"]["pathOrInlineDv"]
        for version in (1, 2)
        for action in actions(mine, version)
        if "add" in action
    }
    assert len(_vectors(store)) == len(live) == 2
    assert last(mine)["readVersion"] == 0


def test_a_united_vector_that_no_commit_names_is_removed() -> None:
    store = _busy(NUMBERS)
    first, second = DeltaTable(store), DeltaTable(store)

    def twice() -> None:
        first.delete("id % 7 = 3")
        store.before_commit = lambda: second.delete("id % 7 = 5")  # of our own rows

    store.before_commit = twice
    mine = DeltaTable(store)
    mine.delete("id % 7 >= 4")
    live = {
        action["add"]["deletionVector"]["pathOrInlineDv"]
        for version in range(1, mine.version() + 1)
        for action in actions(mine, version)
        if "add" in action
    }
    assert len(_vectors(store)) == len(live) == mine.version() == 3
    assert rows(mine, "id") == [n for n in range(20_000) if n % 7 < 3]


@pytest.mark.parametrize("call", [1, 2], ids=["its own vector", "the united one"])
def test_a_store_that_refuses_a_vector_keeps_none_of_ours(call: int) -> None:
    store = _busy(NUMBERS)
    refusing = FaultyStore(store, InjectedFault(call, verb="put_if_absent", path=".bin"))
    mine, theirs = DeltaTable(refusing), DeltaTable(store)
    store.before_commit = lambda: theirs.delete("id % 7 = 3")
    with pytest.raises(StorageError):
        mine.delete("id % 7 = 5")
    winners = call - 1  # without a vector we do not come as far as the commit
    assert len(_vectors(store)) == DeltaTable(store).version() == winners


@pytest.mark.parametrize("harm", [Harm.CRASH, Harm.LOSE_RESPONSE])
def test_harm_at_any_call_leaves_the_winner_or_both(harm: Harm) -> None:
    versions = set()
    for call in itertools.count(1):
        store = _busy(NUMBERS)
        harmed = FaultyStore(store, InjectedFault(call, harm))
        store.before_commit = lambda store=store: DeltaTable(store).delete("id % 7 = 3")
        with contextlib.suppress(DeltaError):
            DeltaTable(harmed).delete("id % 7 = 5")
        gone = [{}, {3}, {3, 5}][DeltaTable(store).version()]
        left = [n for n in range(20_000) if n % 7 not in gone]
        assert rows(DeltaTable(store), "id") == left
        versions.add(DeltaTable(store).version())
        if len(harmed.calls) < call:
            break
    assert versions == {0, 1, 2}
