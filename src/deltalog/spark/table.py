"""`deltalog.spark.DeltaTable`: delta.tables' class, over deltalog.

Owns which verb is done where: rows are changed by tasks; what concerns the log alone is done by
the core, on the driver.

Protocol: none
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql import SparkSession

from deltalog.errors import InvalidInputError
from deltalog.spark.builders import (
    DeltaTableBuilder,
    IdentityGenerator,
    Way,
    spark_schema,
)
from deltalog.spark.engine.checkpoint import checkpoint_on_cluster
from deltalog.spark.engine.merge_plan import SparkMerge
from deltalog.spark.engine.statements import stage_spark_delete, stage_spark_update
from deltalog.spark.maintenance import DeltaOptimizeBuilder, TendedTable, utc_text
from deltalog.spark.merge import DeltaMergeBuilder, stage_spark_merge
from deltalog.spark.results import (
    numbers,
)
from deltalog.spark.session.names import find_location, location_of, note_view
from deltalog.spark.session.opening import moment_ms, session_time_zone
from deltalog.spark.session.settings import session_defaults
from deltalog.table import DeltaTable as CoreTable
from deltalog.table.convert import convert_to_deltalake
from deltalog.transaction.properties import AppTransaction
from deltalog.verbs.merge import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePath

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction
    from deltalog.transaction.commit import Ran
    from deltalog.verbs.merge import Merged

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]


class DeltaTable(TendedTable):
    """A Delta table on Spark; `forPath` makes one.

    Args:
        spark: the session, classic or remote.
        table: its location.
        storage_options: credentials and settings for the store.
        native: whether Spark's own Parquet reader is used where it is exact; see `read`.
    """

    # --- which table

    @classmethod
    def forPath(  # noqa: N802  # Delta's
        cls,
        sparkSession: SparkSession,  # noqa: N803  # Delta's
        path: str | PurePath | Store,
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803  # Delta's
        *,
        storage_options: Mapping[str, Any] | None = None,
        native: bool | None = None,
    ) -> Self:
        """The table at a location.

        Raises:
            TableNotFoundError: there is none.
        """
        if hadoopConf:
            raise InvalidInputError(
                "cannot take hadoopConf: files are not read through Hadoop; give the store's "
                "credentials as storage_options"
            )
        return cls(sparkSession, path, storage_options=storage_options, native=native)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> Self:  # noqa: N802, N803  # Delta's
        """The table of a name.

        The name is ``delta.`/path` ``, a view that `createOrReplaceTempView` made, or a table whose
        location the catalog tells.

        Raises:
            TableNotFoundError: there is no such table, or the catalog does not say where it is.
        """
        return cls(sparkSession, find_location(sparkSession, tableOrViewName))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:  # noqa: N802, N803  # Delta's
        """Whether a location holds a Delta table."""
        del sparkSession
        return bool(CoreTable.is_deltatable(location_of(identifier) or identifier))

    @classmethod
    def convertToDelta(  # noqa: N802  # Delta's
        cls,
        sparkSession: SparkSession,  # noqa: N803  # Delta's
        identifier: str,
        partitionSchema: str | StructType | None = None,  # noqa: N803  # Delta's
    ) -> Self:
        """Make a Delta table of Parquet files where they lie.

        Args:
            sparkSession: the session.
            identifier: such as ``parquet.`/path` ``.
            partitionSchema: the partition columns; None takes them from the directories.
        """
        path = location_of(identifier) or identifier
        schema = None if partitionSchema is None else spark_schema(partitionSchema)
        with session_defaults(sparkSession):
            convert_to_deltalake(path, mode="ignore", partition_by=schema)
        return cls(sparkSession, path)

    @classmethod
    def create(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # Delta's
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTableBuilder:
        """Begin a table where there is none."""
        return cls._builder("create", sparkSession, storage_options)

    @classmethod
    def createIfNotExists(  # noqa: N802  # Delta's
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # Delta's
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTableBuilder:
        """Begin a table, or open the one that is there."""
        return cls._builder("createIfNotExists", sparkSession, storage_options)

    @classmethod
    def replace(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # Delta's
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTableBuilder:
        """Begin a table instead of the one that is there."""
        return cls._builder("replace", sparkSession, storage_options)

    @classmethod
    def createOrReplace(  # noqa: N802  # Delta's
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803  # Delta's
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaTableBuilder:
        """Begin a table, whether there is one or not."""
        return cls._builder("createOrReplace", sparkSession, storage_options)

    @classmethod
    def _builder(
        cls, way: Way, given: SparkSession | None, storage_options: Mapping[str, Any] | None
    ) -> DeltaTableBuilder:
        spark = given or SparkSession.getActiveSession()
        if spark is None:
            raise InvalidInputError("cannot begin a table: there is no active session; pass one")
        return DeltaTableBuilder(spark, way, lambda store: cls(spark, store), storage_options)

    # --- its rows

    def toDF(self) -> DataFrame:  # noqa: N802  # Delta's
        """The rows of the latest version."""
        self._table.update_incremental()
        frame = replace(self._scan, snapshot=self._table.snapshot).to_df()
        return frame if self._alias is None else frame.alias(self._alias)

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802  # as of data frames
        """Give the rows of the latest version a name for SQL, and for `forName`."""
        self.toDF().createOrReplaceTempView(name)
        note_view(self._spark, name, self._table.table_uri)

    def alias(self, aliasName: str) -> Self:  # noqa: N803  # Delta's
        """The same table under a name for conditions."""
        other = copy(self)
        other._alias = aliasName  # noqa: SLF001  # of the same class
        return other

    def inTransaction(self, appId: str, version: int) -> Self:  # noqa: N802, N803  # as Delta's would be
        """The same table; the next change of it happens once for an application and its version.

        Args:
            appId: name of the application, of its choice.
            version: grows with every change; one that is in the table already is skipped.
        """
        other = copy(self)
        other._app = AppTransaction(appId, version)  # noqa: SLF001  # of the same class
        return other

    def delete(self, condition: str | Column | None = None) -> DataFrame:
        """Delete the rows for which a condition is true; all rows without one.

        Returns:
            One row: num_affected_rows.
        """

        def stage(pending: PendingTransaction) -> int | None:
            pending.parameters["predicate"] = [] if condition is None else [str(condition)]
            deleted = stage_spark_delete(
                pending, condition, scan=self._scan, options=self._options, alias=self._alias
            )
            pending.set_metrics(deleted.metrics())
            return deleted.num_rows

        ran = self._run("DELETE", stage)
        return numbers(self._spark, {"num_affected_rows": _affected(ran)})

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # Delta's
    ) -> DataFrame:
        """Give new values to the rows for which a condition is true; to all rows without one.

        Args:
            condition: Spark SQL or a Spark column.
            set: column → Spark SQL or Spark column, computed from the row as it was.

        Returns:
            One row: num_affected_rows.
        """

        def stage(pending: PendingTransaction) -> int:
            pending.parameters["predicate"] = [] if condition is None else [str(condition)]
            updated = stage_spark_update(
                pending,
                set or {},
                condition,
                scan=self._scan,
                options=self._options,
                alias=self._alias,
            )
            pending.set_metrics(updated.metrics())
            return updated.num_rows

        ran = self._run("UPDATE", stage)
        return numbers(self._spark, {"num_affected_rows": _affected(ran)})

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Begin a merge: rows of a source change, remove and add rows of the table.

        Args:
            source: the rows; give it an alias, as this table, for the condition.
            condition: which rows match: Spark SQL or a Spark column.
        """
        return DeltaMergeBuilder(
            SparkMerge(source=source, condition=condition, alias=self._alias), self._merge
        )

    def _merge(self, merge: SparkMerge) -> DataFrame:
        kept = replace(merge, source=merge.source.persist())

        def stage(pending: PendingTransaction) -> Merged:
            merged = stage_spark_merge(pending, kept, scan=self._scan, options=self._options)
            pending.set_metrics(merged.metrics())
            return merged

        try:
            rows = self._run("MERGE", stage).value
        finally:
            kept.source.unpersist()
        return numbers(self._spark, _merge_counts(Counts() if rows is None else rows.rows))

    def checkpoint(self, partFiles: int | None = None) -> DataFrame:  # noqa: N803  # as Delta's
        """Write a checkpoint of the latest version by tasks; see `deltalog.spark.checkpoint`.

        Args:
            partFiles: most files of a part or a sidecar.

        Returns:
            One row: version, num_files, num_tombstones, size_in_bytes.
        """
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

    # --- copies

    def clone(
        self,
        target: str | PurePath | Store,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803  # Delta's
        replace: bool = False,  # noqa: FBT001, FBT002  # Delta's
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """A copy of the latest version at another place.

        Args:
            target: where.
            isShallow: name this table's files instead of copying them.
            replace: whether a table at the target may be replaced.
            properties: set on the clone besides this table's.
        """
        return self._clone(None, target, isShallow, replace, properties)

    def cloneAtVersion(  # noqa: N802  # Delta's
        self,
        version: int,
        target: str | PurePath | Store,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803  # Delta's
        replace: bool = False,  # noqa: FBT001, FBT002  # Delta's
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """A copy of a version; see `clone`."""
        return self._clone(version, target, isShallow, replace, properties)

    def cloneAtTimestamp(  # noqa: N802  # Delta's
        self,
        timestamp: str,
        target: str | PurePath | Store,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803  # Delta's
        replace: bool = False,  # noqa: FBT001, FBT002  # Delta's
        properties: Mapping[str, str] | None = None,
    ) -> Self:
        """A copy of what the table was at a moment; see `clone`."""
        moment = utc_text(moment_ms(timestamp, session_time_zone(self._spark)))
        return self._clone(moment, target, isShallow, replace, properties)

    def _clone(
        self,
        at: int | str | None,
        target: str | PurePath | Store,
        is_shallow: bool,  # noqa: FBT001  # as Delta's
        replaces: bool,  # noqa: FBT001  # as Delta's
        properties: Mapping[str, str] | None,
    ) -> Self:
        source = CoreTable(self._table.snapshot.store)
        if at is not None:
            source.load_as_version(at)
        where = (location_of(target) or target) if isinstance(target, str) else target
        clone = source.clone(
            where,
            shallow=is_shallow,
            replace=replaces,
            properties=properties,
            commit_properties=self._commit_properties(),
        )
        return type(self)(self._spark, clone.snapshot.store)


def _affected(ran: Ran[int | None]) -> int | None:
    """Rows that changed; None if the log does not tell."""
    return 0 if ran.committed.skipped else ran.value


def _merge_counts(rows: Counts) -> dict[str, int | None]:
    """The counts of a merge, as Delta calls them."""
    return {
        "num_affected_rows": rows.all_updated + rows.all_deleted + rows.inserted,
        "num_updated_rows": rows.all_updated,
        "num_deleted_rows": rows.all_deleted,
        "num_inserted_rows": rows.inserted,
    }
