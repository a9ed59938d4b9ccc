"""Types of functions of dates and timestamps.

Owns the rules; `functions` assigns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import DATETIMES
from deltalog.schema.types import (
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
    DataType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.expressions.signatures import Typed, Types


def datetime_types(result: DataType) -> Callable[[Sequence[Typed]], Types]:
    """One timestamp; the wall time of a `timestamp_ntz` is not converted."""
    return lambda arguments: ([_timestamp_type(arguments[0][1])], result)


def _timestamp_type(data_type: DataType) -> DataType:
    return TIMESTAMP_NTZ if data_type == TIMESTAMP_NTZ else TIMESTAMP


def days_types(arguments: Sequence[Typed]) -> Types:
    """A date and a number of days."""
    # Spark's date_add takes a tinyint, smallint or int; a bigint is an error and not cast.
    given = arguments[1][1]
    if given not in {BYTE, SHORT, INTEGER, STRING, VOID}:
        raise InvalidInputError(f"a number of days is of type integer, found {given}: cast it")
    return [DATE, INTEGER], DATE


def parse_types(result: DataType) -> Callable[[Sequence[Typed]], Types]:
    """A date, a timestamp or a string, and a pattern to parse the string by."""

    def types(arguments: Sequence[Typed]) -> Types:
        given = arguments[0][1]
        own = given if given in DATETIMES else STRING
        return [own, STRING][: len(arguments)], result

    return types


def add_types(arguments: Sequence[Typed]) -> Types:
    """A unit, a number and a timestamp, with or without zone as the result."""
    own = _timestamp_type(arguments[2][1])
    return [STRING, LONG, own], own


def difference_types(arguments: Sequence[Typed]) -> Types:
    """A unit and two timestamps, both with or both without zone."""
    is_naive = all(data_type == TIMESTAMP_NTZ for _, data_type in arguments[1:])
    own = TIMESTAMP_NTZ if is_naive else TIMESTAMP
    return [STRING, own, own], LONG


def months_types(arguments: Sequence[Typed]) -> Types:
    """Two timestamps, and whether to round."""
    return [TIMESTAMP, TIMESTAMP, BOOLEAN][: len(arguments)], DOUBLE
