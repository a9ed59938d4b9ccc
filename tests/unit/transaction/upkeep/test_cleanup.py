"""Cleaning up the log: what is deleted, and that nothing that is needed ever is."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.log import names
from deltalog.log.checkpoints.writer import CheckpointLayout
from deltalog.log.context import LogTail, utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from deltalog.transaction.maintenance.cleanup import (
    cleanup_metadata,
    cleanup_once_a_day,
    compact_logs,
)
from tests.support import logs
from tests.support.examples import examples
from tests.support.logs import DictStore, Json

DAY = 86_400_000
NOW = 20_000 * DAY + 5 * 3_600_000  # five in the morning, UTC
FEATURES = ["v2Checkpoint", "checkpointProtection", "inCommitTimestamp"]
PROTOCOL: Json = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": FEATURES[:1],
        "writerFeatures": FEATURES,
    }
}


def table(ages_days: list[float], checkpoints: dict[int, str], **configuration: str) -> DictStore:
    """A table with a commit of each age, and checkpoints of some versions."""
    store = DictStore()
    for version, age in enumerate(ages_days):
        first = [PROTOCOL, logs.metadata(configuration=configuration)] if version == 0 else []
        time_ms = int(NOW - age * DAY)
        info: Json = {"commitInfo": {"inCommitTimestamp": time_ms}}
        add = logs.add(f"f{version}")
        logs.commit(store, version, info, *first, add, time_ms=time_ms)
        store.files[names.log_path(names.checksum_name(version))] = b"{}"
        if version in checkpoints:
            create_checkpoint(
                load_snapshot(utc_context(store)),
                layout=CheckpointLayout(checkpoints[version]),
                at_ms=NOW,
            )
    return store


def commits_of(store: DictStore) -> list[int]:
    return [v for v in range(100) if names.commit_path(v) in store.files]


def files_at(store: Any, version: int) -> set[str]:
    rows = load_snapshot(utc_context(store), version=version).files(["path"]).to_pylist()
    return {row["path"] for row in rows}


def clean(store: Any, **options: Any) -> list[str]:
    return cleanup_metadata(load_snapshot(utc_context(store)), at_ms=NOW, **options)


FORTY_DAYS: list[float] = [40.0 - day for day in range(41)]


@pytest.mark.protocol(
    "B-24", "D-61", "CKPT-24", "B4-delta.logRetentionDuration",
    "B4-delta.checkpointRetentionDuration", "B4-delta.enableFullRetentionRollback",
)  # fmt: skip
def test_everything_before_the_last_expired_checkpoint_goes() -> None:
    store = table(FORTY_DAYS, {5: "classic", 8: "classic", 12: "classic"})
    deleted = clean(store)
    # The cutoff is midnight before day 30: version 9 is the last that is not after it.
    assert commits_of(store) == list(range(8, 41))
    assert names.log_path(names.checkpoint_name(5)) in deleted
    assert names.log_path(names.checksum_name(7)) in deleted
    assert names.log_path(names.checksum_name(8)) in store.files
    for version in range(8, 41):
        assert files_at(store, version) == {f"f{n}" for n in range(version + 1)}
    assert clean(store) == []


def test_a_process_cleans_up_once_a_day() -> None:
    store = CountingStore(table(FORTY_DAYS, {5: "classic", 12: "classic"}))
    snapshot = load_snapshot(utc_context(store))
    cleanup_once_a_day(snapshot, at_ms=NOW)
    assert store.paths("delete_many")
    left = commits_of(store.store)  # type: ignore[arg-type]  # the DictStore from above
    store.reset()
    cleanup_once_a_day(snapshot, at_ms=NOW + 10 * 3_600_000)
    assert store.calls == []
    cleanup_once_a_day(snapshot, at_ms=NOW + 30 * DAY)
    assert commits_of(store.store) == left[left.index(12) :]  # type: ignore[arg-type]


@pytest.mark.protocol("B-24", "D-61")
def test_files_of_others_neither_go_nor_stop_the_clean_up() -> None:
    store = table(FORTY_DAYS, {5: "classic"})
    others = [names.log_path(name) for name in (".hidden", "00000000000000000001.tmp", "a")]
    for path in others:
        store.put(path, b"x")
    clean(store)
    assert commits_of(store)[0] == 5
    assert set(others) <= store.files.keys()


@pytest.mark.protocol("B-24", "D-61")
def test_the_retention_begins_at_midnight() -> None:
    # 30 days ago it was five in the morning too; the day counts whole.
    store = table([31, 30.2, 30.1, 0], {1: "classic", 2: "classic"})
    clean(store)
    assert commits_of(store) == [0, 1, 2, 3]
    store = table([31.5, 30.3, 30.1, 0], {1: "classic", 2: "classic"})
    clean(store)
    assert commits_of(store) == [1, 2, 3]


@pytest.mark.protocol("B-24")
def test_the_table_or_the_caller_says_how_long() -> None:
    ages: list[float] = [9, 8, 7, 3, 0]
    kept = table(ages, {1: "classic", 3: "classic"})
    assert clean(kept) == []
    short = table(ages, {1: "classic", 3: "classic"}, **{"delta.logRetentionDuration": "5 days"})
    clean(short)
    assert commits_of(short) == [1, 2, 3, 4]
    clean(kept, retention_ms=2 * DAY)
    assert commits_of(kept) == [3, 4]


@pytest.mark.protocol("D-61")
@pytest.mark.parametrize("harm", ["torn", "incomplete", "no checkpoint"])
def test_a_checkpoint_that_is_no_good_is_no_boundary(harm: str) -> None:
    store = table([60, 50, 40, 35, 0], {} if harm == "no checkpoint" else {3: "classic"})
    path = names.log_path(names.checkpoint_name(3))
    if harm == "torn":
        store.put(path, store.files[path][:-10])
    elif harm == "incomplete":
        data = store.files.pop(path)
        store.put(names.log_path(names.checkpoint_part_name(3, 1, 2)), data)
    assert clean(store) == []
    assert files_at(store, 1) == {"f0", "f1"}


@pytest.mark.protocol("B-24", "B-18")
def test_compacted_logs_that_reach_the_boundary_go() -> None:
    store = table([60, 55, 50, 45, 40, 0], {3: "classic"})
    for start, end in ((0, 1), (2, 4), (4, 5)):
        compact_logs(load_snapshot(utc_context(store)), start, end)
    deleted = clean(store)
    gone = [path for path in deleted if path.endswith("compacted.json")]
    assert gone == [names.log_path(names.compaction_name(*run)) for run in ((0, 1), (2, 4))]
    assert files_at(store, 5) == {f"f{n}" for n in range(6)}


@pytest.mark.protocol("B-24", "B-43")
def test_staged_commits_up_to_the_boundary_go() -> None:
    store = table([60, 50, 40, 0], {2: "classic"})
    staged = [f"{names.STAGED_DIRECTORY}/{v:020d}.{logs.SIDECAR_UUID}.json" for v in (1, 2, 3)]
    for path in staged:
        store.put(path, b"{}")
    clean(store)
    assert [path in store.files for path in staged] == [False, False, True]


@pytest.mark.protocol("B-24", "D-60")
def test_old_sidecars_that_nobody_names_go() -> None:
    store = table([60, 50, 40, 0], {1: "v2 json", 2: "v2 parquet"})
    named_by_two = _sidecars(store)
    orphan = f"{names.SIDECAR_DIRECTORY}/orphan.parquet"
    young = f"{names.SIDECAR_DIRECTORY}/young.parquet"
    store.put(orphan, b"x")
    store.put(young, b"x")
    store.times_ms[young] = NOW - DAY
    clean(store)
    assert len(named_by_two) == 2
    assert len(_sidecars(store)) == 2  # the one of version 2, and the young one
    assert orphan not in store.files
    assert young in store.files
    assert files_at(store, 3) == {"f0", "f1", "f2", "f3"}


def test_no_sidecar_goes_while_a_checkpoint_is_unreadable() -> None:
    store = table([60, 50, 40, 0], {1: "v2 parquet", 2: "v2 json"})
    torn = next(path for path in store.files if f"{1:020d}.checkpoint" in path)
    clean_before = dict(store.files)
    store.put(torn, b"PAR1 torn PAR1")
    cleanup_metadata(load_snapshot(utc_context(store)), at_ms=NOW, retention_ms=1000 * DAY)
    assert _sidecars(store) == _sidecars(DictStore(clean_before))


def _sidecars(store: DictStore) -> list[str]:
    return [path for path in store.files if path.startswith(names.SIDECAR_DIRECTORY)]


@pytest.mark.protocol("B-24", "B-55")
@pytest.mark.parametrize(("before", "left"), [(2, [2, 3]), (3, [0, 1, 2, 3])])
def test_a_protected_history_goes_at_once_or_not_at_all(before: int, left: list[int]) -> None:
    configuration = {"delta.requireCheckpointProtectionBeforeVersion": str(before)}
    store = table([60, 50, 40, 0], {1: "classic", 2: "classic"}, **configuration)
    clean(store)
    assert commits_of(store) == left


@pytest.mark.protocol("B-24", "B-55")
def test_commits_go_before_their_checkpoints() -> None:
    store = table([60, 50, 40, 0], {0: "classic", 2: "classic"})
    deletes = FaultyStore(store)
    deleted = cleanup_metadata(load_snapshot(utc_context(deletes)), at_ms=NOW)
    kinds = ["checkpoint" in path for path in deleted]
    assert kinds == sorted(kinds)
    assert [verb for verb, _ in deletes.calls if verb == "delete_many"][:2] == ["delete_many"] * 2


@pytest.mark.protocol("B-22", "B-24")
def test_in_commit_times_protect_what_the_files_times_do_not() -> None:
    enabled = {"delta.enableInCommitTimestamps": "true"}
    store = table([60, 50, 3, 2, 0], {1: "classic", 3: "classic"}, **enabled)
    for path in store.times_ms:
        store.times_ms[path] = NOW - 100 * DAY  # as a copy with wrong times has them
    clean(store)
    assert commits_of(store) == [1, 2, 3, 4]


def test_a_catalog_decides_about_its_log() -> None:
    store = table([60, 50, 40, 0], {2: "classic"})
    features = ["catalogManaged", *FEATURES]
    protocol = {**PROTOCOL["protocol"], "writerFeatures": features, "readerFeatures": features[:2]}
    logs.commit(store, 4, {"protocol": protocol}, time_ms=NOW)
    snapshot = load_snapshot(utc_context(store).with_log_tail(LogTail(latest_version=4)))
    with pytest.raises(InvalidInputError, match="catalog"):
        cleanup_metadata(snapshot, at_ms=NOW)


@pytest.mark.slow("a fault at each call of the store")
@pytest.mark.protocol("D-61")
@pytest.mark.parametrize("harm", Harm)
def test_a_fault_at_any_call_cuts_nothing_that_is_needed(harm: Harm) -> None:
    ages: list[float] = [60, 50, 45, 40, 20, 0]
    checkpoints = {1: "v2 json", 3: "v2 parquet", 4: "classic"}
    whole = FaultyStore(table(ages, checkpoints))
    clean(whole)
    for call in range(1, len(whole.calls) + 1):
        store = table(ages, checkpoints)
        with contextlib.suppress(DeltaError):
            clean(FaultyStore(store, InjectedFault(call=call, harm=harm)))
        for version in range(3, 6):
            assert files_at(store, version) == {f"f{n}" for n in range(version + 1)}


@pytest.mark.protocol("B-24", "D-61")
@given(data=st.data())
@settings(max_examples=examples(25))
def test_every_version_of_the_retention_period_stays_readable(data: st.DataObject) -> None:
    """Even if the cleanup is torn anywhere: any part of what goes may be gone already."""
    gaps = data.draw(st.lists(st.floats(0, 6), min_size=2, max_size=12))
    ages = [sum(gaps[version:]) for version in range(len(gaps))]
    layouts = st.sampled_from(["classic", "v2 json", "v2 parquet"])
    made = data.draw(st.dictionaries(st.integers(0, len(gaps) - 1), layouts))
    days = data.draw(st.integers(0, 20))
    store = table(ages, made)
    before = dict(store.files)
    deleted = clean(store, retention_ms=days * DAY)
    remaining = data.draw(st.lists(st.sampled_from(deleted), unique=True)) if deleted else []
    store.files.update({path: before[path] for path in remaining})
    cutoff = NOW - days * DAY
    times = [int(NOW - age * DAY) for age in ages]
    first = max((version for version, time in enumerate(times) if time <= cutoff), default=0)
    for version in range(first, len(ages)):
        assert files_at(store, version) == {f"f{n}" for n in range(version + 1)}
    assert load_snapshot(utc_context(store)).version == len(ages) - 1
