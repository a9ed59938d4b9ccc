from __future__ import annotations

import pytest

from deltalog.expressions import (
    SqlSession,
    parse_sql,
    parse_type,
    resolve,
    to_sql,
    type_of,
)
from deltalog.schema import Field, StructType
from tests.support.typed_columns import SCHEMA, resolved_sql


@pytest.mark.parametrize(
    ("sql", "data_type"),
    [
        ("n + n", "int"),
        ("n + Id", "bigint"),
        ("n + x", "double"),
        ("n / n", "double"),
        ("f + f", "float"),
        ("f + n", "double"),
        ("n + '1'", "bigint"),
        ("x + '1'", "double"),
        ("tiny + small", "smallint"),
        ("price + price", "decimal(11,2)"),
        ("price * price", "decimal(21,4)"),
        ("price / price", "decimal(23,13)"),
        ("price % price", "decimal(10,2)"),
        ("price + n", "decimal(13,2)"),
        ("price * 2", "decimal(12,2)"),
        ("price + 0.125", "decimal(12,3)"),
        ("price * x", "double"),
        ("wide * wide", "decimal(38,6)"),
        ("wide + wide", "decimal(38,17)"),
        ("d + 1", "date"),
        ("d + INTERVAL 1 MONTH", "date"),
        ("d + INTERVAL 1 HOUR", "timestamp"),
        ("wall + INTERVAL 1 HOUR", "timestamp_ntz"),
        ("year(ts)", "int"),
        ("coalesce(n, Id)", "bigint"),
        ("coalesce(name, n)", "bigint"),
        ("CASE WHEN flag THEN 1 ELSE 2.5 END", "decimal(11,1)"),
        ("name || n", "string"),
        ("m['k']", "int"),
        ("arr[0]", "int"),
        ("length(name)", "int"),
        ("n = 1", "boolean"),
        ("NULL", "void"),
    ],
)
def test_types_of_results(sql: str, data_type: str) -> None:
    assert type_of(resolve(parse_sql(sql), SCHEMA), SCHEMA) == parse_type(data_type)


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("n > 5L", "n > 5"),
        ("n > 5.0", "n > 5"),
        ("n > '5'", "n > 5"),
        ("n = 5.5", "CAST(n AS DECIMAL(11,1)) = 5.5BD"),
        ("tiny = 300", "CAST(tiny AS INT) = 300"),
        ("price = 5", "price = 5.00BD"),
        ("price > 1.005", "CAST(price AS DECIMAL(11,3)) > 1.005BD"),
        ("d = '2024-01-31'", "d = DATE'2024-01-31'"),
        ("ts > '2024-01-31'", "ts > TIMESTAMP'2024-01-31 00:00:00Z'"),
        ("ts = DATE'2024-01-31'", "ts = TIMESTAMP'2024-01-31 00:00:00Z'"),
        ("f = 0.5", "f = 0.5F"),
        ("n IN (1L, '2', NULL)", "n IN (1, 2, CAST(NULL AS INT))"),
        ("flag = 'yes'", "flag = TRUE"),
    ],
)
def test_constants_take_the_type_of_the_column_where_that_means_the_same(
    sql: str, shown: str
) -> None:
    assert resolved_sql(sql) == shown


def test_a_float_column_is_not_compared_with_the_nearest_float() -> None:
    # 0.1 is no float, so f = 0.1 is false for every row, also for 0.1F.
    assert resolved_sql("f = 0.1D") == "CAST(f AS DOUBLE) = 0.1D"


@pytest.mark.parametrize("zone", ["Etc/UTC", "GMT", "+00:00"])
def test_a_zone_that_is_utc_by_another_name_leaves_no_cast_of_a_constant_s_column(
    zone: str,
) -> None:
    schema = StructType([Field("wall", parse_type("timestamp_ntz"))])
    condition = parse_sql("wall = TIMESTAMP '2020-01-01 00:00:00Z'")
    here = resolve(condition, schema, SqlSession(now=None, time_zone=zone))
    assert to_sql(here) == to_sql(resolve(condition, schema))
    there = resolve(condition, schema, SqlSession(now=None, time_zone="Europe/Berlin"))
    assert to_sql(there) != to_sql(here)
