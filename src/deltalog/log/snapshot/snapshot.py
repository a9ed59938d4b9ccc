"""A snapshot: one version of a table.

It contains protocol, metadata, files, tombstones, application transactions and metadata domains of
the version. This module reads no data files (see `data.scan`); `replay` reconciles actions.

Protocol: Snapshots, Action Reconciliation
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from deltalog._util.cached import cached_property
from deltalog._util.call_errors import WrongCallError
from deltalog._util.json import loads
from deltalog.errors import (
    CheckpointUnreadableError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltalog.log.history import find_version_at, read_commit_time_ms, read_history
from deltalog.log.listing import list_log, remember_table
from deltalog.log.names import LogFile
from deltalog.log.reader import advising_on_damage
from deltalog.log.segment import LogListing, LogSegment
from deltalog.log.snapshot.open_log import (
    is_in_place,
    is_listed,
    list_after,
    open_log,
    other_way,
    way_around,
)
from deltalog.log.snapshot.state import LogState
from deltalog.protocol.actions.arrow import FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.protocol.configuration import TableConfiguration
from deltalog.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from deltalog.log.checksum import VersionChecksum
    from deltalog.log.context import LogTail, MaintenanceOperation, TableContext
    from deltalog.protocol.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction

_Result = TypeVar("_Result")

ROW_TRACKING_DOMAIN: Final = "delta.rowTracking"
_MANY_COMMITS: Final = 1000
# If a segment has more than this number of commits, a refresh also looks for a newer checkpoint.
_LONG_SEGMENT: Final = 200


class Snapshot:
    """One version of a table, immutable; file columns are read on demand.

    Columns that were read are cached in memory; they are not pickled. Threads may share a snapshot.

    Args:
        context: the table's context.
        state: state of the log at this version.
        protocol: the protocol of this version.
        metadata: the metadata of this version.

    Attributes:
        context: the table's context.
        protocol: the protocol of this version.
        metadata: the metadata of this version.
        is_piece: whether the snapshot contains only some of the version's files.
        known_checksum: the version's checksum, if this process has written it.
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

    if not TYPE_CHECKING:  # type checkers must report this use

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Raise an error for `table.snapshot()`, which is a method in other libraries."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise WrongCallError(
                "the snapshot of a table is an attribute: write table.snapshot without brackets, "
                "or table.scan() to read rows"
            )

    @property
    def store(self) -> Store:
        """The store of the table."""
        return self.context.store

    def with_data_of(self, store: Store) -> Snapshot:
        """Return the same version, with another store for its data files."""
        return Snapshot(
            replace(self.context, store=store),
            self._state,
            protocol=self.protocol,
            metadata=self.metadata,
        )

    def with_time_zone(self, time_zone: str) -> Snapshot:
        """Return the same version with another time zone for values without a time zone."""
        return Snapshot(
            replace(self.context, time_zone=time_zone),
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

    @property
    def knows_file_time(self) -> bool:
        """Whether `segment` has the modification time of the version's commit.

        False after a commit of this process.
        """
        return self._knows_file_time

    @cached_property
    def configuration(self) -> TableConfiguration:
        """Protocol, schema and properties, checked against each other.

        Raises:
            InvalidMetadataError: protocol, schema and properties contradict each other.
        """
        return TableConfiguration(self.protocol, self.metadata)

    def files(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The live files, one row each; every call returns the same rows in the same order.

        Args:
            columns: columns of `FILE_SCHEMA`; None means all columns.

        Cost: reads the columns from the checkpoint unless they are cached, and once the commits
        after the checkpoint. If these commits name files, also reads the paths in the checkpoint.
        """
        names = FILE_SCHEMA.names if columns is None else list(columns)
        return self.read_log(lambda state: state.files(names))

    def stats(self, schema: pa.Schema) -> pa.Table:
        """Statistics of the live files, typed; rows as in `files`.

        Args:
            schema: the leaves to return, by physical names, nested as in
                `deltalog.protocol.stats.stats_schema`.

        Returns:
            A table with this schema. A statistic that is missing, malformed or of an unexpected
            type is NULL.

        Protocol: Per-file Statistics
        Cost: reads columns of `stats_parsed` from the checkpoint if they exist; otherwise reads and
        parses the JSON strings. Cached statistics are not read again.
        """
        return self.read_log(lambda state: state.stats(schema))

    @property
    def num_files(self) -> int:
        """The number of live logical files."""
        return self.read_log(lambda state: state.num_files)

    def tombstones(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The tombstones (remove actions) of this version, including expired ones.

        Args:
            columns: columns of `REMOVE_SCHEMA`; None means all columns.
        """
        names = REMOVE_SCHEMA.names if columns is None else list(columns)
        return self.read_log(lambda state: state.tombstones(names))

    @property
    def app_transactions(self) -> Mapping[str, SetTransaction]:
        """The latest transaction of each application.

        Transactions older than `delta.setTransactionRetentionDuration` are omitted. Transactions
        without `lastUpdated` never expire (requirement D-62).

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
        """All metadata domains by name, including unknown domains, without removed domains.

        Protocol: Domain Metadata
        """
        return self.read_log(lambda state: state.domains)

    @property
    def row_id_high_water_mark(self) -> int | None:
        """The highest assigned row id; None if no row ids are assigned.

        It is the higher value of the domain `delta.rowTracking` and of the action of the protocol's
        draft (requirement B-72).

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
        """The time of this version's commit, milliseconds since 1970, UTC.

        Protocol: In-Commit Timestamps
        Cost: one request on tables with in-commit timestamps, and after a commit of this process;
        otherwise none.
        """
        own_times, target = self.configuration.in_commit_timestamps, self.segment.target_commit
        if own_times is None and target is not None and not self._knows_file_time:
            return self.store.stat(target.path).modified_ms
        return read_commit_time_ms(self.store, self.segment, own_times)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the provenance of the commits up to this version, newest first.

        Commits that were cleaned up are missing.

        Args:
            limit: maximum number of commits; None means all.

        Returns:
            A dictionary for each commit: `version`, `timestamp` (the time that time travel uses, in
            milliseconds since 1970, UTC), and the members of `commitInfo`.

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
            log_tail=self.log_tail,
        )

    def committed(
        self,
        commits: Sequence[tuple[LogFile, bytes]],
        configuration: TableConfiguration,
        *,
        log_tail: LogTail | None = None,
        commit_timestamp_ms: int | None = None,
    ) -> Snapshot:
        """Return the snapshot after further commits, whose contents are in memory.

        Args:
            commits: the commits directly after this version, ascending. The modification time of
                the last commit is not used, because it is unknown.
            configuration: protocol and metadata after the commits.
            log_tail: the newest commits of a catalog-managed table.
            commit_timestamp_ms: in-commit timestamp of the last commit, or None.

        Cost: no I/O; cached columns of this version are reused.
        """
        state = self._state.committed(commits)
        context = self.context.with_log_tail(log_tail or self.log_tail)
        return _after_commit(context, state, configuration, commit_timestamp_ms)

    def check_listed(self, listing: LogListing) -> None:
        """Raise `VersionNotFoundError` if the listing shows that the log lacks this version."""
        if not is_listed(self._state, listing, knows_time=self._knows_file_time):
            raise VersionNotFoundError(
                f"cannot read the commits up to version {self.version} of {self.store.root}: the "
                "commit of this version was replaced or deleted; open the table again"
            )

    def refresh(self, *, log_tail: LogTail | None = None, same_table: bool = False) -> Snapshot:
        """Load the latest version; return this snapshot itself if it is the latest.

        Cached columns of this version are reused, unless the table was deleted and recreated at the
        same location.

        Args:
            log_tail: the newest commits of a catalog-managed table; None requests them from the
                context's committer.
            same_table: whether to raise if the table was recreated.

        Raises:
            TableNotFoundError: the table no longer exists; with `same_table`, also if it was
                replaced by another table.

        Cost: two requests, and two for each new commit; also a listing, if there are many new
        commits or the snapshot is based on many commits.
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
        newest = self._open_newest(context)
        # A new id alone is no error, because CREATE OR REPLACE changes the id within the same log.
        if same_table and newest.metadata.id != self.metadata.id and not self.is_in_place():
            raise TableNotFoundError(
                f"cannot continue from version {self.version} of {self.store.root}: the opened "
                f"table with id {self.metadata.id!r} was replaced by a table with id "
                f"{newest.metadata.id!r}; nothing was changed; open the table again"
            )
        return newest

    def _open_newest(self, context: TableContext) -> Snapshot:
        try:
            return _open(context)
        except TableNotFoundError as error:
            if error.log_begins:
                raise
            from deltalog.log.snapshot.locations import content_of  # noqa: PLC0415  # only for errors

            found, _ = content_of(self.store)
            raise TableNotFoundError(
                f"cannot continue from version {self.version} of {self.store.root}: the table was "
                f"deleted after it was opened; found {found}. Nothing was changed; write_deltalake "
                "or DeltaTable.create makes a new table"
            ) from None

    def is_in_place(self) -> bool:
        """Return whether the log still contains this version. Cost: one request."""
        return is_in_place(self.context, self._state, knows_time=self._knows_file_time)

    def _newer_state(self, log_tail: LogTail | None) -> LogState | None:
        """Return the state extended by new commits; None if the table must be opened again."""
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
            return None  # opening from the newer checkpoint is faster
        checksum = listing.checksums.get(new[-1].version)
        with advising_on_damage(self.store, new, log_tail):
            return self.read_log(lambda state: state.extended(new, checksum))

    def __repr__(self) -> str:
        return f"Snapshot({self.store.root!r}, version {self.version})"

    def __getstate__(self) -> dict[str, Any]:
        return {"context": self.context, **self.stored()}

    def stored(self) -> dict[str, Any]:
        """Return the picklable parts of the snapshot, without its context; see `restored`.

        The context may contain credentials, or a connection to a catalog.
        """
        return {
            "protocol": self.protocol,
            "metadata": self.metadata,
            "segment": self._state.segment,
            "unreadable": dict(self._state.unreadable),
            "knows_file_time": self._knows_file_time,
            "head": self._state.head,
        }

    @classmethod
    def restored(cls, context: TableContext, stored: Mapping[str, Any]) -> Snapshot:
        """Return the snapshot that another process has stored. The log may have changed since.

        Args:
            context: the context of the same table.
            stored: the result of `stored`.

        Cost: no I/O. `refresh` checks whether the log still contains the version.
        """
        found = cls.__new__(cls)
        found.__setstate__({"context": context, **stored})
        return found

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

        If log files are damaged or deleted, `act` is called again on a state from other files.
        """
        while True:
            state = self._state
            try:
                return act(state)
            except (CheckpointUnreadableError, ObjectNotFoundError) as error:
                self._state = other_way(state, error, self.log_tail)
            except MalformedLogError as error:
                self._state = way_around(state, error, self.log_tail)


def _open(context: TableContext, version: int | None = None) -> Snapshot:
    state, protocol, metadata = open_log(context, version)
    remember_table(context.store.root)
    return Snapshot(context, state, protocol=protocol, metadata=metadata)


def new_table_snapshot(
    context: TableContext,
    commit: tuple[LogFile, bytes],
    configuration: TableConfiguration,
    *,
    commit_timestamp_ms: int | None = None,
) -> Snapshot:
    """Return the snapshot of a new version 0; see `Snapshot.committed` for the arguments."""
    file, data = commit
    segment = LogSegment(version=0, checkpoint=None, commits=(file,), target_commit=file.info)
    state = LogState(context.store, segment, retained={file.info.path: data})
    remember_table(context.store.root)
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
    Snapshot.configuration.set(snapshot, configuration)
    if commit_timestamp_ms is not None:
        Snapshot.commit_timestamp_ms.set(snapshot, commit_timestamp_ms)
    snapshot._knows_file_time = False  # noqa: SLF001  # created above
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


# --- Loading of snapshots: the latest, by version number, or by timestamp


def load_snapshot(
    context: TableContext, *, version: int | None = None, timestamp_ms: int | None = None
) -> Snapshot:
    """Load the latest version of a table, the given version, or the version at a timestamp.

    Args:
        context: the context of the table.
        version: the version to load.
        timestamp_ms: milliseconds since 1970, UTC; not together with `version`.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: the version is after the latest version; or the timestamp is before
            the first version, or in the future.
        MalformedLogError: the version cannot be built from the log; subclasses name the reason.

    Cost: reads `_last_checkpoint`, lists once, and reads the commits after the checkpoint and a few
    small columns of the checkpoint. Independent of the number of files.
    """
    context = context.with_newest_log_tail()
    if timestamp_ms is not None:
        if version is not None:
            raise InvalidInputError("expected a version or a timestamp to read at, found both")
        version = find_version(context, timestamp_ms)
    try:
        return _open(context, version)
    except TableNotFoundError as error:
        if error.log_begins:
            raise
        from deltalog.log.snapshot.locations import absent_table  # noqa: PLC0415  # only for errors

        raise absent_table(context.store) from None


def load_if_any(context: TableContext) -> Snapshot | None:
    """Load the latest version of a table; None if its location has no log.

    Args:
        context: the context of the table.

    Raises:
        TableNotFoundError: the log contains only an incomplete checkpoint.
        MalformedLogError: see `load_snapshot`.

    Cost: see `load_snapshot`; one listing if there is no table.
    """
    try:
        return _open(context.with_newest_log_tail())
    except TableNotFoundError as error:
        if error.log_begins:
            raise
        return None


def find_version(
    context: TableContext, timestamp_ms: int, *, latest: Snapshot | None = None
) -> int:
    """Find the version that the table had at a timestamp.

    A timestamp after the last commit returns the latest version, unless it is in the future.

    Args:
        context: the table's context.
        timestamp_ms: milliseconds since 1970, UTC.
        latest: the latest version, if already loaded.

    Raises:
        VersionNotFoundError: the timestamp is before the first readable version, or in the future.

    Cost: opening the latest version, one listing of the whole log, and with in-commit timestamps
    one request for each step of a binary search.
    """
    latest = latest or load_snapshot(context)
    return find_version_at(
        context.store,
        list_log(context.store, from_version=0, log_tail=context.log_tail),
        timestamp_ms,
        in_commit_timestamps=latest.configuration.in_commit_timestamps,
        now_ms=context.clock.now_ms(),
    )


def in_place(snapshot: Snapshot) -> Snapshot:
    """Return the same snapshot if the log still contains its version, otherwise the latest version.

    Call this before writing on top of a version that may be old. Otherwise put-if-absent of the
    next version could succeed although the table was deleted, recreated, rolled back or cleaned up.

    Raises:
        TableNotFoundError: the table no longer exists, or was replaced by another table.

    Cost: one request; if the log no longer contains the version, also those of opening the table.
    """
    return snapshot if snapshot.is_in_place() else snapshot.refresh(same_table=True)


def checked_in_place(snapshot: Snapshot, operation: str) -> Snapshot:
    """Return the same snapshot; raise if the log no longer contains its version.

    Args:
        snapshot: the version.
        operation: the operation for the error message, such as `write a checkpoint of`.

    Raises:
        TableNotFoundError: the table no longer exists, or was replaced by another table.
        VersionNotFoundError: the log no longer contains the version.

    Cost: see `in_place`.
    """
    if (latest := in_place(snapshot)) is not snapshot:
        raise VersionNotFoundError(
            f"cannot {operation} version {snapshot.version} of {snapshot.store.root}: the commit "
            f"of that version was replaced or removed; the latest version is {latest.version}"
        )
    return snapshot
