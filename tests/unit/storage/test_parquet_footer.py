from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.errors import DataFileUnreadableError, StorageError
from deltalog.storage.parquet.footer import column_chunks, fetch_tail
from tests.support.logs import DictStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.store import ByteRange


def file_of(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def footer(file: bytes) -> bytes:
    (length,) = struct.unpack("<I", file[-8:-4])
    return file[-8 - length : -8]


def null_counts(data: bytes) -> list[list[int | None]]:
    return [[chunk.null_count for chunk in group] for group in column_chunks(data)]


def pq_null_count(chunk: pq.ColumnChunkMetaData) -> int | None:
    return None if chunk.statistics is None else chunk.statistics.null_count


@pytest.mark.parametrize("columns", [1, 40])
def test_counts_are_those_of_pyarrow(columns: int) -> None:
    table = pa.table(
        {
            f"c{number}": pa.array([{"v": None, "w": ["x", None]}, None, {"v": 1.5, "w": []}] * 5)
            for number in range(columns)
        }
        | {"flag": [True, None, False] * 5, "when": pa.array([1, 2, None] * 5, pa.date32())}
    )
    file = file_of(table, row_group_size=4)
    metadata = pq.read_metadata(pa.BufferReader(file))
    assert null_counts(footer(file)) == [
        [
            statistics.null_count
            if (statistics := metadata.row_group(group).column(column).statistics)
            else None
            for column in range(metadata.num_columns)
        ]
        for group in range(metadata.num_row_groups)
    ]


@pytest.mark.parametrize("kind", [0, 11, 13, 14, 15])
def test_a_field_of_no_kind_is_damage(kind: int) -> None:
    unknown = bytes([0x90 | kind, 0])  # the footer's ninth field
    with pytest.raises(DataFileUnreadableError, match="cannot read a Parquet footer"):
        column_chunks(unknown)
    inside = bytes([0x9C, 0x10 | kind, 0, 0])  # a field of a struct that is passed over
    with pytest.raises(DataFileUnreadableError, match="cannot read a Parquet footer"):
        column_chunks(inside)


def test_what_is_not_told_is_none() -> None:
    assert null_counts(footer(file_of(pa.table({"a": [1]}), write_statistics=False))) == [[None]]
    assert null_counts(footer(file_of(pa.table({"a": pa.array([], pa.int64())})))) == [[None]]


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x19\xfc\x7f", id="a list that ends early"),
        pytest.param(b"\x49\x1c\x15", id="a row group that ends early"),
        pytest.param(b"\x1c" * 100_000, id="structs without end"),
        pytest.param(b"\x1b\x01", id="a type that a footer has not"),
        pytest.param(b"\x45\x02\x00", id="a number in place of row groups"),
    ],
)
def test_a_footer_that_is_none_is_refused(damaged: bytes) -> None:
    with pytest.raises(DataFileUnreadableError, match="footer"):
        null_counts(damaged)


class StrictStore(DictStore):
    """Refuses a range that begins behind the end of the file, as S3 does."""

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """As `Store`."""
        if any(start >= len(self.files[path]) for start, _ in ranges):
            raise StorageError("416: the requested range is not satisfiable")
        return super().read_ranges(path, ranges)


def test_a_length_that_is_far_too_long_is_asked_for() -> None:
    store = StrictStore()
    store.files["f"] = data = file_of(pa.table({"a": range(10)}))
    assert fetch_tail(store, "f", len(data) + 10_000_000).size_bytes == len(data)
    store.files["empty"] = b""
    with pytest.raises(StorageError, match="416"):
        fetch_tail(store, "empty", 0)
