"""Writing consecutive Parquet files of a partition in the background.

This module opens, names and closes files, and collects their statistics while they are written.
`rows_to_files` distributes rows to files.

Protocol: Data Files, Per-file Statistics
"""

from __future__ import annotations

import itertools
import logging
import secrets
import string
import threading
import uuid
from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from operator import call
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog._util.kernels import Array, compute, pc
from deltalog.data.write.options import codec_of, dictionary_leaves, file_suffix, parquet_options
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.protocol import column_mapping
from deltalog.protocol.partition_values import encode_value, hive_directory
from deltalog.protocol.stats.collect import StatsCollector, encode_stats
from deltalog.schema import Field, StructType
from deltalog.schema.primitives.moments import values_or_counts
from deltalog.schema.types import TIMESTAMP, VOID
from deltalog.storage.parquet.sink import ParquetSink
from deltalog.storage.pool import compute_together
from deltalog.storage.store import LevelStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog.data.keys.writing import NewKeys
    from deltalog.data.write.encode import Layout
    from deltalog.data.write.options import WriteSpec
    from deltalog.protocol.actions.properties import TableProperties
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)

_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_DATA_DIRECTORY: Final = ""
CHANGE_DIRECTORY: Final = "_change_data"
MAX_ROW_GROUP_ROWS: Final = 1024 * 1024
_FEW_ROWS: Final = 16 * 1024
"""Below this number of rows, passing work to another thread takes longer than it saves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedFile:
    """A complete file.

    Args:
        number: position of the file in the order in which files were opened.
        path: the decoded path, relative to the root.
        values: serialised partition values, in the order of the partition columns.
        stats: statistics as JSON; None for change data files.
    """

    number: int
    path: str
    values: Values
    num_rows: int
    size_bytes: int
    modified_ms: int
    stats: str | None


@dataclass(slots=True)
class FilePlan:
    """The settings that all files of a write share, and lists of these files.

    Args:
        spec: the write's spec.
        layout: the physical columns of the files.
        directory: the directory of the files; empty for the table's root.
        prefix: the prefix of the file names.
        has_stats: whether statistics are collected.
        row_group_rows: the maximum number of rows of a row group.
        keys: collects the keys of new files for the key index; None without one.

    Attributes:
        finished: complete files, in any order.
        opened: paths of all files that were opened; they are deleted after a failure.
    """

    spec: WriteSpec
    layout: Layout
    directory: str = _DATA_DIRECTORY
    prefix: str = "part"
    has_stats: bool = True
    row_group_rows: int = MAX_ROW_GROUP_ROWS
    keys: NewKeys | None = None
    finished: list[FinishedFile] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(init=False)
    _numbers: Iterator[int] = field(init=False, default_factory=itertools.count)
    _suffix: str = field(init=False)
    _leaves: tuple[tuple[tuple[str, ...], str], ...] = field(init=False)
    _schema: StructType = field(init=False)

    def __post_init__(self) -> None:
        """Compute the settings that are the same for all files."""
        table, writer = self.spec.configuration, self.spec.writer_properties
        if writer is not None and writer.max_row_group_size is not None:
            self.row_group_rows = writer.max_row_group_size
        self._leaves = tuple(self.layout.leaves())
        self.options = parquet_options(writer, table.properties, self._leaves)
        self._suffix = file_suffix(codec_of(writer, table.properties))
        mode = table.column_mapping_mode
        self._schema = _without_void(column_mapping.to_physical_schema(table.data_schema, mode))

    @property
    def store(self) -> Store:
        """Return the store of the table."""
        return self.spec.store

    def look_at(self, rows: pa.Table) -> None:
        """Choose columns for dictionary encoding by the first rows; call before opening files."""
        if "use_dictionary" not in self.options:
            self.options["use_dictionary"] = dictionary_leaves(rows, self._leaves)

    def next_path(self, values: Values) -> tuple[int, str]:
        """Return the number and the unique path of a new file, and record the path in `opened`."""
        number = next(self._numbers)
        name = f"{self.prefix}-{number:05d}-{_unique(self.spec.job)}-c000{self._suffix}"
        directories = (self.directory, _directory(self.spec.configuration, values))
        path = "/".join([*(part for part in directories if part), name])
        self.opened.append(path)
        return number, path

    def collector(self) -> StatsCollector:
        """Return a statistics collector for a new file."""
        table = self.spec.configuration
        properties = table.properties
        return StatsCollector(
            self._schema,
            num_indexed_columns=properties.data_skipping_num_indexed_cols,
            columns=table.physical_stats_columns,
            prefix_length=properties.data_skipping_string_prefix_length,
            tight_bounds=table.may_have_deletion_vectors,
        )


class FileQueue:
    """Writes the rows of one partition to consecutive files, in the order of `put`.

    `put` may be called by one thread only, `run` by any thread.

    Args:
        plan: the write's plan.
        values: serialised partition values.
        schema: the schema of the rows.

    Attributes:
        size_bytes: the size of the open file so far.
    """

    def __init__(self, plan: FilePlan, values: Values, schema: pa.Schema) -> None:
        self._plan = plan
        self._values = values
        self._schema = schema
        self._lock = threading.Lock()
        # An entry of None closes the file.
        self._work: deque[pa.Table | None] = deque()
        self._file: _GrowingFile | None = None
        self.size_bytes: int = 0
        # `put` increments this counter without a lock. `run` increments `_num_done` with a lock. A
        # single counter could lose increments.
        self._num_put = 0
        self._num_done = 0

    @property
    def queued(self) -> int:
        """Return the number of tasks that are waiting or running."""
        return self._num_put - self._num_done

    @property
    def is_idle(self) -> bool:
        """Whether no file is open and no work is waiting."""
        return self._file is None and self.queued == 0

    def put(self, rows: pa.Table | None) -> None:
        """Queue rows, or None to close the file; for each `put`, `run` must be called once."""
        self._num_put += 1
        self._work.append(rows)

    def run(self) -> None:
        """Run the next task of the queue."""
        with self._lock:
            rows = self._work.popleft()
            try:
                if rows is None:
                    self._close()
                else:
                    self._write(rows)
            finally:
                self._num_done += 1

    def abandon(self) -> None:
        """Discard the queued tasks and the open file."""
        with self._lock:
            self._work.clear()
            if self._file is not None:
                self._file.sink.abandon()
                self._file = None

    def _write(self, rows: pa.Table) -> None:
        most = self._plan.spec.max_rows_per_file
        if most is None:
            self._write_to_one(rows)
            return
        while rows.num_rows:
            rest = most - (0 if self._file is None else self._file.num_rows)
            self._write_to_one(rows.slice(0, rest))
            if rows.num_rows >= rest:
                self._close()
            rows = rows.slice(rest)

    def _write_to_one(self, rows: pa.Table) -> None:
        if self._file is None:
            self._file = _GrowingFile(self._plan, self._values, self._schema)
        self.size_bytes = self._file.write(rows)
        if self.size_bytes >= self._plan.spec.target_file_size_bytes:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            self.size_bytes = 0
            self._plan.finished.append(file.close())


class _GrowingFile:
    def __init__(self, plan: FilePlan, values: Values, schema: pa.Schema) -> None:
        self._values = values
        self._number, self._path = plan.next_path(values)
        self.num_rows = 0
        self._row_group_rows = plan.row_group_rows
        self._stats = plan.collector() if plan.has_stats else None
        self._index = plan.keys
        self._keys = None if plan.keys is None else plan.keys.of_file()
        self.sink = ParquetSink(plan.store, self._path, schema, is_unsought=True, **plan.options)

    def write(self, rows: pa.Table) -> int:
        """Append rows, usually as one row group, and return the file's size so far."""
        if self._stats is not None:
            self._stats.update(rows)
        steps: list[Callable[[], object]] = [
            partial(self.sink.write, rows, row_group_size=self._row_group_rows)
        ]
        if self._keys is not None:  # sorting the keys takes half the time of encoding the rows
            steps.append(partial(self._keys.add, rows))
        if rows.num_rows < _FEW_ROWS:
            for step in steps:
                step()
        else:
            compute_together(call, steps)
        self.num_rows += rows.num_rows
        return self.sink.size_bytes

    def close(self) -> FinishedFile:
        try:
            info = self.sink.close()
        except BaseException:
            self.sink.abandon()
            raise
        if self._index is not None and self._keys is not None:
            self._index.add(replace(info, path=self._path), self._keys)
        return FinishedFile(
            number=self._number,
            path=self._path,
            values=self._values,
            num_rows=self.num_rows,
            size_bytes=info.size_bytes,
            modified_ms=info.modified_ms,
            stats=None if self._stats is None else encode_stats(self._stats.finish()),
        )


