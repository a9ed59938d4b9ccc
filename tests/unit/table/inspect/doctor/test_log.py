"""What the doctor says of the log."""

from __future__ import annotations

import pytest

from deltalog._util.json import dumps, iter_objects
from deltalog.log.names import commit_path
from deltalog.table.inspect.doctor import Severity
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from deltalog.transaction.maintenance.cleanup import cleanup_metadata
from tests.support.aging import FEATURES
from tests.support.examining import commit, look, make, problems
from tests.support.logs import Json


def test_a_gap_in_the_log() -> None:
    table = make()
    table.append({"id": [5], "p": [2], "f": [1.0]})
    del table.kept.files[commit_path(1)]
    report = look(table)
    assert report.version is None
    assert report.of("log-gap")[0].version == 1
    assert "open" in problems(report)


def test_a_gap_that_a_checkpoint_covers_is_a_warning() -> None:
    table = make()
    table.append({"id": [5], "p": [2], "f": [1.0]})
    create_checkpoint(table.snapshot())
    del table.kept.files[commit_path(1)]
    (gap,) = look(table).of("log-gap")
    assert gap.severity is Severity.WARNING


def test_a_damaged_commit() -> None:
    table = make()
    table.kept.files[commit_path(1)] += b"{"
    found = look(table).of("commit-unreadable")
    assert [finding.version for finding in found] == [1]


@pytest.mark.parametrize("content", [b"", b"\n", b"  \r\n\n"])
def test_an_empty_commit_is_a_warning(content: bytes) -> None:
    table = make()
    table.append({"id": [5], "p": [2], "f": [1.0]})
    table.kept.files[commit_path(1)] = content
    report = look(table)
    (found,) = report.of("commit-empty")
    assert (found.version, found.severity) == (1, Severity.WARNING)
    assert not report.of("commit-unreadable")


@pytest.mark.protocol("B-02", "B-03")
def test_commits_that_contradict_themselves() -> None:
    table = make()
    data = table.kept.files[commit_path(1)]
    adds = [line for line in iter_objects(data) if "add" in line]
    remove = {"path": adds[0]["add"]["path"], "dataChange": True, "deletionTimestamp": 1}
    table.kept.files[commit_path(1)] = data + dumps(adds[0]) + b"\n" + dumps({"remove": remove})
    checks = problems(look(table, checks=["commits"]))
    assert sorted(checks) == ["commit-contradicts", "commit-repeats"]


def test_commit_times_that_go_back() -> None:
    table = make({"delta.enableInCommitTimestamps": "true"})

    def earlier(line: Json) -> Json:
        if "commitInfo" in line:
            line["commitInfo"]["inCommitTimestamp"] = 1
        return line

    commit(table, 1, earlier)
    assert problems(look(table, checks=["commits"])) == ["commit-time"]


def test_a_file_that_is_live_twice() -> None:
    table = make(FEATURES)
    table.delete("id = 1")
    commit(table, 2, lambda line: None if "remove" in line else line)
    assert problems(look(table, checks=["live-paths"])) == ["live-twice"]


def test_a_long_and_an_expired_log() -> None:
    table = make({"delta.checkpointInterval": "1"})
    for number in range(3):
        table.append({"id": [number], "p": [0], "f": [None]})
    create_checkpoint(table.snapshot())
    table.wait(31)
    report = look(table, checks=["length"])
    assert [finding.check for finding in report.findings] == ["log-expired"]
    deleted = cleanup_metadata(table.snapshot())
    assert f"{len(deleted)} files" in report.findings[0].message
    assert look(table, checks=["length"]).findings == ()


def test_an_expired_log_that_nothing_can_delete_is_not_reported() -> None:
    # The time of retention begins at midnight, and needs a checkpoint.
    table = make({"delta.logRetentionDuration": "interval 0 days", "delta.checkpointInterval": "1"})
    for number in range(3):
        table.append({"id": [number], "p": [0], "f": [None]})
    assert look(table, checks=["length"]).findings == ()
    assert cleanup_metadata(table.snapshot()) == []
