"""`DeltaTable.merge`: clauses one after the other, then `execute`.

Owns the builder, which has deltalake's methods; what they mean is `operations.merge`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

from deltalog.errors import InvalidInputError
from deltalog.features.identity_columns import identity_columns
from deltalog.operations.merge import (
    Action,
    Clause,
    Merge,
    MergeSource,
    When,
    explain_merge,
    preview_merge,
    stage_merge,
)
from deltalog.progress import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from deltalog.expressions import Expression
    from deltalog.operations.append import FileOptions
    from deltalog.operations.merge import Merged
    from deltalog.progress import Progress
    from deltalog.table.standing import Standing
    from deltalog.transaction import CommitProperties, PendingTransaction, PostCommitHookProperties


class TableMerger:
    """A merge that is being put together; nothing happens before `execute`.

    In every group of clauses (matched, not matched, not matched by source) the first one whose
    predicate is true for a row decides. Values are Spark SQL texts, expressions or Python values.

    Args:
        table: to merge into.
        source: anything that `write_deltalake` takes.
        merge: without clauses.
        options: of new files.
        commit_properties: of the commit.
        post_commithook_properties: what follows it.
    """

    def __init__(
        self,
        table: Standing,
        source: object,
        merge: Merge,
        *,
        options: FileOptions,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        self._table = table
        self._source = source
        if isinstance(source, list) and not source:
            self._source = _no_rows(table)
        self._merge = merge
        self._options = options
        self._commit_properties = commit_properties
        self._hooks = post_commithook_properties

    def __repr__(self) -> str:
        """Into what, on which condition, with how many clauses."""
        merge = self._merge
        return (
            f"TableMerger(into {self._table!r}, on {str(merge.predicate)!r}, "
            f"{len(merge.clauses)} clauses)"
        )

    def when_matched_update(
        self, updates: Mapping[str, Any], predicate: str | Expression | None = None
    ) -> Self:
        """Give new values to rows that match.

        Args:
            updates: column of the table → SQL over both rows, expression or Python value.
            predicate: over both rows; only rows for which it is true.
        """
        return self._with(When.MATCHED, Action.UPDATE, predicate, values=updates)

    def when_matched_update_all(
        self,
        predicate: str | Expression | None = None,
        except_cols: Sequence[str] | None = None,
    ) -> Self:
        """Give all values of the source's row to the row that it matches.

        Args:
            predicate: over both rows; only rows for which it is true.
            except_cols: columns of the source that are left out.
        """
        return self._with(When.MATCHED, Action.UPDATE, predicate, except_cols=except_cols)

    def when_matched_delete(self, predicate: str | Expression | None = None) -> Self:
        """Delete rows that match.

        Args:
            predicate: over both rows; only rows for which it is true.
        """
        return self._with(When.MATCHED, Action.DELETE, predicate)

    def when_not_matched_insert(
        self, updates: Mapping[str, Any], predicate: str | Expression | None = None
    ) -> Self:
        """Add rows of the source that match nothing.

        Args:
            updates: column of the table → SQL over the source's row, expression or Python value;
                others have their default, or NULL.
            predicate: over the source's row; only rows for which it is true.
        """
        return self._with(When.NOT_MATCHED, Action.INSERT, predicate, values=updates)

    def when_not_matched_insert_all(
        self,
        predicate: str | Expression | None = None,
        except_cols: Sequence[str] | None = None,
    ) -> Self:
        """Add rows of the source that match nothing, with all their values.

        Args:
            predicate: over the source's row; only rows for which it is true.
            except_cols: columns of the source that are left out.
        """
        return self._with(When.NOT_MATCHED, Action.INSERT, predicate, except_cols=except_cols)

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, Any], predicate: str | Expression | None = None
    ) -> Self:
        """Give new values to rows of the table that match no row of the source.

        Args:
            updates: column of the table → SQL over the table's row, expression or Python value.
            predicate: over the table's row; only rows for which it is true.
        """
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, predicate, values=updates)

    def when_not_matched_by_source_delete(self, predicate: str | Expression | None = None) -> Self:
        """Delete rows of the table that match no row of the source.

        Args:
            predicate: over the table's row; only rows for which it is true.
        """
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, predicate)

    def execute(self, *, dry_run: bool = False, progress: Progress | None = None) -> dict[str, Any]:
        """Merge, and commit.

        Args:
            dry_run: only count the rows and files that would change; values are not computed.
            progress: True for a bar, or told how many files of how many are read; what it raises
                ends the work, and leaves nothing behind.

        Returns:
            Counts of rows and files, and times in milliseconds. A dry run also has `files`, an
            Arrow table of the files that would change: how, and why.

        Raises:
            AmbiguousMergeError: several rows of the source would change the same row.
            InvalidInputError, SchemaMismatchError: clauses, names or types do not go together.
            ConstraintViolationError: new rows break a rule of the table.

        Cost: the columns that decide, of the files that the source's keys leave; then all columns
        of the row groups with rows that change, or of their files where there are no deletion
        vectors. A source that is larger than memory goes to a temporary file.
        """
        with MergeSource(self._source) as source:
            if dry_run:
                snapshot = self._table.snapshot
                found, files = preview_merge(snapshot, self._merge, source, options=self._options)
                return {**found.result(), "files": files}

            def stage(pending: PendingTransaction) -> Merged:
                with shown(progress, "merging") as tell:
                    merged = stage_merge(
                        pending, self._merge, source, options=self._options, progress=tell
                    )
                pending.set_metrics(merged.metrics())
                return merged

            ran = self._table.run(
                "MERGE",
                stage,
                commit_properties=self._commit_properties,
                hooks=self._hooks,
                skip_empty=True,
            )
        return ran.value.result() if ran.value is not None else {}

    def explain(self) -> str:
        """How the rows would be found: keys, conditions, and the files that would be read."""
        with MergeSource(self._source) as source:
            return explain_merge(
                self._table.snapshot,
                self._merge,
                source,
                default_timezone=self._options.default_timezone,
            )

    def _with(
        self,
        when: When,
        action: Action,
        predicate: str | Expression | None,
        *,
        values: Mapping[str, Any] | None = None,
        except_cols: Sequence[str] | None = None,
    ) -> Self:
        if values is not None and not isinstance(values, Mapping):
            raise InvalidInputError(
                f"cannot {action.value} with {values!r}: expected a dictionary, column to value"
            )
        left_out = [except_cols] if isinstance(except_cols, str) else except_cols or ()
        clause = Clause(
            when=when,
            action=action,
            values=cast("Mapping[str | tuple[str, ...], object] | None", values),
            except_columns=tuple(left_out),
            condition=predicate,
        )
        self._merge = replace(self._merge, clauses=(*self._merge.clauses, clause))
        return self


def _no_rows(table: Standing) -> pa.Table:
    """An empty list tells no columns: those of the table that a row may bring."""
    configuration = table.snapshot.configuration
    assigned = {column.name for column in identity_columns(configuration.schema)}
    given = [name for name in configuration.schema.names if name not in assigned]
    return configuration.arrow_schema.empty_table().select(given)
