"""Comments of SQL texts, and texts without them.

sqlglot ends comments elsewhere than Spark: Spark nests them, and a backslash continues one to the
next line. So sqlglot is never shown one. Hints (`/*+ … */`) are comments here: they name tables,
but mean no rows.
"""

from __future__ import annotations

import re
from typing import Final

COMMENT_LINE: Final = r"--(?:\\\n|[^\r\n])*"
"""A pattern of a comment up to the end of its line."""

_PART: Final = re.compile(
    rf"""
    (?P<kept> (?<!\w)[rR]'[^']*' | (?<!\w)[rR]"[^"]*" | '(?:[^'\\]|\\.|'')*'
      | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*` )
  | (?P<line> {COMMENT_LINE} )
  | (?P<opening> /\* )
    """,
    re.VERBOSE | re.DOTALL,
)
_BORDER: Final = re.compile(r"/\*|\*/")


def end_of_comment(sql: str, start: int) -> int | None:
    """Return the character after a comment, which may hold others; None if it is not closed."""
    depth = 0
    for sign in _BORDER.finditer(sql, start):
        depth += 1 if sign[0] == "/*" else -1
        if not depth:
            return sign.end()
    return None


def without_comments(sql: str) -> str:
    """Return a text with a space for each character of a comment: nothing changes its place.

    A comment that is not closed stays.
    """
    if "--" not in sql and "/*" not in sql:
        return sql
    parts, place = [], 0
    while (found := _PART.search(sql, place)) is not None:
        end: int | None = found.end()
        if found.lastgroup == "opening":
            end = end_of_comment(sql, found.start())
            if end is None:
                break
        is_kept = found.lastgroup == "kept"
        parts.append(sql[place : end if is_kept else found.start()])
        parts.append("" if is_kept else " " * (end - found.start()))  # type: ignore[operator]
        place = end  # type: ignore[assignment]
    return "".join((*parts, sql[place:]))
