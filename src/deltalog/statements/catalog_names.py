"""Names of tables in catalogs; `USE`, `SHOW TABLES`, `SHOW SCHEMAS` and `SHOW CATALOGS`.

This module finds the catalog that a name belongs to, by the alias at the beginning of the name or
by the default schema of the session.

Protocol: none
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.argument_types import check_type, kind_of
from deltalog._util.escaping import name_key
from deltalog.catalogs.files import FileCatalog
from deltalog.catalogs.protocol import (
    MOST_NAMES,
    CatalogOfCatalogs,
    KeepsCatalogs,
    KeepsSchemas,
    NamedTable,
    NewNamedTable,
    TableCatalog,
    TableType,
    names_beside,
    shown_name,
)
from deltalog.errors import CatalogError, InvalidInputError, TableNotFoundError
from deltalog.query.located import located
from deltalog.query.names import QualifiedName
from deltalog.query.translate import TableChangesCall
from deltalog.statements.statement import Query, Session, SqlStatement, StatementAnswer, table_of
from deltalog.table import DeltaTable
from deltalog.table.creating import TablePlace

if TYPE_CHECKING:
    from deltalog.catalogs.protocol import CatalogTable, Name
    from deltalog.statements.reader import StatementReader
    from deltalog.statements.statement import NewNames
    from deltalog.storage.fsspec_store import StorageOptions

    Catalogs = TableCatalog | str | Mapping[str, TableCatalog | str]


class CatalogNames:
    """The catalogs of a session, and the rules by which names in statements refer to their tables.

    Args:
        catalog: the session's only catalog, or a mapping of aliases to catalogs. With a mapping, a
            name must begin with an alias.
        schema: the default schema, such as `sales` or `main.sales`. It is prepended to shorter
            names.
        storage_options: options for a catalog that is given as a string; see `open_catalog`.

    Raises:
        InvalidInputError: `catalog` is not a catalog, or `schema` is not the name of a schema.
    """

    def __init__(
        self,
        catalog: Catalogs | None,
        schema: str | None,
        storage_options: StorageOptions | None = None,
    ) -> None:
        self._only: TableCatalog | None = None
        self._aliased: dict[str, TableCatalog] = {}
        if isinstance(catalog, Mapping):
            check_type("connect", "catalog", catalog, "Mapping[str, Any]")
            self._aliased = {
                name_key(alias): _opened(one, storage_options) for alias, one in catalog.items()
            }
        elif catalog is not None:
            self._only = _opened(catalog, storage_options)
        self._schema = () if schema is None else QualifiedName.parse(schema).parts
        self._depth = len(self._schema) + 1  # the number of parts of a full name

    @property
    def is_empty(self) -> bool:
        """Whether the session has no catalog."""
        return self._only is None and not self._aliased

    def begins(self, name: QualifiedName) -> bool:
        """Return whether a name begins with the alias of a catalog."""
        return len(name.parts) > 1 and name_key(name.parts[0]) in self._aliased

    def named(self, name: QualifiedName) -> NamedTable | None:
        """Return the catalog of a table and the name in it, even if the table does not exist."""
        found = self._resolved(name)
        return None if found is None else NamedTable(catalog=found[0], name=found[1])

    def entry(self, name: QualifiedName) -> CatalogTable | None:
        """Return a table's entry in its catalog; None if no catalog is responsible for the name."""
        found = self._resolved(name)
        return None if found is None else found[0].find(found[1])

    def find(self, name: QualifiedName) -> DeltaTable | None:
        """Return the latest version of a table; None if no catalog contains it."""
        found = self._resolved(name)
        if found is None:
            return None
        catalog, parts = found
        if catalog.find(parts) is None:
            return None
        return DeltaTable.from_context(catalog.open(parts))

    def absence(self, name: QualifiedName) -> str | None:
        """Return the reason why a catalog has no such table; None if the name is in no catalog."""
        found = self._resolved(name)
        if found is None:
            return None
        try:
            found[0].open(found[1])
        except TableNotFoundError as error:
            return f"{error}{names_beside(*found, str(error))}"
        return None

    def advice(self, name: QualifiedName) -> str:
        """Return how to name a table of the catalog; empty if the session has no catalog."""
        table = name.parts[-1]
        if self._aliased:
            alias = next(iter(self._aliased))
            return f"a name begins with the alias of a catalog, as in {alias}.schema.{table}"
        if self._only is not None:
            return f"write schema.{table}, or set the schema by USE schema or connect(schema=…)"
        return ""

    def place(self, name: QualifiedName, location: str | None) -> TablePlace | None:
        """Return the location of an existing or new table; None if the name is in no catalog."""
        found = self._resolved(name)
        if found is None:
            return None
        catalog, parts = found
        if catalog.find(parts) is not None:
            return TablePlace(context=catalog.open(parts))
        self._check_schema(found, name, f"create the table {name}")
        staged = catalog.stage(parts, location)
        new = NewNamedTable(catalog=catalog, staged=staged)
        return TablePlace(context=staged.context, new=new)

    def keeps(self, name: QualifiedName) -> bool:
        """Return whether a catalog is responsible for a name, even if the table does not exist."""
        return self._resolved(name) is not None

    def forget(self, name: QualifiedName) -> bool:
        """Drop a table from its catalog; return whether the table existed.

        As in Spark, the files of a managed table are deleted, and the files of an external table
        are not.
        """
        found = self._resolved(name)
        table = None if found is None else found[0].find(found[1])
        if found is None or table is None:
            return False
        catalog, parts = found
        catalog.drop(parts, purge=table.table_type is TableType.MANAGED)
        return True

    def rename(self, name: QualifiedName, to: QualifiedName) -> None:
        """Rename a table in its catalog."""
        found, other = self._resolved(name), self._resolved(to)
        if found is None or other is None or found[0] is not other[0]:
            raise InvalidInputError(
                f"cannot rename {name} to {to}: expected a name in the same catalog"
            )
        self._check_schema(other, to, f"rename {name} to {to}")
        found[0].rename(found[1], other[1])

    def _check_schema(
        self, found: tuple[TableCatalog, Name], name: QualifiedName, attempt: str
    ) -> None:
        """Raise if a new name would need a schema that a local directory lacks, as in Spark."""
        catalog, parts = found
        if isinstance(catalog, FileCatalog):
            catalog.check_schema(parts[:-1], attempt, self._whole(name.parts[:-1]))

    def relocate(self, name: QualifiedName, location: str) -> None:
        """Change the location of a table in its catalog."""
        found = self._resolved(name)
        if found is not None:
            found[0].relocate(found[1], location)

    def use(self, namespace: Sequence[str], *, is_catalog: bool = False) -> None:
        """Set the schema or catalog that is prepended to shorter names.

        The name of a schema without a catalog refers to the current catalog.

        Raises:
            CatalogError: a local directory of tables has no such schema.
            InvalidInputError: the session has no catalog, or a directory of tables no catalogs.
        """
        wanted = tuple(namespace)
        if self.is_empty:
            raise InvalidInputError(
                f"cannot use {shown_name(wanted)}: this session has no catalog; connect(catalog=…) "
                "provides one"
            )
        if not is_catalog and not (wanted and name_key(wanted[0]) in self._aliased):
            missing = self._depth - 1 - len(wanted)
            wanted = (*self._schema[: max(0, missing)], *wanted)
        catalog, schema = self._within(wanted)
        if isinstance(catalog, FileCatalog) and (schema or is_catalog):
            if is_catalog and schema:
                raise InvalidInputError(
                    f"cannot use the catalog {shown_name(wanted)}: a directory of tables has only "
                    "schemas; USE schema sets the schema"
                )
            if schema:
                catalog.check_schema(schema, f"use {shown_name(wanted)}", wanted)
        self._schema = wanted
        self._depth = len(wanted) + (2 if is_catalog else 1)

    def create(self, names: NewNames) -> None:
        """Create a schema or a catalog.

        Raises:
            CatalogError: the schema or catalog already exists.
            InvalidInputError: the session's catalog cannot create schemas or catalogs.
        """
        more: dict[str, Any] = {
            "comment": names.comment,
            "location": names.location,
            "properties": names.properties,
        }
        try:
            if names.is_catalog:
                self._of_catalogs(names.namespace).create_catalog(names.namespace[0], **more)
            else:
                catalog, schema = self._of_schemas(names.namespace)
                catalog.create_schema(schema, **more)
        except CatalogError as error:
            if not names.may_exist or error.status != 409:
                raise

    def drop(
        self, namespace: Sequence[str], *, is_catalog: bool, cascade: bool, may_lack: bool
    ) -> None:
        """Drop a schema or a catalog.

        Raises:
            CatalogError: the schema or catalog does not exist.
            InvalidInputError: the session's catalog cannot drop schemas or catalogs.
        """
        try:
            if is_catalog:
                self._of_catalogs(namespace).drop_catalog(namespace[0], cascade=cascade)
            else:
                catalog, schema = self._of_schemas(namespace)
                catalog.drop_schema(schema, cascade=cascade)
        except CatalogError as error:
            if not may_lack or error.status != 404:
                raise

    def _of_schemas(self, namespace: Sequence[str]) -> tuple[KeepsSchemas, Name]:
        found, schema = self._within(self._whole(namespace))
        catalog: object = found
        if not isinstance(catalog, KeepsSchemas) or not schema:
            raise InvalidInputError(
                f"cannot create or drop the schema {shown_name(tuple(namespace))}: "
                + _without(catalog)
            )
        return catalog, schema

    def _of_catalogs(self, namespace: Sequence[str]) -> KeepsCatalogs:
        catalog: object = self._only
        if not isinstance(catalog, KeepsCatalogs) or len(namespace) != 1:
            raise InvalidInputError(
                f"cannot create or drop the catalog {shown_name(tuple(namespace))}: "
                + _without(catalog)
            )
        return catalog

    def _whole(self, namespace: Sequence[str]) -> Name:
        """Return a full schema name: the current catalog is prepended if the name contains none."""
        wanted = tuple(namespace)
        if wanted and name_key(wanted[0]) in self._aliased:
            return wanted
        missing = self._depth - 1 - len(wanted)
        return (*self._schema[: max(0, missing)], *wanted)

    def leave(self) -> None:
        """Reset the current schema and catalog to the state without a default schema."""
        self._schema, self._depth = (), 1

    def catalogs(self) -> list[str]:
        """Return the aliases of the catalogs, or the catalogs inside the session's only catalog."""
        own = _own_catalogs(self._only)
        return sorted(self._aliased) if own is None else own

    def schemas(self, within: Sequence[str]) -> list[Name]:
        """Return the schemas of a catalog, without its name; empty: of the current catalog."""
        wanted = tuple(within) or self._schema[: self._depth - 2]
        catalog, rest = self._within(wanted)
        if isinstance(catalog, FileCatalog):
            catalog.check_place()
        if catalog is None:
            return []
        return [name[len(rest) :] for name in catalog.list_schemas(rest)]

    def tables(self, schema: Sequence[str], *, needs_schema: bool = True) -> list[QualifiedName]:
        """Return the tables of a schema.

        Args:
            schema: the schema; an empty name means the default schema.
            needs_schema: whether it is an error if there is no default schema.

        Raises:
            DeltaError: the catalog cannot be listed.
            InvalidInputError: there is no default schema.
        """
        wanted = self._whole(schema)
        catalog, rest = self._within(wanted)
        if isinstance(catalog, FileCatalog):
            catalog.check_place()
        if not rest:
            if needs_schema:
                self._check_no_tables(catalog)
            return []
        if catalog is None:
            return []
        alias = wanted[: len(wanted) - len(rest)]
        return [QualifiedName((*alias, *name)) for name in catalog.list_tables(rest)]

    def _check_no_tables(self, catalog: TableCatalog | None) -> None:
        """Raise if there is no schema to list, although the session's catalogs have some.

        Raises:
            DeltaError: the catalog cannot be listed.
            InvalidInputError: the name of a schema is needed.
        """
        if catalog is None:
            names, kind = sorted(self._aliased), "catalog"
        else:
            own = _own_catalogs(catalog)
            kind = "schema" if own is None else "catalog"
            names = [shown_name(one) for one in catalog.list_schemas()] if own is None else own
        if names:
            known = ", ".join(names[:MOST_NAMES]) + ", …" * (len(names) > MOST_NAMES)
            other = "schema" if kind == "schema" else "catalog.schema"
            raise InvalidInputError(
                f"cannot list tables without a schema: write SHOW TABLES IN {other}, or set it by "
                f"USE {other} or connect(schema=…); the {kind}s are {known}"
            )

    def keeps_namespace(self, namespace: Sequence[str]) -> bool:
        """Return whether a catalog is responsible for a schema. Empty: the current schema."""
        wanted = tuple(namespace) or self._schema
        if wanted and name_key(wanted[0]) in self._aliased:
            return True
        return self._only is not None or bool(self._schema)

    def _within(self, namespace: Name) -> tuple[TableCatalog | None, Name]:
        """Split the name of a schema into the catalog and the name inside the catalog."""
        if namespace and name_key(namespace[0]) in self._aliased:
            return self._aliased[name_key(namespace[0])], namespace[1:]
        return self._only, namespace

    def _resolved(self, name: QualifiedName) -> tuple[TableCatalog, Name] | None:
        """Split the name of a table into the catalog and the name inside the catalog."""
        if name.location is not None:
            return None
        parts = name.parts
        missing = self._depth - len(parts)
        if missing > 0:
            parts = (*self._schema[:missing], *parts)
        if name_key(parts[0]) in self._aliased and len(parts) > 1:
            return self._aliased[name_key(parts[0])], parts[1:]
        if self._only is None or len(parts) == 1:
            return None
        return self._only, parts


