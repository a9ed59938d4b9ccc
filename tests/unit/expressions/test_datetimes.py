from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from deltalog.expressions import (
    evaluate,
    parse_sql,
    resolve,
)
from deltalog.schema import from_arrow_schema


def _values(sql: str, **columns: Any) -> list[Any]:
    data = pa.RecordBatch.from_pydict(columns)
    resolved = resolve(parse_sql(sql), from_arrow_schema(data.schema))
    return evaluate(resolved, data).to_pylist()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("d > '2024-01-01'", [True, False, None]),
        ("d + 1", [dt.date(2024, 2, 1), dt.date(1900, 1, 2), None]),
        ("d + INTERVAL 1 MONTH", [dt.date(2024, 2, 29), dt.date(1900, 2, 1), None]),
        ("ts > DATE'2024-01-01'", [True, False, None]),
        ("CAST(ts AS DATE)", [dt.date(2024, 1, 31), dt.date(1969, 12, 31), None]),
        ("ts - INTERVAL '1' SECOND < ts", [True, True, None]),
        ("ts = wall", [True, True, None]),
        ("CAST(ts AS STRING)", ["2024-01-31 23:59:59.5", "1969-12-31 23:59:59.999999", None]),
        ("CAST(ts AS BIGINT)", [1706745599, -1, None]),
        ("date_trunc('MONTH', wall) = '2024-01-01'", [True, False, None]),
    ],
)
def test_moments(sql: str, expected: list[Any]) -> None:
    texts = ["2024-01-31 23:59:59.5", "1969-12-31 23:59:59.999999", None]
    wall = pa.array(texts).cast(pa.timestamp("us"))
    columns = {
        "d": pa.array([dt.date(2024, 1, 31), dt.date(1900, 1, 1), None]),
        "wall": wall,
        "ts": wall.cast(pa.int64()).cast(pa.timestamp("us", "UTC")),
    }
    assert _values(sql, **columns) == expected
