"""What the doctor says of protocol and metadata."""

from __future__ import annotations

import pytest

from deltalog._util.json import dumps, loads
from deltalog.table.inspect.doctor import Severity
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


def with_rule(key: str, text: str) -> list[tuple[Severity, str, str | None]]:
    """What the doctor says of access to a table with a constraint, or a rule of the column `f`."""
    table = make({"delta.enableDeletionVectors": "true"})

    def add(line: Json) -> Json:
        if "protocol" in line:
            named = {"checkConstraints", "generatedColumns", "invariants"}
            named.update(line["protocol"]["writerFeatures"])
            line["protocol"]["writerFeatures"] = sorted(named)
        if "metaData" in line and key.startswith("delta.constraints."):
            line["metaData"]["configuration"][key] = text
        elif "metaData" in line:
            schema = loads(line["metaData"]["schemaString"].encode())
            next(one for one in schema["fields"] if one["name"] == "f")["metadata"][key] = text
            line["metaData"]["schemaString"] = dumps(schema).decode()
        return line

    commit(table, 0, add)
    report = look(table, checks=["access"])
    return [(one.severity, one.message, one.advice) for one in report.findings]


@pytest.mark.parametrize(
    ("key", "text", "what", "advice"),
    [
        (
            "delta.constraints.c",
            '"id" > 0',
            "the CHECK constraint 'c' (\"id\" > 0)",
            "alter.drop_constraint('c'), then alter.add_constraint({'c': 'id > 0'})",
        ),
        (
            "delta.constraints.c",
            "arrow_cast('2024', 'Date32') > '2023-01-01'",
            "the CHECK constraint 'c' (arrow_cast(",
            "alter.drop_constraint('c'), and add it in Spark's SQL",
        ),
        (
            "delta.generationExpression",
            '"id" * 2.0',
            "the generated column 'f' (\"id\" * 2.0)",
            "Spark can write a new table that has it as id * 2.0",
        ),
        (
            "delta.invariants",
            '{"expression": {"expression": "\\"f\\" > id"}}',
            "the invariant of column 'f' (\"f\" > id)",
            "Spark can write a new table that has it as f > id",
        ),
    ],
)
def test_rules_in_words_of_delta_rs_keep_spark_from_writing(
    key: str, text: str, what: str, advice: str
) -> None:
    said = with_rule(key, text)
    (warning,) = (one for one in said if one[0] is Severity.WARNING)
    assert f"Delta Spark 4.4 cannot write it: {what}" in warning[1]
    assert warning[2] == advice
    (readers,) = (message for _, message, _ in said if "that read it" in message)
    (writers,) = (message for _, message, _ in said if "that write it" in message)
    assert "Delta Spark" in readers
    assert "Delta Spark" not in writers


@pytest.mark.parametrize("text", ["id > 0", "`id` > 0", "id > 0 AND 'a' = \"a\"", "id >"])
def test_other_rules_do_not(text: str) -> None:
    said = with_rule("delta.constraints.c", text)
    assert [severity for severity, _, _ in said] == [Severity.INFO, Severity.INFO]
    assert any("that write it: Delta Spark" in message for _, message, _ in said)


def test_a_malformed_rule_hides_nothing_else() -> None:
    said = with_rule("delta.invariants", "no json")
    assert [severity for severity, _, _ in said].count(Severity.WARNING) >= 1
    assert all(
        "invariant" in message for severity, message, _ in said if severity is Severity.WARNING
    )
    assert any("that read it" in message for _, message, _ in said)
