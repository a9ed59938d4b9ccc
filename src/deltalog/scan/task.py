"""Scan tasks: the description of one file to read, as picklable values.

Does no reading: the same task can be read in any thread, in another process or on a Spark worker.
`scan.reader`, which stands on this file, joins in with how that is done when the room is imported.

Protocol: Add File and Remove File, Row Tracking
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from deltalog.errors import DeltaError
from deltalog.expressions import columns
from deltalog.schema import StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog.actions.model import DeletionVectorDescriptor
    from deltalog.column_mapping import Mode
    from deltalog.expressions import Expression
    from deltalog.storage.parquet_facts import FetchedFooters
    from deltalog.storage.store import Store

Constants = tuple[tuple[str, Any], ...]
"""Columns that have one value for all rows of a file, as arrays of that value.

Arrow's scalars are pickled as Python's values, which lack some.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSpec:
    """What all tasks of one scan share.

    Args:
        table: location, for messages.
        data_columns: logical columns to read from the files, pruned to the leaves needed.
        partition_columns: logical columns whose values are in the log.
        metadata_columns: names of `METADATA_COLUMNS`.
        output: schema of the batches; its columns are among the three above.
        predicate: resolved; rows for which it is not true are left out.
        mode: the table's column mapping.
        physical_names: of the partition columns, by logical name.
        time_zone: of partition values without a zone.
        row_id_column: materialized row id column; rewritten files keep row ids there.
        row_commit_version_column: likewise for the version that last changed a row.
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
        """The same read without output, to count rows: only the predicate's columns are read."""
        used = (
            {path[0] for path in columns(self.predicate)} if self.predicate is not None else set()
        )
        return replace(
            self,
            data_columns=StructType([f for f in self.data_columns if f.name in used]),
            output=pa.schema([]),
        )

    def with_columns(self, names: Sequence[str]) -> ReadSpec:
        """The same read of some of its columns: names of `output`, in the order wanted."""
        paths = columns(self.predicate) if self.predicate is not None else ()
        used = {*names, *(path[0] for path in paths), *(".".join(path) for path in paths)}
        return replace(
            self,
            data_columns=StructType([f for f in self.data_columns if f.name in used]),
            metadata_columns=tuple(name for name in self.metadata_columns if name in used),
            output=pa.schema([self.output.field(name) for name in names]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """One logical file to read: a data file without the rows that its deletion vector marks.

    Args:
        path: decoded.
        partition_values: physical name → serialised value.
        base_row_id: row id of the first physical row.
        only_deleted: return the rows that `deletion_vector` marks and `without` does not, instead
            of leaving them out: for the change data feed, and for changes of rows by position.
        without: marks rows to take out of `deletion_vector`.
        constants: columns with one value for all rows, appended after the others.
        along: how long the table's columns are read along with the metadata and the constants.
            Batches that come when it is spent have no others. None reads them always.
        footers: of files that are read again; those with rows that are wanted are put there.
        most_rows: the task gives so many rows, or fewer if there is a predicate; None if that is
            not known, or was not asked for.
        size_bytes: of the whole file, as it is stored.
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

    _read: ClassVar[Callable[[ScanTask], Iterator[pa.RecordBatch]]]  # joined in by `reader`

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        schema = self.spec.output
        for name, value in self.constants:
            schema = schema.append(pa.field(name, value.type))
        return schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the predicate and the deletion vector leave, in batches.

        Cost: the footer, and the columns' chunks of the row groups that may match; memory for one
        piece of up to about a million rows.
        """
        return ScanTask._read(self)

    def to_table(self) -> pa.Table:
        """Return these rows in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)


class Allowance:
    """The bytes of columns that a search of rows may read along with their positions; thread-safe.

    Args:
        num_bytes: at first.
    """

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes
        self._lock = threading.Lock()

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self._left <= 0

    def take(self, num_bytes: int) -> bool:
        """Take as many bytes, or all that is left; returns whether it was enough."""
        with self._lock:
            is_enough = num_bytes <= self._left
            self._left -= min(num_bytes, self._left)
            return is_enough


@contextmanager
def noting(task: ScanTask) -> Iterator[None]:
    """Say in errors which file of which table was read."""
    try:
        yield
    except DeltaError as error:
        error.add_note(f"while reading {task.path!r} of table {task.spec.table!r}")
        raise
