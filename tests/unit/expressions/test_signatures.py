"""Types of parameters and results, derived from the types of the arguments."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import col, parse_type
from deltalog.expressions.signatures import Function, fixed, many, same
from deltalog.schema.types import DOUBLE, INTEGER, STRING, VOID

TEXT_AND_NUMBER = fixed(STRING, INTEGER, result=DOUBLE, optional=1, constants=(1,))


def types_of(function: Function, *kinds: str) -> tuple[list[str], str]:
    """What the arguments are cast to, and the type of the result."""
    arguments = [(col("x"), VOID if kind == "void" else parse_type(kind)) for kind in kinds]
    parameters, result = function.types(arguments)
    return [str(kind) for kind in parameters], str(result)


def test_fixed_types_are_those_of_the_arguments_that_are_there() -> None:
    assert (TEXT_AND_NUMBER.least, TEXT_AND_NUMBER.most) == (1, 2)
    assert TEXT_AND_NUMBER.constants == (1,)
    assert types_of(TEXT_AND_NUMBER, "date") == (["string"], "double")
    assert types_of(TEXT_AND_NUMBER, "date", "void") == (["string", "integer"], "double")


def test_any_number_of_one_type() -> None:
    function = many(STRING, INTEGER, least=1)
    assert (function.least, function.most) == (1, None)
    assert types_of(function) == ([], "integer")
    assert types_of(function, "date", "int", "void") == (["string"] * 3, "integer")


@pytest.mark.parametrize(
    ("kinds", "common"),
    [
        (("int",), "integer"),
        (("void", "void"), "void"),
        (("int", "void", "bigint"), "long"),
        (("int", "double"), "double"),
        (("string", "void"), "string"),
    ],
)
def test_arguments_get_their_common_type(kinds: tuple[str, ...], common: str) -> None:
    for with_strings in (True, False):
        found = types_of(same(1, with_strings=with_strings), *kinds)
        assert found == ([common] * len(kinds), common)


def test_strings_become_other_types_only_where_they_may() -> None:
    assert types_of(same(1, with_strings=True), "string", "int") == (["long", "long"], "long")
    with pytest.raises(InvalidInputError, match="no common type: string, integer"):
        types_of(same(1, with_strings=False), "string", "int")


def test_types_without_a_common_one_are_named_once_each() -> None:
    with pytest.raises(InvalidInputError, match=r"no common type: integer, date$"):
        types_of(same(2, with_strings=True), "int", "date", "int")
