"""The error for rows that violate a constraint, with some of them.

Protocol: Column Invariants, CHECK Constraints
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import ConstraintViolationError
from deltalog.schema.readable import readable_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from deltalog.kernels import Array

_MAX_EXAMPLES: Final = 5
_MOST_COMPARED: Final = 1000


def violation(what: str, name: str, batch: pa.RecordBatch, rows: Array) -> ConstraintViolationError:
    """The error that a constraint is violated, with examples.

    Args:
        what: the constraint, for the message.
        name: of the constraint, or of the column.
        batch: the columns to show.
        rows: numbers of the rows that violate it.
    """
    count = len(rows)
    looked_at = readable_rows(batch.take(rows.slice(0, _MOST_COMPARED)))
    examples = distinct(looked_at)[:_MAX_EXAMPLES]
    shown = ", ".join(repr(example) for example in examples)
    more = "" if len(examples) < _MAX_EXAMPLES or count == len(examples) else ", …"
    return ConstraintViolationError(
        f"cannot write the data: {what} is violated by {count} of the {batch.num_rows} rows that "
        f"were looked at: {shown}{more}",
        constraint=name,
        num_rows=count,
        examples=examples,
    )


def distinct(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that look different, each once: the same one says nothing twice."""
    return list({repr(row): row for row in rows}.values())
