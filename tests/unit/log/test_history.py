"""Commit times, time travel, history."""

from __future__ import annotations

import pytest

from deltalog._util.paths import FileInfo
from deltalog.errors import InvalidInputError, VersionNotFoundError
from deltalog.log.context import utc_context
from deltalog.log.history import file_times_ms
from deltalog.log.names import LogFile, LogFileKind
from deltalog.log.snapshot import find_version, load_snapshot
from deltalog.testing import CountingStore
from tests.support import logs

FAR_MS = 4_102_444_800_000  # the year 2100
ICT_PROTOCOL: logs.Json = {
    "protocol": {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["inCommitTimestamp"],
    }
}


def timed(*times_ms: int) -> logs.DictStore:
    store = logs.DictStore()
    for version, time_ms in enumerate(times_ms):
        first = [logs.PROTOCOL, logs.metadata()] if version == 0 else []
        logs.commit(store, version, *first, time_ms=time_ms)
    return store


def in_commit_timed(
    *own_times_ms: int, since: int = 0, since_ms: int | None = None
) -> logs.DictStore:
    """Version n has file time 1,000,000 - n, and from `since` on a time of its own."""
    store = logs.DictStore()
    configuration = {"delta.enableInCommitTimestamps": "true"}
    if since:
        configuration["delta.inCommitTimestampEnablementVersion"] = str(since)
        configuration["delta.inCommitTimestampEnablementTimestamp"] = str(since_ms)
    for version, own_ms in enumerate(own_times_ms):
        info = {"operation": "WRITE", "timestamp": 5}
        if version >= since:
            info["inCommitTimestamp"] = own_ms
        first = []
        if version in {0, since}:
            used = configuration if version == since else {}
            first = [ICT_PROTOCOL, logs.metadata(configuration=used)]
        logs.commit(store, version, {"commitInfo": info}, *first, time_ms=1_000_000 - version)
    return store


@pytest.mark.protocol("D-50")
def test_file_times_are_made_to_rise() -> None:
    commits = [
        LogFile(LogFileKind.COMMIT, version, FileInfo("x", 1, time_ms))
        for version, time_ms in enumerate([10, 10, 5, 20])
    ]
    assert file_times_ms(commits) == {0: 10, 1: 11, 2: 12, 3: 20}


@pytest.mark.protocol("D-51")
@pytest.mark.parametrize(
    ("moment", "version"), [(10, 0), (15, 0), (19, 0), (20, 1), (25, 1), (30, 2), (10**9, 2)]
)
def test_the_last_commit_not_after_the_moment(moment: int, version: int) -> None:
    assert find_version(utc_context(timed(10, 20, 30)), moment) == version
    assert load_snapshot(utc_context(timed(10, 20, 30)), timestamp_ms=moment).version == version


@pytest.mark.protocol("D-50", "D-51")
def test_equal_file_times_are_told_apart() -> None:
    assert [find_version(utc_context(timed(10, 10, 5)), moment) for moment in (10, 11, 12)] == [
        0,
        1,
        2,
    ]


@pytest.mark.protocol("D-51")
def test_moments_out_of_range_are_errors_that_name_the_bounds() -> None:
    with pytest.raises(
        VersionNotFoundError, match=r"version that can be read is 0.*00:00:00\.010Z"
    ):
        find_version(utc_context(timed(10, 20)), 9)
    with pytest.raises(VersionNotFoundError, match=r"in the future.*version is 1"):
        find_version(utc_context(timed(10, 20)), FAR_MS)
    with pytest.raises(InvalidInputError):
        load_snapshot(utc_context(timed(10)), version=0, timestamp_ms=10)


@pytest.mark.protocol("D-51")
def test_cleaned_up_versions_are_out_of_range() -> None:
    store = timed(*range(10, 60, 10))
    logs.classic_checkpoint(store, 3, [logs.PROTOCOL, logs.metadata()])
    store.delete_many(["_delta_log/00000000000000000000.json"])
    assert find_version(utc_context(store), 45) == 3
    with pytest.raises(VersionNotFoundError, match="read is 3"):
        find_version(utc_context(store), 30)


@pytest.mark.protocol("D-51")
def test_versions_are_readable_from_the_first_checkpoint_of_those_left() -> None:
    store = timed(*range(10, 60, 10))
    for version in (2, 4):
        logs.classic_checkpoint(store, version, [logs.PROTOCOL, logs.metadata()])
    store.delete_many(["_delta_log/00000000000000000000.json"])
    assert find_version(utc_context(store), 35) == 2
    with pytest.raises(VersionNotFoundError, match="read is 2"):
        find_version(utc_context(store), 29)


@pytest.mark.protocol("D-51")
def test_a_checkpoint_right_before_the_first_commit_left_makes_it_readable() -> None:
    store = timed(*range(10, 60, 10))
    logs.classic_checkpoint(store, 2, [logs.PROTOCOL, logs.metadata()])
    store.delete_many([f"_delta_log/{version:020}.json" for version in range(3)])
    assert find_version(utc_context(store), 45) == 3


