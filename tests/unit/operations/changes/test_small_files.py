"""Small files are read in groups, whatever their schemas."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.reader import ScanTask
from deltalog.data.scan.task import read_spec
from deltalog.errors import DataFileMissingError, DataFileUnreadableError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.alter.columns import AddColumns, DropColumns, RenameColumn
from deltalog.operations.changes.bins import SMALL_BYTES, BinReader, grouped, is_small
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.engine import LocalEngine
from deltalog.operations.operation import Operation
from deltalog.operations.optimize import Compact, Optimized, Purge, ZOrder
from deltalog.schema import Field, PrimitiveType
from deltalog.storage import open_store
from deltalog.storage.store import Store
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit
from tests.support.logs import DictStore
from tests.support.optimizing import OptimizedTable, numbered

COLUMNS = {"id": "long", "p": "string"}


MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture(params=["local", "reached by requests"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(str(tmp_path)) if request.param == "local" else DictStore()


@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["by name", "mapped"])
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_files_of_many_schemas(
    store: Store, properties: dict[str, str], partition_by: tuple[str, ...]
) -> None:
    table = OptimizedTable(
        COLUMNS,
        numbered(0, 3, p=None),
        numbered(3, 5, p=None),
        properties=properties,
        partition_by=partition_by,
        store=store,
    )
    for number in range(3):
        snapshot = load_snapshot(utc_context(table.store))
        pending = PendingTransaction(snapshot.context, snapshot, operation="ADD")
        AddColumns([Field(f"new{number}", PrimitiveType("long"))]).stage(pending, LocalEngine())
        if properties:
            name = "id" if number == 0 else f"id{number - 1}"
            RenameColumn(name, f"id{number}").stage(pending, LocalEngine())
        commit(pending)
        rows: list[dict[str, Any]] = [{f"new{number}": 7}, {f"new{number}": None, "p": "x"}]
        table.append(rows)
        table.append(rows)
    before = table.rows()
    table.optimize(Compact)
    assert table.files().num_rows == 1 + len(partition_by)
    assert table.rows() == before


def task(size: int | None) -> ScanTask:
    snapshot = OptimizedTable(COLUMNS).snapshot
    spec = read_spec(snapshot, columns=None, predicate=None)
    return ScanTask(store=snapshot.store, spec=spec, path="f", partition_values={}, size_bytes=size)


def test_large_files_are_left_to_the_scan() -> None:
    sizes = [1, 2, SMALL_BYTES + 1, 3, None, 4]
    groups = list(grouped(task(size) for size in sizes))
    assert [[one.size_bytes for one in group] for group in groups] == [
        [1, 2],
        [SMALL_BYTES + 1],
        [3],
        [None],
        [4],
    ]
    assert [is_small(group) for group in groups] == [True, False, True, True, True]
    assert [len(group) for group in grouped(task(1) for _ in range(300))] == [32] * 9 + [12]


@pytest.mark.parametrize("partition_by", [(), ("p",)])
@pytest.mark.parametrize("verb", [Compact, ZOrder, Purge])
def test_rows_of_files_that_have_no_column_of_the_table_stay(
    store: Store, partition_by: tuple[str, ...], verb: type[Operation[Optimized]]
) -> None:
    columns = {"a": "int", **({"p": "string"} if partition_by else {})}
    rows = [{"a": 1, **({"p": "x"} if partition_by else {})}]
    table = OptimizedTable(
        columns, rows, rows, rows, properties=MAPPED, partition_by=partition_by, store=store
    )
    for change in (AddColumns([Field("b", PrimitiveType("integer"))]), DropColumns(["a"])):
        table.do(change)
    before = table.rows()
    assert len(before) == 3
    table.optimize(verb, *((["b"],) if verb is ZOrder else ()))
    assert table.rows() == before


def test_files_with_deletion_vectors_are_read_by_the_scan(store: Store) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    table = OptimizedTable(
        COLUMNS,
        numbered(0, 9),
        numbered(9, 20),
        numbered(20, 30),
        properties=properties,
        store=store,
    )
    table.delete("id IN (3, 4, 12)")
    before = table.rows()
    table.optimize(Compact)
    assert table.files().num_rows == 1
    assert table.rows() == before
    assert len(before) == 27


def test_what_the_log_says_of_a_length_decides_nothing(tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(300_000))})  # not small, in bytes and in rows
    long = pa.table({"id": [1] * 20_000})  # small in bytes alone
    for some in (rows, long, rows.slice(0, 5)):
        write_deltalake(tmp_path, some, mode="append")
    for commit_file in (tmp_path / "_delta_log").glob("*.json"):
        commit_file.write_text(re.sub(r'"size":\d+', '"size":1', commit_file.read_text()))
    for sidecar in (tmp_path / "_delta_log").glob("*.crc"):
        sidecar.unlink()
    table = DeltaTable(tmp_path)
    done = table.optimize.compact()
    assert (done["numFilesRemoved"], done["numFilesAdded"]) == (3, 1)
    assert table.count() == 320_005
    found: list[Any] = table.to_pyarrow_table()["id"].to_pylist()
    assert sum(found) == sum(range(300_000)) + 20_000 + 10


@pytest.mark.parametrize("damage", ["cut", "bytes", "gone"])
def test_a_damaged_file_is_named_and_nothing_is_removed(tmp_path: Path, damage: str) -> None:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number] * 1_000}), mode="append")
    table = DeltaTable(tmp_path)
    path = sorted(tmp_path.glob("*.parquet"))[1]
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-20] if damage == "cut" else b"\x00" * len(data))
    with pytest.raises((DataFileMissingError, DataFileUnreadableError)) as raised:
        table.optimize.compact()
    assert path.name in str(raised.value)
    assert (table.version(), len(list(tmp_path.glob("*.parquet")))) == (2, 3 - (damage == "gone"))


NUM_FILES, ROWS_OF_A_FILE = 130, 600


@pytest.fixture
def many(tmp_path: Path) -> DeltaTable:
    """A local table of five groups of small files, whose rows are numbered as they were written."""
    for number in range(NUM_FILES):
        ids = range(number * ROWS_OF_A_FILE, (number + 1) * ROWS_OF_A_FILE)
        write_deltalake(tmp_path, pa.table({"id": ids}), mode="append")
    return DeltaTable(tmp_path)


def test_groups_that_threads_decode_keep_the_order_of_files(many: DeltaTable) -> None:
    before = many.to_pyarrow_table()["id"].to_pylist()
    assert many.optimize.compact()["numFilesAdded"] == 1
    assert many.to_pyarrow_table()["id"].to_pylist() == before


def test_few_groups_are_decoded_before_their_rows_are_taken(many: DeltaTable) -> None:
    snapshot = load_snapshot(utc_context(open_store(str(many.table_uri))))
    pending = PendingTransaction(snapshot.context, snapshot, operation="OPTIMIZE")
    begun: list[None] = []
    reader = BinReader(pending, FileOptions(), lambda: begun.append(None), num_tasks=1)
    batches = iter(reader.read(snapshot.files()))
    first = next(batches)
    assert first.num_rows == 32 * ROWS_OF_A_FILE
    assert len(begun) <= 2 * 32
    assert first.num_rows + sum(batch.num_rows for batch in batches) == NUM_FILES * ROWS_OF_A_FILE
    assert len(begun) == NUM_FILES


def test_an_error_of_a_group_comes_after_the_rows_before_it(many: DeltaTable) -> None:
    snapshot = load_snapshot(utc_context(open_store(str(many.table_uri))))
    path = snapshot.files().column("path")[40].as_py()
    damaged = Path(str(many.table_uri).removeprefix("file://")) / path
    damaged.write_bytes(damaged.read_bytes()[:-20])
    pending = PendingTransaction(snapshot.context, snapshot, operation="OPTIMIZE")
    reader = BinReader(pending, FileOptions(), lambda: None, num_tasks=1)
    batches = iter(reader.read(snapshot.files()))
    assert next(batches).num_rows == 32 * ROWS_OF_A_FILE
    with pytest.raises(DataFileUnreadableError, match=re.escape(path)):
        next(batches)


def test_a_local_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    table = DeltaTable(tmp_path)
    files = sorted(path.name for path in tmp_path.glob("*.parquet"))
    opened: list[str] = []
    real = os.open

    def counted(path: str, *arguments: int, **options: Any) -> int:
        opened.append(Path(path).name)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", counted)
    table.optimize.compact()
    assert sorted(name for name in opened if name in files) == files
