"""Simple conditions are read without sqlglot, with the result of sqlglot."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql, sql_nodes
from deltalog.expressions.nodes import as_calls
from deltalog.expressions.simple_sql import read_simple

# All words that the dialect knows: keywords, types and functions.
WORDS = sorted(
    word.lower()
    for word in {*Spark.Tokenizer.KEYWORDS, *Spark.Parser.FUNCTIONS, "x", "b", "r", "e", "n"}
    if word.isidentifier()
)
SQL = """
a t.b A.b.c and AND or = < >= <=> = 1 007 -1 1.5 1e3 10L 'x' '' 'it''s' 'a\\n' "q" `q` ( ) ? --
"""
PIECES = st.sampled_from([*WORDS[::9], *SQL.split()])


def by_sqlglot(sql: str) -> str:
    return as_calls(sql_nodes.read(sql, None, ()))


@pytest.mark.parametrize(
    "sql",
    [
        "a = 1",
        "target.id = source.id",
        "t.a = s.a AND t.b = s.b and t.c >= 'x'",
        " a\n<\t12 AND\nb = ''",
        "a.b.c > 999999999",
        "x1 = 'é' AND _y <= Z",
    ],
)
def test_conjunctions_of_comparisons(sql: str) -> None:
    found = read_simple(sql)
    assert found is not None
    assert as_calls(found) == by_sqlglot(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "", "a", "a = ", "a = b = c", "a = 1 AND", "a = 1 OR b = 2", "NOT a = 1", "a == 1",
        "a <=> b", "a = -1", "a = 1.5", "a = 10L", "a = 1e3", "a = f(b)", "a = 'x' 'y'", "a = true",
        "a = current_date", "a = date '2024-01-01'", "a = 'it''s'", r"a = '\n'", "`a` = 1",
        "a = 1 -- b", "a = 1 + 2", "a = b.1", "a = 12345678901", "a = ?", "a = :b",
        "a = 1AND b = 2",
    ],
)  # fmt: skip
def test_everything_else_is_left_to_sqlglot(sql: str) -> None:
    assert read_simple(sql) is None


@pytest.mark.parametrize(
    "form", ["{} = 1", "t.{} = 1", "{}.a = 'v'", "a = {}", "a = t.{} AND b > 1", "{} < t.{}"]
)
def test_every_word_of_the_dialect(form: str) -> None:
    for word in WORDS:
        sql = form.replace("{}", word)
        found = read_simple(sql)
        assert found is None or as_calls(found) == by_sqlglot(sql), sql


@given(st.lists(PIECES, min_size=3, max_size=9), st.sampled_from(["", " ", "  \n"]))
def test_random_strings(pieces: list[str], blank: str) -> None:
    sql = f" {blank}".join(pieces)
    found = read_simple(sql)
    assert found is None or as_calls(found) == by_sqlglot(sql), sql


def test_unused_parameters_are_still_refused() -> None:
    with pytest.raises(InvalidInputError, match="1 value for parameters, but"):
        parse_sql("a = 1", parameters=[5])


def test_a_merge_by_a_key_does_not_import_sqlglot() -> None:
    program = """if True:
        import sys
        from deltalog import DeltaTable, write_deltalake
        write_deltalake("memory://t", {"id": [1, 2]})
        table = DeltaTable("memory://t")
        merge = table.merge({"id": [2, 3]}, "target.id = source.id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        assert table.delete("id = 2")["num_deleted_rows"] == 1
        sys.exit("sqlglot" in sys.modules)
    """
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
