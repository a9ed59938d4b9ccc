"""Skip row groups of a checkpoint if, by their footers, no file in them can match.

Owns how statistics' bounds become bounds of a row group. The smallest minimum and the largest
maximum of its files bound all of their rows, as if these were the rows of one file. If a single
file lacks a bound, the row group lacks it, too. A missing bound keeps the row group.

Protocol: Per-file Statistics, Checkpoint Schema (`stats_parsed`, `partitionValues_parsed`)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.protocol.stats import (
    conform_stats,
    leaves_of_schema,
    nest,
    plan_skipping,
)
from deltalog.protocol.stats.schema import MAX_VALUES, MIN_VALUES
from deltalog.schema import find_field, to_arrow_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.log.snapshot.cut import PartialCheckpoint
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import StructType

_PLACES: Final = {MIN_VALUES: 0, MAX_VALUES: 1}


def may_hold_matches(
    predicate: Expression, configuration: TableConfiguration, groups: Sequence[PartialCheckpoint]
) -> list[bool]:
    """Mark row groups that may have a file with a row for which `predicate` is true.

    Args:
        predicate: resolved against the table's schema.
        configuration: of the table.
        groups: one row group each.

    Cost: their footers, if they were not read yet.
    """
    columns = _Columns(configuration.schema, configuration.column_mapping_mode)
    skipping = plan_skipping(predicate, columns)
    if skipping is None:
        return [True] * len(groups)
    sources = _sources(skipping.stats_schema, configuration)
    kept = []
    for group in groups:
        bounds = group.bounds(list(dict.fromkeys(sources.values()))) if sources else {}
        known = [
            (path, pa.chunked_array([bounds[leaf].slice(_PLACES[path[0]], 1)]))
            for path, leaf in sources.items()
            if leaf in bounds
        ]
        if not known:
            kept.append(True)
            continue
        stats = conform_stats(nest(known).to_struct_array(), skipping.stats_schema)
        kept.append(bool(skipping.keep(stats)[0].as_py()))
    return kept


@dataclass(frozen=True, slots=True)
class _Columns:
    """The table's columns, none of which is exact: a row group has many partition values."""

    schema: StructType
    column_mapping_mode: Mode
    partition_columns: tuple[str, ...] = ()


def _sources(
    schema: pa.Schema, configuration: TableConfiguration
) -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Return where a checkpoint has the statistics' leaves that bound a column's values."""
    mode = configuration.column_mapping_mode
    partitions = {}
    for name in configuration.partition_columns:
        field = find_field(configuration.schema, (name,))
        partitions[physical_name(field, mode)] = to_arrow_type(field.type)
    found = {}
    for path, _ in leaves_of_schema(schema):
        if path[0] not in _PLACES:
            continue
        if path[1] not in partitions:
            found[path] = ("add", "stats_parsed", *path)
        elif _is_read_alike(partitions[path[1]]):
            found[path] = ("add", "partitionValues_parsed", path[1])
    return found


def _is_read_alike(kind: Any) -> bool:
    """Whether all writers read a string as the same value: not for times without a zone."""
    return pt.is_integer(kind) or pt.is_date(kind) or pt.is_decimal(kind) or pt.is_string(kind)
