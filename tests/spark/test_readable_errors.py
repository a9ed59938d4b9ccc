"""Errors of Spark about conditions and values, without the columns and plans of deltalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # its usual name

import deltalog.spark
from deltalog import write_deltalake
from deltalog.errors import DataFileMissingError, DataFileUnreadableError
from deltalog.spark import DeltaTable
from deltalog.spark.engine.readable import readable
from deltalog.spark.session.words import in_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

PLAN = "'Filter ('nme = 1)\n+- Project [id#1L, __deltalog_path#2]\n   +- Relation [id#1L] parquet\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "[X] name `nme`. Did you mean [`id`, `__deltalog_path`, `t`.`__deltalog_row`]. "
                f"SQLSTATE: 42703; line 1 pos 0;\n{PLAN}"
            ),
            "cannot do: [X] name `nme`. Did you mean [`id`]. SQLSTATE: 42703",
        ),
        (
            (
                "[CAST] The value 'a'. SQLSTATE: 22018\n== DataFrame ==\n\"cast\" was "
                "called from\n/x/deltalog/spark/engine/row_tasks.py:429\n"
            ),
            "cannot do: [CAST] The value 'a'. SQLSTATE: 22018",
        ),
        ("cannot merge into t", "cannot merge into t"),
    ],
)
def test_a_message_has_only_what_the_user_knows(text: str, expected: str) -> None:
    assert readable(text, "do") == expected


def test_suggestions_have_no_columns_of_deltalog(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1], "name": ["a"]})
    table: Any = DeltaTable.forPath(spark, place)
    source: Any = spark.range(1).select(F.col("id"), F.lit("x").alias("name"))
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    changes: list[tuple[str, Any]] = [
        ("DELETE", lambda: table.delete("nme = 1")),
        ("UPDATE", lambda: table.update("id = 1", {"name": F.col("nme")})),
        ("MERGE", lambda: merge.whenMatchedUpdate(set={"name": F.col("s.nme")}).execute()),
    ]
    for operation, change in changes:
        with pytest.raises(PySparkException) as caught:
            change()
        text = str(caught.value)
        assert f"cannot run {operation} on {place}: " in text
        assert "`name`" in text
        assert "__deltalog" not in text.partition("JVM stacktrace")[0]


def _damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


@pytest.mark.parametrize("damage", [_damage, Path.unlink])
def test_a_file_that_cannot_be_read_is_named_with_the_remedy(
    spark: SparkSession, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    place, copied = str(tmp_path / "t"), str(tmp_path / "copied")
    for first in (0, 5):
        write_deltalake(place, {"id": [first, first + 1]}, mode="append")
    table: Any = DeltaTable.forPath(spark, place)
    rows: Any = deltalog.spark.read(spark, place)
    path = next((tmp_path / "t").glob("*.parquet"))
    damage(path)
    actions: dict[str, Callable[[], object]] = {
        "OPTIMIZE": lambda: table.optimize().executeCompaction(),
        "DELETE": lambda: table.delete("id + 1 < 100 AND id % 5 = 0"),
        "MERGE": lambda: table.merge(rows, "target.id = 3").whenMatchedDelete().execute(),
        "write": lambda: deltalog.spark.write(rows, copied),
    }
    kind = DataFileUnreadableError if path.exists() else DataFileMissingError
    for what, action in actions.items():
        with pytest.raises(kind) as caught:
            action()
        text = str(caught.value)
        assert path.name in text, (what, text)
        assert in_spark(kind.ADVICE) in text, (what, text)


def test_an_insert_names_the_table(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    with pytest.raises(PySparkException, match=f"^cannot write rows to {place}: ") as error:
        deltalog.spark.sql(spark, f"INSERT INTO delta.`{place}` VALUES ('x')")  # noqa: S608  # a path of pytest
    assert "row_tasks" not in str(error.value)
