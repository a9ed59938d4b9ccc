"""What is read of a file by pages: how many rows, bytes and requests; and when it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq  # files are made behind the reader's back
import pytest

from deltalog.errors import DataFileMissingError
from deltalog.storage import Store, open_store
from deltalog.storage.parquet import excerpt
from deltalog.storage.parquet.excerpt import PAGED, Excerpt
from deltalog.storage.parquet.facts import RECENT_FOOTERS
from deltalog.storage.parquet.paged import PagedReader
from deltalog.storage.parquet.reader import ParquetReader, open_parquet
from deltalog.storage.stores.local_files import local_state
from deltalog.testing import CountingStore

ROWS, PAGE_ROWS = 100_000, 5_000
DATA = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.array([row * 7919 % 104729 / 3 for row in range(ROWS)]),
        "t": pa.array([f"text-{row % 50}" for row in range(ROWS)]),
        "s": pa.array([{"a": row, "b": str(row)} for row in range(ROWS)]),
    }
)
WANTED = [(42_001, 42_002)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of each leaf were decoded by pages."""
    rows: list[int] = []
    decode = Excerpt.decode

    def note(self: Excerpt, *args: Any) -> pa.Table:
        parts = [part for group in self.groups for column in group.columns for part in column]
        rows.extend(sum(end - start for start, end in part.rows) for part in parts)
        return decode(self, *args)

    monkeypatch.setattr(Excerpt, "decode", note)
    return rows


def write(store: Store, **options: Any) -> int:
    """Write the file; its size."""
    out = pa.BufferOutputStream()
    options = {"write_page_index": True, "use_dictionary": ["t"], **options}
    pq.write_table(DATA, out, max_rows_per_page=PAGE_ROWS, row_group_size=ROWS, **options)
    data = out.getvalue().to_pybytes()
    store.put("f.parquet", data)
    return len(data)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CountingStore:
    location = tmp_path / "t" if request.param == "local" else f"memory://{tmp_path}"
    return CountingStore(open_store(location))


def read(store: Store, size: int, leaves: list[int] | None = None) -> pa.Table:
    """The wanted rows, as a scan reads them."""
    reader = open_parquet(store, "f.parquet", size_bytes=size)
    leaves = reader.leaf_indices(None) if leaves is None else leaves
    paged = PagedReader(store, reader)
    paged.load_index([0], leaves)
    return paged.read(leaves, WANTED, paged.fetch(paged.missing_ranges(leaves, WANTED)))


