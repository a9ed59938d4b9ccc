"""Engines read and write rows and files, with local threads or with tasks on a cluster."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog.data.write.files import write_files
from deltalog.data.write.source import open_batches
from deltalog.errors import DeltaError, InternalError
from deltalog.log.listing import list_for_version
from deltalog.log.names import commit_path
from deltalog.protocol.partition_values import escape_directory
from deltalog.storage.atomic import TEMPORARY_NAME
from deltalog.storage.staging import STAGING_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog._util.cards import ProgressCount
    from deltalog._util.paths import FileInfo
    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.changes.bins import BinRewrite, Rewritten
    from deltalog.operations.changes.key_tasks import KeyIndexJob, KeyIndexReport
    from deltalog.operations.changes.request import ChangeRequest, PlannedChange
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction

__all__ = ["Engine", "LocalEngine", "RowSource"]


class LocalEngine:
    """The engine that does all work in this process; it has no state. See `Engine`."""

    files_per_deletion = 5_000

    def __repr__(self) -> str:
        """Show the name of the class, because the engine has no state."""
        return f"{type(self).__name__}()"

    def open_rows(self, data: Any) -> RowSource:
        """Open rows in any form that `open_batches` accepts, as a stream of Arrow batches."""
        return open_batches(data)

    def open_merge_source(self, data: Any) -> AbstractContextManager[Any]:
        """Store the source's rows in memory, or in a temporary file if they are large."""
        # Import here, so that a process that only writes does not load the code of merges.
        from deltalog.operations.changes.merge.source import MergeSource  # noqa: PLC0415

        return nullcontext(data) if isinstance(data, MergeSource) else MergeSource(data)

    def plan_change(self, transaction: PendingTransaction, request: ChangeRequest) -> PlannedChange:
        """Plan a change: after pruning, read only the columns that the conditions use."""
        if request.source is None:
            from deltalog.operations.changes.local import LocalChange  # noqa: PLC0415  # loaded only if needed

            return LocalChange(transaction, request)
        from deltalog.operations.changes.merge.local import LocalMerge  # noqa: PLC0415  # loaded only if needed

        return LocalMerge(transaction, request)

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Write rows in one pass, and encode files while further rows are read."""
        if not isinstance(rows, pa.RecordBatchReader):
            raise InternalError(f"cannot write a {type(rows).__name__} in this process")
        # The predicate cannot be evaluated on an empty list of rows, because it has no columns.
        if predicate is not None and rows.schema.names:
            from deltalog.data.write.changes import write_where  # noqa: PLC0415  # loaded only if needed

            return write_where(spec, rows, predicate, tells_changes=tells_changes)
        if predicate is None and spec.configuration.optimizes_writes:
            from deltalog.operations.changes.external_sort import write_optimized  # noqa: PLC0415  # loaded only if needed

            return write_optimized(spec, rows)
        return write_files(spec, rows)

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        """Rewrite `max_concurrent_tasks` bins at a time; by default one per core, at most 8."""
        from deltalog.operations.changes.bins import rewrite_here  # noqa: PLC0415  # loaded only if needed

        return rewrite_here(job)

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint with `maintenance.create_checkpoint`."""
        from deltalog.transaction.maintenance.checkpoint import create_checkpoint  # noqa: PLC0415  # loaded only if needed

        create_checkpoint(snapshot, at_ms=at_ms)
        return True

    def list_files(self, store: Store, configuration: TableConfiguration) -> pa.Table:
        """List all files below the table's root, see `listed_files`."""
        return listed_files(store, configuration)

    def delete_files(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files in the batches that the store supports."""
        store.delete_many(paths)

    def index_keys(
        self, job: KeyIndexJob, files: pa.Table, progress: ProgressCount
    ) -> Sequence[KeyIndexReport]:
        """Index files one after another."""
        return [job.run(files, progress)]


# --- Listing of the files that vacuum may delete


_FIELDS: Final[list[tuple[str, pa.DataType]]] = [
    ("path", pa.string()),
    ("size_bytes", pa.int64()),
    ("modification_time", pa.int64()),
]
LISTING_SCHEMA: Final = pa.schema(_FIELDS)
"""Columns: `path` (decoded, relative to the root), `size_bytes`, and `modification_time`.

`modification_time` is in milliseconds since 1970, UTC.
"""
_LISTED_TOGETHER: Final = 50_000
_HIDDEN: Final = "(?:^|/)(?:[._]|metadata(?:/|$))"
# Matches temporary files of killed writers. Vacuum may delete no other files in `_delta_log`.
_LEFT_IN_LOG: Final = f"^_delta_log/(?:_[a-z_]+/)?{TEMPORARY_NAME}"
_LEFT: Final = f"(^|/){TEMPORARY_NAME}"
_STAGED: Final = f"^{STAGING_NAME}/.*"


def listed_files(store: Store, configuration: TableConfiguration) -> pa.Table:
    """Return all files below the root except hidden files, with `LISTING_SCHEMA`.

    Cost: one listing of the whole table. Python objects exist only for one batch of files at a
    time.
    """
    return listed_below(store, "", configuration)


def listed_below(store: Store, directory: str, configuration: TableConfiguration) -> pa.Table:
    """Return the files below one directory of the table, see `listed_files`."""
    listing = store.list_all(directory)
    tables = [LISTING_SCHEMA.empty_table()]
    while infos := list(islice(listing, _LISTED_TOGETHER)):
        tables.append(listing_of(infos, configuration))
    return pa.concat_tables(tables)


def listing_of(infos: Sequence[FileInfo], configuration: TableConfiguration) -> pa.Table:
    """Return listed files as a table with `LISTING_SCHEMA`, without hidden files."""
    columns: list[Any] = [
        pa.array([info.path for info in infos], pa.string()),
        pa.array([info.size_bytes for info in infos], pa.int64()),
        pa.array([info.modified_ms for info in infos], pa.int64()),
    ]
    return visible(pa.Table.from_arrays(columns, schema=LISTING_SCHEMA), configuration)


def visible(files: pa.Table, configuration: TableConfiguration) -> pa.Table:
    """Return the files whose paths contain no hidden name.

    A file or directory name is hidden if it begins with `.` or `_`, except `_change_data`,
    `_delta_index`, partition directories, and temporary files of deltalog. `metadata` is also
    hidden, because it contains Iceberg metadata.
    """
    paths: Any = files.column("path")
    suspects = compute.match_substring_regex(paths, _HIDDEN)
    if not compute.any(suspects).as_py():
        return files
    names = {*configuration.partition_columns, *configuration.physical_partition_columns}
    starts = [f"{escape_directory(name)}=" for name in names] + [f"{name}=" for name in names]
    shown = "|".join(map(re.escape, ["_delta_index", "_change_data", *sorted(starts)]))
    plain = compute.replace_substring_regex(paths, _LEFT_IN_LOG, "-")
    plain = compute.replace_substring_regex(plain, _LEFT, r"\1-")
    plain = compute.replace_substring_regex(plain, _STAGED, "-")
    plain = compute.replace_substring_regex(plain, f"(^|/)(?:{shown})", r"\1-")
    return files.filter(compute.invert(compute.match_substring_regex(plain, _HIDDEN)))


# --- Deletion of files in tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTable:
    """A table as the driver of a cluster sees it. A task compares it with what the task sees.

    Args:
        store: the store of the table.
        commit: the newest published commit file.
    """

    store: Store
    commit: FileInfo

    @classmethod
    def of(cls, store: Store) -> Self | None:
        """Return the table; None if it has no published commit, or the log cannot be read."""
        try:
            commits = list_for_version(store).commits
            commit = store.stat(commit_path(max(commits))) if commits else None
        except DeltaError:
            return None
        return None if commit is None else cls(store=store, commit=commit)

    @property
    def is_seen(self) -> bool:
        """Whether this process sees the same table."""
        try:
            return self.store.stat(self.commit.path) == self.commit
        except DeltaError:
            return False

    def delete(self, paths: Sequence[str]) -> Sequence[str] | DeltaError:
        """Delete files, in a task.

        Returns:
            The paths of the files that the driver must delete, because this process does not see
            the table; or an error that a retry would not avoid.
        """
        if not paths or not self.is_seen:
            return paths
        try:
            self.store.delete_many(paths)
        except DeltaError as error:
            return error
        return ()


# --- Interface of engines


class RowSource(Protocol):
    """Rows to write: a stream of Arrow batches, or a dataframe on a cluster."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        ...


class Engine(Protocol):
    """Does the work on rows and files that operations plan.

    Attributes:
        files_per_deletion: batch size of deletions; progress is reported after each batch.
    """

    files_per_deletion: int

    def open_rows(self, data: Any) -> RowSource:
        """Open rows in any form that the engine supports.

        Raises:
            InvalidInputError: the engine does not support the type.
        """
        ...

    def open_merge_source(self, data: Any) -> AbstractContextManager[Any]:
        """Open a merge's source, so that its rows can be read several times without changes.

        Raises:
            InvalidInputError: the engine does not support the type.
        """
        ...

    def plan_change(self, transaction: PendingTransaction, request: ChangeRequest) -> PlannedChange:
        """Plan a DELETE, UPDATE or MERGE. An engine may search the rows only in `apply`.

        The engine records predicates and files that are read in the transaction, for conflict
        detection.

        Args:
            transaction: transaction of the table.
            request: the change; its source, if any, is from `open_merge_source`.

        Raises:
            InvalidInputError: the condition, clauses or values are not valid for the table.
        """
        ...

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Write rows to data files, without a commit; after a failure, delete the new files.

        Args:
            spec: describes the table and how files are written.
            rows: the rows, from `open_rows`; they are read once.
            predicate: a condition that every row must match.
            tells_changes: whether to also write change data files.

        Raises:
            SchemaMismatchError, ConstraintViolationError: the rows do not match the table's schema
                or constraints, or the predicate.
        """
        ...

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        """Rewrite bins into new files; after a failure, delete the new files.

        Returns:
            The new files of each bin, in order. If the job's commit interval ends before all bins
            are rewritten, the result contains only the first bins.
        """
        ...

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint. Return whether this process has read the version's whole state.

        Args:
            snapshot: the version.
            at_ms: milliseconds since 1970, UTC; tombstones that have expired at this time are
                omitted.
        """
        ...

    def list_files(self, store: Store, configuration: TableConfiguration) -> pa.Table:
        """List the files that vacuum may delete, with `LISTING_SCHEMA`."""
        ...

    def delete_files(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files; files that do not exist are ignored.

        Raises:
            StorageError: some files could not be deleted.
        """
        ...

    def index_keys(
        self, job: KeyIndexJob, files: pa.Table, progress: ProgressCount
    ) -> Sequence[KeyIndexReport]:
        """Index the keys of files for the key index.

        Args:
            job: indexes some of the files.
            files: the files, with `TASK_COLUMNS`.
            progress: counts the files.

        Raises:
            DeltaError: a file cannot be read, or a pack cannot be written.
        """
        ...
