"""Entry points of evaluation, which import `arrow` and the kernels at the first call.

Many processes never need these modules: opening a table evaluates nothing, nor does writing to a
table without constraints and generated columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalog.expressions.nodes import Expression


def evaluate(
    resolved: Expression, data: pa.RecordBatch | pa.Table
) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    """Return the expression's value for every row.

    Args:
        resolved: the result of `resolve` for the schema of `data`.
        data: columns by logical name, with the Arrow types of `schema.to_arrow_schema`.

    Returns:
        An array for a batch, a chunked array for a table.

    Raises:
        InvalidInputError: an error of Spark's ANSI mode (overflow, division by zero, a failed
            cast).

    Cost: one pass of vectorised kernels per node. Kernels that run by row are documented as such.
    """
    from deltalog.expressions import arrow  # noqa: PLC0415  # imports the kernels of all functions

    return arrow.evaluate(resolved, data)


def filter_mask(
    resolved: Expression, data: pa.RecordBatch | pa.Table
) -> pa.BooleanArray | pa.ChunkedArray[Any]:
    """Return the rows for which the condition is true; NULL counts as false, as in WHERE."""
    from deltalog.expressions import arrow  # noqa: PLC0415  # as above

    return arrow.filter_mask(resolved, data)


def fold(resolved: Expression) -> Expression:
    """Replace every constant part by its value; see `arrow.fold`."""
    from deltalog.expressions import arrow  # noqa: PLC0415  # as above

    return arrow.fold(resolved)
