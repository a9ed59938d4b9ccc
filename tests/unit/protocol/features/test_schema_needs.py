"""What a schema holds that calls for a table feature, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltalog.protocol.features import schema_needs as traits
from deltalog.schema import ArrayType, Field, MapType, StructType, VariantType

EMPTY = StructType([])
PLAIN = StructType([Field("id", "long", metadata={"comment": "delta.invariants"})])


def nested(field: Field) -> list[StructType]:
    """The field at the top, in a struct, and below a list and a map."""
    inner = StructType([field])
    return [
        inner,
        StructType([Field("s", inner)]),
        StructType([Field("l", ArrayType(inner))]),
        StructType([Field("m", MapType("string", ArrayType(inner)))]),
    ]


@pytest.mark.parametrize(
    ("has", "key", "value"),
    [
        (traits.has_invariants, "delta.invariants", "{}"),
        (traits.has_generated_columns, "delta.generationExpression", "1"),
        (traits.has_identity_columns, "delta.identity.step", 1),
        (traits.has_column_defaults, "CURRENT_DEFAULT", "NULL"),
    ],
)
def test_columns_say_it_in_their_metadata(
    has: Callable[[StructType], bool], key: str, value: Any
) -> None:
    assert not has(EMPTY)
    assert not has(PLAIN)
    assert all(map(has, nested(Field("a", "long", metadata={key: value}))))
    assert not any(map(has, nested(Field("a", "long", metadata={f"{key}s": value}))))


def test_types_call_for_features() -> None:
    for schema in nested(Field("t", "timestamp_ntz")):
        assert traits.has_types_of(schema, "timestampNtz")
        assert not traits.has_types_of(schema, "variantType")
    for schema in (EMPTY, PLAIN, *nested(Field("t", "timestamp"))):
        assert not traits.has_types_of(schema, "timestampNtz")
    assert traits.has_types_of(StructType([Field("l", ArrayType("timestamp_ntz"))]), "timestampNtz")


def test_variants_are_found_anywhere() -> None:
    assert all(map(traits.has_variant, nested(Field("v", VariantType()))))
    assert traits.has_variant(StructType([Field("m", MapType("string", VariantType()))]))
    assert not traits.has_variant(EMPTY)
    assert not traits.has_variant(PLAIN)