# --- Names that contain the id of a distributed job


_JOB_LENGTH: Final = len("xxxxxxxx-xxxx-4xxx")
_LOG_DIRECTORY: Final = "_delta_log"


def new_job() -> str:
    """Return the id of a new job: the first 60 random bits of the UUIDs in its files' names."""
    return str(uuid.uuid4())[:_JOB_LENGTH]


def _unique(job: str | None) -> str:
    name = str(uuid.uuid4())
    return name if job is None else f"{job}{name[_JOB_LENGTH:]}"


def discard_job(store: Store, job: str) -> None:
    """Delete all files of a failed job, also unfinished ones. A failure is only logged.

    Args:
        store: the store of the table.
        job: the result of `new_job` that only this job has used.

    Cost: one listing of the table's directory without the log, and the deletions.
    """
    try:
        store.delete_many([path for path in _listed(store) if f"-{job}-" in path])
    except DeltaError as error:
        logger.warning(
            "files of a failed job remain in %s until vacuum deletes them: %s", store.root, error
        )


def _listed(store: Store) -> Iterator[str]:
    if not isinstance(store, LevelStore):
        yield from (info.path for info in store.list_all(""))
        return
    files, directories = store.list_level("")
    yield from (info.path for info in files)
    for directory in directories:
        if directory != _LOG_DIRECTORY:
            yield from (info.path for info in store.list_all(directory))


