from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema import (
    ArrayType,
    Field,
    MapType,
    StructType,
    canonical_path_of,
    duplicates,
    find_field,
    leaf_columns,
    project,
    walk,
)

SCHEMA = StructType(
    [
        Field("Id", "long"),
        Field("a.b", "string"),
        Field("s", StructType([Field("X", "date"), Field("y", "double")])),
        Field("l", ArrayType(StructType([Field("e", "long")]))),
        Field("m", MapType("string", StructType([Field("v", "long")]))),
    ]
)


@pytest.mark.protocol("B-33", "D-38")
def test_names_ignore_case_and_keep_the_schemas_spelling() -> None:
    assert find_field(SCHEMA, "ID").name == "Id"
    assert canonical_path_of(SCHEMA, ("S", "x")) == ("s", "X")
    assert canonical_path_of(SCHEMA, "S.Y") == ("s", "y")


def test_a_name_with_a_dot_wins_over_a_path() -> None:
    assert canonical_path_of(SCHEMA, "A.B") == ("a.b",)


@pytest.mark.protocol("B-33")
def test_an_exact_name_wins_over_case() -> None:
    schema = StructType([Field("a", "long"), Field("A", "string")])
    assert find_field(schema, "A").type == find_field(StructType([Field("A", "string")]), "a").type
    with pytest.raises(InvalidInputError, match="ambiguous: it may be 'aB', 'Ab'"):
        find_field(StructType([Field("aB", "long"), Field("Ab", "long")]), "ab")


def test_paths_lead_through_containers() -> None:
    assert find_field(SCHEMA, "l.element.E").name == "e"
    assert canonical_path_of(SCHEMA, ("M", "VALUE", "V")) == ("m", "value", "v")
    assert not find_field(SCHEMA, "m.key").nullable


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("idd", "did you mean 'Id'"),
        ("s.xx", r"did you mean 's\.X'"),
        ("qqqq", "the columns are 'Id', 'a.b', 's', 'l', 'm'"),
        ("Id.x", "'Id' is of type long and has no field 'x'"),
        ("l.e", "has no field 'e'"),
    ],
)
def test_a_wrong_name_gets_a_hint(path: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        find_field(SCHEMA, path)


@pytest.mark.protocol("D-30")
def test_walking_visits_every_struct_field() -> None:
    assert [path for path, _ in walk(SCHEMA)] == [
        ("Id",),
        ("a.b",),
        ("s",),
        ("s", "X"),
        ("s", "y"),
        ("l",),
        ("l", "element", "e"),
        ("m",),
        ("m", "value", "v"),
    ]


def test_containers_are_leaves() -> None:
    assert [path for path, _ in leaf_columns(SCHEMA)] == [
        ("Id",),
        ("a.b",),
        ("s", "X"),
        ("s", "y"),
        ("l",),
        ("m",),
    ]


def test_projection_keeps_the_order_asked_for() -> None:
    assert str(project(SCHEMA, ["s.Y", "ID"])) == "struct<s:struct<y:double>,Id:long>"
    assert str(project(SCHEMA, ["s.y", "s.x"])) == "struct<s:struct<y:double,X:date>>"
    assert project(SCHEMA, ["s.y", "s"]).fields == (find_field(SCHEMA, "s"),)
    assert project(SCHEMA, ["l.element.e"]).fields == (find_field(SCHEMA, "l"),)
    with pytest.raises(InvalidInputError, match="'nope'"):
        project(SCHEMA, ["nope"])


@pytest.mark.protocol("B-33")
def test_duplicates_are_found_at_every_depth() -> None:
    inner = StructType([Field("x", "long"), Field("X", "long")])
    schema = StructType([Field("a", "long"), Field("A", ArrayType(inner))])
    assert duplicates(schema) == [("A",), ("A", "element", "X")]
    assert duplicates(SCHEMA) == []
