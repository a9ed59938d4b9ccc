from __future__ import annotations

import pytest

from deltalog.actions.properties import TableProperties
from deltalog.errors import InvalidInputError
from deltalog.features.iceberg_compat import check, with_required_properties
from deltalog.features.type_widening import (
    record_type_changes,
)
from deltalog.schema import Field, StructType


def properties(**texts: str) -> TableProperties:
    return TableProperties({f"delta.{key}": text for key, text in texts.items()})


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
