from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from tests.support.sql import values_of


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("arr[0]", [None, 1, None, 3]),
        ("element_at(arr, -1)", [None, 2, None, 3]),
        ("get(arr, 1)", [None, 2, None, None]),
        ("try_element_at(arr, 2)", [None, 2, None, None]),
        ("size(arr)", [None, 2, None, 1]),
        ("array_contains(arr, 2)", [None, True, None, False]),
        ("m['k']", [1, None, None, None]),
        ("m.k", [1, None, None, None]),
        ("map_keys(m)", [["k"], ["j"], None, []]),
        ("s.x", [None, 5, None, 6]),
        ("s['X']", [None, 5, None, 6]),
        ("s.inner.y", [None, "q", None, None]),
        ("structs[0].v", [7, None, None, 8]),
        ("s IS NULL", [True, False, True, False]),
        ("s = s", [None, True, None, True]),
        ("arr = array(1, 2)", [None, True, None, False]),
        ("CAST(arr AS array<string>)", [None, ["1", "2"], None, ["3"]]),
        ("CAST(s AS string)", [None, "{5, {q}}", None, "{6, null}"]),
    ],
)
@pytest.mark.parametrize("offset", [0, 1])
def test_parts_of_nested_values(sql: str, expected: list[Any], offset: int) -> None:
    inner = pa.struct([("y", pa.string())])
    structs = pa.list_(pa.struct([("v", pa.int32())]))
    columns = {
        "arr": pa.array([None, [1, 2], None, [3]], pa.list_(pa.int32())),
        "m": pa.array([[("k", 1)], [("j", 2)], None, []], pa.map_(pa.string(), pa.int32())),
        "s": pa.array(
            [None, {"x": 5, "inner": {"y": "q"}}, None, {"x": 6, "inner": None}],
            pa.struct([("x", pa.int32()), ("inner", inner)]),
        ),
        "structs": pa.array([[{"v": 7}], [None], None, [{"v": 8}]], structs),
    }
    data = {name: array.slice(offset) for name, array in columns.items()}
    assert values_of(sql, **data) == expected[offset:]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("coalesce(NULL, array('a'))", ["a"]),
        ("coalesce(arr, array('b'))", ["b"]),
        ("greatest(NULL, array('a'))", ["a"]),
        ("least(arr, array('a'), array('b'))", ["a"]),
        ("CASE WHEN true THEN array('a') ELSE arr END", ["a"]),
        ("map(array('a'), 1)", [(["a"], 1)]),
    ],
)
def test_values_that_may_be_null_inside_and_those_that_may_not(sql: str, expected: Any) -> None:
    assert values_of(sql, arr=pa.array([None], pa.list_(pa.string()))) == [expected]


def test_keys_of_a_map_are_compared_by_what_is_in_them() -> None:
    with pytest.raises(InvalidInputError, match="must be different"):
        values_of("map(array('a'), 1, array('a'), 2)", n=pa.array([1]))
