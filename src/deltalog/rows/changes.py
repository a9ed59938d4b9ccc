"""What shall become of which rows, and what became of them: the words of every change of rows.

Owns the question that verbs ask an engine (`RowChanges`: DELETE and UPDATE are changes without a
source, MERGE has one), which clauses go together, and the answer (`ChangedRows`). Nothing is looked
up here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, to_sql
from deltalog.rows.files import FileOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


class When(StrEnum):
    """Which rows a clause is about."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class Action(StrEnum):
    """What a clause does to its rows."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One `WHEN … THEN …`.

    Args:
        when: which rows.
        action: what is done to them.
        values: column → SQL text, expression or constant, or whatever the engine evaluates; None is
            every column of the source.
        except_columns: columns of the source that are left out where `values` is None.
        condition: likewise; rows for which it is not true go to the next clause.
    """

    when: When
    action: Action
    values: Mapping[Any, Any] | None = None
    except_columns: tuple[str, ...] = ()
    condition: Any = None

    @property
    def is_star(self) -> bool:
        """Whether every column of the source is taken."""
        return self.values is None and self.action is not Action.DELETE

    def __str__(self) -> str:
        """The clause, for messages."""
        return f"WHEN {self.when.upper()} THEN {self.action.upper()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """Rows that shall change, and how, as the user says it.

    Args:
        condition: with a source: which rows match, over the columns of both. Without one: which
            rows of the table the clauses are about; None is all. SQL text, expression, filter
            tuples, or whatever else the engine evaluates.
        clauses: in order; the first one whose condition is true for a row decides. Without a
            source there is one, about rows that no row of a source matches.
        source: rows that are merged; None is no source.
        source_alias: of the source in SQL; `source` always does, too.
        target_alias: of the table in SQL; `target` always does, too.
        merge_schema: columns that only the source has are added to the table.
        error_on_type_mismatch: False makes NULL of what does not fit a column's type.
        parameters: values for `?` or `:name` in SQL.
        use_deletion_vectors: whether rows are masked (True) or files rewritten (False); None
            decides for each file, see `rows.decide`.
        files: how new files are written.
    """

    condition: Any
    clauses: tuple[Clause, ...]
    source: Any = None
    source_alias: str | None = None
    target_alias: str | None = None
    merge_schema: bool = False
    error_on_type_mismatch: bool = True
    parameters: Sequence[object] | Mapping[str, object] | None = None
    use_deletion_vectors: bool | None = None
    files: FileOptions = field(default_factory=FileOptions)

    def of(self, when: When) -> tuple[Clause, ...]:
        """The clauses about some rows, in order."""
        return tuple(clause for clause in self.clauses if clause.when is when)

    @property
    def ordered(self) -> tuple[Clause, ...]:
        """All clauses, those about the same rows together."""
        return tuple(clause for when in When for clause in self.of(when))

    @property
    def allows_repeats(self) -> bool:
        """Whether several rows of the source may match one of the table: if all it does is go."""
        matched = self.of(When.MATCHED)
        if not matched:
            return True
        (first, *more) = matched
        return first.action is Action.DELETE and first.condition is None and not more

    @property
    def named_parameters(self) -> Mapping[str, object] | None:
        """The parameters; a merge takes them by name.

        Raises:
            InvalidInputError: they are given by place.
        """
        if self.parameters is None or isinstance(self.parameters, Mapping):
            return self.parameters
        raise InvalidInputError("a merge takes parameters by name: {'low': 1} for :low")

    def check(self) -> None:
        """Refuse clauses that mean nothing.

        Raises:
            InvalidInputError: there is none, one can never be reached, or it does to its rows
                what cannot be done to them.
        """
        if not self.clauses:
            raise InvalidInputError("a merge needs at least one WHEN clause")
        for clause in self.clauses:
            inserts = clause.action is Action.INSERT
            if inserts is not (clause.when is When.NOT_MATCHED):
                raise InvalidInputError(f"a merge has no clause {clause}")
            if clause.is_star and clause.when is When.NOT_MATCHED_BY_SOURCE:
                raise InvalidInputError(f"{clause} needs values: there is no row of the source")
            if clause.values is not None and not clause.values:
                raise InvalidInputError(f"{clause} needs at least one column = value")
        for when in When:
            for clause in self.of(when)[:-1]:
                if clause.condition is None:
                    raise InvalidInputError(
                        f"only the last WHEN {when.upper()} clause can be without a condition: "
                        "those after it would never be reached"
                    )

    def logged(self) -> dict[str, Any]:
        """Condition and clauses as the history tells them of a merge, in the reference's words."""
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


