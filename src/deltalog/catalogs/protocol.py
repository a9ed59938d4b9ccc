"""Tables by name: the interface between deltalog and a catalog.

Owns the interface through which statements and table names find tables. A name is a tuple of parts
without the catalog's own alias: `("sales", "orders")`. Does not depend on a specific catalog.
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
    """Whether the catalog manages the files of a table (managed) or not (external)."""

    MANAGED = "MANAGED"
    EXTERNAL = "EXTERNAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A catalog's entry for a table. Where the entry and the table's log differ, the log is right.

    Args:
        name: the parts of the name.
        location: the path or URL of the table.
        table_type: `MANAGED` if the catalog chose the location.
        table_id: the catalog's id of the table; None if the catalog has no ids.
        comment: the comment of the table.
        properties: the catalog's copy of the properties.
        columns: the catalog's copy of the schema; None if the catalog has no copy.
        provider: the format of the table in lower case; deltalog can only open `delta`.
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

    Version 0 is written through `context`, with the required features and properties. Then
    `TableCatalog.register` makes the table visible.

    Args:
        name: the name of the new table.
        context: the context of the new table.
        location: the location as the catalog spells it.
        table_type: see `CatalogTable`.
        table_id: the id that the catalog assigned.
        features: table features that the catalog requires.
        properties: properties that the catalog requires.
        suggested_properties: properties that the catalog suggests; the creator of the table may
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
        """Combine the requested properties of the new table with the catalog's properties.

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
    """Finds and registers tables by name.

    Implementations are thread-safe. An operation that the catalog does not support raises
    `InvalidInputError`. Other errors are `TableNotFoundError`, `TableExistsError`, and
    `StorageError` (or its subclass `CatalogError`) if the catalog or its storage failed.
    """

    def list_schemas(self, within: Name = ()) -> list[Name]:
        """Return the sorted schemas; in a catalog of catalogs, the names have two parts.

        Args:
            within: return only schemas whose names begin with these parts.
        """
        ...

    def list_tables(self, schema: Name) -> list[Name]:
        """Return the sorted tables of a schema, including tables in other formats than Delta."""
        ...

    def find(self, name: Name) -> CatalogTable | None:
        """Return the catalog's entry for a table; None if the table does not exist."""
        ...

    def open(self, name: Name) -> TableContext:
        """Return the context for opening a table: its store with credentials, and its committer.

        The time zone is UTC. Commits through this context also update the catalog's entry.

        Raises:
            TableNotFoundError: the table does not exist.
            InvalidInputError: the table is not a Delta table.
        """
        ...

    def stage(self, name: Name, location: str | None = None) -> StagedTable:
        """Return the location for a new table, which remains invisible until `register`.

        Args:
            name: the name of the new table.
            location: the location of an external table; None lets the catalog choose.

        Raises:
            TableExistsError: a table with the name exists.
        """
        ...

    def register(self, staged: StagedTable, snapshot: Snapshot) -> CatalogTable:
        """Make a staged table visible in the catalog.

        Args:
            staged: the result of `stage`.
            snapshot: version 0 of the table, or a later version of an existing external table.

        Raises:
            TableExistsError: another client has registered the name meanwhile; the files are not
                deleted.
        """
        ...

    def synchronize(self, name: Name, snapshot: Snapshot) -> None:
        """Send the table's schema, properties and comment to the catalog.

        Commits through a context from `open` do this automatically.
        """
        ...

    def drop(self, name: Name, *, purge: bool = False) -> None:
        """Drop a table from the catalog.

        Args:
            name: the name of the table.
            purge: also delete the table's files, if the catalog manages them.
        """
        ...

    def rename(self, name: Name, new_name: Name) -> None:
        """Rename a table."""
        ...

    def relocate(self, name: Name, location: str) -> None:
        """Change the location in a table's entry, without moving files."""
        ...


@runtime_checkable
class KeepsJournals(Protocol):
    """A catalog that has a folder for the journals of multi-table transactions."""

    def journal_store(self) -> Store:
        """Return a store whose root is the folder of the journals."""
        ...


