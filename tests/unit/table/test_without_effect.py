"""Requests that would have no effect, or another one than was meant, are refused or warned of."""

from __future__ import annotations

import pytest

from deltalog import ArrayType, DeltaTable, Field, Schema, table_defaults
from deltalog.errors import InvalidInputError
from tests.support.facade import fresh_rows, make, unchanged
from tests.support.logs import DictStore

ROWS = [{"id": 1, "info": {"city": "Oslo", "at": {"x": 1}}}]


@pytest.mark.parametrize(
    ("properties", "warning"),
    [
        ({"appendOnly": "true"}, "'appendOnly' is stored, but has no effect: did you mean 'delta."),
        ({"APPENDONLY": "true"}, "did you mean 'delta.appendOnly'?"),
        (
            {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"},
            "delta.minWriterVersion = 7 has no effect: the version remains 2",
        ),
        ({"delta.minWriterVersion": "7"}, "alter.add_feature and delta.feature.… add features"),
    ],
)
def test_properties_without_effect(
    properties: dict[str, str], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    make(ROWS).alter.set_table_properties(properties)
    assert warning in caplog.text
    caplog.clear()
    table = make(ROWS, configuration=properties)
    assert warning in caplog.text
    caplog.clear()
    table.alter.set_table_properties({"mine": "x"})
    assert caplog.text == ""


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.appendOnly": "true"},
        {"mine": "x", "owner.appendOnly": "x"},
        {"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"},
        {"delta.minReaderVersion": "1", "delta.minWriterVersion": "1"},
        {"delta.minWriterVersion": "7", "delta.feature.domainMetadata": "supported"},
    ],
)
def test_properties_with_an_effect(
    properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    make(ROWS).alter.set_table_properties(properties)
    make(ROWS, configuration=properties)
    with table_defaults(properties):
        make(ROWS)
    assert "has no effect" not in caplog.text


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("info.x", r"add_columns\(Field\('x', …\), parent='info'\)"),
        ("INFO.x", "parent='info'"),
        ("info.at.y", "parent='info.at'"),
        ("info.city", "parent='info'"),
    ],
)
def test_the_path_of_a_field_is_no_name_of_a_column(name: str, advice: str) -> None:
    table = make(ROWS)
    with unchanged(table), pytest.raises(InvalidInputError, match=advice):
        table.alter.add_columns(Field(name, "integer"))


def test_a_path_below_the_parent() -> None:
    table = make(ROWS)
    with unchanged(table), pytest.raises(InvalidInputError, match=r"parent='info\.at'"):
        table.alter.add_columns(Field("at.y", "integer"), parent="info")


@pytest.mark.parametrize("name", ["other.x", "id.x", "x", "tags.x"])
def test_names_with_dots_beside_a_struct(name: str) -> None:
    store = DictStore()
    fields = [Field("id", "integer"), Field("tags", ArrayType("string", contains_null=True))]
    table = DeltaTable.create(store, Schema(fields))
    table.alter.add_columns(Field(name, "integer"))
    assert table.schema().names[-1] == name


def test_the_advice_is_right() -> None:
    table = make(ROWS)
    table.alter.add_columns(Field("x", "integer"), parent="info")
    assert fresh_rows(table, "info") == [{"city": "Oslo", "at": {"x": 1}, "x": None}]