def deletion(condition: Any, **options: Any) -> RowChanges:
    """The deletion of the rows for which a condition is true; None is all rows."""
    clause = Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.DELETE)
    return RowChanges(condition=condition, clauses=(clause,), **options)


def logged_condition(condition: Any) -> str:
    """A condition as the history tells it."""
    return to_sql(condition) if isinstance(condition, Expression) else str(condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rows by what became of them.

    Args:
        updated: rows of the table with new values, because of a row of the source.
        deleted: rows of the table that go, because of a row of the source.
        updated_by_source: rows with new values that match no row of a source.
        deleted_by_source: rows that go and match no row of a source; None where the log does not
            tell how many rows files have that go whole.
        inserted: new rows.
    """

    updated: int = 0
    deleted: int = 0
    updated_by_source: int = 0
    deleted_by_source: int | None = 0
    inserted: int = 0

    @property
    def all_updated(self) -> int:
        """Rows with new values."""
        return self.updated + self.updated_by_source

    @property
    def all_deleted(self) -> int:
        """Rows that go, as far as it is known."""
        return self.deleted + (self.deleted_by_source or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """What was done to files that held changed rows.

    Args:
        num_copied_rows: rows that did not change, and were written once more.
        num_removed_files: files that are no longer live.
        num_removed_bytes: size of those.
        num_rewritten_files: of these, files of which rows were written once more.
        num_vectors_added: files with a new deletion vector.
        num_vectors_updated: of those, files that had one before.
        num_vectors_removed: deletion vectors that are no longer live.
    """

    num_copied_rows: int = 0
    num_removed_files: int = 0
    num_removed_bytes: int = 0
    num_rewritten_files: int = 0
    num_vectors_added: int = 0
    num_vectors_updated: int = 0
    num_vectors_removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """What a change did to rows and files.

    Args:
        rows: by what became of them.
        files: what was done to the files that held them.
        num_added_files: new data files.
        num_added_bytes: size of those.
        num_change_files: files for the change feed.
        num_source_rows: rows of the source.
        num_files: live files before.
        num_scanned_files: files of which the deciding columns were read.
        num_touched_files: files with rows that change.
        scan_ms: how long the search took.
        rewrite_ms: how long writing took.
    """

    rows: Counts
    files: FileChanges = field(default_factory=FileChanges)
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
        """The times as the history tells them."""
        return {
            "executionTimeMs": self.scan_ms + self.rewrite_ms,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": self.rewrite_ms,
        }

    def times(self) -> dict[str, int]:
        """The times as callers get them."""
        return {
            "execution_time_ms": self.scan_ms + self.rewrite_ms,
            "scan_time_ms": self.scan_ms,
            "rewrite_time_ms": self.rewrite_ms,
        }


class FoundRows(Protocol):
    """Rows that an engine has found for a change; `apply` or `preview` is called once."""

    def apply(self) -> ChangedRows:
        """Write what changes, and stage it into the transaction."""
        ...

    def preview(self) -> tuple[ChangedRows, pa.Table]:
        """What `apply` would do to rows, and for each file what and why; nothing is written.

        The table is that of `rows.decide.explain_decisions`.
        """
        ...

    def explain(self) -> str:
        """How the rows were found, as text."""
        ...