@runtime_checkable
class CatalogOfCatalogs(Protocol):
    """A catalog whose names begin with the name of an inner catalog, like Unity Catalog."""

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
            comment: a comment on the schema.
            location: the directory for its tables; None lets the catalog choose.
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
            cascade: whether to drop its tables as well; if not, it must be empty.

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
    """Return `a.b.c` for messages, with backticks around parts that are not identifiers."""
    return ".".join(part if part.isidentifier() else f"`{part}`" for part in name)


def check_parts(name: Name, count: int, what: str) -> None:
    """Refuse a name that has another number of parts, or an empty part.

    Raises:
        InvalidInputError: the name is invalid; the message describes a valid name.
    """
    given: object = name
    parts = given if isinstance(given, tuple) else ()
    if len(parts) != count or not all(isinstance(part, str) and part for part in parts):
        raise InvalidInputError(f"cannot use {name!r} as {what}: expected a tuple of {count} names")


# --- A table by its name in a catalog, existing or new


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table, given by its name in a catalog.

    Args:
        catalog: the catalog that is responsible for the name.
        name: the parts of the name.
        at: the version or timestamp in the table's URI.
    """

    catalog: TableCatalog
    name: Name
    at: int | datetime | None = None

    def is_delta_table(self) -> bool:
        """Whether the catalog contains a Delta table with that name."""
        found = self.catalog.find(self.name)
        return found is not None and found.provider == "delta"

    def stage(self) -> NewNamedTable:
        """Stage a new table with this name, if the name is free."""
        return NewNamedTable(catalog=self.catalog, staged=self.catalog.stage(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNamedTable:
    """A staged table, and the catalog in which to register it after version 0 is written."""

    catalog: TableCatalog
    staged: StagedTable

    def register(self, snapshot: Snapshot) -> TableContext:
        """Register the table, and return its final context.

        Raises:
            TableExistsError: another client has registered the name meanwhile.
        """
        self.catalog.register(self.staged, snapshot)
        context = self.catalog.open(self.staged.name)
        return replace(context, time_zone=snapshot.context.time_zone)


# --- The changes of a commit that catalogs copy: metadata, protocol, domains, counts


logger: logging.Logger = logging.getLogger(__name__)


def read_commit(version: int, data: bytes) -> WinningCommit:
    """Parse the actions of a commit that has just been written.

    Raises:
        MalformedLogError: the bytes are not a valid commit.
    """
    file = FileInfo(commit_path(version), len(data), 0)
    return parse_winner(LogFile(LogFileKind.COMMIT, version, file), data)


def changes_table(commit: WinningCommit) -> bool:
    """Whether a commit changes more than rows, so that the catalog's entry must be updated."""
    is_other = commit.metadata is not None or commit.protocol is not None
    return is_other or bool(commit.domains.keys() - {ROW_TRACKING_DOMAIN})


class Teller(Protocol):
    """Notifies a catalog of a commit's changes; implementations can be pickled."""

    def tell(self, store: Store, commit: WinningCommit) -> None:
        """Send the changes of the commit to the catalog."""
        ...


@dataclass(frozen=True, slots=True)
class FollowedCommitter:
    """Commits by put-if-absent, and notifies a catalog of the changes afterwards.

    Args:
        teller: notifies the catalog. A failure is only logged, because the commit has already
            succeeded.
    """

    teller: Teller

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """See `Committer.commit`."""
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
        """Return None, because a listing of the store contains the newest commits."""
        return None


# --- The method that begins a transaction over several tables of a catalog


class OffersTransactions:
    """A catalog on which a transaction over several of its tables can be begun."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make errors about arguments contain the name of the called class."""
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
            journals: see `CatalogTransactions`, which also completes the commits of an interrupted
                transaction.
            storage_options: options for the store of the journals.
            options: see `CatalogTransactions.begin`.

        Returns:
            A `CatalogTransaction`.

        Raises:
            InvalidInputError: `journals` is None, and the catalog has no folder for journals.
        """
        transactions = higher("CatalogTransactions")(self, journals, storage_options)
        found: AbstractContextManager[Any] = transactions.begin(**options)
        return found
