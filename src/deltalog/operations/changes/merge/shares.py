"""The source rows that a part of the table's files can match.

The tasks of a MERGE each change some of the files. A source row cannot match there if its key lies
outside the bounds of all these files, so it need not be sent to the task.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from deltalog._util.kernels import Array, compute
from deltalog.expressions.nodes import Column
from deltalog.operations.changes.merge.source import MEMORY_BYTES, MergeSource
from deltalog.protocol.column_mapping import physical_name
from deltalog.protocol.stats.parse import parsed_leaves
from deltalog.protocol.stats.ranges import correction
from deltalog.protocol.stats.schema import MAX_VALUES, MIN_VALUES, has_bounds
from deltalog.schema import find_field, to_arrow_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.operations.changes.merge.plan import Key, MergePlan
    from deltalog.schema import Field


class SourceShare(NamedTuple):
    """The source rows that some files can match.

    Args:
        source: these rows.
        rows: the number of each of these rows in the whole source; the numbers ascend.
    """

    source: MergeSource
    rows: Array


def shares_of(
    plan: MergePlan,
    source: MergeSource,
    rows: Array,
    keys: Sequence[Array],
    parts: Sequence[pa.Table],
) -> list[SourceShare] | None:
    """Return the source rows that each part of the files can match; None if all need most rows.

    Args:
        plan: plan of the merge.
        source: all rows of the source.
        rows: the numbers of the source rows that may match.
        keys: for each key of the plan, its values in these rows.
        parts: the files of each part, as rows of `snapshot.files` with their statistics.

    Cost: parses two statistics of each file for each key. Copies the rows of the shares; together
    they have at most `MEMORY_BYTES`, or the size of the source.
    """
    known = [
        (values, key.null_safe, field)
        for key, values in zip(plan.condition.keys, keys, strict=True)
        if (field := _ordered_field(key, values, plan)) is not None
    ]
    if not known:
        return None
    found: list[Array] = []
    for files in parts:
        inside: Array = None
        for values, null_safe, field in known:
            mask = _inside(values, field, files, plan, null_safe=null_safe)
            if mask is not None:
                inside = mask if inside is None else compute.and_(inside, mask)
        found.append(rows if inside is None else rows.filter(inside))
    # The whole source is sent once per worker, a share once per task. Until then, all shares are in
    # the client's memory.
    num_rows = sum(map(len, found))
    is_large = num_rows * source.size_bytes > MEMORY_BYTES * source.num_rows
    if num_rows > (1 if is_large else max(1, len(parts) // 2)) * source.num_rows:
        return None
    return [SourceShare(source.subset(part), part) for part in found]


def _ordered_field(key: Key, values: Array, plan: MergePlan) -> Field | None:
    """Return the table's column of a key if its bounds can be compared with the key's values."""
    if not isinstance(key.target, Column) or len(key.target.path) != 1:
        return None
    field = find_field(plan.configuration.schema, key.target.path)
    if not has_bounds(field):
        return None
    kind, given = to_arrow_type(field.type), values.type
    if pa.types.is_integer(kind) and pa.types.is_integer(given):
        return field
    return field if pa.types.is_temporal(kind) and kind == given else None


def _inside(
    values: Array, field: Field, files: pa.Table, plan: MergePlan, *, null_safe: bool
) -> Array | None:
    """Return which values lie within the bounds of the files; None if the bounds are unknown."""
    stored = physical_name(field, plan.configuration.column_mapping_mode)
    kind = to_arrow_type(field.type)
    leaves = [((part, stored), kind) for part in (MIN_VALUES, MAX_VALUES)]
    lows, highs = parsed_leaves(files.column("stats"), leaves)
    if not files.num_rows or lows.null_count or highs.null_count:
        return None
    corrected = correction(field)
    low: Any = compute.min(corrected.lower(lows.combine_chunks()))
    high: Any = compute.max(corrected.upper(highs.combine_chunks()))
    above = compute.greater_equal(values, low)
    return compute.fill_null(compute.and_(above, compute.less_equal(values, high)), null_safe)
