"""Faults of deltalake 1.6.6 at changing rows, and that ours are right.

Where the half that shows the peer's fault fails, the peer was mended, and that half may go.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "s": pa.array([{"a": 1}, {"a": 2}], pa.struct([("a", pa.int64())])),
        "t": ["one", "two"],
    }
)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[deltalog.DeltaTable, deltalake.DeltaTable]:
    """The same rows in a table of ours and one of the peer's."""
    deltalog.write_deltalake(tmp_path / "ours", ROWS)
    deltalake.write_deltalake(tmp_path / "theirs", ROWS)
    return deltalog.DeltaTable(tmp_path / "ours"), deltalake.DeltaTable(tmp_path / "theirs")


def values(table: Any, column: str) -> list[Any]:
    found: pa.Table = table.to_pyarrow_table()
    return found.sort_by("id").column(column).to_pylist()


def test_b4_fields_of_structs_are_updated(
    pair: tuple[deltalog.DeltaTable, deltalake.DeltaTable],
) -> None:
    """The peer reports rows and changes none."""
    ours, theirs = pair
    assert ours.update({"s.a": "9"}, predicate="id = 1")["num_updated_rows"] == 1
    assert values(ours, "s") == [{"a": 9}, {"a": 2}]
    assert theirs.update({"s.a": "9"}, predicate="id = 1")["num_updated_rows"] == 1
    assert values(theirs, "s") == [{"a": 1}, {"a": 2}]


def test_b4_columns_that_are_not_there_are_errors(
    pair: tuple[deltalog.DeltaTable, deltalake.DeltaTable],
) -> None:
    ours, theirs = pair
    with pytest.raises(InvalidInputError, match="there is no column 'tt'"):
        ours.update({"tt": "'x'"})
    assert ours.version() == 0
    assert theirs.update({"tt": "'x'"})["num_updated_rows"] == 2
    assert values(theirs, "t") == ["one", "two"]


@pytest.mark.parametrize("text", ["it's", "a\\b", '"', "s.a"])
def test_b11_values_of_python_are_no_sql(
    pair: tuple[deltalog.DeltaTable, deltalake.DeltaTable], text: str
) -> None:
    ours, theirs = pair
    ours.update(new_values={"t": text}, predicate="id = 1")
    assert values(ours, "t") == [text, "two"]
    if text == "it's":
        with pytest.raises(Exception, match="Unterminated string literal"):
            theirs.update(new_values={"t": text}, predicate="id = 1")


def test_b12_a_merge_reads_the_partitions_of_its_source(tmp_path: Path) -> None:
    """The peer scans the whole table, unless it is told not to stream."""
    rows = pa.table({"id": list(range(4)), "p": list("abcd")})
    source = pa.table({"id": [1], "p": ["b"]})
    for path, write in (
        (tmp_path / "ours", deltalog.write_deltalake),
        (tmp_path / "theirs", deltalake.write_deltalake),
    ):
        write(path, rows, partition_by=["p"])
    merged = [
        table.merge(source, "t.p = s.p and t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_delete()
        .execute()
        for table in (
            deltalog.DeltaTable(tmp_path / "ours"),
            deltalake.DeltaTable(tmp_path / "theirs"),
        )
    ]
    assert [found["num_target_rows_deleted"] for found in merged] == [1, 1]
    assert [found["num_target_files_scanned"] for found in merged] == [1, 4]


def test_b13_an_update_computes_generated_columns(tmp_path: Path) -> None:
    """The peer keeps the old value, and then refuses it."""
    schema = [
        deltalog.Field("id", "long"),
        deltalog.Field("twice", "long", metadata={"delta.generationExpression": "id * 2"}),
    ]
    for name in ("ours", "theirs"):
        table = deltalog.DeltaTable.create(tmp_path / name, schema)
        deltalog.write_deltalake(table, [{"id": 1}, {"id": 5}], mode="append")
    ours, theirs = deltalog.DeltaTable(tmp_path / "ours"), deltalake.DeltaTable(tmp_path / "theirs")
    ours.update({"id": "id + 1"}, predicate="id = 1")
    assert values(ours, "twice") == [4, 10]
    with pytest.raises(Exception, match="1 rows failed validation check"):
        theirs.update({"id": "id + 1"}, predicate="id = 1")
