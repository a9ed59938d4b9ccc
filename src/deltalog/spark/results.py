"""Results of verbs as Spark data frames with Delta's columns.

Protocol: none; `DESCRIBE HISTORY` and `DESCRIBE DETAIL` of Delta Spark
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

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
    """Return the columns of a struct of counts; those of files also have sizes."""
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
# All of Delta's metrics; those that deltalog does not count are NULL.
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
_TOLD: Final = ", ".join(f"{name}: {kind}" for name, kind in _METRICS.items())
_OPTIMIZED: Final = f"path STRING, metrics STRUCT<{_TOLD}>"
_RESTORED: Final = {
    "num_removed_files": "numRemovedFile",
    "num_restored_files": "numRestoredFile",
    "removed_files_size": "removed_bytes",
    "restored_files_size": "restored_bytes",
}


def numbers(spark: SparkSession, found: Mapping[str, int | None]) -> DataFrame:
    """One row of whole numbers."""
    schema = ", ".join(f"{name} BIGINT" for name in found)
    return spark.createDataFrame([tuple(found.values())], schema)


def history_frame(spark: SparkSession, commits: Sequence[Mapping[str, Any]]) -> DataFrame:
    """A row for each commit, newest first."""
    rows = [_commit(commit) for commit in commits]
    return spark.createDataFrame(rows, _HISTORY)


def detail_frame(spark: SparkSession, detail: Mapping[str, Any]) -> DataFrame:
    """One row that describes the table."""
    moments = {name: _moment(detail.get(name)) for name in ("createdAt", "lastModified")}
    return spark.createDataFrame([_named(_DETAIL, {**detail, **moments})], _DETAIL)


def optimized_frame(
    spark: SparkSession, path: str, found: Mapping[str, Any], *, is_z_order: bool = False
) -> DataFrame:
    """One row with the result of an optimization."""
    metrics = {name: found.get(name) for name in _METRICS}
    if is_z_order:
        metrics["zOrderStats"] = _z_ordered(found)
    metrics["deletionVectorStats"] = {
        "numDeletionVectorsRemoved": found.get("numDeletionVectorsRemoved"),
        "numDeletionVectorRowsRemoved": found.get("numDeletedRowsPurged"),
    }
    return spark.createDataFrame([(path, metrics)], _OPTIMIZED)


def _z_ordered(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return Delta's figures of a Z-order, which takes all files of a partition as one cube."""
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
    """One row with the result of a restore."""
    counts = {name: found.get(key) for name, key in _RESTORED.items()}
    size = {
        "table_size_after_restore": detail["sizeInBytes"],
        "num_of_files_after_restore": detail["numFiles"],
    }
    return numbers(spark, {**size, **counts})


def paths_frame(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """A row for each path."""
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
    """The values in the order and in the types of a schema's columns."""
    return tuple(_as(kind, values.get(name)) for name, kind in _top_level(schema))


def _as(kind: str, value: Any) -> Any:
    """Convert a value to the column's type; the log may hold other types from other writers."""
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
    """Name and type of each column."""
    found, depth, start = [], 0, 0
    for place, sign in enumerate(schema + ","):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            name, kind = schema[start:place].split(maxsplit=1)
            found.append((name, kind))
            start = place + 1
    return found


def _moment(millis: Any) -> datetime | None:
    """Return a moment; None beyond the years that Python has, as a log may say anything."""
    try:
        return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
    except (OverflowError, ValueError):
        return None
