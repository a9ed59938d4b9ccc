"""Check the arguments of functions in the text of a query, above all of aggregate functions.

sqlglot and DuckDB accept more arguments of some of them, and ignore these or use them otherwise.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from deltalog._util.readable import counted
from deltalog.query.lexer import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.query.lexer import Word

_TAKE_NULLS: Final = frozenset({"any_value", "first", "first_value", "last", "last_value"})
"""Functions whose second argument states whether to ignore NULL."""
_NUMBERS: Final[dict[str, tuple[int, int]]] = {
    **dict.fromkeys(
        ("array_agg", "avg", "collect_list", "collect_set", "count_if", "max", "mean", "median"),
        (0, 1),
    ),
    **dict.fromkeys(("min", "std", "stddev", "sum", "variance"), (0, 1)),
    **dict.fromkeys(("listagg", "string_agg"), (0, 2)),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "max_by", "min_by", "regr_slope"), (2, 2)),
    **dict.fromkeys(_TAKE_NULLS, (1, 2)),
    "every": (1, 1),
    "percentile": (2, 2),
    "uuid": (0, 1),
}
"""Function → the least and the most arguments. DuckDB refuses most calls without arguments."""
_CALL: Final = re.compile(rf"\b(?:{'|'.join(_NUMBERS)})\s*\(", re.IGNORECASE)
_BEFORE: Final = frozenset(
    {"SELECT", "DISTINCT", "ALL", "AND", "OR", "NOT", "BY", "WHEN", "THEN", "ELSE", "HAVING",
     "QUALIFY", "CASE", "BETWEEN", "IN", "IS", "LIKE"}
)  # fmt: skip
"""Keywords before an expression. After other words, `max (a, b)` may name columns of an alias."""


def wrong_arguments(text: str) -> tuple[int, str] | None:
    """Return the position of an aggregate function with a wrong number of arguments, and why."""
    if _CALL.search(text) is None:  # faster than splitting
        return None
    words = split(text)
    for number, word in enumerate(words[:-1]):
        numbers = _NUMBERS.get(word.text.lower()) if word.kind == "word" else None
        if numbers is None or not words[number + 1].says("(") or not _is_call(words, number):
            continue
        least, most = numbers
        given = [*takewhile(lambda one: not one.says("ORDER"), _level(words, number + 2))]
        commas = [place for place, one in enumerate(given) if one.says(",")]
        name, found = word.text.lower(), len(commas) + (not words[number + 2].says(")"))
        if not least <= found <= most:
            return word.start, f"{name} expects {_number(least, most)}, found {found}"
        if name in _TAKE_NULLS and commas:
            second = given[commas[0] + 1 :]
            if [one.text.upper() for one in second] not in (["TRUE"], ["FALSE"]):
                return second[0].start if second else word.start, _NO_TRUTH.format(name=name)
    return None


_NO_TRUTH: Final = (
    "the second argument of {name} states whether to ignore NULL: expected TRUE or FALSE"
)


def _number(least: int, most: int) -> str:
    return f"{least} or {most} arguments" if 0 < least < most else counted(most, "argument")


def _is_call(words: Sequence[Word], number: int) -> bool:
    """Whether a name before a bracket is that of a function, and not of a table or a CTE."""
    before = words[number - 1] if number else words[-1]
    *_, last = (number + 1, *_places(words, number + 2))
    # `WITH a AS (…), max (x, y) AS (…)` names a table.
    is_table = all(
        one.says(text) for one, text in zip(words[last + 2 :], ("AS", "("), strict=False)
    )
    if before.kind == "sign":
        return before.text not in {")", "."} and not is_table
    return before.text.upper() in _BEFORE


def _places(words: Sequence[Word], first: int) -> Iterator[int]:
    """Yield the places of the words up to the closing bracket."""
    depth = 0
    for place in range(first, len(words)):
        depth += words[place].says("(") - words[place].says(")")
        if depth < 0:
            return
        yield place


def _level(words: Sequence[Word], first: int) -> Iterator[Word]:
    """Yield the words between brackets that are in no inner brackets."""
    depth = 0
    for place in _places(words, first):
        depth += words[place].text in {"(", "["}
        if not depth:
            yield words[place]
        depth -= words[place].text in {")", "]"}
