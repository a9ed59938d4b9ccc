"""Tables of statistics taken apart into their leaves, and put together again.

Whoever keeps statistics by leaf (of a checkpoint, of a version) reads only those that are not
there yet.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from deltalog.kernels import compute
from deltalog.stats.schema import Path, schema_of_leaves

StatsLeaf = tuple[Path, pa.DataType]


def leaf_of(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray[Any]:
    """A leaf of a table of struct columns; NULL where a parent is NULL."""
    column = table.column(path[0])
    for name in path[1:]:
        column = compute.struct_field(column, [column.type.get_field_index(name)])
    return column


def nest(leaves: Sequence[tuple[Path, pa.ChunkedArray[Any]]]) -> pa.Table:
    """The table of struct columns that has the given leaves, all of equal length.

    Cost: no copy.
    """
    schema = schema_of_leaves((path, column.type) for path, column in leaves)
    flat = pa.Table.from_arrays(
        [column for _, column in leaves], [str(n) for n in range(len(leaves))]
    )
    batches = []
    for batch in flat.to_batches():
        by_path = {path: batch.column(number) for number, (path, _) in enumerate(leaves)}
        columns = [_nested(field, (field.name,), by_path) for field in schema]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _nested(field: Any, path: Path, leaves: dict[Path, Any]) -> Any:
    if path in leaves:
        return leaves[path]
    children = [_nested(child, (*path, child.name), leaves) for child in field.type]
    return pa.StructArray.from_arrays(children, fields=list(field.type))
