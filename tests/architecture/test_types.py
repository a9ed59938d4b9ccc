"""Primitive types are one table: nothing else names them, and one row more is a type more."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError, InvalidPartitionValueError, SchemaMismatchError
from deltalog.expressions import lit, parse_sql, to_sql
from deltalog.protocol.features.registry import find_feature
from deltalog.protocol.partition_values import encode_value, parse_column, parse_value
from deltalog.protocol.stats.collect import StatsCollector, encode_stats, encode_stats_column
from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.stats.schema import indexed_columns, stats_schema
from deltalog.schema import (
    Field,
    PrimitiveType,
    StructType,
    conform_array,
    encode_schema,
    from_arrow_type,
    parse_schema,
    to_arrow_schema,
)
from deltalog.schema.primitives import PRIMITIVES, Bounds, Primitive, ValueCodec
from deltalog.schema.primitives.strings import check_kind, check_match, json_texts
from tests.support.source import Source

TABLE = "schema/primitives/"
# Where a type's name may stand besides: by folder or file, with the reason.
ELSEWHERE = {
    "_util/argument_types.py": ({"date", "float"}, "annotations of Python"),
    "_util/similar_names.py": ({"timestamp"}, "an argument of other libraries, for errors"),
    "table/inspect/description.py": ({"timestamp"}, "the moment of a commit, a column"),
    "table/inspect/display.py": ({"timestamp"}, "the moment of a commit, in its history"),
    "table/inspect/plot/plots.py": ({"timestamp"}, "the moment of a commit, in its history"),
    "schema/types.py": (
        {name for name, row in PRIMITIVES.items() if row.is_ordered or not row.is_declared},
        "constants for the rules of single types: VOID, LONG",
    ),
    "sharing/wire/": (
        {"byte", "short", "integer", "long", "float", "double", "string", "boolean", "date",
         "timestamp"},
        "types and times of Delta Sharing's own messages",
    ),
    **dict.fromkeys(
        ("catalogs/", "cli/", "log/", "data/scan/", "sharing/", "statements/", "transaction/"),
        ({"timestamp"}, "the moment of a commit: commitInfo, history, messages"),
    ),
    "cli/unreadable.py": ({"string", "boolean"}, "Arrow's names of types in JSON"),
    "expressions/other_dialects.py": ({"date"}, "a function of other dialects, for errors"),
    "statements/partitioning.py": ({"date"}, "a function in PARTITIONED BY, for errors"),
    "operations/restore.py": ({"timestamp"}, "the moment that restore looks for"),
    "spark/engine/row_tasks.py": ({"string"}, "PySpark's name of a type to cast to"),
    "spark/reading/native.py": ({"long"}, "PySpark's name of a type to read"),
    "spark/results.py": ({"timestamp"}, "the moment of a commit"),
    "spark/table.py": ({"timestamp"}, "an argument's name: the moment of a version"),
}  # fmt: skip


def _named(source: Source) -> set[tuple[str, str]]:
    """Types that string constants of modules name, whether with parameters or without."""
    return {
        (where, name)
        for where, text in source.strings()
        if not where.startswith(TABLE) and (name := text.partition("(")[0]) in PRIMITIVES
    }


def test_only_the_table_names_types(source: Source) -> None:
    wrong = [
        f"{where}: {name}"
        for where, name in sorted(_named(source))
        if not any(where.startswith(at) and name in names for at, (names, _) in ELSEWHERE.items())
    ]
    assert wrong == []


def test_exceptions_are_still_needed(source: Source) -> None:
    named = _named(source)
    assert all(reason for _, reason in ELSEWHERE.values())
    assert [
        (place, name)
        for place, (names, _) in ELSEWHERE.items()
        for name in sorted(names)
        if not any(where.startswith(place) and name == found for where, found in named)
    ] == []


def _micros(texts: Any) -> Any:
    """Times of day of ISO texts, as counts; NULL where a text is none."""
    known = pc.if_else(
        pc.match_substring_regex(texts, r"^\d\d:\d\d:\d\d(?:\.\d{1,6})?$"), texts, None
    )
    moments = pc.binary_join_element_wise("1970-01-01", known, "T").cast(pa.timestamp("us"))
    return moments.cast(pa.int64())


def _parse(texts: Any, arrow_type: pa.DataType, _zone: str) -> Any:
    check_match(texts, r"\d\d:\d\d:\d\d(?:\.\d{1,6})?")
    return _micros(texts).cast(arrow_type)


def _encode(value: Any, _arrow_type: pa.DataType) -> str:
    check_kind(value, dt.time)
    return str(value.isoformat())


def _time_of(micros: int, _arrow_type: pa.DataType) -> str:
    return (
        (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros))
        .time()
        .isoformat()
    )


TIMES = ValueCodec(
    conform=lambda array, target: array.cast(target) if pa.types.is_time(array.type) else None,
    parse=_parse,
    encode=_encode,
    bounds=Bounds(
        wire=pa.string(),
        read=lambda texts, to: _micros(texts).cast(to),
        texts=lambda times: json_texts(times.cast(pa.string())),
        stored=_time_of,
    ),
)
ROW = Primitive(
    name="time",
    codec=TIMES,
    arrow=lambda: pa.time64("us"),
    takes=(pa.time32("s"), pa.time64("us")),
    feature="time",
    literal=lambda value: value.isoformat() if isinstance(value, dt.time) else None,
    spark_name="time(6)",
)
NOON = dt.time(12)
SCHEMA_TEXT = (
    '{"type":"struct","fields":[{"name":"at","type":"time","nullable":true,"metadata":{}}]}'
)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> PrimitiveType:
    monkeypatch.setitem(PRIMITIVES, ROW.name, ROW)
    return PrimitiveType("time")


def test_without_its_row_the_type_is_unknown() -> None:
    assert str(parse_schema(SCHEMA_TEXT).fields[0].type) == "time"
    with pytest.raises(InvalidInputError, match="'time'"):
        PrimitiveType("time")


def test_a_new_type_is_in_schemas(time: PrimitiveType) -> None:
    schema = StructType([Field("at", time)])
    assert parse_schema(SCHEMA_TEXT) == schema
    assert encode_schema(schema) == SCHEMA_TEXT
    assert to_arrow_schema(schema) == pa.schema([("at", pa.time64("us"))])
    assert from_arrow_type(pa.time32("ms")) == time


@pytest.mark.usefixtures("time")
def test_data_becomes_a_new_type() -> None:
    found = conform_array(pa.array([NOON], pa.time32("s")), pa.time64("us"))
    assert found.to_pylist() == [NOON]
    with pytest.raises(SchemaMismatchError):
        conform_array(pa.array([1]), pa.time64("us"))


def test_partitions_have_values_of_a_new_type(time: PrimitiveType) -> None:
    assert encode_value(NOON, time) == "12:00:00"
    assert parse_value("12:00:00.5", time, time_zone="UTC") == dt.time(12, 0, 0, 500_000)
    assert parse_column(pa.array(["", "12:00:00"]), time, time_zone="UTC").to_pylist() == [
        None,
        NOON,
    ]
    with pytest.raises(InvalidPartitionValueError):
        parse_value("noon", time, time_zone="UTC")
    with pytest.raises(InvalidInputError):
        encode_value("noon", time)


def test_a_new_type_has_statistics(time: PrimitiveType) -> None:
    schema = StructType([Field("at", time)])
    collector = StatsCollector(schema)
    collector.update(pa.table({"at": pa.array([NOON, None, dt.time(9)], pa.time64("us"))}))
    text = encode_stats(collector.finish())
    assert text == (
        '{"numRecords":3,"minValues":{"at":"09:00:00"},"maxValues":{"at":"12:00:00"},'
        '"nullCount":{"at":1}}'
    )
    shape = stats_schema(indexed_columns(schema), tight_bounds=False)
    assert shape.field("minValues").type == pa.struct([("at", pa.time64("us"))])
    read = parse_stats(pa.array([text]), shape)
    assert read.column("maxValues").to_pylist() == [{"at": NOON}]
    assert parse_stats(encode_stats_column(read), shape) == read


@pytest.mark.usefixtures("time")
def test_sql_has_literals_of_a_new_type() -> None:
    assert to_sql(lit(NOON)) == to_sql(parse_sql("time '12:00:00'")) == "TIME'12:00:00'"
    assert to_sql(parse_sql("CAST(a AS TIME)")) == "CAST(a AS TIME)"
    assert to_sql(parse_sql("`time` > 1")) == "`time` > 1"
    with pytest.raises(InvalidInputError, match="not a valid TIME"):
        parse_sql("TIME'noon'")


def test_spark_has_a_new_type(time: PrimitiveType) -> None:
    spark_types = pytest.importorskip("pyspark.sql.types")
    from deltalog.spark.session.types import to_spark_schema

    assert to_spark_schema(StructType([Field("at", time)])).fields[0].dataType == (
        spark_types.TimeType(6)
    )


def test_a_table_has_columns_and_partitions_of_a_new_type(
    time: PrimitiveType, tmp_path: Path
) -> None:
    data = pa.table(
        {
            "day": pa.array([NOON, dt.time(9)], pa.time64("us")),
            "at": pa.array([dt.time(1), dt.time(2)], pa.time64("us")),
        }
    )
    write_deltalake(tmp_path, data, partition_by=["day"])
    table = DeltaTable(tmp_path)
    assert table.schema() == StructType([Field("day", time), Field("at", time)])
    assert table.to_pyarrow_table().sort_by("at").to_pylist() == data.to_pylist()
    for condition in ("at = TIME'02:00:00'", "day < TIME'10:00:00'"):
        assert table.to_pyarrow_table(filters=condition).column("at").to_pylist() == [dt.time(2)]


@pytest.mark.parametrize("row", PRIMITIVES.values(), ids=list(PRIMITIVES))
def test_rows_fit_each_other(row: Primitive) -> None:
    assert {*row.widens_to, *row.stored_in} <= PRIMITIVES.keys()
    assert not row.feature or find_feature(row.feature)
    assert (row.codec.parse is None) == (row.codec.encode is None)
