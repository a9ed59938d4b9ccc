"""Pages of plain numbers that do not contain what their headers state are left to Arrow."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq  # files are made behind the reader's back
import pytest

from deltalog.storage import open_store
from deltalog.storage.parquet import plain_pages, thrift
from deltalog.storage.parquet.excerpt import PAGED, Excerpt
from deltalog.storage.parquet.paged import PagedReader
from deltalog.storage.parquet.pages import DamagedPageError, DataPage, read_data_pages
from deltalog.storage.parquet.reader import open_parquet

CODECS: Any = ("snappy", "gzip", "zstd", "lz4_raw")
NUMBERS = struct.pack("<20q", *range(20))
ONE_RUN = b"\x28\x01"  # twenty levels of 1


def page_of(stored: bytes, size: int, **other: Any) -> DataPage:
    """A data page of twenty values."""
    fields: dict[str, Any] = {
        "encoding": 0,
        "level_bytes": None,
        "level_encoding": 3,
        "num_nulls": 0,
        "is_compressed": True,
        **other,
    }
    return DataPage(body=stored, num_values=20, uncompressed_bytes=size, **fields)


def decoded(page: DataPage, codec: str | None, *, is_optional: bool) -> bytes | None:
    """The values of a page; None if it is left to Arrow."""
    try:
        found = plain_pages._decoded(page, 8, codec, is_optional=is_optional)
    except (DamagedPageError, pa.ArrowException, OSError):
        return None
    return None if found is None else bytes(found)


@pytest.mark.parametrize("codec", [*CODECS, None])
@pytest.mark.parametrize("is_optional", [True, False])
@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("num_bytes", [160, 159, 152, 0, 161, 168])
def test_a_page_has_the_stated_number_of_bytes(
    codec: Any, num_bytes: int, *, is_optional: bool, is_new: bool
) -> None:
    """Of a shorter page, the end of Arrow's buffer would be arbitrary bytes."""
    levels = ONE_RUN if is_optional else b""
    framed = struct.pack("<I", len(levels)) + levels if is_optional and not is_new else b""
    values = (NUMBERS + bytes(8))[:num_bytes]
    raw = framed + values
    stored = raw if codec is None else pa.Codec(codec).compress(raw, asbytes=True)
    page = page_of(stored, len(framed) + 160)
    if is_new:
        page = page_of(levels + stored, len(levels) + 160, level_bytes=len(levels))
    expected = NUMBERS if num_bytes == 160 else None
    assert decoded(page, codec, is_optional=is_optional) == expected


@pytest.mark.parametrize(
    "stored",
    [
        pa.Codec("gzip").compress(NUMBERS[:80], asbytes=True) * 2,
        pa.Codec("gzip").compress(NUMBERS, asbytes=True)[:-3],
        pa.Codec("gzip").compress(NUMBERS, asbytes=True) + b"x",
        b"no gzip",
        b"",
    ],
    ids=["two members", "cut", "more bytes", "no stream", "empty"],
)
def test_an_unusual_gzip_stream_is_left_to_arrow(stored: bytes) -> None:
    assert decoded(page_of(stored, 160), "gzip", is_optional=False) is None


@pytest.mark.parametrize(
    "levels",
    [
        b"\x14\x00\x14\x01",  # ten NULLs, which the header does not count
        b"\x14\x01\x14\x01",  # two runs
        b"\x07\xff\xff\xff",  # bit-packed
        b"\x26\x01",  # a level too few
        b"\x2a\x01",  # a level too many
        b"\x28\x00",
        b"\x28\x02",
        b"\x28\x01\x00",
        b"\x28",
        b"",
    ],
    ids=bytes.hex,
)
def test_levels_that_are_not_one_run_are_left_to_arrow(levels: bytes) -> None:
    framed = struct.pack("<I", len(levels)) + levels + NUMBERS
    assert decoded(page_of(framed, len(framed)), None, is_optional=True) is None
    new = levels + NUMBERS
    page = page_of(new, len(new), level_bytes=len(levels))
    assert decoded(page, None, is_optional=True) is None


@pytest.mark.parametrize("field", [1, 2, 3])
def test_a_number_in_a_header_is_not_a_boolean(field: int) -> None:
    """Arrow ignores a field of another type, which is then missing."""
    details = {number: thrift.Value(thrift.INT32, value) for number, value in [(1, 1), (2, 0)]}
    details |= {number: thrift.Value(thrift.INT32, 3) for number in (3, 4)}

    def stored() -> bytes:
        header = {number: thrift.Value(thrift.INT32, value) for number, value in _ONE_PAGE.items()}
        header[5] = thrift.Value(thrift.STRUCT, details)
        return thrift.write_struct(header) + bytes(8)

    (page,) = read_data_pages(stored(), [1], is_repeated=False, most_bytes=8)
    assert page.body == bytes(8)
    details[field] = thrift.Value(thrift.FALSE, value=False)
    with pytest.raises(DamagedPageError, match="found False"):
        list(read_data_pages(stored(), [1], is_repeated=False, most_bytes=8))


_ONE_PAGE = {1: 0, 2: 8, 3: 8}
"""The type of a data page, and its sizes."""


def rows_of(path: Path, wanted: list[tuple[int, int]]) -> pa.Table:
    """Rows of a file, read by pages."""
    store = open_store(path.parent)
    reader = open_parquet(store, path.name)
    leaves = reader.leaf_indices(None)
    paged = PagedReader(store, reader)
    paged.load_index(range(reader.metadata.num_row_groups), leaves)
    return paged.read(leaves, wanted, None)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are read in small row groups, too."""
    monkeypatch.setattr(PAGED, "least_rows", 1)


@pytest.mark.usefixtures("eager")
def test_row_groups_without_rows_precede_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("id", pa.int64())])
    path = tmp_path / "f.parquet"
    options: Any = {"use_dictionary": False, "write_page_index": True, "max_rows_per_page": 10}
    with pq.ParquetWriter(path, schema, **options) as writer:
        for start, end in [(0, 0), (0, 100), (100, 100), (100, 100), (100, 200)]:
            writer.write_table(pa.table({"id": range(start, end)}, schema=schema))
    monkeypatch.setattr(Excerpt, "_decode", None)  # Arrow decodes nothing
    monkeypatch.setattr("deltalog.storage.parquet.reader.ParquetReader.read_leaves", None)
    found = rows_of(path, [(5, 7), (95, 105), (199, 200)])
    assert found["id"].to_pylist() == [5, 6, *range(95, 105), 199]
