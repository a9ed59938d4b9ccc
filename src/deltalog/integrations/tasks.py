"""Common code for work that runs as tasks of another engine: Dask, Ray or Daft.

This module imports none of these engines. It opens a version, restricts a read to the columns and
filters of a query, distributes files among tasks, writes and changes files in tasks, commits the
files once, and pickles the input of tasks.

Protocol: none
"""

from __future__ import annotations

import copy
import pickle
from abc import abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, Unpack

import pyarrow as pa

from deltalog._util.argument_types import kind_of
from deltalog._util.cards import ProgressCount
from deltalog._util.paths import join
from deltalog.data.scan.plan import Scan, plan_scan
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.open_files import new_job
from deltalog.data.write.source import Rereadable
from deltalog.data.write.written import WrittenFiles
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
)
from deltalog.expressions import TextRules, resolve_predicate
from deltalog.expressions.substrait import as_meant
from deltalog.log.checkpoints.writer import CheckpointLayout, write_v2_top
from deltalog.log.snapshot.splits import SHARE_BYTES, cut_snapshot, holds_more_files
from deltalog.operations import arguments
from deltalog.operations.changes.apply import balanced
from deltalog.operations.changes.bins import BinGroup, BinTask
from deltalog.operations.changes.shards import (
    ShardedChange,
    apply_shard,
    collected,
    delete_new_files,
    discarded,
)
from deltalog.operations.changes.task_writes import WriteJob, no_files, write_part
from deltalog.operations.engine import LocalEngine, RowSource, SeenTable
from deltalog.schema.columns import naming_the_attempt
from deltalog.storage.options import pickled_for_tasks
from deltalog.table import DeltaTable
from deltalog.table.write import WriteArguments, write_by
from deltalog.transaction.maintenance.checkpoint import create_checkpoint, write_piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import date, datetime

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.data.write.options import WriteSpec
    from deltalog.expressions import Expression
    from deltalog.log.checkpoints.writer import (
        CheckpointContent,
        WrittenCheckpoint,
        WrittenSidecars,
    )
    from deltalog.log.snapshot import Snapshot
    from deltalog.log.snapshot.splits import CutSnapshot
    from deltalog.log.snapshot.state import LogState
    from deltalog.operations.changes.apply import CandidateFiles, Shard
    from deltalog.operations.changes.bins import BinRewrite, Rewritten
    from deltalog.operations.changes.key_tasks import KeyIndexJob, KeyIndexReport
    from deltalog.operations.changes.request import ChangeRequest, PlannedChange
    from deltalog.operations.changes.shards import ShardJob, ShardResult
    from deltalog.storage import Store
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.transaction import PendingTransaction

    Source = str | PurePath | Store | NamedTable | DeltaTable
    Version = int | str | datetime | date

T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")

__all__ = [
    "INLINE_BYTES",
    "DistributedEngine",
    "DistributedRows",
    "Report",
    "Sent",
    "TaskGroup",
    "VersionRead",
    "open_version",
    "own_errors",
    "reported",
    "share_by_bytes",
    "share_by_number",
    "write_rows",
]


READ_OPTIONS: Final = {
    **dict.fromkeys(("path", "uri", "table_uri", "location", "table", "table_or_uri"), "source=…"),
    **dict.fromkeys(("datetime", "as_of", "timestamp_as_of"), "version=…"),
    **dict.fromkeys(
        ("limit", "n", "n_rows", "nrows", "num_rows", "head"), "head(n) or limit(n) of the result"
    ),
    **dict.fromkeys(("order_by", "sort", "sort_by"), "the method of the result that sorts"),
    **dict.fromkeys(("dtype", "dtypes", "schema", "types_mapper"), "a cast of the result"),
    **dict.fromkeys(("engine", "log_buffer_size", "without_files"), "the function without it"),
    "filesystem": "delta_table_options={'filesystem': …}",
}
"""Option of other libraries' readers → what to use instead, for errors."""


