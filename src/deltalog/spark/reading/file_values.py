"""Columns whose value comes from the log and is constant within a file.

Examples are partition values, the base row id and the metadata of the file. Rows are joined with a
small broadcast table of these values. If all files have the same value, the column is a literal.

Protocol: Partition Value Serialization, Row Tracking
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.kernels import compute
from deltalog._util.paths import decode_path
from deltalog.expressions import Literal, to_sql
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.schema import DataType, from_arrow_type, metadata_columns
from deltalog.schema.metadata_columns import METADATA_COLUMNS
from deltalog.spark.session.types import to_spark_type
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from deltalog.data.scan import ReadSpec
    from deltalog.storage.store import Store

_PREFIX: Final = "__deltalog_value_"
_BASE_ROW_ID: Final = "baseRowId"
_ROW_COMMIT_VERSION: Final = "defaultRowCommitVersion"
_FILE_COLUMNS: Final = {
    metadata_columns.FILE_PATH: "location",
    metadata_columns.FILE_NAME: "name",
    metadata_columns.FILE_SIZE: "size",
    metadata_columns.FILE_MODIFICATION_TIME: "modified",
    metadata_columns.ROW_ID: _BASE_ROW_ID,
    metadata_columns.ROW_COMMIT_VERSION: _ROW_COMMIT_VERSION,
}


class FileValues:
    """The constant columns of some files.

    Args:
        spec: the read specification of the scan.
        files: the files, with the columns `TASK_COLUMNS`, `location` and `name`.
        partitions: whether the partition values are included.
        more: the names and types of further columns of `files` that are included.
    """

    def __init__(
        self,
        spec: ReadSpec,
        files: pa.Table,
        *,
        partitions: bool = True,
        more: Mapping[str, pa.DataType] = MappingProxyType({}),
    ) -> None:
        self._files = files
        self._types: dict[str, DataType] = {}
        self._arrays: dict[str, Any] = {}
        for field in spec.partition_columns if partitions else ():
            texts = extract(files.column("partitionValues"), spec.physical_names[field.name])
            self._add(
                field.name,
                field.type,
                parse_column(texts, field.type, column=field.name, time_zone=spec.time_zone),
            )
        for name in spec.metadata_columns:
            if name in _FILE_COLUMNS:
                kind = METADATA_COLUMNS[name]
                column = _FILE_COLUMNS[name]
                array = _modified(files, kind) if column == "modified" else files.column(column)
                self._add(name, from_arrow_type(kind), array)

        for name, kind in more.items():
            self._add(name, from_arrow_type(kind), files.column(name))

    def _add(self, name: str, kind: DataType, array: Any) -> None:
        whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        self._types[name] = kind
        self._arrays[name] = whole

    @property
    def need_join(self) -> bool:
        """Return whether some value differs among the files, so that rows need a join."""
        return any(not _is_constant(array) for array in self._arrays.values())

    def has(self, name: str) -> bool:
        """Return whether a column is one of the constant columns."""
        return name in self._arrays

    def join_to(
        self, frame: DataFrame, spark: SparkSession, key: FileKey, *, always: bool = False
    ) -> DataFrame:
        """Join a frame, by its column `KEY`, with the values that differ among the files.

        Args:
            frame: the rows of the files.
            spark: the session.
            key: the key that identifies files.
            always: whether to join even if no value differs. A file that occurs several times in
                `files` then returns its rows several times.
        """
        keys = key.of_files(self._files)
        return self._joined(frame, spark, keys, key.ddl, always=always)

    def join_by_number(self, frame: DataFrame, spark: SparkSession) -> DataFrame:
        """Join a frame whose column `KEY` contains the position of the file in `files`.

        Args:
            frame: the rows of the files.
            spark: the session.
        """
        keys = pa.chunked_array([pa.array(range(self._files.num_rows), pa.int64())])
        return self._joined(frame, spark, keys, "BIGINT", always=False)

    def _joined(
        self,
        frame: DataFrame,
        spark: SparkSession,
        keys: pa.ChunkedArray[Any],
        ddl: str,
        *,
        always: bool,
    ) -> DataFrame:
        varying = {name: a for name, a in self._arrays.items() if not _is_constant(a)}
        if not varying and not always:
            return frame
        columns: dict[str, Any] = {KEY: keys}
        columns |= {_column(number): varying[name] for number, name in self._numbered(varying)}
        schema = ", ".join(
            [
                f"{KEY} {ddl}",
                *(f"{_column(n)} {_ddl(self._types[x])}" for n, x in self._numbered(varying)),
            ]
        )
        # Pass a single batch, because Spark ignores the batches after an empty batch.
        values = spark.createDataFrame(pa.table(columns).combine_chunks(), schema)
        return frame.join(F.broadcast(values), KEY, "inner")

    def _numbered(self, names: Mapping[str, Any]) -> list[tuple[int, str]]:
        return [(number, name) for number, name in enumerate(self._arrays) if name in names]

    def column(self, name: str) -> Column:
        """Return the expression for a partition column or metadata column of the joined frame."""
        array = self._arrays[name]
        if not _is_constant(array):
            return F.col(_column(list(self._arrays).index(name)))
        value = array[0].as_py() if len(array) else None
        text = "NULL" if value is None else to_sql(Literal(value, self._types[name]))
        return F.expr(text).cast(to_spark_type(self._types[name]))


def _column(number: int) -> str:
    return f"{_PREFIX}{number}"


def _ddl(kind: DataType) -> str:
    return to_spark_type(kind).simpleString()


def _is_constant(array: Any) -> bool:
    return compute.count_distinct(array, mode="all").as_py() <= 1


def _modified(files: pa.Table, kind: pa.DataType) -> pa.Array[Any]:
    millis = files.column("modificationTime").combine_chunks()
    micros = compute.multiply(millis, pa.scalar(1000, pa.int64()))
    shown: pa.Array[Any] = micros.cast(kind)
    return shown


# --- keys: the values that identify the file of each row


KEY: Final = "__deltalog_file"
"""The name of the column that identifies the file of a row."""
MOST_LOOKED_AT: Final = 1000
"""The maximum number of files whose lengths are requested from the store. If there are more files,
the key of each file is its name."""
_MOST_NUMBERS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class FileKey:
    """The key that identifies files.

    Args:
        column: the field of Spark's `_metadata` that contains the key.
        modulus: a power of two; all file lengths differ modulo this number, so the remainder
            identifies the file. The remainder and a row's position are combined to one number that
            identifies the row. 0 if the key is the file's name.
    """

    column: str
    modulus: int = 0

    @property
    def ddl(self) -> str:
        """Return the type of `KEY`."""
        return "BIGINT" if self.modulus else "STRING"

    def of_row(self, hidden: Column) -> Column:
        """Return the column `KEY` of a row, computed from Spark's `_metadata`."""
        return hidden[self.column].alias(KEY)

    def position(self, row: str) -> Column:
        """Return an expression for the number that identifies a row among all files.

        Args:
            row: the name of the column with the position of a row in its file.
        """
        bits = self.modulus.bit_length() - 1
        return F.expr(f"shiftleft({row}, {bits}) | ({KEY} & {self.modulus - 1}L)")

    def of_files(self, files: pa.Table) -> pa.ChunkedArray[Any]:
        """Return the value of `KEY` for each file."""
        found: pa.ChunkedArray[Any] = files.column("size" if self.modulus else "name")
        return found


def key_of(store: Store, files: pa.Table) -> FileKey:
    """Choose the key for files whose names differ.

    Cost: one request per file, if there are at most `MOST_LOOKED_AT` files.
    """
    by_name = FileKey("file_name")
    sizes = files.column("size")
    if files.num_rows > MOST_LOOKED_AT or sizes.null_count:
        return by_name
    modulus = _modulus(sizes.to_pylist())
    if not modulus:
        return by_name
    paths = [decode_path(str(path)) for path in files.column("path").to_pylist()]
    true = map_in_pool(lambda path: store.stat(path).size_bytes, paths)
    return FileKey("file_size", modulus) if true == sizes.to_pylist() else by_name


def _modulus(sizes: list[Any]) -> int:
    """Return the smallest power of two modulo which all sizes differ; 0 if it is too large."""
    if len(set(sizes)) < len(sizes):
        return 0
    modulus = 1
    while modulus <= _MOST_NUMBERS:
        if len({size % modulus for size in sizes}) == len(sizes):
            return modulus
        modulus *= 2
    return 0
