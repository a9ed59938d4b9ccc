"""Scripts: several statements, which semicolons divide.

Protocol: none
"""

from __future__ import annotations

from deltalog.errors import InvalidInputError
from deltalog.query.lexer import split


def statements_of(script: str) -> list[str]:
    """Return the statements of a script; empty ones are left out.

    Raises:
        InvalidInputError: a quote or a comment is not closed.
    """
    found: list[str] = []
    start, is_empty = 0, True
    for word in split(script):
        if word.kind == "end" or word.says(";"):
            if not is_empty:
                found.append(script[start : word.start].strip())
            start, is_empty = word.end, True
        else:
            is_empty = False
    return found


def is_complete(text: str) -> bool:
    """Whether a text that is being typed ends with a semicolon outside of quotes and comments."""
    try:
        words = split(text)
    except InvalidInputError:
        return False
    return len(words) > 1 and words[-2].says(";")
