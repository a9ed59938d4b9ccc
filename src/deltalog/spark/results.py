"""Convert results of operations to Spark dataframes with Delta Spark's columns.

Protocol: none
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.spark.create import spark_schema
from deltalog.spark.session.opening import moment_text, session_time_zone
from deltalog.spark.session.settings import (
    RETENTION_CHECK,
    enforces_retention,
    left_to_spark,
    session_defaults,
    session_settings,
)
from deltalog.spark.session.spark_tables import drop_entry, find_entry
from deltalog.spark.writing.plan import open_to_write
from deltalog.storage.stores.filesystems import check_deletable, delete_table_files
from deltalog.table.convert import convert_to_deltalake
from deltalog.table.optimize import TableVacuum

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from deltalog.query.names import QualifiedName
    from deltalog.table import DeltaTable
    from deltalog.transaction import CommitOptions

_HISTORY: Final = (
    "version BIGINT, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING, "
    "operationParameters MAP<STRING, STRING>, job STRUCT<jobId: STRING, jobName: STRING, "
    "jobRunId: STRING, runId: STRING, jobOwnerId: STRING, triggerType: STRING>, "
    "notebook STRUCT<notebookId: STRING>, clusterId STRING, readVersion BIGINT, "
    "isolationLevel STRING, isBlindAppend BOOLEAN, operationMetrics MAP<STRING, STRING>, "
    "userMetadata STRING, engineInfo STRING"
)
_DETAIL: Final = (
    "format STRING, id STRING, name STRING, description STRING, location STRING, "
    "createdAt TIMESTAMP, lastModified TIMESTAMP, partitionColumns ARRAY<STRING>, "
    "clusteringColumns ARRAY<STRING>, numFiles BIGINT, sizeInBytes BIGINT, "
    "properties MAP<STRING, STRING>, minReaderVersion INT, minWriterVersion INT, "
    "tableFeatures ARRAY<STRING>"
)
_FILES: Final = (
    "STRUCT<min: BIGINT, max: BIGINT, avg: DOUBLE, totalFiles: BIGINT, totalSize: BIGINT>"
)


def _counted(files: str, *names: str) -> str:
    """Return the DDL of a struct of metrics. Metrics that end in `Files` have the type `files`."""
    return ", ".join(f"{name}: {files if name.endswith('Files') else 'BIGINT'}" for name in names)


_Z_ORDER: Final = _counted(
    "STRUCT<num: BIGINT, size: BIGINT>",
    *("inputCubeFiles", "inputOtherFiles", "inputNumCubes"),
    *("mergedFiles", "numOutputCubes", "mergedNumCubes"),
)
_CLUSTERING: Final = _counted(
    "STRUCT<numFiles: BIGINT, size: BIGINT>",
    *("inputZCubeFiles", "inputOtherFiles", "inputNumZCubes", "mergedFiles", "numOutputZCubes"),
)
_PARALLELISM: Final = _counted(
    "BIGINT",
    *("maxClusterActiveParallelism", "minClusterActiveParallelism"),
    *("maxSessionActiveParallelism", "minSessionActiveParallelism"),
)
# All metrics that Delta's OPTIMIZE returns: name → SQL type. Metrics that deltalog does not measure
# are NULL.
_METRICS: Final = {
    "numFilesAdded": "BIGINT",
    "numFilesRemoved": "BIGINT",
    "filesAdded": _FILES,
    "filesRemoved": _FILES,
    "partitionsOptimized": "BIGINT",
    "zOrderStats": f"STRUCT<strategyName: STRING, {_Z_ORDER}>",
    "clusteringStats": f"STRUCT<{_CLUSTERING}>",
    "numBins": "BIGINT",
    "numBatches": "BIGINT",
    "totalConsideredFiles": "BIGINT",
    "totalFilesSkipped": "BIGINT",
    "preserveInsertionOrder": "BOOLEAN",
    "numFilesSkippedToReduceWriteAmplification": "BIGINT",
    "numBytesSkippedToReduceWriteAmplification": "BIGINT",
    "startTimeMs": "BIGINT",
    "endTimeMs": "BIGINT",
    "totalClusterParallelism": "BIGINT",
    "totalScheduledTasks": "BIGINT",
    "autoCompactParallelismStats": f"STRUCT<{_PARALLELISM}>",
    "deletionVectorStats": (
        "STRUCT<numDeletionVectorsRemoved: BIGINT, numDeletionVectorRowsRemoved: BIGINT>"
    ),
    "numTableColumns": "BIGINT",
    "numTableColumnsWithStats": "BIGINT",
}
_METRICS_TYPE: Final = ", ".join(f"{name}: {kind}" for name, kind in _METRICS.items())
_OPTIMIZED: Final = f"path STRING, metrics STRUCT<{_METRICS_TYPE}>"
_RESTORED: Final = {
    "num_removed_files": "numRemovedFile",
    "num_restored_files": "numRestoredFile",
    "removed_files_size": "removed_bytes",
    "restored_files_size": "restored_bytes",
}


def numbers(spark: SparkSession, found: Mapping[str, int | None]) -> DataFrame:
    """Return a frame of one row, with a BIGINT column for each number."""
    literals = ("NULL" if count is None else str(count) for count in found.values())
    # `IF` makes the columns nullable, as in Delta Spark.
    values = (f"IF(true, CAST({one} AS BIGINT), CAST(NULL AS BIGINT))" for one in literals)
    query = f"SELECT * FROM VALUES ({', '.join(values)}) AS t({', '.join(found)})"  # noqa: S608  # numbers
    with left_to_spark():
        # Unlike a frame of Python objects, the rows of this query need no job.
        return spark.sql(query)


def history_frame(spark: SparkSession, commits: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return a frame with one row per commit, in the given order."""
    rows = [_commit(commit) for commit in commits]
    return spark.createDataFrame(rows, _HISTORY)


