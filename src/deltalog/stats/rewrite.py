"""Conditions on rows rewritten as claims about files.

Owns the rules of rewriting. Negation is pushed down to the conditions themselves; conditions on
partition values alone stay as they are, to be evaluated exactly; what has no rule is unknown.

NaN: Spark orders it above all numbers and writes it as a maximum, and this is trusted, as Spark
trusts it. Writers that leave NaN out of their bounds (delta-rs, DuckDB) break that promise for
`x > 5`. A constant NaN is only looked for where the minimum tells, so `x = NaN` loses no row
either way.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from deltalog.column_mapping import physical_path
from deltalog.errors import DeltaError
from deltalog.expressions.comparing import like_parts
from deltalog.expressions.nodes import (
    And,
    Call,
    Cast,
    Collate,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from deltalog.expressions.trees import LOGIC, columns, fold_tree
from deltalog.schema.collations import ruled_collation
from deltalog.schema.columns import find_field
from deltalog.schema.types import StructType
from deltalog.stats.bounds import keeps_order
from deltalog.stats.claims import (
    AllOf,
    AnyOf,
    Claim,
    Compare,
    Exact,
    HasNull,
    HasValue,
    Never,
    Prefix,
    Unknown,
    is_nan,
)
from deltalog.stats.ranges import CastRange, Constant, PartitionValue, Range, Stored
from deltalog.stats.schema import has_bounds
from deltalog.stats.spans import FLIPPED, Spans, any_of, ends_of_list, wanted_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.column_mapping import Mode
    from deltalog.schema.types import DataType, Field

_NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MANY_OPTIONS: Final = 64
# From here on, several claims about a column are one.
_FEW: Final = 16
# What is asked for one by one costs time for each file and row group.
_MOST_PARTS: Final = 128
_MOST_NESTED: Final = 50


class TableColumns(Protocol):
    """A table's columns, as skipping needs them; a `TableConfiguration` has all of this."""

    @property
    def schema(self) -> StructType:
        """The logical schema."""
        ...

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names, in the schema's spelling."""
        ...

    @property
    def column_mapping_mode(self) -> Mode:
        """How logical names become physical ones."""
        ...


def rewrite(
    predicate: Expression,
    table: TableColumns,
    *,
    is_bounded: Callable[[Field], bool] = has_bounds,
) -> Claim:
    """Return the claim that a file must meet for any of its rows to match.

    Args:
        predicate: resolved against the table's logical schema.
        table: its schema, partition columns and column mapping.
        is_bounded: whether there are bounds of a column.
    """
    return _Rewriter(table, is_bounded).claim(predicate, negated=False)


