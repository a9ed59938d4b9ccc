"""Tables as DataFrames from the options of a format, as `deltalog.spark.read` plans them.

Owns which requests of the format are planned in the session: whatever Spark's own Parquet reader
reads, wholly or in part. The rest is the Python source's, to which Spark can hand filters.

Protocol: none
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType as StoredType

from deltalog.spark.reading.batch_source import check_columns, open_feed, rows_schema
from deltalog.spark.reading.native_changes import changes_frame, changes_rows, plan_changes
from deltalog.spark.reading.options import asked_metadata_columns, parse_read_options
from deltalog.spark.reading.scan import SparkScan, objection_to_native
from deltalog.spark.reading.state import most_files_here
from deltalog.spark.session.failures import as_analysis_errors
from deltalog.spark.session.opening import load_version, session_time_zone
from deltalog.spark.session.settings import check_reads
from deltalog.spark.session.types import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.catalogs.named import NamedTable
    from deltalog.schema import StructType
    from deltalog.spark.reading.options import ReadOptions

_log: Final = logging.getLogger(__name__)
# What only our reader can be told: whoever says it asks for that reader.
_NOT_EXACT: Final = "Spark's own Parquet reader reads none of its files exactly"
_OF_WORKERS: Final = frozenset({"maxpartitionbytes", "pushfilters"})


def frame_by_options(
    spark: SparkSession,
    given: Mapping[str, str],
    columns: StoredType | str | None = None,
    *,
    table: NamedTable | None = None,
) -> DataFrame | None:
    """Return the rows that options of the format ask for; None if the Python source reads them.

    Args:
        spark: the session, classic or remote.
        given: options as the user wrote them, the location among them as `path`.
        columns: the columns to show and their types, as of `DataFrameReader.schema`.
        table: of a catalog of this session, which only this process can open: it is never left to
            the Python source, whose processes are others.

    Raises:
        DeltaError: what the Python source would raise; Spark's `AnalysisException` at once.
    """
    with as_analysis_errors():
        options = parse_read_options(given)
        if table is not None:
            options = replace(options, path=table)
        objection = _objection(given, options)
        found = None
        if objection is None or table is not None:
            found = _planned(spark, options, leaves_some=table is None)
        if isinstance(found, str) or found is None:
            why = found or objection
            _log.info("%s is read by Python workers: %s", options.path, why)
            return None
        frame, rows = found
        if columns is None:
            return frame
        asked = StoredType.fromDDL(columns) if isinstance(columns, str) else columns
        if not isinstance(asked, StoredType):
            return None  # a type, but not of rows: Spark says so
        shown = check_columns(rows, asked, options.path)
        return frame.select(*(quoted(name) for name in shown.names))


def _objection(given: Mapping[str, str], options: ReadOptions) -> str | None:
    """Why Spark's own reader must not be used, as far as options tell; None if it may."""
    asked = [name for name in given if name.lower() in _OF_WORKERS]
    if asked and not (asked[0].lower() == "pushfilters" and options.push_filters):
        return f"the option {asked[0]} concerns them alone"
    return None


def _planned(
    spark: SparkSession, options: ReadOptions, *, leaves_some: bool
) -> tuple[DataFrame, StructType] | str:
    """Return the rows and their schema; why not, if Spark's own reader reads none of the files.

    Args:
        spark: the session.
        options: of the read.
        leaves_some: whether such a read is left to the Python source; else tasks do it.
    """
    check_reads(spark)
    if options.unzoned is not None:  # no option says the zone
        options = replace(options, time_zone=session_time_zone(spark))
    snapshot = load_version(
        options.path,
        options.storage,
        version=options.version,
        timestamp=options.timestamp,
        time_zone=options.time_zone,
    )
    objection = objection_to_native(snapshot.store)
    if objection is not None and leaves_some:
        return objection
    if options.changes:
        plan = plan_changes(open_feed(options, snapshot), objection=objection)
        is_left = not plan.groups or len(plan.tasks) > most_files_here(spark)
        if plan.tasks and is_left and leaves_some:
            return _NOT_EXACT
        return changes_frame(spark, plan), changes_rows(plan.changes)
    hidden = asked_metadata_columns(options.metadata_columns, snapshot)
    scan = SparkScan(
        spark=spark,
        snapshot=snapshot,
        metadata_columns=hidden,
        objection=objection,
        most_files=most_files_here(spark),
    )
    rows = rows_schema(snapshot.configuration.schema, hidden)
    if leaves_some and not scan.uses_native_reader:
        return _NOT_EXACT
    return scan.to_df(), rows