def open_version(
    source: Source,
    version: Version | None = None,
    storage_options: StorageOptions | None = None,
    options: Mapping[str, Any] | None = None,
) -> DeltaTable:
    """Return a table at a version. A `DeltaTable` that is passed as `source` is not changed.

    Args:
        source: the location of the table, or the table.
        version: the number of a version, or a timestamp as a string or datetime. None means the
            latest version, or the version of a `DeltaTable`.
        storage_options: see `DeltaTable`.
        options: other arguments of `DeltaTable`.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: there is no such version.
        InvalidInputError: options are set for a `DeltaTable`.
    """
    if not isinstance(source, DeltaTable):
        return DeltaTable(
            source, version=version, storage_options=storage_options, **(options or {})
        )
    if storage_options is not None or options is not None:
        raise InvalidInputError(
            f"cannot scan {source!r} with storage_options or delta_table_options: the table is "
            "already open; pass its location instead"
        )
    shown = copy.copy(source)
    if version is not None:
        shown.load_as_version(version)
    return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRead:
    """A read of one version of a table, to which an engine can add filters. It can be pickled.

    Args:
        snapshot: the snapshot of the version.
        columns: name in the result → the column or expression that the scan computes.
        predicate: a resolved predicate that is true for the rows to return; None returns all rows.
        schema: the schema of the rows.
    """

    snapshot: Snapshot
    columns: tuple[tuple[str, str], ...]
    predicate: Expression | None
    schema: pa.Schema

    @classmethod
    def of(
        cls,
        table: DeltaTable,
        *,
        columns: Sequence[str] | None = None,
        predicates: Sequence[Any] = (),
        parameters: Sequence[object] | Mapping[str, object] | None = None,
    ) -> Self:
        """Plan a read.

        Args:
            table: the table, at the version to read.
            columns: see `DeltaTable.scan`.
            predicates: predicates that are all true for the rows to return; see
                `DeltaTable.scan`.
            parameters: see `DeltaTable.scan`.

        Raises:
            InvalidInputError: there is no such column, or a predicate cannot be parsed.
            UnsupportedFeatureError, UnsupportedTypeError: deltalog cannot read the table's rows.

        Cost: reads no data.
        """
        snapshot = table.snapshot
        chosen = arguments.as_columns(columns)
        asked = list(table.schema().names if chosen is None else chosen)
        with naming_the_attempt("read", table.table_uri):
            condition = arguments.as_condition(
                table.schema(), *predicates, session=snapshot.context.session, parameters=parameters
            )
            scan = plan_scan(snapshot, columns=asked, predicate=condition, is_resolved=True)
        names = [plan_scan(snapshot, columns=[name]).schema.names[0] for name in asked]
        return cls(
            snapshot=snapshot,
            columns=tuple(zip(names, asked, strict=True)),
            predicate=condition,
            schema=scan.schema,
        )

    def resolved(self, condition: Expression | None) -> Expression | None:
        """Resolve an engine's condition against the table's columns; None if impossible."""
        if condition is None:
            return None
        configuration, session = self.snapshot.configuration, self.snapshot.context.session
        try:
            schema = configuration.schema
            meant = as_meant(condition, schema)
            return resolve_predicate(meant, schema, session, text_rules=TextRules.NONE)
        except DeltaError:
            return None

    def scan(self, names: Sequence[str] | None = None, pushed: Expression | None = None) -> Scan:
        """Return the scan for one query of the engine.

        Args:
            names: the columns of `schema` to return, in this order; None means all columns.
            pushed: a resolved condition of the query, in addition to the predicate.
        """
        wanted = self.schema.names if names is None else names
        asked = [text for name in wanted for own, text in self.columns if own == name]
        both = self.predicate if pushed is None else pushed
        if pushed is not None and self.predicate is not None:
            both = self.predicate & pushed
        return plan_scan(self.snapshot, columns=asked, predicate=both, is_resolved=True)


