"""Plan a merge: resolve names and types of its condition and clauses.

This module decides what each clause assigns and which columns conditions read. It does no I/O.

Protocol: none
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog._util.kernels import Array, compute
from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.expressions import (
    Expression,
    Literal,
    TextRules,
    columns,
    conjunction,
    conjuncts,
    filter_mask,
    resolve_predicate,
    type_of,
)
from deltalog.expressions.evaluation import fold
from deltalog.expressions.nodes import Cast, Collate, Column, Comparison, col
from deltalog.expressions.sql_session import SqlSession
from deltalog.operations.changes.assign import (
    Assignments,
    Scope,
    assignments,
    canonical_path,
    check_identities,
    star,
)
from deltalog.operations.changes.merge.source import (
    BOTH,
    SOURCE,
    TARGET,
    Names,
    sides_of,
    without_side,
)
from deltalog.operations.changes.request import Action, ChangeRequest, Clause, When
from deltalog.protocol.deletion_vectors import DeletionBitmap, keep_mask
from deltalog.protocol.table_change.change import changed_table
from deltalog.schema import DataType, Field, PrimitiveType, StructType, find_field, merge_schemas
from deltalog.schema.collations import own_collation
from deltalog.schema.primitives import Family
from deltalog.schema.types import BY_BYTES, VOID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from deltalog.protocol.configuration import TableConfiguration

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
        given: as given by the caller.
        condition: resolved over `Names.schema`; None means always true.
        assigned: the new values of columns; None for DELETE.
    """

    given: Clause
    condition: Expression | None
    assigned: Assignments | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A merge with all names and types resolved.

    Args:
        request: as given by the caller.
        configuration: configuration of the table after the merge, with new columns.
        names: names of both sides, with the table's schema before the merge.
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
        """Return the columns of one side that some expressions read."""
        return _columns_of(side, expressions)

    @property
    def target_columns(self) -> list[str]:
        """The columns of the table that conditions read."""
        clauses = (*self.matched, *self.not_matched_by_source)
        found = _columns_of(
            TARGET, [*self.condition.residual, *(clause.condition for clause in clauses)]
        )
        alone = [key.target for key in self.condition.keys]
        if self.not_matched_by_source:
            # These clauses need rows that do not match, so this part cannot be left to the scan.
            alone += self.condition.target_only
        return sorted({*found, *(path[0] for part in alone for path in columns(part))})


def plan_merge(
    request: ChangeRequest,
    configuration: TableConfiguration,
    source: StructType,
    session: SqlSession,
) -> MergePlan:
    """Resolve a merge against the schemas of both sides.

    Args:
        request: as given by the caller.
        configuration: configuration of the table.
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
        request: as given by the caller.
        target: schema of the table.
        source: schema of the source.
        session: the current time and the time zone.
        text_rules: how strings are compared.

    Raises:
        InvalidInputError: the condition is invalid.
    """
    names = names_of(request, target, source)
    found = _resolved(names, request.condition, BOTH, session, text_rules)
    return taken_apart(found, names.schema)