class _Rewriter:
    def __init__(self, table: TableColumns, is_bounded: Callable[[Field], bool]) -> None:
        self._table = table
        self._is_bounded = is_bounded
        self._partitions = set(table.partition_columns)

    def claim(self, node: Expression, *, negated: bool) -> Claim:
        """Return the claim for rows where `node` is true; negated: where it is false."""
        return fold_tree((node, negated), self._operands, self._combined)[0]

    def _operands(self, asked: tuple[Expression, bool]) -> list[tuple[Expression, bool]]:
        node, negated = asked
        if not isinstance(node, LOGIC) or self._is_exact(node):
            return []
        if isinstance(node, Not):
            return [(node.operand, not negated)]
        return [(operand, negated) for operand in node.operands]

    def _combined(
        self, asked: tuple[Expression, bool], parts: list[tuple[Claim, int]]
    ) -> tuple[Claim, int]:
        """The claim of a node, and how deep it is."""
        node, negated = asked
        if self._is_exact(node):
            return Exact(Not(node) if negated else node), 1
        level = 1 + max((nested for _, nested in parts), default=0)
        if isinstance(node, Not):
            return parts[0][0], level
        claims = [claim for claim, _ in parts]
        found: Claim | None
        if level > _MOST_NESTED:
            found, level = None, 1
        elif isinstance(node, And | Or):
            found = _any_of(claims) if isinstance(node, And) is negated else _all_of(claims)
        else:
            rule = _RULES.get(type(node))
            found = rule(self, node, negated=negated) if rule else None
        return (Unknown(Not(node) if negated else node) if found is None else found), level

    def _is_exact(self, node: Expression) -> bool:
        return all(path[0] in self._partitions for path in columns(node))

    def comparison(self, node: Comparison, *, negated: bool) -> Claim | None:
        operator, left, right = node.operator, node.left, node.right
        if isinstance(left, Literal):
            operator, left, right = FLIPPED.get(operator, operator), right, left
        if operator == "<=>":
            return self._null_safe(left, right, negated=negated)
        if isinstance(right, Literal) and right.value is None:
            return Never(node)
        return self._compare(_NEGATED[operator] if negated else operator, left, right)

    def _null_safe(self, left: Expression, right: Expression, *, negated: bool) -> Claim | None:
        if isinstance(right, Literal) and right.value is None:
            return self.is_null(IsNull(left), negated=negated)
        if not isinstance(right, Literal):
            return None
        if not negated:
            return self._compare("=", left, right)
        differs, missing = self._compare("<>", left, right), self._has_null(left)
        return AnyOf((differs, missing)) if differs and missing else None

    def _compare(self, operator: str, left: Expression, right: Expression) -> Claim | None:
        one, other = self._range(left), self._range(right)
        guards = self._guards(one) + self._guards(other)
        if isinstance(right, Literal) and is_nan(right.value):
            if operator == ">":
                return Never(Comparison(operator, left, right))
            if operator in {"=", ">="}:
                return _all_of(guards) if guards else None
        if one is None or other is None:
            # `f(x) > 5` needs a value of `x` only if `f` gives NULL for NULL: not known here.
            return None
        return _all_of([Compare(operator, one, other), *guards])

    def membership(self, node: In, *, negated: bool) -> Claim | None:
        if not node.fact("is constant", lambda: all(isinstance(o, Literal) for o in node.options)):
            parts = [Comparison("=", node.operand, option) for option in node.options]
            claims = [self.claim(part, negated=negated) for part in parts]
            return _all_of(claims) if negated else _any_of(claims)
        literals: Any = node.options
        if not negated and (ends := ends_of_list(node)) is not None:
            value = self._range(node.operand)
            return None if value is None else _all_of([Spans(value, ends), *self._guards(value)])
        known = [option for option in literals if option.value is not None]
        if negated:
            if len(known) < len(literals):
                return Never(Not(node))
            if len(known) > _MANY_OPTIONS:
                # Only a file of one single value could be skipped.
                return None
            claims = [self.claim(Comparison("<>", node.operand, o), negated=False) for o in known]
            return _all_of(claims)
        if not known:
            return Never(node)
        value = self._range(node.operand)
        if value is None:
            return None
        guards = self._guards(value)
        # There is a NaN among them, of which bounds say nothing, or they have no order.
        return _all_of(guards) if guards else None

    def is_null(self, node: IsNull, *, negated: bool) -> Claim | None:
        return self._has_value(node.operand) if negated else self._has_null(node.operand)

    def like(self, node: Like, *, negated: bool) -> Claim | None:
        pattern = node.pattern
        if not isinstance(pattern, Literal) or node.ignore_case:
            return None
        if pattern.value is None:
            return Never(node)
        parts = like_parts(pattern.value, node.escape)
        if all(part.startswith("=") for part in parts):
            text = Literal("".join(part[1:] for part in parts), pattern.type)
            return self._compare("<>" if negated else "=", node.operand, text)
        prefix = parts[0][1:] if parts[0].startswith("=") else ""
        is_whole = parts[1:] == ["%"]
        return self._prefix(node.operand, prefix, negated=negated, is_whole=is_whole)

    def call(self, node: Call, *, negated: bool) -> Claim | None:
        if node.function != "startswith":
            return None
        operand, prefix = node.arguments
        if not isinstance(prefix, Literal):
            return None
        if prefix.value is None:
            return Never(node)
        return self._prefix(operand, prefix.value, negated=negated, is_whole=True)

    def _prefix(
        self, operand: Expression, prefix: str, *, negated: bool, is_whole: bool
    ) -> Claim | None:
        value = self._range(operand)
        if value is None:
            return None
        guards = self._guards(value)
        # A key that starts with a prefix may be that of a text that does not.
        is_negated_key = negated and isinstance(operand, Collate)
        if (negated and not is_whole) or is_negated_key or not prefix:
            return _all_of(guards) if guards else None
        return _all_of([Prefix(value, prefix, negated), *guards])

    def _range(self, node: Expression) -> Range | None:
        if isinstance(node, Literal):
            return Constant(node)
        if self._is_exact(node):
            return PartitionValue(node)
        # Where clocks change, a cast with a zone does not keep the order.
        if isinstance(node, Cast) and not node.is_try and node.time_zone is None:
            inner, source = self._range(node.operand), self._type_of(node.operand)
            if inner is None or source is None or not keeps_order(source, node.to):
                return None
            return CastRange(inner, source, node.to)
        if isinstance(node, Collate):
            column = self._stored(node.operand)
            is_ruled = column is not None and ruled_collation(column.field) == node.collation
            return replace(column, collation=node.collation) if column and is_ruled else None
        column = self._stored(node)
        return column if column is not None and self._is_bounded(column.field) else None

    def _type_of(self, node: Expression) -> DataType | None:
        match node:
            case Cast():
                return node.to
            case Column():
                return find_field(self._table.schema, node.path).type
            case _:
                return None

    def _stored(self, node: Expression) -> Stored | None:
        """The data column that a node is, or None if it is none."""
        if not isinstance(node, Column) or node.path[0] in self._partitions:
            return None
        try:
            field = find_field(self._table.schema, node.path)
            path = physical_path(self._table.schema, node.path, self._table.column_mapping_mode)
        except DeltaError:
            # A field below a list or a map has no statistics.
            return None
        if isinstance(field.type, StructType):
            return None
        return Stored(node.name, path, field)

    def _leaf_below(self, node: Expression) -> Stored | None:
        """The column that is NULL exactly where the node is: an ANSI cast fails or has a value."""
        while isinstance(node, Collate) or (isinstance(node, Cast) and not node.is_try):
            node = node.operand
        return self._stored(node)

    def _has_null(self, node: Expression) -> Claim | None:
        column = self._leaf_below(node)
        return HasNull(column.name, column.path) if column else None

    def _has_value(self, node: Expression) -> Claim | None:
        column = self._leaf_below(node)
        return HasValue(column.name, column.path) if column else None

    def _guards(self, value: Range | None) -> list[Claim]:
        """Claims that the columns of a range have values: a comparison with NULL is never true."""
        while isinstance(value, CastRange):
            value = value.inner
        match value:
            case Stored():
                return [HasValue(value.name, value.path)]
            case PartitionValue():
                return [Exact(Not(IsNull(value.expression)))]
            case _:
                return []


