"""`deltalog.spark.write`: a data frame into a table, in any mode.

Owns the driver's side: tasks write files, and one commit names them. Unlike a format's writer it
may run jobs of its own, so it knows all modes, and begins anew where another writer won.

Protocol: none
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.arguments import check_given, has_table
from deltalog.context import TableContext
from deltalog.errors import CommitConflictError, InvalidInputError, TableExistsError
from deltalog.rows.gather import optimizes_writes
from deltalog.schema import to_arrow_schema
from deltalog.spark.engine.core_table import ClusterTable
from deltalog.spark.engine.statements import stage_spark_delete
from deltalog.spark.reading.scan import scan
from deltalog.spark.session.opening import session_time_zone
from deltalog.spark.session.parts import TaskSpec, run_tasks, write_task, written_by
from deltalog.spark.session.settings import session_defaults, session_user_metadata
from deltalog.spark.session.types import quoted
from deltalog.spark.writing.options import WriteOptions
from deltalog.spark.writing.plan import (
    check_partitions,
    new_configuration,
    open_to_write,
    schema_of,
    stage_write,
)
from deltalog.table.creating import make_table
from deltalog.transaction.properties import AppTransaction
from deltalog.verbs.append import stage_append
from deltalog.write.enforce import Enforcer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import PurePath

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from deltalog.expressions import Expression
    from deltalog.spark.reading.scan import SparkScan
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles

    Mode = Literal["error", "errorifexists", "append", "overwrite", "ignore"]

_MODES: Final = ("error", "errorifexists", "append", "overwrite", "ignore")
_ERRORS: Final = ("error", "errorifexists")


def write(  # noqa: PLR0913  # each is the caller's choice
    frame: DataFrame,
    table: str | PurePath | Store,
    *,
    mode: Mode = "error",
    partition_by: Sequence[str] | str | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    replace_where: str | Expression | None = None,
    partition_overwrite: Literal["static", "dynamic"] = "static",
    properties: Mapping[str, str] | None = None,
    txn: tuple[str, int] | None = None,
    user_metadata: str | None = None,
    target_file_size: int | None = None,
    optimize_write: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int | None:
    """Write a data frame to a table; it is made if it is not there.

    Args:
        frame: of any session, classic or remote.
        table: its location.
        mode: `error` (or `errorifexists`) if there is a table, `append`, `overwrite`, or
            `ignore`: do nothing if there is a table.
        partition_by: partition columns of a new table, or with `overwrite_schema` the new ones.
        merge_schema: columns that only the frame has are added to the table.
        overwrite_schema: with mode `overwrite`: the table gets the frame's schema.
        replace_where: with mode `overwrite`: only rows for which it is true are replaced, and
            every new row must match it.
        partition_overwrite: `dynamic` with mode `overwrite`: only the partitions are replaced that
            new rows fall into.
        properties: of a new table, such as `{"delta.enableChangeDataFeed": "true"}`; the
            session's `spark.databricks.delta.properties.defaults.…` come behind them.
        txn: an application and its version: a write that is there already is skipped.
        user_metadata: a text for the history; None is the session's
            `spark.databricks.delta.commitInfo.userMetadata`.
        target_file_size: bytes; None follows `delta.targetFileSize`, then 128 MiB.
        optimize_write: gather the rows of each partition in few tasks first; None does what the
            table's `delta.autoOptimize.optimizeWrite` says.
        storage_options: credentials and settings for the store.

    Returns:
        The version that was made; None if nothing had to be written.

    Raises:
        TableExistsError: mode `error`, and there is a table.
        SchemaMismatchError: the frame does not fit the table; told before any task runs.
        ConstraintViolationError: rows break a rule of the table.
        CommitFailedError: another writer won; the table is as it was.

    Cost: one job; the rows pass no other process than the tasks that compute them.
    """
    for name, value, known in (
        ("mode", mode, _MODES),
        ("partition_overwrite", partition_overwrite, ("static", "dynamic")),
    ):
        if value not in known:
            expected = ", ".join(map(repr, known))
            raise InvalidInputError(f"{name}: expected one of {expected}, found {value!r}")
    check_given(replace_where)
    columns = [partition_by] if isinstance(partition_by, str) else partition_by
    options = WriteOptions(
        mode="overwrite" if mode == "overwrite" else "append",
        partition_by=None if columns is None else tuple(columns),
        merge_schema=merge_schema,
        overwrite_schema=overwrite_schema,
        replace_where=replace_where,
        dynamic=partition_overwrite == "dynamic",
        app=None if txn is None else AppTransaction(*txn),
        user_metadata=user_metadata or session_user_metadata(frame.sparkSession),
        target_file_size_bytes=target_file_size,
        time_zone=session_time_zone(frame.sparkSession),
        properties=dict(properties or {}),
    )
    store = open_to_write(table, storage_options)
    rows = SparkRows(frame, optimize=optimize_write)
    if not has_table(store):
        try:
            return _make(store, rows, options)
        except CommitConflictError:
            if mode in _ERRORS:
                raise
            # Somebody else made a table there first: the write goes on as a write to that one.
    if mode == "ignore":
        return None
    if mode in _ERRORS:
        raise TableExistsError(
            f"cannot create a table at {store.root}: there is one; use mode='append' or "
            "mode='overwrite'"
        )
    return _change(rows, options, scan(frame.sparkSession, table, storage_options=storage_options))


class SparkRows:
    """The rows of a data frame, written by the tasks that compute them.

    Args:
        frame: the rows.
        optimize: whether they are gathered by partition; None does what the table says.
    """

    def __init__(self, frame: DataFrame, *, optimize: bool | None = None) -> None:
        self.session = frame.sparkSession
        self.source = schema_of(frame.schema)
        self.schema: pa.Schema = to_arrow_schema(self.source)
        self._frame = frame
        self._optimize = optimize

    def write_to(
        self, spec: WriteSpec, *, predicate: Expression | None = None, tells_changes: bool = False
    ) -> WrittenFiles:
        """One job that writes them."""
        Enforcer.of_spec(spec, self.schema)  # what does not fit is told before a task runs
        task = TaskSpec(spec=spec, predicate=predicate, tells_changes=tells_changes)
        messages = run_tasks(
            self._gathered(spec),
            lambda batches: write_task(task, batches),
            f"writing to {spec.store.root}",
        )
        return written_by(spec, messages)

    def _gathered(self, spec: WriteSpec) -> DataFrame:
        wanted = self._optimize
        if wanted is None:
            wanted = optimizes_writes(spec.configuration)
        columns = spec.configuration.partition_columns
        if not wanted or not columns:
            return self._frame
        return self._frame.hint("rebalance", *(F.col(quoted(name)) for name in columns))


def _make(store: Store, rows: SparkRows, options: WriteOptions) -> int | None:
    with session_defaults(rows.session):
        configuration = new_configuration(store, rows.source, options)
    committed = make_table(
        TableContext(store=store, time_zone=options.time_zone),
        configuration,
        lambda pending: stage_append(pending, rows, options=options.files),
        operation="WRITE",
        parameters=options.shown,
        commit_properties=options.commit_properties,
    )
    return committed.version


def _change(rows: SparkRows, options: WriteOptions, found: SparkScan) -> int | None:
    store, zone = found.snapshot.store, options.time_zone
    table = ClusterTable(found.spark, store, time_zone=zone)
    check_partitions(table.snapshot, options)
    delete = partial(stage_spark_delete, scan=found)

    def stage(pending: PendingTransaction) -> object:
        return stage_write(pending, rows, options, delete=delete)

    ran = table.run(
        "WRITE",
        stage,
        parameters=options.shown,
        commit_properties=options.commit_properties,
    )
    return None if ran.committed.skipped else ran.committed.version
