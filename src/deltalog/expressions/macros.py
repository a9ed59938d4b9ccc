"""Functions that abbreviate another expression, and other names of functions.

Owns what is replaced before types are looked at: `nvl(a, b)` is `coalesce(a, b)`, `if(a, b, c)` is
a CASE. Evaluators never see these.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import FRACTIONALS, INTEGRALS
from deltalog.expressions.nodes import (
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Expression,
    IsNull,
    Like,
    Literal,
    Not,
)
from deltalog.expressions.render import to_sql
from deltalog.schema.types import BINARY, BOOLEAN, DATE, STRING, TIMESTAMP, decimal_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ALIASES: Final[dict[str, str]] = {
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "ucase": "upper",
    "lcase": "lower",
    "len": "length",
    "char": "chr",
    "sha": "sha1",
    "char_length": "length",
    "character_length": "length",
    "substr": "substring",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "ceiling": "ceil",
    "power": "pow",
    "signum": "sign",
    "day": "dayofmonth",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "to_unix_timestamp": "unix_timestamp",
    "cardinality": "size",
    "array_size": "size",
    "now": "current_timestamp",
    "curdate": "current_date",
}
# Each of these types is a function that casts to it.
_CAST_TYPES: Final = (
    *INTEGRALS, *FRACTIONALS, decimal_type(10, 0), BOOLEAN, STRING, BINARY, DATE, TIMESTAMP,
)  # fmt: skip
_CASTS: Final = {
    **{kind.primitive.sql_words[0].lower(): kind for kind in _CAST_TYPES},
    "to_date": DATE,
    "to_timestamp": TIMESTAMP,
    "timestamp_seconds": TIMESTAMP,
}
_PARTS: Final = {
    "year": "year",
    "years": "year",
    "yr": "year",
    "quarter": "quarter",
    "qtr": "quarter",
    "month": "month",
    "months": "month",
    "mon": "month",
    "week": "weekofyear",
    "weeks": "weekofyear",
    "w": "weekofyear",
    "day": "dayofmonth",
    "days": "dayofmonth",
    "d": "dayofmonth",
    "yearofweek": "yearofweek",
    "dow": "dayofweek",
    "dayofweek": "dayofweek",
    "doy": "dayofyear",
    "hour": "hour",
    "hours": "hour",
    "h": "hour",
    "minute": "minute",
    "minutes": "minute",
    "min": "minute",
    "m": "minute",
}
_FIRST_UNITS: Final = {"dateadd": "timestampadd", "datediff": "timestampdiff"}
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MICROS: Final = {"SECOND": 1_000_000, "MILLISECOND": 1000, "MICROSECOND": 1}


def expand(name: str, arguments: Sequence[Expression]) -> Expression | None:
    """What the call abbreviates, or None if it stands for itself.

    Args:
        name: of the function, in lower case.
        arguments: as they stand in the text.
    """
    if name == "struct" and arguments:
        return _struct(arguments)
    macro = MACROS.get((name, len(arguments)))
    if macro is not None:
        return macro(*arguments)
    if name in ALIASES:
        return Call(ALIASES[name], tuple(arguments))
    if name in _CASTS and len(arguments) == 1:
        return Cast(arguments[0], _CASTS[name])
    return None


def _nullif(value: Expression, other: Expression) -> Expression:
    return Case(((Comparison("=", value, other), Literal(None)),), value)


def _date_part(part: Expression, source: Expression) -> Expression:
    word = part.value.lower() if isinstance(part, Literal) and isinstance(part.value, str) else ""
    if word in {"second", "seconds", "s", "sec"}:
        # Unlike second(…), this keeps the fraction: decimal(8,6).
        seconds = Cast(Cast(source, TIMESTAMP), decimal_type(20, 6))
        return Cast(Call("pmod", (seconds, Literal(Decimal(60)))), decimal_type(8, 6))
    if word in {"dow_iso", "dayofweek_iso"}:
        return Arithmetic("+", Call("weekday", (source,)), Literal(1))
    if word not in _PARTS:
        raise InvalidInputError(f"there is no part {to_sql(part)} of a date in deltalog")
    return Call(_PARTS[word], (source,))


def _locate(part: Expression, text: Expression, start: Expression) -> Expression:
    # Without a place to start there is nothing to be found: 0, not NULL.
    found = Call("find_from", (part, text, start))
    return Case(((IsNull(start), Literal(0)),), found)


def _struct(arguments: Sequence[Expression]) -> Expression:
    named: list[Expression] = []
    for place, argument in enumerate(arguments, 1):
        name = argument.path[-1] if isinstance(argument, Column) else f"col{place}"
        named += [Literal(name), argument]
    return Call("named_struct", tuple(named))


def _with_unit(name: str) -> Callable[..., Expression]:
    return lambda *arguments: Call(_FIRST_UNITS[name], arguments)


MACROS: Final[dict[tuple[str, int], Callable[..., Expression]]] = {
    ("nvl2", 3): lambda value, known, null: Case(((Not(IsNull(value)), known),), null),
    ("nullif", 2): _nullif,
    ("if", 3): lambda condition, yes, no: Case(((condition, yes),), no),
    ("iff", 3): lambda condition, yes, no: Case(((condition, yes),), no),
    ("isnull", 1): IsNull,
    ("isnotnull", 1): lambda value: Not(IsNull(value)),
    ("equal_null", 2): lambda left, right: Comparison("<=>", left, right),
    ("mod", 2): lambda left, right: Arithmetic("%", left, right),
    ("like", 2): Like,
    ("like", 3): lambda value, pattern, escape: Like(value, pattern, _text(escape)),
    ("ilike", 2): lambda value, pattern: Like(value, pattern, ignore_case=True),
    ("date_part", 2): _date_part,
    ("datepart", 2): _date_part,
    ("dateadd", 3): _with_unit("dateadd"),
    ("date_add", 3): _with_unit("dateadd"),
    ("datediff", 3): _with_unit("datediff"),
    ("date_diff", 3): _with_unit("datediff"),
    ("locate", 2): lambda part, text: Call("instr", (text, part)),
    ("position", 2): lambda part, text: Call("instr", (text, part)),
    ("locate", 3): _locate,
    ("position", 3): _locate,
    ("log", 1): lambda value: Call("ln", (value,)),
}


def _text(node: Expression) -> str:
    if isinstance(node, Literal) and isinstance(node.value, str):
        return node.value
    raise InvalidInputError("the escape character of LIKE must be a constant text")


def add_interval(moment: Expression, interval: Call, sign: int, *, is_date: bool) -> Expression:
    """A moment moved by an interval constant.

    A date moved by days or months stays a date; by less than a day it becomes a timestamp.
    """
    amounts = _amounts(interval, sign)
    if amounts.keys() & _MONTHS.keys() and amounts.keys() - _MONTHS.keys():
        raise InvalidInputError("an INTERVAL has either years and months, or days and less")
    if is_date and not amounts.keys() & {*_MICROS, "HOUR", "MINUTE"}:
        return _moved_date(moment, amounts)
    found = moment
    for unit, amount in amounts.items():
        whole, name = amount, unit
        if unit in _MICROS:
            whole, name = amount * _MICROS[unit], "MICROSECOND"
        found = Call("timestampadd", (Literal(name), Literal(int(whole)), found))
    return found


def _moved_date(date: Expression, amounts: dict[str, int | Decimal]) -> Expression:
    if amounts.keys() <= _MONTHS.keys():
        months = sum(amount * _MONTHS[unit] for unit, amount in amounts.items())
        return Call("add_months", (date, Literal(int(months))))
    days = amounts.get("WEEK", 0) * 7 + amounts.get("DAY", 0)
    return Call("date_add", (date, Literal(int(days))))


def _amounts(interval: Call, sign: int) -> dict[str, int | Decimal]:
    amounts: dict[str, int | Decimal] = {}
    for amount, unit in zip(interval.arguments[::2], interval.arguments[1::2], strict=True):
        if not isinstance(amount, Literal) or not isinstance(unit, Literal):
            raise InvalidInputError("an INTERVAL must be a constant; use timestampadd otherwise")
        amounts[unit.value] = amounts.get(unit.value, 0) + amount.value * sign
    return amounts
