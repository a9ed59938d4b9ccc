"""Tables by name: the interface between deltalog and a catalog.

Owns the interface that statements and table names are resolved through. A name is a tuple of parts
without the catalog's own alias: `("sales", "orders")`. Independent of any specific catalog.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from deltalog._util.cached import name_methods_after
from deltalog._util.lazy_names import higher
from deltalog._util.paths import FileInfo
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
    """Whether the catalog owns the files of a table."""

    MANAGED = "MANAGED"
    EXTERNAL = "EXTERNAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A catalog's entry for a table; if it contradicts the table's log, the log decides.

    Args:
        name: the parts of the name.
        location: the path or URL.
        table_type: `MANAGED` if the catalog chose the location.
        table_id: the catalog's id; None if it has none.
        comment: the comment of the table.
        properties: the catalog's copy of the properties.
        columns: the catalog's copy of the schema; None if it has none.
        provider: the format in lower case; deltalog can only open `delta`.
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
    """A new table that its catalog does not show yet.

    Version 0 is written through `context`, with the features and properties, before
    `TableCatalog.register` makes the table visible.

    Args:
        name: the name of the new table.
        context: the context of the new table.
        location: the location in the catalog's spelling.
        table_type: as in `CatalogTable`.
        table_id: the id that the catalog assigned.
        features: table features that the table must support.
        properties: properties that the table must have.
        suggested_properties: properties for the table, unless its creator overrides them.
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
        """Return the properties of the new table: the requested ones, and the catalog's.

        Raises:
            InvalidInputError: a requested property contradicts the catalog.
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
    """Finds tables by name, and stores names.

    Implementations are thread-safe. An operation that the catalog does not support raises an
    `InvalidInputError`. Other errors: `TableNotFoundError`, `TableExistsError`, and
    `StorageError` (such as `CatalogError`) if the catalog or its storage failed.
    """

    def list_schemas(self, within: Name = ()) -> list[Name]:
        """Return the schemas, sorted; in a catalog of catalogs, their names have two parts.

        Args:
            within: only schemas whose name begins with these parts.
        """
        ...

    def list_tables(self, schema: Name) -> list[Name]:
        """Return the tables of a schema, sorted, including those that are not Delta tables."""
        ...

    def find(self, name: Name) -> CatalogTable | None:
        """Return the catalog's entry for a table; None if there is none."""
        ...

    def open(self, name: Name) -> TableContext:
        """Return the context of a table: its store with credentials, and its committer.

        The time zone is UTC. A commit through this context keeps the catalog up to date.

        Raises:
            TableNotFoundError: there is no such table.
            InvalidInputError: it is not a Delta table.
        """
        ...

    def stage(self, name: Name, location: str | None = None) -> StagedTable:
        """Return the location for a new table, which stays invisible until `register`.

        Args:
            name: the name of the new table.
            location: the location of an external table; None lets the catalog choose.

        Raises:
            TableExistsError: the name is taken.
        """
        ...

    def register(self, staged: StagedTable, snapshot: Snapshot) -> CatalogTable:
        """Show a staged table under its name.

        Args:
            staged: the result of `stage`.
            snapshot: its version 0, or a later version of an existing external table.

        Raises:
            TableExistsError: another client took the name meanwhile; the files stay.
        """
        ...

    def synchronize(self, name: Name, snapshot: Snapshot) -> None:
        """Send the table's schema, properties and comment to the catalog.

        Commits through `open` do this automatically.
        """
        ...

    def drop(self, name: Name, *, purge: bool = False) -> None:
        """Drop a table from the catalog.

        Args:
            name: the name of the table.
            purge: delete its files too, if the catalog owns them.
        """
        ...

    def rename(self, name: Name, new_name: Name) -> None:
        """Rename a table."""
        ...

    def relocate(self, name: Name, location: str) -> None:
        """Change the location in a table's entry; moves no files."""
        ...


@runtime_checkable
class KeepsJournals(Protocol):
    """A catalog with a folder for the journals of multi-table transactions."""

    def journal_store(self) -> Store:
        """Return the store whose root is the folder of journals."""
        ...


@runtime_checkable
class CatalogOfCatalogs(Protocol):
    """A catalog whose names begin with the name of an inner catalog, such as Unity Catalog."""

    def list_catalogs(self) -> list[str]:
        """Return the names of the inner catalogs, sorted."""
        ...


