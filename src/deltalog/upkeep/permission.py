"""What upkeep a catalog allows of a table whose commits it decides on.

Owns the rule that nothing is allowed which the catalog does not allow by name. Checkpoints,
checksums and compacted logs need no permission: every client lives of them.

Protocol: Maintenance Operations on Catalog-managed Tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from deltalog.catalog import MaintenanceOperation
    from deltalog.snapshot import Snapshot


def allows_maintenance(snapshot: Snapshot, operation: MaintenanceOperation) -> bool:
    """Whether a client may do it: of tables without a catalog that decides, always."""
    if not snapshot.configuration.is_catalog_managed:
        return True
    tail = snapshot.log_tail
    return tail is not None and operation in tail.allowed


def check_maintenance(snapshot: Snapshot, operation: MaintenanceOperation, doing: str) -> None:
    """Refuse what the catalog of a table does not allow.

    "By default, maintenance operations are prohibited unless the managing catalog explicitly
    permits the client to run them."

    Args:
        snapshot: the version that would be changed.
        operation: what the catalog would have to allow.
        doing: the operation in a verb's words, for the error.

    Raises:
        InvalidInputError: it does not.
    """
    if not allows_maintenance(snapshot, operation):
        raise InvalidInputError(
            f"cannot {doing} {snapshot.store.root}: its catalog decides on that, and does not "
            f"allow clients {operation.value} of the table; leave it to the catalog, or if you are "
            "in charge of one whose server cannot say so, open it with "
            f"UnityCatalog(…, maintenance=[{operation.value!r}])"
        )
