"""Update the rows for which a predicate is true.

Protocol: Deletion Vectors, Add CDC File, Generated Columns, Row Tracking
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog.errors import InvalidInputError
from deltalog.operations.changes.request import Action, ChangeMetrics, ChangeRequest, Clause, When
from deltalog.operations.operation import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True)
class Updated:
    """The result of an UPDATE."""

    changed: ChangeMetrics

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        changed, files = self.changed, self.changed.files
        return {
            "numRemovedFiles": files.num_removed_files,
            "numRemovedBytes": files.num_removed_bytes,
            "numCopiedRows": files.num_copied_rows,
            "numDeletionVectorsAdded": files.num_vectors_added,
            "numDeletionVectorsUpdated": files.num_vectors_updated,
            "numDeletionVectorsRemoved": files.num_vectors_removed,
            "numAddedFiles": changed.num_added_files,
            "numAddedBytes": changed.num_added_bytes,
            "numUpdatedRows": changed.rows.updated_not_matched_by_source,
            "numAddedChangeFiles": changed.num_change_files,
            **changed.logged_times(),
        }

    def result(self) -> dict[str, Any]:
        """Return the numbers of rows and files, and the durations in milliseconds."""
        changed, files = self.changed, self.changed.files
        return {
            "num_added_files": changed.num_added_files,
            "num_removed_files": files.num_removed_files,
            "num_updated_rows": changed.rows.updated_not_matched_by_source,
            "num_copied_rows": files.num_copied_rows,
            "num_rewritten_files": files.num_rewritten_files,
            "num_deletion_vectors_added": files.num_vectors_added,
            "execution_time_ms": changed.scan_ms + changed.rewrite_ms,
            "scan_time_ms": changed.scan_ms,
        }


@dataclass(frozen=True, slots=True)
class Update(Operation[Updated]):
    """Update rows.

    Args:
        request: a change without a source and with one UPDATE clause.
    """

    request: ChangeRequest
    name: ClassVar[str] = "UPDATE"
    doing: ClassVar[str] = "updating"
    skips_empty: ClassVar[bool] = True

    @classmethod
    def where(cls, predicate: Any, values: Mapping[Any, Any], **options: Any) -> Update:
        """Return the operation that updates rows where a predicate is true; None means all rows.

        Args:
            predicate: selects the rows to update.
            values: column → its new value, computed from the values before the update. A dotted
                path names a field of a struct.
            options: options of `ChangeRequest`.

        Raises:
            InvalidInputError: no new values are given.
        """
        if not values:
            raise InvalidInputError("cannot update: expected at least one column with a new value")
        clause = Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.UPDATE, values=values)
        return cls(ChangeRequest(condition=predicate, clauses=(clause,), **options))

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Updated:
        """Find the rows, write their new versions, and mask or rewrite the old files."""
        return Updated(engine.plan_change(transaction, self.request).apply())

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """Return the numbers of `result`, and `files`: a table with the decision for each file."""
        found, files = engine.plan_change(transaction, self.request).preview()
        return {**Updated(found).result(), "files": files}
