"""`DeltaTable.merge`: clauses one after the other, then `execute`.

Owns the builder, which has deltalake's methods; what they mean is `operations.merge`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from deltalog.errors import InvalidInputError
from deltalog.features.identity_columns import identity_columns
from deltalog.progress import shown
from deltalog.rows.merge.clauses import Action, Clause, Merge, When
from deltalog.rows.merge.source import MergeSource
from deltalog.verbs.merge import explain_merge, preview_merge, stage_merge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from deltalog.expressions import Expression
    from deltalog.progress import Progress
    from deltalog.snapshot import Snapshot
    from deltalog.table.standing import Standing
    from deltalog.transaction import CommitProperties, PendingTransaction, PostCommitHookProperties
    from deltalog.verbs.append import FileOptions
    from deltalog.verbs.merge import Merged


class MergeTarget(Protocol):
    """Into what rows are merged."""

    @property
    def snapshot(self) -> Snapshot:
        """The version that it shows."""
        ...

    def merge(self, stage: Callable[[PendingTransaction], Merged]) -> Merged | None:
        """Have a merge staged, and what it did; None if that was done before."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedMerge:
    """A merge that is a commit of its own.

    Args:
        table: to merge into.
        commit_properties: of the commit.
        hooks: what follows it.
    """

    table: Standing
    commit_properties: CommitProperties | None = None
    hooks: PostCommitHookProperties | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The version that the table shows."""
        return self.table.snapshot

    def merge(self, stage: Callable[[PendingTransaction], Merged]) -> Merged | None:
        """Stage it on the latest version and commit it."""
        ran = self.table.run(
            "MERGE",
            stage,
            commit_properties=self.commit_properties,
            hooks=self.hooks,
            skip_empty=True,
        )
        return ran.value

    def __repr__(self) -> str:
        return repr(self.table)


class TableMerger:
    """A merge that is being put together; nothing happens before `execute`.

    In every group of clauses (matched, not matched, not matched by source) the first one whose
    predicate is true for a row decides. Values are Spark SQL texts, expressions or Python values.

    Args:
        target: to merge into.
        source: anything that `write_deltalake` takes.
        merge: without clauses.
        options: of new files.
    """

    def __init__(
        self, target: MergeTarget, source: object, merge: Merge, *, options: FileOptions
    ) -> None:
        self._target = target
        self._source = source
        if isinstance(source, list) and not source:
            self._source = _no_rows(target.snapshot)
        self._merge = merge
        self._options = options

    def __repr__(self) -> str:
        """Into what, on which condition, with how many clauses."""
        merge = self._merge
        return (
            f"TableMerger(into {self._target!r}, on {str(merge.predicate)!r}, "
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
                snapshot = self._target.snapshot
                found, files = preview_merge(snapshot, self._merge, source, options=self._options)
                return {**found.result(), "files": files}

            def stage(pending: PendingTransaction) -> Merged:
                with shown(progress, "merging") as tell:
                    merged = stage_merge(
                        pending, self._merge, source, options=self._options, progress=tell
                    )
                pending.set_metrics(merged.metrics())
                return merged

            done = self._target.merge(stage)
        return {} if done is None else done.result()

    def explain(self) -> str:
        """How the rows would be found: keys, conditions, and the files that would be read."""
        with MergeSource(self._source) as source:
            return explain_merge(
                self._target.snapshot,
                self._merge,
                source,
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


def _no_rows(snapshot: Snapshot) -> pa.Table:
    """An empty list tells no columns: those of the table that a row may bring."""
    configuration = snapshot.configuration
    assigned = {column.name for column in identity_columns(configuration.schema)}
    given = [name for name in configuration.schema.names if name not in assigned]
    return configuration.arrow_schema.empty_table().select(given)
