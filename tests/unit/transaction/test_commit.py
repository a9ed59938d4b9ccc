"""The loop: retries, lost answers, repeated writes, operations that are evaluated anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deltalog.errors import (
    ConcurrentAppendError,
)
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.transaction import (
    AppTransaction,
    CommitProperties,
    PendingTransaction,
    commit,
    stage_and_commit,
)
from deltalog.transaction.properties import CommitOptions
from tests.support.logs import DictStore
from tests.support.transactions import (
    new_file,
    paths_of_adds,
    pending,
    table,
)

# Operations.


def _loader(store: DictStore) -> Callable[[], Snapshot]:
    return lambda: load_snapshot(utc_context(store))


def _count_rows(
    store: DictStore, rivals: int
) -> tuple[Callable[[PendingTransaction], int], list[int]]:
    """An operation that depends on all files; while it works, others append."""
    seen: list[int] = []

    def stage(tx: PendingTransaction) -> int:
        assert tx.snapshot is not None
        seen.append(tx.snapshot.num_files)
        tx.record_read(None)
        tx.add_files([new_file(f"count-{tx.snapshot.num_files}")])
        if len(seen) <= rivals:
            commit(pending(store, new_file(f"rival-{len(seen)}")))
        return tx.snapshot.num_files

    return stage, seen


@pytest.mark.protocol("OV-05")
def test_an_operation_that_lost_is_evaluated_anew() -> None:
    store = table()
    stage, seen = _count_rows(store, rivals=2)
    ran = stage_and_commit(_loader(store), stage, operation="COUNT")
    assert seen == [0, 1, 2]
    assert (ran.value, ran.committed.version) == (2, 3)
    assert paths_of_adds(store) == ["count-2", "rival-1", "rival-2"]


def test_an_operation_is_not_evaluated_for_ever() -> None:
    store = table()
    stage, seen = _count_rows(store, rivals=99)
    with pytest.raises(ConcurrentAppendError):
        stage_and_commit(_loader(store), stage, operation="COUNT")
    assert seen == list(range(11))
    few = CommitOptions(properties=CommitProperties(max_retries=2))
    with pytest.raises(ConcurrentAppendError):
        stage_and_commit(_loader(store), stage, operation="COUNT", options=few)
    assert len(seen) == 14


def test_an_operation_that_must_not_be_evaluated_anew_raises() -> None:
    store = table()
    stage, seen = _count_rows(store, rivals=1)
    with pytest.raises(ConcurrentAppendError):
        stage_and_commit(
            _loader(store), stage, operation="COUNT", options=CommitOptions(on_conflict="raise")
        )
    assert seen == [0]


def test_a_repeated_step_is_not_even_planned() -> None:
    store = table()
    once = CommitProperties(app_transactions=[AppTransaction("app", 3)])
    stage, seen = _count_rows(store, rivals=0)
    for _ in range(2):
        ran = stage_and_commit(
            _loader(store), stage, operation="COUNT", options=CommitOptions(properties=once)
        )
    assert seen == [0]
    assert (ran.value, ran.committed.skipped) == (None, True)


def test_nothing_to_do_is_no_commit_if_so_wished() -> None:
    store = table()
    ran = stage_and_commit(_loader(store), lambda _tx: "done", operation="DELETE", skip_empty=True)
    assert (ran.value, ran.committed.skipped, ran.committed.version) == ("done", True, 0)
    assert (
        stage_and_commit(_loader(store), lambda _tx: "done", operation="DELETE").committed.version
        == 1
    )