def detail_frame(spark: SparkSession, detail: Mapping[str, Any]) -> DataFrame:
    """Return a frame of one row that describes the table."""
    moments = {name: _moment(detail.get(name)) for name in ("createdAt", "lastModified")}
    return spark.createDataFrame([_named(_DETAIL, {**detail, **moments})], _DETAIL)


def optimized_frame(
    spark: SparkSession, path: str, found: Mapping[str, Any], *, is_z_order: bool = False
) -> DataFrame:
    """Return a frame of one row with the result of an OPTIMIZE."""
    metrics = {name: found.get(name) for name in _METRICS}
    if is_z_order:
        metrics["zOrderStats"] = _z_ordered(found)
    metrics["deletionVectorStats"] = {
        "numDeletionVectorsRemoved": found.get("numDeletionVectorsRemoved"),
        "numDeletionVectorRowsRemoved": found.get("numDeletedRowsPurged"),
    }
    return spark.createDataFrame([(path, metrics)], _OPTIMIZED)


def _z_ordered(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return Delta's metrics of a Z-order. Each partition counts as one ZCube."""
    removed = found.get("filesRemoved") or {}
    none = {"num": 0, "size": 0}
    merged = {"num": found.get("numFilesRemoved"), "size": removed.get("totalSize")}
    return {
        "strategyName": "all",
        "inputCubeFiles": none,
        "inputOtherFiles": merged,
        "inputNumCubes": 0,
        "mergedFiles": merged,
        "numOutputCubes": found.get("partitionsOptimized"),
        "mergedNumCubes": None,
    }


def restored_frame(spark: SparkSession, detail: Mapping[str, Any], found: Any) -> DataFrame:
    """Return a frame of one row with the result of a restore."""
    counts = {name: found.get(key) for name, key in _RESTORED.items()}
    size = {
        "table_size_after_restore": detail["sizeInBytes"],
        "num_of_files_after_restore": detail["numFiles"],
    }
    return numbers(spark, {**size, **counts})


def paths_frame(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return a frame with one row per path."""
    return spark.createDataFrame([(path,) for path in paths], "path STRING")


def _commit(commit: Mapping[str, Any]) -> tuple[Any, ...]:
    texts = {
        name: {key: None if value is None else str(value) for key, value in found.items()}
        for name in ("operationParameters", "operationMetrics")
        if isinstance(found := commit.get(name), dict)
    }
    moment = {"timestamp": _moment(commit.get("timestamp"))}
    return _named(_HISTORY, {**commit, **texts, **moment})


def _named(schema: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values as a row of a schema: in the order and with the types of its columns."""
    return tuple(_as(kind, values.get(name)) for name, kind in _top_level(schema))


def _as(kind: str, value: Any) -> Any:
    """Convert a value to the type of its column. Other writers may log another type."""
    match kind.partition("<")[0], value:
        case "BIGINT" | "INT", str() if value.strip().isdecimal():
            return int(value)
        case "BOOLEAN", "true" | "false":
            return value == "true"
        case "STRING", int() | float() | dict() | list():
            return str(value)
        case ("BIGINT" | "INT", int()) | ("BOOLEAN", bool()) | ("STRING", str()):
            return value
        case ("MAP" | "STRUCT", dict()) | ("ARRAY", list() | tuple()) | ("TIMESTAMP", datetime()):
            return value
        case _:
            return None


def _top_level(schema: str) -> list[tuple[str, str]]:
    """Return the name and the type of each top-level column of a DDL schema."""
    found, depth, start = [], 0, 0
    for place, sign in enumerate(schema + ","):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            name, kind = schema[start:place].split(maxsplit=1)
            found.append((name, kind))
            start = place + 1
    return found


def _moment(millis: Any) -> datetime | None:
    """Convert milliseconds since 1970; None if Python's `datetime` cannot represent the year."""
    try:
        return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
    except (OverflowError, ValueError):
        return None


# --- operations that use settings of the session: vacuum, restore and convert


def vacuumed(
    spark: SparkSession, table: DeltaTable, retention_hours: float | None, options: CommitOptions
) -> list[str]:
    """Delete files that no version within the retention period needs; return their paths.

    Args:
        spark: the session. Its settings may allow a retention period shorter than the table's.
        table: the table at its latest version.
        retention_hours: the retention period; None means the table's period.
        options: the options of the commits that record the vacuum.
    """
    vacuum = TableVacuum(table)
    enforces = enforces_retention(spark)
    try:
        plan = vacuum.plan(retention_hours, full=True, enforce_retention_duration=enforces)
    except InvalidInputError as error:
        if not enforces or retention_hours is None or retention_hours < 0:
            raise
        raise InvalidInputError(
            f"{error}; in a Spark session, set {RETENTION_CHECK}=false to allow it"
        ) from error
    return vacuum.execute(plan, options)


def restorable_moment(spark: SparkSession, timestamp: str | datetime | date) -> str:
    """Return a timestamp as a string for the core.

    A timestamp without a time zone is in the session's time zone.

    Raises:
        InvalidInputError: the string is not a timestamp.
    """
    try:
        return moment_text(timestamp, session_time_zone(spark))
    except (InvalidInputError, ValueError) as error:
        raise InvalidInputError(
            f"cannot restore: The provided timestamp ({timestamp!r}) cannot be converted to a "
            "valid timestamp; expected one such as 2024-01-31 12:00:00"
        ) from error


def convert(spark: SparkSession, path: str, partitions: str | StructType | None) -> None:
    """Convert Parquet files to a Delta table in place. An existing Delta table is not changed.

    Args:
        spark: the session. Its time zone applies to timestamps in the names of directories.
        path: the directory.
        partitions: the partition columns; None infers them from the directories.
    """
    with session_defaults(spark):
        convert_to_deltalake(
            path,
            mode="ignore",
            partition_by=None if partitions is None else spark_schema(partitions),
            default_timezone=session_time_zone(spark),
            commit_properties=session_settings(spark).commit_properties(),
        )


def forget_table(
    spark: SparkSession, name: QualifiedName, storage: Mapping[str, Any] | None = None
) -> bool:
    """Drop a table from Spark's catalog, or drop a view; return whether the name existed.

    If deltalog chose the location, the files are deleted, too, as for a managed table of Spark.

    Args:
        spark: the session.
        name: the name of the table or view.
        storage: options for the store.
    """
    entry = find_entry(spark, name)
    if entry is None:
        return bool(spark.catalog.dropTempView(name.parts[-1]))
    store = None
    if entry.is_managed and entry.location is not None:
        store = open_to_write(entry.location, storage).context.store
        check_deletable(store)  # must raise an error before the catalog's entry is dropped
    drop_entry(spark, name)
    if store is not None:
        delete_table_files(store)
    return True
