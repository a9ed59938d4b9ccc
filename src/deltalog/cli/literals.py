"""Values as JSON: those of the output, and those that errors write as Python does.

An error of the library shows rows as Python dictionaries, such as `{'day': datetime.date(2026, 1,
1)}`. `rows_as_json` writes them as the output of commands has them.
"""

from __future__ import annotations

import ast
import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from deltalog._util.json import dumps

if TYPE_CHECKING:
    from collections.abc import Callable


def plain(value: Any) -> Any:
    """Convert a value to one that JSON can represent."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else str(value)  # noqa: PLR0124  # NaN differs from itself
        case bytes():
            return value.hex()
        case dt.datetime():
            return value.isoformat()
        case dict():
            return {str(name): plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _:
            return str(value)


_START: Final = re.compile(r"(?<![=\w])\{(?=')")
"""The start of a row. An argument, such as `updates={'a': 'b'}`, is part of a call."""
_PART: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[{}]""", re.DOTALL)
_TYPES: Final[dict[str, Callable[..., Any]]] = {
    "datetime.date": dt.date,
    "datetime.datetime": dt.datetime,
    "datetime.time": dt.time,
    "datetime.timedelta": dt.timedelta,
    "zoneinfo.ZoneInfo": ZoneInfo,
    "Decimal": Decimal,
}
_NAMES: Final[dict[str, Any]] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "datetime.timezone.utc": dt.UTC,
}


def rows_as_json(text: str) -> str:
    """Return a text in which rows that are written as Python dictionaries are JSON."""
    parts, position = [], 0
    while (found := _START.search(text, position)) is not None:
        start, end = found.start(), _end_of(text, found.start())
        parts.append(text[position:start])
        parts.append(_as_json(text[start:end]))
        position = end
    return "".join([*parts, text[position:]])


def _end_of(text: str, start: int) -> int:
    """Return where the dictionary ends that begins at `start`; if it does not, one further."""
    depth = 0
    for part in _PART.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(part[0], 0)
        if depth == 0:
            return part.end()
    return start + 1


def _as_json(written: str) -> str:
    """Return a dictionary as JSON; unchanged if it has other values than rows have."""
    try:
        value = _value(ast.parse(written, mode="eval").body)
        return dumps(plain(value)).decode()
    except (SyntaxError, ValueError, TypeError, ArithmeticError, KeyError, RecursionError):
        return written


def _value(node: ast.AST) -> Any:
    """Return the value of a literal, or of one of `_TYPES`.

    Raises:
        KeyError: it is another expression.
    """
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
        case ast.Dict():
            names = [_value(name) for name in node.keys if name is not None]
            return dict(zip(names, map(_value, node.values), strict=True))
        case ast.List() | ast.Tuple():
            return [_value(part) for part in node.elts]
        case ast.Call():
            named = {one.arg or "": _value(one.value) for one in node.keywords}
            return _TYPES[ast.unparse(node.func)](*map(_value, node.args), **named)
        case _:
            return _NAMES[ast.unparse(node)]
