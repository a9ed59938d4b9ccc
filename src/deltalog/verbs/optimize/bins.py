"""Select the files to rewrite, and pack them into bins.

Uses only the columns of the log. The engine rewrites the rows.

Protocol: Add File and Remove File, Deletion Vectors
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.conditions import as_condition, with_blanks_as_nulls
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns, to_sql
from deltalog.kernels import arrow, compute, pc
from deltalog.partition_values import extract
from deltalog.replay import file_keys
from deltalog.rows.bins import Bin
from deltalog.rows.external_sort import one_piece
from deltalog.scan.plan import TASK_COLUMNS
from deltalog.scan.prune import prune

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction

DEFAULT_MAX_DELETED_SHARE: Final = 0.05  # Delta Spark's
_COLUMNS: Final = (*TASK_COLUMNS, "tags", "clusteringProvider")
_RECORDS: Final = "numRecords"
_PARTITION: Final = "partition"
_LIVE_SIZE: Final = "liveSize"
_PLACE: Final = "place"
_MOST: Final = 2.0**62  # bytes of a file; more would not fit 64 bits when rounded


def partition_condition(transaction: PendingTransaction, filters: Any) -> Expression | None:
    """Resolve filters of partitions in any form that callers use; `''` is the NULL partition."""
    configuration = transaction.configuration
    given = with_blanks_as_nulls(filters, configuration.partition_columns)
    return as_condition(configuration.schema, given, session=transaction.context.session)


def considered_files(snapshot: Snapshot, predicate: Expression | None) -> pa.Table:
    """Return the live files of some partitions, ordered by partition, by time, and as in the log.

    Args:
        snapshot: of the table.
        predicate: over partition columns; None is every file.

    Returns:
        Columns of `snapshot.files` without statistics; `numRecords`, NULL if unknown; `partition`,
        a number; and `liveSize`, the estimated bytes of live rows.

    Raises:
        InvalidInputError: the predicate uses a column that is not a partition column.
    """
    configuration = snapshot.configuration
    if predicate is not None:
        used = {path[0] for path in columns(predicate)}
        others = used - set(configuration.partition_columns)
        if others:
            raise InvalidInputError(
                f"cannot optimize the rows of {snapshot.store.root} where {to_sql(predicate)}: "
                f"{', '.join(sorted(others))} is no partition column, and files are rewritten whole"
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
            # Files of one moment stay as their commit names them: paths are random.
            (_PLACE, "ascending"),
        ],
    )
    return found.take(order).drop_columns([_PLACE])


def crowded(files: pa.Table, max_deleted_share: float) -> Any:
    """Return a mask of the files whose share of deleted rows is above the limit."""
    deleted = _deleted(files)
    share = compute.divide(_as_float(deleted), _as_float(files.column(_RECORDS)))
    # Without `numRecords` the share is unknown: rewrite, which also adds statistics.
    too_many = compute.fill_null(compute.greater(share, max_deleted_share), fill_value=True)
    return compute.and_(compute.greater(deleted, 0), too_many)


def small(files: pa.Table, target_size_bytes: int) -> Any:
    """Return a mask of the files that are smaller than the target size."""
    return compute.less(files.column("size"), target_size_bytes)


def pack(files: pa.Table, target_size_bytes: int) -> list[Bin]:
    """Pack consecutive files of a partition into bins, so that rows keep their order.

    Args:
        files: some of `considered_files`, in their order.
        target_size_bytes: of the new files.
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
    """Return the bins whose files are all live and have the same deletion vectors as before."""
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
        # Partition Value Serialization: the empty string is null.
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
    return numbers.cast(pa.float64(), safe=False)  # rounded above 2^53


def _deleted(files: pa.Table) -> Any:
    counts = pc.struct_field(files.column("deletionVector"), "cardinality")
    return compute.fill_null(counts, 0)


def vectors_of(files: pa.Table) -> Sequence[int]:
    """Return the cardinality of each deletion vector of some files."""
    counts = pc.struct_field(files.column("deletionVector"), "cardinality")
    found: list[int] = compute.drop_null(counts).to_pylist()
    return found
