"""Operators that give NULL where they would be an error: `try_add`, `try_divide`, …."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions.arithmetic import calculate
from deltalog.expressions.functions import TRIED
from deltalog.expressions.rows import as_array, nulls
from deltalog.kernels import Array, Datum

if TYPE_CHECKING:
    from collections.abc import Callable


def _attempt(operator: str, left: Datum, right: Datum) -> Datum:
    """Cost: a pass over the column, and a few more for each row that is an error."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _attempt(operator, as_array(left, 1), as_array(right, 1))[0]
    rows = max(len(side) for side in (left, right) if not isinstance(side, pa.Scalar))
    pieces = _pieces(operator, as_array(left, rows), as_array(right, rows))
    known = [piece.type for piece in pieces if not isinstance(piece, int)]
    result = known[0] if known else calculate(operator, left[:0], right[:0]).type
    return pa.concat_arrays(
        [nulls(piece, result) if isinstance(piece, int) else piece for piece in pieces]
    )


def _pieces(operator: str, left: Array, right: Array) -> list[Any]:
    """The results piece by piece; of rows that are errors, their number."""
    try:
        return [calculate(operator, left, right)]
    except InvalidInputError:
        if len(left) == 1:
            return [1]
    half = len(left) // 2
    return [
        *_pieces(operator, left[:half], right[:half]),
        *_pieces(operator, left[half:], right[half:]),
    ]


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    name: partial(_attempt, operator) for name, operator in TRIED.items()
}
