"""What the doctor says of protocol and metadata."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from deltalog import DeltaTable, Field
from deltalog._util.json import dumps, loads
from deltalog.table.inspect import doctor
from deltalog.table.inspect.doctor import Severity
from tests.support.aging import FEATURES, AgingTable
from tests.support.examining import commit, look, make, problems
from tests.support.logs import DictStore, Json


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


def engines_of(properties: dict[str, str]) -> list[tuple[Severity, str, str | None]]:
    report = look(make(properties), checks=["access"])
    return [
        (one.severity, one.message, one.advice)
        for one in report.findings
        if not one.message.startswith("other engines")
    ]


def test_engines_that_would_read_wrong_rows() -> None:
    old = {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    arrow = "deltalake 1.6 (to_pandas, to_pyarrow_*)"
    ((severity, message, advice),) = engines_of({"delta.columnMapping.mode": "name", **old})
    assert severity is Severity.WARNING
    assert message == f"{arrow} would read wrong rows without an error"
    assert advice == "alter.upgrade_protocol(3, 7): they refuse the table then"
    assert engines_of(old) == []  # nothing is mapped
    assert engines_of({}) == []


def test_engines_that_would_write_wrong_rows() -> None:
    ((severity, message, advice),) = engines_of({"delta.columnMapping.mode": "name"})
    assert severity is Severity.INFO
    assert (
        message
        == "DuckDB's delta extension (of DuckDB 1.5.5) would write wrong rows without an error"
    )
    assert advice == "write it by another engine"


def test_the_advice_about_column_mapping_is_followed() -> None:
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.minReaderVersion": "2",
        "delta.minWriterVersion": "5",
    }
    table = DeltaTable.create(DictStore(), [Field("a b", "long")], configuration=properties)
    assert not table.doctor(checks=["access"]).is_healthy
    table.alter.upgrade_protocol(3, 7)
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.reader_features) == (3, ("columnMapping",))
    assert table.doctor(checks=["access"]).is_healthy
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    assert table.protocol().min_reader_version == 3


def with_properties(properties: dict[str, str]) -> AgingTable:
    """A table whose protocol lacks what its properties need."""
    table = make()

    def ask(line: Json) -> Json:
        if "metaData" in line:
            line["metaData"]["configuration"] = properties
        return line

    commit(table, 0, ask)
    return table


def with_misplaced_feature() -> AgingTable:
    table = make(FEATURES)
    commit(table, 0, reader_feature_left_out)
    return table


def without_needed_feature() -> AgingTable:
    def drop(line: Json) -> Json:
        if "protocol" in line:
            line["protocol"]["writerFeatures"].remove("domainMetadata")
        return line

    table = make({"delta.enableRowTracking": "true"})
    commit(table, 0, drop)
    return table


@pytest.mark.parametrize(
    "sick",
    [
        with_misplaced_feature,
        without_needed_feature,
        lambda: with_properties({"delta.enableDeletionVectors": "true"}),
        lambda: with_properties({"delta.columnMapping.mode": "name"}),
        lambda: with_properties({"delta.enableRowTracking": "true"}),
        lambda: with_properties({"delta.enableChangeDataFeed": "true"}),
    ],
)
def test_the_advice_about_features_is_followed(sick: Callable[[], AgingTable]) -> None:
    made = sick()
    table = DeltaTable(made.kept)
    (finding,) = table.doctor(checks=["features"]).findings
    call = re.search(
        r"alter\.add_feature\('(\w+)', allow_protocol_versions_increase=True\)", str(finding)
    )
    assert call is not None
    table.alter.add_feature(call[1], allow_protocol_versions_increase=True)
    assert DeltaTable(made.kept).doctor(checks=["features"]).findings == ()
    assert table.count() == 4


def test_calls_that_are_advised_exist() -> None:
    folder = Path(doctor.__file__).parent
    called = set()
    for module in folder.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "advice":
                texts = [one for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
                for text in texts:
                    called |= set(re.findall(r"((?:alter\.|optimize\.)?\w+)\(", str(text.value)))
    table = DeltaTable(make().kept)
    for name in called:
        owner: object = table
        for part in name.split("."):
            owner = getattr(owner, part)
    assert {"create_checkpoint", "cleanup_metadata", "optimize.purge", "vacuum"} <= called
