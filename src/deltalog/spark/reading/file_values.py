"""Columns that are constant within a file, which Spark does not read from it.

Owns partition values, the base row id, and the file's facts in the log. They are joined from a
small table that is broadcast, or are literals if all files share them.

Protocol: Partition Value Serialization, Row Tracking
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog import metadata_columns
from deltalog.expressions import Literal, to_sql
from deltalog.kernels import compute
from deltalog.metadata_columns import METADATA_COLUMNS
from deltalog.partition_values import extract, parse_column
from deltalog.schema import from_arrow_type
from deltalog.spark.reading.file_keys import KEY
from deltalog.spark.session.types import to_spark_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from deltalog.scan import ReadSpec
    from deltalog.schema import DataType
    from deltalog.spark.reading.file_keys import FileKey

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
        spec: what is read.
        files: `TASK_COLUMNS`, with `location` and `name` of each file.
        partitions: whether partition values are among them.
        more: other columns of `files` that are, with their types.
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
        """Whether files differ in any column, so that rows must be joined with their values."""
        return any(not _is_constant(array) for array in self._arrays.values())

    def has(self, name: str) -> bool:
        """Whether a column is one of these."""
        return name in self._arrays

    def join_to(
        self, frame: DataFrame, spark: SparkSession, key: FileKey, *, always: bool = False
    ) -> DataFrame:
        """Join a frame with the column `KEY` to the values that differ among the files.

        Args:
            frame: rows of the files.
            spark: the session.
            key: what tells the files apart.
            always: join even if no value differs, since a file may be there more than once.
        """
        keys = key.of_files(self._files)
        return self._joined(frame, spark, keys, key.ddl, always=always)

    def join_by_number(self, frame: DataFrame, spark: SparkSession) -> DataFrame:
        """Join a frame whose column `KEY` is the number of a row of the files, from 0.

        Args:
            frame: rows of the files.
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
        # Of one piece: to Spark a batch without rows is the end.
        values = spark.createDataFrame(pa.table(columns).combine_chunks(), schema)
        return frame.join(F.broadcast(values), KEY, "inner")

    def _numbered(self, names: Mapping[str, Any]) -> list[tuple[int, str]]:
        return [(number, name) for number, name in enumerate(self._arrays) if name in names]

    def column(self, name: str) -> Column:
        """Return a partition column or a metadata column over the joined frame."""
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
