"""Numbers: their types, and their texts."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.numbers import (
    DECIMAL,
    FLOAT,
    INTEGER,
    arrow_decimal,
    canonical_decimal,
    decimal_parameters,
    java_word,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("decimal", "decimal(10,0)"),
        ("decimal(5,2)", "decimal(5,2)"),
        ("decimal( 38 , 38 )", "decimal(38,38)"),
        ("decimal(1,0)", "decimal(1,0)"),
        ("decimals", None),
        ("decimal(5)", None),
        ("DECIMAL", None),
    ],
)
def test_decimals_have_one_spelling(name: str, expected: str | None) -> None:
    assert canonical_decimal(name) == expected


@pytest.mark.parametrize("name", ["decimal(0,0)", "decimal(39,0)", "decimal(5,6)", "decimal(5,-1)"])
def test_decimals_that_cannot_be(name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot make a decimal"):
        canonical_decimal(name)


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.decimal128(10, 2), ("10", "2")),
        (pa.decimal256(60, 2), ("38", "2")),
        (pa.decimal128(3, -2), ("5", "0")),
        (pa.decimal128(1, 3), ("3", "3")),
        (pa.decimal256(50, 40), None),
        (pa.int64(), None),
    ],
)
def test_decimals_of_arrow(arrow: pa.DataType, expected: tuple[str, str] | None) -> None:
    assert decimal_parameters(arrow) == expected


def test_arrow_of_decimals() -> None:
    assert arrow_decimal("12", "3") == pa.decimal128(12, 3)


@pytest.mark.parametrize(
    ("number", "word"),
    [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN"), (0.0, None), (-1, None)],
)
def test_java_has_words_for_what_is_no_number(number: float, word: str | None) -> None:
    assert java_word(number) == word


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.0, pa.float64(), "0.0"),
        (-0.0, pa.float64(), "-0.0"),
        (1.0, pa.float64(), "1.0"),
        (0.001, pa.float64(), "0.001"),
        (0.0001, pa.float64(), "1.0E-4"),
        (9999999.0, pa.float64(), "9999999.0"),
        (1e7, pa.float64(), "1.0E7"),
        (-1.25e20, pa.float64(), "-1.25E20"),
        (0.1, pa.float32(), "0.1"),
        (math.nan, pa.float32(), "NaN"),
        (3, pa.float64(), "3.0"),
    ],
)
def test_floats_are_written_as_java_prints_them(value: float, kind: pa.DataType, text: str) -> None:
    assert FLOAT.encode is not None
    assert FLOAT.encode(value, kind) == text


def test_integers_are_in_range() -> None:
    assert INTEGER.encode is not None
    assert INTEGER.encode(-128, pa.int8()) == "-128"
    assert INTEGER.encode((1 << 63) - 1, pa.int64()) == "9223372036854775807"
    for value, kind in ((128, pa.int8()), (-129, pa.int8()), (1 << 63, pa.int64())):
        with pytest.raises(ValueError, match="out of range"):
            INTEGER.encode(value, kind)
    for other in (True, 1.0, "1", None):
        with pytest.raises(TypeError):
            INTEGER.encode(other, pa.int64())


def parsed(codec: Any, texts: list[str | None], kind: pa.DataType) -> list[Any]:
    found: list[Any] = codec.parse(pa.array(texts, pa.string()), kind, "UTC").to_pylist()
    return found


def test_texts_are_numbers() -> None:
    assert parsed(INTEGER, ["+7", "-0", None, "007"], pa.int32()) == [7, 0, None, 7]
    assert parsed(FLOAT, ["1e3", ".5", "-Infinity", None], pa.float64()) == [
        1000.0, 0.5, -math.inf, None,
    ]  # fmt: skip
    assert parsed(DECIMAL, ["1.5", "-2", None], pa.decimal128(5, 2)) == [
        Decimal("1.50"), Decimal("-2.00"), None,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["0x10", "1.5", "", " 1", "1_000"])
def test_texts_that_are_no_integers(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parsed(INTEGER, ["1", text], pa.int32())
