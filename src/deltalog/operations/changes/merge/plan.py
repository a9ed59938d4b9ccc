"""Plan a merge: resolve the names and types in its condition and clauses.

This module decides what each clause assigns and which columns the conditions read. It does no I/O.

Protocol: none
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.escaping import name_key, path_key
from deltalog._util.kernels import FALSE, Array, compute
from deltalog._util.similar_names import similar_to
from deltalog.data.write.fit import check_new_columns
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
from deltalog.expressions.nodes import Cast, Collate, Column, Comparison
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

logger: logging.Logger = logging.getLogger(__name__)
_SIDES: dict[When, tuple[str, ...]] = {
    When.MATCHED: BOTH,
    When.NOT_MATCHED: (SOURCE,),
    When.NOT_MATCHED_BY_SOURCE: (TARGET,),
}


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """One clause with all names and types resolved.

    Args:
        given: the clause as the caller wrote it.
        condition: the resolved condition over `Names.schema`; None means always true.
        assigned: the new values of columns; None for DELETE.
    """

    given: Clause
    condition: Expression | None
    assigned: Assignments | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A merge with all names and types resolved.

    Args:
        request: the merge as the caller requested it.
        configuration: configuration of the table after the merge, with new columns.
        names: names of both sides, with the table's schema before the merge.
        condition: the condition under which two rows match.
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
        """Return the columns of one side that the expressions read."""
        return _columns_of(side, expressions)

    @property
    def target_columns(self) -> list[str]:
        """The columns of the table that the conditions read, those of clauses included."""
        clauses = (*self.matched, *self.not_matched_by_source)
        found = _columns_of(
            TARGET, [*self.condition.residual, *(clause.condition for clause in clauses)]
        )
        alone = [key.target for key in self.condition.keys]
        if self.not_matched_by_source:
            # These clauses also apply to table rows without a match. So the scan must not filter by
            # the conjuncts that read only the table. The merge evaluates these conjuncts itself.
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
        request: the merge as the caller requested it.
        configuration: configuration of the table.
        source: schema of the source.
        session: the current time and the time zone.

    Raises:
        InvalidInputError: a clause or a name is invalid, or types do not match.
        SchemaMismatchError: an upsert would lose columns of the source, or a new column's type
            contradicts the table.
    """
    request.check()
    after = configuration_after(request, configuration, source)
    names = names_of(request, configuration.schema, source)
    # Assigned values may read columns that this merge adds and that are NULL in existing rows.
    # Conditions must not read such columns.
    later = names if after is configuration else names_of(request, after.schema, source)
    planner = _Planner(request, after.schema, source, names, later, session)
    condition = request.condition
    if request.is_upsert and isinstance(condition, Expression):
        condition = _by_the_table(condition, configuration.schema)
    return MergePlan(
        request=request,
        configuration=after,
        names=names,
        condition=taken_apart(_condition(names, condition, session), names.schema),
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
    """Resolve the condition of a merge, and split it by the sides that its conjuncts read.

    Args:
        request: the merge as the caller requested it.
        target: schema of the table.
        source: schema of the source.
        session: the current time and the time zone.
        text_rules: how strings are compared.

    Raises:
        InvalidInputError: the condition is invalid.
    """
    names = names_of(request, target, source)
    found = _condition(names, request.condition, session, text_rules)
    return taken_apart(found, names.schema)


def _by_the_table(condition: Expression, target: StructType) -> Expression:
    """Return an upsert's condition with the table's collations for the comparison of keys."""

    def collated(part: Expression) -> Expression:
        match part:
            case Comparison(operator, Column() as own, Column() as other):
                collation = own_collation(find_field(target, own.path[1:]))
                if collation != BY_BYTES:
                    return Comparison(operator, own, Collate(other, collation))
        return part

    return conjunction([collated(part) for part in conjuncts(condition)])


def _condition_of(
    parsed: Expression,
    names: Names,
    session: SqlSession,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression:
    """Return a parsed condition with all types resolved."""
    return fold(resolve_predicate(parsed, names.schema, session, text_rules=text_rules))


def _condition(
    names: Names,
    condition: str | Expression,
    session: SqlSession,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression:
    try:
        parsed = names.parse(condition)
        _check_compared(parsed, names)
        return _condition_of(parsed, names, session, text_rules)
    except InvalidInputError as error:
        if isinstance(condition, str) and condition.isidentifier() and "ambiguous" in str(error):
            both = " = ".join(names.shown(side, condition) for side in (TARGET, SOURCE))
            raise InvalidInputError(
                f"{error}; for rows with equal keys, write {both!r}, or upsert(data, {condition!r})"
            ) from None
        raise


def _check_compared(condition: Expression, names: Names) -> None:
    """Raise for a column that is compared with itself, which is true for all pairs of rows."""
    for part in conjuncts(condition):
        if not isinstance(part, Comparison) or part.operator not in {"=", "<=>"}:
            continue
        left, right = part.left, part.right
        if not isinstance(left, Column) or not isinstance(right, Column):
            continue
        if path_key(left.path) == path_key(right.path):
            (side, name), other = left.path[:2], SOURCE if left.path[0] == TARGET else TARGET
            raise InvalidInputError(
                f"cannot merge on {names.shown(side, name)} {part.operator} "
                f"{names.shown(side, name)}: the condition compares a column with itself; compare "
                f"it with a column of the {other}"
            )


class _Planner:
    def __init__(  # for the arguments, see `plan_merge`
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
            parsed = self._names.parse(clause.condition, sides)
            condition = _condition_of(parsed, self._names, self._session)
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
        return canonical_path(self._target, self._later.target_path(key))


def col_of(name: str) -> Expression:
    """Return the expression for a column of the source."""
    return Column((SOURCE, name))


def _known(clause: Clause, names: Sequence[str], target: StructType) -> list[str]:
    """Return the names that are columns of the table.

    Raises:
        InvalidInputError: the table has none of these columns, so the clause would assign nothing.
    """
    known = {name_key(name) for name in target.names}
    taken = [name for name in names if name_key(name) in known]
    if clause.except_columns and not names:
        raise InvalidInputError(f"{clause} assigns nothing: except_cols has all source columns")
    if names and not taken:
        raise InvalidInputError(
            f"{clause} assigns nothing: the source has the columns "
            f"{', '.join(map(repr, names))}, and the table {', '.join(map(repr, target.names))}"
        )
    return taken


def _inserted(target: StructType, values: Mapping[Any, object], scope: Scope) -> Assignments:
    """Return the assignments of an INSERT. The enforcer checks identity columns later."""
    nodes = {}
    for key, value in values.items():
        path = key if isinstance(key, tuple) else (key,)
        if len(path) > 1:
            raise InvalidInputError(
                f"cannot insert into {'.'.join(path)!r}: INSERT must assign the whole struct "
                f"{path[0]!r}"
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


# --- Choice of a row's clause: the first clause whose condition is true


def first_true(
    conditions: Sequence[Expression | None],
    num_rows: int,
    scope: Callable[[Array | None, Expression], pa.RecordBatch],
    *,
    first: int = 0,
) -> Array:
    """Return for each row the number of the first true condition; NULL if no condition is true.

    Args:
        conditions: the conditions of the clauses in order; None means always true.
        num_rows: the number of rows.
        scope: returns the rows at some positions, as input of a condition; None means all rows.
        first: the number of the first condition.

    Cost: evaluates each condition on the rows for which no earlier condition is true.
    """
    numbers = pa.nulls(num_rows, pa.int8())
    left: Array = None  # positions of the rows without a clause so far; None means all rows
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
    """Return a mask of `count` booleans: `values` at the positions `places`, false elsewhere."""
    chosen = places.filter(values)
    mask = keep_mask(DeletionBitmap.from_arrow(chosen.cast(pa.int64())), 0, count)
    if mask is None:
        return pa.repeat(FALSE, count)
    return compute.invert(mask)


# --- The columns that a merge adds to the table, and the resolution of names


def configuration_after(
    request: ChangeRequest, configuration: TableConfiguration, source: StructType
) -> TableConfiguration:
    """Return the configuration with the columns that the merge adds from the source.

    Raises:
        SchemaMismatchError: an upsert would lose columns of the source, or a new column's type
            contradicts the table.
    """
    wanted = _wanted(request, configuration.schema, source)
    if not request.merge_schema:
        known = {name_key(name) for name in configuration.schema.names}
        extra = [name for name in wanted if name_key(name) not in known]
        if extra and request.is_upsert:
            shown = ", ".join(map(repr, extra))
            check_new_columns(extra, (), "upsert")
            raise SchemaMismatchError(
                f"cannot upsert: the data has column(s) {shown} that the table lacks; "
                "upsert(…, merge_schema=True) adds them to the table, and merge(…) ignores them"
            )
        _warn_of_misspelt(extra, configuration.schema, source)
        return configuration
    doing = "upsert" if request.is_upsert else "merge"
    check_new_columns(wanted, configuration.schema.names, doing)
    widens = configuration.is_active("typeWidening")
    merged = _with_fields(
        configuration.schema, [find_field(source, (name,)) for name in wanted], widens=widens
    )
    for path in _assigned(request, configuration.schema, source):
        field = _along(source, path)
        if field is not None:
            # If the types cannot be merged, do not change the table's type. The assigned value may
            # be computed from other columns, so this is no error.
            with suppress(SchemaMismatchError):
                merged = _with_fields(merged, [field], widens=False)
    if merged == configuration.schema:
        return configuration
    return changed_table(configuration, schema=merged)


def _warn_of_misspelt(extra: Sequence[str], target: StructType, source: StructType) -> None:
    """Log columns that a `*` clause ignores, if the table has a similar one that the source lacks.

    Other columns of the source may be there for the conditions of clauses.
    """
    given = {name_key(name) for name in source.names}
    missing = [name for name in target.names if name_key(name) not in given]
    for name in extra:
        if similar := similar_to(name, missing):
            logger.warning(
                "the merge ignores the column %r, which the table lacks%s", name, similar
            )


def star_columns(clause: Clause, source: StructType) -> list[str]:
    """Return the source columns that a `*` clause assigns.

    Raises:
        InvalidInputError: `except_columns` names a column that the source does not have.
    """
    left_out = {find_field(source, (name.strip("`"),)).name for name in clause.except_columns}
    return [name for name in source.names if name not in left_out]


def names_of(request: ChangeRequest, target: StructType, source: StructType) -> Names:
    """Return the names that the SQL of a merge may use: columns and aliases of both sides.

    Raises:
        InvalidInputError: the rows of an upsert lack a key column.
    """
    if request.is_upsert and isinstance(request.condition, Expression):
        keys = [path[1] for path in columns(request.condition) if path[0] == SOURCE]
        known = {name_key(name) for name in source.names}
        if lacking := [key for key in keys if name_key(key) not in known]:
            raise InvalidInputError(
                f"cannot upsert: the rows lack the key column {lacking[0]!r}; their columns are "
                f"{', '.join(map(repr, source.names[:20])) or 'none'}"
            )
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
        casts=True,  # types may differ, because each assigned value is cast to its column's type
    )


def _assigned(
    request: ChangeRequest, target: StructType, source: StructType
) -> Iterator[tuple[str, ...]]:
    """Yield the paths of existing columns of the table to which clauses assign explicit values.

    If the source has a column at the same path, its additional fields are added to the table's
    column. As in Delta Spark, this depends neither on the assigned value nor on whether any row
    changes.
    """
    known = {name_key(name) for name in target.names}
    names = names_of(request, target, source)
    for clause in request.clauses:
        for key in () if clause.is_star else clause.values or ():
            path = names.target_path(key)
            if name_key(path[0]) in known:
                yield path


def _along(source: StructType, path: tuple[str, ...]) -> Field | None:
    """Return the source's column with only the field at a path; None if there is no such field."""
    found = source.fields_named(path[0])
    if len(found) != 1 or len(path) == 1:
        return found[0] if len(found) == 1 else None
    if not isinstance(found[0].type, StructType):
        return None
    inner = _along(found[0].type, path[1:])
    return None if inner is None else replace(found[0], type=StructType([inner]))


def _wanted(request: ChangeRequest, target: StructType, source: StructType) -> list[str]:
    """Return the source columns that the table needs.

    These are the columns of `*` clauses, and those that clauses assign by name to columns that the
    table lacks.
    """
    found: dict[str, None] = {}
    known = {name_key(name) for name in target.names}
    theirs = {name_key(name): name for name in source.names}
    names = names_of(request, target, source)
    for clause in request.clauses:
        if clause.is_star:
            found.update(dict.fromkeys(star_columns(clause, source)))
            continue
        for key in clause.values or {}:
            path = names.target_path(key)
            if name_key(path[0]) not in known and name_key(path[0]) in theirs:
                found[theirs[name_key(path[0])]] = None
    return list(found)


# --- The condition of a merge, split by the sides that its conjuncts read


_ORDERED: Final = (Family.INTEGRAL, Family.DECIMAL, Family.MOMENT)


@dataclass(frozen=True, slots=True)
class Key:
    """An equality `target = source` in the condition, which an equi-join can look up.

    Args:
        target: an expression over the table's columns.
        source: an expression over the source's columns.
        null_safe: whether NULL equals NULL.
    """

    target: Expression
    source: Expression
    null_safe: bool


@dataclass(frozen=True, slots=True)
class SourceRange:
    """Inequalities `low <= target` and `target <= high` in the condition.

    A range index finds the candidates. The original inequalities, which may exclude equal values,
    are also in `MergeCondition.residual`.

    Args:
        target: a column of the table.
        low: a column of the source; None if there is no lower bound.
        high: a column of the source; None if there is no upper bound. At least one bound is set.
    """

    target: Expression
    low: Expression | None
    high: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCondition:
    """The condition of a merge, split into conjuncts by the sides that they read.

    Args:
        keys: the equi-join keys.
        target_only: conjuncts that read only the table's columns.
        source_only: conjuncts that read only the source's columns.
        residual: conjuncts over both sides that are not equi-join keys.
        within: one or two inequalities of the residual as a range, if there are no keys.
        is_never: whether no rows can match, because a constant conjunct is false or NULL.
    """

    keys: tuple[Key, ...]
    target_only: tuple[Expression, ...]
    source_only: tuple[Expression, ...]
    residual: tuple[Expression, ...]
    within: SourceRange | None
    is_never: bool


def taken_apart(whole: Expression, schema: StructType) -> MergeCondition:
    """Split a resolved condition into its conjuncts.

    Args:
        whole: the condition over the structs `target` and `source`.
        schema: the schema that contains these two structs.
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
    """Return a conjunct as a key if it is an equality between the two sides; otherwise None."""
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
    if type_of(ends[1], schema) != data_type:  # for example, timestamps in different units
        return None
    return Key(without_side(ends[0]), without_side(ends[1]), part.operator == "<=>")


def _range(parts: Sequence[Expression], schema: StructType) -> SourceRange | None:
    """Return a range of one table column, with both bounds if possible; None without inequality."""
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
    """Return an inequality between columns of the two sides as a range with one bound.

    None if the conjunct is not such an inequality.
    """
    if not isinstance(part, Comparison) or part.operator not in {"<", "<=", ">", ">="}:
        return None
    less, greater = part.left, part.right
    if part.operator in {">", ">="}:
        less, greater = greater, less
    data_type = type_of(less, schema)
    # Arrow orders values of other types differently from Spark, or a collation orders them.
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
    """Whether evaluating an expression cannot fail, for any row.

    The index evaluates it also for rows that match nothing, where an error would be wrong.
    """
    if isinstance(expression, Cast) and isinstance(expression.operand, Column):
        narrow, wide = _digits(type_of(expression.operand, schema)), _digits(expression.to)
        return 0 < narrow <= wide
    return isinstance(expression, Column)


def _digits(kind: DataType) -> int:
    """Return the number of decimal digits of an integral type's values; 0 for other types."""
    if not isinstance(kind, PrimitiveType) or kind.primitive.family is not Family.INTEGRAL:
        return 0
    return kind.primitive.decimal_digits
