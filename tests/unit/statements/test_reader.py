"""Slices of statements: expressions, queries, parameters, and their places."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.query.names import QualifiedName
from deltalog.statements import parse_statement
from deltalog.statements.reader import StatementReader
from deltalog.statements.statement import SubqueryKind


def test_an_expression_ends_before_a_keyword_outside_of_brackets_and_case() -> None:
    reader = StatementReader("a = (SELECT 1 WHERE true) AND CASE WHEN b THEN c END = 1 WHEN x")
    found = reader.condition("WHEN", "THEN")
    assert reader.is_at("WHEN")
    assert found.text == "a = :deltalog_query_0 AND CASE WHEN b THEN c END = 1"


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("a.when = 1 WHEN", "a.when = 1"),
        ("`when` = 1 WHEN", "`when` = 1"),
        ("a = 'WHEN' WHEN", "a = 'WHEN'"),
        ("a = 1 /* WHEN */ WHEN", "a = 1"),
        ("a = 1 /* c */ + 2 WHEN", "a = 1 /* c */ + 2"),
        ("f(a, b), c", "f(a, b)"),
        ("a[1]) x", "a[1]"),
        (
            "CASE a WHEN 1 THEN CASE WHEN b THEN 2 END END; x",
            "CASE a WHEN 1 THEN CASE WHEN b THEN 2 END END",
        ),
    ],
)
def test_where_an_expression_ends(sql: str, text: str) -> None:
    assert StatementReader(sql).condition("WHEN").text == text


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("a = 1 SELECT 2", "a = 1"),
        ("a = 1 VALUES (2)", "a = 1"),
        ("a IN (SELECT 1) TABLE t", "a IN (:deltalog_query_0)"),
        ("values = 1 AND from > 2 FROM t SELECT x", "values = 1 AND from > 2"),
    ],
)
def test_a_query_may_end_an_expression(sql: str, text: str) -> None:
    # VALUES and FROM are keywords in an expression, too: backticks are asked for.
    reader = StatementReader(sql.replace("values =", "`values` =").replace("from >", "`from` >"))
    assert reader.condition(ends_at_query=True).text.replace("`", "") == text


def test_queries_in_an_expression_have_kinds() -> None:
    sql = "a IN (SELECT 1) AND EXISTS (SELECT 2) AND b = (VALUES (3)) AND c NOT IN ((SELECT 4))"
    found = StatementReader(sql).condition()
    kinds = [(one.kind, one.query.text) for one in found.subqueries.values()]
    assert kinds == [
        (SubqueryKind.LIST, "SELECT 1"),
        (SubqueryKind.EXISTS, "SELECT 2"),
        (SubqueryKind.VALUE, "VALUES (3)"),
        (SubqueryKind.LIST, "(SELECT 4)"),
    ]


def test_marks_become_names_with_values() -> None:
    found = StatementReader("a = ? AND b IN (SELECT ? + 1) AND c = '?'", [1, 2]).condition()
    assert found.text == "a = :deltalog_parameter_0 AND b IN (:deltalog_query_0) AND c = '?'"
    assert found.parameters == {"deltalog_parameter_0": 1}
    (subquery,) = found.subqueries.values()
    assert subquery.query.parameters == {"deltalog_parameter_1": 2}


def test_names_have_values() -> None:
    found = StatementReader("a = :x AND ':y' = b", {"x": "'; DROP", "y": 1}).condition()
    assert found.text == "a = :x AND ':y' = b"
    assert found.parameters == {"x": "'; DROP"}


@pytest.mark.parametrize(
    ("sql", "parameters", "problem"),
    [
        ("a = ?", None, "character 5: the parameter ? needs a list of values"),
        ("a = ?", {"x": 1}, "the parameter ? needs a list of values"),
        ("a = ?", [1, 2], "it has 1 parameter ?, found 2 values"),
        ("a = 1", [1], "it has 0 parameters ?, found 1 value"),
        ("a = ?", "1", "expected a list of values for `?`, or a mapping"),
        ("a = ?", b"1", "expected a list of values"),
        ("a = ?", {1}, "found a set"),
        (5, None, "expected a statement as a string, found 5"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(sql: Any, parameters: Any, problem: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        StatementReader(sql, parameters)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("a = :x", "line 1, character 1: cannot read the SQL"),
        ("x IN (SELECT :y)", "line 1, character 14: the parameter :y has no value"),
        ("a = ", "line 1, character 1: cannot read the SQL 'a =' at character 4"),
        ("", "line 1, character 1: expected an expression, found the end"),
        ("a IN (SELECT FROM)", "character 14"),
        ("a IN (SELECT 1", "expected ), found the end"),
        (")", "expected an expression, found )"),
    ],
)
def test_problems_of_slices_have_their_place_in_the_statement(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        StatementReader(sql).condition()
    assert problem in str(error.value)


def test_the_place_of_a_problem_counts_from_the_statement() -> None:
    sql = "INSERT INTO t\nSELECT ?, (SELECT ?,\n  a FROM WHERE b)"
    reader = StatementReader(sql, [1, 2])
    for word in ("INSERT", "INTO", "t"):
        reader.expect(word.upper()) if word != "t" else reader.name()
    with pytest.raises(InvalidInputError, match="line 3, character 10"):
        reader.query()


@pytest.mark.parametrize(
    ("sql", "version"),
    [
        ("VERSION AS OF 3", 3),
        ("FOR VERSION AS OF '3'", 3),
        ("SYSTEM_VERSION AS OF 3", 3),
        ("TIMESTAMP AS OF '2025-01-31'", "2025-01-31"),
        ("FOR SYSTEM_TIME AS OF 'x'", "x"),
        ("x", None),
    ],
)
def test_versions(sql: str, version: object) -> None:
    assert StatementReader(sql).version() == version


@pytest.mark.parametrize(
    "sql", ["VERSION AS OF x", "VERSION AS OF -1", "VERSION AS OF 1.5", "TIMESTAMP AS OF 5"]
)
def test_what_is_no_version_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInputError, match="line 1, character"):
        StatementReader(sql).version()


def test_tables_have_parts_versions_and_locations() -> None:
    assert StatementReader("a.`b.c`.d x").table() == QualifiedName(("a", "b.c", "d"))
    assert StatementReader("t@v3").table() == QualifiedName(("t",), 3)
    assert StatementReader("'/data/x'").location_or_table().location == "/data/x"
    for wrong in ("", "5", "a.", "``", "t@", "t@x", "'x"):
        with pytest.raises(InvalidInputError, match="line 1, character"):
            StatementReader(wrong).table()


@pytest.mark.parametrize(
    ("sql", "defaults"),
    [
        ("VALUES (1, 2)", []),
        ("VALUES (DEFAULT, 1), (2, default)", [[True, False], [False, True]]),
        ("VALUES DEFAULT, 1", [[True], [False]]),
        ("VALUES (f(DEFAULT), 1)", []),
        ("VALUES ((1), DEFAULT)", [[False, True]]),
        ("VALUES (array(1, 2), DEFAULT, 'DEFAULT')", [[False, True, False]]),
        ("VALUES upper('a'), DEFAULT", [[False], [True]]),
        ("SELECT 1", []),
    ],
)
def test_default_in_values(sql: str, defaults: list[list[bool]]) -> None:
    try:
        _, found = StatementReader(sql).rows()
    except InvalidInputError:
        assert "f(DEFAULT)" in sql
        return
    assert [[name is not None for name in row] for row in found] == defaults


@pytest.mark.parametrize("sql", ["SELECT :id AS id", "INSERT INTO t SELECT :id"])
def test_a_parameter_with_another_case_is_named(sql: str) -> None:
    with pytest.raises(InvalidInputError, match=":id has no value in `parameters`; found 'ID'"):
        parse_statement(sql, {"ID": 1})
