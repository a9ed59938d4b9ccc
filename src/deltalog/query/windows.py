"""Checks of window functions, whose errors would otherwise be in the words of DuckDB.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp
from sqlglot.expressions import Expr

from deltalog.query.lexer import SyntaxProblem
from deltalog.query.parse import read_query, start_of
from deltalog.query.query_trees import core_of, name_of_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CURRENT: Final = "CURRENT ROW"
_UNBOUNDED: Final = "UNBOUNDED"
_PRECEDING: Final = "PRECEDING"
_EXAMPLE: Final = "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
_ORDER: Final = {_PRECEDING: 0, _CURRENT: 1, "FOLLOWING": 2}
_NUMBERS: Final = (exp.Literal, exp.Neg, exp.Boolean, exp.Interval)
_WITH_DEFAULT: Final = (exp.Lag, exp.Lead)
_COUNTS: Final[dict[type[Expr], tuple[str, str]]] = {
    exp.Lag: ("offset", "value, 1, default"),
    exp.Lead: ("offset", "value, 1, default"),
    exp.NthValue: ("offset", "value, 2"),
    exp.Ntile: ("this", "4"),
}
"""A function → its argument that is a whole number, and an example of its arguments."""


def check_window(window: exp.Window) -> None:
    """Refuse a frame that has no rows or no order, and an offset that is not a whole number.

    Raises:
        SyntaxProblem: the frame or the offset is invalid.
    """
    function = core_of(window)
    if type(function) in _COUNTS:
        _check_count(function, *_COUNTS[type(function)])
    spec = window.args.get("spec")
    if isinstance(spec, exp.WindowSpec):
        _check_frame(window, spec)


def _check_count(function: Expr, argument: str, example: str) -> None:
    value = function.args.get(argument)
    value = value.this if isinstance(value, exp.Neg) else value
    if isinstance(value, exp.Literal) and not value.is_int:
        name = name_of_function(function)
        raise SyntaxProblem(
            start_of(function),
            f"{name} expects a whole number of rows, found {value.sql(dialect='spark')}; write "
            f"{name}({example})",
        )


def _check_frame(window: exp.Window, spec: exp.WindowSpec) -> None:
    place = start_of(window)
    kind = str(spec.args.get("kind") or "").upper()
    first, last = _bound(spec, "start"), _bound(spec, "end")
    shown = [_shown(*bound) for bound in (first, last)]
    if first == (_UNBOUNDED, "FOLLOWING") or last == (_UNBOUNDED, _PRECEDING):
        wrong = shown[0] if first == (_UNBOUNDED, "FOLLOWING") else shown[1]
        side = "begin" if wrong == shown[0] else "end"
        raise SyntaxProblem(place, f"a frame cannot {side} at {wrong}; write {_EXAMPLE}")
    if spec.args.get("end") is None and first[1] == "FOLLOWING":
        raise SyntaxProblem(
            place,
            f"a frame from FOLLOWING needs an end: write {kind} BETWEEN {shown[0]} AND UNBOUNDED "
            "FOLLOWING",
        )
    if _is_reversed(first, last):
        raise SyntaxProblem(
            place,
            f"a frame begins before it ends, found BETWEEN {shown[0]} AND {shown[1]}; write "
            f"BETWEEN {shown[1]} AND {shown[0]}",
        )
    for (value, _), text in zip((first, last), shown, strict=True):
        if kind == "ROWS" and isinstance(value, _NUMBERS) and not _is_count(value):
            raise SyntaxProblem(
                place,
                f"ROWS expects whole numbers of rows from 0 on, found {text}; write {_EXAMPLE}",
            )
    has_value = any(isinstance(value, _NUMBERS) for value, _ in (first, last))
    order = window.args.get("order")
    if kind == "RANGE" and has_value and not window.args.get("alias"):
        num_keys = len(order.expressions) if order is not None else 0
        if num_keys != 1:
            raise SyntaxProblem(
                place,
                f"RANGE compares the values of one expression of ORDER BY, found {num_keys}; to "
                "count rows, write ROWS",
            )


def _bound(spec: exp.WindowSpec, name: str) -> tuple[Any, str]:
    """Return the value of a bound, and its side; a missing end is the current row."""
    value = spec.args.get(name) or _CURRENT
    side = str(spec.args.get(f"{name}_side") or "").upper()
    return (value.upper(), side) if isinstance(value, str) else (value, side)


def _shown(value: Any, side: str) -> str:
    text = value if isinstance(value, str) else value.sql(dialect="spark")
    return f"{text} {side}".strip()


def _is_reversed(first: tuple[Any, str], last: tuple[Any, str]) -> bool:
    places = [_ORDER[side or _CURRENT] for _, side in (first, last)]
    if places[0] != places[1]:
        return places[0] > places[1]
    if not all(_is_count(value) for value, _ in (first, last)):
        return False
    numbers = [int(value.name) for value, _ in (first, last)]
    return numbers[0] < numbers[1] if first[1] == _PRECEDING else numbers[0] > numbers[1]


def _is_count(value: Any) -> bool:
    return isinstance(value, exp.Literal) and bool(value.is_int)


# --- errors of types, which are known only when the query runs


_FAILED_CASTS: Final = (
    re.compile(
        r'Could not convert string ["\'](?P<value>.*?)["\'] to (?P<type>[\w(), ]+?)(?: when|$)'
    ),
    re.compile(
        r"Type VARCHAR with value '(?P<value>.*?)' can't be cast to the destination type "
        r"(?P<type>.+)"
    ),
    re.compile(
        r"Type \w+ with value (?P<value>\S+) can't be cast because the value is out of range for "
        r"the destination type (?P<type>\w+)"
    ),
    re.compile(r'invalid (?P<type>\w+) field format: "(?P<value>.*?)"'),
)
_OF_BOUND: Final = re.compile(r"argument types '[-+]\((?P<key>.+), (?P<bound>[\w ]+)\)'")


def problem_of_windows(message: str, query: str, type_name: Callable[[str], str]) -> str | None:
    """Return the problem of a window function behind an error of DuckDB; None if it has another.

    Args:
        message: DuckDB's message.
        query: the user's query.
        type_name: returns the name of a type in SQL for DuckDB's name.
    """
    text = message.partition("\n\nLINE ")[0]
    found = next(filter(None, (pattern.search(text) for pattern in _FAILED_CASTS)), None)
    bound = _OF_BOUND.search(text)
    if found is None and bound is None:
        return None
    try:
        windows = list(read_query(query).tree.find_all(exp.Window))
    except SyntaxProblem:
        return None
    if found is not None:
        kind = type_name(found["type"].strip()).upper()
        return _problem_of_default(windows, found["value"], kind, text)
    if bound is not None and any(_has_range(window) for window in windows):
        return _problem_of_range(type_name(bound["key"]), bound["bound"])
    return None


def _problem_of_default(windows: list[exp.Window], value: str, kind: str, text: str) -> str | None:
    for name, default in _defaults(windows):
        is_value = isinstance(default, exp.Literal) and default.name == value
        if is_value or f"source column {default.name}" in text:
            shown = default.sql(dialect="spark")
            return (
                f"the third argument of {name}, its default, must have the type of the first, "
                f"{kind}; found {shown}{'' if is_value else f' with the value {value!r}'}"
            )
    return None


def _defaults(windows: list[exp.Window]) -> Iterator[tuple[str, Expr]]:
    for window in windows:
        for function in window.find_all(*_WITH_DEFAULT):
            default = function.args.get("default")
            if default is not None:
                yield function.key.lower(), default


def _has_range(window: exp.Window) -> bool:
    spec = window.args.get("spec")
    return isinstance(spec, exp.WindowSpec) and str(spec.args.get("kind")).upper() == "RANGE"


def _problem_of_range(key: str, bound: str) -> str:
    if "INTERVAL" in bound:
        return (
            "RANGE with an interval needs a date or a timestamp in ORDER BY, found an expression "
            f"of type {key}; for numbers, write RANGE BETWEEN 1 PRECEDING AND CURRENT ROW"
        )
    return (
        f"RANGE with a number needs a number or a date in ORDER BY, found an expression of type "
        f"{key}; for timestamps, write RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW, and "
        "ROWS counts rows"
    )
