"""The words of an SQL text: names, quoted names, texts, numbers and signs, with their places.

Nothing is skipped but spaces and whole comments. What an expression or a query means is the
business of `expressions` and `queries`; here they are only divided, so that the grammar of
statements knows where they begin and end.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from deltalog.errors import InvalidInputError

_WORD: Final = re.compile(
    r"""
    (?P<gap> (?: \s+ | --[^\r\n]* | /\*.*?\*/ )+ )
  | (?P<text> [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
  | (?P<quoted> `(?:[^`]|``)*` )
  | (?P<number> (?:\d+(?:\.\d*)?|\.\d+) (?:[eE][+-]?\d+)? [A-Za-z]* )
  | (?P<word> [^\W\d]\w* )
  | (?P<sign> <=> | <= | >= | <> | != | == | => | -> | :: | \|\| | [-+*/%=<>&|^~!?:.,;()\[\]@] )
    """,
    re.VERBOSE | re.DOTALL,
)
_EXCERPT: Final = 120
_QUOTES: Final = {"'": "a text", '"': "a text", "`": "a name in backticks"}


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a statement.

    Args:
        kind: `word`, `quoted`, `text`, `number`, `sign`, or `end` after the last one.
        text: as it was written.
        start: its first character in the statement.
        end: the character after it.
    """

    kind: str
    text: str
    start: int
    end: int

    def says(self, keyword: str) -> bool:
        """Whether it is this keyword, in upper case, or this sign."""
        return self.kind in {"word", "sign"} and self.text.upper() == keyword


def split(sql: str) -> list[Word]:
    """Return the words of a text, and one of the kind `end`.

    Raises:
        InvalidInputError: a character begins no word, or a quote or comment is not closed.
    """
    found, place = [], 0
    while place < len(sql):
        match = _WORD.match(sql, place)
        if match is None:
            raise error_at(sql, place, _unclosed(sql, place))
        if match.lastgroup != "gap":
            found.append(Word(match.lastgroup or "", match[0], place, match.end()))
        place = match.end()
    return [*found, Word("end", "", len(sql), len(sql))]


def error_at(sql: str, place: int, problem: str) -> InvalidInputError:
    """Return an error with its position in the statement, for the caller to raise."""
    line = sql.count("\n", 0, place) + 1
    character = place - sql.rfind("\n", 0, place)
    begin = max(0, min(place - _EXCERPT // 2, len(sql) - _EXCERPT))
    end = begin + _EXCERPT
    shown = ("…" if begin else "") + sql[begin:end] + ("…" if end < len(sql) else "")
    return InvalidInputError(
        f"cannot read the statement {shown!r} at line {line}, character {character}: {problem}"
    )


def _unclosed(sql: str, place: int) -> str:
    sign = sql[place + 1] if sql[place] in "rR" else sql[place]
    if sign in _QUOTES:
        return f"{_QUOTES[sign]} is not closed: expected another {sign}"
    if sql.startswith("/*", place):
        return "a comment is not closed: expected */"
    return f"no statement has the character {sign!r} outside of quotes"
