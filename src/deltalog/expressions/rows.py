"""Applying Python functions to Arrow arrays and constants, where Arrow has no kernel."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import Array, Datum, compute
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_OF_VALUE: Final = 1 << 27
_MOST_OF_BATCH: Final = (1 << 31) - 1  # the maximum 32-bit offset
# The estimated number of bytes that a character or an element needs in Python.
_OF_PYTHON: Final = 8
_STEPS_OF_ROW: Final = 100
_SIZED: Final = (str, bytes, list)
YES: Final = True
NO: Final = False


def by_row(function: Callable[..., Any], result: pa.DataType, *arguments: Datum) -> Datum:
    """Apply a Python function to each row's values; NULL if one of them is NULL.

    If all arguments are constants, the result is a constant. Cost: by row.
    """
    return with_nulls(
        lambda *row: None if any(value is None for value in row) else function(*row),
        result,
        *arguments,
    )


def with_nulls(function: Callable[..., Any], result: pa.DataType, *arguments: Datum) -> Datum:
    """Apply a Python function that accepts None for NULL; otherwise like `by_row`."""
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
    """Wrap a function so that its arguments and results are subtracted from the rule budget."""

    def run(*row: Any) -> Any:
        # Constants are counted again for each row.
        size = sum(len(value) for value in row if isinstance(value, _SIZED))
        spend(steps=_STEPS_OF_ROW + size)
        found = function(*row)
        spend(_OF_PYTHON * len(found) if isinstance(found, _SIZED) else 0)
        return found

    return run


@contextmanager
def refusing(message: str) -> Iterator[None]:
    """Convert errors of Arrow in the block to InvalidInputError with the given message."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise InvalidInputError(message) from error


def is_constant(*arguments: Datum) -> bool:
    """Whether all arguments are constants other than NULL."""
    return all(isinstance(argument, pa.Scalar) and argument.is_valid for argument in arguments)


def python_values(argument: Datum, rows: int) -> list[Any]:
    """Return the values of an array as Python values; a constant is repeated for each row."""
    try:
        if isinstance(argument, pa.Scalar):
            return [argument.as_py()] * rows
        values: list[Any] = argument.to_pylist()
    except (OverflowError, ValueError) as error:
        # Python has no dates and timestamps outside of the years 1 to 9999.
        raise InvalidInputError(f"Python cannot represent a {argument.type}: {error}") from error
    return values


def flat(column: Any) -> Array:
    """Return a column of a batch or a table as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def taken(column: Array, rows: Array) -> Array:
    """Return the values at the given row numbers, which may repeat."""
    spend(column.nbytes / max(len(column), 1) * len(rows))
    return column.take(rows)


def loosened(arrow_type: Any) -> Any:
    """Return the type with every element and field nullable."""
    if pt.is_list(arrow_type):
        return pa.list_(pa.field("element", loosened(arrow_type.value_type)))
    if pt.is_struct(arrow_type):
        return pa.struct([pa.field(part.name, loosened(part.type)) for part in arrow_type])
    if pt.is_map(arrow_type):
        return pa.map_(arrow_type.key_type, loosened(arrow_type.item_type))
    return arrow_type


def choose(mask: Array, chosen: Datum, others: Datum) -> Datum:
    """Return `chosen` where the mask is true, and `others` elsewhere.

    Both have the same type in SQL; in Arrow, the nullability of nested parts may differ.
    """
    if chosen.type != others.type:
        both = loosened(chosen.type)
        chosen, others = compute.cast(chosen, both), compute.cast(others, both)
    return compute.if_else(mask, chosen, others)


def check_volume(function: str, sizes: Datum, *, rows: int = 1, unit_bytes: int = 1) -> None:
    """Refuse a result that would exhaust the memory; Spark allows 2 GiB for each value.

    Args:
        function: the name of the function, for the message.
        sizes: the number of characters or elements of each row. A constant is multiplied by `rows`.
        rows: the number of rows of a constant.
        unit_bytes: the size of a character or element in bytes.

    Raises:
        InvalidInputError: a value, or the whole batch, has too many characters or elements.
    """
    # Compute with floats, because they do not overflow.
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
            f"{int(total):,} of one batch; at most {_MOST_OF_VALUE // unit_bytes:,} and "
            f"{_MOST_OF_BATCH // unit_bytes:,} are allowed"
        )


def as_array(datum: Datum, rows: int) -> Array:
    """Return a datum as an array; a constant is repeated for each row."""
    if not isinstance(datum, pa.Scalar):
        return datum
    constant: Any = datum
    size = size_of(constant)
    if size * rows > _MOST_OF_BATCH or is_bounded():
        check_volume("a constant", pa.scalar(size), rows=rows)
    return pa.repeat(constant, rows) if constant.is_valid else nulls(rows, constant.type)


def nulls(rows: int, arrow_type: Any) -> Array:
    """Return an array of NULLs, one for each row."""
    return pa.nulls(rows, arrow_type)


def on_array(function: Callable[[Array], Array], datum: Datum) -> Datum:
    """Apply a function of an array to an array or to a constant."""
    if isinstance(datum, pa.Scalar):
        return function(as_array(datum, 1))[0]
    return function(datum)


def row_numbers(rows: int) -> Array:
    """Return 0, 1, 2, … as unsigned integers."""
    return compute.indices_nonzero(pa.repeat(YES, rows))


class Where:
    """The rows of a batch for which an expression is evaluated.

    Args:
        data: a batch.
        mask: booleans without NULL; true for the rows to evaluate.

    Attributes:
        picked: the data of the rows to evaluate; None if there are no such rows.
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
        """Expand the values of the picked rows to all rows; the other rows are NULL."""
        if self._mask is None:
            return found
        values = as_array(found, self.picked.num_rows)
        places = compute.subtract(compute.cumulative_sum(compute.cast(self._mask, pa.int64())), 1)
        return values.take(compute.if_else(self._mask, places, pa.scalar(None, pa.int64())))


