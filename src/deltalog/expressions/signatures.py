"""Parameter types and result types of functions, derived from the types of the arguments.

Contains the typing rules that functions share. `functions` assigns the rules to functions.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import (
    FRACTIONALS,
    INTEGRALS,
    arithmetic_type,
    common_type,
    decimal_of,
    decimal_of_constant,
    is_decimal,
    is_numeric,
)
from deltalog.expressions.implicit import arithmetic_of
from deltalog.expressions.nodes import Arithmetic, Cast, Expression, Literal
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
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
    from collections.abc import Callable, Mapping, Sequence

    Typed = tuple[Expression, DataType]
    Types = tuple[Sequence[DataType], DataType]


# The results of Spark's `DecimalType.forType` for types that are not exact numbers.
_DECIMALS: Final[Mapping[DataType, DataType]] = {
    FLOAT: decimal_type(14, 7),
    DOUBLE: decimal_type(30, 15),
    STRING: decimal_type(38, 18),
    VOID: decimal_type(38, 18),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The types and the arity of one function.

    Args:
        types: maps the types of the arguments to the types they are cast to, and to the result
            type.
        least: the minimum number of arguments.
        most: the maximum number of arguments, or None for any number.
        constants: the positions of arguments that must be constants.
        lambdas: maps the types of the arguments (None for a lambda) to the parameters of the
            lambdas, by argument position. For `types`, the type of a lambda is the type of its
            body.
    """

    types: Callable[[Sequence[Typed]], Types]
    least: int
    most: int | None
    constants: tuple[int, ...] = ()
    lambdas: Callable[[Sequence[DataType | None]], dict[int, Parameters]] | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """The types of a lambda's parameters; the parameters after the first `least` are optional."""

    types: tuple[DataType, ...]
    least: int


def fixed(
    *parameters: DataType,
    result: DataType,
    optional: int = 0,
    constants: tuple[int, ...] = (),
) -> Function:
    """Return a function whose parameters and result have fixed types."""

    def types(arguments: Sequence[Typed]) -> Types:
        return parameters[: len(arguments)], result

    least = len(parameters) - optional
    return Function(types=types, least=least, most=len(parameters), constants=constants)


def many(parameter: DataType, result: DataType, least: int = 0) -> Function:
    """Return a function that accepts any number of arguments of one fixed type."""

    def types(arguments: Sequence[Typed]) -> Types:
        return [parameter] * len(arguments), result

    return Function(types=types, least=least, most=None)


def same(least: int, *, with_strings: bool) -> Function:
    """Return a function that accepts any number of arguments and casts them to their common type.

    Args:
        least: the minimum number of arguments.
        with_strings: whether strings may be cast to the type of the other arguments.
    """

    def types(arguments: Sequence[Typed]) -> Types:
        common = common_of([data_type for _, data_type in arguments], with_strings=with_strings)
        return [common] * len(arguments), common

    return Function(types=types, least=least, most=None)


def common_of(types: Sequence[DataType], *, with_strings: bool) -> DataType:
    """Return the common type of values.

    Raises:
        InvalidInputError: the values have no common type.
    """
    found: DataType | None = VOID
    for data_type in types:
        is_mixed = STRING in (found, data_type) and not {found, data_type} <= {STRING, VOID}
        is_refused = is_mixed and not with_strings
        found = None if found is None or is_refused else common_type(found, data_type)
    if found is None:
        names = ", ".join(dict.fromkeys(map(str, types)))
        raise InvalidInputError(f"the values have no common type: {names}")
    return found


