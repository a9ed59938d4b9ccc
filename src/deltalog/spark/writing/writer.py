"""The batch writer of the format `deltalog`.

Owns how PySpark's Python Data Source API drives a write: the writer is made in one process, its
`write` runs in tasks, and its `commit` in a third process.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from deltalog.errors import DeltaError
from deltalog.rows.write_task import no_files
from deltalog.spark.engine.write_tasks import write_task, written_by
from deltalog.spark.session.refusals import task_settings
from deltalog.spark.session.tasks import decode_message, encode_message, report
from deltalog.spark.session.workers import InEnvelope
from deltalog.spark.writing.plan import plan_write

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import types as spark_types

    from deltalog.spark.writing.options import WriteOptions
    from deltalog.storage.store import Store
    from deltalog.table.creating import TablePlace


@dataclass
class TaskMessage(WriterCommitMessage):
    """The report of a finished task to the driver.

    Args:
        message: of `write_task`.
        query: Spark's id of the query, for streams.
        plan: encoded, for a stream's batch.
        settings: of the session, for a batch.
    """

    message: bytes
    query: str | None = None
    plan: bytes | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


class BatchWriter(InEnvelope, DataSourceArrowWriter):
    """Writes one data frame.

    Args:
        place: of the table.
        columns: of the data frame.
        options: of the write.

    Raises:
        SchemaMismatchError, InvalidInputError: the write cannot be; no task has run yet.
    """

    def __init__(
        self, place: TablePlace, columns: spark_types.StructType, options: WriteOptions
    ) -> None:
        self._plan = plan_write(place, columns, options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:  # type: ignore[override]  # PySpark's own
        """Write the rows of one task."""
        if self._plan.is_done:
            return TaskMessage(encode_message(no_files(self._plan.job.spec)))
        settings = task_settings()
        message = report(lambda: write_task(self._plan.under(settings).job, iterator))
        return TaskMessage(message, settings=settings)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit what all tasks have written as a new version of the table."""
        plan = self._plan
        written = written_by(plan.job.spec, messages_of(messages))
        if not plan.is_done:
            told = [message.settings for message in messages if isinstance(message, TaskMessage)]
            plan.under(told[0] if told else {}).commit(written)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what tasks have written, if some task has failed.

        If no task failed, the commit did; it has deleted the files unless they may be in the table.
        """
        if all(message is not None for message in messages):
            return
        remove_files(self._plan.context.store, messages_of(messages))


def messages_of(messages: Sequence[WriterCommitMessage | None]) -> list[bytes]:
    """Return the messages of the tasks that finished."""
    return [message.message for message in messages if isinstance(message, TaskMessage)]


def remove_files(store: Store, messages: Sequence[bytes]) -> None:
    """Delete what tasks have written."""
    for message in messages:
        try:
            written = decode_message(message)
        except DeltaError:  # of a task that has deleted its own files
            continue
        store.delete_many(list(written.paths))
