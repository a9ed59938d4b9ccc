"""Write the rows of a data frame: by Spark's own writer, or by the tasks that compute them.

Protocol: none
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.schema import to_arrow_schema
from deltalog.spark.engine.native_rows import is_fit, write_natively
from deltalog.spark.engine.write_tasks import write_task, written_by
from deltalog.spark.session.tasks import run_tasks
from deltalog.spark.session.types import quoted, schema_of
from deltalog.write.enforce import Enforcer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from deltalog.rows.write_task import WriteJob
    from deltalog.write.written import WrittenFiles


class SparkRows:
    """The rows of a data frame.

    Args:
        frame: the rows.
        gathers: whether they are gathered by partition first; None follows the table's property.
    """

    def __init__(self, frame: DataFrame, *, gathers: bool | None) -> None:
        self.schema: pa.Schema = to_arrow_schema(schema_of(frame.schema))
        self._frame = frame
        self._gathers = gathers

    def write(self, job: WriteJob) -> WrittenFiles:
        """Write the rows in one job: by Spark's own writer where it is fit, else by our tasks.

        Raises:
            SchemaMismatchError: the rows do not fit the table; no task has run yet.
        """
        sources = Enforcer.of_spec(job.spec, self.schema).sources
        if sources is not None and is_fit(job, self._frame.sparkSession):
            return write_natively(self._frame, sources, job.spec)
        what = f"writing to {job.spec.store.root}"
        messages = run_tasks(self._gathered(job), partial(write_task, job), what)
        return written_by(job.spec, messages)

    def _gathered(self, job: WriteJob) -> DataFrame:
        configuration, wanted = job.spec.configuration, self._gathers
        columns = configuration.partition_columns
        wanted = configuration.optimizes_writes if wanted is None else wanted
        if not wanted or not columns:
            return self._frame
        return self._frame.hint("rebalance", *(F.col(quoted(name)) for name in columns))
