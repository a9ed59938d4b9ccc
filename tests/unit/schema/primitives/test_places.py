"""Names, values and boxes of geometries and geographies."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog.schema import Field, PrimitiveType, StructType, parse_schema
from deltalog.schema.primitives import type_of_extension
from deltalog.schema.primitives.places import (
    WkbExtensionType,
    box,
    check_wkb,
    corner,
    name_in_sql,
    wkb_metadata,
)
from tests.support.places import collection, line, point, polygon


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("geometry", "geometry(OGC:CRS84)"),
        ("geometry(4326)", "geometry(OGC:CRS84)"),
        ("geometry(3857)", "geometry(EPSG:3857)"),
        ("geometry(0)", "geometry(SRID:0)"),
        ("geometry( srid:9999 )", "geometry(srid:9999)"),
        ("geometry(projjson:my.property)", "geometry(projjson:my.property)"),
        ("geography", "geography(OGC:CRS84, spherical)"),
        ("geography(OGC:CRS84,vincenty)", "geography(OGC:CRS84, vincenty)"),
        ("geography(OGC:CRS84, SPHERICAL)", "geography(OGC:CRS84, SPHERICAL)"),
        ("geography(4326)", "geography(OGC:CRS84, spherical)"),
    ],
)
def test_a_type_has_one_name(given_name: str, name: str) -> None:
    assert PrimitiveType(given_name).type == name


def test_parameters_are_the_system_and_the_algorithm() -> None:
    assert PrimitiveType("geography").parameters == ("OGC:CRS84", "spherical")
    assert PrimitiveType("geometry").parameters == ("OGC:CRS84",)


@pytest.mark.parametrize("name", ["geography(OGC:CRS84, straight)", "geometry(a, spherical)"])
def test_an_algorithm_of_the_future_leaves_the_schema_readable(name: str) -> None:
    field = {"name": "g", "type": name, "nullable": True, "metadata": {}}
    schema = parse_schema(json.dumps({"type": "struct", "fields": [field]}))
    assert str(schema.fields[0].type) == name


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("geometry(OGC:CRS84)", "GEOMETRY(4326)"),
        ("geometry(EPSG:3857)", "GEOMETRY(3857)"),
        ("geometry(SRID:0)", "GEOMETRY(0)"),
        ("geometry(srid:77)", "GEOMETRY(srid:77)"),
        ("geography(OGC:CRS84, spherical)", "GEOGRAPHY(4326)"),
    ],
)
def test_sql_has_numbers_of_systems(name: str, sql: str) -> None:
    assert name_in_sql(name) == sql


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("geometry(OGC:CRS84)", {"crs": "OGC:CRS84", "crs_type": "authority_code"}),
        ("geometry(SRID:0)", {"crs": "SRID:0"}),
        (
            "geography(OGC:CRS84, SPHERICAL)",
            {"crs": "OGC:CRS84", "crs_type": "authority_code", "edges": "spherical"},
        ),
    ],
)
def test_geoarrow_is_told_of_a_type(name: str, told: dict[str, str]) -> None:
    kind = PrimitiveType(name)
    field = Field("g", kind).to_arrow()
    assert field.type == pa.binary()
    assert field.metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    assert json.loads(field.metadata[b"ARROW:extension:metadata"]) == told
    back = Field.from_arrow(field).type
    assert str(back).lower() == name.lower()


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("", "geometry(SRID:0)"),
        ('{"crs": null}', "geometry(SRID:0)"),
        ('{"edges": "karney", "crs": "OGC:CRS84"}', "geography(OGC:CRS84, karney)"),
        ('{"crs": {"id": {"authority": "EPSG", "code": 2056}}}', "geometry(EPSG:2056)"),
        ('{"crs": {"type": "GeographicCRS"}}', "geometry(SRID:ANY)"),
        ('{"edges": "bent"}', None),
        ("[]", None),
        ("no JSON", None),
    ],
)
def test_what_geoarrow_tells(told: str, name: str | None) -> None:
    assert type_of_extension("geoarrow.wkb", told) == name
    assert type_of_extension("geoarrow.wkt", told) is None


def test_nested_fields_are_told_of_too() -> None:
    schema = StructType([Field("a", PrimitiveType("geometry"))])
    inner = schema.to_arrow()
    nested = StructType.from_arrow(pa.schema([("s", pa.struct(list(inner)))]))
    assert nested.fields[0].type == schema
    lists = StructType.from_arrow(pa.schema([("l", pa.list_(inner.field(0)))]))
    assert str(lists.fields[0].type) == "array<geometry(OGC:CRS84)>"


POINTS = [(1.5, 2.0), (-3.0, 7.25), (0.0, 0.0)]
EVERYTHING = ((-3.0, 0.0), (1.5, 7.25))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("make", "dimensions"),
    [("points", "XY"), ("line", "XY"), ("polygon", "XY"), ("multipoint", "XY"), ("deep", "XY"),
     ("points", "XYZ"), ("line", "XYM"), ("polygon", "XYZM")],
)  # fmt: skip
def test_the_box_of_geometries(make: str, dimensions: str, order: str) -> None:
    more = (99.0,) * (len(dimensions) - 2)
    places = [(*place, *more) for place in POINTS]
    form = {"order": order, "dimensions": dimensions}
    made: dict[str, Any] = {
        "points": lambda: [point(*place, **form) for place in places],
        "line": lambda: [line(*places, **form)],
        "polygon": lambda: [polygon(places[:2], places[2:], **form), polygon(**form)],
        "multipoint": lambda: [
            collection(*(point(*place, order=order) for place in places), kind=4, order=order)
        ],
        "deep": lambda: [
            collection(collection(line(*places[:2])), point(*places[2]), order=order),
            None,
        ],
    }
    assert box(pa.array(made[make](), pa.binary())) == EVERYTHING


def test_what_has_no_place_has_no_box() -> None:
    assert box(pa.array([], pa.binary())) is None
    assert box(pa.array([None], pa.binary())) is None
    assert box(pa.array([point(), polygon(), collection()], pa.binary())) is None
    assert box(pa.array([point(), point(1, 2)], pa.binary())) == ((1.0, 2.0), (1.0, 2.0))
    assert box(pa.array([point(math.inf, 2)], pa.binary())) == ((math.inf, 2.0), (math.inf, 2.0))


COORDINATES = st.floats(allow_nan=False, width=64)
PLACES = st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=8)


@given(st.lists(PLACES, min_size=1, max_size=4), st.booleans(), st.integers(0, 3))
def test_a_box_covers_every_point(
    rows: list[list[tuple[float, float]]], lines: bool, cut: int
) -> None:
    flat = [place for row in rows for place in row]
    values = [line(*row) for row in rows] if lines else [point(*place) for place in flat]
    array = pa.array([None] * cut + values, pa.binary()).slice(cut)
    xs, ys = zip(*flat, strict=True)
    assert box(array) == ((min(xs), min(ys)), (max(xs), max(ys)))
    assert box(pa.chunked_array([array, array])) == box(array)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "ISO WKB"),
        (b"POINT(1 2)", "ISO WKB"),
        (b"\x01\x01\x00\x00\x20\xe6\x10\x00\x00", "EWKB"),
        (b"\x01\x63\x00\x00\x00", "kind 99"),
    ],
)
def test_other_bytes_are_no_geometry(value: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_wkb(pa.array([point(1, 2), None, value], pa.binary()))
    check_wkb(pa.array([point(1, 2), line((1, 2), (3, 4), order=">"), None], pa.binary()))


@pytest.mark.parametrize(
    "value",
    [line((1, 2), (3, 4))[:-1], polygon([(1, 2), (3, 4)])[:-8], point(1, 2) + b"\0",
     collection(point(1, 2), order=">")[:-30], line((1, 2))[:5]],
)  # fmt: skip
def test_a_torn_geometry_has_no_box(value: bytes) -> None:
    with pytest.raises(ValueError, match="ISO WKB"):
        box(pa.array([value], pa.binary()))


def test_collections_are_not_endless() -> None:
    deep = point(1, 2)
    for _ in range(40):
        deep = collection(deep)
    with pytest.raises(ValueError, match="levels"):
        box(pa.array([deep], pa.binary()))


def test_a_corner_is_a_point_in_words() -> None:
    assert corner((-122.419, 37.774)) == "POINT(-122.419 37.774)"


def test_the_type_of_files_goes_to_other_processes() -> None:
    kind = WkbExtensionType(wkb_metadata("OGC:CRS84"))
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert hash(kind) == hash(WkbExtensionType(wkb_metadata("OGC:CRS84")))
