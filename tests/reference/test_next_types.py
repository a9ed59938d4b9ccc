"""Types of the drafts and collations: what Delta Spark has of them, read and written both ways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.features.protocol_change import supported_features
from tests.support.places import line, point
from tests.support.reference import Spark

TYPE_CHECK = "spark.databricks.delta.schema.typeCheck.enabled"
GEO_PREVIEW = "spark.databricks.delta.geo.preview.enabled"


@pytest.fixture(scope="module", autouse=True)
def previews() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DELTALOG_PREVIEWS", "geospatial,timestampNanos,intervalTypes")
        yield


@pytest.fixture
def unchecked(spark: Spark) -> Iterator[Spark]:
    """The reference, which has these types and lets them into tables only if told to."""
    spark.run(f"SET {TYPE_CHECK} = false")
    yield spark
    spark.run(f"SET {TYPE_CHECK} = true")


@pytest.fixture(scope="module")
def places(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("places") / "table"
    spark.run(f"SET {GEO_PREVIEW} = true")
    spark.tell(
        path,
        "CREATE TABLE T (id INT, g GEOMETRY(4326), m GEOMETRY(0), e GEOGRAPHY(4326)) USING delta",
        f"INSERT INTO T VALUES (1, {_geom(point(1, 2))}, {_geom(line((0, 0), (5, 5)), 0)}, "
        f"ST_GeogFromWKB(X'{point(9, 9).hex()}')), (2, NULL, NULL, NULL)",
    )
    return path


def _geom(wkb: bytes, srid: int = 4326) -> str:
    return f"ST_GeomFromWKB(X'{wkb.hex()}', {srid})"


@pytest.mark.protocol("B-62")
def test_geometries_of_the_reference_are_read(places: Path) -> None:
    table = DeltaTable(places)
    assert [str(field.type) for field in table.schema()] == [
        "integer", "geometry(OGC:CRS84)", "geometry(SRID:0)", "geography(OGC:CRS84, SPHERICAL)",
    ]  # fmt: skip
    assert table.to_pyarrow_table().sort_by("id").to_pylist() == [
        {"id": 1, "g": point(1, 2), "m": line((0, 0), (5, 5)), "e": point(9, 9)},
        {"id": 2, "g": None, "m": None, "e": None},
    ]


@pytest.mark.protocol("B-62")
def test_the_reference_goes_on_after_us(places: Path, spark: Spark) -> None:
    rows = pa.table(
        {
            "id": pa.array([3], pa.int32()),
            **dict.fromkeys("gme", pa.array([point(7, 8)], pa.binary())),
        }
    )
    write_deltalake(places, rows, mode="append")
    shown = f"SELECT id, ST_AsBinary(g) g, ST_AsBinary(m) m, ST_AsBinary(e) e FROM delta.`{places}`"
    (found,) = spark.query(f"{shown} WHERE id = 3").to_pylist()
    assert found == rows.to_pylist()[0]
    spark.tell(places, "UPDATE T SET g = NULL WHERE id = 3", "DELETE FROM T WHERE id = 1")
    assert DeltaTable(places).to_pyarrow_table().sort_by("id").column("g").to_pylist() == [None] * 2


@pytest.mark.protocol("B-62")
def test_a_table_of_geometries_made_here_is_read_there(spark: Spark, tmp_path: Path) -> None:
    spark.run(f"SET {GEO_PREVIEW} = true")
    schema = Schema(
        [
            Field("g", "geometry(4326)"),
            Field("m", "geometry(3857)"),
            Field("e", "geography(4326)"),
        ]
    )
    DeltaTable.create(tmp_path, schema=schema)
    write_deltalake(tmp_path, pa.table({name: [point(1, 2)] for name in "gme"}), mode="append")
    shown = ", ".join(f"ST_AsBinary({name}) {name}" for name in "gme")
    (found,) = spark.query(f"SELECT {shown} FROM delta.`{tmp_path}`").to_pylist()
    assert found == dict.fromkeys("gme", point(1, 2))


@pytest.mark.protocol("B-62")
def test_intervals_of_the_reference_are_read(unchecked: Spark, tmp_path: Path) -> None:
    path = tmp_path / "table"
    unchecked.tell(
        path,
        "CREATE TABLE T (id INT, y INTERVAL YEAR TO MONTH, m INTERVAL MONTH, "
        "d INTERVAL DAY TO SECOND, h INTERVAL HOUR TO MINUTE) USING delta",
        "INSERT INTO T VALUES (1, INTERVAL '1-6' YEAR TO MONTH, INTERVAL '5' MONTH, "
        "INTERVAL '-1 00:00:01.000005' DAY TO SECOND, INTERVAL '3:20' HOUR TO MINUTE), "
        "(2, NULL, NULL, NULL, NULL)",
    )
    table = DeltaTable(path)
    found = table.to_pyarrow_table().sort_by("id")
    assert found.column("y").to_pylist() == [18, None]
    assert found.column("m").to_pylist() == [5, None]
    assert found.column("d").cast(pa.int64()).to_pylist() == [-86_401_000_005, None]
    assert found.column("h").cast(pa.int64()).to_pylist() == [12_000_000_000, None]
    assert "intervalTypes" not in supported_features(table._snapshot.configuration.protocol)


@pytest.mark.protocol("B-62")
def test_collations_of_the_reference_are_read_and_kept(unchecked: Spark, tmp_path: Path) -> None:
    path = tmp_path / "table"
    unchecked.tell(
        path,
        "CREATE TABLE T (id INT, s STRING COLLATE UTF8_LCASE, t STRING COLLATE de, "
        "a ARRAY<STRING COLLATE UTF8_LCASE>) USING delta",
        "INSERT INTO T VALUES (1, 'a', 'ä', array('x')), (2, 'A', 'z', NULL)",
    )
    table = DeltaTable(path)
    assert table.to_pyarrow_table(filters="s IS NOT NULL").num_rows == 2
    rows = pa.table({"id": pa.array([3], pa.int32()), "s": ["b"], "t": ["ö"], "a": [["y"]]})
    write_deltalake(path, rows, mode="append")
    found = unchecked.query(f"SELECT id FROM delta.`{path}` WHERE s = 'B' OR s = 'a' ORDER BY id")
    assert found.column("id").to_pylist() == [1, 2, 3]
