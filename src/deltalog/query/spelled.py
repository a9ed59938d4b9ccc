"""Names of a query spelled as the tables spell them.

Spark takes `ä` and `Ä` for one name; DuckDB ignores the case of ASCII's letters alone.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from deltalog.names import name_key
from deltalog.query.parse import read_query
from deltalog.query.translate import translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deltalog.query.translate import TranslatedQuery

# What may name a column of a table: all other names are the query's own.
_READS: Final = (exp.Column, exp.Dot, exp.Join)


def spelled_as_tables(
    text: str, found: TranslatedQuery, tables: Mapping[str, Any]
) -> TranslatedQuery:
    """Return a translated query whose columns are spelled as the tables that it reads spell them.

    A name stays that some column has exactly, that several columns have in another case, or that
    the query gives to something itself. The answer's columns are called as the query says.

    Args:
        text: the query.
        found: what it was translated to.
        tables: name in `found` → an Arrow dataset, table or reader.
    """
    if text.isascii() and all(name.isascii() for name in _names_of(tables.values())):
        return found
    spelled = _spelled(text, frozenset(_names_of(tables.values())))
    return found if spelled == text else replace(translated(spelled), names=found.names)


def _names_of(tables: Iterable[Any]) -> Iterator[str]:
    for rows in tables:
        schema = getattr(rows, "schema", None)
        if isinstance(schema, pa.Schema):
            for part in schema:
                yield from _names_in(part)


def _names_in(part: pa.Field[Any]) -> Iterator[str]:
    yield part.name
    kind: Any = part.type
    for place in range(kind.num_fields):
        yield from _names_in(kind.field(place))


def _spelled(text: str, names: frozenset[str]) -> str:
    by_key: dict[str, set[str]] = {}
    for name in names:
        by_key.setdefault(name_key(name), set()).add(name)
    query = read_query(text)
    identifiers = list(query.tree.find_all(exp.Identifier))
    own = {name_key(one.name) for one in identifiers if not isinstance(one.parent, _READS)}
    changes: dict[int, tuple[int, str]] = {}
    for one in identifiers:
        key, start = name_key(one.name), one.meta.get("start")
        meant = by_key.get(key, ())
        if one.name in names or key in own or len(meant) != 1 or start is None:
            continue
        (name,) = meant
        end = one.meta["end"] + 1
        written = query.source.text[start:end]
        place = query.source.origin(start)
        if _is_same_to_duckdb(name, one.name) or not text.startswith(written, place):
            continue
        quoted = name.replace("`", "``")
        changes[place] = (place + len(written), f"`{quoted}`")
    for place, (end, name) in sorted(changes.items(), reverse=True):
        text = text[:place] + name + text[end:]
    return text


def _is_same_to_duckdb(one: str, other: str) -> bool:
    """Whether names differ in the case of ASCII's letters alone."""
    return one.encode().lower() == other.encode().lower()
