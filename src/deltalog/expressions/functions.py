"""The table of functions with their argument types and result types.

Aliases, and functions that abbreviate another expression, are in `aliases`. The values are computed
by the tables `KERNELS` (Arrow arrays), `ROWS` (Python values of one row) and `ROWS_WITH_NULLS` of
`strings`, `strings_by_row`, `numbers`, `datetimes`, … A function that is in none of these tables is
an error: a constraint that calls it is refused and never skipped (requirement E-04).
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import signatures as rules
from deltalog.expressions.coercion import DATETIMES, INTEGRALS, is_decimal, is_numeric
from deltalog.expressions.nodes import Column, Literal
from deltalog.expressions.other_dialects import instead_of
from deltalog.expressions.signatures import (
    Function,
    Parameters,
    common_of,
    fixed,
    function,
    many,
    number_type,
    same,
)
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from deltalog.expressions.signatures import Typed, Types


# --- Argument types of functions of arrays and maps, and of functions that accept lambdas


def array_of(data_type: DataType | None) -> ArrayType:
    """Return the type if it is an array type.

    Raises:
        InvalidInputError: the type is not an array.
    """
    if not isinstance(data_type, ArrayType):
        raise InvalidInputError(f"an array is expected, found {data_type}")
    return data_type


def map_of(data_type: DataType | None) -> MapType:
    """Return the type if it is a map type.

    Raises:
        InvalidInputError: the type is not a map.
    """
    if not isinstance(data_type, MapType):
        raise InvalidInputError(f"a map is expected, found {data_type}")
    return data_type


def _refuse_maps(data_type: DataType) -> None:
    """Refuse maps: Spark has no order and no equality of maps."""
    if isinstance(data_type, MapType):
        raise InvalidInputError("maps cannot be compared")
    if isinstance(data_type, ArrayType):
        _refuse_maps(data_type.element_type)
    if isinstance(data_type, StructType):
        for field in data_type:
            _refuse_maps(field.type)


def _compared(data_type: DataType | None) -> ArrayType:
    own = array_of(data_type)
    _refuse_maps(own.element_type)
    return own


def set_types(arguments: Sequence[Typed]) -> Types:
    """Expect arrays whose elements are compared; the result is an array of their common type."""
    found = [_compared(data_type) for _, data_type in arguments]
    element = _tightest([own.element_type for own in found])
    common = ArrayType(element, any(own.contains_null for own in found))
    return [common] * len(found), common


def _tightest(found: Sequence[DataType]) -> DataType:
    """Return the common type of elements; refuse decimal types that differ from it."""
    if any(is_decimal(own) for own in found) and len(set(found) - {VOID}) > 1:
        raise InvalidInputError(
            f"the types {' and '.join(map(str, found))} differ: cast one of them"
        )
    return common_of(found, with_strings=False)


def overlap_types(arguments: Sequence[Typed]) -> Types:
    """Expect two arrays of a common type; the result is a boolean."""
    return set_types(arguments)[0], BOOLEAN


def element_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array; the result has the type of its elements."""
    own = _compared(arguments[0][1])
    return [own], own.element_type


def sort_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array, and whether to sort in ascending order."""
    own = _compared(arguments[0][1])
    if len(arguments) > 1 and arguments[1][1] != BOOLEAN:
        raise InvalidInputError(f"the order must be a boolean, found {arguments[1][1]}")
    taken: list[DataType] = [own, BOOLEAN]
    return taken[: len(arguments)], own


def member_types(result: DataType | None) -> Callable[[Sequence[Typed]], Types]:
    """Expect an array and an element; the result is `result`, or the array's type if None."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = _compared(arguments[0][1])
        wanted = arguments[1][1]
        element = _tightest([own.element_type, wanted])
        array = ArrayType(element, own.contains_null)
        return [array, element], result or array

    return types


def flatten_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array of arrays."""
    own = array_of(arguments[0][1])
    inner = array_of(own.element_type)
    return [own], inner


def join_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array of strings, a delimiter and a replacement for NULL."""
    own = array_of(arguments[0][1])
    texts = ArrayType(STRING, own.contains_null)
    taken: list[DataType] = [texts, STRING, STRING]
    return taken[: len(arguments)], STRING


