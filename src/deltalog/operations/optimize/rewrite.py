"""The common part of all OPTIMIZE operations: select files, and stage the rewritten bins.

Protocol: Add File and Remove File (`dataChange`), Row Tracking
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from deltalog._util.kernels import arrow, compute, pc
from deltalog.data.scan.plan import TASK_COLUMNS
from deltalog.data.scan.prune import prune
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns, to_sql
from deltalog.log.replay import file_keys
from deltalog.operations.arguments import as_condition, with_blanks_as_nulls
from deltalog.operations.changes.bins import Bin, BinRewrite, Rewrite, RunOptions
from deltalog.operations.changes.external_sort import one_piece
from deltalog.operations.operation import Operation
from deltalog.protocol.partition_values import extract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction


def record(
    pending: PendingTransaction,
    predicate: Expression | None,
    *,
    z_order_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    **more: object,
) -> None:
    """Set the `operationParameters` of an OPTIMIZE, under the names of Delta Spark."""
    pending.parameters.setdefault("auto", False)
    pending.parameters.update(
        predicate=[] if predicate is None else [to_sql(predicate)],
        zOrderBy=list(z_order_by),
        clusterBy=list(cluster_by),
        **more,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOperation(Operation["Optimized"]):
    """An operation that rewrites bins of files, in one or several commits.

    Args:
        options: options of the run.
        left: the bins that earlier commits of the same operation did not rewrite. None for the
            first commit, which selects files and packs them into bins.
    """

    options: RunOptions = field(default_factory=RunOptions)
    left: Sequence[Bin] | None = None
    name: ClassVar[str] = "OPTIMIZE"
    doing: ClassVar[str] = "rewriting files"
    skips_empty: ClassVar[bool] = True
    strategy: ClassVar[str]
    preserves_order: ClassVar[bool] = True

    def _stage_bins(
        self,
        transaction: PendingTransaction,
        engine: Engine,
        select: Callable[[pa.Table], list[Bin]],
        rewrite: Rewrite,
        predicate: Expression | None = None,
    ) -> Optimized:
        """Let the engine rewrite the bins in `left`, or else selected bins, and stage the files.

        Args:
            transaction: transaction of the table.
            engine: rewrites the bins.
            select: selects files from `considered_files`, and packs them into bins.
            rewrite: writes the rows of a bin to new files.
            predicate: a condition on partition columns; None means all partitions.
        """
        snapshot, num_considered = transaction.read_snapshot, 0
        if self.left is None:
            files = considered_files(snapshot, predicate)
            num_considered = files.num_rows
            bins = select(files)
        else:
            bins = still_live(snapshot, self.left)
        return stage_rewrite(
            BinRewrite(transaction=transaction, bins=bins, rewrite=rewrite, options=self.options),
            engine,
            strategy=self.strategy,
            num_considered=num_considered,
            preserves_order=self.preserves_order,
        )


def stage_rewrite(
    job: BinRewrite,
    engine: Engine,
    *,
    strategy: str,
    num_considered: int,
    preserves_order: bool = True,
) -> Optimized:
    """Let the engine rewrite bins, and stage the removal of old files and the new files.

    If the job's commit interval ends before all bins are rewritten, the remaining bins are in
    `Optimized.left`.

    Args:
        job: the bins, and how to rewrite them.
        engine: rewrites the bins.
        strategy: name of the operation's strategy.
        num_considered: the number of files from which the bins were selected.
        preserves_order: whether the rewrite preserves the order of rows.

    Cost: see `Engine.rewrite_bins`. After a failure, new files are deleted.
    """
    transaction = job.transaction
    transaction.copies_rows = True
    done = list(zip(job.bins, engine.rewrite_bins(job), strict=False))
    for one, rewritten in done:
        transaction.record_read_files(one.files)
        transaction.remove_files(one.files, data_change=False)
        transaction.add_files(rewritten.written)
    removed: list[Any] = [size for one, _ in done for size in one.files.column("size").to_pylist()]
    return Optimized(
        strategy=strategy,
        added_sizes=tuple(add.size_bytes for _, new in done for add in new.written.adds),
        removed_sizes=tuple(removed),
        removed_vectors=tuple(count for one, _ in done for count in vectors_of(one.files)),
        partitions=frozenset(one.partition for one, _ in done),
        num_batches=sum(new.num_batches for _, new in done),
        num_considered=num_considered,
        max_bin_files=max((one.files.num_rows for one, _ in done), default=0),
        preserves_order=preserves_order,
        left=job.bins[len(done) :],
    )


# --- Selection of files, and packing into bins


DEFAULT_MAX_DELETED_SHARE: Final = 0.05  # as in Delta Spark
_COLUMNS: Final = (*TASK_COLUMNS, "tags", "clusteringProvider")
_RECORDS: Final = "numRecords"
_PARTITION: Final = "partition"
_LIVE_SIZE: Final = "liveSize"
_PLACE: Final = "place"
# The maximum of estimated file sizes in bytes, so that they fit 64-bit integers.
_MOST: Final = 2.0**62


def partition_condition(transaction: PendingTransaction, filters: Any) -> Expression | None:
    """Resolve partition filters in any accepted form. The value `''` in a filter means NULL."""
    configuration = transaction.configuration
    given = with_blanks_as_nulls(filters, configuration.partition_columns)
    return as_condition(configuration.schema, given, session=transaction.context.session)


def considered_files(snapshot: Snapshot, predicate: Expression | None) -> pa.Table:
    """Return the live files of some partitions, ordered by partition and modification time.

    Args:
        snapshot: snapshot of the table.
        predicate: a condition on partition columns; None means all files.

    Returns:
        The columns of `snapshot.files` without statistics, and three columns: `numRecords` (NULL if
        unknown), `partition` (a number that identifies the partition), and `liveSize` (the
        estimated size of the live rows in bytes).

    Raises:
        InvalidInputError: the predicate uses a column that is not a partition column.
    """
    configuration = snapshot.configuration
    if predicate is not None:
        used = {path[0] for path in columns(predicate)}
        own = configuration.partition_columns
        others = used - set(own)
        if others:
            from deltalog.expressions.render import shown_sql  # noqa: PLC0415  # only for errors

            known = f"these are {', '.join(own)}" if own else "the table has none: leave it out"
            raise InvalidInputError(
                f"cannot optimize {snapshot.store.root} where {shown_sql(predicate)}: expected a "
                f"condition on partition columns, found {', '.join(sorted(others))}; {known}"
            )
    pruned = prune(snapshot, predicate)
    found = pruned.files(_COLUMNS)
    found = found.append_column(_RECORDS, pruned.num_records())
    found = found.append_column(_PARTITION, _partitions(snapshot, found))
    found = found.append_column(_LIVE_SIZE, _live_sizes(found))
    found = found.append_column(_PLACE, arrow.arange(0, found.num_rows))
    order = pc.sort_indices(
        found,
        sort_keys=[
            (_PARTITION, "ascending"),
            ("modificationTime", "ascending"),
            # Files with the same modification time are in the order of the log. In the order of
            # their paths, which are random, rows of similar age would be in different bins.
            (_PLACE, "ascending"),
        ],
    )
    return found.take(order).drop_columns([_PLACE])


def crowded(files: pa.Table, max_deleted_share: float) -> Any:
    """Return for each file whether its share of deleted rows is above the limit."""
    deleted = _deleted(files)
    share = compute.divide(_as_float(deleted), _as_float(files.column(_RECORDS)))
    # Without `numRecords`, the share is unknown. The file is rewritten to add statistics.
    too_many = compute.fill_null(compute.greater(share, max_deleted_share), fill_value=True)
    return compute.and_(compute.greater(deleted, 0), too_many)


def small(files: pa.Table, target_size_bytes: int) -> Any:
    """Return for each file whether it is smaller than the target size."""
    return compute.less(files.column("size"), target_size_bytes)


def pack(files: pa.Table, target_size_bytes: int) -> list[Bin]:
    """Pack consecutive files of a partition into bins, which preserves the order of rows.

    Args:
        files: some rows of `considered_files`, in the same order.
        target_size_bytes: target size of the new files.
    """
    groups: list[list[int]] = []
    partition, size = None, 0
    partitions: list[Any] = files.column(_PARTITION).to_pylist()
    sizes: list[Any] = files.column(_LIVE_SIZE).to_pylist()
    for number, (key, live_bytes) in enumerate(zip(partitions, sizes, strict=True)):
        if not groups or key != partition or size + live_bytes > target_size_bytes:
            groups.append([])
            partition, size = key, 0
        groups[-1].append(number)
        size += live_bytes
    return [_bin(files, group[0], len(group)) for group in groups]


def by_partition(files: pa.Table) -> list[Bin]:
    """Pack all files of a partition into one bin."""
    return pack(files, 1 << 62)


def still_live(snapshot: Snapshot, bins: Iterable[Bin]) -> list[Bin]:
    """Return the bins whose files are all still live and have the same deletion vectors."""
    root = snapshot.store.root
    now = snapshot.files(["path", "deletionVector"])
    known = one_piece(file_keys(now.column("path"), now.column("deletionVector"), root))
    kept = []
    for one in bins:
        keys = file_keys(one.files.column("path"), one.files.column("deletionVector"), root)
        if compute.all(compute.is_in(keys, value_set=known)).as_py():
            kept.append(one)
    return kept


def _bin(files: pa.Table, start: int, length: int) -> Bin:
    some = files.slice(start, length)
    return Bin(partition=some.column(_PARTITION)[0].as_py(), files=some)


def _partitions(snapshot: Snapshot, files: pa.Table) -> Any:
    """Return a number for each file that identifies its partition."""
    values = files.column("partitionValues")
    numbers = arrow.repeat(pa.scalar(0, pa.int64()), files.num_rows)
    for name in snapshot.configuration.physical_partition_columns:
        # In partition values, the empty string means null (Partition Value Serialization).
        texts = compute.fill_null(extract(values, name), "")
        encoded = one_piece(texts).dictionary_encode()
        joined = compute.add(
            compute.multiply(numbers, len(encoded.dictionary)), encoded.indices.cast(pa.int64())
        )
        numbers = joined.dictionary_encode().indices.cast(pa.int64())
    return numbers


def _live_sizes(files: pa.Table) -> Any:
    records = files.column(_RECORDS)
    live = _as_float(compute.subtract(records, _deleted(files)))
    rows = _as_float(compute.max_element_wise(records, 1))
    share = compute.fill_null(compute.divide(live, rows), 1.0)
    sizes = compute.multiply(_as_float(files.column("size")), share)
    return compute.if_else(compute.less(sizes, _MOST), sizes, _MOST).cast(pa.int64(), safe=False)


def _as_float(numbers: Any) -> Any:
    return numbers.cast(pa.float64(), safe=False)  # a safe cast would raise for numbers above 2^53


def _deleted(files: pa.Table) -> Any:
    counts = pc.struct_field(files.column("deletionVector"), "cardinality")
    return compute.fill_null(counts, 0)


def vectors_of(files: pa.Table) -> Sequence[int]:
    """Return the cardinality of each deletion vector of some files."""
    counts = pc.struct_field(files.column("deletionVector"), "cardinality")
    found: list[int] = compute.drop_null(counts).to_pylist()
    return found


# --- Result of an OPTIMIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimized:
    """The result of an OPTIMIZE.

    Args:
        strategy: `preserveLocality`, `zOrder`, `cluster` or `purge`.
        added_sizes: the size in bytes of each new file.
        removed_sizes: the size in bytes of each removed file.
        removed_vectors: the cardinality of each removed deletion vector.
        partitions: the numbers (`Bin.partition`) of the partitions that were rewritten.
        num_batches: the number of record batches that were read.
        num_considered: the number of live files from which the bins were selected.
        max_bin_files: the number of files in the bin with the most files.
        preserves_order: whether the rewrite preserved the order of rows.
        left: the bins that remain for another commit.
    """

    strategy: str
    added_sizes: tuple[int, ...] = ()
    removed_sizes: tuple[int, ...] = ()
    removed_vectors: tuple[int, ...] = ()
    partitions: frozenset[object] = frozenset()
    num_batches: int = 0
    num_considered: int = 0
    max_bin_files: int = 0
    preserves_order: bool = True
    left: Sequence[Bin] = field(default=(), repr=False)

    @property
    def num_skipped(self) -> int:
        """The number of files that were considered and not rewritten."""
        return self.num_considered - len(self.removed_sizes)

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        sizes = sorted(self.added_sizes)
        return {
            "numRemovedFiles": len(self.removed_sizes),
            "numRemovedBytes": sum(self.removed_sizes),
            "numAddedFiles": len(sizes),
            "numAddedBytes": sum(sizes),
            "numDeletionVectorsRemoved": len(self.removed_vectors),
            "minFileSize": _quantile(sizes, 0),
            "p25FileSize": _quantile(sizes, 0.25),
            "p50FileSize": _quantile(sizes, 0.5),
            "p75FileSize": _quantile(sizes, 0.75),
            "maxFileSize": _quantile(sizes, 1),
        }

    def result(self) -> dict[str, Any]:
        """Return the metrics for the caller: the keys of deltalake, and additional keys."""
        return {
            "numFilesAdded": len(self.added_sizes),
            "numFilesRemoved": len(self.removed_sizes),
            "filesAdded": _sizes(self.added_sizes),
            "filesRemoved": _sizes(self.removed_sizes),
            "partitionsOptimized": len(self.partitions),
            "numBatches": self.num_batches,
            "totalConsideredFiles": self.num_considered,
            "totalFilesSkipped": self.num_skipped,
            "preserveInsertionOrder": self.preserves_order,
            "plannerStrategy": self.strategy,
            "preservedStableOrder": self.preserves_order,
            "maxBinSpanFiles": self.max_bin_files,
            "numDeletionVectorsRemoved": len(self.removed_vectors),
            "numDeletedRowsPurged": sum(self.removed_vectors),
        }

    def and_then(self, later: Optimized) -> Optimized:
        """Return the joint result of this commit and the operation's next commit."""
        return Optimized(
            strategy=self.strategy,
            added_sizes=self.added_sizes + later.added_sizes,
            removed_sizes=self.removed_sizes + later.removed_sizes,
            removed_vectors=self.removed_vectors + later.removed_vectors,
            partitions=self.partitions | later.partitions,
            num_batches=self.num_batches + later.num_batches,
            num_considered=self.num_considered,
            max_bin_files=max(self.max_bin_files, later.max_bin_files),
            preserves_order=self.preserves_order and later.preserves_order,
            left=later.left,
        )


def _quantile(sizes: Sequence[int], share: float) -> int:
    return sizes[min(len(sizes) - 1, int(len(sizes) * share))] if sizes else 0


def _sizes(sizes: Sequence[int]) -> dict[str, int | float]:
    total = sum(sizes)
    return {
        "avg": total / len(sizes) if sizes else 0.0,
        "max": max(sizes, default=0),
        "min": min(sizes, default=0),
        "totalFiles": len(sizes),
        "totalSize": total,
    }
