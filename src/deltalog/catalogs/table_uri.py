"""Open the store or context of a table: a store, a path, a URL or a name, with a version or not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, cast

from deltalog._util.paths import canonical_path, decode_location, is_absolute, parse_table_uri
from deltalog.errors import DeltaError, InvalidInputError, TableNotFoundError
from deltalog.log.branches import BranchStore, get_branch
from deltalog.log.context import TableContext
from deltalog.schema.primitives.moments import offset_micros_of
from deltalog.storage import open_store
from deltalog.storage.options import check_options

if TYPE_CHECKING:
    from pathlib import PurePath

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store

BY_NAME: Final = "uc://"
"""The prefix of a URI that is the name of a table in a catalog."""


_IN_SQL: Final = re.compile(r"(?i)delta\.`([^`]+)`")
"""A location as SQL names it."""


def open_table_store(
    table_uri: str | PurePath | Store,
    storage_options: StorageOptions | None,
    filesystem: Any,
) -> tuple[Store, int | datetime | None]:
    """Return the store of a table, and the version or timestamp that its URI ends with.

    Escapes of a `file:` URL are decoded: `file:///a%20b` is the directory `/a b`.
    """
    check_options(storage_options)
    if not isinstance(table_uri, str):
        return open_store(table_uri, storage_options, filesystem=filesystem), None
    if table_uri.lower().startswith(BY_NAME):
        raise InvalidInputError(
            f"cannot use {table_uri!r} here: expected a location, found the name of a table in a "
            "catalog; DeltaTable, DeltaTable.create and write_deltalake accept names"
        )
    if (quoted := _IN_SQL.fullmatch(table_uri)) is not None:
        raise InvalidInputError(
            f"cannot open {table_uri!r}: this is the spelling of SQL; pass the location alone: "
            f"{quoted[1]!r}"
        )
    # Parse the version before escapes are decoded: `@v3` is a version, but `%40v3` is not.
    location = parse_table_uri(table_uri)
    whole, bare = (
        decode_location(text) if filesystem is None else text for text in (table_uri, location.uri)
    )
    store = open_store(whole, storage_options, filesystem=filesystem)
    if location.uri == table_uri or _has_log(store):
        return store, None
    bare_store = open_store(bare, storage_options, filesystem=filesystem)
    if location.branch is not None:
        # A new table may have such a name; but beside a table, the name is that of a branch.
        if not _has_log(bare_store):
            return store, None
        return BranchStore(bare_store, get_branch(bare_store, location.branch)), None
    store = bare_store
    if location.version is not None:
        return store, location.version
    return store, datetime.fromtimestamp((location.timestamp_ms or 0) / 1000, UTC)


def open_table_context(
    table_uri: str | PurePath | Store | NamedTable,
    storage_options: StorageOptions | None,
    filesystem: Any,
    *,
    time_zone: str,
) -> tuple[TableContext, int | datetime | None]:
    """Return the context of a table, and the version or timestamp that its URI ends with.

    `uc://catalog.schema.table` means a table of the Unity Catalog of the environment or of the
    storage options. A `NamedTable` means a table of any catalog. For other tables, the context
    contains only the store.

    Raises:
        TableNotFoundError: the table does not exist in the catalog.
        InvalidInputError: the time zone does not exist.
    """
    try:
        offset_micros_of(time_zone or "UTC", 0)
    except ValueError as error:  # also the base of InvalidInputError
        raise InvalidInputError(
            f"cannot open a table with default_timezone={time_zone!r}: {error}"
        ) from None
    named = named_table(table_uri, storage_options, filesystem)
    if named is not None:
        context = _open_named(named)
        return replace(context, time_zone=time_zone), named.at
    place = cast("str | PurePath | Store", table_uri)
    store, at = open_table_store(place, storage_options, filesystem)
    return TableContext(store=store, time_zone=time_zone), at


def _open_named(named: NamedTable) -> TableContext:
    from deltalog.catalogs.protocol import names_beside  # noqa: PLC0415  # as in `named_table`

    try:
        return named.catalog.open(named.name)
    except TableNotFoundError as error:
        beside = names_beside(named.catalog, named.name, str(error))
        raise error.with_message(f"{error}{beside}") from error.__cause__


def one_version(
    root: str, given: int | str | datetime | date | None, named: int | datetime | None
) -> int | str | datetime | date | None:
    """Return the version or timestamp at which to open a table; None means the latest version.

    Args:
        root: the location of the table.
        given: the version or timestamp that the caller passed.
        named: the version or timestamp in the table's location.

    Raises:
        InvalidInputError: both are given.
    """
    if given is not None and named is not None:
        raise InvalidInputError(
            f"cannot open {root} at {given!r}: its location already names a version; remove one of "
            "the two"
        )
    return named if given is None else given


def named_table(
    table_uri: object, storage_options: StorageOptions | None, filesystem: Any = None
) -> NamedTable | None:
    """Return the catalog and the name of a table; None for a table that is given by its location.

    Raises:
        InvalidInputError: the name is malformed, or no catalog is configured.
    """
    if isinstance(table_uri, PathLike) or (
        isinstance(table_uri, str) and not table_uri.lower().startswith(BY_NAME)
    ):
        return None
    from deltalog.catalogs.protocol import NamedTable  # noqa: PLC0415  # needed only for tables by name

    if not isinstance(table_uri, str | NamedTable):
        return None
    if filesystem is not None:
        raise InvalidInputError(
            f"cannot open {table_uri!r} in a file system: its catalog determines the location"
        )
    if isinstance(table_uri, NamedTable):
        if storage_options is not None:
            raise InvalidInputError(
                f"cannot open {table_uri!r} with storage_options: pass them to its catalog"
            )
        return table_uri

    from deltalog.catalogs.addresses import resolve_address  # noqa: PLC0415  # imports an HTTP client

    return resolve_address(table_uri, storage_options)


def at_root_of(filesystem: Any) -> Store:
    """Return a store for a table at the root of a file system, which deltalake accepts as a table.

    Raises:
        InvalidInputError: the argument is not a file system.
    """
    return open_store("/", filesystem=filesystem)


def check_elsewhere(target: object, root: str, table_root: str) -> None:
    """Refuse a target inside a table's directory, because VACUUM of the table would delete it."""
    is_location = isinstance(target, str | PathLike)  # two different stores may have equal roots
    if is_location and not is_absolute(canonical_path(f"{root.rstrip('/')}/_", table_root)):
        raise InvalidInputError(
            f"cannot clone {table_root} to {root}: expected a location outside of the table: "
            "its vacuum deletes unknown files"
        )


def _has_log(store: Store) -> bool:
    return next(iter(store.list_from("_delta_log", "")), None) is not None


@contextmanager
def naming(table: str) -> Iterator[None]:
    """Add the table's name to errors in the block, as a note if the message lacks it."""
    try:
        yield
    except DeltaError as error:
        if table not in "".join([str(error), *getattr(error, "__notes__", ())]):
            error.add_note(f"while opening {table}")
        raise
