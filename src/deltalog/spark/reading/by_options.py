"""Plan the reads that a format's options describe, in the session, as `deltalog.spark.read` does.

A read is planned here if Spark's own Parquet reader reads at least one of its files. All other
reads are planned by the format's Python source, because Spark pushes filters down to it.

Protocol: none
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType as StoredType

from deltalog._util.kernels import compute
from deltalog._util.paths import encode_path
from deltalog._util.readable import FILE, counted
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.schema import StructType
from deltalog.schema.metadata_columns import CHANGE_COLUMNS, CHANGE_TYPE
from deltalog.schema.types import STRING
from deltalog.spark.reading.batch_source import change_fields, check_columns, open_feed, rows_schema
from deltalog.spark.reading.conditions import objection_to_columns, objection_to_place
from deltalog.spark.reading.file_values import KEY, FileKey, FileValues, key_of
from deltalog.spark.reading.native import (
    are_unfit,
    by_name,
    named_files,
    namesakes_reason,
    output_columns,
    parquet_frame,
    spark_metadata,
    task_frame,
    with_comments,
)
from deltalog.spark.reading.options import (
    MAX_PARTITION_BYTES,
    asked_metadata_columns,
    parse_read_options,
)
from deltalog.spark.reading.positions import NUMBER, ROW, only_marked, without_deleted
from deltalog.spark.reading.scan import SparkScan, objection_to_native
from deltalog.spark.reading.state import most_files_here
from deltalog.spark.session.failures import as_analysis_errors
from deltalog.spark.session.opening import load_version, session_time_zone
from deltalog.spark.session.settings import check_reads, formats_of
from deltalog.spark.session.types import quoted, stored_spark_schema, to_spark_type
from deltalog.spark.session.workers import check_source, objection_to_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.data.scan import Changes, ScanTask
    from deltalog.spark.reading.options import ReadOptions

_log: Final = logging.getLogger(__name__)
_NOT_NATIVE: Final = (
    "Spark's own Parquet reader can read none of the files correctly, or not as fast"
)
# Options that only deltalog's Python data source supports. If one of them is set, the Python
# data source plans the read. `pushFilters` with the value `true` is an exception.
_OF_WORKERS: Final = frozenset({"maxpartitionbytes", "pushfilters"})


def frame_by_options(
    spark: SparkSession,
    given: Mapping[str, str],
    columns: StoredType | str | None = None,
    *,
    table: NamedTable | None = None,
) -> DataFrame | None:
    """Return the rows that the format's options request; None if the Python source must read them.

    Args:
        spark: the session, classic or remote.
        given: the options as the user wrote them; `path` is the location.
        columns: the columns and types that the user passed to `DataFrameReader.schema`.
        table: a table of a catalog of this session. The Python source never reads this table,
            because it runs in other processes, which cannot open the table.

    Raises:
        DeltaError: the options or the table are invalid, as in the Python source. The error is also
            an `AnalysisException` of Spark.
    """
    with as_analysis_errors():
        options = parse_read_options(given)
        if table is not None:
            options = replace(options, path=table)
        objection, is_registered = _objection(given, options), bool(formats_of(spark))
        found = None
        if objection is None or table is not None:
            is_left = table is None and (
                objection_to_source(spark, is_registered=is_registered) is None
            )
            found = _planned(spark, options, leaves_some=is_left)
        if isinstance(found, str) or found is None:
            why = found or objection
            _log.info("%s is read by Python workers: %s", options.path, why)
            check_source(spark, is_registered=is_registered)
            return None
        frame, rows = found
        if columns is None:
            return frame
        asked = StoredType.fromDDL(columns) if isinstance(columns, str) else columns
        if not isinstance(asked, StoredType):
            # `columns` is not a struct. Spark reports this error when it loads the data source.
            return None
        shown = check_columns(rows, asked, options.path)
        return frame.select(*(quoted(name) for name in shown.names))


def _objection(given: Mapping[str, str], options: ReadOptions) -> str | None:
    """Return the reason why the options exclude Spark's own Parquet reader; None if they do not."""
    asked = [name for name in given if name.lower() in _OF_WORKERS]
    if asked and not (asked[0].lower() == "pushfilters" and options.push_filters):
        return f"only they support the option {asked[0]}"
    return None


