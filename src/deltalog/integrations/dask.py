"""Delta tables as dataframes of Dask, and dataframes of Dask as versions of Delta tables.

In a read, each partition consists of a few files, which one task reads. In a write, one task writes
each partition, and the caller commits all files at once.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack
from uuid import uuid4

import pyarrow as pa

from deltalog._util.argument_types import wrong_argument
from deltalog._util.similar_names import suggests_options
from deltalog.data.scan.rows import DtypeBackend, require_library, to_frame
from deltalog.data.write.python_rows import check_moments
from deltalog.data.write.typed_values import check_unchanged
from deltalog.errors import InvalidInputError
from deltalog.integrations.tasks import (
    INLINE_BYTES,
    READ_OPTIONS,
    DistributedEngine,
    DistributedRows,
    Sent,
    TaskGroup,
    VersionRead,
    open_version,
    own_errors,
    reported,
    share_by_bytes,
    write_rows,
    wrong_rows,
)
from deltalog.operations.arguments import check_number, refuse_both
from deltalog.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime as moment

    import dask.dataframe as dd
    import pandas as pd

    from deltalog.data.scan.reader import ScanTask
    from deltalog.integrations.tasks import Report, Source, Version
    from deltalog.operations.changes.task_writes import WriteJob
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.table import DeltaTable
    from deltalog.table.write import WriteArguments

__all__ = ["DaskEngine", "read", "read_deltalake", "to_deltalake", "write"]

_PARTITION_BYTES: Final = 64 * 1024 * 1024
_ALWAYS_INLINE_BYTES: Final = 64 * 1024
"""The size up to which an input is sent with its task, however many tasks there are."""
_MOST_LOST: Final = 3
"""The number of times that the input of all tasks is sent again after workers were lost."""


_OPTIONS: Final = {
    **READ_OPTIONS,
    **dict.fromkeys(
        ("limit", "n", "n_rows", "nrows", "num_rows", "head"), "head(n) of the dataframe"
    ),
    **dict.fromkeys(
        ("npartitions", "chunksize", "blocksize", "num_partitions", "files_per_partition"),
        "partition_bytes=…, or repartition(…) of the dataframe",
    ),
    **dict.fromkeys(("calculate_divisions", "index_col", "set_index"), "index=…"),
}


@suggests_options("deltalog.dask.read()", _OPTIONS)
def read(  # noqa: PLR0913  # all are options of the caller
    source: Source,
    *,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    filters: Any = None,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    version: Version | None = None,
    storage_options: StorageOptions | None = None,
    delta_table_options: Mapping[str, Any] | None = None,
    index: str | None = None,
    dtype_backend: DtypeBackend = "pyarrow",
    partition_bytes: int = _PARTITION_BYTES,
) -> dd.DataFrame:
    """Return one version of a table as a Dask dataframe.

    Tasks read only the columns that the graph needs. The predicate prunes files and row groups, and
    filters rows. A filter of the dataframe (`frame[frame.x > 1]`) prunes no files, because Dask
    applies it after the read.

    Args:
        source: the location of the table, or the table.
        columns: see `DeltaTable.scan`.
        predicate: see `DeltaTable.scan`.
        filters: a second predicate. The argument has the same name in Dask's own readers.
        parameters: see `DeltaTable.scan`.
        version: the number of a version, or a timestamp as a string, datetime or date. None means
            the latest version, or the version of a `DeltaTable`.
        storage_options: see `DeltaTable`. They are sent to the workers.
        delta_table_options: other arguments of `DeltaTable`.
        index: the column that becomes the index. Each partition is sorted by it. The divisions are
            known if the column contains integers or strings, and the statistics in the log show
            that no value is NULL and that files do not overlap. In this case, the files are sorted,
            too.
        dtype_backend: `pyarrow`, which represents all values exactly, or `numpy_nullable`. The
            dtypes of NumPy are not supported, because partitions with and without NULL would have
            different dtypes.
        partition_bytes: the maximum stored size of the consecutive files that form a partition. A
            larger file forms a partition by itself.

    Returns:
        A dataframe. Without `index`, its divisions are unknown. Its dtypes are derived from the
        schema, without reading data.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: there is no such version.
        InvalidInputError: there is no such column or option, or Dask is not installed.
        UnsupportedFeatureError, UnsupportedTypeError: deltalog cannot read the table's rows.

    Cost: opens the table, and reads the log's columns for the files that remain after pruning.
    """
    frames = _dask_dataframe()
    check_number("partition_bytes", partition_bytes, least=1)
    table = open_version(source, version, storage_options, delta_table_options)
    rows = VersionRead.of(
        table, columns=columns, predicates=(predicate, filters), parameters=parameters
    )
    scan = rows.scan()
    shown = scan.schema
    if index is not None and index not in shown.names:
        raise InvalidInputError(
            f"cannot use {index!r} as the index of {table.table_uri}: expected one of the columns "
            f"that are read, {shown.names!r}"
        )
    tasks = list(scan.tasks())
    bounds = None if index is None else _bounds_of(table, tasks, shown.field(index))
    if bounds is not None:
        tasks.sort(key=lambda task: bounds[task.path])
    groups = share_by_bytes(tasks, shown, most_bytes=partition_bytes)
    parts = [_FramePart(group) for group in groups or [TaskGroup(schema=shown)]]
    meta = to_frame(shown.empty_table(), dtype_backend)
    # Without this setting, Dask would convert Python objects, such as decimals, to strings.
    with require_library("dask").config.set({"dataframe.convert-string": False}):
        frame: dd.DataFrame = frames.from_map(
            _read_part,
            parts,
            dtype_backend=dtype_backend,
            index=index,
            meta=meta if index is None else meta.set_index(index),
            divisions=None if bounds is None else _divisions(groups, bounds),
            label="read-delta",
        )
    return frame


def write(
    frame: dd.DataFrame,
    table: Source,
    *,
    schema: pa.Schema | Schema | None = None,
    index: bool | None = None,
    **options: Unpack[WriteArguments],
) -> int | None:
    """Write a Dask dataframe to a table, as one version.

    The task that computes a partition also writes it to files. The caller commits all files at
    once. If a task or the commit fails, the table is unchanged.

    Args:
        frame: the rows. It is computed again if another writer's commit conflicts with the write.
        table: the target, which is created if it does not exist. A `DeltaTable` is updated to the
            new version.
        schema: the types of columns whose dtype in Dask is `object`. Required for a new table; the
            types of an existing table are known.
        index: whether to write the index as a column. None writes the index if it has a name.
        options: the other arguments of `write_deltalake`: `mode`, `partition_by`, `predicate`,
            `schema_mode`, `configuration`, `storage_options`, `commit_properties` and so on.

    Returns:
        The new version; None if the write was skipped.

    Raises:
        TableExistsError: the mode is `error`, but the table exists.
        SchemaMismatchError: the columns do not match the table's schema. Raised before any task
            runs if the types of all columns are known.
        ConstraintViolationError: a row violates a constraint of the table.
        CommitFailedError: a commit of another writer conflicts with this write. The table is
            unchanged.
        InvalidInputError: arguments contradict each other, or a column's type is unknown.

    Cost: the frame is computed once. There is one file for each partition of the frame and
    partition of the table.
    """
    _dask_dataframe()
    return write_rows(_DaskRows(frame, schema, index=index), table, **options)


def read_deltalake(
    path: Source,
    *,
    version: int | None = None,
    columns: Sequence[str] | None = None,
    storage_options: StorageOptions | None = None,
    datetime: str | moment | None = None,
    filter: Any = None,  # noqa: A002  # dask-deltatable's signature
    filters: Any = None,
    **options: Any,
) -> dd.DataFrame:
    """Return a table as a dataframe; the name and the arguments are those of dask-deltatable.

    See `read`.

    Args:
        path: the argument `source` of `read`.
        version: the number of a version.
        columns: see `read`.
        storage_options: see `read`.
        datetime: a timestamp instead of a version.
        filter: a predicate, as `filters`.
        filters: see `read`.
        options: the other arguments of `read`.
    """
    refuse_both(version=version, datetime=datetime)
    refuse_both(filter=filter, filters=filters)
    return read(
        path,
        version=version if datetime is None else datetime,
        columns=columns,
        storage_options=storage_options,
        filters=filters if filter is None else filter,
        **options,
    )


def to_deltalake(
    table_or_uri: Source,
    df: dd.DataFrame,
    *,
    schema: pa.Schema | Schema | None = None,
    overwrite_schema: bool = False,
    **options: Unpack[WriteArguments],
) -> None:
    """Write a dataframe to a table; the name and the arguments are those of dask-deltatable.

    See `write`. The rows are written and committed when the function returns; there is no lazy
    result.

    Args:
        table_or_uri: the argument `table` of `write`.
        df: the argument `frame` of `write`.
        schema: see `write`.
        overwrite_schema: whether an overwrite replaces the table's schema by the frame's schema.
        options: the other arguments of `write`.
    """
    if overwrite_schema:
        options["schema_mode"] = "overwrite"
    write(df, table_or_uri, schema=schema, **options)


R = TypeVar("R")


class DaskEngine(DistributedEngine):
    """Changes tables with tasks of Dask: `DeltaTable("flights", engine=DaskEngine(client))`.

    `delete`, `update`, `merge`, `optimize` and `vacuum` of such a table run as tasks. The results
    are the same as without an engine, except the number of new files.

    Args:
        client: a client of `dask.distributed`. None means the current client, or Dask's scheduler
            for delayed objects if there is none.
        num_tasks: the number of tasks of an operation, if it has as many files. None means the
            number of threads of all workers, or fewer if there are few bytes.

    Raises:
        InvalidInputError: `client` is not a client, `num_tasks` is not above 0, or Dask is not
            installed.
    """

    @suggests_options(
        "DaskEngine()",
        {
            **dict.fromkeys(("n_workers", "npartitions", "num_workers", "workers"), "num_tasks=…"),
            **dict.fromkeys(("scheduler", "address", "cluster"), "client=distributed.Client(…)"),
        },
    )
    def __init__(self, client: Any = None, *, num_tasks: int | None = None) -> None:
        super().__init__(num_tasks=num_tasks)
        require_library("dask")
        if client is not None and not all(
            hasattr(client, name) for name in ("nthreads", "scatter", "submit")
        ):
            has_address = isinstance(client, str) or hasattr(client, "scheduler_address")
            shown = f"Client({client!r})" if has_address else "Client()"
            expected = f"a client of dask.distributed, such as distributed.{shown}"
            raise wrong_argument("DaskEngine", "client", client, expected)
        self._given = client

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the engine without its client; a copy in another process uses the current one."""
        return _engine_of, (self._num_tasks,)

    @property
    def num_slots(self) -> int:
        """The number of threads of all workers."""
        client = self._client()
        if client is None:
            return os.cpu_count() or 1
        num_threads: int = sum(client.nthreads().values())
        return max(1, num_threads)

    def run(
        self, work: Callable[[Sent[Any], Sent[Any]], R], shared: Sent[Any], inputs: Sequence[Any]
    ) -> Iterator[R]:
        """Run one task for each input, and yield the results in the order of the inputs."""
        client = self._client()
        with own_errors():
            if client is None:
                yield from self._run_delayed(work, shared, inputs)
                return
            left, lost = list(inputs), 0
            while left:
                try:
                    for found in self._submitted(client, work, shared, left):
                        left.pop(0)
                        lost = 0
                        yield found
                except CancelledError:
                    # All workers that had an input were lost, so send it again.
                    lost += 1
                    if lost > _MOST_LOST:
                        raise

    def _submitted(
        self,
        client: Any,
        work: Callable[[Sent[Any], Sent[Any]], R],
        shared: Sent[Any],
        inputs: Sequence[Any],
    ) -> Iterator[R]:
        name = f"{work.__name__.strip('_')}-{uuid4().hex}"
        is_small = shared.size_bytes * len(inputs) <= INLINE_BYTES
        kept = shared if is_small else _spread(client, shared, name)
        most_bytes = max(INLINE_BYTES // max(1, len(inputs)), _ALWAYS_INLINE_BYTES)
        tasks: list[Any] = []
        try:
            for number, one in enumerate(inputs):
                own, key = _placed(client, one, most_bytes), f"{name}-{number}"
                tasks.append(client.submit(work, kept, own, key=key, pure=False))
            for task in tasks:
                yield task.result()
        finally:
            client.cancel(tasks)

    def _run_delayed(
        self, work: Callable[[Sent[Any], Sent[Any]], R], shared: Sent[Any], inputs: Sequence[Any]
    ) -> Iterator[R]:
        dask = require_library("dask")
        kept = dask.delayed(shared, name=f"deltalog-job-{uuid4().hex}", traverse=False)
        task = dask.delayed(work, pure=False)
        yield from dask.compute(*(task(kept, dask.delayed(one, traverse=False)) for one in inputs))

    def _client(self) -> Any:
        """Return the given client, or the current client of `dask.distributed`, or None."""
        if self._given is not None:
            return self._given
        try:
            return require_library("distributed", extra="dask").default_client()
        except (InvalidInputError, ValueError):  # it is not installed, or there is no client
            return None


def _placed(client: Any, given: Sent[Any], most_bytes: int) -> Any:
    """Return an input of one task; send a large one to a worker, and return its future.

    Inputs up to `most_bytes` travel with the task, through the scheduler.

    Raises:
        CancelledError: see `_spread`.
    """
    if given.size_bytes <= most_bytes:
        return given
    try:
        return client.scatter(given, hash=False)
    except OSError as error:  # the connection to the worker was lost
        raise CancelledError from error


def _spread(client: Any, shared: Sent[Any], name: str) -> Any:
    """Send an input of all tasks to all workers, and return its future.

    `scatter(broadcast=True)` would wait forever if a worker is lost meanwhile. If only one worker
    had the input, Dask would run tasks there rather than send a large input to other workers.

    Raises:
        CancelledError: the worker that received the input was lost.
    """
    try:
        kept = client.scatter(shared, hash=False)
    except OSError as error:  # the connection to the worker was lost
        raise CancelledError from error
    held = [
        client.submit(
            _hold,
            kept,
            key=f"hold-{name}-{number}",
            workers=[worker],
            allow_other_workers=True,
            pure=False,
        )
        for number, worker in enumerate(client.nthreads())
    ]
    for one in held:
        one.result()
    return kept


def _hold(shared: Sent[Any]) -> None:
    """Do nothing with an input, which is then in the memory of this worker."""


def _engine_of(num_tasks: int | None) -> DaskEngine:
    return DaskEngine(num_tasks=num_tasks)


class _FramePart(Sent[TaskGroup]):
    """The files of one partition, as an argument in a Dask graph."""

    __slots__ = ()

    def __dask_tokenize__(self) -> Any:
        """Return a token that identifies the read, and that contains no credentials."""
        files = [
            (task.path, task.deletion_vector and task.deletion_vector.unique_id)
            for task in self.value.tasks
        ]
        spec = self.value.tasks[0].spec if self.value.tasks else None
        condition = None if spec is None else str(spec.predicate)
        root = None if spec is None else spec.table
        return "deltalog", root, files, condition, str(self.value.schema)


def _read_part(
    part: Sent[TaskGroup], columns: list[str], dtype_backend: DtypeBackend, index: str | None
) -> Any:
    """Read columns of one partition, in a task."""
    names = columns if index is None else [index, *columns]
    frame: Any = to_frame(part.value.with_columns(names).to_table(), dtype_backend)
    return frame if index is None else frame.set_index(index).sort_index()


def _bounds_of(
    table: DeltaTable, tasks: Sequence[ScanTask], column: pa.Field[Any]
) -> dict[str, tuple[Any, Any]] | None:
    """Return a column's minimum and maximum in each file; None if divisions must be unknown."""
    # Use only integers and strings. Statistics of timestamps may be rounded to milliseconds. Dask
    # orders the values of other types in another way.
    if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
        return None
    names = [f"{what}.{column.name}" for what in ("min", "max", "null_count")]
    known = table.get_add_actions(flatten=True)
    if not tasks or not set(names) <= set(known.schema.names):
        return None
    rows = known.select(["path", *names]).to_pylist()
    found = {row["path"]: (row[names[0]], row[names[1]]) for row in rows if row[names[2]] == 0}
    bounds = {task.path: found.get(task.path, (None, None)) for task in tasks}
    if any(None in pair for pair in bounds.values()):
        return None
    overlaps = any(one[1] >= other[0] for one, other in pairwise(sorted(bounds.values())))
    return None if overlaps else bounds


def _divisions(
    groups: Sequence[TaskGroup], bounds: Mapping[str, tuple[Any, Any]]
) -> tuple[Any, ...]:
    """Return the minimum of each partition, followed by the maximum of the last partition."""
    firsts = [bounds[group.tasks[0].path][0] for group in groups]
    return (*firsts, bounds[groups[-1].tasks[-1].path][1])


class _DaskRows(DistributedRows):
    """The rows of a Dask dataframe, which tasks compute.

    Args:
        frame: the rows.
        given: the types of some columns: name → type.
        index: see `write`.
    """

    def __init__(
        self, frame: dd.DataFrame, given: pa.Schema | Schema | None, *, index: bool | None
    ) -> None:
        meta = getattr(frame, "_meta", None)
        if meta is None or not hasattr(frame, "to_delayed") or meta.ndim != 2:
            raise wrong_rows("dask", frame, "Dask DataFrame")
        self._frame = frame
        self._index = meta.index.name is not None if index is None else index
        shown = given.to_arrow() if isinstance(given, Schema) else given
        types = {} if shown is None else {field.name: field.type for field in shown}
        self._types = _types_of(meta, types, index=self._index)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the frame."""
        unknown = [name for name, kind in self._types.items() if kind is None]
        if unknown:
            raise InvalidInputError(
                f"cannot infer the types of {', '.join(map(repr, unknown))} of the Dask frame: the "
                "dtype in Dask is object; pass the types as schema=pa.schema([…])"
            )
        return pa.schema([pa.field(name, kind) for name, kind in self._types.items() if kind])

    @property
    def known_schema(self) -> pa.Schema | None:
        """The schema of the rows; None if the type of a column is unknown."""
        return None if None in self._types.values() else self.schema

    def write(self, job: Sent[WriteJob]) -> Sequence[Report]:
        """Run one task for each partition that writes it; return the reports."""
        dask = require_library("dask")
        # Add the job to the graph only once. Its name is random, because each write differs.
        sent = dask.delayed(job, name=f"deltalog-job-{uuid4().hex}", traverse=False)
        writing = dask.delayed(_write_part, pure=False)
        calls = [
            writing(part, sent, number, self._types, self._index)
            for number, part in enumerate(self._frame.to_delayed())
        ]
        tasks = dask.persist(*calls)
        if (distributed := sys.modules.get("distributed")) is not None:
            # Let all tasks end, also after a failure, because the caller then deletes their files.
            for future in distributed.futures_of(tasks):
                future.exception()
        reports: Sequence[Report] = dask.compute(*tasks)
        return reports


def _write_part(
    frame: pd.DataFrame,
    job: Sent[WriteJob],
    number: int,
    types: Mapping[str, pa.DataType | None],
    index: bool,  # noqa: FBT001  # an argument of a task
) -> Report:
    """Write one partition, in a task."""
    return reported(job, _batches(frame, types, index=index), place=number)


def _batches(
    frame: pd.DataFrame, types: Mapping[str, pa.DataType | None], *, index: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition."""
    frame = frame.reset_index() if index else frame
    found: list[Any] = []
    for place, (name, kind) in enumerate(types.items()):
        try:
            found.append(_array_of(frame.iloc[:, place], kind))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise InvalidInputError(
                f"cannot write the column {name!r} of the Dask frame as {kind or 'any type'}: "
                f"{error}"
            ) from error
    yield from pa.Table.from_arrays(found, names=list(types)).to_batches()


def _array_of(column: pd.Series[Any], kind: pa.DataType | None) -> Any:
    if column.dtype != "category":
        if column.dtype == object and kind is not None:
            check_moments(column.name, column, kind)
            check_unchanged(column.name, column, kind)
        return pa.Array.from_pandas(column, type=kind)
    values: Any = pa.Array.from_pandas(column)
    plain = values.dictionary_decode()
    return plain if kind is None else plain.cast(kind)


def _types_of(
    meta: pd.DataFrame, given: Mapping[str, pa.DataType], *, index: bool
) -> dict[str, pa.DataType | None]:
    """Return the types of columns: name → Arrow type; None means that the type is unknown."""
    meta = meta.reset_index() if index else meta
    unknown = sorted(set(given) - set(map(str, meta.columns)))
    if unknown:
        raise InvalidInputError(
            f"schema: the Dask frame has no column {', '.join(map(repr, unknown))}"
        )
    if not meta.columns.is_unique:
        raise InvalidInputError(
            f"cannot write the Dask frame: columns have the same name: {list(meta.columns)!r}"
        )
    return {str(name): given.get(str(name)) or _type_of(meta[name]) for name in meta.columns}


def _type_of(column: pd.Series[Any]) -> pa.DataType | None:
    if column.dtype == object:
        return None
    kind: pa.DataType = pa.Array.from_pandas(column.head(0)).type
    if isinstance(kind, pa.DictionaryType):  # the type of the categories may be unknown
        kind = kind.value_type
        return None if pa.types.is_null(kind) else kind
    return kind


def _dask_dataframe() -> Any:
    return require_library("dask.dataframe", extra="dask")
