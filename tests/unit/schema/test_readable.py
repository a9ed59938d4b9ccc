"""Values that Python lacks are shown, or refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema.readable import python_values, readable_rows, readable_tuples


def test_rows_for_people_have_all_values() -> None:
    rows = pa.table(
        {
            "fine": pa.array([5, None], pa.timestamp("ns")),
            "late": pa.array([2**60, 0], pa.timestamp("us")),
            "n": [1, 2],
        }
    )
    late = f"<value out of range: {2**60}>"
    assert readable_rows(rows) == [
        {"fine": "1970-01-01 00:00:00.000000005", "late": late, "n": 1},
        {"fine": None, "late": "1970-01-01 00:00:00.000000", "n": 2},
    ]
    nested = pa.table(
        {"s": pa.array([{"late": 2**60}] * 2, pa.struct([rows.schema.field("late")]))}
    )
    assert readable_rows(nested) == [{"s": "…"}, {"s": "…"}]


def test_rows_are_shown_whatever_bytes_their_texts_are() -> None:
    texts = pa.array([b"\xff"]).view(pa.string())
    assert readable_rows(pa.table({"s": texts, "id": [1]})) == [{"s": "…", "id": 1}]


def test_columns_may_have_the_same_name() -> None:
    twice = pa.Table.from_arrays([pa.array([1, 2]), pa.array(["a", None])], ["x", "x"])
    assert list(readable_tuples(twice)) == [(1, "a"), (2, None)]


def test_what_python_lacks_is_refused_with_what_to_do() -> None:
    assert python_values(pa.array([1, None]), "column 'x'", "cast it") == [1, None]
    late = pa.array([2**60], pa.timestamp("us"))
    with pytest.raises(InvalidInputError, match=r"values of column 'x' as Python's.*; cast it"):
        python_values(late, "column 'x'", "cast it")
