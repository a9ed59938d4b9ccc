"""Read a scan as a DataFrame; Spark's own Parquet reader reads all files that it reads correctly.

A scan becomes a union of Spark's operators over three groups of files: files that Spark reads
without changes, files with deletion vectors (Spark's rows are anti-joined with the deleted
positions), and files that deltalog's reader reads in Python workers. Spark pushes conditions,
projections and aggregates down to its own reader.

Protocol: Column Mapping, Deletion Vectors, Row Tracking, Partition Value Serialization
"""

from __future__ import annotations

import math
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.kernels import arrow, compute
from deltalog._util.paths import (
    are_foreign,
    check_all_confined,
    file_locations,
    split_location,
)
from deltalog._util.readable import FILE, counted
from deltalog._util.store_kinds import LOCAL
from deltalog.data.scan.plan import TASK_COLUMNS, make_task
from deltalog.errors import DataFileMissingError
from deltalog.expressions.render import quote_text
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.protocol.features import check_deletion_vectors
from deltalog.protocol.partition_values import NULL_DIRECTORY, extract, hive_directory
from deltalog.schema import DataType, Field, StructType, metadata_columns
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)
from deltalog.spark.reading.batch_source import (
    TaskPartition,
    metadata_struct,
    read_partition,
    rows_schema,
    split_tasks,
)
from deltalog.spark.reading.conditions import (
    are_unfit_by_id,
    are_unfit_by_name,
    objection_to_columns,
    objection_to_place,
)
from deltalog.spark.reading.file_values import FileKey, FileValues, key_of
from deltalog.spark.reading.options import MAX_PARTITION_BYTES
from deltalog.spark.reading.positions import ROW, without_deleted
from deltalog.spark.session.spark_tables import spark_path
from deltalog.spark.session.tasks import frame_for_each
from deltalog.spark.session.types import (
    has_structs,
    quoted,
    stored_spark_schema,
    to_spark_schema,
    to_spark_type,
)
from deltalog.spark.session.workers import have_deltalog
from deltalog.storage.faults import storage_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType as StoredType

    from deltalog.data.scan import ReadSpec, Scan, ScanTask
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store

_FLOATS: Final = (FLOAT, DOUBLE)
_MOST_NAMESAKES: Final = 4
"""The maximum number of groups of files that Spark's own reader reads. Files with the same name are
in different groups, because the name of a file may identify it in its group."""
_MANY_FILES: Final = 1000
_SMALL_FILE_BYTES: Final = 32 << 10
"""The maximum average size at which deltalog's tasks read `_MANY_FILES` files faster than Spark's
own reader. By Spark's estimate, opening a file costs as much as reading 4 MiB, so Spark starts a
task for every 32 small files. With files of 100 kB, Spark's own reader is faster."""
_LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LEAST_LISTING_TASKS: Final = 64
_FILES_PER_LISTING_TASK: Final = 32
# These options override the session's settings. With these options, Spark rebases old dates only if
# a file's metadata requires it, and never skips corrupt or missing files.
_READER_OPTIONS: Final = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "recursiveFileLookup": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """The plan that assigns each file of a scan to a reader.

    Args:
        scan: the scan.
        groups: the files that Spark reads. In a group, file names are distinct, and either all
            files have deletion vectors or none has.
        unfit: the files that deltalog's reader reads, because Spark would not read them correctly.
        reasons: why Spark does not read the files in `unfit`, with the number of files for each
            reason.
        num_vectors: the number of files in `groups` that have deletion vectors.
    """

    scan: Scan
    groups: tuple[pa.Table, ...]
    unfit: pa.Table
    reasons: tuple[str, ...]
    num_vectors: int

    def explain(self) -> list[str]:
        """Return lines that report how many files each reader reads, and why."""
        native = sum(group.num_rows for group in self.groups)
        lines = [f"read by Spark's own Parquet reader: {counted(native, FILE)}"]
        if self.num_vectors:
            lines.append(f"of these with deletion vectors, by an anti-join: {self.num_vectors}")
        return [*lines, *self.of_workers]

    @property
    def of_workers(self) -> list[str]:
        """Return lines that report how many files Python workers read, and why.

        The lines are also the operator's name in Spark's plan.
        """
        lines = [f"because {reason}" for reason in self.reasons]
        if self.unfit.num_rows:
            lines.insert(0, f"read by Python workers: {counted(self.unfit.num_rows, FILE)}")
        return lines


