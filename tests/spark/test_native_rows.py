"""Rows that Spark's own Parquet writer puts into a table: as our tasks would, or not at all."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable
from deltalog.storage.parquet.reader import ParquetReader
from tests.spark.conftest import CONNECT
from tests.support.native_writes import (
    BY_SPARK,
    BY_TASKS,
    adds,
    by_tasks,
    entries,
    frame_of,
    having,
    paths,
    rows,
    stats,
    writers,
)

pytestmark = pytest.mark.skipif(CONNECT, reason="rows of remote sessions are our tasks'")


def shown(table: pa.Table) -> str:
    """Rows in a form in which NaN equals itself, -0.0 does not equal 0.0, and bytes may be any."""
    broken = [name for name in table.column_names if name.startswith("broken")]
    for name in broken:
        place = table.column_names.index(name)
        raw = [chunk.view(pa.binary()) for chunk in table.column(name).chunks]
        table = table.set_column(place, name, pa.chunked_array(raw, pa.binary()))
    return repr(table.to_pylist())


# --- the same files


def moments(*micros: int | None, tz: str | None) -> pa.Array[Any]:
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", tz))


YEAR_1: Final = -62_135_596_800_000_000
YEAR_9999: Final = 253_402_300_799_999_999
DECIMALS: Final = {
    "dec9": ("9,2", ["-1234567.89", None, "9999999.99"]),
    "dec18": ("18,4", ["-99999999999999.9999", "0.0001", None]),
    "dec38": ("38,10", [None, "-9999999999999999999999999999.9999999999", "1"]),
}


def decimals(text: str, values: list[str | None]) -> pa.Array[Any]:
    precision, scale = map(int, text.split(","))
    kind = pa.decimal128(precision, scale)
    return pa.array(values, pa.string()).cast(kind)


def kinds() -> pa.Table:
    """Three rows of columns of every type, with what statistics stumble over."""
    columns: dict[str, Any] = {
        "truth": pa.array([None, True, False]),
        "i8": pa.array([-128, None, 127], pa.int8()),
        "i16": pa.array([-(2**15), 2**15 - 1, None], pa.int16()),
        "i32": pa.array([2**31 - 1, None, -(2**31)], pa.int32()),
        "i64": pa.array([-(2**63), 2**63 - 1, 0], pa.int64()),
        "minus_zero": pa.array([-0.0, -0.0, None], pa.float64()),
        "zero": pa.array([0.0, 0.0, None], pa.float32()),
        "nan": pa.array([1.5, math.nan, -2.5], pa.float64()),
        "only_nan": pa.array([math.nan, None, math.nan], pa.float32()),
        "infinite": pa.array([math.inf, -math.inf, 0.0], pa.float64()),
        "empty": pa.array(["", None, "\x00"]),
        "long": pa.array(["a" * 33, "é" * 40, "\U0001f600" * 40]),
        "huge": pa.array(["b" * 5000, None, "b" * 4999 + "a"]),
        "broken": pa.array([b"\xff\xfe", b"a", None], pa.binary()).view(pa.string()),
        "bytes": pa.array([b"\x00\xff", None, b""], pa.binary()),
        **{name: decimals(*given_values) for name, given_values in DECIMALS.items()},
        "day": pa.array([-719_162, 2_932_896, -141_428], pa.int32()).cast(pa.date32()),
        "instant": moments(YEAR_1, -1, YEAR_9999, tz="UTC"),
        "wall": moments(YEAR_9999, None, YEAR_1, tz=None),
        "nothing": pa.nulls(3, pa.string()),
        "no_number": pa.nulls(3, pa.decimal128(38, 2)),
        "parts": pa.array(
            [{"x": 1, "in": {"y": "q", "t": None}}, None, {"x": None, "in": None}],
            pa.struct(
                [
                    ("x", pa.int32()),
                    ("in", pa.struct([("y", pa.string()), ("t", pa.timestamp("us", "UTC"))])),
                ]
            ),
        ),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "lists": pa.array(
            [[{"a": [b"x"]}, None], [], None],
            pa.list_(pa.struct([("a", pa.list_(pa.binary()))])),
        ),
    }
    return pa.table(columns)


# By column: the smallest and the greatest value in JSON, and the number of NULLs.
BOUNDS: Final[dict[str, tuple[Any, Any, int]]] = {
    "truth": (None, None, 1),
    "i8": (-128, 127, 1),
    "i16": (-32768, 32767, 1),
    "i32": (-2147483648, 2147483647, 1),
    "i64": (-9223372036854775808, 9223372036854775807, 0),
    "minus_zero": (-0.0, 0.0, 1),
    "zero": (-0.0, 0.0, 1),
    "nan": (-2.5, "NaN", 0),
    "only_nan": ("NaN", "NaN", 1),
    "infinite": ("-Infinity", "Infinity", 0),
    "empty": ("", "\x00", 1),
    "broken": (None, None, 1),
    "bytes": (None, None, 1),
    "day": ("0001-01-01", "9999-12-31", 0),
    "nothing": (None, None, 3),
    "no_number": (None, None, 3),
    "list": (None, None, 1),
    "lists": (None, None, 1),
}


def both_ways(spark: SparkSession, frame: DataFrame, place: Path) -> tuple[Path, Path]:
    """The tables that Spark and our tasks make of a frame."""
    one, other = place / "spark", place / "tasks"
    deltalog.spark.write(frame, one)
    with by_tasks(spark):
        deltalog.spark.write(frame, other)
    assert (writers(one), writers(other)) == (BY_SPARK, BY_TASKS)
    return one, other


def columns_of(path: Path) -> list[tuple[Any, ...]]:
    """What a footer says of the columns, without names of writers' own (`schema`)."""
    found = pq.read_metadata(path).schema
    return [
        (
            column.path,
            column.physical_type,
            str(column.logical_type),
            column.max_definition_level,
            column.max_repetition_level,
        )
        for column in map(found.column, range(len(found)))
    ]