def _by_the_table(condition: Expression, target: StructType) -> Expression:
    """Return the condition of an upsert, which compares keys by the table's collations."""

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
    def __init__(  # the arguments of `plan_merge`
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
    """Return the columns that the table has; at least one, or the clause would change nothing."""
    known = {name_key(name) for name in target.names}
    taken = [name for name in names if name_key(name) in known]
    if names and not taken:
        raise InvalidInputError(
            f"{clause} assigns nothing: the source has the columns "
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


# Choose a row's clause: of the clauses for its `when`, the first one whose condition is true.


def first_true(
    conditions: Sequence[Expression | None],
    num_rows: int,
    scope: Callable[[Array | None, Expression], pa.RecordBatch],
    *,
    first: int = 0,
) -> Array:
    """Return for each row the number of the first condition that is true; NULL if none is.

    Args:
        conditions: conditions of the clauses in their order; None means always true.
        num_rows: the number of rows.
        scope: returns the input of a condition, for the rows at some places; None means all.
        first: the number of the first condition.

    Cost: each condition is evaluated for the rows that have no earlier clause.
    """
    numbers = pa.nulls(num_rows, pa.int8())
    left: Array = None  # places without a clause so far; None is all
    for number, condition in enumerate(conditions, first):
        if left is not None and not len(left):
            break
        code = pa.scalar(number, pa.int8())
        if condition is None:
            return compute.if_else(compute.is_null(numbers), code, numbers)
        holds = filter_mask(condition, scope(left, condition))
        mask = holds if left is None else _scatter(holds, left, num_rows)
        numbers = compute.if_else(mask, code, numbers)
        others = compute.indices_nonzero(compute.invert(holds)).cast(pa.int64())
        left = others if left is None else left.take(others)
    return numbers


def _scatter(values: Array, places: Array, count: int) -> Array:
    """Return a mask of `count` booleans: `values` at `places`, false elsewhere."""
    chosen = places.filter(values)
    mask = keep_mask(DeletionBitmap.from_arrow(chosen.cast(pa.int64())), 0, count)
    if mask is None:
        return pa.repeat(pa.scalar(value=False), count)
    return compute.invert(mask)


# The columns that a merge adds to a table, and the meaning of names in a merge.


def configuration_after(
    request: ChangeRequest, configuration: TableConfiguration, source: StructType
) -> TableConfiguration:
    """Return the configuration with the columns that the merge adds from the source.

    Raises:
        SchemaMismatchError: the source has columns that an upsert would lose, or cannot be merged.
    """
    wanted = _wanted(request, configuration.schema, source)
    if not request.merge_schema:
        known = {name_key(name) for name in configuration.schema.names}
        extra = [name for name in wanted if name_key(name) not in known]
        if extra and request.is_upsert:
            shown = ", ".join(map(repr, extra))
            raise SchemaMismatchError(
                f"cannot upsert: the data has column(s) {shown} that the table lacks; "
                "merge_schema=True adds them, and merge(…) leaves them out"
            )
        return configuration
    widens = configuration.is_active("typeWidening")
    merged = _with_fields(
        configuration.schema, [find_field(source, (name,)) for name in wanted], widens=widens
    )
    for path in _assigned(request, configuration.schema, source):
        field = _along(source, path)
        if field is not None:
            # If the types differ, the assigned value is computed from other columns.
            with suppress(SchemaMismatchError):
                merged = _with_fields(merged, [field], widens=False)
    if merged == configuration.schema:
        return configuration
    return changed_table(configuration, schema=merged)


def star_columns(clause: Clause, source: StructType) -> list[str]:
    """Return the source columns that a `*` clause assigns.

    Raises:
        InvalidInputError: `except_columns` names a column that the source does not have.
    """
    left_out = {find_field(source, (name.strip("`"),)).name for name in clause.except_columns}
    return [name for name in source.names if name not in left_out]


def names_of(request: ChangeRequest, target: StructType, source: StructType) -> Names:
    """Return the meaning of names in a merge: columns of the table, or of the source."""
    return Names(
        target,
        source,
        target_alias=request.target_alias,
        source_alias=request.source_alias,
        parameters=request.named_parameters,
    )


def _with_fields(schema: StructType, fields: Sequence[Field], *, widens: bool) -> StructType:
    return merge_schemas(
        schema,
        StructType(fields),
        allow_widening=widens,
        casts=True,  # each new value is cast to its column's type
    )


def _assigned(
    request: ChangeRequest, target: StructType, source: StructType
) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the table's own columns to which clauses assign explicit values.

    These columns gain the fields that the source's column with the same path has. As in Delta
    Spark, this depends neither on the value nor on whether a row changes.
    """
    known = {name_key(name) for name in target.names}
    names = names_of(request, target, source)
    for clause in request.clauses:
        for key in () if clause.is_star else clause.values or ():
            path = key if isinstance(key, tuple) else names.target_path(key, col(key).path)
            if name_key(path[0]) in known:
                yield path


def _along(source: StructType, path: tuple[str, ...]) -> Field | None:
    """Return the source's column reduced to the field at a path; None if there is no such field."""
    found = source.fields_named(path[0])
    if len(found) != 1 or len(path) == 1:
        return found[0] if len(found) == 1 else None
    if not isinstance(found[0].type, StructType):
        return None
    inner = _along(found[0].type, path[1:])
    return None if inner is None else replace(found[0], type=StructType([inner]))


def _wanted(request: ChangeRequest, target: StructType, source: StructType) -> list[str]:
    """Return the source columns that the table has, or gains if its schema may evolve."""
    found: dict[str, None] = {}
    known = {name_key(name) for name in target.names}
    theirs = {name_key(name): name for name in source.names}
    names = names_of(request, target, source)
    for clause in request.clauses:
        if clause.is_star:
            found.update(dict.fromkeys(star_columns(clause, source)))
            continue
        for key in clause.values or {}:
            path = key if isinstance(key, tuple) else names.target_path(key, col(key).path)
            if name_key(path[0]) not in known and name_key(path[0]) in theirs:
                found[theirs[name_key(path[0])]] = None
    return list(found)


# The condition of a merge, split by the sides that its conjuncts use.


_ORDERED: Final = (Family.INTEGRAL, Family.DECIMAL, Family.MOMENT)


@dataclass(frozen=True, slots=True)
class Key:
    """An equality in the condition that can be looked up: `target = source`.

    Args:
        target: over the table's columns.
        source: over the source's columns.
        null_safe: whether NULL equals NULL.
    """

    target: Expression
    source: Expression
    null_safe: bool


@dataclass(frozen=True, slots=True)
class SourceRange:
    """Inequalities in the condition that can be searched: `low <= target`, `target <= high`.

    Equal values may or may not match: the inequalities are in the residual, too.

    Args:
        target: a column of the table.
        low: a column of the source, or None.
        high: a column of the source, or None; at least one of `low` and `high` is set.
    """

    target: Expression
    low: Expression | None
    high: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCondition:
    """The condition of a merge, split into conjuncts by the sides that they use.

    Args:
        keys: equi-join keys.
        target_only: conjuncts over the table's columns.
        source_only: conjuncts over the source's columns.
        residual: the other conjuncts, over both sides.
        within: some of the residual as a range of the source; only if there are no keys.
        is_never: whether a constant conjunct is not true, so that no rows match.
    """

    keys: tuple[Key, ...]
    target_only: tuple[Expression, ...]
    source_only: tuple[Expression, ...]
    residual: tuple[Expression, ...]
    within: SourceRange | None
    is_never: bool


def taken_apart(whole: Expression, schema: StructType) -> MergeCondition:
    """Split a resolved condition.

    Args:
        whole: over the structs `target` and `source`.
        schema: schema of the two structs.
    """
    keys: list[Key] = []
    target_only: list[Expression] = []
    source_only: list[Expression] = []
    residual: list[Expression] = []
    is_never = False
    for part in conjuncts(whole):
        sides = sides_of(columns(part))
        key = _key(part, schema)
        if not sides:
            is_never = is_never or not (isinstance(part, Literal) and part.value is True)
        elif key is not None:
            keys.append(key)
        elif sides == {TARGET}:
            target_only.append(without_side(part))
        elif sides == {SOURCE}:
            source_only.append(without_side(part))
        else:
            residual.append(part)
    return MergeCondition(
        keys=tuple(keys),
        target_only=tuple(target_only),
        source_only=tuple(source_only),
        residual=tuple(residual),
        within=None if keys else _range(residual, schema),
        is_never=is_never,
    )


def _key(part: Expression, schema: StructType) -> Key | None:
    """Return a conjunct as a key if it equates a value of each side; else None."""
    if not isinstance(part, Comparison) or part.operator not in {"=", "<=>"}:
        return None
    left, right = sides_of(columns(part.left)), sides_of(columns(part.right))
    ends = (part.left, part.right)
    if (left, right) == ({SOURCE}, {TARGET}):
        ends = ends[::-1]
    elif (left, right) != ({TARGET}, {SOURCE}):
        return None
    data_type = type_of(ends[0], schema)
    if not isinstance(data_type, PrimitiveType) or data_type == VOID:
        return None
    if type_of(ends[1], schema) != data_type:  # timestamps in two units have no common form
        return None
    return Key(without_side(ends[0]), without_side(ends[1]), part.operator == "<=>")


def _range(parts: Sequence[Expression], schema: StructType) -> SourceRange | None:
    """Return the inequalities of one column as a range, or a single one; None if there is none."""
    found: list[SourceRange] = []
    for part in parts:
        new = _bound(part, schema)
        if new is None:
            continue
        for number, old in enumerate(found):
            if old.target.same_as(new.target):
                low = new.low if old.low is None else old.low
                high = new.high if old.high is None else old.high
                found[number] = SourceRange(old.target, low, high)
                break
        else:
            found.append(new)
    both = [one for one in found if one.low is not None and one.high is not None]
    return next(iter(both or found), None)


def _bound(part: Expression, schema: StructType) -> SourceRange | None:
    """Return a conjunct as a one-ended range if it compares a column of each side; else None."""
    if not isinstance(part, Comparison) or part.operator not in {"<", "<=", ">", ">="}:
        return None
    less, greater = part.left, part.right
    if part.operator in {">", ">="}:
        less, greater = greater, less
    data_type = type_of(less, schema)
    # Of other types Arrow's order is not Spark's, or depends on a collation.
    if not isinstance(data_type, PrimitiveType) or data_type.primitive.family not in _ORDERED:
        return None
    if type_of(greater, schema) != data_type:
        return None
    if not (_never_fails(less, schema) and _never_fails(greater, schema)):
        return None
    sides = sides_of(columns(less)), sides_of(columns(greater))
    if sides == ({SOURCE}, {TARGET}):
        return SourceRange(without_side(greater), without_side(less), None)
    if sides == ({TARGET}, {SOURCE}):
        return SourceRange(without_side(less), None, without_side(greater))
    return None


def _never_fails(expression: Expression, schema: StructType) -> bool:
    """Whether an expression cannot fail, so that it may run on rows that have no pair."""
    if isinstance(expression, Cast) and isinstance(expression.operand, Column):
        narrow, wide = _digits(type_of(expression.operand, schema)), _digits(expression.to)
        return 0 < narrow <= wide
    return isinstance(expression, Column)


def _digits(kind: DataType) -> int:
    """Return the number of decimal digits of an integral type's values; 0 for other types."""
    if not isinstance(kind, PrimitiveType) or kind.primitive.family is not Family.INTEGRAL:
        return 0
    return kind.primitive.decimal_digits
