"""Check the existing rows of a table against a new constraint or NOT NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import ConstraintViolationError, InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.scan import plan_scan
from deltalog.schema.readable import readable_rows
from deltalog.write.violations import distinct

if TYPE_CHECKING:
    from deltalog.expressions import Expression
    from deltalog.transaction import PendingTransaction

_EXAMPLES: Final = 5
_MOST_COMPARED: Final = 1000


def check_existing_rows(
    pending: PendingTransaction, what: str, violation: Expression, *, constraint: str
) -> None:
    """Raise if existing rows violate a rule; the commit then conflicts with all added rows.

    Args:
        pending: the transaction; it must not add files.
        what: description of the rule, for messages.
        violation: a condition that is true for rows that violate the rule.
        constraint: the rule's name, for the error.

    Raises:
        ConstraintViolationError: with the number of violating rows, and examples.
        InvalidInputError: the transaction has staged files, or changes the schema.

    Cost: the columns of the rule, from the files that data skipping leaves.
    """
    snapshot = pending.snapshot
    pending.record_read(None)
    if snapshot is None or pending.names_files:
        if pending.names_files:
            raise InvalidInputError(
                f"cannot set {what} in a transaction that writes rows: commit them first"
            )
        return
    if pending.configuration.schema != snapshot.configuration.schema:
        raise InvalidInputError(
            f"cannot set {what} in a transaction that changes the schema: commit that first"
        )
    names = list(dict.fromkeys(path[0] for path in sorted(columns_of(violation))))
    scan = plan_scan(snapshot, columns=names or None, predicate=violation)
    count = 0
    examples: list[dict[str, Any]] = []
    for batch in scan.to_batches():
        count += batch.num_rows
        if len(examples) < _EXAMPLES:
            found = [*examples, *readable_rows(batch.slice(0, _MOST_COMPARED))]
            examples = distinct(found)[:_EXAMPLES]
    if count:
        rows = "row breaks" if count == 1 else "rows break"
        raise ConstraintViolationError(
            f"cannot set {what} of {snapshot.store.root}: {count} {rows} it, such as "
            f"{', '.join(map(repr, examples))}",
            constraint=constraint,
            num_rows=count,
            examples=examples,
        )
