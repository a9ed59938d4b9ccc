"""Bytes are copied whole, by the system or through this process; a file that ends is an error."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog.errors import DataFileUnreadableError
from deltalog.storage.parquet.byte_sources import EncodedBytes, FetchedBytes, LocalBytes, write_all
from deltalog.storage.parquet.parts import Segments

DATA = bytes(range(256)) * 40_000  # more than a slice


def copied(source: LocalBytes, path: Path, start: int, end: int) -> bytes:
    with io.FileIO(path, "wb") as out:
        write_all(out, b"head")
        source.copy(start, end, out)
        write_all(out, b"tail")
    return path.read_bytes()


@pytest.mark.parametrize("by_system", [True, False])
def test_a_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_system: bool) -> None:
    if not by_system:
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    (tmp_path / "old").write_bytes(DATA)
    source = LocalBytes(str(tmp_path / "old"))
    try:
        assert source.size_bytes == len(DATA)
        assert source.read(7, 300) == DATA[7:300]
        found = copied(source, tmp_path / "new", 5, len(DATA) - 1)
        assert found == b"head" + DATA[5:-1] + b"tail"
        with pytest.raises(DataFileUnreadableError, match="expected 20 bytes"):
            source.read(len(DATA) - 10, len(DATA) + 10)
        with pytest.raises(DataFileUnreadableError, match="expected"):
            copied(source, tmp_path / "new", len(DATA) - 10, len(DATA) + 10)
    finally:
        source.close()


def test_a_system_that_cannot_copy_between_these_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "copy_file_range"):
        pytest.skip("the system has no such call")
    calls = []

    def refuse(*args: object, **options: object) -> int:
        calls.append((args, options))
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    (tmp_path / "old").write_bytes(DATA)
    source = LocalBytes(str(tmp_path / "old"))
    assert copied(source, tmp_path / "new", 0, 9) == b"head" + DATA[:9] + b"tail"
    assert len(calls) == 1
    source.close()


def test_parts_that_were_fetched() -> None:
    segments = Segments()
    segments.add(100, DATA[100:200])
    source = FetchedBytes(segments, len(DATA))
    out = io.BytesIO()
    source.copy(120, 180, out)
    assert out.getvalue() == DATA[120:180]
    with pytest.raises(DataFileUnreadableError, match="not fetched"):
        source.read(150, 250)
    source.close()
    with pytest.raises(DataFileUnreadableError, match="not fetched"):
        source.read(120, 180)


def test_a_file_in_memory() -> None:
    source = EncodedBytes(pa.py_buffer(DATA))
    out = io.BytesIO()
    source.copy(3, 9, out)
    assert out.getvalue() == source.read(3, 9) == DATA[3:9]
    with pytest.raises(DataFileUnreadableError, match="expected"):
        source.read(0, len(DATA) + 1)


class ShortWrites(io.RawIOBase):
    """Takes three bytes at a time, as a file may."""

    def __init__(self) -> None:
        self.taken = b""

    def write(self, data: object) -> int:
        part = bytes(memoryview(data)[:3])  # type: ignore[arg-type]  # a buffer
        self.taken += part
        return len(part)


def test_files_that_take_less_than_all() -> None:
    out = ShortWrites()
    write_all(out, b"abcdefgh")
    assert out.taken == b"abcdefgh"
