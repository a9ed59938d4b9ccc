"""Row changes (DELETE, UPDATE, MERGE) that the driver plans and tasks apply.

This module contains the steps that the three commands share. A dataframe contains the rows to
change, each with the number of the clause that applies. Tasks write the new versions of these rows,
and report the positions of the old versions. For each file, the driver then decides to remove it,
to mark rows in a deletion vector, or to rewrite it. The driver writes the deletion vectors; tasks
copy the remaining rows of rewritten files, or the driver if these files are small. Changed rows are
never sent to the driver.

Protocol: Deletion Vectors, Add File and Remove File, Add CDC File
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.kernels import compute
from deltalog._util.paths import file_locations
from deltalog.data.scan.plan import TASK_COLUMNS, make_task
from deltalog.data.scan.task import read_spec
from deltalog.data.write.open_files import discard_job, new_job
from deltalog.data.write.written import WrittenFiles
from deltalog.errors import AmbiguousMergeError, InternalError
from deltalog.operations.changes.apply import (
    FileDecision,
    SelectedRows,
    complete_counts,
    decide_files,
    explain_choice,
    explain_decisions,
    file_counts,
    stage_files,
)
from deltalog.operations.changes.request import Action, ChangeMetrics, RowCounts, When
from deltalog.operations.changes.task_writes import no_files
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.deletion_vectors import DeletionBitmap
from deltalog.schema import metadata_columns
from deltalog.spark.engine.row_tasks import (
    CLAUSE,
    OLD_FILE,
    OLD_POSITION,
    ROW_ID,
    ChangeJob,
    RowsDone,
    change_task,
    copy_task,
)
from deltalog.spark.reading.batch_source import metadata_struct, split_tasks
from deltalog.spark.reading.conditions import RowCondition
from deltalog.spark.reading.options import MAX_PARTITION_BYTES
from deltalog.spark.session.tasks import decode_all, run_for_each, run_tasks
from deltalog.spark.session.types import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from deltalog._util.clock import Stopwatch
    from deltalog.data.scan import ScanTask
    from deltalog.data.scan.prune import Pruned
    from deltalog.data.write.options import WriteSpec
    from deltalog.expressions import Expression
    from deltalog.operations.changes.request import ChangeRequest
    from deltalog.spark.reading.scan import SparkScan
    from deltalog.transaction import PendingTransaction

_IDS: Final = (metadata_columns.ROW_ID, metadata_columns.ROW_COMMIT_VERSION)
COPIED_HERE_BYTES: Final = 4 * 1024 * 1024
"""The maximum size of rewritten files whose remaining rows the driver copies, in bytes."""
TARGET_STRUCT: Final = "__deltalog_target"
"""The name of the struct column that contains a row of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The rows of the table that may change.

    Args:
        frame: the rows, with the columns of the table, `OLD_FILE`, `OLD_POSITION`, and `ROW_ID` if
            the table has row ids.
        reach: a predicate that is true for every row that may change; None means all rows.
        pruned: the outcome of pruning files.
        files: the files that remain after pruning, as rows of `snapshot.files`.
    """

    frame: DataFrame
    reach: Expression | None
    pruned: Pruned
    files: pa.Table


def find_candidates(scan: SparkScan, reach: Expression | None, alias: str | None) -> Candidates:
    """Plan a dataframe of the rows that may change, with the file and position of each row.

    Args:
        scan: a scan of the version, without conditions.
        reach: a predicate that is true for every row that may change; None means all rows.
        alias: the table's alias in Spark's conditions.
    """
    snapshot = scan.snapshot
    ids = _IDS[:1] if snapshot.configuration.row_ids_enabled else ()
    wanted = replace(
        scan,
        metadata_columns=(metadata_columns.FILE_PATH, metadata_columns.ROW_INDEX, *ids),
        lists_files=True,
    )
    if reach is not None:
        all_rows = F.expr("true")
        prunes = RowCondition(column=all_rows, pruning=reach, used=frozenset(), text="true")
        wanted = replace(wanted, conditions=(prunes,))
    frame = wanted.to_df()
    names = snapshot.configuration.schema.names
    whole = F.col(metadata_struct(names))
    hidden = [
        whole["file_path"].alias(OLD_FILE),
        whole["row_index"].alias(OLD_POSITION),
        *([whole["row_id"].alias(ROW_ID)] if ids else []),
    ]
    frame = frame.select(*(F.col(quoted(name)) for name in names), *hidden)
    pruned = wanted.pruned
    return Candidates(
        frame=frame if alias is None else frame.alias(alias),
        reach=reach,
        pruned=pruned,
        files=pruned.files(FILE_SCHEMA.names),
    )


def row_struct(names: Sequence[str]) -> Column:
    """Return one struct that contains all columns of a row of the frame."""
    # A string needs one call to the JVM, whereas columns need several calls for each name.
    return F.expr(f"struct({', '.join(f'{quoted(name)} AS {quoted(name)}' for name in names)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameChange:
    """The `PlannedChange` of the Spark engine, with the rows to change as a dataframe.

    Args:
        transaction: a transaction on an existing table.
        request: the user's request. The order of its clauses determines their numbers.
        candidates: the rows of the table that may change.
        frame: the rows to change, with the columns `CLAUSE`, `OLD_FILE` and `OLD_POSITION`, and the
            columns that the clauses need.
        watch: a stopwatch that was started before the search for the rows.
        num_source_rows: the number of rows in the source of a merge; 0 without a source.
    """

    transaction: PendingTransaction
    request: ChangeRequest
    candidates: Candidates
    frame: DataFrame
    watch: Stopwatch
    num_source_rows: int = 0

    def apply(self) -> ChangeMetrics:
        """Write the changes in tasks, and stage them in the transaction.

        Raises:
            AmbiguousMergeError: several rows of the source would change the same row of the table.
            ConstraintViolationError: a new row violates a constraint of the table.
        """
        transaction = self.transaction
        spec = self.request.file_options.spec_for(transaction)
        done = self._run(spec, self.frame, writes=True)
        transaction.add_files(done.written)
        selected = self._selected(done.places)
        decisions = self._decide(selected)
        stage_files(transaction, selected, decisions)
        copied = self._copy(spec, selected, decisions)
        alone = self.request.is_row_local
        files = selected.files if alone else self.candidates.files
        transaction.record_read(self.candidates.reach, files, is_row_local=alone)
        return replace(
            self._changed(done, selected),
            files=replace(file_counts(selected, decisions), num_copied_rows=sum(copied.counts)),
            num_added_files=len(done.written.adds) + len(copied.written.adds),
            num_added_bytes=done.written.num_bytes + copied.written.num_bytes,
            num_change_files=len(done.written.cdc),
        )

    def preview(self) -> tuple[ChangeMetrics, pa.Table]:
        """Count the rows that `apply` would change, without computing new values."""
        wanted = [name for name in (CLAUSE, OLD_FILE, OLD_POSITION) if name in self.frame.columns]
        spec = self.request.file_options.spec_for(self.transaction)
        done = self._run(spec, self.frame.select(*wanted), writes=False)
        selected = self._selected(done.places)
        decisions = self._decide(selected)
        found = replace(self._changed(done, selected), files=file_counts(selected, decisions))
        return found, explain_decisions(selected, decisions)

    def explain(self) -> str:
        """Return a description of the plan: which files are read, and how they are changed."""
        snapshot = self.transaction.read_snapshot
        choice = explain_choice(snapshot, asked=self.request.use_deletion_vectors)
        lines = [
            f"Changes of rows of {snapshot.store.root}, version {snapshot.version}, by tasks",
            *map(str, self.request.ordered),
            f"changed files: {choice}",
            *self.candidates.pruned.explain(),
        ]
        return "\n  ".join(lines)

    def _run(self, spec: WriteSpec, frame: DataFrame, *, writes: bool) -> RowsDone:
        job_id = new_job()
        job = ChangeJob(
            write_spec=replace(spec, job=job_id),
            clauses=tuple(clause.action for clause in self.request.ordered),
            tells_changes=spec.configuration.change_data_feed_enabled,
            writes=writes,
        )
        what, work = f"changing rows of {spec.store.root}", partial(change_task, job)
        discard = partial(discard_job, spec.store, job_id) if writes else None
        return united(spec, run_tasks(frame, work, what, discard=discard))

    def _check_repeats(self, places: Mapping[str, tuple[int, DeletionBitmap]]) -> None:
        repeated = {name: n - len(rows) for name, (n, rows) in places.items() if n > len(rows)}
        if repeated and not self.request.allows_repeats:
            raise AmbiguousMergeError(
                f"cannot merge into {self.transaction.store.root}: several rows of the source "
                f"match the same row of the table, {sum(repeated.values())} times, for example in "
                f"{next(iter(repeated))!r}; make the source's keys unique, or make the condition "
                "stricter"
            )

    def _selected(self, places: Mapping[str, tuple[int, DeletionBitmap]]) -> SelectedRows:
        self._check_repeats(places)
        snapshot, files = self.transaction.read_snapshot, self.candidates.files
        where = file_locations(files.column("path"), snapshot.store.root)
        names = pa.array(list(places), pa.string())
        found = compute.index_in(names, value_set=where)
        if found.null_count:
            raise InternalError(f"rows were found in files that are not in {snapshot.store.root}")
        order = compute.sort_indices(found)
        numbers = found.take(order)
        selected = files.take(numbers)
        named: list[Any] = names.take(order).to_pylist()
        known: list[int | None] = self.candidates.pruned.num_records().take(numbers).to_pylist()
        return SelectedRows(
            files=selected,
            positions=tuple(places[name][1].to_arrow() for name in named),
            num_records=complete_counts(snapshot, selected, known),
            num_candidates=files.num_rows,
        )

    def _decide(self, selected: SelectedRows) -> tuple[FileDecision, ...]:
        asked = self.request.use_deletion_vectors
        return decide_files(self.transaction.read_snapshot, selected, asked=asked)

    def _copy(
        self, spec: WriteSpec, selected: SelectedRows, decisions: Sequence[FileDecision]
    ) -> RowsDone:
        """Copy the remaining rows of rewritten files, and stage the new files.

        Tasks copy them; the driver, if the files are so small that a job would take longer.
        """
        cut = [n for n, decision in enumerate(decisions) if decision is FileDecision.REWRITTEN]
        if not cut:
            return RowsDone(written=no_files(spec), counts=(0,))
        snapshot = self.transaction.read_snapshot
        ids = _IDS if snapshot.configuration.row_ids_enabled else ()
        reads = read_spec(
            snapshot, columns=snapshot.configuration.schema.names, hidden=ids, predicate=None
        )
        rows = selected.files.take(pa.array(cut, pa.int64())).select(TASK_COLUMNS).to_pylist()
        tasks = [make_task(snapshot, reads, row) for row in rows]
        gone = {}
        for number, task in zip(cut, tasks, strict=True):
            positions = selected.positions[number]
            gone[task.path] = (
                DeletionBitmap() if positions is None else DeletionBitmap.from_arrow(positions)
            )
        groups = [
            [(task, gone[task.path]) for task in group]
            for group in split_tasks(tasks, MAX_PARTITION_BYTES)
        ]
        job_id = new_job()
        copy = partial(copy_task, replace(spec, job=job_id))
        discard = partial(discard_job, spec.store, job_id)
        if sum(task.size_bytes or 0 for task in tasks) <= COPIED_HERE_BYTES:
            copied = _combined(spec, _copied_here(copy, groups, discard))
        else:
            spark, what = self.frame.sparkSession, f"copying rows of {snapshot.store.root}"
            copied = united(spec, run_for_each(spark, groups, copy, what, discard=discard))
        self.transaction.add_files(copied.written)
        return copied

    def _changed(self, done: RowsDone, selected: SelectedRows) -> ChangeMetrics:
        """Return the numbers of changed rows and files, and the duration of the steps."""
        numbers: dict[tuple[When, Action], int] = {}
        # The lengths differ if no task ran, because `counts` is then empty.
        for clause, count in zip(self.request.ordered, done.counts, strict=False):
            key = (clause.when, clause.action)
            numbers[key] = numbers.get(key, 0) + count
        return ChangeMetrics(
            rows=RowCounts(
                updated=numbers.get((When.MATCHED, Action.UPDATE), 0),
                deleted=numbers.get((When.MATCHED, Action.DELETE), 0),
                updated_not_matched_by_source=numbers.get(
                    (When.NOT_MATCHED_BY_SOURCE, Action.UPDATE), 0
                ),
                deleted_not_matched_by_source=numbers.get(
                    (When.NOT_MATCHED_BY_SOURCE, Action.DELETE), 0
                ),
                inserted=numbers.get((When.NOT_MATCHED, Action.INSERT), 0),
            ),
            num_source_rows=self.num_source_rows,
            num_files=self.candidates.pruned.num_files,
            num_scanned_files=self.candidates.files.num_rows,
            num_touched_files=selected.files.num_rows,
            scan_ms=self.watch.elapsed_ms(),
        )


def united(spec: WriteSpec, messages: Iterable[bytes]) -> RowsDone:
    """Combine the reports of all tasks.

    Raises:
        DeltaError: a task found an error in its rows. The files of the other tasks are deleted.
    """
    return _combined(spec, decode_all(messages, spec.store, lambda part: part.written.paths))


def _copied_here(
    copy: Callable[[Sequence[tuple[ScanTask, DeletionBitmap]]], RowsDone],
    groups: Sequence[Sequence[tuple[ScanTask, DeletionBitmap]]],
    discard: Callable[[], None],
) -> list[RowsDone]:
    """Copy rows in this process; if this fails, delete the new files."""
    try:
        return [copy(group) for group in groups]
    except BaseException:
        discard()
        raise


def _combined(spec: WriteSpec, parts: Sequence[RowsDone]) -> RowsDone:
    if not parts:
        return RowsDone(written=no_files(spec), counts=())
    places: dict[str, tuple[int, DeletionBitmap]] = {}
    for part in parts:
        for name, (count, rows) in part.places.items():
            known = places.get(name)
            places[name] = (count, rows) if known is None else (known[0] + count, known[1] | rows)
    return RowsDone(
        written=WrittenFiles.merge([part.written for part in parts]),
        counts=tuple(sum(numbers) for numbers in zip(*(p.counts for p in parts), strict=True)),
        places=places,
    )
