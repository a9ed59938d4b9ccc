"""Errors of deltalog that are also errors of PySpark, so that existing handlers catch them.

The error for an existing or missing table is also an `AnalysisException` of Spark. The error for an
argument of the wrong type is also a `TypeError`. Delta's jar raises the same exception classes.

Protocol: none
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import cache, wraps
from inspect import signature
from os import PathLike
from types import FunctionType
from typing import Any, Final, TypeVar

from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import Column, DataFrame

from deltalog import errors
from deltalog._util.argument_types import kind_of, shortened
from deltalog.errors import (
    DataFileMissingError,
    DataFileUnreadableError,
    DeltaError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.expressions import Expression
from deltalog.spark.session.words import in_spark

_CONDITIONS: Final = (str, Column, Expression)
_UNREAD_FILE: Final = re.compile(
    r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+?)\.?\s"
)
_OF_PLANNER: Final = re.compile(
    r"^deltalog\.errors\.(\w+): (.*?)(?=\s+SQLSTATE: \w+|\s*\Z)", re.DOTALL | re.MULTILINE
)
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class")
_NEEDED: Final[dict[tuple[type, ...], str]] = {
    (str,): "a string",
    (str, date): "a string",
    (int,): "an int",
    (bool,): "a boolean",
}


class WrongTypeError(InvalidInputError, TypeError):
    """An argument has a type that the method does not accept."""

    code = "wrong-type"


class WrongIdentityTypeError(InvalidInputError, UnsupportedOperationException):
    """An identity column has a type other than BIGINT."""

    code = "wrong-identity-type"

    def __init__(self, *args: object) -> None:
        UnsupportedOperationException.__init__(self, message=str(args[0]), messageParameters={})
        self.args = args

    def __str__(self) -> str:
        return str(self.args[0])


class _Analysis(AnalysisException):
    """An error of Spark. Each class has a fixed error condition and SQLSTATE."""

    _condition = ""
    _sql_state = ""

    def __init__(self, *args: object) -> None:
        super().__init__(message=str(args[0]) if args else "", messageParameters={})

    def getCondition(self) -> str:  # noqa: N802  # PySpark's name
        """Return the error condition, which is the error's name in Delta's list of errors."""
        return self._condition

    def getSqlState(self) -> str:  # noqa: N802  # PySpark's name
        """Return the SQLSTATE code."""
        return self._sql_state

    def getMessage(self) -> str:  # noqa: N802  # PySpark's name
        """Return the message."""
        return str(self)


class SparkTableExistsError(TableExistsError, _Analysis):
    """A table already exists at this location, and the mode requires a new table."""

    _condition = "DELTA_TABLE_ALREADY_EXISTS"
    _sql_state = "42P07"


class SparkTableNotFoundError(TableNotFoundError, _Analysis):
    """There is no Delta table at this location."""

    _condition = "DELTA_TABLE_NOT_FOUND"
    _sql_state = "42P01"


@contextmanager
def as_spark_does() -> Iterator[None]:
    """Raise errors of the block with Spark's words, and Spark's errors for tables.

    Errors about an existing or a missing table are also errors of Spark.
    """
    try:
        yield
    except _Analysis:
        raise
    except TableExistsError as error:
        raise _also(SparkTableExistsError, error) from error
    except TableNotFoundError as error:
        raise _also(SparkTableNotFoundError, error) from error
    except DeltaError as error:
        error.args = tuple(in_spark(one) if isinstance(one, str) else one for one in error.args)
        raise


def speaks_spark(kind: type[_Class]) -> type[_Class]:
    """Decorate a class: its public methods raise errors as `as_spark_does` does."""
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(kind, name, as_spark_does()(method))
    return kind


@contextmanager
def as_analysis_errors() -> Iterator[None]:
    """Make every deltalog error of this block also an `AnalysisException`.

    Formats use this while Spark plans a query.
    """
    try:
        with as_spark_does():
            yield
    except _Analysis:
        raise
    except DeltaError as error:
        raise _analysis_error(type(error), error.args, vars(error)) from error


@contextmanager
def without_planner() -> Iterator[None]:
    """Raise deltalog's error of this block instead of Spark's, which contains its traceback.

    Spark plans a Python format in another process, and puts the error of that process into the
    message of its own.

    Raises:
        DeltaError: the error of the format, which is also an `AnalysisException`.
    """
    try:
        yield
    except AnalysisException as error:
        found = _OF_PLANNER.findall(str(error))
        kind: Any = getattr(errors, found[-1][0], None) if found else None
        if kind is None:
            raise
        own: DeltaError = kind.__new__(kind)  # without its constructor, as when it is unpickled
        own.args = (found[-1][1],)
        with as_analysis_errors():
            raise own from error


@contextmanager
def naming_files(attempt: str = "read the rows") -> Iterator[None]:
    """Raise an error that states the remedy if Spark's own reader cannot read a file.

    The block is an operation of deltalog. The file may belong to any frame of the user, which
    Spark's error does not say.

    Args:
        attempt: the operation and the table, such as `run UPDATE on /data/t`.

    Raises:
        DataFileMissingError: the file does not exist.
        DataFileUnreadableError: the file is damaged. Spark's error is the cause of both.
    """
    try:
        yield
    except Exception as error:
        found = None if isinstance(error, DeltaError) else _UNREAD_FILE.search(str(error))
        if found is None:
            raise
        is_missing = found[1] == "FILE_NOT_EXIST"
        kind = DataFileMissingError if is_missing else DataFileUnreadableError
        state = "there is no such file" if is_missing else "Spark cannot read the file"
        raise kind(
            f"cannot {attempt}: cannot read {found[2]!r}: {state}; if it belongs to a Delta "
            f"table: {in_spark(kind.ADVICE)}"
        ) from error


def _analysis_error(
    kind: type[DeltaError], args: tuple[Any, ...], state: dict[str, Any]
) -> DeltaError:
    """Return an error of class `kind` that is also an `AnalysisException`, and can be pickled."""
    cls = _analysis_class(kind)  # type: ignore[arg-type]  # a class is hashable, as `cache` requires
    found = cls.__new__(cls, *args)
    _Analysis.__init__(found, *args)  # type: ignore[arg-type]  # `found` is also an `_Analysis`
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
        "__str__": Exception.__str__,  # Spark's `__str__` calls `getMessage`, which would recurse
        "_condition": "PYTHON_DATA_SOURCE_ERROR",
        "_sql_state": "38000",
    }
    return type(kind.__name__, (kind, _Analysis), own)


def _also(kind: type[DeltaError], error: DeltaError) -> DeltaError:
    found = kind(in_spark(str(error)))
    found.__setstate__(vars(error))
    return found


def check_type(value: object, expected: type | tuple[type, ...], what: str, words: str) -> None:
    """Refuse an argument of the wrong type.

    Args:
        value: the argument.
        expected: the types; a `bool` does not count as an `int`.
        what: the name of the argument, for the message.
        words: a description of the types, for the message.

    Raises:
        WrongTypeError: the argument has another type.
    """
    kinds = expected if isinstance(expected, tuple) else (expected,)
    if isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds):
        return
    needed = _NEEDED.get(kinds)
    if needed is not None:  # include Delta's own words, for which users' code may search
        what = f"{what} needs to be {needed} but got '{type(value)}'"
    raise WrongTypeError(f"{what}: expected {words}, found {value!r}, {kind_of(value)}")


def check_optional(value: object, expected: type | tuple[type, ...], what: str, words: str) -> None:
    """Refuse an argument of the wrong type, but accept None; see `check_type`."""
    if value is not None:
        check_type(value, expected, what, words)


def session_first(function: _Function) -> _Function:
    """Decorate a function whose first argument is a session: refuse a location alone."""
    first = next(iter(signature(function).parameters))
    is_method = first in {"self", "cls"}

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        given = args[is_method:]
        if len(given) == 1 and isinstance(given[0], str | PathLike):
            name = f"deltalog.spark.{function.__qualname__.removesuffix('.__init__')}"
            raise InvalidInputError(
                f"cannot call {name} with {str(given[0])!r} alone: the session comes first, as in "
                f"{name}(spark, {str(given[0])!r})"
            )
        return function(*args, **options)

    return called  # type: ignore[return-value]  # of the same signature


def check_session(spark: object) -> None:
    """Refuse an argument that is not a session, classic or remote."""
    if not hasattr(spark, "createDataFrame"):
        is_place = isinstance(spark, str | PathLike)
        hint = "; the session comes first, then the location" if is_place else ""
        raise WrongTypeError(
            f"sparkSession: expected a SparkSession, found {shortened(spark)}, "
            f"{kind_of(spark)}{hint}"
        )


def check_source(source: object) -> None:
    """Refuse a source of a merge that is not a dataframe."""
    if not isinstance(source, DataFrame):
        raise WrongTypeError(
            f"source must be DataFrame, found {shortened(source)}, {kind_of(source)}; "
            "spark.createDataFrame makes one of rows, and spark.table or spark.read of a table"
        )


def check_condition(
    condition: object, what: str = "condition", *, is_required: bool = False
) -> None:
    """Refuse an argument that is not a condition. None is accepted unless `is_required`."""
    if condition is None and not is_required:
        return
    if not isinstance(condition, _CONDITIONS):
        raise _wrong(f"{what} must be a Spark SQL Column or a string", condition)


def check_values(values: object, what: str, condition: object = None) -> None:
    """Refuse values that are not a dictionary: column name → SQL string or Spark column.

    Args:
        values: the argument.
        what: the name of the argument.
        condition: the argument before it, which is the dictionary if its name was forgotten.

    Raises:
        InvalidInputError: the argument is None.
        WrongTypeError: the argument is not a dictionary, or a key or value has the wrong type.
    """
    if values is None and isinstance(condition, Mapping):
        raise WrongTypeError(
            f"condition: expected a Spark SQL Column or a string, found {condition!r}, a dict; "
            f"write {what}={{…}}, because the first argument is the condition"
        )
    if values is None:
        raise InvalidInputError(
            f"{what} cannot be None: expected a dictionary of column names to Spark SQL or columns"
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
    return WrongTypeError(f"{expected}, found {shortened(value)}, {kind_of(value)}")
