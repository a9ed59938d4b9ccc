"""What PEP 249 asks of a module besides `connect`: errors, constructors and kinds of types.

Protocol: none; PEP 249
"""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Any, Final

import pyarrow.types as pt

from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
    StorageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

apilevel: Final = "2.0"
threadsafety: Final = 1  # threads may share the module, not a connection
paramstyle: Final = "qmark"

Warning = UserWarning  # noqa: A001  # PEP 249's name
Error = DatabaseError = InternalError = DeltaError
InterfaceError = ProgrammingError = NotSupportedError = InvalidInputError
DataError = SchemaMismatchError
IntegrityError = ConstraintViolationError
OperationalError = StorageError

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802  # PEP 249's name
    """Return the local date of a number of seconds since the epoch."""
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802  # PEP 249's name
    """Return the local time of day of a number of seconds since the epoch."""
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802  # PEP 249's name
    """Return the local moment of a number of seconds since the epoch."""
    return dt.datetime(*time.localtime(ticks)[:6])  # noqa: DTZ001  # PEP 249's moments have no zone


class TypeKind:
    """A kind of types, which equals each Arrow type of that kind in a cursor's `description`.

    Args:
        name: of PEP 249.
        tests: of pyarrow's types.
    """

    def __init__(self, name: str, *tests: Callable[[Any], bool]) -> None:
        self._name = name
        self._tests = tests

    def __eq__(self, other: object) -> bool:
        """Whether a type is of this kind."""
        if isinstance(other, TypeKind):
            return self is other
        return any(test(other) for test in self._tests)

    def __hash__(self) -> int:
        """Return a hash of the kind alone: a type is no key here."""
        return hash(self._name)

    def __repr__(self) -> str:
        """Return the name."""
        return self._name


STRING: Final = TypeKind("STRING", pt.is_string, pt.is_large_string)
BINARY: Final = TypeKind("BINARY", pt.is_binary, pt.is_large_binary)
NUMBER: Final = TypeKind("NUMBER", pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_boolean)
DATETIME: Final = TypeKind("DATETIME", pt.is_temporal)
ROWID: Final = TypeKind("ROWID")
