"""`USE`, and `SHOW` of catalogs, schemas and tables: what the names of tables begin with.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.names import name_key
from deltalog.statements.statement import Session, SqlStatement, StatementAnswer, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltalog.statements.reader import StatementReader

_TABLES: Final[dict[str, pa.DataType]] = {
    "namespace": pa.string(),
    "tableName": pa.string(),
    "isTemporary": pa.bool_(),
}
SCHEMAS: Final = ("SCHEMAS", "DATABASES", "NAMESPACES")


class NamespaceStatement(SqlStatement):
    """A statement about a catalog or a schema, and about no table."""

    __slots__ = ()

    @property
    @abstractmethod
    def namespace(self) -> tuple[str, ...]:
        """The catalog or the schema; empty is the session's."""


@dataclass(frozen=True, slots=True)
class UseStatement(NamespaceStatement):
    """`USE [CATALOG|SCHEMA|DATABASE|NAMESPACE] name`."""

    namespace: tuple[str, ...] = ()
    is_catalog: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Let shorter names begin with the schema from now on."""
        session.use(self.namespace, is_catalog=self.is_catalog)
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True)
class ShowCatalogsStatement(NamespaceStatement):
    """`SHOW CATALOGS [LIKE 'pattern']`."""

    namespace: tuple[str, ...] = ()
    pattern: str | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each catalog that the session knows."""
        return _listed("catalog", session.catalogs(), self.pattern)


@dataclass(frozen=True, slots=True)
class ShowSchemasStatement(NamespaceStatement):
    """`SHOW SCHEMAS [IN catalog] [LIKE 'pattern']`."""

    namespace: tuple[str, ...] = ()
    pattern: str | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each schema."""
        found = (".".join(name) for name in session.schemas(self.namespace))
        return _listed("namespace", found, self.pattern)


@dataclass(frozen=True, slots=True)
class ShowTablesStatement(NamespaceStatement):
    """`SHOW TABLES [IN schema] [LIKE 'pattern']`; the pattern has `*` and `|`."""

    namespace: tuple[str, ...] = ()
    pattern: str | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each table that has a name."""
        rows: list[tuple[Any, ...]] = [
            (".".join(name.parts[:-1]), name.parts[-1], not name.parts[:-1])
            for name in session.tables(self.namespace)
            if _matches(name.parts[-1], self.pattern)
        ]
        return StatementAnswer(table_of(_TABLES, sorted(rows)))


def read_use(reader: StatementReader) -> SqlStatement:
    """Read what follows `USE`."""
    if reader.take("CATALOG"):
        return UseStatement(reader.path("a catalog"), is_catalog=True)
    reader.take_one("SCHEMA", "DATABASE", "NAMESPACE")
    return UseStatement(reader.path("a schema"))


def read_show_names(reader: StatementReader, kind: str) -> SqlStatement:
    """Read what follows `SHOW CATALOGS`, `SHOW SCHEMAS` or `SHOW TABLES`."""
    if kind == "CATALOGS":
        return ShowCatalogsStatement(pattern=_read_pattern(reader))
    what = "a catalog" if kind in SCHEMAS else "a schema"
    within = reader.path(what) if reader.take_one("IN", "FROM") else ()
    made = ShowSchemasStatement if kind in SCHEMAS else ShowTablesStatement
    return made(within, _read_pattern(reader))


def _read_pattern(reader: StatementReader) -> str | None:
    has_pattern = reader.take("LIKE") or reader.word.kind == "text"
    return reader.text() if has_pattern else None


def _listed(column: str, names: Iterable[str], pattern: str | None) -> StatementAnswer:
    rows = [(name,) for name in sorted(names) if _matches(name, pattern)]
    return StatementAnswer(table_of({column: pa.string()}, rows))


def _matches(name: str, pattern: str | None) -> bool:
    if pattern is None:
        return True
    options = map(name_key, pattern.split("|"))
    return any(fnmatchcase(name_key(name), option.strip()) for option in options)
