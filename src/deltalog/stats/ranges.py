"""Ranges: what lower and upper bounds the log gives for a value in every file.

Owns the operands of a comparison as ranges: a constant is one value, a partition value is one value
per file, a data column lies between its stored bounds, a cast of any of these is the cast of both
ends.

Knows no logic: that is `claims`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from deltalog.errors import DeltaError
from deltalog.expressions.casts import cast
from deltalog.expressions.collation_keys import keys
from deltalog.expressions.evaluation import evaluate
from deltalog.expressions.literals import to_scalar
from deltalog.expressions.render import to_sql
from deltalog.expressions.trees import columns
from deltalog.schema.collation_names import name_in_sql
from deltalog.stats.bounds import correction
from deltalog.stats.schema import MAX_VALUES, MIN_VALUES, child_of, leaf_of_bound

if TYPE_CHECKING:
    from deltalog.expressions.nodes import Expression, Literal
    from deltalog.schema.types import DataType, Field
    from deltalog.stats.schema import Path

# An array or a constant of any type; None is "nothing is known".
Datum = Any


class Facts:
    """Statistics and partition values of files, one row per file.

    Args:
        stats: one row per file, or None if there are no statistics.
        partitions: typed partition values by logical name, one row per file, or None.
    """

    def __init__(self, stats: pa.Table | None, partitions: pa.Table | None) -> None:
        self._stats = stats
        self._partitions = partitions
        self._leaves: dict[Path, Datum] = {}

    @property
    def num_files(self) -> int:
        """The number of files."""
        sizes = [table.num_rows for table in (self._stats, self._partitions) if table is not None]
        return max(sizes, default=0)

    def leaf(self, path: Path) -> Datum:
        """Return one statistic of every file, or None if no file has it."""
        if path not in self._leaves:
            self._leaves[path] = self._find(path)
        return self._leaves[path]

    def _find(self, path: Path) -> Datum:
        if self._stats is None or (index := self._stats.schema.get_field_index(path[0])) < 0:
            return None
        column = self._stats.column(index)
        found: Datum = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        for name in path[1:]:
            found = None if found is None else child_of(found, name)
        return found

    def exact(self, expression: Expression) -> Datum:
        """Return an expression over partition columns for every file; None if it has no value."""
        used = {path[0] for path in columns(expression)}
        if not used:
            data = pa.table({"": pa.nulls(1)})
        elif self._partitions is None or not used <= set(self._partitions.column_names):
            return None
        else:
            data = self._partitions
        try:
            values: Any = evaluate(expression, data)
        except DeltaError:
            # A row may fail too, or another condition may keep it from being asked.
            return None
        return values.combine_chunks() if used else values[0]


class Range(Protocol):
    """A value that lies between two others in every file."""

    def lower(self, facts: Facts) -> Datum:
        """Return a value that none in the file is below; NULL or None where that is unknown."""
        ...

    def upper(self, facts: Facts) -> Datum:
        """Return a value that none in the file is above; NULL or None where that is unknown."""
        ...

    @property
    def low_text(self) -> str:
        """The lower end, for people."""
        ...

    @property
    def high_text(self) -> str:
        """The upper end, for people."""
        ...

    @property
    def stored(self) -> tuple[Stored, ...]:
        """The data columns that the value is made of."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value in every file."""

    literal: Literal

    def lower(self, facts: Facts) -> Datum:
        """Return the value."""
        del facts
        return to_scalar(self.literal.value, self.literal.type)  # type: ignore[arg-type]  # `resolve` types constants

    @property
    def low_text(self) -> str:
        """The value."""
        return to_sql(self.literal)

    def upper(self, facts: Facts) -> Datum:
        """Return the same."""
        return self.lower(facts)

    @property
    def high_text(self) -> str:
        """As `low_text`."""
        return self.low_text

    @property
    def stored(self) -> tuple[Stored, ...]:
        """No column."""
        return ()


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """One value for each file, computed from its partition values."""

    expression: Expression

    def lower(self, facts: Facts) -> Datum:
        """Return the value of every file."""
        return facts.exact(self.expression)

    @property
    def low_text(self) -> str:
        """The expression."""
        return to_sql(self.expression)

    def upper(self, facts: Facts) -> Datum:
        """Return the same."""
        return self.lower(facts)

    @property
    def high_text(self) -> str:
        """As `low_text`."""
        return self.low_text

    @property
    def stored(self) -> tuple[Stored, ...]:
        """No column: partition values have no statistics."""
        return ()


@dataclass(frozen=True, slots=True)
class Stored:
    """A data column, between its stored minimum and maximum.

    Args:
        name: logical, for people.
        path: physical.
        field: the logical field.
        collation: by which its texts are compared; the bounds are then keys. None is by bytes.
    """

    name: str
    path: Path
    field: Field
    collation: str | None = None

    @property
    def low_leaf(self) -> Path:
        """The statistic that holds the minimum."""
        return leaf_of_bound(MIN_VALUES, self.path, self.collation)

    @property
    def high_leaf(self) -> Path:
        """The statistic that holds the maximum."""
        return leaf_of_bound(MAX_VALUES, self.path, self.collation)

    def lower(self, facts: Facts) -> Datum:
        """Return the minimum, corrected."""
        found = facts.leaf(self.low_leaf)
        if found is None or self.collation is not None:
            return self._keys(found)
        return correction(self.field).lower(found)

    def upper(self, facts: Facts) -> Datum:
        """Return the maximum, corrected."""
        found = facts.leaf(self.high_leaf)
        if found is None or self.collation is not None:
            return self._keys(found)
        return correction(self.field).upper(found)

    def _keys(self, bounds: Datum) -> Datum:
        # A bound may be any text that is equal to the least one.
        if bounds is None or self.collation is None:
            return bounds
        return keys(bounds, self.collation)

    @property
    def low_text(self) -> str:
        """The statistic's name."""
        return f"min({self.name}{self._collate})"

    @property
    def high_text(self) -> str:
        """The statistic's name."""
        return f"max({self.name}{self._collate})"

    @property
    def _collate(self) -> str:
        return "" if self.collation is None else f" COLLATE {name_in_sql(self.collation)}"

    @property
    def stored(self) -> tuple[Stored, ...]:
        """Itself."""
        return (self,)


@dataclass(frozen=True, slots=True)
class CastRange:
    """A range in another type, by a cast that keeps the order."""

    inner: Range
    source: DataType
    to: DataType

    def lower(self, facts: Facts) -> Datum:
        """Return the lower end, cast."""
        return self._cast(self.inner.lower(facts))

    def upper(self, facts: Facts) -> Datum:
        """Return the upper end, cast."""
        return self._cast(self.inner.upper(facts))

    def _cast(self, datum: Datum) -> Datum:
        return None if datum is None else cast(datum, self.source, self.to, is_try=True)

    @property
    def low_text(self) -> str:
        """The lower end as a cast."""
        return f"CAST({self.inner.low_text} AS {self.to})"

    @property
    def high_text(self) -> str:
        """The upper end as a cast."""
        return f"CAST({self.inner.high_text} AS {self.to})"

    @property
    def stored(self) -> tuple[Stored, ...]:
        """The columns of the range below."""
        return self.inner.stored
