"""The builder of tables: wrong arguments, and the errors that PySpark's users catch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

import deltalog.spark
from deltalog.errors import InvalidInputError, TableExistsError, TableNotFoundError
from deltalog.spark import DeltaTable, IdentityGenerator

Call = Callable[[Any], object]
WRONG: dict[str, Call] = {
    "tableName": lambda b: b.tableName(1),
    "location": lambda b: b.location(None),
    "location of bytes": lambda b: b.location(b"x"),
    "comment": lambda b: b.comment(1),
    "no comment": lambda b: b.comment(None),
    "column's name": lambda b: b.addColumn(1, "INT"),
    "type": lambda b: b.addColumn("x", 1),
    "no type": lambda b: b.addColumn("x", None),
    "class of a type": lambda b: b.addColumn("x", spark_types.LongType),
    "nullable": lambda b: b.addColumn("x", "INT", nullable="no"),
    "column's comment": lambda b: b.addColumn("x", "INT", comment=1),
    "expression": lambda b: b.addColumn("x", "INT", generatedAlwaysAs=1),
    "default": lambda b: b.addColumn("x", "LONG", generatedByDefaultAs=""),
    "default of a text": lambda b: b.addColumn("x", "LONG", generatedByDefaultAs="1"),
    "default of False": lambda b: b.addColumn("x", "LONG", generatedByDefaultAs=False),
    "start": lambda b: b.addColumn("x", "LONG", generatedAlwaysAs=IdentityGenerator("1")),  # type: ignore[arg-type]
    "step": lambda b: b.addColumn("x", "LONG", generatedAlwaysAs=IdentityGenerator(1, 0.5)),  # type: ignore[arg-type]
    "columns": lambda b: b.addColumns("x INT"),
    "no columns": lambda b: b.addColumns(None),
    "names as columns": lambda b: b.addColumns(["x"]),
    "partition": lambda b: b.partitionedBy(1),
    "partitions": lambda b: b.partitionedBy(["x", None]),
    "cluster": lambda b: b.clusterBy(1),
    "property's key": lambda b: b.property(1, "x"),
    "property's value": lambda b: b.property("x", 1),
    "property's truth": lambda b: b.property("delta.appendOnly", True),
}
MEANINGLESS: dict[str, Call] = {
    "no expression": lambda b: b.addColumn("x", "INT", generatedAlwaysAs=" "),
    "step of 0": lambda b: b.addColumn("x", "LONG", generatedAlwaysAs=IdentityGenerator(1, 0)),
    "two columns": lambda b: b.addColumn("x", "INT, y INT"),
    "NOT NULL": lambda b: b.addColumn("x", "INT NOT NULL"),
    "COMMENT": lambda b: b.addColumn("x", "INT COMMENT 'c'"),
    "both": lambda b: b.addColumn(
        "x", "LONG", generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator()
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_another_type_is_a_type_error(spark: SparkSession, name: str) -> None:
    builder = DeltaTable.create(spark)
    with pytest.raises(TypeError, match=r"expected .*, found") as caught:
        WRONG[name](builder)
    assert isinstance(caught.value, InvalidInputError)


@pytest.mark.parametrize("name", MEANINGLESS)
def test_an_argument_without_a_meaning_is_a_value_error(spark: SparkSession, name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        MEANINGLESS[name](DeltaTable.create(spark))
    assert not isinstance(caught.value, TypeError)


def test_a_session_is_a_session() -> None:
    with pytest.raises(TypeError, match="expected a SparkSession, found 'x'"):
        DeltaTable.create("x")  # type: ignore[arg-type]


def test_columns_of_a_z_order_are_names(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(spark.range(1), tmp_path)
    with pytest.raises(TypeError, match="expected column names"):
        DeltaTable.forPath(spark, tmp_path).optimize().executeZOrderBy(1)  # type: ignore[arg-type]


def test_a_table_that_is_there_or_missing_is_an_analysis_exception(
    spark: SparkSession, tmp_path: Path
) -> None:
    made, missing = str(tmp_path / "made"), str(tmp_path / "missing")
    deltalog.spark.write(spark.range(1), made)
    calls: list[tuple[type[Exception], Callable[[], object]]] = [
        (
            TableExistsError,
            lambda: DeltaTable.create(spark).location(made).addColumn("x", "INT").execute(),
        ),
        (TableExistsError, lambda: deltalog.spark.write(spark.range(1), made)),
        (
            TableNotFoundError,
            lambda: DeltaTable.replace(spark).location(missing).addColumn("x", "INT").execute(),
        ),
        (TableNotFoundError, lambda: DeltaTable.forPath(spark, missing)),
        (TableNotFoundError, lambda: DeltaTable.forName(spark, f"delta.`{missing}`")),
        (TableNotFoundError, lambda: DeltaTable.forName(spark, "nobody")),
        (TableNotFoundError, lambda: deltalog.spark.read(spark, missing)),
        (TableNotFoundError, lambda: deltalog.spark.checkpoint(spark, missing)),
    ]
    for kind, call in calls:
        with pytest.raises(AnalysisException) as caught:
            call()
        error: Any = caught.value
        assert issubclass(type(error), kind)
        assert error.getMessage() == str(error)
        assert "made" in str(error) or "missing" in str(error) or "nobody" in str(error)
        assert (error.getCondition(), error.getSqlState()) in {
            ("DELTA_TABLE_ALREADY_EXISTS", "42P07"),
            ("DELTA_TABLE_NOT_FOUND", "42P01"),
        }
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), back.code) == (type(error), str(error), error.code)
