from __future__ import annotations

import pytest

from deltalog.errors import InvalidMetadataError
from deltalog.protocol.features.char_varchar import length_limits
from deltalog.schema import Field, StructType

KEY = "__CHAR_VARCHAR_TYPE_STRING"


def limits(text: str) -> dict[str, str]:
    schema = StructType([Field("c", "string", metadata={KEY: text})])
    return {".".join(limit.path): limit.type_name for limit in length_limits(schema)}


@pytest.mark.protocol("D-39")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("char(3)", {"c": "char(3)"}),
        ("varchar(10)", {"c": "varchar(10)"}),
        ("VARCHAR( 4 )", {"c": "varchar(4)"}),
        ("array<character(2)>", {"c.element": "char(2)"}),
        ("map<varchar(1),array<char(2)>>", {"c.key": "varchar(1)", "c.value.element": "char(2)"}),
        (
            "struct<x:char(2),d:decimal(3, 1),`a b` varchar(5) not null,s:struct<y:char(1)>>",
            {"c.x": "char(2)", "c.a b": "varchar(5)", "c.s.y": "char(1)"},
        ),
        ("string", {}),
    ],
)
def test_limits_are_found_at_any_depth(text: str, expected: dict[str, str]) -> None:
    assert limits(text) == expected


def test_a_field_may_have_its_own_entry() -> None:
    inner = StructType([Field("x", "string", metadata={KEY: "char(2)"})])
    (found,) = length_limits(StructType([Field("s", inner)]))
    assert (found.path, found.length) == (("s", "x"), 2)


@pytest.mark.parametrize("text", ["", "char", "char(x)", "array<char(2)", "char(2) x", "struct<>>"])
def test_what_is_no_type_is_an_error(text: str) -> None:
    with pytest.raises(InvalidMetadataError, match="column 'c'"):
        limits(text)