def _all_of(claims: list[Claim]) -> Claim:
    flat: list[Claim] = []
    guards: list[Claim] = []
    for claim in claims:
        for part in claim.parts if isinstance(claim, AllOf) else (claim,):
            if not isinstance(part, HasNull | HasValue):
                flat.append(part)
            elif part not in guards:
                # Each condition on a column brings the same guard.
                guards.append(part)
                flat.append(part)
    if len(flat) > _MOST_PARTS:
        # Whatever is left out could only rule out more files.
        flat = _tightest(flat)[:_MOST_PARTS]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def _tightest(claims: list[Claim]) -> list[Claim]:
    """Of many limits of one column, the lowest and the highest alone; what is left comes behind."""
    found: dict[tuple[Any, ...], tuple[Any, Claim]] = {}
    others: list[Claim] = []
    for claim in claims:
        wanted = wanted_of(claim) if isinstance(claim, Compare) else []
        if not wanted or None not in wanted[0].spans[0]:
            others.append(claim)
            continue
        first, last = wanted[0].spans[0]
        key, limit = (*wanted[0].key, first is None), last if first is None else first
        known = found.get(key)
        if known is None or (limit < known[0] if first is None else limit > known[0]):
            found[key] = limit, claim
    return [*(claim for _, claim in found.values()), *others]


def _any_of(claims: list[Claim]) -> Claim | None:
    flat: list[Claim] = []
    for claim in claims:
        flat += claim.parts if isinstance(claim, AnyOf) else (claim,)
    if len(flat) <= _FEW:
        return AnyOf(tuple(flat))
    flat = [claim for claim in flat if not isinstance(claim, Never)] or flat[:1]
    # Each asks for one column alone: then the spans say all that the parts say.
    is_same = all(len({one.key for one in wanted_of(part)}) == 1 for part in flat)
    if is_same or len(flat) > _MOST_PARTS:
        merged = any_of(flat)
        if merged is None and len(flat) > _MOST_PARTS:
            return None
        if merged is not None:
            shared = [
                part
                for part in (flat[0].parts if isinstance(flat[0], AllOf) else ())
                if isinstance(part, HasValue)
                and all(isinstance(one, AllOf) and part in _guards_of(one) for one in flat)
            ]
            return _all_of([*merged, *shared])
    return AnyOf(tuple(flat))


def _guards_of(claim: AllOf) -> list[Claim]:
    return [part for part in claim.parts if isinstance(part, HasValue)]


_RULES: Final[dict[type[Expression], Callable[..., Claim | None]]] = {
    Comparison: _Rewriter.comparison,
    In: _Rewriter.membership,
    IsNull: _Rewriter.is_null,
    Like: _Rewriter.like,
    Call: _Rewriter.call,
}