def _directory(configuration: TableConfiguration, values: Values) -> str:
    """Return the directory for the files of a partition; readers must not parse its name.

    With column mapping, the name is random, as in Delta Spark, because columns may be renamed.
    """
    properties = configuration.properties
    if properties.randomize_file_prefixes or (
        configuration.column_mapping_mode is not column_mapping.Mode.NONE
    ):
        return random_prefix(properties)
    fields = configuration.partition_schema.fields
    texts = {
        column.name: _moment(text) if column.type == TIMESTAMP else text
        for column, text in zip(fields, values, strict=True)
    }
    return hive_directory(list(texts), texts)


def random_prefix(properties: TableProperties) -> str:
    """Return a random directory name, which distributes files over prefixes of an object store."""
    return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(properties.random_prefix_length))


def _moment(text: str | None) -> str | None:
    """Return a timestamp in the form of directory names: `2024-01-31 00:00:00.5`."""
    if text is None:
        return None
    return text.removesuffix("Z").replace("T", " ").rstrip("0").removesuffix(".")


def _without_void(schema: StructType) -> StructType:
    """Return the schema without void columns, which files do not have."""
    return StructType(
        [
            replace(column, type=_without_void(column.type))
            if isinstance(column.type, StructType)
            else column
            for column in schema.fields
            if column.type != VOID
        ]
    )


# --- Rows grouped by the values of their partition columns


Values = tuple[str | None, ...]


class Group(NamedTuple):
    """The rows of one partition.

    Args:
        values: serialised partition values, in the order of the partition columns.
        rows: row numbers in the batch, ascending; None means all rows.
    """

    values: Values
    rows: pa.Int64Array | None


def split(batch: pa.RecordBatch, columns: Sequence[Field]) -> list[Group]:
    """Group the rows of a batch by partition.

    Args:
        batch: rows in the table's logical schema.
        columns: the partition columns, in order.

    Raises:
        InvalidInputError: a value has no serialised form; the message names the column.

    Cost: a few kernels per partition column; Python code runs once per distinct value.
    """
    if not batch.num_rows:
        return []
    codes: Array = None
    texts: list[Values] = [()]
    for column in columns:
        numbers, found = _numbered(batch.column(column.name), column)
        if codes is None:
            codes, texts = numbers, [(text,) for text in found]
            continue
        joined = pc.add(pc.multiply(codes, pa.scalar(len(found), pa.int64())), numbers)
        encoded = joined.dictionary_encode()
        codes = encoded.indices.cast(pa.int64())
        pairs = [divmod(code, len(found)) for code in encoded.dictionary.to_pylist()]
        texts = [(*texts[before], found[number]) for before, number in pairs]
    if len(texts) == 1:
        return [Group(texts[0], None)]
    return _grouped(codes, texts)


def _grouped(codes: Array, texts: Sequence[Values]) -> list[Group]:
    order: Array = pc.array_sort_indices(codes)
    runs = compute.run_end_encode(codes.take(order))
    ends = runs.run_ends.to_pylist()
    groups: list[Group] = []
    start = 0
    for end, code in zip(ends, runs.values.to_pylist(), strict=True):
        groups.append(Group(texts[code], order.slice(start, end - start)))
        start = end
    return groups


def _numbered(array: Array, field: Field) -> tuple[Array, list[str | None]]:
    """Return a number for every row, and the serialised value for each number."""
    encoded: Array = pc.dictionary_encode(array, null_encoding="encode")
    numbers: dict[str | None, int] = {}
    try:
        texts = [encode_value(value, field.type) for value in values_or_counts(encoded.dictionary)]
    except (InvalidInputError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"partition column {field.name!r}: {error}") from error
    mapped = [numbers.setdefault(text, len(numbers)) for text in texts]
    codes: Array = pa.array(mapped, pa.int64()).take(encoded.indices)
    return codes, list(numbers)
