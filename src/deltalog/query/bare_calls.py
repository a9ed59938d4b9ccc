"""Functions that SQL calls without brackets, such as CURRENT_DATE, and columns of their names.

Spark takes such a word for a column if there is one of this name, and for the function otherwise.
DuckDB has more such functions: `user` would be the user `duckdb`.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from deltalog._util.escaping import name_key
from deltalog.query.lexer import Word, split

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sqlglot.expressions import Expr

_CALLS: Final = (exp.CurrentDate, exp.CurrentTimestamp)
_LOCAL: Final = "localtimestamp"
_NAMES: Final = frozenset({*(call.sql_name().lower() for call in _CALLS), _LOCAL})
_WORDS: Final = re.compile(rf"(?i)\b(?:{'|'.join(sorted(_NAMES))})\b")
ONLY_COLUMNS: Final = frozenset(
    {"user", "current_user", "session_user", "current_role", "current_schema", "current_catalog",
     "current_time", "localtime"}
)  # fmt: skip
"""The words that DuckDB takes for functions, even in quotes, and deltalog only for columns."""


def is_only_column(words: Sequence[Word], place: int) -> bool:
    """Return whether a word such as USER must be a column; deltalog has no such function."""
    return (
        words[place].kind == "word"
        and name_key(words[place].text) in ONLY_COLUMNS
        and not words[place + 1].says("(")
    )


def bare_calls(nodes: Iterable[Expr]) -> Iterator[str]:
    """Return the names of functions without brackets among the nodes of a query, in lower case."""
    return (one.sql_name().lower() for one in nodes if isinstance(one, _CALLS))


def as_columns(text: str, names: Collection[str]) -> str:
    """Return a query in which words such as CURRENT_DATE are columns or calls with brackets.

    Args:
        text: the query.
        names: the names of the columns of its tables.
    """
    if _WORDS.search(text) is None:
        return text
    own = _NAMES.intersection(map(name_key, names))
    words = split(text)
    for number, word in reversed(list(enumerate(words[:-1]))):
        if word.kind != "word" or words[number + 1].says("("):
            continue
        if (key := name_key(word.text)) in own:
            text = f"{text[: word.start]}`{word.text}`{text[word.end :]}"
        elif key == _LOCAL and not _is_name(words, number):
            text = f"{text[: word.end]}(){text[word.end :]}"
    return text


def _is_name(words: Sequence[Word], place: int) -> bool:
    """Return whether a word is beside a dot or after AS, so that it is the name of something."""
    before = words[place - 1]
    return before.says(".") or before.says("AS") or words[place + 1].says(".")
