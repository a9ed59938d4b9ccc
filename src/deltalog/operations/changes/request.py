"""The request of a DELETE, UPDATE or MERGE, from an operation to an engine.

This module owns the clauses and the rules for combining them. DELETE and UPDATE are requests
without a source, MERGE has one. It does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, to_sql
from deltalog.operations.changes.file_options import FileOptions

if TYPE_CHECKING:
    import pyarrow as pa


# The plan that an engine makes for a DELETE, UPDATE or MERGE, and its metrics.


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
    """Metrics of the existing files with changed rows.

    Args:
        num_copied_rows: unchanged rows of rewritten files.
        num_removed_files: files that left the table.
        num_removed_bytes: their size.
        num_rewritten_files: removed files whose remaining rows were rewritten.
        num_vectors_added: files with a new deletion vector.
        num_vectors_updated: how many of these files had one before.
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
        files: metrics of the files with changed rows.
        num_added_files: new data files.
        num_added_bytes: their size.
        num_change_files: files for the change feed.
        num_source_rows: rows of the source.
        num_files: live files before the change.
        num_scanned_files: files that pruning left, which were searched for matching rows.
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

        The decisions are the table of `apply.explain_decisions`.
        """
        ...

    def explain(self) -> str:
        """Describe in words how the rows were found."""
        ...


# The request of a DELETE, UPDATE or MERGE, from an operation to an engine.


class When(StrEnum):
    """The rows to which a clause applies."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class Action(StrEnum):
    """The action of a clause on its rows."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One `WHEN … THEN …`.

    Args:
        when: the rows to which the clause applies.
        action: the change of these rows.
        values: column → SQL string, expression or constant, or anything that the engine evaluates;
            None assigns every column of the source (`*`).
        except_columns: columns of the source that `*` leaves out.
        condition: in the same forms as a value; the next clause gets rows for which it is not true.
    """

    when: When
    action: Action
    values: Mapping[Any, Any] | None = None
    except_columns: tuple[str, ...] = ()
    condition: Any = None

    @property
    def is_star(self) -> bool:
        """Whether the clause is `UPDATE SET *` or `INSERT *`."""
        return self.values is None and self.action is not Action.DELETE

    def __str__(self) -> str:
        """The clause, for messages."""
        return f"WHEN {self.when.upper()} THEN {self.action.upper()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """A DELETE, UPDATE or MERGE as the user states it.

    Args:
        condition: with a source, it decides which rows match, over the columns of both. Without
            one, it decides which rows of the table the clauses apply to; None means all. SQL
            string, expression, filter tuples, or anything else that the engine evaluates.
        clauses: in order; the first one whose condition is true for a row applies. Without a
            source there is exactly one, `WHEN NOT MATCHED BY SOURCE`.
        source: rows to merge; None means no source.
        source_alias: another name of the source in SQL, besides `source`.
        target_alias: another name of the table in SQL, besides `target`.
        merge_schema: add columns to the table that only the source has.
        is_upsert: whether rows match by columns that source and table both have. Then the table's
            collations apply, and a column that only the source has must be added or is an error.
            In Delta Spark's merge, `*` leaves out such a column.
        error_on_type_mismatch: False writes NULL where a value cannot be cast to the column's
            type.
        parameters: values for `?` or `:name` in SQL.
        use_deletion_vectors: whether rows are masked (True) or files rewritten (False); None
            decides for each file, see `changes.apply`.
        file_options: how new files are written.
    """

    condition: Any
    clauses: tuple[Clause, ...]
    source: Any = None
    source_alias: str | None = None
    target_alias: str | None = None
    merge_schema: bool = False
    is_upsert: bool = False
    error_on_type_mismatch: bool = True
    parameters: Sequence[object] | Mapping[str, object] | None = None
    use_deletion_vectors: bool | None = None
    file_options: FileOptions = field(default_factory=FileOptions)

    def of(self, when: When) -> tuple[Clause, ...]:
        """The clauses with this `when`, in order."""
        return tuple(clause for clause in self.clauses if clause.when is when)

    @property
    def ordered(self) -> tuple[Clause, ...]:
        """All clauses, grouped by `when`."""
        return tuple(clause for when in When for clause in self.of(when))

    @property
    def allows_repeats(self) -> bool:
        """Whether several source rows may match one row of the table without an error.

        As in Delta Spark: nothing is done to matched rows, or all of them are deleted.
        """
        matched = self.of(When.MATCHED)
        if not matched:
            return True
        (first, *more) = matched
        return first.action is Action.DELETE and first.condition is None and not more

    @property
    def is_row_local(self) -> bool:
        """Whether the result depends only on the changed table rows.

        With INSERT clauses it also depends on matching rows that stay unchanged: if another writer
        deletes one, its source row would have to be inserted. A MATCHED clause without a condition
        changes all matching rows, so that none stays unchanged.
        """
        matched = self.of(When.MATCHED)
        return not self.of(When.NOT_MATCHED) or any(clause.condition is None for clause in matched)

    @property
    def named_parameters(self) -> Mapping[str, object] | None:
        """The parameters of a merge, which must be named.

        Raises:
            InvalidInputError: they are positional.
        """
        if self.parameters is None or isinstance(self.parameters, Mapping):
            return self.parameters
        raise InvalidInputError("a merge needs parameters by name: {'low': 1} for :low")

    def check(self) -> None:
        """Check that the clauses of a merge can be combined.

        Raises:
            InvalidInputError: there is no clause, one can never be reached, or an action is not
                possible for its rows (such as INSERT for matched ones).
        """
        if not self.clauses:
            raise InvalidInputError("a merge needs at least one WHEN clause")
        for clause in self.clauses:
            inserts = clause.action is Action.INSERT
            if inserts is not (clause.when is When.NOT_MATCHED):
                raise InvalidInputError(f"a merge has no clause {clause}")
            if clause.is_star and clause.when is When.NOT_MATCHED_BY_SOURCE:
                raise InvalidInputError(f"{clause} needs values: it has no row of the source")
            if clause.values is not None and not clause.values:
                raise InvalidInputError(f"{clause} needs at least one column = value")
        for when in When:
            for clause in self.of(when)[:-1]:
                if clause.condition is None:
                    raise InvalidInputError(
                        f"only the last WHEN {when.upper()} clause can be without a condition: "
                        "later clauses would never be reached"
                    )

    def logged(self) -> dict[str, Any]:
        """Return condition and clauses as Delta Spark's operationParameters of a MERGE."""
        return {
            "predicate": [logged_condition(self.condition)],
            "matchedPredicates": self._logged(When.MATCHED),
            "notMatchedPredicates": self._logged(When.NOT_MATCHED),
            "notMatchedBySourcePredicates": self._logged(When.NOT_MATCHED_BY_SOURCE),
        }

    def _logged(self, when: When) -> list[dict[str, str]]:
        return [
            {
                **({} if one.condition is None else {"predicate": logged_condition(one.condition)}),
                "actionType": one.action.value,
            }
            for one in self.of(when)
        ]


def deletion(condition: Any, **options: Any) -> ChangeRequest:
    """Return the request to delete the rows for which a condition is true; None means all rows."""
    clause = Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.DELETE)
    return ChangeRequest(condition=condition, clauses=(clause,), **options)


def logged_condition(condition: Any) -> str:
    """Return a condition as a SQL string, for operationParameters."""
    return to_sql(condition) if isinstance(condition, Expression) else str(condition)
