"""Delete the rows for which a predicate is true.

Protocol: Deletion Vectors, Add File and Remove File, Add CDC File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog._util.kernels import exact_sum
from deltalog.operations.changes.request import ChangeMetrics, ChangeRequest, deletion
from deltalog.operations.operation import Operation

if TYPE_CHECKING:
    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of a DELETE."""

    changed: ChangeMetrics

    def metrics(self) -> dict[str, int]:
        """Return the metrics under Delta Spark's names, without metrics that are unknown."""
        changed, files = self.changed, self.changed.files
        found = {
            "numDeletedRows": changed.rows.deleted_not_matched_by_source,
            "numCopiedRows": files.num_copied_rows,
            "numRemovedFiles": files.num_removed_files,
            "numRemovedBytes": files.num_removed_bytes,
            "numAddedFiles": changed.num_added_files,
            "numAddedBytes": changed.num_added_bytes,
            "numDeletionVectorsAdded": files.num_vectors_added,
            "numDeletionVectorsUpdated": files.num_vectors_updated,
            "numDeletionVectorsRemoved": files.num_vectors_removed,
            "numAddedChangeFiles": changed.num_change_files,
            **changed.logged_times(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def result(self) -> dict[str, Any]:
        """Return the numbers of rows and files, and the durations in milliseconds."""
        changed, files = self.changed, self.changed.files
        return {
            "num_added_files": changed.num_added_files + files.num_vectors_added,
            "num_removed_files": files.num_removed_files + files.num_vectors_added,
            "num_deleted_rows": changed.rows.deleted_not_matched_by_source,
            "num_copied_rows": files.num_copied_rows,
            "num_rewritten_files": files.num_rewritten_files,
            "num_deletion_vectors": files.num_vectors_added,
            **changed.times(),
        }


@dataclass(frozen=True, slots=True)
class Delete(Operation[Deleted]):
    """Delete rows.

    Args:
        request: the rows to delete; created by `changes.request.deletion`.
    """

    request: ChangeRequest
    name: ClassVar[str] = "DELETE"
    doing: ClassVar[str] = "deleting"
    skips_empty: ClassVar[bool] = True

    @classmethod
    def where(cls, predicate: Any, **options: Any) -> Delete:
        """Return the operation that deletes rows where a predicate is true; None means all rows."""
        return cls(deletion(predicate, **options))

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Deleted:
        """Find the rows, and mask or rewrite each file that contains them."""
        return Deleted(engine.plan_change(transaction, self.request).apply())

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """Return the numbers of `result`, and `files`: a table with the decision for each file."""
        found, files = engine.plan_change(transaction, self.request).preview()
        return {**Deleted(found).result(), "files": files}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """The result of a TRUNCATE.

    Args:
        num_removed_files: number of removed files.
        num_removed_bytes: total size of the removed files.
    """

    num_removed_files: int
    num_removed_bytes: int

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        return {
            "numRemovedFiles": self.num_removed_files,
            "numRemovedBytes": self.num_removed_bytes,
            "numAddedFiles": 0,
        }

    def result(self) -> dict[str, int]:
        """Return the number and size of removed files."""
        return {
            "num_removed_files": self.num_removed_files,
            "num_removed_bytes": self.num_removed_bytes,
        }


@dataclass(frozen=True, slots=True)
class Truncate(Operation[Truncated]):
    """Remove all files from the table; schema, properties and history do not change."""

    name: ClassVar[str] = "TRUNCATE"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Truncated:
        """Stage the removal of all files. Cost: reads the file list from the log."""
        del engine
        files = transaction.read_snapshot.files()
        transaction.record_read(None)
        transaction.remove_files(files, data_change=True)
        return Truncated(
            num_removed_files=files.num_rows,
            num_removed_bytes=exact_sum(files.column("size")),
        )
