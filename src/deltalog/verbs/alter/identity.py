"""The verb that moves an identity column's high water mark past explicitly written values.

Protocol: Identity Columns
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog.errors import InvalidInputError
from deltalog.features.identity_columns import (
    MAX_VALUE,
    MIN_VALUE,
    identity_columns,
    with_high_water_marks,
)
from deltalog.kernels import pc
from deltalog.names import name_key
from deltalog.scan import plan_scan
from deltalog.verbs.alter.staging import Alteration, change_schema

if TYPE_CHECKING:
    from deltalog.features.identity_columns import IdentityColumn
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True)
class SyncIdentity(Alteration):
    """Make an identity column continue after the values that are in the table.

    If the high water mark is past them already, nothing changes: it never moves back.
    """

    column: str
    name: ClassVar[str] = "SYNC IDENTITY"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Set the column's high water mark.

        Raises:
            InvalidInputError: the column is no identity column, or the next value would not fit.

        Cost: reads the column.
        """
        schema = transaction.configuration.schema
        known = {name_key(found.name): found for found in identity_columns(schema)}
        identity = known.get(name_key(self.column))
        if identity is None:
            raise InvalidInputError(
                f"{self.column!r} is no identity column of {transaction.store.root}"
            )
        transaction.record_read(None)
        last = _last_value(transaction, identity)
        if last is not None and identity.further(last, identity.start) == last:
            mark = identity.member_from(last)
            if not MIN_VALUE <= mark <= MAX_VALUE:
                raise InvalidInputError(
                    f"the identity column {identity.name!r} has no values left after {last}"
                )
            change_schema(transaction, with_high_water_marks(schema, {identity.name: mark}))
        return {"column": identity.name}


def _last_value(transaction: PendingTransaction, column: IdentityColumn) -> int | None:
    """Return the value in the table that is furthest in the direction of the steps."""
    if transaction.snapshot is None:
        return None
    last: int | None = None
    for batch in plan_scan(transaction.snapshot, columns=[column.name]).to_batches():
        ends: Any = pc.min_max(batch.column(0)).as_py()
        found = ends["max" if column.step > 0 else "min"]
        if found is not None:
            last = found if last is None else column.further(last, found)
    return last
