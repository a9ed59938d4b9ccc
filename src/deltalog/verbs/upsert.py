"""The merge that most people mean: rows by key, new ones added and known ones replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.expressions import Column
from deltalog.expressions.nodes import And, Comparison
from deltalog.rows.merge.clauses import Action, Clause, Merge, When
from deltalog.rows.merge.scope import SOURCE, TARGET

if TYPE_CHECKING:
    from collections.abc import Sequence


def upsert(
    key: str | Sequence[str],
    *,
    null_safe: bool = False,
    merge_schema: bool = False,
    use_deletion_vectors: bool | None = None,
) -> Merge:
    """Rows of the source replace those of the table that have the same key; the others are added.

    Args:
        key: the columns that identify a row, in both.
        null_safe: NULL is a key like any other; otherwise rows without a key are always added.
        merge_schema: columns that only the source has are added to the table.
        use_deletion_vectors: for files that keep rows; None does what the table has enabled.
    """
    names = [key] if isinstance(key, str) else list(key)
    if not names:
        raise InvalidInputError("an upsert needs at least one key column")
    operator = "<=>" if null_safe else "="
    parts = tuple(
        Comparison(operator, Column((TARGET, name)), Column((SOURCE, name))) for name in names
    )
    return Merge(
        predicate=parts[0] if len(parts) == 1 else And(parts),
        clauses=(
            Clause(when=When.MATCHED, action=Action.UPDATE),
            Clause(when=When.NOT_MATCHED, action=Action.INSERT),
        ),
        merge_schema=merge_schema,
        use_deletion_vectors=use_deletion_vectors,
    )
