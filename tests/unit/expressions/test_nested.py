from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.expressions.casts import cast, cast_nested, map_parts, nested_texts
from deltalog.schema import from_arrow_type, to_arrow_type
from deltalog.schema.types import DataType

LISTS: Any = pa.array([[1, None], None, [], [3]], pa.list_(pa.int32()))
MAPS: Any = pa.array(
    [[("a", 1)], None, [], [("b", None), ("c", 3)]], pa.map_(pa.string(), pa.int32())
)
STRUCTS: Any = pa.array(
    [{"x": 1, "y": "u"}, None, {"x": None, "y": None}],
    pa.struct([("x", pa.int32()), ("y", pa.string())]),
)


def texts_of(array: Any, _: DataType) -> list[str | None]:
    return [None if value is None else str(value) for value in array.to_pylist()]


@pytest.mark.parametrize("offset", [0, 1, 2])
@pytest.mark.parametrize(
    ("array", "to", "expected"),
    [
        (LISTS, pa.list_(pa.string()), [["1", None], None, [], ["3"]]),
        (
            MAPS,
            pa.map_(pa.string(), pa.int64()),
            [[("a", 1)], None, [], [("b", None), ("c", 3)]],
        ),
        (
            STRUCTS,
            pa.struct([("p", pa.string()), ("q", pa.string())]),
            [{"p": "1", "q": "u"}, None, {"p": None, "q": None}],
        ),
    ],
)
def test_every_part_is_converted(array: Any, to: Any, expected: list[Any], offset: int) -> None:
    """Slices too: their children begin before the first row."""
    sliced, target = array.slice(offset), from_arrow_type(to)
    found = cast_nested(sliced, from_arrow_type(array.type), target, cast)
    assert found.to_pylist() == expected[offset:]
    assert found.type == to_arrow_type(target)
    found.validate(full=True)


def test_only_types_of_one_kind_are_cast() -> None:
    with pytest.raises(TypeError, match="not nested alike"):
        cast_nested(LISTS, from_arrow_type(LISTS.type), from_arrow_type(MAPS.type), cast)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (LISTS, ["[1, null]", None, "[]", "[3]"]),
        (MAPS, ["{a -> 1}", None, "{}", "{b -> null, c -> 3}"]),
        (STRUCTS, ["{1, u}", None, "{null, null}"]),
    ],
)
def test_nested_values_as_spark_shows_them(array: Any, expected: list[str | None]) -> None:
    assert nested_texts(array, from_arrow_type(array.type), texts_of) == expected
    assert nested_texts(array.slice(1), from_arrow_type(array.type), texts_of) == expected[1:]


def test_entries_of_null_maps_are_left_out() -> None:
    offsets: Any = pa.array([0, 1, 2], pa.int32())
    hidden = pa.MapArray.from_arrays(
        offsets,
        pa.array(["seen", "hidden"]),
        pa.array([1, 2]),
        mask=pa.array([False, True]),
    )
    keys, items, lengths = map_parts(hidden)
    assert (keys.to_pylist(), items.to_pylist()) == (["seen"], [1])
    assert lengths.to_pylist() == [1, 0]
    keys, items, lengths = map_parts(hidden.slice(1))
    assert (keys.to_pylist(), items.to_pylist(), lengths.to_pylist()) == ([], [], [0])
