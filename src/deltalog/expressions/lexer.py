"""Spark SQL text as tokens with their positions.

Owns quoting, escapes, comments and number suffixes, and every error's place in the text. Spark
4's spellings: `''` inside single quotes is one quote, and `r'…'` keeps backslashes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from deltalog.errors import InvalidInputError

NAME: Final = "name"
QUOTED_NAME: Final = "quoted name"
TEXT: Final = "text"
NUMBER: Final = "number"
BYTES: Final = "bytes"
OPERATOR: Final = "operator"
END: Final = "end"

_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|--[^\r\n]*|/\*.*?\*/)
  | (?P<bytes>[xX]'[^']*')
  | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
  | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w))
  | (?P<name>[^\W\d]\w*)
  | (?P<operator><=>|<>|!=|==|>=|<=|\|\||::|/(?!\*)|[-+*%=<>!(),.\[\]?:&|^~])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED: Final = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Args:
        kind: what it is.
        value: the name, the operator or the text that it stands for.
        start: where it begins, counted from 0.
        source: as it stands in the SQL.
    """

    kind: str
    value: str
    start: int
    source: str

    @property
    def word(self) -> str:
        """The token as a keyword or operator, in lower case; empty for names in quotes."""
        return self.value.lower() if self.kind in {NAME, OPERATOR} else ""


def tokenize(sql: str) -> list[Token]:
    """The tokens of a text, closed by one of kind `END`.

    Raises:
        InvalidInputError: some character begins no token, or a quote is left open.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        if match is None:
            raise _no_token(sql, position)
        if match.lastgroup != "space":
            tokens.append(_token(sql, match))
        position = match.end()
    tokens.append(Token(END, "", len(sql), ""))
    return tokens


class Cursor:
    """A place between the tokens of a text.

    Args:
        sql: the text.

    Raises:
        InvalidInputError: as `tokenize`.
    """

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = tokenize(sql)
        self._position = 0

    @property
    def next(self) -> Token:
        """The token that comes now."""
        return self._tokens[self._position]

    def ahead(self, steps: int = 1) -> Token:
        """The token after so many others."""
        return self._tokens[min(self._position + steps, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The token that comes now, and step over it."""
        token = self.next
        if token.kind != END:
            self._position += 1
        return token

    def accept(self, *words: str) -> bool:
        """Step over these words if they come now, all of them."""
        if all(self.ahead(index).word == word for index, word in enumerate(words)):
            self._position += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Step over these words; an error if another comes."""
        for word in words:
            if not self.accept(word):
                raise self.error(f"expected {word.upper()}")

    def name(self) -> str:
        """Step over a name."""
        token = self.take()
        if token.kind not in {NAME, QUOTED_NAME}:
            raise self.error("expected a name", token)
        return token.value

    def text(self) -> str:
        """Step over a text."""
        token = self.take()
        if token.kind != TEXT:
            raise self.error("expected a text in single quotes", token)
        return token.value

    def finish(self) -> None:
        """Nothing may be left."""
        if self.next.kind != END:
            raise self.error("expected the end, or an operator before this")

    def error(self, problem: str, token: Token | None = None) -> InvalidInputError:
        """The error of this place, or of a token's, for the caller to raise."""
        return _error(self.sql, token or self.next, problem)


def _error(sql: str, token: Token, problem: str) -> InvalidInputError:
    shown = f" ({token.source})" if token.source else ""
    return InvalidInputError(
        f"cannot read the SQL {sql!r} at character {token.start + 1}{shown}: {problem}"
    )


def _no_token(sql: str, position: int) -> InvalidInputError:
    char = sql[position]
    if char in "'\"`":
        problem = f"the quote {char} is never closed"
    elif sql.startswith("/*", position):
        problem = "the comment is never closed"
    elif char.isdigit():
        problem = "this is no number; put a name that begins with a digit in backticks"
    else:
        problem = f"{char!r} has no meaning in an expression"
    return _error(sql, Token(END, "", position, char), problem)


def _token(sql: str, match: re.Match[str]) -> Token:
    source, start = match[0], match.start()
    match match.lastgroup:
        case "text":
            quote = source[0]
            body = source[1:-1].replace(quote * 2, quote)
            return Token(TEXT, _unescape(body), start, source)
        case "raw":
            return Token(TEXT, source[2:-1], start, source)
        case "quoted":
            name = source[1:-1].replace("``", "`")
            if not name:
                raise _error(sql, Token(END, "", start, source), "a name in backticks is empty")
            return Token(QUOTED_NAME, name, start, source)
        case "bytes":
            return Token(BYTES, source[2:-1], start, source)
        case "number":
            return Token(NUMBER, source, start, source)
        case "name":
            return Token(NAME, source, start, source)
        case _:
            return Token(OPERATOR, source, start, source)


def _unescape(body: str) -> str:
    return _ESCAPE.sub(_escaped, body) if "\\" in body else body


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPED.get(code, code)
    if code[0] in "uU":
        return chr(int(code[1:], 16))
    return chr(int(code, 8))
