"""RESTORE keeps the marks of identity columns, so that no number is assigned twice."""

from __future__ import annotations

from pathlib import Path

import deltalog


def test_the_mark_of_a_renamed_identity_column_is_kept(tmp_path: Path) -> None:
    connection = deltalog.connect({})
    name = f"delta.`{tmp_path}`"
    connection.sql(
        f"CREATE TABLE {name} (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    deltalog.write_deltalake(tmp_path, {"v": ["a", "b"]}, mode="append")
    deltalog.write_deltalake(tmp_path, {"v": ["c", "d"]}, mode="append")
    table = deltalog.DeltaTable(tmp_path)
    table.alter.rename_column("id", "k")
    table.restore(1)
    deltalog.write_deltalake(tmp_path, {"v": ["e"]}, mode="append")
    rows = deltalog.DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 5, "v": "e"}]
