"""Plan a merge: resolve names and types of its condition and clauses.

Owns what each clause assigns, and which columns of either side decide. Does no I/O.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Expression,
    TextRules,
    columns,
    conjunction,
    conjuncts,
    resolve_predicate,
)
from deltalog.expressions.evaluation import fold
from deltalog.expressions.nodes import Collate, Column, Comparison, col
from deltalog.names import name_key
from deltalog.rows.assign import (
    Assignments,
    Scope,
    assignments,
    canonical_path,
    check_identities,
    star,
)
from deltalog.rows.merge.condition import MergeCondition, taken_apart
from deltalog.rows.merge.evolution import configuration_after, names_of, star_columns
from deltalog.rows.merge.names import BOTH, SOURCE, TARGET, Names
from deltalog.rows.request import Action, ChangeRequest, Clause, When
from deltalog.schema import StructType, find_field
from deltalog.schema.collation_names import BY_BYTES
from deltalog.schema.collations import own_collation
from deltalog.sql_session import SqlSession

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from deltalog.configuration import TableConfiguration

Path = tuple[str, ...]

_SIDES: dict[When, tuple[str, ...]] = {
    When.MATCHED: BOTH,
    When.NOT_MATCHED: (SOURCE,),
    When.NOT_MATCHED_BY_SOURCE: (TARGET,),
}


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """One clause, resolved.

    Args:
        given: as the caller gave it.
        condition: resolved over `Names.schema`; None is always true.
        assigned: the new values of columns; None for DELETE.
    """

    given: Clause
    condition: Expression | None
    assigned: Assignments | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A merge with all names and types resolved.

    Args:
        request: as the caller gave it.
        configuration: of the table after the merge, with new columns.
        names: of both sides, with the table's schema before the merge.
        condition: when rows match.
        matched: WHEN MATCHED clauses.
        not_matched: WHEN NOT MATCHED clauses.
        not_matched_by_source: WHEN NOT MATCHED BY SOURCE clauses.
    """

    request: ChangeRequest
    configuration: TableConfiguration
    names: Names
    condition: MergeCondition
    matched: tuple[ResolvedClause, ...]
    not_matched: tuple[ResolvedClause, ...]
    not_matched_by_source: tuple[ResolvedClause, ...]

    def columns(self, side: str, expressions: Collection[Expression | None]) -> list[str]:
        """The columns of one side that some expressions read."""
        return _columns_of(side, expressions)

    @property
    def target_columns(self) -> list[str]:
        """The columns of the table that decide what happens to its rows."""
        clauses = (*self.matched, *self.not_matched_by_source)
        found = _columns_of(
            TARGET, [*self.condition.residual, *(clause.condition for clause in clauses)]
        )
        alone = [key.target for key in self.condition.keys]
        if self.not_matched_by_source:
            # These clauses need rows that do not match, so this part cannot be left to the scan.
            alone += self.condition.target_only
        return sorted({*found, *(path[0] for part in alone for path in columns(part))})

    @property
    def source_columns(self) -> list[str]:
        """The columns of the source that decide what happens to pairs."""
        clauses = self.matched
        return _columns_of(
            SOURCE, [*self.condition.residual, *(clause.condition for clause in clauses)]
        )


def plan_merge(
    request: ChangeRequest,
    configuration: TableConfiguration,
    source: StructType,
    session: SqlSession,
) -> MergePlan:
    """Resolve a merge against the schemas of both sides.

    Args:
        request: as the caller gave it.
        configuration: of the table.
        source: schema of the source.
        session: the current time and the time zone.

    Raises:
        InvalidInputError: a clause or a name is invalid, or types do not match.
        SchemaMismatchError: the source has columns that an upsert would lose, or cannot be merged.
    """
    request.check()
    after = configuration_after(request, configuration, source)
    names = names_of(request, configuration.schema, source)
    # Values may use columns that this merge adds, which are NULL so far; conditions may not.
    later = names if after is configuration else names_of(request, after.schema, source)
    planner = _Planner(request, after.schema, source, names, later, session)
    condition = request.condition
    if request.is_upsert and isinstance(condition, Expression):
        condition = _by_the_table(condition, configuration.schema)
    return MergePlan(
        request=request,
        configuration=after,
        names=names,
        condition=taken_apart(_resolved(names, condition, BOTH, session), names.schema),
        matched=planner.clauses(When.MATCHED),
        not_matched=planner.clauses(When.NOT_MATCHED),
        not_matched_by_source=planner.clauses(When.NOT_MATCHED_BY_SOURCE),
    )


