"""Scan tasks: picklable descriptions of one file to read.

A task can be read in any thread, in another process or on a Spark worker. `reader` adds the methods
that read a task.

Protocol: Add File and Remove File, Row Tracking
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import arrow, compute
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import columns, resolve_predicate
from deltalog.expressions import columns as columns_of
from deltalog.expressions.sql_session import SqlSession
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.schema import (
    Field,
    StructType,
    canonical_path_of,
    from_arrow_type,
    project,
    to_arrow_schema,
)
from deltalog.schema.metadata_columns import (
    METADATA_COLUMNS,
    metadata_columns_of,
    with_metadata_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog.data.keys.indexed_rows import IndexedRows
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions.model import DeletionVectorDescriptor
    from deltalog.protocol.deletion_vectors import DeletionBitmap
    from deltalog.storage.parquet.facts import FetchedFooters
    from deltalog.storage.parquet.pages import RowRange
    from deltalog.storage.store import Store

Constants = tuple[tuple[str, Any], ...]
"""Columns with one value for all rows of a file: each name, and an array with the value.

The value cannot be an Arrow scalar. It would be pickled as a Python value, but some Arrow types
have no Python values.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSpec:
    """The settings that all tasks of a scan share.

    Args:
        table: the table's location, for error messages.
        data_columns: logical columns to read from the files, with only the required nested fields.
        partition_columns: logical columns whose values are in the log.
        metadata_columns: names of `METADATA_COLUMNS`.
        output: the schema of the batches; its columns are data, partition or metadata columns.
        predicate: a resolved condition; only rows for which it is true are returned.
        mode: the table's column mapping mode.
        physical_names: the physical names of the partition columns, by logical name.
        time_zone: the time zone of partition values that have no zone.
        row_id_column: the materialized row id column, in which rewritten files store row ids.
        row_commit_version_column: the materialized column of row commit versions.
        reads_change_type: whether the files are change files, which have the column `_change_type`.
    """

    table: str
    data_columns: StructType
    partition_columns: StructType
    metadata_columns: tuple[str, ...]
    output: pa.Schema
    predicate: Expression | None
    mode: Mode
    physical_names: Mapping[str, str]
    time_zone: str
    row_id_column: str | None = None
    row_commit_version_column: str | None = None
    reads_change_type: bool = False

    def without_output(self) -> ReadSpec:
        """Return the same read without output columns, for counting rows."""
        used = (
            {path[0] for path in columns(self.predicate)} if self.predicate is not None else set()
        )
        return replace(
            self,
            data_columns=StructType([f for f in self.data_columns if f.name in used]),
            output=pa.schema([]),
        )

    def with_columns(self, names: Sequence[str]) -> ReadSpec:
        """Return the same read with only some columns of `output`, in the given order."""
        paths = columns(self.predicate) if self.predicate is not None else ()
        used = {*names, *(path[0] for path in paths), *(".".join(path) for path in paths)}
        return replace(
            self,
            data_columns=StructType([f for f in self.data_columns if f.name in used]),
            metadata_columns=tuple(name for name in self.metadata_columns if name in used),
            output=pa.schema([self.output.field(name) for name in names]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """The description of a `ScanTask`: a data file without the rows that its deletion vector marks.

    Args:
        path: the decoded path.
        partition_values: serialised values by physical column name.
        base_row_id: the file's `baseRowId`.
        only_deleted: whether to return only the rows that `deletion_vector` marks and `without`
            does not mark; for the change data feed, and for changing rows by position.
        without: marks rows that are excluded from `deletion_vector`.
        constants: columns with one value for all rows, which follow the other columns.
        along: the number of bytes of table columns that may be read in addition to metadata and
            constants. When it is used up, batches have no table columns. None means no limit.
        footers: a cache of footers, for files that will be read again.
        most_rows: the number of rows before the predicate is applied; None if unknown or not
            requested.
        size_bytes: the size of the file.
        indexed: the rows for which the predicate may be true, by the key index; None if unknown.
    """

    store: Store
    spec: ReadSpec
    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int | None = None
    modification_time_ms: int | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    only_deleted: bool = False
    without: DeletionVectorDescriptor | None = None
    constants: Constants = ()
    along: Allowance | None = None
    footers: FetchedFooters | None = None
    most_rows: int | None = None
    indexed: IndexedRows | None = None

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        schema = self.spec.output
        for name, value in self.constants:
            schema = schema.append(pa.field(name, value.type))
        return schema


class Allowance:
    """A thread-safe budget for the bytes of table columns that a search of row positions may read.

    Args:
        num_bytes: the initial budget.
    """

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes
        self._lock = threading.Lock()

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up."""
        return self._left <= 0

    def take(self, num_bytes: int) -> bool:
        """Subtract bytes, down to zero; return whether the remaining budget was sufficient."""
        with self._lock:
            is_enough = num_bytes <= self._left
            self._left -= min(num_bytes, self._left)
            return is_enough


@contextmanager
def noting(task: FileTask) -> Iterator[None]:
    """Add a note with the file and the table to errors."""
    try:
        yield
    except DeltaError as error:
        error.add_note(f"while reading {task.path!r} of table {task.spec.table!r}")
        if type(error) is not InvalidInputError or task.spec.table in str(error):
            raise
        message = f"cannot read {task.spec.table}: {error.args[0]}"
        raise error.with_message(message) from error.__cause__


# --- The columns that a read needs from files and from the log


def read_spec(
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None,
    predicate: Expression | None,
    hidden: Sequence[str] = (),
    more_columns: Mapping[str, pa.DataType] = MappingProxyType({}),
    is_resolved: bool = False,
) -> ReadSpec:
    """Resolve the columns and the predicate against the table's schema.

    Args:
        snapshot: the version to read.
        columns: see `plan_scan`.
        predicate: see `plan_scan`.
        hidden: names of `METADATA_COLUMNS` that are appended to the output. They are valid even if
            the table has a column `_metadata`, which hides these names in `columns` and
            `predicate`.
        more_columns: types of the columns in `FileTask.constants`, by name.
        is_resolved: see `plan_scan`.

    Raises:
        InvalidInputError: a column is unknown; or a table column has a name in `hidden` (with a
            dot).
    """
    configuration = snapshot.configuration
    schema = configuration.schema
    metadata = metadata_columns_of(schema)
    asked = list(schema.names if columns is None else columns)
    metadata_names = [name for name in asked if name in metadata]
    shows_all = columns is None and not metadata_names
    plain_names = [name for name in asked if name not in metadata]
    read = shown = schema if shows_all else project(schema, plain_names)
    if predicate is not None:
        if not is_resolved:
            others = [Field(name, from_arrow_type(kind)) for name, kind in more_columns.items()]
            known = StructType([*with_metadata_columns(schema), *others])
            session = SqlSession(now=None, time_zone=snapshot.context.time_zone)
            predicate = resolve_predicate(predicate, known, session)
        used = {".".join(path): path for path in columns_of(predicate)}
        used = {name: path for name, path in used.items() if name not in more_columns}
        metadata_names += [name for name in used if name in metadata]
        needed = [path for name, path in used.items() if name not in metadata]
        read = shown if shows_all else project(schema, [*_paths(shown), *needed])
    partitioned = set(configuration.partition_columns)
    mode = configuration.column_mapping_mode
    output = configuration.arrow_schema if shows_all else _output(schema, shown, asked, metadata)
    return ReadSpec(
        table=snapshot.store.root,
        data_columns=StructType([field for field in read if field.name not in partitioned]),
        partition_columns=StructType([field for field in read if field.name in partitioned]),
        metadata_columns=tuple(dict.fromkeys([*metadata_names, *hidden])),
        output=_with_hidden(snapshot, output, hidden) if hidden else output,
        predicate=predicate,
        mode=mode,
        physical_names={
            field.name: physical_name(field, mode) for field in read if field.name in partitioned
        },
        row_id_column=configuration.row_id_column,
        row_commit_version_column=configuration.row_commit_version_column,
        time_zone=snapshot.context.time_zone,
    )


def _output(
    schema: StructType,
    shown: StructType,
    asked: Sequence[str],
    metadata: Mapping[str, pa.DataType],
) -> pa.Schema:
    """Return the Arrow schema of the requested columns, in this order and without duplicates."""
    fields = {field.name: field for field in to_arrow_schema(shown)}
    fields |= {name: pa.field(name, metadata[name]) for name in asked if name in metadata}
    order = [name if name in metadata else canonical_path_of(schema, name)[0] for name in asked]
    return pa.schema([fields[name] for name in dict.fromkeys(order)])


def _with_hidden(snapshot: Snapshot, output: pa.Schema, hidden: Sequence[str]) -> pa.Schema:
    """Append metadata columns to the schema; raise if a column of the table has such a name."""
    for name in hidden:
        if name in snapshot.configuration.schema.names:
            raise InvalidInputError(
                f"cannot identify the rows of {snapshot.store.root}: the table has a column "
                f"{name!r}, a name that deltalog needs for the position of rows; rename it"
            )
        if name not in output.names:
            output = output.append(pa.field(name, METADATA_COLUMNS[name]))
    return output


def _paths(schema: StructType) -> list[tuple[str, ...]]:
    """Return the paths of the leaves of a pruned schema."""
    found: list[tuple[str, ...]] = []
    for field in schema:
        if isinstance(field.type, StructType) and len(field.type):
            found += [(field.name, *path) for path in _paths(field.type)]
        else:
            found.append((field.name,))
    return found


# --- Ranges of physical rows


_GAP_ROWS: Final = 1024
_MOST_RUNS: Final = 512
_PAGE_ROWS: Final = 5000
"""The number of rows of a page in files of deltalog; rows in shorter gaps are decoded anyway."""
_FEW_ROWS: Final = 64
"""The maximum number of rows for which a loop takes less time than Arrow's functions."""


def merged(runs: Iterable[RowRange]) -> list[RowRange]:
    """Return ascending row ranges; adjacent ranges are joined."""
    found: list[RowRange] = []
    for start, end in runs:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        elif start < end:
            found.append((start, end))
    return found


def positions(runs: Sequence[RowRange]) -> pa.Array[Any]:
    """Return the numbers of the rows in the ranges, ascending."""
    parts = [arrow.arange(start, end) for start, end in runs]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def within_groups(runs: Iterable[RowRange], starts: Sequence[int]) -> Iterator[RowRange]:
    """Yield the row ranges, split at the starts of row groups.

    Args:
        runs: the row ranges to split.
        starts: the first row of each row group, followed by the number of rows.
    """
    for first, end in runs:
        start = first
        while start < end:
            stop = min(end, starts[bisect_right(starts, start)])
            yield start, stop
            start = stop


def live_runs(
    runs: Sequence[RowRange], marked: DeletionBitmap, *, only_deleted: bool
) -> Sequence[RowRange]:
    """Return the row ranges without long sequences of deleted rows.

    Args:
        runs: the row ranges that may match.
        marked: the rows that the deletion vector marks.
        only_deleted: whether to return the marked rows instead of the others.
    """
    if not runs:
        return runs
    first, end = runs[0][0], runs[-1][1]
    num_marked = marked.count_between(first, end)
    if only_deleted and not num_marked:
        return []
    if not only_deleted and num_marked < _GAP_ROWS:
        return runs
    marks = marked.between(first, end).to_arrow()
    starts, ends = _near(marks, _GAP_ROWS if only_deleted else 1)
    if not only_deleted:  # skip only long sequences of deleted rows
        is_long = compute.greater_equal(compute.subtract(ends, starts), _GAP_ROWS)
        starts, ends = starts.filter(is_long), ends.filter(is_long)
    if len(starts) > _MOST_RUNS:
        return runs
    wanted = _pairs(starts, ends)
    if not only_deleted:
        edges = [first, *(edge for run in wanted for edge in run), end]
        wanted = list(zip(edges[::2], edges[1::2], strict=True))
    return _common(runs, wanted)


def runs_of(rows: pa.Int64Array) -> list[RowRange]:
    """Return ranges that contain the given ascending rows, and the rows in short gaps."""
    if len(rows) > _FEW_ROWS:
        return _pairs(*_near(rows, _PAGE_ROWS))
    found: list[RowRange] = []
    numbers: list[Any] = rows.to_pylist()
    for row in numbers:
        if found and row - found[-1][1] < _PAGE_ROWS:
            found[-1] = (found[-1][0], row + 1)
        else:
            found.append((row, row + 1))
    return found


def hits(
    runs: Sequence[RowRange], mask: pa.BooleanArray, starts: Sequence[int]
) -> tuple[Sequence[RowRange], pa.BooleanArray]:
    """Return row ranges around the kept rows, and a mask over the rows of these ranges.

    Args:
        runs: the row ranges that were read.
        mask: for each of these rows, whether to keep it; at least one row is kept.
        starts: the first row of each row group, followed by the number of rows.
    """
    places = _near_places(mask)
    if places is None:  # nearly all pages have kept rows, so skip only row groups
        cut = list(within_groups(runs, starts))
        ends = list(accumulate(end - start for start, end in cut))
        every = zip([0, *ends[:-1]], ends, strict=True)
        places = [place for place in every if mask.slice(place[0], _length(place)).true_count]
    offsets = [0, *accumulate(map(_length, runs))]
    found: list[RowRange] = []
    parts: list[pa.BooleanArray] = []
    for place in within_groups(places, offsets):
        number = bisect_right(offsets, place[0]) - 1
        shift = runs[number][0] - offsets[number]
        found.append((place[0] + shift, place[1] + shift))
        parts.append(mask.slice(place[0], _length(place)))
    return merged(found), parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _near_places(mask: pa.BooleanArray) -> list[RowRange] | None:
    """Return ranges of positions near true values; None if they cover nearly the whole mask."""
    if mask.true_count > len(mask) // 2:
        return None
    kept: Any = compute.indices_nonzero(mask)
    starts, ends = _near(kept, _GAP_ROWS)
    if len(starts) > _MOST_RUNS:
        return None
    return _pairs(starts, ends)


def _near(numbers: pa.Array[Any], gap: int) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Join ascending numbers with short gaps to ranges; return the ranges' starts and ends."""
    count = len(numbers)
    steps = compute.subtract(numbers.slice(1), numbers.slice(0, max(0, count - 1)))
    lasts = compute.indices_nonzero(compute.greater(steps, gap))
    firsts = numbers.take(compute.add(lasts, 1))
    ends = compute.add(pa.concat_arrays([numbers.take(lasts), numbers.slice(count - 1)]), 1)
    return pa.concat_arrays([numbers.slice(0, 1), firsts]), ends


def _pairs(starts: pa.Array[Any], ends: pa.Array[Any]) -> list[RowRange]:
    bounds: list[list[Any]] = [starts.to_pylist(), ends.to_pylist()]
    return list(zip(*bounds, strict=True))


def _common(some: Sequence[RowRange], others: Sequence[RowRange]) -> list[RowRange]:
    """Return the rows that are in both lists of ranges."""
    found: list[RowRange] = []
    position = 0
    for start, end in some:
        while position < len(others) and others[position][1] <= start:
            position += 1
        at = position
        while at < len(others) and others[at][0] < end:
            found.append((max(start, others[at][0]), min(end, others[at][1])))
            at += 1
    return merged(found)


def _length(run: RowRange) -> int:
    return run[1] - run[0]
