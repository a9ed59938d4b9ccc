"""Native plans for pyarrow: the rows of a table, read by the scanner of Arrow's C++ library.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow.dataset as ds  # noqa: TID251  # imported only by `dataset`
import pyarrow.fs as pafs
import pyarrow.types as pt

from deltalog._util.kernels import compute
from deltalog.data.scan.native import PYARROW, plan_native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.data.scan.native import FileGroup
    from deltalog.data.scan.plan import Scan

LEAST_FILTERED_BYTES: Final = 64 * 1024 * 1024
"""From this size of the files on, Arrow's scanner filters faster than deltalog's reader.

For less, the pages that deltalog's reader skips save more than Arrow's threads.
"""


def native_dataset(scan: Scan, *, is_filtered: bool) -> ds.Dataset | None:
    """Return the files of a scan as a dataset of pyarrow; None if deltalog must read some of them.

    Args:
        scan: the scan. Its predicate has pruned files; the dataset has all of their rows.
        is_filtered: whether the rows will be filtered.

    Cost: see `plan_native`.
    """
    # Arrow's scanner does not limit the memory of a batch, and a small file may have long strings.
    if not all(_has_fixed_width(column.type) for column in scan.schema):
        return None
    if is_filtered:
        sizes: Any = compute.sum(scan.pruned.files(["size"]).column("size"))
        if (sizes.as_py() or 0) < LEAST_FILTERED_BYTES:
            return None
    plan = plan_native(scan, PYARROW)
    if plan.reasons or not plan.groups or not all(_is_plain(group, scan) for group in plan.groups):
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
    return found


def _has_fixed_width(kind: Any) -> bool:
    return pt.is_primitive(kind) or pt.is_decimal(kind)


def _is_plain(group: FileGroup, scan: Scan) -> bool:
    """Return whether files store columns under the table's names, without deleted rows."""
    stored = zip(group.columns, scan.spec.data_columns.names, strict=True)
    return not group.vectors and all(one is None or one.name == name for one, name in stored)


def _partitions(group: FileGroup) -> Iterator[ds.Expression]:
    """Yield for each file the expression that its partition values fulfil."""
    always = ds.scalar(True)  # noqa: FBT003  # pyarrow's signature
    for number in range(len(group.paths)):
        known = always
        for name, values in group.constants.items():
            column, value = ds.field(name), values[number]
            known &= column == value if value.is_valid else column.is_null()
        yield known
