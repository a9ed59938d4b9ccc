"""What builders know of the table that they belong to: a `DeltaTable`, or one transaction of it."""

from __future__ import annotations

from deltalog import DeltaTable
from deltalog.operations.delete import Delete
from deltalog.operations.engine import LocalEngine
from deltalog.table.creating import LatestTable, OperationTarget
from tests.support.facade import fresh_rows, make, store_of

DATA = [{"id": 1}, {"id": 2}, {"id": 3}]


def deleted(target: OperationTarget, where: str) -> object:
    """A builder's work, whatever it belongs to."""
    assert isinstance(target.engine, LocalEngine)
    return target.do(Delete.where(where))["num_deleted_rows"]


def test_a_table_is_a_target_whose_verbs_are_commits() -> None:
    made = make(DATA)
    target: LatestTable = made
    assert deleted(target, "id = 1") == 1
    assert (target.snapshot.version, fresh_rows(made, "id")) == (1, [2, 3])
    ran = target.execute(Delete.where("id = 2"))
    assert (ran.committed.version, made.version()) == (2, 2)


def test_a_transaction_is_a_target_whose_verbs_are_one_commit() -> None:
    made = make(DATA)
    with made.transaction() as transaction:
        target: OperationTarget = transaction
        assert deleted(target, "id = 5") == 0
        assert deleted(target, "id = 1") == 1
        assert target.snapshot.version == 0
        assert fresh_rows(made, "id") == [1, 2, 3]
    assert (made.version(), fresh_rows(made, "id")) == (1, [2, 3])


def test_a_table_shows_what_it_is_told_to() -> None:
    made = make(DATA)
    other = DeltaTable(store_of(made))
    ran = other.execute(Delete.where("id = 1"))
    assert made.version() == 0
    target: LatestTable = made
    target._show(ran.committed)
    assert made.version() == 1
    other.delete("id = 2")
    target.update_incremental()
    assert made.version() == 2
