"""The plan of a write by the format: how it changes the table, and how tasks write files.

Spark plans and commits a write in different processes. `plan_write` returns the input of the tasks,
and `WritePlan.commit` commits the files that the tasks wrote. Both run the operation `Write`:
`plan_write` with an engine that only plans, `commit` with an engine that only commits.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.escaping import name_key
from deltalog._util.observing import WorkKind, observed
from deltalog.catalogs.table_uri import named_table, naming
from deltalog.data.write.enforce import Enforcer
from deltalog.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    InvalidInputError,
    TableNotFoundError,
)
from deltalog.expressions import TextRules
from deltalog.log.listing import has_table
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.log.snapshot.locations import check_new_location
from deltalog.operations.arguments import as_condition
from deltalog.operations.changes.request import ChangeMetrics, RowCounts
from deltalog.operations.changes.task_writes import WriteJob, no_files
from deltalog.operations.engine import Engine, LocalEngine, RowSource
from deltalog.operations.execute import EngineMaintenance, make_table, stage
from deltalog.operations.write import RowsWritten, Write
from deltalog.schema import StructType, to_arrow_schema
from deltalog.spark.reading.conditions import check_zone
from deltalog.spark.session.known_settings import DEFAULTS
from deltalog.spark.session.opening import names_a_version, open_latest
from deltalog.spark.session.settings import SessionSettings, read_settings
from deltalog.spark.session.types import schema_of
from deltalog.table.creating import TablePlace
from deltalog.table.defaults import new_table_with_defaults
from deltalog.transaction import (
    CommitOptions,
    Committed,
    PendingTransaction,
    commit,
    tell_commit,
)
from deltalog.transaction.pending import discard, discarding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import types as spark_types

    from deltalog.catalogs.protocol import NewNamedTable
    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions import Expression
    from deltalog.log.context import TableContext
    from deltalog.operations.changes.request import ChangeRequest, PlannedChange
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.spark.session.opening import Location
    from deltalog.spark.writing.options import WriteOptions

_UTC: Final = "UTC"


def open_to_write(table: Location, storage: Mapping[str, Any] | None = None) -> TablePlace:
    """Return the location and context of an existing or new table, with the time zone UTC.

    Args:
        table: a location, a store, or a table of a catalog, which may not exist yet.
        storage: options for the store, or for the catalog.

    Raises:
        InvalidInputError: the location contains a version.
    """
    named = named_table(table, storage or None)
    if named is not None and named.at is not None:
        raise names_a_version(table, "write to")
    if named is not None and named.catalog.find(named.name) is None:
        new = named.stage()
        return TablePlace(context=new.staged.context, new=new)
    where = table if named is None else named.catalog.open(named.name)
    return TablePlace(context=open_latest(where, storage, doing="write to", time_zone=_UTC))


class PlanningEngine(LocalEngine):
    """Engine that writes no rows, but records how tasks must write them.

    Attributes:
        job: the input of the tasks. Set when an operation calls `write_rows`.
    """

    def __init__(self) -> None:
        self.job: WriteJob | None = None

    def plan_change(self, transaction: PendingTransaction, request: ChangeRequest) -> PlannedChange:
        """Return a change of no rows, because the commit searches for the rows to replace."""
        del transaction, request
        return NothingFound()

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Record how rows will be written."""
        del rows, tells_changes  # unused, because the commit deletes unnecessary change files
        feed = predicate is not None and spec.configuration.change_data_feed_enabled
        self.job = WriteJob(spec=spec, predicate=predicate, tells_changes=feed)
        return no_files(spec)


class NothingFound:
    """The change of no rows; see `PlannedChange`."""

    def apply(self) -> ChangeMetrics:
        """Change nothing."""
        return ChangeMetrics(rows=RowCounts())

    def preview(self) -> Any:
        """Raise an error, because a planned write has no preview."""
        raise InvalidInputError("cannot preview a write that is only planned")

    def explain(self) -> str:
        """Explain that planning does not search for rows."""
        return "no rows are looked for while a write is planned"