def plan_read(
    spark: SparkSession, scan: Scan, *, objection: str | None = None, weighs_sizes: bool = False
) -> ReadPlan:
    """Decide which files of a scan Spark reads itself.

    Args:
        spark: the session.
        scan: the scan.
        objection: the reason why Spark must not read any file; None if there is no such reason.
        weighs_sizes: whether deltalog's tasks read all files if these are many and small, because
            this is faster. False if the caller has chosen the reader.

    Cost: reads the columns of the log for the files that remain after pruning.
    """
    spec, root = scan.spec, scan.snapshot.store.root
    files = named_files(scan.pruned.files(TASK_COLUMNS), root)
    objection = objection or objection_to_place(spark, root) or objection_to_columns(spec)
    if objection is None and weighs_sizes:
        objection = _objection_to_sizes(spark, files.column("size"))
    if objection is not None or not files.num_rows:
        why = () if objection is None else (objection,)
        return ReadPlan(scan=scan, groups=(), unfit=files, reasons=why, num_vectors=0)
    odd, reasons = are_unfit(scan.snapshot.store, spec, files)
    has_vector = _has_vector(scan, files)
    if has_vector.true_count:
        files = files.append_column("numRecords", scan.pruned.num_records())
    fit = compute.invert(odd)
    groups, rest, num_vectors = [], [files.filter(odd)], 0
    for mask in (compute.and_(fit, compute.invert(has_vector)), compute.and_(fit, has_vector)):
        some, namesakes = by_name(files.filter(mask))
        num_vectors = sum(group.num_rows for group in some)
        groups += some
        rest.append(namesakes)
        if namesakes.num_rows:
            reasons.append(namesakes_reason(namesakes))
    return ReadPlan(
        scan=scan,
        groups=tuple(groups),
        unfit=pa.concat_tables(rest),
        reasons=tuple(reasons),
        num_vectors=num_vectors,
    )


def _objection_to_sizes(spark: SparkSession, sizes: pa.ChunkedArray[Any]) -> str | None:
    """Return the reason why Spark would read files of these sizes slowly; None if it would not.

    Cost: see `have_deltalog`, if the files are many and small.
    """
    count = len(sizes)
    total = compute.sum(sizes).as_py()
    if count < _MANY_FILES or sizes.null_count or total > count * _SMALL_FILE_BYTES:
        return None
    if not have_deltalog(spark):
        return None
    return (
        f"Spark takes longer to open {count} files of {total // count} bytes on average than to "
        "read them; native=True uses its reader"
    )


def named_files(files: pa.Table, root: str) -> pa.Table:
    """Add the columns `location` and `name` (without directories) to files.

    Args:
        files: the files, with the log's column `path`.
        root: the location of the table.
    """
    paths = files.column("path")
    check_all_confined(paths)
    where = file_locations(paths, root)
    files = files.append_column("location", where)
    return files.append_column("name", compute.replace_substring_regex(where, "(?s)^.*/", ""))


def are_unfit(store: Store, spec: ReadSpec, files: pa.Table) -> tuple[pa.BooleanArray, list[str]]:
    """Mark the files that Spark would not read correctly, and return the reasons, one per cause.

    Args:
        store: the store of the table.
        spec: the read specification of the scan.
        files: the files, with the columns `path`, `location` and `size`.

    Cost: reads the footer of every file if columns are mapped by id.
    """
    reasons: list[str] = []
    odd = are_unfit_by_name(files.column("location"))
    if odd.true_count:
        reasons.append(f"Spark would not find {counted(odd.true_count, FILE)} by name")
    foreign = are_foreign(files.column("path"), store.root)
    if foreign.true_count:  # deltalog's reader refuses untrusted stores, but Spark does not
        odd = compute.or_(odd, foreign)
        verb = "is" if foreign.true_count == 1 else "are"
        reasons.append(f"{counted(foreign.true_count, FILE)} {verb} in other stores")
    if spec.mode is Mode.ID:
        by_id = are_unfit_by_id(store, spec, files)
        odd = compute.or_(odd, by_id)
        if by_id.true_count:
            reasons.append(
                f"{counted(by_id.true_count, FILE)} may have columns that only ids identify"
            )
    return odd, reasons


