"""What the doctor says of checkpoints and checksums."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deltalog.log.names import LAST_CHECKPOINT_PATH, checkpoint_name, commit_path, log_path
from deltalog.table.inspect.doctor import Severity
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from deltalog.transaction.maintenance.checksum import write_checksum
from deltalog.transaction.maintenance.cleanup import compact_logs
from tests.support.examining import commit, look, make, problems


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        (lambda files: files.pop(LAST_CHECKPOINT_PATH), "missing"),
        (lambda files: files.update({LAST_CHECKPOINT_PATH: b"{"}), "incomplete"),
        (lambda files: files.update({LAST_CHECKPOINT_PATH: b'{"version":7}'}), "names version 7"),
    ],
)
def test_the_hint(harm: Callable[[dict[str, bytes]], object], word: str) -> None:
    table = make()
    create_checkpoint(table.snapshot())
    harm(table.kept.files)
    (finding,) = look(table, checks=["last-checkpoint"]).findings
    assert word in finding.message


def test_a_checkpoint_that_differs_from_the_log() -> None:
    table = make()
    create_checkpoint(table.snapshot())
    path = log_path(checkpoint_name(1))
    other = make()
    other.delete("id = 4")
    create_checkpoint(other.snapshot())
    table.kept.files[path] = other.kept.files[log_path(checkpoint_name(2))]
    assert "checkpoint" in problems(look(table, checks=["checkpoints"]))


def test_a_checkpoint_with_other_files_than_the_log() -> None:
    table = make()
    create_checkpoint(table.snapshot())
    commit(table, 1, lambda line: None if "add" in line else line)
    (finding,) = look(table, checks=["checkpoints"]).findings
    assert "1 file too many, 0 missing" in finding.message


def test_a_checkpoint_that_is_damaged_or_empty() -> None:
    table = make()
    create_checkpoint(table.snapshot())
    path = log_path(checkpoint_name(1))
    table.kept.files[path] = table.kept.files[path][:-9]
    assert problems(look(table, checks=["checkpoints"])) == ["checkpoint"]
    table.kept.files[path] = b""
    assert problems(look(table, checks=["gaps"])) == ["checkpoint-incomplete"]


def test_a_checksum_that_differs_from_the_log() -> None:
    table = make()
    write_checksum(table.snapshot(), whole=True)
    path = log_path("00000000000000000001.crc")
    table.kept.files[path] = table.kept.files[path].replace(b'"numFiles":3', b'"numFiles":4')
    (finding,) = look(table, checks=["checksum"]).findings
    assert "num_files is 4, but in the log it is 3" in finding.message
    table.kept.files[path] = b"{"
    assert problems(look(table, checks=["checksum"])) == ["checksum"]
    table.kept.files[path] = b'{"tableSizeBytes":0,"numFiles":0,"numMetadata":1,"numProtocol":1}'
    assert look(table, checks=["checksum"]).worst is Severity.INFO


def test_a_compacted_log_that_is_damaged_or_was_cut() -> None:
    table = make()
    table.append({"id": [5], "p": [2], "f": [1.0]})
    table.append({"id": [6], "p": [2], "f": [1.0]})
    path = compact_logs(table.snapshot(), 1, 3)
    assert problems(look(table, checks=["compactions"])) == []
    whole = table.kept.files[path]
    for data, word in (
        (whole[:-9], "cannot be read"),
        (whole[: whole.rindex(b'{"add')], "lists other files"),
        (b"{}", "lists other files"),
    ):
        table.kept.files[path] = data
        (finding,) = look(table, checks=["compactions"]).findings
        assert word in finding.message
        assert finding.severity is Severity.WARNING
    table.kept.files[path] = whole
    del table.kept.files[commit_path(1)]
    (finding,) = look(table, checks=["compactions"]).of("compaction")
    assert "covers commits that no longer exist" in finding.message
