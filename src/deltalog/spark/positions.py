"""Deleted rows as a DataFrame of positions, against which a scan is anti-joined.

Owns where the deletion vectors are read (here, or on the cluster when they name many rows) and
how Spark is told to join.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import descriptor_of
from deltalog.spark.file_values import KEY
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.actions.model import DeletionVectorDescriptor
    from deltalog.storage.store import Store

    Named = tuple[str, DeletionVectorDescriptor]

ROW: Final = "__deltalog_row"
"""The column that says where in its file a row is."""
_SCHEMA: Final = f"{KEY} STRING, {ROW} BIGINT"
MOST_READ_HERE: Final = 200_000
"""Deleted rows up to which the driver reads the vectors itself: 3 MB."""
MOST_BROADCAST: Final = 10_000_000
"""Deleted rows up to which every executor gets all positions."""


def without_deleted(
    frame: DataFrame, spark: SparkSession, store: Store, files: pa.Table
) -> DataFrame:
    """The frame, which has the columns `KEY` and `ROW`, without the rows that are deleted.

    Args:
        frame: rows of files with deletion vectors.
        spark: the session.
        store: of the table.
        files: `name` and `deletionVector` of each.
    """
    vectors = _vectors(files)
    num_rows = sum(vector.cardinality for _, vector in vectors)
    if num_rows <= MOST_READ_HERE:
        tables = map_in_pool(lambda one: _positions(store, one), vectors)
        positions = spark.createDataFrame(pa.concat_tables(tables), _SCHEMA)
    else:
        positions = _read_on_cluster(spark, store, vectors)
    if num_rows <= MOST_BROADCAST:
        positions = F.broadcast(positions)
    return frame.join(positions, [KEY, ROW], "left_anti")


def _vectors(files: pa.Table) -> list[Named]:
    found = []
    for row in files.select(["name", "deletionVector"]).to_pylist():
        vector = descriptor_of(row["deletionVector"])
        if vector is not None:
            found.append((row["name"], vector))
    return found


def _positions(store: Store, one: Named) -> pa.Table:
    name, vector = one
    rows = load_bitmap(store, vector).to_arrow().cast(pa.int64())
    names: Any = pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), len(rows)), pa.array([name])
    )
    return pa.table({KEY: names.dictionary_decode(), ROW: rows})


def _read_on_cluster(spark: SparkSession, store: Store, vectors: Sequence[Named]) -> DataFrame:
    count = min(len(vectors), 64)
    groups = [vectors[start::count] for start in range(count)]
    numbers = spark.range(0, count, 1, count)
    return numbers.mapInArrow(_reading(store, groups), _SCHEMA)


def _reading(
    store: Store, groups: Sequence[Sequence[Named]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for one in groups[int(number or 0)]:
                    yield from _positions(store, one).to_batches(max_chunksize=1 << 18)

    return read
