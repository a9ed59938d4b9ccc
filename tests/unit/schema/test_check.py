from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError, UnsupportedTypeError
from deltalog.schema import (
    ArrayType,
    Field,
    MapType,
    StructType,
    UnknownType,
    check_new_schema,
)


def test_a_usual_schema_passes() -> None:
    inner = StructType([Field("x", "void"), Field("y", "long")])
    check_new_schema(
        StructType(
            [
                Field("a", "long"),
                Field("p", "date"),
                Field("v", "void"),
                Field("l", ArrayType(inner)),
                Field("variant", "variant"),
            ]
        ),
        ["P"],
    )


@pytest.mark.protocol("B-33", "D-38")
def test_names_that_differ_by_case_only() -> None:
    with pytest.raises(InvalidInputError, match=r"'a', 'A', 's\.x', 's\.X'; rename"):
        check_new_schema(
            StructType(
                [
                    Field("a", "long"),
                    Field("A", "long"),
                    Field("s", StructType([Field("x", "long"), Field("X", "date")])),
                ]
            )
        )


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "{", "}", "(", ")", "a\nb", "a\tb", "a=b"])
def test_names_that_need_column_mapping(name: str) -> None:
    schema = StructType([Field("s", ArrayType(StructType([Field(name, "long")])))])
    with pytest.raises(InvalidInputError, match="column mapping"):
        check_new_schema(schema)
    check_new_schema(schema, has_column_mapping=True)


@pytest.mark.protocol("B-37", "D-28")
@pytest.mark.parametrize(
    "field",
    [
        Field("l", ArrayType("void")),
        Field("m", MapType("string", "void")),
        Field("m", MapType("string", ArrayType("void"))),
        Field("s", StructType([Field("v", "void")])),
        Field("s", StructType()),
        Field("l", ArrayType(StructType([Field("v", "void")]))),
    ],
    ids=str,
)
def test_a_void_where_no_file_can_hold_it(field: Field) -> None:
    with pytest.raises(InvalidInputError, match=r"void|no field"):
        check_new_schema(StructType([Field("a", "long"), field]))


def test_unknown_and_nameless_columns() -> None:
    with pytest.raises(UnsupportedTypeError, match="'g'"):
        check_new_schema(StructType([Field("g", UnknownType("geometry"))]))
    with pytest.raises(InvalidInputError, match="no name"):
        check_new_schema(StructType([Field("", "long")]))


@pytest.mark.protocol("B-37", "D-28")
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["b"], "'b'"),
        (["a", "A"], "repeated"),
        (["s"], "of type struct"),
        (["v"], "of type void"),
        (["x"], "of type variant"),
        (["a", "s", "x"], "cannot partition by column 's'"),
    ],
)
def test_what_cannot_partition(columns: list[str], message: str) -> None:
    schema = StructType(
        [
            Field("a", "long"),
            Field("s", StructType([Field("y", "long")])),
            Field("v", "void"),
            Field("x", "variant"),
        ]
    )
    with pytest.raises(InvalidInputError, match=message):
        check_new_schema(schema, columns)


@pytest.mark.protocol("B-37")
def test_files_need_a_column_of_their_own() -> None:
    schema = StructType([Field("a", "long"), Field("b", "date"), Field("v", "void")])
    check_new_schema(schema, ["a"])
    with pytest.raises(InvalidInputError, match="all columns"):
        check_new_schema(schema, ["b", "a"])
