"""What follows a commit: checkpoints, checksums and cleaning up."""

from __future__ import annotations

import threading

import pytest

from deltalog._util.json import dumps, loads
from deltalog.log.context import utc_context
from deltalog.log.names import checksum_name, commit_path, log_path
from deltalog.log.snapshot import load_snapshot
from deltalog.storage import Store
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from deltalog.testing.simulation.model import SteadyClock
from deltalog.transaction import (
    PendingTransaction,
    PostCommitHookProperties,
    commit,
)
from deltalog.transaction.properties import CommitOptions
from tests.support.contexts import moved
from tests.support.logs import DictStore
from tests.support.transactions import (
    NO_CHECKPOINT,
    actions_of,
    new_file,
    pending,
    table,
)

DAY_MS = 86_400_000


# What follows.


@pytest.mark.protocol("CKPT-04")
def test_a_checkpoint_follows_at_the_interval() -> None:
    store = table(configuration={"delta.checkpointInterval": "3"})
    snapshot = load_snapshot(utc_context(store))
    for number in range(7):
        snapshot = commit(pending(store, new_file(f"{number}"), snapshot=snapshot)).snapshot
    found = [path for path in store.files if "checkpoint.parquet" in path]
    assert [path[-38:-19] for path in sorted(found)] == [f"{3:019}", f"{6:019}"]
    assert load_snapshot(utc_context(store)).num_files == snapshot.num_files == 7


def test_checkpoints_can_be_turned_off() -> None:
    store = table(configuration={"delta.checkpointInterval": "1"})
    commit(pending(store, new_file("x")), CommitOptions(hooks=NO_CHECKPOINT))
    assert sorted(store.files) == [commit_path(0), commit_path(1)]


@pytest.mark.protocol("B-19")
def test_checksums_are_carried_on_from_commit_to_commit_without_reading() -> None:
    inner = DictStore()
    store = CountingStore(inner)
    known = load_snapshot(utc_context(table())).configuration
    tx = PendingTransaction(utc_context(store), None, operation="CREATE TABLE", configuration=known)
    snapshot = commit(tx).snapshot
    store.reset()
    for number in range(3):
        tx = pending(store, new_file(f"{number}"), snapshot=snapshot)
        snapshot = commit(tx).snapshot
    assert store.counts == {"put_if_absent": 6}
    for version in range(4):
        checksum = loads(inner.files[f"_delta_log/{version:020}.crc"])
        assert checksum["numFiles"] == checksum["tableSizeBytes"] == version
        assert checksum["txnId"] == actions_of(inner, version)[0]["commitInfo"]["txnId"]


class MeetingStore(CountingStore):
    """A store that sends no commit before the checksum of the version before is asked for."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._meeting = threading.Barrier(2)

    def read(self, path: str) -> bytes:
        if path.endswith(".crc"):
            self._meeting.wait(60)
        return super().read(path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path.endswith(".json"):
            self._meeting.wait(60)
        super().put_if_absent(path, data)


def test_a_checkpoint_s_checksum_is_counted_whatever_others_have_written() -> None:
    store = DictStore()
    given = table(configuration={"delta.checkpointInterval": "3"})
    known = load_snapshot(utc_context(given)).configuration
    tx = PendingTransaction(utc_context(store), None, operation="CREATE TABLE", configuration=known)
    commit(tx)
    for number in range(2):
        commit(pending(store, new_file(f"{number}")))
    wrong = {**loads(store.files[log_path(checksum_name(2))]), "numFiles": 900}
    store.files[log_path(checksum_name(2))] = dumps(wrong)
    commit(pending(MeetingStore(store), new_file("2")))
    assert loads(store.files[log_path(checksum_name(3))])["numFiles"] == 3


@pytest.mark.protocol("B-19")
def test_the_checksum_before_is_read_while_the_commit_is_sent() -> None:
    store = DictStore()
    known = load_snapshot(utc_context(table())).configuration
    commit(PendingTransaction(utc_context(store), None, operation="NEW", configuration=known))
    meeting = MeetingStore(store)
    commit(pending(meeting, new_file("a")))  # of a process that does not know the checksum
    checksum = log_path(checksum_name(1))
    assert meeting.paths("read", "put_if_absent")[-1] == checksum
    assert loads(store.files[checksum])["numFiles"] == 1


@pytest.mark.protocol("B-24")
@pytest.mark.parametrize(("wish", "is_cut"), [(None, True), (True, True), (False, False)])
def test_the_log_is_cleaned_up_after_a_checkpoint_if_so_wished(
    wish: bool | None, is_cut: bool
) -> None:
    store = table(configuration={"delta.checkpointInterval": "3"})
    clock = SteadyClock()
    hooks = PostCommitHookProperties(cleanup_expired_logs=wish)
    for number in range(9):
        commit(
            moved(pending(store, new_file(f"{number}")), clock=clock), CommitOptions(hooks=hooks)
        )
        clock.time_ms += 20 * DAY_MS
        store.times_ms[commit_path(number + 1)] = clock.time_ms
    assert (commit_path(0) not in store.files) == is_cut
    assert load_snapshot(utc_context(store)).num_files == 9


def test_what_follows_never_fails_a_commit(caplog: pytest.LogCaptureFixture) -> None:
    inner = table(configuration={"delta.checkpointInterval": "1"})
    store = FaultyStore(inner, InjectedFault(path=".checkpoint.", harm=Harm.REFUSE, times=99))
    committed = commit(pending(store, new_file("x")))
    assert committed.version == 1
    assert "the commit is valid" in caplog.text
