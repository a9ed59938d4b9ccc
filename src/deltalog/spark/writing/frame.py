"""`deltalog.spark.write`: write a dataframe to a table, in any mode.

This module is the driver's part of a write: tasks write files, and one commit adds the files.
Unlike the writer of a format, `write` can start jobs. So it supports all modes, and can retry after
a conflicting commit.

Protocol: none
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.argument_types import kind_of
from deltalog._util.similar_names import suggests_options
from deltalog.errors import (
    CommitConflictError,
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
)
from deltalog.expressions import Expression
from deltalog.expressions import Literal as Constant
from deltalog.log.branches import named_root
from deltalog.log.listing import has_table
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.arguments import as_condition, check_given
from deltalog.operations.changes.request import deletion, logged_condition
from deltalog.operations.create import Create, WithRows
from deltalog.operations.execute import make_table
from deltalog.operations.write import RowsWritten, Write
from deltalog.schema.types import BOOLEAN
from deltalog.spark.engine.engine import SparkEngine
from deltalog.spark.engine.row_tasks import as_value
from deltalog.spark.reading.scan import objection_to_native
from deltalog.spark.session.failures import SparkTableExistsError
from deltalog.spark.session.names import catalogs_of
from deltalog.spark.session.opening import session_time_zone
from deltalog.spark.session.settings import (
    format_of_new,
    formats_of,
    session_defaults,
    session_settings,
)
from deltalog.spark.session.spark_tables import SparkEntry, default_location, find_entry, make_entry
from deltalog.spark.session.types import quoted, schema_of
from deltalog.spark.writing.options import WriteOptions
from deltalog.spark.writing.plan import check_options, new_configuration, open_to_write
from deltalog.table import DeltaTable
from deltalog.transaction.properties import AppTransaction, CommitOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import PurePath

    from pyspark.sql import Column, DataFrame, SparkSession

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.operations.engine import Engine
    from deltalog.query.names import QualifiedName
    from deltalog.storage.store import Store
    from deltalog.table.creating import TablePlace
    from deltalog.transaction import PendingTransaction

    Mode = Literal["error", "errorifexists", "append", "overwrite", "ignore"]

_MODES: Final = ("error", "errorifexists", "append", "overwrite", "ignore")
_ERRORS: Final = ("error", "errorifexists")


_MEANT: Final = {
    **dict.fromkeys(("partitionBy", "partitions", "partition_columns"), "partition_by=…"),
    "mergeSchema": "merge_schema=True",
    "overwriteSchema": "overwrite_schema=True",
    "schema_mode": "merge_schema=True, or overwrite_schema=True",
    **dict.fromkeys(("replaceWhere", "predicate"), "replace_where=…"),
    **dict.fromkeys(
        ("partitionOverwriteMode", "partition_overwrite_mode"), "partition_overwrite='dynamic'"
    ),
    **dict.fromkeys(("configuration", "tblproperties"), "properties={…}"),
    **dict.fromkeys(("options", "storageOptions"), "storage_options=…"),
    **dict.fromkeys(("userMetadata", "commit_properties"), "user_metadata=…, or txn=…"),
}
"""Option of other functions → what to use instead."""


@suggests_options("deltalog.spark.write()", _MEANT)
def write(  # noqa: PLR0913  # each argument is an option of the caller
    frame: DataFrame,
    table: str | PurePath | Store | NamedTable,
    *,
    mode: Mode = "error",
    partition_by: Sequence[str] | str | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    replace_where: str | Expression | None = None,
    partition_overwrite: Literal["static", "dynamic"] | None = None,
    properties: Mapping[str, str] | None = None,
    txn: tuple[str, int] | None = None,
    user_metadata: str | None = None,
    target_file_size: int | None = None,
    max_records_per_file: int | None = None,
    optimize_write: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int | None:
    """Write a dataframe to a table, which is created if it does not exist.

    Args:
        frame: the rows, of any session, classic or remote.
        table: a location, `uc://catalog.schema.table`, a store, or a `NamedTable` of any catalog.
        mode: what to do with an existing table: `error` (or `errorifexists`), `append`,
            `overwrite`, or `ignore` (write nothing).
        partition_by: the partition columns of a new table. With `overwrite_schema`, the new
            partition columns of an existing table.
        merge_schema: whether to add columns of the frame that the table lacks. The session's
            `spark.databricks.delta.schema.autoMerge.enabled=true` has the same effect.
        overwrite_schema: whether to replace the table's schema by the frame's schema. Requires mode
            `overwrite`.
        replace_where: a condition. Only rows for which it is true are replaced, and it must be true
            for all new rows. Requires mode `overwrite`.
        partition_overwrite: `dynamic` replaces only the partitions that receive new rows, and
            requires mode `overwrite`. None means the session's
            `spark.sql.sources.partitionOverwriteMode`.
        properties: the properties of a new table, such as
            `{"delta.enableChangeDataFeed": "true"}`. They override the session's
            `spark.databricks.delta.properties.defaults.…`.
        txn: the id of an application and its version. If the table has recorded this version, the
            write is skipped. None means the session's `spark.databricks.delta.write.txnAppId` and
            `….txnVersion`.
        user_metadata: the user's string in the table's history; None means the session's
            `spark.databricks.delta.commitInfo.userMetadata`.
        target_file_size: the size of files in bytes; None means `delta.targetFileSize`. If that is
            not set, Spark's own writer writes one file per task, and deltalog's tasks write files
            of up to 128 MiB.
        max_records_per_file: the maximum number of rows in a file; 0 means no limit. None means the
            session's `spark.sql.files.maxRecordsPerFile`.
        optimize_write: whether to move the rows of each partition to few tasks first. None means
            the session's `spark.databricks.delta.optimizeWrite.enabled`; if that is not set, the
            table's `delta.autoOptimize.optimizeWrite`.
        storage_options: credentials and settings for the store.

    Returns:
        The new version; None if the write was skipped.

    Raises:
        TableExistsError: the mode is `error`, but the table exists.
        SchemaMismatchError: the frame's columns do not match the table's schema. Raised before any
            task runs.
        ConstraintViolationError: a row violates a constraint of the table.
        CommitFailedError: a commit of another writer conflicts with this write. The table is
            unchanged.
        InvalidInputError: an argument is invalid, or deltalog does not follow a setting of the
            session.

    Cost: one job, whose tasks compute and write the rows. If Spark's own writer produces correct
    files (ADR 0034), no Python worker runs, and a second job reads the statistics of large files.
    """
    if not hasattr(frame, "sparkSession"):
        raise InvalidInputError(
            f"cannot write {kind_of(frame)} with deltalog.spark.write: expected a dataframe of "
            "Spark; spark.createDataFrame(rows) makes one, deltalog.write_deltalake writes others"
        )
    for name, value, known in (
        ("mode", mode, _MODES),
        ("partition_overwrite", partition_overwrite, (None, "static", "dynamic")),
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
        dynamic=None if partition_overwrite is None else partition_overwrite == "dynamic",
        app=None if txn is None else AppTransaction(*txn),
        user_metadata=user_metadata,
        target_file_size_bytes=target_file_size,
        max_records_per_file=max_records_per_file,
        time_zone=session_time_zone(frame.sparkSession),
        properties=dict(properties or {}),
        optimize_write=optimize_write,
    )
    return write_frame(frame, open_to_write(table, storage_options), options, mode=mode)


def write_frame(
    frame: DataFrame, place: TablePlace, options: WriteOptions, *, mode: Mode, name: str = ""
) -> int | None:
    """Write a dataframe to a table; see `write`.

    frame: the rows.
    place: the location of the table, and its context.
    options: the options of the write, without the session's settings.
    mode: what to do with an existing table.
    name: the name of the table, for errors. If empty, errors contain only the location.
    """
    options = options.under(session_settings(frame.sparkSession))
    context = replace(place.context, time_zone=options.zone)
    place = replace(place, context=context)
    objection = objection_to_native(context.store)
    engine = SparkEngine(frame.sparkSession, objection=objection, gathers=options.optimize_write)
    if not has_table(context.store):
        try:
            return _make(frame, place, options, engine)
        except CommitConflictError:
            if mode in _ERRORS:
                raise
            # Another writer has created the table in the meantime, so the code below writes to it.
    if mode == "ignore":
        return None
    if mode in _ERRORS:
        raise SparkTableExistsError(
            f"cannot create a table {f'{name} ' if name else ''}at {context.store.root}: it "
            "already exists; use mode='append' or mode='overwrite'"
        )
    existing = DeltaTable.from_context(context, engine)
    check_options(existing.snapshot, options)
    arguments = options.arguments(existing.snapshot.configuration)
    done = existing.execute(
        Write(data=frame, **arguments),
        CommitOptions(properties=options.commit_properties, hooks=options.hooks),
    )
    return None if done.committed.skipped else done.committed.version


def _make(
    frame: DataFrame, place: TablePlace, options: WriteOptions, engine: SparkEngine
) -> int | None:
    with session_defaults(frame.sparkSession):
        made = new_configuration(place, schema_of(frame.schema), options)
    rows = Write(data=frame, **options.arguments(made))
    clusters = options.cluster_by
    done = make_table(
        rows if clusters is None else WithRows(Create(clusters), rows),
        place.context,
        made,
        engine,
        CommitOptions(properties=options.commit_properties, hooks=options.hooks),
    )
    if place.new is not None:
        place.new.register(done.committed.snapshot)
    return done.committed.version


_MISMATCH: Final = "a row does not match the condition of the overwrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteMatching(Write):
    """A write that replaces the rows for which a Spark condition is true.

    Args:
        where: the condition, which must also be true for all new rows.
    """

    where: Any

    def stage(self, transaction: PendingTransaction, engine: Engine) -> RowsWritten:
        """Delete the rows that match the condition, and write the new rows.

        Raises:
            ConstraintViolationError: a new row does not match the condition.
        """
        try:
            return self._written(transaction, engine)
        except Exception as error:
            if isinstance(error, DeltaError) or _MISMATCH not in str(error):
                raise
            where = logged_condition(self.where)
            raise ConstraintViolationError(
                f"cannot overwrite rows of {transaction.context.store.root} where {where}: "
                f"{_MISMATCH}; nothing was changed"
            ) from error

    def _written(self, transaction: PendingTransaction, engine: Engine) -> RowsWritten:
        rows = engine.open_rows(self.data)
        self._merge_schema(transaction, rows)
        request = deletion(self.where, file_options=self.file_options)
        replaced = engine.plan_change(transaction, request).apply()
        transaction.parameters.update(self.logged_parameters())
        tells = replaced.num_change_files > 0
        # Tasks write change data files only if there is a predicate, so use a predicate that is
        # always true.
        every = Constant(value=True, type=BOOLEAN) if tells else None
        written = self._add(transaction, engine, rows, predicate=every, tells_changes=tells)
        changes = len(transaction.cdc)
        return RowsWritten(written=written, replaced=replaced, num_change_files=changes)


def write_over_column(
    frame: DataFrame, place: TablePlace, options: WriteOptions, where: Column
) -> int | None:
    """Replace the rows of a table for which a Spark column is true.

    Args:
        frame: the new rows.
        place: the location of an existing table, and its context.
        options: the options of the write.
        where: a Spark column that is true for the rows to replace, and for all new rows.

    Returns:
        The new version; None if the application transaction is already recorded.

    Raises:
        ConstraintViolationError: `where` is not true for a new row.
    """
    spark = frame.sparkSession
    options = options.under(session_settings(spark))
    if options.schema_mode == "overwrite" or options.replace_where is not None:
        raise InvalidInputError(
            "overwrite(condition) cannot be combined with overwriteSchema or replaceWhere: rows "
            "that do not match the condition still have the old schema"
        )
    context = replace(place.context, time_zone=options.zone)
    objection = objection_to_native(context.store)
    engine = SparkEngine(spark, objection=objection, gathers=options.optimize_write)
    table = DeltaTable.from_context(context, engine)
    check_options(table.snapshot, options)
    arguments = options.arguments(table.snapshot.configuration)
    arguments |= {"dynamic": False, "logged": {**options.logged, "predicate": str(where)}}
    operation = OverwriteMatching(data=_checked(frame, where), where=where, **arguments)
    done = table.execute(
        operation, CommitOptions(properties=options.commit_properties, hooks=options.hooks)
    )
    return None if done.committed.skipped else done.committed.version


def replacing_by_spark(write: Write, table: DeltaTable) -> Write:
    """Return a write whose predicate Spark evaluates if deltalog cannot parse it.

    Args:
        write: a write with a predicate. Its dataframe has the table's columns.
        table: the target table.
    """
    where, snapshot = write.predicate, table.snapshot
    if isinstance(where, Expression):
        with suppress(InvalidInputError):
            as_condition(snapshot.configuration.schema, where, session=snapshot.context.session)
            return write
    return OverwriteMatching(
        data=_checked(write.data, as_value(where)),
        mode=write.mode,
        schema_mode=write.schema_mode,
        logged=write.logged,
        where=where,
    )


def _checked(frame: DataFrame, where: Column) -> DataFrame:
    """Return a frame of the same rows that raises an error if a row does not match a condition.

    A column raises the error, not a filter. Spark may evaluate a filter for rows that the frame
    does not contain.
    """
    first, *others = frame.schema.fields
    wrong = F.raise_error(F.lit(_MISMATCH))
    value = F.when(where, F.col(quoted(first.name))).otherwise(wrong)
    checked = value.alias(first.name, metadata=first.metadata)
    return frame.select(checked, *(F.col(quoted(one.name)) for one in others))


# --- places of tables by name, in a catalog of the session or in Spark's catalog


NO_PLACE = (
    "give its location, name it delta.`/path`, or prepare the session with "
    "deltalog.spark.register(spark), after which Spark's catalog has the names of tables, or "
    "deltalog.spark.register(spark, catalogs=…) for a catalog of its own"
)
"""The advice in errors about a new table whose location is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlace:
    """The location of an existing or new table, and its entry in Spark's catalog.

    Args:
        place: the location of the table, and its context.
        entry: the entry in Spark's catalog, which may not exist yet; None if the table needs no
            entry.
        is_known: whether the entry already exists.
    """

    place: TablePlace
    entry: SparkEntry | None = None
    is_known: bool = False

    @property
    def has_table(self) -> bool:
        """Whether the table exists."""
        return has_table(self.place.context.store)

    def note(self, spark: SparkSession) -> None:
        """Create or update the table's entry in Spark's catalog."""
        if self.entry is not None:
            columns = load_snapshot(self.place.context).configuration.schema
            make_entry(spark, self.entry, columns)


