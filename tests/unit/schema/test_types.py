from __future__ import annotations

from deltalog import Field, Schema
from deltalog.protocol.features.declarations import default_expressions, generation_expressions
from deltalog.protocol.features.identity_columns import identity_columns


def test_columns_are_declared_as_the_protocol_stores_them() -> None:
    schema = Schema(
        [
            Field("id", "long").identity(start=10, step=-2, always=False).comment("numbers"),
            Field("at", "timestamp").default("current_timestamp()"),
            Field("day", "date").generated_as("CAST(at AS DATE)"),
        ]
    )
    (numbered,) = identity_columns(schema)
    assert (numbered.start, numbered.step, numbered.allow_explicit_insert) == (10, -2, True)
    assert schema.fields[0].metadata["comment"] == "numbers"
    assert list(default_expressions(schema).values()) == ["current_timestamp()"]
    assert generation_expressions(schema) == {"day": "CAST(at AS DATE)"}
    assert Schema.from_json(schema.to_json()) == schema


def test_a_column_is_not_changed_but_made_anew() -> None:
    plain = Field("a", "long", nullable=False, metadata={"mine": 1})
    assert plain.default("1").metadata == {"mine": 1, "CURRENT_DEFAULT": "1"}
    assert plain.metadata == {"mine": 1}
    assert not plain.default("1").nullable
