"""What a footer lets a reader know: which texts are read as entries of dictionaries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq  # files are made behind the reader's back
import pytest

from deltalog.errors import DataFileUnreadableError
from deltalog.storage import Store, open_store
from deltalog.storage.parquet.facts import repeated_texts
from deltalog.storage.parquet.parts import as_texts
from deltalog.storage.parquet.reader import ParquetReader, open_parquet

ROWS = 40_000
DATA = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "few": [None if row % 7 == 0 else f"text {row % 50}" for row in range(ROWS)],
        "many": [f"text {row % 30_000}" for row in range(ROWS)],
        "bytes": pa.array([b"\xff%d" % (row % 3) for row in range(ROWS)]),
        "plain": [f"text {row % 50}" for row in range(ROWS)],
        "s": [{"t": f"text {row % 50}"} for row in range(ROWS)],
    }
)
ENCODED = ["few", "many", "bytes", "s.t"]


def file_of(data: pa.Table = DATA, **options: Any) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(data, out, **{"use_dictionary": ENCODED, "row_group_size": 25_000, **options})
    return out.getvalue().to_pybytes()


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Store:
    return open_store(tmp_path / "t" if request.param == "local" else f"memory://{tmp_path}")


def opened(store: Store, data: bytes) -> ParquetReader:
    store.put("f.parquet", data)
    return open_parquet(store, "f.parquet", size_bytes=len(data))


def chosen(store: Store, data: bytes) -> list[str]:
    """Names of the columns that are read as dictionaries."""
    reader = opened(store, data)
    return repeated_texts(
        reader.footer,
        range(reader.metadata.num_row_groups),
        reader.leaf_indices(None),
        reader.column_chunks,
        lambda ranges: store.read_ranges("f.parquet", ranges),
    )


def test_columns_of_small_dictionaries_are_chosen(store: Store) -> None:
    assert chosen(store, file_of()) == ["few", "bytes"]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (DATA.slice(0, 16_000), {}),
        (DATA, {"dictionary_pagesize_limit": 100, "data_page_size": 1_000}),
        (DATA, {"use_dictionary": False}),
    ],
)
def test_few_rows_and_values_outside_of_dictionaries_are_read_as_they_are(
    store: Store, data: pa.Table, options: dict[str, Any]
) -> None:
    written = file_of(data, **options)
    assert "few" not in chosen(store, written)
    assert opened(store, written).read().equals(data)


@pytest.mark.parametrize("groups", [None, [1], [0, 1]])
@pytest.mark.parametrize("names", [None, ["few"], ["id", "few"]])
def test_what_is_read_is_the_same(
    store: Store, groups: list[int] | None, names: list[str] | None
) -> None:
    data = file_of()
    reader = opened(store, data)
    expected = pq.ParquetFile(pa.BufferReader(data)).read_row_groups(groups or [0, 1], names)
    found = reader.read(names, groups)
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)


def test_an_entry_that_is_not_there_is_an_error(store: Store) -> None:
    data = bytearray(file_of(DATA.select(["few"]), compression="none", row_group_size=ROWS))
    assert chosen(store, bytes(data)) == ["few"]
    chunk = pq.read_metadata(pa.BufferReader(bytes(data))).row_group(0).column(0)
    assert chunk.dictionary_page_offset is not None
    end = chunk.dictionary_page_offset + chunk.total_compressed_size
    data[end - 40 : end] = b"\xff" * 40  # numbers of entries of six bits: 63
    with pytest.raises(DataFileUnreadableError, match="not in dictionary bounds"):
        opened(store, bytes(data)).read()


def test_texts_keep_their_field_and_its_notes() -> None:
    field = pa.field("t", pa.dictionary(pa.int32(), pa.string()), False, {b"a": b"b"})
    other = field.with_name("u")
    entries = pa.array(["x", "y", "x"]).dictionary_encode()
    rows = pa.table([entries, entries], schema=pa.schema([field, other]))
    found = as_texts(rows, ["t"])
    expected = pa.schema([field.with_type(pa.string()), other])
    assert found.schema.equals(expected, check_metadata=True)
    assert found["t"].to_pylist() == ["x", "y", "x"]


def test_a_column_that_is_stored_as_a_dictionary_stays_one(store: Store) -> None:
    data = DATA.set_column(4, "plain", DATA["plain"].dictionary_encode())
    written = file_of(data, use_dictionary=True)
    assert "plain" not in chosen(store, written)
    found = opened(store, written).read()
    assert found.schema.field("plain").type == pa.dictionary(pa.int32(), pa.string())
    assert found["plain"].cast(pa.string()).equals(DATA["plain"])


def test_columns_of_one_name_are_read_as_they_are(store: Store) -> None:
    data = pa.Table.from_arrays([DATA["few"], DATA["bytes"]], names=["t", "t"])
    written = file_of(data, use_dictionary=True)
    assert chosen(store, written) == []
    assert opened(store, written).read_leaves([0, 1]).equals(data)


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_a_column_of_one_text_takes_fewer_bytes_than_are_looked_at(
    store: Store, codec: str
) -> None:
    data = pa.table({"t": ["a"] * ROWS})
    written = file_of(data, use_dictionary=True, compression=codec, write_statistics=False)
    chunk = pq.read_metadata(pa.BufferReader(written)).row_group(1).column(0)
    assert chunk.total_compressed_size < 64
    assert chosen(store, written) == ["t"]
    assert opened(store, written).read().equals(data)
