"""Publish a branch: commit the net changes of a branch to main, as one version.

Files that the branch has added and removed again, or rows that it has changed twice, appear only
as their last state. The commit states what the branch's operations have read, so the ordinary
conflict rules decide whether it may follow the commits that main has made in the meantime. Each
commit on a branch records for this purpose what it has read (`reads_to_json`).

Protocol: Add File and Remove File, Deletion Vectors, Row Tracking, Change Data Files
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import pyarrow as pa

from deltalog._util.kernels import TRUE, compute, exact_sum
from deltalog._util.paths import canonical_paths, decode_path
from deltalog._util.readable import FILE, counted
from deltalog.data.scan.plan import descriptor_of
from deltalog.data.write.changes import ChangeWriter
from deltalog.errors import (
    DataFileMissingError,
    DeltaError,
    InvalidInputError,
    UnsafePathError,
)
from deltalog.log.listing import list_commits
from deltalog.log.reader import advising_on_damage, read_in_batches
from deltalog.log.replay import vector_ids
from deltalog.operations.arguments import as_condition
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.operation import Operation
from deltalog.operations.restore import missing_files
from deltalog.operations.vacuum import FILE_COLUMNS, confined, paths_of
from deltalog.protocol.actions import AddFile
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.row_ids import ROW_TRACKING_DOMAIN
from deltalog.protocol.stats.parse import parse_stats
from deltalog.schema.metadata_columns import CHANGE_TYPE
from deltalog.transaction import AppTransaction
from deltalog.transaction.conflicts import WinningCommit, may_match, parse_winner
from deltalog.transaction.masks import Masks, old_rows
from deltalog.transaction.properties import READS

if TYPE_CHECKING:
    from deltalog._util.cards import ProgressCount
    from deltalog.log.branches import Branch
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.protocol.actions import Metadata
    from deltalog.transaction import PendingTransaction

_IDS: Final = ("baseRowId", "defaultRowCommitVersion")
_OWN_PROPERTIES: Final = (
    TableProperties.in_commit_timestamp_enablement_version.key,
    TableProperties.in_commit_timestamp_enablement_timestamp.key,
)
_SHOWN: Final = 5


class RowChanges(Protocol):
    """The rows that differ between two versions, with the column `_change_type`."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The outcome of a publish.

    Args:
        num_added_files: number of new files.
        added_bytes: their total size.
        num_removed_files: number of removed files.
        removed_bytes: their total size.
        num_masked_files: number of files in which rows were marked as deleted.
    """

    num_added_files: int
    added_bytes: int
    num_removed_files: int
    removed_bytes: int
    num_masked_files: int

    def metrics(self) -> dict[str, int]:
        """Return the metrics for the history."""
        return {
            "numAddedFiles": self.num_added_files,
            "numAddedBytes": self.added_bytes,
            "numRemovedFiles": self.num_removed_files,
            "numRemovedBytes": self.removed_bytes,
            "numDeletionVectorsAdded": self.num_masked_files,
        }

    def result(self) -> dict[str, int]:
        """Return the metrics."""
        return self.metrics()


def app_id_of(branch: Branch) -> str:
    """Return the application with which the publish of a branch is recorded in main."""
    return f"deltalog.branch.{branch.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish(Operation[Published]):
    """Commit the net changes of a branch to main.

    The transaction must have the snapshot of main at which the branch starts.

    Args:
        branch: the branch.
        head: the latest version of the branch.
        changes: the rows that differ between both; read only if change data files are necessary.
    """

    branch: Branch
    head: Snapshot
    changes: RowChanges
    name: ClassVar[str] = "PUBLISH BRANCH"
    doing: ClassVar[str] = "publishing"
    needs_latest: ClassVar[bool] = False

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the name, the id and the versions of the branch."""
        return {
            "branch": self.branch.name,
            "branchId": self.branch.id,
            "baseVersion": self.branch.base_version,
            "headVersion": self.head.version,
        }

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Published:
        """Stage the net changes.

        Raises:
            DataFileMissingError: files of the branch no longer exist.
            InvalidInputError: the branch has enabled row tracking; or the change feed is enabled,
                and the branch has changed the type of a column.
            UnsafePathError: the branch names files outside of the table that main does not name.

        Cost: reads the file lists of both versions and the branch's commits; one request for each
        new file. With a change data feed, reads the rows of rewritten files.
        """
        del engine
        base = transaction.read_snapshot
        commits = BranchCommits.of(self.head, self.branch.base_version)
        net = NetChange.between(base, self.head)
        _check_paths(base, net)
        _check_files(self.head, net, transaction.progress)
        transaction.checks_base = True
        _set_configuration(transaction, self.head.configuration)
        _set_domains(transaction, self.head)
        _set_applications(transaction, self.head)
        _record_reads(transaction, commits, net)
        pure = commits.pure_paths(net)
        added = _new_files(transaction, net.added, pure, commits)
        if commits.is_blind and not (net.removed.num_rows or net.masked.num_rows):
            transaction.add_files(map(_as_add, added.to_pylist()))
        else:
            transaction.add_again(added)
        removed = _changing(net.removed, pure, transaction.store.root)
        for is_change in (True, False):
            flag = compute.equal(removed.column("dataChange"), is_change)
            transaction.remove_files(removed.filter(flag), data_change=is_change)
        num_masked = _mask(transaction, net)
        if self._needs_change_files(transaction, added, removed):
            _write_changes(transaction, self.changes)
        transaction.set_app_transaction(AppTransaction(app_id_of(self.branch), self.head.version))
        return Published(
            num_added_files=added.num_rows,
            added_bytes=exact_sum(added.column("size")),
            num_removed_files=removed.num_rows,
            removed_bytes=exact_sum(removed.column("size")),
            num_masked_files=num_masked,
        )

    @staticmethod
    def _needs_change_files(
        transaction: PendingTransaction, added: pa.Table, removed: pa.Table
    ) -> bool:
        """Whether the change feed cannot be derived from the files of the commit.

        Without change data files, the rows of new files are inserts, and those of removed files are
        deletes. If the branch has rewritten files, unchanged rows are in both.
        """
        properties = transaction.configuration.properties
        both = all(
            compute.any(files.column("dataChange")).as_py() is True for files in (added, removed)
        )
        return properties.enable_change_data_feed and both


