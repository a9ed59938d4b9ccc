"""The loop: retries, lost answers, repeated writes, operations that are evaluated anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltalog._json import loads
from deltalog.context import utc_context
from deltalog.errors import (
    AccessDeniedError,
    CommitOutcomeUnknownError,
    CommitRetriesExhaustedError,
    ConcurrentAppendError,
    InvalidInputError,
    ObjectNotFoundError,
    StorageError,
)
from deltalog.log.names import commit_path
from deltalog.snapshot import Snapshot, load_snapshot
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from deltalog.transaction import (
    AppTransaction,
    Backoff,
    CommitProperties,
    PendingTransaction,
    PostCommitHookProperties,
    commit,
    run,
)
from deltalog.transaction.properties import CommitOptions
from tests.support.contexts import moved
from tests.support.interleaving import SteadyClock
from tests.support.logs import DictStore, add, classic_checkpoint, domain
from tests.support.transactions import actions_of, new_file, pending, table

DAY_MS = 86_400_000
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False)
COMMIT = "_delta_log/0000000000000000000"


class RecordingClock(SteadyClock):
    """Remembers how long it was asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        """As `Clock`."""
        self.slept.append(seconds)
        super().sleep(seconds)


def _names(snapshot: Snapshot) -> list[str]:
    found: list[Any] = snapshot.files(["path"]).column("path").to_pylist()
    return sorted(found)


def _paths(store: DictStore) -> list[str]:
    return _names(load_snapshot(utc_context(store)))


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
    assert _paths(inner) == ["x.parquet"]
    assert sorted(inner.files) == [commit_path(0), commit_path(1)]


@pytest.mark.protocol("D-27")
def test_a_request_that_was_sent_twice_finds_its_own_first_copy() -> None:
    class Twice(DictStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            super().put_if_absent(path, data)

    store = Twice(dict(table().files))
    assert commit(pending(store, new_file("x.parquet"))).version == 1
    assert _paths(store) == ["x.parquet"]


@pytest.mark.protocol("D-27")
def test_a_lost_answer_to_a_lost_race_is_a_lost_race() -> None:
    inner = table()
    store = FaultyStore(inner, InjectedFault(verb="put_if_absent", harm=Harm.REFUSE))
    tx = pending(store, new_file("mine.parquet"))
    commit(pending(inner, new_file("theirs.parquet")))
    committed = commit(tx)
    assert (committed.version, committed.num_retries) == (2, 1)
    assert _paths(inner) == ["mine.parquet", "theirs.parquet"]


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
    assert _paths(inner) == []


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
    assert _paths(inner) == []
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
    assert _paths(inner) == ["theirs.parquet"]


@pytest.mark.protocol("LOG-06")
def test_a_torn_listing_hides_no_winner() -> None:
    class Torn(DictStore):
        def list_from(self, directory: str, first: str) -> Any:
            return iter(list(super().list_from(directory, first))[:-1])

    inner = table()
    snapshot = load_snapshot(utc_context(inner))
    store = Torn(inner.files, inner.times_ms)
    for name in "abc":
        commit(pending(inner, new_file(name)))
    committed = commit(pending(store, new_file("mine"), snapshot=snapshot))
    assert committed.version == 4
    assert _paths(inner) == ["a", "b", "c", "mine"]


# Retries.


@pytest.mark.protocol("LOG-06", "B-01")
def test_a_blind_append_gets_in_after_any_number_of_winners() -> None:
    store = table()
    tx = pending(store, new_file("mine"))
    for number in range(30):
        commit(pending(store, new_file(f"{number:02}")), CommitOptions(hooks=NO_HOOKS))
    committed = commit(tx, CommitOptions(hooks=NO_HOOKS))
    assert (committed.version, committed.num_retries) == (31, 1)
    assert committed.snapshot.files(["path"]).num_rows == 31


class Contended(DictStore):
    """Somebody else is always faster."""

    busy = False

    def put_if_absent(self, path: str, data: bytes) -> None:
        if not self.busy:
            self.busy = True
            rival = load_snapshot(utc_context(self))
            commit(pending(self, new_file(path), snapshot=rival), CommitOptions(hooks=NO_HOOKS))
            self.busy = False
        super().put_if_absent(path, data)


def test_retries_wait_longer_and_longer_and_end() -> None:
    store = Contended(dict(table().files))
    clock = RecordingClock()
    backoff = Backoff(clock=clock, jitter=lambda: 1.0, max_retries=9)
    with pytest.raises(CommitRetriesExhaustedError, match=r"10 attempt\(s\)"):
        commit(pending(store, new_file("mine")), backoff=backoff)
    assert clock.slept == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0, 1.0]
    assert "mine" not in _paths(store)


