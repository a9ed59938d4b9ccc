"""The table of functions: which arguments each takes and what it gives.

Owns argument types and result types. Other names for the same thing, and functions that only
abbreviate another expression, are in `macros`; how values are computed is in the kernels. A
function that is in neither table is an error wherever it is used.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DATETIMES,
    DOUBLE,
    FLOAT,
    FRACTIONALS,
    INTEGER,
    INTEGRALS,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    arithmetic_type,
    common_type,
    decimal,
    decimal_of,
    is_decimal,
    is_numeric,
)
from deltalog.expressions.nodes import Expression, Literal
from deltalog.schema.types import ArrayType, DataType, Field, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    Typed = tuple[Expression, DataType]
    Types = tuple[Sequence[DataType], DataType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function.

    Args:
        types: from the arguments to the types they are cast to, and the result's type.
        least: the fewest arguments.
        most: the most arguments, or None for any number.
    """

    types: Callable[[Sequence[Typed]], Types]
    least: int
    most: int | None


def find_function(name: str, count: int, others: Collection[str] = ()) -> Function:
    """The function of that name, if it takes so many arguments.

    Args:
        name: in lower case.
        count: how many arguments stand there.
        others: further names that exist, for the hint.

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


def _fixed(*parameters: DataType, result: DataType, optional: int = 0) -> Function:
    def types(arguments: Sequence[Typed]) -> Types:
        return parameters[: len(arguments)], result

    return Function(types=types, least=len(parameters) - optional, most=len(parameters))


def _many(parameter: DataType, result: DataType, least: int = 0) -> Function:
    def types(arguments: Sequence[Typed]) -> Types:
        return [parameter] * len(arguments), result

    return Function(types=types, least=least, most=None)


def _same(least: int, *, texts_too: bool) -> Function:
    """Any number of values of one type; `texts_too`: a text may become the others' type."""

    def types(arguments: Sequence[Typed]) -> Types:
        common = _common([data_type for _, data_type in arguments], texts_too=texts_too)
        return [common] * len(arguments), common

    return Function(types=types, least=least, most=None)


def _common(types: Sequence[DataType], *, texts_too: bool) -> DataType:
    found: DataType | None = VOID
    for data_type in types:
        is_mixed = STRING in (found, data_type) and not {found, data_type} <= {STRING, VOID}
        found = (
            None
            if found is None or (is_mixed and not texts_too)
            else (common_type(found, data_type))
        )
    if found is None:
        names = ", ".join(dict.fromkeys(map(str, types)))
        raise InvalidInputError(f"the values have no common type: {names}")
    return found


