"""Native plans for pyarrow: the rows of a table, read by the scanner of Arrow's C++ library.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.dataset as ds  # noqa: TID251  # imported only by `dataset`
import pyarrow.fs as pafs
import pyarrow.types as pt

from deltalog._util.kernels import compute, pc
from deltalog.data.scan.native import PYARROW, plan_native
from deltalog.schema.types import BINARY, STRING
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.data.scan.native import FileGroup, NativePlan, StoredFile
    from deltalog.data.scan.plan import Scan
    from deltalog.storage.store import Store

LEAST_FILTERED_BYTES: Final = 64 * 1024 * 1024
"""From this size of the files on, Arrow's scanner filters faster than deltalog's reader.

For less, the pages that deltalog's reader skips save more than Arrow's threads.
"""


_MOST_BATCH_BYTES: Final = 16 * 1024 * 1024
_LEAST_BATCH_ROWS: Final = 1024


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """Files that pyarrow reads.

    Args:
        dataset: a dataset of all rows of the files.
        batch_rows: the maximum number of rows of a batch, which limits the memory of a scan: Arrow
            decodes up to 16 batches of a file ahead, however long their strings are.
    """

    dataset: ds.Dataset
    batch_rows: int


def arrow_files(scan: Scan, *, is_filtered: bool) -> ArrowFiles | None:
    """Return the files of a scan for pyarrow; None if deltalog must read some of them.

    Args:
        scan: the scan. Its predicate has pruned files; the dataset has all of their rows.
        is_filtered: whether the rows will be filtered.

    Cost: see `plan_native`; for columns of strings, also the dictionaries of files that were not
        read before.
    """
    if any(pt.is_nested(column.type) for column in scan.schema):
        return None
    if is_filtered:
        sizes: Any = compute.sum(scan.pruned.files(["size"]).column("size"))
        if (sizes.as_py() or 0) < LEAST_FILTERED_BYTES:
            return None
    plan = plan_native(scan, PYARROW)
    if plan.reasons or not plan.groups or plan.is_renamed:
        return None
    if any(group.vectors for group in plan.groups):
        return None
    batch_rows = _MOST_BATCH_BYTES // max(1, _row_bytes(plan))
    if batch_rows < _LEAST_BATCH_ROWS:
        return None
    paths = [path for group in plan.groups for path in group.paths]
    partitions = [part for group in plan.groups for part in _partitions(group)]
    options: Any = {"partitions": partitions} if scan.spec.partition_columns.names else {}
    make: Any = ds.FileSystemDataset.from_paths  # the stubs require a root partition
    # Otherwise Arrow would read INT96 as nanoseconds, which overflow after the year 2262.
    read_options: Any = ds.ParquetReadOptions
    found: ds.Dataset = make(
        paths,
        schema=scan.schema,
        format=ds.ParquetFileFormat(read_options(coerce_int96_timestamp_unit="us")),
        filesystem=pafs.LocalFileSystem(),
        **options,
    )
    return ArrowFiles(found, batch_rows)


def _row_bytes(plan: NativePlan) -> int:
    """Return the size in bytes of the largest decoded row of a plan, with all constants."""
    store, columns = plan.scan.snapshot.store, plan.scan.spec.data_columns
    widths = [
        _constant_bytes(values) for group in plan.groups for values in group.constants.values()
    ]
    of_constants = sum(widths)
    if not any(column.type in {STRING, BINARY} for column in columns):
        return 8 * len(columns) + of_constants
    sizes = [
        size for group in plan.groups
        for size in map_in_pool(
            partial(_file_row_bytes, store, frozenset(one.name for one in group.columns if one)),
            group.files, batch_size=16,
        )
    ]  # fmt: skip
    return max(sizes, default=0) + of_constants


def _file_row_bytes(store: Store, names: frozenset[str], file: StoredFile) -> int:
    return file.row_bytes(store, names)


def _constant_bytes(values: pa.Array[Any]) -> int:
    """Return the size in bytes of the longest partition value."""
    if not (pt.is_string(values.type) or pt.is_binary(values.type)):
        return 16
    longest: Any = compute.max(pc.binary_length(cast("pa.StringArray", values))).as_py()
    return longest or 0


def _partitions(group: FileGroup) -> Iterator[ds.Expression]:
    """Yield for each file the expression that its partition values fulfil."""
    always = ds.scalar(True)  # noqa: FBT003  # pyarrow's signature
    for number in range(len(group.paths)):
        known = always
        for name, values in group.constants.items():
            column, value = ds.field(name), values[number]
            known &= column == value if value.is_valid else column.is_null()
        yield known
