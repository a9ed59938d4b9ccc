"""The tables that are shared: found by name, opened once, kept up to date.

Owns which snapshot answers a request: the latest version, or an older one where history is shared.

Protocol: Query Table Version, Read Data from a Table
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalog.clock import now_ms
from deltalog.context import utc_context
from deltalog.errors import VersionNotFoundError
from deltalog.log.history import file_times_ms
from deltalog.log.listing import list_log
from deltalog.sharing.server.faults import Fault, invalid, not_found, unsupported
from deltalog.snapshot import Snapshot, load_snapshot
from deltalog.snapshot.load import find_version
from deltalog.storage import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltalog.sharing.server.config import (
        SchemaConfig,
        ServerConfig,
        ShareConfig,
        TableConfig,
    )
    from deltalog.sharing.server.recipients import Recipient

_OLD_VERSIONS_KEPT = 4


@dataclass(frozen=True, slots=True)
class TableName:
    """A table by its three names, as the configuration spells them."""

    share: str
    schema: str
    table: str

    @property
    def key(self) -> str:
        """One text for the three; names hold no slash."""
        return f"{self.share}/{self.schema}/{self.table}"


@dataclass
class _Opened:
    store: Store
    lock: threading.Lock = field(default_factory=threading.Lock)
    latest: Snapshot | None = None
    older: OrderedDict[int, Snapshot] = field(default_factory=OrderedDict)


@dataclass(frozen=True)
class SharedTable:
    """One table of a share, for one request.

    Args:
        name: where it is in the shares.
        config: what is shared of it.
        opened: store and snapshots, shared by all requests.
    """

    name: TableName
    config: TableConfig
    opened: _Opened

    @property
    def store(self) -> Store:
        """Of the table's files."""
        return self.opened.store

    def latest(self) -> Snapshot:
        """The latest version.

        Cost: one listing.
        """
        with self.opened.lock:
            known = self.opened.latest
        found = load_snapshot(utc_context(self.store)) if known is None else known.refresh()
        with self.opened.lock:
            newest = self.opened.latest
            if newest is None or newest is known or newest.version < found.version:
                self.opened.latest = found
        if found.version < self.config.start_version:
            raise not_found("table")
        return found

    def known_latest(self) -> Snapshot:
        """The latest version that was seen lately.

        Cost: nothing, but for a table that nobody has asked for yet.
        """
        with self.opened.lock:
            known = self.opened.latest
        return self.latest() if known is None else known

    def at(self, version: int, latest: Snapshot | None = None) -> Snapshot:
        """A version, whoever may ask for it.

        Raises:
            Fault: it is not there (any more).
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
        """Refuse what looks back where history is not shared (ledger SHARE-QT-10).

        Raises:
            Fault: 400.
        """
        if not self.config.history_shared:
            raise unsupported(f"{what} needs a table whose history is shared")

    def check_version(self, version: int, latest: Snapshot) -> None:
        """Refuse versions out of the shared history.

        Raises:
            Fault: 400.
        """
        start = self.config.start_version
        if version < start:
            raise invalid(f"You can only query table data since version {start}.")
        if version > latest.version:
            raise invalid(
                f"version {version} is later than the table's latest version {latest.version}"
            )

    def version_at(self, timestamp_ms: int, latest: Snapshot) -> int:
        """The version that the table had at a moment (ledger SHARE-QT-11).

        Raises:
            Fault: 400: the moment is before the first version, or after the last commit.
        """
        if timestamp_ms > latest.commit_timestamp_ms:
            raise invalid("the timestamp is after the latest version of the table")
        version = find_version(utc_context(self.store), timestamp_ms, latest=latest)
        self.check_version(version, latest)
        return version

    def first_version_from(self, timestamp_ms: int, latest: Snapshot) -> int:
        """The first version that was committed at a moment or later (ledger SHARE-VER-03).

        Raises:
            Fault: 400: nothing was committed since.
        """
        times = self.commit_times(latest)
        found = [version for version, ms in times.items() if ms >= timestamp_ms]
        if not found:
            raise invalid("the timestamp is after the latest version of the table")
        version = min(found)
        self.check_version(version, latest)
        return version

    def last_version_until(self, timestamp_ms: int, latest: Snapshot) -> int:
        """The last version that was committed at a moment or before.

        Raises:
            Fault: 400: the table did not exist then.
        """
        times = self.commit_times(latest)
        found = [version for version, ms in times.items() if ms <= timestamp_ms]
        if not found:
            raise invalid("the timestamp is before the first version of the table")
        return max(found)

    def commit_times(self, latest: Snapshot) -> Mapping[int, int]:
        """When each version in the log was committed, milliseconds since 1970.

        Cost: one listing; with in-commit timestamps one request per commit.
        """
        if latest.configuration.in_commit_timestamps is not None:
            return {entry["version"]: entry["timestamp"] for entry in latest.history()}
        listing = list_log(self.store, from_version=0)
        times = file_times_ms(listing.commits.values())
        return {version: ms for version, ms in times.items() if version <= latest.version}


class Tables:
    """Every table of a configuration.

    Args:
        config: of the server.
        make_store: gives the store of a table.
    """

    def __init__(
        self,
        config: ServerConfig,
        make_store: Callable[[TableConfig], Store] | None = None,
    ) -> None:
        self._shares = {share.name.casefold(): share for share in config.shares}
        self._make_store = make_store or _store_of
        self._kept = config.limits.cached_tables
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._lock = threading.Lock()

    def shares(self, recipient: Recipient) -> list[ShareConfig]:
        """The shares that a recipient may see, in the order of the configuration."""
        return [share for share in self._shares.values() if recipient.may_see(share.name)]

    def share(self, recipient: Recipient, name: str) -> ShareConfig:
        """A share by name, in any case.

        Raises:
            Fault: 404.
        """
        found = self._shares.get(name.casefold())
        if found is None or not recipient.may_see(found.name):
            raise not_found("share")
        return found

    def schema(self, recipient: Recipient, share: str, name: str) -> SchemaConfig:
        """A schema by name, in any case.

        Raises:
            Fault: 404.
        """
        for schema in self.share(recipient, share).schemas:
            if schema.name.casefold() == name.casefold():
                return schema
        raise not_found("schema")

    def table(self, recipient: Recipient, name: TableName) -> SharedTable:
        """A table by its names, in any case.

        Raises:
            Fault: 404.
        """
        share = self.share(recipient, name.share)
        schema = self.schema(recipient, name.share, name.schema)
        for config in schema.tables:
            if config.name.casefold() == name.table.casefold():
                own = TableName(share.name, schema.name, config.name)
                return SharedTable(own, config, self._open(own, config))
        raise not_found("table")

    def _open(self, name: TableName, config: TableConfig) -> _Opened:
        with self._lock:
            found = self._opened.get(name.key)
            if found is None:
                found = self._opened[name.key] = _Opened(self._make_store(config))
            self._opened.move_to_end(name.key)
            while len(self._opened) > self._kept:
                self._opened.popitem(last=False)
        return found


def _store_of(config: TableConfig) -> Store:
    return open_store(config.location, config.storage_options or None)


def tables_of(share: ShareConfig) -> Iterator[tuple[SchemaConfig, TableConfig]]:
    """Every table of a share with its schema, in the order of the configuration."""
    for schema in share.schemas:
        for table in schema.tables:
            yield schema, table


def present_ms() -> int:
    """The present moment; one name, so that tests can let time pass."""
    return now_ms()


__all__ = ["Fault", "SharedTable", "TableName", "Tables", "present_ms", "tables_of"]
