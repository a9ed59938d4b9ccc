"""Any SQL ends in a result or in a `DeltaError` with its place: no other exception, no hang."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.query.lexer import split
from deltalog.query.located import located
from deltalog.statements import parse_statement
from deltalog.statements.connection import is_complete, statements_of
from tests.support.examples import examples
from tests.support.sql_statements import STATEMENTS
from tests.support.sql_tables import SqlTables

pytestmark = pytest.mark.slow("thousands of statements")

MOST_SECONDS = 20.0
_SIGNS = [
    "'", '"', "`", "--", "/*", "*/", ";", "(", ")", "[", "]", "?", ":x", "@v1", "@", ",", ".", "<",
    ">", "\\", "\n", "\0", "é", "CASE", "END", "NULL", "LATERAL", "UNION", "OVER", "PIVOT", "{",
    "}", "read_text('x')", "table_changes('t', 1)", "VERSION AS OF", "INTERVAL", "1e999", "$1",
]  # fmt: skip
WORDS = [*sorted({word for sql in STATEMENTS for word in sql.split()}), *_SIGNS]
QUERY_WORDS = [
    "SELECT", "FROM", "t", "s", "id", "v", "*", ",", "(", ")", "WHERE", "=", "<", "1", "'a'",
    "NULL", "AND", "OR", "IN", "LIKE", "JOIN", "ON", "GROUP BY", "count(*)", "LIMIT", "AS", "UNION",
    "/", "VALUES", "CASE WHEN", "THEN", "END", "CAST(", "INT", "ORDER BY", "x", "LATERAL",
    "explode(",
    "upper(", "sum(", "round(", "v ||", "% 2", "id DIV", "OVER (ORDER BY id)", "x -> x", "[0]",
    "INTERVAL 1 DAY", "DATE'2020-01-01'", "TIMESTAMP'x'", "IS NULL", "BETWEEN", "concat()", "1e999",
    "avg(", "DISTINCT", "FILTER (WHERE", "named_struct(", "array(", ".u", "<=>", "::INT", "HAVING",
    "@v0", "EXISTS", "NOT", ":p", "read_text(", "DELETE FROM t", "UPDATE t SET", "INSERT INTO t",
]  # fmt: skip


def _ends_well(sql: str, parameters: Any = None) -> None:
    """Read a text as a statement, as a script, as a query, and as what is being typed."""
    for read in (lambda: parse_statement(sql, parameters), lambda: statements_of(sql),
                 lambda: located(sql)):  # fmt: skip
        try:
            read()
        except InvalidInputError as error:
            shown = str(error)
            assert "at line " in shown or "there is no :x for the parameter" in shown
    is_complete(sql)


@given(st.text(max_size=60))
def test_any_text_is_a_statement_or_refused(sql: str) -> None:
    _ends_well(sql)


@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from([" ", "", "\n"]))
@settings(max_examples=examples(400))
def test_any_words_are_a_statement_or_refused(words: list[str], between: str) -> None:
    _ends_well(between.join(words), {"x": 1})


@given(st.sampled_from(STATEMENTS), st.randoms(use_true_random=False), st.integers(1, 6))
@settings(max_examples=examples(600))
def test_a_damaged_statement_is_a_statement_or_refused(
    sql: str, chance: random.Random, times: int
) -> None:
    words = sql.split(" ")
    for _ in range(times):
        place = chance.randrange(len(words) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            words.insert(place, chance.choice(WORDS))
        elif kind == 1:
            del words[place : place + chance.randrange(1, 4)]
        elif kind == 2:
            words[place : place + 1] = [chance.choice(WORDS)]
        elif words:
            word = words[place % len(words)]
            cut = chance.randrange(len(word) + 1)
            words[place % len(words)] = word[:cut] + chance.choice("'`\"()\\,;*@:é") + word[cut:]
    _ends_well(" ".join(words))


@given(st.text(alphabet="ab'\"`-/*\n\\r;().@ 1", max_size=40))
def test_words_have_their_places(sql: str) -> None:
    try:
        words = split(sql)
    except InvalidInputError:
        return
    assert all(sql[word.start : word.end] == word.text for word in words)
    assert [word.start for word in words] == sorted(word.start for word in words)


@given(st.lists(st.sampled_from(QUERY_WORDS), max_size=14))
@settings(max_examples=examples(300))
def test_what_is_read_runs_or_is_refused(words: list[str]) -> None:
    db = SqlTables()
    db.create("t", "AS SELECT 1 AS id, 'a' AS v")
    db.connection.register("s", pa.table({"id": [1, 2], "v": ["a", "b"]}))
    for first in ("SELECT", "SELECT * FROM t WHERE", "DELETE FROM t WHERE", ""):
        with contextlib.suppress(DeltaError):
            db.run(" ".join([first, *words]), {"p": 1}).to_arrow()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 50_000,
        "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
        "SELECT 1" + " + 1" * 20_000,
        "SELECT * FROM " + "(SELECT * FROM " * 5_000 + "t" + ")" * 5_000,
        "DELETE FROM t WHERE " + "(" * 20_000 + "a" + ")" * 20_000,
        "DELETE FROM t WHERE " + "NOT " * 20_000 + "a",
        "DELETE FROM t WHERE a = 1" + " OR a = 1" * 20_000,
        "DELETE FROM t WHERE a IN (" + "(SELECT 1), " * 3_000 + "1)",
        "CREATE TABLE t (a " + "ARRAY<" * 5_000 + "INT" + ">" * 5_000 + ")",
        "CREATE TABLE t (" + ", ".join(f"c{n} INT" for n in range(5_000)) + ")",
        "INSERT INTO t VALUES " + ", ".join("(1, 'a', DEFAULT)" for _ in range(5_000)),
        "SELECT '" + "x" * 1_000_000 + "'",
        "SELECT '" + "x" * 1_000_000,
        "SELECT 1 " + "/*" * 100_000,
        "SELECT 1 " + "-- x\n" * 100_000,
        "EXPLAIN " * 5_000 + "SELECT 1",
        "UPDATE t SET " + ", ".join(f"c{n} = CASE WHEN a THEN {n} END" for n in range(3_000)),
        "'" * 99_999,
        "`" * 99_999,
        "a." * 50_000 + "b",
        "SELECT " + ", ".join("?" for _ in range(5_000)),
    ],
    ids=lambda text: f"{text[:20]}-{len(text)}",
)  # fmt: skip
def test_long_and_deep_texts_end_in_time(text: str) -> None:
    start = time.process_time()  # not the clock: other work on the machine is no hang
    _ends_well(text, [1] * 5_000 if "?" in text else None)
    assert time.process_time() - start < MOST_SECONDS, "a hang"
