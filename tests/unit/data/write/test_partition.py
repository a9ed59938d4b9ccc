from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.write.open_files import split
from deltalog.errors import InvalidInputError
from deltalog.schema import Field


def groups(data: dict[str, Any], *fields: Field) -> dict[tuple[str | None, ...], list[Any]]:
    batch = pa.record_batch(data)
    return {
        group.values: list(range(batch.num_rows)) if group.rows is None else group.rows.to_pylist()
        for group in split(batch, fields)
    }


@pytest.mark.protocol("CONS-02", "ADD-12")
def test_rows_are_grouped_by_all_columns() -> None:
    data = {"a": [1, 2, 1, None, 1], "b": ["x", "x", "y", "x", "x"]}
    assert groups(data, Field("a", "long"), Field("b", "string")) == {
        ("1", "x"): [0, 4], ("2", "x"): [1], ("1", "y"): [2], (None, "x"): [3],
    }  # fmt: skip


@pytest.mark.protocol("D-07", "PART-01")
def test_an_empty_text_is_null() -> None:
    assert groups({"s": ["", None, "a", ""]}, Field("s", "string")) == {
        (None,): [0, 1, 3], ("a",): [2],
    }  # fmt: skip


@pytest.mark.protocol("PART-02", "PART-03", "PART-05", "D-08")
@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        ("double", [1.0, float("nan"), float("inf"), float("nan")], ["1.0", "NaN", "Infinity"]),
        ("decimal(5,2)", pa.array([Decimal("1.5")], pa.decimal128(5, 2)), ["1.50"]),
        ("boolean", [True, False], ["true", "false"]),
        (
            "timestamp",
            pa.array([datetime(2024, 1, 1, tzinfo=UTC)]),
            ["2024-01-01T00:00:00.000000Z"],
        ),
        ("binary", [b"\x01"], ["\x01"]),
    ],
)
def test_values_of_every_type_have_their_text(kind: str, values: Any, texts: list[str]) -> None:
    assert [key[0] for key in groups({"x": values}, Field("x", kind))] == texts


def test_one_partition_takes_the_batch_as_it_is() -> None:
    (group,) = split(pa.record_batch({"a": [1, 1]}), [Field("a", "long")])
    assert group.rows is None


def test_no_rows_have_no_partition() -> None:
    assert split(pa.record_batch({"a": pa.array([], pa.int64())}), [Field("a", "long")]) == []


@pytest.mark.protocol("D-09")
def test_a_value_without_a_text_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="partition column 'b'"):
        groups({"b": [b"\xff"]}, Field("b", "binary"))
