"""Tables by name: the interface of catalogs.

Statements and table names find tables through this interface, which does not depend on a specific
catalog. A name is a tuple of parts, without an alias of the catalog: `("sales", "orders")`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from deltalog._util.argument_types import check_type, wrong_argument
from deltalog._util.cached import name_methods_after
from deltalog._util.cards import ShownFields
from deltalog._util.lazy_names import higher
from deltalog._util.paths import FileInfo
from deltalog._util.similar_names import NoSequence, SimilarNames, suggests_arguments
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.protocol.features.row_ids import ROW_TRACKING_DOMAIN
from deltalog.transaction.committer import FileSystemCommitter
from deltalog.transaction.conflicts import WinningCommit, parse_winner

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime
    from os import PathLike

    from deltalog.log.context import LogTail, TableContext
    from deltalog.log.snapshot import Snapshot
    from deltalog.schema import StructType
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store

Name = tuple[str, ...]


class TableType(Enum):
    """Whether the catalog manages the files of a table (managed) or not (external)."""

    MANAGED = "MANAGED"
    EXTERNAL = "EXTERNAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable(ShownFields):
    """The entry of a table in a catalog. If it differs from the table's log, the log is right.

    Args:
        name: the parts of the name.
        location: the path or URL of the table.
        table_type: `MANAGED` if the catalog chose the location, else `EXTERNAL`.
        table_id: the id of the table in the catalog; None if the catalog has no ids.
        comment: the comment of the table.
        properties: the copy of the table's properties in the catalog.
        columns: the copy of the table's schema in the catalog; None if there is no copy.
        provider: the format of the table, in lower case. deltalog can open only `delta`.
    """

    name: Name
    location: str
    table_type: TableType = TableType.EXTERNAL
    table_id: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: StructType | None = None
    provider: str = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTable:
    """A new table that is not visible in its catalog yet.

    The creator writes version 0 with `context`, with the required features and properties. Then
    `TableCatalog.register` makes the table visible.

    Args:
        name: the name of the new table.
        context: the context of the new table.
        location: the location, in the catalog's spelling.
        table_type: see `CatalogTable`.
        table_id: the id that the catalog has assigned.
        features: the table features that the catalog requires.
        properties: the properties that the catalog requires: name → value.
        suggested_properties: the properties that the catalog suggests. The creator of the table may
            override them.
    """

    name: Name
    context: TableContext = field(repr=False)
    location: str
    table_type: TableType
    table_id: str | None = None
    features: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    suggested_properties: Mapping[str, str] = field(default_factory=dict)

    def configuration(self, asked: Mapping[str, str | None] | None) -> dict[str, str | None]:
        """Combine the requested properties of the new table with those of the catalog.

        Raises:
            InvalidInputError: a requested property contradicts a required property.
        """
        given = dict(asked or {})
        required = {key.lower(): (key, text) for key, text in self.properties.items()}
        for key, text in given.items():
            _, wanted = required.get(key.lower(), (key, text))
            if text != wanted:
                raise InvalidInputError(
                    f"cannot create {shown_name(self.name)} with {key}={text!r}: its catalog "
                    f"requires {wanted!r}"
                )
        own = {key.lower() for key in given}
        suggested = {
            key: text for key, text in self.suggested_properties.items() if key.lower() not in own
        }
        return {**suggested, **given, **self.properties}


@runtime_checkable
class TableCatalog(Protocol):
    """The interface of catalogs, which find and register tables by name.

    Implementations are thread-safe. An operation that the catalog does not support raises
    `InvalidInputError`. Other errors are `TableNotFoundError`, `TableExistsError`, and
    `StorageError` (or its subclass `CatalogError`) if the catalog or its storage failed.
    """

    def list_schemas(self, within: Name = ()) -> list[Name]:
        """Return the schemas, sorted. In a catalog of catalogs, a schema name has two parts.

        Args:
            within: return only the schemas whose names begin with these parts.
        """
        ...

    def list_tables(self, schema: Name) -> list[Name]:
        """Return the tables of a schema, sorted, including tables in formats other than Delta."""
        ...

    def find(self, name: Name) -> CatalogTable | None:
        """Return the entry of a table; None if the table does not exist."""
        ...

    def open(self, name: Name) -> TableContext:
        """Return the context of a table: its store with credentials, and its committer.

        The time zone is UTC. A commit through this context also updates the entry in the catalog.

        Raises:
            TableNotFoundError: the table does not exist.
            InvalidInputError: the table is not a Delta table.
        """
        ...

    def stage(self, name: Name, location: str | None = None) -> StagedTable:
        """Choose the location of a new table, which is invisible until `register`.

        Args:
            name: the name of the new table.
            location: the location of an external table; None lets the catalog choose a location.

        Raises:
            TableExistsError: a table with the name exists.
        """
        ...

    def register(self, staged: StagedTable, snapshot: Snapshot) -> CatalogTable:
        """Make a staged table visible in the catalog.

        Args:
            staged: the result of `stage`.
            snapshot: version 0 of the table, or any version of an existing external table.

        Raises:
            TableExistsError: another client has registered the name in the meantime. The files are
                not deleted.
        """
        ...

    def synchronize(self, name: Name, snapshot: Snapshot) -> None:
        """Send the table's schema, properties and comment to the catalog.

        A commit through the context from `open` does this automatically.
        """
        ...

    def drop(self, name: Name, *, purge: bool = False) -> None:
        """Drop a table from the catalog.

        Args:
            name: the name of the table.
            purge: whether the files of the table are deleted, too. Requires that the catalog
                manages the files.
        """
        ...

    def rename(self, name: Name, new_name: Name) -> None:
        """Rename a table."""
        ...

    def relocate(self, name: Name, location: str) -> None:
        """Change the location in the entry of a table. No file is moved."""
        ...


@runtime_checkable
class KeepsJournals(Protocol):
    """A catalog with a directory for the journals of transactions over several tables."""

    def journal_store(self) -> Store:
        """Return a store whose root is the directory of the journals."""
        ...


@runtime_checkable
class CatalogOfCatalogs(Protocol):
    """A catalog in which names begin with the name of an inner catalog, as in Unity Catalog."""

    def list_catalogs(self) -> list[str]:
        """Return the names of the inner catalogs, sorted."""
        ...


@runtime_checkable
class KeepsSchemas(Protocol):
    """A catalog in which schemas can be created and dropped."""

    def create_schema(
        self,
        schema: Name,
        *,
        comment: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a schema.

        Args:
            schema: the name of the schema.
            comment: the comment of the schema.
            location: the directory for the tables of the schema; None lets the catalog choose.
            properties: the properties of the schema.

        Raises:
            CatalogError: the schema already exists (status 409), or its catalog does not exist
                (status 404).
            InvalidInputError: the catalog cannot store an argument.
        """
        ...

    def drop_schema(self, schema: Name, *, cascade: bool = False) -> None:
        """Drop a schema.

        Args:
            schema: the name of the schema.
            cascade: whether the tables of the schema are dropped, too. If False, it must be empty.

        Raises:
            CatalogError: the schema does not exist (status 404).
        """
        ...