def test_values_of_every_type_and_their_statistics(spark: SparkSession, tmp_path: Path) -> None:
    source = kinds()
    one, other = both_ways(spark, spark.createDataFrame(source).coalesce(1), tmp_path)
    ((mine,), (theirs,)) = paths(one), paths(other)
    found = pq.read_table(mine)
    assert shown(found.cast(source.schema)) == shown(source)
    assert found.schema.equals(pq.read_schema(theirs))
    assert columns_of(mine) == columns_of(theirs)
    assert [add["stats"] for add in adds(one)] == [add["stats"] for add in adds(other)]
    (told,) = stats(one)
    assert told["numRecords"] == 3
    for name, (low, high, nulls) in BOUNDS.items():
        bounds = told["minValues"].get(name), told["maxValues"].get(name)
        assert (repr(bounds), told["nullCount"][name]) == (repr((low, high)), nulls), name


def test_bounds_of_nested_and_long_values(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(spark.createDataFrame(kinds()).coalesce(1), tmp_path / "t")
    assert writers(tmp_path / "t") == BY_SPARK
    text = adds(tmp_path / "t")[0]["stats"]
    told = json.loads(text)
    low, high, nulls = told["minValues"], told["maxValues"], told["nullCount"]
    assert low["parts"] == {"x": 1, "in": {"y": "q"}}
    assert high["parts"] == {"x": 1, "in": {"y": "q"}}
    assert nulls["parts"] == {"x": 2, "in": {"y": 2, "t": 3}}
    assert low["long"] == "a" * 32
    assert high["long"] > "\U0001f600" * 32
    assert low["huge"] == "b" * 32
    assert "b" * 5000 < high["huge"] < "c"
    assert (low["instant"], high["instant"][:19]) == (
        "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59",
    )
    assert (low["wall"][:23], high["wall"][:19]) == (
        "0001-01-01T00:00:00.000",
        "9999-12-31T23:59:59",
    )
    assert '"dec9":-1234567.89' in text.partition("maxValues")[0]
    assert '"dec18":-99999999999999.9999' in text.partition("maxValues")[0]
    assert '"dec38":-9999999999999999999999999999.9999999999' in text.partition("maxValues")[0]


def test_row_groups_and_pages_are_put_together(spark: SparkSession, tmp_path: Path) -> None:
    rows_each = 3_000
    frame = spark.range(0, 2 * rows_each, 1, 2).selectExpr(
        "id",
        "if(id % 3 = 0, NULL, concat(repeat('x', 40), id)) AS t",
        "if(id % 5 = 0, NULL, if(id = 77, double('NaN'), -id / 2)) AS d",
        "if(id % 7 = 0, NULL, array(id, NULL)) AS l",
        "if(id % 2 = 0, NULL, struct(id AS i)) AS s",
    )
    with having(spark, parquet__block__size="4096", parquet__page__row__count__limit="50"):
        one, other = both_ways(spark, frame, tmp_path)
    assert all(pq.read_metadata(path).num_row_groups > 3 for path in paths(one))
    told = sorted(stats(one), key=lambda stat: stat["minValues"]["id"])
    assert told == sorted(stats(other), key=lambda stat: stat["minValues"]["id"])
    assert [stat["numRecords"] for stat in told] == [rows_each, rows_each]
    assert told[0]["nullCount"] == {"id": 0, "t": 1000, "d": 600, "l": 429, "s": {"i": 1500}}
    assert (told[0]["minValues"]["d"], told[0]["maxValues"]["d"]) == (-1499.5, "NaN")
    assert told[1]["minValues"]["s"] == {"i": 3001}
    assert told[1]["maxValues"]["s"] == {"i": 5999}


TEXTS: Final = st.one_of(
    st.text(max_size=3),
    st.text("ab\U0001f600é", min_size=30, max_size=45),
    st.builds(lambda char, count: char * count, st.sampled_from("aé\U0001f600"), st.just(4200)),
)
COLUMNS: Final[dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]] = {
    "i": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "y": (pa.int8(), st.integers(-128, 127)),
    "d": (pa.float64(), st.floats()),
    "f": (pa.float32(), st.floats(width=32)),
    "t": (pa.string(), TEXTS),
    "b": (pa.binary(), st.binary(max_size=4)),
    "n": (
        pa.decimal128(20, 3),
        st.decimals(-(10**16), 10**16, places=3, allow_nan=False, allow_infinity=False),
    ),
    "k": (pa.date32(), st.dates()),
    "u": (pa.timestamp("us", "UTC"), st.integers(YEAR_1, YEAR_9999)),
    "w": (pa.timestamp("us"), st.integers(YEAR_1, YEAR_9999)),
    "l": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-5, 5), max_size=2)),
    "s": (
        pa.struct([("x", pa.float64()), ("v", pa.string())]),
        st.fixed_dictionaries({"x": st.none() | st.floats(), "v": st.none() | st.text(max_size=2)}),
    ),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows of two columns of each type, which fill or lack them as they like."""
    count = draw(st.integers(1, 12))
    columns = {}
    for name, (kind, values) in COLUMNS.items():
        for copy in ("1", "2"):
            value = values if draw(st.booleans()) else st.none() | values
            drawn = draw(st.lists(value, min_size=count, max_size=count))
            columns[name + copy] = (
                pa.array(drawn, pa.int64()).cast(kind)
                if pa.types.is_timestamp(kind)
                else pa.array(drawn, kind)
            )
    return pa.table(columns)


@settings(max_examples=8)
@given(source=tables())
def test_rows_of_any_kind_make_the_same_files(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, source: pa.Table
) -> None:
    place = tmp_path_factory.mktemp("any")
    one, other = both_ways(spark, spark.createDataFrame(source).coalesce(1), place)
    (mine,) = paths(one)
    assert shown(pq.read_table(mine).cast(source.schema)) == shown(source)
    assert adds(one)[0]["stats"] == adds(other)[0]["stats"]
    told = stats(one)[0]["nullCount"]
    plain = [name for name in source.column_names if not name.startswith("s")]
    assert {name: told[name] for name in plain} == {
        name: source.column(name).null_count for name in plain
    }


def test_footers_are_enough_for_all_but_floating_point_numbers_and_lists(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    read = ParquetReader.read_leaves

    def counting(reader: ParquetReader, leaves: Any, *rest: Any) -> pa.Table:
        decoded.extend(leaves)
        return read(reader, leaves, *rest)

    monkeypatch.setattr(ParquetReader, "read_leaves", counting)
    text = "cast(repeat(string(id), 50) AS string) AS t"
    plain = spark.range(3).coalesce(1).selectExpr("id", text, "timestamp_seconds(id) AS u")
    deltalog.spark.write(plain, tmp_path / "plain")
    assert writers(tmp_path / "plain") == BY_SPARK
    assert decoded == []
    more = plain.selectExpr("*", "double(id) AS d", "array(id) AS l")
    deltalog.spark.write(more, tmp_path / "more")
    assert sorted(decoded) == [3, 4]


# --- which writes are whose


FIT: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "feed": {"properties": {"delta.enableChangeDataFeed": "true"}},
    "row ids": {"properties": {"delta.enableRowTracking": "true"}},
    "deletion vectors": {"properties": {"delta.enableDeletionVectors": "true"}},
    "user metadata": {"user_metadata": "by hand"},
    "no sync": {"properties": {"deltalog.fsync": "false"}},
}


@pytest.mark.parametrize("given_options", FIT.values(), ids=list(FIT))
def test_tables_are_made_appended_to_and_overwritten(
    spark: SparkSession, tmp_path: Path, given_options: dict[str, Any]
) -> None:
    table = tmp_path / "a b%20ü#[x]{y}?"
    text = "concat('t', id) AS t"
    deltalog.spark.write(frame_of(spark, text), table, **given_options)
    deltalog.spark.write(frame_of(spark, text, first=5), table, mode="append")
    assert rows(table) == [(0, "t0"), (1, "t1"), (5, "t5"), (6, "t6")]
    assert (writers(table), len(paths(table))) == (BY_SPARK, 2)
    deltalog.spark.write(frame_of(spark, text, first=8), table, mode="overwrite")
    assert (rows(table), writers(table)) == ([(8, "t8"), (9, "t9")], BY_SPARK)
    hidden = {name for name in entries(table) if name.startswith(".")}
    assert hidden == set()
    assert [add["stats"] for add in adds(table, 1)] == [
        '{"numRecords":2,"minValues":{"id":5,"t":"t5"},"maxValues":{"id":6,"t":"t6"},'
        '"nullCount":{"id":0,"t":0}'
        + (',"tightBounds":true}' if "enableDeletionVectors" in str(given_options) else "}")
    ]


def test_a_change_feed_tells_what_was_appended(spark: SparkSession, tmp_path: Path) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    deltalog.spark.write(frame_of(spark), tmp_path / "t", properties=properties)
    deltalog.spark.write(frame_of(spark, first=7), tmp_path / "t", mode="append")
    DeltaTable(tmp_path / "t").delete("id = 7")
    feed = DeltaTable(tmp_path / "t").load_cdf(starting_version=1).read_all().to_pylist()
    assert sorted((row["_commit_version"], row["id"], row["_change_type"]) for row in feed) == [
        (1, 7, "insert"),
        (1, 8, "insert"),
        (2, 7, "delete"),
    ]


def test_row_ids_do_not_meet(spark: SparkSession, tmp_path: Path) -> None:
    properties = {"delta.enableRowTracking": "true"}
    frame = spark.range(0, 6, 1, 2)
    deltalog.spark.write(frame, tmp_path / "t", properties=properties)
    deltalog.spark.write(frame, tmp_path / "t", mode="append")
    assert writers(tmp_path / "t") == BY_SPARK
    assert sorted(add["baseRowId"] for n in (0, 1) for add in adds(tmp_path / "t", n)) == [
        0,
        3,
        6,
        9,
    ]


def test_columns_are_found_by_name_whatever_their_order_and_case(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    deltalog.spark.write(spark.sql("SELECT 1 AS Id, 'a' AS `t.x`, 2 AS Number"), table)
    deltalog.spark.write(
        spark.sql("SELECT 20 AS NUMBER, 'b' AS `T.X`, 10 AS id"), table, mode="append"
    )
    assert writers(table) == BY_SPARK
    assert rows(table) == [(1, "a", 2), (10, "b", 20)]
    assert [pq.read_schema(path).names for path in paths(table)] == [["Id", "t.x", "Number"]] * 2


def test_a_column_may_be_called_by_what_others_mean(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT named_struct('b', 1) AS a, 2 AS `a.b`, 3 AS `x``y`, 4 AS `_metadata`")
    deltalog.spark.write(frame, tmp_path / "t")
    assert writers(tmp_path / "t") == BY_SPARK
    assert rows(tmp_path / "t") == [({"b": 1}, 2, 3, 4)]


@pytest.mark.parametrize("by_session", [True, False])
def test_files_have_so_many_rows_at_most(
    spark: SparkSession, tmp_path: Path, *, by_session: bool
) -> None:
    frame = spark.range(0, 7, 1, 1)
    if by_session:
        with having(spark, spark__sql__files__maxRecordsPerFile="3"):
            deltalog.spark.write(frame, tmp_path / "t")
    else:
        deltalog.spark.write(frame, tmp_path / "t", max_records_per_file=3)
    assert writers(tmp_path / "t") == BY_SPARK
    assert sorted(stat["numRecords"] for stat in stats(tmp_path / "t")) == [1, 3, 3]
    assert rows(tmp_path / "t") == [(number,) for number in range(7)]


def test_the_caller_s_number_of_rows_goes_before_the_session_s(
    spark: SparkSession, tmp_path: Path
) -> None:
    with having(spark, spark__sql__files__maxRecordsPerFile="3"):
        deltalog.spark.write(spark.range(0, 7, 1, 1), tmp_path / "t", max_records_per_file=0)
    assert [stat["numRecords"] for stat in stats(tmp_path / "t")] == [7]


@pytest.mark.parametrize(
    ("codec", "stored", "made_by"),
    [
        (None, "SNAPPY", BY_SPARK),
        ("zstd", "ZSTD", BY_SPARK),
        ("GZIP", "GZIP", BY_SPARK),
        ("uncompressed", "UNCOMPRESSED", BY_SPARK),
        ("brotli", "BROTLI", BY_TASKS),
        ("lz4", "LZ4", BY_TASKS),
    ],
)
def test_files_are_compressed_as_the_table_says(
    spark: SparkSession, tmp_path: Path, codec: str | None, stored: str, made_by: set[str]
) -> None:
    properties = {} if codec is None else {"delta.parquet.compression.codec": codec}
    with having(spark, spark__sql__parquet__compression__codec="lz4_raw"):
        deltalog.spark.write(frame_of(spark), tmp_path / "t", properties=properties)
    (path,) = paths(tmp_path / "t")
    assert pq.read_metadata(path).row_group(0).column(0).compression == stored
    assert (writers(tmp_path / "t"), rows(tmp_path / "t")) == (made_by, [(0,), (1,)])


def test_moments_do_not_depend_on_the_session_s_zone(spark: SparkSession, tmp_path: Path) -> None:
    with having(spark, spark__sql__session__timeZone="Asia/Tokyo"):
        frame = spark.sql(
            "SELECT TIMESTAMP'1899-12-31 09:00:00.000001' AS t, DATE'1500-02-28' AS d"
        )
        deltalog.spark.write(frame, tmp_path / "t")
    assert writers(tmp_path / "t") == BY_SPARK
    (told,) = stats(tmp_path / "t")
    assert told["minValues"]["t"].startswith("1899-12-31T00:00:00.000")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()
    assert found.column("t").cast(pa.int64()).to_pylist() == [-2_209_075_199_999_999]
    assert found.column("d").cast(pa.int32()).to_pylist() == [-171_606]


def test_columns_that_are_never_null_are_stored_like_all_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark would say `required`, and NOT NULL is a rule of a table that may be dropped."""
    frame = spark.range(0, 3, 1, 1).selectExpr(
        "id", "'t' AS t", "struct(id, struct(1 AS n) AS p) AS s", "map() IS NULL AS b"
    )
    assert not any(field.nullable for field in frame.schema)
    one, other = both_ways(spark, frame, tmp_path)
    ((mine,), (theirs,)) = paths(one), paths(other)
    assert columns_of(mine) == columns_of(theirs)
    assert pq.read_schema(mine).equals(pq.read_schema(theirs))
    nested = [{"id": n, "p": {"n": 1}} for n in range(3)]
    assert rows(one) == [(n, "t", nested[n], False) for n in range(3)]
