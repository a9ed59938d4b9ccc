"""Queries of Spark's dialect in DuckDB's, with the tables that they name."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.query.lexer import SyntaxProblem
from deltalog.query.located import located
from deltalog.query.names import QualifiedName, VersionExpression
from deltalog.query.translate import TableChangesCall, bound, check_query, translated


def _tables(sql: str) -> list[object]:
    return list(translated(sql).tables.values())


def _name(*parts: str, version: int | str | VersionExpression | None = None) -> QualifiedName:
    return QualifiedName(parts, version)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM a.b.c", [_name("a", "b", "c")]),
        ("SELECT * FROM delta.`/data/a.b`", [_name("delta", "/data/a.b")]),
        ("FROM `my t` SELECT x", [_name("my t")]),
        ("TABLE t", [_name("t")]),
        ("SELECT 1 UNION ALL TABLE t", [_name("t")]),
        ("SELECT * FROM (TABLE t)", [_name("t")]),
        ("SELECT * FROM t@v3", [_name("t", version=3)]),
        ("SELECT * FROM t@v3 AS x JOIN t y", [_name("t", version=3), _name("t")]),
        ("SELECT * FROM t VERSION AS OF 3", [_name("t", version=3)]),
        ("SELECT * FROM t VERSION AS OF '3'", [_name("t", version=3)]),
        ("SELECT * FROM t FOR SYSTEM_VERSION AS OF 3", [_name("t", version=3)]),
        ("SELECT * FROM t TIMESTAMP AS OF '2025-01-31'", [_name("t", version="2025-01-31")]),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF 'x' z", [_name("t", version="x")]),
        (
            "SELECT * FROM table_changes('a.b', 2)",
            [TableChangesCall(_name("a", "b"), 2, None)],
        ),
        (
            "SELECT * FROM table_changes('`a.b`', '2025-01-01', 5) c",
            [TableChangesCall(_name("a.b"), "2025-01-01", 5)],
        ),
        (
            "SELECT * FROM table_changes_by_path('/data/x', 2)",
            [TableChangesCall(_name("delta", "/data/x"), 2, None)],
        ),
        ("SELECT * FROM range(3)", []),
        ("SELECT * FROM t LATERAL VIEW explode(xs) e AS x", [_name("t")]),
    ],
)
def test_tables_of_a_query(sql: str, tables: list[object]) -> None:
    assert _tables(sql) == tables


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("WITH t AS (SELECT 1) SELECT * FROM t", []),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", [_name("t")]),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a, t) SELECT * FROM b", [_name("t")]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", [_name("b")]),
        ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t), t", [_name("t")]),
        ("WITH t AS (SELECT 1) SELECT * FROM s.t", [_name("s", "t")]),
        ("WITH T AS (SELECT 1) SELECT * FROM t", []),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT * FROM r", []),
        ("SELECT (WITH t AS (SELECT 1 AS x) SELECT x FROM t) FROM t", [_name("t")]),
    ],
)
def test_a_common_table_expression_hides_a_table_where_it_is_seen(
    sql: str, tables: list[object]
) -> None:
    assert _tables(sql) == tables


def test_names_of_tables_are_never_those_of_the_query() -> None:
    found = translated("WITH deltalog_table_0 AS (SELECT 1 AS x) SELECT * FROM t, deltalog_table_0")
    assert list(found.tables.values()) == [_name("t")]
    assert "deltalog_table_0" not in found.tables


def test_versions_are_computed_when_the_query_runs() -> None:
    (table,) = translated("SELECT * FROM t VERSION AS OF :v").tables.values()
    assert bound(table, {"v": 7}) == _name("t", version=7)
    (changes,) = translated("SELECT * FROM table_changes('t', :a, :b)").tables.values()
    assert bound(changes, {"a": 1, "b": "2025-01-31"}) == TableChangesCall(
        _name("t"), 1, "2025-01-31"
    )
    (table,) = translated("SELECT * FROM t TIMESTAMP AS OF date'2025-01-31' x").tables.values()
    assert bound(table, {}) == _name("t", version="2025-01-31")


def test_a_version_that_is_none_is_refused_when_the_query_runs() -> None:
    (table,) = translated("SELECT * FROM t VERSION AS OF :v").tables.values()
    with pytest.raises(InvalidInputError, match="expected the number of a version, found 'x'"):
        bound(table, {"v": "x"})


def test_parameters_of_a_query() -> None:
    assert check_query("SELECT :a, ':b', s.x FROM s WHERE id = :c") == {"a", "c"}


@pytest.mark.parametrize(
    ("sql", "place", "problem"),
    [
        ("SELECT * FROM", 9, "expected a table"),
        ("SELECT (1", 8, "expected )"),
        ("SELECT 1\nFROM t WHERE x = = 1", 26, "expected a value"),
        ("UPDATE t SET a = 1", 0, "expected one query"),
        ("SELECT 1; SELECT 2", 0, "expected one query"),
        ("", 0, "expected one query"),
        ("SELECT a INTO b FROM t", 14, "expected a query that only reads"),
        ("WITH x AS (DELETE FROM t) SELECT 1", 23, "expected a query that only reads"),
        ("WITH x AS (INSERT INTO t SELECT 1) SELECT 1", 23, "expected a query that only reads"),
        ("WITH a AS (COPY t TO 'x') SELECT 1", 0, "expected a query"),
        ("SELECT * FROM t@x", 16, "expected a version after @"),
        ("SELECT 'a", 0, "a string is not closed"),
    ],
)
def test_what_is_no_query_is_refused_with_its_place(sql: str, place: int, problem: str) -> None:
    with pytest.raises(SyntaxProblem) as error:
        check_query(sql)
    assert problem in error.value.problem
    assert error.value.place == place
    assert "Token" not in error.value.problem


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT * FROM read_text('/etc/passwd')", "character 15: expected a table"),
        ("SELECT * FROM read_csv('x')", "expected a table"),
        ("SELECT * FROM t, LATERAL read_text('/etc/passwd')", "after LATERAL, expected a query"),
        ("SELECT * FROM t JOIN LATERAL read_text(t.x) AS f", "after LATERAL, expected a query"),
        ("SELECT * FROM t LATERAL VIEW read_text('x') AS f", "after LATERAL, expected a query"),
        ("SELECT * FROM TABLE(read_text('x'))", "expected a table"),
        ("SELECT * FROM duckdb_settings()", "expected a table"),
        ("SELECT getenv('HOME')", "a query cannot call getenv"),
        ("SELECT current_setting('threads')", "a query cannot call current_setting"),
        ("SELECT * FROM table_changes('t')", "expected table_changes('table', start [, end])"),
        ("SELECT * FROM table_changes(t, 1)", "expected table_changes('table', start [, end])"),
        ("SELECT * FROM table_changes('', 1)", "expected the name of a table"),
        ("SELECT * FROM t VERSION AS OF 1.5", "expected the number of a version, found 1.5"),
    ],
)
def test_what_a_query_must_not_name_is_refused(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        translated(sql)
    assert problem in str(error.value)
    assert "line 1, character" in str(error.value)


def test_deep_queries_are_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="nested too deeply"):
        translated("SELECT " + "(" * 20_000 + "1" + ")" * 20_000)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT * FROM a.t, t@v2 x", [("a.t", False), ("t VERSION AS OF 2", True)]),
        (
            "SELECT * FROM t TIMESTAMP AS OF '2025' WHERE 1 = 1",
            [("t TIMESTAMP AS OF '2025'", False)],
        ),
        (
            "SELECT * FROM t TIMESTAMP AS OF date'2025-01-01' AS x",
            [("t TIMESTAMP AS OF date'2025-01-01'", True)],
        ),
        (
            "SELECT * FROM t TIMESTAMP AS OF date_sub(current_date(), 1) x",
            [("t TIMESTAMP AS OF date_sub(current_date(), 1)", True)],
        ),
        ("SELECT * FROM t VERSION AS OF :v WHERE a", [("t VERSION AS OF :v", False)]),
        ("SELECT * FROM table_changes('t', 1, 2) c", [("table_changes('t', 1, 2)", True)]),
        ("SELECT * FROM delta.`/a b` JOIN range(3)", [("delta.`/a b`", False)]),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c", [("t", False)]),
        ("TABLE t", [("t", False)]),
        ("SELECT 1", []),
    ],
)
def test_tables_are_located_in_the_text(sql: str, found: list[tuple[str, bool]]) -> None:
    text = located(sql).text
    shown = [
        (" ".join(text[one.start : one.end].split()), one.is_aliased) for one in located(sql).tables
    ]
    assert shown == found


def test_what_is_no_name_has_no_place() -> None:
    with pytest.raises(InvalidInputError, match="expected the name of a table"):
        located("SELECT * FROM t, @x")


def test_repeated_texts_are_translated_once() -> None:
    assert translated("SELECT 1 AS once") is translated("SELECT 1 AS once")