@runtime_checkable
class KeepsCatalogs(CatalogOfCatalogs, Protocol):
    """A catalog of catalogs in which inner catalogs can be created and dropped."""

    def create_catalog(
        self,
        catalog: str,
        *,
        comment: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create an inner catalog; see `KeepsSchemas.create_schema`."""
        ...

    def drop_catalog(self, catalog: str, *, cascade: bool = False) -> None:
        """Drop an inner catalog; see `KeepsSchemas.drop_schema`."""
        ...


def shown_name(name: Sequence[str]) -> str:
    """Return a name such as `a.b.c` for messages; backticks enclose parts with other characters."""
    return ".".join(part if part.isidentifier() else f"`{part}`" for part in name)


MOST_NAMES: Final = 10
"""The maximum number of names in an error about a missing one."""


def names_beside(catalog: TableCatalog, name: Name, error: str) -> str:
    """Return a similar table or schema, or those that exist; empty if the catalog lists none.

    Args:
        catalog: the catalog without the table.
        name: the table's name.
        error: the error about the table; what it ends with is not repeated.

    Cost: the requests of `list_schemas` and `list_tables`.
    """
    schema = tuple(name[:-1])
    try:
        schemas = catalog.list_schemas(schema[:-1])
        known = [one[-1] for one in (catalog.list_tables(schema) if schema in schemas else schemas)]
    except Exception:  # noqa: BLE001  # of any catalog: it must not hide the error about the table
        return ""
    wanted = name[-1] if schema in schemas else schema[-1]
    kind = "tables" if schema in schemas else "schemas"
    missing = "" if schema in schemas else f"; there is no schema {shown_name(schema)}"
    missing = "" if error.endswith(missing[2:]) else missing
    names = ", ".join(map(repr, known[:MOST_NAMES])) or "none"
    close = get_close_matches(wanted, known, 1)
    hint = f", did you mean {close[0]!r}?" if close else ""
    return f"{missing}; the {kind} are {names}{hint}"


def check_parts(name: Name, count: int, what: str) -> None:
    """Refuse a name that has a wrong number of parts, or an empty part.

    Raises:
        InvalidInputError: the name is invalid. The message describes a valid name.
    """
    given: object = name
    parts = given if isinstance(given, tuple) else ()
    if len(parts) != count or not all(isinstance(part, str) and part for part in parts):
        names = ("catalog", "schema", "table")
        wanted = names[-count:] if what.startswith("a table") else names[:2][-count:]
        raise InvalidInputError(
            f"cannot use {name!r} as {what}: expected a tuple of {count} names, such as "
            f"{wanted!r}, which SQL and branch([…]) write as {'.'.join(wanted)}"
        )


# --- an existing or new table, given by its name in a catalog


@suggests_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table, given by its name in a catalog.

    Args:
        catalog: the catalog that is responsible for the name.
        name: the parts of the name.
        at: the version or timestamp at the end of the table's URI; None if there is none.
    """

    catalog: TableCatalog
    name: Name
    at: int | datetime | None = None

    def __post_init__(self) -> None:
        """Raise for a catalog that is only named, and for a name that is one string."""
        if isinstance(self.catalog, type) or not hasattr(
            self.catalog, "register"
        ):  # faster than `isinstance` with a protocol
            expected = "a catalog, such as FileCatalog('directory')"
            raise wrong_argument("NamedTable", "catalog", self.catalog, expected)
        check_type("NamedTable", "name", self.name, "TableName")

    def is_delta_table(self) -> bool:
        """Whether the catalog contains a Delta table with this name."""
        found = self.catalog.find(self.name)
        return found is not None and found.provider == "delta"

    def stage(self) -> NewNamedTable:
        """Stage a new table with this name.

        Raises:
            TableExistsError: a table with the name exists.
        """
        return NewNamedTable(catalog=self.catalog, staged=self.catalog.stage(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNamedTable:
    """A staged table, and the catalog that registers it after version 0 is written."""

    catalog: TableCatalog
    staged: StagedTable

    def register(self, snapshot: Snapshot) -> TableContext:
        """Register the table; return the context for all later versions.

        Raises:
            TableExistsError: another client has registered the name in the meantime.
        """
        self.catalog.register(self.staged, snapshot)
        context = self.catalog.open(self.staged.name)
        return replace(context, time_zone=snapshot.context.time_zone)


# --- the content of a commit that catalogs copy: metadata, protocol, domains, counts


logger: logging.Logger = logging.getLogger(__name__)


def read_commit(version: int, data: bytes) -> WinningCommit:
    """Parse the actions of a commit that has just been written.

    Raises:
        MalformedLogError: the bytes are not a valid commit.
    """
    file = FileInfo(commit_path(version), len(data), 0)
    return parse_winner(LogFile(LogFileKind.COMMIT, version, file), data)


def changes_table(commit: WinningCommit) -> bool:
    """Return whether a commit changes more than rows, so that the entry must be updated."""
    is_other = commit.metadata is not None or commit.protocol is not None
    return is_other or bool(commit.domains.keys() - {ROW_TRACKING_DOMAIN})


class Teller(Protocol):
    """Sends the changes of a commit to a catalog. Implementations can be pickled."""

    def tell(self, store: Store, commit: WinningCommit) -> None:
        """Send the changes of the commit to the catalog."""
        ...


@dataclass(frozen=True, slots=True)
class FollowedCommitter:
    """Committer that commits by put-if-absent, and then sends the changes to a catalog.

    Args:
        teller: the object that sends the changes. A failure is only logged, because the commit has
            already succeeded.
    """

    teller: Teller

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """Commit a version; see `Committer.commit`."""
        file = FileSystemCommitter().commit(store, version, data)
        try:
            commit = read_commit(version, data)
            if version > 0 and changes_table(commit):
                self.teller.tell(store, commit)
        except DeltaError as error:
            logger.warning(
                "version %d of %s is committed, but its catalog was not notified: %s",
                version,
                store.root,
                error,
            )
        return file

    def log_tail(self, _store: Store) -> LogTail | None:
        """Return None, because a listing of the store contains the latest commits."""
        return None


# --- the method that begins a transaction over several tables of a catalog


_OPEN: Final = "DeltaTable(NamedTable(catalog=catalog, name=(schema, table)))"
_MEANT: Final = {
    **dict.fromkeys(("load_table", "loadTable", "get_table", "table", "read"), _OPEN),
    **dict.fromkeys(
        ("create_table", "createTable"), 'connect(catalog=…).execute("CREATE TABLE …")'
    ),
    **dict.fromkeys(("drop_table", "dropTable"), "drop(name)"),
    **dict.fromkeys(("table_exists", "has_table"), "find(name)"),
    **dict.fromkeys(("list_namespaces", "list_databases", "schemas"), "list_schemas()"),
    "tables": "list_tables(schema)",
    **dict.fromkeys(("sql", "execute", "query"), "connect(catalog=…).execute(statement)"),
}
"""What to use instead of names of other libraries."""


class OffersTransactions(NoSequence, SimilarNames):
    """A catalog with a method that begins a transaction over several of its tables."""

    _meant = _MEANT
    _counted = "len(list_tables(schema))"
    _items = (
        "list_tables(schema) for names, or DeltaTable(NamedTable(catalog=catalog, name=(schema, "
        "table))) for a table"
    )

    def __init_subclass__(cls, **options: Any) -> None:
        """Make errors about arguments contain the name of the subclass."""
        super().__init_subclass__(**options)
        name_methods_after(cls, OffersTransactions)

    def transaction(
        self,
        journals: str | PathLike[str] | Store | None = None,
        storage_options: StorageOptions | None = None,
        **options: Any,
    ) -> AbstractContextManager[Any]:
        """Begin a transaction: `with catalog.transaction() as tx: tx.table("a.b").append(…)`.

        Args:
            journals: the location of the journals; see `CatalogTransactions`, which also completes
                the commits of an interrupted transaction. None means the catalog's own directory.
            storage_options: options for the store of the journals.
            options: see `CatalogTransactions.begin`.

        Returns:
            A `CatalogTransaction`.

        Raises:
            InvalidInputError: `journals` is None, and the catalog has no directory for journals.
        """
        transactions = higher("CatalogTransactions")(self, journals, storage_options)
        found: AbstractContextManager[Any] = transactions.begin(**options)
        return found

    def branch(
        self,
        tables: Sequence[str | Name],
        name: str,
        journals: str | PathLike[str] | Store | None = None,
        storage_options: StorageOptions | None = None,
        **options: Any,
    ) -> Any:
        """Create a branch of several tables, which are published together; a preview.

        Args:
            tables: the names of the tables.
            name: the name of the branch of each table.
            journals: see `transaction`.
            storage_options: see `transaction`.
            options: see `CatalogTransactions.branch`.

        Returns:
            A `CatalogBranch`.

        Raises:
            BranchExistsError: a table has the branch.
            InvalidInputError: see `transaction`; or a table has no branches.
        """
        transactions = higher("CatalogTransactions")(self, journals, storage_options)
        return transactions.branch(tables, name, **options)
