"""Python functions over Arrow arrays and constants, for what no Arrow kernel computes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.kernels import Array, Datum, compute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

YES: Final = True
NO: Final = False


def by_row(function: Callable[..., Any], result: pa.DataType, *arguments: Datum) -> Datum:
    """A Python function of each row's values; NULL where one of them is NULL.

    Cost: by row. Of constants only, the result is a constant.
    """
    if all(isinstance(argument, pa.Scalar) for argument in arguments):
        values = [argument.as_py() for argument in arguments]
        is_null = any(value is None for value in values)
        return pa.scalar(None if is_null else function(*values), result)
    rows = max(len(argument) for argument in arguments if not isinstance(argument, pa.Scalar))
    columns = [python_values(argument, rows) for argument in arguments]
    found = [
        None if any(value is None for value in row) else function(*row)
        for row in zip(*columns, strict=True)
    ]
    return pa.array(found, result)


@contextmanager
def refusing(message: str) -> Iterator[None]:
    """Raise Arrow's errors in the block as InvalidInputError, with a message in Spark's terms."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise InvalidInputError(message) from error


def is_constant(*arguments: Datum) -> bool:
    """Whether all are constants other than NULL."""
    return all(isinstance(argument, pa.Scalar) and argument.is_valid for argument in arguments)


def python_values(argument: Datum, rows: int) -> list[Any]:
    """The values of an array; a constant is repeated for each row."""
    if isinstance(argument, pa.Scalar):
        return [argument.as_py()] * rows
    values: list[Any] = argument.to_pylist()
    return values


def as_array(datum: Datum, rows: int) -> Array:
    """An array; a constant is repeated for each row."""
    if not isinstance(datum, pa.Scalar):
        return datum
    constant: Any = datum
    return pa.repeat(constant, rows) if constant.is_valid else nulls(rows, constant.type)


def nulls(rows: int, arrow_type: Any) -> Array:
    """NULL for each row."""
    return pa.nulls(rows, arrow_type)


def on_array(function: Callable[[Array], Array], datum: Datum) -> Datum:
    """A function of an array, applied to an array or a constant."""
    if isinstance(datum, pa.Scalar):
        return function(as_array(datum, 1))[0]
    return function(datum)


def row_numbers(rows: int) -> Array:
    """0, 1, 2, … as unsigned integers."""
    return compute.indices_nonzero(pa.repeat(YES, rows))
