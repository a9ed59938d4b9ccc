"""Which files of a snapshot may hold a matching row.

Owns the two passes (partition values, which are exact, then statistics, which are bounds) and the
account of them. What is not known keeps the file.

Protocol: Per-file Statistics, Partition Values
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.column_mapping import physical_name
from deltalog.expressions import columns, conjuncts, filter_mask, to_sql
from deltalog.expressions.nodes import And
from deltalog.partition_values import extract, parse_column
from deltalog.schema import find_field
from deltalog.stats import plan_skipping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning left.

    Args:
        snapshot: whose files these are.
        keep: one boolean per live file, in the order of `snapshot.files`; None keeps all.
        num_files: live files.
        num_by_partition: files whose partition values cannot match.
        num_by_statistics: files, of the others, whose statistics cannot match.
        is_exact: every row of every file that is left matches the predicate.
        reasons: what decided, as text.
    """

    snapshot: Snapshot
    keep: pa.BooleanArray | None
    num_files: int
    num_by_partition: int
    num_by_statistics: int
    is_exact: bool
    reasons: tuple[str, ...] = ()

    def files(self, names: Sequence[str]) -> pa.Table:
        """Columns of the files that are left."""
        table = self.snapshot.files(names)
        return table if self.keep is None else table.filter(self.keep)

    def num_records(self) -> pa.ChunkedArray[Any]:
        """Physical rows of each file that is left; NULL where the log does not tell."""
        table = self.snapshot.stats(pa.schema([("numRecords", pa.int64())]))
        if self.keep is not None:
            table = table.filter(self.keep)
        counts: pa.ChunkedArray[Any] = table.column("numRecords")
        return counts

    def num_live_rows(self) -> int | None:
        """Rows that are left, deletion vectors taken off; None if some file does not tell.

        Protocol: Per-file Statistics (`numRecords` counts physical rows)
        """
        counts = self.num_records()
        if counts.null_count:
            return None
        vectors = self.files(["deletionVector"]).column("deletionVector")
        deleted = pc.sum(pc.struct_field(vectors, "cardinality")).as_py() or 0
        return (pc.sum(counts).as_py() or 0) - deleted

    def explain(self) -> list[str]:
        """The account, as lines of text."""
        left = self.num_files - self.num_by_partition - self.num_by_statistics
        lines = [f"files: {self.num_files} in the table, {left} to read"]
        if self.num_by_partition:
            lines.append(f"pruned by partition values: {self.num_by_partition}")
        if self.num_by_statistics:
            lines.append(f"pruned by statistics: {self.num_by_statistics}")
        return lines + [f"by {reason}" for reason in self.reasons]


def prune(
    snapshot: Snapshot, predicate: Expression | None, *, default_timezone: str = "UTC"
) -> Pruned:
    """The files that may hold rows for which `predicate` is true.

    Args:
        snapshot: whose files.
        predicate: resolved against the snapshot's schema; None keeps all files.
        default_timezone: of partition values without a zone.

    Cost: the log's columns that the predicate needs: partition values, and the statistics of its
    columns only.
    """
    num_files = snapshot.num_files
    exact = Pruned(snapshot, None, num_files, 0, 0, is_exact=True)
    if predicate is None or not num_files:
        return exact
    partition_columns = set(snapshot.configuration.partition_columns)
    by_partition: list[Expression] = []
    others: list[Expression] = []
    for part in conjuncts(predicate):
        used = {path[0] for path in columns(part)}
        (by_partition if used and used <= partition_columns else others).append(part)
    keep: pa.BooleanArray | None = None
    reasons: list[str] = []
    partitions = _partitions(snapshot, predicate, partition_columns, default_timezone)
    if by_partition:
        keep = as_mask(filter_mask(_all_of(by_partition), partitions))
        reasons.append(f"partition values: {to_sql(_all_of(by_partition))}")
    num_by_partition = 0 if keep is None else num_files - keep.true_count
    if not others:
        return Pruned(
            snapshot, keep, num_files, num_by_partition, 0, is_exact=True, reasons=tuple(reasons)
        )
    left = num_files - num_by_partition
    skipping = plan_skipping(_all_of(others), snapshot.configuration)
    if skipping is not None and left:
        bounds = skipping.keep(snapshot.stats(skipping.stats_schema), partitions)
        keep = bounds if keep is None else as_mask(pc.and_(keep, bounds))
        reasons += skipping.explain()
    num_by_statistics = left - (num_files if keep is None else keep.true_count)
    return Pruned(
        snapshot,
        keep,
        num_files,
        num_by_partition,
        num_by_statistics,
        is_exact=False,
        reasons=tuple(reasons),
    )


def as_mask(mask: pa.BooleanArray | pa.ChunkedArray[Any]) -> pa.BooleanArray:
    """A column of booleans in one piece."""
    whole: Any = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
    return whole  # type: ignore[no-any-return]  # booleans


def _all_of(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _partitions(
    snapshot: Snapshot, predicate: Expression, partition_columns: set[str], default_timezone: str
) -> pa.Table:
    """The typed values of the partition columns that the predicate names, one row per file."""
    configuration = snapshot.configuration
    used = {path[0] for path in columns(predicate)} & partition_columns
    if not used:
        return snapshot.files([])
    texts = snapshot.files(["partitionValues"]).column("partitionValues")
    found = {}
    for name in sorted(used):
        field = find_field(configuration.schema, (name,))
        stored = physical_name(field, configuration.column_mapping_mode)
        found[name] = parse_column(
            extract(texts, stored), field.type, column=name, default_timezone=default_timezone
        )
    return pa.table(found)