# --- Commits of the branch


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchCommits:
    """The commits of a branch.

    Args:
        commits: the commits, oldest first.
        is_complete: whether no commit was cleaned up.
        root: location of the table.
        live: canonical paths of the branch's files.
    """

    commits: tuple[WinningCommit, ...]
    is_complete: bool
    root: str
    live: Any

    @classmethod
    def of(cls, head: Snapshot, base_version: int) -> BranchCommits:
        """Read the commits of a branch. Cost: one listing, and one request for each commit."""
        found: list[WinningCommit] = []
        if head.version > base_version:
            try:
                run = list_commits(head.store, base_version + 1, log_tail=None)
            except DeltaError:
                run = []
            with advising_on_damage(head.store, run, None):
                for batch in read_in_batches(head.store, run):
                    found += [parse_winner(file, data) for file, data in batch]
        found = [commit for commit in found if commit.version <= head.version]
        expected = list(range(base_version + 1, head.version + 1))
        return cls(
            commits=tuple(found),
            is_complete=[commit.version for commit in found] == expected,
            root=head.store.root,
            live=_canonical(head.files(("path",)), head.store.root),
        )

    @property
    def is_blind(self) -> bool:
        """Whether no operation of the branch has read rows."""
        return self.is_complete and all(
            commit.is_blind_append or not _names_files(commit) for commit in self.commits
        )

    def changes_schema(self, base: Metadata) -> bool:
        """Whether an operation has read rows, and a commit has changed the schema."""
        return not self.is_blind and any(
            commit.metadata is not None
            and commit.metadata.schema_string != base.schema_string
            and not commit.changes_identity_marks_only
            for commit in self.commits
        )

    @property
    def rewrites_own_files(self) -> bool:
        """Whether files were added by the branch, and removed again."""
        return not self.is_complete or not all(
            _are_in(_canonical(commit.adds, self.root), self.live) for commit in self.commits
        )

    def pure_paths(self, net: NetChange) -> Any:
        """Return the canonical paths of files that were only rearranged, without a change of rows.

        They belong to commits without `dataChange` that have removed files of main, and whose new
        files still exist.
        """
        come, gone = _canonical(net.added, self.root), _canonical(net.removed, self.root)
        chunks: list[Any] = []
        for commit in self.commits if self.is_complete else ():
            if _changes_rows(commit):
                continue
            added, removed = (
                _canonical(files, self.root) for files in (commit.adds, commit.removes)
            )
            if _are_in(added, come) and _are_in(removed, gone):
                chunks += [*added.chunks, *removed.chunks]
        return pa.chunked_array(chunks, pa.string())


