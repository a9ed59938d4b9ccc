"""What is checked of pages that are copied into other files as they are stored."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, convert_to_deltalake, write_deltalake
from deltalog.errors import DataFileUnreadableError
from deltalog.operations.changes import kept_groups
from deltalog.storage.parquet.byte_sources import EncodedBytes
from deltalog.storage.parquet.groups import read_stored
from deltalog.storage.parquet.reader import ParquetReader
from deltalog.storage.parquet.splice import check_pages

ROWS = pa.table(
    {
        "id": pa.array(range(200), pa.int64()),
        "few": [f"entry {n % 3}" for n in range(200)],
        "t": [f"text {n}" for n in range(200)],
        "l": [[n, None] for n in range(200)],
    }
)
FORMS = [
    {"compression": codec, "data_page_version": version}
    for codec in ("none", "snappy", "gzip", "zstd")
    for version in ("1.0", "2.0")
]


@pytest.fixture(autouse=True)
def _copying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_groups, "LEAST_BYTES", 1)
    monkeypatch.setattr(kept_groups, "LEAST_COMPACTED_BYTES", 1)


def _two_files(path: Path, **options: Any) -> Path:
    """A table of two files; the first of them."""
    path.mkdir(exist_ok=True)
    options = {"store_schema": False, "write_page_index": True, **options}
    pq.write_table(ROWS, path / "a.parquet", **options)
    pq.write_table(ROWS.slice(0, 1), path / "b.parquet", **options)
    convert_to_deltalake(path)
    return path / "a.parquet"


def _decoded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    read = ParquetReader.read_leaves

    def noting(self: ParquetReader, leaves: Any, groups: Any = None, segments: Any = None) -> Any:
        found.extend((self.path, group, leaf) for group in groups for leaf in leaves)
        return read(self, leaves, groups, segments)

    monkeypatch.setattr(ParquetReader, "read_leaves", noting)
    return found


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_pages_with_checksums_are_copied_without_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: dict[str, Any]
) -> None:
    _two_files(tmp_path / "t", write_page_checksum=True, **form)
    decoded = _decoded(monkeypatch)
    DeltaTable(tmp_path / "t").optimize.compact()
    assert {leaf for _, _, leaf in decoded} <= {3}  # statistics count the elements of lists
    found = DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("id")
    assert found.num_rows == 201


def test_pages_without_checksums_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _two_files(tmp_path / "t")
    decoded = _decoded(monkeypatch)
    DeltaTable(tmp_path / "t").optimize.compact()
    assert sorted(decoded) == [(name, 0, leaf) for name in ("a.parquet", "b.parquet")
                               for leaf in range(4)]  # fmt: skip


def test_our_own_files_have_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(tmp_path, ROWS.select(["id", "t"]))
    write_deltalake(tmp_path, ROWS.select(["id", "t"]), mode="append")
    decoded = _decoded(monkeypatch)
    DeltaTable(tmp_path).optimize.compact()
    assert decoded == []
    (file,) = [Path(one.removeprefix("file://")) for one in DeltaTable(tmp_path).file_uris()]
    assert pq.ParquetFile(file, page_checksum_verification=True).read().num_rows == 400


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_page_that_is_not_what_its_checksum_says_is_not_copied(
    tmp_path: Path, form: dict[str, Any]
) -> None:
    file = _two_files(tmp_path / "t", write_page_checksum=True, **form)
    data = bytearray(file.read_bytes())
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(0)
    data[chunk.data_page_offset + chunk.total_compressed_size - 40] ^= 4
    file.write_bytes(data)
    version = DeltaTable(tmp_path / "t").version()
    with pytest.raises(DataFileUnreadableError, match="checksum") as caught:
        DeltaTable(tmp_path / "t").optimize.compact()
    assert any("'a.parquet'" in note for note in caught.value.__notes__)
    assert DeltaTable(tmp_path / "t").version() == version
    assert {path.name for path in (tmp_path / "t").glob("*.parquet")} == {"a.parquet", "b.parquet"}


@pytest.mark.slow("damages a file at many places")
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("checksums", [True, False])
def test_damaged_headers_are_never_copied_into_a_file_that_cannot_be_read(
    tmp_path: Path, form: dict[str, Any], *, checksums: bool
) -> None:
    file = _two_files(tmp_path / "t", write_page_checksum=checksums, **form)
    whole = file.read_bytes()
    known = set((tmp_path / "t").rglob("*"))
    group = pq.ParquetFile(file).metadata.row_group(0)
    starts = [
        place
        for chunk in map(group.column, range(group.num_columns))
        for place in (chunk.dictionary_page_offset, chunk.data_page_offset)
        if place is not None
    ]
    rng = random.Random(0)
    for _ in range(40):
        data = bytearray(whole)
        data[rng.choice(starts) + rng.randrange(24)] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        try:
            DeltaTable(tmp_path / "t").optimize.compact()
        except DataFileUnreadableError:
            pass
        else:
            assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 201
        for path in set((tmp_path / "t").rglob("*")) - known:
            path.unlink()


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_chunks_with_checksums_are_proven(tmp_path: Path, form: dict[str, Any]) -> None:
    options = {"write_page_checksum": True, "data_page_size": 64, **form}
    pq.write_table(ROWS, tmp_path / "a.parquet", row_group_size=50, **options)
    source = EncodedBytes(pa.py_buffer((tmp_path / "a.parquet").read_bytes()))
    footer = read_stored(source.footer(), source.size_bytes)
    assert footer is not None
    for group in footer.groups:
        assert all(chunk.is_proven for chunk in check_pages(group, footer.schema, source))
