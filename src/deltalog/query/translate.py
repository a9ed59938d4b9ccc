"""Queries in Spark's dialect, translated to DuckDB's, with the tables that they name.

sqlglot translates. Owns how a table is named in a query: by a path, a name, `@v3`,
`VERSION AS OF`, `TIMESTAMP AS OF`, or `table_changes(…)`; and that a query reads tables only: never
files, nor settings of the machine.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog.errors import InvalidInputError
from deltalog.names import name_key, path_key
from deltalog.query.computed import divided
from deltalog.query.dialect import as_duckdb_does
from deltalog.query.joins import number_naturals
from deltalog.query.lexer import SyntaxProblem, error_at
from deltalog.query.names import QualifiedName, VersionExpression
from deltalog.query.parse import FAILURES, OPTIONS, TOO_DEEP, read_query, start_of
from deltalog.query.pruning import EVERYTHING, TableRead, names_in, names_looked_into, read_of
from deltalog.query.selections import Selection, selection_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlglot.expressions import Expr

    from deltalog.query.computed import Part

CHANGES: Final = frozenset({"table_changes", "table_changes_by_path"})
"""The functions that are tables."""
_PREFIX: Final = "deltalog_table_"
_VERSION: Final = "versionasof"
_TIMESTAMP: Final = "timestampasof"
_TRAVELLING: Final = frozenset({_VERSION, _TIMESTAMP})


@dataclass(frozen=True, slots=True)
class TableChangesCall:
    """`table_changes(table, start [, end])`: the change data feed of a table.

    Args:
        table: as a text of the query, which is a name or a path.
        start: a version, or a moment as a text.
        end: likewise; None is the latest version.
    """

    table: QualifiedName
    start: int | str | VersionExpression
    end: int | str | VersionExpression | None

    def __str__(self) -> str:
        """The name of the table, and what is asked of it."""
        return f"table_changes of {self.table}"


TableReference = QualifiedName | TableChangesCall


@dataclass(frozen=True, slots=True)
class TranslatedQuery:
    """A query in DuckDB's dialect.

    Args:
        sql: with a name for each table, and marks for its parts.
        tables: that name → what it stands for.
        reads: that name → what is needed of it.
        parameters: the names of its parameters.
        parts: what is decided when the types of its columns are known.
        names: of the columns of the answer, as the query spells them; None where it does not.
        selection: what is asked of its only table; None if the query is more than a scan.
    """

    sql: str
    tables: dict[str, TableReference]
    reads: dict[str, TableRead]
    parameters: frozenset[str]
    parts: tuple[Part, ...] = ()
    names: tuple[str | None, ...] = ()
    selection: Selection | None = None


@lru_cache(maxsize=256)
def check_query(text: str) -> frozenset[str]:
    """Return the names of a query's parameters; a text that is no query is refused.

    Repeated texts are read once.

    Raises:
        SyntaxProblem: what is wrong, and where.
    """
    tree = read_query(text).tree
    return frozenset(
        node.name for node in tree.find_all(exp.Placeholder) if isinstance(node.this, str)
    )


@lru_cache(maxsize=256)
def translated(text: str) -> TranslatedQuery:
    """Return a query in DuckDB's dialect; repeated texts are translated once.

    Raises:
        InvalidInputError: the text is no query, or DuckDB has nothing like it; the message has the
            position.
    """
    try:
        names = check_query(text)
        found = read_query(text)
        tree = found.tree.copy()
        prefix = _PREFIX
        while prefix in text.lower():
            prefix += "_"  # the query has such a name of its own
        tables: dict[str, TableReference] = {}
        reads: dict[str, TableRead] = {}
        needed = {id(node): read_of(node) for node in tree.find_all(exp.Table)}
        looked_into, named = names_looked_into(tree), names_in(tree)
        tree = as_duckdb_does(tree)
        number_naturals(tree)
        aliases = _qualified(tree)
        for node in list(tree.find_all(exp.Table)):
            if not is_cte(node):
                name = f"{prefix}{len(tables)}"
                tables[name] = reference_of(node)
                _refuse_options(node)
                read = needed.get(id(node), EVERYTHING)
                reads[name] = replace(read, looked_into=looked_into, named=named)
                alias = aliases.get(id(node)) or _name_of(tables[name]).parts[-1]
                _rename(node, name, alias)
        try:
            whole = divided(tree, found.source)
        except SyntaxProblem as problem:
            raise SyntaxProblem(found.source.origin(problem.place), problem.problem) from problem
        except FAILURES as error:
            raise SyntaxProblem(0, f"expected another query: {error}") from error
    except RecursionError:
        raise error_at(text, 0, TOO_DEEP) from None
    except SyntaxProblem as problem:
        raise error_at(text, problem.place, problem.problem) from problem
    return TranslatedQuery(
        whole.text, tables, reads, names, whole.parts, _spelled(found.tree), selection_of(found)
    )


def bound(reference: TableReference, parameters: Mapping[str, object]) -> TableReference:
    """Return a table at the version that its expressions give now.

    Raises:
        InvalidInputError: a value is no version and no moment.
    """
    if isinstance(reference, QualifiedName):
        return replace(reference, version=_value(reference.version, parameters))
    start, end = (_value(one, parameters) for one in (reference.start, reference.end))
    return replace(reference, start=start, end=end)


def _value(version: Any, parameters: Mapping[str, object]) -> Any:
    return version.value(parameters) if isinstance(version, VersionExpression) else version


def _spelled(tree: Any) -> tuple[str | None, ...]:
    """The names of columns as the query spells them, which need not be as the table does."""
    selected = getattr(tree, "selects", [])
    if any(one.is_star for one in selected):
        return ()
    return tuple(one.name if isinstance(one, exp.Column) else None for one in selected)


def is_cte(node: exp.Table) -> bool:
    """Whether a name is that of a common table expression around it."""
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return False
    name = name_key(node.name)
    return any(name == name_key(cte.alias) for cte in _visible(node))


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


def reference_of(node: exp.Table) -> TableReference:
    """Return what a table of a tree stands for.

    Raises:
        SyntaxProblem: its name or its version is none.
    """
    if isinstance(node.this, exp.Func):
        return _changes(node.this)
    # sqlglot has three places for a name: what is longer is in the last one, with dots.
    if not all(isinstance(part, exp.Identifier) for part in node.parts):
        raise SyntaxProblem(start_of(node), "expected the name of a table")
    version = node.args.get("version")
    parts = tuple(part.name for part in node.parts)
    options = node.meta.get(OPTIONS, {})
    if options.keys() & _TRAVELLING and (version is not None or options.keys() >= _TRAVELLING):
        raise SyntaxProblem(start_of(node), "expected one version of the table")
    if version is None:
        return QualifiedName(parts, _version_of_options(node, options))
    value = version.expression
    if isinstance(value, exp.Literal):
        if version.this != "VERSION":
            return QualifiedName(parts, str(value.name))
        if not value.name.isdecimal():
            problem = f"expected the number of a version, found {value.name}"
            raise SyntaxProblem(start_of(node), problem)
        return QualifiedName(parts, int(value.name))
    return QualifiedName(parts, VersionExpression(version.this == "VERSION", value.sql("spark")))


def options_of(node: exp.Table) -> dict[str, str]:
    """Return what the options of a table say, without its version."""
    found = node.meta.get(OPTIONS, {})
    return {name: value for name, value in found.items() if name not in _TRAVELLING}


def _refuse_options(node: exp.Table) -> None:
    for name in options_of(node):
        raise SyntaxProblem(
            start_of(node), f"expected versionAsOf or timestampAsOf in WITH (…), found {name!r}"
        )


def _version_of_options(node: exp.Table, options: Mapping[str, str]) -> int | str | None:
    number = options.get(_VERSION)
    if number is None:
        return options.get(_TIMESTAMP)
    if not number.isdecimal():
        raise SyntaxProblem(start_of(node), f"expected the number of a version, found {number}")
    return int(number)


def _name_of(reference: TableReference) -> QualifiedName:
    return reference.table if isinstance(reference, TableChangesCall) else reference


def name_of_call(call: Any) -> str:
    """Return the name of a function, in lower case."""
    name: str = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
    return name.lower()


def _changes(call: Any) -> TableChangesCall:
    name = name_of_call(call)
    if name not in CHANGES:
        raise SyntaxProblem(
            start_of(call), f"expected a table or table_changes(…), found {name}(…)"
        )
    values = call.expressions
    table = values[0] if values else None
    if not 2 <= len(values) <= 3 or not isinstance(table, exp.Literal) or not table.is_string:
        raise SyntaxProblem(
            start_of(call), f"expected {name}('table', start [, end]) with the table as a text"
        )
    found = QualifiedName(("delta", table.name))
    if name != "table_changes_by_path":
        try:
            found = QualifiedName.parse(table.name)
        except InvalidInputError as error:
            raise SyntaxProblem(start_of(call), str(error)) from None
    start, *rest = (
        int(one.name) if one.is_int
        else one.name if isinstance(one, exp.Literal)
        else VersionExpression(None, one.sql("spark"))
        for one in values[1:]
    )  # fmt: skip
    return TableChangesCall(found, start, rest[0] if rest else None)


def _qualified(tree: Expr) -> dict[int, str]:
    """Let columns name their tables by one part, and return the aliases of tables for that.

    `SELECT s.t.id FROM s.t` becomes `SELECT t.id FROM s.t AS t`. Tables of one query whose last
    parts are the same are called by all of their parts.
    """
    aliases: dict[int, str] = {}
    known: dict[int, dict[tuple[str, ...], str]] = {}
    for node in tree.find_all(exp.Table):
        if node.args.get("alias") or not isinstance(node.this, exp.Identifier):
            continue
        names = known.setdefault(id(node.find_ancestor(exp.Select)), {})
        parts = tuple(part.name for part in node.parts)
        key, last = path_key(parts), parts[-1]
        is_taken = name_key(last) in {name_key(alias) for alias in names.values()}
        if key not in names:
            names[key] = ".".join(parts) if is_taken else last
        aliases[id(node)] = names[key]
    for column in list(tree.find_all(exp.Column)):
        if column.args.get("db"):
            _shorten(column, known)
    return aliases


def _shorten(column: exp.Column, known: Mapping[int, Mapping[tuple[str, ...], str]]) -> None:
    parts = column.parts
    at: Expr | None = column
    while at is not None:
        at = at.find_ancestor(exp.Select)
        for key, alias in known.get(id(at), {}).items():
            own = tuple(name_key(part.name) for part in parts[: len(key)])
            if len(key) > 1 and own == key and len(parts) > len(key):
                left = [exp.to_identifier(alias, quoted=True), *parts[len(key) :]]
                names = ("this", "table", "db", "catalog")
                for place, name in enumerate(names):
                    column.set(name, left[-1 - place] if place < len(left) else None)
                return


def _rename(node: exp.Table, name: str, alias: str) -> None:
    """Give a table another name, known by its alias or by what its columns call it."""
    known = exp.to_identifier(name, quoted=True)
    known.meta.update(node.parts[0].meta)  # where it is in the text, for errors
    for part in ("db", "catalog", "version"):
        node.set(part, None)
    node.set("this", known)
    if not node.args.get("alias"):
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
