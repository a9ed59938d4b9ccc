"""What follows a write of itself where the table asks for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake

FIFTY = 50  # from so many small files on it is worth a commit


def test_small_files_are_put_together_after_a_commit(tmp_path: Path) -> None:
    properties = {"delta.autoOptimize.autoCompact": "true"}
    write_deltalake(tmp_path, [{"id": 0}], configuration=properties)
    table = DeltaTable(tmp_path)
    for number in range(1, FIFTY):
        write_deltalake(table, [{"id": number}], mode="append")
    assert [entry["operation"] for entry in table.history(2)] == ["OPTIMIZE", "WRITE"]
    assert len(table.file_uris()) == 1
    assert table.count() == FIFTY


def test_nothing_follows_where_the_table_does_not_ask(tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"id": 0}])
    table = DeltaTable(tmp_path)
    for number in range(1, FIFTY):
        write_deltalake(table, [{"id": number}], mode="append")
    assert len(table.file_uris()) == FIFTY


def test_rows_of_a_partition_are_gathered_before_they_are_written(tmp_path: Path) -> None:
    batches = [pa.record_batch({"p": list(range(200)), "x": [number] * 200}) for number in range(3)]
    write_deltalake(
        tmp_path,
        iter(batches),
        partition_by="p",
        configuration={"delta.autoOptimize.optimizeWrite": "true"},
    )
    assert len(DeltaTable(tmp_path).file_uris()) == 200
