"""What `DeltaTable` does by the core's table and the settings of a session: vacuum and convert.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.spark.create import spark_schema
from deltalog.spark.session.opening import moment_text, session_time_zone
from deltalog.spark.session.settings import (
    RETENTION_CHECK,
    enforces_retention,
    session_defaults,
    session_settings,
)
from deltalog.spark.session.spark_tables import drop_entry, find_entry
from deltalog.spark.writing.plan import open_to_write
from deltalog.storage.folders import check_deletable, delete_table_files
from deltalog.table.convert import convert_to_deltalake
from deltalog.table.vacuum import TableVacuum

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from deltalog.query.names import QualifiedName
    from deltalog.table import DeltaTable
    from deltalog.transaction import CommitOptions


def vacuumed(
    spark: SparkSession, table: DeltaTable, retention_hours: float | None, options: CommitOptions
) -> list[str]:
    """Delete files that no version within the retention needs; return their paths.

    Args:
        spark: the session, whose settings may allow a retention shorter than the table's.
        table: at its latest version.
        retention_hours: None is the table's.
        options: of the commits that record it.
    """
    vacuum = TableVacuum(table)
    enforces = enforces_retention(spark)
    try:
        plan = vacuum.plan(retention_hours, full=True, enforce_retention_duration=enforces)
    except InvalidInputError as error:
        if not enforces or retention_hours is None or retention_hours < 0:
            raise
        raise InvalidInputError(
            f"{error}; here the session's setting {RETENTION_CHECK}=false says that"
        ) from error
    return vacuum.carry_out(plan, options)


def restorable_moment(spark: SparkSession, timestamp: str | datetime) -> str:
    """Return a moment as text for the core; without a zone it is in the session's.

    Raises:
        InvalidInputError: the text is no moment.
    """
    try:
        return moment_text(timestamp, session_time_zone(spark))
    except (InvalidInputError, ValueError) as error:
        raise InvalidInputError(
            f"cannot restore: The provided timestamp ({timestamp!r}) cannot be converted to a "
            "valid timestamp; expected one such as 2024-01-31 12:00:00"
        ) from error


def convert(spark: SparkSession, path: str, partitions: str | StructType | None) -> None:
    """Convert Parquet files to a Delta table in place, unless there is one.

    Args:
        spark: the session, whose zone is that of times in the names of directories.
        path: the directory.
        partitions: the partition columns; None takes them from the directories.
    """
    with session_defaults(spark):
        convert_to_deltalake(
            path,
            mode="ignore",
            partition_by=None if partitions is None else spark_schema(partitions),
            default_timezone=session_time_zone(spark),
            commit_properties=session_settings(spark).commit_properties(),
        )


def forget_table(spark: SparkSession, name: QualifiedName) -> bool:
    """Take a table out of Spark's catalog, or drop the view of one; return whether it was there.

    The files go too if deltalog has chosen their place, as with a managed table of Spark.
    """
    entry = find_entry(spark, name)
    if entry is None:
        return bool(spark.catalog.dropTempView(name.parts[-1]))
    store = None
    if entry.is_managed and entry.location is not None:
        store = open_to_write(entry.location).context.store
        check_deletable(store)  # while the catalog still knows the table
    drop_entry(spark, name)
    if store is not None:
        delete_table_files(store)
    return True
