"""Queries in Spark's dialect, translated to DuckDB's, with the tables that they name.

sqlglot parses and translates. Owns how a table is named in a query: by a path, a name, `@v3`,
`VERSION AS OF`, `TIMESTAMP AS OF`, or `table_changes(…)`.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from deltalog.errors import InvalidInputError
from deltalog.query.lexer import Word, error_at, split
from deltalog.query.names import QualifiedName, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot.expressions import Expr

_CHANGES: Final = frozenset({"table_changes", "table_changes_by_path"})
_PREFIX: Final = "deltalog_table_"


@dataclass(frozen=True, slots=True)
class TableChangesCall:
    """`table_changes(table, start [, end])`: the change data feed of a table.

    Args:
        table: as a text of the query, which is a name or a path.
        start: a version, or a moment as a text.
        end: likewise; None is the latest version.
    """

    table: QualifiedName
    start: int | str
    end: int | str | None

    def __str__(self) -> str:
        """The name of the table, and what is asked of it."""
        return f"table_changes of {self.table}"


@dataclass(frozen=True, slots=True)
class TranslatedQuery:
    """A query in DuckDB's dialect.

    Args:
        sql: with a name for each table.
        tables: that name → what it stands for.
        parameters: the names of its parameters.
    """

    sql: str
    tables: dict[str, QualifiedName | TableChangesCall]
    parameters: frozenset[str]


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """A table in the text of a query.

    Args:
        table: what is named.
        start: its first character.
        end: the character after it, and after its version.
        is_aliased: whether an alias follows.
    """

    table: QualifiedName | TableChangesCall
    start: int
    end: int
    is_aliased: bool


@lru_cache(maxsize=256)
def translated(text: str) -> TranslatedQuery:
    """Return a query in DuckDB's dialect; repeated texts are translated once.

    Raises:
        InvalidInputError: the text is no query; the message has the position.
    """
    tree = _parsed(_with_versions(text))
    tables: dict[str, QualifiedName | TableChangesCall] = {}
    for node in list(tree.find_all(exp.Table)):
        if not _is_cte(node):
            name = f"{_PREFIX}{len(tables)}"
            tables[name] = _reference(node, text)
            node.replace(_named(node, name, tables[name]))
    names = frozenset(
        node.name for node in tree.find_all(exp.Placeholder) if isinstance(node.this, str)
    )
    return TranslatedQuery(tree.sql(dialect="duckdb"), tables, names)


@lru_cache(maxsize=256)
def located(text: str) -> tuple[str, tuple[LocatedTable, ...]]:
    """Return a query in Spark's dialect, and where it names tables, in the order of the text.

    Raises:
        InvalidInputError: the text is no query; the message has the position.
    """
    text = _with_versions(text)
    words = split(text)
    places = {word.start: number for number, word in enumerate(words)}
    found: list[LocatedTable] = []
    for node in _parsed(text).find_all(exp.Table):
        if _is_cte(node):
            continue
        first, last = node.parts[0].meta["start"], places[node.parts[-1].meta["start"]]
        end = _end_of_reference(words, last + 1, is_call=isinstance(node.this, exp.Func))
        alias = bool(node.args.get("alias"))
        found.append(LocatedTable(_reference(node, text), first, words[end - 1].end, alias))
    return text, tuple(sorted(found, key=lambda one: one.start))


def _end_of_reference(words: list[Word], place: int, *, is_call: bool) -> int:
    """Return the place of the word after a table's version, or after the brackets of a call."""
    if is_call:
        depth = 0
        while True:
            depth += words[place].says("(") - words[place].says(")")
            place += 1
            if not depth:
                return place
    start = place + words[place].says("FOR")
    if any(map(words[start].says, ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"))):
        typed = words[start + 3].kind == "word" and words[start + 4].kind == "text"
        return start + 4 + typed
    return place


def _parsed(text: str) -> Expr:
    try:
        trees = parse(text, read="spark")
    except SqlglotError as error:
        found: Any = (getattr(error, "errors", None) or [{}])[0]
        lines = text.splitlines(keepends=True)[: max(0, (found.get("line") or 1) - 1)]
        place = sum(map(len, lines)) + max(0, (found.get("col") or 1) - 1)
        words = str(found.get("description") or error).splitlines()[0]
        raise error_at(text, min(place, len(text)), words) from error
    tree = trees[0] if trees else None
    if len(trees) != 1 or not isinstance(tree, exp.Query | exp.Values):
        raise error_at(text, 0, "expected one query")
    into = next(tree.find_all(exp.Into), None)
    if into is not None:
        raise error_at(text, 0, "expected a query that only reads: SELECT INTO writes")
    return tree


def _with_versions(text: str) -> str:
    """Return the text with `VERSION AS OF` for `@`, which sqlglot takes for an alias."""
    words = split(text)
    parts: list[str] = []
    copied = 0
    for number, word in enumerate(words[:-1]):
        if not word.says("@") or number == 0 or words[number - 1].end != word.start:
            continue
        following = words[number + 1]
        try:
            version = version_of(following.text)
        except InvalidInputError as error:
            raise error_at(text, following.start, str(error)) from None
        if isinstance(version, int):
            kind = f"VERSION AS OF {version}"
        else:
            kind = f"TIMESTAMP AS OF '{version}'"
        parts += text[copied : word.start], f" {kind} "
        copied = following.end
    return "".join([*parts, text[copied:]])


def _is_cte(node: exp.Table) -> bool:
    """Whether a name is that of a common table expression around it."""
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return False
    name = node.name.lower()
    return any(name == cte.alias.lower() for cte in _visible(node))


def _visible(node: Expr) -> Iterator[Expr]:
    """The common table expressions that a place of the tree may name: those before it."""
    inside: list[Expr] = []
    at: Expr | None = node
    while at is not None:
        inside.append(at)
        with_: Any = at.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            if any(cte is one for one in inside):
                if with_.args.get("recursive"):
                    yield cte
                break
            yield cte
        at = at.parent


def _reference(node: exp.Table, text: str) -> QualifiedName | TableChangesCall:
    if isinstance(node.this, exp.Func):
        return _changes(node.this, text)
    version = node.args.get("version")
    parts = tuple(part.name for part in node.parts)
    if version is None:
        return QualifiedName(parts)
    value = version.expression
    if version.this == "VERSION":
        found = str(value.name if isinstance(value, exp.Literal) else value.sql())
        if not found.isdecimal():
            raise error_at(text, 0, f"expected the number of a version, found {found}")
        return QualifiedName(parts, int(found))
    while isinstance(value, exp.Cast | exp.Paren):
        value = value.this
    if not isinstance(value, exp.Literal) or not value.is_string:
        raise error_at(text, 0, "TIMESTAMP AS OF: expected a text such as '2025-01-31'")
    return QualifiedName(parts, str(value.name))


def _changes(call: Any, text: str) -> TableChangesCall:
    name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
    if name.lower() not in _CHANGES:
        raise error_at(text, 0, f"expected a table or table_changes(…), found {name}(…)")
    values = call.expressions
    if not 2 <= len(values) <= 3 or not all(isinstance(one, exp.Literal) for one in values):
        raise error_at(
            text, 0, f"expected {name}('table', start [, end]) with constants for all of them"
        )
    table, *bounds = values
    is_path = name.lower() == "table_changes_by_path"
    parts = ("delta", table.name) if is_path else tuple(_parts_of(table.name))
    start, *rest = (one.name if one.is_string else int(one.name) for one in bounds)
    return TableChangesCall(QualifiedName(parts), start, rest[0] if rest else None)


def _parts_of(name: str) -> list[str]:
    """Return the parts of a name that is given as a text."""
    words = [word for word in split(name) if word.kind in {"word", "quoted"}]
    unquoted = [word.text.strip("`").replace("``", "`") for word in words]
    return unquoted or [name]


def _named(node: exp.Table, name: str, reference: QualifiedName | TableChangesCall) -> exp.Table:
    """Return what replaces a table: its new name, known by its alias or by its old name."""
    found: exp.Table = node.copy()
    for part in ("db", "catalog", "version"):
        found.set(part, None)
    found.set("this", exp.to_identifier(name, quoted=True))
    if not found.args.get("alias"):
        own = reference.table if isinstance(reference, TableChangesCall) else reference
        found.set("alias", exp.TableAlias(this=exp.to_identifier(own.parts[-1], quoted=True)))
    return found
