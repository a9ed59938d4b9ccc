"""The batch writer of the format `deltalog`.

PySpark's Python Data Source API creates the writer in one process, calls `write` in tasks, and
calls `commit` in another process.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from deltalog._util.escaping import name_key
from deltalog._util.readable import counted
from deltalog.data.write.open_files import discard_job, new_job
from deltalog.errors import DeltaError, SchemaMismatchError
from deltalog.expressions import to_sql
from deltalog.operations.changes.task_writes import no_files
from deltalog.spark.engine.row_tasks import as_type_of, checked_values
from deltalog.spark.engine.rows import write_task, written_by
from deltalog.spark.session.known_settings import task_settings
from deltalog.spark.session.tasks import decode_message, encode_message, report
from deltalog.spark.session.workers import InEnvelope, naming_credentials
from deltalog.spark.writing.plan import plan_write
from deltalog.statements.statement import absent_partitions, advice_on_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import types as spark_types

    from deltalog.expressions import Expression
    from deltalog.spark.writing.options import WriteOptions
    from deltalog.storage.store import Store
    from deltalog.table import DeltaTable
    from deltalog.table.creating import TablePlace


@dataclass
class TaskMessage(WriterCommitMessage):
    """The message of a finished task to the driver.

    Args:
        message: the result of `write_task`.
        query: the id of Spark's query; only set for streams.
        plan: the encoded plan of the write; only set for streams.
        settings: the settings of the session; only set for batch writes.
    """

    message: bytes
    query: str | None = None
    plan: bytes | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


class BatchWriter(InEnvelope, DataSourceArrowWriter):
    """Writer of one dataframe to a table.

    Args:
        place: the location of the table, and its context.
        columns: the columns of the dataframe.
        options: the options of the write.

    Raises:
        SchemaMismatchError: the columns do not match the table's schema.
        InvalidInputError: the options contradict the existing table.
    """

    def __init__(
        self, place: TablePlace, columns: spark_types.StructType, options: WriteOptions
    ) -> None:
        plan, self._job_id = plan_write(place, columns, options), new_job()
        spec = replace(plan.job.spec, job=self._job_id)
        self._plan = replace(plan, job=replace(plan.job, spec=spec))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:  # type: ignore[override]  # PySpark's base classes have two types of `iterator`
        """Write the rows of one task."""
        if self._plan.is_done:
            return TaskMessage(encode_message(no_files(self._plan.job.spec)))
        settings = task_settings()
        with naming_credentials():
            message = report(lambda: write_task(self._plan.under(settings).job, iterator))
        return TaskMessage(message, settings=settings)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks as a new version of the table."""
        plan = self._plan
        written = written_by(plan.job.spec, messages_of(messages))
        if not plan.is_done:
            settings = [
                message.settings for message in messages if isinstance(message, TaskMessage)
            ]
            plan.under(settings[0] if settings else {}).commit(written)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of all tasks after a task has failed or the job was cancelled.

        If no task has failed, the commit has failed. `commit` itself then deletes the files, unless
        the table may contain them.
        """
        if all(message is not None for message in messages):
            return
        discard_job(self._plan.context.store, self._job_id)


def messages_of(messages: Sequence[WriterCommitMessage | None]) -> list[bytes]:
    """Return the messages of the tasks that finished."""
    return [message.message for message in messages if isinstance(message, TaskMessage)]


def remove_files(store: Store, messages: Sequence[bytes]) -> None:
    """Delete the files in the messages of tasks."""
    for message in messages:
        try:
            written = decode_message(message)
        except DeltaError:  # the task has failed, and has deleted its own files
            continue
        store.delete_many(list(written.paths))


# --- conversion of rows to the columns and types of a table, by Spark's store assignment


def fitted(
    spark: SparkSession,
    frame: DataFrame,
    table: DeltaTable,
    *,
    columns: Sequence[str] | None,
    constants: Mapping[str, Expression] = MappingProxyType({}),
    evolves: bool = False,
) -> DataFrame:
    """Return the rows of a frame with the columns and types of a table.

    Args:
        spark: the session.
        frame: the rows.
        table: the table into which the rows are inserted.
        columns: the columns of the table in the order of the frame's columns; None matches columns
            by name.
        constants: the name of a column → its value in all rows.
        evolves: whether the frame may contain columns that the table lacks. If `columns` is set,
            new columns must follow the columns of the table.

    Raises:
        SchemaMismatchError: the frame's columns do not match the table's.
    """
    schema = table.snapshot.configuration.schema
    known = {name_key(name): name for name in schema.names}
    given = frame.columns
    more = given[len(columns) :] if columns is not None and evolves else []
    if columns is not None and len(columns) + len(more) != len(given):
        raise SchemaMismatchError(
            f"cannot insert into {table.table_uri}: expected {counted(len(columns), 'column')} "
            f"({', '.join(columns)}), found {len(given)} ({', '.join(given)})"
            f"{advice_on_columns(table, columns, len(given))}"
        )
    frame = frame.toDF(*(f"c{place}" for place in range(len(given))))
    values: dict[tuple[str, ...], Column] = {}
    extra: list[Column] = []
    for place, name in enumerate(given if columns is None else [*columns, *more]):
        is_extra = evolves and (columns is None or place >= len(columns))
        if is_extra and name_key(name) not in known:
            extra.append(F.col(f"c{place}").alias(name))
        elif columns is not None and is_extra:
            raise SchemaMismatchError(
                f"cannot insert into {table.table_uri}: expected {counted(len(columns), 'column')} "
                f"({', '.join(columns)}), followed by new columns, found {name!r} again"
            )
        elif name_key(name) in known:
            values[(known[name_key(name)],)] = F.col(f"c{place}")
        else:
            raise SchemaMismatchError(
                f"cannot insert into {table.table_uri}: the table has no column {name!r}"
            )
    given_names = (path[0] for path in values)
    absent = absent_partitions(table, {*constants, *given_names})
    for name, value in {**constants, **absent}.items():
        values[(known.get(name_key(name), name),)] = F.expr(to_sql(value))
    checked = checked_values(schema, values, spark)
    parts = [as_type_of(schema, path, value).alias(path[0]) for path, value in checked.items()]
    return frame.select(*parts, *extra)
