from __future__ import annotations

import pytest

from deltalog.expressions import parse_sql, parse_type, resolve, to_sql
from deltalog.expressions.arrow import fold
from deltalog.schema import Field, StructType

SCHEMA = StructType([Field("n", parse_type("int")), Field("d", parse_type("date"))])


@pytest.mark.parametrize(
    ("sql", "folded"),
    [
        ("1 + 2 * 3", "7"),
        ("n > 1 + 2", "n > 3"),
        ("d > date_add(DATE'2024-01-31', 1)", "d > DATE'2024-02-01'"),
        ("n > 1 OR 1 = 1", "n > 1 OR TRUE"),
        ("n IN (1 + 1, 3)", "n IN (2, 3)"),
        ("upper('a') = 'A'", "TRUE"),
        ("NULL + 1", "CAST(NULL AS INT)"),
        ("n", "n"),
        ("n + 1 + 2", "n + 1 + 2"),
        ("array(1, 2)[0]", "1"),
        ("array(1, n)[0]", "array(1, n)[0]"),
        ("CASE WHEN FALSE THEN 1 / 0 END", "CAST(NULL AS DOUBLE)"),
    ],
)
def test_constant_parts_become_their_value(sql: str, folded: str) -> None:
    assert to_sql(fold(resolve(parse_sql(sql), SCHEMA))) == folded


@pytest.mark.parametrize("sql", ["1 / 0", "CAST('x' AS INT)", "n > 1 / 0", "2147483647 + 1"])
def test_a_part_that_fails_stays_for_the_rows(sql: str) -> None:
    resolved = resolve(parse_sql(sql), SCHEMA)
    assert fold(resolved).same_as(resolved)


def test_a_value_that_python_cannot_hold_stays() -> None:
    resolved = resolve(parse_sql("add_months(DATE'9999-12-31', 1)"), SCHEMA)
    assert fold(resolved).same_as(resolved)
