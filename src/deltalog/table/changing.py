"""The half of `DeltaTable` that changes rows: delete, update, merge.

Each method stages one verb of `operations`. Names and meanings are `deltalake`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltalog.arguments import as_condition, as_updates, check_given
from deltalog.clock import Stopwatch
from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, to_sql
from deltalog.progress import shown
from deltalog.table.writing import WritingTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.progress import Progress
    from deltalog.table.merge import TableMerger
    from deltalog.transaction import (
        CommitProperties,
        PendingTransaction,
        PostCommitHookProperties,
    )
    from deltalog.verbs.delete import Deleted
    from deltalog.verbs.update import Updated
    from deltalog.write.options import WriterProperties


class ChangingTable(WritingTable):
    """Changing rows; `DeltaTable` explains the arguments."""

    def delete(
        self,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Delete the rows for which a predicate is true; all rows without one.

        Args:
            predicate: anything that `scan` takes.
            writer_properties: of files that are rewritten.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            parameters: values for `?` or `:name` in an SQL predicate.
            use_deletion_vectors: whether rows are marked instead of files rewritten; None
                chooses for each file by its cost where `delta.enableDeletionVectors` is set
                (`deltalog.maxDeletedRowsRatio`), and rewrites elsewhere.
            dry_run: only find the rows and files that would change.
            progress: True for a bar, or told how many files of how many are read; what it raises
                ends the work, and leaves nothing behind.

        Returns:
            Counts of rows and files, and times in milliseconds. A dry run also has `files`, an
            Arrow table of the files that would change: how, and why.

        Cost: the predicate's columns of the files that pruning leaves; then kilobytes of deletion
        vectors, or the files that hold such rows once more.
        """
        from deltalog.verbs.append import FileOptions
        from deltalog.verbs.delete import preview_delete, stage_delete

        check_given(predicate)
        watch = Stopwatch()
        options = FileOptions(writer_properties=writer_properties)
        if dry_run:
            condition = as_condition(
                self._snapshot.configuration.schema, predicate, parameters=parameters
            )
            found, files = preview_delete(
                self._snapshot,
                condition,
                options=options,
                use_deletion_vectors=use_deletion_vectors,
            )
            return {**_delete_result(found, watch), "files": files}

        def stage(pending: PendingTransaction) -> Deleted:
            condition = as_condition(pending.configuration.schema, predicate, parameters=parameters)
            pending.parameters["predicate"] = [] if condition is None else [to_sql(condition)]
            with shown(progress, "deleting") as tell:
                deleted = stage_delete(
                    pending,
                    condition,
                    options=options,
                    use_deletion_vectors=use_deletion_vectors,
                    progress=tell,
                )
            pending.set_metrics(deleted.metrics())
            return deleted

        ran = self.run(
            "DELETE",
            stage,
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
            skip_empty=True,
        )
        deleted = ran.value
        if deleted is None:  # the application's transaction was there already
            return {}
        return _delete_result(deleted, watch)

    def update(  # noqa: PLR0913  # each is the caller's choice
        self,
        updates: Mapping[str, str | Expression] | None = None,
        new_values: Mapping[str, object] | None = None,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Give new values to the rows for which a predicate is true; to all rows without one.

        Args:
            updates: column → Spark SQL or expression, computed from the row as it was; a dotted
                name reaches into a struct.
            new_values: column → Python value; never read as SQL.
            predicate: anything that `scan` takes.
            writer_properties: of new files.
            error_on_type_mismatch: False makes NULL of what does not fit the column's type.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            parameters: values for `?` or `:name` in the predicate, for `:name` in `updates`.
            use_deletion_vectors: whether old rows are marked instead of files rewritten; None
                chooses for each file, as `delete` does.
            dry_run: only count the rows and files that would change.
            progress: as for `delete`.

        Returns:
            Counts of rows and files, and times in milliseconds. A dry run also has `files`, an
            Arrow table of the files that would change: how, and why.

        Raises:
            InvalidInputError: an unknown column, or one that cannot be assigned.
            ConstraintViolationError: new rows break a rule of the table.

        Cost: the predicate's columns of the files that pruning leaves; then all columns of the
        row groups with such rows, or of their files where there are no deletion vectors.
        """
        from deltalog.verbs.append import FileOptions
        from deltalog.verbs.update import preview_update, stage_update

        check_given(predicate)
        values = as_updates(updates, new_values, parameters)
        if predicate is None and updates and isinstance(parameters, Mapping):
            parameters = None  # they are for the new values
        options = FileOptions(writer_properties=writer_properties)
        if dry_run:
            snapshot = self._snapshot
            condition = as_condition(
                snapshot.configuration.schema, predicate, parameters=parameters
            )
            found, files = preview_update(
                snapshot,
                values,
                condition,
                options=options,
                use_deletion_vectors=use_deletion_vectors,
            )
            return {**found.result(), "files": files}

        def stage(pending: PendingTransaction) -> Updated:
            condition = as_condition(pending.configuration.schema, predicate, parameters=parameters)
            pending.parameters["predicate"] = [] if condition is None else [to_sql(condition)]
            with shown(progress, "updating") as tell:
                updated = stage_update(
                    pending,
                    values,
                    condition,
                    options=options,
                    use_deletion_vectors=use_deletion_vectors,
                    error_on_type_mismatch=error_on_type_mismatch,
                    progress=tell,
                )
            pending.set_metrics(updated.metrics())
            return updated

        ran = self.run(
            "UPDATE",
            stage,
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
            skip_empty=True,
        )
        return ran.value.result() if ran.value is not None else {}

    def merge(  # noqa: PLR0913, PLR0917  # deltalake's signature and some more
        self,
        source: object,
        predicate: str | Expression,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,  # noqa: FBT001, FBT002  # deltalake's
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,  # noqa: ARG002, FBT001, FBT002  # deltalake's: pruning never depends on it
        max_spill_size: int | None = None,  # noqa: ARG002  # deltalake's
        max_temp_directory_size: int | None = None,  # noqa: ARG002  # deltalake's
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> TableMerger:
        """Begin a merge: rows of a source change, remove and add rows of the table.

        Args:
            source: anything that `write_deltalake` takes; it may be larger than memory.
            predicate: Spark SQL or expression over both rows: which of them match.
            source_alias: of the source in SQL, besides `source`.
            target_alias: of the table in SQL, besides `target`.
            merge_schema: columns that only the source has are added to the table.
            error_on_type_mismatch: False makes NULL of what does not fit a column's type.
            writer_properties: of new files.
            streamed_exec: taken for deltalake's sake; the table is always streamed and pruned.
            max_spill_size: taken for deltalake's sake.
            max_temp_directory_size: taken for deltalake's sake.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            parameters: values for `:name` in SQL.
            use_deletion_vectors: whether old rows are marked instead of files rewritten; None
                chooses for each file, as `delete` does.
        """
        from deltalog.rows.merge.clauses import Merge
        from deltalog.table.merge import CommittedMerge, TableMerger
        from deltalog.verbs.append import FileOptions

        if not isinstance(predicate, str | Expression):
            raise InvalidInputError(
                f"cannot merge where {predicate!r}: expected SQL or an expression over both rows, "
                "such as 'source.id = target.id'"
            )
        return TableMerger(
            CommittedMerge(
                table=self, commit_properties=commit_properties, hooks=post_commithook_properties
            ),
            source,
            Merge(
                predicate=predicate,
                clauses=(),
                source_alias=source_alias,
                target_alias=target_alias,
                merge_schema=merge_schema,
                error_on_type_mismatch=error_on_type_mismatch,
                parameters=parameters,
                use_deletion_vectors=use_deletion_vectors,
            ),
            options=FileOptions(writer_properties=writer_properties),
        )

    def upsert(
        self,
        data: object,
        key: str | Sequence[str],
        *,
        null_safe: bool = False,
        merge_schema: bool = False,
        commit_properties: CommitProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Rows replace those of the table that have the same key; the others are added.

        Args:
            data: anything that `write_deltalake` takes.
            key: the columns that identify a row.
            null_safe: NULL is a key like any other; otherwise rows without a key are added.
            merge_schema: columns that only the data has are added to the table.
            commit_properties: of the commit.
            progress: as for `delete`.
        """
        from deltalog.table.merge import CommittedMerge, TableMerger
        from deltalog.verbs.append import FileOptions
        from deltalog.verbs.upsert import upsert

        return TableMerger(
            CommittedMerge(table=self, commit_properties=commit_properties),
            data,
            upsert(key, null_safe=null_safe, merge_schema=merge_schema),
            options=FileOptions(),
        ).execute(progress=progress)


def _delete_result(deleted: Deleted, watch: Stopwatch) -> dict[str, Any]:
    return {
        "num_added_files": deleted.num_added_files + deleted.num_masked_files,
        "num_removed_files": deleted.num_removed_files + deleted.num_masked_files,
        "num_deleted_rows": deleted.num_rows,
        "num_copied_rows": deleted.num_copied_rows,
        "num_rewritten_files": deleted.num_rewritten_files,
        "num_deletion_vectors": deleted.num_masked_files,
        "execution_time_ms": watch.elapsed_ms(),
        "scan_time_ms": deleted.scan_time_ms,
        "rewrite_time_ms": deleted.rewrite_time_ms,
    }
