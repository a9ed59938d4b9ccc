"""Run Spark jobs whose tasks call functions of deltalog and return messages to the driver.

Spark retries a task that fails, but an error in the data would occur again. So a task puts an error
in the data into its message, and the driver raises it.
"""

from __future__ import annotations

import pickle
import zlib
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.cloudpickle import Pickler
from pyspark.errors import PySparkException

from deltalog._util.clock import Stopwatch, SystemClock
from deltalog.errors import (
    ConstraintViolationError,
    DataFileMissingError,
    DataFileUnreadableError,
    DeletionVectorError,
    InvalidInputError,
    SchemaMismatchError,
)
from deltalog.spark.session.failures import naming_files
from deltalog.spark.session.workers import check_workers, mapped, naming_workers
from deltalog.storage.options import pickled_for_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import SparkContext, StatusTracker
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as spark_types

    from deltalog.storage.store import Store

T = TypeVar("T")
R = TypeVar("R")

_IN_THE_DATA: Final = (
    *(ConstraintViolationError, InvalidInputError, SchemaMismatchError),
    *(DataFileMissingError, DataFileUnreadableError, DeletionVectorError),
)
_MESSAGE: Final = "message"
_DESCRIPTION: Final = "spark.job.description"


def encode_message(content: object) -> bytes:
    """Encode the message of a task, including the credentials of stores in it."""
    return pickled_for_tasks(content)


def decode_message(message: bytes) -> Any:
    """Decode the message of a task.

    Raises:
        DeltaError: the message contains an error.
    """
    content = pickle.loads(message)  # noqa: S301  # a task of this job wrote the message
    if isinstance(content, Exception):
        raise content
    return content


def report(work: Callable[[], object]) -> bytes:
    """Encode the result of a task's function, or the error if the task's data is invalid.

    Raises:
        StorageError: the store failed; Spark may retry the task.
    """
    try:
        return encode_message(work())
    except _IN_THE_DATA as error:
        return encode_message(error)


def decode_all(
    messages: Iterable[bytes], store: Store, paths: Callable[[Any], Iterable[str]]
) -> list[Any]:
    """Decode the messages of all tasks of a job.

    Args:
        messages: the results of `report`.
        store: the store of the table.
        paths: a function that returns the paths of the files in a decoded message.

    Raises:
        DeltaError: a task found an error in its data. The files of all other tasks are deleted.
    """
    reports, errors = [], []
    for message in messages:
        try:
            reports.append(decode_message(message))
        except _IN_THE_DATA as error:
            errors.append(error)
    if errors:
        store.delete_many([path for one in reports for path in paths(one)])
        raise errors[0]
    return reports