def _names_files(commit: WinningCommit) -> bool:
    return bool(commit.adds.num_rows or commit.removes.num_rows)


def _changes_rows(commit: WinningCommit) -> bool:
    return any(
        compute.any(files.column("dataChange")).as_py() is not False and files.num_rows
        for files in (commit.adds, commit.removes)
    )


def _canonical(files: pa.Table, root: str) -> Any:
    return canonical_paths(files.column("path"), root)


def _are_in(paths: Any, known: Any) -> bool:
    missing = compute.invert(compute.is_in(paths, value_set=known))
    return compute.any(missing).as_py() is not True


# --- Files that differ


@dataclass(frozen=True, slots=True, kw_only=True)
class NetChange:
    """The files that differ between main and a branch (schema `FILE_SCHEMA`).

    Args:
        added: files that only the branch has.
        removed: files that only main has, at the version at which the branch starts.
        masked: files of main in which the branch has marked rows as deleted, as main has them.
        masks: the same files, in the same order, as the branch has them.
    """

    added: pa.Table
    removed: pa.Table
    masked: pa.Table
    masks: pa.Table

    @classmethod
    def between(cls, base: Snapshot, head: Snapshot) -> NetChange:
        """Compare the files of two versions. Cost: reads both file lists."""
        root = base.store.root
        before, after = (
            files.append_column("canonical", _canonical(files, root))
            for files in (base.files(), head.files())
        )
        added, removed = _only_in(after, before), _only_in(before, after)
        joined = _paired(before, after)
        return cls(
            added=added.select(FILE_SCHEMA.names),
            removed=removed.select(FILE_SCHEMA.names),
            masked=joined[0].select(FILE_SCHEMA.names),
            masks=joined[1].select(FILE_SCHEMA.names),
        )


def _only_in(files: pa.Table, others: pa.Table) -> pa.Table:
    known = compute.is_in(files.column("canonical"), value_set=others.column("canonical"))
    return files.filter(compute.invert(known))


