"""Rows that stand for gigabytes in a small file are read in parts of bounded memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog import DeltaTable, col, write_deltalake
from deltalog.data.scan import pieces
from tests.support.logs import ndjson

pytestmark = pytest.mark.slow("each case is a process whose memory is measured")

MEGABYTE = 1024 * 1024
ROWS = 4_000
LONG = "x" * (2 * MEGABYTE)  # 8 GB in all rows
MOST_BYTES = 600 * MEGABYTE
POOLS: list[pa.MemoryPool] = []  # they must outlive what was allocated in them


@contextmanager
def bounded() -> Iterator[None]:
    """Fail if Arrow holds more than `MOST_BYTES` at once."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
    assert (pool.max_memory() or 0) < MOST_BYTES


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def table_of(
    path: Path,
    rows: pa.Table,
    fields: list[dict[str, Any]],
    partition: dict[str, str] | None = None,
) -> str:
    """A table of one file and row group, whose texts are entries of dictionaries."""
    path.mkdir()
    options: Any = {"compression": "zstd", "write_statistics": False, "store_schema": False}
    pq.write_table(rows, path / "a.parquet", row_group_size=len(rows), **options)
    values = partition or {}
    schema = json.dumps({"type": "struct", "fields": fields})
    (path / "_delta_log").mkdir()
    log = ndjson(
        [
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {
                "metaData": {
                    "id": "t",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": schema,
                    "partitionColumns": list(values),
                    "configuration": {},
                }
            },
            {
                "add": {
                    "path": "a.parquet",
                    "partitionValues": values,
                    "size": (path / "a.parquet").stat().st_size,
                    "modificationTime": 1,
                    "dataChange": True,
                }
            },
        ]
    )
    (path / "_delta_log" / "00000000000000000000.json").write_bytes(log)
    return str(path)


def repeated(number: int = ROWS) -> pa.Array[Any]:
    """One long text, named by each row."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * number, pa.int32()), pa.array([LONG]))


ID = field("id", "long")


def of_text(path: Path) -> str:
    rows = pa.table({"id": range(ROWS), "s": repeated()})
    return table_of(path, rows, [ID, field("s", "string")])


def of_one_long_among_many(path: Path) -> str:
    """The dictionary has more entries than half of the rows, so that no heuristic takes it."""
    entries = [*(str(number) for number in range(ROWS - 100)), LONG]
    last = pa.array([len(entries) - 1] * ROWS, pa.int32())
    rows = pa.table(
        {"id": range(ROWS), "s": pa.DictionaryArray.from_arrays(last, pa.array(entries))}
    )
    return table_of(path, rows, [ID, field("s", "string")])


def of_bytes(path: Path) -> str:
    index = pa.array([0] * ROWS, pa.int32())
    rows = pa.table(
        {"id": range(ROWS), "s": pa.DictionaryArray.from_arrays(index, pa.array([LONG.encode()]))}
    )
    return table_of(path, rows, [ID, field("s", "binary")])


def of_struct(path: Path) -> str:
    inner = pa.StructArray.from_arrays([repeated()], names=["t"])
    kind = {"type": "struct", "fields": [field("t", "string")]}
    return table_of(path, pa.table({"id": range(ROWS), "s": inner}), [ID, field("s", kind)])


def of_list(path: Path) -> str:
    inner = pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), repeated())
    kind = {"type": "array", "elementType": "string", "containsNull": True}
    return table_of(path, pa.table({"id": range(ROWS), "s": inner}), [ID, field("s", kind)])


def of_partition(path: Path) -> str:
    rows = pa.table({"id": range(ROWS)})
    return table_of(path, rows, [ID, field("s", "string")], {"s": LONG})


MAKERS = [of_text, of_one_long_among_many, of_bytes, of_struct, of_list, of_partition]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("remote", [False, True])
def test_the_first_rows_take_little_memory(make: Any, remote: bool, tmp_path: Path) -> None:
    where = make(tmp_path / "t")
    table = DeltaTable(where if not remote else _in_memory(where, make.__name__))
    with bounded():
        assert table.head(1)["id"].to_pylist() == [0]
        batch = next(table.scan().to_batches())
        assert 0 < batch.num_rows < ROWS
        assert next(iter(table.to_pyarrow_dataset().to_batches())).num_rows
        assert table.count() == ROWS
        assert table.scan(["id"]).to_table()["id"].to_pylist() == list(range(ROWS))


def _in_memory(where: str, name: str) -> str:
    """The same table in a store that is reached by requests, as far as deltalog knows."""
    import fsspec

    location = f"memory://row-parts-{name}"
    fsspec.filesystem("memory").put(where + "/", location, recursive=True)
    return location


@pytest.mark.parametrize("make", [of_text, of_one_long_among_many, of_partition])
def test_conditions_on_long_values_take_little_memory(make: Any, tmp_path: Path) -> None:
    table = DeltaTable(make(tmp_path / "t"))
    with bounded():
        found = table.scan(["id"], "id >= 100 AND id < 150 AND s LIKE 'x%'").to_table()
        assert found["id"].to_pylist() == list(range(100, 150))
        assert table.scan(["id"], col("id") == 7).to_table()["id"].to_pylist() == [7]
        assert deltalog.sql("SELECT id FROM t WHERE id = 3", t=table).to_pylist() == [{"id": 3}]


def test_many_numbers_in_one_row_group_take_little_memory(tmp_path: Path) -> None:
    rows = 30_000_000
    zeros = pa.table({"id": pa.repeat(pa.scalar(0, pa.int64()), rows)})
    column: Any = zeros["id"]
    wide = pa.table({f"c{number}": column for number in range(8)})
    del zeros, column
    where = table_of(tmp_path / "t", wide, [field(name, "long") for name in wide.column_names])
    del wide
    with bounded():
        assert DeltaTable(where).head(1).num_rows == 1


def test_compaction_of_small_files_takes_little_memory(tmp_path: Path) -> None:
    few = pa.table({"id": range(1000), "s": repeated(1000)})  # 2 GB
    where = table_of(tmp_path / "t", few, [ID, field("s", "string")])
    log = tmp_path / "t" / "_delta_log" / "00000000000000000000.json"
    again = log.read_text("utf-8").splitlines()[-1].replace("a.parquet", "b.parquet")
    log.write_text(log.read_text("utf-8") + again + "\n", "utf-8")
    (tmp_path / "t" / "b.parquet").write_bytes((tmp_path / "t" / "a.parquet").read_bytes())
    with bounded():
        DeltaTable(where).optimize.compact()
        assert DeltaTable(where).scan(["id"], "id = 999").to_table().num_rows == 2


LONGS = [field(f"c{number}", "long") for number in range(3_000)]
LISTS = [
    field(f"c{number}", {"type": "array", "elementType": "string", "containsNull": True})
    for number in range(3_000)
]


@pytest.mark.parametrize("missing", [LONGS, LISTS], ids=["long", "array"])
def test_columns_that_a_file_does_not_have_take_little_memory(
    missing: list[dict[str, Any]], tmp_path: Path
) -> None:
    zeros = pa.table({"id": pa.repeat(pa.scalar(0, pa.int64()), 1_000_000)})
    where = table_of(tmp_path / "t", zeros, [ID, *missing])
    with bounded():
        assert DeltaTable(where).head(1).num_rows == 1
        assert next(DeltaTable(where).scan().to_batches()).num_columns == 3_001


def test_few_rows_of_long_lists_take_little_memory(tmp_path: Path) -> None:
    """Twenty rows of 100 MB each, of one text of 1 kB."""
    text, length = "y" * 1_000, 100_000
    index = pa.repeat(pa.scalar(0, pa.int32()), 20 * length)
    texts = pa.DictionaryArray.from_arrays(index, pa.array([text]))
    offsets = pa.array(range(0, 20 * length + 1, length), pa.int32())
    rows = pa.table({"id": range(20), "s": pa.ListArray.from_arrays(offsets, texts)})
    kind = {"type": "array", "elementType": "string", "containsNull": True}
    where = table_of(tmp_path / "t", rows, [ID, field("s", kind)])
    with bounded():
        assert DeltaTable(where).head(1)["id"].to_pylist() == [0]


def test_the_first_rows_of_an_order_take_little_memory(tmp_path: Path) -> None:
    rows = pa.table({"id": range(20_000)})
    where = table_of(tmp_path / "t", rows, [ID, field("s", "string")], {"s": "z" * 200_000})
    with bounded():
        found = DeltaTable(where).scan(order_by=["id desc"], limit=1).to_table()
        assert found["id"].to_pylist() == [19_999]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take any rows for many bytes."""
    monkeypatch.setattr(pieces, "MOST_DECODED_BYTES", 1)
    monkeypatch.setattr(pieces, "PART_BYTES", 1_000)


