"""The part of a write that one Spark task does, and what it says of it.

Owns the ranges of identity values that tasks get, and that an error in the data is reported once:
Spark would try such a task again. What a task has written is named by no commit; if the task
fails, or another attempt of it wins, its files are never seen.

Protocol: Identity Columns
"""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException

from deltalog.errors import ConstraintViolationError, InvalidInputError, SchemaMismatchError
from deltalog.features.identity_columns import identity_columns
from deltalog.spark.session.workers import check_workers, mapped, naming_workers
from deltalog.verbs.append import write_rows
from deltalog.write.files import FileWriter
from deltalog.write.replace_where import write_where
from deltalog.write.written import WrittenFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.expressions import Expression
    from deltalog.write.spec import WriteSpec

RANGE: Final = 1 << 30
"""Identity values that one task may give; what it does not need is a gap."""
_IN_THE_DATA: Final = (ConstraintViolationError, InvalidInputError, SchemaMismatchError)
_SCHEMA: Final = "told binary"
_DESCRIPTION: Final = "spark.job.description"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """What a task must know to write its rows.

    Args:
        spec: of the table.
        predicate: which every row must match.
        tells_changes: whether files for the change feed are written as well.
    """

    spec: WriteSpec
    predicate: Expression | None = None
    tells_changes: bool = False


def write_task(task: TaskSpec, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Write the rows of this Spark task.

    Returns:
        What `told` understands: the files, or what is wrong with the rows.

    Raises:
        StorageError: the store failed; Spark may try again.
    """
    try:
        return telling(_write(task, iter(batches)).to_json())
    except _IN_THE_DATA as error:
        return telling(error)


def telling(what: object) -> bytes:
    """A task's message."""
    return pickle.dumps(what)


def told(message: bytes) -> Any:
    """What a task of ours said.

    Raises:
        DeltaError: what is wrong with its rows.
    """
    what = pickle.loads(message)  # noqa: S301  # a task of this job wrote it
    if isinstance(what, Exception):
        raise what
    return what


def written_by(spec: WriteSpec, messages: Sequence[bytes]) -> WrittenFiles:
    """The files of all tasks.

    Raises:
        DeltaError: what is wrong with the rows of some task; the others' files are removed.
    """
    parts: list[WrittenFiles] = []
    errors: list[Exception] = []
    for message in messages:
        try:
            parts.append(WrittenFiles.from_json(told(message)))
        except _IN_THE_DATA as error:
            errors.append(error)
    if errors:
        spec.store.delete_many([path for part in parts for path in part.paths])
        raise errors[0]
    return WrittenFiles.merge(parts) if parts else no_files(spec)


def no_files(spec: WriteSpec) -> WrittenFiles:
    """What a write without rows leaves."""
    return FileWriter(spec).finish()


def in_task(spec: WriteSpec) -> WriteSpec:
    """The spec with this task's own range of identity values."""
    columns = identity_columns(spec.configuration.schema)
    number = task_number()
    if not columns or not number:
        return spec
    starts = {one.name: one.next_value + number * RANGE * one.step for one in columns}
    return replace(spec, identity_starts=starts)


def task_number() -> int:
    """The place of this task among those of its job; 0 outside of Spark."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _write(task: TaskSpec, batches: Iterator[pa.RecordBatch]) -> WrittenFiles:
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return no_files(task.spec)

    def rows() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    reader = pa.RecordBatchReader.from_batches(first.schema, rows())
    spec = in_task(task.spec)
    if task.predicate is None:
        return write_rows(spec, reader)
    return write_where(spec, reader, task.predicate, tells_changes=task.tells_changes)


def run_tasks(
    frame: DataFrame, work: Callable[[Iterable[pa.RecordBatch]], bytes], what: str
) -> list[bytes]:
    """What each task of a job says that hands its rows to `work`; no row comes here.

    Args:
        frame: the rows.
        work: what a task does.
        what: the job is, for Spark's UI.

    Raises:
        WorkerMismatchError: workers lack this deltalog; told before the job where possible.
    """
    check_workers(frame.sparkSession)

    def tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        message: Any = pa.array([work(batches)], pa.binary())
        yield pa.RecordBatch.from_arrays([message], names=["told"])

    with described(frame.sparkSession, what), naming_workers():
        return [bytes(row["told"]) for row in mapped(frame, tell, _SCHEMA).collect()]


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """Spark's UI says so of the jobs of this block; remote sessions have no place for it."""
    try:
        context = spark.sparkContext
    except (AttributeError, PySparkException):
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, f"deltalog: {what}")
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None ends it
