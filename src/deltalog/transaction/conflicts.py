"""Conflict rules: may a transaction still commit after another writer's commit won the version?

The rules and their order follow Delta Spark. Each rule is a pure function of the facts of two
commits, and returns an error or None.

Protocol: none; follows Delta Spark's conflict checker (requirements D-33 … D-37).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog._util.paths import canonical_paths, decode_path
from deltalog.data.scan.prune import judge
from deltalog.errors import (
    CommitConflictError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    DomainMetadataConflictError,
    MetadataChangedError,
    ProtocolChangedError,
)
from deltalog.log.reader import CommitTable, parse_commits
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import MAX_COLUMN_ID_PROPERTY, MODE_PROPERTY, Mode, strip
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.identity_columns import IDENTITY_TAG
from deltalog.protocol.features.protocol_change import supported_features
from deltalog.protocol.features.row_ids import BACKFILL, ROW_TRACKING_DOMAIN, UNBACKFILL
from deltalog.protocol.features.support import check_writable
from deltalog.protocol.stats.parse import parse_stats
from deltalog.schema import encode_schema
from deltalog.transaction.properties import SERIALIZABLE, SNAPSHOT_ISOLATION, WRITE_SERIALIZABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.expressions import Expression
    from deltalog.log.names import LogFile
    from deltalog.protocol.actions import DomainMetadata, Metadata, Protocol
    from deltalog.transaction.properties import ReadSet

    Rule = Callable[["PendingFacts", "WinningCommit"], CommitConflictError | None]

_SHOWN_FILES: Final = 5

# The features that a winning commit may add without a conflict. They do not affect the files that
# this commit has already written, or `assemble` adds what they require.
_HARMLESS_FEATURES: Final = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkpointProtection",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "inCommitTimestamp",
        "rowIds",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantType",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFacts:
    """The facts of a transaction that conflict rules use.

    Args:
        root: the table's location.
        before: protocol and metadata of the base version; None if the transaction creates the
            table.
        protocol: the protocol that the transaction sets, or None.
        metadata: the metadata that the transaction sets, or None.
        read_set: the data that the transaction has read.
        removed_paths: paths of the files that the transaction removes, as in the log (encoded).
        domains: names of the metadata domains that the transaction sets or removes.
        isolation_level: one of the three levels in `transaction.properties`.
        operation: name of the operation in the history.
        time_zone: time zone of partition values without a zone.
        has_log_tail: whether a catalog decides which commits are part of the table.
        shared_paths: canonical paths of files in which both commits mark different rows as deleted.
            These files do not conflict.
        keeps_new_row_ids: whether new files have row ids that were assigned elsewhere.
    """

    root: str
    before: TableConfiguration | None
    read_set: ReadSet
    removed_paths: pa.ChunkedArray[pa.StringScalar]
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: frozenset[str] = frozenset()
    isolation_level: str = SERIALIZABLE
    operation: str = ""
    time_zone: str
    has_log_tail: bool = False
    shared_paths: pa.StringArray | None = None
    keeps_new_row_ids: bool = False


def find_conflict(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    """Return the error of the first rule that a transaction violates; None without a conflict.

    Args:
        mine: facts of the transaction.
        winner: the winning commit.

    Raises:
        DeltaProtocolError: the winning commit added a feature that deltalog cannot write.
    """
    return next((found for rule in RULES if (found := rule(mine, winner)) is not None), None)


def _protocol(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    if mine.before is not None and mine.protocol is not None:
        dropped = _names(mine.before.protocol) - _names(mine.protocol)
        if dropped:
            why = f"drops {', '.join(sorted(dropped))}, which must be checked on the new version"
            return _error(ProtocolChangedError, mine, winner, f"this commit {why}")
    found = winner.protocol
    if found is None:
        return None
    if mine.protocol is not None or mine.before is None:
        return _error(ProtocolChangedError, mine, winner, "both set the protocol")
    # The winning commit may have added features that deltalog does not support.
    check_writable(
        type(mine.before)(found, winner.metadata or mine.before.metadata),
        table=mine.root,
        version=winner.version,
        has_log_tail=mine.has_log_tail,
    )
    old, new = _names(mine.before.protocol), _names(found)
    if old - new:
        why = f"it dropped {', '.join(sorted(old - new))}"
        return _error(ProtocolChangedError, mine, winner, why)
    demanding = sorted(new - old - _HARMLESS_FEATURES)
    if demanding:
        why = f"it added {', '.join(demanding)}, which this commit may violate"
        return _error(ProtocolChangedError, mine, winner, why)
    return None


def _names(protocol: Protocol) -> set[str]:
    return set(supported_features(protocol))


def _metadata(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    found = winner.metadata
    if found is None:
        return None
    if mine.metadata is not None or mine.before is None:
        return _error(MetadataChangedError, mine, winner, "both set the metadata")
    if winner.changes_identity_marks_only:
        return None
    if is_harmless_change(mine.before, found, protocol=winner.protocol):
        return None
    return _error(MetadataChangedError, mine, winner, "it changed the metadata")


def _domains(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    # The domain of row tracking never conflicts, because every attempt computes its counter again.
    shared = sorted((mine.domains & winner.domains.keys()) - {ROW_TRACKING_DOMAIN})
    if not shared:
        return None
    why = f"both set the metadata domain(s) {', '.join(shared)}"
    return _error(DomainMetadataConflictError, mine, winner, why)


def _app_transactions(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    shared = sorted(mine.read_set.app_ids & winner.app_versions.keys())
    if not shared:
        return None
    why = f"both record the application(s) {', '.join(shared)}"
    return _error(ConcurrentTransactionError, mine, winner, why)


def _appends(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    # A backfill only adds existing files again, so it adds no rows.
    if {mine.operation, winner.operation} & {BACKFILL, UNBACKFILL}:
        return None
    adds = _not_shared(winner.adds, mine)
    if mine.isolation_level == SNAPSHOT_ISOLATION or not adds.num_rows:
        return None
    # WriteSerializable allows a history in which this commit precedes the blind append. But if this
    # commit sets the metadata, there is a conflict, because the appended files were not written for
    # the new metadata.
    if (
        mine.isolation_level == WRITE_SERIALIZABLE
        and winner.is_blind_append
        and mine.metadata is None
    ):
        return None
    files = adds.filter(_reads(mine, adds))
    if not files.num_rows:
        return None
    why = "it added rows that this commit should have read"
    return _error(ConcurrentAppendError, mine, winner, why, files.column("path"))


def _reads(mine: PendingFacts, files: pa.Table) -> Any:
    """Return for each file whether the transaction would have read it."""
    read, before = mine.read_set, mine.before
    if read.whole_table or before is None:
        return _all_the_same(files, value=read.whole_table)
    mask: Any = _all_the_same(files, value=False)
    for predicate in read.predicates:
        mask = compute.or_(mask, may_match(predicate, files, before, mine.time_zone))
    return mask


def may_match(
    predicate: Expression,
    files: pa.Table,
    configuration: TableConfiguration,
    time_zone: str,
) -> pa.BooleanArray:
    """Return for each file whether it may have matching rows, by partition values and statistics.

    Args:
        predicate: the condition, resolved against the table's schema.
        files: rows with `FILE_SCHEMA`.
        configuration: configuration of the table.
        time_zone: time zone of partition values without a zone.

    Returns:
        One boolean for each file, never null. It is true if statistics are missing.
    """
    judged = judge(
        predicate,
        configuration,
        num_files=files.num_rows,
        partition_values=lambda: files.column("partitionValues"),
        stats=lambda schema: parse_stats(files.column("stats"), schema),
        time_zone=time_zone,
    )
    return _all_the_same(files, value=True) if judged.keep is None else judged.keep


def _delete_read(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    # A backfill omits files that winning commits have added or removed (see `assemble`).
    removed: Any = _not_shared(winner.removes, mine).column("path")
    if not len(removed) or mine.operation in {BACKFILL, UNBACKFILL}:
        return None
    why = "it removed a file that this commit has read"
    if mine.read_set.whole_table:
        return _error(ConcurrentDeleteReadError, mine, winner, why, removed)
    if mine.read_set.files is None:
        return None
    shared = same_paths(removed, mine.read_set.files, mine.root)
    if not len(shared):
        return None
    return _error(ConcurrentDeleteReadError, mine, winner, why, shared)


def _delete_delete(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    removed = _not_shared(winner.removes, mine)
    if not removed.num_rows or not len(mine.removed_paths):
        return None
    shared = same_paths(removed.column("path"), mine.removed_paths, mine.root)
    if not len(shared):
        return None
    why = "it removed a file that this commit removes too"
    return _error(ConcurrentDeleteDeleteError, mine, winner, why, shared)


def _row_ids(mine: PendingFacts, winner: WinningCommit) -> CommitConflictError | None:
    # The new files of a branch have ids that the winning commit may have assigned, too.
    if not mine.keeps_new_row_ids or ROW_TRACKING_DOMAIN not in winner.domains:
        return None
    why = "it assigned row ids that rows of this commit may have, too"
    return _error(ConcurrentAppendError, mine, winner, why)


RULES: Final[tuple[Rule, ...]] = (
    _protocol,
    _metadata,
    _domains,
    _app_transactions,
    _appends,
    _delete_read,
    _delete_delete,
    _row_ids,
)
"""The rules in the order of Delta Spark (requirement D-33), then our own. The first conflict is
reported."""


def same_paths(paths: Any, others: Any, root: str) -> Any:
    """Return the members of `paths` that refer to a file in `others`; all paths are encoded."""
    known = _one_piece(canonical_paths(others, root))
    return paths.filter(compute.is_in(canonical_paths(paths, root), value_set=known))


def _not_shared(files: pa.Table, mine: PendingFacts) -> pa.Table:
    """Return the files except `shared_paths`, which do not conflict."""
    if mine.shared_paths is None or not len(mine.shared_paths):
        return files
    paths = canonical_paths(files.column("path"), mine.root)
    return files.filter(compute.invert(compute.is_in(paths, value_set=mine.shared_paths)))


def _all_the_same(files: pa.Table, *, value: bool) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value=value), files.num_rows)


def _one_piece(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    whole: Any = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        return pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    return whole


def _error(
    kind: type[CommitConflictError],
    mine: PendingFacts,
    winner: WinningCommit,
    why: str,
    paths: Any = None,
) -> CommitConflictError:
    files: list[str] = []
    if paths is not None:
        files = [decode_path(path) for path in paths.slice(0, _SHOWN_FILES).to_pylist()]
    named = f" ({', '.join(files)})" if files else ""
    advice = "read the table again and repeat the operation"
    if mine.operation == "PUBLISH BRANCH":
        advice = (
            "main is unchanged, and the branch remains: create a new branch, and repeat its "
            "operations there"
        )
    return kind(
        f"cannot commit {mine.operation} to {mine.root}: {winner.operation} won version "
        f"{winner.version}, and {why}{named}; {advice}",
        version=winner.version,
        operation=winner.operation,
        files=files,
    )


# --- Metadata changes that do not conflict with concurrent writes


_P = TableProperties
_ROW_TRACKING_COLUMNS: Final = (
    _P.materialized_row_id_column_name.key,
    _P.materialized_row_commit_version_column_name.key,
)
_TIMESTAMP_PROVENANCE: Final = (
    _P.in_commit_timestamp_enablement_version.key,
    _P.in_commit_timestamp_enablement_timestamp.key,
)


def is_harmless_change(
    before: TableConfiguration, found: Metadata, *, protocol: Protocol | None
) -> bool:
    """Return whether files written for `before` may be committed after a change of metadata.

    Args:
        before: protocol and metadata for which the files were written.
        found: the metadata that the winning commit sets.
        protocol: the protocol that the winning commit sets, or None.
    """
    mine = before.metadata
    same_but_these = replace(
        found, configuration=mine.configuration, schema_string=mine.schema_string
    )
    if same_but_these != mine:
        return False
    after = TableConfiguration(before.protocol if protocol is None else protocol, found)
    if mine.configuration.keys() - found.configuration.keys():
        return False
    changed = {
        key for key, value in found.configuration.items() if mine.configuration.get(key) != value
    }
    if not all(key in _HARMLESS and _HARMLESS[key](before, after) for key in changed):
        return False
    return found.schema_string == mine.schema_string or _gained_names_only(before, after)


def _gained_names_only(before: TableConfiguration, after: TableConfiguration) -> bool:
    """Return whether the schemas differ only in the ids and names that column mapping adds."""
    same = encode_schema(strip(after.schema)) == encode_schema(before.schema)
    return same and _mapping_was_switched_on(before, after)


def _mapping_was_switched_on(before: TableConfiguration, after: TableConfiguration) -> bool:
    modes = before.column_mapping_mode, after.column_mapping_mode
    return modes == (Mode.NONE, Mode.NAME)


def _gives_row_ids(_before: TableConfiguration, after: TableConfiguration) -> bool:
    return after.row_ids_enabled


def _keeps_timestamps(_before: TableConfiguration, after: TableConfiguration) -> bool:
    return after.in_commit_timestamps is not None


def _allows_deletion_vectors(_before: TableConfiguration, after: TableConfiguration) -> bool:
    return after.writes_deletion_vectors


def _has_new_checkpoints(_before: TableConfiguration, after: TableConfiguration) -> bool:
    return after.properties.checkpoint_policy == "v2" and after.supports("v2Checkpoint")


_HARMLESS: Final[Mapping[str, Callable[[TableConfiguration, TableConfiguration], bool]]] = {
    _P.enable_row_tracking.key: _gives_row_ids,
    **dict.fromkeys(_ROW_TRACKING_COLUMNS, _gives_row_ids),
    MODE_PROPERTY: _mapping_was_switched_on,
    MAX_COLUMN_ID_PROPERTY: _mapping_was_switched_on,
    _P.enable_deletion_vectors.key: _allows_deletion_vectors,
    _P.enable_in_commit_timestamps.key: _keeps_timestamps,
    **dict.fromkeys(_TIMESTAMP_PROVENANCE, _keeps_timestamps),
    _P.checkpoint_policy.key: _has_new_checkpoints,
}


# --- Winning commits


@dataclass(frozen=True, slots=True, kw_only=True)
class WinningCommit:
    """A commit of another writer that won the version of an attempt of this transaction.

    Args:
        file: file of the commit in the log.
        data: content of the file.
        actions: the parsed actions.
    """

    file: LogFile
    data: bytes
    actions: CommitTable

    @property
    def version(self) -> int:
        """The version of the commit."""
        return self.file.version

    @property
    def info(self) -> Mapping[str, Any]:
        """The `commitInfo` action; empty if the commit has none."""
        return self.actions.commit_infos.get(self.version, {})

    @property
    def operation(self) -> str:
        """The name of the operation in `commitInfo`."""
        return str(self.info.get("operation", "an unnamed operation"))

    @property
    def is_blind_append(self) -> bool:
        """Whether `isBlindAppend` in `commitInfo` is true."""
        return self.info.get("isBlindAppend") is True

    @property
    def changes_identity_marks_only(self) -> bool:
        """Whether the metadata changes only the high water marks of identity columns."""
        tags = self.info.get("tags")
        return isinstance(tags, dict) and str(tags.get(IDENTITY_TAG, "")).lower() == "true"

    @property
    def protocol(self) -> Protocol | None:
        """The protocol that the commit sets, or None."""
        return self.actions.protocols[-1][1] if self.actions.protocol_nodes else None

    @property
    def metadata(self) -> Metadata | None:
        """The metadata that the commit sets, or None."""
        return self.actions.metadatas[-1][1] if self.actions.metadata_nodes else None

    @property
    def domains(self) -> Mapping[str, DomainMetadata]:
        """The metadata domains that the commit sets or removes, by name."""
        return {domain.domain: domain for _, domain in self.actions.domains}

    @property
    def app_versions(self) -> Mapping[str, int]:
        """The application transactions that the commit records: application → version."""
        return {txn.app_id: txn.version for _, txn in self.actions.txns}

    @property
    def adds(self) -> pa.Table:
        """The files that the commit adds."""
        return self.actions.adds

    @property
    def removes(self) -> pa.Table:
        """The files that the commit removes."""
        return self.actions.removes


def parse_winner(file: LogFile, data: bytes) -> WinningCommit:
    """Parse a winning commit.

    Raises:
        MalformedLogError: the bytes are not a commit.
    """
    return WinningCommit(
        file=file, data=data, actions=parse_commits([(file, data)], commit_infos=True)
    )
