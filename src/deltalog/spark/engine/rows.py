"""Write the rows of a dataframe, with Spark's own writer or with deltalog in Python workers.

Protocol: none
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession as ClassicSession
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention
from pyspark.sql.types import StructType as SparkStruct

from deltalog._util.paths import FileInfo, join
from deltalog.data.write.adopted_files import describe_staged
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.open_files import discard_job, new_job
from deltalog.data.write.options import DEFAULT_TARGET_FILE_SIZE_BYTES, WriteSpec, codec_of
from deltalog.data.write.written import WrittenFiles
from deltalog.errors import StorageError
from deltalog.operations.changes.task_writes import WriteJob, no_files, write_part
from deltalog.protocol.column_mapping import Mode
from deltalog.schema import PrimitiveType, StructType, UnknownType, VariantType, to_arrow_schema
from deltalog.schema.collations import has_collations
from deltalog.schema.columns import walk_types
from deltalog.schema.types import TIMESTAMP, VOID
from deltalog.spark.session.failures import naming_files
from deltalog.spark.session.spark_tables import spark_path
from deltalog.spark.session.tasks import decode_all, described, run_tasks, task_number
from deltalog.spark.session.types import quoted, schema_of, to_spark_schema
from deltalog.storage.staging import discard_staged, staging_directory, take_staged
from deltalog.storage.store import Store, is_local, native_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from deltalog.schema import DataType


class SparkRows:
    """The rows of a dataframe.

    Args:
        frame: the rows.
        gathers: whether the rows of each partition are moved to few tasks first; None means the
            table's property.
    """

    def __init__(self, frame: DataFrame, *, gathers: bool | None) -> None:
        self.schema: pa.Schema = to_arrow_schema(schema_of(frame.schema))
        self._frame = frame
        self._gathers = gathers

    def write(self, job: WriteJob) -> WrittenFiles:
        """Write the rows in one job, with Spark's own writer if its files are correct.

        Raises:
            SchemaMismatchError: the columns do not match the table's schema. Raised before any task
                runs.
        """
        sources = Enforcer.of_spec(job.spec, self.schema).sources
        if sources is not None and is_fit(job, self._frame.sparkSession):
            return write_natively(self._frame, sources, job.spec)
        store, job_id = job.spec.store, new_job()
        messages = run_tasks(
            self._gathered(job),
            partial(write_task, replace(job, spec=replace(job.spec, job=job_id))),
            f"writing to {store.root}",
            discard=partial(discard_job, store, job_id),
        )
        return written_by(job.spec, messages)

    def _gathered(self, job: WriteJob) -> DataFrame:
        configuration, wanted = job.spec.configuration, self._gathers
        columns = configuration.partition_columns
        wanted = configuration.optimizes_writes if wanted is None else wanted
        if not wanted or not columns:
            return self._frame
        return self._frame.hint("rebalance", *(F.col(quoted(name)) for name in columns))


# --- writes with Spark's own Parquet writer, without Python workers


_CODECS: Final = {"none": "uncompressed", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd"}
"""The compressions that Spark's own writer may use: name in pyarrow → name in Spark."""
_MOST_BOUND_BYTES: Final = (1 << 31) - 1
_MARK: Final = "_SUCCESS"
_MASTER: Final = "spark.master"
_ONE_MACHINE: Final = re.compile(r"local(-cluster)?(\[|$)")
_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
_HELD: Final = "spark.deltalog.outputTimestampType.held"
"""Session setting: the number of unfinished writes for which deltalog has changed the setting
`_TIMESTAMPS`, and the value to restore.

For example, `2:INT96` means that two writes are unfinished. The last of them restores INT96.
"""
_MICROS: Final = "TIMESTAMP_MICROS"
_MILLIS: Final = "TIMESTAMP_MILLIS"
_AS_EVERYWHERE: Final = {
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
}
"""The values that settings must have if they are set. Otherwise, Spark would store some values in
another form than Delta requires, or publish files of incomplete jobs."""
_lock: Final = Lock()


