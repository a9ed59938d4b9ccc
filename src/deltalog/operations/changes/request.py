"""The request of a DELETE, UPDATE or MERGE, from an operation to an engine.

A MERGE has a source; DELETE and UPDATE have none. This module checks that clauses can be combined.
It does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from deltalog._util.similar_names import on_unused_parameter
from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, to_sql
from deltalog.expressions.sql import parameter_names
from deltalog.operations.changes.file_options import FileOptions

if TYPE_CHECKING:
    import pyarrow as pa


# --- The plan that an engine makes for a request, and its metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Numbers of updated, deleted and inserted rows.

    Args:
        updated: number of updated rows that match a source row.
        deleted: number of deleted rows that match a source row.
        updated_not_matched_by_source: number of updated rows that match no source row; in an
            UPDATE, of all updated rows.
        deleted_not_matched_by_source: number of deleted rows that match no source row; in a
            DELETE, of all deleted rows. None if whole files without `numRecords` were removed.
        inserted: number of inserted rows.
    """

    updated: int = 0
    deleted: int = 0
    updated_not_matched_by_source: int = 0
    deleted_not_matched_by_source: int | None = 0
    inserted: int = 0

    @property
    def all_updated(self) -> int:
        """The number of all updated rows."""
        return self.updated + self.updated_not_matched_by_source

    @property
    def all_deleted(self) -> int:
        """The number of all deleted rows. An unknown number of rows counts as 0."""
        return self.deleted + (self.deleted_not_matched_by_source or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """Metrics of the existing files with changed rows.

    Args:
        num_copied_rows: number of unchanged rows that were copied to new files.
        num_removed_files: number of files that were removed from the table.
        num_removed_bytes: total size of the removed files.
        num_rewritten_files: number of removed files whose remaining rows were copied.
        num_vectors_added: number of files with a new deletion vector.
        num_vectors_updated: number of files whose old deletion vector was replaced.
        num_vectors_removed: number of deletion vectors that were replaced, or removed with their
            file.
    """

    num_copied_rows: int = 0
    num_removed_files: int = 0
    num_removed_bytes: int = 0
    num_rewritten_files: int = 0
    num_vectors_added: int = 0
    num_vectors_updated: int = 0
    num_vectors_removed: int = 0


CountsT = TypeVar("CountsT", RowCounts, FileCounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeMetrics:
    """The result of a DELETE, UPDATE or MERGE, in rows and files.

    Args:
        rows: numbers of changed rows.
        files: metrics of the files with changed rows.
        num_added_files: number of new data files.
        num_added_bytes: total size of the new data files.
        num_change_files: number of change data files.
        num_source_rows: number of source rows.
        num_files: number of live files before the change.
        num_scanned_files: number of files that were searched for matching rows after pruning.
        num_touched_files: number of files with changed rows.
        scan_ms: duration of the search.
        rewrite_ms: duration of writing.
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

    @classmethod
    def total(cls, parts: Sequence[ChangeMetrics]) -> Self:
        """Return the joint metrics of tasks that have changed different files at the same time."""
        return cls(
            rows=_summed(RowCounts, [part.rows for part in parts]),
            files=_summed(FileCounts, [part.files for part in parts]),
            num_added_files=sum(part.num_added_files for part in parts),
            num_added_bytes=sum(part.num_added_bytes for part in parts),
            num_change_files=sum(part.num_change_files for part in parts),
            num_source_rows=max(part.num_source_rows for part in parts),
            num_files=max(part.num_files for part in parts),
            num_scanned_files=sum(part.num_scanned_files for part in parts),
            num_touched_files=sum(part.num_touched_files for part in parts),
            scan_ms=max(part.scan_ms for part in parts),
            rewrite_ms=max(part.rewrite_ms for part in parts),
        )

    def logged_times(self) -> dict[str, int]:
        """Return the durations under the names of Delta Spark's `operationMetrics`."""
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


def _summed(kind: type[CountsT], parts: Sequence[CountsT]) -> CountsT:
    """Return the sum of each number; None if it is unknown in one of the parts."""
    names = [one.name for one in fields(kind)]
    values: dict[str, Any] = {name: [getattr(part, name) for part in parts] for name in names}
    sums: dict[str, Any] = {n: None if None in found else sum(found) for n, found in values.items()}
    return kind(**sums)


class PlannedChange(Protocol):
    """A planned DELETE, UPDATE or MERGE. Its rows may not have been searched yet.

    The caller calls either `apply` or `preview`, once.
    """

    def apply(self) -> ChangeMetrics:
        """Write the changed rows, and stage the files into the transaction."""
        ...

    def preview(self) -> tuple[ChangeMetrics, pa.Table]:
        """Return the result of `apply` without writing, and the decision for each file.

        The decisions are in the form of `explain_decisions`.
        """
        ...

    def explain(self) -> str:
        """Describe in plain text how the rows are found."""
        ...


# --- The request


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
    """A clause `WHEN … THEN …` of a merge.

    Args:
        when: the rows to which the clause applies.
        action: the change of these rows.
        values: column → SQL string, expression, constant, or another value that the engine
            supports; None assigns all columns of the source (`*`).
        except_columns: columns of the source that `*` does not assign.
        condition: an SQL string or an expression. The clause applies only to rows for which the
            condition is true; other rows are passed to the next clause.
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
        """Return the clause without condition and values, for error messages."""
        return f"WHEN {self.when.upper()} THEN {self.action.upper()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """A DELETE, UPDATE or MERGE, with the arguments of the user.

    Args:
        condition: for a MERGE, the condition on both rows for a match. For a DELETE or UPDATE, the
            condition on the rows to change; None means all rows. It is an SQL string, an
            expression, filter tuples, or another value that the engine supports.
        clauses: the clauses, in order; the first clause whose condition is true for a row applies.
            A DELETE or UPDATE has exactly one clause, `WHEN NOT MATCHED BY SOURCE`.
        source: the rows to merge; None for a DELETE or UPDATE.
        source_alias: additional name of the source in SQL; `source` is always a name.
        target_alias: additional name of the table in SQL; `target` is always a name.
        merge_schema: whether to add columns to the table that only the source has.
        is_upsert: whether the request is an upsert: rows match if their key columns are equal by
            the table's collations. A column that only the source has is then added or is an error;
            in a merge, `*` ignores such a column, as in Delta Spark.
        error_on_type_mismatch: whether to raise if a value cannot be cast to the column's type;
            False writes NULL.
        parameters: values for `?` or `:name` in SQL.
        use_deletion_vectors: True writes deletion vectors, False rewrites files, None decides for
            each file, see `decide_files`.
        file_options: options of the new files.
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
        """Return the clauses for one kind of rows, in order."""
        return tuple(clause for clause in self.clauses if clause.when is when)

    @property
    def ordered(self) -> tuple[Clause, ...]:
        """All clauses, grouped by `when`."""
        return tuple(clause for when in When for clause in self.of(when))

    @property
    def allows_repeats(self) -> bool:
        """Whether several source rows may match one row of the table without an error.

        This is true if matched rows do not change, or are all deleted, as in Delta Spark.
        """
        matched = self.of(When.MATCHED)
        if not matched:
            return True
        (first, *more) = matched
        return first.action is Action.DELETE and first.condition is None and not more

    @property
    def is_row_local(self) -> bool:
        """Whether the result depends only on the table rows that change.

        With INSERT clauses, it also depends on matching rows that do not change: if another writer
        deletes such a row, the source row would have to be inserted. This cannot occur if a MATCHED
        clause without a condition changes all matching rows.
        """
        matched = self.of(When.MATCHED)
        return not self.of(When.NOT_MATCHED) or any(clause.condition is None for clause in matched)

    @property
    def named_parameters(self) -> Mapping[str, object] | None:
        """The parameters of a merge, which must be named.

        Raises:
            InvalidInputError: the parameters are positional.
        """
        if self.parameters is None or isinstance(self.parameters, Mapping):
            return self.parameters
        raise InvalidInputError("a merge needs parameters by name: {'low': 1} for :low")

    def check(self) -> None:
        """Check that the clauses of a merge can be combined.

        Raises:
            InvalidInputError: there are no clauses; a clause can never apply; an action is not
                allowed for its rows, such as INSERT for matched rows; or a parameter is not used.
        """
        if not self.clauses:
            raise InvalidInputError(
                "a merge needs at least one WHEN clause, such as when_matched_update_all() or "
                "when_not_matched_insert_all()"
            )
        for clause in self.clauses:
            inserts = clause.action is Action.INSERT
            if inserts is not (clause.when is When.NOT_MATCHED):
                raise InvalidInputError(f"a merge does not support the clause {clause}")
            if clause.is_star and clause.when is When.NOT_MATCHED_BY_SOURCE:
                raise InvalidInputError(f"{clause} needs values: there is no source row")
            if clause.values is not None and not clause.values:
                raise InvalidInputError(f"{clause} needs at least one column with a value")
        self._check_parameters()
        for when in When:
            for clause in self.of(when)[:-1]:
                if clause.condition is None:
                    raise InvalidInputError(
                        f"only the last WHEN {when.upper()} clause may have no condition: "
                        "later clauses would never apply"
                    )

    def _check_parameters(self) -> None:
        """Raise for a parameter that no condition and no value has; it may be in quotes."""
        given = self.named_parameters
        if not given:
            return
        sqls = [self.condition, *(clause.condition for clause in self.clauses)]
        sqls += [value for clause in self.clauses for value in (clause.values or {}).values()]
        used = {name for sql in sqls for name in parameter_names(sql)}
        if unused := [name for name in given if name not in used]:
            name = unused[0]
            raise InvalidInputError(
                f"cannot use the parameter {name!r}: no condition and no value of the merge has "
                f":{name}{on_unused_parameter(name, used, given, map(str, sqls))}"
            )

    def logged(self) -> dict[str, Any]:
        """Return condition and clauses as Delta Spark's `operationParameters` of a MERGE."""
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
    """Return a condition as an SQL string, for `operationParameters`."""
    return to_sql(condition) if isinstance(condition, Expression) else str(condition)
