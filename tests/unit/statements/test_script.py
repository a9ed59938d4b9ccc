"""Scripts: where statements end."""

from __future__ import annotations

import pytest

from deltalog import connect
from deltalog.errors import InvalidInputError
from deltalog.statements.connection import is_complete, statements_of


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", []),
        (" ;; -- nothing\n;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; SELECT `;`", ["SELECT ';'", "SELECT `;`"]),
        ("SELECT 1 -- ; x\n; /* ; */ SELECT 2", ["SELECT 1 -- ; x", "/* ; */ SELECT 2"]),
        ("SELECT /* a /* ; */ b */ 1", ["SELECT /* a /* ; */ b */ 1"]),
    ],
)
def test_semicolons_divide_statements(script: str, statements: list[str]) -> None:
    assert statements_of(script) == statements


def test_what_is_not_closed_is_named() -> None:
    with pytest.raises(InvalidInputError, match="line 2, character 8: a string is not closed"):
        statements_of("SELECT 1;\nSELECT 'x; SELECT 2")


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1 /* ;", False),
        ("SELECT 1 -- ;", False),
        ("", False),
    ],
)
def test_a_semicolon_completes_what_is_typed(text: str, *, is_whole: bool) -> None:
    assert is_complete(text) is is_whole


def test_an_error_of_a_script_names_the_statement() -> None:
    script = "SELECT 1;\n\nSELECT x;\nSELECT 2"
    with pytest.raises(InvalidInputError, match="the script, line 3, statement 2 of 3: cannot run"):
        connect().execute_script(script)
    with pytest.raises(InvalidInputError, match=r"statement 2 of 2: .* at line 2, character 12: "):
        connect().execute_script("SELECT 1;\nSELECT 2 x y")