def _unary_number(result: Callable[[DataType], DataType]) -> Callable[[Sequence[Typed]], Types]:
    """A number stays what it is; a text counts as double."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = _number_type(arguments[0][1])
        return [own, *([INTEGER] * (len(arguments) - 1))], result(own)

    return types


def _number_type(data_type: DataType) -> DataType:
    if data_type in {STRING, VOID}:
        return DOUBLE
    if not is_numeric(data_type):
        raise InvalidInputError(f"a number is expected, found {data_type}")
    return data_type


def _ceiling(own: DataType) -> DataType:
    if not is_decimal(own):
        return LONG
    exact = decimal_of(own)
    whole = exact.precision - exact.scale
    return exact if exact.scale == 0 else decimal(min(whole + 1, 38), 0)


def _ceiling_types(arguments: Sequence[Typed]) -> Types:
    own = _number_type(arguments[0][1])
    taken = own if is_decimal(own) else LONG if own in INTEGRALS else DOUBLE
    return [taken], _ceiling(own)


def _round_types(arguments: Sequence[Typed]) -> Types:
    own = _number_type(arguments[0][1])
    digits = 0 if len(arguments) == 1 else _constant_integer(arguments[1][0])
    if not is_decimal(own):
        return [own, INTEGER][: len(arguments)], own
    exact = decimal_of(own)
    whole = exact.precision - exact.scale + 1
    if digits < 0:
        return [own, INTEGER][: len(arguments)], decimal(min(max(whole, 1 - digits), 38), 0)
    scale = min(exact.scale, digits)
    return [own, INTEGER][: len(arguments)], decimal(min(whole + scale, 38), scale)


def _constant_integer(node: Expression) -> int:
    if isinstance(node, Literal) and isinstance(node.value, int):
        return node.value
    raise InvalidInputError("round needs a constant whole number of digits")


def _pmod_types(arguments: Sequence[Typed]) -> Types:
    left, right = (_number_type(data_type) for _, data_type in arguments)
    common = common_type(left, right) or DOUBLE
    if is_decimal(common):
        exact = decimal_of(left), decimal_of(right)
        return exact, arithmetic_type("%", *exact)
    return [common, common], common


def _division_types(arguments: Sequence[Typed]) -> Types:
    left, right = (_number_type(data_type) for _, data_type in arguments)
    if left in INTEGRALS and right in INTEGRALS:
        return [LONG, LONG], LONG
    if left in FRACTIONALS or right in FRACTIONALS:
        raise InvalidInputError("div takes whole numbers and decimals, found a float or double")
    return [decimal_of(left), decimal_of(right)], LONG


def _nan_types(arguments: Sequence[Typed]) -> Types:
    own = FLOAT if all(data_type == FLOAT for _, data_type in arguments) else DOUBLE
    return [own] * len(arguments), own if len(arguments) > 1 else BOOLEAN


def _text_or_binary(*more: DataType, result: DataType | None, optional: int = 0) -> Function:
    """A first argument that is a text or a binary, and stays that."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = BINARY if arguments[0][1] == BINARY else STRING
        return [own, *more][: len(arguments)], result or own

    return Function(types=types, least=1 + len(more) - optional, most=1 + len(more))


def _concat_types(arguments: Sequence[Typed]) -> Types:
    found = [data_type for _, data_type in arguments]
    if any(isinstance(data_type, ArrayType) for data_type in found):
        raise InvalidInputError("concat of arrays is not supported")
    own = BINARY if found and all(data_type == BINARY for data_type in found) else STRING
    return [own] * len(found), own


