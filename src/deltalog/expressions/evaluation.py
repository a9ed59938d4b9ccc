"""Evaluating expressions, without importing `arrow` and the kernels before the first call.

Opening a table evaluates nothing, nor does writing to a table without rules for its
values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalog.expressions.nodes import Expression


def evaluate(
    resolved: Expression, data: pa.RecordBatch | pa.Table
) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    """The expression's value for every row.

    Args:
        resolved: by `resolve`, for the schema of `data`.
        data: columns by logical name, with the Arrow types of `schema.to_arrow_schema`.

    Returns:
        An array for a batch, a chunked array for a table.

    Raises:
        InvalidInputError: an error of Spark's ANSI mode (overflow, division by zero, a failed
            cast).

    Cost: one pass of vectorised kernels per node; some kernels go row by row, as they say.
    """
    from deltalog.expressions import arrow  # noqa: PLC0415  # with the kernels of all functions

    return arrow.evaluate(resolved, data)


def filter_mask(
    resolved: Expression, data: pa.RecordBatch | pa.Table
) -> pa.BooleanArray | pa.ChunkedArray[Any]:
    """The rows for which the condition is true; NULL counts as false, as in WHERE."""
    from deltalog.expressions import arrow  # noqa: PLC0415  # as above

    return arrow.filter_mask(resolved, data)


def fold(resolved: Expression) -> Expression:
    """The expression with every constant part replaced by its value (`folding.fold`)."""
    from deltalog.expressions import folding  # noqa: PLC0415  # as above

    return folding.fold(resolved)
