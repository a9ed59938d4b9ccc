"""The table of functions: the types of their arguments and results.

Owns argument types and result types. Aliases, and functions that abbreviate another expression, are
in `macros`; the kernels compute the values. A function in neither table is an error, so that a
constraint with it is refused and never skipped (ledger E-04).
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import signatures as rules
from deltalog.expressions.signatures import Function, fixed, function, many, same
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Collection


def find_function(name: str, count: int, others: Collection[str] = ()) -> Function:
    """The function with a name and a number of arguments.

    Args:
        name: in lower case.
        count: number of arguments.
        others: further existing names, for the hint.

    Raises:
        InvalidInputError: there is no such function, or it takes another number of arguments.
    """
    function = FUNCTIONS.get(name)
    if function is None:
        close = difflib.get_close_matches(name, [*FUNCTIONS, *others], n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InvalidInputError(f"deltalog has no SQL function {name!r}{hint}")
    if count < function.least or (function.most is not None and count > function.most):
        wanted = str(function.least)
        if function.most is None:
            wanted += " or more"
        elif function.most > function.least:
            wanted += f" to {function.most}"
        raise InvalidInputError(f"{name} takes {wanted} argument(s), found {count}")
    return function


_DATE_PART: Final = fixed(DATE, result=INTEGER)
_TIME_PART: Final = function(rules.datetime_types(INTEGER), 1, 1)
_STRING_TEST: Final = fixed(STRING, STRING, result=BOOLEAN)
_TRIM: Final = fixed(STRING, STRING, result=STRING, optional=1)
_PAD: Final = fixed(STRING, INTEGER, STRING, result=STRING, optional=1)

# The arguments in `constants` must be literals: their kernels take them as Python values.
FUNCTIONS: Final[dict[str, Function]] = {
    "coalesce": same(1, with_strings=True),
    "greatest": same(2, with_strings=False),
    "least": same(2, with_strings=False),
    "isnan": function(rules.nan_types, 1, 1),
    "nanvl": function(rules.nan_types, 2, 2),
    **dict.fromkeys(
        ("abs", "negative", "positive"), function(rules.unary_number(lambda own: own), 1, 1)
    ),
    "ceil": function(rules.ceiling_types, 1, 1),
    "floor": function(rules.ceiling_types, 1, 1),
    "round": function(rules.round_types, 1, 2, constants=(1,)),
    **dict.fromkeys(("&", "|", "^"), function(rules.bit_types, 2, 2)),
    "~": function(rules.bit_types, 1, 1),
    "pmod": function(rules.pmod_types, 2, 2),
    "div": function(rules.division_types, 2, 2),
    "pow": fixed(DOUBLE, DOUBLE, result=DOUBLE),
    **dict.fromkeys(("sqrt", "sign", "exp", "ln", "log2", "log10"), fixed(DOUBLE, result=DOUBLE)),
    "log": fixed(DOUBLE, DOUBLE, result=DOUBLE),
    **dict.fromkeys(("upper", "lower", "reverse", "initcap"), fixed(STRING, result=STRING)),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim"), _TRIM),
    "ascii": fixed(STRING, result=INTEGER),
    "chr": fixed(LONG, result=STRING),
    **dict.fromkeys(("bit_length", "length", "octet_length"), rules.text_or_binary(result=INTEGER)),
    "substring": rules.text_or_binary(INTEGER, INTEGER, result=None, optional=1),
    **dict.fromkeys(("left", "right", "repeat"), fixed(STRING, INTEGER, result=STRING)),
    "concat": function(rules.concat_types, 0, None),
    "concat_ws": many(STRING, STRING, least=1),
    "replace": fixed(STRING, STRING, STRING, result=STRING, optional=1),
    **dict.fromkeys(("startswith", "endswith", "contains", "rlike"), _STRING_TEST),
    "regexp_extract": fixed(STRING, STRING, INTEGER, result=STRING, optional=1, constants=(1, 2)),
    "regexp_replace": fixed(STRING, STRING, STRING, result=STRING, constants=(1, 2)),
    "instr": fixed(STRING, STRING, result=INTEGER),
    "find_from": fixed(STRING, STRING, INTEGER, result=INTEGER),
    "split": fixed(STRING, STRING, INTEGER, result=ArrayType(STRING), optional=1, constants=(1, 2)),
    "split_part": fixed(STRING, STRING, INTEGER, result=STRING),
    **dict.fromkeys(("lpad", "rpad"), _PAD),
    **dict.fromkeys(("year", "quarter", "month", "dayofmonth", "dayofyear"), _DATE_PART),
    **dict.fromkeys(("dayofweek", "weekday", "weekofyear", "yearofweek"), _DATE_PART),
    **dict.fromkeys(("hour", "minute", "second"), _TIME_PART),
    "last_day": fixed(DATE, result=DATE),
    "date_trunc": fixed(STRING, TIMESTAMP, result=TIMESTAMP),
    "trunc": fixed(DATE, STRING, result=DATE),
    "date_add": function(rules.days_types, 2, 2),
    "date_sub": function(rules.days_types, 2, 2),
    "add_months": fixed(DATE, INTEGER, result=DATE),
    "datediff": fixed(DATE, DATE, result=INTEGER),
    "timestampadd": function(rules.add_types, 3, 3, constants=(0,)),
    "timestampdiff": function(rules.difference_types, 3, 3, constants=(0,)),
    "next_day": fixed(DATE, STRING, result=DATE),
    "months_between": function(rules.months_types, 2, 3, constants=(2,)),
    "from_utc_timestamp": fixed(TIMESTAMP, STRING, result=TIMESTAMP, constants=(1,)),
    "to_utc_timestamp": fixed(TIMESTAMP, STRING, result=TIMESTAMP, constants=(1,)),
    "make_timestamp": fixed(
        INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, decimal_type(16, 6), result=TIMESTAMP
    ),
    "make_date": fixed(INTEGER, INTEGER, INTEGER, result=DATE),
    "to_date": function(rules.parse_types(DATE), 2, 2, constants=(1,)),
    "to_timestamp": function(rules.parse_types(TIMESTAMP), 2, 2, constants=(1,)),
    "date_format": fixed(TIMESTAMP, STRING, result=STRING, constants=(1,)),
    "unix_timestamp": function(rules.parse_types(LONG), 1, 2, constants=(1,)),
    "from_unixtime": fixed(LONG, STRING, result=STRING, optional=1, constants=(1,)),
    **dict.fromkeys(("unix_seconds", "unix_millis", "unix_micros"), fixed(TIMESTAMP, result=LONG)),
    "unix_date": fixed(DATE, result=INTEGER),
    "date_from_unix_date": fixed(INTEGER, result=DATE),
    "timestamp_millis": fixed(LONG, result=TIMESTAMP),
    "timestamp_micros": fixed(LONG, result=TIMESTAMP),
    "size": function(rules.size_types, 1, 1),
    "array_contains": function(rules.contains_types, 2, 2),
    **dict.fromkeys(("[]", "element_at", "try_element_at"), function(rules.item_types, 2, 2)),
    "get": function(rules.get_types, 2, 2),
    "array": function(rules.array_types, 0, None),
    "map": function(rules.map_types, 0, None),
    "named_struct": function(rules.struct_types, 2, None),
    "map_keys": function(rules.entries_types(keys=True), 1, 1),
    "map_values": function(rules.entries_types(keys=False), 1, 1),
    "crc32": fixed(BINARY, result=LONG),
    "md5": fixed(BINARY, result=STRING),
    "sha1": fixed(BINARY, result=STRING),
    "sha2": fixed(BINARY, INTEGER, result=STRING),
}
