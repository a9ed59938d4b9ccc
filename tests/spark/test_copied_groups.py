"""Spark's own Parquet reader reads files of which some row groups were copied."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable
from tests.support.copied_groups import copying, grouped_table, num_copied, numbered


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
