from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltalog import Field, Schema
from deltalog.errors import InvalidInputError
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


_NAMED = Schema([Field("id", "long"), Field("name", "struct<first:string>")])


def test_a_struct_returns_fields_by_name_and_number() -> None:
    assert _NAMED["id"] is _NAMED["ID"] is _NAMED[0] is _NAMED.fields[0]
    assert _NAMED[-1:] == Schema([_NAMED.fields[1]])
    assert _NAMED["name"].type["first"].name == "first"  # type: ignore[index]  # a struct
    assert "ID" in _NAMED
    assert "first" not in _NAMED
    assert _NAMED.fields[1] in _NAMED
    assert list(_NAMED.names) == ["id", "name"]
    with pytest.raises(IndexError):
        _NAMED[2]


@pytest.mark.parametrize(
    ("use", "error", "hint"),
    [
        (lambda one: one["nme"], KeyError, "no field 'nme': did you mean 'name'?"),
        (lambda one: one["price"], KeyError, "no field 'price': it has id, name"),
        (lambda one: one.fields["id"], TypeError, "only items by number: use schema['id']"),
        (lambda one: one.fields(), TypeError, "a list, not a method: omit the ()"),
        (lambda one: one.names(), TypeError, "a list, not a method: omit the ()"),
        (lambda one: one["id"]["type"], TypeError, "Field has no item 'type': use .type"),
        (lambda one: one.id, AttributeError, "use schema['id']"),
        (lambda one: one.field("id"), AttributeError, "use schema[name]"),
        (
            lambda one: one.select(["id"]),
            AttributeError,
            "Schema([schema[name] for name in names])",
        ),
        (lambda one: one.simpleString(), AttributeError, "use str(schema)"),
    ],
)
def test_habits_of_other_schemas_name_ours(
    use: Callable[[Any], object], error: type[Exception], hint: str
) -> None:
    with pytest.raises(error) as caught:
        use(_NAMED)
    assert hint in str(caught.value)


@pytest.mark.parametrize("given", [{"type": "struct", "fields": []}, _NAMED, None])
def test_json_is_a_string(given: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"from_json with text=.*json\.dumps\(…\)"):
        Schema.from_json(given)


def test_a_name_that_several_fields_have_in_some_case_is_refused() -> None:
    several = Schema([Field("a", "long"), Field("A", "long")])
    assert several["A"].name == "A"
    with pytest.raises(KeyError, match="several fields"):
        Schema([Field("ab", "long"), Field("aB", "long")])["AB"]
