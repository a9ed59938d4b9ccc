"""Merge the rows of a source into the table: update, delete and insert rows.

Protocol: Deletion Vectors, Add CDC File, Row Tracking
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import Column
from deltalog.expressions.nodes import Comparison
from deltalog.expressions.trees import conjunction
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.merge.source import SOURCE, TARGET
from deltalog.operations.changes.request import Action, ChangeMetrics, ChangeRequest, Clause, When
from deltalog.operations.operation import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction

_USUAL_FILES: Final = FileOptions()


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a MERGE."""

    changed: ChangeMetrics

    @property
    def num_output_rows(self) -> int:
        """The number of rows that were inserted, updated or copied to new files."""
        rows = self.changed.rows
        return rows.inserted + rows.all_updated + self.changed.files.num_copied_rows

    def metrics(self) -> dict[str, int | str]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        changed, rows, files = self.changed, self.changed.rows, self.changed.files
        return {
            "numSourceRows": changed.num_source_rows,
            "numTargetRowsInserted": rows.inserted,
            "numTargetRowsUpdated": rows.all_updated,
            "numTargetRowsMatchedUpdated": rows.updated,
            "numTargetRowsNotMatchedBySourceUpdated": rows.updated_not_matched_by_source,
            "numTargetRowsDeleted": rows.all_deleted,
            "numTargetRowsMatchedDeleted": rows.deleted,
            "numTargetRowsNotMatchedBySourceDeleted": rows.deleted_not_matched_by_source or 0,
            "numTargetRowsCopied": files.num_copied_rows,
            "numOutputRows": self.num_output_rows,
            "numTargetFilesAdded": changed.num_added_files,
            "numTargetFilesRemoved": files.num_removed_files,
            "numTargetBytesAdded": changed.num_added_bytes,
            "numTargetBytesRemoved": files.num_removed_bytes,
            "numTargetDeletionVectorsAdded": files.num_vectors_added,
            "numTargetDeletionVectorsUpdated": files.num_vectors_updated,
            "numTargetDeletionVectorsRemoved": files.num_vectors_removed,
            "numTargetChangeFilesAdded": changed.num_change_files,
            **changed.logged_times(),
        }

    def result(self) -> dict[str, Any]:
        """Return the numbers of rows and files, and the durations in milliseconds."""
        changed, rows, files = self.changed, self.changed.rows, self.changed.files
        return {
            "num_source_rows": changed.num_source_rows,
            "num_target_rows_inserted": rows.inserted,
            "num_target_rows_updated": rows.all_updated,
            "num_target_rows_deleted": rows.all_deleted,
            "num_target_rows_copied": files.num_copied_rows,
            "num_output_rows": self.num_output_rows,
            "num_target_files_scanned": changed.num_scanned_files,
            "num_target_files_skipped_during_scan": changed.num_files - changed.num_scanned_files,
            "num_target_files_added": changed.num_added_files,
            "num_target_files_removed": files.num_removed_files,
            "num_target_files_rewritten": files.num_rewritten_files,
            "num_target_deletion_vectors_added": files.num_vectors_added,
            **changed.times(),
        }


@dataclass(frozen=True, slots=True)
class Merge(Operation[Merged]):
    """Merge rows of a source into the table.

    Args:
        request: the source, conditions and clauses. The source may have any type that
            `Engine.open_merge_source` accepts.
    """

    request: ChangeRequest
    name: ClassVar[str] = "MERGE"
    doing: ClassVar[str] = "merging"
    skips_empty: ClassVar[bool] = True

    def with_clause(self, clause: Clause) -> Merge:
        """Return the merge with an additional clause."""
        clauses = (*self.request.clauses, clause)
        return replace(self, request=replace(self.request, clauses=clauses))

    def with_source(self, source: Any) -> Merge:
        """Return the merge with another source."""
        return replace(self, request=replace(self.request, source=source))

    @contextmanager
    def opened(self, engine: Engine) -> Iterator[Merge]:
        """Yield the merge with its source stored, so that its rows can be read more than once."""
        with engine.open_merge_source(self.request.source) as source:
            yield self.with_source(source)

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Merged:
        """Match rows, write new and updated rows, and mask or rewrite the changed files."""
        return Merged(engine.plan_change(transaction, self.request).apply())

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """Return the numbers of `result`, and `files`: a table with the decision for each file."""
        found, files = engine.plan_change(transaction, self.request).preview()
        return {**Merged(found).result(), "files": files}

    def explain(self, transaction: PendingTransaction, engine: Engine) -> str:
        """Describe how the merge would match rows: its keys, its conditions, the files to read."""
        return engine.plan_change(transaction, self.request).explain()


def upsert(
    source: Any,
    key: str | Sequence[str],
    *,
    null_safe: bool = False,
    merge_schema: bool = False,
    use_deletion_vectors: bool | None = None,
    file_options: FileOptions = _USUAL_FILES,
) -> Merge:
    """Return a merge that updates rows whose key exists in the table and inserts other rows.

    Args:
        source: the rows.
        key: the columns that identify a row, with the same names in source and table.
        null_safe: whether NULL keys match each other. Otherwise rows with a NULL key are always
            inserted.
        merge_schema: whether to add columns to the table that only the source has.
        use_deletion_vectors: True writes deletion vectors, False rewrites files, None decides for
            each file.
        file_options: options of the new files.
    """
    names = [key] if isinstance(key, str) else list(key)
    if not names:
        raise InvalidInputError("an upsert needs at least one key column")
    operator = "<=>" if null_safe else "="
    parts = [Comparison(operator, Column((TARGET, name)), Column((SOURCE, name))) for name in names]
    return Merge(
        ChangeRequest(
            condition=conjunction(parts),
            clauses=(
                Clause(when=When.MATCHED, action=Action.UPDATE),
                Clause(when=When.NOT_MATCHED, action=Action.INSERT),
            ),
            source=source,
            merge_schema=merge_schema,
            is_upsert=True,
            use_deletion_vectors=use_deletion_vectors,
            file_options=file_options,
        )
    )
