"""The common types of columns that a query puts below each other: set operations, VALUES.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql, resolve, type_of
from deltalog.expressions.coercion import common_type, has_same_structure
from deltalog.query.native import INTEGRALS
from deltalog.schema import ArrayType, MapType, StructType
from deltalog.schema.types import DOUBLE, FLOAT, VOID
from deltalog.sql_session import SqlSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.schema import DataType

_NO_COLUMNS: Final = StructType(())
# Only types are asked for.
_ANY_MOMENT: Final = SqlSession(now=datetime(2000, 1, 1, tzinfo=UTC), time_zone="UTC")


def common_type_of_sides(kinds: Sequence[DataType]) -> DataType:
    """Return the common type of the columns at one place of both sides of a set operation.

    Fields of structs may have other names where their types are the same: they get those of the
    first side.

    Raises:
        InvalidInputError: they have none.
    """
    if len(kinds) == 2 and has_same_structure(*kinds):
        return kinds[0]
    found = _common(kinds)
    if found is None:
        names = " and of ".join(map(str, kinds))
        raise InvalidInputError(f"columns of {names} have no common type")
    return found


def common_type_of_values(texts: Sequence[str]) -> DataType:
    """Return the common type of the constants in a column of VALUES.

    Args:
        texts: in Spark's dialect.

    Raises:
        InvalidInputError: one is no constant, or they have none.
    """
    kinds = [
        type_of(resolve(parse_sql(one), _NO_COLUMNS, _ANY_MOMENT), _NO_COLUMNS) for one in texts
    ]
    found = _common(kinds)
    if found is None:
        names = ", ".join(dict.fromkeys(map(str, kinds)))
        raise InvalidInputError(f"the values of a column of VALUES have no common type: {names}")
    return _with_floats(found, kinds)


def _common(kinds: Sequence[DataType]) -> DataType | None:
    found: DataType | None = VOID
    for kind in kinds:
        found = None if found is None else common_type(found, kind)
    return found


def _with_floats(common: DataType, kinds: Sequence[DataType]) -> DataType:
    """Return the common type with FLOAT for FLOAT beside whole numbers: only VALUES have it."""
    if FLOAT in kinds and common == DOUBLE and {FLOAT, VOID, *INTEGRALS}.issuperset(kinds):
        return FLOAT
    known: list[Any] = [one for one in kinds if one != VOID]
    match common:
        case ArrayType():
            inner = _with_floats(common.element_type, [one.element_type for one in known])
            return replace(common, element_type=inner)
        case MapType():
            key = _with_floats(common.key_type, [one.key_type for one in known])
            value = _with_floats(common.value_type, [one.value_type for one in known])
            return replace(common, key_type=key, value_type=value)
        case StructType():
            columns = zip(common, *known, strict=True)
            fields = [
                replace(one, type=_with_floats(one.type, [other.type for other in own]))
                for one, *own in columns
            ]
            return StructType(fields)
        case _:
            return common
