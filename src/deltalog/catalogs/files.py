"""A directory of tables as a catalog: `root/schema/table`, on any store.

This module decides which names are safe as parts of a path. The catalog consists only of files: a
folder that contains a log is a table, and the path of the folder is the name of the table.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalog._util.argument_types import checks_types
from deltalog.catalogs.protocol import (
    CatalogTable,
    Name,
    OffersTransactions,
    StagedTable,
    TableType,
    check_parts,
    shown_name,
)
from deltalog.errors import (
    CatalogError,
    InvalidInputError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.log.context import TableContext, utc_context
from deltalog.log.listing import has_table
from deltalog.storage.fsspec_store import FsspecStore, StorageOptions
from deltalog.storage.options import check_options
from deltalog.storage.store import Store, is_local, native_path
from deltalog.storage.stores.filesystems import (
    check_deletable,
    delete_table_files,
    make_folder,
    remove_folder,
    rename_table_folder,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from deltalog.log.snapshot import Snapshot

_MOST_NAMES: Final = 10
_SEPARATORS: Final = frozenset("/\\:")
_JOURNALS: Final = "_transactions"  # no schema has this name, because `_is_safe` refuses it


@checks_types
class FileCatalog(OffersTransactions):
    """The tables in a directory, as `root/schema/table`, for laptops and tests.

    The catalog stores nothing except the folders of tables. So it manages every table, and `drop`
    must delete the files.

    Args:
        root: the path or URL of the directory.
        storage_options: see `DeltaTable`.
    """

    def __init__(
        self, root: str | PathLike[str], storage_options: StorageOptions | None = None
    ) -> None:
        self._root = os.fspath(root).rstrip("/") or "/"
        check_options(storage_options)
        if not os.fspath(root).strip():
            raise InvalidInputError(
                "cannot use '' as the directory of a catalog: expected a path or a URL"
            )
        self._options = storage_options
        self._place = FsspecStore(self._root, storage_options)

    def check_place(self) -> None:
        """Raise InvalidInputError if the catalog is a local directory that does not exist."""
        local = native_path(self._place, "")
        if local is not None and not Path(local).is_dir():
            raise InvalidInputError(
                f"cannot list the tables of the catalog {self._root!r}: there is no such "
                "directory; CREATE SCHEMA makes it"
            )

    def list_schemas(self, within: Name = ()) -> list[Name]:
        """Return the schemas, which are the folders in the directory.

        Raises:
            InvalidInputError: the catalog is a local directory that does not exist.

        Cost: one listing.
        """
        self.check_place()
        return [schema for schema in self._schemas() if schema[: len(within)] == tuple(within)]

    def check_schema(self, schema: Name, attempt: str, spelled: Name) -> None:
        """Raise CatalogError if a local directory has no folder for a schema.

        Other stores have no empty folders, so there a schema without tables cannot be found.

        Args:
            schema: the schema.
            attempt: what needs the schema, for the error.
            spelled: the name of the schema in SQL, with the alias of the catalog.
        """
        folder = native_path(self._schema_store(schema), "")
        if folder is not None and not Path(folder).is_dir():
            known = self._schemas()
            names = ", ".join(map(shown_name, known[:_MOST_NAMES])) or "none"
            raise CatalogError(
                f"cannot {attempt}: there is no schema {shown_name(schema)} in {self._root}: found "
                f"{names}; CREATE SCHEMA {shown_name(spelled)} makes it",
                status=404,
            )

    def list_tables(self, schema: Name) -> list[Name]:
        """Return the tables of a schema, which are its folders that contain a log.

        Raises:
            InvalidInputError: the catalog is a local directory that does not exist.
            CatalogError: the catalog is a local directory without this schema.

        Cost: one listing, and one further listing per folder.
        """
        check_parts(schema, 1, "a schema of a directory")
        _check_safe(schema)
        self.check_place()
        self.check_schema(schema, f"list the tables of {shown_name(schema)}", schema)
        names = [(*schema, name) for name in self._folders(schema[0]) if _is_safe(name)]
        return sorted(name for name in names if has_table(self._store(name)))

    def create_schema(
        self,
        schema: Name,
        *,
        comment: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a folder for a schema, if the store supports empty folders; see `KeepsSchemas`."""
        store, shown = self._schema_store(schema), shown_name(schema)
        if comment or location or properties:
            raise InvalidInputError(
                f"cannot create schema {shown} with a comment, location or properties: in a "
                "directory of tables, a schema is only a folder"
            )
        if schema in self._schemas():
            raise CatalogError(f"cannot create schema {shown}: it exists", status=409)
        if not is_local(store):
            raise InvalidInputError(
                f"cannot create schema {shown}: {store.root} does not support empty "
                "folders; the schema's first table creates it"
            )
        make_folder(store)

    def drop_schema(self, schema: Name, *, cascade: bool = False) -> None:
        """Drop a schema; see `KeepsSchemas`. Files that do not belong to a table are never deleted.

        Raises:
            UnsafePathError: the folder of the schema or of a table is a link.
        """
        store, shown = self._schema_store(schema), shown_name(schema)
        if schema not in self._schemas():
            raise CatalogError(f"cannot drop schema {shown}: it does not exist", status=404)
        tables = self.list_tables(schema)
        if tables and not cascade:
            raise InvalidInputError(
                f"cannot drop schema {shown}: it has tables, such as {shown_name(tables[0])}; drop "
                "them first, or use CASCADE"
            )
        others = set(self._folders(schema[0])) - {table[1] for table in tables}
        files, _ = self._place.list_level(schema[0])
        if others or files:
            first = min([*others, *(file.name for file in files)])
            raise InvalidInputError(
                f"cannot drop schema {shown}: {first!r} in its folder {store.root} is not a table"
            )
        for table in tables:
            check_deletable(self._store(table))
        for table in tables:
            self.drop(table, purge=True)
        if is_local(store):
            remove_folder(store)

    def find(self, name: Name) -> CatalogTable | None:
        """Return the entry of a table; see `TableCatalog.find`. Cost: one listing."""
        store = self._store(name)
        if not has_table(store):
            return None
        return CatalogTable(name=name, location=store.root, table_type=TableType.MANAGED)

    def open(self, name: Name) -> TableContext:
        """Return the context of a table; see `TableCatalog.open`. Cost: one listing."""
        return utc_context(self._existing(name))

    def stage(self, name: Name, location: str | None = None) -> StagedTable:
        """Return the folder of a new table; the first commit makes the table visible."""
        if location is not None:
            raise InvalidInputError(
                f"cannot create {shown_name(name)} at a given location: a directory of tables "
                "only contains tables below it; omit the location"
            )
        store = self._store(name)
        if has_table(store):
            raise TableExistsError(f"cannot create {shown_name(name)}: {store.root} is a table")
        return StagedTable(
            name=name,
            context=utc_context(store),
            location=store.root,
            table_type=TableType.MANAGED,
        )

    def register(self, staged: StagedTable, snapshot: Snapshot) -> CatalogTable:
        """Return the entry of a new table. Nothing is stored, because the log is sufficient."""
        return CatalogTable(
            name=staged.name,
            location=snapshot.store.root,
            table_type=staged.table_type,
            comment=snapshot.metadata.description,
            properties=dict(snapshot.metadata.configuration),
            columns=snapshot.configuration.schema,
        )

    def synchronize(self, name: Name, snapshot: Snapshot) -> None:
        """Check the name. Nothing is stored that could differ from the table."""
        del snapshot
        self._store(name)

    def drop(self, name: Name, *, purge: bool = False) -> None:
        """Delete the folder of a table; see `TableCatalog.drop`. Requires `purge`.

        The log is deleted before the data files, so that an interrupted drop never leaves a table
        whose files are missing. Links in the folder are deleted, but not followed.

        Raises:
            UnsafePathError: the table's folder, a parent folder or the log is a link.
        """
        store = self._existing(name)
        if not purge:
            raise InvalidInputError(
                f"cannot drop {shown_name(name)} without its files: in a directory of tables, the "
                f"folder {store.root} is the table; delete it with drop(…, purge=True)"
            )
        delete_table_files(store)

    def rename(self, name: Name, new_name: Name) -> None:
        """Rename the folder of a table. Refused if the store cannot do this atomically."""
        store, target = self._existing(name), self._store(new_name)
        if has_table(target):
            raise TableExistsError(
                f"cannot rename {shown_name(name)} to {shown_name(new_name)}: that name exists"
            )
        if not is_local(store):
            raise InvalidInputError(
                f"cannot rename {shown_name(name)}: the store of {store.root} cannot rename a "
                "folder atomically; clone the table, then drop it"
            )
        try:
            rename_table_folder(store, target)
        except OSError as error:
            raise StorageError(
                f"cannot rename {shown_name(name)} to {shown_name(new_name)}: {error.strerror}"
            ) from error

    def relocate(self, name: Name, location: str) -> None:
        """Always raises InvalidInputError, because a table's path is its name."""
        del location
        raise InvalidInputError(
            f"cannot relocate {shown_name(name)}: in a directory of tables, its folder is its name"
        )

    def journal_store(self) -> Store:
        """Return the directory of the journals of transactions. A schema cannot have its name."""
        return self._below(_JOURNALS)

    def __repr__(self) -> str:
        return f"FileCatalog({self._place.root!r})"

    def _schemas(self) -> list[Name]:
        return sorted((name,) for name in self._folders("") if _is_safe(name))

    def _folders(self, directory: str) -> list[str]:
        _, directories = self._place.list_level(directory)
        return [path.rstrip("/").rpartition("/")[2] for path in directories]

    def _store(self, name: Name) -> Store:
        check_parts(name, 2, "a table of a directory")
        _check_safe(name)
        return self._below(f"{name[0]}/{name[1]}")

    def _schema_store(self, schema: Name) -> Store:
        check_parts(schema, 1, "a schema of a directory")
        _check_safe(schema)
        return self._below(schema[0])

    def _below(self, path: str) -> Store:
        # A user who may create tables here must not reach other folders through a symbolic link.
        location = f"{self._root.rstrip('/')}/{path}"
        return FsspecStore(location, self._options, within=self._root)

    def _existing(self, name: Name) -> Store:
        store = self._store(name)
        if not has_table(store):
            raise TableNotFoundError(f"there is no table {shown_name(name)} below {self._root}")
        return store


def _is_safe(part: str) -> bool:
    """Return whether a name is safe as a folder: no separator, drive or reference to a parent."""
    return (
        part.isprintable()
        and part[:1] not in {".", "_"}
        and part == part.strip()
        and _SEPARATORS.isdisjoint(part)
    )


def _check_safe(name: Name) -> None:
    for part in name:
        if not _is_safe(part):
            raise InvalidInputError(
                f"cannot use {part!r} as a folder's name: expected a name without / \\ : and "
                "control characters that does not begin with a dot or an underscore"
            )