def is_fit(job: WriteJob, spark: SparkSession) -> bool:
    """Return whether Spark's own writer produces correct files for a write.

    The caller must have checked with `Enforcer.sources` that the rows need no conversion.

    Args:
        job: the write.
        spark: the session of the rows.
    """
    # A remote session would write files on its server, with the permissions of the server's user.
    if not isinstance(spark, ClassicSession):
        return False  # type: ignore[unreachable]  # a session of Spark Connect has another class
    if any(test(job) for test in _UNFIT):
        return False
    conf = spark.conf
    return are_settings_fit(
        {name: conf.get(name, None) for name in (_MASTER, _TIMESTAMPS, *_AS_EVERYWHERE)},
        has_timestamps=TIMESTAMP in _types(job.spec),
    )


def are_settings_fit(settings: Mapping[str, str | None], *, has_timestamps: bool) -> bool:
    """Return whether Spark's own writer produces correct files under a session's settings.

    Args:
        settings: the name of a setting → its value; None means Spark's default.
        has_timestamps: whether a column contains timestamps.
    """
    # On a cluster, executors could write the files to disks of other machines. The driver would not
    # find the files, and their rows would be lost.
    if not _ONE_MACHINE.match(settings[_MASTER] or ""):
        return False
    # With TIMESTAMP_MILLIS, Spark would truncate microseconds. deltalog does not override this
    # value, because another thread of the user may set it again during the write.
    if has_timestamps and (settings[_TIMESTAMPS] or "").upper() == _MILLIS:
        return False
    given = {name: settings[name] for name in _AS_EVERYWHERE}
    return all(
        text is None or text.strip().lower() == _AS_EVERYWHERE[name].lower()
        for name, text in given.items()
    )


_UNFIT: Final[tuple[Callable[[WriteJob], bool], ...]] = (
    lambda job: not is_local(job.spec.store),
    lambda job: job.predicate is not None or job.tells_changes,
    lambda job: bool(job.spec.configuration.partition_columns),
    lambda job: not len(job.spec.configuration.schema),
    lambda job: job.spec.configuration.column_mapping_mode is not Mode.NONE,
    lambda job: job.spec.configuration.properties.randomize_file_prefixes is True,
    lambda job: job.spec.writer_properties is not None,
    lambda job: job.spec.target_file_size_bytes != DEFAULT_TARGET_FILE_SIZE_BYTES,
    lambda job: _codec(job.spec) not in _CODECS,
    lambda job: has_collations(job.spec.configuration.schema),
    lambda job: any(map(_is_stored_in_another_way, _types(job.spec))),
)


def _codec(spec: WriteSpec) -> str:
    return codec_of(spec.writer_properties, spec.configuration.properties)


def _types(spec: WriteSpec) -> Iterator[DataType]:
    return (kind for _, kind in walk_types(spec.configuration.schema))


def _is_stored_in_another_way(kind: DataType) -> bool:
    if isinstance(kind, PrimitiveType):
        return kind == VOID or kind.primitive.is_opaque
    if isinstance(kind, StructType):
        return not len(kind)
    return isinstance(kind, VariantType | UnknownType)


def write_natively(frame: DataFrame, sources: Sequence[int], spec: WriteSpec) -> WrittenFiles:
    """Write the rows in one job in which Spark alone writes the files.

    Args:
        frame: the rows.
        sources: for each column of the table, the index of the frame's column.
        spec: the specification of a write for which `is_fit` is true.

    Raises:
        DataFileUnreadableError: the columns of a file differ from the table's columns.
        StorageError: Spark has not written the files at the table's location.

    If there is an error, all files of the job are deleted.

    Cost: this process reads the footers. It also reads columns whose statistics a footer lacks:
    floating-point columns for their bounds, and lists for their numbers of NULL.
    """
    found, columns = frame.schema.fields, []
    for target, number in zip(to_spark_schema(spec.configuration.schema), sources, strict=True):
        columns.append(_optional(found[number], target).alias(target.name, metadata={}))
    options = {
        "compression": _CODECS[_codec(spec)],
        "maxRecordsPerFile": str(spec.max_rows_per_file or 0),
        "parquet.statistics.truncate.length": str(_MOST_BOUND_BYTES),
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    }
    spark, store, directory = frame.sparkSession, spec.store, staging_directory()
    native_home(store).check([f"{directory}/{_MARK}"])
    try:
        with (
            described(spark, f"writing to {store.root}"),
            _timestamps_of_tables(spark, spec),
            naming_files(f"write to {store.root}"),
        ):
            writer = frame.select(*columns).write.options(**options)
            writer.parquet(spark_path(join(store.root, directory)))
        written = describe_staged(spec, _published(store, directory))
        take_staged(store, directory, written.paths)
    except BaseException:
        discard_staged(store, directory)
        raise
    return written