def namesakes_reason(files: pa.Table) -> str:
    """Return the reason why deltalog's reader must read files that share their names."""
    return f"too many others have the names of {counted(files.num_rows, FILE)}"


def _has_vector(scan: Scan, files: pa.Table) -> pa.BooleanArray:
    vectors = files.column("deletionVector").combine_chunks()
    found: pa.BooleanArray = compute.is_valid(compute.struct_field(vectors, "storageType"))
    if found.true_count:
        snapshot = scan.snapshot
        check_deletion_vectors(
            snapshot.configuration, table=snapshot.store.root, version=snapshot.version
        )
    return found


def by_name(files: pa.Table) -> tuple[list[pa.Table], pa.Table]:
    """Divide files into at most `_MOST_NAMESAKES` groups in which all names differ.

    Also return the files that are in no group.
    """
    if not files.num_rows:
        return [], files
    names = files.column("name")
    rank = compute.subtract(
        compute.rank(names, tiebreaker="first"), compute.rank(names, tiebreaker="min")
    )
    most = compute.max(rank).as_py()
    groups = [
        files.filter(compute.equal(rank, number)) if most else files
        for number in range(min(_MOST_NAMESAKES, most + 1))
    ]
    return groups, files.filter(compute.greater_equal(rank, _MOST_NAMESAKES))


def rows_frame(spark: SparkSession, plan: ReadPlan) -> DataFrame:
    """Return all rows of a plan's files. The predicate has pruned files, but filters no rows.

    Python workers read the files in `plan.unfit`; see `task_frame`.

    Args:
        spark: the session.
        plan: the plan of the read.
    """
    scan = plan.scan
    rows = output_rows(scan.spec)
    frames = [_group_frame(spark, plan, group) for group in plan.groups]
    if plan.unfit.num_rows or not frames:
        tasks = [
            make_task(scan.snapshot, scan.spec, row)
            for batch in plan.unfit.select(TASK_COLUMNS).to_batches(max_chunksize=4096)
            for row in batch.to_pylist()
        ]
        frames.append(
            task_frame(
                spark, tasks, rows, max_bytes=MAX_PARTITION_BYTES, what="; ".join(plan.of_workers)
            )
        )
    schema = scan.snapshot.configuration.schema
    sure = not_null_columns(spark, schema, scan.spec, (*plan.groups, plan.unfit))
    return with_comments(reduce(DataFrame.union, frames), rows, sure)


def with_comments(
    frame: DataFrame, rows: StructType, columns: Mapping[str, Column] = MappingProxyType({})
) -> DataFrame:
    """Return the frame with the table's comments on its columns.

    Args:
        frame: the rows.
        rows: the schema of the rows.
        columns: the name of a column → the expression that replaces the column.
    """
    fields = to_spark_schema(rows).fields
    if not columns and not any(one.metadata for one in fields):
        return frame
    return frame.select(
        *(
            columns.get(one.name, F.col(quoted(one.name))).alias(one.name, metadata=one.metadata)
            for one in fields
        )
    )


def _group_frame(spark: SparkSession, plan: ReadPlan, files: pa.Table) -> DataFrame:
    """Return the rows of files that Spark reads, with the column names of the table."""
    spec, snapshot = plan.scan.spec, plan.scan.snapshot
    stored = stored_spark_schema(spec.data_columns, spec.mode)
    for name in _kept_columns(spec):
        stored = stored if name is None else stored.add(name, "long")
    values = FileValues(spec, files)
    options: dict[str, str] = {}
    if values.need_join and spec.partition_columns.names:
        partitions = hive_partitions(snapshot.configuration, files, snapshot.store.root)
        if partitions is not None:
            values = FileValues(spec, files, partitions=False)
            options["basePath"] = spark_path(snapshot.store.root)
            for one in to_spark_schema(partitions).fields:
                stored = stored.add(one)
    raw = parquet_frame(spark, spec, stored, files, options)
    hidden = spark_metadata(raw)
    has_vectors = files.column("deletionVector").null_count < files.num_rows
    columns: list[Column | str] = [quoted(name) for name in stored.names]
    key = FileKey("file_name")
    if has_vectors or values.need_join:
        key = key_of(snapshot.store, files)
        columns.append(key.of_row(hidden))
    by_row = {metadata_columns.ROW_INDEX, metadata_columns.ROW_ID}
    if has_vectors or by_row.intersection(spec.metadata_columns):
        columns.append(hidden["row_index"].alias(ROW))
    frame = raw.select(*columns)
    if has_vectors:
        frame = without_deleted(frame, spark, snapshot.store, files, key)
    frame = values.join_to(frame, spark, key)
    return frame.select(*output_columns(spec, values))


