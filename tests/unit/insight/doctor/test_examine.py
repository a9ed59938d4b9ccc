"""The doctor: nothing to say of tables that are well, and the right thing of those that are not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog._json import dumps, iter_objects, loads
from deltalog.context import utc_context
from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.insight.doctor import CHECKS, Report, Severity, examine
from deltalog.log.names import LAST_CHECKPOINT_PATH, checkpoint_name, commit_path, log_path
from deltalog.upkeep.checkpoint import create_checkpoint
from deltalog.upkeep.checksum import write_checksum
from tests.support.aging import FEATURES, AgingTable
from tests.support.logs import DictStore, Json

ALL = FEATURES | {"delta.columnMapping.mode": "name", "delta.enableInCommitTimestamps": "true"}


def make(properties: dict[str, str] | None = None, **options: Any) -> AgingTable:
    table = AgingTable()
    rows = {"id": [1, 2, 3], "p": [0, 0, 1], "f": [0.5, float("nan"), None]}
    table.create(rows, properties=properties, partition_by=["p"], **options)
    table.append({"id": [4], "p": [1], "f": [None]})
    return table


def look(table: AgingTable, **options: Any) -> Report:
    return examine(utc_context(table.kept), now_ms=table.kept.now_ms, **options)


def problems(report: Report) -> list[str]:
    return [finding.check for finding in report.findings if finding.severity is not Severity.INFO]


def commit(table: AgingTable, version: int, change: Callable[[Json], Json | None]) -> None:
    """Change the lines of a commit."""
    path = commit_path(version)
    lines = [change(line) for line in iter_objects(table.kept.files[path])]
    table.kept.files[path] = b"".join(dumps(line) + b"\n" for line in lines if line is not None)


def with_stats(line: Json, **changes: Any) -> Json:
    if "add" in line:
        stats = loads(line["add"]["stats"].encode(), "stats")
        line["add"]["stats"] = dumps({**stats, **changes}).decode()
    return line


@pytest.mark.parametrize("properties", [{}, FEATURES, ALL], ids=["plain", "features", "all"])
def test_nothing_is_wrong_with_a_table_that_is_well(properties: dict[str, str]) -> None:
    table = make(properties)
    table.delete("id = 2")
    create_checkpoint(table.snapshot())
    table.append({"id": [5], "p": [2], "f": [1.0]})
    write_checksum(table.snapshot(), whole=True)
    before = dict(table.kept.files)
    report = look(table)
    assert problems(report) == []
    assert report.is_healthy
    assert report.checks == CHECKS
    assert table.kept.files == before


def test_bounds_that_are_cut_or_rounded_are_not_wrong() -> None:
    moment = datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    columns: dict[str, Any] = {
        "text": pa.array(["x" * 100, None]),
        "at": pa.array([moment, moment], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("12345678901234567890.12"), None], pa.decimal128(30, 2)),
        "part": pa.array([{"a": 1, "b": [1]}, None]),
        "raw": pa.array([b"1", b"2"]),
        "yes": pa.array([True, None]),
    }
    table = AgingTable()
    table.create(pa.table(columns))
    assert look(table, checks=["statistics"]).findings == ()


def test_a_place_without_a_table_is_an_error() -> None:
    with pytest.raises(TableNotFoundError):
        examine(utc_context(DictStore()))


def test_checks_can_be_chosen() -> None:
    assert look(make(), checks=["paths"]).checks == ("paths",)
    with pytest.raises(InvalidInputError, match="no check 'nope'"):
        look(make(), checks=["nope"])


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    look(make(), checks=["gaps", "paths"], progress=lambda *at: told.append(at))
    assert told == [(1, 2), (2, 2)]


def test_findings_are_a_table_and_text() -> None:
    table = make()
    del table.kept.files[table.data_files()[0]]
    report = look(table)
    rows = report.to_table()
    assert rows.column_names == ["severity", "check", "message", "advice", "path", "version"]
    assert rows.column("severity")[0].as_py() == "error" == report.worst
    assert "2 errors, 2 info" in report.summary
    assert "file-missing" in repr(report)
    assert "file-missing" in report._repr_html_()


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
    assert "4 commits" in report.findings[0].message


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        (lambda files: files.pop(LAST_CHECKPOINT_PATH), "missing"),
        (lambda files: files.update({LAST_CHECKPOINT_PATH: b"{"}), "torn"),
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
    assert "1 files too many, 0 missing" in finding.message


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
    assert "num_files is 4, and the log says 3" in finding.message
    table.kept.files[path] = b"{"
    assert problems(look(table, checks=["checksum"])) == ["checksum"]
    table.kept.files[path] = b'{"tableSizeBytes":0,"numFiles":0,"numMetadata":1,"numProtocol":1}'
    assert look(table, checks=["checksum"]).worst is Severity.INFO


def reader_feature_left_out(line: Json) -> Json:
    if "protocol" in line:
        line["protocol"]["readerFeatures"] = []
    return line


def test_features_in_the_wrong_list() -> None:
    table = make(FEATURES)
    commit(table, 0, reader_feature_left_out)
    assert problems(look(table, checks=["features"])) == ["feature-misplaced"]


def test_features_that_properties_ask_for_in_vain() -> None:
    table = make()

    def ask(line: Json) -> Json:
        if "metaData" in line:
            line["metaData"]["configuration"] = {
                "delta.enableDeletionVectors": "true",
                "delta.checkpointInterval": "often",
                "delta.nope": "1",
            }
        return line

    commit(table, 0, ask)
    (finding,) = look(table, checks=["features"]).findings
    assert "deletionVectors" in finding.message
    assert sorted(finding.check for finding in look(table, checks=["properties"]).findings) == [
        "property-unknown",
        "property-value",
    ]


def test_features_that_nobody_knows() -> None:
    table = make(FEATURES)

    def unknown(line: Json) -> Json:
        if "protocol" in line:
            line["protocol"]["writerFeatures"] += ["timeMachine"]
        return line

    commit(table, 0, unknown)
    report = look(table, checks=["features", "access"])
    assert "feature-unknown" in problems(report)
    assert "access" in problems(report)
    assert "other engines that write it: none" in repr(report)


def test_files_that_are_gone_cut_or_elsewhere() -> None:
    table = make()
    gone, cut, _ = table.data_files()
    del table.kept.files[gone]
    table.kept.files[cut] = table.kept.files[cut][:-1]
    report = look(table, checks=["paths"])
    assert [(finding.check, finding.path) for finding in report.findings] == [
        ("file-size", cut),
        ("file-missing", gone),
    ]

    def outside(line: Json) -> Json:
        if "add" in line:
            line["add"]["path"] = "s3://elsewhere/x.parquet"
        return line

    commit(table, 1, outside)
    assert "path-absolute" in {finding.check for finding in look(table).findings}


def test_files_that_nobody_needs() -> None:
    table = make()
    table.kept.put("stray.parquet", b"1234")
    table.wait(8)
    (finding,) = look(table, checks=["orphans"]).findings
    assert "1 files, 4 bytes" in finding.message


def test_partition_values_of_the_wrong_type() -> None:
    table = make()

    def wrong(line: Json) -> Json:
        if "add" in line:
            line["add"]["partitionValues"] = {"p": "seven"}
        return line

    commit(table, 1, wrong)
    assert problems(look(table, checks=["partition-values"])) == ["partition-value"]


def test_deletion_vectors_that_do_not_fit() -> None:
    table = make(FEATURES)
    table.delete("id = 1")

    def fewer(line: Json) -> Json:
        return with_stats(line, numRecords=0)

    assert problems(look(table, checks=["vectors"])) == []
    commit(table, 2, fewer)
    assert problems(look(table, checks=["vectors"])) == ["deletion-vector"]

    def miscounted(line: Json) -> Json:
        if "add" in line:
            line["add"]["deletionVector"]["cardinality"] += 1
        return line

    commit(table, 2, miscounted)
    (finding,) = look(table, checks=["vectors"]).findings
    assert "cannot be read" in finding.message


def test_row_ids_that_overlap_or_are_beyond_the_mark() -> None:
    table = make(FEATURES)

    def first(line: Json) -> Json | None:
        if "add" in line:
            line["add"]["baseRowId"] = 0
        return line

    commit(table, 1, first)
    assert problems(look(table, checks=["row-ids"])) == ["row-ids"]

    def far(line: Json) -> Json | None:
        if "add" in line:
            line["add"]["baseRowId"] = 1000
        return line

    commit(table, 1, far)
    (finding,) = look(table, checks=["row-ids"]).findings
    assert "1000 is in use" in finding.message


WRONG = [
    ({"numRecords": 2}, "numRecords is 2"),
    ({"nullCount": {"id": 1, "f": 1}}, "nullCount of id is 1"),
    ({"minValues": {"id": 5}}, "the minimum of id is 5, and 4 occurs"),
    ({"maxValues": {"id": 3}}, "the maximum of id is 3, and 4 occurs"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_statistics_that_are_wrong(changes: Json, message: str) -> None:
    table = make()
    commit(table, 1, lambda line: with_stats(line, **changes))
    (finding,) = look(table, checks=["statistics"]).findings
    assert message in finding.message


def test_only_samples_of_the_data_are_read() -> None:
    table = make()
    for number in range(6):
        table.append({"id": [number], "p": [0], "f": [None]})
        commit(table, 2 + number, lambda line: with_stats(line, numRecords=9))
    assert len(look(table, checks=["statistics"], num_samples=3).findings) == 2


def test_a_column_id_beyond_the_highest() -> None:
    table = make({"delta.columnMapping.mode": "name"})

    def lower(line: Json) -> Json:
        if "metaData" in line:
            line["metaData"]["configuration"]["delta.columnMapping.maxColumnId"] = "1"
        return line

    commit(table, 0, lower)
    assert problems(look(table, checks=["schema"])) == ["schema"]