# --- Limits on the memory and time of evaluating an expression


BASE_BYTES: Final = 512 << 20
BYTES_OF_ROW: Final = 4 << 10
BYTES_OF_BYTE: Final = 64
BASE_STEPS: Final = 200_000_000
STEPS_OF_ROW: Final = 10_000
STEPS_OF_BYTE: Final = 2_000
# The number of steps of a kernel call, in addition to the steps for its rows.
STEPS_OF_CALL: Final = 1_000
# If a kernel writes lists or strings, this number of bytes counts as one step.
BYTES_OF_STEP: Final = 2


@dataclass(slots=True)
class RuleBudget:
    """The remaining memory and steps for evaluating a constraint or generated column.

    Args:
        what: the constraint or column, for the error message.
        rows: the number of rows.
        most_bytes: the limit on bytes.
        most_steps: the limit on steps.
        num_bytes: the number of remaining bytes.
        steps: the number of remaining steps.
    """

    what: str
    rows: int
    most_bytes: int
    most_steps: int
    num_bytes: float = 0
    steps: float = 0

    def __post_init__(self) -> None:
        """Start with the full limits."""
        self.num_bytes, self.steps = self.most_bytes, self.most_steps

    def spend(self, num_bytes: float, steps: float) -> None:
        """Subtract from the remaining budget.

        Raises:
            InvalidInputError: the budget is exhausted.
        """
        self.num_bytes -= num_bytes
        self.steps -= steps
        if self.num_bytes < 0 or self.steps < 0:
            needs, limit = (
                ("bytes", self.most_bytes) if self.num_bytes < 0 else ("steps", self.most_steps)
            )
            raise InvalidInputError(
                f"cannot evaluate a table's expression for {self.rows:,} row(s): it needs more "
                f"than the limit of {limit:,} {needs}; change or drop {self.what}"
            )


_ACTIVE: ContextVar[RuleBudget | None] = ContextVar("deltalog_expression_budget", default=None)


@contextmanager
def bounded(what: str, data: pa.RecordBatch) -> Iterator[RuleBudget]:
    """Limit the memory and steps of all evaluations in the block.

    Args:
        what: the constraint or column, for the error message.
        data: the rows for which it is evaluated.
    """
    rows, size = max(data.num_rows, 1), data.nbytes
    budget = RuleBudget(
        what,
        rows,
        BASE_BYTES + BYTES_OF_ROW * rows + BYTES_OF_BYTE * size,
        BASE_STEPS + STEPS_OF_ROW * rows + STEPS_OF_BYTE * size,
    )
    token = _ACTIVE.set(budget)
    try:
        yield budget
    finally:
        _ACTIVE.reset(token)


def spend(num_bytes: float = 0, steps: float = 0) -> None:
    """Subtract from the budget of the evaluation, if there is a budget.

    Raises:
        InvalidInputError: the budget is exhausted; the message names the constraint or column.
    """
    budget = _ACTIVE.get()
    if budget is not None:
        budget.spend(num_bytes, steps)


def is_bounded() -> bool:
    """Whether the evaluation has a budget."""
    return _ACTIVE.get() is not None


def spent_on(value: Any, *, is_made: bool) -> Any:
    """Return the value of a node; if it was computed, subtract its size from the rule budget."""
    budget = _ACTIVE.get()
    if budget is not None and is_made:
        if isinstance(value, pa.Scalar):
            budget.spend(size_of(value), STEPS_OF_CALL)
        else:
            budget.spend(value.nbytes, STEPS_OF_CALL + len(value) + value.nbytes / BYTES_OF_STEP)
    return value


def size_of(constant: Any) -> int:
    """Estimate the size of a constant in bytes, as an element of an array."""
    if not constant.is_valid:
        return 1
    if isinstance(constant, pa.StringScalar | pa.BinaryScalar):
        return 4 + int(constant.as_buffer().size)
    if isinstance(constant, pa.ListScalar):  # including MapScalar
        values: Any = constant.values
        return 4 + (0 if values is None else int(values.nbytes))
    if isinstance(constant, pa.StructScalar):
        return sum(size_of(part) for part in constant.values()) + 1
    return 16
