"""The shared tables, found by name and opened once.

This module checks which versions may be read: the latest version, and older versions if the history
is shared.

Protocol: Query Table Version, Read Data from a Table
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalog._util.cached import cached_property
from deltalog._util.escaping import name_key
from deltalog._util.paths import decode_location
from deltalog.errors import VersionNotFoundError
from deltalog.log.branches import branch_of, find_branch, on_branch
from deltalog.log.context import utc_context
from deltalog.log.history import file_times_ms
from deltalog.log.listing import list_log
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.log.snapshot.snapshot import find_version
from deltalog.sharing.server.faults import invalid, not_found, unsupported
from deltalog.storage import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltalog.sharing.server.config import SchemaConfig, ServerConfig, ShareConfig, TableConfig
    from deltalog.sharing.server.recipients import Recipient

_OLD_VERSIONS_KEPT = 4


@dataclass(frozen=True, slots=True)
class TableName:
    """The three names of a table, as spelled in the configuration."""

    share: str
    schema: str
    table: str

    @property
    def key(self) -> str:
        """Return the three names, joined by slashes, which names cannot contain."""
        return f"{self.share}/{self.schema}/{self.table}"


@dataclass
class _OpenTable:
    store: Store
    lock: threading.Lock = field(default_factory=threading.Lock)
    latest: Snapshot | None = None
    older: OrderedDict[int, Snapshot] = field(default_factory=OrderedDict)
    branch: _OpenTable | None = None

    def on_branch(self, name: str) -> _OpenTable:
        """Return the table's branch with a name, which may be a newer one than before.

        Raises:
            Fault: 404 if there is no such branch, for example because it was published.

        Cost: one request.
        """
        found = find_branch(self.store, name)
        if found is None:
            raise not_found("table")
        with self.lock:
            known = branch_of(self.branch.store) if self.branch is not None else None
            if self.branch is None or known is None or known.id != found.id:
                self.branch = _OpenTable(on_branch(utc_context(self.store), found).store)
            return self.branch


@dataclass(frozen=True)
class ServedTable:
    """A table of a share.

    Args:
        name: name in the configuration.
        config: configuration of the table.
        main: the store and the loaded snapshots of the table, which all requests use.
    """

    name: TableName
    config: TableConfig
    main: _OpenTable

    @cached_property
    def opened(self) -> _OpenTable:
        """The store and the loaded snapshots of the table, or of its branch.

        Cost: for a branch, one request for each `ServedTable`, so for each request of a recipient.
        """
        branch = self.config.branch
        return self.main if branch is None else self.main.on_branch(branch)

    @property
    def token_key(self) -> str:
        """Return what tokens belong to: the table, or one of the branches that have its name."""
        branch = branch_of(self.store)
        return self.name.key if branch is None else f"{self.name.key}/{branch.id}"

    @property
    def store(self) -> Store:
        """Return the store of the table's files."""
        return self.opened.store

    def latest(self) -> Snapshot:
        """Return the latest version.

        Cost: one listing.
        """
        with self.opened.lock:
            known = self.opened.latest
        found = load_snapshot(utc_context(self.store)) if known is None else known.refresh()
        with self.opened.lock:
            newest = self.opened.latest
            if newest is not None and newest.metadata.id != found.metadata.id:
                self.opened.older.clear()  # another table has replaced this table at its location
            if newest is None or newest is known or newest.version < found.version:
                self.opened.latest = found
        # The shared versions begin with `start_version`, which has not been committed yet.
        if found.version < self.config.start_version:
            raise not_found("table")
        return found

    def known_latest(self) -> Snapshot:
        """Return the latest version that was loaded, without checking for newer versions.

        Cost: one listing for the first request of a table, otherwise none.
        """
        with self.opened.lock:
            known = self.opened.latest
        return self.latest() if known is None else known

    def at(self, version: int, latest: Snapshot | None = None) -> Snapshot:
        """Return a version; the caller must check whether it may be read.

        Raises:
            Fault: 400 if the version does not exist, or no longer exists.
        """
        if latest is not None and version == latest.version:
            return latest
        with self.opened.lock:
            kept = self.opened.older.get(version)
            if kept is None and self.opened.latest is not None:
                kept = self.opened.latest if self.opened.latest.version == version else None
        if kept is not None:
            return kept
        try:
            found = load_snapshot(utc_context(self.store), version=version)
        except VersionNotFoundError:
            raise invalid(f"the table has no version {version} that can be read") from None
        with self.opened.lock:
            self.opened.older[version] = found
            while len(self.opened.older) > _OLD_VERSIONS_KEPT:
                self.opened.older.popitem(last=False)
        return found

    def check_history(self, what: str) -> None:
        """Raise if the history is not shared; called by requests that need it (SHARE-QT-10).

        Raises:
            Fault: 400 if the history is not shared.
        """
        if not self.config.history_shared:
            raise unsupported(
                f"{what} needs a table whose history is shared; the provider can share it"
            )

    def check_version(self, version: int, latest: Snapshot) -> None:
        """Raise for a version outside of the shared history.

        Raises:
            Fault: 400 if the version is before the start version or after the latest version.
        """
        start = self.config.start_version
        if version < start:
            # The reference server sends the same message.
            raise invalid(f"You can only query table data since version {start}.")
        if version > latest.version:
            raise invalid(
                f"version {version} is later than the table's latest version {latest.version}"
            )

    def version_at(self, timestamp_ms: int, latest: Snapshot) -> int:
        """Return the version that the table had at a time (requirement SHARE-QT-11).

        Raises:
            Fault: 400 for a time before the first version or after the latest version.
        """
        # Like the reference server and Delta's time travel, refuse times after the latest version.
        if timestamp_ms > latest.commit_timestamp_ms:
            raise invalid("the timestamp is after the latest version of the table")
        version = find_version(utc_context(self.store), timestamp_ms, latest=latest)
        self.check_version(version, latest)
        return version

    def first_version_from(self, timestamp_ms: int, latest: Snapshot) -> int:
        """Return the first version that was committed at or after a time (SHARE-VER-03).

        Raises:
            Fault: 400 if no version was committed since then.
        """
        times = self._commit_times(latest)
        # Include a version at exactly this time. The reference server skips it when it uses Delta
        # Kernel.
        version = min((one for one, ms in times.items() if ms >= timestamp_ms), default=None)
        if version is None:
            raise invalid("the timestamp is after the latest version of the table")
        self.check_version(version, latest)
        return version

    def last_version_until(self, timestamp_ms: int, latest: Snapshot) -> int:
        """Return the last version that was committed at or before a time.

        Raises:
            Fault: 400 for a time before the first version.
        """
        times = self._commit_times(latest)
        version = max((one for one, ms in times.items() if ms <= timestamp_ms), default=None)
        if version is None:
            raise invalid("the timestamp is before the first version of the table")
        return version

    def _commit_times(self, latest: Snapshot) -> Mapping[int, int]:
        """Return the commit times of the versions in the log, in milliseconds since 1970.

        Cost: one listing; with in-commit timestamps, also one request per commit.
        """
        if latest.configuration.in_commit_timestamps is not None:
            return {entry["version"]: entry["timestamp"] for entry in latest.history()}
        listing = list_log(self.store, from_version=0)
        times = file_times_ms(listing.commits.values())
        return {version: ms for version, ms in times.items() if version <= latest.version}