def _optional(found: StructField, target: StructField) -> Column:
    """Return a column that Spark treats as nullable, so that the column is `optional` in the file.

    All columns in deltalog's files are optional. If a column were `required`, row groups could not
    be copied between the files. The elements of lists cannot be changed in this way, because Spark
    removes a cast that only allows NULL.
    """
    column = F.col(quoted(found.name))
    if isinstance(found.dataType, SparkStruct) and found.dataType != target.dataType:
        column = column.cast(target.dataType)
    return column if found.nullable else F.when(F.spark_partition_id() >= 0, column)


def _published(store: Store, directory: str) -> list[FileInfo]:
    """Return the files that the job has published, without the files of unfinished attempts.

    Raises:
        StorageError: the file that marks the job as complete is missing.
    """
    files = {
        file.name: file
        for file in store.list_all(directory)
        if file.path == f"{directory}/{file.name}"
    }
    if _MARK not in files:
        raise StorageError(
            f"cannot write to {store.root}: Spark has written to the directory {directory!r}, but "
            "this process finds no complete job there; store the table where both can access it, "
            "or set spark.sql.parquet.writeLegacyFormat=true so that deltalog's tasks write"
        )
    return [file for name, file in files.items() if name.endswith(".parquet")]


@contextlib.contextmanager
def _timestamps_of_tables(spark: SparkSession, spec: WriteSpec) -> Iterator[None]:
    """Make Spark store timestamps in microseconds, for which footers contain bounds.

    If a session runs several writes at once, the first write changes the setting, and the last
    write restores it.
    """
    if TIMESTAMP not in _types(spec):
        yield
        return
    conf = spark.conf
    with _lock:
        held = conf.get(_HELD, None) or f"0:{conf.get(_TIMESTAMPS, None) or ''}"
        count, _, before = held.partition(":")
        conf.set(_HELD, f"{int(count) + 1}:{before}")
        conf.set(_TIMESTAMPS, _MICROS)
    try:
        yield
    finally:
        with _lock:
            count, _, before = (conf.get(_HELD, None) or f"1:{before}").partition(":")
            if int(count) > 1:
                conf.set(_HELD, f"{int(count) - 1}:{before}")
            else:
                conf.unset(_HELD)
                if conf.get(_TIMESTAMPS, None) == _MICROS:  # the user has not changed the setting
                    conf.set(_TIMESTAMPS, before) if before else conf.unset(_TIMESTAMPS)


# --- the part of a write that runs in tasks


def write_task(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> WrittenFiles:
    """Write the rows of this Spark task.

    Raises:
        SchemaMismatchError: a value does not match its column's type.
        ConstraintViolationError: a row violates a constraint.
        StorageError: the store failed; Spark may retry the task.

    If there is an error, all files of the task are deleted.
    """
    return write_part(job, batches, place=task_number())


def written_by(spec: WriteSpec, messages: Sequence[bytes]) -> WrittenFiles:
    """Combine the results of all tasks.

    Raises:
        DeltaError: a task found an error in its rows. The files of all other tasks are deleted.
    """
    parts: list[WrittenFiles] = decode_all(messages, spec.store, lambda written: written.paths)
    return WrittenFiles.merge(parts) if parts else no_files(spec)
