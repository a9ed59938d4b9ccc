"""The positions of deleted rows as a DataFrame, which is joined or anti-joined with a scan.

The driver reads the deletion vectors; if they mark many rows, tasks read them. This module also
chooses the strategy of the join.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.kernels import compute
from deltalog._util.paths import decode_path
from deltalog.data.scan.plan import descriptor_of
from deltalog.data.scan.transform import load_bitmap
from deltalog.errors import DeltaError
from deltalog.spark.reading.file_values import KEY, FileKey
from deltalog.spark.session.tasks import frame_for_each
from deltalog.storage.parquet.reader import read_footer
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.data.scan import ScanTask
    from deltalog.protocol.actions.model import DeletionVectorDescriptor
    from deltalog.protocol.deletion_vectors import DeletionBitmap
    from deltalog.storage.store import Store

ROW: Final = "__deltalog_row"
"""The name of the column with the position of a row in its file."""
NUMBER: Final = "__deltalog_number"
"""The name of the column that contains the number of the scan task that reads a row."""
_POSITION: Final = "__deltalog_position"
_VECTOR_COLUMNS: Final = ("path", "size", "deletionVector", "numRecords")
MOST_READ_HERE: Final = 200_000
"""The maximum number of deleted rows for which the driver reads the deletion vectors. The positions
of 200,000 rows need 3 MB. If there are more deleted rows, tasks read the deletion vectors."""
MOST_BROADCAST: Final = 10_000_000
"""The maximum number of deleted rows whose positions are broadcast to every executor."""


@dataclass(frozen=True, slots=True)
class _Vector:
    """A deletion vector of one file, and the values that are returned with its positions.

    Args:
        descriptor: the descriptor of the deletion vector.
        key: the key of the file.
        modulus: the modulus if the key is numeric, else 0; see `FileKey`.
        path: the decoded path of the file.
        size_bytes: the size of the file.
        num_rows: the number of physical rows of the file; None if the log does not record it.
        without: a second deletion vector. Its positions are removed from the result.
        number: the value of the column `NUMBER`; None omits the column.
    """

    descriptor: DeletionVectorDescriptor
    key: str | int
    modulus: int
    path: str
    size_bytes: int | None
    num_rows: int | None = None
    without: DeletionVectorDescriptor | None = None
    number: int | None = None

    def positions(self, store: Store) -> pa.Table:
        """Return the positions of the deleted rows, with the columns that the join needs.

        A position after the end of the file is an error. The join would silently ignore it.

        Cost: reads the file's footer if `num_rows` is None.
        """
        try:
            bitmap = self._bitmap(store)
        except DeltaError as error:
            error.add_note(f"while reading {self.path!r} of table {store.root!r}")
            raise
        rows = bitmap.to_arrow().cast(pa.int64())
        found: dict[str, Any] = {KEY: _repeated(str(self.key), len(rows)), ROW: rows}
        if self.modulus:
            number = pa.scalar(int(self.key) % self.modulus, pa.int64())
            scaled = compute.multiply(rows, pa.scalar(self.modulus, pa.int64()))
            found = {_POSITION: compute.add(scaled, number)}
        if self.number is not None:
            found[NUMBER] = pa.repeat(pa.scalar(self.number, pa.int64()), len(rows))
        return pa.table(found)

    def _bitmap(self, store: Store) -> DeletionBitmap:
        num_rows = self.num_rows
        if num_rows is None:
            num_rows = read_footer(store, self.path, size_bytes=self.size_bytes).num_rows
        bitmap = load_bitmap(store, self.descriptor, num_rows=num_rows)
        if self.without is None:
            return bitmap
        return bitmap - load_bitmap(store, self.without, num_rows=num_rows)


def without_deleted(
    frame: DataFrame, spark: SparkSession, store: Store, files: pa.Table, key: FileKey
) -> DataFrame:
    """Remove the deleted rows from a frame that contains the columns `KEY` and `ROW`.

    Args:
        frame: the rows of files with deletion vectors.
        spark: the session.
        store: the store of the table.
        files: the files, with the columns `deletionVector`, `path`, `size` and `name`, and perhaps
            `numRecords`.
        key: the key that identifies files.
    """
    keys: list[Any] = key.of_files(files).to_pylist()
    names = [name for name in _VECTOR_COLUMNS if name in files.column_names]
    rows: list[dict[str, Any]] = files.select(names).to_pylist()
    vectors = [
        _Vector(
            vector, one, key.modulus, decode_path(row["path"]), row["size"], row.get("numRecords")
        )
        for row, one in zip(rows, keys, strict=True)
        if (vector := descriptor_of(row["deletionVector"])) is not None
    ]
    return _joined(frame, spark, store, vectors, key, how="left_anti")


def only_marked(
    frame: DataFrame,
    spark: SparkSession,
    tasks: Sequence[ScanTask],
    keys: Sequence[Any],
    key: FileKey,
) -> DataFrame:
    """Return the rows at the positions that scan tasks read; `NUMBER` identifies the task.

    A row that several tasks read occurs once per task.

    Args:
        frame: the rows of the files, with the columns `KEY` and `ROW`.
        spark: the session.
        tasks: scan tasks that return only deleted rows.
        keys: the value of `KEY` for the file of each task.
        key: the key that identifies files.
    """
    vectors = [
        _Vector(
            task.deletion_vector,
            one,
            key.modulus,
            task.path,
            task.size_bytes,
            without=task.without,
            number=number,
        )
        for number, (task, one) in enumerate(zip(tasks, keys, strict=True))
        if task.deletion_vector is not None
    ]
    return _joined(frame, spark, tasks[0].store, vectors, key, how="inner")


def _joined(
    frame: DataFrame,
    spark: SparkSession,
    store: Store,
    vectors: Sequence[_Vector],
    key: FileKey,
    *,
    how: Literal["left_anti", "inner"],
) -> DataFrame:
    if key.modulus:  # a single number identifies a row among the rows of all files
        position = key.position(ROW)
        frame, names = frame.withColumn(_POSITION, position), [_POSITION]
        schema = f"{_POSITION} BIGINT"
    else:
        names, schema = [KEY, ROW], f"{KEY} STRING, {ROW} BIGINT"
    if how == "inner":
        schema += f", {NUMBER} BIGINT"
    num_rows = sum(vector.descriptor.cardinality for vector in vectors)
    if num_rows <= MOST_READ_HERE:
        tables = map_in_pool(lambda vector: vector.positions(store), vectors)
        # Combine the batches, because Spark ignores all batches after an empty batch. An empty
        # deletion vector causes an empty batch.
        positions = spark.createDataFrame(pa.concat_tables(tables).combine_chunks(), schema)
    else:
        positions = _read_on_cluster(spark, store, vectors, schema)
    if num_rows <= MOST_BROADCAST:
        positions = F.broadcast(positions)
    return frame.join(positions, names, how)


def _repeated(text: str, times: int) -> Any:
    zeros = pa.repeat(pa.scalar(0, pa.int32()), times)
    names: Any = pa.DictionaryArray.from_arrays(zeros, pa.array([text]))
    return names.dictionary_decode()


def _read_on_cluster(
    spark: SparkSession, store: Store, vectors: Sequence[_Vector], schema: str
) -> DataFrame:
    count = min(len(vectors), 64)

    def read(some: Sequence[_Vector]) -> Iterator[pa.RecordBatch]:
        for vector in some:
            yield from vector.positions(store).to_batches(max_chunksize=1 << 18)

    groups = [vectors[number::count] for number in range(count)]
    return frame_for_each(spark, groups, read, schema)
