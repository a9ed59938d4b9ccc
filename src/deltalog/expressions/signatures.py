"""How the types of a function's arguments decide what it takes and gives.

Owns the rules that functions share; `functions` says which function follows which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import (
    DATETIMES,
    FRACTIONALS,
    INTEGRALS,
    arithmetic_type,
    common_type,
    decimal_of,
    decimal_of_constant,
    is_decimal,
    is_numeric,
)
from deltalog.expressions.nodes import Expression, Literal
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
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
    PrimitiveType,
    StructType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Typed = tuple[Expression, DataType]
    Types = tuple[Sequence[DataType], DataType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function.

    Args:
        types: from the arguments to the types they are cast to, and the result's type.
        least: the fewest arguments.
        most: the most arguments, or None for any number.
        constants: the places of arguments that must be constants.
    """

    types: Callable[[Sequence[Typed]], Types]
    least: int
    most: int | None
    constants: tuple[int, ...] = ()


def fixed(
    *parameters: DataType,
    result: DataType,
    optional: int = 0,
    constants: tuple[int, ...] = (),
) -> Function:
    """Parameters and result of one type each."""

    def types(arguments: Sequence[Typed]) -> Types:
        return parameters[: len(arguments)], result

    least = len(parameters) - optional
    return Function(types=types, least=least, most=len(parameters), constants=constants)


def many(parameter: DataType, result: DataType, least: int = 0) -> Function:
    """Any number of arguments of one type."""

    def types(arguments: Sequence[Typed]) -> Types:
        return [parameter] * len(arguments), result

    return Function(types=types, least=least, most=None)


def same(least: int, *, texts_too: bool) -> Function:
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


def unary_number(result: Callable[[DataType], DataType]) -> Callable[[Sequence[Typed]], Types]:
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
    return exact if exact.scale == 0 else decimal_type(min(whole + 1, 38), 0)


def ceiling_types(arguments: Sequence[Typed]) -> Types:
    """A decimal loses its fraction, any other number becomes a long."""
    own = _number_type(arguments[0][1])
    taken = own if is_decimal(own) else LONG if own in INTEGRALS else DOUBLE
    return [taken], _ceiling(own)


def round_types(arguments: Sequence[Typed]) -> Types:
    """A decimal keeps the digits asked for and may need one more in front; others stay."""
    own = _number_type(arguments[0][1])
    digits = 0 if len(arguments) == 1 else _constant_integer(arguments[1][0])
    if not is_decimal(own):
        return [own, INTEGER][: len(arguments)], own
    exact = decimal_of(own)
    whole = exact.precision - exact.scale + 1
    if digits < 0:
        return [own, INTEGER][: len(arguments)], decimal_type(min(max(whole, 1 - digits), 38), 0)
    scale = min(exact.scale, digits)
    return [own, INTEGER][: len(arguments)], decimal_type(min(whole + scale, 38), scale)


def _constant_integer(node: Expression) -> int:
    if isinstance(node, Literal) and isinstance(node.value, int):
        return node.value
    raise InvalidInputError("round needs a constant whole number of digits")


def pmod_types(arguments: Sequence[Typed]) -> Types:
    """The common number type, or what `%` of two decimals gives."""
    given = [data_type for _, data_type in arguments]
    left, right = (
        other if own == VOID and other != VOID else _number_type(own)
        for own, other in zip(given, reversed(given), strict=True)
    )
    common = common_type(left, right) or DOUBLE
    if is_decimal(common):
        first, second = (
            _exact_type(node, own) for (node, _), own in zip(arguments, (left, right), strict=True)
        )
        return [first, second], arithmetic_type("%", first, second)
    return [common, common], common


def _exact_type(node: Expression, own: DataType) -> PrimitiveType:
    """The decimal of a side; a whole constant counts with the digits that it has."""
    return decimal_of_constant(node.value, own) if isinstance(node, Literal) else decimal_of(own)


def bit_types(arguments: Sequence[Typed]) -> Types:
    """Whole numbers of one type."""
    common = _common([INTEGER if own == VOID else own for _, own in arguments], texts_too=False)
    if common not in INTEGRALS:
        raise InvalidInputError(f"bits are those of whole numbers, found {common}")
    return [common] * len(arguments), common


def division_types(arguments: Sequence[Typed]) -> Types:
    """Whole numbers or decimals, to a long."""
    left, right = (
        LONG if data_type == VOID else _number_type(data_type) for _, data_type in arguments
    )
    if left in INTEGRALS and right in INTEGRALS:
        return [LONG, LONG], LONG
    if left in FRACTIONALS or right in FRACTIONALS:
        raise InvalidInputError("div takes whole numbers and decimals, found a float or double")
    return [decimal_of(left), decimal_of(right)], LONG


def nan_types(arguments: Sequence[Typed]) -> Types:
    """Floats stay floats, everything else is a double."""
    own = FLOAT if {data_type for _, data_type in arguments} - {VOID} == {FLOAT} else DOUBLE
    return [own] * len(arguments), own if len(arguments) > 1 else BOOLEAN


