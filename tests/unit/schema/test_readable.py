"""Values that Python lacks are shown, or refused by name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema.check import python_values, readable_rows, readable_tuples, shown_values


def test_rows_for_people_have_all_values() -> None:
    rows = pa.table(
        {
            "fine": pa.array([5, None], pa.timestamp("ns")),
            "late": pa.array([2**60, 0], pa.timestamp("us")),
            "n": [1, 2],
        }
    )
    late = "+38504-08-17 21:30:06.846976"
    assert readable_rows(rows) == [
        {"fine": "1970-01-01 00:00:00.000000005", "late": late, "n": 1},
        {"fine": None, "late": dt.datetime(1970, 1, 1), "n": 2},  # noqa: DTZ001  # no zone
    ]
    early = pa.scalar(-735_525, pa.date32())
    instant = pa.timestamp("us", "UTC")
    maps: Any = pa.MapArray
    parts: dict[str, pa.Array[Any]] = {
        "s": pa.StructArray.from_arrays(
            [pa.array([2**60, None], instant), pa.array([1, 2])], ["late", "n"]
        ),
        "l": pa.ListArray.from_arrays([0, 2, 2], pa.array([early, None], pa.date32())),
        "m": maps.from_arrays([0, 1, 1], ["k"], pa.array([early], pa.date32())),
        "f": pa.StructArray.from_arrays([pa.array([5, None], pa.timestamp("ns"))], ["fine"]),
        "t": pa.ListArray.from_arrays([0, 1, 1], pa.array([b"\xff"]).view(pa.string())),
    }
    assert readable_rows(pa.table(parts)) == [
        {
            "s": {"late": f"{late}+00:00", "n": 1},
            "l": ["-0044-03-15", None],
            "m": [("k", "-0044-03-15")],
            "f": parts["f"][0].as_py(),
            "t": ["…"],
        },
        {"s": {"late": None, "n": 2}, "l": [], "m": [], "f": {"fine": None}, "t": []},
    ]


def test_rows_are_shown_whatever_bytes_their_texts_are() -> None:
    texts = pa.array([b"\xff"]).view(pa.string())
    assert readable_rows(pa.table({"s": texts, "id": [1]})) == [{"s": "…", "id": 1}]


def test_columns_may_have_the_same_name() -> None:
    twice = pa.Table.from_arrays([pa.array([1, 2]), pa.array(["a", None])], ["x", "x"])
    assert list(readable_tuples(twice)) == [(1, "a"), (2, None)]


def test_what_python_lacks_is_refused_with_what_to_do() -> None:
    assert python_values(pa.array([1, None]), "column 'x'", "cast it") == [1, None]
    late = pa.array([2**60], pa.timestamp("us"))
    with pytest.raises(InvalidInputError, match=r"values of column 'x' to Python.*; cast it"):
        python_values(late, "column 'x'", "cast it")


def test_rows_of_messages_have_no_python_calls() -> None:
    row = {
        "day": dt.date(2026, 1, 2),
        "at": [dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)],
        "price": Decimal("1.50"),
        "n": 1,
        "name": None,
    }
    assert shown_values([row]) == [
        {
            "day": "2026-01-02",
            "at": ["2026-01-02 03:00:00+00:00"],
            "price": "1.50",
            "n": 1,
            "name": None,
        }
    ]
