"""Convert: Parquet files become a table, with what they hold and where they lie."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq  # writes files as other writers do
import pytest

from deltalog._json import dumps, loads
from deltalog.configuration import TableConfiguration
from deltalog.context import utc_context
from deltalog.engine import LocalEngine
from deltalog.errors import (
    DataFileUnreadableError,
    DeltaError,
    InvalidInputError,
    InvalidPartitionValueError,
    SchemaMismatchError,
)
from deltalog.scan import plan_scan
from deltalog.schema import ArrayType, Field, PrimitiveType, StructType
from deltalog.table_change import new_table
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit
from deltalog.transaction.properties import CommitOptions
from deltalog.verbs.convert import (
    Conversion,
    Convert,
    configuration_in_place,
    plan_conversion,
)
from deltalog.verbs.do import stage
from tests.support.aging import NO_HOOKS, AgingTable

SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"


def put(table: AgingTable, path: str, data: Mapping[str, Any] | pa.Table, **options: Any) -> None:
    out = BytesIO()
    pq.write_table(data if isinstance(data, pa.Table) else pa.table(dict(data)), out, **options)
    table.kept.put(path, out.getvalue())


def parquet(*paths: str, **columns: Sequence[Any]) -> AgingTable:
    table = AgingTable()
    for path in paths:
        put(table, path, columns or {"id": [1, 2]})
    return table


def convert(
    table: AgingTable,
    fields: Sequence[Field] | None = None,
    *,
    strategy: Any = None,
    collect_stats: bool = True,
    properties: Mapping[str, str] | None = None,
) -> Conversion:
    """As the facade does it."""
    partition_by = None if fields is None else StructType(fields)
    found = plan_conversion(
        utc_context(table.store), partition_by=partition_by, partition_strategy=strategy
    )
    pending = PendingTransaction(
        utc_context(table.store),
        None,
        operation="CONVERT",
        configuration=_configured(found, properties or {}),
    )
    stage(Convert(conversion=found, collect_stats=collect_stats), pending, LocalEngine())
    commit(pending, CommitOptions(hooks=NO_HOOKS))
    return found


def _configured(found: Conversion, properties: Mapping[str, str]) -> TableConfiguration:
    return configuration_in_place(
        new_table(
            found.schema,
            partition_columns=found.partition_columns,
            configuration=properties,
            created_time_ms=1,
        )
    )


def stats(table: AgingTable) -> list[Any]:
    texts: list[Any] = table.snapshot().files(["stats"]).column("stats").to_pylist()
    return [loads(text, "") for text in texts]


def types(table: AgingTable) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.snapshot().configuration.schema}


def test_files_become_a_table_and_stay_as_they_are() -> None:
    table = parquet("a.parquet", "d/b c.parquet", id=[1, 2], s=["x", None])
    before = dict(table.kept.files)
    convert(table)
    assert table.rows() == [(1, "x"), (1, "x"), (2, None), (2, None)]
    assert before.items() <= table.kept.files.items()
    assert table.data_files() == sorted(before)
    (entry,) = table.snapshot().history()
    assert (entry["operation"], entry["operationParameters"], entry["operationMetrics"]) == (
        "CONVERT",
        {"numFiles": 2, "partitionedBy": "[]", "collectStats": True, "sourceFormat": "parquet"},
        {"numConvertedFiles": "2"},
    )


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
        ("x.parquet", None, "expected are"),
        ("p=1/q=2/x.parquet", None, "expected are"),
        ("q=2/x.parquet", "hive", "expected are"),
        ("1/2/x.parquet", "directory", "2 directories"),
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


@pytest.mark.protocol("D-16")
def test_statistics_come_from_the_data() -> None:
    table = AgingTable()
    long = "x" * 5000
    rows = {
        "i": [3, 1, None],
        "s": [long, "b", "c"],
        "d": [Decimal("1.50"), None, Decimal("-2.00")],
        "f": [float("nan"), 1.0, 2.0],
        "b": [True, False, None],
    }
    put(table, "a.parquet", rows, write_statistics=False)
    convert(table)
    (found,) = stats(table)
    assert found["numRecords"] == 3
    assert found["minValues"] == {"i": 1, "s": "b", "d": -2.0, "f": 1.0}
    assert found["maxValues"] == {"i": 3, "s": "x" * 32 + "\x7f", "d": 1.5, "f": "NaN"}
    assert found["nullCount"] == {"i": 1, "s": 0, "d": 1, "f": 0, "b": 1}


@pytest.mark.protocol("D-16")
def test_without_statistics_only_footers_are_read() -> None:
    table = AgingTable()
    put(table, "a.parquet", pa.table({"id": range(100_000)}), compression="none")
    table.store = counted = CountingStore(table.kept)
    convert(table, collect_stats=False)
    assert stats(table) == [{"numRecords": 100_000}]
    assert counted.footers_opened == 1
    assert counted.bytes_read < 100_000


def test_column_mapping_leaves_names_in_files_alone() -> None:
    table = parquet("p=1/a.parquet", id=[1, 2], s=[{"x": 1}, {"x": 2}])
    convert(table, properties={"delta.columnMapping.mode": "name"})
    assert table.rows(columns=["id", "p"]) == [(1, 1), (2, 1)]
    found = plan_scan(table.snapshot(), columns=["s.x"]).to_table()
    assert found.column("s").to_pylist() == [{"x": 1}, {"x": 2}]
    with pytest.raises(InvalidInputError, match="field ids"):
        convert(parquet("a.parquet"), properties={"delta.columnMapping.mode": "id"})


def test_features_of_writers_hold_from_the_start() -> None:
    table = parquet("a.parquet", "b.parquet")
    convert(
        table,
        collect_stats=False,
        properties={"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
    )
    assert table.rows(columns=["_metadata.row_id"]) == [(0,), (1,), (2,), (3,)]
    table.delete("id = 1")
    assert table.rows() == [(2,), (2,)]


def test_rows_are_not_checked() -> None:
    with pytest.raises(InvalidInputError, match="add the constraints"):
        convert(parquet("a.parquet"), properties={"delta.constraints.positive": "id > 0"})


def test_a_crash_anywhere_leaves_no_table_or_the_whole_one() -> None:
    for number in range(1, 100):
        table = parquet("p=1/a.parquet", "p=2/b.parquet")
        before = dict(table.kept.files)
        table.store = faulty = FaultyStore(table.kept, InjectedFault(call=number, harm=Harm.CRASH))
        with contextlib.suppress(DeltaError):
            convert(table)
        assert before.items() <= table.kept.files.items()
        table.store = table.kept
        if not any(path.startswith("_delta_log/") for path in table.kept.files):
            convert(table)
        assert table.rows() == [(1, 1), (1, 2), (2, 1), (2, 2)]
        if not faulty.crashed:
            break
    assert number > 4
