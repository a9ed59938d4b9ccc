"""Files that callers have written become a part of the table, as far as they can be checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import (
    DataFileMissingError,
    DeltaError,
    InvalidInputError,
    UnsafePathError,
)
from deltalog.transaction import AddAction, RemoveAction

SCHEMA = Schema([Field("id", "long")])


def parquet(table: Path, name: str, ids: list[int], **more: Any) -> AddAction:
    """A file below a table, with its action."""
    file = table / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids}), file)
    values: dict[str, Any] = {
        "size": file.stat().st_size,
        "partition_values": {},
        "modification_time": 0,
        "data_change": True,
        "stats": f'{{"numRecords":{len(ids)}}}',
        **more,
    }
    return AddAction(path=name, **values)


def made(place: Path, **options: Any) -> DeltaTable:
    write_deltalake(place, pa.table({"id": [1, 2]}), **options)
    write_deltalake(place, pa.table({"id": [3]}), mode="append")
    return DeltaTable(place)


def ids(place: Path) -> list[Any]:
    found: list[Any] = DeltaTable(place).to_pyarrow_table().column("id").to_pylist()
    return sorted(found)


def test_files_are_added_and_counted(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.create_write_transaction([parquet(tmp_path, "a b.parquet", [4, 5])], "append", SCHEMA)
    assert (ids(tmp_path), table.count(), table.version()) == ([1, 2, 3, 4, 5], 5, 2)
    bare = parquet(tmp_path, "c.parquet", [6], stats="{}")
    table.create_write_transaction([bare], mode="append", schema=SCHEMA.to_arrow())
    assert DeltaTable(tmp_path).count() == 6


def test_files_are_put_together_by_the_caller(tmp_path: Path) -> None:
    table = made(tmp_path, configuration={"delta.appendOnly": "true"})
    paths: list[Any] = table.get_add_actions()["path"].to_pylist()
    add = parquet(tmp_path, "all.parquet", [1, 2, 3], data_change=False)
    removes = [RemoveAction(path, data_change=False, deletion_timestamp=0) for path in paths]
    table.create_write_transaction([add, *removes], "append", SCHEMA)
    assert (ids(tmp_path), len(table.file_uris())) == ([1, 2, 3], 1)
    gone = RemoveAction("all.parquet", data_change=True, deletion_timestamp=0)
    with pytest.raises(DeltaError, match="append-only"):
        table.create_write_transaction([gone], "append", SCHEMA)


def test_all_files_or_those_of_partitions_are_replaced(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "p": ["x", "y"]}), partition_by="p")
    table = DeltaTable(tmp_path)
    new = parquet(tmp_path, "p=x/new.parquet", [7], partition_values={"p": "x"})
    schema = table.schema()
    table.create_write_transaction(
        [new], "overwrite", schema, partition_by="p", partition_filters=[("p", "=", "x")]
    )
    assert ids(tmp_path) == [2, 7]
    last = parquet(tmp_path, "p=z/last.parquet", [9], partition_values={"p": "z"})
    last.path = f"/{last.path}"
    table.create_write_transaction([last], "overwrite", schema, ["p"])
    assert ids(tmp_path) == [9]
    with pytest.raises(InvalidInputError, match=r"conditions on \['p'\]"):
        table.create_write_transaction([], "overwrite", schema, partition_filters=[("id", "=", 1)])
    with pytest.raises(InvalidInputError, match=r"partition columns \['p'\], found {}"):
        table.create_write_transaction([parquet(tmp_path, "q.parquet", [1])], "append", schema)
    with pytest.raises(InvalidInputError, match=r"with partition_by=\['id'\]"):
        table.create_write_transaction([], "append", schema, partition_by=["id"])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"path": "gone.parquet"}, DataFileMissingError, "no such file"),
        ({"path": "../x.parquet"}, UnsafePathError, r"climbs with '\.\.'"),
        ({"path": "s3://b/x.parquet"}, UnsafePathError, "s3://b/x.parquet"),
        ({"size": 7}, InvalidInputError, "expected a file of 7 bytes, found"),
        ({"stats": "[]"}, InvalidInputError, r"expected a JSON object, found '\[\]'"),
        ({"partition_values": {"p": "1"}}, InvalidInputError, "found {'p': '1'}"),
    ],
)
def test_files_that_cannot_be_the_tables_are_refused(
    tmp_path: Path, change: dict[str, Any], error: type[DeltaError], message: str
) -> None:
    table = made(tmp_path)
    action = parquet(tmp_path, "x.parquet", [4])
    for name, value in change.items():
        setattr(action, name, value)
    with pytest.raises(error, match=message):
        table.create_write_transaction([action], "append", SCHEMA)
    assert DeltaTable(tmp_path).version() == 1


def test_actions_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    table = made(tmp_path)
    add = parquet(tmp_path, "x.parquet", [4])
    remove = RemoveAction("x.parquet", data_change=True, deletion_timestamp=0)
    odd: Any = {"path": "x.parquet"}
    cases: list[tuple[list[Any], str, Schema, str]] = [
        ([add, remove], "append", SCHEMA, "same file path"),
        ([remove], "overwrite", SCHEMA, "removes files by itself"),
        ([remove], "append", SCHEMA, "has 0 of 1 file"),
        ([odd], "append", SCHEMA, "expected an AddAction or a RemoveAction"),
        ([add], "upsert", SCHEMA, "found 'upsert'"),
        ([add], "append", Schema([Field("id", "string")]), "expected the table's schema"),
    ]
    for actions, mode, schema, message in cases:
        with pytest.raises(InvalidInputError, match=message):
            table.create_write_transaction(actions, mode, schema)
    assert DeltaTable(tmp_path).version() == 1


def test_rows_that_nobody_has_checked_are_refused(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.alter.add_constraint({"low": "id < 10"})
    with pytest.raises(InvalidInputError, match="the table has CHECK low; write the files"):
        table.create_write_transaction([parquet(tmp_path, "x.parquet", [99])], "append", SCHEMA)