def slice_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array, a position and a length."""
    own = array_of(arguments[0][1])
    return [own, INTEGER, INTEGER], own


def repeat_types(arguments: Sequence[Typed]) -> Types:
    """Expect a value of any type and a number."""
    own, count = (data_type for _, data_type in arguments)
    if count not in {BYTE, SHORT, INTEGER, VOID}:
        raise InvalidInputError(f"the count must be of type integer, found {count}: cast it")
    return [own, INTEGER], ArrayType(own, contains_null=True)


def sequence_types(arguments: Sequence[Typed]) -> Types:
    """Expect two or three integers, or two dates or timestamps."""
    found = [data_type for _, data_type in arguments]
    common = common_of(found, with_strings=True)
    moments = {DATE, TIMESTAMP, TIMESTAMP_NTZ}
    if common not in {*INTEGRALS, *moments} or (common in moments and len(found) > 2):
        raise InvalidInputError(
            "a sequence needs integers, or dates or timestamps in steps of a day, found "
            + ", ".join(map(str, found))
        )
    return [common] * len(found), ArrayType(common, contains_null=False)


def zip_types(arguments: Sequence[Typed]) -> Types:
    """Expect arrays; the result is an array of structs whose fields have the arguments' names."""
    found = [array_of(data_type) for _, data_type in arguments]
    fields = [
        Field(_zipped_name(node, place), own.element_type)
        for place, ((node, _), own) in enumerate(zip(arguments, found, strict=True))
    ]
    return found, ArrayType(StructType(fields), contains_null=False)


def _zipped_name(node: object, place: int) -> str:
    if isinstance(node, Column):
        return node.path[-1]
    return str(place)


def map_from_arrays_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array of keys and an array of values."""
    keys, values = (array_of(data_type) for _, data_type in arguments)
    _refuse_maps(keys.element_type)
    result = MapType(keys.element_type, values.element_type, values.contains_null)
    return [keys, values], result


def map_entries_types(arguments: Sequence[Typed]) -> Types:
    """Expect a map; the result is an array of structs of a key and a value."""
    own = map_of(arguments[0][1])
    fields = [
        Field("key", own.key_type, nullable=False),
        Field("value", own.value_type, nullable=own.value_contains_null),
    ]
    return [own], ArrayType(StructType(fields), contains_null=False)


def map_from_entries_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array of structs of two fields."""
    own = array_of(arguments[0][1])
    entry = own.element_type
    if not isinstance(entry, StructType) or len(entry) != 2:
        raise InvalidInputError(f"structs of a key and a value are expected, found {entry}")
    key, value = entry
    _refuse_maps(key.type)
    return [own], MapType(key.type, value.type, value.nullable)


def map_concat_types(arguments: Sequence[Typed]) -> Types:
    """Expect maps of a common type."""
    common = common_of([data_type for _, data_type in arguments], with_strings=True)
    return [map_of(common)] * len(arguments), common


def _condition(arguments: Sequence[Typed], place: int) -> None:
    if arguments[place][1] not in {BOOLEAN, VOID}:
        raise InvalidInputError(f"the lambda must return a boolean, found {arguments[place][1]}")


def _own(arguments: Sequence[Typed]) -> list[DataType]:
    return [data_type for _, data_type in arguments]


def transform_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array and a lambda that returns the new elements."""
    own = _own(arguments)
    return own, ArrayType(own[1], contains_null=True)


def filter_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array or map and a condition; the result has the same type."""
    _condition(arguments, 1)
    return _own(arguments), arguments[0][1]


def search_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array and a condition; the result is a boolean."""
    _condition(arguments, 1)
    return _own(arguments), BOOLEAN


def aggregate_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array, a start value, and lambdas for the next value and the final result."""
    own = _own(arguments)
    if own[2] != own[1]:
        raise InvalidInputError(
            f"the lambda returns {own[2]}, but the start value is {own[1]}: cast it to {own[2]}"
        )
    return own, own[-1] if len(own) > 3 else own[1]


def zip_with_types(arguments: Sequence[Typed]) -> Types:
    """Expect two arrays and a lambda that returns the new elements."""
    own = _own(arguments)
    return own, ArrayType(own[2], contains_null=True)


def transform_values_types(arguments: Sequence[Typed]) -> Types:
    """Expect a map and a lambda that returns the new values."""
    own = _own(arguments)
    return own, MapType(map_of(own[0]).key_type, own[1], value_contains_null=True)


def transform_keys_types(arguments: Sequence[Typed]) -> Types:
    """Expect a map and a lambda that returns the new keys."""
    own = _own(arguments)
    held = map_of(own[0])
    _refuse_maps(own[1])
    return own, MapType(own[1], held.value_type, held.value_contains_null)


