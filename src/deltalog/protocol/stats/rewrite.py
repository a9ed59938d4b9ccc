"""Rewrite conditions on rows as claims about files.

A NOT is moved into the comparisons. Conditions that use only partition columns are evaluated
exactly. Any other condition for which there is no rule is unknown.

In Spark, NaN is greater than all numbers, and can be a maximum. Like Spark, deltalog relies on
this. Writers such as delta-rs and DuckDB ignore NaN in bounds. In their files, `x > 5` may skip
rows with NaN. A constant NaN is compared only with the minimum, so `x = NaN` is correct for all
writers.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import FALSE, pc
from deltalog._util.small_arrays import small_scalar
from deltalog.errors import DeltaError
from deltalog.expressions.comparing import compare, like_parts
from deltalog.expressions.literals import to_array, to_scalar
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
from deltalog.protocol.column_mapping import Mode, physical_path
from deltalog.protocol.stats.ranges import (
    AllOf,
    AnyOf,
    CastRange,
    Claim,
    Compare,
    Constant,
    Exact,
    HasNull,
    HasValue,
    Never,
    PartitionValue,
    Prefix,
    Range,
    Stored,
    Unknown,
    is_nan,
    keeps_order,
)
from deltalog.protocol.stats.schema import Path, has_bounds
from deltalog.schema.collations import ruled_collation
from deltalog.schema.columns import find_field
from deltalog.schema.types import DataType, Field, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from deltalog.protocol.stats.ranges import Datum, Facts

_NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MANY_OPTIONS: Final = 64
# An OR of at most this number of claims is not simplified. A claim with at most this number of
# spans tests every span. With more spans, it searches for the span nearest to a file's range.
_FEW: Final = 16
# The maximum number of claims in an AND or OR, because each claim is evaluated for every file.
_MOST_PARTS: Final = 128
_MOST_NESTED: Final = 50


class TableColumns(Protocol):
    """The facts about a table's columns that skipping needs, such as a `TableConfiguration`."""

    @property
    def schema(self) -> StructType:
        """The logical schema."""
        ...

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The logical names, spelled as in the schema."""
        ...

    @property
    def column_mapping_mode(self) -> Mode:
        """The mapping of logical to physical names."""
        ...


def rewrite(
    predicate: Expression,
    table: TableColumns,
    *,
    is_bounded: Callable[[Field], bool] = has_bounds,
) -> Claim:
    """Return a claim about files; a file for which it is false has no matching rows.

    Args:
        predicate: the condition, resolved against the table's logical schema.
        table: the schema, partition columns and column mapping.
        is_bounded: returns whether a column has bounds.
    """
    return _Rewriter(table, is_bounded).claim(predicate, negated=False)


class _Rewriter:
    def __init__(self, table: TableColumns, is_bounded: Callable[[Field], bool]) -> None:
        self._table = table
        self._is_bounded = is_bounded
        self._partitions = set(table.partition_columns)

    def claim(self, node: Expression, *, negated: bool) -> Claim:
        """Return the claim for files with rows for which `node` is true (negated: false)."""
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
        """Return the claim of a node, and its depth."""
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
            # `f(x) > 5` implies that `x` is not NULL only if `f` returns NULL for NULL. This is not
            # known here.
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
                # A claim for many options is slow, and could skip only files with a single value.
                return None
            claims = [self.claim(Comparison("<>", node.operand, o), negated=False) for o in known]
            return _all_of(claims)
        if not known:
            return Never(node)
        value = self._range(node.operand)
        if value is None:
            return None
        guards = self._guards(value)
        # An option is NaN, or the options have no order. So bounds cannot be used.
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
        # A collation key may start with the prefix although the string does not start with it.
        is_negated_key = negated and isinstance(operand, Collate)
        if (negated and not is_whole) or is_negated_key or not prefix:
            return _all_of(guards) if guards else None
        return _all_of([Prefix(value, prefix, negated), *guards])

    def _range(self, node: Expression) -> Range | None:
        if isinstance(node, Literal):
            return Constant(node)
        if self._is_exact(node):
            return PartitionValue(node)
        # A cast with a time zone does not preserve the order at DST changes.
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
        """Return the data column of a node; None for other nodes."""
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
        """Return the data column inside casts; None for other nodes.

        Such a node is NULL only if the column is NULL.
        """
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
        """Return claims that the columns of a range have values in some rows.

        A comparison with NULL is never true, so a file in which a column is always NULL is skipped.
        """
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
                # Equal guards are added only once.
                guards.append(part)
                flat.append(part)
    if len(flat) > _MOST_PARTS:
        # Claims can be dropped, because a claim can only exclude files.
        flat = _tightest(flat)[:_MOST_PARTS]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def _tightest(claims: list[Claim]) -> list[Claim]:
    """Return the strictest limits of each column, followed by the other claims."""
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
    # If each part is a condition on only one range, the merged spans can replace the parts.
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


# --- Merging of many constants and ranges into few claims about files


FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""Operator → the operator with the same meaning after both sides are swapped."""


