"""Descriptors with values that they cannot have, one by one and as a column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog._util.json import JsonObject
from deltalog.errors import MalformedLogError, UnsupportedFeatureError
from deltalog.protocol.actions.arrow import DELETION_VECTOR_TYPE, adds_from_json
from deltalog.protocol.actions.codec import are_sound, check_column, descriptor_from_json

SOUND = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
ABSENT = object()
FAULTS = [
    ("storageType", None),
    ("storageType", ""),
    ("storageType", "U"),
    ("storageType", "x"),
    ("pathOrInlineDv", None),
    ("pathOrInlineDv", ""),
    ("offset", -1),
    ("sizeInBytes", None),
    ("sizeInBytes", -1),
    ("cardinality", None),
    ("cardinality", -1),
]
# What only JSON can hold.
JSON_FAULTS = [
    *((name, ABSENT) for name in ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")),
    ("storageType", 1),
    ("pathOrInlineDv", ["x"]),
    ("offset", "4"),
    ("offset", 2**31),
    ("sizeInBytes", 39.5),
    ("sizeInBytes", True),
    ("sizeInBytes", 2**31),
    ("cardinality", 6.5),
    ("cardinality", 2**63),
]


def with_fault(name: str, value: object) -> dict[str, Any]:
    changed: dict[str, Any] = {**SOUND, name: value}
    if value is ABSENT:
        del changed[name]
    return changed


def adds(vector: dict[str, Any]) -> pa.Table:
    lines = [{"path": "a", "partitionValues": {}}]
    lines.append({"path": "b", "partitionValues": {}, "deletionVector": vector})
    return adds_from_json(lines, where=lambda row: f"version 7, line {row}")


@pytest.mark.protocol("DV-02")
@pytest.mark.parametrize(("name", "value"), [*FAULTS, *JSON_FAULTS])
def test_a_value_that_a_member_cannot_have_is_named(name: str, value: object) -> None:
    where = r"^version 7, line 1: add\.deletionVector\."
    with pytest.raises(MalformedLogError, match=where + name):
        adds(with_fault(name, value))
    with pytest.raises(MalformedLogError, match=rf"^here\.{name}"):
        descriptor_from_json(JsonObject(with_fault(name, value), "here"))


@pytest.mark.protocol("DV-02")
@pytest.mark.parametrize(("name", "value"), FAULTS)
def test_a_column_is_held_to_the_same_rules(name: str, value: object) -> None:
    column = pa.array([None, SOUND, with_fault(name, value)], DELETION_VECTOR_TYPE)
    assert not are_sound(column)
    with pytest.raises(MalformedLogError, match=rf"^here, row 2: deletionVector\.{name}"):
        check_column(column, "here")
    assert not are_sound(pa.chunked_array([column.slice(0, 1), column.slice(1)]))


@pytest.mark.protocol("DV-02")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"offset": None},
        {"offset": 0, "sizeInBytes": 0, "cardinality": 0},
        {"maxRowIndex": 12},
        {"storageType": "i", "pathOrInlineDv": "0", "offset": None},
        {"storageType": "p", "pathOrInlineDv": "s3://bucket/x.bin"},
    ],
)
def test_sound_descriptors(changes: dict[str, Any]) -> None:
    vector = {**SOUND, **changes}
    check_column(pa.array([None, vector], DELETION_VECTOR_TYPE), "here")
    column = adds(vector)["deletionVector"]
    found: Any = column[1].as_py()
    assert {name: found[name] for name in vector} == vector


def test_whole_numbers_that_are_written_as_fractions_are_read() -> None:
    column: Any = adds({**SOUND, "sizeInBytes": 40.0, "cardinality": 6.0})["deletionVector"]
    found = column[1]
    assert (found["sizeInBytes"].as_py(), found["cardinality"].as_py()) == (40, 6)


@pytest.mark.protocol("DV-02")
def test_a_storage_type_of_a_feature_is_refused_by_the_features_name() -> None:
    vector = {**SOUND, "storageType": "r"}
    with pytest.raises(UnsupportedFeatureError, match="adaptiveMetadata-preview"):
        adds(vector)
    with pytest.raises(UnsupportedFeatureError, match="adaptiveMetadata-preview"):
        check_column(pa.array([vector], DELETION_VECTOR_TYPE), "here")
