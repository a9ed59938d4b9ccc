"""What verbs answer, as Spark data frames with Delta's columns.

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
_OPTIMIZED: Final = (
    f"path STRING, metrics STRUCT<numFilesAdded: BIGINT, numFilesRemoved: BIGINT, "
    f"filesAdded: {_FILES}, filesRemoved: {_FILES}, partitionsOptimized: BIGINT, "
    "numBatches: BIGINT, totalConsideredFiles: BIGINT, totalFilesSkipped: BIGINT>"
)
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
    """One row that says what the table is."""
    moments = {name: _moment(detail.get(name)) for name in ("createdAt", "lastModified")}
    return spark.createDataFrame([_named(_DETAIL, {**detail, **moments})], _DETAIL)


def optimized_frame(spark: SparkSession, path: str, found: Mapping[str, Any]) -> DataFrame:
    """One row of an optimization."""
    names = (
        "numFilesAdded",
        "numFilesRemoved",
        "filesAdded",
        "filesRemoved",
        "partitionsOptimized",
        "numBatches",
        "totalConsideredFiles",
        "totalFilesSkipped",
    )
    metrics = {name: found.get(name) for name in names}
    return spark.createDataFrame([(path, metrics)], _OPTIMIZED)


def restored_frame(spark: SparkSession, detail: Mapping[str, Any], found: Any) -> DataFrame:
    """One row of a restoration."""
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
    """The values in the order of a schema's columns."""
    return tuple(values.get(name) for name in _top_level(schema))


def _top_level(schema: str) -> list[str]:
    names, depth, start = [], 0, 0
    for place, sign in enumerate(schema + ","):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            names.append(schema[start:place].split(maxsplit=1)[0])
            start = place + 1
    return names


def _moment(millis: Any) -> datetime | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
