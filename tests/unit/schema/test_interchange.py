"""The methods of types that deltalake's users know."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema import (
    ArrayType,
    Field,
    PrimitiveType,
    Schema,
    VariantType,
)


def test_methods_as_in_deltalake() -> None:
    schema = Schema([Field("x", "long", metadata={"comment": "c"})])
    assert Schema.from_json(schema.to_json()) == schema
    assert Field.from_json(schema.fields[0].to_json()) == schema.fields[0]
    assert PrimitiveType.from_json('"long"') == PrimitiveType("long")
    assert (schema.type, ArrayType(schema).type, VariantType().type) == (
        "struct",
        "array",
        "variant",
    )
    with pytest.raises(InvalidInputError, match="it is a PrimitiveType"):
        Schema.from_json('"long"')


def test_a_schema_is_a_dictionary() -> None:
    assert Schema([Field("x", "integer")]).json() == {
        "type": "struct",
        "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}],
    }
