"""SQL expressions, evaluated for the rows of given columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.expressions import evaluate, parse_sql, resolve
from deltalog.schema import from_arrow_schema

if TYPE_CHECKING:
    from typing import Any


def values_of(sql: str, **columns: Any) -> list[Any]:
    """The value of an expression in each row."""
    rows = pa.RecordBatch.from_pydict(columns)
    return evaluate(resolve(parse_sql(sql), from_arrow_schema(rows.schema)), rows).to_pylist()