@runtime_checkable
class KeepsSchemas(Protocol):
    """A catalog in which users can create and drop schemas."""

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
            schema: the name.
            comment: a comment.
            location: the parent directory of its tables; None lets the catalog choose.
            properties: the properties of the schema.

        Raises:
            CatalogError: with the status 409 if the schema exists, with 404 if its catalog is
                missing.
            InvalidInputError: the catalog cannot store an argument.
        """
        ...

    def drop_schema(self, schema: Name, *, cascade: bool = False) -> None:
        """Drop a schema.

        Args:
            schema: its name.
            cascade: drop its tables, too; otherwise it must be empty.

        Raises:
            CatalogError: with the status 404 if it does not exist.
        """
        ...


@runtime_checkable
class KeepsCatalogs(CatalogOfCatalogs, Protocol):
    """A catalog of catalogs, in which users can create and drop catalogs."""

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
    """Return `a.b.c` for messages, with backticks around parts that need them."""
    return ".".join(part if part.isidentifier() else f"`{part}`" for part in name)


def check_parts(name: Name, count: int, what: str) -> None:
    """Refuse a name with another number of parts, or an empty one.

    Raises:
        InvalidInputError: the name has another form; the message shows the expected one.
    """
    given: object = name
    parts = given if isinstance(given, tuple) else ()
    if len(parts) != count or not all(isinstance(part, str) and part for part in parts):
        raise InvalidInputError(f"cannot use {name!r} as {what}: expected a tuple of {count} names")


# --- a table by its name in a catalog, existing or new


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table by its name.

    Args:
        catalog: the catalog of the table.
        name: its parts.
        at: the version or timestamp in the URI.
    """

    catalog: TableCatalog
    name: Name
    at: int | datetime | None = None

    def is_delta_table(self) -> bool:
        """Whether the catalog has a Delta table of that name."""
        found = self.catalog.find(self.name)
        return found is not None and found.provider == "delta"

    def stage(self) -> NewNamedTable:
        """Return a location for the table, if no table has that name."""
        return NewNamedTable(catalog=self.catalog, staged=self.catalog.stage(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNamedTable:
    """The location of a new table, and the catalog to notify when version 0 is written."""

    catalog: TableCatalog
    staged: StagedTable

    def register(self, snapshot: Snapshot) -> TableContext:
        """Register the table, and return its context from now on.

        Raises:
            TableExistsError: another client took the name.
        """
        self.catalog.register(self.staged, snapshot)
        context = self.catalog.open(self.staged.name)
        return replace(context, time_zone=snapshot.context.time_zone)


# The changes of a commit that catalogs copy: metadata, protocol, domains, counts.


logger: logging.Logger = logging.getLogger(__name__)


def read_commit(version: int, data: bytes) -> WinningCommit:
    """Parse the actions of a new commit.

    Raises:
        MalformedLogError: the bytes are not a commit.
    """
    file = FileInfo(commit_path(version), len(data), 0)
    return parse_winner(LogFile(LogFileKind.COMMIT, version, file), data)


def changes_table(commit: WinningCommit) -> bool:
    """Whether a commit changes more than rows, so that a catalog's entry must be updated."""
    is_other = commit.metadata is not None or commit.protocol is not None
    return is_other or bool(commit.domains.keys() - {ROW_TRACKING_DOMAIN})


class Teller(Protocol):
    """Notifies a catalog of a commit's changes; picklable."""

    def tell(self, store: Store, commit: WinningCommit) -> None:
        """Send the changes of the commit to the catalog."""
        ...


@dataclass(frozen=True, slots=True)
class FollowedCommitter:
    """Commits by put-if-absent, and notifies a catalog of the changes.

    Args:
        teller: notifies the catalog; a failure is logged, because the commit is already made.
    """

    teller: Teller

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """See `Committer`."""
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
        """See `Committer`: the store's listing shows the newest commits."""
        return None


# The entry point for transactions over several tables of a catalog.


class OffersTransactions:
    """A catalog with a method that begins a transaction over several of its tables."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make errors about arguments name the called class."""
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
            journals: as for `CatalogTransactions`, which also completes a failed run's commits.
            storage_options: the options of the folder of journals.
            options: as for `CatalogTransactions.begin`.

        Returns:
            A `CatalogTransaction`.

        Raises:
            InvalidInputError: the catalog has no folder for journals, and `journals` is None.
        """
        transactions = higher("CatalogTransactions")(self, journals, storage_options)
        found: AbstractContextManager[Any] = transactions.begin(**options)
        return found
