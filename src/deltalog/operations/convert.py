"""Convert Parquet files into a Delta table in place: write a log, but no data files.

Protocol: Add File and Remove File, Per-file Statistics, Column Mapping, Deletion Vectors
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from deltalog._util.paths import FileInfo
from deltalog.data.scan.reader import ScanTask, read_task
from deltalog.data.scan.task import ReadSpec
from deltalog.data.write.encode import Layout
from deltalog.data.write.open_files import FilePlan
from deltalog.data.write.options import DEFAULT_TARGET_FILE_SIZE_BYTES, WriteSpec
from deltalog.errors import InvalidInputError
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.log.reader import parse_commits
from deltalog.log.segment import LogSegment
from deltalog.log.snapshot import Snapshot
from deltalog.log.snapshot.state import LogState
from deltalog.operations.convert_files import (
    ParquetFile,
    PartitionStrategy,
    find_parquet_files,
    partition_fields,
    partition_values,
    read_footers,
    stage_vectors,
    table_schema,
)
from deltalog.operations.operation import Operation
from deltalog.protocol.actions import AddFile, DeletionVectorDescriptor
from deltalog.protocol.actions.codec import encode_actions
from deltalog.protocol.actions.properties import CONSTRAINT_PREFIX
from deltalog.protocol.column_mapping import PHYSICAL_NAME_KEY, Mode, to_physical_schema
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.deletion_vectors import inline_descriptor
from deltalog.protocol.stats.collect import encode_stats, with_wide_bounds
from deltalog.protocol.stats.schema import NUM_RECORDS
from deltalog.schema import StructType, encode_schema, to_arrow_schema
from deltalog.schema.columns import map_fields
from deltalog.storage.pool import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.log.context import TableContext
    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction

_READ_AHEAD: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A plan for a table of existing Parquet files.

    Args:
        schema: schema of the table. Partition columns that the files lack are last.
        partition_columns: names of the partition columns.
        files: files of the table.
        source_format: `parquet` or `iceberg`.
        source_version: snapshot id of the Iceberg table; None for Parquet.
        max_column_id: highest column id that the source ever assigned; None without column ids.
        description: description of the source.
        features: table features that the files need.
    """

    schema: StructType
    partition_columns: tuple[str, ...]
    files: tuple[ParquetFile, ...]
    source_format: str = "parquet"
    source_version: int | None = None
    max_column_id: int | None = None
    description: str | None = None
    features: tuple[str, ...] = ()


def plan_conversion(
    context: TableContext,
    *,
    partition_by: StructType | None = None,
    partition_strategy: PartitionStrategy | None = None,
) -> Conversion:
    """Plan the conversion of the Parquet files below a root; nothing is written.

    Args:
        context: context of the new table; its time zone applies to timestamps in directory names.
        partition_by: partition columns; None infers them from directories such as `p=1`.
        partition_strategy: whether directories are named `p=1` (`hive`, the default) or contain
            only the values, in the order of the columns (`directory`).

    Raises:
        InvalidInputError: there are no Parquet files, or their paths lack a partition column.
        SchemaMismatchError: files have different types for the same column.
        InvalidPartitionValueError: a directory's value does not parse as its column's type.

    Cost: one listing, and reading the footer of every file.
    """
    if partition_strategy not in {None, "hive", "directory"}:
        raise InvalidInputError(
            f"partition_strategy: expected 'hive' or 'directory', found {partition_strategy!r}"
        )
    infos = find_parquet_files(context.store)
    data, counts = read_footers(context.store, infos)
    fields = partition_fields(infos, partition_by, partition_strategy)
    values = partition_values(infos, fields, partition_strategy, time_zone=context.time_zone)
    return Conversion(
        schema=table_schema(data, fields),
        partition_columns=fields.names,
        files=tuple(
            ParquetFile(info=info, num_rows=rows, partition_values=row)
            for info, rows, row in zip(infos, counts, values, strict=True)
        ),
    )


def configuration_in_place(wanted: TableConfiguration) -> TableConfiguration:
    """Return a new table's configuration, adapted to existing files.

    With column mapping, it uses the column names in the files as physical names.

    Raises:
        InvalidInputError: the column mapping mode is `id`, or there are constraints.
    """
    texts = wanted.metadata.configuration
    constraints = [key for key in texts if key.startswith(CONSTRAINT_PREFIX)]
    if constraints:
        raise InvalidInputError(
            f"cannot convert with {', '.join(constraints)}: a conversion does not check rows; "
            "convert first, then add the constraints"
        )
    if wanted.column_mapping_mode is Mode.NONE:
        return wanted
    if wanted.column_mapping_mode is Mode.ID:
        raise InvalidInputError(
            "cannot convert with delta.columnMapping.mode=id: the existing Parquet files do not "
            "contain the table's field ids; use delta.columnMapping.mode=name"
        )
    schema = map_fields(
        wanted.schema,
        lambda field: replace(field, metadata={**field.metadata, PHYSICAL_NAME_KEY: field.name}),
    )
    metadata = replace(wanted.metadata, schema_string=encode_schema(schema))
    return TableConfiguration(wanted.protocol, metadata)


