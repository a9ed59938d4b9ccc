"""A reader of the words of one statement: keywords, names, and lists of what others read.

Owns the place where reading is, and the errors about words. `reader` reads slices on top of it.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from deltalog.query.lexer import Word, error_at, split
from deltalog.query.names import unquoted
from deltalog.statements.slices import stops_at

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class WordReader:
    """Reads a statement word by word; keywords ignore case.

    Args:
        sql: one statement.

    Raises:
        InvalidInputError: as `split`.
    """

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._words = split(sql)
        self._place = 0

    @property
    def word(self) -> Word:
        """The next word."""
        return self._words[self._place]

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left but semicolons."""
        rest = self._words[self._place :]
        return all(word.says(";") or word.kind == "end" for word in rest)

    def is_at(self, keywords: str) -> bool:
        """Whether these keywords or signs come next, such as `GROUP BY`."""
        return stops_at(self._words, self._place, (keywords,))

    def take(self, keywords: str) -> bool:
        """Read these keywords or signs if they come next, and return whether they did."""
        found = self.is_at(keywords)
        self._place += len(keywords.split()) if found else 0
        return found

    def take_one(self, *options: str) -> str | None:
        """Read that of these keywords which comes next, and return it; None if none does."""
        return next((option for option in options if self.take(option)), None)

    def expect(self, keywords: str) -> None:
        """Read these keywords or signs; anything else is an error."""
        if not self.take(keywords):
            self.fail(f"expected {keywords}")

    def expect_one(self, *options: str) -> str:
        """Read one of these keywords, and return it; anything else is an error."""
        found = self.take_one(*options)
        if found is None:
            self.fail(f"expected {', '.join(options[:-1])} or {options[-1]}")
        return found

    def expect_end(self) -> None:
        """Refuse what is left of the statement."""
        if not self.is_at_end:
            self.fail("expected the end of the statement")

    def fail(self, expected: str) -> NoReturn:
        """Raise the error that something else was expected here."""
        found = self.word.text or "the end"
        raise error_at(self.sql, self.word.start, f"{expected}, found {found}")

    def fail_at(self, word: Word, problem: str) -> NoReturn:
        """Raise an error about a word that was read."""
        raise error_at(self.sql, word.start, problem)

    def name(self, what: str = "a name") -> str:
        """Read a name, in backticks or not."""
        word = self.word
        if word.kind == "quoted" and len(word.text) > 2:
            self._place += 1
            return unquoted(word.text)
        if word.kind != "word":
            self.fail(f"expected {what}")
        self._place += 1
        return word.text

    def path(self, what: str = "a column") -> tuple[str, ...]:
        """Read a name with its parts: `a.b.c`."""
        parts = [self.name(what)]
        while self.take("."):
            parts.append(self.name("a name after the dot"))
        return tuple(parts)

    def listed(self, read: Callable[[], T], *, is_bracketed: bool = True) -> list[T]:
        """Read one or more things that commas divide, in brackets unless it is said otherwise."""
        if is_bracketed:
            self.expect("(")
        found = [read()]
        while self.take(","):
            found.append(read())
        if is_bracketed:
            self.expect(")")
        return found