def test_retries_end_after_a_time() -> None:
    store = Contended(dict(table().files))
    backoff = Backoff(clock=RecordingClock(), jitter=lambda: 1.0, max_wait_ms=5000)
    with pytest.raises(CommitRetriesExhaustedError):
        commit(pending(store, new_file("mine")), backoff=backoff)


def test_the_caller_limits_retries() -> None:
    store = Contended(dict(table().files))
    tx = moved(pending(store, new_file("mine")), clock=RecordingClock())
    with pytest.raises(CommitRetriesExhaustedError):
        commit(tx, CommitOptions(properties=CommitProperties(max_commit_retries=0)))
    assert load_snapshot(utc_context(store)).version == 1


def test_a_wait_is_a_random_part_of_its_limit() -> None:
    clock = RecordingClock()
    Backoff(clock=clock, jitter=lambda: 0.25).wait(1)
    assert clock.slept == [0.005]
    assert all(0 <= Backoff(clock=clock).jitter() < 1 for _ in range(10))


# The snapshot that a commit gives.


@pytest.mark.protocol("OV-04", "OV-07")
def test_a_commit_costs_one_request_and_its_snapshot_none() -> None:
    store = CountingStore(table([add("old.parquet")]))
    snapshot = load_snapshot(utc_context(store))
    snapshot.files()
    store.reset()
    for number in range(5):
        tx = pending(store, new_file(f"{number}"), snapshot=snapshot)
        snapshot = commit(tx).snapshot
    assert snapshot.files().num_rows == 6
    assert snapshot.version == 6
    assert store.counts == {"put_if_absent": 5}
    # What others see is the same.
    again = load_snapshot(utc_context(store))
    assert again.files().to_pylist() == snapshot.files().to_pylist()
    assert snapshot.refresh() is snapshot
    assert snapshot.commit_timestamp_ms == again.commit_timestamp_ms


def test_the_snapshot_after_a_lost_race_has_the_winners_too() -> None:
    store = CountingStore(table())
    tx = pending(store, new_file("mine"))
    commit(pending(store, new_file("theirs")))
    store.reset()
    committed = commit(tx)
    assert _names(committed.snapshot) == ["mine", "theirs"]
    # The call that lost is not counted. Who took the version; all who won; the log is not listed.
    assert store.counts == {"put_if_absent": 1, "read": 1, "stat": 1, "read_many": 1}


@pytest.mark.parametrize("features", [(), ("rowTracking", "domainMetadata", "inCommitTimestamp")])
def test_a_commit_onto_many_files_reads_none_of_them(features: tuple[str, ...]) -> None:
    inner = table(features=features, configuration={"delta.enableInCommitTimestamps": "true"})
    small = actions_of(inner, 0)[1:]
    files = [add(f"{number}", stats=f'{{"numRecords":{number}}}') for number in range(10_000)]
    mark = domain("delta.rowTracking", '{"rowIdHighWaterMark":99999999}')
    classic_checkpoint(inner, 0, [*small, mark, *files])
    store = CountingStore(inner)
    snapshot = load_snapshot(utc_context(store))
    store.reset()
    committed = commit(
        pending(store, new_file("mine"), snapshot=snapshot), CommitOptions(hooks=NO_HOOKS)
    )
    assert committed.version == 1
    assert store.bytes_read < 5_000
    assert store.counts.get("list_from", 0) == 0
    assert load_snapshot(utc_context(inner)).num_files == 10_001


# Writes that are repeated.