def test_one_page_of_each_column_is_read(store: CountingStore, decoded: list[int]) -> None:
    size = write(store)
    store.reset()
    assert read(store, size).to_pylist() == DATA.slice(42_001, 1).to_pylist()
    assert decoded == [PAGE_ROWS] * 5
    assert store.bytes_read < size / 4


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "lz4"])
def test_single_pages_of_plain_numbers_are_decoded_without_a_file(
    tmp_path: Path, codec: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NULLs, dictionaries and strings are decoded by Arrow, with a file around the pages."""
    files: list[Excerpt] = []
    make = Excerpt._file

    def note(self: Excerpt, *args: Any) -> Any:
        files.append(self)
        return make(self, *args)

    monkeypatch.setattr(Excerpt, "_file", note)
    store = CountingStore(open_store(tmp_path))
    size = write(store, compression=codec, data_page_version=version)
    assert read(store, size, [0]).to_pylist() == [{"id": 42_001}]
    assert read(store, size, [0, 1]).equals(DATA.select(["id", "x"]).slice(42_001, 1))
    assert files == []
    assert read(store, size, [0, 2]).equals(DATA.select(["id", "t"]).slice(42_001, 1))
    assert len(files) == 1
    write(store, compression=codec, data_page_version=version, use_dictionary=["id"])
    (tmp_path / "f.parquet").touch()
    assert read(store, (tmp_path / "f.parquet").stat().st_size, [0])["id"].to_pylist() == [42_001]
    assert len(files) == 2


def test_pages_of_columns_need_not_begin_at_the_same_rows(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most writers limit the bytes of a page, so that pages of short values have more rows."""
    options: Any = {"data_page_size": 20_000, "use_dictionary": False, "max_rows_per_page": ROWS}
    data, wanted = DATA.select(["id", "t", "s"]), [(5, 7), (42_001, 42_002)]
    numbers = pa.array([None, *range(ROWS - 1)], pa.int32())  # NULLs, so Arrow decodes them
    data = data.append_column("n", numbers).append_column("v", DATA["x"].cast(pa.float32()))
    out = pa.BufferOutputStream()
    pq.write_table(data, out, write_page_index=True, row_group_size=ROWS, **options)
    size = out.tell()
    store.put("f.parquet", out.getvalue().to_pybytes())
    monkeypatch.setattr(ParquetReader, "read_leaves", None)  # reads whole column chunks
    reader = open_parquet(store, "f.parquet", size_bytes=size)
    leaves = reader.leaf_indices(None)
    paged = PagedReader(store, reader)
    paged.load_index([0], leaves)
    for threaded_bytes in (excerpt._THREADED_BYTES, 0):
        monkeypatch.setattr(excerpt, "_THREADED_BYTES", threaded_bytes)
        found = paged.read(leaves, wanted, paged.fetch(paged.missing_ranges(leaves, wanted)))
        assert found.to_pylist() == [
            row for start, end in wanted for row in data.slice(start, end - start).to_pylist()
        ]


def test_pages_elsewhere_take_two_rounds_of_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index comes with the end of the file; then the pages come, and little between them."""
    monkeypatch.setattr("deltalog.storage.parquet.footer._SMALL_FILE_BYTES", 0)
    monkeypatch.setattr("deltalog.storage.parquet.paged._REMOTE_GAP_BYTES", 1000)
    store = CountingStore(open_store(f"memory://{tmp_path}"))
    size = write(store)
    store.reset()
    read(store, size)
    tail, pages = store.calls
    assert (tail.verb, tail.files) == ("read_ranges", 1)
    assert (pages.verb, pages.files) == ("read_ranges", 6)  # dictionary and page of `t` apart
    assert pages.size_bytes < size / 10


def test_an_index_that_did_not_come_with_the_footer_is_asked_for_if_that_saves_more(
    tmp_path: Path, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.storage.parquet.footer._SMALL_FILE_BYTES", 0)
    monkeypatch.setattr("deltalog.storage.parquet.footer._TAIL_BYTES", 100)
    store = CountingStore(open_store(f"memory://{tmp_path}"))
    size = write(store)
    read(store, size)
    assert not decoded
    monkeypatch.setattr("deltalog.storage.parquet.paged._WORTH_WAITING_BYTES", 1000)
    store.reset()
    read(store, size)
    assert decoded == [PAGE_ROWS] * 5
    assert store.total_calls == 4  # the tail, the rest of the footer, the index, the pages


@pytest.mark.parametrize("setting", [{"is_on": False}, {"least_rows": ROWS + 1}, {"most_share": 0}])
def test_pages_can_be_turned_off(
    store: CountingStore,
    decoded: list[int],
    setting: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = write(store)
    for name, value in setting.items():
        monkeypatch.setattr(PAGED, name, value)
    assert read(store, size).to_pylist() == DATA.slice(42_001, 1).to_pylist()
    assert not decoded


def test_a_file_without_an_index_is_read_whole(store: CountingStore, decoded: list[int]) -> None:
    size = write(store, write_page_index=False)
    assert read(store, size).to_pylist() == DATA.slice(42_001, 1).to_pylist()
    assert not decoded


def test_a_header_that_contradicts_the_index_is_noticed(
    store: CountingStore, decoded: list[int]
) -> None:
    """The pages of another column of the same length: only their headers show it."""
    size = write(store)
    reader = open_parquet(store, "f.parquet", size_bytes=size)
    paged = PagedReader(store, reader)
    paged.load_index([0], [0])
    assert paged.read([0], WANTED, None).to_pylist() == [{"id": 42_001}]
    (pages,) = reader.footer.pages.values()
    assert pages is not None
    moved = [*pages.rows[:9], pages.rows[9] - 1, *pages.rows[10:]]
    reader.footer.pages[0, 0] = pages._replace(rows=tuple(moved))
    assert paged.read([0], WANTED, None).to_pylist() == [{"id": 42_001}]
    assert len(decoded) == 2


def test_dictionaries_are_read_only_if_a_page_uses_them(
    store: CountingStore, decoded: list[int]
) -> None:
    size = write(store, use_dictionary=True, dictionary_pagesize_limit=20_000)
    assert read(store, size).to_pylist() == DATA.slice(42_001, 1).to_pylist()
    assert decoded == [PAGE_ROWS] * 5


def test_footers_of_local_files_are_kept_while_the_files_stay(tmp_path: Path) -> None:
    import os

    store = open_store(tmp_path)
    size = write(store)
    path = tmp_path / "f.parquet"
    os.utime(path, (4_000_000_000, 4_000_000_000))  # as late as a change just now, and stays so
    first = open_parquet(store, "f.parquet").footer
    assert open_parquet(store, "f.parquet").footer is not first
    os.utime(path, (1_700_000_000, 1_700_000_000))
    kept = open_parquet(store, "f.parquet").footer
    assert open_parquet(store, "f.parquet").footer is kept
    assert RECENT_FOOTERS.get(local_state(str(path))) is kept
    os.utime(path, (1_700_000_001, 1_700_000_001))
    assert open_parquet(store, "f.parquet").footer is not kept
    assert read(store, size).num_rows == 1
    path.unlink()
    with pytest.raises(DataFileMissingError):
        open_parquet(store, "f.parquet")
