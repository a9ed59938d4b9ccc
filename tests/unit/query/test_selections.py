"""Which queries are a scan of one table."""

from __future__ import annotations

import pytest

from deltalog.query.translate import Selection, translated


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM t", Selection(None, None, 0, None)),
        ("TABLE t", Selection(None, None, 0, None)),
        ("SELECT a, B AS c FROM s.t x", Selection((("a", "a"), ("B", "c")), None, 0, None)),
        ("SELECT `a b` FROM t@v3 LIMIT 5", Selection((("a b", "a b"),), None, 0, 5)),
        (
            "SELECT * FROM delta.`/x` WHERE upper(a) = 'X' AND b IN (1, 2)",
            Selection(None, "upper(a) = 'X' AND b IN (1, 2)", 31, None),
        ),
        ("SELECT * FROM t WHERE true LIMIT 0", Selection(None, "true", 22, 0)),
    ],
)
def test_a_scan_is_seen(query: str, expected: Selection) -> None:
    assert translated(query).selection == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1",
        "VALUES (1)",
        "SELECT 1 AS a FROM t",
        "SELECT a + 1 FROM t",
        "SELECT t.a FROM t",
        "SELECT s.a FROM t",
        "SELECT *, a FROM t",
        "SELECT * EXCEPT (a) FROM t",
        "SELECT t.* FROM t",
        "SELECT count(*) FROM t",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t ORDER BY a",
        "SELECT a FROM t GROUP BY a",
        "SELECT a FROM t LIMIT 1 OFFSET 1",
        "SELECT a FROM t LIMIT 1 + 1",
        "SELECT a FROM t LIMIT ALL",
        "SELECT a FROM t FETCH FIRST 2 ROWS ONLY",
        "SELECT * FROM t WHERE a = 1 FETCH FIRST ROW ONLY",
        "SELECT a FROM t, u",
        "SELECT a FROM t JOIN u USING (a)",
        "SELECT a FROM t TABLESAMPLE (10 ROWS)",
        "SELECT a FROM t AS u(a, b)",
        "SELECT a FROM t LATERAL VIEW explode(b) x AS y",
        "SELECT a FROM (SELECT a FROM t)",
        "SELECT id FROM range(3)",
        "WITH t AS (SELECT 1 AS a) SELECT a FROM t",
        "SELECT a FROM t UNION ALL SELECT a FROM t",
        "SELECT a FROM t WHERE a IN (SELECT a FROM u)",
        "SELECT a FROM t WHERE t.a = 1",
        "SELECT * FROM table_changes('t', 0)",
    ],
)
def test_more_than_a_scan_is_no_selection(query: str) -> None:
    assert translated(query).selection is None