def _planned(
    spark: SparkSession, options: ReadOptions, *, leaves_some: bool
) -> tuple[DataFrame, StructType] | str:
    """Return the rows and their schema, or the reason why Spark's own reader can read no file.

    Args:
        spark: the session.
        options: the options of the read.
        leaves_some: whether the Python source may plan the read instead. If not, this function
            always returns rows.
    """
    check_reads(spark)
    if options.unzoned is not None:  # the user has not set the option `timeZone`
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
        plan = plan_changes(spark, open_feed(options, snapshot), objection=objection)
        is_left = not plan.groups or len(plan.tasks) > most_files_here(spark)
        if plan.tasks and is_left and leaves_some:
            return _NOT_NATIVE
        return changes_frame(spark, plan), changes_rows(plan.changes)
    hidden = asked_metadata_columns(options.metadata_columns, snapshot)
    scan = SparkScan(
        spark=spark,
        snapshot=snapshot,
        metadata_columns=hidden,
        objection=objection,
        most_files=most_files_here(spark),
        weighs_sizes=True,
    )
    rows = rows_schema(snapshot.configuration.schema, hidden)
    if leaves_some and not scan.uses_native_reader:
        return _NOT_NATIVE
    return scan.to_df(), rows


# --- the change feed, read by Spark's own Parquet reader


