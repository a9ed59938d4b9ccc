"""Statistics of ours never make the reference skip a file that holds a wanted row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from tests.support.reference import Spark, select
from tests.support.reference_rows import rows_of

COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int32(),
    "d": pa.float64(),
    "f": pa.float32(),
    "s": pa.string(),
    "ts": pa.timestamp("us", "UTC"),
    "tn": pa.timestamp("us"),
    "da": pa.date32(),
    "de": pa.decimal128(38, 10),
    "n": pa.struct([pa.field("x", pa.int64()), pa.field("s", pa.string())]),
    "b": pa.bool_(),
}
NAN, INFINITY = float("nan"), float("inf")
LONG = "x" * 40


def _row(number: int, value: float, text: str | None, micros: int, digits: str) -> dict[str, Any]:
    moment = datetime(2024, 1, 1, 0, 0, 0, micros)  # noqa: DTZ001  # tells no zone on purpose
    return {
        "id": number,
        "d": value,
        "f": value,
        "s": text,
        "ts": moment.replace(tzinfo=UTC),
        "tn": moment,
        "da": date(2024, 1, 1 + number),
        "de": Decimal(digits),
        "n": {"x": number * 2**40, "s": text},
        "b": number % 2 == 0,
    }


FILES: tuple[list[dict[str, Any]], ...] = (
    [_row(0, NAN, "a", 0, "0"), _row(1, 1.0, LONG + "a", 999, "-1.5")],
    [_row(2, NAN, LONG + "\U0001f600", 999999, "1234567890123456789012345678.0123456789")],
    [_row(3, -0.0, "\uffff" * 35, 1000, "0.0000000001"), _row(4, 5.5, None, 500, "2")],
    [_row(5, INFINITY, "\U0010ffff" * 40, 1, "-1234567890123456789012345678"), {"id": 6}],
    [{"id": 7}, {"id": 8, "s": "", "d": -INFINITY, "f": -INFINITY}],
)
CONDITIONS = (
    "d = double('NaN')",
    "d > 1.0",
    "d > double('Infinity')",
    "d = 0.0",
    "d < -1e300",
    "f >= 5.5",
    f"s > '{LONG}'",
    f"s = '{LONG}a'",
    f"s >= '{LONG}\U0001f600'",
    "s > '\uffff'",
    "s > '\U0010ffff'",
    "s LIKE 'xxx%'",
    "s = ''",
    "s IS NULL",
    "ts = TIMESTAMP'2024-01-01 00:00:00.000999'",
    "ts > TIMESTAMP'2024-01-01 00:00:00.999'",
    "ts >= TIMESTAMP'2024-01-01 00:00:00.999999'",
    "tn = TIMESTAMP_NTZ'2024-01-01 00:00:00.000001'",
    "tn > TIMESTAMP_NTZ'2024-01-01 00:00:00.999'",
    "da >= DATE'2024-01-05'",
    "de > 1234567890123456789012345678BD",
    "de = CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38,10))",
    "de < -1BD",
    "de = CAST('0.0000000001' AS DECIMAL(38,10))",
    "n.x > 3000000000000",
    f"n.s > '{LONG}'",
    "n.s IS NULL",
    "b",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of ours for each group of rows."""
    path = tmp_path_factory.mktemp("skipping") / "table"
    for rows in FILES:
        write_deltalake(path, pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS)), mode="append")
    return path


@pytest.fixture(scope="module")
def without_skipping(spark: Spark, table: Path) -> Iterator[dict[str, list[str]]]:
    """What each condition gives when every file is read."""
    spark.run("SET spark.databricks.delta.stats.skipping = false")
    yield _answers(spark, table)
    spark.run("SET spark.databricks.delta.stats.skipping = true")


@pytest.mark.protocol("STAT-05", "STAT-06", "STAT-07", "D-12", "D-13", "D-15")
def test_the_reference_finds_every_row(
    spark: Spark, table: Path, without_skipping: dict[str, list[str]]
) -> None:
    spark.run("SET spark.databricks.delta.stats.skipping = true")
    assert sum(map(len, without_skipping.values())) > len(CONDITIONS)
    assert _answers(spark, table) == without_skipping


def _answers(spark: Spark, path: Path) -> dict[str, list[str]]:
    statements = [f"{select(path, columns='id')} WHERE {condition}" for condition in CONDITIONS]
    found = spark.queries(statements)
    return dict(zip(CONDITIONS, map(rows_of, found), strict=True))
