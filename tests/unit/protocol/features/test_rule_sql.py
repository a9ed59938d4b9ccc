"""Rules of tables as delta-rs stores them are read; what Spark could mean otherwise is refused."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import evaluate, resolve
from deltalog.expressions.nodes import as_calls
from deltalog.protocol.features.rule_sql import in_words_of_spark, is_of_delta_rs, parse_rule
from deltalog.schema import Field, StructType, VariantType

SCHEMA = StructType(
    [
        Field("homeTeam", "long"),
        Field("awayTeam", "long"),
        Field("fullName", "string"),
        Field("Open", "string"),
        Field("kind", "string"),
        Field("id", "long"),
        Field("at", "timestamp"),
        Field("noon", "timestamp_ntz"),
        Field("2024-01-01", "date"),
        Field("s", StructType([Field("a", "long"), Field("t", StructType([Field("b", "long")]))])),
    ]
)
MOMENT = dt.datetime(2024, 1, 1, 0, 0, 0, 500000)  # noqa: DTZ001  # it has none


def _read(text: str) -> str:
    return as_calls(parse_rule(text, SCHEMA))


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        ('"homeTeam" > 0', "`homeTeam` > 0"),
        ('"homeTeam" > "awayTeam" AND id > 0', "`homeTeam` > `awayTeam` AND id > 0"),
        ('"homeTeam" > id', "`homeTeam` > id"),
        ('NOT "homeTeam" + id > 3', "NOT `homeTeam` + id > 3"),
        ('"fullName" != \'x\' OR "fullName" IS NULL', "`fullName` <> 'x' OR `fullName` IS NULL"),
        ("length(\"fullName\") > 3 AND kind = 'x'", "length(`fullName`) > 3 AND kind = 'x'"),
        ("\"homeTeam\" > 0 AND kind = 'id'", "`homeTeam` > 0 AND kind = 'id'"),
        ('"s"."a" > 0', "s.a > 0"),
        ('"fullName" LIKE "a%"', "`fullName` LIKE 'a%'"),
        ("get_field(s, 'a') > 0", "s.a > 0"),
        ("get_field(get_field(\"s\", 't'), 'b') > 0", "s.t.b > 0"),
        ('kind = "other"', "kind = 'other'"),
    ],
)
def test_words_of_delta_rs_are_read(stored: str, meant: str) -> None:
    assert _read(stored) == _read(meant)


@pytest.mark.parametrize(
    "text",
    [
        'kind = "Open"',
        'kind IN ("Open", "shut")',
        "concat(\"Open\", kind) = 'x'",
        'cast("Open" as string) < id',
        '"2024-01-01" < at',
        '"open" < id',
        '"Open" < missing',
    ],
)
def test_a_text_that_could_be_meant_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="double quotes mean a string"):
        parse_rule(text, SCHEMA)


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        ("noon", "arrow_cast('2024-01-01T00:00:00.500000', 'Timestamp(Microsecond, None)')"),
        ("noon", "arrow_cast('2024-01-01T00:00:00.500000000', 'Timestamp(Nanosecond, None)')"),
        ("at", "arrow_cast('2024-01-01T00:00:00.5', 'Timestamp(Microsecond, Some(\"UTC\"))')"),
    ],
)
def test_moments_of_delta_rs_are_read(column: str, stored: str) -> None:
    resolved = resolve(parse_rule(f"{column} = {stored}", SCHEMA), SCHEMA)
    zone = "UTC" if column == "at" else None
    values = pa.array([MOMENT, MOMENT + dt.timedelta(microseconds=1)], pa.timestamp("us", zone))
    assert evaluate(resolved, pa.table({column: values})).to_pylist() == [True, False]


@pytest.mark.parametrize(
    "stored",
    [
        "arrow_cast('2024-01-01T00:00:00.123456789', 'Timestamp(Nanosecond, None)')",
        "arrow_cast('2024', 'Date32')",
        "arrow_cast(id, 'Timestamp(Microsecond, None)')",
        "get_field(s, id)",
        "get_field(s)",
    ],
)
def test_other_words_of_delta_rs_are_refused_by_name(stored: str) -> None:
    with pytest.raises(InvalidInputError, match=r"no SQL function '(arrow_cast|get_field)'"):
        resolve(parse_rule(f"{stored} IS NOT NULL", SCHEMA), SCHEMA)


def test_a_rule_that_is_no_sql_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="cannot read the SQL"):
        parse_rule('"homeTeam" >', SCHEMA)


def test_types_that_are_not_known_may_hold_any_text() -> None:
    schema = StructType([Field("Open", "long"), Field("odd", VariantType())])
    with pytest.raises(InvalidInputError, match="double quotes mean a string"):
        parse_rule('"Open" = odd', schema)


@pytest.mark.parametrize(
    ("stored", "spelt"),
    [
        ('"homeTeam" > 0', "homeTeam > 0"),
        ('"2024-01-01" IS NOT NULL', "`2024-01-01` IS NOT NULL"),
        ('"s"."a" > 0', "s.a > 0"),
        ("get_field(s, 'a') > 0", "s.a > 0"),
        (
            "noon < arrow_cast('2024-01-01T00:00:00', 'Timestamp(Microsecond, None)')",
            "noon < CAST('2024-01-01T00:00:00' AS TIMESTAMP_NTZ)",
        ),
        ("arrow_cast('2024', 'Date32') IS NOT NULL", None),
        ("get_field(s, 'a') > 0 AND kind = \"Open\"", None),
    ],
)
def test_rules_of_delta_rs_are_told_with_what_spark_would_read(
    stored: str, spelt: str | None
) -> None:
    assert is_of_delta_rs(stored, SCHEMA)
    assert in_words_of_spark(stored, SCHEMA) == spelt


@pytest.mark.parametrize(
    "text",
    ["homeTeam > 0", "`homeTeam` > 0", "s.a > 0", 'kind = "other"', 'kind = "Open"', "kind >"],
)
def test_what_spark_reads_alike_is_not_of_delta_rs(text: str) -> None:
    assert not is_of_delta_rs(text, SCHEMA)
