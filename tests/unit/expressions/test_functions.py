from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions.functions import FUNCTIONS, find_function


def test_an_unknown_function_is_an_error_with_a_hint() -> None:
    with pytest.raises(
        InvalidInputError, match=r"no SQL function 'date_subb'; did you mean 'date_sub'\?"
    ):
        find_function("date_subb", 1)
    with pytest.raises(InvalidInputError, match=r"did you mean 'nullif'"):
        find_function("nulif", 2, ["nullif"])
    with pytest.raises(InvalidInputError, match=r"no SQL function 'xyzzy'$"):
        find_function("xyzzy", 0)


@pytest.mark.parametrize(
    ("name", "count", "wanted"),
    [("upper", 2, "1 argument"), ("round", 3, "1 to 2 argument"), ("coalesce", 0, "1 or more")],
)
def test_the_number_of_arguments_is_checked(name: str, count: int, wanted: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"{name} takes {wanted}.*found {count}"):
        find_function(name, count)


@pytest.mark.parametrize(("name", "count"), [("upper", 1), ("round", 2), ("concat", 0)])
def test_a_function_is_found(name: str, count: int) -> None:
    assert find_function(name, count) is FUNCTIONS[name]