def _without(catalog: object) -> str:
    if catalog is None:
        return "this session has no catalog for it; connect(catalog=…) provides one"
    return f"{type(catalog).__name__} does not support it; use the catalog's own tools"


def _own_catalogs(catalog: object) -> list[str] | None:
    return catalog.list_catalogs() if isinstance(catalog, CatalogOfCatalogs) else None


def _opened(catalog: object, storage_options: StorageOptions | None) -> TableCatalog:
    if isinstance(catalog, str):
        from deltalog.catalogs.addresses import open_catalog  # noqa: PLC0415  # imports an HTTP client

        return open_catalog(catalog, storage_options)
    if isinstance(catalog, type):
        raise InvalidInputError(
            f"catalog: found the class {catalog.__name__}; pass an object, such as "
            f"{catalog.__name__}(…)"
        )
    if not isinstance(catalog, TableCatalog):
        raise InvalidInputError(
            f"catalog: expected a catalog such as UnityCatalog(…) or FileCatalog(…), found "
            f"{kind_of(catalog)}"
        )
    return catalog


# --- `USE`, and `SHOW` of catalogs, schemas and tables


_TABLES: Final[dict[str, pa.DataType]] = {
    "namespace": pa.string(),
    "tableName": pa.string(),
    "isTemporary": pa.bool_(),
}
SCHEMAS: Final = ("SCHEMAS", "DATABASES", "NAMESPACES")