class CommittingEngine(LocalEngine):
    """Engine that writes no rows, but returns the files that tasks have written.

    Args:
        written: the files of all tasks.

    Attributes:
        unneeded: the paths of change data files that are not needed.
    """

    def __init__(self, written: WrittenFiles) -> None:
        self._written = written
        self.unneeded: tuple[str, ...] = ()

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Return the files of the tasks, without change data files that are not needed."""
        del spec, rows, predicate  # the tasks have already written and checked the rows
        cdc = self._written.cdc
        self.unneeded = () if tells_changes else tuple(action.path for action in cdc)
        return replace(self._written, cdc=()) if self.unneeded else self._written


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite(Write):
    """A write whose files were already written.

    Args:
        configuration: the configuration of the table after the write. Its physical column names are
            those in the files.
    """

    configuration: TableConfiguration

    def stage(self, transaction: PendingTransaction, engine: Engine) -> RowsWritten:
        """Change the table's metadata as planned, and add the files."""
        if transaction.configuration.metadata != self.configuration.metadata:
            transaction.set_configuration(self.configuration)
        return Write.stage(self, transaction, engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """A planned write, which can be pickled and sent to other processes.

    Args:
        context: the context of the table.
        new: the staged new table of a catalog, which is notified when the table is created; None if
            no catalog creates the table.
        version: the version on which the plan is based; None if the write creates the table.
        configuration: the configuration of the table after the write.
        options: the options of the write.
        schema: the schema of the data.
        job: the input of the tasks.
        is_done: whether the table has already recorded the application transaction of the write.
    """

    context: TableContext
    new: NewNamedTable | None = None
    version: int | None
    configuration: TableConfiguration
    options: WriteOptions
    schema: pa.Schema
    job: WriteJob
    is_done: bool = False

    def under(self, given: Mapping[str, str]) -> WritePlan:
        """Return the plan with the session's settings applied to its options.

        Args:
            given: the result of `task_settings`. It is empty outside of a task.

        Raises:
            InvalidInputError: the plan would have been different with a setting, or deltalog does
                not support a setting.
        """
        if not given:
            return self
        settings = read_settings(given)
        if self.version is None:
            _check_defaults(self, settings)
        options = self.options.under(settings)
        if options.zone != self.options.zone:
            self._check_predicate(options)
        context = replace(self.context, time_zone=options.zone)
        most = options.files.max_rows_per_file
        spec = replace(self.job.spec, time_zone=options.zone, max_rows_per_file=most)
        job = replace(self.job, spec=spec, gathers=options.optimize_write)
        return replace(self, options=options, context=context, job=job)

    def _check_predicate(self, options: WriteOptions) -> None:
        where, schema = options.replace_where, self.configuration.schema
        if isinstance(where, str):
            predicate = as_condition(
                schema, where, session=self.context.session, text_rules=TextRules.NONE
            )
            if predicate is not None:
                check_zone(where, predicate, schema, options.zone)

    def commit(self, written: WrittenFiles, *, latest: Snapshot | None = None) -> int | None:
        """Commit the files of the tasks, and run the post-commit hooks.

        After a conflict, only the search for the rows to replace is repeated. The new rows do not
        depend on the table, so their files remain valid.

        Args:
            written: the files.
            latest: the latest version of the table, if this process has just opened it.

        Returns:
            The new version. None if the table had already recorded the application transaction; the
            files are then deleted.

        Raises:
            CommitFailedError: commits of other writers conflicted with the write in every attempt,
                or the table's metadata has changed.
        """
        engine = CommittingEngine(written)
        options = CommitOptions(properties=self.options.commit_properties, hooks=self.options.hooks)
        settled = replace(self.options, merge_schema=False, overwrite_schema=False)
        write = PlannedWrite(
            data=self.schema.empty_table(),
            configuration=self.configuration,
            **settled.arguments(self.configuration),
        )
        version = self.version
        if version is None:
            done = make_table(
                *(write, self.context, self.configuration, engine, options),
                takes_files=True,  # of the tasks
            ).committed
            if self.new is not None:
                self.new.register(done.snapshot)
        else:
            if latest is not None and latest.version == version:
                base = latest.with_time_zone(self.context.time_zone)
            else:
                base = load_snapshot(self.context, version=version)
            if base.metadata.id != self.configuration.metadata.id:
                raise TableNotFoundError(
                    f"cannot commit to {base.store.root}: the rows were written for the table with "
                    f"id {self.configuration.metadata.id!r}, but the table there now has the id "
                    f"{base.metadata.id!r}; nothing was committed; write again"
                )
            done = _commit_on(base, write, engine, written.paths, options)
        if done.skipped:
            self.context.store.delete_many(list(written.paths))
            return None
        if engine.unneeded:
            self.context.store.delete_many(engine.unneeded)
        return done.version


_ON_ROWS: Final = (ConcurrentAppendError, ConcurrentDeleteReadError, ConcurrentDeleteDeleteError)
"""The conflicts about rows. A write whose files exist can be repeated after them."""


def _commit_on(
    base: Snapshot,
    write: PlannedWrite,
    engine: CommittingEngine,
    paths: Sequence[str],
    options: CommitOptions,
) -> Committed:
    """Commit a write on a version; after a conflict about rows, on the newest version.

    Args:
        base: the version on which the write was planned.
        write: the write.
        engine: returns the files of the tasks.
        paths: the files of the tasks. They are deleted if the write fails.
        options: the options of the commit.
    """
    read, retries, root = base, 0, base.store.root
    with observed(
        WorkKind.OPERATION, write.name, table=root, operation=write.name, is_skipped=True
    ) as work:
        while True:
            transaction = PendingTransaction(
                read.context, read, operation=write.name, parameters=write.logged_parameters()
            )
            with discarding(transaction):
                transaction.own_paths.extend(paths)
                stage(write, transaction, engine)
                try:
                    done = commit(transaction, options, maintenance=EngineMaintenance(engine))
                except _ON_ROWS:
                    read = read.refresh(same_table=True)
                    if retries >= options.max_retries or read.configuration != base.configuration:
                        raise
                else:
                    if not done.skipped:
                        version, tries = done.version, done.num_retries
                        tell_commit(work, transaction, version=version, num_retries=tries)
                    return done
                # The next attempt commits the same files, but has its own deletion vectors.
                transaction.own_paths[:] = set(transaction.own_paths).difference(paths)
                discard(transaction)
            retries += 1


def plan_write(
    place: TablePlace, columns: spark_types.StructType, options: WriteOptions
) -> WritePlan:
    """Plan a write before any of its rows are computed.

    Args:
        place: the location of the table, which may not exist yet, and its context.
        columns: the columns of the data.
        options: the options of the write.

    Raises:
        SchemaMismatchError: the columns do not match the table's schema.
        InvalidInputError: the options contradict the existing table.
    """
    return plan_write_on(open_existing(place, options), place, columns, options)


def open_existing(place: TablePlace, options: WriteOptions) -> Snapshot | None:
    """Open the latest version of the table to write to; None if the write creates the table.

    Args:
        place: the location of the table, and its context.
        options: the options of the write.
    """
    context = replace(place.context, time_zone=options.zone)
    if not has_table(context.store):
        return None
    with naming(context.store.root):
        return load_snapshot(context)


def plan_write_on(
    snapshot: Snapshot | None,
    place: TablePlace,
    columns: spark_types.StructType,
    options: WriteOptions,
) -> WritePlan:
    """Plan a write on a version; see `plan_write`.

    Args:
        snapshot: the result of `open_existing`.
        place: the location of the table, and its context.
        columns: the columns of the data.
        options: the options of the write.
    """
    source = schema_of(columns)
    schema = to_arrow_schema(source)
    context = replace(place.context, time_zone=options.zone)
    version, is_done = None, False
    if snapshot is not None:
        check_options(snapshot, options)
        version, is_done = snapshot.version, is_recorded(snapshot, options)
        transaction = PendingTransaction(context, snapshot, operation="WRITE")
        job = WriteJob(spec=options.files.spec_for(transaction))
        if not is_done:
            engine = PlanningEngine()
            arguments = options.arguments(snapshot.configuration)
            stage(Write(data=schema.empty_table(), **arguments), transaction, engine)
            job = engine.job or job
    else:
        made = new_configuration(place, source, options)
        job = WriteJob(spec=options.files.spec(context, made))
    if not is_done:
        Enforcer.of_spec(job.spec, schema)
    return WritePlan(
        context=context,
        new=place.new,
        version=version,
        configuration=job.spec.configuration,
        options=options,
        schema=schema,
        job=job,
        is_done=is_done,
    )


def new_configuration(
    place: TablePlace, source: StructType, options: WriteOptions
) -> TableConfiguration:
    """Return the protocol and metadata of a table that a write creates."""
    if not source.names:
        raise InvalidInputError(
            f"cannot create a table at {place.context.store.root}: the data has no columns"
        )
    check_new_location(place.context.store)  # before the tasks write files
    return new_table_with_defaults(
        source,
        partition_columns=options.partition_by or (),
        configuration=dict(options.properties),
        clustering_columns=options.cluster_by,
        place=place.new,
    )


def check_options(snapshot: Snapshot, options: WriteOptions) -> None:
    """Refuse options of a write that contradict the existing table.

    Raises:
        InvalidInputError: the table has other partition columns, or the result of the predicate
            depends on the session's time zone.
    """
    if options.cluster_by is not None:
        raise InvalidInputError(
            f"cannot set the clustering columns {list(options.cluster_by)} in a write to "
            f"{snapshot.store.root}: the table exists; use ALTER TABLE … CLUSTER BY to change its "
            "clustering columns"
        )
    own, schema = snapshot.configuration.partition_columns, snapshot.configuration.schema
    where, asked = options.replace_where, options.partition_by
    if isinstance(where, str):
        predicate = as_condition(
            schema, where, session=snapshot.context.session, text_rules=TextRules.NONE
        )
        if predicate is not None:
            check_zone(where, predicate, schema, options.zone)
    if asked is None or options.schema_mode == "overwrite":
        return
    if [name_key(name) for name in asked] != [name_key(name) for name in own]:
        raise InvalidInputError(
            f"cannot write to {snapshot.store.root} partitioned by {list(asked)}: the table is "
            f"partitioned by {list(own)}; use mode 'overwrite' with overwriteSchema to change this"
        )


def _check_defaults(plan: WritePlan, settings: SessionSettings) -> None:
    """Refuse to create a table if the session has default properties that the plan lacks."""
    given = {name_key(name) for name in plan.options.properties}
    for name, text in settings.defaults:
        if name_key(name) not in given:
            raise InvalidInputError(
                f"cannot create the table {plan.context.store.root}: the session's setting "
                f"{DEFAULTS}{name.removeprefix('delta.')}={text!r} applies to it, but the format "
                f"plans without access to settings; set the option {name}, or create the table "
                "with deltalog.spark.write"
            )


def is_recorded(snapshot: Snapshot, options: WriteOptions) -> bool:
    """Return whether the table has already recorded the application transaction."""
    if options.app is None:
        return False
    known = snapshot.app_transactions.get(options.app.app_id)
    return known is not None and known.version >= options.app.version