def parquet_frame(
    spark: SparkSession,
    spec: ReadSpec,
    stored: StoredType,
    files: pa.Table,
    options: Mapping[str, str] = MappingProxyType({}),
) -> DataFrame:
    """Return the stored columns of files, read by Spark's own Parquet reader.

    Args:
        spark: the session.
        spec: the read specification, which contains the name of the table for errors.
        stored: the columns, with their names in the files.
        files: the files, with the column `location`.
        options: options of the reader, in addition to `_READER_OPTIONS`.

    Raises:
        DataFileMissingError: a file is missing.
    """
    where: list[Any] = files.column("location").to_pylist()  # Spark accepts only Python strings
    paths = [spark_path(location) for location in where]
    try:
        with _listing_in_few_tasks(spark, len(paths)):
            read = spark.read.options(**_READER_OPTIONS, **options)
            frame = read.schema(stored).parquet(*paths)
            frame.schema  # noqa: B018  # makes Spark Connect search for the files now
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        _check_permissions(paths)
        raise DataFileMissingError(
            f"cannot read table {spec.table!r}: Spark cannot find a data file: {error}; "
            f"{DataFileMissingError.ADVICE}"
        ) from error
    return frame


def _check_permissions(paths: Sequence[str]) -> None:
    """Raise if this process may not open a local file, which Hadoop reports as missing.

    Raises:
        AccessDeniedError: a file or a directory above it lacks the permission.
    """
    for kind, _, path in map(split_location, paths):
        try:
            if kind == LOCAL.name:
                os.stat(path)  # noqa: PTH116  # a string
        except PermissionError as error:
            raise storage_error(error, operation="read", path=path) from error
        except OSError:
            continue


