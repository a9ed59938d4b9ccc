"""Errors that are also those which PySpark's users catch.

A table that is there or missing is Spark's `AnalysisException`, and an argument of the wrong type a
`TypeError`, as with Delta's jar. Each is the core's error at the same time.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column

from deltalog.errors import DeltaError, InvalidInputError, TableExistsError, TableNotFoundError
from deltalog.expressions import Expression

if TYPE_CHECKING:
    from collections.abc import Iterator


class WrongTypeError(InvalidInputError, TypeError):
    """An argument is of another type than its method takes."""

    code = "wrong-type"


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
    found.__dict__.update(state)
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
    found.__dict__.update(vars(error))
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
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise WrongTypeError(f"{what}: expected {words}, found {value!r}, a {type(value).__name__}")


def check_optional(value: object, expected: type | tuple[type, ...], what: str, words: str) -> None:
    """Refuse an argument of another type that is not None; see `check_type`."""
    if value is not None:
        check_type(value, expected, what, words)


def check_session(spark: object) -> None:
    """Refuse what is no session; those of Spark Connect are another class."""
    if not hasattr(spark, "createDataFrame"):
        raise WrongTypeError(f"sparkSession: expected a SparkSession, found {spark!r}")


def check_condition(condition: object, what: str = "condition") -> None:
    """Refuse what is no condition, unless it is None."""
    check_optional(condition, (str, Column, Expression), what, "Spark SQL or a Spark column")


def check_values(values: object, what: str) -> None:
    """Refuse what does not give columns values by SQL or columns, unless it is None."""
    words = "a dictionary, column to Spark SQL or Spark column"
    check_optional(values, Mapping, what, words)
    for name, value in values.items() if isinstance(values, Mapping) else ():
        check_type(name, str, f"{what}: column", "a name")
        kinds = (str, Column, Expression)
        check_type(value, kinds, f"{what}: column {name!r}", "Spark SQL or a Spark column")
