"""Vacuum: what goes, what stays, and that it never takes what a version within reach needs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog._util.json import loads
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    UnsupportedFeatureError,
)
from deltalog.operations.engine import LocalEngine
from deltalog.operations.restore import Restore
from deltalog.operations.vacuum import (
    VACUUM_SCHEMA,
    VacuumEnd,
    VacuumPlan,
    VacuumStart,
    confirm_vacuum,
    delete_planned,
    remember_lite,
)
from deltalog.testing import FaultyStore, Harm, InjectedFault
from tests.support.aging import DAY_MS, FEATURES, START_MS, AgingTable
from tests.support.examples import examples
from tests.support.logs import commit, metadata
from tests.support.vacuuming import (
    BOTH,
    FULL,
    LITE,
    VECTORS,
    WEEK,
    logged,
    masked,
    old_and_new,
    put,
)


@BOTH
def test_a_plan_names_files_and_deletes_none(how: Mapping[str, Any]) -> None:
    table = old_and_new()
    before = dict(table.kept.files)
    plan = table.plan(**how)
    (gone,) = table.snapshot().tombstones(["path"]).column("path").to_pylist()
    assert plan.files.schema == VACUUM_SCHEMA
    assert plan.paths == [gone]
    assert plan.files.column("reason").to_pylist() == ["removed from the table"]
    assert plan.size_bytes == len(table.kept.files[str(gone)])
    assert table.kept.files == before


@pytest.mark.protocol("OV-08", "REC-04", "REM-07")
@BOTH
def test_what_left_the_table_a_week_ago_is_deleted(how: Mapping[str, Any]) -> None:
    table = old_and_new()
    assert len(table.data_files()) == 2
    assert len(table.vacuum(**how)) == 1
    assert len(table.data_files()) == 1
    assert table.rows() == [(3,)]


@pytest.mark.protocol("D-49")
def test_a_short_retention_has_to_be_forced() -> None:
    table = old_and_new()
    table.delete("id = 3")
    with pytest.raises(InvalidInputError, match="enforce_retention_duration=False"):
        table.plan(retention_hours=WEEK * 24 - 1)
    with pytest.raises(InvalidInputError, match="negative"):
        table.plan(retention_hours=-1, enforce_retention_duration=False)
    assert len(table.plan(retention_hours=WEEK * 24).paths) == 1
    table.wait(1)
    assert len(table.plan(retention_hours=0, enforce_retention_duration=False).paths) == 2


@pytest.mark.protocol("D-49")
def test_the_table_says_how_long_files_stay() -> None:
    table = old_and_new(**{"delta.deletedFileRetentionDuration": "interval 9 days"})
    assert table.plan().paths == []
    with pytest.raises(InvalidInputError, match="216"):
        table.plan(retention_hours=200)


@pytest.mark.protocol("D-49", "B-54")
@BOTH
def test_who_may_not_write_may_not_vacuum(how: Mapping[str, Any]) -> None:
    table = AgingTable()
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["vacuumProtocolCheck"],
        "writerFeatures": ["vacuumProtocolCheck", "soonToCome"],
    }
    commit(table.kept, 0, {"protocol": protocol}, metadata(), time_ms=START_MS)
    with pytest.raises(UnsupportedFeatureError, match="soonToCome"):
        table.plan(**how)


def test_lite_remembers_what_it_has_deleted() -> None:
    table = old_and_new()
    plan = table.plan()
    delete_planned(table.store, plan, LocalEngine())
    remember_lite(table.store, plan)
    note = loads(table.kept.files["_delta_log/_last_vacuum_info"], "")
    assert note["latestCommitVersionOutsideOfRetentionWindow"] == 2
    assert table.plan().paths == []
    table.delete()
    table.wait(WEEK + 1)
    assert len(table.plan().paths) == 1
    assert len(table.plan(**FULL).paths) == 1


@pytest.mark.parametrize("note", [b"{}", b"", b'{"latestCommitVersionOutsideOfRetentionWindow":1}'])
def test_lite_goes_by_the_notes_of_others(note: bytes) -> None:
    table = old_and_new()
    table.kept.files["_delta_log/_last_vacuum_info"] = note
    assert len(table.plan().paths) == 1


def test_what_is_kept_for_a_version_is_not_forgotten() -> None:
    table = old_and_new()
    plan = table.plan(keep_versions=[1])
    remember_lite(table.store, plan)
    assert plan.paths == []
    assert len(table.plan().paths) == 1


def test_what_a_newer_version_needs_is_left_out_of_the_plan() -> None:
    table = old_and_new()
    plan = table.plan()
    table.do(Restore(target=table.snapshot(1), asked=1))
    confirmed = confirm_vacuum(plan, table.snapshot())
    assert (len(plan.paths), confirmed.paths) == (1, [])


def vacuum_logged(table: AgingTable, plan: VacuumPlan) -> None:
    """As the facade does it."""
    table.do(VacuumStart(plan))
    plan = confirm_vacuum(plan, table.snapshot())
    deleted = delete_planned(table.store, plan, LocalEngine())
    table.do(VacuumEnd(num_deleted=deleted))
    remember_lite(table.store, plan)


def test_the_history_tells_of_it_as_the_reference_does() -> None:
    table = old_and_new()
    plan = table.plan(retention_hours=24, enforce_retention_duration=False)
    vacuum_logged(table, plan)
    end, start = table.snapshot().history(2)
    assert (start["operation"], start["operationParameters"], start["operationMetrics"]) == (
        "VACUUM START",
        {
            "retentionCheckEnabled": False,
            "defaultRetentionMillis": WEEK * DAY_MS,
            "specifiedRetentionMillis": DAY_MS,
        },
        {"numFilesToDelete": "1", "sizeOfDataToDelete": str(plan.size_bytes)},
    )
    assert (end["operation"], end["operationParameters"], end["operationMetrics"]) == (
        "VACUUM END",
        {"status": "COMPLETED"},
        {"numDeletedFiles": "1"},
    )


def test_progress_is_told_and_can_stop_it() -> None:
    engine = LocalEngine()
    engine.files_per_deletion = 2
    table = logged()
    put(table, *"abcde")
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        delete_planned(table.store, table.plan(**FULL), engine, progress=stop)
    assert told == [(2, 5), (4, 5)]
    assert len(table.data_files()) == 1


@pytest.mark.slow("a crash at each call of the store")
@BOTH
def test_a_crash_anywhere_leaves_the_table_and_the_rest_for_next_time(
    how: Mapping[str, Any],
) -> None:
    number = 0
    while True:
        number += 1
        table = masked(days=30)
        live = table.rows()
        table.store = faulty = FaultyStore(table.kept, InjectedFault(call=number, harm=Harm.CRASH))
        with contextlib.suppress(DeltaError):
            vacuum_logged(table, table.plan(**how))
        if not faulty.crashed:
            break
        table.store = table.kept
        assert table.rows() == live
        table.vacuum(**how)
        assert table.rows() == live
        assert table.plan(**FULL).paths == []
    assert number > 5


@pytest.mark.slow("a long property")
@settings(max_examples=examples(40))
@given(st.data())
def test_law_every_version_within_the_retention_stays_readable(data: st.DataObject) -> None:
    table = AgingTable()
    properties = data.draw(st.sampled_from([{}, VECTORS, FEATURES]))
    table.create(
        {"id": list(range(1500)), "p": [0, 1, 2] * 500}, partition_by=["p"], properties=properties
    )
    expected = {0: (table.kept.now_ms, table.rows())}
    for _ in range(data.draw(st.integers(1, 6))):
        table.wait(data.draw(st.sampled_from([0.0, 3.0, 8.0])))
        match data.draw(st.sampled_from(["delete", "truncate", "append", "restore", "vacuum"])):
            case "delete":
                table.delete(f"id % 7 = {data.draw(st.integers(0, 6))}")
            case "truncate":
                table.delete(f"p = {data.draw(st.integers(0, 2))}")
            case "append":
                table.append({"id": list(range(5)), "p": [1] * 5})
            case "restore":
                within = [v for v, (_, _) in expected.items() if _is_reachable(table, expected, v)]
                target = table.snapshot(data.draw(st.sampled_from(within)))
                table.do(Restore(target=target, asked=target.version))
            case _:
                table.vacuum(mode=data.draw(st.sampled_from(["lite", "full"])))
                continue
        expected[table.snapshot().version] = (table.kept.now_ms, table.rows())
    table.vacuum(**data.draw(st.sampled_from([LITE, FULL])))
    for version, (_, found) in expected.items():
        if _is_reachable(table, expected, version):
            assert table.rows(version) == found


def _is_reachable(table: AgingTable, expected: Mapping[int, tuple[int, Any]], version: int) -> bool:
    """Whether a version was the latest one at some moment within the retention."""
    later = [time for other, (time, _) in expected.items() if other > version]
    return not later or min(later) >= table.kept.now_ms - WEEK * DAY_MS


def test_temporary_files_of_killed_writers_are_deleted() -> None:
    table = old_and_new()
    name = ".x.parquet.0123456789abcdef0123456789abcdef.tmp"
    old, young = [f"{at}{name}" for at in ("", "_delta_log/")], f"_delta_log/_sidecars/{name}"
    put(table, *old)
    put(table, young, age_days=6)
    plan = table.plan(**FULL)
    reasons = dict(zip(plan.paths, plan.files.column("reason").to_pylist(), strict=True))
    assert {path for path, reason in reasons.items() if "temporary" in str(reason)} == set(old)
    table.vacuum(**FULL)
    assert young in table.kept.files
    assert not table.kept.files.keys() & set(old)
    assert table.rows() == [(3,)]
