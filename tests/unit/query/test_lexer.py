"""The words of SQL texts, with their places."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.query.lexer import TextParts, begins_query, split


def _words(sql: str) -> list[str]:
    return [word.text for word in split(sql)[:-1]]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("a.b , c", ["a", ".", "b", ",", "c"]),
        ("'it''s' 'a\\'b' \"x\"\"y\"", ["'it''s'", "'a\\'b'", '"x""y"']),
        (r"r'raw\' R" + '"x"', [r"r'raw\'", 'R"x"']),
        ("`a.b` `c``d`", ["`a.b`", "`c``d`"]),
        ("1 2.5 .5 1e-3 10L 1.5BD", ["1", "2.5", ".5", "1e-3", "10L", "1.5BD"]),
        ("a<=>b<>c!=d", ["a", "<=>", "b", "<>", "c", "!=", "d"]),
        ("a>=b::c->d||e", ["a", ">=", "b", "::", "c", "->", "d", "||", "e"]),
        ("a -- ; ' x\nb", ["a", "b"]),
        ("a /* ; ' */ b", ["a", "b"]),
        ("a /* x /* y */ ' */ b", ["a", "b"]),
        ("a / b", ["a", "/", "b"]),
        ("été = 1", ["été", "=", "1"]),
        ("", []),
    ],
)
def test_a_text_is_divided_into_words(sql: str, words: list[str]) -> None:
    assert _words(sql) == words


@pytest.mark.parametrize(
    ("sql", "place", "problem"),
    [
        ("a 'b", "line 1, character 3", "a string is not closed: expected another '"),
        ('a\n "b', "line 2, character 2", 'a string is not closed: expected another "'),
        ("`b", "line 1, character 1", "a name in backticks is not closed"),
        ("a\n\nb /* c /* d */", "line 3, character 3", "a comment is not closed: expected */"),
        ("a $ b", "line 1, character 3", "the character '$' is not valid outside of quotes"),
        ("a \x00", "line 1, character 3", "the character '\\x00' is not valid"),
    ],
)
def test_what_is_no_word_is_named_with_its_place(sql: str, place: str, problem: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        split(sql)
    assert place in str(error.value)
    assert problem in str(error.value)


def test_an_error_shows_a_part_of_a_long_text() -> None:
    with pytest.raises(InvalidInputError, match="character 5001") as error:
        split("x " * 2500 + "$" + " y" * 2500)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("sql", "is_query"),
    [
        ("SELECT 1", True),
        ("((select *", True),
        ("SELECT NOT true", True),
        ("WITH a AS", True),
        ("VALUES (1)", True),
        ("VALUES 'a'", True),
        ("FROM t", True),
        ("TABLE t", True),
        ("(select, from)", False),
        ("(from IN (1))", False),
        ("values = 1", False),
        ("table.id", False),
        ("(with)", False),
        ("`select` 1", False),
        ("UPDATE t", False),
        ("(", False),
        ("", False),
    ],
)
def test_a_query_begins_with_its_words_unless_they_are_columns(sql: str, *, is_query: bool) -> None:
    assert begins_query(split(sql), 0) is is_query


def test_a_text_of_parts_knows_where_its_parts_come_from() -> None:
    source = "zz a ? c ? e"
    parts = TextParts(source, 3)
    parts.replace(5, 6, ":first")
    parts.replace(9, 10, ":second")
    found = parts.done(len(source))
    assert found.text == "a :first c :second e"
    assert [found.origin(found.text.index(f" {sign}") + 1) for sign in "ce"] == [7, 11]
    assert found.origin(found.text.index(":first")) == 5
    assert found.origin(found.text.index(":second")) == 9
