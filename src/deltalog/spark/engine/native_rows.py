"""Write the rows of a data frame by Spark's own Parquet writer, without Python workers.

Owns for which writes it makes the files that the tasks of `write_tasks` would make: the same rows,
names and types. All others are left to these.

Spark publishes the files of a job by renaming them, which object stores do not do. So only local
tables are written in this way, by sessions of one machine. `write.adopted_files` takes the files
into the table.

Protocol: none; Spark's HadoopMapReduceCommitProtocol
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world
from pyspark.sql.types import StructType as SparkStruct

from deltalog.column_mapping import Mode
from deltalog.paths import join
from deltalog.schema import PrimitiveType, StructType, UnknownType, VariantType
from deltalog.schema.collations import has_collations
from deltalog.schema.columns import walk_types
from deltalog.schema.types import TIMESTAMP, VOID
from deltalog.spark.engine.write_tasks import written_by
from deltalog.spark.reading.native import spark_path
from deltalog.spark.session.tasks import described, run_numbered
from deltalog.spark.session.types import quoted, to_spark_schema
from deltalog.storage.atomic import staging_directory
from deltalog.storage.store import is_local
from deltalog.write.adopted_files import discard_staged, stage_files, take_files
from deltalog.write.options import codec_of
from deltalog.write.spec import DEFAULT_TARGET_FILE_SIZE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from deltalog.paths import FileInfo
    from deltalog.rows.write_task import WriteJob
    from deltalog.schema import DataType
    from deltalog.storage.store import Store
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles

_CODECS: Final = {"none": "uncompressed", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd"}
"""pyarrow's names of compressions → Spark's."""
_HERE_BYTES: Final = 32 * 1024 * 1024
"""Files of so many bytes together are looked through by the driver, more of them by tasks."""
_MOST_BOUND_BYTES: Final = (1 << 31) - 1
_MASTER: Final = "spark.master"
_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
_MICROS: Final = "TIMESTAMP_MICROS"
_MILLIS: Final = "TIMESTAMP_MILLIS"
_STORED_AS_EVERYWHERE: Final = {
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Settings by which Spark stores values as tables have them."""


def is_fit(job: WriteJob, setting: Callable[[str], str | None]) -> bool:
    """Whether Spark's own writer makes the files of a write.

    The rows must be those that the table is to have: `Enforcer.sources` says that.

    Args:
        job: of the write.
        setting: from a name to the value that the session has.
    """
    if any(test(job) for test in _UNFIT):
        return False
    # Files on the disks of other machines would be in no listing, and their rows lost.
    if not (setting(_MASTER) or "").startswith("local"):
        return False
    # Another write of the session, once it is done, would have this one cut microseconds off.
    if (setting(_TIMESTAMPS) or "").upper() == _MILLIS and TIMESTAMP in _types(job.spec):
        return False
    return all(
        (setting(name) or "").strip().lower() == value.lower()
        for name, value in _STORED_AS_EVERYWHERE.items()
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
    """Write the rows in one job of Spark alone.

    Args:
        frame: the rows.
        sources: which of its columns each of the table's is.
        spec: of a write that `is_fit`.

    Raises:
        DataFileUnreadableError: a file has other columns than the table. After any error, all
            files of the job are deleted.
        StorageError: this process does not see what Spark has written.

    Cost: files of more than 32 MiB are looked through by tasks, for what their footers do not say:
    the bounds of floating-point numbers, and how many lists are NULL.
    """
    found, columns = frame.schema.fields, []
    for target, number in zip(to_spark_schema(spec.configuration.schema), sources, strict=True):
        columns.append(_optional(found[number], target).alias(target.name, metadata={}))
    options = {
        "compression": _CODECS[_codec(spec)],
        "maxRecordsPerFile": str(spec.max_rows_per_file or 0),
        "parquet.statistics.truncate.length": str(_MOST_BOUND_BYTES),
    }
    what = f"writing to {spec.store.root}"
    spark, store, directory = frame.sparkSession, spec.store, staging_directory()
    written: WrittenFiles | None = None
    try:
        with described(spark, what), _timestamps_of_tables(spark, spec):
            writer = frame.select(*columns).write.options(**options)
            writer.parquet(spark_path(join(store.root, directory)))
        written = _staged(spark, spec, _complete(store, directory), what)
        take_files(store, directory, written)
    except BaseException:
        discard_staged(store, directory)
        if written is not None:
            store.delete_many(written.paths)
        raise
    return written


def _optional(found: StructField, target: StructField) -> Column:
    """Return a column that may be NULL for all that Spark knows, like those of all our files.

    Else it is `required` in the file, and no row group is copied next to others that are not.
    Elements of lists and maps stay as they are: Spark takes a cast that only allows NULL away.
    """
    column = F.col(quoted(found.name))
    if isinstance(found.dataType, SparkStruct) and found.dataType != target.dataType:
        column = column.cast(target.dataType)
    return column if found.nullable else F.when(F.spark_partition_id() >= 0, column)


def _complete(store: Store, directory: str) -> list[FileInfo]:
    """Return the files that the job has published: attempts that still run have theirs below."""
    return [
        file
        for file in store.list_all(directory)
        if file.path == f"{directory}/{file.name}" and file.name.endswith(".parquet")
    ]


@contextlib.contextmanager
def _timestamps_of_tables(spark: SparkSession, spec: WriteSpec) -> Iterator[None]:
    """Have Spark store timestamps as microseconds, which have bounds in footers.

    Where another thread ends this earlier, files have INT96, whose bounds are found by decoding.
    """
    before = spark.conf.get(_TIMESTAMPS, None)
    if before == _MICROS or TIMESTAMP not in _types(spec):
        yield
        return
    spark.conf.set(_TIMESTAMPS, _MICROS)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_TIMESTAMPS)
        else:
            spark.conf.set(_TIMESTAMPS, before)


def _staged(
    spark: SparkSession, spec: WriteSpec, files: Sequence[FileInfo], what: str
) -> WrittenFiles:
    """Return what a commit adds of the files: by this process if they are small, else by tasks."""
    if sum(file.size_bytes for file in files) <= _HERE_BYTES:
        return stage_files(spec, files)

    def stage(number: int) -> WrittenFiles:
        return stage_files(spec, files[number : number + 1])

    return written_by(spec, run_numbered(spark, len(files), stage, what))
