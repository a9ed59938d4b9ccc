"""Python functions over Arrow arrays and constants, for what no Arrow kernel computes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.errors import InvalidInputError
from deltalog.expressions.budget import BYTES_OF_STEP, is_bounded, size_of, spend
from deltalog.kernels import Array, Datum, compute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_OF_VALUE: Final = 1 << 27
_MOST_OF_BATCH: Final = (1 << 31) - 1  # what offsets of 32 bits can count
# What Python takes for a character or an element, in bytes and steps.
_OF_PYTHON: Final = 8
_STEPS_OF_ROW: Final = 100
_SIZED: Final = (str, bytes, list)
YES: Final = True
NO: Final = False


def by_row(function: Callable[..., Any], result: pa.DataType, *arguments: Datum) -> Datum:
    """A Python function of each row's values; NULL where one of them is NULL.

    Cost: by row. Of constants only, the result is a constant.
    """
    return with_nulls(
        lambda *row: None if any(value is None for value in row) else function(*row),
        result,
        *arguments,
    )


def with_nulls(function: Callable[..., Any], result: pa.DataType, *arguments: Datum) -> Datum:
    """`by_row` of a function that is called for NULL too, as None."""
    if is_bounded():
        read = sum(size_of(one) if isinstance(one, pa.Scalar) else one.nbytes for one in arguments)
        spend(_OF_PYTHON * read, _OF_PYTHON * read)
        function = _counted(function)
    if all(isinstance(argument, pa.Scalar) for argument in arguments):
        values = [python_values(argument, 1)[0] for argument in arguments]
        return pa.scalar(function(*values), result)
    rows = max(len(argument) for argument in arguments if not isinstance(argument, pa.Scalar))
    columns = [python_values(argument, rows) for argument in arguments]
    return pa.array([function(*row) for row in zip(*columns, strict=True)], result)


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments and results are taken from the budget."""

    def run(*row: Any) -> Any:
        # A constant is read again for each row.
        size = sum(len(value) for value in row if isinstance(value, _SIZED))
        spend(steps=_STEPS_OF_ROW + size)
        found = function(*row)
        spend(_OF_PYTHON * len(found) if isinstance(found, _SIZED) else 0)
        return found

    return run


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
    try:
        if isinstance(argument, pa.Scalar):
            return [argument.as_py()] * rows
        values: list[Any] = argument.to_pylist()
    except (OverflowError, ValueError) as error:
        # Dates and timestamps outside of the years 1 to 9999.
        raise InvalidInputError(f"a {argument.type} does not fit into Python: {error}") from error
    return values


def flat(column: Any) -> Array:
    """A column of a batch or a table in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def taken(column: Array, rows: Array) -> Array:
    """The values of some rows, each as often as it is named."""
    spend(column.nbytes / max(len(column), 1) * len(rows))
    return column.take(rows)


def loosened(arrow_type: Any) -> Any:
    """The type, where every element and field may be NULL."""
    if pt.is_list(arrow_type):
        return pa.list_(pa.field("element", loosened(arrow_type.value_type)))
    if pt.is_struct(arrow_type):
        return pa.struct([pa.field(part.name, loosened(part.type)) for part in arrow_type])
    if pt.is_map(arrow_type):
        return pa.map_(arrow_type.key_type, loosened(arrow_type.item_type))
    return arrow_type


def choose(mask: Array, chosen: Datum, others: Datum) -> Datum:
    """The values of one side where the mask is true, and of the other side elsewhere.

    Both sides are of one type in SQL; in Arrow they may differ in what may be NULL inside.
    """
    if chosen.type != others.type:
        both = loosened(chosen.type)
        chosen, others = compute.cast(chosen, both), compute.cast(others, both)
    return compute.if_else(mask, chosen, others)


def check_volume(function: str, sizes: Datum, *, rows: int = 1, unit_bytes: int = 1) -> None:
    """Refuse a result that would exhaust the memory; Spark allows 2 GiB for every value.

    Args:
        function: its name, for the message.
        sizes: of each row, its characters or elements; one constant stands for `rows` of them.
        rows: number of rows of a constant.
        unit_bytes: bytes of a character or an element.

    Raises:
        InvalidInputError: a value, or all of the batch together, have too many of them.
    """
    # As floats, which do not overflow.
    counted = compute.cast(sizes, pa.float64())
    if isinstance(counted, pa.Scalar):
        most = max(counted.as_py() or 0, 0)
        total = most * rows
    else:
        most = compute.max(counted).as_py() or 0
        total = compute.sum(counted).as_py() or 0
    spend(total * unit_bytes, total * unit_bytes / BYTES_OF_STEP)
    if most * unit_bytes > _MOST_OF_VALUE or total * unit_bytes > _MOST_OF_BATCH:
        raise InvalidInputError(
            f"{function} makes {int(most):,} characters or elements of one value and "
            f"{int(total):,} of one batch; deltalog makes {_MOST_OF_VALUE // unit_bytes:,} and "
            f"{_MOST_OF_BATCH // unit_bytes:,} at most"
        )


def as_array(datum: Datum, rows: int) -> Array:
    """An array; a constant is repeated for each row."""
    if not isinstance(datum, pa.Scalar):
        return datum
    constant: Any = datum
    size = size_of(constant)
    if size * rows > _MOST_OF_BATCH or is_bounded():
        check_volume("a constant", pa.scalar(size), rows=rows)
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


class Where:
    """The rows of a batch for which an expression is evaluated.

    Args:
        data: a batch.
        mask: booleans without NULL; true for these rows.

    Attributes:
        picked: these rows; None if there are none.
    """

    def __init__(self, data: Any, mask: Datum) -> None:
        self.picked: Any = data
        self._mask: Datum | None = None
        if isinstance(mask, pa.Scalar):
            mask = as_array(mask, data.num_rows)
        if compute.all(mask, min_count=0).as_py() and data.num_rows:
            return
        self._mask = mask
        has_some = compute.any(mask, min_count=0).as_py()
        self.picked = data.filter(mask) if has_some else None

    def spread(self, found: Datum) -> Datum:
        """The value of these rows, and NULL for the others."""
        if self._mask is None:
            return found
        values = as_array(found, self.picked.num_rows)
        places = compute.subtract(compute.cumulative_sum(compute.cast(self._mask, pa.int64())), 1)
        return values.take(compute.if_else(self._mask, places, pa.scalar(None, pa.int64())))