def plan_condition(
    request: ChangeRequest,
    target: StructType,
    source: StructType,
    session: SqlSession,
    *,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> MergeCondition:
    """Resolve the condition of a merge, and split it by sides.

    Args:
        request: as the caller gave it.
        target: schema of the table.
        source: schema of the source.
        session: the current time and the time zone.
        text_rules: by what texts are compared.

    Raises:
        InvalidInputError: the condition is invalid.
    """
    names = names_of(request, target, source)
    found = _resolved(names, request.condition, BOTH, session, text_rules)
    return taken_apart(found, names.schema)


def _by_the_table(condition: Expression, target: StructType) -> Expression:
    """The condition of an upsert, whose keys are compared by the collations of the table."""

    def collated(part: Expression) -> Expression:
        match part:
            case Comparison(operator, Column() as own, Column() as other):
                collation = own_collation(find_field(target, own.path[1:]))
                if collation != BY_BYTES:
                    return Comparison(operator, own, Collate(other, collation))
        return part

    return conjunction([collated(part) for part in conjuncts(condition)])


def _resolved(
    names: Names,
    sql: str | Expression,
    sides: Collection[str],
    session: SqlSession,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression:
    parsed = names.parse(sql, sides)
    return fold(resolve_predicate(parsed, names.schema, session, text_rules=text_rules))


class _Planner:
    def __init__(  # what `plan_merge` knows
        self,
        request: ChangeRequest,
        target: StructType,
        source: StructType,
        names: Names,
        later: Names,
        session: SqlSession,
    ) -> None:
        self._request = request
        self._target = target
        self._source = source
        self._names = names
        self._later = later
        self._session = session

    def clauses(self, when: When) -> tuple[ResolvedClause, ...]:
        return tuple(self._resolved_clause(clause) for clause in self._request.of(when))

    def _resolved_clause(self, clause: Clause) -> ResolvedClause:
        sides = _SIDES[clause.when]
        condition = None
        if clause.condition is not None:
            condition = _resolved(self._names, clause.condition, sides, self._session)
        if clause.action is Action.DELETE:
            return ResolvedClause(clause, condition, None)
        scope = Scope(
            schema=self._later.schema,
            parse=lambda text: self._later.parse(text, sides),
            session=self._session,
            is_try=not self._request.error_on_type_mismatch,
        )
        if clause.values is not None:
            values: Mapping[Any, object] = {
                self._path(key): self._placed(value, sides) for key, value in clause.values.items()
            }
            if len(values) < len(clause.values):
                raise InvalidInputError(f"{clause}: a column is assigned twice")
            if clause.action is Action.INSERT:
                return ResolvedClause(clause, condition, _inserted(self._target, values, scope))
            return ResolvedClause(clause, condition, assignments(self._target, values, scope))
        names = _known(clause, star_columns(clause, self._source), self._target)
        nodes = star(self._target, self._source, (SOURCE,), names, scope)
        if clause.action is Action.UPDATE:
            check_identities(self._target, nodes)
            return ResolvedClause(clause, condition, Assignments(self._target, nodes))
        paths: Mapping[Any, object] = {
            find_field(self._target, (name,)).name: col_of(name) for name in names
        }
        return ResolvedClause(clause, condition, _inserted(self._target, paths, scope))

    def _placed(self, value: object, sides: Collection[str]) -> object:
        return self._later.parse(value, sides) if isinstance(value, str | Expression) else value

    def _path(self, key: str | Path) -> Path:
        if isinstance(key, tuple):
            return canonical_path(self._target, key)
        parts = self._later.target_path(key, col(key).path)
        return canonical_path(self._target, parts)


def col_of(name: str) -> Expression:
    """Return the expression for a column of the source."""
    return Column((SOURCE, name))


def _known(clause: Clause, names: Sequence[str], target: StructType) -> list[str]:
    """Return the columns that the table has; one at least, or the clause would change nothing."""
    known = {name_key(name) for name in target.names}
    taken = [name for name in names if name_key(name) in known]
    if names and not taken:
        raise InvalidInputError(
            f"{clause} takes nothing: the source has the columns "
            f"{', '.join(map(repr, names))}, and the table {', '.join(map(repr, target.names))}"
        )
    return taken


def _inserted(target: StructType, values: Mapping[Any, object], scope: Scope) -> Assignments:
    """Return the assignments of an INSERT; the enforcer checks identity columns."""
    nodes = {}
    for key, value in values.items():
        path = key if isinstance(key, tuple) else (key,)
        if len(path) > 1:
            raise InvalidInputError(
                f"cannot insert into {'.'.join(path)!r}: new rows need the whole struct"
            )
        nodes[path[0]] = scope.value(value, find_field(target, path), path[0])
    return Assignments(target, nodes)


def _columns_of(side: str, expressions: Collection[Expression | None]) -> list[str]:
    found = {
        path[1]
        for expression in expressions
        if expression is not None
        for path in columns(expression)
        if path[0] == side
    }
    return sorted(found)
