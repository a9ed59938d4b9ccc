"""The columns of some rows of a file: what the file has, and what follows from the log.

Owns how metadata columns, partition values and constants become columns. Row indices count physical
rows, of which a mask keeps some.

Protocol: Row Tracking, Partition Value Serialization
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog import metadata_columns
from deltalog.errors import InvalidPartitionValueError
from deltalog.kernels import arrow, compute
from deltalog.metadata_columns import METADATA_COLUMNS
from deltalog.partition_values import parse_value
from deltalog.paths import join
from deltalog.scan.runs import positions
from deltalog.schema import to_arrow_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.scan.task import ScanTask
    from deltalog.storage.parquet_pages import RowRange

    Columns = Mapping[str, pa.ChunkedArray[Any]]

_MOST: Final = 0.97
"""From this share of kept rows on, filtering column by column is faster."""


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The columns of runs of physical rows, of which `mask` keeps some.

    Args:
        task: whose rows they are.
        found: columns that hold all rows of the runs.
        runs: physical positions of each run's first row and the one behind its last; ascending.
        mask: which rows are kept; None is all.
        kept: columns that hold only the kept rows.
    """

    task: ScanTask
    found: Columns
    runs: Sequence[RowRange]
    mask: pa.BooleanArray | None
    kept: Columns

    @property
    def count(self) -> int:
        """How many rows are kept."""
        if self.mask is not None:
            return self.mask.true_count
        return sum(end - start for start, end in self.runs)

    def table(self, names: Sequence[str]) -> pa.Table:
        """The named columns of the kept rows."""
        if not names:
            rows = pa.Array.from_buffers(pa.struct([]), self.count, [None], children=[])
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])  # type: ignore[arg-type]  # a struct array
        data = {name: self.found[name] for name in names if name in self.found}
        if self.mask is not None:
            data = filtered(data, self.mask)
        data |= {name: self.kept[name] for name in names if name in self.kept}
        return _table({name: data[name] if name in data else self._derived(name) for name in names})

    def _derived(self, name: str) -> pa.Array[Any]:
        constants = dict(self.task.constants)
        if name in constants:
            return _repeat(constants[name][0], self.count)
        if name in self.task.spec.physical_names:  # whatever the column is called
            return _repeat(_partition_value(self.task, name), self.count)
        if name == metadata_columns.METADATA:
            parts = [self._metadata(part) for part in self.task.spec.metadata_columns]
            names = [part.partition(".")[2] for part in self.task.spec.metadata_columns]
            return pa.StructArray.from_arrays(parts, names)
        return self._metadata(name)

    def _metadata(self, name: str) -> pa.Array[Any]:
        task = self.task
        match name:
            case metadata_columns.ROW_INDEX:
                return self._row_index()
            case metadata_columns.ROW_ID:
                # Row Tracking: a materialized id wins; else baseRowId plus the physical position.
                base = task.base_row_id
                fresh = None if base is None else compute.add(self._row_index(), base)
                return self._kept_or(task.spec.row_id_column, fresh)
            case metadata_columns.ROW_COMMIT_VERSION:
                version = pa.scalar(task.default_row_commit_version, pa.int64())
                fresh = _repeat(version, self.count)
                return self._kept_or(task.spec.row_commit_version_column, fresh)
            case _:
                return _repeat(_file_metadata(task, name), self.count)

    def _row_index(self) -> pa.Array[Any]:
        index = positions(self.runs)
        return index if self.mask is None else index.filter(self.mask)

    def _kept_or(self, column: str | None, fresh: pa.Array[Any] | None) -> pa.Array[Any]:
        fresh = pa.nulls(self.count, pa.int64()) if fresh is None else fresh
        kept = self.found.get(column) if column is not None else None
        if kept is None:
            return fresh
        if self.mask is not None:
            kept = kept.filter(self.mask)
        merged: pa.Array[Any] = compute.coalesce(kept.combine_chunks(), fresh)
        return merged


def filtered(data: Columns, mask: pa.BooleanArray) -> dict[str, pa.ChunkedArray[Any]]:
    """Filter columns by a mask."""
    if not data:
        return {}
    if mask.true_count >= _MOST * len(mask):
        # Arrow copies the long runs between few gaps as they are, but only column by column.
        return {name: column.filter(mask) for name, column in data.items()}
    return dict(zip(data, _table(data).filter(mask).columns, strict=True))


def _table(columns: Mapping[str, Any]) -> pa.Table:
    """A table of arrays and chunked arrays."""
    return pa.table(dict(columns))


def _repeat(value: pa.Scalar[Any], count: int) -> pa.Array[Any]:
    repeated: pa.Array[Any] = arrow.repeat(value, count)
    return repeated


def _file_metadata(task: ScanTask, name: str) -> pa.Scalar[Any]:
    kind = METADATA_COLUMNS[name]
    match name:
        case metadata_columns.FILE_PATH:
            return pa.scalar(join(task.store.root, task.path), kind)
        case metadata_columns.FILE_NAME:
            return pa.scalar(task.path.rpartition("/")[2], kind)
        case metadata_columns.FILE_SIZE:
            return pa.scalar(task.size_bytes, kind)
        case _:
            return pa.scalar(metadata_columns.moment_of(task.modification_time_ms), kind)


def _partition_value(task: ScanTask, name: str) -> pa.Scalar[Any]:
    spec = task.spec
    column = next(field for field in spec.partition_columns if field.name == name)
    text = task.partition_values.get(spec.physical_names[name])
    try:
        value = parse_value(text, column.type, time_zone=spec.time_zone)
    except InvalidPartitionValueError as error:
        error.add_note(f"partition column {name!r} of file {task.path!r}")
        raise
    return pa.scalar(value, to_arrow_type(column.type))
