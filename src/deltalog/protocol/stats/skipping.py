"""Data skipping: find the files that need not be read for a condition on rows.

This module plans which statistics to read, and evaluates them for the files. The rules are in
`rewrite`. Claims, and corrections of stored values, are in `ranges`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import FALSE, TRUE, pc
from deltalog._util.readable import FILE, counted
from deltalog.expressions.trees import columns
from deltalog.protocol.stats.ranges import AllOf, AnyOf, Claim, Facts, Unknown
from deltalog.protocol.stats.rewrite import TableColumns, rewrite
from deltalog.protocol.stats.schema import (
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NUM_RECORDS,
    STATS_WITH_COLLATION,
    has_bounds,
    schema_of_leaves,
)
from deltalog.schema.arrow import to_arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.expressions.nodes import Expression
    from deltalog.protocol.stats.schema import Path
    from deltalog.schema.types import DataType, Field

_ORDER: Final = (NUM_RECORDS, MIN_VALUES, MAX_VALUES, NULL_COUNT, STATS_WITH_COLLATION)


@dataclass(frozen=True, slots=True)
class Skipping:
    """Finds the files that may contain matching rows, by their statistics.

    Args:
        claim: a condition on files; a file for which it is false has no matching rows.
        stats_schema: the statistics that the claim uses, with physical names.
        partition_columns: the logical names of the partition columns that the claim uses.
    """

    claim: Claim
    stats_schema: pa.Schema
    partition_columns: tuple[str, ...]

    def keep(self, stats: pa.Table | None, partitions: pa.Table | None = None) -> pa.BooleanArray:
        """Return a mask of the files that may contain a matching row.

        A missing statistic is NULL. A file for which the claim is NULL may contain matching rows.

        Args:
            stats: one row for each file, with `stats_schema`; a missing column is unknown.
            partitions: typed partition values, one row for each file, with logical names.

        Returns:
            One boolean per file, never null.

        Cost: no I/O; some vectorised kernels per condition.
        """
        facts = Facts(stats, partitions)
        found: Any = self.claim.judge(facts)
        if found is None or isinstance(found, pa.Scalar):
            is_kept = found is None or found.as_py() is not False
            mask: pa.BooleanArray = pa.repeat(TRUE if is_kept else FALSE, facts.num_files)
            return mask
        kept: pa.BooleanArray = pc.coalesce(found, TRUE) if found.null_count else found
        return kept

    def explain(
        self, stats: pa.Table | None = None, partitions: pa.Table | None = None
    ) -> tuple[str, ...]:
        """Return a line for each condition that can skip files.

        If the arguments are given, a line also contains the number of files.
        """
        parts = self.claim.parts if isinstance(self.claim, AllOf) else (self.claim,)
        if stats is None and partitions is None:
            return tuple(line for part in parts for line in part.lines())
        lines: list[str] = []
        for part in parts:
            first, *rest = part.lines()
            mask = replace(self, claim=part).keep(stats, partitions)
            lines += [f"{first}: keeps {mask.true_count} of {counted(len(mask), FILE)}", *rest]
        return tuple(lines)


def plan_skipping(
    predicate: Expression,
    table: TableColumns,
    *,
    is_bounded: Callable[[Field], bool] = has_bounds,
) -> Skipping | None:
    """Return a plan for skipping files without rows for which `predicate` is true.

    Args:
        predicate: the condition, resolved against the table's logical schema.
        table: the schema, partition columns and column mapping.
        is_bounded: returns whether a column has bounds in the log or in Parquet's footers.

    Returns:
        The plan; None if no statistic and no partition value can exclude a file.

    Protocol: Per-file Statistics
    """
    claim = rewrite(predicate, table, is_bounded=is_bounded)
    if _decides_nothing(claim):
        return None
    used = {path[0] for path in columns(predicate)}
    return Skipping(
        claim,
        _schema_of(tuple(claim.leaves())),
        tuple(name for name in table.partition_columns if name in used),
    )


def _decides_nothing(claim: Claim) -> bool:
    match claim:
        case Unknown():
            return True
        case AllOf(parts):
            return all(_decides_nothing(part) for part in parts)
        case AnyOf(parts):
            return any(_decides_nothing(part) for part in parts)
        case _:
            return False


@lru_cache(maxsize=256)  # conditions on the same columns need the same statistics
def _schema_of(asked: tuple[tuple[Path, DataType | None], ...]) -> pa.Schema:
    leaves = {
        path: pa.int64() if data_type is None else to_arrow_type(data_type)
        for path, data_type in asked
    }
    order = sorted(leaves, key=lambda path: (_ORDER.index(path[0]), path))
    return schema_of_leaves((path, leaves[path]) for path in order)
