"""Small local files are decoded as larger ones are, and what is wrong with them is said."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import DataFileMissingError, DataFileUnreadableError
from deltalog.storage import open_store
from deltalog.storage.parquet.excerpt import KnownSchema, decode_small, small_bytes
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.parquet.sink import write_parquet
from deltalog.storage.store import Store
from tests.support.logs import DictStore

NESTED = pa.table(
    {
        "id": list(range(1_000)),
        "text": [f"text {n % 7}" if n % 5 else None for n in range(1_000)],
        "list": [[n, None] if n % 3 else None for n in range(1_000)],
        "struct": [{"a": n, "b": {"c": str(n)}} if n % 4 else None for n in range(1_000)],
    }
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


def decoded(store: Store, data: bytes, leaves: list[int] | None) -> pa.Table | None:
    return decode_small(store, "f.parquet", data, lambda _metadata, _schema: leaves, KnownSchema())


@pytest.mark.parametrize("leaves", [[0], [1, 2], [3, 4], [0, 1, 2, 3, 4], []])
@pytest.mark.parametrize("row_group_size", [300, None])
def test_the_same_rows_as_by_the_reader_of_all_files(
    store: Store, leaves: list[int], row_group_size: int | None
) -> None:
    write_parquet(store, "f.parquet", NESTED, row_group_size=row_group_size)
    data = small_bytes(store, "f.parquet")
    assert data == store.read("f.parquet")
    found = decoded(store, data, leaves)
    expected = open_parquet(store, "f.parquet").read_leaves(leaves)
    assert found is not None
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)
    assert found.num_rows == 1_000


def test_what_is_not_chosen_is_not_read(store: Store) -> None:
    write_parquet(store, "f.parquet", NESTED)
    data = bytearray(store.read("f.parquet"))
    data[4:2000] = b"\x55" * 1996
    assert decoded(store, bytes(data), None) is None
    with pytest.raises(DataFileUnreadableError, match=r"f\.parquet"):
        decoded(store, bytes(data), [0, 1])


def test_larger_files_and_those_of_other_stores_are_not_fetched(store: Store) -> None:
    values = random.Random(7).sample(range(1 << 40), 100_000)
    write_parquet(store, "f.parquet", pa.table({"x": values}))
    assert small_bytes(store, "f.parquet") is None
    write_parquet(store, "long.parquet", pa.table({"x": [1] * 20_000}))
    many = small_bytes(store, "long.parquet")
    assert many is not None
    assert decoded(store, many, [0]) is None
    elsewhere = DictStore()
    elsewhere.put("f.parquet", b"")
    assert small_bytes(elsewhere, "f.parquet") is None
    with pytest.raises(DataFileMissingError, match="no such file"):
        small_bytes(store, "gone.parquet")


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"no parquet at all, just text", b"PAR1" + b"\xff" * 40 + b"PAR1"]
)
def test_what_is_no_parquet_file(store: Store, data: bytes) -> None:
    with pytest.raises(DataFileUnreadableError, match=r"f\.parquet"):
        decoded(store, data, [0])


def test_the_rows_are_those_of_the_row_groups_whatever_else_the_footer_says(store: Store) -> None:
    write_parquet(store, "f.parquet", pa.table({"x": list(range(1_000))}))
    data = store.read("f.parquet")
    # The number of rows, a zigzag varint behind the field's header, stands before the row groups.
    thousand = b"\x16\xd0\x0f\x19"
    assert data.count(thousand) == 1
    other = data.replace(thousand, b"\x16\xce\x0f\x19")
    store.put("f.parquet", other)
    expected = open_parquet(store, "f.parquet").read_leaves([0])
    for leaves in ([0], []):
        found = decoded(store, other, leaves)
        assert found is not None
        assert found.num_rows == expected.num_rows == 1_000


@pytest.mark.parametrize("number", [0, 1])
def test_columns_of_other_lengths_are_an_error(store: Store, number: int) -> None:
    table = pa.table({"x": list(range(1_000)), "y": list(range(1_000))})
    write_parquet(store, "f.parquet", table, use_dictionary=False)
    # The number of values of each column's page, in its header.
    parts = store.read("f.parquet").split(b"\x15\xd0\x0f\x15")
    assert len(parts) == 3
    marks = [b"\x15\xd0\x0f\x15"] * 2
    marks[number] = b"\x15\xce\x0f\x15"
    data = parts[0] + marks[0] + parts[1] + marks[1] + parts[2]
    for leaves in ([0, 1], [number]):
        with pytest.raises(DataFileUnreadableError, match=r"f\.parquet.*999"):
            decoded(store, data, leaves)


def _schemas(store: Store, *tables: pa.Table) -> list[pa.Schema]:
    """The schemas that are said of files of these tables, one after the other."""
    known, found = KnownSchema(), list[pa.Schema]()

    def choose(_metadata: object, schema: pa.Schema) -> None:
        found.append(schema)

    for number, table in enumerate(tables):
        path = f"{len(tables)} {number}.parquet"
        # As Spark's files, without Arrow's own text of the schema.
        write_parquet(store, path, table, store_schema=False)
        decode_small(store, path, store.read(path), choose, known)
        expected = open_parquet(store, path).arrow_schema
        assert found[-1].equals(expected, check_metadata=True)
    return found


def _field(kind: pa.DataType, number: int, **options: bool) -> pa.Field[Any]:
    return pa.field("a", kind, metadata={"PARQUET:field_id": str(number)}, **options)


def test_the_schema_of_the_file_before_is_taken_for_equal_files_alone(store: Store) -> None:
    one = pa.table({"a": [1], "b": ["x"]})
    first, second = _schemas(store, one, one)
    assert first is second
    inner: pa.DataType = pa.struct([_field(pa.int64(), 1)])
    files: list[tuple[pa.Field[Any], Any, Any]] = [
        (_field(pa.int64(), 1), 1, None),
        (_field(pa.int64(), 2), 1, None),
        (_field(pa.int64(), 2, nullable=False), 1, None),
        (_field(pa.int64(), 2, nullable=False), 1, {"k": "v"}),
        (_field(pa.int64(), 1), 1, None),
        (_field(inner, 2, nullable=False), {"a": 1}, None),
        (_field(inner, 3, nullable=False), {"a": 1}, None),
        (_field(pa.timestamp("us"), 1), 1, None),
        (_field(pa.timestamp("us", "UTC"), 1), 1, None),
    ]
    tables = [
        pa.Table.from_arrays([pa.array([value], field.type)], schema=pa.schema([field], texts))
        for field, value, texts in files
    ]
    _schemas(store, *tables)
