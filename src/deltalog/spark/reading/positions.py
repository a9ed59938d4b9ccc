"""Deleted rows as a DataFrame of positions, with which a scan is anti-joined.

Owns where the deletion vectors are read (on the driver, or by tasks if they mark many rows), and
the join strategy.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.kernels import compute
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import descriptor_of
from deltalog.spark.reading.file_keys import KEY
from deltalog.spark.session.tasks import numbered_frame
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.actions.model import DeletionVectorDescriptor
    from deltalog.spark.reading.file_keys import FileKey
    from deltalog.storage.store import Store

ROW: Final = "__deltalog_row"
"""Column with the position of a row in its file."""
_POSITION: Final = "__deltalog_position"
MOST_READ_HERE: Final = 200_000
"""Most deleted rows for which the driver reads the vectors itself: 3 MB."""
MOST_BROADCAST: Final = 10_000_000
"""Most deleted rows for which all positions are broadcast to every executor."""


@dataclass(frozen=True, slots=True)
class _Vector:
    """The deleted rows of one file, to be read.

    Args:
        descriptor: of the deletion vector.
        key: that identifies the file.
        modulus: of the keys, if they are numbers.
    """

    descriptor: DeletionVectorDescriptor
    key: str | int
    modulus: int

    def positions(self, store: Store) -> pa.Table:
        """Return the columns by which a scan is joined."""
        rows = load_bitmap(store, self.descriptor).to_arrow().cast(pa.int64())
        if self.modulus:
            number = pa.scalar(int(self.key) % self.modulus, pa.int64())
            scaled = compute.multiply(rows, pa.scalar(self.modulus, pa.int64()))
            return pa.table({_POSITION: compute.add(scaled, number)})
        zeros = pa.repeat(pa.scalar(0, pa.int32()), len(rows))
        names: Any = pa.DictionaryArray.from_arrays(zeros, pa.array([str(self.key)]))
        return pa.table({KEY: names.dictionary_decode(), ROW: rows})


def without_deleted(
    frame: DataFrame, spark: SparkSession, store: Store, files: pa.Table, key: FileKey
) -> DataFrame:
    """Remove deleted rows from a frame with the columns `KEY` and `ROW`.

    Args:
        frame: rows of files with deletion vectors.
        spark: the session.
        store: of the table.
        files: `deletionVector`, `size` and `name` of each.
        key: what tells them apart.
    """
    if key.modulus:  # one number for a row of any file
        position = key.position(F.col(ROW))
        frame, names = frame.withColumn(_POSITION, position), [_POSITION]
        schema = f"{_POSITION} BIGINT"
    else:
        names, schema = [KEY, ROW], f"{KEY} STRING, {ROW} BIGINT"
    vectors = _vectors(files, key)
    num_rows = sum(vector.descriptor.cardinality for vector in vectors)
    if num_rows <= MOST_READ_HERE:
        tables = map_in_pool(lambda vector: vector.positions(store), vectors)
        positions = spark.createDataFrame(pa.concat_tables(tables), schema)
    else:
        positions = _read_on_cluster(spark, store, vectors, schema)
    if num_rows <= MOST_BROADCAST:
        positions = F.broadcast(positions)
    return frame.join(positions, names, "left_anti")


def _vectors(files: pa.Table, key: FileKey) -> list[_Vector]:
    keys: list[Any] = key.of_files(files).to_pylist()
    rows = files.column("deletionVector").to_pylist()
    found = ((descriptor_of(row), one) for row, one in zip(rows, keys, strict=True))
    return [_Vector(vector, one, key.modulus) for vector, one in found if vector is not None]


def _read_on_cluster(
    spark: SparkSession, store: Store, vectors: Sequence[_Vector], schema: str
) -> DataFrame:
    count = min(len(vectors), 64)

    def read(number: int) -> Iterator[pa.RecordBatch]:
        for vector in vectors[number::count]:
            yield from vector.positions(store).to_batches(max_chunksize=1 << 18)

    return numbered_frame(spark, count, read, schema)
