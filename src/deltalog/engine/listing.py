"""List the files below a table's root that vacuum may delete, without hidden ones.

Protocol: none; Delta Spark's vacuum (ledger D-46, D-47)
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.kernels import compute
from deltalog.partition_values import escape_directory
from deltalog.storage.atomic import TEMPORARY_NAME
from deltalog.storage.staging import STAGING_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store

_FIELDS: Final[list[tuple[str, pa.DataType]]] = [
    ("path", pa.string()),
    ("size_bytes", pa.int64()),
    ("modification_time", pa.int64()),
]
LISTING_SCHEMA: Final = pa.schema(_FIELDS)
"""Path relative to the root (decoded), size, and time in milliseconds since 1970, UTC."""
_LISTED_TOGETHER: Final = 50_000
_HIDDEN: Final = "(?:^|/)(?:[._]|metadata(?:/|$))"
# Left by writers that were killed; in the log, such files are all that vacuum may look at.
_LEFT_IN_LOG: Final = f"^_delta_log/(?:_[a-z_]+/)?{TEMPORARY_NAME}"
_LEFT: Final = f"(^|/){TEMPORARY_NAME}"
_STAGED: Final = f"^{STAGING_NAME}/.*"


def listed_files(store: Store, configuration: TableConfiguration) -> pa.Table:
    """List the files below the root, without hidden ones, with `LISTING_SCHEMA`.

    Cost: one listing of the whole table; a Python object per file only while a batch is read.
    """
    return listed_below(store, "", configuration)


def listed_below(store: Store, directory: str, configuration: TableConfiguration) -> pa.Table:
    """List the files below one directory of the table, like `listed_files`."""
    listing = store.list_all(directory)
    tables = [LISTING_SCHEMA.empty_table()]
    while infos := list(islice(listing, _LISTED_TOGETHER)):
        tables.append(listing_of(infos, configuration))
    return pa.concat_tables(tables)


def listing_of(infos: Sequence[FileInfo], configuration: TableConfiguration) -> pa.Table:
    """Return listed files as a table with `LISTING_SCHEMA`, without hidden ones."""
    columns: list[Any] = [
        pa.array([info.path for info in infos], pa.string()),
        pa.array([info.size_bytes for info in infos], pa.int64()),
        pa.array([info.modified_ms for info in infos], pa.int64()),
    ]
    return visible(pa.Table.from_arrays(columns, schema=LISTING_SCHEMA), configuration)


def visible(files: pa.Table, configuration: TableConfiguration) -> pa.Table:
    """Return the files without a hidden part in their path.

    Names that begin with `.` or `_` are hidden at every level, except `_change_data`,
    `_delta_index`, directories of partitions, and temporary files of deltalog; so is `metadata`,
    which belongs to Iceberg.
    """
    paths: Any = files.column("path")
    suspects = compute.match_substring_regex(paths, _HIDDEN)
    if not compute.any(suspects).as_py():
        return files
    names = {*configuration.partition_columns, *configuration.physical_partition_columns}
    starts = [f"{escape_directory(name)}=" for name in names] + [f"{name}=" for name in names]
    shown = "|".join(map(re.escape, ["_delta_index", "_change_data", *sorted(starts)]))
    plain = compute.replace_substring_regex(paths, _LEFT_IN_LOG, "-")
    plain = compute.replace_substring_regex(plain, _LEFT, r"\1-")
    plain = compute.replace_substring_regex(plain, _STAGED, "-")
    plain = compute.replace_substring_regex(plain, f"(^|/)(?:{shown})", r"\1-")
    return files.filter(compute.invert(compute.match_substring_regex(plain, _HIDDEN)))
