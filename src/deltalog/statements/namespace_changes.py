"""`CREATE` and `DROP` of schemas and catalogs.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from deltalog.statements.namespaces import NamespaceStatement
from deltalog.statements.properties import read_properties
from deltalog.statements.statement import NewNames, Session, StatementAnswer

if TYPE_CHECKING:
    from deltalog.statements.reader import StatementReader
    from deltalog.statements.statement import SqlStatement

_CATALOG: Final = "CATALOG"
KINDS_OF_NAMES: Final = (_CATALOG, "SCHEMA", "DATABASE", "NAMESPACE")


@dataclass(frozen=True, slots=True)
class CreateNamesStatement(NamespaceStatement):
    """`CREATE SCHEMA [IF NOT EXISTS] name …`, or a catalog."""

    names: NewNames

    @property
    def namespace(self) -> tuple[str, ...]:
        """As `NamespaceStatement`."""
        return self.names.namespace

    def run(self, session: Session) -> StatementAnswer:
        """Make it."""
        session.create_names(self.names)
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True)
class DropNamesStatement(NamespaceStatement):
    """`DROP SCHEMA [IF EXISTS] name [RESTRICT|CASCADE]`, or a catalog."""

    namespace: tuple[str, ...] = ()
    is_catalog: bool = field(default=False, kw_only=True)
    cascade: bool = field(default=False, kw_only=True)
    may_lack: bool = field(default=False, kw_only=True)

    def run(self, session: Session) -> StatementAnswer:
        """Drop it."""
        session.drop_names(
            self.namespace,
            is_catalog=self.is_catalog,
            cascade=self.cascade,
            may_lack=self.may_lack,
        )
        return StatementAnswer(None)


def read_create_names(reader: StatementReader, kind: str) -> SqlStatement:
    """Read what follows `CREATE SCHEMA`, `CREATE DATABASE`, `CREATE CATALOG`."""
    may_exist = reader.take("IF NOT EXISTS")
    namespace = tuple(reader.path(f"a {kind.lower()}"))
    found: dict[str, str | dict[str, str]] = {}
    while clause := reader.take_one(*_CLAUSES):
        start, name = reader.word, _CLAUSES[clause]
        if name in found:
            reader.fail_at(start, f"expected {clause} once")
        found[name] = read_properties(reader) if name == "properties" else reader.text()
    comment, location = found.get("comment"), found.get("location")
    properties = found.get("properties")
    return CreateNamesStatement(
        NewNames(
            namespace=namespace,
            is_catalog=kind == _CATALOG,
            may_exist=may_exist,
            comment=comment if isinstance(comment, str) else None,
            location=location if isinstance(location, str) else None,
            properties=properties if isinstance(properties, dict) else None,
        )
    )


def read_drop_names(reader: StatementReader, kind: str) -> SqlStatement:
    """Read what follows `DROP SCHEMA`, `DROP DATABASE`, `DROP CATALOG`."""
    may_lack = reader.take("IF EXISTS")
    namespace = tuple(reader.path(f"a {kind.lower()}"))
    return DropNamesStatement(
        namespace,
        is_catalog=kind == _CATALOG,
        cascade=reader.take_one("RESTRICT", "CASCADE") == "CASCADE",
        may_lack=may_lack,
    )


_CLAUSES: Final = {
    "COMMENT": "comment",
    "LOCATION": "location",
    "MANAGED LOCATION": "location",
    "WITH DBPROPERTIES": "properties",
    "WITH PROPERTIES": "properties",
}
