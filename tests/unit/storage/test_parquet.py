from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq  # files are made behind the reader's back
import pytest

from deltalog.errors import (
    AlreadyExistsError,
    DataFileMissingError,
    DataFileUnreadableError,
    StorageError,
)
from deltalog.storage import Store, open_store
from deltalog.storage.parquet.reader import open_parquet, read_footer
from deltalog.storage.parquet.sink import ParquetSink, write_parquet
from deltalog.testing import CountingStore, FaultyStore, InjectedFault

NESTED = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "add": pa.array(
            [{"path": f"p{n}", "size": n, "tags": [("k", "v")], "a.b": [n]} for n in range(1000)],
            pa.struct(
                [
                    ("path", pa.string()),
                    ("size", pa.int64()),
                    ("tags", pa.map_(pa.string(), pa.string())),
                    ("a.b", pa.list_(pa.int32())),
                ]
            ),
        ),
        "x.y": pa.array(["z"] * 1000),
        "x": pa.array([{"y": 1}] * 1000),
    }
)


@pytest.fixture
def read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size are read as large ones are: the footer, then the column chunks."""
    monkeypatch.setattr("deltalog.storage.parquet.footer._SMALL_FILE_BYTES", 0)
    monkeypatch.setattr("deltalog.storage.parquet.footer._TAIL_BYTES", 4096)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(tmp_path / "t")
    return CountingStore(open_store(f"memory://{tmp_path}"))


def test_nothing_is_looked_up_to_read_a_file_that_came_whole(tmp_path: Path) -> None:
    store = CountingStore(open_store(f"memory://{tmp_path}"))
    info = write_parquet(store, "a.parquet", NESTED)
    store.reset()
    reader = open_parquet(store, "a.parquet", size_bytes=info.size_bytes)
    assert reader.missing_ranges(range(len(reader.leaf_paths)), [0]) == []
    assert reader.read() == NESTED
    assert reader.footer.chunks == {}  # the footer's thrift was not parsed a second time
    assert store.total_calls == 1


def test_texts_that_repeat_are_read_of_a_file_that_came_whole(tmp_path: Path) -> None:
    store = CountingStore(open_store(f"memory://{tmp_path}"))
    texts = pa.table({"name": pa.array(["one", "two", None, "three"] * 5_000)})
    info = write_parquet(store, "a.parquet", texts)
    store.reset()
    assert open_parquet(store, "a.parquet", size_bytes=info.size_bytes).read() == texts
    assert store.total_calls == 1


def test_what_was_written_is_read(store: Store) -> None:
    info = write_parquet(store, "d e/a b.parquet", NESTED, row_group_size=300)
    assert info.size_bytes == store.stat("d e/a b.parquet").size_bytes
    reader = open_parquet(store, "d e/a b.parquet", size_bytes=info.size_bytes)
    assert reader.num_rows == 1000
    assert reader.row_group_starts == [0, 300, 600, 900, 1000]
    assert reader.read().equals(NESTED)
    assert reader.arrow_schema.equals(NESTED.schema)
    assert reader.read(row_groups=[3, 0]).column("id").to_pylist() == [
        *range(900, 1000),
        *range(300),
    ]
    assert read_footer(store, "d e/a b.parquet").num_row_groups == 4
    reader.close()


def test_batches_come_row_group_by_row_group(store: Store) -> None:
    write_parquet(store, "f.parquet", NESTED, row_group_size=400)
    reader = open_parquet(store, "f.parquet")
    batches = list(reader.iter_batches(columns=["id"], batch_size=250))
    assert [batch.num_rows for batch in batches] == [250, 150, 250, 150, 200]
    assert pa.Table.from_batches(batches).column("id").to_pylist() == list(range(1000))
    assert [batch.num_rows for batch in reader.iter_batches([2], [])] == [200]


@pytest.mark.protocol("D-32")
def test_int96_is_read_as_microseconds(store: Store) -> None:
    moments = [dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1, 1, 1)]  # noqa: DTZ001  # int96 has no zone
    table = pa.table({"t": pa.array(moments, pa.timestamp("us"))})
    write_parquet(store, "f.parquet", table, use_deprecated_int96_timestamps=True)
    read = open_parquet(store, "f.parquet").read().column("t")
    assert read.type == pa.timestamp("us")
    assert read.to_pylist() == moments


def test_a_remote_file_costs_a_footer_and_the_asked_chunks(tmp_path: Path) -> None:
    wide = pa.table({f"c{n}": pa.array(range(n, n + 200_000)) for n in range(20)})
    store = CountingStore(open_store(tmp_path))
    info = write_parquet(store, "f.parquet", wide, compression="none", use_dictionary=False)
    store.reset()
    reader = open_parquet(store, "f.parquet", size_bytes=info.size_bytes)
    assert store.counts == {"read_ranges": 1}
    assert store.footers_opened == 1
    assert store.bytes_read <= 64 * 1024
    store.reset()
    assert reader.read(["c3", "c17"]).num_rows == 200_000
    assert store.counts == {"read_ranges": 1}
    assert store.calls[0].files == 2
    chunk = 200_000 * 8
    assert 2 * chunk <= store.bytes_read < 2 * chunk * 1.01
    store.reset()
    again = open_parquet(store, "f.parquet", size_bytes=info.size_bytes, footer=reader.footer)
    assert again.num_rows == 200_000
    assert store.total_calls == 0
    open_parquet(store, "f.parquet")
    assert store.counts == {"stat": 1, "read_ranges": 1}


def test_a_footer_larger_than_the_tail_costs_one_more_read(tmp_path: Path) -> None:
    table = pa.table({f"column_{n:05d}": [n] for n in range(2000)})
    store = CountingStore(open_store(tmp_path))
    info = write_parquet(store, "f.parquet", table)
    store.reset()
    reader = open_parquet(store, "f.parquet", size_bytes=info.size_bytes)
    assert store.counts == {"read_ranges": 2}
    assert reader.read(["column_01999"]).to_pydict() == {"column_01999": [1999]}


@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"no parquet at all, just text", b"PAR1" + b"\xff" * 40 + b"PAR1", b"x" * 100],
)
def test_what_is_no_parquet_file(store: Store, content: bytes) -> None:
    store.put("f.parquet", content)
    with pytest.raises(DataFileUnreadableError, match=r"f\.parquet"):
        open_parquet(store, "f.parquet")


def test_damaged_pages(store: Store) -> None:
    write_parquet(store, "f.parquet", NESTED)
    content = bytearray(store.read("f.parquet"))
    content[4:2000] = b"\x55" * 1996
    store.put("f.parquet", bytes(content))
    with pytest.raises(DataFileUnreadableError):
        open_parquet(store, "f.parquet").read()


def test_a_missing_file(store: Store) -> None:
    with pytest.raises(DataFileMissingError, match="no such file"):
        open_parquet(store, "gone.parquet")
    with pytest.raises(DataFileMissingError):
        open_parquet(store, "gone.parquet", size_bytes=1000)


@pytest.mark.parametrize("error", [50, -50, -100_000])
def test_a_wrong_size_in_the_log_does_no_harm(tmp_path: Path, error: int) -> None:
    store = CountingStore(open_store(tmp_path))
    table = pa.table({f"column_{n:05d}": [n] * 10 for n in range(2000)})
    info = write_parquet(store, "f.parquet", table)
    reader = open_parquet(store, "f.parquet", size_bytes=info.size_bytes + error)
    assert reader.read(["column_01999"]).to_pydict() == {"column_01999": [1999] * 10}


@pytest.mark.usefixtures("read_in_parts")
def test_a_file_that_is_cut_off_after_its_footer_was_read(tmp_path: Path) -> None:
    store = CountingStore(open_store(tmp_path))
    write_parquet(store, "f.parquet", NESTED)
    reader = open_parquet(store, "f.parquet")
    store.put("f.parquet", store.read("f.parquet")[:100])
    with pytest.raises(DataFileUnreadableError, match="found"):
        reader.read()


@pytest.mark.usefixtures("read_in_parts")
def test_a_failing_store_is_not_called_a_bad_file(tmp_path: Path) -> None:
    inner = open_store(tmp_path)
    write_parquet(inner, "f.parquet", NESTED)
    store = FaultyStore(inner, InjectedFault(verb="read_ranges", call=2))
    reader = open_parquet(store, "f.parquet")
    with pytest.raises(StorageError, match="injected"):
        reader.read()
    assert reader.read().num_rows == 1000


@pytest.mark.protocol("DF-04")
def test_a_data_file_is_never_overwritten(store: Store) -> None:
    write_parquet(store, "f.parquet", NESTED)
    with pytest.raises(AlreadyExistsError):
        write_parquet(store, "f.parquet", NESTED.slice(5))
    assert open_parquet(store, "f.parquet").num_rows == 1000
    assert [file.path for file in store.list_all("")] == ["f.parquet"]


@pytest.mark.protocol("DF-04")
def test_a_lost_response_of_our_own_write_is_no_clash(tmp_path: Path) -> None:
    class SendsTwice(CountingStore):
        """A client that sends a put again after its response was lost."""

        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            super().put_if_absent(path, data)

    store = SendsTwice(open_store(tmp_path))
    assert write_parquet(store, "f.parquet", NESTED).size_bytes > 0


def test_a_failed_write_leaves_nothing(store: Store) -> None:
    def write() -> None:
        with ParquetSink(store, "d/f.parquet", NESTED.schema) as sink:
            sink.write(NESTED)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write()
    assert list(store.list_all("")) == []


def test_pieces_make_one_file(store: Store) -> None:
    with ParquetSink(store, "f.parquet", NESTED.schema, compression="zstd") as sink:
        for batch in NESTED.to_batches(max_chunksize=250):
            sink.write(batch)
        assert sink.size_bytes > 0
    assert sink.metadata.num_rows == 1000
    assert sink.file.size_bytes == store.stat("f.parquet").size_bytes
    assert open_parquet(store, "f.parquet").read().equals(NESTED)
    statistics = sink.metadata.row_group(0).column(0).statistics
    assert statistics is not None
    assert statistics.max == 249


def test_files_with_a_page_index_open(tmp_path: Path) -> None:
    pq.write_table(NESTED, tmp_path / "f.parquet", write_page_index=True, version="1.0")
    for store in [open_store(tmp_path), CountingStore(open_store(tmp_path))]:
        assert open_parquet(store, "f.parquet").read(["id"]).num_rows == 1000


def test_large_files_are_decoded_side_by_side_in_order(store: Store) -> None:
    numbers = pa.array(range(1_000_000), pa.int64())
    table = pa.table({"a": numbers, "b": pa.compute.multiply(numbers, 3)})
    write_parquet(
        store, "f.parquet", table, row_group_size=100_000, compression="none", use_dictionary=False
    )
    reader = open_parquet(store, "f.parquet")
    assert reader.read().equals(table)
    part = reader.read(["b"], [7, 8, 2])
    expected = pa.concat_tables(
        [table.slice(700_000, 200_000), table.slice(200_000, 100_000)]
    ).select(["b"])
    assert part.equals(expected)


def test_large_row_groups_are_decoded_side_by_side(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    noise = pa.py_buffer(random.Random(1).randbytes(8 * 600_000))
    data = pa.Array.from_buffers(pa.int64(), 600_000, [None, noise])
    rows = pa.table({"a": data, "b": data, "c": pa.array(range(len(data)), pa.int64())})
    pq.write_table(rows, tmp_path / "f.parquet", row_group_size=200_000, use_dictionary=False)
    reader = open_parquet(store, "f.parquet")
    assert reader.read([("c",), ("a",)]).equals(rows.select(["a", "c"]))
    assert reader.read([("b",)], [2, 0]).equals(
        pa.concat_tables([rows.select(["b"]).slice(400_000), rows.select(["b"]).slice(0, 200_000)])
    )


@pytest.mark.parametrize(
    ("num_columns", "num_rows", "parses"), [(40, 5_000, False), (2, 100_000, True)]
)
def test_sizes_of_many_small_columns_are_not_parsed(
    num_columns: int, num_rows: int, parses: bool, tmp_path: Path
) -> None:
    # Python needs more time to parse the sizes of their chunks than Arrow needs to decode them.
    numbers = pa.array(range(num_rows), pa.int64())
    rows = pa.table({f"c{number}": numbers for number in range(num_columns)})
    pq.write_table(rows, tmp_path / "f.parquet", use_dictionary=False, compression="none")
    reader = open_parquet(open_store(str(tmp_path)), "f.parquet")
    assert reader.read().equals(rows)
    assert bool(reader.footer.chunks) == parses