def map_zip_with_types(arguments: Sequence[Typed]) -> Types:
    """Expect two maps and a lambda that returns the new values."""
    own = _own(arguments)
    return own, MapType(map_of(own[0]).key_type, own[2], value_contains_null=True)


def element_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """Expect a lambda with one parameter, an element."""
    return {1: Parameters((array_of(types[0]).element_type,), 1)}


def indexed_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """Expect a lambda with an element and optionally its position as parameters."""
    return {1: Parameters((array_of(types[0]).element_type, INTEGER), 1)}


def merge_lambdas(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """Expect a lambda with the current value and an element, and a lambda with the final value."""
    element, zero = array_of(types[0]).element_type, types[1]
    if zero is None:
        raise InvalidInputError("argument 2 must be a value, not a lambda")
    found = {2: Parameters((zero, element), 2), 3: Parameters((zero,), 1)}
    return {place: parameters for place, parameters in found.items() if place < len(types)}


def entry_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """Expect a lambda with a key and its value as parameters."""
    own = map_of(types[0])
    return {1: Parameters((own.key_type, own.value_type), 2)}


def pair_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """Expect a lambda with two elements as parameters."""
    both = tuple(array_of(side).element_type for side in types[:2])
    return {2: Parameters(both, 2)}


def entries_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """Expect a lambda with a key and its values in both maps as parameters."""
    left, right = (map_of(side) for side in types[:2])
    if left.key_type != right.key_type:
        raise InvalidInputError(
            f"the keys have the types {left.key_type} and {right.key_type}: cast them"
        )
    return {2: Parameters((left.key_type, left.value_type, right.value_type), 3)}


def shift_types(arguments: Sequence[Typed]) -> Types:
    """Expect an integer or long, and a number of bits."""
    own = arguments[0][1]
    if own in {LONG, INTEGER}:
        return [own, INTEGER], own
    if own != STRING:
        number_type(own)
    return [INTEGER, INTEGER], INTEGER


def bit_count_types(arguments: Sequence[Typed]) -> Types:
    """Expect an integer or boolean."""
    own = arguments[0][1]
    if own not in {*INTEGRALS, BOOLEAN, VOID}:
        raise InvalidInputError(f"an integer or a boolean is expected, found {own}")
    return [own if own == BOOLEAN else LONG], INTEGER


def hex_types(arguments: Sequence[Typed]) -> Types:
    """Expect a long, binary value or string."""
    own = arguments[0][1]
    taken = LONG if is_numeric(own) else own if own == BINARY else STRING
    return [taken], STRING


def any_types(result: DataType) -> Callable[[Sequence[Typed]], Types]:
    """Expect values of any types except maps."""

    def types(arguments: Sequence[Typed]) -> Types:
        found = _own(arguments)
        for own in found:
            _refuse_maps(own)
        return found, result

    return types


def typeof_types(arguments: Sequence[Typed]) -> Types:
    """Expect a value of any type."""
    return _own(arguments), STRING


def choice_types(arguments: Sequence[Typed]) -> Types:
    """Expect a position and values, all strings or all binary."""
    found = _own(arguments[1:])
    own = BINARY if set(found) == {BINARY} else STRING
    return [INTEGER, *([own] * len(found))], own


def overlay_types(arguments: Sequence[Typed]) -> Types:
    """Expect two strings or binary values, a position and a length."""
    found = _own(arguments[:2])
    own = BINARY if set(found) <= {BINARY, VOID} else STRING
    if own == STRING and BINARY in found:
        raise InvalidInputError("both must be strings, or both binary")
    return [own, own, INTEGER, INTEGER][: len(arguments)], own


def format_types(arguments: Sequence[Typed]) -> Types:
    """Expect a constant pattern and values of any type."""
    found = _own(arguments)
    pattern = arguments[0][0]
    if not isinstance(pattern, Literal):
        raise InvalidInputError("the pattern must be a constant")
    return [STRING, *found[1:]], STRING


def format_number_types(arguments: Sequence[Typed]) -> Types:
    """Expect a number and a number of digits."""
    own = arguments[0][1]
    if own == STRING:
        raise InvalidInputError("a number is expected, found a string")
    return [number_type(own), INTEGER], STRING


# --- Spark functions that deltalog refuses, each with the reason


_XML: Final = "it needs an XPath 1.0 engine with Java's conversions, which deltalog does not have"
_INTERVAL: Final = "its value may mix months, days and shorter units, which cannot be compared"
_CSV: Final = "its options and tolerance depend on Spark's CSV parser (univocity)"
_SCHEMA: Final = "its types depend on Spark's inference rules for each option"
_TRIGONOMETRY: Final = (
    "Java's Math may differ in the last digit between machines and versions, so Spark's result "
    "cannot be reproduced"
)

REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("sin", "cos", "tan", "cot", "sec", "csc"), _TRIGONOMETRY),
    **dict.fromkeys(
        ("xpath", "xpath_boolean", "xpath_double", "xpath_number", "xpath_float", "xpath_int",
         "xpath_long", "xpath_short", "xpath_string"),
        _XML,
    ),
    "make_interval": _INTERVAL,
    "window": "it groups rows by time, and turns one row into several",
    "json_tuple": "it generates columns, so it cannot be used in an expression on one row",
    "sentences": "it splits words with Java's BreakIterator, which differs between versions",
    "parse_url": "java.net.URI decides which strings are URLs",
    "from_csv": _CSV,
    "to_csv": _CSV,
    "schema_of_csv": _SCHEMA,
    "schema_of_json": _SCHEMA,
    "from_json": "its tolerance and its options depend on Spark's JSON parser (Jackson)",
    "to_json": "its options and its number and time formats depend on Jackson",
    "get_json_object": "it prints the parts of a string as Jackson does",
    "time": "Delta tables have no type for a time of day",
    "gettimestamp": "Spark uses it inside of to_date and to_timestamp; it is not a SQL function",
}  # fmt: skip