def text_or_binary(*more: DataType, result: DataType | None, optional: int = 0) -> Function:
    """A first argument that is a text or a binary, and stays that."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = BINARY if arguments[0][1] == BINARY else STRING
        return [own, *more][: len(arguments)], result or own

    return Function(types=types, least=1 + len(more) - optional, most=1 + len(more))


def concat_types(arguments: Sequence[Typed]) -> Types:
    """Binaries if all are, texts otherwise."""
    found = [data_type for _, data_type in arguments]
    if any(isinstance(data_type, ArrayType) for data_type in found):
        raise InvalidInputError("concat of arrays is not supported")
    own = BINARY if found and all(data_type == BINARY for data_type in found) else STRING
    return [own] * len(found), own


def moment_types(result: DataType | None) -> Callable[[Sequence[Typed]], Types]:
    """One moment; without zone it stays so."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = _moment(arguments[0][1])
        return [own], result or own

    return types


def _moment(data_type: DataType) -> DataType:
    return TIMESTAMP_NTZ if data_type == TIMESTAMP_NTZ else TIMESTAMP


def days_types(arguments: Sequence[Typed]) -> Types:
    """A date and a number of days no longer than an integer."""
    given = arguments[1][1]
    if given not in {BYTE, SHORT, INTEGER, STRING, VOID}:
        raise InvalidInputError(f"a number of days is of type integer, found {given}: cast it")
    return [DATE, INTEGER], DATE


def unix_types(arguments: Sequence[Typed]) -> Types:
    """A moment or a text, and a pattern for the text."""
    given = arguments[0][1]
    own = given if given in {*DATETIMES, STRING} else STRING
    return [own, STRING][: len(arguments)], LONG


def parse_types(result: DataType) -> Callable[[Sequence[Typed]], Types]:
    """A moment as it is, or a text; and a pattern."""

    def types(arguments: Sequence[Typed]) -> Types:
        given = arguments[0][1]
        own = given if given in DATETIMES else STRING
        return [own, STRING], result

    return types


def add_types(arguments: Sequence[Typed]) -> Types:
    """A unit, a number and a moment, which keeps its kind."""
    own = _moment(arguments[2][1])
    return [STRING, LONG, own], own


def difference_types(arguments: Sequence[Typed]) -> Types:
    """A unit and two moments of one kind."""
    is_naive = all(data_type == TIMESTAMP_NTZ for _, data_type in arguments[1:])
    own = TIMESTAMP_NTZ if is_naive else TIMESTAMP
    return [STRING, own, own], LONG


def months_types(arguments: Sequence[Typed]) -> Types:
    """Two moments, and whether to round."""
    return [TIMESTAMP, TIMESTAMP, BOOLEAN][: len(arguments)], DOUBLE


def get_types(arguments: Sequence[Typed]) -> Types:
    """An array and an index."""
    if not isinstance(arguments[0][1], ArrayType):
        raise InvalidInputError(f"get takes an array, found {arguments[0][1]}")
    return item_types(arguments)


def size_types(arguments: Sequence[Typed]) -> Types:
    """An array or a map."""
    own = arguments[0][1]
    if not isinstance(own, ArrayType | MapType) and own != VOID:
        raise InvalidInputError(f"size takes an array or a map, found {own}")
    return [own], INTEGER


def contains_types(arguments: Sequence[Typed]) -> Types:
    """An array and a value of its elements' type; texts are not converted."""
    own, wanted = arguments[0][1], arguments[1][1]
    if not isinstance(own, ArrayType) or wanted == VOID:
        raise InvalidInputError(f"array_contains takes an array and a value, found {own}, {wanted}")
    common = _common([own.element_type, wanted], texts_too=False)
    return [ArrayType(common, own.contains_null), common], BOOLEAN


def item_types(arguments: Sequence[Typed]) -> Types:
    """An array and an index, a map and a key, or a struct and a name."""
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


def array_types(arguments: Sequence[Typed]) -> Types:
    """Values of one type."""
    found = [data_type for _, data_type in arguments]
    common = _common(found, texts_too=True)
    return [common] * len(found), ArrayType(common, VOID in found)


def map_types(arguments: Sequence[Typed]) -> Types:
    """Keys and values by turns."""
    found = [data_type for _, data_type in arguments]
    if len(found) % 2:
        raise InvalidInputError("map takes keys and values by turns, found an odd number")
    key, value = _common(found[::2], texts_too=True), _common(found[1::2], texts_too=True)
    return [key, value] * (len(found) // 2), MapType(key, value, VOID in found[1::2])


def struct_types(arguments: Sequence[Typed]) -> Types:
    """Constant names and values by turns."""
    names = [node.value if isinstance(node, Literal) else None for node, _ in arguments[::2]]
    if len(arguments) % 2 or not all(isinstance(name, str) for name in names):
        raise InvalidInputError("named_struct takes constant names and values by turns")
    found = [data_type for _, data_type in arguments]
    fields = [Field(str(name), own) for name, own in zip(names, found[1::2], strict=True)]
    return found, StructType(fields)


def entries_types(*, keys: bool) -> Callable[[Sequence[Typed]], Types]:
    """The keys or the values of a map, as an array."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = arguments[0][1]
        if not isinstance(own, MapType):
            raise InvalidInputError(f"a map is expected, found {own}")
        if keys:
            return [own], ArrayType(own.key_type, contains_null=False)
        return [own], ArrayType(own.value_type, own.value_contains_null)

    return types


def function(
    types: Callable[[Sequence[Typed]], Types],
    least: int,
    most: int | None,
    *,
    constants: tuple[int, ...] = (),
) -> Function:
    """A function with a rule of its own; `constants` are the places that take constants only."""
    return Function(types=types, least=least, most=most, constants=constants)
