"""Column metadata that a caller gives to new columns: misspelled and incomplete entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, StructType, write_deltalake
from deltalog.errors import InvalidInputError

_WRONG: list[tuple[dict[str, Any], str]] = [
    ({"delta.generationExpresion": "a * 2"}, r"'delta\.generationExpression', or use .*generated_"),
    ({"delta.generationexpression": "a * 2"}, r"did you mean 'delta\.generationExpression'"),
    ({"generationExpression": "a * 2"}, r"did you mean 'delta\.generationExpression'"),
    ({"generation_expression": "a * 2"}, r"did you mean 'delta\.generationExpression'"),
    ({"delta.default": "0"}, r"did you mean 'CURRENT_DEFAULT', or use Field\(…\)\.default\(sql\)"),
    ({"current_default": "0"}, "did you mean 'CURRENT_DEFAULT'"),
    ({"identity.start": 1}, r"did you mean 'delta\.identity\.start', or use .*identity\(start"),
    ({"delta.owner": "me"}, "the protocol defines the keys with this prefix"),
]
_OTHERS = {
    "comment": "text",
    "PARQUET:field_id": 7,
    "__CHAR_VARCHAR_TYPE_STRING": "varchar(3)",
    "ARROW:extension:name": "app",
    "owner": "me",
    "default": "x",
}
"""Metadata of other owners."""


@pytest.mark.parametrize(("metadata", "message"), _WRONG)
def test_wrong_keys(tmp_path: Path, metadata: dict[str, Any], message: str) -> None:
    b = Field("b", "long", metadata=metadata)
    found = rf"there is no column metadata .* \(column '.*b'\); .*{message}"
    for new in (b, Field("s", StructType([b]))):
        with pytest.raises(InvalidInputError, match=found):
            DeltaTable.create(tmp_path / "new", [Field("a", "long"), new])
    table = DeltaTable.create(tmp_path / "old", [Field("a", "long")])
    with pytest.raises(InvalidInputError, match=found):
        table.alter.add_columns([b])
    with pytest.raises(InvalidInputError, match="column metadata"):
        table.alter.set_column_metadata("a", metadata)
    rows = pa.table({"a": [1], "b": [2]})
    own: Any = {key: json.dumps(value) for key, value in metadata.items()}
    rows = rows.cast(pa.schema([rows.schema.field("a"), rows.schema.field("b").with_metadata(own)]))
    with pytest.raises(InvalidInputError, match=found):
        write_deltalake(tmp_path / "written", rows)
    with pytest.raises(InvalidInputError, match=found):
        write_deltalake(table, rows, mode="append", schema_mode="merge")
    assert table.schema().names == ("a",)


@pytest.mark.parametrize(
    "metadata",
    [
        {"delta.identity.start": 1},
        {"delta.identity.start": 1, "delta.identity.step": 1},
        {"delta.identity.allowExplicitInsert": True},
    ],
)
def test_incomplete_identities(tmp_path: Path, metadata: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"column 'b' .* incomplete identity: it lacks .*"):
        DeltaTable.create(tmp_path, [Field("a", "long"), Field("b", "long", metadata=metadata)])


def test_metadata_of_other_owners(tmp_path: Path) -> None:
    fields = [Field("a", "string", metadata=_OTHERS), Field("n", "long").identity(start=5)]
    table = DeltaTable.create(tmp_path, [*fields, Field("g", "string").generated_as("upper(a)")])
    table.alter.add_columns([Field("b", "string", metadata=_OTHERS)])
    assert dict(table.schema()["b"].metadata) == _OTHERS
    copy = DeltaTable.create(tmp_path / "copy", table.schema())
    kept = dict(copy.schema()["a"].metadata)
    assert {**_OTHERS, **kept} == _OTHERS  # new tables have no Parquet ids of others
    assert kept["owner"] == "me"


def test_tables_of_other_writers(tmp_path: Path) -> None:
    """Their unknown entries are read and preserved."""
    table = DeltaTable.create(tmp_path, [Field("a", "long", metadata={"owner": "me"})])
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('\\"owner\\"', '\\"delta.unheardOf\\"'))
    (tmp_path / "_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    table = DeltaTable(tmp_path)
    write_deltalake(table, {"a": [1], "b": [2]}, mode="append", schema_mode="merge")
    table.alter.add_columns({"c": "long"})
    table.alter.set_column_comment("a", "text")
    assert table.to_pyarrow_table().to_pylist() == [{"a": 1, "b": 2, "c": None}]
    assert dict(table.schema()["a"].metadata) == {"delta.unheardOf": "me", "comment": "text"}
