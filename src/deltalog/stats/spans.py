"""Long lists of constants and of ranges as few claims about files.

Owns what is looked for in a column: spans of values, sorted and apart from each other, so that a
file is asked for by a search and not for each of them. A span may be wider than what a condition
says, never narrower: its ends are always inside.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.errors import DeltaError
from deltalog.expressions.comparing import compare
from deltalog.expressions.literals import array_of, to_scalar
from deltalog.expressions.nodes import Comparison, In, Literal
from deltalog.kernels import pc
from deltalog.schema.arrow import to_arrow_type
from deltalog.stats.claims import AllOf, Claim, Compare, Exact, is_nan
from deltalog.stats.ranges import CastRange, Constant, PartitionValue, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.expressions.nodes import Expression
    from deltalog.schema.types import DataType
    from deltalog.stats.ranges import Datum, Facts, Range
    from deltalog.stats.schema import Path

# Up to here, asking for each span is cheaper than searching them.
_FEW: Final = 16
FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""An operator, for its sides in the other order."""


Span = tuple[Any, Any]
"""The least and the greatest value, as Python has them; None is open."""


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Spans of values.

    Args:
        kind: the type of the values.
        spans: as Python has them, ascending and apart from each other; without open ones.
        lows: their lower ends; without NULL and NaN.
        highs: their upper ends.
        below: what is below or equal is in a span too; None if it is not.
        above: what is above or equal.
    """

    kind: DataType
    spans: tuple[Span, ...]
    lows: pa.Array[Any]
    highs: pa.Array[Any]
    below: pa.Scalar[Any] | None = None
    above: pa.Scalar[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Some span of values reaches into the range.

    Args:
        value: the range.
        ends: of the spans.
    """

    value: Range
    ends: Ends

    def judge(self, facts: Facts) -> Datum:
        """Return whether the first span that ends in or above the range starts in or below it."""
        low, high = self.value.lower(facts), self.value.upper(facts)
        if low is None or high is None:
            return None
        found: Datum = pa.scalar(value=False)
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
        found: Datum = pa.scalar(value=False)
        for first, last in zip(self.ends.lows, self.ends.highs, strict=True):
            inside = pc.and_kleene(compare("<=", low, last), compare(">=", high, first))
            found = pc.or_kleene(found, inside)
        return found

    def _nearest(self, low: Datum, high: Datum) -> Datum:
        ends = self.ends
        lows, highs = ends.lows, ends.highs
        try:
            if pt.is_floating(highs.type):
                # Searching tells -0.0 from 0.0; adding zero makes them one.
                highs, low = (pc.add(side, pa.scalar(0.0, side.type)) for side in (highs, low))
            position = pc.call_function("search_sorted", [highs, low])
        except (pa.ArrowKeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # Before pyarrow 26 there is no search, and none of decimals and moments of two units.
            position = _searched(ends.spans, low)
        if position is None:
            return pc.and_kleene(compare("<=", low, highs[-1]), compare(">=", high, lows[0]))
        exists = pc.less(position, pa.scalar(len(highs), position.type))
        nearest = lows.take(pc.if_else(exists, position, 0))
        return pc.and_kleene(exists, compare("<=", nearest, high))

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return both bounds."""
        for column in self.value.stored:
            yield column.low_leaf, column.field.type
            yield column.high_leaf, column.field.type

    def lines(self) -> Iterator[str]:
        """Return the range, and how many spans there are."""
        ends = self.ends
        count = len(ends.spans) + (ends.below is not None) + (ends.above is not None)
        are_values = count == len(ends.spans) and all(first == last for first, last in ends.spans)
        yield (
            f"one of {count} {'options' if are_values else 'ranges'} in "
            f"[{self.value.low_text}, {self.value.high_text}]"
        )


def _searched(spans: Sequence[Span], lows: Datum) -> Datum:
    """The first span that ends at each value or above it; None if they have no common order."""
    if isinstance(lows, pa.Scalar):
        return None
    greatest = [last for _, last in spans]
    try:
        places = [None if low is None else bisect_left(greatest, low) for low in lows.to_pylist()]
    except (TypeError, ValueError, OverflowError):
        return None
    return pa.array(places, pa.int64())


def ends_of(wanted: Iterable[Span], kind: DataType) -> Ends | None:
    """Spans, sorted and merged; None if their ends have no order.

    Args:
        wanted: the spans, in any order.
        kind: the type of their ends.
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
        arrow_type = to_arrow_type(kind)
        least = array_of([to_scalar(first, kind) for first, _ in spans], arrow_type)
        greatest = least
        if any(first is not last for first, last in spans):
            greatest = array_of([to_scalar(last, kind) for _, last in spans], arrow_type)
        below = to_scalar(max(highs), kind) if highs else None
        above = to_scalar(min(lows), kind) if lows else None
        return Ends(kind, tuple(spans), least, greatest, below, above)
    except (TypeError, DeltaError, pa.ArrowException):
        return None


def _merged(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for first, last in sorted(spans):
        if first > last:
            continue  # nothing is between such ends
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class WantedSpans:
    """What must reach into a range, for a claim to hold: one of some spans."""

    value: Range
    kind: DataType
    spans: tuple[Span, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for equal ranges."""
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
    """What a claim looks for in spans; of conditions that must all hold each must hold alone."""
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
    """What claims look for that must all hold: of a range its lower and its upper end are two."""
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
    """Claims that must all hold for one of many to hold; None if there are none.

    Each of the many looks for something in the same column, so that something of all that they look
    for must be in it.
    """
    common: dict[tuple[Any, ...], list[WantedSpans]] | None = None
    for part in parts:
        # Of two conditions on one column, one is enough.
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
    """The constants of a list as spans; None if it has others, or if they have no order."""
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
