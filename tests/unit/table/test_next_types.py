"""Tables of types that only those who name them get: geometries, nanoseconds, intervals."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from deltalog import (
    DeltaTable,
    Field,
    Schema,
    convert_to_deltalake,
    enable_nanosecond_timestamps,
    enable_preview,
    sql,
    write_deltalake,
)
from deltalog.errors import (
    AmbiguousMergeError,
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    InvalidProtocolError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from deltalog.expressions import col
from tests.support.places import line, point

PLACES = [point(1.5, 2), line((-1, 0), (4, 9)), None]
GEO = Schema(
    [
        Field("id", "long"),
        Field("g", "geometry(4326)"),
        Field("s", Schema([Field("g", "geometry(3857)")])),
        Field("e", "geography"),
    ]
)
GEO_ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "g": pa.array(PLACES, pa.binary()),
        "s": pa.array([{"g": point(7, 8)}, None, {"g": None}], pa.struct([("g", pa.binary())])),
        "e": pa.array([point(170, 0), point(-170, 0), None], pa.binary()),
    }
)
OTHER = Schema(
    [
        Field("at", "timestamp_nanos"),
        Field("clock", "timestamp_nanos_ntz"),
        Field("months", "interval year to month"),
        Field("span", "interval day to second"),
        Field("n", "long"),
    ]
)
NANOS = 1_700_000_000_123_456_789
OTHER_ROWS = pa.table(
    {
        "at": pa.array([NANOS, None], pa.timestamp("ns", "UTC")),
        "clock": pa.array([NANOS, -1], pa.timestamp("ns")),
        "months": pa.array([18, -7], pa.int32()),
        "span": pa.array([dt.timedelta(days=-1, microseconds=5), None], pa.duration("us")),
        "n": pa.array([1, 2], pa.int64()),
    }
)


@pytest.fixture(autouse=True)
def previews(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTALOG_PREVIEWS", "geospatial,timestampNanos,intervalTypes")


def make(path: Path, schema: Any, rows: pa.Table) -> None:
    DeltaTable.create(path, schema=schema)
    write_deltalake(path, rows, mode="append")


def log_of(root: Path, version: int = 0) -> list[dict[str, Any]]:
    text = (root / "_delta_log" / f"{version:020}.json").read_text("utf-8")
    return [json.loads(line_) for line_ in text.splitlines()]


def action(root: Path, name: str, version: int = 0) -> dict[str, Any]:
    (found,) = [line_[name] for line_ in log_of(root, version) if name in line_]
    return dict(found)


@pytest.fixture
def geo(tmp_path: Path) -> DeltaTable:
    make(tmp_path, GEO, GEO_ROWS)
    return DeltaTable(tmp_path)


@pytest.fixture
def other(tmp_path: Path) -> DeltaTable:
    make(tmp_path, OTHER, OTHER_ROWS)
    return DeltaTable(tmp_path)


def of_table(query: str, root: Path) -> str:
    return re.sub(r"\bT\b", f"delta.`{root}`", query)


def files_of(root: Path) -> list[Path]:
    return sorted(root.rglob("*.parquet"))


@pytest.mark.protocol("B-62")
def test_a_table_with_geometries(geo: DeltaTable, tmp_path: Path) -> None:
    protocol = action(tmp_path, "protocol")
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert "geospatial" in protocol["readerFeatures"]
    assert "geospatial" in protocol["writerFeatures"]
    fields = json.loads(action(tmp_path, "metaData")["schemaString"])["fields"]
    assert fields[1]["type"] == "geometry(OGC:CRS84)"
    assert fields[3]["type"] == "geography(OGC:CRS84, spherical)"
    assert geo.schema() == GEO
    assert geo.to_pyarrow_table().to_pylist() == GEO_ROWS.to_pylist()


def test_files_have_parquets_own_types(geo: DeltaTable, tmp_path: Path) -> None:
    (path,) = files_of(tmp_path)
    schema = pq.ParquetFile(path).schema
    kinds = {schema.column(n).path: str(schema.column(n).logical_type) for n in range(4)}
    assert kinds["g"].startswith("Geometry")
    assert "3857" in kinds["s.g"]
    assert kinds["e"].startswith("Geography")
    assert "spherical" in kinds["e"]
    assert geo.to_pyarrow_table(columns=["s"]).num_rows == 3


def test_statistics_are_boxes(geo: DeltaTable, tmp_path: Path) -> None:
    stats = json.loads(action(tmp_path, "add", 1)["stats"])
    assert stats["minValues"] == {
        "id": 1, "g": "POINT(-1.0 0.0)", "s": {"g": "POINT(7.0 8.0)"},
    }  # fmt: skip
    assert stats["maxValues"]["g"] == "POINT(4.0 9.0)"
    assert stats["nullCount"] == {"id": 0, "g": 1, "s": {"g": 2}, "e": 1}
    geo.create_checkpoint()
    again = DeltaTable(tmp_path)
    assert again.to_pyarrow_table(filters="g IS NULL").column("id").to_pylist() == [3]
    checkpoint = pq.read_table(next((tmp_path / "_delta_log").glob("*.checkpoint.parquet")))
    adds = [one["add"] for one in checkpoint.to_pylist() if one["add"]]
    assert adds[0]["stats_parsed"]["maxValues"]["g"] == "POINT(4.0 9.0)"


def test_arrow_is_told_of_geometries(geo: DeltaTable) -> None:
    for schema in (
        geo.to_pyarrow_table().schema,
        geo.to_pyarrow_dataset().schema,
        geo.to_pyarrow_table(columns=["e", "g"]).schema,
        geo.schema().to_arrow(),
    ):
        metadata: Any = schema.field("g").metadata
        assert metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
        edges: Any = schema.field("e").metadata
        told = json.loads(edges[b"ARROW:extension:metadata"])
        assert told == {"crs": "OGC:CRS84", "crs_type": "authority_code", "edges": "spherical"}


def test_data_of_geoarrow_makes_a_geometry_only_where_it_is_named(
    geo: DeltaTable, tmp_path: Path
) -> None:
    shown = geo.to_pyarrow_table(columns=["id", "g"])
    write_deltalake(tmp_path / "plain", shown)
    assert str(DeltaTable(tmp_path / "plain").schema().fields[1].type) == "binary"
    make(tmp_path / "named", shown.schema, shown)
    assert DeltaTable(tmp_path / "named").schema().fields[1] == GEO.fields[1]
    write_deltalake(tmp_path / "plain", shown, mode="append")
    other = pa.schema([shown.schema.field("id"), Field("g", "geometry(3857)").to_arrow()])
    with pytest.raises(SchemaMismatchError, match=r"geometry\(OGC:CRS84\)"):
        write_deltalake(tmp_path / "named", shown.cast(other), mode="append")


def test_rows_with_geometries_change(geo: DeltaTable) -> None:
    geo.update(updates={"g": "NULL"}, predicate="id = 1")
    geo.update(new_values={"g": point(5, 5)}, predicate="id = 3")
    geo.delete("id = 2")
    source = pa.table({"id": pa.array([3, 4], pa.int64()), "g": geo.to_pyarrow_table(
        filters="id = 3").column("g").combine_chunks().take([0, 0])})  # fmt: skip
    told = source.cast(pa.schema([source.schema.field("id"), Field("g", "geometry").to_arrow()]))
    (
        geo.merge(told, "t.id = s.id", source_alias="s", target_alias="t")
        .when_not_matched_insert(updates={"id": "s.id", "g": "s.g"})
        .execute()
    )
    geo.optimize.compact()
    found = geo.to_pyarrow_table().sort_by("id").select(["id", "g"]).to_pylist()
    assert found == [
        {"id": 1, "g": None}, {"id": 3, "g": point(5, 5)}, {"id": 4, "g": point(5, 5)},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    [
        "g = e", "g IS NOT NULL AND g <=> g", "g IN (g)", "s.g > X'01'", "CAST(g AS STRING) = ''",
        "length(g) = 21", "hash(g) = 1", "g = X'0101'", "CAST(g AS BINARY) = X''", "g LIKE 'a'",
        "array(g) = array(g)", col("g") == b"1",
    ],
)  # fmt: skip
def test_geometries_are_not_compared(geo: DeltaTable, condition: Any) -> None:
    with pytest.raises(InvalidInputError, match="geometry"):
        geo.to_pyarrow_table(filters=condition)
    with pytest.raises(InvalidInputError, match="geometry"):
        geo.delete(condition)


def test_whether_there_is_a_geometry_is_known(geo: DeltaTable) -> None:
    for condition, ids in (("g IS NULL", [3]), ("s.g IS NOT NULL", [1]), ("e IS NOT NULL", [1, 2])):
        assert geo.to_pyarrow_table(filters=condition).column("id").to_pylist() == ids
    assert geo.to_pyarrow_table(filters=col("g").is_null()).num_rows == 1


def test_geometries_have_no_order(geo: DeltaTable, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="geometry"):
        DeltaTable.create(tmp_path / "p", schema=GEO, partition_by=["g"])
    with pytest.raises(InvalidInputError, match="geometry"):
        DeltaTable.create(tmp_path / "c", schema=GEO, cluster_by=["g"])
    with pytest.raises(InvalidInputError, match="geometry"):
        geo.optimize.z_order(["g"])


@pytest.mark.parametrize(
    "value",
    [b"", b"POINT(1 2)", b"\x01\x01\x00\x00\x20\xe6\x10\x00\x00", b"\x01\x02\x00\x00\x00\x05"],
)
def test_only_wkb_is_a_geometry(geo: DeltaTable, tmp_path: Path, value: bytes) -> None:
    rows = pa.table({"id": [9], "g": pa.array([value], pa.binary())})
    with pytest.raises(InvalidInputError, match="WKB"):
        write_deltalake(geo, rows, mode="append")
    assert DeltaTable(tmp_path).version() == 1


def test_a_column_is_added(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    table.alter.add_columns([Field("g", "geometry")])
    assert "geospatial" in action(tmp_path, "protocol", 1)["readerFeatures"]
    write_deltalake(table, pa.table({"id": [2], "g": [point(1, 2)]}), mode="append")
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").column("g").to_pylist()
    assert found == [None, point(1, 2)]


@pytest.mark.protocol("B-62")
def test_a_table_with_nanoseconds_and_intervals(other: DeltaTable, tmp_path: Path) -> None:
    features = action(tmp_path, "protocol")["readerFeatures"]
    assert {"timestampNanos", "timestampNtz", "intervalTypes"} <= set(features)
    fields = json.loads(action(tmp_path, "metaData")["schemaString"])["fields"]
    assert [field["type"] for field in fields[:4]] == [
        "timestamp_nanos", "timestamp_nanos_ntz", "interval year to month",
        "interval day to second",
    ]  # fmt: skip
    found = other.to_pyarrow_table()
    assert found.schema.field("at").type == pa.timestamp("ns", "UTC")
    assert found.schema.field("span").type == pa.duration("us")
    assert found.equals(OTHER_ROWS.cast(found.schema))
    (path,) = files_of(tmp_path)
    schema = pq.ParquetFile(path).schema
    stored = {schema.column(n).name: schema.column(n) for n in range(5)}
    assert stored["months"].physical_type == "INT32"
    assert stored["span"].physical_type == "INT64"
    assert str(stored["span"].logical_type) == "None"
    assert "nanoseconds" in str(stored["at"].logical_type)


@pytest.mark.protocol("B-62")
def test_they_have_no_bounds(other: DeltaTable, tmp_path: Path) -> None:
    stats = json.loads(action(tmp_path, "add", 1)["stats"])
    assert stats["minValues"] == {"n": 1}
    assert stats["nullCount"] == {"at": 1, "clock": 0, "months": 0, "span": 1, "n": 0}
    assert other.to_pyarrow_table(filters="span IS NULL").column("n").to_pylist() == [2]


def test_they_are_kept_by_every_change(other: DeltaTable) -> None:
    other.update(updates={"n": "n + 10"}, predicate="n = 1")
    write_deltalake(other, OTHER_ROWS, mode="append")
    other.optimize.compact()
    other.delete("n = 2")
    found = other.to_pyarrow_table().sort_by("n")
    assert found.column("at").cast(pa.int64()).to_pylist() == [NANOS, NANOS]
    assert found.column("span").to_pylist() == [OTHER_ROWS.column("span")[0].as_py()] * 2
    assert found.column("months").to_pylist() == [18, 18]


@pytest.mark.parametrize(
    "condition", ["span > months", "months > 5", "at > clock", "year(at) = 2023", "n = span"]
)
def test_they_are_compared_with_their_own_type_only(other: DeltaTable, condition: str) -> None:
    with pytest.raises(InvalidInputError, match=r"interval|timestamp_nanos"):
        other.to_pyarrow_table(filters=condition)
    with pytest.raises(InvalidInputError, match=r"interval|timestamp_nanos"):
        other.delete(condition)


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        ("at = TIMESTAMP'2023-11-14 22:13:20.123456789Z'", [1]),
        ("clock < TIMESTAMP_NTZ'1970-01-01'", [2]),
        ("months > INTERVAL '1-5' YEAR TO MONTH", [1]),
        ("span IS NULL OR span < INTERVAL 0 SECONDS", [1, 2]),
        (col("at") >= pd.Timestamp(NANOS, tz="UTC"), [1]),
        (col("at") > pd.Timestamp(NANOS, tz="UTC"), []),
        ([("clock", "=", np.datetime64(NANOS, "ns"))], [1]),
        ([("clock", "in", [pa.scalar(-1, pa.timestamp("ns"))])], [2]),
        ([("at", "=", "2023-11-14T22:13:20.123456789Z")], [1]),
        (col("span") == dt.timedelta(days=-1, microseconds=5), [1]),
        ([("months", ">=", np.timedelta64(18, "M"))], [1]),
        (pc.field("clock") < pa.scalar(0, pa.timestamp("ns")), [2]),
        (pc.field("span") < pa.scalar(0, pa.duration("us")), [1]),
        (pc.field("months") < 0, [2]),
    ],
    ids=str,
)
def test_they_are_filtered(other: DeltaTable, condition: Any, numbers: list[int]) -> None:
    assert other.to_pyarrow_table(filters=condition).column("n").to_pylist() == numbers


def test_datasets_filter_them_as_arrow_does(other: DeltaTable) -> None:
    dataset = other.to_pyarrow_dataset()
    rows = other.to_pyarrow_table()
    for condition in (
        pc.field("at") == pa.scalar(NANOS, pa.timestamp("ns", "UTC")),
        pc.field("span") < pa.scalar(0, pa.duration("us")),
        pc.field("months") > 2.5,
        (pc.field("months") > 2) & (pc.field("n") == 1),
        pc.field("at") > pa.scalar(0, pa.timestamp("us", "UTC")),
    ):
        assert dataset.to_table(filter=condition).equals(rows.filter(condition)), str(condition)


def test_polars_filters_them(other: DeltaTable) -> None:
    rows = pl.DataFrame(other.to_pyarrow_table())
    instant, wall = pl.Datetime("ns", "UTC"), pl.Datetime("ns")
    for condition in (
        pl.col("at") == pl.lit(NANOS).cast(instant),
        pl.col("clock") < pl.lit(0, wall),
        pl.col("clock").is_in(pl.Series([NANOS, 3]).cast(wall)),
        pl.col("at") > dt.datetime(2023, 1, 1, tzinfo=dt.UTC),
        pl.col("span") < dt.timedelta(0),
        pl.col("span") < pl.lit(5, pl.Duration("ms")),
        pl.col("months") < 0,
        (pl.col("months") < 0) & (pl.col("n") > 1),
    ):
        expected = rows.filter(condition)["n"].to_list()
        lazy = other.to_polars(lazy=True)
        assert lazy.filter(condition).select("n").collect()["n"].to_list() == expected, condition
        scanned = pl.scan_pyarrow_dataset(other.to_pyarrow_dataset())
        assert scanned.filter(condition).select("n").collect()["n"].to_list() == expected


def test_rows_change_by_them(other: DeltaTable) -> None:
    other.update(
        updates={"clock": "TIMESTAMP_NTZ'2024-01-01 00:00:00.000000001'"},
        predicate="months = INTERVAL 18 MONTHS",
    )
    other.update(new_values={"span": dt.timedelta(1), "at": pd.Timestamp(7, tz="UTC")},
                 predicate="span IS NULL")  # fmt: skip
    other.update(updates={"months": "INTERVAL '0-2' YEAR TO MONTH"}, predicate="n = 2")
    found = other.to_pyarrow_table().sort_by("n")
    assert str(found.column("clock")[0]) == "2024-01-01 00:00:00.000000001"
    assert found.column("at").cast(pa.int64()).to_pylist() == [NANOS, 7]
    assert found.column("span")[1].as_py() == dt.timedelta(1)
    assert found.column("months").to_pylist() == [18, 2]
    other.delete("at < TIMESTAMP'1970-01-01 00:00:00.000000008Z'")
    assert other.to_pyarrow_table().column("n").to_pylist() == [1]


def test_a_merge_matches_nanoseconds(other: DeltaTable) -> None:
    source = pa.table(
        {
            "at": pa.array([NANOS, NANOS + 1], pa.timestamp("ns", "UTC")),
            "other": pa.array([NANOS, 0], pa.timestamp("ns")),
            "months": pa.array([18, 3], pa.int32()),
            "n": pa.array([10, 20], pa.int64()),
        }
    )
    (
        other.merge(source, "t.at = s.at AND t.clock = s.other AND t.months <=> s.months",
                    source_alias="s", target_alias="t")
        .when_matched_update(updates={"n": "s.n"})
        .when_not_matched_insert(updates={"at": "s.at", "n": "s.n", "months": "s.months",
                                          "clock": "s.other"})
        .execute()
    )  # fmt: skip
    found = other.to_pyarrow_table().sort_by("n")
    assert found.column("n").to_pylist() == [2, 10, 20]
    assert found.column("at").cast(pa.int64()).to_pylist() == [None, NANOS, NANOS + 1]
    assert found.column("clock").cast(pa.int64()).to_pylist() == [-1, NANOS, 0]
    assert found.column("months").to_pylist() == [-7, 18, 3]


def test_a_merge_compares_microseconds_with_nanoseconds(tmp_path: Path) -> None:
    schema = Schema([Field("at", "timestamp_nanos_ntz"), Field("ts", "timestamp_ntz")])
    micros = NANOS // 1000
    rows = pa.table(
        {
            "at": pa.array([micros * 1000, NANOS], pa.timestamp("ns")),
            "ts": pa.array([micros, micros], pa.timestamp("us")),
        }
    )
    make(tmp_path, schema, rows)
    source = pa.table({"moment": pa.array([micros], pa.timestamp("us"))})
    table = DeltaTable(tmp_path)
    table.merge(
        source, "t.at = s.moment", source_alias="s", target_alias="t"
    ).when_matched_delete().execute()
    assert table.to_pyarrow_table().column("at").cast(pa.int64()).to_pylist() == [NANOS]
    fine = pa.table({"moment": pa.array([NANOS], pa.timestamp("ns"))})
    table.merge(
        fine, "t.ts = s.moment", source_alias="s", target_alias="t"
    ).when_matched_delete().execute()
    assert table.to_pyarrow_table().num_rows == 1


def test_a_merge_cuts_nanoseconds_that_the_column_of_that_name_lacks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path, Schema([Field("ts", "timestamp_ntz"), Field("n", "long")]),
         pa.table({"ts": pa.array([NANOS // 1000], pa.timestamp("us")), "n": [1]}))  # fmt: skip
    source = pa.table({"ts": pa.array([NANOS], pa.timestamp("ns")), "n": [2]})
    table = DeltaTable(tmp_path)
    table.merge(
        source, "t.ts = s.ts", source_alias="s", target_alias="t"
    ).when_matched_update_all().execute()
    assert table.to_pyarrow_table().to_pylist()[0]["n"] == 2
    assert "nanoseconds were cut off" in caplog.text


def test_two_rows_for_one_are_told_of(other: DeltaTable) -> None:
    source = pa.table({"at": pa.array([NANOS, NANOS], pa.timestamp("ns", "UTC"))})
    merge = other.merge(source, "t.at = s.at", source_alias="s", target_alias="t")
    with pytest.raises(AmbiguousMergeError, match=r"20\.123456789"):
        merge.when_matched_update(updates={"n": "9"}).execute()


@pytest.mark.parametrize(
    ("order", "numbers"),
    [("at", [2]), ("at DESC", [1]), ("clock", [2]), ("months DESC", [1]), ("span", [2]),
     ("span DESC NULLS FIRST", [2]), ("span NULLS LAST", [1])],
)  # fmt: skip
def test_the_first_of_them(other: DeltaTable, order: str, numbers: list[int]) -> None:
    assert other.scan(order_by=order, limit=1).to_table().column("n").to_pylist() == numbers


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT n FROM T WHERE span < INTERVAL '1' DAY", [(1,)]),
        ("SELECT n FROM T WHERE months = INTERVAL '1-6' YEAR TO MONTH", [(1,)]),
        ("SELECT n FROM T WHERE at = TIMESTAMP'2023-11-14 22:13:20.123456789Z'", [(1,)]),
        ("SELECT n FROM T WHERE at = TIMESTAMP'2023-11-14 22:13:20.123456789Z' ORDER BY n + 1",
         [(1,)]),
        ("SELECT n FROM T WHERE clock > '2023-11-14 22:13:20.123456788' ORDER BY n", [(1,)]),
        ("SELECT n FROM T ORDER BY clock", [(2,), (1,)]),
        ("SELECT n, span FROM T WHERE n + 0 = 1 ORDER BY n",
         [(1, dt.timedelta(days=-1, microseconds=5))]),
        ("SELECT months FROM T ORDER BY n", [(18,), (-7,)]),
        ("SELECT n FROM T WHERE span IS NULL ORDER BY n", [(2,)]),
        ("SELECT count(*) FROM T a JOIN T b ON a.at = b.at", [(1,)]),
        ("SELECT count(*) FROM T WHERE clock < at", [(0,)]),
        ("SELECT a.n, at FROM T a FULL JOIN T b USING (at) WHERE at IS NOT NULL",
         [(1, pd.Timestamp(NANOS, tz="UTC"))]),
    ],
)  # fmt: skip
def test_queries_compare_them(
    other: DeltaTable, tmp_path: Path, query: str, rows: list[Any]
) -> None:
    del other
    if "clock < at" in query:
        with pytest.raises(InvalidInputError, match="cannot compare timestamp_nanos_ntz"):
            pa.table(sql(of_table(query, tmp_path)))
        return
    found: Any = pa.table(sql(of_table(query, tmp_path)))
    assert [tuple(row.values()) for row in found.to_pylist()] == rows


def test_queries_find_the_least_and_the_greatest_nanosecond(
    other: DeltaTable, tmp_path: Path
) -> None:
    del other
    query = f"SELECT min(clock) AS a, max(clock) AS b, max(at) AS c FROM delta.`{tmp_path}`"
    found: Any = pa.table(sql(query))
    assert found.schema.types == [
        pa.timestamp("ns"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"),
    ]  # fmt: skip
    assert [column.cast(pa.int64())[0].as_py() for column in found.columns] == [-1, NANOS, NANOS]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM T ORDER BY span", "SELECT sum(months) FROM T", "SELECT DISTINCT span FROM T",
        "SELECT count(*) FROM T WHERE span > INTERVAL 1 DAY", "SELECT months + 1 FROM T",
        "SELECT span FROM T UNION SELECT span FROM T", "SELECT year(at) FROM T",
        "SELECT CAST(clock AS STRING) FROM T", "SELECT at FROM T UNION SELECT current_timestamp()",
        "SELECT a.n FROM T a JOIN T b USING (span)", "SELECT n FROM T a NATURAL JOIN T b",
        "SELECT a.n FROM T a JOIN (SELECT current_timestamp() AS at) b USING (at)",
    ],
)  # fmt: skip
def test_queries_refuse_what_duckdb_would_do_otherwise(
    other: DeltaTable, tmp_path: Path, query: str
) -> None:
    del other
    with pytest.raises(InvalidInputError, match=r"interval|timestamp_nanos"):
        pa.table(sql(of_table(query, tmp_path)))


def test_queries_give_spans_of_any_length(tmp_path: Path) -> None:
    spans = pa.array([2**63 - 1, -(2**63), None, 0], pa.int64()).cast(pa.duration("us"))
    rows = pa.table({"n": pa.array(range(4), pa.int64()), "span": spans})
    make(tmp_path, Schema([Field("n", "long"), Field("span", "interval day to second")]), rows)
    found: Any = pa.table(sql(f"SELECT n, span FROM delta.`{tmp_path}` WHERE n + 0 >= 0"))
    assert found.sort_by("n").cast(rows.schema).equals(rows)
    limited: Any = pa.table(sql(f"SELECT span FROM delta.`{tmp_path}` LIMIT 4"))
    assert limited.num_rows == 4


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (("SELECT n FROM T WHERE clock IN (TIMESTAMP_NTZ '2023-11-14 22:13:20.123456789') "
         "ORDER BY n"), [1]),
        (("SELECT n FROM T WHERE at IN (TIMESTAMP '2023-11-14 22:13:20.123456789Z') OR n = abs(-2) "
         "ORDER BY n"), [1, 2]),
        (("SELECT n FROM T WHERE clock BETWEEN TIMESTAMP_NTZ '1969-12-31 23:59:59.999999999' AND "
         "TIMESTAMP_NTZ '1969-12-31 23:59:59.999999999' AND n IN (2, 3) ORDER BY n"), [2]),
    ],
)  # fmt: skip
def test_no_part_of_a_query_cuts_nanoseconds(
    other: DeltaTable, tmp_path: Path, query: str, numbers: list[int]
) -> None:
    del other
    found: Any = pa.table(sql(of_table(query, tmp_path)))
    assert found.column("n").to_pylist() == numbers


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO T (months) VALUES (5)",
        "UPDATE T SET months = 7",
        (
            "MERGE INTO T AS t USING (SELECT 50 AS k) AS s ON t.n = s.k "
            "WHEN NOT MATCHED THEN INSERT (n, months) VALUES (s.k, s.k)"
        ),
    ],
)
def test_numbers_are_no_months(tmp_path: Path, statement: str) -> None:
    before = DeltaTable(tmp_path).version()
    with pytest.raises(InvalidInputError, match="cannot cast integer to interval year to month"):
        sql(of_table(statement, tmp_path))
    assert DeltaTable(tmp_path).version() == before


@pytest.mark.usefixtures("other")
def test_values_keep_nanoseconds_only_for_columns_of_them(tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 'plain'}`"
    sql(f"CREATE TABLE {name} (at TIMESTAMP) USING DELTA")
    sql(f"INSERT INTO {name} VALUES (TIMESTAMP '2023-11-14 22:13:20.123456789Z')")
    found: Any = DeltaTable(tmp_path / "plain").to_pyarrow_table()
    assert found.column("at").cast(pa.int64()).to_pylist() == [NANOS // 1000]


@pytest.mark.usefixtures("other")
def test_values_beside_a_computed_column_keep_what_they_have(tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 'computed'}`"
    sql(
        f"CREATE TABLE {name} (at TIMESTAMP_NANOS_NTZ, months INTERVAL YEAR TO MONTH, "
        "two INT GENERATED ALWAYS AS (1 + 1)) USING DELTA"
    )
    at = "TIMESTAMP_NTZ '2023-11-14 22:13:20.123456789'"
    sql(f"INSERT INTO {name} VALUES ({at}, INTERVAL '1-2' YEAR TO MONTH, DEFAULT)")
    found: Any = DeltaTable(tmp_path / "computed").to_pyarrow_table()
    assert found.column("at").cast(pa.int64()).to_pylist() == [NANOS]
    assert found.drop_columns("at").to_pylist() == [{"months": 14, "two": 2}]


def test_statements_insert_them(other: DeltaTable, tmp_path: Path) -> None:
    del other
    for statement in (
        "INSERT INTO T SELECT at, clock, months, span, n + 10 FROM T WHERE n + 0 = 1",
        (
            "INSERT INTO T (n, months, span, clock) VALUES (20, INTERVAL '1-2' YEAR TO MONTH, "
            "INTERVAL '1' DAY, TIMESTAMP_NTZ '2023-11-14 22:13:20.123456789'), "
            "(21, NULL, NULL, NULL)"
        ),
        "UPDATE T SET at = TIMESTAMP '1970-01-01 00:00:00.000000001Z' WHERE n = 20",
        (
            "MERGE INTO T AS t USING (SELECT at, n FROM T WHERE n + 0 = 20) AS s ON t.at = s.at "
            "WHEN MATCHED THEN UPDATE SET t.span = INTERVAL '2' DAYS"
        ),
    ):
        sql(of_table(statement, tmp_path))
    found = DeltaTable(tmp_path).to_pyarrow_table(filters="n > 5").sort_by("n")
    assert found.column("clock").cast(pa.int64()).to_pylist() == [NANOS, NANOS, None]
    assert found.column("at").cast(pa.int64()).to_pylist() == [NANOS, 1, None]
    assert found.column("months").to_pylist() == [18, 14, None]
    assert found.column("span")[1].as_py() == dt.timedelta(days=2)


def test_selected_intervals_have_values(other: DeltaTable) -> None:
    del other
    day: Any = pa.table(sql("SELECT INTERVAL '1' DAY AS d"))
    assert day.to_pylist() == [{"d": dt.timedelta(days=1)}]
    months: Any = pa.table(sql("SELECT INTERVAL '1' MONTH AS m"))
    assert months.to_pylist() == [{"m": 1}]


def test_answers_of_queries_are_constants_of_conditions(other: DeltaTable, tmp_path: Path) -> None:
    del other
    table = f"delta.`{tmp_path}`"
    sql(f"DELETE FROM {table} WHERE clock = (SELECT max(clock) FROM {table})")
    assert DeltaTable(tmp_path).to_pyarrow_table().column("n").to_pylist() == [2]


def test_statements_name_them(tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}`"
    sql(
        f"CREATE TABLE {table} (y INTERVAL YEAR TO MONTH NOT NULL, m INTERVAL MONTH COMMENT 'm', "
        "d INTERVAL DAY TO SECOND, h INTERVAL HOUR TO MINUTE, a TIMESTAMP_NANOS, "
        "c TIMESTAMP_NANOS_NTZ, s STRUCT<x: INTERVAL SECOND>) USING delta"
    )
    sql(f"ALTER TABLE {table} ADD COLUMNS (z INTERVAL DAY, w TIMESTAMP_NANOS)")
    months, span = "interval year to month", "interval day to second"
    kinds = [str(field.type) for field in DeltaTable(tmp_path).schema()]
    assert kinds == [
        months, months, span, span, "timestamp_nanos", "timestamp_nanos_ntz", f"struct<x:{span}>",
        span, "timestamp_nanos",
    ]  # fmt: skip
    described: Any = pa.table(sql(f"DESCRIBE {table}"))
    assert described.column("data_type").to_pylist()[:6] == kinds[:6]
    shown: Any = pa.table(sql(f"SHOW CREATE TABLE {table}"))
    text = shown.column(0)[0].as_py()
    assert "`y` INTERVAL YEAR TO MONTH NOT NULL".replace("`", "") in text
    assert "d INTERVAL DAY TO SECOND" in text
    assert "s STRUCT<x: INTERVAL DAY TO SECOND>" in text
    again = tmp_path / "again"
    sql(text.replace(str(tmp_path), str(again)))
    assert DeltaTable(again).schema() == DeltaTable(tmp_path).schema()


@pytest.mark.parametrize(
    ("kind", "feature"),
    [
        ("INTERVAL YEAR", "intervalTypes"),
        ("ARRAY<INTERVAL DAY TO SECOND>", "intervalTypes"),
        ("TIMESTAMP_NANOS", "timestampNanos"),
    ],
)
def test_statements_need_the_preview(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, feature: str
) -> None:
    monkeypatch.setenv("DELTALOG_PREVIEWS", "")
    table = f"delta.`{tmp_path}`"
    with pytest.raises(DeltaError, match=rf"enable_preview\('{feature}'\)"):
        sql(f"CREATE TABLE {table} (a {kind}) USING delta")
    sql(f"CREATE TABLE {table} (a INT) USING delta")
    with pytest.raises(DeltaError, match=rf"enable_preview\('{feature}'\)"):
        sql(f"ALTER TABLE {table} ADD COLUMN b {kind}")


def test_rules_of_tables_compare_them(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, schema=OTHER)
    table.alter.add_constraint({"short": "span < INTERVAL 1 DAY AND months > INTERVAL 0 MONTHS"})
    write_deltalake(table, OTHER_ROWS.slice(0, 1), mode="append")
    with pytest.raises(ConstraintViolationError, match="short"):
        write_deltalake(table, OTHER_ROWS, mode="append")


@pytest.mark.parametrize("name", ["at", "months", "span"])
def test_they_do_not_partition(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot partition"):
        DeltaTable.create(tmp_path, schema=OTHER, partition_by=[name])


def test_durations_make_no_interval_unasked(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="duration"):
        write_deltalake(tmp_path, OTHER_ROWS.select(["span"]))
    write_deltalake(tmp_path, pa.table({"n": [1]}))
    with pytest.raises(SchemaMismatchError):
        write_deltalake(tmp_path, OTHER_ROWS.select(["span"]).rename_columns(["n"]), mode="append")


@pytest.mark.parametrize("name", ["interval day", "interval hour to second", "interval month"])
def test_narrower_names_are_read(other: DeltaTable, tmp_path: Path, name: str) -> None:
    path = tmp_path / "_delta_log" / f"{0:020}.json"
    wide = "interval year to month" if name == "interval month" else "interval day to second"
    path.write_text(path.read_text("utf-8").replace(wide, name), "utf-8")
    assert DeltaTable(tmp_path).schema() == other.schema()
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 2


def test_a_table_without_the_feature_is_read_only(other: DeltaTable, tmp_path: Path) -> None:
    path = tmp_path / "_delta_log" / f"{0:020}.json"
    path.write_text(path.read_text("utf-8").replace('"intervalTypes"', '"timestampNtz"'), "utf-8")
    again = DeltaTable(tmp_path)
    assert again.to_pyarrow_table().num_rows == other.to_pyarrow_table().num_rows
    with pytest.raises(InvalidProtocolError, match="intervalTypes"):
        write_deltalake(again, OTHER_ROWS, mode="append")


@pytest.mark.usefixtures("geo")
def test_queries_give_geographies_as_bytes(tmp_path: Path) -> None:
    rows: Any = sql(f"SELECT id, e, g FROM delta.`{tmp_path}` WHERE e IS NOT NULL ORDER BY id")
    found = pa.table(rows)
    assert found.column("e").to_pylist() == [point(170, 0), point(-170, 0)]
    assert found.column("g").to_pylist() == PLACES[:2]


def test_sql_names_geometries(tmp_path: Path) -> None:
    sql(f"CREATE TABLE delta.`{tmp_path}` (g GEOMETRY(3857), e GEOGRAPHY(4326)) USING delta")
    table = DeltaTable(tmp_path)
    assert [str(field.type) for field in table.schema()] == [
        "geometry(EPSG:3857)", "geography(OGC:CRS84, spherical)",
    ]  # fmt: skip
    sql(f"INSERT INTO delta.`{tmp_path}` SELECT X'{point(1, 2).hex()}', NULL")
    assert DeltaTable(tmp_path).to_pyarrow_table().column("g").to_pylist() == [point(1, 2)]
    shown = sql(f"SHOW CREATE TABLE delta.`{tmp_path}`")
    assert "GEOMETRY(3857)" in str(shown).upper()


def test_spark_gets_none_of_them(geo: DeltaTable) -> None:
    pytest.importorskip("pyspark")
    from deltalog.spark.session.types import schema_of, to_spark_schema

    with pytest.raises(UnsupportedTypeError, match="geometry"):
        to_spark_schema(geo.schema())
    spark_types = pytest.importorskip("pyspark.sql.types")
    columns = spark_types.StructType().add("d", spark_types.DayTimeIntervalType())
    with pytest.raises(UnsupportedTypeError, match="interval day to second"):
        schema_of(columns)


@pytest.mark.protocol("B-62")
@pytest.mark.parametrize("name", ["adaptiveMetadata", "adaptiveMetadata-preview"])
def test_another_form_of_the_log_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_deltalake(tmp_path, pa.table({"n": [1]}))
    path = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = log_of(tmp_path)
    features = {"readerFeatures": [name], "writerFeatures": [name]}
    for line_ in lines:
        if "protocol" in line_:
            line_["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    root = {"contentRoot": {"path": "metadata/root.parquet", "sizeInBytes": 1, "version": 0}}
    lines.append({"checkpoint": [{"checkpointMetadata": {"version": 0}}, root]})
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    monkeypatch.setenv("DELTALOG_PREVIEWS", "adaptiveMetadata,adaptiveMetadata-preview")
    table = DeltaTable(tmp_path)
    assert [*(table.protocol().reader_features or ())] == [name]
    assert table.schema().names == ("n",)
    assert table.history()[0]["operation"] == "WRITE"
    for act in (table.to_pyarrow_table, table.file_uris, table.delete, table.vacuum):
        with pytest.raises(UnsupportedFeatureError, match=name):
            act()
    with pytest.raises(InvalidInputError, match="expected one of"):
        enable_preview(name)


@pytest.mark.protocol("B-62")
def test_previews_are_off_until_they_are_switched_on(
    geo: DeltaTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTALOG_PREVIEWS", "timestampNanos")
    with pytest.raises(UnsupportedFeatureError, match=r"enable_preview\('geospatial'\)"):
        DeltaTable(tmp_path).to_pyarrow_table()
    with pytest.raises(UnsupportedFeatureError, match=r"enable_preview\('geospatial'\)"):
        geo.to_pyarrow_table()
    with pytest.raises(UnsupportedFeatureError, match=r"enable_preview\('intervalTypes'\)"):
        DeltaTable.create(tmp_path / "t", schema=OTHER)
    enable_preview("geospatial")
    assert os.environ["DELTALOG_PREVIEWS"] == "timestampNanos,geospatial"
    assert DeltaTable(tmp_path).count() == 3
    with pytest.raises(InvalidInputError, match="expected one of geospatial, timestampNanos"):
        enable_preview("variantType")


# --- New columns for data with nanoseconds


FINE = pa.table(
    {
        "id": [1],
        "at": pa.array([NANOS], pa.timestamp("ns", "UTC")),
        "clock": pa.array([NANOS], pa.timestamp("ns")),
    }
)


def types_of(table: DeltaTable) -> list[str]:
    return [str(field.type) for field in table.schema()]


def test_new_columns_keep_nanoseconds_on_request(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "coarse", FINE)
    coarse = DeltaTable(tmp_path / "coarse")
    assert types_of(coarse) == ["long", "timestamp", "timestamp_ntz"]
    enable_nanosecond_timestamps()
    assert os.environ["DELTALOG_PREVIEWS"].startswith("geospatial,timestampNanos,intervalTypes")
    kinds = ["long", "timestamp_nanos", "timestamp_nanos_ntz"]
    write_deltalake(tmp_path / "fine", FINE)
    fine = DeltaTable(tmp_path / "fine")
    assert types_of(fine) == kinds
    assert fine.to_arrow().equals(FINE.combine_chunks())
    assert types_of(DeltaTable.create(tmp_path / "made", FINE.schema)) == kinds
    # An existing column keeps its type, and a column that is replaced gets that of the data.
    write_deltalake(
        coarse, FINE.append_column("new", FINE["at"]), mode="append", schema_mode="merge"
    )
    assert types_of(coarse) == ["long", "timestamp", "timestamp_ntz", "timestamp_nanos"]
    write_deltalake(coarse, FINE, mode="overwrite", schema_mode="overwrite")
    coarse.update_incremental()
    assert types_of(coarse) == kinds
    assert Schema.from_arrow(fine.schema().to_arrow()) == fine.schema()
    (tmp_path / "files").mkdir()
    pq.write_table(FINE, tmp_path / "files" / "a.parquet")
    convert_to_deltalake(tmp_path / "files")
    assert types_of(DeltaTable(tmp_path / "files")) == kinds


def test_merged_columns_keep_nanoseconds_on_request(tmp_path: Path) -> None:
    write_deltalake(tmp_path, FINE.select(["id", "at"]))
    enable_nanosecond_timestamps()
    table = DeltaTable(tmp_path)
    rows = FINE.set_column(0, "id", pa.array([2]))
    table.merge(
        rows, "s.id = t.id", source_alias="s", target_alias="t", merge_schema=True
    ).when_not_matched_insert_all().execute()
    assert types_of(table) == ["long", "timestamp", "timestamp_nanos_ntz"]
    kept = table.to_arrow(filters=[("id", "=", 2)])
    assert kept["clock"].cast(pa.int64()).to_pylist() == [NANOS]
    assert "timestampNanos" in (table.protocol().writer_features or ())


@pytest.mark.parametrize(
    "rows",
    [
        [{"clock": pd.Timestamp(NANOS)}],
        {"clock": [pd.Timestamp(NANOS)]},
        pd.DataFrame({"clock": pd.Series([pd.Timestamp(NANOS)], dtype=object)}),
        [{"clock": pd.Timestamp(NANOS)}, {"clock": None}],
    ],
    ids=["rows", "columns", "objects", "missing"],
)
def test_timestamps_of_pandas_keep_nanoseconds(rows: Any, tmp_path: Path) -> None:
    schema = Schema([Field("clock", "timestamp_nanos_ntz")])
    written, merged, appended = (
        DeltaTable.create(tmp_path / name, schema) for name in ("written", "merged", "appended")
    )
    write_deltalake(written, rows, mode="append")
    merged.upsert(rows, ["clock"])
    with appended.appender() as appender:
        appender.append(rows)
    for table in (written, merged, appended):
        table.update_incremental()
        assert NANOS in table.to_arrow()["clock"].cast(pa.int64()).to_pylist()


def test_nested_timestamps_of_pandas_keep_nanoseconds(tmp_path: Path) -> None:
    kind = Schema([Field("s", Schema([Field("l", "array<timestamp_nanos>")]))])
    table = DeltaTable.create(tmp_path, kind)
    moment = pd.Timestamp(NANOS, tz="UTC")
    write_deltalake(table, [{"s": {"l": [moment]}}], mode="append")
    assert table.to_arrow()["s"].to_pylist() == [{"l": [moment]}]


def test_years_without_nanoseconds_are_refused(other: DeltaTable) -> None:
    rows = {"clock": [pd.Timestamp("9999-01-01").to_pydatetime()]}
    with pytest.raises(SchemaMismatchError, match="'clock' as timestamp_nanos_ntz without chang"):
        write_deltalake(other, rows, mode="append")


def test_nanoseconds_beside_other_years_are_cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    late = dt.datetime(9999, 1, 1)  # noqa: DTZ001  # which is the point
    write_deltalake(tmp_path, {"at": [pd.Timestamp(NANOS), late]})
    assert "'at': timestamps are stored in microseconds" in caplog.text
    found = DeltaTable(tmp_path).to_arrow()["at"].to_pylist()
    assert found == [pd.Timestamp(NANOS).floor("us").to_pydatetime(), late]


def test_a_cut_of_nanoseconds_of_pandas_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_deltalake(tmp_path, [{"at": pd.Timestamp(NANOS)}])
    assert "'at': timestamps are stored in microseconds" in caplog.text