# --- writes: tasks of an engine write files, and the caller commits once


Report = WrittenFiles | DeltaError
"""The report of a task: the files that it has written, or an error in its rows."""
_IN_THE_ROWS = (ConstraintViolationError, InvalidInputError, SchemaMismatchError)


class DistributedRows(Rereadable):
    """Rows that tasks of an engine compute and write.

    A repeated attempt, for example after a conflict, computes the rows again.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of the rows. The engine may have to compute rows to determine it.

        Raises:
            InvalidInputError: a type cannot be inferred.
        """

    @property
    def known_schema(self) -> pa.Schema | None:
        """The schema of the rows; None if it is unknown before rows are computed."""
        return self.schema

    @abstractmethod
    def write(self, job: Sent[WriteJob]) -> Sequence[Report]:
        """Run tasks that call `reported` with their rows; return all reports."""


def reported(job: Sent[WriteJob], batches: Iterable[pa.RecordBatch], *, place: int) -> Report:
    """Write the rows of a task, in the task. Return its files, or an error in its rows.

    Args:
        job: the specification of the write.
        batches: the rows, all with the same schema.
        place: the number of the task within the write.

    Raises:
        StorageError: the store failed; the engine may run the task again.
    """
    try:
        return write_part(job.value, batches, place=place)
    except _IN_THE_ROWS as error:
        return error


def write_rows(
    rows: DistributedRows, table: Source, **options: Unpack[WriteArguments]
) -> int | None:
    """Write rows in the tasks that compute them, and commit all files as one version.

    Args:
        rows: the rows of an engine.
        table: the target. A `DeltaTable` is updated to the new version.
        options: the other arguments of `write_deltalake`.

    Returns:
        The new version; None if the write was skipped.

    Raises:
        DeltaError: see `write_deltalake`. The table is unchanged.
    """
    committed = write_by(_TaskEngine(), table, rows, **options)
    return None if committed is None or committed.skipped else committed.version


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise deltalog's error if an engine has wrapped it in its own error."""
    try:
        yield
    except Exception as error:
        own = _own_error(error)
        if own is None:
            raise
        raise own from error


def _own_error(error: BaseException | None) -> DeltaError | None:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        cause = getattr(error, "cause", None)
        for one in (cause, error):
            if isinstance(one, DeltaError) and type(one).__module__.startswith("deltalog."):
                return one
        error = error.__cause__ or (cause if isinstance(cause, BaseException) else None)
    return None


class _TaskEngine(LocalEngine):
    """Engine that lets tasks write rows; all other work runs in this process."""

    def open_rows(self, data: Any) -> RowSource:
        """Return the rows of an engine, without computing them."""
        return data if isinstance(data, DistributedRows) else super().open_rows(data)

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Write rows in the tasks that compute them.

        Raises:
            SchemaMismatchError: the columns do not match the table's schema. Raised before any task
                runs if the schema of the rows is known.
        """
        if not isinstance(rows, DistributedRows):
            return super().write_rows(spec, rows, predicate=predicate, tells_changes=tells_changes)
        if (schema := rows.known_schema) is not None:
            Enforcer.of_spec(spec, schema)
        own = replace(spec, job=new_job())
        job = WriteJob(spec=own, predicate=predicate, tells_changes=tells_changes)
        with discarded(own.store, own.job):
            return _combined(spec, rows.write(Sent(job)))


def _combined(spec: WriteSpec, reports: Sequence[Report]) -> WrittenFiles:
    """Combine the files of all tasks.

    Raises:
        DeltaError: a task found an error in its rows.
    """
    parts = [report for report in reports if isinstance(report, WrittenFiles)]
    error = next((report for report in reports if isinstance(report, DeltaError)), None)
    if error is not None:
        raise error
    return WrittenFiles.merge(parts) if parts else no_files(spec)


# --- changes of a table: tasks change, rewrite and delete files, and the caller commits once


_SHARD_BYTES: Final = 32 * 1024 * 1024
"""The least stored size of the files that a task changes, unless the caller sets `num_tasks`."""
_FILES_PER_TASK: Final = 5_000
"""The least number of files that a task deletes, unless the caller sets `num_tasks`."""
_GROUPS_PER_WORKER: Final = 4
"""The number of groups of bins for each task that can run at the same time.