def _moment_types(result: DataType | None) -> Callable[[Sequence[Typed]], Types]:
    """One moment; without zone it stays so."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = _moment(arguments[0][1])
        return [own], result or own

    return types


def _moment(data_type: DataType) -> DataType:
    return TIMESTAMP_NTZ if data_type == TIMESTAMP_NTZ else TIMESTAMP


def _days_types(arguments: Sequence[Typed]) -> Types:
    given = arguments[1][1]
    if given not in {BYTE, SHORT, INTEGER, STRING, VOID}:
        raise InvalidInputError(f"a number of days is of type integer, found {given}: cast it")
    return [DATE, INTEGER], DATE


def _unix_types(arguments: Sequence[Typed]) -> Types:
    given = arguments[0][1]
    own = given if given in {*DATETIMES, STRING} else STRING
    return [own, STRING][: len(arguments)], LONG


def _parse_types(result: DataType) -> Callable[[Sequence[Typed]], Types]:
    def types(arguments: Sequence[Typed]) -> Types:
        given = arguments[0][1]
        own = given if given in DATETIMES else STRING
        return [own, STRING], result

    return types


def _add_types(arguments: Sequence[Typed]) -> Types:
    own = _moment(arguments[2][1])
    return [STRING, LONG, own], own


def _difference_types(arguments: Sequence[Typed]) -> Types:
    is_naive = all(data_type == TIMESTAMP_NTZ for _, data_type in arguments[1:])
    own = TIMESTAMP_NTZ if is_naive else TIMESTAMP
    return [STRING, own, own], LONG


def _size_types(arguments: Sequence[Typed]) -> Types:
    own = arguments[0][1]
    if not isinstance(own, ArrayType | MapType) and own != VOID:
        raise InvalidInputError(f"size takes an array or a map, found {own}")
    return [own], INTEGER


def _contains_types(arguments: Sequence[Typed]) -> Types:
    own, wanted = arguments[0][1], arguments[1][1]
    if not isinstance(own, ArrayType) or wanted == VOID:
        raise InvalidInputError(f"array_contains takes an array and a value, found {own}, {wanted}")
    common = _common([own.element_type, wanted], texts_too=False)
    return [ArrayType(common, own.contains_null), common], BOOLEAN


def _item_types(arguments: Sequence[Typed]) -> Types:
    own, key = arguments[0][1], arguments[1][1]
    match own:
        case ArrayType():
            if key not in INTEGRALS and key != VOID:
                raise InvalidInputError(f"an array's index is a whole number, found {key}")
            return [own, INTEGER], own.element_type
        case MapType():
            return [own, own.key_type], own.value_type
        case StructType():
            return [own, STRING], _struct_field(own, arguments[1][0]).type
        case _:
            raise InvalidInputError(f"only arrays, maps and structs have parts, found {own}")


def _struct_field(struct: StructType, name: Expression) -> Field:
    wanted = name.value if isinstance(name, Literal) else None
    for field in struct:
        if isinstance(wanted, str) and field.name.lower() == wanted.lower():
            return field
    raise InvalidInputError(f"there is no field {wanted!r} in {struct}")


def _array_types(arguments: Sequence[Typed]) -> Types:
    found = [data_type for _, data_type in arguments]
    common = _common(found, texts_too=True)
    return [common] * len(found), ArrayType(common, VOID in found)


def _map_types(arguments: Sequence[Typed]) -> Types:
    found = [data_type for _, data_type in arguments]
    if len(found) % 2:
        raise InvalidInputError("map takes keys and values by turns, found an odd number")
    key, value = _common(found[::2], texts_too=True), _common(found[1::2], texts_too=True)
    return [key, value] * (len(found) // 2), MapType(key, value, VOID in found[1::2])


def _struct_types(arguments: Sequence[Typed]) -> Types:
    names = [node.value if isinstance(node, Literal) else None for node, _ in arguments[::2]]
    if len(arguments) % 2 or not all(isinstance(name, str) for name in names):
        raise InvalidInputError("named_struct takes constant names and values by turns")
    found = [data_type for _, data_type in arguments]
    fields = [Field(str(name), own) for name, own in zip(names, found[1::2], strict=True)]
    return found, StructType(fields)


def _entries_types(keys: bool) -> Callable[[Sequence[Typed]], Types]:  # noqa: FBT001  # private
    def types(arguments: Sequence[Typed]) -> Types:
        own = arguments[0][1]
        if not isinstance(own, MapType):
            raise InvalidInputError(f"a map is expected, found {own}")
        if keys:
            return [own], ArrayType(own.key_type, contains_null=False)
        return [own], ArrayType(own.value_type, own.value_contains_null)

    return types


def _function(types: Callable[[Sequence[Typed]], Types], least: int, most: int | None) -> Function:
    return Function(types=types, least=least, most=most)


_DATE_PART: Final = _fixed(DATE, result=INTEGER)
_TIME_PART: Final = _function(_moment_types(INTEGER), 1, 1)
_TEXT: Final = _fixed(STRING, result=STRING)
_TEXT_TEST: Final = _fixed(STRING, STRING, result=BOOLEAN)
_TRIM: Final = _fixed(STRING, STRING, result=STRING, optional=1)
_PAD: Final = _fixed(STRING, INTEGER, STRING, result=STRING, optional=1)
_UNIX: Final = _fixed(TIMESTAMP, result=LONG)

FUNCTIONS: Final[dict[str, Function]] = {
    "coalesce": _same(1, texts_too=True),
    "greatest": _same(2, texts_too=False),
    "least": _same(2, texts_too=False),
    "isnan": _function(_nan_types, 1, 1),
    "nanvl": _function(_nan_types, 2, 2),
    "abs": _function(_unary_number(lambda own: own), 1, 1),
    "negative": _function(_unary_number(lambda own: own), 1, 1),
    "positive": _function(_unary_number(lambda own: own), 1, 1),
    "ceil": _function(_ceiling_types, 1, 1),
    "floor": _function(_ceiling_types, 1, 1),
    "round": _function(_round_types, 1, 2),
    "pmod": _function(_pmod_types, 2, 2),
    "div": _function(_division_types, 2, 2),
    "pow": _fixed(DOUBLE, DOUBLE, result=DOUBLE),
    "sqrt": _fixed(DOUBLE, result=DOUBLE),
    "sign": _fixed(DOUBLE, result=DOUBLE),
    "upper": _TEXT,
    "lower": _TEXT,
    "reverse": _TEXT,
    "trim": _TRIM,
    "ltrim": _TRIM,
    "rtrim": _TRIM,
    "btrim": _TRIM,
    "length": _text_or_binary(result=INTEGER),
    "octet_length": _text_or_binary(result=INTEGER),
    "substring": _text_or_binary(INTEGER, INTEGER, result=None, optional=1),
    "left": _fixed(STRING, INTEGER, result=STRING),
    "right": _fixed(STRING, INTEGER, result=STRING),
    "repeat": _fixed(STRING, INTEGER, result=STRING),
    "concat": _function(_concat_types, 0, None),
    "concat_ws": _many(STRING, STRING, least=1),
    "replace": _fixed(STRING, STRING, STRING, result=STRING, optional=1),
    "startswith": _TEXT_TEST,
    "endswith": _TEXT_TEST,
    "contains": _TEXT_TEST,
    "rlike": _TEXT_TEST,
    "instr": _fixed(STRING, STRING, result=INTEGER),
    "split": _fixed(STRING, STRING, INTEGER, result=ArrayType(STRING), optional=1),
    "split_part": _fixed(STRING, STRING, INTEGER, result=STRING),
    "lpad": _PAD,
    "rpad": _PAD,
    "year": _DATE_PART,
    "quarter": _DATE_PART,
    "month": _DATE_PART,
    "dayofmonth": _DATE_PART,
    "dayofyear": _DATE_PART,
    "dayofweek": _DATE_PART,
    "weekday": _DATE_PART,
    "weekofyear": _DATE_PART,
    "hour": _TIME_PART,
    "minute": _TIME_PART,
    "second": _TIME_PART,
    "last_day": _fixed(DATE, result=DATE),
    "date_trunc": _fixed(STRING, TIMESTAMP, result=TIMESTAMP),
    "trunc": _fixed(DATE, STRING, result=DATE),
    "date_add": _function(_days_types, 2, 2),
    "date_sub": _function(_days_types, 2, 2),
    "add_months": _fixed(DATE, INTEGER, result=DATE),
    "datediff": _fixed(DATE, DATE, result=INTEGER),
    "timestampadd": _function(_add_types, 3, 3),
    "timestampdiff": _function(_difference_types, 3, 3),
    "make_date": _fixed(INTEGER, INTEGER, INTEGER, result=DATE),
    "to_date": _function(_parse_types(DATE), 2, 2),
    "to_timestamp": _function(_parse_types(TIMESTAMP), 2, 2),
    "date_format": _fixed(TIMESTAMP, STRING, result=STRING),
    "unix_timestamp": _function(_unix_types, 1, 2),
    "from_unixtime": _fixed(LONG, STRING, result=STRING, optional=1),
    "unix_seconds": _UNIX,
    "unix_millis": _UNIX,
    "unix_micros": _UNIX,
    "unix_date": _fixed(DATE, result=INTEGER),
    "date_from_unix_date": _fixed(INTEGER, result=DATE),
    "timestamp_millis": _fixed(LONG, result=TIMESTAMP),
    "timestamp_micros": _fixed(LONG, result=TIMESTAMP),
    "size": _function(_size_types, 1, 1),
    "array_contains": _function(_contains_types, 2, 2),
    "[]": _function(_item_types, 2, 2),
    "element_at": _function(_item_types, 2, 2),
    "array": _function(_array_types, 0, None),
    "map": _function(_map_types, 0, None),
    "named_struct": _function(_struct_types, 2, None),
    "map_keys": _function(_entries_types(keys=True), 1, 1),
    "map_values": _function(_entries_types(keys=False), 1, 1),
}
