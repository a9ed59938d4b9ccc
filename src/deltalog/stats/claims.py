"""Claims about files, such as "some row may match", judged from statistics and partition values.

Owns the logic of skipping. A claim is judged true, false or unknown (NULL) for every file, and
only false skips one. A wrong true costs time; a wrong false loses rows.

Protocol: Per-file Statistics
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from deltalog.errors import DeltaError
from deltalog.expressions.comparing import compare
from deltalog.expressions.render import to_sql
from deltalog.expressions.trees import columns
from deltalog.kernels import pc
from deltalog.stats.schema import NULL_COUNT, NUM_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.expressions.nodes import Expression
    from deltalog.schema.types import DataType
    from deltalog.stats.ranges import Datum, Facts, Range
    from deltalog.stats.schema import Path


class Claim(Protocol):
    """A condition that a file must meet for any of its rows to match."""

    def judge(self, facts: Facts) -> Datum:
        """Return true, false or NULL for every file; None if it is unknown for all."""
        ...

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return the statistics that decide, with the column's type where the statistic has it."""
        ...

    def lines(self) -> Iterator[str]:
        """Return the claim for people, parts indented."""
        ...


class _WithoutStatistics:
    """A claim that no statistic decides."""

    __slots__ = ()

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return no statistics: none decides."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Unknown(_WithoutStatistics):
    """A condition that nothing in the log decides: any file may have a matching row."""

    expression: Expression

    def judge(self, facts: Facts) -> Datum:
        """Return None: unknown for all files."""
        del facts

    def lines(self) -> Iterator[str]:
        """Return the condition."""
        yield f"not decided by statistics: {to_sql(self.expression)}"


@dataclass(frozen=True, slots=True)
class Never(_WithoutStatistics):
    """A condition that no row can match: a comparison with NULL, or `> NaN`."""

    expression: Expression

    def judge(self, facts: Facts) -> Datum:
        """Return false."""
        del facts
        return pa.scalar(value=False)

    def lines(self) -> Iterator[str]:
        """Return the condition."""
        yield f"never true: {to_sql(self.expression)}"


@dataclass(frozen=True, slots=True)
class Exact(_WithoutStatistics):
    """A condition on partition values alone; where it is NULL, no row matches."""

    condition: Expression

    def judge(self, facts: Facts) -> Datum:
        """Return the condition's value, NULL as false."""
        found = facts.exact(self.condition)
        return None if found is None else pc.coalesce(found, pa.scalar(value=False))

    def lines(self) -> Iterator[str]:
        """Return the condition."""
        kind = "partition values" if columns(self.condition) else "constant"
        yield f"{kind}: {to_sql(self.condition)}"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Claims that must all hold."""

    parts: tuple[Claim, ...]

    def judge(self, facts: Facts) -> Datum:
        """Return false as soon as one part is false."""
        found: Datum = None
        for part in self.parts:
            answer = part.judge(facts)
            if answer is not None:
                found = answer if found is None else pc.and_kleene(found, answer)
        return found

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return those of the parts."""
        for part in self.parts:
            yield from part.leaves()

    def lines(self) -> Iterator[str]:
        """Return the lines of the parts."""
        for part in self.parts:
            yield from part.lines()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Claims of which one must hold."""

    parts: tuple[Claim, ...]

    def judge(self, facts: Facts) -> Datum:
        """Return false only if all parts are false."""
        found: Datum = None
        for part in self.parts:
            answer = part.judge(facts)
            if answer is None:
                return None
            found = answer if found is None else pc.or_kleene(found, answer)
        return found

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return those of the parts."""
        for part in self.parts:
            yield from part.leaves()

    def lines(self) -> Iterator[str]:
        """Return the lines of the parts."""
        yield "any of"
        for part in self.parts:
            yield from (f"  {line}" for line in part.lines())


