"""Change files in tasks of an engine: DELETE, UPDATE and MERGE by shards.

How one file changes does not depend on other files. So the client divides the files that remain
after pruning into shards, each task applies the change to one shard as `LocalChange` or
`LocalMerge` does, and the client stages the results of all tasks into one transaction. The new rows
of a MERGE depend on all files; the client inserts them after the tasks. This module knows no
engine.

Protocol: Deletion Vectors, Add CDC File, Row Tracking
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from deltalog._util.clock import Stopwatch
from deltalog.data.write.open_files import discard_job, new_job
from deltalog.errors import DeltaError
from deltalog.operations.changes.apply import CandidateFiles, Shard
from deltalog.operations.changes.local import LocalChange, RowChangePlan
from deltalog.operations.changes.merge.local import LocalMerge
from deltalog.operations.changes.request import ChangeMetrics
from deltalog.protocol.deletion_vectors import DeletionBitmap
from deltalog.storage.faults import cleanup_level
from deltalog.transaction import PendingTransaction
from deltalog.transaction.masks import Masks, write_masks
from deltalog.transaction.pending import discarding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from deltalog._util.cards import ProgressCount
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.changes.merge.match import MergeReach
    from deltalog.operations.changes.merge.plan import MergePlan
    from deltalog.operations.changes.merge.shares import SourceShare
    from deltalog.operations.changes.request import ChangeRequest
    from deltalog.protocol.actions import AddCDCFile, AddFile
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardJob:
    """The input that all tasks of a change share; picklable.

    Args:
        snapshot: the version that the change reads.
        configuration: the configuration of the table after the change.
        operation: the name of the operation.
        request: the request; the source of a merge is a `MergeSource`, or None if each shard has
            its own rows of it.
        plan: the resolved request.
        job_id: see `WriteSpec.job`.
        reach: for a merge, the predicates of the rows that may match.
    """

    snapshot: Snapshot
    configuration: TableConfiguration
    operation: str
    request: ChangeRequest
    plan: RowChangePlan | MergePlan
    job_id: str
    reach: MergeReach | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardResult:
    """What a task has staged; picklable.

    Args:
        metrics: the metrics of the task.
        adds: new files.
        cdc: new change data files.
        paths: the decoded paths of all files that the task has written.
        removes: the removed files.
        masks: the rows that are marked as deleted; the deletion vectors are not written yet.
        read_paths: the paths of the files whose rows the change has read, as in the log.
        matched_sources: the numbers of the source rows that match a row of the shard: in
            `Shard.source` if the shard has one.
        copies_rows: see `PendingTransaction`.
    """

    metrics: ChangeMetrics
    adds: tuple[AddFile, ...]
    cdc: tuple[AddCDCFile, ...]
    paths: tuple[str, ...]
    removes: tuple[pa.Table, ...]
    masks: tuple[Masks, ...]
    read_paths: pa.Array[Any] | None
    matched_sources: DeletionBitmap
    copies_rows: bool


def apply_shard(job: ShardJob, shard: Shard) -> ShardResult:
    """Apply a change to one shard, in a task.

    Raises:
        DeltaError: see `LocalChange.apply` and `LocalMerge.apply`. New files are deleted.
    """
    snapshot, plan, request = job.snapshot, job.plan, job.request
    if shard.source is not None:
        request = replace(request, source=shard.source)
    transaction = PendingTransaction(
        snapshot.context, snapshot, operation=job.operation, configuration=job.configuration
    )
    transaction.defers_masks = True
    transaction.job_id = job.job_id
    matched_sources = DeletionBitmap()
    with discarding(transaction):
        if isinstance(plan, RowChangePlan):
            metrics = LocalChange(transaction, request, plan=plan, shard=shard).apply()
        else:
            merge = LocalMerge(transaction, request, plan=plan, shard=shard, reach=job.reach)
            metrics = merge.apply()
            matched_sources = merge.matches.matched_sources
    masked = len(transaction.masks)
    return ShardResult(
        metrics=metrics,
        adds=tuple(transaction.adds),
        cdc=tuple(transaction.cdc),
        paths=tuple(transaction.own_paths),
        removes=tuple(files for files, _ in transaction.removes[: -masked or None]),
        masks=tuple(transaction.masks),
        read_paths=transaction.read_set.files,
        matched_sources=matched_sources,
        copies_rows=transaction.copies_rows,
    )


class ShardedChange:
    """A `PlannedChange` whose shards are applied by tasks.

    Args:
        transaction: transaction of an existing table.
        request: the change.
        run: applies all shards with `apply_shard`, and yields a result or an error for each.
        most_shards: returns the maximum number of shards for some files. The change is applied in
            this process if there would be only one, or if it reads no rows.

    Raises:
        InvalidInputError, SchemaMismatchError: see `LocalChange` and `LocalMerge`.
    """

    def __init__(
        self,
        transaction: PendingTransaction,
        request: ChangeRequest,
        *,
        run: Callable[[ShardJob, Sequence[Shard]], Iterable[ShardResult | DeltaError]],
        most_shards: Callable[[CandidateFiles], int],
    ) -> None:
        self._transaction = transaction
        self._request = request
        self._run = run
        self._most_shards = most_shards
        kind = LocalChange if request.source is None else LocalMerge
        self._here: LocalChange | LocalMerge = kind(transaction, request)

    def apply(self) -> ChangeMetrics:
        """Apply all shards, insert the new rows of a merge, and stage all files.

        Raises:
            DeltaError: a task has failed. The new files of all tasks are deleted.

        Cost: each task receives the files of its shard, and the rows of a merge's source that they
        can match by their statistics. If that is most of the source, each worker receives all of it
        once. A task returns the rows that it marks as deleted, compressed.
        """
        here = self._here
        candidates = here.candidates
        most = min(self._most_shards(candidates), candidates.files.num_rows)
        if most < 2 or not here.reads_rows:
            return here.apply()
        job_id = self._transaction.job_id = new_job()
        with discarded(self._transaction.store, job_id):
            return self._apply(candidates.divided(most), job_id)

    def preview(self) -> tuple[ChangeMetrics, pa.Table]:
        """Return the expected result of `apply`; searches the rows in this process."""
        return self._here.preview()

    def explain(self) -> str:
        """Describe in plain text how the rows are found."""
        return self._here.explain()

    def _apply(self, parts: Sequence[CandidateFiles], job_id: str) -> ChangeMetrics:
        here, watch = self._here, Stopwatch()
        tells_changes = here.may_tell_changes
        shares = here.shares(parts) if isinstance(here, LocalMerge) else None
        shards = [
            Shard(
                candidates=part,
                tells_changes=tells_changes,
                source=None if shares is None else shares[number].source,
            )
            for number, part in enumerate(parts)
        ]
        results = self._results(shards, job_id)
        metrics = ChangeMetrics.total([one.metrics for one in results])
        if isinstance(here, LocalMerge):
            metrics = replace(metrics, num_source_rows=here.source.num_rows)
            if here.plan.not_matched:
                new = here.insert(_matched(results, shares), tells_changes=tells_changes)
                metrics = _with_inserts(metrics, new)
        self._stage(results)
        return replace(metrics, rewrite_ms=max(0, watch.elapsed_ms() - metrics.scan_ms))

    def _results(self, shards: Sequence[Shard], job_id: str) -> list[ShardResult]:
        """Run all tasks, and return their results.

        Raises:
            DeltaError: see `collected`.
        """
        transaction, here, request = self._transaction, self._here, self._request
        plan: RowChangePlan | MergePlan = here.plan
        if isinstance(here, LocalMerge):
            # The rows of the source are sent once: in the form in which the plan reads them.
            plan = replace(here.plan, request=replace(here.plan.request, source=None))
            is_shared = shards[0].source is None
            request = replace(request, source=here.source if is_shared else None)
        job = ShardJob(
            snapshot=transaction.read_snapshot,
            configuration=transaction.configuration,
            operation=transaction.operation,
            request=request,
            plan=plan,
            job_id=job_id,
            reach=here.reach if isinstance(here, LocalMerge) else None,
        )
        counts = [shard.candidates.files.num_rows for shard in shards]
        return collected(self._run(job, shards), counts, transaction.progress)

    def _stage(self, results: Sequence[ShardResult]) -> None:
        """Stage the results of all tasks, and write the deletion vectors of all files together."""
        transaction = self._transaction
        read: Any = [one.read_paths for one in results if one.read_paths is not None]
        paths: Any = pa.chunked_array(read, pa.string())
        self._here.record_read(pa.table({"path": paths}))
        masks = [masks for one in results for masks in one.masks]
        if masks:
            transaction.mask_rows(
                write_masks(
                    transaction.store,
                    pa.concat_tables([one.files for one in masks]),
                    [rows for one in masks for rows in one.rows],
                    [count for one in masks for count in one.num_records],
                    prefix=masks[0].prefix,
                )
            )
        for one in results:
            transaction.copies_rows |= one.copies_rows
            transaction.adds.extend(one.adds)
            transaction.cdc.extend(one.cdc)
            transaction.own_paths.extend(one.paths)
            for files in one.removes:
                transaction.remove_files(files, data_change=True)


def _matched(
    results: Sequence[ShardResult], shares: Sequence[SourceShare] | None
) -> DeletionBitmap:
    """Return the numbers of the rows of the whole source that match a row of any shard."""
    matched = DeletionBitmap()
    for number, one in enumerate(results):
        if shares is None:
            matched |= one.matched_sources
        else:
            rows = shares[number].rows.take(one.matched_sources.to_arrow())
            matched |= DeletionBitmap.from_arrow(rows)
    return matched


def _with_inserts(changed: ChangeMetrics, new: ChangeMetrics) -> ChangeMetrics:
    return replace(
        changed,
        rows=replace(changed.rows, inserted=new.rows.inserted),
        num_added_files=changed.num_added_files + new.num_added_files,
        num_added_bytes=changed.num_added_bytes + new.num_added_bytes,
        num_change_files=changed.num_change_files + new.num_change_files,
    )


# --- The results of tasks that write files


R = TypeVar("R")


def collected(
    results: Iterable[R | DeltaError],
    counts: Sequence[int],
    progress: ProgressCount,
    *,
    done: list[R] | None = None,
) -> list[R]:
    """Return the results of all tasks, in order.

    Args:
        results: for each task, its result, or an error that a retry would not avoid.
        counts: for each task, the number of files that it reads.
        progress: counts these files.
        done: an empty list that gets the results, also if a task fails.

    Raises:
        DeltaError: the first error, after all tasks have ended.
    """
    done = [] if done is None else done
    errors: list[DeltaError] = []
    progress.expect(sum(counts))
    for count, found in zip(counts, results, strict=True):
        if isinstance(found, DeltaError):
            errors.append(found)
            continue
        done.append(found)
        for _ in range(count):
            progress.done()
    if errors:
        raise errors[0]
    return done


@contextmanager
def discarded(store: Store, job: str | None) -> Iterator[None]:
    """Delete all files of a job if the block fails, also those of lost tasks.

    A file that a task finishes later remains until vacuum deletes it.

    Args:
        store: the store of the table.
        job: see `WriteSpec.job`; None deletes nothing.
    """
    try:
        yield
    except BaseException:
        if job is not None:
            discard_job(store, job)
        raise


def delete_new_files(store: Store, paths: Sequence[str]) -> None:
    """Delete the new files of tasks after a failure; log a warning if this is impossible."""
    try:
        store.delete_many(paths)
    except DeltaError as error:
        logger.log(
            cleanup_level(error),
            "could not delete %d new files in %s; vacuum deletes them: %s",
            len(paths),
            store.root,
            error,
        )
