"""Empty strings in partition columns: partition values cannot tell them from NULL."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, Field, write_deltalake
from deltalog.errors import ConstraintViolationError, DeltaError

ROW = {"id": 1, "c": ""}


def made(path: Path, kind: str = "string", *, nullable: bool = True) -> DeltaTable:
    fields = [Field("id", "long"), Field("c", kind, nullable=nullable)]
    return DeltaTable.create(path, fields, partition_by=["c"])


@pytest.mark.parametrize(
    "call",
    [
        lambda t: write_deltalake(t, [ROW], mode="append"),
        lambda t: t.upsert([ROW], "id"),
        lambda t: t.update(new_values={"c": ""}, predicate="id = 7"),
        lambda t: deltalog.sql("INSERT INTO t VALUES (1, '')", t=t),
    ],
    ids=["append", "upsert", "update", "insert"],
)
def test_not_null_refuses_them(call: Callable[[DeltaTable], object], tmp_path: Path) -> None:
    table = made(tmp_path, nullable=False)
    write_deltalake(table, [{"id": 7, "c": "x"}], mode="append")
    with pytest.raises(ConstraintViolationError, match="NOT NULL of column 'c' is violated"):
        call(table)
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == [{"id": 7, "c": "x"}]


def test_a_constraint_sees_null(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.alter.add_constraint({"known": "c IS NOT NULL"})
    with pytest.raises(ConstraintViolationError, match="known"):
        write_deltalake(table, [ROW], mode="append")


def test_they_do_not_match_a_condition_on_the_empty_string(tmp_path: Path) -> None:
    """Each such overwrite would add the row again, because it replaces none."""
    table = made(tmp_path)
    with pytest.raises(DeltaError, match=r"1 of the new rows does not match.*'c': None"):
        write_deltalake(table, [ROW], mode="overwrite", predicate="c = ''")
    assert DeltaTable(tmp_path).count() == 0


@pytest.mark.parametrize(("kind", "empty"), [("string", ""), ("binary", b"")])
def test_they_are_stored_as_null_and_logged_once(
    kind: str, empty: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = made(tmp_path, kind)
    rows = pa.table({"id": [1, 2, 3], "c": [empty, None, empty]})
    with caplog.at_level(logging.WARNING):
        write_deltalake(table, rows.to_batches(max_chunksize=1), mode="append")
    assert [record.getMessage() for record in caplog.records] == [
        f"empty strings in the partition column 'c' of {table.table_uri} are stored as NULL"
    ]
    assert DeltaTable(tmp_path).scan(predicate="c IS NULL").count() == 3
