"""The common type of two values and the result type of arithmetic, by Spark's ANSI rules.

Contains the precedence of types. Does not depend on expressions or data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.schema.columns import walk_types
from deltalog.schema.primitives import PRIMITIVES, Family
from deltalog.schema.primitives.numbers import MAX_DIGITS
from deltalog.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
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


def _family(family: Family) -> tuple[PrimitiveType, ...]:
    return tuple(PrimitiveType(row.name) for row in PRIMITIVES.values() if row.family is family)


# The casts from and to nanosecond timestamps: source → targets. A cast to microseconds fails if it
# is not exact.
FINE_CASTS: Final[dict[DataType, frozenset[DataType]]] = {
    STRING: frozenset({TIMESTAMP_NANOS, TIMESTAMP_NANOS_NTZ}),
    DATE: frozenset({TIMESTAMP_NANOS, TIMESTAMP_NANOS_NTZ}),
    TIMESTAMP: frozenset({TIMESTAMP_NANOS}),
    TIMESTAMP_NTZ: frozenset({TIMESTAMP_NANOS_NTZ}),
    TIMESTAMP_NANOS: frozenset({TIMESTAMP}),
    TIMESTAMP_NANOS_NTZ: frozenset({TIMESTAMP_NTZ}),
}
FINE_MOMENTS: Final = frozenset({TIMESTAMP_NANOS, TIMESTAMP_NANOS_NTZ})
# The integral types, from the narrowest to the widest.
INTEGRALS: Final = _family(Family.INTEGRAL)
FRACTIONALS: Final = _family(Family.FLOATING)
DATETIMES: Final = _family(Family.MOMENT)
_GREATEST: Final[dict[DataType, int]] = {
    kind: (1 << (kind.primitive.bits - 1)) - 1 for kind in INTEGRALS
}
_NUMERIC: Final = frozenset({Family.INTEGRAL, Family.FLOATING, Family.DECIMAL})
_MIN_ADJUSTED_SCALE: Final = 6


def is_decimal(data_type: DataType) -> bool:
    """Whether the type is a decimal."""
    return isinstance(data_type, PrimitiveType) and data_type.is_decimal


def is_numeric(data_type: DataType) -> bool:
    """Whether the type is a number."""
    return isinstance(data_type, PrimitiveType) and data_type.primitive.family in _NUMERIC


def is_opaque(data_type: DataType) -> bool:
    """Whether expressions only return or copy values of the type and never inspect them."""
    if isinstance(data_type, PrimitiveType):
        return data_type.primitive.is_opaque
    return any(
        isinstance(found, PrimitiveType) and found.primitive.is_opaque
        for _, found in walk_types(data_type)
    )


def is_ordered(data_type: DataType) -> bool:
    """Whether values of an opaque type can be compared."""
    return isinstance(data_type, PrimitiveType) and data_type.primitive.is_ordered


def is_unordered(data_type: DataType) -> bool:
    """Whether expressions cannot compare values of the type, not even for equality."""
    return is_opaque(data_type) and not is_ordered(data_type)


def holds_integer(data_type: DataType, value: int) -> bool:
    """Whether an integer is in the range of an integral type."""
    most = _GREATEST.get(data_type, -1)
    return -most - 1 <= value <= most


def decimal_of(data_type: DataType) -> PrimitiveType:
    """Return the decimal type that fits every value of an integral or decimal type."""
    if isinstance(data_type, PrimitiveType):
        if data_type.is_decimal:
            return data_type
        row = data_type.primitive
        if row.family is Family.INTEGRAL:
            # A long has at most 19 digits, but Spark's DecimalType.LongDecimal is decimal(20,0).
            return decimal_type(row.digits + (row.bits == 64), 0)
    raise InvalidInputError(f"{data_type} is not an exact number type")


def decimal_of_constant(value: object, data_type: DataType) -> PrimitiveType:
    """Return the decimal type of a constant; for an integer, the precision is its number of digits.

    The type of `price * 2` thus has one more digit than `price`, not ten. A tinyint constant is
    always a decimal(3,0), because Spark's `DecimalType.fromLiteral` has no case for it.
    """
    if isinstance(value, int) and data_type in {SHORT, INTEGER, LONG}:
        return decimal_type(len(str(abs(value))), 0)
    return decimal_of(data_type)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """Return the type to which both sides of a comparison are cast, or None if there is none.

    In ANSI mode a string is cast to the other type; in Hive the other side is cast to string.
    """
    if left == right:
        return left
    if VOID in (left, right):
        return right if left == VOID else left
    if is_opaque(left) or is_opaque(right):
        return None
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    if left in DATETIMES and right in DATETIMES:
        return DATETIMES[max(DATETIMES.index(left), DATETIMES.index(right))]
    if STRING in (left, right):
        return _promote_string(right if left == STRING else left)
    return _common_nested(left, right)


def _common_number(left: DataType, right: DataType) -> DataType:
    if left in FRACTIONALS or right in FRACTIONALS:
        # In ANSI mode, the common type is double, because a float would lose digits.
        return DOUBLE
    if left in INTEGRALS and right in INTEGRALS:
        return INTEGRALS[max(INTEGRALS.index(left), INTEGRALS.index(right))]
    return wider_decimal(decimal_of(left), decimal_of(right))


def _promote_string(other: DataType) -> DataType | None:
    # In ANSI mode, the common type of a string and any integral type is bigint. So '1.5' = 1 is an
    # error.
    if other in INTEGRALS:
        return LONG
    if is_numeric(other):
        return DOUBLE
    return other if isinstance(other, PrimitiveType) else None


def _common_nested(left: DataType, right: DataType) -> DataType | None:
    match left, right:
        case ArrayType(), ArrayType():
            element = common_type(left.element_type, right.element_type)
            contains_null = left.contains_null or right.contains_null
            return ArrayType(element, contains_null) if element else None
        case MapType(), MapType():
            key = common_type(left.key_type, right.key_type)
            value = common_type(left.value_type, right.value_type)
            contains_null = left.value_contains_null or right.value_contains_null
            return MapType(key, value, contains_null) if key and value else None
        case StructType(), StructType():
            return _common_struct(left, right)
        case _:
            return None


def _common_struct(left: StructType, right: StructType) -> StructType | None:
    """Return the struct of the fields' common types, matched by position, with `left`'s names."""
    if len(left) != len(right):
        return None
    fields: list[Field] = []
    for mine, theirs in zip(left, right, strict=True):
        common = common_type(mine.type, theirs.type)
        if common is None or name_key(mine.name) != name_key(theirs.name):
            return None
        fields.append(Field(mine.name, common, nullable=mine.nullable or theirs.nullable))
    return StructType(fields)


def comparable_type(left: DataType, right: DataType) -> DataType | None:
    """Return the type in which two sides are compared.

    The fields of a row, as in `(a, b) = (1, 2)`, have the generated names `col1`, `col2`, …. They
    are replaced by the field names of the other side.
    """
    return common_type(left, _with_names_of(left, right))


def _with_names_of(named: DataType, other: DataType) -> DataType:
    """Replace generated field names of a type by the other type's names."""
    match named, other:
        case ArrayType(), ArrayType():
            return replace(
                other, element_type=_with_names_of(named.element_type, other.element_type)
            )
        case StructType(), StructType() if len(named) == len(other):
            fields = []
            for place, (own, field) in enumerate(zip(named, other, strict=True), start=1):
                of_row = f"col{place}" in {own.name, field.name}
                name = own.name if of_row else field.name
                fields.append(replace(field, name=name, type=_with_names_of(own.type, field.type)))
            return StructType(fields)
        case _:
            return other


