"""Arrow's values as Python's, which lacks some of them, and as what people read.

Protocol: none
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.moments import has_nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.kernels import Array


def readable_rows(rows: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Return rows for people: as texts where Python has no such values, see `readable_values`."""
    names = rows.schema.names
    return [dict(zip(names, row, strict=True)) for row in readable_tuples(rows)]


def readable_tuples(rows: pa.RecordBatch | pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield rows as `readable_rows`, whose columns may have the same name."""
    return zip(*(readable_values(column) for column in rows.columns), strict=True)


def readable_values(values: Array) -> list[Any]:
    """Return the values of a column for people: as texts if Python does not have all of them.

    It has no nanoseconds without pandas, no years after 9999, and no texts that are not UTF-8.
    """
    if not has_nanoseconds(values.type):
        with contextlib.suppress(ValueError, ArithmeticError):
            return list(values.to_pylist())
    with contextlib.suppress(pa.ArrowException, ValueError):
        return list(values.cast(pa.string()).to_pylist())
    return ["…"] * len(values)  # such as a struct with such a value


def python_values(values: Array, what: str, advice: str) -> list[Any]:
    """Return the values of a column as Python's.

    Args:
        values: of one column.
        what: has them, for the error.
        advice: what to do instead.

    Raises:
        InvalidInputError: there is none for one of them: a year after 9999, a text that is not
            UTF-8, or nanoseconds where pandas is not installed.
    """
    try:
        return list(values.to_pylist())
    except (ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"cannot give the values of {what} as Python's: {error}; {advice}"
        ) from error
