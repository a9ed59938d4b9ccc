"""A seekable file over ranged reads."""

from __future__ import annotations

import io

import pytest

from deltalog.errors import ObjectNotFoundError
from deltalog.storage.stores.fsspec_files import RangedFile, open_ranged
from deltalog.testing import CountingStore
from tests.support.logs import DictStore

DATA = b"0123456789"


def opened(asked: list[tuple[int, int]], size: int = len(DATA)) -> RangedFile:
    def read_range(start: int, end: int) -> bytes:
        asked.append((start, end))
        return DATA[start:end]

    return RangedFile(read_range, size)


def test_each_read_asks_for_its_range() -> None:
    asked: list[tuple[int, int]] = []
    file = opened(asked)
    assert (file.readable(), file.seekable(), file.tell()) == (True, True, 0)
    assert [file.read(3), file.read(0), file.read(4)] == [b"012", b"", b"3456"]
    assert file.read() == b"789"
    assert file.read() == file.read(5) == b""
    assert asked == [(0, 3), (3, 7), (7, 10)]


@pytest.mark.parametrize(
    ("offset", "whence", "position", "rest"),
    [
        (4, io.SEEK_SET, 4, b"456789"),
        (-3, io.SEEK_END, 7, b"789"),
        (1, io.SEEK_CUR, 3, b"3456789"),
        (-9, io.SEEK_CUR, 0, DATA),
        (5, io.SEEK_END, 15, b""),
    ],
)
def test_positions(offset: int, whence: int, position: int, rest: bytes) -> None:
    asked: list[tuple[int, int]] = []
    file = opened(asked)
    file.read(2)
    asked.clear()
    assert file.seek(offset, whence) == position
    assert asked == []
    assert file.read() == rest


def test_a_buffer_is_filled_as_far_as_the_file_goes() -> None:
    file = opened([])
    file.seek(8)
    buffer = bytearray(b"----")
    assert file.readinto(buffer) == 2
    assert buffer == b"89--"


def test_a_file_without_bytes_asks_for_none() -> None:
    asked: list[tuple[int, int]] = []
    assert opened(asked, size=0).read() == b""
    assert asked == []


def test_a_file_of_a_store_costs_a_stat_and_a_range() -> None:
    store = CountingStore(DictStore({"a": DATA}))
    with open_ranged(store, "a") as file:
        file.seek(2)
        assert [file.read(3), file.read(3), file.read()] == [b"234", b"567", b"89"]
    assert store.counts == {"stat": 1, "read_ranges": 1}
    with pytest.raises(ObjectNotFoundError):
        open_ranged(store, "b")
