"""Tables of one file with small row groups, changed with and without copying row groups."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.write.options import WriterProperties
from deltalog.operations.changes import kept_groups

GROUP_ROWS: Final = 10
Change = Callable[[DeltaTable], object]


def copying(patch: pytest.MonkeyPatch, *, least_bytes: int | None = 1) -> None:
    """Copy row groups from this size on, wherever row groups are copied; None copies none."""
    patch.setattr(kept_groups, "LEAST_BYTES", least_bytes)
    patch.setattr(kept_groups, "LEAST_COMPACTED_BYTES", least_bytes)


def numbered(num_rows: int = 40) -> pa.Table:
    """Rows with a column of each kind that matters to statistics; `id` tells the row's place."""
    each = range(num_rows)
    return pa.table(
        {
            "id": pa.array(each, pa.int64()),
            "x": pa.array([None if n % 7 == 0 else n / 2 for n in each], pa.float64()),
            "t": pa.array([None if n % 5 == 0 else f"text {n % 3}" for n in each]),
            "l": pa.array([None if n % 4 == 0 else [n, None] for n in each], pa.list_(pa.int32())),
            "s": pa.array([None if n % 6 == 0 else {"a": n, "b": str(n)} for n in each]),
        }
    )


def grouped_table(path: Path, rows: pa.Table | None = None, **options: Any) -> DeltaTable:
    """A table of one file whose row groups have `GROUP_ROWS` rows."""
    write_deltalake(
        path,
        numbered() if rows is None else rows,
        writer_properties=WriterProperties(max_row_group_size=GROUP_ROWS),
        **options,
    )
    return DeltaTable(path)


def new_adds(table: DeltaTable) -> list[dict[str, Any]]:
    """The add actions of the newest commit."""
    log = Path(table.table_uri.removeprefix("file://")) / "_delta_log"
    # Not `splitlines`: a statistic may hold U+2028, which ends a line of Python's and none of JSON.
    lines = (log / f"{table.version():020d}.json").read_bytes().splitlines()
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


def stored_groups(data: bytes) -> list[bytes]:
    """The bytes of the pages of each row group of a file that is not damaged."""
    footer = pq.read_metadata(io.BytesIO(data))
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        parts = []
        for leaf in range(group.num_columns):
            chunk = group.column(leaf)
            dictionary = chunk.dictionary_page_offset
            start = chunk.data_page_offset if dictionary is None else dictionary
            parts.append(data[start : start + chunk.total_compressed_size])
        found.append(b"".join(parts))
    return found


def num_copied(old: bytes, new: bytes) -> int:
    """How many row groups of a new file are byte for byte those of an old one."""
    before = stored_groups(old)
    return sum(group in before for group in stored_groups(new))


def changed_both_ways(
    path: Path, make: Callable[[Path], object], change: Change
) -> tuple[DeltaTable, DeltaTable]:
    """The table after a change that copies row groups, and after one that rewrites them."""
    make(path / "copied")
    shutil.copytree(path / "copied", path / "rewritten")
    tables = []
    for name, least_bytes in (("copied", 1), ("rewritten", None)):
        with pytest.MonkeyPatch.context() as patch:
            copying(patch, least_bytes=least_bytes)
            change(DeltaTable(path / name))
        tables.append(DeltaTable(path / name))
    return tables[0], tables[1]
