"""File pruning: which files of a snapshot may hold a matching row.

Owns the two passes (partition values, which are exact, then statistics, which are bounds) and their
explanation. A missing value or statistic keeps the file.

Protocol: Per-file Statistics, Partition Values
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.column_mapping import physical_name
from deltalog.errors import MalformedLogError
from deltalog.expressions import columns, conjuncts, filter_mask, to_sql
from deltalog.expressions.trees import conjunction
from deltalog.kernels import compute, pc
from deltalog.partition_values import extract, parse_column
from deltalog.schema import find_field
from deltalog.stats import plan_skipping

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of pruning a snapshot.

    Args:
        snapshot: whose files these are.
        keep: one boolean per live file, in the order of `snapshot.files`; None keeps all.
        num_files: live files.
        num_by_partition: files pruned by partition values.
        num_by_statistics: files pruned by statistics, of the others.
        is_exact: whether every row of every file that is left matches the predicate.
        reasons: the conditions that pruned, as text.
    """

    snapshot: Snapshot
    keep: pa.BooleanArray | None
    num_files: int
    num_by_partition: int
    num_by_statistics: int
    is_exact: bool
    reasons: tuple[str, ...] = ()

    def files(self, names: Sequence[str]) -> pa.Table:
        """Columns of the files that are kept."""
        table = self.snapshot.files(names)
        return table if self.keep is None else table.filter(self.keep)

    def num_records(self) -> pa.ChunkedArray[Any]:
        """Physical rows of each file that is kept; NULL without statistics."""
        table = self.snapshot.stats(pa.schema([("numRecords", pa.int64())]))
        if self.keep is not None:
            table = table.filter(self.keep)
        counts: pa.ChunkedArray[Any] = table.column("numRecords")
        return counts

    def num_live_rows(self) -> int | None:
        """Live rows of the files that are kept; None if some file lacks `numRecords`.

        Raises:
            MalformedLogError: a file has fewer than no rows, by its statistics or after its
                deletion vector.

        Protocol: Per-file Statistics (`numRecords` counts physical rows)
        """
        counts: Any = self.num_records()
        files = self.files(["path", "deletionVector"])
        deleted = compute.struct_field(files.column("deletionVector"), "cardinality")
        left = compute.subtract(counts, compute.fill_null(deleted, 0))
        wrong = compute.or_(compute.less(counts, 0), compute.less(left, 0))
        row = compute.index(wrong, pa.scalar(value=True)).as_py()
        if row >= 0:
            raise MalformedLogError(
                f"cannot count the rows of {self.snapshot.store.root}: expected numRecords of 0 or "
                f"more and at least as many as the deletion vector marks, found numRecords "
                f"{counts[row]} and cardinality {deleted[row]} of {files['path'][row].as_py()!r}; "
                "read the rows, or write the file's statistics again"
            )
        if counts.null_count:
            return None
        return compute.sum(left).as_py() or 0

    def explain(self) -> list[str]:
        """Explain the result, as lines of text."""
        left = self.num_files - self.num_by_partition - self.num_by_statistics
        lines = [f"files: {self.num_files} in the table, {left} to read"]
        if self.num_by_partition:
            lines.append(f"pruned by partition values: {self.num_by_partition}")
        if self.num_by_statistics:
            lines.append(f"pruned by statistics: {self.num_by_statistics}")
        return lines + [f"by {reason}" for reason in self.reasons]


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


def prune(snapshot: Snapshot, predicate: Expression | None) -> Pruned:
    """Prune the files of a snapshot that cannot hold rows for which `predicate` is true.

    Args:
        snapshot: whose files.
        predicate: resolved against the snapshot's schema; None keeps all files.

    Cost: the log's columns that the predicate needs: partition values, and the statistics of its
    columns only.
    """
    num_files = snapshot.num_files
    if predicate is None or not num_files:
        return Pruned(snapshot, None, num_files, 0, 0, is_exact=True)
    judged = judge(
        predicate,
        snapshot.configuration,
        num_files=num_files,
        partition_values=lambda: snapshot.files(["partitionValues"]).column(0),
        stats=snapshot.stats,
        time_zone=snapshot.context.time_zone,
    )
    left = num_files if judged.by_partition is None else judged.by_partition.true_count
    kept = num_files if judged.keep is None else judged.keep.true_count
    return Pruned(
        snapshot,
        judged.keep,
        num_files,
        num_files - left,
        left - kept,
        is_exact=judged.is_exact,
        reasons=judged.reasons,
    )


def judge(
    predicate: Expression,
    configuration: TableConfiguration,
    *,
    num_files: int,
    partition_values: Callable[[], pa.ChunkedArray[Any]],
    stats: Callable[[pa.Schema], pa.Table],
    time_zone: str,
) -> Judged:
    """Decide per file whether it may hold rows for which `predicate` is true.

    Args:
        predicate: resolved against the table's schema.
        configuration: of the table.
        num_files: how many files there are.
        partition_values: returns the `partitionValues` of each.
        stats: returns the statistics of each, restricted to the leaves of a schema.
        time_zone: of partition values without a zone.
    """
    partition_columns = set(configuration.partition_columns)
    by_partition: list[Expression] = []
    others: list[Expression] = []
    for part in conjuncts(predicate):
        used = {path[0] for path in columns(part)}
        (by_partition if used and used <= partition_columns else others).append(part)
    # Conditions on both kinds of columns go to the statistics pass, with typed partition values.
    named = sorted({path[0] for path in columns(predicate)} & partition_columns)
    partitions = _empty_rows(num_files)
    if named:
        partitions = _typed(partition_values(), named, configuration, time_zone)
    keep: pa.BooleanArray | None = None
    reasons: list[str] = []
    if by_partition:
        keep = as_mask(filter_mask(conjunction(by_partition), partitions))
        reasons.append(f"partition values: {to_sql(conjunction(by_partition))}")
    if not others:
        return Judged(by_partition=keep, keep=keep, is_exact=True, reasons=tuple(reasons))
    left = num_files if keep is None else keep.true_count
    skipping = plan_skipping(conjunction(others), configuration)
    if skipping is None or not left:
        return Judged(by_partition=keep, keep=keep, is_exact=False, reasons=tuple(reasons))
    bounds = skipping.keep(stats(skipping.stats_schema), partitions)
    reasons += skipping.explain()
    return Judged(
        by_partition=keep,
        keep=bounds if keep is None else as_mask(pc.and_(keep, bounds)),
        is_exact=False,
        reasons=tuple(reasons),
    )


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


def _empty_rows(count: int) -> pa.Table:
    return pa.table({"_": pa.nulls(count)}).select([])
