"""Judging files: which of them may hold a row for which a predicate is true.

Owns the two passes: partition values, which are exact, then statistics, which are bounds. A missing
value or statistic keeps the file.

Protocol: Per-file Statistics, Partition Values
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.column_mapping import physical_name
from deltalog.expressions import columns, conjuncts, filter_mask, to_sql
from deltalog.expressions.trees import conjunction
from deltalog.kernels import pc
from deltalog.partition_values import extract, parse_column
from deltalog.schema import find_field
from deltalog.stats import plan_skipping
from deltalog.stats.schema import MAX_VALUES, MIN_VALUES, STATS_WITH_COLLATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.expressions import Expression

_BOUNDS: Final = frozenset({MIN_VALUES, MAX_VALUES, STATS_WITH_COLLATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the log says about a predicate, for each of some files.

    Args:
        by_partition: which files' partition values can match; None if no condition needs them.
        keep: which files may hold a matching row; None is all of them.
        is_exact: whether every row of every file that is kept matches.
        reasons: the conditions that pruned, as text.
    """

    by_partition: pa.BooleanArray | None
    keep: pa.BooleanArray | None
    is_exact: bool
    reasons: tuple[str, ...]


def judge(
    predicate: Expression,
    configuration: TableConfiguration,
    *,
    num_files: int,
    partition_values: Callable[[], pa.ChunkedArray[Any]],
    stats: Callable[[pa.Schema], pa.Table],
    time_zone: str,
    stats_where: Callable[[pa.Schema, pa.BooleanArray], pa.Table] | None = None,
) -> Judged:
    """Decide per file whether it may hold rows for which `predicate` is true.

    Args:
        predicate: resolved against the table's schema.
        configuration: of the table.
        num_files: how many files there are.
        partition_values: returns the `partitionValues` of each.
        stats: returns the statistics of each, restricted to the leaves of a schema.
        time_zone: of partition values without a zone.
        stats_where: returns the statistics of some files. With it, the bounds are asked for alone,
            and the other statistics of the files that these leave.
    """
    partition_columns = set(configuration.partition_columns)
    by_partition: list[Expression] = []
    others: list[Expression] = []
    for part in conjuncts(predicate):
        used = {path[0] for path in columns(part)}
        (by_partition if used and used <= partition_columns else others).append(part)
    # Conditions on both kinds of columns go to the statistics pass, with typed partition values.
    named = sorted({path[0] for path in columns(predicate)} & partition_columns)
    partitions: pa.Table | None = None
    if named:
        partitions = _typed(partition_values(), named, configuration, time_zone)
    keep: pa.BooleanArray | None = None
    reasons: list[str] = []
    if by_partition and partitions is not None:
        keep = as_mask(filter_mask(conjunction(by_partition), partitions))
        reasons.append(f"partition values: {to_sql(conjunction(by_partition))}")
    if not others:
        return Judged(by_partition=keep, keep=keep, is_exact=True, reasons=tuple(reasons))
    left = num_files if keep is None else keep.true_count
    skipping = plan_skipping(conjunction(others), configuration)
    if skipping is None or not left:
        return Judged(by_partition=keep, keep=keep, is_exact=False, reasons=tuple(reasons))
    schema = skipping.stats_schema
    asked = schema if stats_where is None else _bounds_alone(schema)
    bounds = skipping.keep(stats(asked), partitions)
    decided = bounds if keep is None else as_mask(pc.and_(keep, bounds))
    if stats_where is not None and asked != schema and decided.true_count:
        # What was not asked for is unknown: more statistics can rule out more files, never fewer.
        of_rest = None if partitions is None else partitions.filter(decided)
        rest = skipping.keep(stats_where(schema, decided), of_rest)
        decided = as_mask(pc.replace_with_mask(decided, decided, rest))
    reasons += skipping.explain()
    return Judged(
        by_partition=keep,
        keep=decided,
        is_exact=False,
        reasons=tuple(reasons),
    )


def _bounds_alone(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name in _BOUNDS] or list(schema))


def as_mask(mask: pa.BooleanArray | pa.ChunkedArray[Any]) -> pa.BooleanArray:
    """Combine a boolean column into one array."""
    whole: Any = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
    return whole  # type: ignore[no-any-return]  # booleans


def _typed(
    texts: pa.ChunkedArray[Any],
    names: Sequence[str],
    configuration: TableConfiguration,
    time_zone: str,
) -> pa.Table:
    """The typed values of some partition columns, one row per file."""
    found = {}
    for name in names:
        field = find_field(configuration.schema, (name,))
        stored = physical_name(field, configuration.column_mapping_mode)
        found[name] = parse_column(
            extract(texts, stored), field.type, column=name, time_zone=time_zone
        )
    return pa.table(found)
