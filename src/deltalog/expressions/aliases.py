"""Functions that abbreviate another expression, and aliases of functions.

Contains the replacements that `analyze` makes before it resolves types: `nvl(a, b)` becomes
`coalesce(a, b)`, and `if(a, b, c)` becomes a CASE. Evaluators never see the replaced functions.
"""

from __future__ import annotations

import datetime as dt
import logging
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import nodes
from deltalog.expressions.coercion import FRACTIONALS, INTEGRALS
from deltalog.expressions.nodes import Call, Column, Expression, Literal
from deltalog.expressions.render import to_sql
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    STRING,
    TIMESTAMP,
    YEAR_TO_MONTH,
    collation_named,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _by_word(words: dict[str, str]) -> dict[str, str]:
    """Map each word to its key, given a mapping from keys to space-separated words."""
    return {word: name for name, spelled in words.items() for word in spelled.split()}


ALIASES: Final[dict[str, str]] = _by_word(
    {
        "coalesce": "nvl ifnull",
        "upper": "ucase",
        "lower": "lcase",
        "length": "len char_length character_length",
        "chr": "char",
        "sha1": "sha",
        "substring": "substr",
        "rlike": "regexp regexp_like",
        "ceil": "ceiling",
        "pow": "power",
        "sign": "signum",
        "dayofmonth": "day",
        "datediff": "date_diff",
        "date_add": "dateadd",
        "unix_timestamp": "to_unix_timestamp",
        "size": "cardinality array_size",
        "aggregate": "reduce",
        "format_string": "printf",
        "current_timestamp": "now",
        "current_date": "curdate",
    }
)
# The types whose names in SQL are also functions that cast to the type.
_CAST_TYPES: Final = (
    *INTEGRALS, *FRACTIONALS, decimal_type(10, 0), BOOLEAN, STRING, BINARY, DATE, TIMESTAMP,
)  # fmt: skip
CASTS: Final = {
    **{kind.primitive.sql_words[0].lower(): kind for kind in _CAST_TYPES},
    "to_date": DATE,
    "to_timestamp": TIMESTAMP,
    "timestamp_seconds": TIMESTAMP,
}
_PARTS: Final[dict[str, str]] = _by_word(
    {
        "year": "year years yr",
        "quarter": "quarter qtr",
        "month": "month months mon",
        "weekofyear": "week weeks w",
        "dayofmonth": "day days d",
        "yearofweek": "yearofweek",
        "dayofweek": "dow dayofweek",
        "dayofyear": "doy",
        "hour": "hour hours h",
        "minute": "minute minutes min m",
    }
)
_logger = logging.getLogger("deltalog.expressions")
_PLACES_OF_UNITS: Final = {"date_trunc": 0, "trunc": 1}
"""The functions that take a unit of time as a string, and the position of this argument."""
_COUNTS: Final = {"nvl": 2, "ifnull": 2}
"""The number of arguments of aliases, if it differs from the number of the function."""
_FIRST_UNITS: Final = {"dateadd": "timestampadd", "datediff": "timestampdiff"}
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MICROS: Final = {"SECOND": 1_000_000, "MILLISECOND": 1000, "MICROSECOND": 1}
_MICROS_OF: Final = {
    **_MICROS,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
_MIXED: Final = "an INTERVAL has either years and months, or days and shorter units"


def expand(name: str, arguments: Sequence[Expression]) -> Expression | None:
    """Return the expression that a call abbreviates, or None if the call abbreviates nothing.

    Args:
        name: the name of the function, in lower case.
        arguments: the arguments, not resolved yet.

    Raises:
        InvalidInputError: the arguments are in the wrong order, or their number is wrong.
    """
    _check_arguments(name, arguments)
    if name == "struct" and arguments:
        return _struct(arguments)
    if name == "decode" and len(arguments) > 2:
        return _decode(arguments)
    macro = MACROS.get((name, len(arguments)))
    if macro is not None:
        return macro(*arguments)
    if name in ALIASES:
        return Call(ALIASES[name], tuple(arguments))
    if name in CASTS and len(arguments) == 1:
        return nodes.Cast(arguments[0], CASTS[name])
    return None


def _check_arguments(name: str, arguments: Sequence[Expression]) -> None:
    count, place = _COUNTS.get(name), _PLACES_OF_UNITS.get(name)
    if count is not None and len(arguments) != count:
        raise InvalidInputError(f"{name} expects {count} argument(s), found {len(arguments)}")
    if place is None or len(arguments) != 2:
        return
    unit, moment = arguments[1 - place], arguments[place]
    asked = arguments[place]
    if isinstance(asked, Literal) and isinstance(asked.value, str):
        _warn_of_unit(name, asked.value)
    is_unit = isinstance(unit, Literal) and str(unit.value).lower() in {*_PARTS, "second"}
    if is_unit and not isinstance(moment, Literal):
        right = Call(name, (unit, moment) if place == 0 else (moment, unit))
        raise InvalidInputError(
            f"cannot compute {to_sql(Call(name, tuple(arguments)))}: the arguments are in the "
            f"wrong order; write {to_sql(right)}"
        )


@cache
def _warn_of_unit(name: str, unit: str) -> None:
    """Log once that a constant unit is unknown, because the result is NULL, as in Spark."""
    from deltalog.expressions.datetimes import CLOCK_UNITS, DATE_UNITS  # noqa: PLC0415  # slow kernels

    known = CLOCK_UNITS if name == "date_trunc" else DATE_UNITS
    if unit.lower() not in known:
        close = get_close_matches(unit.lower(), known, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        _logger.warning("%s is always NULL: %r is not a unit of time%s", name, unit, hint)


def _nullif(value: Expression, other: Expression) -> Expression:
    return nodes.Case(((nodes.Comparison("=", value, other), Literal(None)),), value)


def _date_part(part: Expression, source: Expression) -> Expression:
    word = part.value.lower() if isinstance(part, Literal) and isinstance(part.value, str) else ""
    if word in {"second", "seconds", "s", "sec"}:
        # In Spark, EXTRACT(SECOND …) returns a decimal(8,6), which includes the fraction of the
        # second. The function second(…) returns an integer.
        seconds = nodes.Cast(nodes.Cast(source, TIMESTAMP), decimal_type(20, 6))
        return nodes.Cast(Call("pmod", (seconds, Literal(Decimal(60)))), decimal_type(8, 6))
    if word in {"dow_iso", "dayofweek_iso"}:
        return nodes.Arithmetic("+", Call("weekday", (source,)), Literal(1))
    if word not in _PARTS:
        raise InvalidInputError(f"deltalog does not support the part {to_sql(part)} of a date")
    return Call(_PARTS[word], (source,))


def _locate(part: Expression, text: Expression, start: Expression) -> Expression:
    # In Spark, locate with a NULL start returns 0, not NULL.
    found = Call("find_from", (part, text, start))
    return nodes.Case(((nodes.IsNull(start), Literal(0)),), found)


WITHOUT_NAME: Final = "deltalog_input_"
"""The beginning of the name of a column that stands for an expression without a name."""


def names_of_fields(values: Sequence[Expression]) -> list[str]:
    """Return the default field names of a struct's values."""
    return [
        value.path[-1]
        if isinstance(value, Column) and not value.path[-1].startswith(WITHOUT_NAME)
        else f"col{place}"
        for place, value in enumerate(values, 1)
    ]


def _struct(arguments: Sequence[Expression]) -> Expression:
    named: list[Expression] = []
    for name, argument in zip(names_of_fields(arguments), arguments, strict=True):
        named += [Literal(name), argument]
    return Call("named_struct", tuple(named))


def _when(arguments: Sequence[Expression]) -> Expression:
    pairs = len(arguments) // 2
    branches = zip(arguments[: 2 * pairs : 2], arguments[1 : 2 * pairs : 2], strict=True)
    return nodes.Case(tuple(branches), arguments[-1] if len(arguments) % 2 else None)


def _decode(arguments: Sequence[Expression]) -> Expression:
    # `decode` with more than two arguments compares its first argument with the search values,
    # where NULL equals NULL. With two arguments, it is `decode(bytes, charset)`.
    value, *rest = arguments
    conditions: list[Expression] = []
    for place, argument in enumerate(rest):
        is_sought = place % 2 == 0 and place + 1 < len(rest)
        conditions.append(nodes.Comparison("<=>", value, argument) if is_sought else argument)
    return _when(conditions)


def _with_unit(name: str) -> Callable[..., Expression]:
    def made(unit: Expression, second: Expression, third: Expression) -> Expression:
        is_unit = isinstance(third, Literal) and str(third.value).lower() in {*_PARTS, "second"}
        if is_unit:
            right = to_sql(Call(name, (third, second, unit)))
            raise InvalidInputError(f"{name} expects the unit first; write {right}")
        return Call(_FIRST_UNITS[name], (unit, second, third))

    return made


MACROS: Final[dict[tuple[str, int], Callable[..., Expression]]] = {
    ("nvl2", 3): lambda value, known, null: nodes.Case(
        ((nodes.Not(nodes.IsNull(value)), known),), null
    ),
    ("nullif", 2): _nullif,
    ("if", 3): lambda condition, yes, no: nodes.Case(((condition, yes),), no),
    ("iff", 3): lambda condition, yes, no: nodes.Case(((condition, yes),), no),
    ("isnull", 1): nodes.IsNull,
    ("isnotnull", 1): lambda value: nodes.Not(nodes.IsNull(value)),
    ("equal_null", 2): lambda left, right: nodes.Comparison("<=>", left, right),
    ("mod", 2): lambda left, right: nodes.Arithmetic("%", left, right),
    ("like", 2): nodes.Like,
    ("like", 3): lambda value, pattern, escape: nodes.Like(value, pattern, _text(escape)),
    ("collate", 2): lambda text, name: nodes.Collate(text, _collation(name)),
    ("ilike", 2): lambda value, pattern: nodes.Like(value, pattern, ignore_case=True),
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
    ("charindex", 2): lambda part, text: Call("instr", (text, part)),
    ("charindex", 3): _locate,
    ("space", 1): lambda count: Call("repeat", (Literal(" "), count)),
    ("log", 1): lambda value: Call("ln", (value,)),
}


def _text(node: Expression) -> str:
    if isinstance(node, Literal) and isinstance(node.value, str):
        return node.value
    raise InvalidInputError("the escape character of LIKE must be a constant string")


def _collation(node: Expression) -> str:
    if isinstance(node, Literal) and isinstance(node.value, str):
        return collation_named(node.value)
    raise InvalidInputError("the collation must be a constant string")


def add_interval(moment: Expression, interval: Call, sign: int, *, is_date: bool) -> Expression:
    """Return a date or timestamp plus an interval constant.

    A date plus days or months is a date; a date plus hours or shorter units is a timestamp.
    """
    amounts = _amounts(interval, sign)
    if amounts.keys() & _MONTHS.keys() and amounts.keys() - _MONTHS.keys():
        raise InvalidInputError(_MIXED)
    if is_date and not amounts.keys() & {*_MICROS, "HOUR", "MINUTE"}:
        return _moved_date(moment, amounts)
    if amounts.keys() <= _MONTHS.keys():
        # In one step: February 29 plus a year is February 28, but plus 14 months it is April 29.
        amounts = {"MONTH": _months_in(amounts)}
    found = moment
    for unit, amount in amounts.items():
        whole, name = amount, unit
        if unit in _MICROS:
            whole, name = amount * _MICROS[unit], "MICROSECOND"
        found = Call("timestampadd", (Literal(name), Literal(int(whole)), found))
    return found


def _moved_date(date: Expression, amounts: dict[str, int | Decimal]) -> Expression:
    if amounts.keys() <= _MONTHS.keys():
        return Call("add_months", (date, Literal(_months_in(amounts))))
    days = amounts.get("WEEK", 0) * 7 + amounts.get("DAY", 0)
    return Call("date_add", (date, Literal(int(days))))


def _months_in(amounts: dict[str, int | Decimal]) -> int:
    return int(sum(amount * _MONTHS[unit] for unit, amount in amounts.items()))


def interval_value(interval: Call) -> Literal:
    """Return the value of an interval constant of either months, or days and shorter units.

    Raises:
        InvalidInputError: the interval has both, or is out of range.
    """
    amounts = _amounts(interval, 1)
    if "QUARTER" in amounts:
        raise InvalidInputError(
            f"{to_sql(interval)} has quarters, which an interval does not support"
        )
    months = [amounts.pop(unit) * count for unit, count in _MONTHS.items() if unit in amounts]
    if months and amounts:
        raise InvalidInputError(_MIXED)
    if months:
        whole, bits, kind = int(sum(months)), 31, YEAR_TO_MONTH
    else:
        micros = sum(amount * _MICROS_OF[unit] for unit, amount in amounts.items())
        whole, bits, kind = int(micros), 63, DAY_TO_SECOND
    if not -(1 << bits) <= whole < 1 << bits:
        raise InvalidInputError(f"{to_sql(interval)} is out of range for an {kind}")
    value = whole if months else dt.timedelta(microseconds=whole)
    return Literal(value, kind)


def _amounts(interval: Call, sign: int) -> dict[str, int | Decimal]:
    amounts: dict[str, int | Decimal] = {}
    for amount, unit in zip(interval.arguments[::2], interval.arguments[1::2], strict=True):
        if not isinstance(amount, Literal) or not isinstance(unit, Literal):
            raise InvalidInputError("an INTERVAL must be a constant; use timestampadd otherwise")
        amounts[unit.value] = amounts.get(unit.value, 0) + amount.value * sign
    return amounts
