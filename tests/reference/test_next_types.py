"""Types of the drafts and collations: what Delta Spark has of them, read and written both ways."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, Schema, sql, write_deltalake
from deltalog.errors import InvalidInputError, InvalidProtocolError
from deltalog.expressions import Literal, parse_sql, resolve
from deltalog.protocol.features.protocol_change import supported_features
from deltalog.schema.types import YEAR_TO_MONTH
from tests.support import reference
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


LITERALS = [
    *(f"INTERVAL {sign}'{text}' {fields}" for sign in ("", "-") for text, fields in (
        ("1-2", "YEAR TO MONTH"), ("-1-2", "YEAR TO MONTH"), ("+0-11", "YEAR TO MONTH"),
        ("1-12", "YEAR TO MONTH"), ("1", "YEAR TO MONTH"), (" 1-2 ", "YEAR TO MONTH"),
        ("1 - 2", "YEAR TO MONTH"), ("178956970-7", "YEAR TO MONTH"), ("1-02", "YEAR TO MONTH"),
        ("178956970-8", "YEAR TO MONTH"), ("1-002", "YEAR TO MONTH"), ("01-2", "YEAR TO MONTH"),
        ("1 2", "DAY TO HOUR"), ("1 02", "DAY TO HOUR"), ("1 24", "DAY TO HOUR"),
        ("1  2", "DAY TO HOUR"), ("-1 2", "DAY TO HOUR"), ("1 2:3", "DAY TO MINUTE"),
        ("1 02:60", "DAY TO MINUTE"), ("1 02:03:04", "DAY TO SECOND"),
        ("1 02:03:04.5", "DAY TO SECOND"), ("1 02:03:04.123456789", "DAY TO SECOND"),
        ("1 02:03:04.1234567891", "DAY TO SECOND"), ("1 02:03:04.", "DAY TO SECOND"),
        ("02:03:04", "DAY TO SECOND"), ("-1 02:03:04.5", "DAY TO SECOND"),
        ("1 02:03:60", "DAY TO SECOND"), ("106751991 04:00:54.775807", "DAY TO SECOND"),
        ("106751991 04:00:54.775808", "DAY TO SECOND"), ("1 2:3:4", "DAY TO SECOND"),
        ("2:3", "HOUR TO MINUTE"), ("100:03", "HOUR TO MINUTE"), ("-2:3", "HOUR TO MINUTE"),
        ("2:3:4.000001", "HOUR TO SECOND"), ("24:00:00", "HOUR TO SECOND"),
        ("3:4", "MINUTE TO SECOND"), ("99:59.999999", "MINUTE TO SECOND"),
        ("60:00", "MINUTE TO SECOND"), ("1 2", "DAY TO MONTH"), ("1-2", "MONTH TO YEAR"),
        ("1", "DAY TO DAY"), ("1 02:03", "DAY TO SECOND"), ("1 2:3", "HOUR TO MINUTE"),
    )),
    "INTERVAL 3 DAYS", "INTERVAL '3' DAY", "INTERVAL -3 DAYS", "INTERVAL 1 WEEK",
    "INTERVAL 1 YEAR 2 MONTHS", "INTERVAL 2 QUARTERS", "INTERVAL '1' YEAR '2' MONTH",
    "INTERVAL '1 day 2 hours'", "INTERVAL 1 DAY 2 HOURS 3 MINUTES 4.5 SECONDS",
    "INTERVAL '4.5' SECOND", "INTERVAL '0.000001' SECOND", "INTERVAL 1 MONTH 1 DAY",
    "INTERVAL 5 MILLISECONDS", "INTERVAL 7 MICROSECONDS", "INTERVAL '-0.5' SECOND",
    "INTERVAL 0 DAYS", "INTERVAL 0 MONTHS", "INTERVAL 2147483647 MONTHS",
    "INTERVAL 2147483648 MONTHS", "INTERVAL '200000000' YEAR", "INTERVAL '106751992' DAY",
]  # fmt: skip


def ours(literal: str) -> tuple[str, int] | None:
    """The kind and the number of an interval; None if it is none."""
    try:
        found = resolve(parse_sql(literal), Schema([]))
    except InvalidInputError:
        return None
    assert isinstance(found, Literal)
    if found.type == YEAR_TO_MONTH:
        return "YM", found.value
    return "DT", found.value // dt.timedelta(microseconds=1)


@pytest.fixture(scope="module")
def theirs(spark: Spark) -> dict[str, tuple[str, int] | None]:
    """The same of the reference, which prints both kinds with all their fields."""
    found: dict[str, tuple[str, int] | None] = {}
    for literal in LITERALS:
        found[literal] = None
        for kind, fields in (("YM", "YEAR TO MONTH"), ("DT", "DAY TO SECOND")):
            try:
                table = spark.query(
                    f"SELECT CAST(CAST({literal} AS INTERVAL {fields}) AS STRING) x"
                )
            except reference.ReferenceError:
                continue
            found[literal] = kind, counted(table.column("x")[0].as_py())
    return found


def counted(text: str) -> int:
    """Months, or microseconds, of `INTERVAL '-1-2' YEAR TO MONTH` or its like."""
    _, shown, fields = text.split("'")
    sign = -1 if shown.startswith("-") else 1
    if "YEAR" in fields:
        years, months = shown.lstrip("-").split("-")
        return sign * (int(years) * 12 + int(months))
    days, clock = shown.lstrip("-").split(" ")
    hours, minutes, seconds = clock.split(":")
    micros = int(Decimal(seconds) * 1_000_000)
    return sign * (((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60_000_000 + micros)


@pytest.mark.protocol("B-62")
def test_interval_literals_are_sparks(theirs: dict[str, tuple[str, int] | None]) -> None:
    assert sum(found is not None for found in theirs.values()) > 50
    differing = {
        literal: (ours(literal), found)
        for literal, found in theirs.items()
        if ours(literal) != found
    }
    assert differing == {}


@pytest.mark.protocol("B-62")
def test_intervals_are_compared_as_spark_does(unchecked: Spark, tmp_path: Path) -> None:
    path = tmp_path / "table"
    unchecked.tell(
        path,
        "CREATE TABLE T (id INT, m INTERVAL YEAR TO MONTH, s INTERVAL DAY TO SECOND) USING delta",
        "INSERT INTO T VALUES (1, INTERVAL '1-6' YEAR TO MONTH, INTERVAL '1' DAY), "
        "(2, INTERVAL '-7' MONTH, INTERVAL '-0 00:00:00.000001' DAY TO SECOND), "
        "(3, NULL, NULL), (4, INTERVAL '0' MONTH, INTERVAL '0' SECOND)",
    )
    conditions = [
        f"{column} {operator} {literal}"
        for column, literals in (
            ("m", ("INTERVAL '1-6' YEAR TO MONTH", "INTERVAL 0 MONTHS", "INTERVAL '-1' YEAR")),
            ("s", ("INTERVAL 1 DAY", "INTERVAL 24 HOURS", "INTERVAL '-0.000001' SECOND")),
        )
        for literal in literals
        for operator in ("=", "<=>", "<", "<=", ">", ">=", "<>")
    ]
    conditions += [
        "m IN (INTERVAL 18 MONTHS, INTERVAL 1 YEAR)", "s IN (INTERVAL 0 DAYS, NULL)",
        "s BETWEEN INTERVAL '-1' SECOND AND INTERVAL '1' SECOND", "m IS NULL", "m = s",
        "m = INTERVAL 1 DAY", "m = '1-6'", "s = 0", "m > INTERVAL 1 MONTH OR s IS NULL",
        "NOT m > INTERVAL 1 MONTH", "m <=> NULL", "INTERVAL 1 WEEK = INTERVAL 7 DAYS AND id = 1",
    ]  # fmt: skip
    table = DeltaTable(path)
    for condition in conditions:
        query = f"SELECT id FROM delta.`{path}` WHERE {condition} ORDER BY id"
        try:
            expected: Any = unchecked.query(query).column("id").to_pylist()
        except reference.ReferenceError:
            expected = None
        try:
            found: Any = table.to_pyarrow_table(filters=condition).sort_by("id")["id"].to_pylist()
        except InvalidInputError:
            found = None
        assert found == expected, condition
    for order in ("m, id", "m DESC, id", "s, id", "s DESC NULLS FIRST, id"):
        ordered = unchecked.query(f"SELECT id FROM delta.`{path}` ORDER BY {order}")
        scanned = table.scan(order_by=order, limit=4).to_table()
        assert scanned.column("id").to_pylist() == ordered.column("id").to_pylist(), order


@pytest.mark.protocol("B-62")
def test_the_reference_reads_intervals_that_were_changed_here(
    unchecked: Spark, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    unchecked.tell(
        path,
        "CREATE TABLE T (id INT, m INTERVAL MONTH, s INTERVAL DAY TO SECOND) USING delta",
        "INSERT INTO T VALUES (1, INTERVAL '6' MONTH, INTERVAL '1' DAY), (2, NULL, NULL)",
    )
    table = DeltaTable(path)
    with pytest.raises(InvalidProtocolError, match="intervalTypes"):
        table.update(updates={"id": "3"}, predicate="m = INTERVAL 6 MONTHS")


def test_queries_keep_the_type_of_months(unchecked: Spark, tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    unchecked.tell(
        theirs,
        "CREATE TABLE T (id INT, m INTERVAL YEAR TO MONTH) USING delta",
        "INSERT INTO T VALUES (1, INTERVAL '14' MONTH), (2, NULL), (3, INTERVAL '-3' MONTH)",
    )
    for number, query in enumerate(
        [
            "SELECT m FROM T",
            "SELECT x FROM (SELECT m AS x, id FROM T) WHERE id + 0 < 3",
            "SELECT min(m) AS a, max(m) AS b FROM T",
            "SELECT m FROM T UNION SELECT INTERVAL '1' YEAR",
            "WITH c AS (SELECT m FROM T) SELECT a.m FROM c a JOIN c b ON a.m = b.m",
        ]
    ):
        text = query.replace(" T", f" delta.`{theirs}`")
        made = [path.with_name(f"{path.name}{number}") for path in (theirs, mine)]
        unchecked.run(f"CREATE TABLE delta.`{made[0]}` USING delta AS {text}")
        sql(f"CREATE TABLE delta.`{made[1]}` USING delta AS {text}")
        expected, found = map(DeltaTable, made)
        assert found.schema() == expected.schema()
        rows = [
            str(sorted(map(str, one.to_pyarrow_table().to_pylist()))) for one in (found, expected)
        ]
        assert rows[0] == rows[1]
