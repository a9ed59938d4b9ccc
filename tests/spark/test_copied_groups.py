"""Spark's own Parquet reader reads files of which some row groups were copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable
from tests.support.copied_groups import copying, grouped_table, num_copied, numbered
from tests.support.patched_groups import (
    counting_patches,
    many_kinds,
    paged_table,
    patching,
    texts_of_floats,
    without,
)


@pytest.mark.parametrize("is_vectorized", ["true", "false"])
def test_rows_and_filters(spark: SparkSession, tmp_path: Path, is_vectorized: str) -> None:
    old = grouped_table(tmp_path / "table")
    (uri,) = old.file_uris()
    before = Path(uri.removeprefix("file://")).read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        copying(patch)
        old.delete("id = 12")
        DeltaTable(tmp_path / "table").update({"t": "'new'"}, predicate="id = 33")
    (uri,) = DeltaTable(tmp_path / "table").file_uris()
    assert num_copied(before, Path(uri.removeprefix("file://")).read_bytes()) == 2
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", is_vectorized)
    try:
        rows = deltalog.spark.read(spark, tmp_path / "table")
        expected = [row for row in numbered().to_pylist() if row["id"] != 12]
        expected[32]["t"] = "new"
        found = [row.asDict(recursive=True) for row in rows.orderBy("id").collect()]
        assert found == expected
        assert [row.id for row in rows.where("id >= 9 and id <= 21").orderBy("id").collect()] == [
            id_ for id_ in range(9, 22) if id_ != 12
        ]
        assert rows.where("t = 'new'").count() == 1
        assert rows.where("x > 10").count() == sum((row["x"] or 0) > 10 for row in expected)
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.parametrize("is_vectorized", ["true", "false"])
@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0", "use_dictionary": ["t"]}])
def test_row_groups_whose_pages_were_replaced(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_vectorized: str,
    options: dict[str, Any],
) -> None:
    patching(monkeypatch)
    table = paged_table(tmp_path / "table", **options)
    gone = {*range(30, 40), 5, 99, 100, 163}
    with counting_patches(monkeypatch) as patched:
        table.delete(f"id in ({', '.join(map(str, gone))})")
    assert sorted(patched) == [0, 1]
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", is_vectorized)
    try:
        rows = deltalog.spark.read(spark, tmp_path / "table")
        expected = without(many_kinds(), gone)
        names = [name for name in expected.column_names if name not in {"x", "f"}]
        found = rows.orderBy("id").toArrow()
        assert found.select(names).to_pylist() == expected.select(names).to_pylist()
        for name in ("x", "f"):
            column = texts_of_floats(found.select([name]))
            assert column.to_pylist() == texts_of_floats(expected.select([name])).to_pylist()
        left = [one for one in range(28, 45) if one not in gone]
        some = rows.where("id >= 28 and id < 45").orderBy("id").collect()
        assert [row.id for row in some] == left
        assert rows.where("t = 'text 0163' or id = 35").count() == 0
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
