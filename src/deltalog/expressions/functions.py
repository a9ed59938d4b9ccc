"""The table of functions: the types of their arguments and results.

Owns argument types and result types. Aliases, and functions that abbreviate another expression, are
in `macros`; the kernels compute the values. A function in neither table is an error, so that a
constraint with it is refused and never skipped (ledger E-04).
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import moment_signatures as moments
from deltalog.expressions import nested_signatures as nested
from deltalog.expressions import signatures as rules
from deltalog.expressions.refusals import REFUSED
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
    VOID,
    ArrayType,
    MapType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Collection

# They ask of a value no more than whether it is there, or where it is: it may be of any type.
OF_PARTS: Final = frozenset({"[]", "coalesce", "named_struct"})
# What a text is compared by does not matter to them, and their result is no text.
OF_LENGTH: Final = frozenset({"length", "char_length", "octet_length", "bit_length"})
# They hand on texts, or make others of their characters, whatever compares them.
OF_CHARACTERS: Final = frozenset(
    {
        "coalesce", "concat", "left", "lower", "lpad", "ltrim", "repeat", "reverse", "right",
        "rpad", "rtrim", "substring", "trim", "upper",
    }
)  # fmt: skip
# Of a text whose collation has a locale, they are that locale's.
OF_LOCALES: Final = frozenset({"lower", "upper"})
# With a second argument they compare characters.
TRIMS: Final = frozenset({"ltrim", "rtrim", "trim"})


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
    if name in REFUSED:
        raise InvalidInputError(f"deltalog does not compute {name}: {REFUSED[name]}")
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


# Each as exact as Java's StrictMath, which Spark uses for them.
EXACT: Final = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cosh", "expm1",
                "log1p", "sinh", "tanh")  # fmt: skip
TRIED: Final = {
    "try_add": "+",
    "try_subtract": "-",
    "try_multiply": "*",
    "try_divide": "/",
    "try_mod": "%",
}
_DATE_PART: Final = fixed(DATE, result=INTEGER)
_TIME_PART: Final = function(moments.datetime_types(INTEGER), 1, 1)
_STRING_TEST: Final = fixed(STRING, STRING, result=BOOLEAN)
_TRIM: Final = fixed(STRING, STRING, result=STRING, optional=1)
_SETS: Final = function(nested.set_types, 2, 2)
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
    "ceil": function(rules.ceiling_types, 1, 2, constants=(1,)),
    "floor": function(rules.ceiling_types, 1, 2, constants=(1,)),
    "round": function(rules.round_types, 1, 2, constants=(1,)),
    **dict.fromkeys(("&", "|", "^"), function(rules.bit_types, 2, 2)),
    "~": function(rules.bit_types, 1, 1),
    "pmod": function(rules.pmod_types, 2, 2),
    "div": function(rules.division_types, 2, 2),
    "pow": fixed(DOUBLE, DOUBLE, result=DOUBLE),
    **dict.fromkeys(("sqrt", "sign", "exp", "ln", "log2", "log10"), fixed(DOUBLE, result=DOUBLE)),
    "log": fixed(DOUBLE, DOUBLE, result=DOUBLE),
    **dict.fromkeys(("upper", "lower", "initcap"), fixed(STRING, result=STRING)),
    "reverse": function(rules.reverse_types, 1, 1),
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
    "date_add": function(moments.days_types, 2, 2),
    "date_sub": function(moments.days_types, 2, 2),
    "add_months": fixed(DATE, INTEGER, result=DATE),
    "datediff": fixed(DATE, DATE, result=INTEGER),
    "timestampadd": function(moments.add_types, 3, 3, constants=(0,)),
    "timestampdiff": function(moments.difference_types, 3, 3, constants=(0,)),
    "next_day": fixed(DATE, STRING, result=DATE),
    "months_between": function(moments.months_types, 2, 3, constants=(2,)),
    "from_utc_timestamp": fixed(TIMESTAMP, STRING, result=TIMESTAMP, constants=(1,)),
    "to_utc_timestamp": fixed(TIMESTAMP, STRING, result=TIMESTAMP, constants=(1,)),
    "make_timestamp": fixed(
        INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, decimal_type(16, 6), result=TIMESTAMP
    ),
    "make_date": fixed(INTEGER, INTEGER, INTEGER, result=DATE),
    "to_date": function(moments.parse_types(DATE), 2, 2, constants=(1,)),
    "to_timestamp": function(moments.parse_types(TIMESTAMP), 2, 2, constants=(1,)),
    "date_format": fixed(TIMESTAMP, STRING, result=STRING, constants=(1,)),
    "unix_timestamp": function(moments.parse_types(LONG), 1, 2, constants=(1,)),
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
    "typeof": function(nested.typeof_types, 1, 1),
    "assert_true": fixed(BOOLEAN, STRING, result=VOID, optional=1),
    # Mathematics and bits.
    **dict.fromkeys(("degrees", "radians", "rint", *EXACT), fixed(DOUBLE, result=DOUBLE)),
    **dict.fromkeys(("atan2", "hypot"), fixed(DOUBLE, DOUBLE, result=DOUBLE)),
    **dict.fromkeys(("e", "pi"), fixed(result=DOUBLE)),
    "factorial": fixed(INTEGER, result=LONG),
    "bround": function(rules.round_types, 1, 2, constants=(1,)),
    **dict.fromkeys(
        ("shiftleft", "shiftright", "shiftrightunsigned"), function(nested.shift_types, 2, 2)
    ),
    "bit_count": function(nested.bit_count_types, 1, 1),
    **{name: function(rules.tried_types(sign), 2, 2) for name, sign in TRIED.items()},
    # Numerals and bytes.
    "bin": fixed(LONG, result=STRING),
    "hex": function(nested.hex_types, 1, 1),
    "unhex": fixed(STRING, result=BINARY),
    "conv": fixed(STRING, INTEGER, INTEGER, result=STRING),
    "base64": fixed(BINARY, result=STRING),
    "unbase64": fixed(STRING, result=BINARY),
    "encode": fixed(STRING, STRING, result=BINARY),
    "decode": fixed(BINARY, STRING, result=STRING),
    "format_number": function(nested.format_number_types, 2, 2),
    # Strings.
    "elt": function(nested.choice_types, 2, None),
    "find_in_set": fixed(STRING, STRING, result=INTEGER),
    "levenshtein": fixed(STRING, STRING, INTEGER, result=INTEGER, optional=1),
    "overlay": function(nested.overlay_types, 3, 4),
    "soundex": fixed(STRING, result=STRING),
    "substring_index": fixed(STRING, STRING, INTEGER, result=STRING),
    "translate": fixed(STRING, STRING, STRING, result=STRING),
    "format_string": function(nested.format_types, 1, None),
    "str_to_map": fixed(STRING, STRING, STRING, result=MapType(STRING, STRING), optional=2),
    # Arrays and maps.
    **dict.fromkeys(("array_union", "array_intersect", "array_except"), _SETS),
    "array_distinct": function(nested.set_types, 1, 1),
    "arrays_overlap": function(nested.overlap_types, 2, 2),
    "array_join": function(nested.join_types, 2, 3),
    "array_position": function(nested.member_types(LONG), 2, 2),
    "array_remove": function(nested.member_types(None), 2, 2),
    "array_sort": function(nested.sort_types, 1, 1),
    "sort_array": function(nested.sort_types, 1, 2),
    **dict.fromkeys(("array_min", "array_max"), function(nested.element_types, 1, 1)),
    "array_repeat": function(nested.repeat_types, 2, 2),
    "arrays_zip": function(nested.zip_types, 0, None),
    "flatten": function(nested.flatten_types, 1, 1),
    "slice": function(nested.slice_types, 3, 3),
    "sequence": function(nested.sequence_types, 2, 3),
    "map_from_arrays": function(nested.map_from_arrays_types, 2, 2),
    "map_from_entries": function(nested.map_from_entries_types, 1, 1),
    "map_entries": function(nested.map_entries_types, 1, 1),
    "map_concat": function(nested.map_concat_types, 1, None),
    # Lambdas.
    "transform": function(nested.transform_types, 2, 2, lambdas=nested.indexed_lambda),
    "filter": function(nested.filter_types, 2, 2, lambdas=nested.indexed_lambda),
    **dict.fromkeys(
        ("exists", "forall"), function(nested.search_types, 2, 2, lambdas=nested.element_lambda)
    ),
    "aggregate": function(nested.aggregate_types, 3, 4, lambdas=nested.merge_lambdas),
    "zip_with": function(nested.zip_with_types, 3, 3, lambdas=nested.pair_lambda),
    "map_filter": function(nested.filter_types, 2, 2, lambdas=nested.entry_lambda),
    "transform_keys": function(nested.transform_keys_types, 2, 2, lambdas=nested.entry_lambda),
    "transform_values": function(nested.transform_values_types, 2, 2, lambdas=nested.entry_lambda),
    "map_zip_with": function(nested.map_zip_with_types, 3, 3, lambdas=nested.entries_lambda),
    # Hashes.
    "hash": function(nested.any_types(INTEGER), 1, None),
    "xxhash64": function(nested.any_types(LONG), 1, None),
    "crc32": fixed(BINARY, result=LONG),
    "md5": fixed(BINARY, result=STRING),
    "sha1": fixed(BINARY, result=STRING),
    "sha2": fixed(BINARY, INTEGER, result=STRING),
}
