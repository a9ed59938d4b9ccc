"""Columns come, go, move and change what they are."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from deltalog.operations.operation import Operation
from deltalog.schema import ArrayType, Field, StructType, find_field
from tests.support.altering import INNER, apply, last, make, mapped, names, told
from tests.support.raw_tables import DataTable


@pytest.mark.protocol("META-08")
def test_columns_are_added_where_they_are_wanted() -> None:
    table = make()
    new = [Field("w", "integer", metadata={"comment": "cc"}), Field("u", "long")]
    after = apply(table, alter.AddColumns(new, where=("after", "ID")))
    assert names(after) == ("id", "w", "u", "v", "s")
    operation, parameters = told(table)
    assert operation == "ADD COLUMNS"
    assert parameters["columns"][0] == {
        "column": {"name": "w", "type": "integer", "nullable": True, "metadata": {"comment": "cc"}},
        "position": "AFTER ID",
    }
    assert set(last(table)) == {"commitInfo", "metaData"}
    assert table.rows(columns=["id", "w"]) == [(1, None), (2, None), (3, None)]
    after = apply(table, alter.AddColumns([Field("y", "string")], parent="s"))
    assert find_field(after.configuration.schema, "s.y").type == Field("", "string").type
    assert told(table)[1]["columns"][0]["column"]["name"] == "s.y"


@pytest.mark.protocol("B-58")
@pytest.mark.parametrize(
    ("field", "message"),
    [
        (Field("w", "integer", nullable=False), "NOT NULL"),
        (Field("w", "integer", metadata={"CURRENT_DEFAULT": "1"}), "default"),
        (Field("w", "long", metadata={"delta.generationExpression": "id"}), "generation"),
        (Field("w", "long", metadata={"delta.identity.step": 1}), "identity"),
        (Field("ID", "long"), "the column 'id' exists already, and differs only in case"),
    ],
)
def test_columns_that_cannot_be_added(field: Field, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        apply(make(), alter.AddColumns([field]))


@pytest.mark.protocol("CM-16")
def test_a_renamed_column_keeps_its_values() -> None:
    table = mapped()
    after = apply(table, alter.RenameColumn("V", "vv"))
    assert told(table) == ("RENAME COLUMN", {"oldColumnPath": "v", "newColumnPath": "vv"})
    assert set(last(table)) == {"commitInfo", "metaData"}
    assert names(after) == ("id", "vv", "s")
    assert table.rows(columns=["vv"]) == ["a", None, "c"]
    apply(table, alter.RenameColumn("s.x", "xx"))
    assert told(table)[1] == {"oldColumnPath": "s.x", "newColumnPath": "s.xx"}


@pytest.mark.protocol("CM-16", "CM-17")
def test_a_dropped_column_hides_its_values_for_good() -> None:
    table = mapped()
    after = apply(table, alter.DropColumns(["v"]))
    assert told(table) == ("DROP COLUMNS", {"columns": ["v"]})
    assert set(last(table)) == {"commitInfo", "metaData"}
    assert names(after) == ("id", "s")
    apply(table, alter.AddColumns([Field("v", "string")]))
    assert table.rows(columns=["v"]) == [None, None, None]


@pytest.mark.parametrize(
    "verb",
    [
        alter.RenameColumn("v", "vv"),
        alter.DropColumns(["v"]),
    ],
)
def test_names_in_files_need_column_mapping(verb: Operation[Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"delta\.columnMapping\.mode = name"):
        apply(make(), verb)


def test_a_column_moves() -> None:
    table = make()
    assert names(apply(table, alter.MoveColumn("v", "first"))) == ("v", "id", "s")
    operation, parameters = told(table)
    assert (operation, parameters["position"]) == ("CHANGE COLUMN", "FIRST")
    assert parameters["column"]["name"] == "v"
    after = apply(table, alter.MoveColumn("v", ("after", "id")))
    assert names(after) == ("id", "v", "s")
    assert table.rows(columns=["id", "v"]) == [(1, "a"), (2, None), (3, "c")]


@pytest.mark.protocol("B-50")
def test_a_type_becomes_wider() -> None:
    table = make({"delta.enableTypeWidening": "true"})
    after = apply(table, alter.SetColumnType("s.x", "long"))
    entry = {"toType": "long", "fromType": "integer"}
    assert find_field(after.configuration.schema, "s.x").metadata["delta.typeChanges"] == [entry]
    assert table.rows(columns=["s"]) == [{"x": 1}, None, {"x": None}]
    with pytest.raises(InvalidInputError, match="not a wider type"):
        apply(table, alter.SetColumnType("s.x", "string"))
    with pytest.raises(InvalidInputError, match="enableTypeWidening"):
        apply(make(), alter.SetColumnType("s.x", "long"))


def test_comments_and_other_metadata_of_columns() -> None:
    table = make()
    apply(table, alter.SetColumnComment("v", "hi"))
    after = apply(table, alter.SetColumnMetadata("v", {"mine": 1}))
    assert find_field(after.configuration.schema, "v").metadata == {"comment": "hi", "mine": 1}
    assert told(table)[0] == "CHANGE COLUMN"
    after = apply(table, alter.SetColumnComment("v", None))
    assert find_field(after.configuration.schema, "v").metadata == {"mine": 1}
    for key in ("delta.generationExpression", "CURRENT_DEFAULT", "__CHAR_VARCHAR_TYPE_STRING"):
        with pytest.raises(InvalidInputError, match=key):
            apply(table, alter.SetColumnMetadata("v", {key: "1"}))


@pytest.mark.protocol("B-58")
def test_defaults_come_and_go() -> None:
    table = make()
    after = apply(table, alter.SetColumnDefault("v", "'x'"))
    assert after.configuration.supports("allowColumnDefaults")
    assert find_field(after.configuration.schema, "v").metadata == {"CURRENT_DEFAULT": "'x'"}
    after = apply(table, alter.SetColumnDefault("v", None))
    assert find_field(after.configuration.schema, "v").metadata == {}
    assert after.configuration.supports("allowColumnDefaults")
    with pytest.raises(InvalidInputError, match="a default is a constant"):
        apply(table, alter.SetColumnDefault("v", "id"))


def test_not_null_inside_lists_is_refused() -> None:
    kind = {"type": "array", "elementType": INNER, "containsNull": True}
    table = DataTable([("id", "long"), ("a", kind)])
    with pytest.raises(InvalidInputError, match="inside lists and maps"):
        apply(table, alter.SetColumnNotNull("a.element.x"))


def test_nested_types_in_the_history_are_named_only() -> None:
    table = make()
    new = [Field("l", ArrayType(StructType([Field("x", "long")])))]
    apply(table, alter.AddColumns(new))
    assert told(table)[1]["columns"][0]["column"]["type"] == "array"


def test_a_list_that_a_rule_names_keeps_its_type() -> None:
    kind = {"type": "array", "elementType": "integer", "containsNull": True}
    generated = {
        "name": "g",
        "type": "integer",
        "nullable": True,
        "metadata": {"delta.generationExpression": "size(a)"},
    }
    table = DataTable(
        [("a", kind), generated],
        features=["typeWidening", "generatedColumns"],
        configuration={"delta.enableTypeWidening": "true"},
    )
    with pytest.raises(InvalidInputError, match="generated column 'g'"):
        apply(table, alter.SetColumnType("a.element", "long"))
