"""What is done to a table whole: looked at, put in order, cleaned, brought back, upgraded.

Owns the verbs of delta.tables that the core does on the driver: they read and write the log, and
answer with small data frames.

Protocol: none
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from deltalog.errors import InvalidInputError
from deltalog.rows.files import FileOptions
from deltalog.spark.engine.bins import on_cluster
from deltalog.spark.engine.core_table import ClusterTable
from deltalog.spark.engine.files import SparkHands
from deltalog.spark.reading.scan import scan
from deltalog.spark.results import (
    detail_frame,
    history_frame,
    optimized_frame,
    paths_frame,
    restored_frame,
)
from deltalog.spark.session.opening import moment_ms, open_latest, session_time_zone
from deltalog.spark.session.settings import (
    RETENTION_CHECK,
    enforces_retention,
    session_user_metadata,
)
from deltalog.table.optimize import TableOptimizer
from deltalog.table.vacuum import TableVacuum
from deltalog.transaction import CommitProperties
from deltalog.transaction.properties import AppTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import PurePath

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction
    from deltalog.transaction.commit import Ran


class TendedTable:
    """The half of `DeltaTable` that looks after the table; it explains the arguments."""

    def __init__(
        self,
        spark: SparkSession,
        table: str | PurePath | Store,
        *,
        storage_options: Mapping[str, Any] | None = None,
        native: bool | None = None,
    ) -> None:
        open_latest(table, storage_options, doing="open as a DeltaTable")
        self._spark = spark
        self._scan = scan(spark, table, storage_options=storage_options, native=native)
        self._options = FileOptions()
        store, zone = self._scan.snapshot.store, self._scan.snapshot.context.time_zone
        self._table = ClusterTable(spark, store, time_zone=zone)
        self._alias: str | None = None
        self._app: AppTransaction | None = None

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, newest first."""
        self._table.update_incremental()
        return history_frame(self._spark, self._table.history(limit))

    def detail(self) -> DataFrame:
        """What the table is, in one row."""
        self._table.update_incremental()
        return detail_frame(self._spark, self._table.detail())

    def optimize(self) -> DeltaOptimizeBuilder:
        """Begin putting the same rows into better files."""
        return DeltaOptimizeBuilder(self._spark, self._table, self._commit_properties())

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:  # noqa: N803  # Delta's
        """Delete files that no version within the retention needs.

        Args:
            retentionHours: None is the table's; a shorter one is refused unless the session's
                setting `spark.databricks.delta.retentionDurationCheck.enabled` is `false`.

        Returns:
            A row for each file: its path, relative to the table.

        Cost: tasks list directories, and delete files where there are many.
        """
        self._table.update_incremental()
        hands = SparkHands(self._spark, self._table.version())
        vacuum = TableVacuum(self._table, hands=hands)
        enforces = enforces_retention(self._spark)
        try:
            plan = vacuum.plan(retentionHours, full=True, enforce_retention_duration=enforces)
        except InvalidInputError as error:
            if not enforces or retentionHours is None or retentionHours < 0:
                raise
            raise InvalidInputError(
                f"{error}; here the session's setting {RETENTION_CHECK}=false says that"
            ) from error
        paths = vacuum.carry_out(plan, commit_properties=self._commit_properties())
        return paths_frame(self._spark, paths)

    def generate(self, mode: str) -> None:
        """Write manifests for engines that read Parquet: mode `symlink_format_manifest`."""
        if mode != "symlink_format_manifest":
            raise InvalidInputError(f"cannot generate {mode!r}: expected 'symlink_format_manifest'")
        self._table.update_incremental()
        self._table.generate()

    def restoreToVersion(self, version: int) -> DataFrame:  # noqa: N802  # Delta's
        """Go back to a version, by a new one."""
        return self._restore(version)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:  # noqa: N802  # Delta's
        """Go back to what the table was at a moment; without a zone it is the session's."""
        zone = session_time_zone(self._spark)
        return self._restore(utc_text(moment_ms(timestamp, zone)))

    def _restore(self, target: int | str) -> DataFrame:
        found = self._table.restore(target, commit_properties=self._commit_properties())
        return restored_frame(self._spark, self._table.detail(), found)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:  # noqa: N802, N803  # Delta's
        """Raise the protocol to what these versions mean; it never falls."""
        self._table.alter.upgrade_protocol(readerVersion, writerVersion, self._commit_properties())

    def addFeatureSupport(self, featureName: str) -> None:  # noqa: N802, N803  # Delta's
        """Let the table support a feature; engines that lack it lose access."""
        self._table.alter.add_feature(
            featureName,
            allow_protocol_versions_increase=True,
            commit_properties=self._commit_properties(),
        )

    def dropFeatureSupport(  # noqa: N802  # Delta's
        self,
        featureName: str,  # noqa: N803  # Delta's
        truncateHistory: bool | None = None,  # noqa: N803, FBT001  # Delta's
    ) -> None:
        """Take a feature out of the protocol, after everything that uses it."""
        self._table.alter.drop_feature(
            featureName,
            truncate_history=bool(truncateHistory),
            commit_properties=self._commit_properties(),
        )

    def _run(self, operation: str, stage: Callable[[PendingTransaction], Any]) -> Ran[Any]:
        return self._table.run(
            operation, stage, commit_properties=self._commit_properties(), skip_empty=True
        )

    def _commit_properties(self) -> CommitProperties:
        told = session_user_metadata(self._spark)
        return CommitProperties(
            custom_metadata={"userMetadata": told} if told else None,
            app_transactions=None if self._app is None else [self._app],
        )


class DeltaOptimizeBuilder:
    """An optimization that is being put together.

    Args:
        spark: the session.
        table: of the core.
        commit_properties: of its commits.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: ClusterTable,
        commit_properties: CommitProperties,
    ) -> None:
        self._spark = spark
        self._table = table
        self._optimizer = TableOptimizer(table, elsewhere=on_cluster(spark))
        self._commit_properties = commit_properties
        self._filters: tuple[str, ...] = ()

    def where(self, partitionFilter: str) -> Self:  # noqa: N803  # Delta's
        """Only partitions for which it is true, with all that was said so before."""
        self._filters = (*self._filters, f"({partitionFilter})")
        return self

    def executeCompaction(self) -> DataFrame:  # noqa: N802  # Delta's
        """Put small files together, and leave deleted rows behind."""
        found = self._optimizer.compact(self._where(), commit_properties=self._commit_properties)
        return optimized_frame(self._spark, self._table.table_uri, found)

    def executeZOrderBy(self, *cols: str | list[str]) -> DataFrame:  # noqa: N802  # Delta's
        """Arrange rows so that predicates on any of some columns leave few files to read."""
        names = [n for one in cols for n in ([one] if isinstance(one, str) else one)]
        found = self._optimizer.z_order(
            names, self._where(), commit_properties=self._commit_properties
        )
        return optimized_frame(self._spark, self._table.table_uri, found)

    def _where(self) -> str | None:
        return " AND ".join(self._filters) or None


def utc_text(timestamp_ms: int) -> str:
    """A moment as the core reads it."""
    seconds, millis = divmod(timestamp_ms, 1000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{millis:03}Z"
