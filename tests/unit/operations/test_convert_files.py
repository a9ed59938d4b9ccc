"""What footers and directories of Parquet files say."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from deltalog._util.json import dumps
from deltalog.errors import (
    DataFileUnreadableError,
    InvalidInputError,
    InvalidPartitionValueError,
    SchemaMismatchError,
)
from deltalog.log.context import utc_context
from deltalog.operations.convert import (
    plan_conversion,
)
from deltalog.schema import ArrayType, Field, PrimitiveType
from tests.support.aging import AgingTable
from tests.support.converting import convert, parquet, put, stats, types

SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"


def test_hidden_and_other_files_are_left_out() -> None:
    table = parquet("a.parquet", "_tmp/b.parquet", ".c.parquet", "_d.parquet", "x/.y/e.PARQUET")
    table.kept.files["README.md"] = b""
    assert [file.info.path for file in convert(table).files] == ["a.parquet"]


def test_there_must_be_files() -> None:
    with pytest.raises(InvalidInputError, match="no Parquet file"):
        convert(AgingTable())


def test_a_file_that_is_no_parquet_is_named() -> None:
    table = parquet("a.parquet")
    table.kept.files["b.parquet"] = b"not at all, but long enough"
    with pytest.raises(DataFileUnreadableError, match=r"b\.parquet"):
        convert(table)


def test_hive_directories_are_partitions() -> None:
    table = parquet(
        "p=a%20b/q=2024-01-31/x.parquet", "p=__HIVE_DEFAULT_PARTITION__/q=2024-02-01/y.parquet"
    )
    convert(table, [Field("p", "string"), Field("q", "date")])
    day, other = dt.date(2024, 1, 31), dt.date(2024, 2, 1)
    assert {row[1:] for row in table.rows()} == {("a b", day), (None, other)}
    assert table.snapshot().metadata.partition_columns == ("p", "q")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "22"], "long"),
        (["-1", "__HIVE_DEFAULT_PARTITION__"], "long"),
        (["01", "1"], "string"),
        (["1", "x"], "string"),
        (["2024-01-31", "2024-02-01"], "date"),
        (["2024-1-31", "2024-02-01"], "string"),
        (["__HIVE_DEFAULT_PARTITION__"], "string"),
    ],
)
def test_types_of_partitions_are_told_by_their_values(values: list[str], kind: str) -> None:
    table = parquet(*(f"p={value}/x.parquet" for value in values))
    convert(table)
    assert types(table) == {"id": "long", "p": kind}


def test_directories_can_hold_values_alone() -> None:
    table = parquet("2024/7/x.parquet", "2025/8/y.parquet")
    fields = [Field("year", "integer"), Field("month", "string")]
    convert(table, fields, strategy="directory")
    assert {row[1:] for row in table.rows()} == {(2024, "7"), (2025, "8")}
    with pytest.raises(InvalidInputError, match="pass them as partition_by"):
        plan_conversion(utc_context(table.store), partition_strategy="directory")


@pytest.mark.parametrize(
    ("path", "strategy", "message"),
    [
        ("x.parquet", None, "expected directories for"),
        ("p=1/q=2/x.parquet", None, "expected directories for"),
        ("q=2/x.parquet", "hive", "expected directories for"),
        ("1/2/x.parquet", "directory", "expected 1 directory, one for .*, found 2$"),
        ("p=1/x.parquet", "hiwe", "expected 'hive' or"),
    ],
)
def test_paths_must_have_the_partition_columns(path: str, strategy: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        convert(parquet(path), [Field("p", "integer")], strategy=strategy)


@pytest.mark.protocol("D-65")
def test_a_partition_value_must_be_of_its_type() -> None:
    with pytest.raises(InvalidPartitionValueError, match="'p'"):
        convert(parquet("p=x/x.parquet"), [Field("p", "integer")])


def test_a_partition_column_in_the_files_is_the_directorys() -> None:
    table = parquet("p=7/x.parquet", P=[1, 2], id=[1, 2])
    convert(table)
    assert types(table) == {"id": "long", "p": "long"}
    assert table.rows() == [(1, 7), (2, 7)]


def test_columns_of_all_files_are_the_tables() -> None:
    table = parquet("a.parquet", id=[1])
    put(table, "b.parquet", {"ID": [2], "more": ["x"]})
    convert(table)
    assert types(table) == {"id": "long", "more": "string"}
    assert table.rows(columns=["more"]) == [(None,), ("x",)]


@pytest.mark.parametrize("other", [pa.int32(), pa.string(), pa.float64()])
def test_one_column_has_one_type(other: pa.DataType) -> None:
    table = parquet("a.parquet", id=[1])
    put(table, "b.parquet", pa.table({"id": pa.array([None], other)}))
    with pytest.raises(SchemaMismatchError, match=r"(?s)(?=.*id)(?=.*b\.parquet)"):
        convert(table)


def test_old_timestamps_are_instants() -> None:
    moment = dt.datetime(2024, 1, 31, 12, 0, 0, 123456)  # noqa: DTZ001  # nor does it here
    table = AgingTable()
    rows = pa.table({"t": pa.array([moment], pa.timestamp("us"))})
    put(table, "a.parquet", rows, use_deprecated_int96_timestamps=True)
    convert(table)
    assert types(table) == {"t": "timestamp"}
    assert table.rows() == [(moment.replace(tzinfo=dt.UTC),)]
    assert stats(table)[0]["minValues"] == {"t": "2024-01-31T12:00:00.123Z"}


def test_what_spark_noted_counts() -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"name": "t", "type": "timestamp", "nullable": False, "metadata": {"comment": "x"}},
            {
                "name": "a",
                "type": {"type": "array", "elementType": "long", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
        ],
    }
    moment = dt.datetime(2024, 1, 31)  # noqa: DTZ001  # Parquet knows no zone here
    rows = pa.table({"t": pa.array([moment], pa.timestamp("us")), "a": [[1]]})
    noted = rows.replace_schema_metadata({SPARK_SCHEMA: dumps(schema).decode()})
    table = AgingTable()
    put(table, "a.parquet", noted)
    convert(table)
    assert table.snapshot().configuration.schema.fields == (
        Field("t", "timestamp"),
        Field("a", ArrayType(PrimitiveType("long"), contains_null=True)),
    )
