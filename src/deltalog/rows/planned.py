"""What an engine plans for a DELETE, UPDATE or MERGE, and the numbers of what it did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Numbers of updated, deleted and inserted rows.

    Args:
        updated: updated rows of the table that match a row of the source.
        deleted: deleted rows of the table that match a row of the source.
        updated_not_matched_by_source: updated rows that match no row of a source.
        deleted_not_matched_by_source: deleted rows that match no row of a source; None if whole
            files were removed and the log has no `numRecords` for them.
        inserted: new rows.
    """

    updated: int = 0
    deleted: int = 0
    updated_not_matched_by_source: int = 0
    deleted_not_matched_by_source: int | None = 0
    inserted: int = 0

    @property
    def all_updated(self) -> int:
        """All updated rows."""
        return self.updated + self.updated_not_matched_by_source

    @property
    def all_deleted(self) -> int:
        """All deleted rows; an unknown number counts as 0."""
        return self.deleted + (self.deleted_not_matched_by_source or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """Metrics of the existing files that held changed rows.

    Args:
        num_copied_rows: unchanged rows of rewritten files.
        num_removed_files: files that left the table.
        num_removed_bytes: size of those.
        num_rewritten_files: removed files whose remaining rows were rewritten.
        num_vectors_added: files with a new deletion vector.
        num_vectors_updated: of those, files that had one before.
        num_vectors_removed: deletion vectors that were replaced or removed with their file.
    """

    num_copied_rows: int = 0
    num_removed_files: int = 0
    num_removed_bytes: int = 0
    num_rewritten_files: int = 0
    num_vectors_added: int = 0
    num_vectors_updated: int = 0
    num_vectors_removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeMetrics:
    """The result of a DELETE, UPDATE or MERGE, in rows and files.

    Args:
        rows: numbers of changed rows.
        files: metrics of the files that held them.
        num_added_files: new data files.
        num_added_bytes: size of those.
        num_change_files: files for the change feed.
        num_source_rows: rows of the source.
        num_files: live files before the change.
        num_scanned_files: files that pruning left, in which matching rows were searched.
        num_touched_files: files with changed rows.
        scan_ms: duration of the search.
        rewrite_ms: duration of the writing.
    """

    rows: RowCounts
    files: FileCounts = field(default_factory=FileCounts)
    num_added_files: int = 0
    num_added_bytes: int = 0
    num_change_files: int = 0
    num_source_rows: int = 0
    num_files: int = 0
    num_scanned_files: int = 0
    num_touched_files: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0

    def logged_times(self) -> dict[str, int]:
        """Return the durations as Delta Spark's operationMetrics."""
        return {
            "executionTimeMs": self.scan_ms + self.rewrite_ms,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": self.rewrite_ms,
        }

    def times(self) -> dict[str, int]:
        """Return the durations under the snake_case names of the API's metrics."""
        return {
            "execution_time_ms": self.scan_ms + self.rewrite_ms,
            "scan_time_ms": self.scan_ms,
            "rewrite_time_ms": self.rewrite_ms,
        }


class PlannedChange(Protocol):
    """A change ready to be applied; its rows may not be searched yet.

    Either `apply` or `preview` is called, once.
    """

    def apply(self) -> ChangeMetrics:
        """Write the changed rows, and stage the files into the transaction."""
        ...

    def preview(self) -> tuple[ChangeMetrics, pa.Table]:
        """Return the result of `apply` without writing, and the decision for each file.

        The table is that of `rows.decide.explain_decisions`.
        """
        ...

    def explain(self) -> str:
        """Describe as text how the rows were found."""
        ...