_TASK: Final = "task"
_FILE_TYPES: Final = {
    name: FILE_SCHEMA.field(name).type for name in ("partitionValues", "deletionVector")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPlan:
    """The plan that assigns each file of a change feed to a reader.

    Args:
        changes: the changes to read.
        tasks: the scan tasks, one per file and commit.
        groups: the files that Spark reads, as tables with one row per task and the task's number.
            All file names in a group differ. All tasks of a group read the same kind of rows: all
            rows, all rows that are not deleted, or the rows at given positions.
        unfit: the numbers of the tasks that deltalog's reader reads.
        reasons: why Spark does not read the tasks in `unfit`.
    """

    changes: Changes
    tasks: tuple[ScanTask, ...]
    groups: tuple[pa.Table, ...]
    unfit: tuple[int, ...]
    reasons: tuple[str, ...]


def plan_changes(
    spark: SparkSession, changes: Changes, *, objection: str | None = None
) -> ChangesPlan:
    """Decide which files of a change feed Spark's own reader reads.

    Args:
        spark: the session.
        changes: the changes to read.
        objection: the reason why Spark must not read any file; None if there is no such reason.

    Cost: reads every commit of the range.
    """
    tasks = tuple(changes.tasks())
    spec, store = changes.spec, changes.snapshot.store
    every = tuple(range(len(tasks)))
    objection = objection or objection_to_place(spark, store.root) or objection_to_columns(spec)
    if objection is not None or not tasks:
        why = () if objection is None else (objection,)
        return ChangesPlan(changes=changes, tasks=tasks, groups=(), unfit=every, reasons=why)
    files = named_files(_files_of(tasks), store.root)
    odd, reasons = are_unfit(store, spec, files)
    groups, unfit = [], [files.filter(odd)]
    fit = files.filter(compute.invert(odd))
    for kind in dict.fromkeys(map(_kind_of, tasks)):
        of_kind = fit.filter(compute.equal(fit.column("kind"), kind))
        some, namesakes = by_name(of_kind if kind == "left" else _distinct(of_kind))
        if kind != "left":
            some = [_tasks_of(one, of_kind) for one in some]
            namesakes = _tasks_of(namesakes, of_kind)
        groups += some
        unfit.append(namesakes)
        if namesakes.num_rows:
            reasons.append(namesakes_reason(namesakes))
    left: list[Any] = pa.concat_tables(unfit).column(_TASK).to_pylist()
    return ChangesPlan(
        changes=changes,
        tasks=tasks,
        groups=tuple(groups),
        unfit=tuple(sorted(left)),
        reasons=tuple(reasons),
    )


def _kind_of(task: ScanTask) -> str:
    """Return the kind of rows that a task reads: all rows, live rows, or deleted rows.

    Change data files are another kind, because they contain the column `_change_type`.
    """
    if task.spec.reads_change_type:
        return "said"
    if task.only_deleted:
        return "marked"
    return "left" if task.deletion_vector is not None else "all"


def _files_of(tasks: Sequence[ScanTask]) -> pa.Table:
    """Return the log's entries for the files of tasks, one row per task."""
    columns: dict[str, Any] = {
        "path": pa.array([encode_path(task.path) for task in tasks], pa.string()),
        "size": pa.array([task.size_bytes for task in tasks], pa.int64()),
        "partitionValues": pa.array(
            [list(task.partition_values.items()) for task in tasks], _FILE_TYPES["partitionValues"]
        ),
        "deletionVector": pa.array(
            [None if task.only_deleted else _as_in_log(task) for task in tasks],
            _FILE_TYPES["deletionVector"],
        ),
        "kind": pa.array(list(map(_kind_of, tasks))),
        _TASK: pa.array(range(len(tasks)), pa.int64()),
    }
    for name, kind in CHANGE_COLUMNS.items():
        found = [dict(task.constants).get(name) for task in tasks]
        none: Any = pa.array([None], kind)
        parts = [none if one is None else one for one in found]
        columns[name] = pa.concat_arrays([none.slice(1), *parts])
    return pa.table(columns)


def _as_in_log(task: ScanTask) -> dict[str, Any] | None:
    vector = task.deletion_vector
    if vector is None:
        return None
    return {
        "storageType": vector.storage_type,
        "pathOrInlineDv": vector.path_or_inline_dv,
        "offset": vector.offset,
        "sizeInBytes": vector.size_bytes,
        "cardinality": vector.cardinality,
        "maxRowIndex": vector.max_row_index,
    }


def _distinct(files: pa.Table) -> pa.Table:
    """Return one row per file: the row with the smallest task number."""
    by_location = files.group_by("location", use_threads=False)
    first = by_location.aggregate([(_TASK, "min")]).column(f"{_TASK}_min")
    return files.filter(compute.is_in(files.column(_TASK), value_set=first.combine_chunks()))


def _tasks_of(some: pa.Table, files: pa.Table) -> pa.Table:
    """Return all rows of `files` whose file is in `some`."""
    where = some.column("location").combine_chunks()
    return files.filter(compute.is_in(files.column("location"), value_set=where))


def changes_frame(spark: SparkSession, plan: ChangesPlan) -> DataFrame:
    """Return the changes as a DataFrame: the columns of the table, then the columns of the feed.

    Args:
        spark: the session.
        plan: the plan of the read.
    """
    rows = changes_rows(plan.changes)
    frames = [_group_frame(spark, plan, group) for group in plan.groups]
    if plan.unfit or not frames:
        tasks = [plan.tasks[number] for number in plan.unfit]
        what = "; ".join(
            [
                f"read by Python workers: {counted(len(tasks), FILE)}",
                *(f"because {reason}" for reason in plan.reasons),
            ]
        )
        limits: dict[str, Any] = {"max_bytes": MAX_PARTITION_BYTES, "in_order": True}
        frames.append(task_frame(spark, tasks, rows, what=what, **limits))
    return with_comments(reduce(DataFrame.union, frames), rows)


def changes_rows(changes: Changes) -> StructType:
    """Return the schema of the rows of the change feed."""
    return StructType([*changes.snapshot.configuration.schema, *change_fields()])


def _group_frame(spark: SparkSession, plan: ChangesPlan, files: pa.Table) -> DataFrame:
    """Return the changes in files that Spark reads."""
    spec, store = plan.changes.spec, plan.changes.snapshot.store
    kind = files.column("kind")[0].as_py()
    distinct = _distinct(files)
    stored = stored_spark_schema(spec.data_columns, spec.mode)
    constants = dict(CHANGE_COLUMNS)
    if kind == "said":
        stored = stored.add(CHANGE_TYPE, to_spark_type(STRING))
        del constants[CHANGE_TYPE]
    values = FileValues(spec, files, more=constants)
    raw = parquet_frame(spark, spec, stored, distinct)
    hidden = spark_metadata(raw)
    columns: list[Column | str] = [quoted(name) for name in stored.names]
    repeats = distinct.num_rows < files.num_rows
    key = FileKey("file_name")
    if kind in {"left", "marked"} or values.need_join or repeats:
        key = key_of(store, distinct)
        columns.append(key.of_row(hidden))
    if kind in {"left", "marked"}:
        columns.append(hidden["row_index"].alias(ROW))
    frame = raw.select(*columns)
    if kind == "left":
        frame = without_deleted(frame, spark, store, files, key)
    elif kind == "marked":
        numbers: list[Any] = files.column(_TASK).to_pylist()
        tasks = [plan.tasks[number] for number in numbers]
        frame = only_marked(frame, spark, tasks, key.of_files(files).to_pylist(), key)
        frame = frame.drop(KEY).withColumnRenamed(NUMBER, KEY)
        return values.join_by_number(frame, spark).select(*output_columns(spec, values))
    frame = values.join_to(frame, spark, key, always=repeats)
    return frame.select(*output_columns(spec, values))