@dataclass(frozen=True, slots=True)
class HasNull:
    """Some row is NULL: the count of NULLs is not zero.

    Holds for wide bounds too: only a count of zero or of all rows tells anything then, and those
    are all that is asked for here.
    """

    name: str
    path: Path

    def judge(self, facts: Facts) -> Datum:
        """Return whether NULLs were counted."""
        count = facts.leaf((NULL_COUNT, *self.path))
        return None if count is None else pc.not_equal(count, pa.scalar(0))

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return the count of NULLs."""
        yield (NULL_COUNT, *self.path), None

    def lines(self) -> Iterator[str]:
        """Return the condition."""
        yield f"nullCount({self.name}) > 0"


@dataclass(frozen=True, slots=True)
class HasValue:
    """Some row is not NULL: fewer NULLs than rows."""

    name: str
    path: Path

    def judge(self, facts: Facts) -> Datum:
        """Return whether not all rows are NULL; both counts have the deleted rows too."""
        count, rows = facts.leaf((NULL_COUNT, *self.path)), facts.leaf((NUM_RECORDS,))
        return None if count is None or rows is None else pc.not_equal(count, rows)

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return both counts."""
        yield (NUM_RECORDS,), None
        yield (NULL_COUNT, *self.path), None

    def lines(self) -> Iterator[str]:
        """Return the condition."""
        yield f"nullCount({self.name}) < numRecords"


@dataclass(frozen=True, slots=True)
class Compare:
    """`left operator right` holds for some pair of values of two ranges."""

    operator: str
    left: Range
    right: Range

    def judge(self, facts: Facts) -> Datum:
        """Return whether the ranges allow it."""
        left, right = self.left, self.right
        match self.operator:
            case "<" | "<=":
                return _ask(self.operator, left.lower, right.upper, facts)
            case ">" | ">=":
                return _ask(self.operator, left.upper, right.lower, facts)
            case "<>":
                # Only where both sides are one and the same value, no row can differ.
                differs = _ask("<>", left.lower, right.upper, facts)
                return _join(
                    pc.or_kleene, differs, _ask("<>", left.upper, right.lower, facts), all_of=True
                )
            case _:
                reaches = _ask("<=", left.lower, right.upper, facts)
                return _join(pc.and_kleene, reaches, _ask(">=", left.upper, right.lower, facts))

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return the bounds that the operator asks for."""
        for side, other in ((self.left, ">"), (self.right, "<")):
            for column in side.stored:
                if not self.operator.startswith(other) or self.operator == "<>":
                    yield column.low_leaf, column.field.type
                if self.operator in {"=", "<>"} or self.operator.startswith(other):
                    yield column.high_leaf, column.field.type

    def lines(self) -> Iterator[str]:
        """Return the comparison of ends."""
        left, right = self.left, self.right
        match self.operator:
            case "<" | "<=":
                yield f"{left.low_text} {self.operator} {right.high_text}"
            case ">" | ">=":
                yield f"{left.high_text} {self.operator} {right.low_text}"
            case "<>":
                yield f"not {left.low_text} = {left.high_text} = {right.low_text}"
            case _:
                yield f"{left.low_text} <= {right.high_text}"
                yield f"{left.high_text} >= {right.low_text}"


@dataclass(frozen=True, slots=True)
class Prefix:
    """Some text in the range starts with a prefix; negated: some does not."""

    value: Range
    prefix: str
    negated: bool = False

    def judge(self, facts: Facts) -> Datum:
        """Return whether the range reaches into the texts with that prefix, or out of them."""
        low, high = self.value.lower(facts), self.value.upper(facts)
        if low is None or high is None:
            return None
        if self.negated:
            inside = [pc.starts_with(end, self.prefix) for end in (low, high)]
            return pc.invert(pc.and_kleene(*inside))
        start = pc.utf8_slice_codeunits(low, 0, len(self.prefix))
        prefix: Datum = pa.scalar(self.prefix)
        return pc.and_kleene(pc.less_equal(start, prefix), pc.greater_equal(high, prefix))

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return both bounds."""
        for column in self.value.stored:
            yield column.low_leaf, column.field.type
            yield column.high_leaf, column.field.type

    def lines(self) -> Iterator[str]:
        """Return the range and the prefix."""
        ends = f"[{self.value.low_text}, {self.value.high_text}]"
        yield f"{'not all' if self.negated else 'some'} of {ends} start with {self.prefix!r}"


def _ask(
    operator: str,
    left: Callable[[Facts], Datum],
    right: Callable[[Facts], Datum],
    facts: Facts,
) -> Datum:
    try:
        one, other = left(facts), right(facts)
        return None if one is None or other is None else compare(operator, one, other)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DeltaError):
        # What cannot be compared decides nothing.
        return None


def _join(
    kernel: Callable[[Datum, Datum], Datum], one: Datum, other: Datum, *, all_of: bool = False
) -> Datum:
    if one is None or other is None:
        return None if all_of else (other if one is None else one)
    return kernel(one, other)


def is_nan(value: object) -> bool:
    """Return whether a constant is NaN, of which bounds say nothing if the writer left it out."""
    return isinstance(value, float) and math.isnan(value)
