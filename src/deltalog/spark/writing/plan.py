"""A write, understood on the driver: which table it makes or changes, and how tasks write.

Owns the two halves of a write that Spark runs in different processes: `plan_write` says what tasks
need, `WritePlan.commit` takes what they have written. Modes, schemas and rules are the core's.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltalog.arguments import as_condition, has_table, naming
from deltalog.context import TableContext
from deltalog.errors import InvalidInputError
from deltalog.schema import StructType, parse_schema, to_arrow_schema
from deltalog.snapshot import load_snapshot
from deltalog.spark.reading.conditions import check_zone
from deltalog.spark.session.opening import open_latest
from deltalog.spark.session.parts import TaskSpec, no_files
from deltalog.spark.session.types import as_nullable
from deltalog.table.creating import make_table, new_table_with_defaults
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import run
from deltalog.verbs.append import stage_append
from deltalog.verbs.delete import Deleted, stage_delete
from deltalog.verbs.overwrite import (
    stage_overwrite,
    stage_overwrite_partitions,
    stage_replace_where,
)
from deltalog.write.enforce import Enforcer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import PurePath

    import pyarrow as pa
    from pyspark.sql import types as spark_types

    from deltalog.configuration import TableConfiguration
    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot
    from deltalog.spark.writing.options import WriteOptions
    from deltalog.storage.store import Store
    from deltalog.verbs.append import DistantRows
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles


def schema_of(columns: spark_types.StructType) -> StructType:
    """The schema of a data frame; every column may be NULL, as in Delta's writes.

    Raises:
        UnsupportedTypeError: tables have no such type.
        InvalidInputError: names differ by case only.
    """
    seen: dict[str, str] = {}
    for name in columns.names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise InvalidInputError(
                f"cannot write columns {other!r} and {name!r}: a table's columns differ by more "
                "than case; rename one of them"
            )
    return as_nullable(parse_schema(columns.json()))


def open_to_write(table: str | PurePath | Store, storage: Mapping[str, Any] | None = None) -> Store:
    """The store of a table, or of the place where it is to be.

    Raises:
        InvalidInputError: a version is named.
    """
    return open_latest(table, storage, doing="write to")


class PlannedRows:
    """Rows that are not there yet: it is only noted how they are to be written.

    Args:
        schema: of the rows.

    Attributes:
        task: how they are to be written, once that is known.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.task: TaskSpec | None = None

    def write_to(
        self, spec: WriteSpec, *, predicate: Expression | None = None, tells_changes: bool = False
    ) -> WrittenFiles:
        """Note what is asked for."""
        del tells_changes  # the deletion that decides it is yet to come
        feed = predicate is not None and spec.configuration.change_data_feed_enabled
        self.task = TaskSpec(spec=spec, predicate=predicate, tells_changes=feed)
        return no_files(spec)


class WrittenRows:
    """Rows that tasks have written.

    Args:
        schema: of the rows.
        written: their files.
    """

    def __init__(self, schema: pa.Schema, written: WrittenFiles) -> None:
        self.schema = schema
        self._written = written

    def write_to(
        self, spec: WriteSpec, *, predicate: Expression | None = None, tells_changes: bool = False
    ) -> WrittenFiles:
        """The files; those for a change feed that need not tell anything are removed."""
        del predicate  # the tasks have seen to it
        if tells_changes or not self._written.cdc:
            return self._written
        spec.store.delete_many([action.path for action in self._written.cdc])
        return replace(self._written, cdc=())


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """A write that is about to happen; it can be pickled.

    Args:
        context: of the table.
        version: that the write stands on; None if it makes the table.
        configuration: of the table, as it will be.
        options: of the write.
        schema: of the data.
        task: what tasks must know.
        is_done: the application's transaction is there already.
    """

    context: TableContext
    version: int | None
    configuration: TableConfiguration
    options: WriteOptions
    schema: pa.Schema
    task: TaskSpec
    is_done: bool = False

    def commit(self, written: WrittenFiles) -> int | None:
        """Commit what tasks have written; its version, or None if it was there already.

        Raises:
            CommitFailedError: another writer won.
        """
        rows = WrittenRows(self.schema, written)
        options = self.options
        version = self.version
        if version is None:
            made = make_table(
                self.context,
                self.configuration,
                lambda pending: stage_append(pending, rows, options=options.files),
                operation=options.operation,
                parameters=options.shown,
                commit_properties=options.commit_properties,
            )
            return None if made.skipped else made.version

        def stage(pending: PendingTransaction) -> object:
            # The columns are those that the files were written for, with their physical names.
            if pending.configuration.metadata != self.configuration.metadata:
                pending.set_configuration(self.configuration)
            settled = replace(options, merge_schema=False, overwrite_schema=False)
            return stage_write(pending, rows, settled)

        ran = run(
            lambda: load_snapshot(self.context, version=version),
            stage,
            operation=options.operation,
            parameters=options.shown,
            commit_properties=options.commit_properties,
            on_conflict="raise",
        )
        return None if ran.committed.skipped else ran.committed.version