def unary_number(result: Callable[[DataType], DataType]) -> Callable[[Sequence[Typed]], Types]:
    """Return a rule for functions of one number, which is not cast; a string is cast to double."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = number_type(arguments[0][1])
        return [own, *([INTEGER] * (len(arguments) - 1))], result(own)

    return types


def number_type(data_type: DataType) -> DataType:
    """Return a numeric type unchanged, and double for a string.

    Raises:
        InvalidInputError: the type is not numeric.
    """
    if data_type in {STRING, VOID}:
        return DOUBLE
    if not is_numeric(data_type):
        raise InvalidInputError(f"a number is expected, found {data_type}")
    return data_type


def _ceiling(own: DataType) -> DataType:
    if not is_decimal(own):
        return LONG
    exact = decimal_of(own)
    # Rounding up may add a digit: ceil(9.9) is 10.
    whole = exact.precision - exact.scale + 1
    return exact if exact.scale == 0 else decimal_type(min(whole, 38), 0)


def ceiling_types(arguments: Sequence[Typed]) -> Types:
    """Return a decimal without fraction for a decimal, and a long for any other number.

    With a number of digits, the argument is cast to decimal, and the result is a decimal.
    """
    if len(arguments) == 2:
        exact = _decimal_for(arguments[0][1])
        digits = arguments[1][0]
        if not isinstance(digits, Literal) or not isinstance(digits.value, int):
            raise InvalidInputError("ceil and floor need a constant integer as number of digits")
        return [exact, INTEGER], round_result(exact, digits.value)
    own = number_type(arguments[0][1])
    taken = own if is_decimal(own) else LONG if own in INTEGRALS else DOUBLE
    return [taken], _ceiling(own)


def round_types(arguments: Sequence[Typed]) -> Types:
    """For a decimal, return the requested scale and one more digit; otherwise, the same type.

    The additional digit before the decimal point is for a carry: round(9.9) is 10.
    """
    own = number_type(arguments[0][1])
    taken = [own, INTEGER][: len(arguments)]
    digits = 0 if len(arguments) == 1 else _constant_integer(arguments[1][0])
    return taken, round_result(own, digits or 0)


def round_result(own: DataType, digits: int) -> DataType:
    """Return the type of a number after rounding to a number of digits."""
    if not is_decimal(own):
        return own
    exact = decimal_of(own)
    whole = exact.precision - exact.scale + 1
    if digits < 0:
        return decimal_type(min(max(whole, 1 - digits), 38), 0)
    scale = min(exact.scale, digits)
    return decimal_type(min(whole + scale, 38), scale)


def _decimal_for(own: DataType) -> DataType:
    """Return the decimal type to which a number is cast for functions of decimals."""
    found = _DECIMALS.get(own)
    return decimal_of(own) if found is None else found


def _constant_integer(node: Expression) -> int | None:
    if isinstance(node, Literal) and not isinstance(node.value, bool):
        if node.value is None:
            return None
        # As in Spark, any other constant is cast to an integer, so its fraction is omitted.
        with contextlib.suppress(TypeError, ValueError):
            return int(node.value)
    raise InvalidInputError("round needs a constant integer as its number of digits")


def pmod_types(arguments: Sequence[Typed]) -> Types:
    """Cast two numbers to their common type; for decimals, return the result type of `%`."""
    given = [data_type for _, data_type in arguments]
    left, right = (
        other if own == VOID and other != VOID else number_type(own)
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
    """Return the decimal type of an operand; a constant's precision is its number of digits."""
    return decimal_of_constant(node.value, own) if isinstance(node, Literal) else decimal_of(own)


def bit_types(arguments: Sequence[Typed]) -> Types:
    """Expect integers, which are cast to their common type."""
    common = common_of(
        [INTEGER if own == VOID else own for _, own in arguments], with_strings=False
    )
    if common not in INTEGRALS:
        hint = ""
        if len(arguments) == 1:  # ~
            hints: dict[DataType, str] = {
                BOOLEAN: "; write NOT",
                STRING: "; a regular expression is name RLIKE 'a'",
            }
            hint = hints.get(common, "")
        raise InvalidInputError(f"bitwise operators need integers, found {common}{hint}")
    return [common] * len(arguments), common


def division_types(arguments: Sequence[Typed]) -> Types:
    """Expect two integers or decimals; the result is a long."""
    left, right = (
        LONG if data_type == VOID else number_type(data_type) for _, data_type in arguments
    )
    if left in INTEGRALS and right in INTEGRALS:
        return [LONG, LONG], LONG
    if left in FRACTIONALS or right in FRACTIONALS:
        raise InvalidInputError("div needs integers or decimals, found a float or double")
    return [decimal_of(left), decimal_of(right)], LONG


def nan_types(arguments: Sequence[Typed]) -> Types:
    """Cast all arguments to double, except floats."""
    own = FLOAT if {data_type for _, data_type in arguments} - {VOID} == {FLOAT} else DOUBLE
    return [own] * len(arguments), own if len(arguments) > 1 else BOOLEAN


def text_or_binary(*more: DataType, result: DataType | None, optional: int = 0) -> Function:
    """Return a function of a string or binary value; by default the result has its type."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = BINARY if arguments[0][1] == BINARY else STRING
        return [own, *more][: len(arguments)], result or own

    return Function(types=types, least=1 + len(more) - optional, most=1 + len(more))


def concat_types(arguments: Sequence[Typed]) -> Types:
    """Expect binary values; if any argument is not binary, all are cast to strings."""
    found = [data_type for _, data_type in arguments]
    if any(isinstance(data_type, ArrayType) for data_type in found):
        common = common_of(found, with_strings=True)
        if not isinstance(common, ArrayType):
            raise InvalidInputError("concat cannot mix arrays with other types")
        return [common] * len(found), common
    own = BINARY if found and all(data_type == BINARY for data_type in found) else STRING
    return [own] * len(found), own


def reverse_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array or a string."""
    own = arguments[0][1]
    taken = own if isinstance(own, ArrayType) else STRING
    return [taken], taken


