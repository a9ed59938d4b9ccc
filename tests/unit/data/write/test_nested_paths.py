"""Parts of nested columns that must not be NULL, and the rows of their values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.write.encode import values_at
from deltalog.errors import (
    ConstraintViolationError,
)
from deltalog.schema import ArrayType, Field, MapType, StructType
from tests.support.writes import enforced, table

PART = StructType([Field("x", "long", nullable=False), Field("y", "long")])


NOT_NULL = [
    (Field("a", "long", nullable=False), [1, None], "a"),
    (Field("a", PART), [{"x": None, "y": 1}], "a.x"),
    # As the reference has it: a field that must be there makes its parent one, too.
    (Field("a", PART), [None, {"x": 1, "y": None}], "a.x"),
    (Field("a", ArrayType("long", contains_null=False)), [[1], [None, 2, None]], "a.element"),
    (Field("a", ArrayType(PART)), [[None, {"x": 1, "y": 1}], [{"x": None, "y": 1}]], "a.element.x"),
    (Field("a", MapType("string", "long", value_contains_null=False)), [[("k", None)]], "a.value"),
]


@pytest.mark.protocol("INV-04")
@pytest.mark.parametrize(("field", "values", "name"), NOT_NULL, ids=str)
def test_null_is_refused_at_any_depth(field: Field, values: list[Any], name: str) -> None:
    kind = pa.map_(pa.string(), pa.int64()) if isinstance(field.type, MapType) else None
    data = pa.table({"a": pa.array(values, kind)})
    with pytest.raises(ConstraintViolationError, match=f"NOT NULL of column '{name}'") as caught:
        enforced(table(field), data)
    assert caught.value.num_rows == 1


def test_null_elements_need_no_fields() -> None:
    configuration = table(Field("a", ArrayType(PART)))
    rows = enforced(configuration, {"a": [[None, {"x": 1, "y": None}], None]})
    assert rows == {"a": [[None, {"x": 1, "y": None}], None]}


@pytest.mark.parametrize("start", range(5))
def test_values_of_maps_have_their_rows_wherever_a_batch_begins(start: int) -> None:
    rows = [[("a", 1), ("b", None)], None, [], [("c", 3)], [("d", 4)]]
    maps: Any = pa.array(rows, pa.map_(pa.string(), pa.int64())).slice(start)
    left = [
        (number, key, value) for number, row in enumerate(rows[start:]) for key, value in row or ()
    ]
    for at, name in ((1, "key"), (2, "value")):
        values, numbers = values_at(maps, [name])
        assert values.to_pylist() == [entry[at] for entry in left]
        assert numbers is not None
        assert numbers.to_pylist() == [entry[0] for entry in left]
