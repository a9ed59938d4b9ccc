"""Arrow's values as Python's, which lacks some of them, and as what people read.

Protocol: none
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.civil import date_text, moment_text
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
    """Return the values of a column for people: as texts where Python does not have them.

    It has no nanoseconds without pandas, no years before 1 and after 9999, and no texts that are
    not UTF-8.
    """
    if not has_nanoseconds(values.type):
        with contextlib.suppress(ValueError, ArithmeticError):
            return list(values.to_pylist())
        return [_readable(value) for value in values]
    with contextlib.suppress(pa.ArrowException, ValueError):
        return list(values.cast(pa.string()).to_pylist())
    return ["…"] * len(values)


def _readable(value: Any) -> Any:
    """One value, or the parts of one that has parts, as `readable_values` gives them."""
    kind = value.type
    if has_nanoseconds(kind):
        return str(value.cast(pa.string()).as_py())
    try:
        return value.as_py()
    except (ValueError, ArithmeticError):
        parts: Any = value
        if isinstance(value, pa.Date32Scalar):
            return date_text(parts.value)
        if isinstance(value, pa.TimestampScalar) and kind.unit == "us":
            return f"{moment_text(parts.value, sep=' ')}{'' if kind.tz is None else '+00:00'}"
        if isinstance(value, pa.StructScalar):
            return {name: _readable(part) for name, part in value.items()}
        if isinstance(value, pa.MapScalar):
            return [tuple(map(_readable, pair.values())) for pair in parts.values]
        if isinstance(value, pa.ListScalar):
            return [_readable(part) for part in parts.values]
        return "…"  # such as a text that is not UTF-8


def python_values(values: Array, what: str, advice: str) -> list[Any]:
    """Return the values of a column as Python's.

    Args:
        values: of one column.
        what: has them, for the error.
        advice: what to do instead.

    Raises:
        InvalidInputError: there is none for one of them: a year before 1 or after 9999, a text
            that is not UTF-8, or nanoseconds where pandas is not installed.
    """
    try:
        return list(values.to_pylist())
    except (ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"cannot give the values of {what} as Python's: {error}; {advice}"
        ) from error
