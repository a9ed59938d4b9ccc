"""A table's properties, name and description are set."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from tests.support.altering import apply, make, mapped, told
from tests.support.raw_tables import DataTable


@pytest.mark.protocol("UPG-06", "APP-03")
def test_properties_are_set_and_unset() -> None:
    table = make()
    asked = {"foo": "bar", "delta.appendonly": "true", "delta.minWriterVersion": "3"}
    after = apply(table, alter.SetTableProperties(asked))
    assert after.metadata.configuration == {"foo": "bar", "delta.appendOnly": "true"}
    assert after.protocol.min_writer_version == 3
    assert told(table) == ("SET TBLPROPERTIES", {"properties": asked})
    after = apply(table, alter.UnsetTableProperties(["FOO", "delta.appendOnly"]))
    assert after.metadata.configuration == {}
    operation, parameters = told(table)
    assert operation == "UNSET TBLPROPERTIES"
    assert parameters["properties"] == ["FOO", "delta.appendOnly"]
    with pytest.raises(InvalidInputError, match="does not have it"):
        apply(table, alter.UnsetTableProperties(["foo"]))


def test_properties_that_nobody_knows() -> None:
    table = make()
    with pytest.raises(InvalidInputError, match=r"no table property 'delta\.nope'"):
        apply(table, alter.SetTableProperties({"delta.nope": "1"}))
    asked = {"delta.nope": "1", "delta.enableRowTracking": "true"}
    after = apply(table, alter.SetTableProperties(asked, raise_if_not_exists=False))
    assert after.metadata.configuration["delta.nope"] == "1"
    assert after.configuration.row_ids_enabled


@pytest.mark.protocol("CON-07")
def test_constraints_are_no_properties_to_set() -> None:
    asked = {"delta.constraints.c": "id > 5"}
    with pytest.raises(InvalidInputError, match="add_constraint"):
        apply(make(), alter.SetTableProperties(asked))
    with pytest.raises(InvalidInputError, match="drop the constraint"):
        apply(make(), alter.UnsetTableProperties(list(asked)))


def test_name_and_description() -> None:
    table = make()
    apply(table, alter.SetTableName("t"))
    after = apply(table, alter.SetTableDescription("about t"))
    assert (after.metadata.name, after.metadata.description) == ("t", "about t")
    assert told(table) == ("SET TBLPROPERTIES", {"properties": {"comment": "about t"}})
    after = apply(table, alter.SetTableProperties({"comment": "more"}))
    assert (after.metadata.description, after.metadata.configuration) == ("more", {})


@pytest.mark.protocol("B-53")
def test_iceberg_compatibility_needs_files_without_deletion_vectors() -> None:
    table = DataTable(
        [("id", "long")],
        features=["deletionVectors", "columnMapping"],
    )
    table.commit(table.add({"id": [1, 2]}, deletionVector=table.vector(0)))
    asked = {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"}
    with pytest.raises(InvalidInputError, match="deletion vectors"):
        apply(table, alter.SetTableProperties(asked))


def test_what_writers_keep_cannot_be_unset() -> None:
    with pytest.raises(InvalidInputError, match="set by writers themselves"):
        apply(
            mapped(),
            alter.UnsetTableProperties(["delta.columnMapping.maxColumnId"]),
        )