# --- Types of functions of dates and timestamps


def datetime_types(result: DataType) -> Callable[[Sequence[Typed]], Types]:
    """Expect one timestamp; a `timestamp_ntz` is not converted to a time zone."""
    return lambda arguments: ([_timestamp_type(arguments[0][1])], result)


def _timestamp_type(data_type: DataType) -> DataType:
    return TIMESTAMP_NTZ if data_type == TIMESTAMP_NTZ else TIMESTAMP


def days_types(arguments: Sequence[Typed]) -> Types:
    """Expect a date and a number of days."""
    # Spark's date_add accepts a tinyint, smallint or int, but no bigint.
    given = arguments[1][1]
    if given not in {BYTE, SHORT, INTEGER, STRING, VOID}:
        raise InvalidInputError(
            f"the number of days must be of type integer, found {given}: cast it"
        )
    return [DATE, INTEGER], DATE


def parse_types(result: DataType) -> Callable[[Sequence[Typed]], Types]:
    """Expect a date, a timestamp or a string, and the pattern for parsing the string."""

    def types(arguments: Sequence[Typed]) -> Types:
        given = arguments[0][1]
        own = given if given in DATETIMES else STRING
        return [own, STRING][: len(arguments)], result

    return types


def add_types(arguments: Sequence[Typed]) -> Types:
    """Expect a unit, a number and a timestamp; the result has a zone if the timestamp has one."""
    own = _timestamp_type(arguments[2][1])
    return [STRING, LONG, own], own


def difference_types(arguments: Sequence[Typed]) -> Types:
    """Expect a unit and two timestamps, both with or both without zone."""
    is_naive = all(data_type == TIMESTAMP_NTZ for _, data_type in arguments[1:])
    own = TIMESTAMP_NTZ if is_naive else TIMESTAMP
    return [STRING, own, own], LONG


def months_types(arguments: Sequence[Typed]) -> Types:
    """Expect two timestamps, and whether to round the result."""
    return [TIMESTAMP, TIMESTAMP, BOOLEAN][: len(arguments)], DOUBLE


# --- The table of functions


# These functions do not compute with the values of their arguments, so they accept any type.
OF_PARTS: Final = frozenset({"[]", "coalesce", "named_struct"})
# These functions return no strings, and their results do not depend on collations.
OF_LENGTH: Final = frozenset({"length", "char_length", "octet_length", "bit_length"})
# These functions return an argument or some of its characters. The collation of the argument does
# not change the result.
OF_CHARACTERS: Final = frozenset(
    {
        "coalesce", "concat", "left", "lower", "lpad", "ltrim", "repeat", "reverse", "right",
        "rpad", "rtrim", "substring", "trim", "upper",
    }
)  # fmt: skip
# These functions use the locale of the collation, if the collation has a locale.
OF_LOCALES: Final = frozenset({"lower", "upper"})
# These functions compare characters only if they have a second argument.
TRIMS: Final = frozenset({"ltrim", "rtrim", "trim"})


