"""Tables of one file with small pages, from which few rows are taken, with and without patching."""

from __future__ import annotations

import datetime as dt
import io
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, convert_to_deltalake
from deltalog.data.write import patched_groups
from deltalog.data.write.patched_groups import PATCHING, GroupPatch
from deltalog.storage.parquet import thrift
from tests.support.copied_groups import copying

PAGE_ROWS: Final = 10
GROUP_ROWS: Final = 100


def patching(patch: pytest.MonkeyPatch, *, is_on: bool = True, page_rows: int = PAGE_ROWS) -> None:
    """Patch row groups of any size, as if they had the pages of large ones."""
    copying(patch)
    patch.setattr(PATCHING, "is_on", is_on)
    patch.setattr(PATCHING, "least_rows", 1)
    patch.setattr(patched_groups, "_BLOCK_ROWS", page_rows)


@contextmanager
def counting_patches(patch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of the row groups that are patched, appended in the order of their turns."""
    found: list[int] = []
    encode = GroupPatch.encode

    def noted(self: GroupPatch, stats: Any) -> Any:
        groups = encode(self, stats)
        found.append(self._number)
        return groups

    with patch.context() as inner:
        inner.setattr(GroupPatch, "encode", noted)
        yield found


def many_kinds(num_rows: int = 2 * GROUP_ROWS) -> pa.Table:
    """A column of every kind whose pages are replaced; `id` is the number of the row."""
    each = range(num_rows)
    start = dt.datetime(2020, 1, 1)  # noqa: DTZ001
    zoned = [(start + dt.timedelta(hours=n)).replace(tzinfo=dt.UTC) for n in each]
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "h": (pa.int16(), [n * 7 % 301 - 150 for n in each]),
        "i": (pa.int32(), [n * 31 % 997 - 500 for n in each]),
        "l": (pa.int64(), [(n - 90) * 2**40 for n in each]),
        "x": (pa.float64(), [float("nan") if n % 50 == 7 else -0.0 + n / 4 for n in each]),
        "f": (pa.float32(), [-0.0 if n % 3 else n / 2 for n in each]),
        "b": (pa.bool_(), [n % 11 == 0 for n in each]),
        "d": (pa.date32(), [dt.date(1969, 10, 1) + dt.timedelta(days=n) for n in each]),
        "ts": (pa.timestamp("us", "UTC"), zoned),
        "ntz": (pa.timestamp("us"), [start - dt.timedelta(minutes=n * 7 % 211) for n in each]),
        "m": (pa.decimal128(9, 2), [Decimal(n - 100) / 100 for n in each]),
        "n": (pa.decimal128(18, 4), [Decimal(n * 37 % 211 - 100) * 10**9 for n in each]),
        "w": (pa.decimal128(30, 3), [Decimal(100 - n) * 10**20 for n in each]),
        "t": (pa.string(), [f"{'' if n % 20 else 'é'}text {n:04d}" for n in each]),
        "y": (pa.binary(), [b"\xff\xfe" + bytes([n % 256]) * (n % 3) for n in each]),
    }
    table: dict[str, pa.Array[Any]] = {"id": pa.array(each, pa.int64())}
    for number, (name, (kind, values)) in enumerate(columns.items()):
        gaps = [None if (n + number) % 9 == 0 else value for n, value in enumerate(values)]
        table[name] = pa.array(gaps, kind)
    return pa.table(table)


def paged_file(file: Path, rows: pa.Table, **options: Any) -> None:
    """A file of small pages without dictionaries."""
    chosen: dict[str, Any] = {
        "row_group_size": GROUP_ROWS,
        "store_schema": False,
        "store_decimal_as_integer": True,
        "write_page_index": True,
        "use_dictionary": False,
        "max_rows_per_page": PAGE_ROWS,
        "write_batch_size": PAGE_ROWS,
        **options,
    }
    pq.write_table(rows, file, **chosen)


def paged_table(path: Path, rows: pa.Table | None = None, **options: Any) -> DeltaTable:
    """A table of one such file."""
    path.mkdir(parents=True, exist_ok=True)
    paged_file(path / "old.parquet", many_kinds() if rows is None else rows, **options)
    convert_to_deltalake(path)
    return DeltaTable(path)


def only_path(table: DeltaTable) -> Path:
    """The only file of a table."""
    (uri,) = DeltaTable(table.table_uri).file_uris()
    return Path(uri.removeprefix("file://"))


class StoredPage(NamedTuple):
    """A page, as the offset index has it."""

    start: int
    num_bytes: int
    first_row: int


def pages_of(data: bytes, group: int, leaf: int) -> list[StoredPage]:
    """The pages of a column chunk of a file that is not damaged."""
    column = _chunk(data, group, leaf)
    start, length = column[4].value, column[5].value
    places = thrift.read_struct(data[start : start + length])[0][1].value.values
    return [StoredPage(*(place[n].value for n in (1, 2, 3))) for place in places]


def page_bytes(data: bytes, group: int, leaf: int) -> list[bytes]:
    """The bytes of these pages."""
    return [data[at : at + size] for at, size, _ in pages_of(data, group, leaf)]


def page_bounds(data: bytes, group: int, leaf: int) -> tuple[list[Any], ...] | None:
    """Whether pages are of NULLs, lower and upper bounds and counts of NULLs, of a column chunk."""
    column = _chunk(data, group, leaf)
    if 6 not in column:
        return None
    start, length = column[6].value, column[7].value
    index = thrift.read_struct(data[start : start + length])[0]
    return tuple(list(index[n].value.values) for n in (1, 2, 3, 5))


def _chunk(data: bytes, group: int, leaf: int) -> thrift.Struct:
    (length,) = struct.unpack("<I", data[-8:-4])
    fields, _ = thrift.read_struct(data[-8 - length : -8])
    found: thrift.Struct = fields[4].value.values[group][1].value.values[leaf]
    return found


def metadata_of(data: bytes) -> pq.FileMetaData:
    """A footer, by pyarrow."""
    return pq.read_metadata(io.BytesIO(data))


def changed_with_and_without(
    path: Path,
    make: Callable[[Path], object],
    change: Callable[[DeltaTable], object],
    page_rows: int = PAGE_ROWS,
) -> tuple[DeltaTable, DeltaTable, int]:
    """The table after a change that patches, after one that does not, and how many were patched."""
    make(path / "patched")
    shutil.copytree(path / "patched", path / "rewritten")
    tables, num_patched = [], [0, 0]
    for turn, name in enumerate(("patched", "rewritten")):
        with pytest.MonkeyPatch.context() as patch, counting_patches(patch) as found:
            patching(patch, is_on=not turn, page_rows=page_rows)
            change(DeltaTable(path / name))
            num_patched[turn] = len(found)
        tables.append(DeltaTable(path / name))
    assert num_patched[1] == 0
    return tables[0], tables[1], num_patched[0]


def without(rows: pa.Table, gone: set[int]) -> pa.Table:
    """The rows whose `id` is not gone."""
    return rows.filter(pa.array([n not in gone for n in rows.column("id").to_pylist()]))


def texts_of_floats(rows: pa.Table) -> pa.Table:
    """Floating-point numbers as texts: NaN is not equal to itself, and 0.0 is equal to -0.0."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            rows = rows.set_column(number, field.name, rows.column(number).cast(pa.string()))
    return rows
