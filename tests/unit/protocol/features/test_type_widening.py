from __future__ import annotations

from typing import Any

import pytest

from deltalog.protocol.features.type_widening import (
    has_type_changes,
    record_type_changes,
    without_type_changes,
)
from deltalog.schema import ArrayType, Field, MapType, StructType


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        (ArrayType("integer"), ArrayType("long"), "element"),
        (MapType("byte", "string"), MapType("short", "string"), "key"),
        (
            MapType("byte", ArrayType("float")),
            MapType("byte", ArrayType("double")),
            "value.element",
        ),
    ],
)
def test_changes_inside_lists_and_maps_are_remembered(before: Any, after: Any, path: str) -> None:
    field = record_type_changes("c", Field("c", before), Field("c", after), is_enabled=True)
    (entry,) = field.metadata["delta.typeChanges"]
    assert entry["fieldPath"] == path
    assert has_type_changes(StructType([field]))
    assert without_type_changes(field) == Field("c", after)
    again = record_type_changes("c", Field("c", before), field, is_enabled=True)
    assert again == field