def stage_write(
    pending: PendingTransaction,
    rows: DistantRows,
    options: WriteOptions,
    delete: Callable[..., Deleted] = stage_delete,
) -> object:
    """Plan the commit of a write.

    Args:
        pending: of an existing table.
        rows: to write.
        options: of the write.
        delete: how rows that are replaced by predicate are deleted.

    Raises:
        InvalidInputError: what the predicate means depends on the session's time zone.
    """
    files, mode = options.files, options.schema_mode
    if options.mode == "append":
        return stage_append(pending, rows, options=files, schema_mode=mode)
    if options.replace_where is not None:
        schema, where = pending.configuration.schema, options.replace_where
        predicate = as_condition(schema, where)
        if predicate is not None and isinstance(where, str):
            check_zone(where, predicate, schema, options.time_zone)
        if predicate is not None:
            return stage_replace_where(
                pending, rows, predicate, options=files, schema_mode=mode, delete=delete
            )
    # As in Delta: a table without partitions is replaced whole.
    if options.replaces_partitions and pending.configuration.partition_columns:
        return stage_overwrite_partitions(pending, rows, options=files)
    return stage_overwrite(
        pending, rows, options=files, schema_mode=mode, partition_by=options.partition_by
    )


def plan_write(store: Store, columns: spark_types.StructType, options: WriteOptions) -> WritePlan:
    """Understand a write before any of its rows is computed.

    Args:
        store: of the table, or where it is to be.
        columns: of the data.
        options: of the write.

    Raises:
        SchemaMismatchError: the columns do not fit the table.
        InvalidInputError: options and table do not go together.
    """
    source = schema_of(columns)
    schema = to_arrow_schema(source)
    context = TableContext(store=store, time_zone=options.time_zone)
    if not has_table(store):
        made = new_configuration(store, source, options)
        spec = options.files.spec(context, made)
        Enforcer.of_spec(spec, schema)
        return WritePlan(
            context=context,
            version=None,
            configuration=made,
            options=options,
            schema=schema,
            task=TaskSpec(spec=spec),
        )
    with naming(store.root):
        snapshot = load_snapshot(context)
    check_partitions(snapshot, options)
    pending = PendingTransaction(context, snapshot, operation="WRITE")
    rows = PlannedRows(schema)
    if is_recorded(snapshot, options):
        task = TaskSpec(spec=options.files.spec_for(pending))
    else:
        stage_write(pending, rows, options, delete=_nothing_deleted)
        task = rows.task or TaskSpec(spec=options.files.spec_for(pending))
        Enforcer.of_spec(task.spec, schema)
    return WritePlan(
        context=context,
        version=snapshot.version,
        configuration=task.spec.configuration,
        options=options,
        schema=schema,
        task=task,
        is_done=is_recorded(snapshot, options),
    )


def new_configuration(
    store: Store, source: StructType, options: WriteOptions
) -> TableConfiguration:
    """Protocol and metadata of a table that a write makes."""
    if not source.names:
        raise InvalidInputError(
            f"cannot make a table at {store.root} of the data: it has no columns"
        )
    return new_table_with_defaults(
        source,
        partition_columns=options.partition_by or (),
        configuration=dict(options.properties),
    )


def check_partitions(snapshot: Snapshot, options: WriteOptions) -> None:
    """Refuse partition columns that the existing table does not have."""
    own = snapshot.configuration.partition_columns
    if options.partition_by is None or options.schema_mode == "overwrite":
        return
    if [name.lower() for name in options.partition_by] != [name.lower() for name in own]:
        raise InvalidInputError(
            f"cannot write to {snapshot.store.root} by partitions {list(options.partition_by)}: "
            f"the table has {list(own)}; mode 'overwrite' with overwriteSchema changes them"
        )


def is_recorded(snapshot: Snapshot, options: WriteOptions) -> bool:
    """Whether the application's transaction is in the table already."""
    if options.app is None:
        return False
    known = snapshot.app_transactions.get(options.app.app_id)
    return known is not None and known.version >= options.app.version


def _nothing_deleted(*_: Any, **__: Any) -> Deleted:
    """What deletes nothing, while a write is only planned."""
    return Deleted(num_rows=0, num_removed_files=0, num_removed_bytes=0)
