"""Schemas and values of every type, for the laws of the schema's rooms."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

from hypothesis import strategies as st

from deltalog.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    VariantType,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text("abcXYZ .`é_1", min_size=1, max_size=5)
SIMPLE = [
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]


@st.composite
def decimals(draw: st.DrawFn) -> PrimitiveType:
    precision = draw(st.integers(1, 38))
    return PrimitiveType(f"decimal({precision},{draw(st.integers(0, precision))})")


PARTITION_TYPES = st.sampled_from(SIMPLE).map(PrimitiveType) | decimals()
LEAVES: st.SearchStrategy[DataType] = (
    PARTITION_TYPES | st.just(VariantType()) | st.just(PrimitiveType("void"))
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=3,
)
METADATA = st.dictionaries(TEXT.map(lambda text: f"delta.{text}"), JSON, max_size=2) | (
    st.dictionaries(st.sampled_from(["comment", "a.b"]), TEXT, max_size=2)
)


def _is_void(data_type: DataType) -> bool:
    return data_type == PrimitiveType("void")


def fields(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[Field]:
    return st.builds(_field, NAMES, types, st.booleans(), METADATA)


def structs(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    unique = st.lists(
        fields(types), min_size=1, max_size=3, unique_by=lambda field: field.name.lower()
    )
    return unique.map(StructType)


def _field(name: str, kind: DataType, nullable: bool, metadata: dict[str, Any]) -> Field:
    # Arrow has no void that must not be NULL.
    return Field(name, kind, nullable or _is_void(kind), metadata)


def _array(element: DataType, contains_null: bool) -> ArrayType:
    return ArrayType(element, contains_null or _is_void(element))


def _map(key: DataType, value: DataType, contains_null: bool) -> MapType:
    return MapType(key, value, contains_null or _is_void(value))


TYPES: st.SearchStrategy[DataType] = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(_array, inner, st.booleans())
        | st.builds(_map, inner.filter(lambda key: not _is_void(key)), inner, st.booleans())
        | structs(inner)
    ),
    max_leaves=5,
)
SCHEMAS = structs(TYPES)

_WIDE = Context(prec=40)
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))  # noqa: DTZ001
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "binary": TEXT.map(str.encode),
    "float": st.floats(width=32),
    "double": st.floats(),
    "boolean": st.booleans(),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "timestamp": _MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
    "timestamp_ntz": _MOMENTS,
}


def values(kind: PrimitiveType) -> st.SearchStrategy[Any]:
    """Values of a type that may partition a table."""
    if kind.is_decimal:
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(
            lambda digits: Decimal(digits).scaleb(-kind.scale, _WIDE)
        )
    if kind.type in _BITS:
        most = 1 << (_BITS[kind.type] - 1)
        return st.integers(-most, most - 1)
    return _VALUES[kind.type]
