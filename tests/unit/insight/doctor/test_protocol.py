"""What the doctor says of protocol and metadata."""

from __future__ import annotations

from tests.support.aging import FEATURES
from tests.support.examining import commit, look, make, problems
from tests.support.logs import Json


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


def test_a_column_id_beyond_the_highest() -> None:
    table = make({"delta.columnMapping.mode": "name"})

    def lower(line: Json) -> Json:
        if "metaData" in line:
            line["metaData"]["configuration"]["delta.columnMapping.maxColumnId"] = "1"
        return line

    commit(table, 0, lower)
    assert problems(look(table, checks=["schema"])) == ["schema"]