_SIMILAR: Final = 0.75
"""The minimum similarity of a function that is suggested; less would be a guess."""
_AGGREGATES: Final = frozenset(
    {
        "any_value", "approx_count_distinct", "avg", "collect_list", "collect_set", "count",
        "count_if", "first", "last", "max", "max_by", "mean", "median", "min", "min_by", "mode",
        "stddev", "sum", "variance",
    }
)  # fmt: skip
_OF_QUERIES: Final = {
    **dict.fromkeys(
        ("rand", "random", "uuid", "gen_random_uuid", "newid"),
        "its result differs each time, so",
    ),
    **dict.fromkeys(
        ("dense_rank", "lag", "lead", "ntile", "rank", "row_number"),
        "it compares a row with others, so",
    ),
    **dict.fromkeys(("explode", "explode_outer", "posexplode"), "it returns several rows, so"),
}
"""Function → why it cannot be part of a condition or a new value."""


def find_function(name: str, count: int, others: Collection[str] = ()) -> Function:
    """Find the function with a given name and number of arguments.

    Args:
        name: the name in lower case.
        count: the number of arguments.
        others: names of other functions, for the suggestion in the error message.

    Raises:
        InvalidInputError: the function does not exist, or expects another number of arguments.
    """
    function = FUNCTIONS.get(name)
    if name in REFUSED:
        raise InvalidInputError(f"deltalog does not compute {name}: {REFUSED[name]}")
    if function is None:
        close = difflib.get_close_matches(name, [*FUNCTIONS, *others], 1, _SIMILAR)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        if name in {"rand", "random"} and count:
            raise InvalidInputError(f"{name} takes no seed: a query can use {name}()")
        if kind := _OF_QUERIES.get(name):
            raise InvalidInputError(f"{name}() cannot be used here: {kind} only a query can use it")
        if name in _AGGREGATES:
            hint = " for one row: it is an aggregate function, which only a query can use"
        elif instead := instead_of(name):
            hint = instead
        raise InvalidInputError(f"deltalog has no SQL function {name!r}{hint}")
    if count < function.least or (function.most is not None and count > function.most):
        wanted = str(function.least)
        if function.most is None:
            wanted += " or more"
        elif function.most > function.least:
            wanted += f" to {function.most}"
        raise InvalidInputError(f"{name} expects {wanted} argument(s), found {count}")
    return function


# The functions of Java's StrictMath, which Spark uses. `java_math` computes the same bits.
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
_TIME_PART: Final = function(datetime_types(INTEGER), 1, 1)
_STRING_TEST: Final = fixed(STRING, STRING, result=BOOLEAN)
_TRIM: Final = fixed(STRING, STRING, result=STRING, optional=1)
_SETS: Final = function(set_types, 2, 2)
_PAD: Final = fixed(STRING, INTEGER, STRING, result=STRING, optional=1)

