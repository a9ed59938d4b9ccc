"""What the doctor says of files."""

from __future__ import annotations

from tests.support.aging import FEATURES
from tests.support.examining import commit, look, make, problems, with_stats
from tests.support.logs import Json


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
    assert "1 file, 4 bytes" in finding.message


def test_temporary_files_of_writers_that_were_killed() -> None:
    table = make()
    left = "_delta_log/.00000000000000000001.json.0123456789abcdef0123456789abcdef.tmp"
    table.kept.put(left, b"12345")
    assert not look(table, checks=["orphans"]).findings  # its writer may be at work
    table.wait(8)
    (finding,) = look(table, checks=["orphans"]).findings
    assert finding.check == "temporary-files"
    assert f"1 file, 5 bytes, left by writers that did not finish, such as {left}" in str(finding)


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
