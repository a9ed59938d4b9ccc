"""Tables of types that only those who name them get: geometries, nanoseconds, intervals."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, Schema, enable_preview, sql, write_deltalake
from deltalog.errors import (
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


@pytest.mark.parametrize("condition", ["span = span", "months > 5", "at > TIMESTAMP'2024-01-01'"])
def test_they_are_not_compared(other: DeltaTable, condition: str) -> None:
    with pytest.raises(InvalidInputError, match=r"interval|timestamp_nanos"):
        other.to_pyarrow_table(filters=condition)


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