@pytest.mark.protocol("D-51")
def test_a_checkpoint_before_a_gap_makes_nothing_after_it_readable() -> None:
    store = timed(*range(10, 70, 10))
    for version in (1, 4):
        logs.classic_checkpoint(store, version, [logs.PROTOCOL, logs.metadata()])
    store.delete_many([f"_delta_log/{version:020}.json" for version in range(3)])
    assert find_version(utc_context(store), 50) == 4
    with pytest.raises(VersionNotFoundError, match="read is 4"):
        find_version(utc_context(store), 45)


@pytest.mark.protocol("D-52", "B-22")
def test_in_commit_times_count_from_the_start() -> None:
    store = in_commit_timed(100, 200, 300)
    assert [find_version(utc_context(store), moment) for moment in (100, 199, 200, 300, 301)] == [
        0,
        0,
        1,
        2,
        2,
    ]
    with pytest.raises(VersionNotFoundError):
        find_version(utc_context(store), 99)
    assert load_snapshot(utc_context(store), version=1).commit_timestamp_ms == 200


@pytest.mark.protocol("D-52", "B-22")
def test_in_commit_times_count_from_enablement() -> None:
    # File times: 1,000,000 and (made to rise) 1,000,001, then 2,000,000 and so on.
    store = in_commit_timed(0, 0, 2_000_000, 3_000_000, since=2, since_ms=2_000_000)
    moments = [1_000_000, 1_000_001, 1_999_999, 2_000_000, 2_999_999, 3_000_000]
    assert [find_version(utc_context(store), moment) for moment in moments] == [0, 1, 1, 2, 2, 3]
    with pytest.raises(VersionNotFoundError):
        find_version(utc_context(store), 999_999)
    assert [entry["timestamp"] for entry in load_snapshot(utc_context(store)).history()] == [
        3_000_000,
        2_000_000,
        1_000_001,
        1_000_000,
    ]


def test_a_search_reads_few_commits() -> None:
    store = CountingStore(in_commit_timed(*range(100, 100 + 256)))
    assert find_version(utc_context(store), 217) == 117
    read = store.paths("read")
    assert 8 <= len(read) <= 12


@pytest.mark.protocol("B-22")
def test_the_checksum_has_the_time_of_a_commit_that_is_gone() -> None:
    store = in_commit_timed(100, 200)
    protocol = {"protocol": ICT_PROTOCOL["protocol"]}
    configuration = {"delta.enableInCommitTimestamps": "true"}
    table_metadata = logs.metadata(configuration=configuration)
    logs.classic_checkpoint(store, 1, [protocol, table_metadata])
    store.put(
        "_delta_log/00000000000000000001.crc",
        logs.ndjson(
            [
                {
                    "tableSizeBytes": 0,
                    "numFiles": 0,
                    "protocol": protocol["protocol"],
                    "metadata": table_metadata["metaData"],
                    "inCommitTimestampOpt": 200,
                }
            ]
        ),
    )
    store.times_ms["_delta_log/00000000000000000001.json"] = 77
    commit = store.read("_delta_log/00000000000000000001.json")
    store.put(
        "_delta_log/00000000000000000001.json",
        commit.replace(b'"inCommitTimestamp":200', b'"inCommitTimestamp":201'),
    )
    assert load_snapshot(utc_context(store)).commit_timestamp_ms == 201  # the commit's own wins
    store.delete_many(["_delta_log/00000000000000000001.json"])
    assert load_snapshot(utc_context(store)).commit_timestamp_ms == 200


@pytest.mark.protocol("B-22")
def test_a_commit_that_lacks_its_own_time_has_that_of_its_file() -> None:
    store = in_commit_timed(100, 200)
    logs.commit(store, 2, {"commitInfo": {"operation": "WRITE"}}, time_ms=300)
    assert load_snapshot(utc_context(store)).commit_timestamp_ms == 300


@pytest.mark.protocol("PROV-01", "B-04")
def test_history_is_newest_first_and_tolerant() -> None:
    store = logs.DictStore()
    logs.commit(store, 0, logs.PROTOCOL, logs.metadata(), time_ms=10)
    logs.commit(store, 1, {"commitInfo": {"operation": "WRITE", "timestamp": 3, "x": {"y": 1}}})
    logs.commit(store, 2, {"commitInfo": "odd"}, time_ms=2000)
    logs.commit(store, 3, {"commitInfo": {"version": 77, "operation": "OPTIMIZE"}}, time_ms=3000)
    history = load_snapshot(utc_context(store)).history()
    assert history == [
        {"version": 3, "timestamp": 3000, "operation": "OPTIMIZE"},
        {"version": 2, "timestamp": 2000},
        {"version": 1, "timestamp": 1000, "operation": "WRITE", "x": {"y": 1}},
        {"version": 0, "timestamp": 10},
    ]
    assert load_snapshot(utc_context(store)).history(2) == history[:2]
    assert load_snapshot(utc_context(store), version=1).history() == history[2:]
    assert load_snapshot(utc_context(store)).history(0) == []


def test_history_with_a_limit_reads_only_those() -> None:
    store = CountingStore(logs.table_of(*[[] for _ in range(50)]))
    snapshot = load_snapshot(utc_context(store))
    before = len(store.calls)
    snapshot.history(2)
    calls = store.calls[before:]
    assert [call.verb for call in calls] == ["list_from", "read_many"]
    assert len(calls[1].paths) == 2
