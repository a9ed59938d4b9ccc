from __future__ import annotations

import pytest

from deltalog.actions.properties import TableProperties
from deltalog.errors import InvalidInputError
from deltalog.features.iceberg_compat import (
    check,
    check_formats,
    with_nested_ids,
    with_required_properties,
)
from deltalog.features.type_widening import (
    record_type_changes,
)
from deltalog.schema import ArrayType, Field, MapType, StructType


def properties(**texts: str) -> TableProperties:
    return TableProperties({f"delta.{key}": text for key, text in texts.items()})


@pytest.mark.protocol("B-53")
def test_elements_keys_and_values_get_the_next_ids() -> None:
    lists = ArrayType(MapType("string", "long"))
    schema = StructType([Field("a", lists, metadata={"delta.columnMapping.id": 12})])
    once, highest = with_nested_ids(schema, 7)
    ids = once.fields[0].metadata["delta.columnMapping.nested.ids"]
    assert ids == {"a.element": 13, "a.element.key": 14, "a.element.value": 15}
    assert highest == 15
    assert with_nested_ids(once, highest) == (once, 15)
    both = StructType([*once.fields, Field("b", ArrayType("long"))])
    more, highest = with_nested_ids(both, 20)
    assert more.fields[0] == once.fields[0]
    assert more.fields[1].metadata["delta.columnMapping.nested.ids"] == {"b.element": 21}
    assert highest == 21


@pytest.mark.protocol("B-50", "B-53")
@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("integer", "long", True),
        ("float", "double", True),
        ("decimal(5,2)", "decimal(9,2)", True),
        ("decimal(5,2)", "decimal(9,3)", False),
        ("integer", "double", False),
        ("date", "timestamp_ntz", False),
    ],
)
def test_widenings_that_iceberg_knows(before: str, after: str, *, allowed: bool) -> None:
    field = record_type_changes("c", Field("c", before), Field("c", after), is_enabled=True)
    on = TableProperties(
        with_required_properties(
            {"delta.enableIcebergCompatV2": "true"}, properties(enableIcebergCompatV2="true")
        )
    )
    if allowed:
        check((), on, StructType([field]))
    else:
        with pytest.raises(InvalidInputError, match="whose type was changed"):
            check((), on, StructType([field]))


def test_formats_are_refused_when_they_are_asked_for() -> None:
    hudi = TableProperties({"delta.universalFormat.enabledFormats": "hudi"})
    iceberg = TableProperties({"delta.universalFormat.enabledFormats": "iceberg"})
    both = TableProperties(
        {"delta.universalFormat.enabledFormats": "Iceberg", "delta.enableIcebergCompatV2": "true"}
    )
    with pytest.raises(InvalidInputError, match="as Hudi"):
        check_formats(hudi, None)
    with pytest.raises(InvalidInputError, match=r"enableIcebergCompatV2 = true"):
        check_formats(iceberg, None)
    with pytest.raises(InvalidInputError, match=r"enableIcebergCompatV2 = true"):
        check_formats(iceberg, both)
    check_formats(hudi, hudi)  # of another engine, which sees to it
    check_formats(iceberg, iceberg)
    check_formats(both, None)
