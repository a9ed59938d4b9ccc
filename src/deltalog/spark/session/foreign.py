"""Conditions in words that only Spark knows, as texts for Spark.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.expressions import lit, to_sql
from deltalog.expressions.render import quote_name
from deltalog.names import name_key
from deltalog.query.lexer import TextParts, split
from deltalog.query.names import unquoted
from deltalog.statements.conditions import answer_of
from deltalog.statements.slices import SubqueryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa

    from deltalog.query.lexer import Word
    from deltalog.statements.slices import Query, SqlCondition
    from deltalog.statements.statement import Qualifiers

_NAMES = frozenset({"word", "quoted"})
_NO_ROWS = "SELECT NULL WHERE false"


def foreign_text(
    values_of: Callable[[Query], pa.Table],
    condition: SqlCondition,
    columns: Collection[str],
    qualifiers: Qualifiers,
    *,
    keeps_last: bool = False,
) -> str:
    """Return a condition with the values of its parameters and the answers of its queries.

    Args:
        values_of: answers a query.
        condition: from the statement.
        columns: of the rows that it is about.
        qualifiers: what may stand before them.
        keeps_last: whether the last part of what stands before a column stays.

    Raises:
        InvalidInputError: a query has more rows or columns than its place allows.
    """
    known = {name: to_sql(lit(value)) for name, value in condition.parameters.items()}
    for name, one in condition.subqueries.items():
        answer = answer_of(values_of, one)
        if one.kind is SubqueryKind.LIST:
            rows = [
                tuple(to_sql(lit(value)) for value in row) for row in zip(*answer[1], strict=True)
            ]
            shown = (row[0] if len(row) == 1 else f"({', '.join(row)})" for row in rows)
            known[name] = ", ".join(shown) or _NO_ROWS
        else:
            known[name] = to_sql(lit(answer))
    words, text = split(condition.text), condition.text
    own = {name_key(name) for name in columns}
    parts = TextParts(text)
    place = 0
    while (word := words[place]).kind != "end":
        if word.says(":") and words[place + 1].text in known and word.end == words[place + 1].start:
            parts.replace(word.start, words[place + 1].end, known[words[place + 1].text])
            place += 2
            continue
        path, after = _path(words, place)
        size = _size(path, qualifiers) if path and path[0] not in own else 0
        if size and not words[after].says("("):
            last = words[place + 2 * size - 2]
            by = f"{quote_name(unquoted(last.text))}." if keeps_last else ""
            parts.replace(word.start, words[place + 2 * size].start, by)
        place = after
    return parts.done(len(text)).text


def _path(words: Sequence[Word], place: int) -> tuple[tuple[str, ...], int]:
    """Return the parts of the name at a word, in lower case, and the place after it."""
    if words[place].kind not in _NAMES:
        return (), place + 1
    parts = [name_key(unquoted(words[place].text))]
    place += 1
    while words[place].says(".") and words[place + 1].kind in _NAMES:
        parts.append(name_key(unquoted(words[place + 1].text)))
        place += 2
    return tuple(parts), place


def _size(path: tuple[str, ...], qualifiers: Qualifiers) -> int:
    sizes = (len(one) for one in qualifiers if path[: len(one)] == one and len(one) < len(path))
    return next(sizes, 0)
