"""The stream writer of the format `deltalog`, which writes each batch of a query exactly once.

A commit records the query id and the batch number as an application transaction. If Spark runs a
batch again after a crash, the batch is skipped. Spark plans and commits a batch in different
processes, so the tasks return the plan with their messages.

Protocol: Transaction Identifiers
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from deltalog.errors import InvalidInputError
from deltalog.spark.engine.rows import write_task, written_by
from deltalog.spark.session.known_settings import task_settings
from deltalog.spark.session.tasks import decode_message, encode_message, report
from deltalog.spark.session.workers import InEnvelope, naming_credentials
from deltalog.spark.table import DeltaTable
from deltalog.spark.writing.plan import WritePlan, open_existing, plan_write_on
from deltalog.spark.writing.writer import TaskMessage, messages_of, remove_files
from deltalog.transaction.properties import AppTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql import types as spark_types

    from deltalog.spark.merge import DeltaMergeBuilder
    from deltalog.spark.writing.options import WriteOptions
    from deltalog.table.creating import TablePlace

_QUERY: Final = "sql.streaming.queryId"
"""The local property with which Spark passes the id of a streaming query to tasks."""


class StreamWriter(InEnvelope, DataSourceStreamArrowWriter):
    """Writer of the batches of a streaming query.

    Args:
        place: the location of the table, and its context.
        columns: the columns of the stream.
        options: the options of the write. If `txnAppId` is set, it replaces the query id.

    Raises:
        SchemaMismatchError: the columns do not match the table's schema.
        InvalidInputError: the options contradict the existing table.
    """

    def __init__(
        self, place: TablePlace, columns: spark_types.StructType, options: WriteOptions
    ) -> None:
        self._latest = open_existing(place, options)
        self._plan = plan_write_on(self._latest, place, columns, options)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the plan for tasks."""
        return {"_plan": self._plan}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:  # type: ignore[override]  # PySpark's base classes have two types of `iterator`
        """Write the rows of one task of a batch."""
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY)
        plans: list[WritePlan] = []

        def work() -> object:
            plans.append(self._plan.under(task_settings()))
            return write_task(plans[0].job, iterator)

        with naming_credentials():
            message = report(work)
        return TaskMessage(message, query=query, plan=encode_message((*plans, self._plan)[0]))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # PySpark's name
        """Commit the files of a batch exactly once."""
        found = [message for message in messages if isinstance(message, TaskMessage)]
        if not found:
            return
        plan = _plan_of(found[0], batchId)
        plan.commit(written_by(plan.job.spec, messages_of(messages)), latest=self._latest)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # PySpark's name
        """Delete the files of a batch's tasks after a task has failed."""
        del batchId
        if any(message is None for message in messages):
            remove_files(self._plan.context.store, messages_of(messages))


def _plan_of(message: TaskMessage, batch: int) -> WritePlan:
    """Return the plan that a task has returned, with the query id and the batch number."""
    plan: WritePlan = decode_message(message.plan or b"")
    given = plan.options.app
    query = message.query if given is None else given.app_id
    if query is None:
        raise InvalidInputError(
            f"cannot write batch {batch} to {plan.context.store.root} exactly once: Spark provides "
            "no query id; set the option txnAppId"
        )
    app, logged = AppTransaction(query, batch), (message.query or query, batch)
    return replace(plan, options=replace(plan.options, app=app, batch=logged))


# --- merge of a stream into a table, by `foreachBatch`


def merge_batches(
    table: str,
    condition: str,
    clauses: Callable[[DeltaMergeBuilder], DeltaMergeBuilder],
    *,
    app_id: str,
    prepare: Callable[[DataFrame], DataFrame] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that merges each batch into a table exactly once.

    Args:
        table: the location of the table, whose alias in Spark SQL is `t`.
        condition: Spark SQL that is true for rows that match. The alias of the batch is `s`.
        clauses: a function that adds the clauses to the builder of a merge, such as
            `lambda m: m.whenMatchedUpdateAll().whenNotMatchedInsertAll()`.
        app_id: an id that no other query uses. The table records this id with the batch number, so
            that a repeated batch is skipped.
        prepare: a function that computes the source of the merge from a batch, such as
            `lambda df: df.dropDuplicates(["id"])`. Useful because a batch may contain several rows
            with the same key, but only one row of the source may match a row of the table.
        storage_options: credentials and settings for the store.
    """

    def merge(batch: DataFrame, number: int) -> None:
        source = batch if prepare is None else prepare(batch)
        found = DeltaTable.forPath(batch.sparkSession, table, storage_options=storage_options)
        begun = found.inTransaction(app_id, number).alias("t").merge(source.alias("s"), condition)
        clauses(begun).execute()

    return merge
