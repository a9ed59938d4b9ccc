"""A snapshot: one version of a table.

Owns the public face of a version: protocol, metadata, files, tombstones, application transactions,
domains. It never changes. Reading data files is for `scan`.

Protocol: Snapshots, Action Reconciliation
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalog._json import loads
from deltalog.actions.arrow import FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.configuration import TableConfiguration
from deltalog.errors import CheckpointUnreadableError, MalformedLogError, ObjectNotFoundError
from deltalog.log.history import read_commit_time_ms, read_history
from deltalog.log.listing import list_log, list_newer
from deltalog.log.segment import LogSegment
from deltalog.snapshot.opening import note_readable_versions, open_log, other_way
from deltalog.snapshot.state import LogState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from deltalog.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
    from deltalog.catalog import LogTail
    from deltalog.context import TableContext
    from deltalog.log.checksum import VersionChecksum
    from deltalog.log.names import LogFile
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store

_Result = TypeVar("_Result")

ROW_TRACKING_DOMAIN: Final = "delta.rowTracking"
_MANY_COMMITS: Final = 1000
_LONG_SEGMENT: Final = 200  # commits: there may be a checkpoint that makes it short


class Snapshot:
    """One version of a table, immutable; file columns are read when they are asked for.

    What was read is kept in memory, and left out when the snapshot is pickled. Snapshots may be
    shared by threads.

    Args:
        context: of the table.
        state: what the log says at this version.
        protocol: of this version.
        metadata: of this version.

    Attributes:
        context: of the table.
        protocol: of this version.
        metadata: of this version.
        known_checksum: the version's checksum, if who made the snapshot has just written it.
    """

    known_checksum: VersionChecksum | None = None

    def __init__(
        self,
        context: TableContext,
        state: LogState,
        *,
        protocol: Protocol,
        metadata: Metadata,
    ) -> None:
        self.context = context
        self.protocol = protocol
        self.metadata = metadata
        self._state = state
        self._knows_file_time = True

    @property
    def store(self) -> Store:
        """The store of the table."""
        return self.context.store

    @property
    def log_tail(self) -> LogTail | None:
        """The commits that a catalog handed in; None if the table was opened by its path."""
        return self.context.log_tail

    @property
    def version(self) -> int:
        """The table version."""
        return self._state.segment.version

    @property
    def segment(self) -> LogSegment:
        """The files of the log that make this version."""
        return self._state.segment

    @cached_property
    def configuration(self) -> TableConfiguration:
        """Protocol, schema and properties, checked against each other.

        Raises:
            InvalidMetadataError: they contradict each other.
        """
        return TableConfiguration(self.protocol, self.metadata)

    def files(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The live files: one row each, the same rows in the same order at every call.

        Args:
            columns: of `FILE_SCHEMA`; None is all of them.

        Cost: the leaves of the checkpoint that were not read before, and once the commits after
        it. Where later commits name files, the checkpoint's paths too.
        """
        names = FILE_SCHEMA.names if columns is None else list(columns)
        return self.read_log(lambda state: state.files(names))

    def stats(self, schema: pa.Schema) -> pa.Table:
        """Statistics of the live files, typed; rows as in `files`.

        Args:
            schema: the leaves wanted, by physical names, nested as in `stats.schema`.

        Returns:
            A table with this schema. A statistic that is missing, malformed or of a type that
            does not fit is NULL.

        Protocol: Per-file Statistics
        Cost: the leaves of the checkpoint's `stats_parsed` where it has them, else its JSON texts
        and one pass through them; what was read before costs nothing.
        """
        return self.read_log(lambda state: state.stats(schema))

    @property
    def num_files(self) -> int:
        """How many logical files are live."""
        return self.read_log(lambda state: state.num_files)

    def tombstones(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The removes on record, expired ones too.

        Args:
            columns: of `REMOVE_SCHEMA`; None is all of them.
        """
        names = REMOVE_SCHEMA.names if columns is None else list(columns)
        return self.read_log(lambda state: state.tombstones(names))

    @property
    def app_transactions(self) -> Mapping[str, SetTransaction]:
        """The latest transaction of each application.

        Those older than `delta.setTransactionRetentionDuration` are left out; without a time
        they stay (ledger D-62).

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
        """The latest transaction of each application, expired ones too."""
        return self.read_log(lambda state: state.app_transactions)

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """Every domain's metadata, unknown domains too; removed ones are not there.

        Protocol: Domain Metadata
        """
        return self.read_log(lambda state: state.domains)

    @property
    def row_id_high_water_mark(self) -> int | None:
        """The highest row id in use, or None before the first.

        Read from the domain `delta.rowTracking` and from the draft's action; if both are there,
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
        Cost: one request on tables with in-commit timestamps, and after a commit of our own; else
        none.
        """
        own_times, target = self.configuration.in_commit_timestamps, self.segment.target_commit
        if own_times is None and target is not None and not self._knows_file_time:
            return self.store.stat(target.path).modified_ms
        return read_commit_time_ms(self.store, self.segment, own_times)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """What the commits up to this version say of themselves, newest first.

        Commits that were cleaned up are not there.

        Args:
            limit: how many at most; None is all.

        Returns:
            A dict per commit: `version`, `timestamp` (milliseconds since 1970, UTC, the time
            that time travel goes by), and every member of its `commitInfo`.

        Protocol: Commit Provenance Information
        Cost: one listing, and one request per commit.
        """
        first = 0 if limit is None else max(0, self.version + 1 - limit)
        listing = list_log(self.store, from_version=first, log_tail=self.log_tail)
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
        """The version after commits whose bytes are at hand.

        Args:
            commits: those right after this version, ascending; the last one's time is not known.
            configuration: protocol and metadata after them.
            log_tail: the newest commits, for a table whose catalog decides on them.
            commit_timestamp_ms: the last one's own time, if it has one.

        Cost: none; what was read of this version is used again.
        """
        state = self._state.committed(commits)
        context = self.context.with_log_tail(log_tail or self.log_tail)
        return _after_commit(context, state, configuration, commit_timestamp_ms)

    def refresh(self, *, log_tail: LogTail | None = None) -> Snapshot:
        """The latest version of the table; this snapshot itself if nothing was committed since.

        What was read of this version is used again. A table that was made anew at the same place
        is opened anew.

        Args:
            log_tail: the newest commits, for a table whose catalog decides on them; None asks the
                context's committer.

        Cost: two requests, and two per new commit; a listing besides where those are many, or
        where a newer checkpoint would help.
        """
        known = self.context
        context = (
            known.with_newest_log_tail() if log_tail is None else known.with_log_tail(log_tail)
        )
        state = self._newer_state(context.log_tail)
        if state is self._state:
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
        return open_snapshot(context)

    def _newer_state(self, log_tail: LogTail | None) -> LogState | None:
        """This state with the commits since; None if it cannot be carried on."""
        state = self._state
        if not state.holds_columns and len(state.segment.commits) > _LONG_SEGMENT:
            listing = list_log(self.store, from_version=self.version, log_tail=log_tail)
        else:
            listing = list_newer(self.store, self.version, log_tail=log_tail)
        known, now = state.segment.target_commit, listing.commits.get(self.version)
        # The same version with another file is another table, or the file was cleaned up.
        if known is None or now is None:
            return None
        if not _same_commit(known, now.info, knows_time=self._knows_file_time):
            return None
        new = [file for version, file in listing.commits.items() if version > self.version]
        if not new:
            return state
        if [file.version for file in new] != [self.version + 1 + n for n in range(len(new))]:
            return None
        if listing.checkpoints and (not state.holds_columns or len(new) > _MANY_COMMITS):
            return None  # nothing to carry on that a newer checkpoint does not give faster
        return state.extended(new, listing.checksums.get(new[-1].version))

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
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.context = state["context"]
        self.protocol = state["protocol"]
        self.metadata = state["metadata"]
        self._state = LogState(self.store, state["segment"], unreadable=state["unreadable"])
        self._knows_file_time = state["knows_file_time"]

    def read_log(self, act: Callable[[LogState], _Result]) -> _Result:
        """What `act` makes of the log's state.

        It is started over from other files of the log if some have gone or are damaged.
        """
        while True:
            state = self._state
            try:
                return act(state)
            except (CheckpointUnreadableError, ObjectNotFoundError) as error:
                self._state = other_way(state, error, self.log_tail)
            except MalformedLogError as error:
                if self.store.root not in str(error):
                    error.add_note(f"while reading the log of {self.store.root}")
                note_readable_versions(error, state, self.log_tail)
                raise


def open_snapshot(context: TableContext, version: int | None = None) -> Snapshot:
    """The table at `version`, or the latest; see `load_snapshot`."""
    state, protocol, metadata = open_log(context, version)
    return Snapshot(context, state, protocol=protocol, metadata=metadata)


def new_table_snapshot(
    context: TableContext,
    commit: tuple[LogFile, bytes],
    configuration: TableConfiguration,
    *,
    commit_timestamp_ms: int | None = None,
) -> Snapshot:
    """Version 0, just committed; the arguments are those of `Snapshot.committed`."""
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


def _same_commit(one: FileInfo, other: FileInfo, *, knows_time: bool) -> bool:
    # A staged commit that was published meanwhile has another path and another time.
    if one.path != other.path or not knows_time:
        return one.size_bytes == other.size_bytes
    return one == other


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
