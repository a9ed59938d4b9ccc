"""What to write instead of clauses of CREATE TABLE in a schema in SQL, such as `id long DEFAULT 0`.

Such a schema has names, types, NOT NULL and COMMENT. Other clauses are the metadata of a `Field`.

Protocol: none
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["reason_in_fields"]

_IN_SQL: Final = ", or run CREATE TABLE with deltalog.sql"
_CLAUSES: Final = {
    r"(?:primary|foreign)\s+key\b|unique\b|references\b": "a table has no such keys or indexes; "
    "table.alter.set_key_index(columns) makes look-ups of keys fast",
    r"generated\b.*\bidentity\b|identity\b|auto_?increment\b|(?:big|small)?serial\b": "for an "
    "identity column, pass Field('id', 'long', metadata={'delta.identity.start': 1, "
    f"'delta.identity.step': 1, 'delta.identity.allowExplicitInsert': False}}){_IN_SQL}",
    r"(?:generated\b.*\b)?as\b": "for a generated column, pass Field('day', 'date', "
    f"metadata={{'delta.generationExpression': 'cast(moment AS date)'}}){_IN_SQL}",
    r"default\b": "for a default value, pass Field('state', 'string', "
    f"metadata={{'CURRENT_DEFAULT': \"'new'\"}}){_IN_SQL}",
    r"check\b|constraint\b": "constraints={'name': 'price > 0'} of DeltaTable.create, or "
    "table.alter.add_constraint, checks rows",
    r"null\b": "leave out NULL: a column without NOT NULL may be NULL",
}
"""The beginning of a clause → what to write instead."""
_PATTERNS: Final = {re.compile(one, re.IGNORECASE | re.DOTALL): _CLAUSES[one] for one in _CLAUSES}
_AT: Final = re.compile(r" at character (?P<place>\d+)(?: \((?P<token>.*?)\))?: ", re.DOTALL)
_AS_COLUMN: Final = re.compile(
    r"(?:^|,)\s*(?P<clause>(?:primary|foreign)\s+key\s*\(|unique\s*\(|check\s*\(|constraint\s+\S+\s+"
    r"(?P<kind>check|primary|foreign|unique)\b)",
    re.IGNORECASE,
)
"""A clause where a column is expected, which the parser takes for a name and a type."""
_TYPE: Final = re.compile(r"(?:^|[,\s])(?P<type>(?:big|small)?serial|identity)\b", re.IGNORECASE)
_PREFIX: Final = "struct<"


def reason_in_fields(sql: str, error: Exception) -> str:
    """Return why `struct<…>` around a schema in SQL could not be parsed, without the `struct<`.

    Args:
        sql: the schema, without `struct<` and `>`.
        error: the error of the parser of types.
    """
    text = str(error)
    found = _AT.search(text)
    reason = text[found.end() :] if found else text.partition(": ")[2] or text
    place = max(int(found["place"]) - 1 - len(_PREFIX), 0) if found else 0
    # The parser expects the brackets that close `struct<` and the type `key(`.
    is_bracket = reason.startswith(("expected >", "expected )"))
    if advice := _advice(sql, place, is_bracket=is_bracket):
        return advice
    if is_bracket and found and found["token"] and place < len(sql):
        return f"expected a comma or the end before {found['token']!r}"
    return reason


def _advice(sql: str, place: int, *, is_bracket: bool) -> str:
    if clause := _AS_COLUMN.search(sql):
        place = clause.start("kind" if clause["kind"] else "clause")
    elif not is_bracket:
        if (of_type := _TYPE.search(sql)) is None:
            return ""
        place = of_type.start("type")
    return next((advice for one, advice in _PATTERNS.items() if one.match(sql, place)), "")