Small groups end at about the same time, and little is done again after a worker was lost.
"""


class DistributedEngine(LocalEngine):
    """An engine that changes, rewrites and deletes files with tasks of a cluster; see `Engine`.

    DELETE, UPDATE, MERGE and OPTIMIZE run as tasks that each get some of the files; the client
    commits the files of all tasks as one version. VACUUM deletes files in tasks. If a table has the
    feature `v2Checkpoint` and many files, tasks write the sidecars of its checkpoints. Small work,
    and work that needs only the log, is done in the client's process.

    Args:
        num_tasks: the number of tasks of an operation, if it has as many files. None means the
            number of tasks that the cluster can run at the same time, or fewer if there are few
            bytes.

    Raises:
        InvalidInputError: the number is not above 0.
    """

    files_per_deletion = 200_000
    files_per_checkpoint = 1_000_000
    """The number of files above which tasks write the sidecars of a checkpoint."""

    def __init__(self, *, num_tasks: int | None = None) -> None:
        if num_tasks is not None:
            arguments.check_number("num_tasks", num_tasks, least=1)
        self._num_tasks = num_tasks

    @property
    @abstractmethod
    def num_slots(self) -> int:
        """The number of tasks that the cluster can run at the same time."""

    @abstractmethod
    def run(
        self, work: Callable[[Sent[S], Sent[T]], R], shared: Sent[S], inputs: Sequence[Sent[T]]
    ) -> Iterator[R]:
        """Run one task for each input, and yield the results in the order of the inputs.

        The engine repeats tasks whose worker was lost.

        Args:
            work: a function of a module, called with `shared` and an input.
            shared: an input of all tasks. It may be large, so it is sent once per worker.
            inputs: for each task, its own input.
        """

    def plan_change(self, transaction: PendingTransaction, request: ChangeRequest) -> PlannedChange:
        """Plan a change whose files are divided among tasks."""
        return ShardedChange(
            transaction, request, run=self._run_shards, most_shards=self._most_shards
        )

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        """Rewrite groups of bins in tasks; a single bin, in this process.

        A commit interval of 0 seconds has the same effect as in `LocalEngine`. Other intervals are
        ignored, because bins of all tasks are rewritten at the same time.
        """
        bins = list(job.bins)
        if job.options.min_commit_interval_s == 0:
            bins = list(takewhile(lambda one: one.partition == bins[0].partition, bins))
        most = self._num_tasks or self.num_slots * _GROUPS_PER_WORKER
        most = min(most, job.options.max_concurrent_tasks or most)
        if min(most, len(bins)) < 2:
            return super().rewrite_bins(replace(job, bins=bins))
        spans = balanced([one.size_bytes for one in bins], most)
        groups = [bins[start : start + length] for start, length in spans]
        own = replace(job, bins=(), job_id=new_job())
        with discarded(job.transaction.store, own.job_id):
            rewritten = collected(
                self.run(
                    _rewrite_group,
                    Sent(BinTask.of(own)),
                    [Sent(BinGroup.of(group)) for group in groups],
                ),
                [sum(one.files.num_rows for one in group) for group in groups],
                job.transaction.progress,
            )
        return list(chain.from_iterable(rewritten))

    def delete_files(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files: in tasks if there are many, else in this process."""
        most = self._num_tasks or min(self.num_slots, len(paths) // _FILES_PER_TASK)
        table = SeenTable.of(store) if min(most, len(paths)) > 1 else None
        if table is None:
            store.delete_many(paths)
            return
        size = -(-len(paths) // most)
        groups = [Sent(tuple(paths[at : at + size])) for at in range(0, len(paths), size)]
        errors: list[DeltaError] = []
        for found in self.run(_delete_group, Sent(table), groups):
            if isinstance(found, DeltaError):
                errors.append(found)
            elif found:
                store.delete_many(found)
        if errors:
            raise errors[0]

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint: a large one with sidecars in tasks, others in this process.

        A checkpoint without sidecars orders all files by path, which tasks could not do without
        exchanging their rows.
        """
        has_sidecars = snapshot.configuration.supports("v2Checkpoint")
        if not has_sidecars or not holds_more_files(snapshot, self.files_per_checkpoint):
            return super().write_checkpoint(snapshot, at_ms)
        create_checkpoint(
            snapshot,
            layout=CheckpointLayout.V2_JSON,
            at_ms=at_ms,
            work=_SidecarTasks(self, snapshot, self._num_tasks),
        )
        return False

    def index_keys(
        self, job: KeyIndexJob, files: pa.Table, progress: ProgressCount
    ) -> Sequence[KeyIndexReport]:
        """Index the keys of files: in tasks if they are large, else in this process."""
        from deltalog.operations.changes.key_tasks import file_groups  # noqa: PLC0415  # needs NumPy

        groups = file_groups(files, self._num_tasks or self.num_slots * _GROUPS_PER_WORKER)
        if len(groups) < 2:
            return super().index_keys(job, files, progress)
        found = self.run(_index_group, Sent(job), [Sent(group) for group in groups])
        return collected(found, [group.num_rows for group in groups], progress)

    def _most_shards(self, candidates: CandidateFiles) -> int:
        return self._num_tasks or min(self.num_slots, candidates.size_bytes // _SHARD_BYTES)

    def _run_shards(
        self, job: ShardJob, shards: Sequence[Shard]
    ) -> Iterator[ShardResult | DeltaError]:
        return self.run(_change_shard, Sent(job), [Sent(shard) for shard in shards])


class _SidecarTasks:
    """Those steps of `CheckpointWork` that read all file actions, as tasks of an engine."""

    def __init__(
        self, engine: DistributedEngine, snapshot: Snapshot, num_tasks: int | None
    ) -> None:
        self._engine = engine
        self._snapshot = snapshot
        self._num_tasks = num_tasks

    def count_files(self) -> int:
        """Return the number of live files."""
        cut = self._snapshot.read_log(self._cut)
        return sum(self._on_pieces(_count_piece, cut, cut))

    def write(
        self,
        state: LogState,
        content: CheckpointContent,
        layout: CheckpointLayout,
        part_rows: int | None,
        at_ms: int,
    ) -> WrittenCheckpoint:
        """Write the files of the checkpoint; see `CheckpointWork`.

        Raises:
            DeltaError: a task has failed. The sidecars of all other tasks are deleted.
        """
        cut, store = self._cut(state), self._snapshot.store
        done: list[WrittenSidecars] = []
        try:
            written = collected(
                self._on_pieces(_write_piece, cut, (cut, at_ms, part_rows)),
                [0] * cut.num_pieces,
                ProgressCount(None),
                done=done,
            )
        except BaseException:
            delete_new_files(store, [path for part in done for path in part.paths])
            raise
        return write_v2_top(store, content, layout, written)

    def _cut(self, state: LogState) -> CutSnapshot:
        checkpoint = state.checkpoint
        size = 0 if checkpoint is None else sum(one.size_bytes for one in checkpoint.data_files)
        share = -(-size // self._num_tasks) if self._num_tasks else SHARE_BYTES
        return cut_snapshot(self._snapshot, state, share_bytes=share)

    def _on_pieces(
        self, work: Callable[[Sent[S], Sent[int]], R], cut: CutSnapshot, shared: S
    ) -> Iterator[R]:
        return self._engine.run(work, Sent(shared), [Sent(one) for one in range(cut.num_pieces)])


def _count_piece(cut: Sent[CutSnapshot], number: Sent[int]) -> int:
    """Count the live files of a piece, in a task."""
    return cut.value.piece(number.value).num_files


def _write_piece(
    shared: Sent[tuple[CutSnapshot, int, int | None]], number: Sent[int]
) -> WrittenSidecars | DeltaError:
    """Write the sidecars of a piece, in a task."""
    cut, at_ms, part_rows = shared.value
    try:
        return write_piece(cut, number.value, at_ms=at_ms, part_rows=part_rows)
    except DeltaError as error:
        return error


def _change_shard(job: Sent[ShardJob], shard: Sent[Shard]) -> ShardResult | DeltaError:
    """Change the files of one shard, in a task."""
    try:
        return apply_shard(job.value, shard.value)
    except DeltaError as error:
        return error


def _rewrite_group(job: Sent[BinTask], group: Sent[BinGroup]) -> list[Rewritten] | DeltaError:
    """Rewrite some bins, in a task."""
    try:
        return job.value.run(group.value)
    except DeltaError as error:
        return error


def _index_group(job: Sent[KeyIndexJob], files: Sent[pa.Table]) -> KeyIndexReport | DeltaError:
    """Index the keys of some files, in a task."""
    try:
        return job.value.run(files.value)
    except DeltaError as error:
        return error


def _delete_group(
    table: Sent[SeenTable], paths: Sent[tuple[str, ...]]
) -> Sequence[str] | DeltaError:
    """Delete some files, in a task."""
    return table.value.delete(paths.value)


# --- the input of tasks: values that are pickled with their credentials


INLINE_BYTES: Final = 4 << 20
"""The maximum total size of inputs that are sent with their tasks, through the scheduler."""


class Sent(Generic[T]):
    """A value that is sent to the tasks of the caller's own job.

    Only pickles of this class contain the temporary credentials of a catalog. The repr does not
    contain the value, because engines log the arguments of tasks. A received value is unpickled
    when a task first uses it: Dask's scheduler unpickles the arguments of tasks, and sends them on.

    Args:
        value: the input of the tasks.
    """

    __slots__ = ("_kind", "_pickled", "_value")

    def __init__(self, value: T) -> None:
        self._value: T | _Unread = value
        self._kind: str = type(value).__name__
        self._pickled: bytes | None = None

    @property
    def value(self) -> T:
        """The input of the tasks."""
        # Several threads of a worker may share this object. One of them may set `_value` and then
        # forget the pickle, so read the pickle first.
        pickled, value = self._pickled, self._value
        if isinstance(value, _Unread):
            value = self._value = pickle.loads(pickled or b"")  # noqa: S301  # data that the process of the caller has pickled
            self._pickled = None
        return value

    @property
    def size_bytes(self) -> int:
        """The size of the pickled value. The pickle is kept until it is sent."""
        if self._pickled is None:
            self._pickled = pickled_for_tasks(self.value, _pickler())
        return len(self._pickled)

    def __reduce__(self) -> tuple[Any, ...]:
        pickled = self._pickled
        if pickled is None:
            pickled = pickled_for_tasks(self.value, _pickler())
        if len(pickled) > INLINE_BYTES and not isinstance(self._value, _Unread):
            self._pickled = None
        return _received, (pickled, self._kind)

    def __repr__(self) -> str:
        return f"Sent(a {self._kind})"


class _Unread:
    """The value of a received input that is not unpickled yet."""


def _pickler() -> type[pickle.Pickler]:
    """Return the pickler of tasks' inputs, which may contain functions of the caller.

    Such a function may be a provider of credentials.
    """
    try:
        import cloudpickle  # noqa: PLC0415  # may be missing: only Dask depends on it
    except ImportError:
        return pickle.Pickler
    kind: type[pickle.Pickler] = cloudpickle.Pickler
    return kind


def _received(data: bytes, kind: str) -> Sent[Any]:
    sent: Sent[Any] = Sent(_Unread())
    sent._kind, sent._pickled = kind, data  # noqa: SLF001  # of this class
    return sent


# --- distribution of the files of a scan among tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGroup:
    """The files that one task of an engine reads. The object can be pickled.

    Args:
        schema: the schema of the rows.
        tasks: one scan task per file, in the order in which rows are returned.
    """

    schema: pa.Schema
    tasks: tuple[ScanTask, ...] = ()

    @property
    def size_bytes(self) -> int:
        """The total stored size of the files, except files whose size is not in the log."""
        return sum(task.size_bytes or 0 for task in self.tasks)

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if it is not in the log, or if a predicate filters rows."""
        if any(task.spec.predicate is not None for task in self.tasks):
            return None
        counts = [task.most_rows for task in self.tasks]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def locations(self) -> list[str]:
        """The locations of the files."""
        return [join(task.store.root, task.path) for task in self.tasks]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows file by file. The next files are opened before they are needed.

        Cost: the cost of `ScanTask.to_batches` for each file.
        """
        return read_tasks(self.tasks)

    def to_table(self) -> pa.Table:
        """Return the rows as an Arrow table in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def with_columns(self, names: Sequence[str]) -> TaskGroup:
        """Return a group of the same files that returns only these columns, in this order."""
        if not self.tasks:
            schema = pa.schema([self.schema.field(name) for name in names])
            return TaskGroup(schema=schema)
        spec = self.tasks[0].spec.with_columns(names)
        tasks = tuple(replace(task, spec=spec) for task in self.tasks)
        return TaskGroup(schema=spec.output, tasks=tasks)


def share_by_bytes(
    tasks: Iterable[ScanTask], schema: pa.Schema, *, most_bytes: int
) -> list[TaskGroup]:
    """Divide consecutive files into groups up to a given size. A larger file is a group by itself.

    Args:
        tasks: the scan tasks of the files.
        schema: the schema of the rows.
        most_bytes: the maximum stored size of a group.
    """
    groups: list[list[ScanTask]] = []
    num_bytes = 0
    for task in tasks:
        size = most_bytes if task.size_bytes is None else task.size_bytes
        if not groups or num_bytes + size > most_bytes:
            groups.append([])
            num_bytes = 0
        groups[-1].append(task)
        num_bytes += size
    return [TaskGroup(schema=schema, tasks=tuple(group)) for group in groups]


def share_by_number(
    tasks: Iterable[ScanTask], schema: pa.Schema, *, most_groups: int
) -> list[TaskGroup]:
    """Divide consecutive files into groups of about the same size. No group is empty.

    Args:
        tasks: the scan tasks of the files.
        schema: the schema of the rows.
        most_groups: the maximum number of groups, 1 or more. If there are fewer files, each file
            is a group.
    """
    found = list(tasks)
    spans = balanced([task.size_bytes or 1 for task in found], most_groups)
    return [
        TaskGroup(schema=schema, tasks=tuple(found[start : start + length]))
        for start, length in spans
    ]


def wrong_rows(library: str, given: object, expected: str) -> InvalidInputError:
    """Return the error about the rows of a write, which are not a dataframe of the library.

    Args:
        library: the name of the module of deltalog.
        given: what the caller passed.
        expected: the class of dataframes.
    """
    advice = "use write_deltalake for rows in memory"
    if isinstance(given, str | PurePath | DeltaTable):
        shown = repr(str(given)) if isinstance(given, str | PurePath) else "table"
        advice = f"the rows come first: deltalog.{library}.write(rows, {shown})"
    return InvalidInputError(
        f"cannot write {kind_of(given)} with deltalog.{library}: expected a {expected}; {advice}"
    )