class Tables:
    """All tables of a configuration.

    Args:
        config: configuration of the server.
        make_store: opens the store of a table.
    """

    def __init__(
        self,
        config: ServerConfig,
        make_store: Callable[[TableConfig], Store] | None = None,
    ) -> None:
        self._shares = {name_key(share.name): share for share in config.shares}
        self._make_store = make_store or _store_of
        self._kept = config.limits.cached_tables
        self._opened: OrderedDict[str, _OpenTable] = OrderedDict()
        self._lock = threading.Lock()

    def shares(self, recipient: Recipient) -> list[ShareConfig]:
        """Return the shares that a recipient can access, in the order of the configuration."""
        return [share for share in self._shares.values() if recipient.can_access(share.name)]

    def share(self, recipient: Recipient, name: str) -> ShareConfig:
        """Return a share by name, ignoring case.

        Raises:
            Fault: 404 if the recipient cannot access it.
        """
        found = self._shares.get(name_key(name))
        if found is None or not recipient.can_access(found.name):
            raise not_found("share")
        return found

    def schema(self, recipient: Recipient, share: str, name: str) -> SchemaConfig:
        """Return a schema by name, ignoring case.

        Raises:
            Fault: 404 if the recipient cannot access it.
        """
        for schema in self.share(recipient, share).schemas:
            if name_key(schema.name) == name_key(name):
                return schema
        raise not_found("schema")

    def table(self, recipient: Recipient, name: TableName) -> ServedTable:
        """Return a table by its names, ignoring case.

        Raises:
            Fault: 404 if the recipient cannot access it.
        """
        share = self.share(recipient, name.share)
        schema = self.schema(recipient, name.share, name.schema)
        for config in schema.tables:
            if name_key(config.name) == name_key(name.table):
                own = TableName(share.name, schema.name, config.name)
                return ServedTable(own, config, self._open(own, config))
        raise not_found("table")

    def _open(self, name: TableName, config: TableConfig) -> _OpenTable:
        with self._lock:
            found = self._opened.get(name.key)
            if found is None:
                found = self._opened[name.key] = _OpenTable(self._make_store(config))
            self._opened.move_to_end(name.key)
            while len(self._opened) > self._kept:
                self._opened.popitem(last=False)
        return found


def _store_of(config: TableConfig) -> Store:
    return open_store(decode_location(config.location), config.storage_options or None)


def tables_of(share: ShareConfig) -> Iterator[tuple[SchemaConfig, TableConfig]]:
    """Yield every table of a share with its schema, in the order of the configuration."""
    for schema in share.schemas:
        for table in schema.tables:
            yield schema, table