def place_of_name(
    spark: SparkSession,
    name: QualifiedName,
    location: str | None = None,
    storage: Mapping[str, Any] | None = None,
    *,
    provider: str | None = None,
) -> NamedPlace | None:
    """Return the place of an existing or new table by its name; None if no location is known.

    Args:
        spark: the session.
        name: the name of the table.
        location: the location that the user has set in addition to the name; None if not set.
        storage: options for the store.
        provider: the format of a new entry in Spark's catalog; None means the session's default.

    Raises:
        InvalidInputError: Spark's catalog has another location for the name.
        SparkTableExistsError: a table in another format has the name.
    """
    if name.location is not None:
        return NamedPlace(place=open_to_write(location or name.location, storage))
    kept = catalogs_of(spark).names.place(name, location)
    if kept is not None:
        return NamedPlace(place=kept)
    formats = formats_of(spark)
    if not formats:
        return None if location is None else NamedPlace(place=open_to_write(location, storage))
    entry = find_entry(spark, name)
    if entry is not None and entry.location is not None:
        _check_entry(entry, location, formats)
        place = open_to_write(entry.location, storage)
        return NamedPlace(place=place, entry=entry, is_known=True)
    where = location or default_location(spark, name)
    if where is None:
        return None
    place = open_to_write(where, storage)
    new = SparkEntry(
        name=name,
        provider=provider or format_of_new(formats),
        location=named_root(place.context.store),
        is_managed=location is None,
    )
    return NamedPlace(place=place, entry=new)


def _check_entry(entry: SparkEntry, location: str | None, formats: frozenset[str]) -> None:
    if entry.provider not in formats:
        raise SparkTableExistsError(
            f"cannot use the name {entry.name} for a Delta table: it already exists in Spark's "
            f"catalog with the format {entry.provider!r}; expected one of {sorted(formats)}"
        )
    own = named_root(open_to_write(entry.location or "").context.store)
    if location is not None and named_root(open_to_write(location).context.store) != own:
        raise InvalidInputError(
            f"cannot use the location {location!r} for {entry.name}: the location in Spark's "
            f"catalog is {own!r}; drop the table from the catalog, or omit the location"
        )
