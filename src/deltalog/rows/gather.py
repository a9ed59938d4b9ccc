"""Optimized write: sort rows by partition before they are written.

A writer keeps a limited number of files open. If rows of many partitions come mixed, it would begin
files of the same partition again and again; sorted by partition, they fill one file after another.

Protocol: none; Delta Spark's `delta.autoOptimize.optimizeWrite`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.kernels import arrow
from deltalog.metadata_columns import METADATA
from deltalog.rows.external_sort import SortLimits, sort_batches
from deltalog.write.enforce import Enforcer
from deltalog.write.files import FileWriter, write_files
from deltalog.write.partition import split
from deltalog.write.rows_to_files import WriteLimits
from deltalog.write.source import open_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalog.configuration import TableConfiguration
    from deltalog.write.partition import Values
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles

_KEY: Final = f"{METADATA}.partition"  # no column of a table has this name


def write_optimized(
    spec: WriteSpec, data: object, *, limits: SortLimits | None = None
) -> WrittenFiles:
    """Write rows as `write_files` does, with as few files per partition as their size allows.

    Args:
        spec: of the table.
        data: anything that `open_batches` takes.
        limits: of the sort.

    Raises:
        DeltaError: as `write_files`; also a StorageError if temporary files fail.

    Cost: as `write_files`; rows beyond the memory limit are spilled to temporary files.
    """
    reader = open_batches(data)
    if not reader.schema.names:
        return write_files(spec, reader)
    partition_columns = spec.configuration.partition_columns
    with FileWriter(spec, limits=WriteLimits(files_at_once=1)) as writer:
        enforcer = Enforcer.of_spec(spec, reader.schema)
        batches: Iterable[pa.RecordBatch] = map(enforcer.apply, reader)
        if partition_columns:
            batches = gathered(spec.configuration, batches, limits or SortLimits())
        for batch in batches:
            if batch.num_rows:
                writer.write(batch)
        return writer.finish(
            identity_marks=enforcer.identity_marks, identity_starts=enforcer.identity_starts
        )


def gathered(
    configuration: TableConfiguration, batches: Iterable[pa.RecordBatch], limits: SortLimits
) -> Iterator[pa.RecordBatch]:
    """Yield the rows partition by partition, in the order in which partitions first appeared.

    Args:
        configuration: of the table.
        batches: in its logical schema.
        limits: of sorting.
    """
    numbers: dict[Values, int] = {}
    fields = configuration.partition_schema.fields

    def keyed() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for group in split(batch, fields):
                number = numbers.setdefault(group.values, len(numbers))
                rows = batch if group.rows is None else batch.take(group.rows)
                key = arrow.repeat(pa.scalar(number, pa.int64()), rows.num_rows)
                yield rows.append_column(_KEY, key)

    for batch in sort_batches(keyed(), _KEY, limits):
        yield batch.drop_columns([_KEY])