def has_same_structure(left: DataType, right: DataType) -> bool:
    """Whether two types are equal, except for field names and nullability."""
    match left, right:
        case ArrayType(), ArrayType():
            return has_same_structure(left.element_type, right.element_type)
        case MapType(), MapType():
            return has_same_structure(left.key_type, right.key_type) and has_same_structure(
                left.value_type, right.value_type
            )
        case StructType(), StructType():
            return len(left) == len(right) and all(
                has_same_structure(mine.type, theirs.type)
                for mine, theirs in zip(left, right, strict=True)
            )
        case _:
            return left == right


def wider_decimal(left: PrimitiveType, right: PrimitiveType) -> PrimitiveType:
    """Return the decimal type that fits both types; above 38 digits, the scale is reduced first."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    excess = max(0, whole + scale - MAX_DIGITS)
    return decimal_type(min(whole + scale, MAX_DIGITS), max(0, scale - excess))


def arithmetic_type(operator: str, left: PrimitiveType, right: PrimitiveType) -> PrimitiveType:
    """Return the result type of decimal arithmetic, by the rules of Hive and SQL Server."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    match operator:
        case "+" | "-":
            scale = max(s1, s2)
            return adjusted_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return adjusted_decimal(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(_MIN_ADJUSTED_SCALE, s1 + p2 + 1)
            return adjusted_decimal(p1 - s1 + s2 + scale, scale)
        case _:
            scale = max(s1, s2)
            return adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale)