Span = tuple[Any, Any]
"""The smallest and the greatest value of a range as Python objects; None means no limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Spans of values.

    Args:
        kind: the type of the values.
        spans: the bounded spans, ascending and disjoint.
        lows: the lower ends of these spans, without NULL and NaN.
        highs: the upper ends of these spans.
        below: the end of a span without lower limit; None if there is no such span.
        above: the start of a span without upper limit; None if there is no such span.
    """

    kind: DataType
    spans: tuple[Span, ...]
    lows: pa.Array[Any]
    highs: pa.Array[Any]
    below: pa.Scalar[Any] | None = None
    above: pa.Scalar[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """The claim that one of several spans of values overlaps a range.

    Args:
        value: the range.
        ends: the ends of the spans.
    """

    value: Range
    ends: Ends

    def judge(self, facts: Facts) -> Datum:
        """Return whether a span overlaps the range."""
        low, high = self.value.lower(facts), self.value.upper(facts)
        if low is None or high is None:
            return None
        found: Datum = FALSE
        ends = self.ends
        try:
            if ends.below is not None:
                found = pc.or_kleene(found, compare("<=", low, ends.below))
            if ends.above is not None:
                found = pc.or_kleene(found, compare(">=", high, ends.above))
            if len(ends.lows) <= _FEW:
                return pc.or_kleene(found, self._each(low, high))
            return pc.or_kleene(found, self._nearest(low, high))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DeltaError):
            return None

    def _each(self, low: Datum, high: Datum) -> Datum:
        found: Datum = FALSE
        for first, last in zip(self.ends.lows, self.ends.highs, strict=True):
            inside = pc.and_kleene(compare("<=", low, last), compare(">=", high, first))
            found = pc.or_kleene(found, inside)
        return found

    def _nearest(self, low: Datum, high: Datum) -> Datum:
        ends = self.ends
        lows, highs = ends.lows, ends.highs
        try:
            if pt.is_floating(highs.type):
                # The search distinguishes -0.0 and 0.0. Adding 0.0 converts -0.0 to 0.0.
                highs, low = (pc.add(side, small_scalar(0.0, side.type)) for side in (highs, low))
            position = pc.call_function("search_sorted", [highs, low])
        except (pa.ArrowKeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # Older versions of pyarrow have no `search_sorted`. In newer versions, it does not
            # support decimals and different time units.
            position = _searched(ends.spans, low)
        if position is None:
            return pc.and_kleene(compare("<=", low, highs[-1]), compare(">=", high, lows[0]))
        exists = pc.less(position, small_scalar(len(highs), position.type))
        nearest = lows.take(pc.if_else(exists, position, 0))
        return pc.and_kleene(exists, compare("<=", nearest, high))

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return both bounds."""
        for column in self.value.stored:
            yield column.low_leaf, column.field.type
            yield column.high_leaf, column.field.type

    def lines(self) -> Iterator[str]:
        """Yield the range and the number of spans."""
        ends = self.ends
        count = len(ends.spans) + (ends.below is not None) + (ends.above is not None)
        are_values = count == len(ends.spans) and all(first == last for first, last in ends.spans)
        kind = "value" if are_values else "range"
        found = f"the {kind} is" if count == 1 else f"one of {count} {kind}s is"
        yield f"{found} between {self.value.low_text} and {self.value.high_text}"


def _searched(spans: Sequence[Span], lows: Datum) -> Datum:
    """Return for each value the index of the first span that ends at or above the value.

    Return None if the values cannot be compared.
    """
    if isinstance(lows, pa.Scalar):
        return None
    greatest = [last for _, last in spans]
    try:
        places = [None if low is None else bisect_left(greatest, low) for low in lows.to_pylist()]
    except (TypeError, ValueError, OverflowError):
        return None
    return pa.array(places, pa.int64())


def ends_of(wanted: Iterable[Span], kind: DataType) -> Ends | None:
    """Sort and merge spans; return None if their ends have no order.

    Args:
        wanted: the spans, in any order.
        kind: the type of the ends of spans.
    """
    closed, lows, highs = [], [], []
    for first, last in wanted:
        if first is None:
            highs.append(last)
        elif last is None:
            lows.append(first)
        else:
            closed.append((first, last))
    try:
        spans = _merged(closed)
        least = to_array([first for first, _ in spans], kind)
        greatest = least
        if any(first is not last for first, last in spans):
            greatest = to_array([last for _, last in spans], kind)
        below = to_scalar(max(highs), kind) if highs else None
        above = to_scalar(min(lows), kind) if lows else None
        return Ends(kind, tuple(spans), least, greatest, below, above)
    except (TypeError, DeltaError, pa.ArrowException):
        return None


def _merged(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for first, last in sorted(spans):
        if first > last:
            continue  # the span is empty
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class WantedSpans:
    """A range and spans: a claim can be true only if one of the spans overlaps the range."""

    value: Range
    kind: DataType
    spans: tuple[Span, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """A key of the range; equal ranges have equal keys."""
        return (*_key(self.value), self.kind)


def _key(value: Range) -> tuple[Any, ...]:
    match value:
        case Stored():
            return ("column", value.path, value.collation)
        case CastRange():
            return ("cast", *_key(value.inner), value.to)
        case _:
            return ("partition value", value.low_text)


def wanted_of(claim: Claim) -> list[WantedSpans]:
    """Return the spans that a claim requires; for an AND, the spans of all parts."""
    if isinstance(claim, AllOf):
        return _of_all(claim.parts)
    if isinstance(claim, Compare) and isinstance(claim.right, Constant):
        return _compared(claim.operator, claim.left, claim.right.literal)
    if isinstance(claim, Exact):
        return _of_partition(claim.condition)
    if isinstance(claim, Spans):
        ends = claim.ends
        spans = list(ends.spans)
        if ends.below is None and ends.above is None:
            return [WantedSpans(claim.value, ends.kind, tuple(spans))]
    return []


def _of_all(claims: Sequence[Claim]) -> list[WantedSpans]:
    """Return the spans of claims that must all be true; two limits of a column become one span."""
    found: dict[tuple[Any, ...], WantedSpans] = {}
    for claim in claims:
        for one in wanted_of(claim):
            known = found.get(one.key)
            if known is None:
                found[one.key] = one
            elif len(known.spans) == len(one.spans) == 1:
                span = _within(known.spans[0], one.spans[0])
                found[one.key] = WantedSpans(one.value, one.kind, (span,))
            elif len(one.spans) < len(known.spans):
                found[one.key] = one
    return list(found.values())


def _within(one: Span, other: Span) -> Span:
    firsts = [span[0] for span in (one, other) if span[0] is not None]
    lasts = [span[1] for span in (one, other) if span[1] is not None]
    return max(firsts, default=None), min(lasts, default=None)


def any_of(parts: Sequence[Claim]) -> list[Claim] | None:
    """Return claims that follow from an OR of many claims; None if there are none.

    If each of the claims requires a span of the same range, the range must overlap one of these
    spans.
    """
    common: dict[tuple[Any, ...], list[WantedSpans]] | None = None
    for part in parts:
        # If a part has several conditions on the same range, it is correct to use only one of them.
        found = {one.key: one for one in wanted_of(part)}
        if common is None:
            common = {key: [one] for key, one in found.items()}
        else:
            common = {key: [*known, found[key]] for key, known in common.items() if key in found}
        if not common:
            return None
    claims: list[Claim] = []
    for known in (common or {}).values():
        ends = ends_of((span for one in known for span in one.spans), known[0].kind)
        if ends is not None:
            claims.append(Spans(known[0].value, ends))
    return claims or None


def _of_partition(condition: Expression) -> list[WantedSpans]:
    if isinstance(condition, Comparison):
        operator, left, right = condition.operator, condition.left, condition.right
        if isinstance(left, Literal):
            operator, left, right = FLIPPED.get(operator, operator), right, left
        if isinstance(right, Literal):
            return _compared(operator, PartitionValue(left), right)
    if isinstance(condition, In) and (ends := ends_of_list(condition)) is not None:
        return [WantedSpans(PartitionValue(condition.operand), ends.kind, ends.spans)]
    return []


def _compared(operator: str, value: Range, literal: Literal) -> list[WantedSpans]:
    span = _span(operator, literal.value)
    if span is None or literal.type is None:
        return []
    return [WantedSpans(value, literal.type, (span,))]


def ends_of_list(node: In) -> Ends | None:
    """Return the options of IN as spans; None if an option is no constant or has no order."""
    return node.fact("ends", lambda: _ends_of_list(node))


def _ends_of_list(node: In) -> Ends | None:
    known = [one for one in node.options if isinstance(one, Literal)]
    values = [one.value for one in known if one.value is not None]
    if len(known) < len(node.options) or not values or any(map(is_nan, values)):
        return None
    kind = next(one.type for one in known if one.value is not None)
    return None if kind is None else ends_of(((value, value) for value in values), kind)


def _span(operator: str, value: Any) -> Span | None:
    if value is None or is_nan(value):
        return None
    match operator:
        case "=":
            return value, value
        case "<" | "<=":
            return None, value
        case ">" | ">=":
            return value, None
        case _:
            return None