def tried_types(operator: str) -> Callable[[Sequence[Typed]], Types]:
    """Expect two numbers; the types are those of the operator."""

    def types(arguments: Sequence[Typed]) -> Types:
        left, right = arguments
        is_constant = isinstance(left[0], Literal), isinstance(right[0], Literal)
        found, result = arithmetic_of(operator, left, right, is_constant)
        if not isinstance(found, Arithmetic):
            raise InvalidInputError("try_add, try_subtract, … need numbers, not dates")
        sides = zip((found.left, found.right), arguments, strict=True)
        return [_cast_to(node, own) for node, (_, own) in sides], result

    return types


def _cast_to(node: Expression, own: DataType) -> DataType:
    """Return the target type of an operand's cast, or the operand's own type without a cast."""
    match node:
        case Cast():
            return node.to
        case Literal() if node.type is not None:
            return node.type
        case _:
            return own


def get_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array and an index."""
    if not isinstance(arguments[0][1], ArrayType):
        raise InvalidInputError(f"get needs an array, found {arguments[0][1]}")
    return item_types(arguments)


def size_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array or a map."""
    own = arguments[0][1]
    if not isinstance(own, ArrayType | MapType) and own != VOID:
        raise InvalidInputError(f"size needs an array or a map, found {own}")
    return [own], INTEGER


def contains_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array and a value of its element type; strings are not cast to other types."""
    own, wanted = arguments[0][1], arguments[1][1]
    if not isinstance(own, ArrayType) or wanted == VOID:
        raise InvalidInputError(f"array_contains needs an array and a value, found {own}, {wanted}")
    common = common_of([own.element_type, wanted], with_strings=False)
    return [ArrayType(common, own.contains_null), common], BOOLEAN


def item_types(arguments: Sequence[Typed]) -> Types:
    """Expect an array and an index, a map and a key, or a struct and a field name."""
    own, key = arguments[0][1], arguments[1][1]
    match own:
        case ArrayType():
            if key not in INTEGRALS and key != VOID:
                raise InvalidInputError(f"an array's index must be an integer, found {key}")
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
        if isinstance(wanted, str) and name_key(field.name) == name_key(wanted):
            return field
    raise InvalidInputError(f"there is no field {wanted!r} in {struct}")


def array_types(arguments: Sequence[Typed]) -> Types:
    """Expect elements of an array, which are cast to their common type."""
    found = [data_type for _, data_type in arguments]
    common = common_of(found, with_strings=True)
    return [common] * len(found), ArrayType(common, VOID in found)


def map_types(arguments: Sequence[Typed]) -> Types:
    """Expect alternating keys and values."""
    found = [data_type for _, data_type in arguments]
    if not found:
        raise InvalidInputError(
            "the types of map() are unknown; write "
            "map_from_arrays(CAST(array() AS ARRAY<STRING>), CAST(array() AS ARRAY<INT>))"
        )
    if len(found) % 2:
        raise InvalidInputError("map needs alternating keys and values, found an odd number")
    key, value = (common_of(found[start::2], with_strings=True) for start in (0, 1))
    return [key, value] * (len(found) // 2), MapType(key, value, VOID in found[1::2])


def struct_types(arguments: Sequence[Typed]) -> Types:
    """Expect alternating constant names and values."""
    names = [node.value if isinstance(node, Literal) else None for node, _ in arguments[::2]]
    if len(arguments) % 2 or not all(isinstance(name, str) for name in names):
        raise InvalidInputError("named_struct needs alternating constant names and values")
    found = [data_type for _, data_type in arguments]
    fields = [Field(str(name), own) for name, own in zip(names, found[1::2], strict=True)]
    return found, StructType(fields)


def entries_types(*, keys: bool) -> Callable[[Sequence[Typed]], Types]:
    """Return a rule for functions of a map; the result is an array of its keys or values."""

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
    lambdas: Callable[[Sequence[DataType | None]], dict[int, Parameters]] | None = None,
) -> Function:
    """Return a function with the given typing rule; see `Function` for the arguments."""
    return Function(types=types, least=least, most=most, constants=constants, lambdas=lambdas)
