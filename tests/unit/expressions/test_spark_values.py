from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql


@pytest.mark.parametrize(
    ("sql", "position", "problem"),
    [
        ("> 5", 1, "expected a value"),
        (". 5", 3, "after the dot"),
        ("a NOT NULL", 3, "expected the end"),
        ("a ! IN (1)", 3, "expected the end"),
        ("a IS NULL::string", 10, "expected the end"),
        ("a BETWEEN 1 2", 13, "expected AND"),
        ("a LIKE b = c", 10, "expected the end"),
        ("a LIKE ANY ('x') ESCAPE '#'", 18, "expected the end"),
        ("a RLIKE 'x' ESCAPE '#'", 13, "expected the end"),
        ("a IN b", 6, r"expected \("),
        ("a IN (1,)", 9, "expected a value"),
        ("f(,a)", 3, "expected a value"),
        ("f(a AS b)", 5, r"expected \)"),
        ("f(ALL a)", 7, r"expected \)"),
        ("f(a) IGNORE NULLS", 6, "expected the end"),
        ("a + NOT b", 5, "keyword"),
        ("(a, b", 6, r"expected \)"),
        ("(a b)", 4, r"expected \)"),
        ("a.(b)", 3, "expected a value"),
        ("a.'b'", 3, "expected a name"),
        ("a[1:2]", 4, r"expected \]"),
        ("a[1, 2]", 1, "one value"),
        ("a[]", 3, "expected a value"),
        ("[1]", 2, "ARRAY cannot be used here"),
        ("a AT TIME ZONE 'UTC'", 1, "Spark has no AT TIME ZONE: write from_utc_timestamp"),
        ("CASE WHEN a b END", 13, "expected THEN"),
        ("CAST(a AS int", 14, r"expected \)"),
        ("CAST(a, 'x')", 6, "CASTTOSTRTYPE cannot be used here"),
        ("CAST(a AS date, 'yyyy')", 6, "FORMAT cannot be used here"),
        ("substring(a, 1 FROM 2)", 16, r"expected \)"),
        ("DATE'2024' '-01-01'", 5, "expected a string"),
        ("a {# b #}", 3, "has no meaning"),
        ("a /*+ b */ {", 12, "has no meaning"),
        ("0x1F", 1, "not a number"),
        ("1_000", 1, "not a number"),
        ("X'0G'", 1, "hexadecimal"),
        ("`[]`(a, 1)", 1, "no function"),
    ],
)
def test_what_sqlglot_would_let_pass_is_an_error_with_its_place(
    sql: str, position: int, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        parse_sql(sql)
    assert f"at character {position} " in f"{caught.value} ".replace(":", " "), caught.value
