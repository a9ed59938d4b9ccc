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
from deltalog.clock import now_ms
from deltalog.configuration import TableConfiguration
from deltalog.errors import CheckpointUnreadableError, MalformedLogError
from deltalog.snapshot.state import LogState, without_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from deltalog.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
    from deltalog.catalog import LogTail
    from deltalog.log.segment import LogSegment
    from deltalog.storage.store import Store

_Result = TypeVar("_Result")

ROW_TRACKING_DOMAIN: Final = "delta.rowTracking"


class Snapshot:
    """One version of a table, immutable; file columns are read when they are asked for.

    What was read is kept in memory, and left out when the snapshot is pickled. Snapshots may be
    shared by threads.

    Args:
        store: of the table.
        state: what the log says at this version.
        protocol: of this version.
        metadata: of this version.
        log_tail: the commits that a catalog handed in.

    Attributes:
        store: of the table.
        protocol: of this version.
        metadata: of this version.
        log_tail: the commits that a catalog handed in; None if the table was opened by its path.
    """

    def __init__(
        self,
        store: Store,
        state: LogState,
        *,
        protocol: Protocol,
        metadata: Metadata,
        log_tail: LogTail | None = None,
    ) -> None:
        self.store = store
        self.protocol = protocol
        self.metadata = metadata
        self.log_tail = log_tail
        self._state = state

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
        return self._read(lambda state: state.files(names))

    @property
    def num_files(self) -> int:
        """How many logical files are live."""
        return self._read(lambda state: state.num_files)

    def tombstones(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The removes on record, expired ones too.

        Args:
            columns: of `REMOVE_SCHEMA`; None is all of them.
        """
        names = REMOVE_SCHEMA.names if columns is None else list(columns)
        return self._read(lambda state: state.tombstones(names))

    @property
    def app_transactions(self) -> Mapping[str, SetTransaction]:
        """The latest transaction of each application.

        Those older than `delta.setTransactionRetentionDuration` are left out; without a time
        they stay (ledger D-62).

        Protocol: Transaction Identifiers
        """
        found = self._read(lambda state: state.app_transactions)
        retention_ms = self.configuration.properties.set_transaction_retention_ms
        if retention_ms is None:
            return found
        oldest_ms = now_ms() - retention_ms
        return {
            app_id: txn
            for app_id, txn in found.items()
            if txn.last_updated_ms is None or txn.last_updated_ms >= oldest_ms
        }

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """Every domain's metadata, unknown domains too; removed ones are not there.

        Protocol: Domain Metadata
        """
        return self._read(lambda state: state.domains)

    @property
    def row_id_high_water_mark(self) -> int | None:
        """The highest row id in use, or None before the first.

        Read from the domain `delta.rowTracking` and from the draft's action; if both are there,
        the higher one counts (ledger B-72).

        Protocol: Row Tracking
        """
        marks = [self._read(lambda state: state.draft_high_water_mark)]
        domain = self.domain_metadata.get(ROW_TRACKING_DOMAIN)
        if domain is not None:
            marks.append(_mark_of(domain))
        return max((mark for mark in marks if mark is not None), default=None)

    def __repr__(self) -> str:
        return f"Snapshot({self.store.root!r}, version {self.version})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "store": self.store,
            "protocol": self.protocol,
            "metadata": self.metadata,
            "log_tail": self.log_tail,
            "segment": self._state.segment,
            "unreadable": dict(self._state.unreadable),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.store = state["store"]
        self.protocol = state["protocol"]
        self.metadata = state["metadata"]
        self.log_tail = state["log_tail"]
        self._state = LogState(self.store, state["segment"], unreadable=state["unreadable"])

    def _read(self, act: Callable[[LogState], _Result]) -> _Result:
        """What `act` gives; starts over from an older checkpoint if this one is unusable."""
        while True:
            state = self._state
            try:
                return act(state)
            except CheckpointUnreadableError as error:
                self._state = without_checkpoint(state, error, self.log_tail)


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
