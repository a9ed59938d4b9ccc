"""Frames without rows, and values that do not fit a window function."""

from __future__ import annotations

import re
from datetime import datetime

import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError

_ROWS = pa.table(
    {
        "id": [1, 2],
        "n": pa.array([3, 4], pa.int32()),
        "s": ["a", "b"],
        "at": [datetime(2024, 1, 1), datetime(2024, 1, 2)],  # noqa: DTZ001  # without a zone
    }
)
_DEFAULT = "its default, must have the type of the first, "


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("lag(n, 1, 'x')", f"the third argument of lag, {_DEFAULT}INT; found 'x'"),
        ("lead(at, 1, 'x')", f"the third argument of lead, {_DEFAULT}TIMESTAMP; found 'x'"),
        ("lag(n, 1, s)", f"the third argument of lag, {_DEFAULT}INT; found s with the value 'a'"),
        ("lag(n, 1, 99999999999)", f"the third argument of lag, {_DEFAULT}INT; found 99999999999"),
        ("lag(n, 'x')", "lag expects a whole number of rows, found 'x'; write lag(value, 1, def"),
        ("ntile('x')", "ntile expects a whole number of rows, found 'x'; write ntile(4)"),
        ("ntile(0)", "ntile expects a number of groups from 1 on"),
        ("nth_value(id, 1.5)", "nth_value expects a whole number of rows, found 1.5"),
    ],
)
def test_arguments_of_window_functions(call: str, answer: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(answer)):
        deltalog.sql(f"SELECT {call} OVER (ORDER BY id) FROM t", t=_ROWS).to_pylist()


@pytest.mark.parametrize(
    ("frame", "answer"),
    [
        ("id ROWS 1 FOLLOWING", "write ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"),
        ("id ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING", "write BETWEEN 1 PRECEDING AND 1 FOLL"),
        ("id ROWS BETWEEN CURRENT ROW AND 1 PRECEDING", "write BETWEEN 1 PRECEDING AND CURRENT"),
        ("id ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING", "write BETWEEN 1 FOLLOWING AND 2 FOLLOW"),
        ("id ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING", "write BETWEEN 2 PRECEDING AND 1 PREC"),
        ("id ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW", "cannot begin at UNBOUNDED FOLL"),
        ("id ROWS BETWEEN 1 PRECEDING AND UNBOUNDED PRECEDING", "cannot end at UNBOUNDED PREC"),
        ("id ROWS BETWEEN -1 PRECEDING AND CURRENT ROW", "from 0 on, found -1 PRECEDING"),
        ("id ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW", "from 0 on, found 1.5 PRECEDING"),
        ("id, n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "one expression of ORDER BY, found 2"),
        ("id RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW",
         "RANGE with an interval needs a date or a timestamp in ORDER BY, found an expression of "  # noqa: ISC004
         "type BIGINT"),
        ("at RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
         "RANGE with a number needs a number or a date in ORDER BY, found an expression of type "  # noqa: ISC004
         "TIMESTAMP"),
    ],
)  # fmt: skip
def test_frames(frame: str, answer: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(answer)):
        deltalog.sql(f"SELECT sum(id) OVER (ORDER BY {frame}) FROM t", t=_ROWS).to_pylist()


@pytest.mark.parametrize(
    "frame",
    [
        "ORDER BY id ROWS 1 PRECEDING",
        "ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
        "ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING",
        "ORDER BY id, n RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "ORDER BY id RANGE BETWEEN 1.5 PRECEDING AND 1 FOLLOWING",
        "ORDER BY at RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "w RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    ],
)
def test_frames_that_have_rows(frame: str) -> None:
    query = f"SELECT sum(id) OVER ({frame}) AS v FROM t WINDOW w AS (ORDER BY id)"
    assert len(deltalog.sql(query, t=_ROWS).to_pylist()) == 2


def test_casts_beside_a_default_are_not_its_problem() -> None:
    query = "SELECT lag(n, 1, 0) OVER (ORDER BY id), percentile(id, 'x') OVER () FROM t"
    with pytest.raises(InvalidInputError, match="percentile expects a fraction from 0 to 1"):
        deltalog.sql(query, t=_ROWS).to_pylist()
