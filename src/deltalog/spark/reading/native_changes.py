"""The change feed as DataFrames over Spark's own Parquet reader, where that is exact.

Owns the translation of the feed's tasks into Spark's operators. Which files hold which changes is
the core's (`scan.changes`), and so are the tasks that Spark does not read exactly. A file that
several changes are about, such as one that was added and later removed, is read once, and joined
with all of them.

Protocol: Add CDC File, Deletion Vectors, Partition Value Serialization
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.kernels import compute
from deltalog.metadata_columns import CHANGE_COLUMNS, CHANGE_TYPE
from deltalog.paths import encode_path
from deltalog.schema import StructType
from deltalog.schema.types import STRING
from deltalog.spark.reading.batch_source import change_fields
from deltalog.spark.reading.file_keys import KEY, FileKey, key_of
from deltalog.spark.reading.file_values import FileValues
from deltalog.spark.reading.fitness import objection_to_columns, objection_to_place
from deltalog.spark.reading.native import (
    are_unfit,
    by_name,
    named_files,
    namesakes_reason,
    output_columns,
    parquet_frame,
    spark_metadata,
    with_comments,
)
from deltalog.spark.reading.options import MAX_PARTITION_BYTES
from deltalog.spark.reading.positions import NUMBER, ROW, only_marked, without_deleted
from deltalog.spark.reading.task_frame import task_frame
from deltalog.spark.session.types import quoted, stored_spark_schema, to_spark_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, SparkSession

    from deltalog.scan import Changes, ScanTask

_TASK: Final = "task"
_FILE_TYPES: Final = {
    name: FILE_SCHEMA.field(name).type for name in ("partitionValues", "deletionVector")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPlan:
    """How the files of a change feed are read.

    Args:
        changes: what is read.
        tasks: of all files.
        groups: files that Spark reads, a row for each task with its number; in each group no two
            files have the same name, and all tasks want the same rows of their files: all, all but
            deleted ones, or some by position.
        unfit: numbers of the tasks that our reader reads.
        reasons: why.
    """

    changes: Changes
    tasks: tuple[ScanTask, ...]
    groups: tuple[pa.Table, ...]
    unfit: tuple[int, ...]
    reasons: tuple[str, ...]


def plan_changes(changes: Changes, *, objection: str | None = None) -> ChangesPlan:
    """Decide which files of a change feed Spark reads itself.

    Args:
        changes: what is read.
        objection: why Spark must not read any file.

    Cost: every commit of the range.
    """
    tasks = tuple(changes.tasks())
    spec, store = changes.spec, changes.snapshot.store
    every = tuple(range(len(tasks)))
    objection = objection or objection_to_place(store.root) or objection_to_columns(spec)
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
    """Return which rows of its file a task wants: all, what is left, or those that are marked.

    Change files are a kind of their own: they say themselves what has changed.
    """
    if task.spec.reads_change_type:
        return "said"
    if task.only_deleted:
        return "marked"
    return "left" if task.deletion_vector is not None else "all"


def _files_of(tasks: Sequence[ScanTask]) -> pa.Table:
    """Return the files of tasks as in the log, a row for each task."""
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
    """Return the first row of each file."""
    by_location = files.group_by("location", use_threads=False)
    first = by_location.aggregate([(_TASK, "min")]).column(f"{_TASK}_min")
    return files.filter(compute.is_in(files.column(_TASK), value_set=first.combine_chunks()))


def _tasks_of(some: pa.Table, files: pa.Table) -> pa.Table:
    """Return all rows of `files` about the files of `some`."""
    where = some.column("location").combine_chunks()
    return files.filter(compute.is_in(files.column("location"), value_set=where))


def changes_frame(spark: SparkSession, plan: ChangesPlan) -> DataFrame:
    """Return the changes of a plan as a DataFrame: the table's columns, then the feed's.

    Args:
        spark: the session.
        plan: how the files are read.
    """
    rows = changes_rows(plan.changes)
    frames = [_group_frame(spark, plan, group) for group in plan.groups]
    if plan.unfit or not frames:
        tasks = [plan.tasks[number] for number in plan.unfit]
        what = "; ".join(
            [
                f"read by Python workers: {len(tasks)} files",
                *(f"because {reason}" for reason in plan.reasons),
            ]
        )
        limits: dict[str, Any] = {"max_bytes": MAX_PARTITION_BYTES, "in_order": True}
        frames.append(task_frame(spark, tasks, rows, what=what, **limits))
    return with_comments(reduce(DataFrame.union, frames), rows)


def changes_rows(changes: Changes) -> StructType:
    """Return the schema of the feed's rows."""
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