def task_number() -> int:
    """Return the number of this task within its stage; 0 outside of Spark."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def run_tasks(
    frame: DataFrame,
    work: Callable[[Iterable[pa.RecordBatch]], object],
    what: str,
    *,
    discard: Callable[[], None] | None = None,
) -> list[bytes]:
    """Run a job whose tasks pass their rows to `work`; return the messages of the tasks.

    Args:
        frame: the rows.
        work: a function that runs in each task. Its result, or an error in the data, becomes the
            task's message.
        what: a description of the job for Spark's UI.
        discard: deletes the files of the tasks. It is called if the job fails or is cancelled, or
            if Ctrl-C interrupts the driver, because the messages of all tasks are then lost.

    Raises:
        WorkerMismatchError: the workers do not have the driver's version of deltalog. Usually found
            before the job starts.
        DeltaError: Spark cannot read a data file; see `naming_files`.
    """
    spark = frame.sparkSession
    check_workers(spark)

    def reported(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        message: Any = pa.array([report(lambda: work(batches))], pa.binary())
        yield pa.RecordBatch.from_arrays([message], names=[_MESSAGE])

    with (
        described(spark, what),
        naming_workers(spark),
        naming_files(),
        discarding_files(spark, discard),
    ):
        rows = mapped(frame, reported, f"{_MESSAGE} binary").collect()
    return [bytes(row[_MESSAGE]) for row in rows]


def run_numbered(
    spark: SparkSession,
    count: int,
    work: Callable[[int], object],
    what: str,
    *,
    discard: Callable[[], None] | None = None,
) -> list[bytes]:
    """Run a job of `count` numbered tasks; return their messages in the order of the numbers."""
    numbers = spark.range(0, count, 1, count)
    return run_tasks(numbers, lambda batches: work(*_numbers(batches)), what, discard=discard)


def run_for_each(
    spark: SparkSession,
    inputs: Sequence[T],
    work: Callable[[T], object],
    what: str,
    *,
    discard: Callable[[], None] | None = None,
) -> list[bytes]:
    """Run one task for each input; return their messages in the order of the inputs."""
    return run_numbered(spark, len(inputs), _for_each(inputs, work), what, discard=discard)


def _for_each(inputs: Iterable[T], work: Callable[[T], R]) -> Callable[[int], R]:
    """Return a function that calls `work` with the input that has a number.

    Spark sends the function, with all inputs, once to each executor. Each input is pickled by
    itself, so that a task unpickles only its own. The inputs are compressed, because each repeats
    the schema of its table.
    """
    sent = [zlib.compress(pickled_for_tasks(one, Pickler), 1) for one in inputs]

    def work_on(number: int) -> R:
        return work(pickle.loads(zlib.decompress(sent[number])))  # noqa: S301  # the driver wrote these bytes

    return work_on


def numbered_frame(
    spark: SparkSession,
    count: int,
    work: Callable[[int], Iterable[pa.RecordBatch]],
    schema: spark_types.StructType | str,
    *,
    what: str = "",
) -> DataFrame:
    """Return a frame of rows that numbered tasks produce.

    Args:
        spark: the session.
        count: the number of tasks.
        work: a function that receives the number of a task and returns its rows.
        schema: the schema of the rows.
        what: the operator's name in Spark's plan.

    Raises:
        WorkerMismatchError: the workers do not have the driver's version of deltalog.
    """
    check_workers(spark)

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _numbers(batches):
            yield from work(number)

    return mapped(spark.range(0, count, 1, count), made, schema, what=what)


def frame_for_each(
    spark: SparkSession,
    inputs: Sequence[T],
    work: Callable[[T], Iterable[pa.RecordBatch]],
    schema: spark_types.StructType | str,
    *,
    what: str = "",
) -> DataFrame:
    """Return a frame of rows that tasks produce, one task for each input; see `numbered_frame`."""
    return numbered_frame(spark, len(inputs), _for_each(inputs, work), schema, what=what)


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        numbers: list[Any] = batch.column(0).to_pylist()
        yield from numbers


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """Set the description of this block's jobs in Spark's UI. No effect in remote sessions."""
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
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None removes the description


# --- files of jobs that fail or are cancelled


_GROUP: Final = "spark.jobGroup.id"
_LATEST_JOBS: Final = 8
_LONGEST_WAIT_S: Final = 10.0
_POLL_S: Final = 0.05


@contextmanager
def discarding_files(spark: SparkSession, discard: Callable[[], None] | None) -> Iterator[None]:
    """If the job of this block fails or is interrupted, wait until its tasks end, then `discard`.

    Tasks run on for a while after a job has failed or was cancelled: Spark kills a Python worker
    that does not stop within 2 s. Without the wait, their files would remain. Remote sessions
    cannot tell which tasks run, so there is no wait.

    Args:
        spark: the session.
        discard: deletes the files of the job; None if its tasks write none.
    """
    try:
        context = None if discard is None else spark.sparkContext
    except (AttributeError, PySparkException):  # a remote session has no Spark context
        context = None
    tag, group = f"deltalog-{uuid4().hex}", None
    if context is not None:
        group = context.getLocalProperty(_GROUP)
        context.addJobTag(tag)
    try:
        yield
    except BaseException:
        if context is not None:
            # After Ctrl-C, this thread's connection to the JVM may still await an answer.
            ending = Thread(target=_end_tasks, args=(context, tag, group), daemon=True)
            ending.start()
            ending.join(_LONGEST_WAIT_S)
        if discard is not None:
            discard()
        raise
    finally:
        if context is not None:
            context.removeJobTag(tag)


def _end_tasks(context: SparkContext, tag: str, group: str | None) -> None:
    """Cancel the jobs with a tag, and wait until none of their tasks runs.

    Args:
        context: the context of the jobs.
        tag: the tag.
        group: the group of the jobs; None means that they have no group.
    """
    with suppress(Exception):  # such as a context that was stopped, which has no tasks
        context.cancelJobsWithTag(tag)
        tracker = context.statusTracker()
        watch, clock = Stopwatch(), SystemClock()
        while _count_tasks(tracker, group) and watch.elapsed_ms() < _LONGEST_WAIT_S * 1000:
            clock.sleep(_POLL_S)


def _count_tasks(tracker: StatusTracker, group: str | None) -> int:
    """Return the number of running tasks of the latest jobs of a group."""
    found = 0
    for number in sorted(tracker.getJobIdsForGroup(group))[-_LATEST_JOBS:]:
        job = tracker.getJobInfo(number)
        for stage in () if job is None else map(tracker.getStageInfo, job.stageIds):
            found += 0 if stage is None else stage.numActiveTasks
    return found