COLUMNS = ["id", "p", "s", "n", "_metadata.row_id", "_metadata.row_index"]


@pytest.mark.parametrize("location", ["local", "memory"])
@pytest.mark.usefixtures("small_parts")
def test_rows_in_parts_are_the_same_rows(location: str, tmp_path: Path) -> None:
    where = str(tmp_path / "t") if location == "local" else f"memory://parts-{tmp_path.name}"
    rows = pa.table(
        {
            "id": range(5_000),
            "p": [f"p{number % 3}" for number in range(5_000)],
            "s": [None if number % 7 == 0 else f"text {number % 50}" for number in range(5_000)],
            "n": [{"l": [str(number), None]} for number in range(5_000)],
        }
    )
    write_deltalake(
        where,
        rows,
        partition_by=["p"],
        configuration={
            "delta.enableDeletionVectors": "true",
            "delta.enableRowTracking": "true",
            "delta.enableChangeDataFeed": "true",
        },
        writer_properties=deltalog.WriterProperties(max_row_group_size=400),
    )
    DeltaTable(where).delete("id % 10 = 3")
    DeltaTable(where).update(updates={"s": "'new'"}, predicate="id > 4990")
    expected = [
        {**row, "s": "new" if row["id"] > 4990 else row["s"]}
        for row in rows.to_pylist()
        if row["id"] % 10 != 3
    ]
    table = DeltaTable(where)
    every = table.to_pyarrow_table().sort_by("id")
    assert every.to_pylist() == expected
    some = table.scan(["id"], "s = 'text 9' AND id < 1000").to_table().sort_by("id")
    assert some["id"].to_pylist() == [
        row["id"] for row in expected if row["s"] == "text 9" and row["id"] < 1000
    ]
    told = table.scan(COLUMNS).to_table().sort_by("id")
    assert len(set(told["_metadata.row_id"].to_pylist())) == len(expected)
    assert told["n"].to_pylist() == [row["n"] for row in expected]
    deleted = table.load_cdf(starting_version=1, ending_version=1).read_all()
    gone: list[Any] = deleted["id"].to_pylist()
    assert sorted(gone) == list(range(3, 5_000, 10))
