"""Errors that are also those which PySpark's users catch.

A table that is there or missing is Spark's `AnalysisException`, and an argument of the wrong type a
`TypeError`, as with Delta's jar. Each is the core's error at the same time.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import Column, DataFrame

from deltalog.errors import DeltaError, InvalidInputError, TableExistsError, TableNotFoundError
from deltalog.expressions import Expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONDITIONS: Final = (str, Column, Expression)
_NEEDED: Final[dict[tuple[type, ...], str]] = {
    (str,): "a string",
    (str, datetime): "a string",
    (int,): "an int",
    (bool,): "a boolean",
}


class WrongTypeError(InvalidInputError, TypeError):
    """An argument is of another type than its method takes."""

    code = "wrong-type"


class WrongIdentityTypeError(InvalidInputError, UnsupportedOperationException):
    """An identity column is of another type than BIGINT."""

    code = "wrong-identity-type"

    def __init__(self, *args: object) -> None:
        UnsupportedOperationException.__init__(self, message=str(args[0]), messageParameters={})
        self.args = args

    def __str__(self) -> str:
        return str(self.args[0])


class _Analysis(AnalysisException):
    """Spark's error, whose fields follow from the text of the core's."""

    _condition = ""
    _sql_state = ""

    def __init__(self, *args: object) -> None:
        super().__init__(message=str(args[0]) if args else "", messageParameters={})

    def getCondition(self) -> str:  # noqa: N802  # PySpark's
        """Return the name of the error in Delta's list."""
        return self._condition

    def getSqlState(self) -> str:  # noqa: N802  # PySpark's
        """Return the standard's code."""
        return self._sql_state

    def getMessage(self) -> str:  # noqa: N802  # PySpark's
        """Return the text."""
        return str(self)


class SparkTableExistsError(TableExistsError, _Analysis):
    """There is already a table at this location, and the mode does not allow that."""

    _condition = "DELTA_TABLE_ALREADY_EXISTS"
    _sql_state = "42P07"


class SparkTableNotFoundError(TableNotFoundError, _Analysis):
    """There is no Delta table at this location."""

    _condition = "DELTA_TABLE_NOT_FOUND"
    _sql_state = "42P01"


@contextmanager
def as_spark_does() -> Iterator[None]:
    """Raise the errors of this block about tables that are there or missing as Spark's, too."""
    try:
        yield
    except _Analysis:
        raise
    except TableExistsError as error:
        raise _also(SparkTableExistsError, error) from error
    except TableNotFoundError as error:
        raise _also(SparkTableNotFoundError, error) from error


@contextmanager
def as_analysis_errors() -> Iterator[None]:
    """Raise every error of this block as Spark's, too: what a format raises while Spark plans."""
    try:
        with as_spark_does():
            yield
    except _Analysis:
        raise
    except DeltaError as error:
        raise _analysis_error(type(error), error.args, vars(error)) from error


def _analysis_error(
    kind: type[DeltaError], args: tuple[Any, ...], state: dict[str, Any]
) -> DeltaError:
    """Make an error of one kind that is Spark's as well; it is pickled as a call of this."""
    cls = _analysis_class(kind)  # type: ignore[arg-type]  # a class can be hashed
    found = cls.__new__(cls, *args)
    _Analysis.__init__(found, *args)  # type: ignore[arg-type]  # `kind` takes other arguments
    found.__setstate__(state)
    return found


@cache
def _analysis_class(kind: type[DeltaError]) -> type[DeltaError]:
    def reduce(self: DeltaError) -> tuple[Any, ...]:
        return _analysis_error, (kind, self.args, {})

    own = {
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__reduce__": reduce,
        "__str__": Exception.__str__,  # Spark's asks `getMessage`
        "_condition": "PYTHON_DATA_SOURCE_ERROR",
        "_sql_state": "38000",
    }
    return type(kind.__name__, (kind, _Analysis), own)


def _also(kind: type[DeltaError], error: DeltaError) -> DeltaError:
    found = kind(str(error))
    found.__setstate__(vars(error))
    return found


def check_type(value: object, expected: type | tuple[type, ...], what: str, words: str) -> None:
    """Refuse an argument of another type.

    Args:
        value: that was given.
        expected: the types; `bool` is none of `int`.
        what: names the argument.
        words: the types, for the message.

    Raises:
        WrongTypeError: it is of another type.
    """
    kinds = expected if isinstance(expected, tuple) else (expected,)
    if isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds):
        return
    needed = _NEEDED.get(kinds)
    if needed is not None:  # as code that was written for Delta's class may look for
        what = f"{what} needs to be {needed} but got '{type(value)}'"
    raise WrongTypeError(f"{what}: expected {words}, found {value!r}, a {type(value).__name__}")


def check_optional(value: object, expected: type | tuple[type, ...], what: str, words: str) -> None:
    """Refuse an argument of another type that is not None; see `check_type`."""
    if value is not None:
        check_type(value, expected, what, words)


def check_session(spark: object) -> None:
    """Refuse what is no session; those of Spark Connect are another class."""
    if not hasattr(spark, "createDataFrame"):
        raise WrongTypeError(f"sparkSession: expected a SparkSession, found {spark!r}")


def check_source(source: object) -> None:
    """Refuse what is no data frame as the source of a merge."""
    if not isinstance(source, DataFrame):
        raise _wrong("source must be DataFrame", source)


def check_condition(
    condition: object, what: str = "condition", *, is_required: bool = False
) -> None:
    """Refuse what is no condition, unless it is None and need not be there."""
    if condition is None and not is_required:
        return
    if not isinstance(condition, _CONDITIONS):
        raise _wrong(f"{what} must be a Spark SQL Column or a string", condition)


def check_values(values: object, what: str) -> None:
    """Refuse what does not give columns values by SQL or columns.

    Raises:
        InvalidInputError: there are none.
        WrongTypeError: they are no dictionary, or some key or value in it is of another type.
    """
    if values is None:
        raise InvalidInputError(
            f"{what} cannot be None: expected a dictionary, column to Spark SQL or Spark column"
        )
    if not isinstance(values, Mapping):
        raise _wrong(f"{what} must be a dict of columns and Spark SQL or Spark columns", values)
    for name, value in values.items():
        if not isinstance(name, str):
            raise _wrong(f"Keys of dict in {what}: column must contain only names", name)
        if not isinstance(value, _CONDITIONS):
            column = f"Values of dict in {what}: column {name!r}"
            raise _wrong(f"{column} must contain only Spark SQL or Spark columns", value)


def _wrong(expected: str, value: object) -> WrongTypeError:
    return WrongTypeError(f"{expected}, found {value!r}, a {type(value).__name__}")
