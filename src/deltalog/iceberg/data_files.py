"""Entries of data files in Iceberg manifests: location, partition, counts, bounds and row ids.

This module converts bounds to Iceberg's binary form. It omits a bound that could be too tight. The
conversion is columnar, but PyIceberg's writer needs one Python record for each file.

Protocol: Add File, Per-file Statistics, Partition Values, Row Tracking; Iceberg Table Spec:
Manifests, Row Lineage, Appendix D (Single-value serialization)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DataFile,
    DataFileContent,
    FileFormat,
    construct_partition_summaries,
)
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, FloatType, IcebergType

from deltalog._util.kernels import Array, compute
from deltalog._util.paths import file_locations
from deltalog.errors import MalformedLogError
from deltalog.iceberg.metadata import column_id
from deltalog.iceberg.store_io import as_location
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.protocol.stats.ranges import correction
from deltalog.protocol.stats.schema import (
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NUM_RECORDS,
    find_leaf,
    has_bounds,
    indexed_columns,
    stats_schema,
)
from deltalog.schema.types import (
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
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyiceberg.manifest import PartitionFieldSummary
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema.columns import Path
    from deltalog.schema.types import DataType, Field

    Indexed = Sequence[tuple[Path, Field]]

FILE_COLUMNS: Final = ("path", "partitionValues", "size")
ROW_ID_COLUMNS: Final = ("baseRowId", "defaultRowCommitVersion")
LAYOUT: Final = 3
"""The Iceberg format version of records in memory. Files may have another version."""
_LAST_ROW_ID: Final = 2**63 - 1

_INT: Final = struct.Struct("<i").pack
_LONG: Final = struct.Struct("<q").pack
_FLOAT: Final = struct.Struct("<f").pack
_DOUBLE: Final = struct.Struct("<d").pack


def _whole(pack: Callable[[int], bytes], through: pa.DataType) -> Callable[[Array], list[Any]]:
    return lambda array: [
        None if value is None else pack(value)
        for value in array.cast(through, safe=False).to_pylist()
    ]


def _moments(array: Array) -> list[Any]:
    return [None if v is None else _LONG(v) for v in array.cast(pa.int64()).to_pylist()]


def _days(array: Array) -> list[Any]:
    return [None if v is None else _INT(v) for v in array.cast(pa.int32()).to_pylist()]


def _floating(pack: Callable[[float], bytes]) -> Callable[[Array], list[Any]]:
    # In Iceberg, NaN is not a valid bound.
    return lambda array: [
        None if value is None or value != value else pack(value)  # noqa: PLR0124  # true for NaN
        for value in array.to_pylist()
    ]


def _texts(array: Array) -> list[Any]:
    return [None if value is None else value.encode() for value in array.to_pylist()]


def _decimals(array: Array) -> list[Any]:
    """Encode unscaled numbers as the shortest big-endian two's complement."""
    found: list[Any] = []
    for value in array.to_pylist():
        if value is None:
            found.append(None)
            continue
        sign, digits, _ = value.as_tuple()
        number = int("".join(map(str, digits)))
        number = -number if sign else number
        length = (number + (number < 0)).bit_length() // 8 + 1
        found.append(number.to_bytes(length, "big", signed=True))
    return found


# Iceberg orders -0.0 before 0.0, but Delta's writers treat them as equal. So a lower bound of zero
# becomes -0.0, and an upper bound of zero becomes 0.0.
_ZEROS: Final[dict[DataType, tuple[bytes, bytes]]] = {
    FLOAT: (_FLOAT(-0.0), _FLOAT(0.0)),
    DOUBLE: (_DOUBLE(-0.0), _DOUBLE(0.0)),
}
_ZEROS_OF_TYPE: Final[dict[type[IcebergType], tuple[bytes, bytes]]] = {
    FloatType: _ZEROS[FLOAT],
    DoubleType: _ZEROS[DOUBLE],
}
_SUMMARY_BOUNDS: Final = (2, 3)  # the places of both bounds in `PartitionFieldSummary`
_BOUNDS: Final[dict[DataType, Callable[[Array], list[Any]]]] = {
    **dict.fromkeys((BYTE, SHORT, INTEGER), _whole(_INT, pa.int32())),
    LONG: _whole(_LONG, pa.int64()),
    FLOAT: _floating(_FLOAT),
    DOUBLE: _floating(_DOUBLE),
    DATE: _days,
    **dict.fromkeys((TIMESTAMP, TIMESTAMP_NTZ), _moments),
    STRING: _texts,
}


