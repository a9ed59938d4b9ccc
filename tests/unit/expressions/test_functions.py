from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import arrow, parse_sql
from deltalog.expressions import containers as lambdas
from deltalog.expressions.aliases import ALIASES, CASTS, MACROS
from deltalog.expressions.functions import (
    FUNCTIONS,
    OF_CHARACTERS,
    OF_LENGTH,
    OF_LOCALES,
    REFUSED,
    TRIMS,
    find_function,
)
from tests.support.sql import values_of

if TYPE_CHECKING:
    from collections.abc import Container

_LINES: Final = Path(__file__).with_name("functions_of_delta.txt").read_text("utf-8").splitlines()
ALLOWED: Final = [name for line in _LINES if not line.startswith("# ") for name in line.split()]
OPERATORS: Final = (
    "+ - * / % div & | ^ and or < <= = == >= > <=> << >> >>> || != <>".split()  # noqa: SIM905  # shorter
)
# What is no call in SQL, or has a form of its own, by an example.
FORMS: Final = {
    **{sign: f"a {sign} b" for sign in OPERATORS},
    "~": "~a", "!": "! a", "not": "NOT a", "in": "a IN (b)", "cast": "CAST(a AS INT)",
    "when": "CASE WHEN a THEN b END", "extract": "EXTRACT(YEAR FROM a)", "col": "a", "lit": "1",
    "struct": "struct(a, b)", "date_part": "date_part('year', a)",
}  # fmt: skip


def test_functions_of_texts_are_in_the_table() -> None:
    known = FUNCTIONS.keys() | ALIASES.keys() | {name for name, _ in MACROS}
    assert known >= OF_LENGTH | OF_CHARACTERS
    assert OF_CHARACTERS >= OF_LOCALES | TRIMS


@pytest.mark.parametrize("name", ALLOWED)
def test_what_delta_allows_is_known_or_refused_with_a_reason(name: str) -> None:
    macros = {macro for macro, _ in MACROS}
    ways: list[Container[str]] = [FUNCTIONS, ALIASES, CASTS, macros, FORMS, REFUSED]
    assert any(name in way for way in ways)
    if name in FORMS:
        parse_sql(FORMS[name])
    assert name not in REFUSED or not any(name in way for way in ways[:-1])


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_gives_its_reason(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"does not compute {name}: ") as caught:
        values_of(f"{name}(a)", a=pa.array(["x"]))
    assert REFUSED[name] in str(caught.value)


def test_every_function_has_one_kernel() -> None:
    tables = [arrow.KERNELS, arrow.ROWS, arrow.ROWS_WITH_NULLS, lambdas.LAMBDAS]
    names = [name for table in tables for name in table]
    assert len(names) == len(set(names))
    assert {*names, "coalesce", "nanvl"} == set(FUNCTIONS)


@pytest.mark.parametrize(
    "sql",
    ["repeat(s, 1000000000)", "repeat(s, n)", "space(n)", "space(2000000000)", "lpad(s, n)",
     "lpad(s, 2000000000)", "rpad(s, 2000000000, 'ab')", "sequence(0L, 1000000000000L)",
     "sequence(0, n)", "array_repeat(s, n)", "array_repeat(1, 2000000000)",
     "format_string('%999999999s', s)", "format_string('%09999999999d', n)",
     "sequence(-n, n)"],
)  # fmt: skip
def test_too_much_is_an_error_before_it_fills_the_memory(sql: str) -> None:
    rows = {"s": pa.array(["x", "y"]), "n": pa.array([1_500_000_000, 1], pa.int32())}
    with pytest.raises(InvalidInputError, match=r"are allowed|is too large for deltalog"):
        values_of(f"{sql} IS NOT NULL OR {sql} IS NULL", **rows)


@pytest.mark.parametrize(
    "sql",
    [
        "repeat(s, 1000)",
        "lpad(s, 100000)",
        "size(sequence(1, 1000000))",
        "size(array_repeat(s, 999))",
    ],
)
def test_as_much_as_a_table_needs_is_none(sql: str) -> None:
    assert values_of(sql, s=pa.array(["x", None]))[0]


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
    [
        ("upper", 2, "1 argument"),
        ("round", 3, "1 to 2 argument"),
        ("coalesce", 0, "1 or more"),
        ("date_sub", 3, "2 argument"),
        ("months_between", 4, "2 to 3 argument"),
    ],
)
def test_the_number_of_arguments_is_checked(name: str, count: int, wanted: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"{name} expects {wanted}.*found {count}"):
        find_function(name, count)


@pytest.mark.parametrize(("name", "count"), [("upper", 1), ("round", 2), ("concat", 0)])
def test_a_function_is_found(name: str, count: int) -> None:
    assert find_function(name, count) is FUNCTIONS[name]
