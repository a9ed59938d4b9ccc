"""One attempt, and the truth about it when the store does not tell."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    AccessDeniedError,
    CommitOutcomeUnknownError,
    StorageError,
)
from deltalog.log.names import commit_path
from deltalog.testing import FaultyStore, Harm, InjectedFault
from deltalog.transaction import (
    commit,
)
from tests.support.logs import DictStore
from tests.support.transactions import (
    actions_of,
    new_file,
    paths_of_adds,
    pending,
    table,
)

COMMIT = "_delta_log/0000000000000000000"


# Answers that do not come.


@pytest.mark.protocol("D-27", "OV-01")
@pytest.mark.parametrize("harm", [Harm.REFUSE, Harm.LOSE_RESPONSE])
@pytest.mark.parametrize("times", [1, 3])
def test_a_failed_request_is_looked_after(harm: Harm, times: int) -> None:
    inner = table()
    store = FaultyStore(inner, InjectedFault(verb="put_if_absent", harm=harm, times=times))
    committed = commit(pending(store, new_file("x.parquet")))
    assert committed.version == 1
    assert committed.num_retries == 0
    assert paths_of_adds(inner) == ["x.parquet"]
    assert sorted(inner.files) == [commit_path(0), commit_path(1)]


@pytest.mark.protocol("D-27")
def test_a_request_that_was_sent_twice_finds_its_own_first_copy() -> None:
    class Twice(DictStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            super().put_if_absent(path, data)

    store = Twice(dict(table().files))
    assert commit(pending(store, new_file("x.parquet"))).version == 1
    assert paths_of_adds(store) == ["x.parquet"]


@pytest.mark.protocol("D-27")
def test_a_lost_answer_to_a_lost_race_is_a_lost_race() -> None:
    inner = table()
    store = FaultyStore(inner, InjectedFault(verb="put_if_absent", harm=Harm.REFUSE))
    tx = pending(store, new_file("mine.parquet"))
    commit(pending(inner, new_file("theirs.parquet")))
    committed = commit(tx)
    assert (committed.version, committed.num_retries) == (2, 1)
    assert paths_of_adds(inner) == ["mine.parquet", "theirs.parquet"]


@pytest.mark.protocol("D-27")
@pytest.mark.parametrize("harm", [Harm.CRASH, Harm.REFUSE])
def test_an_outcome_that_nobody_knows_is_told_so(harm: Harm) -> None:
    inner = table()
    store = FaultyStore(inner, InjectedFault(verb="put_if_absent", harm=harm, times=99))
    tx = pending(store, new_file("x.parquet"))
    with pytest.raises(CommitOutcomeUnknownError, match="may or may not") as raised:
        commit(tx)
    assert raised.value.version == 1
    assert raised.value.txn_id in str(raised.value)
    assert paths_of_adds(inner) == []


def test_an_answer_that_was_lost_for_good_is_unknown_although_it_was_made() -> None:
    inner = table()
    store = FaultyStore(
        inner,
        InjectedFault(verb="put_if_absent", harm=Harm.LOSE_RESPONSE),
        InjectedFault(verb="read", path=f"{COMMIT}1", times=99),
    )
    tx = pending(store, new_file("x.parquet"))
    with pytest.raises(CommitOutcomeUnknownError) as raised:
        commit(tx)
    info = actions_of(inner, 1)[0]["commitInfo"]
    assert info["txnId"] == raised.value.txn_id


def test_what_the_store_refuses_for_certain_is_its_own_error() -> None:
    inner = table()
    refused = InjectedFault(verb="put_if_absent", error=AccessDeniedError("no"), times=99)
    store = FaultyStore(inner, refused)
    with pytest.raises(AccessDeniedError):
        commit(pending(store, new_file("x.parquet")))
    assert paths_of_adds(inner) == []
    # Nothing is certain any more once an earlier request may still be under way.
    refused.call, refused.seen = 2, 0
    store.faults.insert(0, InjectedFault(verb="put_if_absent", harm=Harm.REFUSE))
    with pytest.raises(CommitOutcomeUnknownError):
        commit(pending(store, new_file("x.parquet")))


def test_a_lost_race_whose_winner_cannot_be_read_is_a_failure_and_no_riddle() -> None:
    inner = table()
    store = FaultyStore(inner, InjectedFault(verb="read_many", path=f"{COMMIT}1"))
    tx = pending(store, new_file("mine.parquet"))
    commit(pending(inner, new_file("theirs.parquet")))
    with pytest.raises(StorageError, match="injected"):
        commit(tx)
    assert paths_of_adds(inner) == ["theirs.parquet"]