def snapshot_of(
    context: TableContext, conversion: Conversion, configuration: TableConfiguration
) -> Snapshot:
    """Return a snapshot of the table that the conversion would create; nothing is written.

    Its log and deletion vectors are in memory. Use it only to read or clone the source.
    """
    adds = [
        _add(
            file,
            _counted(file),
            None if file.deleted is None else inline_descriptor(file.deleted),
        )
        for file in conversion.files
    ]
    data = encode_actions([configuration.protocol, configuration.metadata, *adds])
    info = FileInfo(commit_path(0), len(data), context.clock.now_ms())
    commit = LogFile(LogFileKind.COMMIT, 0, info)
    segment = LogSegment(version=0, checkpoint=None, commits=(commit,), target_commit=info)
    state = LogState(context.store, segment, parsed=parse_commits([(commit, data)]), parsed_to=0)
    return Snapshot(
        context, state, protocol=configuration.protocol, metadata=configuration.metadata
    )


@dataclass(frozen=True, slots=True)
class ConvertedFiles:
    """The result of a conversion: the number of converted files."""

    num_files: int

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        return {"numConvertedFiles": self.num_files}

    def result(self) -> int:
        """Return the number of files."""
        return self.num_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert(Operation[ConvertedFiles]):
    """Add existing Parquet files to a new table.

    Args:
        conversion: the plan, made for the store of the new table.
        collect_stats: whether to read the files to compute statistics of their columns. Otherwise
            the statistics contain only `numRecords`.
    """

    conversion: Conversion
    collect_stats: bool = True
    name: ClassVar[str] = "CONVERT"
    doing: ClassVar[str] = "reading files"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> ConvertedFiles:
        """Add the files to a table whose configuration is from `configuration_in_place`.

        Cost: with `collect_stats`, reads the columns with statistics from every file; otherwise no
        I/O except to store deletion vectors.
        """
        del engine
        total = len(self.conversion.files)
        transaction.progress.expect(total)
        for add in _adds(transaction, self.conversion, collect_stats=self.collect_stats):
            transaction.adds.append(add)
            transaction.progress.done()
        transaction.record_read(None)
        transaction.parameters |= {
            "numFiles": total,
            "partitionedBy": list(self.conversion.partition_columns),
            "collectStats": self.collect_stats,
            "sourceFormat": self.conversion.source_format,
        }
        return ConvertedFiles(total)


def _adds(
    pending: PendingTransaction, conversion: Conversion, *, collect_stats: bool
) -> Iterator[AddFile]:
    masked = [
        (file.info.path, file.deleted) for file in conversion.files if file.deleted is not None
    ]
    stored = stage_vectors(pending, [bitmap for _, bitmap in masked]) if masked else ()
    vectors = {path: vector for (path, _), vector in zip(masked, stored, strict=True)}
    texts: Iterator[str] = map(_counted, conversion.files)
    if collect_stats:
        texts = read_ahead(_Collector(pending), conversion.files, depth=_READ_AHEAD)
    for file, text in zip(conversion.files, texts, strict=True):
        yield _add(file, text, vectors.get(file.info.path))


def _counted(file: ParquetFile) -> str:
    """Return statistics that contain only the number of records, without reading data."""
    return _masked(file, encode_stats({NUM_RECORDS: file.num_rows}))


def _masked(file: ParquetFile, text: str) -> str:
    """Mark the bounds in the statistics as wide if some rows of the file are deleted."""
    return text if file.deleted is None else with_wide_bounds(text, num_records=file.num_rows)


def _add(file: ParquetFile, stats: str, vector: DeletionVectorDescriptor | None) -> AddFile:
    return AddFile(
        path=file.info.path,
        partition_values=file.partition_values,
        size_bytes=file.info.size_bytes,
        modification_time_ms=file.info.modified_ms,
        data_change=True,
        stats=stats,
        deletion_vector=vector,
    )


class _Collector:
    """Computes a file's statistics by scanning all its rows, including deleted ones."""

    def __init__(self, pending: PendingTransaction) -> None:
        configuration = pending.configuration
        self._store = pending.store
        self._plan = FilePlan(
            spec=WriteSpec(
                store=pending.store,
                configuration=configuration,
                time_zone=pending.context.time_zone,
                target_file_size_bytes=DEFAULT_TARGET_FILE_SIZE_BYTES,
            ),
            layout=Layout(configuration),
        )
        names = set(self._plan.collector().finish()["nullCount"])
        physical = to_physical_schema(configuration.data_schema, configuration.column_mapping_mode)
        columns = StructType([field for field in physical if field.name in names])
        self._spec = ReadSpec(
            table=pending.store.root,
            data_columns=columns,
            partition_columns=StructType([]),
            metadata_columns=(),
            output=to_arrow_schema(columns),
            predicate=None,
            mode=configuration.column_mapping_mode,
            physical_names={},
            time_zone=pending.context.time_zone,
        )

    def __call__(self, file: ParquetFile) -> str:
        collector = self._plan.collector()
        task = ScanTask(
            store=self._store,
            spec=self._spec,
            path=file.info.path,
            partition_values={},
            size_bytes=file.info.size_bytes,
        )
        for batch in read_task(task):
            collector.update(batch)
        return _masked(file, encode_stats(collector.finish()))