@contextmanager
def _listing_in_few_tasks(spark: SparkSession, num_files: int) -> Iterator[None]:
    """Make Spark search for files in few tasks during the block.

    By default, Spark starts up to 10,000 tasks, each for one file. A task takes longer to start
    than to find a file. If the session has the setting, its value is used.
    """
    conf, tasks = spark.conf, max(_LEAST_LISTING_TASKS, num_files // _FILES_PER_LISTING_TASK)
    if num_files <= tasks or conf.get(_LISTING_TASKS, None) is not None:
        yield
        return
    conf.set(_LISTING_TASKS, str(tasks))
    try:
        yield
    finally:
        if conf.get(_LISTING_TASKS, None) == str(tasks):  # the user has not set it meanwhile
            conf.unset(_LISTING_TASKS)


def spark_metadata(raw: DataFrame) -> Column:
    """Return Spark's metadata struct, which contains the file and the position of each row.

    The struct is requested as a metadata column. `F.col("_metadata")` would prefer a column of the
    files with this name.

    Args:
        raw: the result of `parquet_frame`.
    """
    return raw.metadataColumn(metadata_columns.METADATA)


def output_columns(spec: ReadSpec, values: FileValues) -> list[Column | str]:
    """Return the output columns of a frame that contains the stored columns and the file values."""
    data = {field.name: field for field in spec.data_columns}
    found: list[Column | str] = []
    hidden: list[Column] = []
    for name in spec.output.names:
        if name in data:
            found.append(_shown(data[name], spec.mode))
        elif name in spec.metadata_columns:
            hidden.append(_metadata(spec, values, name).alias(name.partition(".")[2]))
        else:
            found.append(_partition(spec, values, name).alias(name))
    if not hidden:
        return found
    shown = [name for name in spec.output.names if name not in spec.metadata_columns]
    return [*found, F.struct(*hidden).alias(metadata_struct(shown))]


def _partition(spec: ReadSpec, values: FileValues, name: str) -> Column:
    if values.has(name):
        return values.column(name)
    # Spark reads the value from the name of the directory, or from the file.
    return F.col(quoted(spec.physical_names.get(name, name)))


def _shown(field: Field, mode: Mode) -> Column | str:
    stored = physical_name(field, mode)
    if stored == field.name and not (field.type in _FLOATS or has_structs(field.type)):
        # A string is faster than a `Column`, which needs a dozen calls to the JVM.
        return quoted(stored)
    column = F.col(quoted(stored))
    if mode is not Mode.NONE and has_structs(field.type):
        column = column.cast(to_spark_type(field.type))
    return _with_every_nan(column, field.type).alias(field.name)


def _with_every_nan(column: Column, kind: DataType) -> Column:
    """Return an equal column whose conditions Spark does not push down to Parquet.

    Spark treats NaN as the greatest number, but some writers exclude NaN from the bounds in a
    footer. With such bounds, Spark's reader would skip row groups that contain NaN.
    """
    if kind in _FLOATS:
        return F.nanvl(column, F.lit(math.nan).cast(to_spark_type(kind)))
    if isinstance(kind, StructType):
        for field in kind:
            if field.type in _FLOATS or isinstance(field.type, StructType):
                inner = column.getField(field.name)
                safe = _with_every_nan(inner, field.type)
                if safe is not inner:
                    column = column.withField(quoted(field.name), safe)
    return column


def _kept_columns(spec: ReadSpec) -> tuple[str | None, str | None]:
    """Return the columns of files with row ids and row commit versions, each if it is selected."""
    asked = spec.metadata_columns
    return (
        spec.row_id_column if metadata_columns.ROW_ID in asked else None,
        spec.row_commit_version_column if metadata_columns.ROW_COMMIT_VERSION in asked else None,
    )


def _metadata(spec: ReadSpec, values: FileValues, name: str) -> Column:
    kept_id, kept_version = _kept_columns(spec)
    match name:
        case metadata_columns.ROW_INDEX:
            return F.col(ROW)
        case metadata_columns.ROW_ID:
            fresh, kept = values.column(name) + F.col(ROW), kept_id
        case metadata_columns.ROW_COMMIT_VERSION:
            fresh, kept = values.column(name), kept_version
        case _:
            return values.column(name)
    return fresh if kept is None else F.coalesce(F.col(quoted(kept)), fresh)


def output_rows(spec: ReadSpec) -> StructType:
    """Return the schema of a scan's rows, with one struct for all metadata columns."""
    known: dict[str, Field] = {f.name: f for f in (*spec.data_columns, *spec.partition_columns)}
    shown = [known[name] for name in spec.output.names if name in known]
    hidden = [name for name in spec.output.names if name in spec.metadata_columns]
    return rows_schema(StructType(shown), hidden)


# --- NOT NULL columns


KEEP_NOT_NULL: Final = "spark.deltalog.keepNotNull"
"""Session setting. If `true`, dataframes preserve NOT NULL, and a NULL in a file is an error."""

# For each type, a constant that is the last argument of COALESCE. It makes Spark infer that the
# result is not NULL. COALESCE never returns the constant, because an earlier argument is not NULL
# or raises an error.
_SOME: Final[dict[DataType, str]] = {
    BINARY: "X''",
    BOOLEAN: "false",
    BYTE: "0Y",
    DATE: "DATE'1970-01-01'",
    DOUBLE: "0D",
    FLOAT: "0F",
    INTEGER: "0",
    LONG: "0L",
    SHORT: "0S",
    STRING: "''",
    TIMESTAMP: "TIMESTAMP'1970-01-01 00:00:00Z'",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ'1970-01-01 00:00:00'",
}


def not_null_columns(
    spark: SparkSession, schema: StructType, spec: ReadSpec, files: Iterable[pa.Table]
) -> dict[str, Column]:
    """Return expressions that replace the columns without NULL, so that Spark infers NOT NULL.

    Args:
        spark: the session.
        schema: the schema of the table.
        spec: the read specification of the scan.
        files: tables that contain the column `partitionValues` of all files of the scan.
    """
    strict = [field for field in schema if not field.nullable and field.type in _SOME]
    if not strict:
        return {}
    partitions = spec.partition_columns.names
    pieces = list(files)
    found = {
        field.name: F.coalesce(F.col(quoted(field.name)), F.expr(_SOME[field.type]))
        for field in strict
        if field.name in partitions and not _has_null(pieces, spec.physical_names[field.name])
    }
    rest = [
        field for field in strict if field.name in spec.output.names and field.name not in found
    ]
    if rest and (spark.conf.get(KEEP_NOT_NULL, None) or "").strip().lower() == "true":
        found |= {field.name: _checked(field, spec.table) for field in rest}
    return found


def _has_null(files: list[pa.Table], name: str) -> bool:
    texts = [extract(piece.column("partitionValues"), name) for piece in files]
    # In the log, an empty string as a partition value means NULL, for every type.
    return any(one.null_count or compute.any(compute.equal(one, "")).as_py() for one in texts)


def _checked(field: Field, table: str) -> Column:
    """Return an expression that fails the query if a value of the column is NULL."""
    said = (
        f"cannot read the column {field.name} of {table}: it is NOT NULL, and a file has NULL; "
        f"unset {KEEP_NOT_NULL} to read the rows as they are"
    )
    failing = F.expr(f"raise_error({quote_text(said)})")
    return F.coalesce(F.col(quoted(field.name)), failing, F.expr(_SOME[field.type]))


# --- partition values that Spark can read from the names of directories


_TEXTS: Final[dict[DataType, str]] = {
    STRING: r"(?s)^.*$",
    **dict.fromkeys((BYTE, SHORT, INTEGER, LONG), r"^-?\d{1,18}$"),
    DATE: r"^\d{4}-\d\d-\d\d$",
    BOOLEAN: "^(?:true|false)$",
}


def hive_partitions(
    configuration: TableConfiguration, files: pa.Table, root: str
) -> StructType | None:
    """Return the partition columns if Spark can read them from the names of directories, else None.

    Args:
        configuration: the configuration of the table.
        files: the files, with the columns `location` and `partitionValues`.
        root: the table's location.

    Cost: one pass over the files, and a loop over the partitions.
    """
    names = configuration.physical_partition_columns
    types = [field.type for field in configuration.partition_schema]
    if not names or not _TEXTS.keys() >= set(types):
        return None
    prefix = f"{root.rstrip('/')}/"
    where = files.column("location")
    if not compute.all(compute.starts_with(where, prefix)).as_py():
        return None  # some files are in another table's directory, as in a shallow clone
    inner = compute.utf8_slice_codeunits(where, len(prefix))
    columns = {"": compute.replace_substring_regex(inner, "/[^/]*$", "")}
    for name, pattern in zip(names, map(_TEXTS.__getitem__, types), strict=True):
        texts = extract(files.column("partitionValues"), name)
        fits = compute.match_substring_regex(texts, pattern)
        says_null = compute.equal(texts, NULL_DIRECTORY)
        if compute.any(compute.or_(compute.invert(fits), says_null)).as_py():
            return None
        columns[name] = pa.chunked_array([texts])
    for row in (
        arrow.table(columns).group_by(list(columns), use_threads=False).aggregate([]).to_pylist()
    ):
        if row[""] != hive_directory(names, row):
            return None
    schema = configuration.partition_schema
    return StructType([Field(n, one.type) for n, one in zip(names, schema, strict=True)])


# --- rows that Python workers read


def task_frame(
    spark: SparkSession,
    tasks: Sequence[ScanTask],
    rows: StructType,
    *,
    max_bytes: int,
    in_order: bool = False,
    what: str = "",
) -> DataFrame:
    """Return the rows of scan tasks as a DataFrame.

    Args:
        spark: the session.
        tasks: the files to read.
        rows: the schema of the rows, with metadata columns as one struct.
        max_bytes: the maximum number of bytes that one task reads.
        in_order: whether to preserve the order of files. One task then reads adjacent files.
        what: the operator's name in Spark's plan.

    Raises:
        WorkerMismatchError: the workers do not have the driver's version of deltalog.
    """
    schema = to_spark_schema(rows)
    groups = split_tasks(tasks, max_bytes, in_order=in_order)
    if not groups:
        return spark.createDataFrame([], schema)
    partitions = [TaskPartition(group) for group in groups]
    return frame_for_each(spark, partitions, partial(read_partition, rows=rows), schema, what=what)