@pytest.mark.protocol("TXN-03")
def test_a_repeated_step_of_an_application_is_skipped() -> None:
    store = table()
    once = CommitProperties(app_transactions=[AppTransaction("app", 3)])
    first = commit(pending(store, new_file("a")), CommitOptions(properties=once))
    again = commit(pending(store, new_file("b")), CommitOptions(properties=once))
    older = CommitProperties(app_transactions=[AppTransaction("app", 2)])
    assert (first.skipped, again.skipped, again.version) == (False, True, 1)
    assert commit(pending(store, new_file("c")), CommitOptions(properties=older)).skipped
    newer = CommitProperties(app_transactions=[AppTransaction("app", 4)])
    assert not commit(pending(store, new_file("d")), CommitOptions(properties=newer)).skipped
    assert _paths(store) == ["a", "d"]


@pytest.mark.protocol("TXN-03", "TXN-04")
def test_two_writers_of_the_same_step_make_it_once() -> None:
    store = table()
    once = CommitProperties(app_transactions=[AppTransaction("app", 3)])
    tx = pending(store, new_file("late"))
    commit(pending(store, new_file("early")), CommitOptions(properties=once))
    committed = commit(tx, CommitOptions(properties=once))
    assert committed.skipped
    assert committed.snapshot.version == 1
    assert _paths(store) == ["early"]


def test_steps_of_several_applications_go_together() -> None:
    store = table()
    commit(
        pending(store),
        CommitOptions(properties=CommitProperties(app_transactions=[AppTransaction("a", 1)])),
    )
    both = CommitProperties(app_transactions=[AppTransaction("a", 1), AppTransaction("b", 1)])
    with pytest.raises(InvalidInputError, match="those of b are not"):
        commit(pending(store), CommitOptions(properties=both))


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
        tx.read(None)
        tx.add_files([new_file(f"count-{tx.snapshot.num_files}")])
        if len(seen) <= rivals:
            commit(pending(store, new_file(f"rival-{len(seen)}")))
        return tx.snapshot.num_files

    return stage, seen


@pytest.mark.protocol("OV-05")
def test_an_operation_that_lost_is_evaluated_anew() -> None:
    store = table()
    stage, seen = _count_rows(store, rivals=2)
    ran = run(_loader(store), stage, operation="COUNT")
    assert seen == [0, 1, 2]
    assert (ran.value, ran.committed.version) == (2, 3)
    assert _paths(store) == ["count-2", "rival-1", "rival-2"]


def test_an_operation_is_not_evaluated_for_ever() -> None:
    store = table()
    stage, seen = _count_rows(store, rivals=99)
    with pytest.raises(ConcurrentAppendError):
        run(_loader(store), stage, operation="COUNT", max_reruns=3)
    assert seen == [0, 1, 2, 3]


def test_an_operation_that_must_not_be_evaluated_anew_raises() -> None:
    store = table()
    stage, seen = _count_rows(store, rivals=1)
    with pytest.raises(ConcurrentAppendError):
        run(_loader(store), stage, operation="COUNT", options=CommitOptions(on_conflict="raise"))
    assert seen == [0]


def test_a_repeated_step_is_not_even_planned() -> None:
    store = table()
    once = CommitProperties(app_transactions=[AppTransaction("app", 3)])
    stage, seen = _count_rows(store, rivals=0)
    for _ in range(2):
        ran = run(_loader(store), stage, operation="COUNT", options=CommitOptions(properties=once))
    assert seen == [0]
    assert (ran.value, ran.committed.skipped) == (None, True)


def test_nothing_to_do_is_no_commit_if_so_wished() -> None:
    store = table()
    ran = run(_loader(store), lambda _tx: "done", operation="DELETE", skip_empty=True)
    assert (ran.value, ran.committed.skipped, ran.committed.version) == ("done", True, 0)
    assert run(_loader(store), lambda _tx: "done", operation="DELETE").committed.version == 1


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
    commit(pending(store, new_file("x")), CommitOptions(hooks=NO_HOOKS))
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
    assert "the commit stands" in caplog.text


def test_a_log_that_was_cut_meanwhile_is_told() -> None:
    inner = table()
    tx = pending(inner, new_file("mine"))
    commit(pending(inner, new_file("theirs")))

    class Cut(DictStore):
        def stat(self, path: str) -> Any:
            raise ObjectNotFoundError(path)

        def list_from(self, _directory: str, _first: str) -> Any:
            return iter(())

    moved(tx, store=Cut(inner.files))
    with pytest.raises(ObjectNotFoundError):
        commit(tx)
