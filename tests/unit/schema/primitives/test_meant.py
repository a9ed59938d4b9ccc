"""Which type an error says was meant."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema import ArrayType, Field, PrimitiveType, as_type


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (int, "long"),
        (float, "double"),
        (str, "string"),
        (bool, "boolean"),
        (bytes, "binary"),
        (dt.date, "date"),
        (dt.datetime, "timestamp"),
        (decimal.Decimal, "decimal(38,18)"),
        ("int64", "long"),
        ("int32", "integer"),
        ("float64", "double"),
        ("str", "string"),
        ("bool", "boolean"),
        ("BIGINT", "long"),
        ("object", "string"),
        ("strnig", "string"),
        ("timestamp[us]", "timestamp_ntz"),
        (pa.int64(), "long"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
    ],
)
def test_what_is_no_type_names_the_one_that_is_meant(value: Any, meant: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot make a type of") as caught:
        Field("a", value)
    assert str(caught.value).endswith(f": did you mean {meant!r}?")
    assert "timestamp_nanos_ntz" not in str(caught.value)  # one name is better than all of them
    assert as_type(meant)


@pytest.mark.parametrize("value", [dict, pa.month_day_nano_interval(), 3, None, "qqqqqq"])
def test_nothing_is_guessed(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="cannot make a type of") as caught:
        Field("a", value)
    assert "did you mean" not in str(caught.value)


def test_parts_of_types_are_checked_as_well() -> None:
    for make in (lambda: ArrayType("int64"), lambda: PrimitiveType("int64")):
        with pytest.raises(InvalidInputError, match="did you mean 'long'"):
            make()
