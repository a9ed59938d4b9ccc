from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    evaluate,
    parse_sql,
    resolve,
)
from deltalog.expressions.comparing import like
from deltalog.schema import from_arrow_schema

NAN = math.nan


def _values(sql: str, **columns: Any) -> list[Any]:
    data = pa.RecordBatch.from_pydict(columns)
    resolved = resolve(parse_sql(sql), from_arrow_schema(data.schema))
    return evaluate(resolved, data).to_pylist()


@pytest.mark.parametrize("text", ["a.b", "a+b", "[x]", "a\\b", "(a|b)", "^$", "{1}", "#-&~", "é"])
def test_like_takes_plain_text_as_it_is(text: str) -> None:
    values = pa.array([text, "y" + text, text + "z", "zzz", None])
    pattern = text.replace("\\", "\\\\")
    expected = {
        pattern: [True, False, False, False, None],
        f"%{pattern}": [True, True, False, False, None],
        f"{pattern}%": [True, False, True, False, None],
        f"%{pattern}%": [True, True, True, False, None],
        f"_{pattern}": [False, True, False, False, None],
        f"{pattern}_%": [False, False, True, False, None],
    }
    for shape, rows in expected.items():
        assert like(values, shape, "\\", ignore_case=False).to_pylist() == rows


@pytest.mark.parametrize(
    ("pattern", "escape"), [("a\\", "\\"), ("\\a", "\\"), ("#x", "#"), ("a", "##")]
)
def test_an_escape_stands_before_what_needs_one(pattern: str, escape: str) -> None:
    with pytest.raises(InvalidInputError, match=r"escape character|ESCAPE"):
        like(pa.array(["a"]), pattern, escape, ignore_case=False)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x = y", [True, False, False, None, None, True]),
        ("x <> y", [False, True, True, None, None, False]),
        ("x < y", [False, False, True, None, None, False]),
        ("x <= y", [True, False, True, None, None, True]),
        ("x > y", [False, True, False, None, None, False]),
        ("x >= y", [True, True, False, None, None, True]),
        ("x <=> y", [True, False, False, False, False, True]),
        ("x IN (y)", [True, False, False, None, None, True]),
        ("isnan(x)", [True, True, False, True, False, False]),
        ("nanvl(x, 7)", [7, 7, 1, 7, None, 0]),
    ],
)
def test_nan_is_equal_to_itself_and_above_all(
    kind: pa.DataType, sql: str, expected: list[bool | None]
) -> None:
    x = pa.array([NAN, NAN, 1.0, NAN, None, 0.0], kind)
    y = pa.array([NAN, math.inf, NAN, None, NAN, -0.0], kind)
    assert _values(sql, x=x, y=y) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x = double('NaN')", [True, False, None]),
        ("x IN (double('NaN'), 5)", [True, False, None]),
        ("x > 5", [True, False, None]),
        ("x > double('Infinity')", [True, False, None]),
        ("x NOT IN (0.0, NULL)", [None, False, None]),
    ],
)
def test_nan_beside_constants(sql: str, expected: list[bool | None]) -> None:
    assert _values(sql, x=pa.array([NAN, -0.0, None])) == expected