class ListedFile(NamedTuple):
    """A file and its sequence number, for an entry of a manifest.

    Args:
        data_file: the file, or the part of a Puffin file that contains a deletion vector.
        sequence_number: the sequence number of the snapshot that wrote the file's rows; None means
            the snapshot that adds the manifest.
    """

    data_file: DataFile
    sequence_number: int | None = None


@dataclass(slots=True)
class DataFileCounts:
    """The numbers of files, rows and bytes that a snapshot adds or removes."""

    files: int = 0
    rows: int = 0
    size_bytes: int = 0

    def count(self, data_file: DataFile) -> None:
        """Count one file."""
        self.files += 1
        self.rows += data_file.record_count
        self.size_bytes += data_file.file_size_in_bytes


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Converter of a table's files to Iceberg's data files.

    Args:
        configuration: the configuration of the table.
        root: the decoded location of the table.
        time_zone: the time zone of timestamp partition values without a time zone.
        has_row_ids: whether manifests contain the row ids of files.
    """

    configuration: TableConfiguration
    root: str
    time_zone: str
    has_row_ids: bool

    @property
    def names(self) -> list[str]:
        """The names of the columns of added files that the conversion needs."""
        return [*FILE_COLUMNS, *(ROW_ID_COLUMNS if self.has_row_ids else ())]

    def indexed(self) -> list[tuple[Path, Field]]:
        """The leaf columns that have statistics, with their physical paths."""
        configuration = self.configuration
        properties = configuration.properties
        partitions = set(configuration.physical_partition_columns)
        schema = configuration.physical_schema
        return indexed_columns(
            StructType([field for field in schema.fields if field.name not in partitions]),
            num_indexed_columns=properties.data_skipping_num_indexed_cols,
            columns=configuration.physical_stats_columns,
        )

    def stats_schema(self) -> pa.Schema:
        """The schema of the required statistics."""
        return stats_schema(self.indexed(), tight_bounds=False)

    def data_files(self, adds: pa.Table, stats: pa.Table) -> Iterator[ListedFile]:
        """Yield the data file of each row.

        Args:
            adds: added files, with the columns `names`.
            stats: the statistics of these files with `stats_schema`, in the same order.

        Raises:
            MalformedLogError: a file has no `numRecords`, or no valid row id.
        """
        counts: list[Any] = stats.column(NUM_RECORDS).to_pylist()
        if None in counts:
            path = adds["path"][counts.index(None)].as_py()
            raise MalformedLogError(
                f"cannot list the files of {self.root} as Iceberg: expected numRecords for each "
                f"file, found none for {path!r}; rewrite that file"
            )
        indexed = self.indexed()
        rows = zip(
            self.locations(adds),
            adds.column("size").to_pylist(),
            counts,
            self.partitions(adds),
            _null_counts(stats, indexed),
            _bounds(stats, indexed, MIN_VALUES),
            _bounds(stats, indexed, MAX_VALUES),
            self._row_ids(adds, counts),
            strict=True,
        )
        for path, size, count, partition, nulls, lower, upper, (first_row_id, version) in rows:
            data_file = DataFile.from_args(
                _table_format_version=LAYOUT,
                content=DataFileContent.DATA,
                file_path=path,
                file_format=FileFormat.PARQUET,
                partition=partition,
                record_count=count,
                file_size_in_bytes=size,
                null_value_counts=nulls or None,
                lower_bounds=lower or None,
                upper_bounds=upper or None,
                first_row_id=first_row_id,
            )
            yield ListedFile(data_file, version)

    def locations(self, files: pa.Table) -> list[str]:
        """Return the locations of files from their column `path`."""
        found: Any = file_locations(files.column("path"), self.root)
        return [as_location(one) for one in found.to_pylist()]

    def partitions(self, adds: pa.Table) -> Iterator[Record]:
        """Yield the partition of each file from its column `partitionValues`."""
        configuration = self.configuration
        fields = configuration.partition_schema.fields
        if not fields:
            return (Record() for _ in range(len(adds)))
        columns = [
            _stored(
                parse_column(
                    extract(adds.column("partitionValues"), name),
                    field.type,
                    column=field.name,
                    time_zone=self.time_zone,
                ),
                field.type,
            )
            for name, field in zip(configuration.physical_partition_columns, fields, strict=True)
        ]
        return (Record(*values) for values in zip(*columns, strict=True))

    def _row_ids(
        self, adds: pa.Table, counts: Sequence[int]
    ) -> Sequence[tuple[int | None, int | None]]:
        """Return the id of each file's first row, and the version that wrote its rows."""
        if not self.has_row_ids:
            return [(None, None)] * len(adds)
        ids, versions = (adds.column(name).to_pylist() for name in ROW_ID_COLUMNS)
        for place, (number, count) in enumerate(zip(ids, counts, strict=True)):
            if number is None or not 0 <= number <= _LAST_ROW_ID - count:
                raise MalformedLogError(
                    f"cannot list the files of {self.root} as Iceberg: expected a valid baseRowId "
                    f"for each file, found {number} for {adds['path'][place].as_py()!r}; rewrite "
                    "that file"
                )
        return list(zip(ids, versions, strict=True))


