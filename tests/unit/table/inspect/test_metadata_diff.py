"""Schemas and settings of two versions, compared."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from deltalog.operations.write import Write
from deltalog.schema import Field, PrimitiveType
from tests.support.diffing import diff, make, told

APPEND_ONLY = {"delta.appendOnly": "true"}


C = Field("c", PrimitiveType("long"))


def test_schemas_and_settings_are_compared() -> None:
    table = make({"delta.columnMapping.mode": "name"})
    table.do(alter.AddColumns([C]))
    table.do(alter.RenameColumn("p", "q"))
    table.do(alter.SetTableProperties(APPEND_ONLY))
    found = diff(table, 0, 3)
    assert found.schema_changes.to_pylist() == [
        {"column": "q", "change": "renamed", "before": "p", "after": "q"},
        {"column": "c", "change": "added", "before": None, "after": "long"},
    ]
    assert {"kind": "property", "name": "delta.appendOnly", "before": None, "after": "true"} in (
        found.setting_changes.to_pylist()
    )
    assert told(found) == []
    assert "schema: renamed q: p → q" in repr(found)


def test_versions_with_other_partition_columns_are_compared() -> None:
    table = make(partition_by=["p"])
    rows = pa.table({"id": [1, 2], "p": [0, 5]})
    table.do(Write(data=rows, mode="overwrite", schema_mode="overwrite", partition_by=["id"]))
    assert told(diff(table, 0, 1, key=["id"])) == [
        (2, 0, "update_preimage"),
        (2, 5, "update_postimage"),
        (3, 1, "delete"),
    ]


def test_versions_without_a_column_in_common_differ_in_schema_only() -> None:
    table = make()
    rows = pa.table({"id": ["x"], "q": [0]})
    table.do(Write(data=rows, mode="overwrite", schema_mode="overwrite"))
    found = diff(table, 0, 1)
    assert found.left_out == ("id",)
    assert "not compared: id" in repr(found)
    assert diff(table, 0, 1).schema_changes.num_rows == 3
    with pytest.raises(InvalidInputError, match="no column in common"):
        diff(table, 0, 1, columns=["id"]).to_table()
    with pytest.raises(InvalidInputError, match="by id"):
        diff(table, 0, 1, key=["id"])