def adjusted_decimal(precision: int, scale: int) -> PrimitiveType:
    """Limit a decimal type to 38 digits: the scale is reduced first, to no less than six digits.

    The rule is Spark's `DecimalType.adjustPrecisionScale`.
    """
    if precision <= MAX_DIGITS:
        return decimal_type(precision, scale)
    whole = precision - scale
    return decimal_type(MAX_DIGITS, max(MAX_DIGITS - whole, min(scale, _MIN_ADJUSTED_SCALE)))


def can_cast(source: DataType, to: DataType) -> bool:
    """Whether ANSI mode has a `CAST` from one type to the other.

    Numbers cannot be cast to binary, nor dates to numbers.
    """
    if source in (to, VOID) or to == STRING:
        return source in (to, VOID) or (to != VOID and not is_opaque(source))
    if is_opaque(source) or is_opaque(to):
        return to in FINE_CASTS.get(source, ()) or (
            not is_ordered(to) and is_relabelled(source, to)
        )
    if isinstance(source, PrimitiveType) and isinstance(to, PrimitiveType):
        return _can_cast_primitive(source, to)
    match source, to:
        case ArrayType(), ArrayType():
            return can_cast(source.element_type, to.element_type)
        case MapType(), MapType():
            return can_cast(source.key_type, to.key_type) and can_cast(
                source.value_type, to.value_type
            )
        case StructType(), StructType():
            return len(source) == len(to) and all(
                can_cast(mine.type, theirs.type) for mine, theirs in zip(source, to, strict=True)
            )
        case _:
            return False


def is_relabelled(source: DataType, to: DataType) -> bool:
    """Whether a cast changes only the type and no bytes: from binary (WKB) to geometry."""
    if not isinstance(source, PrimitiveType) or not isinstance(to, PrimitiveType):
        return False
    one, other = source.primitive, to.primitive
    same = one.arrow(*source.parameters) == other.arrow(*to.parameters)
    return same and not one.is_opaque and other.name in one.stored_in


def _can_cast_primitive(source: PrimitiveType, to: PrimitiveType) -> bool:
    if source == STRING:
        return to != VOID
    if is_numeric(source):
        return is_numeric(to) or to in (BOOLEAN, TIMESTAMP)
    if source == BOOLEAN:
        return is_numeric(to)
    if source in DATETIMES:
        return to in DATETIMES or (source == TIMESTAMP and is_numeric(to))
    return False


def can_assign(source: DataType, to: DataType) -> bool:
    """Whether a function accepts an argument of one type for a parameter of the other."""
    if source in (to, VOID):
        return True
    if is_opaque(source) or is_opaque(to):
        return False
    if isinstance(source, ArrayType) and isinstance(to, ArrayType):
        return can_assign(source.element_type, to.element_type)
    if not isinstance(source, PrimitiveType) or not isinstance(to, PrimitiveType):
        return False
    return (
        STRING in (source, to)
        or (is_numeric(source) and is_numeric(to))
        or (source in DATETIMES and to in DATETIMES)
    )