def _paired(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the files of both versions whose `add` differs in the deletion vector."""
    places = compute.index_in(before.column("canonical"), value_set=after.column("canonical"))
    shared = places.is_valid()
    mine, theirs = before.filter(shared), after.take(places.filter(shared))
    old, new = (
        compute.fill_null(vector_ids(rows.column("deletionVector")), "") for rows in (mine, theirs)
    )
    differ = compute.not_equal(old, new)
    return mine.filter(differ), theirs.filter(differ)


def _check_paths(base: Snapshot, net: NetChange) -> None:
    """Raise for files outside of the table that main does not name.

    The log of a branch is not trusted. The files of a shallow clone are outside of the table, so
    paths that main has or had are allowed.

    Raises:
        UnsafePathError: see above.
    """
    root = base.store.root
    known = pa.concat_tables([base.files(FILE_COLUMNS), base.tombstones(FILE_COLUMNS)])
    named = paths_of(pa.concat_tables([net.added, net.masks]).select(FILE_COLUMNS), root)
    is_known = compute.is_in(named, value_set=paths_of(known, root))
    new = pa.table({"path": named.filter(compute.invert(is_known))})
    inside = confined(new).column("path")
    if len(inside) < new.num_rows:
        outside = new.filter(compute.invert(compute.is_in(new.column("path"), value_set=inside)))
        raise UnsafePathError(
            f"cannot publish a branch of {root}: its log names "
            f"{counted(outside.num_rows, FILE)} outside of the table, such as "
            f"{outside.column('path')[0].as_py()!r}; discard the branch"
        )


def _check_files(head: Snapshot, net: NetChange, progress: ProgressCount) -> None:
    """Raise if files of the branch no longer exist, because another engine's vacuum deleted them.

    Raises:
        DataFileMissingError: files are missing.
    """
    missing = missing_files(head, pa.concat_tables([net.added, net.masks]), progress)
    if missing:
        shown = ", ".join(sorted(missing)[:_SHOWN])
        raise DataFileMissingError(
            f"cannot publish version {head.version} of a branch of {head.store.root}: "
            f"{len(missing)} of its files cannot be found, such as {shown}; another program has "
            "vacuumed the table, and does not know branches; discard the branch and write it again"
        )


def _changing(files: pa.Table, pure: Any, root: str) -> pa.Table:
    """Return files with `dataChange` true, except for those that were only rearranged."""
    flags = compute.invert(compute.is_in(_canonical(files, root), value_set=pure))
    return _replaced(files, "dataChange", flags)


def _changed(files: pa.Table) -> pa.Table:
    """Return files with `dataChange` true."""
    return _replaced(files, "dataChange", pa.repeat(TRUE, files.num_rows))


def _replaced(files: pa.Table, name: str, values: Any) -> pa.Table:
    place = FILE_SCHEMA.get_field_index(name)
    return files.set_column(place, FILE_SCHEMA.field(place), values)


def _new_files(
    transaction: PendingTransaction,
    files: pa.Table,
    pure: Any,
    commits: BranchCommits,
) -> pa.Table:
    """Return the new files as main adds them.

    Row ids of the branch are assigned again, because main may have assigned the same ids in the
    meantime. If the branch has copied rows of its own files, these rows have their ids in the new
    files; then the ids stay, and the commit conflicts with commits that assign row ids.
    """
    files = _changing(files, pure, transaction.store.root)
    base = transaction.read_snapshot
    if base.configuration.row_id_dialect is None:
        return files
    transaction.keeps_new_row_ids = commits.rewrites_own_files
    for name in _IDS[1:] if commits.rewrites_own_files else _IDS:
        files = _replaced(files, name, pa.nulls(files.num_rows, pa.int64()))
    return files


def _as_add(row: Mapping[str, Any]) -> AddFile:
    tags = row["tags"]
    return AddFile(
        path=decode_path(row["path"]),
        partition_values=dict(row["partitionValues"]),
        size_bytes=row["size"],
        modification_time_ms=row["modificationTime"],
        data_change=row["dataChange"],
        stats=row["stats"],
        tags=None if tags is None else dict(tags),
        deletion_vector=descriptor_of(row["deletionVector"]),
        base_row_id=row["baseRowId"],
        default_row_commit_version=row["defaultRowCommitVersion"],
        clustering_provider=row["clusteringProvider"],
    )


def _mask(transaction: PendingTransaction, net: NetChange) -> int:
    """Stage the deletion vectors of the branch; return the number of files with new vectors."""
    store = transaction.store
    stats = parse_stats(net.masked.column("stats"), pa.schema([("numRecords", pa.int64())]))
    counts: list[int | None] = stats.column("numRecords").to_pylist()
    places: list[int] = []
    rows = []
    others: list[int] = []
    for number, count in enumerate(counts):
        if count is None:
            others.append(number)
            continue
        before, after = (
            old_rows(store, files, number, num_rows=count) for files in (net.masked, net.masks)
        )
        if after.is_superset(before):
            places.append(number)
            rows.append(after - before)
        else:
            others.append(number)
    if places:
        take = pa.array(places, pa.int64())
        transaction.mask_rows(
            Masks(
                files=net.masked.take(take),
                rows=tuple(rows),
                num_records=tuple(counts[number] or 0 for number in places),
                prefix="",
                added=_changed(net.masks.take(take)),
                paths=(),
            )
        )
    if others:  # the branch has restored rows, so the file is replaced as a whole
        take = pa.array(others, pa.int64())
        transaction.remove_files(net.masked.take(take), data_change=True)
        transaction.add_again(_changed(net.masks.take(take)))
    return net.masked.num_rows


# --- Metadata, applications and reads


def _set_configuration(transaction: PendingTransaction, head: TableConfiguration) -> None:
    base = transaction.read_snapshot.configuration
    if head == base:
        return
    if head.row_id_dialect != base.row_id_dialect:
        raise InvalidInputError(
            f"cannot publish a branch of {transaction.store.root} that has enabled or disabled "
            "row tracking: do it on main, and create the branch anew"
        )
    metadata = head.metadata
    if base.in_commit_timestamps is None:  # the commit states in which version of main they begin
        kept = {
            key: value
            for key, value in metadata.configuration.items()
            if key not in _OWN_PROPERTIES
        }
        metadata = replace(metadata, configuration=kept)
    transaction.set_configuration(TableConfiguration(head.protocol, metadata))


def _set_domains(transaction: PendingTransaction, head: Snapshot) -> None:
    before, after = transaction.read_snapshot.domain_metadata, head.domain_metadata
    for name, domain in after.items():
        if name != ROW_TRACKING_DOMAIN and before.get(name) != domain:
            transaction.set_domain(domain)
    for name in before.keys() - after.keys():
        transaction.remove_domain(name)


def _set_applications(transaction: PendingTransaction, head: Snapshot) -> None:
    before = transaction.read_snapshot.app_transactions
    for app_id, found in head.app_transactions.items():
        known = before.get(app_id)
        if known is None or known.version != found.version:
            transaction.set_app_transaction(
                AppTransaction(app_id, found.version, found.last_updated_ms)
            )


def _record_reads(transaction: PendingTransaction, commits: BranchCommits, net: NetChange) -> None:
    """Record what the operations of the branch have read, of main."""
    base = transaction.read_snapshot
    if not commits.is_complete or commits.changes_schema(base.metadata):
        # Names of columns may mean others in the commits of the branch.
        transaction.record_read(None)
        return
    for commit in commits.commits:
        reads = commit.info.get(READS)
        if not isinstance(reads, Mapping):
            if _names_files(commit) and not commit.is_blind_append:
                transaction.record_read(None)
            continue
        is_row_local = reads.get("isRowLocal") is True
        for text in reads.get("predicates") or ():
            _record_predicate(transaction, base, text, is_row_local=is_row_local)
        if reads.get("wholeTable") is True:
            transaction.record_read(None, is_row_local=is_row_local)
    changed = pa.concat_tables([net.removed, net.masked])
    if changed.num_rows and not transaction.read_set.is_blind:
        local = transaction.read_set.is_row_local
        transaction.record_read_files(changed, is_row_local=local)


def _record_predicate(
    transaction: PendingTransaction, base: Snapshot, text: object, *, is_row_local: bool
) -> None:
    """Record a predicate; without it, for example if its column is new, the whole table."""
    try:
        predicate = as_condition(
            base.configuration.schema, text, session=transaction.context.session
        )
    except DeltaError:
        predicate = None
    if predicate is None:
        transaction.record_read(None, is_row_local=is_row_local)
        return
    files = base.files()
    seen = may_match(predicate, files, base.configuration, transaction.context.time_zone)
    transaction.record_read(predicate, files.filter(seen), is_row_local=is_row_local)


def _write_changes(transaction: PendingTransaction, changes: RowChanges) -> None:
    """Write the rows that differ to change data files."""
    names = transaction.configuration.schema.names
    with ChangeWriter(FileOptions().spec_for(transaction)) as writer:
        for batch in changes.to_batches():
            if lost := sorted(set(names) - set(batch.schema.names)):
                raise InvalidInputError(
                    f"cannot publish a branch of {transaction.store.root}: it has changed the type "
                    f"of {', '.join(lost)}, so its changes cannot be written to the change feed; "
                    "change the type on main, and create the branch anew"
                )
            writer.write(batch.select(names), batch.column(CHANGE_TYPE))
        transaction.add_changes(writer.finish())