# The arguments at the positions in `constants` must be literals, because the kernels need Python
# values.
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
    "date_add": function(days_types, 2, 2),
    "date_sub": function(days_types, 2, 2),
    "add_months": fixed(DATE, INTEGER, result=DATE),
    "datediff": fixed(DATE, DATE, result=INTEGER),
    "timestampadd": function(add_types, 3, 3, constants=(0,)),
    "timestampdiff": function(difference_types, 3, 3, constants=(0,)),
    "next_day": fixed(DATE, STRING, result=DATE),
    "months_between": function(months_types, 2, 3, constants=(2,)),
    "from_utc_timestamp": fixed(TIMESTAMP, STRING, result=TIMESTAMP, constants=(1,)),
    "to_utc_timestamp": fixed(TIMESTAMP, STRING, result=TIMESTAMP, constants=(1,)),
    "make_timestamp": fixed(
        INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, decimal_type(16, 6), result=TIMESTAMP
    ),
    "make_date": fixed(INTEGER, INTEGER, INTEGER, result=DATE),
    "to_date": function(parse_types(DATE), 2, 2, constants=(1,)),
    "to_timestamp": function(parse_types(TIMESTAMP), 2, 2, constants=(1,)),
    "date_format": fixed(TIMESTAMP, STRING, result=STRING, constants=(1,)),
    "unix_timestamp": function(parse_types(LONG), 1, 2, constants=(1,)),
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
    "typeof": function(typeof_types, 1, 1),
    "assert_true": fixed(BOOLEAN, STRING, result=VOID, optional=1),
    # --- Mathematics and bits
    **dict.fromkeys(("degrees", "radians", "rint", *EXACT), fixed(DOUBLE, result=DOUBLE)),
    **dict.fromkeys(("atan2", "hypot"), fixed(DOUBLE, DOUBLE, result=DOUBLE)),
    **dict.fromkeys(("e", "pi"), fixed(result=DOUBLE)),
    "factorial": fixed(INTEGER, result=LONG),
    "bround": function(rules.round_types, 1, 2, constants=(1,)),
    **dict.fromkeys(("shiftleft", "shiftright", "shiftrightunsigned"), function(shift_types, 2, 2)),
    "bit_count": function(bit_count_types, 1, 1),
    **{name: function(rules.tried_types(sign), 2, 2) for name, sign in TRIED.items()},
    # --- Numerals and bytes
    "bin": fixed(LONG, result=STRING),
    "hex": function(hex_types, 1, 1),
    "unhex": fixed(STRING, result=BINARY),
    "conv": fixed(STRING, INTEGER, INTEGER, result=STRING),
    "base64": fixed(BINARY, result=STRING),
    "unbase64": fixed(STRING, result=BINARY),
    "encode": fixed(STRING, STRING, result=BINARY),
    "decode": fixed(BINARY, STRING, result=STRING),
    "format_number": function(format_number_types, 2, 2),
    # --- Strings, computed row by row
    "elt": function(choice_types, 2, None),
    "find_in_set": fixed(STRING, STRING, result=INTEGER),
    "levenshtein": fixed(STRING, STRING, INTEGER, result=INTEGER, optional=1),
    "overlay": function(overlay_types, 3, 4),
    "soundex": fixed(STRING, result=STRING),
    "substring_index": fixed(STRING, STRING, INTEGER, result=STRING),
    "translate": fixed(STRING, STRING, STRING, result=STRING),
    "format_string": function(format_types, 1, None),
    "str_to_map": fixed(STRING, STRING, STRING, result=MapType(STRING, STRING), optional=2),
    # --- Arrays and maps
    **dict.fromkeys(("array_union", "array_intersect", "array_except"), _SETS),
    "array_distinct": function(set_types, 1, 1),
    "arrays_overlap": function(overlap_types, 2, 2),
    "array_join": function(join_types, 2, 3),
    "array_position": function(member_types(LONG), 2, 2),
    "array_remove": function(member_types(None), 2, 2),
    "array_sort": function(sort_types, 1, 1),
    "sort_array": function(sort_types, 1, 2),
    **dict.fromkeys(("array_min", "array_max"), function(element_types, 1, 1)),
    "array_repeat": function(repeat_types, 2, 2),
    "arrays_zip": function(zip_types, 0, None),
    "flatten": function(flatten_types, 1, 1),
    "slice": function(slice_types, 3, 3),
    "sequence": function(sequence_types, 2, 3),
    "map_from_arrays": function(map_from_arrays_types, 2, 2),
    "map_from_entries": function(map_from_entries_types, 1, 1),
    "map_entries": function(map_entries_types, 1, 1),
    "map_concat": function(map_concat_types, 1, None),
    # --- Lambdas
    "transform": function(transform_types, 2, 2, lambdas=indexed_lambda),
    "filter": function(filter_types, 2, 2, lambdas=indexed_lambda),
    **dict.fromkeys(("exists", "forall"), function(search_types, 2, 2, lambdas=element_lambda)),
    "aggregate": function(aggregate_types, 3, 4, lambdas=merge_lambdas),
    "zip_with": function(zip_with_types, 3, 3, lambdas=pair_lambda),
    "map_filter": function(filter_types, 2, 2, lambdas=entry_lambda),
    "transform_keys": function(transform_keys_types, 2, 2, lambdas=entry_lambda),
    "transform_values": function(transform_values_types, 2, 2, lambdas=entry_lambda),
    "map_zip_with": function(map_zip_with_types, 3, 3, lambdas=entries_lambda),
    # --- Hashes
    "hash": function(any_types(INTEGER), 1, None),
    "xxhash64": function(any_types(LONG), 1, None),
    "crc32": fixed(BINARY, result=LONG),
    "md5": fixed(BINARY, result=STRING),
    "sha1": fixed(BINARY, result=STRING),
    "sha2": fixed(BINARY, INTEGER, result=STRING),
}