_PLACES: Final = {field.name: place for place, field in enumerate(DATA_FILE_TYPE[LAYOUT].fields)}


def member(data_file: DataFile, name: str) -> Any:
    """Return a member of a data file by its name in Iceberg's specification."""
    return data_file[_PLACES[name]]


def partition_summaries(
    spec: PartitionSpec, schema: Schema, partitions: list[Record]
) -> list[PartitionFieldSummary]:
    """Return the partition summaries of a manifest; bounds of zero include -0.0 and 0.0."""
    found = construct_partition_summaries(spec, schema, partitions)
    kinds = [field.field_type for field in spec.partition_type(schema).fields]
    for summary, kind in zip(found, kinds, strict=True):
        zeros = _ZEROS_OF_TYPE.get(type(kind))
        for place, kept in zip(_SUMMARY_BOUNDS, zeros or (), strict=False):
            if zeros is not None and summary[place] in zeros:
                summary[place] = kept
    return found


def with_content(data_file: DataFile) -> DataFile:
    """Convert `content` to the enum. For format version 1, PyIceberg sets it to a number."""
    place = _PLACES["content"]
    data_file[place] = DataFileContent(data_file[place])
    return data_file


def key_of(data_file: DataFile) -> str:
    """Return the location of the data file; for a deletion vector, the file that it applies to."""
    referenced = member(data_file, "referenced_data_file")
    return data_file.file_path if referenced is None else referenced


def _null_counts(stats: pa.Table, indexed: Indexed) -> list[dict[int, int]]:
    found = [(column_id(field), _listed(stats, (NULL_COUNT, *path))) for path, field in indexed]
    return _by_file(len(stats), found)


def _bounds(stats: pa.Table, indexed: Indexed, kind: str) -> list[dict[int, bytes]]:
    columns = []
    for path, field in indexed:
        stored = find_leaf(stats, (kind, *path)) if has_bounds(field) else None
        if stored is None:
            continue
        corrected = correction(field)
        side = corrected.lower if kind == MIN_VALUES else corrected.upper
        values = _encoder(field.type)(side(_whole_array(stored)))
        zeros = _ZEROS.get(field.type)
        if zeros is not None:
            kept = zeros[kind == MAX_VALUES]
            values = [kept if value in zeros else value for value in values]
        columns.append((column_id(field), values))
    return _by_file(len(stats), columns)


def _encoder(data_type: DataType) -> Callable[[Array], list[Any]]:
    if isinstance(data_type, PrimitiveType) and data_type.is_decimal:
        return _decimals
    return _BOUNDS.get(data_type, lambda array: [None] * len(array))


def _stored(values: pa.Array[Any], data_type: DataType) -> list[Any]:
    """Convert partition values for manifests: days, microseconds, or the value itself."""
    if data_type == DATE:
        return values.cast(pa.int32()).to_pylist()
    if data_type in {TIMESTAMP, TIMESTAMP_NTZ}:
        return values.cast(pa.int64()).to_pylist()
    return values.to_pylist()


def _whole_array(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _listed(stats: pa.Table, path: Path) -> Sequence[Any]:
    found = find_leaf(stats, path)
    return [None] * len(stats) if found is None else compute.cast(found, pa.int64()).to_pylist()


def _by_file(count: int, columns: Sequence[tuple[int, Sequence[Any]]]) -> list[dict[int, Any]]:
    """Return for each file a mapping of column id to value, without NULLs."""
    found: list[dict[int, Any]] = [{} for _ in range(count)]
    for number, values in columns:
        for file, value in zip(found, values, strict=True):
            if value is not None:
                file[number] = value
    return found