class NamespaceStatement(SqlStatement):
    """Base class of statements about a catalog or a schema, instead of a table."""

    __slots__ = ()

    @property
    @abstractmethod
    def namespace(self) -> tuple[str, ...]:
        """The catalog or schema. An empty name means the current one of the session."""


@dataclass(frozen=True, slots=True)
class UseStatement(NamespaceStatement):
    """`USE [CATALOG|SCHEMA|DATABASE|NAMESPACE] name`."""

    namespace: tuple[str, ...] = ()
    is_catalog: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Make the session prepend this schema or catalog to shorter names."""
        session.namespaces.use(self.namespace, is_catalog=self.is_catalog)
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True)
class ShowCatalogsStatement(NamespaceStatement):
    """`SHOW CATALOGS [LIKE 'pattern']`."""

    namespace: tuple[str, ...] = ()
    pattern: str | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each catalog of the session."""
        return _listed("catalog", session.namespaces.catalogs(), self.pattern)


@dataclass(frozen=True, slots=True)
class ShowSchemasStatement(NamespaceStatement):
    """`SHOW SCHEMAS [IN catalog] [LIKE 'pattern']`."""

    namespace: tuple[str, ...] = ()
    pattern: str | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each schema."""
        found = (".".join(name) for name in session.namespaces.schemas(self.namespace))
        return _listed("namespace", found, self.pattern)


@dataclass(frozen=True, slots=True)
class ShowTablesStatement(NamespaceStatement):
    """`SHOW TABLES [IN schema] [LIKE 'pattern']`; the pattern may contain `*` and `|`."""

    namespace: tuple[str, ...] = ()
    pattern: str | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each named table."""
        rows: list[tuple[Any, ...]] = [
            (".".join(name.parts[:-1]), name.parts[-1], not name.parts[:-1])
            for name in session.tables(self.namespace)
            if _matches(name.parts[-1], self.pattern)
        ]
        return StatementAnswer(table_of(_TABLES, sorted(rows)))


def read_use(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `USE`."""
    if reader.take("CATALOG"):
        return UseStatement(reader.path("a catalog"), is_catalog=True)
    reader.take_one("SCHEMA", "DATABASE", "NAMESPACE")
    return UseStatement(reader.path("a schema"))


def read_show_names(reader: StatementReader, kind: str) -> SqlStatement:
    """Parse a statement after `SHOW CATALOGS`, `SHOW SCHEMAS` or `SHOW TABLES`."""
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


# --- the tables that a statement names, in its clauses and its queries


def names_in(value: object) -> Iterator[QualifiedName]:
    """Yield the tables in a statement, including the tables in its queries."""
    if isinstance(value, QualifiedName):
        yield value
    elif isinstance(value, Query):
        for one in located(value.text).tables:
            yield one.table.table if isinstance(one.table, TableChangesCall) else one.table
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from names_in(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from names_in(part)
    elif is_dataclass(value):
        for part in fields(value):
            yield from names_in(getattr(value, part.name))
