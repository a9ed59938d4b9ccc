"""What a merge is to do, as its caller says it.

Owns the clauses and which of them go together; nothing is looked up yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.expressions import Expression


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
        values: column → SQL text, expression or constant; None is every column of the source.
        except_columns: columns of the source that are left out where `values` is None.
        condition: SQL text or expression; rows for which it is not true go to the next clause.
    """

    when: When
    action: Action
    values: Mapping[str | tuple[str, ...], object] | None = None
    except_columns: tuple[str, ...] = ()
    condition: str | Expression | None = None

    @property
    def is_star(self) -> bool:
        """Whether every column of the source is taken."""
        return self.values is None and self.action is not Action.DELETE

    def __str__(self) -> str:
        """The clause, for messages."""
        return f"WHEN {self.when.upper()} THEN {self.action.upper()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A whole merge, apart from its table and its source.

    Args:
        predicate: SQL text or expression over the columns of both: which rows match.
        clauses: in order; the first one whose condition is true for a row decides.
        source_alias: of the source in SQL; `source` always does, too.
        target_alias: of the table in SQL; `target` always does, too.
        merge_schema: columns that only the source has are added to the table.
        error_on_type_mismatch: False makes NULL of what does not fit a column's type.
        parameters: values for `:name` in SQL.
        use_deletion_vectors: for files that keep rows; None does what the table has enabled.
    """

    predicate: str | Expression
    clauses: tuple[Clause, ...]
    source_alias: str | None = None
    target_alias: str | None = None
    merge_schema: bool = False
    error_on_type_mismatch: bool = True
    parameters: Mapping[str, object] | None = None
    use_deletion_vectors: bool | None = None

    def of(self, when: When) -> tuple[Clause, ...]:
        """The clauses about some rows, in order."""
        return tuple(clause for clause in self.clauses if clause.when is when)

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
