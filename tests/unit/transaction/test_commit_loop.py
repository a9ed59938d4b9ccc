"""One commit, from the first attempt to the last."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import (
    InvalidInputError,
    ObjectNotFoundError,
)
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.testing import CountingStore
from deltalog.transaction import (
    AppTransaction,
    CommitProperties,
    commit,
)
from deltalog.transaction.properties import CommitOptions
from tests.support.contexts import moved
from tests.support.logs import DictStore, add, classic_checkpoint, domain
from tests.support.transactions import (
    NO_CHECKPOINT,
    actions_of,
    names_of_files,
    new_file,
    paths_of_adds,
    pending,
    table,
)


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
    assert paths_of_adds(inner) == ["a", "b", "c", "mine"]


# Retries.


@pytest.mark.protocol("LOG-06", "B-01")
def test_a_blind_append_gets_in_after_any_number_of_winners() -> None:
    store = table()
    tx = pending(store, new_file("mine"))
    for number in range(30):
        commit(pending(store, new_file(f"{number:02}")), CommitOptions(hooks=NO_CHECKPOINT))
    committed = commit(tx, CommitOptions(hooks=NO_CHECKPOINT))
    assert (committed.version, committed.num_retries) == (31, 1)
    assert committed.snapshot.files(["path"]).num_rows == 31


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
    assert names_of_files(committed.snapshot) == ["mine", "theirs"]
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
        pending(store, new_file("mine"), snapshot=snapshot), CommitOptions(hooks=NO_CHECKPOINT)
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
    assert paths_of_adds(store) == ["a", "d"]


@pytest.mark.protocol("TXN-03", "TXN-04")
def test_two_writers_of_the_same_step_make_it_once() -> None:
    store = table()
    once = CommitProperties(app_transactions=[AppTransaction("app", 3)])
    tx = pending(store, new_file("late"))
    commit(pending(store, new_file("early")), CommitOptions(properties=once))
    committed = commit(tx, CommitOptions(properties=once))
    assert committed.skipped
    assert committed.snapshot.version == 1
    assert paths_of_adds(store) == ["early"]


def test_steps_of_several_applications_go_together() -> None:
    store = table()
    commit(
        pending(store),
        CommitOptions(properties=CommitProperties(app_transactions=[AppTransaction("a", 1)])),
    )
    both = CommitProperties(app_transactions=[AppTransaction("a", 1), AppTransaction("b", 1)])
    with pytest.raises(InvalidInputError, match="those of b are not"):
        commit(pending(store), CommitOptions(properties=both))


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
