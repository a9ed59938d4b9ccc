"""Types of functions of arrays and maps, and of those that take lambdas.

Owns the rules; `functions` assigns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import INTEGRALS, is_decimal, is_numeric
from deltalog.expressions.nodes import Column, Literal
from deltalog.expressions.signatures import Parameters, common_of, number_type
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
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
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.expressions.signatures import Typed, Types


def array_of(data_type: DataType | None) -> ArrayType:
    """The type as an array.

    Raises:
        InvalidInputError: it is none.
    """
    if not isinstance(data_type, ArrayType):
        raise InvalidInputError(f"an array is expected, found {data_type}")
    return data_type


def map_of(data_type: DataType | None) -> MapType:
    """The type as a map.

    Raises:
        InvalidInputError: it is none.
    """
    if not isinstance(data_type, MapType):
        raise InvalidInputError(f"a map is expected, found {data_type}")
    return data_type


def _refuse_maps(data_type: DataType) -> None:
    """Spark has no order and no equality of maps."""
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
    """Arrays whose elements are compared; the result is an array of their common type."""
    found = [_compared(data_type) for _, data_type in arguments]
    element = _tightest([own.element_type for own in found])
    common = ArrayType(element, any(own.contains_null for own in found))
    return [common] * len(found), common


def _tightest(found: Sequence[DataType]) -> DataType:
    """The common type of elements, where no decimal has to change."""
    if any(is_decimal(own) for own in found) and len(set(found) - {VOID}) > 1:
        raise InvalidInputError(f"{' and '.join(map(str, found))} differ: cast one of them")
    return common_of(found, with_strings=False)


def overlap_types(arguments: Sequence[Typed]) -> Types:
    """Two arrays of a common type; the result is a boolean."""
    return set_types(arguments)[0], BOOLEAN


def element_types(arguments: Sequence[Typed]) -> Types:
    """An array, of which one element is the result."""
    own = _compared(arguments[0][1])
    return [own], own.element_type


def sort_types(arguments: Sequence[Typed]) -> Types:
    """An array and whether its order is ascending."""
    own = _compared(arguments[0][1])
    if len(arguments) > 1 and arguments[1][1] != BOOLEAN:
        raise InvalidInputError(f"the order is a boolean, found {arguments[1][1]}")
    taken: list[DataType] = [own, BOOLEAN]
    return taken[: len(arguments)], own


def member_types(result: DataType | None) -> Callable[[Sequence[Typed]], Types]:
    """An array and a value of its elements' type; without `result`, the array's type."""

    def types(arguments: Sequence[Typed]) -> Types:
        own = _compared(arguments[0][1])
        wanted = arguments[1][1]
        element = _tightest([own.element_type, wanted])
        array = ArrayType(element, own.contains_null)
        return [array, element], result or array

    return types


def flatten_types(arguments: Sequence[Typed]) -> Types:
    """An array of arrays."""
    own = array_of(arguments[0][1])
    inner = array_of(own.element_type)
    return [own], inner


def join_types(arguments: Sequence[Typed]) -> Types:
    """An array of strings, a delimiter and what stands for NULL."""
    own = array_of(arguments[0][1])
    texts = ArrayType(STRING, own.contains_null)
    taken: list[DataType] = [texts, STRING, STRING]
    return taken[: len(arguments)], STRING


def slice_types(arguments: Sequence[Typed]) -> Types:
    """An array, a position and a length."""
    own = array_of(arguments[0][1])
    return [own, INTEGER, INTEGER], own


def repeat_types(arguments: Sequence[Typed]) -> Types:
    """A value of any type and a number."""
    own, count = (data_type for _, data_type in arguments)
    if count not in {BYTE, SHORT, INTEGER, VOID}:
        raise InvalidInputError(f"a number is of type integer, found {count}: cast it")
    return [own, INTEGER], ArrayType(own, contains_null=True)


def sequence_types(arguments: Sequence[Typed]) -> Types:
    """Two or three integers, or two dates or timestamps."""
    found = [data_type for _, data_type in arguments]
    common = common_of(found, with_strings=True)
    moments = {DATE, TIMESTAMP, TIMESTAMP_NTZ}
    if common not in {*INTEGRALS, *moments} or (common in moments and len(found) > 2):
        raise InvalidInputError(
            "a sequence has integers, or dates or timestamps in steps of a day, found "
            + ", ".join(map(str, found))
        )
    return [common] * len(found), ArrayType(common, contains_null=False)


def zip_types(arguments: Sequence[Typed]) -> Types:
    """Arrays; the result is an array of structs, whose fields have the names of columns."""
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
    """An array of keys and one of values."""
    keys, values = (array_of(data_type) for _, data_type in arguments)
    _refuse_maps(keys.element_type)
    result = MapType(keys.element_type, values.element_type, values.contains_null)
    return [keys, values], result


def map_entries_types(arguments: Sequence[Typed]) -> Types:
    """A map; the result is an array of structs of a key and a value."""
    own = map_of(arguments[0][1])
    fields = [
        Field("key", own.key_type, nullable=False),
        Field("value", own.value_type, nullable=own.value_contains_null),
    ]
    return [own], ArrayType(StructType(fields), contains_null=False)


def map_from_entries_types(arguments: Sequence[Typed]) -> Types:
    """An array of structs of two fields."""
    own = array_of(arguments[0][1])
    entry = own.element_type
    if not isinstance(entry, StructType) or len(entry) != 2:
        raise InvalidInputError(f"structs of a key and a value are expected, found {entry}")
    key, value = entry
    _refuse_maps(key.type)
    return [own], MapType(key.type, value.type, value.nullable)


def map_concat_types(arguments: Sequence[Typed]) -> Types:
    """Maps of a common type."""
    common = common_of([data_type for _, data_type in arguments], with_strings=True)
    return [map_of(common)] * len(arguments), common


def _condition(arguments: Sequence[Typed], place: int) -> None:
    if arguments[place][1] not in {BOOLEAN, VOID}:
        raise InvalidInputError(f"the lambda is a condition, found {arguments[place][1]}")


def _own(arguments: Sequence[Typed]) -> list[DataType]:
    return [data_type for _, data_type in arguments]


def transform_types(arguments: Sequence[Typed]) -> Types:
    """An array and a lambda, which makes the elements."""
    own = _own(arguments)
    return own, ArrayType(own[1], contains_null=True)


def filter_types(arguments: Sequence[Typed]) -> Types:
    """An array or map and a condition; the result has the same type."""
    _condition(arguments, 1)
    return _own(arguments), arguments[0][1]


def search_types(arguments: Sequence[Typed]) -> Types:
    """An array and a condition; the result is a boolean."""
    _condition(arguments, 1)
    return _own(arguments), BOOLEAN


def aggregate_types(arguments: Sequence[Typed]) -> Types:
    """An array, a first value, a lambda that makes the next, and one of the last."""
    own = _own(arguments)
    if own[2] != own[1]:
        raise InvalidInputError(
            f"the lambda makes {own[2]} of {own[1]}: cast the first value to that type"
        )
    return own, own[-1] if len(own) > 3 else own[1]


def zip_with_types(arguments: Sequence[Typed]) -> Types:
    """Two arrays and a lambda, which makes the elements."""
    own = _own(arguments)
    return own, ArrayType(own[2], contains_null=True)


def transform_values_types(arguments: Sequence[Typed]) -> Types:
    """A map and a lambda, which makes the values."""
    own = _own(arguments)
    return own, MapType(map_of(own[0]).key_type, own[1], value_contains_null=True)


def transform_keys_types(arguments: Sequence[Typed]) -> Types:
    """A map and a lambda, which makes the keys."""
    own = _own(arguments)
    held = map_of(own[0])
    _refuse_maps(own[1])
    return own, MapType(own[1], held.value_type, held.value_contains_null)


def map_zip_with_types(arguments: Sequence[Typed]) -> Types:
    """Two maps and a lambda, which makes the values."""
    own = _own(arguments)
    return own, MapType(map_of(own[0]).key_type, own[2], value_contains_null=True)


def element_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """A lambda of an element."""
    return {1: Parameters((array_of(types[0]).element_type,), 1)}


def indexed_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """A lambda of an element and, if it likes, its position."""
    return {1: Parameters((array_of(types[0]).element_type, INTEGER), 1)}


def merge_lambdas(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """A lambda of the value so far and an element, and one of the last value."""
    element, zero = array_of(types[0]).element_type, types[1]
    if zero is None:
        raise InvalidInputError("argument 2 must be a value, not a lambda")
    found = {2: Parameters((zero, element), 2), 3: Parameters((zero,), 1)}
    return {place: parameters for place, parameters in found.items() if place < len(types)}


def entry_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """A lambda of a key and its value."""
    own = map_of(types[0])
    return {1: Parameters((own.key_type, own.value_type), 2)}


def pair_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """A lambda of two elements."""
    both = tuple(array_of(side).element_type for side in types[:2])
    return {2: Parameters(both, 2)}


def entries_lambda(types: Sequence[DataType | None]) -> dict[int, Parameters]:
    """A lambda of a key and its value in either map."""
    left, right = (map_of(side) for side in types[:2])
    if left.key_type != right.key_type:
        raise InvalidInputError(f"the keys are {left.key_type} and {right.key_type}: cast them")
    return {2: Parameters((left.key_type, left.value_type, right.value_type), 3)}


def shift_types(arguments: Sequence[Typed]) -> Types:
    """An integer or long, and a number of bits."""
    own = arguments[0][1]
    if own in {LONG, INTEGER}:
        return [own, INTEGER], own
    if own != STRING:
        number_type(own)
    return [INTEGER, INTEGER], INTEGER


def bit_count_types(arguments: Sequence[Typed]) -> Types:
    """An integer or boolean."""
    own = arguments[0][1]
    if own not in {*INTEGRALS, BOOLEAN, VOID}:
        raise InvalidInputError(f"an integer or a boolean is expected, found {own}")
    return [own if own == BOOLEAN else LONG], INTEGER


def hex_types(arguments: Sequence[Typed]) -> Types:
    """A long, binary value or string."""
    own = arguments[0][1]
    taken = LONG if is_numeric(own) else own if own == BINARY else STRING
    return [taken], STRING


def any_types(result: DataType) -> Callable[[Sequence[Typed]], Types]:
    """Values of any types, except of maps."""

    def types(arguments: Sequence[Typed]) -> Types:
        found = _own(arguments)
        for own in found:
            _refuse_maps(own)
        return found, result

    return types


def typeof_types(arguments: Sequence[Typed]) -> Types:
    """A value of any type."""
    return _own(arguments), STRING


def choice_types(arguments: Sequence[Typed]) -> Types:
    """A position and values, all strings or all binary."""
    found = _own(arguments[1:])
    own = BINARY if set(found) == {BINARY} else STRING
    return [INTEGER, *([own] * len(found))], own


def overlay_types(arguments: Sequence[Typed]) -> Types:
    """Two strings or binary values, a position and a length."""
    found = _own(arguments[:2])
    own = BINARY if set(found) <= {BINARY, VOID} else STRING
    if own == STRING and BINARY in found:
        raise InvalidInputError("both are strings, or both binary")
    return [own, own, INTEGER, INTEGER][: len(arguments)], own


def format_types(arguments: Sequence[Typed]) -> Types:
    """A constant pattern and values of any type."""
    found = _own(arguments)
    pattern = arguments[0][0]
    if not isinstance(pattern, Literal):
        raise InvalidInputError("the pattern must be a constant")
    return [STRING, *found[1:]], STRING


def format_number_types(arguments: Sequence[Typed]) -> Types:
    """A number and a number of digits."""
    own = arguments[0][1]
    if own == STRING:
        raise InvalidInputError("a number is expected, found a string")
    return [number_type(own), INTEGER], STRING
