"""A snapshot: one version of a table.

Owns the public interface of a version: protocol, metadata, files, tombstones, application
transactions, domains. Reads no data files (`scan`), and decides nothing about reconciliation
(`replay`).

Protocol: Snapshots, Action Reconciliation
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from deltalog._json import loads
from deltalog.actions.arrow import FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.cached import cached_property
from deltalog.configuration import TableConfiguration
from deltalog.errors import (
    CheckpointUnreadableError,
    MalformedLogError,
    ObjectNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltalog.log.history import read_commit_time_ms, read_history
from deltalog.log.listing import list_log
from deltalog.log.segment import LogSegment
from deltalog.snapshot.open_log import (
    is_in_place,
    is_listed,
    list_after,
    open_log,
    other_way,
    way_around,
)
from deltalog.snapshot.state import LogState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from deltalog.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
    from deltalog.catalog import LogTail, MaintenanceOperation
    from deltalog.context import TableContext
    from deltalog.log.checksum import VersionChecksum
    from deltalog.log.names import LogFile
    from deltalog.log.segment import LogListing
    from deltalog.storage.store import Store

_Result = TypeVar("_Result")

ROW_TRACKING_DOMAIN: Final = "delta.rowTracking"
_MANY_COMMITS: Final = 1000
_LONG_SEGMENT: Final = 200  # commits: a newer checkpoint would shorten it


class Snapshot:
    """One version of a table, immutable; file columns are read on demand.

    Columns stay in memory once read, and are left out when the snapshot is pickled. Threads may
    share a snapshot.

    Args:
        context: of the table.
        state: state of the log at this version.
        protocol: of this version.
        metadata: of this version.

    Attributes:
        context: of the table.
        protocol: of this version.
        metadata: of this version.
        is_piece: whether it has only some of the version's files.
        known_checksum: the version's checksum, if this process has just written it.
    """

    known_checksum: VersionChecksum | None = None
    is_piece: ClassVar[bool] = False

    def __init__(
        self,
        context: TableContext,
        state: LogState,
        *,
        protocol: Protocol,
        metadata: Metadata,
    ) -> None:
        self.context: TableContext = context
        self.protocol: Protocol = protocol
        self.metadata: Metadata = metadata
        self._state = state
        self._knows_file_time = True

    @property
    def store(self) -> Store:
        """The store of the table."""
        return self.context.store

    def with_data_of(self, store: Store) -> Snapshot:
        """Return the same version, whose data files are read from another store of the table."""
        return Snapshot(
            replace(self.context, store=store),
            self._state,
            protocol=self.protocol,
            metadata=self.metadata,
        )

    @property
    def log_tail(self) -> LogTail | None:
        """The commits that a catalog supplied; None if the table was opened by its path."""
        return self.context.log_tail

    @property
    def version(self) -> int:
        """The table version."""
        return self._state.segment.version

    @property
    def segment(self) -> LogSegment:
        """The log files from which this version is built."""
        return self._state.segment

    @cached_property
    def configuration(self) -> TableConfiguration:
        """Protocol, schema and properties, checked against each other.

        Raises:
            InvalidMetadataError: they contradict each other.
        """
        return TableConfiguration(self.protocol, self.metadata)

    def files(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The live files, one row each; every call returns the same rows in the same order.

        Args:
            columns: of `FILE_SCHEMA`; None is all of them.

        Cost: the leaves of the checkpoint that are not cached, and once the commits after it. If
        these commits name files, the checkpoint's paths, too.
        """
        names = FILE_SCHEMA.names if columns is None else list(columns)
        return self.read_log(lambda state: state.files(names))

    def stats(self, schema: pa.Schema) -> pa.Table:
        """Statistics of the live files, typed; rows as in `files`.

        Args:
            schema: the leaves to return, by physical names, nested as in
                `deltalog.stats.stats_schema`.

        Returns:
            A table with this schema. A statistic that is missing, malformed or of an unexpected
            type is NULL.

        Protocol: Per-file Statistics
        Cost: the leaves of the checkpoint's `stats_parsed` if it has them, else its JSON texts
        and one pass through them; nothing for leaves that are cached.
        """
        return self.read_log(lambda state: state.stats(schema))

    @property
    def num_files(self) -> int:
        """The number of live logical files."""
        return self.read_log(lambda state: state.num_files)

    def tombstones(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The tombstones (remove actions) of this version, including expired ones.

        Args:
            columns: of `REMOVE_SCHEMA`; None is all of them.
        """
        names = REMOVE_SCHEMA.names if columns is None else list(columns)
        return self.read_log(lambda state: state.tombstones(names))

    @property
    def app_transactions(self) -> Mapping[str, SetTransaction]:
        """The latest transaction of each application.

        Those older than `delta.setTransactionRetentionDuration` are left out; those without
        `lastUpdated` never expire (ledger D-62).

        Protocol: Transaction Identifiers
        """
        found = self.recorded_app_transactions
        retention_ms = self.configuration.properties.set_transaction_retention_ms
        if retention_ms is None:
            return found
        oldest_ms = self.context.clock.now_ms() - retention_ms
        return {
            app_id: txn
            for app_id, txn in found.items()
            if txn.last_updated_ms is None or txn.last_updated_ms >= oldest_ms
        }

    @property
    def recorded_app_transactions(self) -> Mapping[str, SetTransaction]:
        """The latest transaction of each application, including expired ones."""
        return self.read_log(lambda state: state.app_transactions)

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """The metadata of every domain, including unknown domains, without removed ones.

        Protocol: Domain Metadata
        """
        return self.read_log(lambda state: state.domains)

    @property
    def row_id_high_water_mark(self) -> int | None:
        """The highest row id in use; None if there is none.

        Read from the domain `delta.rowTracking` and from the draft's action; if a table has both,
        the higher one counts (ledger B-72).

        Protocol: Row Tracking
        """
        draft = self.read_log(lambda state: state.draft_high_water_mark)
        marks = [None if draft is None else draft.high_water_mark]
        domain = self.domain_metadata.get(ROW_TRACKING_DOMAIN)
        if domain is not None:
            marks.append(_mark_of(domain))
        return max((mark for mark in marks if mark is not None), default=None)

    @cached_property
    def commit_timestamp_ms(self) -> int:
        """When this version was committed, milliseconds since 1970, UTC.

        Protocol: In-Commit Timestamps
        Cost: one request on tables with in-commit timestamps, and after a commit of our own;
        otherwise none.
        """
        own_times, target = self.configuration.in_commit_timestamps, self.segment.target_commit
        if own_times is None and target is not None and not self._knows_file_time:
            return self.store.stat(target.path).modified_ms
        return read_commit_time_ms(self.store, self.segment, own_times)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The provenance of the commits up to this version, newest first.

        Commits that were cleaned up are missing.

        Args:
            limit: maximum number of commits; None is all.

        Returns:
            A dict per commit: `version`, `timestamp` (milliseconds since 1970, UTC, as used by
            time travel), and every member of its `commitInfo`.

        Protocol: Commit Provenance Information
        Cost: one listing, and one request per commit.
        """
        first = 0 if limit is None else max(0, self.version + 1 - max(1, limit))
        listing = list_log(self.store, from_version=first, log_tail=self.log_tail)
        self.check_listed(listing)
        return read_history(
            self.store,
            listing,
            version=self.version,
            limit=limit,
            in_commit_timestamps=self.configuration.in_commit_timestamps,
        )

    def committed(
        self,
        commits: Sequence[tuple[LogFile, bytes]],
        configuration: TableConfiguration,
        *,
        log_tail: LogTail | None = None,
        commit_timestamp_ms: int | None = None,
    ) -> Snapshot:
        """The snapshot after commits whose bytes are known.

        Args:
            commits: those directly after this version, ascending; the modification time of the last
                one is not known.
            configuration: protocol and metadata after them.
            log_tail: the newest commits of a catalog-managed table.
            commit_timestamp_ms: in-commit timestamp of the last one, if it has one.

        Cost: no I/O; cached columns of this version are reused.
        """
        state = self._state.committed(commits)
        context = self.context.with_log_tail(log_tail or self.log_tail)
        return _after_commit(context, state, configuration, commit_timestamp_ms)

    def check_listed(self, listing: LogListing) -> None:
        """Raise `VersionNotFoundError` for a log that is not that of this version any more."""
        if not is_listed(self._state, listing, knows_time=self._knows_file_time):
            raise VersionNotFoundError(
                f"cannot read the commits up to version {self.version} of {self.store.root}: the "
                "log has another commit of that version by now, or none; open the table anew"
            )

    def refresh(self, *, log_tail: LogTail | None = None, same_table: bool = False) -> Snapshot:
        """Load the latest version; returns this snapshot itself if it is the latest.

        Cached columns of this version are reused, unless the table was deleted and created anew
        at the same location.

        Args:
            log_tail: the newest commits of a catalog-managed table; None asks the context's
                committer.
            same_table: whether a table that was created anew is an error, as for who writes.

        Raises:
            TableNotFoundError: the table is gone; with `same_table`, also if another one is there.

        Cost: two requests, and two per new commit; also a listing, if there are many new commits
        or a newer checkpoint would help.
        """
        known = self.context
        context = (
            known.with_newest_log_tail() if log_tail is None else known.with_log_tail(log_tail)
        )
        state = self._newer_state(context.log_tail)
        if state is self._state and _allowed_by(context) == _allowed_by(known):
            return self
        if state is not None:
            protocol, metadata = state.newest_in_commits(self.version)
            if metadata is None or metadata.id == self.metadata.id:
                return Snapshot(
                    context,
                    state,
                    protocol=self.protocol if protocol is None else protocol,
                    metadata=self.metadata if metadata is None else metadata,
                )
        newest = open_snapshot(context)
        # One log may give its table another id, as CREATE OR REPLACE does.
        if same_table and newest.metadata.id != self.metadata.id and not self.is_in_place():
            raise TableNotFoundError(
                f"cannot go on from version {self.version} of {self.store.root}: the table with id "
                f"{self.metadata.id!r}, which was opened, is gone, and the one that is there now "
                f"has the id {newest.metadata.id!r}; nothing was changed; open the table anew"
            )
        return newest

    def is_in_place(self) -> bool:
        """Whether the log still has this version as it was read. Cost: one request."""
        return is_in_place(self.context, self._state, knows_time=self._knows_file_time)

    def _newer_state(self, log_tail: LogTail | None) -> LogState | None:
        """This state extended by new commits; None if it cannot be extended."""
        state = self._state
        context = self.context.with_log_tail(log_tail)
        is_long = not state.holds_columns and len(state.segment.commits) > _LONG_SEGMENT
        listing = list_after(context, state, knows_time=self._knows_file_time, is_long=is_long)
        if listing is None:
            return None
        new = [file for version, file in listing.commits.items() if version > self.version]
        if not new:
            return state
        if [file.version for file in new] != [self.version + 1 + n for n in range(len(new))]:
            return None
        if listing.checkpoints and (not state.holds_columns or len(new) > _MANY_COMMITS):
            return None  # nothing is cached, so opening from a newer checkpoint is faster
        checksum = listing.checksums.get(new[-1].version)
        return self.read_log(lambda state: state.extended(new, checksum))

    def __repr__(self) -> str:
        return f"Snapshot({self.store.root!r}, version {self.version})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "context": self.context,
            "protocol": self.protocol,
            "metadata": self.metadata,
            "segment": self._state.segment,
            "unreadable": dict(self._state.unreadable),
            "knows_file_time": self._knows_file_time,
            "head": self._state.head,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.context = state["context"]
        self.protocol = state["protocol"]
        self.metadata = state["metadata"]
        self._state = LogState(
            self.store, state["segment"], unreadable=state["unreadable"], head=state.get("head")
        )
        self._knows_file_time = state["knows_file_time"]

    def read_log(self, act: Callable[[LogState], _Result]) -> _Result:
        """Return `act(state)` for the state of the log.

        `act` is run again on other files of the log if some were deleted or are damaged.
        """
        while True:
            state = self._state
            try:
                return act(state)
            except (CheckpointUnreadableError, ObjectNotFoundError) as error:
                self._state = other_way(state, error, self.log_tail)
            except MalformedLogError as error:
                self._state = way_around(state, error, self.log_tail)


def open_snapshot(context: TableContext, version: int | None = None) -> Snapshot:
    """Load `version`, or the latest version; see `load_snapshot`."""
    state, protocol, metadata = open_log(context, version)
    return Snapshot(context, state, protocol=protocol, metadata=metadata)


def new_table_snapshot(
    context: TableContext,
    commit: tuple[LogFile, bytes],
    configuration: TableConfiguration,
    *,
    commit_timestamp_ms: int | None = None,
) -> Snapshot:
    """The snapshot of version 0, just committed; arguments as for `Snapshot.committed`."""
    file, data = commit
    segment = LogSegment(version=0, checkpoint=None, commits=(file,), target_commit=file.info)
    state = LogState(context.store, segment, retained={file.info.path: data})
    return _after_commit(context, state, configuration, commit_timestamp_ms)


def _after_commit(
    context: TableContext,
    state: LogState,
    configuration: TableConfiguration,
    commit_timestamp_ms: int | None,
) -> Snapshot:
    snapshot = Snapshot(
        context, state, protocol=configuration.protocol, metadata=configuration.metadata
    )
    snapshot.__dict__["configuration"] = configuration  # what `cached_property` would keep
    if commit_timestamp_ms is not None:
        snapshot.__dict__["commit_timestamp_ms"] = commit_timestamp_ms
    snapshot._knows_file_time = False  # noqa: SLF001  # made here
    return snapshot


def _allowed_by(context: TableContext) -> frozenset[MaintenanceOperation]:
    return frozenset() if context.log_tail is None else context.log_tail.allowed


def _mark_of(domain: DomainMetadata) -> int | None:
    values = domain.configuration
    if isinstance(values, str):
        values = loads(values, f"domain {domain.domain}")
    mark = values.get("rowIdHighWaterMark") if isinstance(values, dict) else None
    try:
        return None if mark is None else int(mark)
    except ValueError:
        raise MalformedLogError(
            f"domain {domain.domain}: rowIdHighWaterMark is {mark!r}, expected a whole number"
        ) from None
