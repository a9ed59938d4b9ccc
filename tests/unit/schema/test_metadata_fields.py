"""The hidden columns that a read can add to a table's own."""

from __future__ import annotations

import pytest

from deltalog.schema import Field, StructType
from deltalog.schema.metadata_columns import (
    METADATA_COLUMNS,
    metadata_columns_of,
    with_metadata_columns,
)

SCHEMA = StructType([Field("id", "long"), Field("p", "string")])


@pytest.mark.parametrize("name", ["_metadata", "_METADATA"])
def test_a_column_of_its_own_hides_the_hidden_ones(name: str) -> None:
    own = StructType([Field(name, "long")])
    assert dict(metadata_columns_of(own)) == {}
    assert with_metadata_columns(own) is own


def test_a_column_of_the_whole_name_hides_that_one() -> None:
    own = StructType([Field("_metadata.row_index", "long")])
    assert list(metadata_columns_of(own)) == [
        name for name in METADATA_COLUMNS if name != "_metadata.row_index"
    ]


def test_predicates_see_one_struct_more() -> None:
    assert metadata_columns_of(SCHEMA) is METADATA_COLUMNS
    seen = with_metadata_columns(SCHEMA)
    assert seen.names == ("id", "p", "_metadata")
    hidden = seen.fields[-1]
    assert not hidden.nullable
    assert isinstance(hidden.type, StructType)
    assert {field.name: str(field.type) for field in hidden.type} == {
        "file_path": "string",
        "file_name": "string",
        "file_size": "long",
        "file_modification_time": "timestamp",
        "row_index": "long",
        "row_id": "long",
        "row_commit_version": "long",
    }
