"""`deltalog.spark.DeltaTable`: the class of `delta.tables`, implemented without Delta's jar.

This module contains the names, arguments and results of Delta's methods. Each method runs an
operation of the core, or calls the core's table. Spark tasks process rows and files.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from datetime import date
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as spark_types

from deltalog._util.similar_names import SimilarNames, answers_options
from deltalog.catalogs.protocol import NamedTable
from deltalog.errors import InvalidInputError
from deltalog.operations.changes.request import ChangeRequest, RowCounts
from deltalog.operations.delete import Delete
from deltalog.operations.merge import Merge
from deltalog.operations.update import Update
from deltalog.protocol.actions.properties import FEATURE_PREFIX
from deltalog.spark.create import DeltaTableBuilder, Way
from deltalog.spark.engine.checkpoint import checkpoint_on_cluster
from deltalog.spark.engine.engine import SparkEngine
from deltalog.spark.merge import DeltaMergeBuilder, DeltaOptimizeBuilder
from deltalog.spark.reading.scan import objection_to_native
from deltalog.spark.results import (
    convert,
    detail_frame,
    history_frame,
    numbers,
    paths_frame,
    restorable_moment,
    restored_frame,
    vacuumed,
)
from deltalog.spark.session.failures import (
    as_spark_does,
    check_condition,
    check_optional,
    check_session,
    check_source,
    check_type,
    check_values,
    session_first,
    speaks_spark,
)
from deltalog.spark.session.names import (
    location_of,
    named_or_location,
    note_view,
    open_by_name,
    open_table,
)
from deltalog.spark.session.opening import check_hadoop_conf, moment_text, session_time_zone
from deltalog.spark.session.settings import SessionSettings, check_reads, session_settings
from deltalog.storage.store import Store
from deltalog.table import DeltaTable as CoreTable
from deltalog.transaction import CommitOptions, CommitProperties
from deltalog.transaction.properties import AppTransaction

if TYPE_CHECKING:
    from deltalog.log.context import TableContext
    from deltalog.operations.operation import Operation


_MEANT: Final = {
    **dict.fromkeys(("to_pandas", "toPandas", "pandas"), "toDF().toPandas()"),
    **dict.fromkeys(("to_polars", "to_arrow", "toArrow", "to_pyarrow_table"), "toDF().toArrow()"),
    **dict.fromkeys(("df", "dataframe", "to_df", "to_dataframe", "read", "load"), "toDF()"),
    **dict.fromkeys(("show", "display", "head", "take", "collect"), "toDF(), and its show()"),
    **dict.fromkeys(("schema", "columns", "dtypes", "printSchema"), "toDF().schema"),
    **dict.fromkeys(("write", "append", "insert", "insertInto"), "df.write of the new rows"),
    **dict.fromkeys(("upsert", "mergeInto"), "merge(source, condition)"),
    **dict.fromkeys(("restore", "rollback"), "restoreToVersion(version)"),
    **dict.fromkeys(("version", "versions"), "history()"),
    **dict.fromkeys(("metadata", "properties", "location", "path"), "detail()"),
    **dict.fromkeys(("compact", "z_order"), "optimize().executeCompaction()"),
    **dict.fromkeys(("updateExpr", "updateExpression"), "update(condition, set)"),
    **dict.fromkeys(("load_cdf", "changes", "cdf"), "spark.read.option('readChangeFeed', True)"),
    **dict.fromkeys(
        ("alter", "add_columns", "addColumn", "set_table_properties"), "spark.sql('ALTER TABLE …')"
    ),
}
"""What users of other libraries look for → what to use instead."""
_OPTIONS: Final = {
    **dict.fromkeys(("predicate", "where", "filter", "on", "merge_condition"), "condition=…"),
    **dict.fromkeys(("updates", "assignments", "set_", "new_values"), "set={column: value}"),
    **dict.fromkeys(("retention", "hours", "retention_period"), "retentionHours=…"),
    **dict.fromkeys(("dry_run", "dryRun"), "spark.sql('VACUUM … DRY RUN')"),
    **dict.fromkeys(
        ("force", "enforce_retention_duration"),
        "spark.databricks.delta.retentionDurationCheck.enabled=false of the session",
    ),
    **dict.fromkeys(("source_alias", "target_alias"), "alias(name) of the frame and of the table"),
    **dict.fromkeys(("storageOptions", "options"), "storage_options=…"),
    **dict.fromkeys(
        ("version", "versionAsOf", "timestampAsOf"),
        "spark.read.option('versionAsOf', version) to read an older version",
    ),
}
"""Argument in other libraries → what to use instead."""


@speaks_spark
@answers_options(_OPTIONS)
class DeltaTable(SimilarNames):
    """A Delta table on Spark; `forPath` opens one.

    Args:
        spark: the session, classic or remote.
        table: a location, `uc://catalog.schema.table`, a store, or a `NamedTable` of any catalog.
        storage_options: credentials and settings for the store.
        native: whether Spark's own Parquet reader may read the files; see `read`.
    """

    _meant = _MEANT
    _frames = "toDF()"

    @session_first
    def __init__(
        self,
        spark: SparkSession,
        table: str | PurePath | Store | NamedTable,
        *,
        storage_options: Mapping[str, Any] | None = None,
        native: bool | None = None,
    ) -> None:
        check_session(spark)
        _check_location(table, "path")
        with as_spark_does():
            context = open_table(spark, table, storage_options)
            self._open(spark, context, objection_to_native(context.store, native=native))

    def _open(self, spark: SparkSession, context: TableContext, objection: str | None) -> None:
        self._spark, self._engine = spark, SparkEngine(spark, objection=objection)
        self._table = CoreTable.from_context(context, self._engine)
        self._alias: str | None = None
        self._app: AppTransaction | None = None

    @classmethod
    def from_context(cls, spark: SparkSession, context: TableContext) -> Self:
        """Open the latest version of a table, from a context such as a catalog's `open` returns."""
        table = cls.__new__(cls)
        context = replace(context, time_zone=session_time_zone(spark))
        with as_spark_does():
            cls._open(table, spark, context, objection_to_native(context.store))
        return table

    def __repr__(self) -> str:
        return f"DeltaTable.forPath(spark, {self._table.table_uri!r})"

    @property
    def core(self) -> CoreTable:
        """The core's table. Its engine runs operations as Spark tasks of the session."""
        return self._table

    # --- open a table

    @classmethod
    @session_first
    def forPath(  # noqa: N802  # Delta's name
        cls,
        sparkSession: SparkSession,  # noqa: N803  # Delta's name
        path: str | PurePath | Store | NamedTable,
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803  # Delta's name
        *,
        storage_options: Mapping[str, Any] | None = None,
        native: bool | None = None,
    ) -> Self:
        """Open the table at a location.

        Args:
            sparkSession: the session, classic or remote.
            path: the location.
            hadoopConf: settings of Hadoop's file systems. A setting for the scheme of the location
                is refused, because deltalog does not use Hadoop; other settings are ignored.
            storage_options: credentials and settings for the store.
            native: whether Spark's own Parquet reader may read the files; see `read`.

        Raises:
            TableNotFoundError: there is no table.
            InvalidInputError: a setting of Hadoop applies to this location.
        """
        check_optional(hadoopConf, Mapping, "hadoopConf", "a dictionary of strings")
        check_hadoop_conf(hadoopConf or {}, path)
        return cls(sparkSession, path, storage_options=storage_options, native=native)

    @classmethod
    @session_first
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> Self:  # noqa: N802, N803  # Delta's name
        """Open a table by name.

        The name is ``delta.`/path```, `uc://…`, a view from `createOrReplaceTempView`, a table in a
        catalog of the session (`uc.main.sales.orders`), or a table in Spark's catalog.

        Raises:
            TableNotFoundError: there is no such table, or its entry in the catalog has no location.
        """
        check_session(sparkSession)
        check_type(tableOrViewName, str, "tableOrViewName", "a name")
        with as_spark_does():
            return cls.from_context(sparkSession, open_by_name(sparkSession, tableOrViewName))

    @classmethod
    @session_first
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:  # noqa: N802, N803  # Delta's name
        """Return whether there is a Delta table at a location, or under a name in a catalog."""
        check_session(sparkSession)
        check_type(identifier, str, "identifier", "a path")
        return bool(CoreTable.is_deltatable(named_or_location(sparkSession, identifier)))

    @classmethod
    @session_first
    def convertToDelta(  # noqa: N802  # Delta's name
        cls,
        sparkSession: SparkSession,  # noqa: N803  # Delta's name
        identifier: str,
        partitionSchema: str | spark_types.StructType | None = None,  # noqa: N803  # Delta's name
    ) -> Self:
        """Convert Parquet files or an Iceberg table to a Delta table in place.

        Args:
            sparkSession: the session.
            identifier: the format and location, such as ``parquet.`/path``` or
                ``iceberg.`/path```.
            partitionSchema: the partition columns; None infers them from the directories.
        """
        check_session(sparkSession)
        check_type(identifier, str, "identifier", "a path")
        kinds, words = (str, spark_types.StructType), "a schema of Spark or a string"
        check_optional(partitionSchema, kinds, "partitionSchema", words)
        path = location_of(identifier) or identifier
        convert(sparkSession, path, partitionSchema)
        return cls(sparkSession, path)

    @classmethod
    def create(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # Delta's name
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTableBuilder:
        """Begin the definition of a table that must not exist yet."""
        return cls._builder("create", sparkSession, storage_options)

    @classmethod
    def createIfNotExists(  # noqa: N802  # Delta's name
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # Delta's name
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTableBuilder:
        """Begin the definition of a table. If the table exists, `execute` only opens it."""
        return cls._builder("createIfNotExists", sparkSession, storage_options)

    @classmethod
    def replace(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # Delta's name
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTableBuilder:
        """Begin the definition of a table that replaces an existing table, which must exist."""
        return cls._builder("replace", sparkSession, storage_options)

    @classmethod
    def createOrReplace(  # noqa: N802  # Delta's name
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # Delta's name
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTableBuilder:
        """Begin the definition of a table, which is created or replaces an existing table."""
        return cls._builder("createOrReplace", sparkSession, storage_options)

    @classmethod
    def _builder(
        cls, way: Way, given: SparkSession | None, storage_options: Mapping[str, Any] | None
    ) -> DeltaTableBuilder:
        spark = given or SparkSession.getActiveSession()
        if spark is None:
            raise InvalidInputError("cannot begin a table: there is no active session; pass one")
        check_session(spark)
        return DeltaTableBuilder(
            spark, way, lambda context: cls.from_context(spark, context), storage_options
        )

    # --- rows

    def toDF(self) -> DataFrame:  # noqa: N802  # Delta's name
        """Return the rows of the latest version."""
        check_reads(self._spark)
        self._table.update_incremental(same_table=False)
        frame = self._engine.scan(self._table.snapshot).to_df()
        return frame if self._alias is None else frame.alias(self._alias)

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802  # PySpark's name
        """Create a temporary view of the latest version's rows, for SQL and for `forName`."""
        check_type(name, str, "name", "a name")
        self.toDF().createOrReplaceTempView(name)
        note_view(self._spark, name, self._table.snapshot.context)

    def alias(self, aliasName: str) -> Self:  # noqa: N803  # Delta's name
        """Return the same table with an alias, which conditions can use."""
        check_type(aliasName, str, "aliasName", "a name")
        other = copy(self)
        other._alias = aliasName  # noqa: SLF001  # `other` has the same class
        return other

    def inTransaction(self, appId: str, version: int) -> Self:  # noqa: N802, N803  # in Delta's style
        """Return the same table; its next change records an application transaction.

        This makes a repeated change have no effect: if the log already contains `version` for
        `appId`, the change is skipped.

        Args:
            appId: a name that the application chooses.
            version: a number that the application increases with every change.
        """
        check_type(appId, str, "appId", "a name")
        check_type(version, int, "version", "a whole number")
        other = copy(self)
        other._app = AppTransaction(appId, version)  # noqa: SLF001  # `other` has the same class
        return other

    def delete(self, condition: str | Column | None = None) -> DataFrame:
        """Delete the rows for which a condition is true. Without a condition, delete all rows.

        Returns:
            One row with the column `num_affected_rows`.
        """
        check_condition(condition)
        return self._affected(Delete.where(condition, target_alias=self._alias))

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # Delta's name
    ) -> DataFrame:
        """Update the rows for which a condition is true. Without a condition, update all rows.

        Args:
            condition: Spark SQL or a Spark column.
            set: the name of a column → Spark SQL or a Spark column that computes its new value from
                the old row.

        Returns:
            One row with the column `num_affected_rows`.
        """
        check_values(set, "set", condition)
        check_condition(condition)
        return self._affected(Update.where(condition, set or {}, target_alias=self._alias))

    def _affected(self, operation: Operation[Any]) -> DataFrame:
        done = self._table.execute(operation, self._options(changes_rows=True))
        rows: RowCounts = RowCounts() if done.value is None else done.value.changed.rows
        deleted = rows.deleted_not_matched_by_source  # None if the log does not contain it
        count = None if deleted is None else deleted + rows.updated_not_matched_by_source
        return numbers(self._spark, {"num_affected_rows": count})

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Begin a merge: a comparison with source rows decides which rows change.

        Args:
            source: the source rows. The condition uses the aliases of the source and of this table.
            condition: Spark SQL or a Spark column that is true for a row of the table and a source
                row that match.
        """
        check_source(source)
        check_condition(condition, is_required=True)
        settings = session_settings(self._spark)
        request = ChangeRequest(
            condition=condition,
            clauses=(),
            source=source,
            target_alias=self._alias,
            merge_schema=bool(settings.merge_schema),
        )
        options = self._options(settings, changes_rows=True)
        return DeltaMergeBuilder(self._spark, self._table, Merge(request), options)

    # --- maintenance

    def history(self, limit: int | None = None) -> DataFrame:
        """Return one row per commit, newest first."""
        check_optional(limit, int, "limit", "a whole number")
        self._table.update_incremental(same_table=False)
        return history_frame(self._spark, self._table.history(limit))

    def detail(self) -> DataFrame:
        """Return one row that describes the table."""
        self._table.update_incremental(same_table=False)
        return detail_frame(self._spark, self._table.detail())

    def optimize(self) -> DeltaOptimizeBuilder:
        """Begin an OPTIMIZE, which rewrites rows to fewer or better sorted files."""
        settings = session_settings(self._spark)
        properties = settings.commit_properties(self._app)
        return DeltaOptimizeBuilder(self._spark, self._table, properties, settings.optimized_bytes)

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:  # noqa: N803  # Delta's name
        """Delete files that no version within the retention period needs.

        Args:
            retentionHours: the retention period; None means the table's period. A period shorter
                than the table's is refused unless the session's setting
                `spark.databricks.delta.retentionDurationCheck.enabled` is `false`.

        Returns:
            One row per file, with its path relative to the table.

        Cost: tasks list directories, and delete files if there are many.
        """
        check_optional(retentionHours, (int, float), "retentionHours", "a number of hours")
        self._table.update_incremental()
        paths = vacuumed(self._spark, self._table, retentionHours, self._options())
        return paths_frame(self._spark, paths)

    def generate(self, mode: str) -> None:
        """Write manifests for engines that read Parquet; the mode is `symlink_format_manifest`."""
        check_type(mode, str, "mode", "a name")
        if mode != "symlink_format_manifest":
            raise InvalidInputError(f"cannot generate {mode!r}: expected 'symlink_format_manifest'")
        self._table.update_incremental()
        self._table.generate()

    def restoreToVersion(self, version: int) -> DataFrame:  # noqa: N802  # Delta's name
        """Create a new version with the state of an earlier version."""
        check_type(version, int, "version", "a whole number")
        return self._restore(version)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:  # noqa: N802  # Delta's name
        """Create a new version with the state at a timestamp, by default in the session's zone."""
        check_type(timestamp, (str, date), "timestamp", "a string")  # a datetime is a date
        return self._restore(restorable_moment(self._spark, timestamp))

    def _restore(self, target: int | str) -> DataFrame:
        found = self._table.restore(target, commit_properties=self._commit_properties())
        return restored_frame(self._spark, self._table.detail(), found)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:  # noqa: N802, N803  # Delta's name
        """Raise the versions of the protocol to at least these numbers; never lower them."""
        check_type(readerVersion, int, "readerVersion", "a whole number")
        check_type(writerVersion, int, "writerVersion", "a whole number")
        self._table.alter.upgrade_protocol(readerVersion, writerVersion, self._commit_properties())

    def addFeatureSupport(self, featureName: str) -> None:  # noqa: N802, N803  # Delta's name
        """Add a table feature. Engines that do not support it can no longer use the table."""
        check_type(featureName, str, "featureName", "a name")
        self._table.alter.set_table_properties(
            {f"{FEATURE_PREFIX}{featureName}": "supported"},
            commit_properties=self._commit_properties(),
        )

    def dropFeatureSupport(  # noqa: N802  # Delta's name
        self,
        featureName: str,  # noqa: N803  # Delta's name
        truncateHistory: bool | None = None,  # noqa: N803, FBT001  # Delta's signature
    ) -> None:
        """Remove a table feature, and first everything in the table that uses the feature."""
        check_type(featureName, str, "featureName", "a name")
        check_optional(truncateHistory, bool, "truncateHistory", "True or False")
        self._table.alter.drop_feature(
            featureName,
            truncate_history=bool(truncateHistory),
            commit_properties=self._commit_properties(),
        )

    def checkpoint(self, partFiles: int | None = None) -> DataFrame:  # noqa: N803  # Delta's name
        """Write a checkpoint of the latest version with tasks; see `deltalog.spark.checkpoint`.

        Args:
            partFiles: the maximum number of file actions in a part or sidecar.

        Returns:
            One row with the columns `version`, `num_files`, `num_tombstones` and `size_in_bytes`.
        """
        check_optional(partFiles, int, "partFiles", "a whole number")
        self._table.update_incremental()
        snapshot = self._table.snapshot
        found = checkpoint_on_cluster(self._spark, snapshot, part_files=partFiles)
        return numbers(
            self._spark,
            {
                "version": found.version,
                "num_files": found.num_adds,
                "num_tombstones": found.num_removes,
                "size_in_bytes": found.size_bytes,
            },
        )

    # --- clones

    def clone(
        self,
        target: str | PurePath | Store | NamedTable,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803  # Delta's signature
        replace: bool = False,  # noqa: FBT001, FBT002  # Delta's signature
        properties: Mapping[str, str] | None = None,
        *,
        allowForeignFiles: bool = False,  # noqa: N803  # in Delta's style
    ) -> Self:
        """Clone the latest version to another location.

        Args:
            target: the new location.
            isShallow: whether the clone refers to this table's files instead of copying them.
            replace: whether a table at the target may be replaced.
            properties: table properties to set in addition to this table's.
            allowForeignFiles: whether to clone files outside of this table's directory that the log
                refers to. If this table is a shallow clone, it has such files.

        Raises:
            UnsafePathError: the log refers to files outside of the table's directory, and
                `allowForeignFiles` is False.
        """
        return self._clone(
            None,
            target,
            shallow=isShallow,
            replace=replace,
            properties=properties,
            allow_foreign_files=allowForeignFiles,
        )

    def cloneAtVersion(  # noqa: N802  # Delta's name
        self,
        version: int,
        target: str | PurePath | Store | NamedTable,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803  # Delta's signature
        replace: bool = False,  # noqa: FBT001, FBT002  # Delta's signature
        properties: Mapping[str, str] | None = None,
        *,
        allowForeignFiles: bool = False,  # noqa: N803  # in Delta's style
    ) -> Self:
        """Clone a version to another location; see `clone`."""
        check_type(version, int, "version", "a whole number")
        return self._clone(
            version,
            target,
            shallow=isShallow,
            replace=replace,
            properties=properties,
            allow_foreign_files=allowForeignFiles,
        )

    def cloneAtTimestamp(  # noqa: N802  # Delta's name
        self,
        timestamp: str,
        target: str | PurePath | Store | NamedTable,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803  # Delta's signature
        replace: bool = False,  # noqa: FBT001, FBT002  # Delta's signature
        properties: Mapping[str, str] | None = None,
        *,
        allowForeignFiles: bool = False,  # noqa: N803  # in Delta's style
    ) -> Self:
        """Clone the version at a timestamp to another location; see `clone`."""
        check_type(timestamp, (str, date), "timestamp", "a string")  # a datetime is a date
        moment = moment_text(timestamp, session_time_zone(self._spark))
        return self._clone(
            moment,
            target,
            shallow=isShallow,
            replace=replace,
            properties=properties,
            allow_foreign_files=allowForeignFiles,
        )

    def _clone(self, at: int | str | None, target: Any, **options: Any) -> Self:
        _check_location(target, "target")
        check_type(options["shallow"], bool, "isShallow", "True or False")
        check_type(options["replace"], bool, "replace", "True or False")
        check_optional(options["properties"], Mapping, "properties", "a dictionary of strings")
        for name, value in (options["properties"] or {}).items():
            check_type(name, str, "properties: key", "a string")
            check_type(value, str, f"property {name!r}: value", "a string")
        source = CoreTable.from_context(self._table.snapshot.context, self._engine)
        if at is not None:
            source.load_as_version(at)
        where = named_or_location(self._spark, target) if isinstance(target, str) else target
        clone = source.clone(where, **options, commit_properties=self._commit_properties())
        return type(self).from_context(self._spark, clone.snapshot.context)

    def _options(
        self, settings: SessionSettings | None = None, *, changes_rows: bool = False
    ) -> CommitOptions:
        settings = settings or session_settings(self._spark)
        app = self._app or (settings.app if changes_rows else None)
        return CommitOptions(properties=settings.commit_properties(app), hooks=settings.hooks)

    def _commit_properties(self) -> CommitProperties:
        return session_settings(self._spark).commit_properties(self._app)


def _check_location(location: object, what: str) -> None:
    check_type(location, (str, PurePath, Store, NamedTable), what, "a path")
