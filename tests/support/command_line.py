"""The command line, called as a function."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from typer.testing import CliRunner, Result

from deltalog._util.json import loads
from deltalog.cli import app

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", "b,c", None],
        "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
        "day": pa.array([date(2024, 1, 1)] * 3),
        "price": pa.array([Decimal("1.50")] * 3, pa.decimal128(9, 2)),
        "raw": pa.array([b"\xff", b"", None], pa.binary()),
        "part": pa.array([{"x": 1.5, "y": [1]}, {"x": float("nan"), "y": None}, None]),
    }
)


def run(*arguments: object, code: int = 0) -> Result:
    """Call it, and expect an exit code."""
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == code, (found.output, found.exception)
    return found


def lines(*arguments: object, code: int = 0) -> list[Any]:
    """Call it for lines of JSON."""
    found = run(*arguments, "--format", "json", code=code)
    return [loads(line.encode(), "output") for line in found.stdout.splitlines()]
