"""Delta tables as datasets of Ray Data, and datasets as versions of Delta tables.

Each read task reads a few files. Each write task writes some blocks on the worker that has them.
The caller commits all files at once.
"""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

import pyarrow as pa

try:
    import ray.data
    from ray.data import Datasink, Datasource, ReadTask
    from ray.data.block import BlockAccessor, BlockMetadata
except ImportError as _error:
    raise ImportError("deltalog.ray needs Ray: pip install 'deltalog[ray]'") from _error

from deltalog._util.argument_types import check_type
from deltalog._util.call_errors import WrongCallError
from deltalog._util.similar_names import known_arguments, similar_argument, suggests_options
from deltalog.errors import SchemaMismatchError
from deltalog.expressions.arrow_filters import weaker_than_arrow_expression
from deltalog.integrations.tasks import (
    READ_OPTIONS,
    DistributedEngine,
    DistributedRows,
    Sent,
    TaskGroup,
    VersionRead,
    open_version,
    own_errors,
    reported,
    share_by_number,
    write_rows,
    wrong_rows,
)
from deltalog.schema import to_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow.compute as pc  # noqa: TID251  # only for the type `pc.Expression`
    from ray.data import Dataset

    from deltalog.integrations.tasks import Report, Source, Version
    from deltalog.operations.changes.task_writes import WriteJob
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.table.write import WriteArguments

__all__ = ["RayEngine", "read", "write"]

_MEMORY_OF_BYTE: Final = 4
"""The estimated number of bytes in memory per stored byte of a Parquet file."""
_SAMPLE_ROWS: Final = 1024


def read(
    source: Source,
    *,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    filters: Any = None,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    version: Version | None = None,
    storage_options: StorageOptions | None = None,
    delta_table_options: Mapping[str, Any] | None = None,
    **ray_options: Any,
) -> Dataset:
    """Return one version of a table as a dataset of Ray Data.

    Read tasks return Arrow blocks. Ray pushes selected columns, and filter expressions
    (`dataset.filter(expr=…)`), down to the read if possible. Then only the selected columns are
    read, and filters prune files and row groups before they filter rows.

    Args:
        source: the location of the table, or the table.
        columns: see `DeltaTable.scan`.
        predicate: see `DeltaTable.scan`.
        filters: a second predicate, named as in `DeltaTable.to_pandas`.
        parameters: see `DeltaTable.scan`.
        version: the number of a version, or a timestamp as a string or datetime. None means the
            latest version, or the version of a `DeltaTable`.
        storage_options: see `DeltaTable`. They are sent to the workers.
        delta_table_options: other arguments of `DeltaTable`.
        ray_options: options of `ray.data.read_datasource`, such as `override_num_blocks`,
            `concurrency` and `ray_remote_args`.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: there is no such version.
        InvalidInputError: there is no such column, or the predicate cannot be parsed.
        TypeError: neither deltalog nor Ray has such an option.
        UnsupportedFeatureError, UnsupportedTypeError: deltalog cannot read the table's rows.

    Cost: opens the table, and reads the log's columns for the files that remain after pruning.
    """
    _check_options(ray_options)
    table = open_version(source, version, storage_options, delta_table_options)
    rows = VersionRead.of(
        table, columns=columns, predicates=(predicate, filters), parameters=parameters
    )
    return ray.data.read_datasource(DeltaDatasource(rows), **ray_options)


def _check_options(given: Mapping[str, Any]) -> None:
    """Raise for an option that Ray would ignore."""
    parameters = signature(ray.data.read_datasource).parameters.values()
    known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            arguments = [*signature(read).parameters, *known]
            hint = similar_argument(name, arguments) or known_arguments(arguments)
            if name in READ_OPTIONS:
                hint = f": use {READ_OPTIONS[name]}"
            raise WrongCallError(
                f"deltalog.ray.read() got an unexpected keyword argument {name!r}{hint}"
            )


def write(
    dataset: Dataset,
    table: Source,
    *,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    **options: Unpack[WriteArguments],
) -> int | None:
    """Write a dataset of Ray Data to a table, as one version.

    Write tasks write blocks to files, and the caller commits all files at once. If a task or the
    commit fails, the table is unchanged.

    Args:
        dataset: the rows. It is computed again if another writer's commit conflicts with the write.
        table: the target, which is created if it does not exist. A `DeltaTable` is updated to the
            new version.
        concurrency: the maximum number of concurrent write tasks; see `Dataset.write_datasink`.
        ray_remote_args: Ray's arguments for the write tasks; see `Dataset.write_datasink`.
        options: the other arguments of `write_deltalake`: `mode`, `partition_by`, `predicate`,
            `schema_mode`, `configuration`, `storage_options`, `commit_properties` and so on.

    Returns:
        The new version; None if the write was skipped.

    Raises:
        TableExistsError: the mode is `error`, but the table exists.
        SchemaMismatchError: the columns do not match the table's schema.
        ConstraintViolationError: a row violates a constraint of the table.
        CommitFailedError: a commit of another writer conflicts with this write. The table is
            unchanged.
        InvalidInputError: arguments contradict each other.

    Cost: the dataset is computed once. For a new table, Ray also computes the first rows before, to
    determine the types.
    """
    rows = _RayRows(dataset, {"concurrency": concurrency, "ray_remote_args": ray_remote_args})
    return write_rows(rows, table, **options)


R = TypeVar("R")


class RayEngine(DistributedEngine):
    """Changes tables with tasks of Ray: `DeltaTable("flights", engine=RayEngine())`.

    `delete`, `update`, `merge`, `optimize` and `vacuum` of such a table run as tasks. The results
    are the same as without an engine, except the number of new files. If Ray is not initialized,
    the first operation initializes it.

    Args:
        num_tasks: the number of tasks of an operation, if it has as many files. None means the
            number of CPUs of the cluster, or fewer if there are few bytes.
        ray_remote_args: Ray's options of the tasks, such as `num_cpus`, `memory` and `max_retries`
            (after the loss of a worker).

    Raises:
        InvalidInputError: `num_tasks` is not above 0, or an argument has another type.
    """

    @suggests_options(
        "RayEngine()",
        {
            **dict.fromkeys(("concurrency", "parallelism", "num_workers"), "num_tasks=…"),
            **dict.fromkeys(("num_cpus", "num_gpus", "max_retries"), "ray_remote_args={…: …}"),
            "address": "ray.init(address=…) before the first operation",
        },
    )
    def __init__(
        self, *, num_tasks: int | None = None, ray_remote_args: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(num_tasks=num_tasks)
        check_type("RayEngine", "ray_remote_args", ray_remote_args, "Mapping[str, Any] | None")
        self._options = dict(ray_remote_args or {})

    @property
    def num_slots(self) -> int:
        """The number of CPUs of the cluster."""
        if not ray.is_initialized():
            ray.init()
        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(
        self, work: Callable[[Sent[Any], Sent[Any]], R], shared: Sent[Any], inputs: Sequence[Any]
    ) -> Iterator[R]:
        """Run one task for each input, and yield the results in the order of the inputs."""
        remote = ray.remote(work)
        task = remote.options(**self._options) if self._options else remote
        kept = ray.put(shared)
        refs = [task.remote(kept, one) for one in inputs]
        with own_errors():
            try:
                for ref in refs:
                    yield ray.get(ref)
            except BaseException:
                for ref in refs:
                    ray.cancel(ref)
                raise


class DeltaDatasource(Datasource):  # type: ignore[misc]  # Ray has no type hints
    """A source for `ray.data.read_datasource` that reads one version of a table.

    Args:
        rows: the read, with its columns and predicate.
    """

    def __init__(self, rows: VersionRead) -> None:
        super().__init__()
        self._rows = Sent(rows)
        self._projection_map: dict[str, str] | None = None

    def get_name(self) -> str:
        """Return the name of read tasks."""
        return "Delta"

    def supports_projection_pushdown(self) -> bool:
        """Return whether Ray can push selected columns down to the read."""
        return True

    def supports_predicate_pushdown(self) -> bool:
        """Return whether Ray can push filters down to the read. They become filters of pyarrow."""
        return True

    def estimate_inmemory_data_size(self) -> int:
        """Return the estimated size of the rows in memory, in bytes."""
        stored = sum(task.size_bytes or 0 for task in self._scan().tasks())
        return stored * _MEMORY_OF_BYTE * len(self._names()) // max(1, len(self._every()))

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: Any = None,
    ) -> list[ReadTask]:
        """Return tasks of about the same size, each of which reads some files.

        Args:
            parallelism: the maximum number of tasks.
            per_task_row_limit: the number of rows that is sufficient for each task; None for no
                limit.
            data_context: Ray's context, which is not used.
        """
        del data_context
        scan, names = self._scan(), self._names()
        groups = share_by_number(
            scan.tasks(with_rows=True), scan.schema, most_groups=max(1, parallelism)
        )
        shown = pa.schema([scan.schema.field(name) for name in names])
        if not names:
            shown = pa.schema([pa.field(_NO_COLUMNS, pa.null())])
        return [
            ReadTask(
                partial(_read_blocks, Sent(group), self._condition(), names),
                self._metadata_of(group, per_task_row_limit),
                schema=shown,
                per_task_row_limit=per_task_row_limit,
            )
            # If there are no files to read, one task without files returns the schema.
            for group in groups or [TaskGroup(schema=scan.schema)]
        ]

    def _every(self) -> list[str]:
        return list(self._rows.value.schema.names)

    def _names(self) -> list[str]:
        """Return the selected columns."""
        chosen = self._projection_map
        return self._every() if chosen is None else list(chosen)

    def _condition(self) -> pc.Expression | None:
        """Return the filter that Ray has pushed down."""
        given = self.get_current_predicate()
        return None if given is None else given.to_pyarrow()

    def _scan(self) -> Any:
        """Return the scan of the selected columns, and of the columns that the filter uses."""
        rows, condition = self._rows.value, self._condition()
        if condition is None:
            return rows.scan(self._names())
        # Read all columns whose names occur in the filter, even if only in a string of the filter.
        text = str(condition)
        used = [name for name in self._every() if name in self._names() or name in text]
        return rows.scan(used, rows.resolved(weaker_than_arrow_expression(condition, rows.schema)))

    def _metadata_of(self, group: TaskGroup, most_rows: int | None) -> BlockMetadata:
        num_rows = None if self._condition() is not None else group.num_rows
        if num_rows is not None and most_rows is not None:
            num_rows = min(num_rows, most_rows)
        return BlockMetadata(
            num_rows=num_rows,
            size_bytes=group.size_bytes * _MEMORY_OF_BYTE,
            exec_stats=None,
            input_files=tuple(group.locations),
        )


def _read_blocks(
    group: Sent[TaskGroup], condition: pc.Expression | None, names: list[str]
) -> Iterator[pa.Table]:
    """Yield the rows of some files, in a task."""
    is_empty = True
    for batch in group.value.to_batches():
        rows = pa.Table.from_batches([batch])
        rows = rows if condition is None else rows.filter(condition)
        is_empty = False
        yield _selected(rows, names)
    if is_empty:
        yield _selected(group.value.schema.empty_table(), names)


_NO_COLUMNS: Final = "__bsp_stub"
"""Ray's name for a column of NULLs in a block without columns, which would lose its length."""


def _selected(rows: pa.Table, names: list[str]) -> pa.Table:
    """Return some columns of a block. Ray hides the column of a block without others."""
    if names:
        return rows.select(names)
    return pa.table({_NO_COLUMNS: pa.nulls(rows.num_rows)})


class _RayRows(DistributedRows):
    """The rows of a Ray dataset, which write tasks compute.

    Args:
        dataset: the rows.
        options: the options of `write_datasink`.
    """

    def __init__(self, dataset: Dataset, options: Mapping[str, Any]) -> None:
        if not isinstance(dataset, ray.data.Dataset):
            raise wrong_rows("ray", dataset, "ray.data.Dataset")
        self._dataset = dataset
        self._options = options

    @property
    def schema(self) -> pa.Schema:
        """The schema of the dataset. Ray may have to compute some rows to determine it."""
        found = self._dataset.schema()
        base = None if found is None else found.base_schema
        if base is None:
            return pa.schema([])
        if isinstance(base, pa.Schema):
            return base
        # If the blocks are dataframes, the types of object columns depend on the values.
        try:
            rows: pa.Table = self._dataset.take_batch(_SAMPLE_ROWS, batch_format="pyarrow")
        except ValueError:  # the dataset is empty
            return pa.schema([])
        return rows.schema

    @property
    def known_schema(self) -> None:
        """Always None: the schema is unknown until Ray has computed rows."""
        return

    def write(self, job: Sent[WriteJob]) -> Sequence[Report]:
        """Write the blocks in tasks."""
        sink = _DeltaDatasink(job)
        with own_errors():
            self._dataset.write_datasink(sink, **self._options)
        return sink.reports


class _DeltaDatasink(Datasink):  # type: ignore[misc]  # Ray has no type hints
    """A sink whose tasks write blocks to files. The caller commits the files.

    Args:
        job: the specification of the write.

    Attributes:
        reports: the reports of all tasks.
    """

    def __init__(self, job: Sent[WriteJob]) -> None:
        self._job = job
        self.reports: list[Report] = []

    def get_name(self) -> str:
        """Return the name of write tasks."""
        return "Delta"

    def write(self, blocks: Iterable[Any], ctx: Any) -> Report:
        """Write some blocks, in a task."""
        known = to_arrow_schema(self._job.value.spec.configuration.schema)
        return reported(self._job, _batches(blocks, known), place=ctx.task_idx)

    def on_write_complete(self, write_result: Any) -> None:
        """Store the reports of all tasks in `reports`."""
        self.reports = list(write_result.write_returns)


def _batches(blocks: Iterable[Any], known: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of blocks, converted to the types of the first block.

    Args:
        blocks: Arrow tables or dataframes.
        known: the types of the table, for columns in which the first block contains only NULL.

    Raises:
        SchemaMismatchError: a later block has other columns, or values of another type.
    """
    first: pa.Schema | None = None
    for block in blocks:
        rows: pa.Table = BlockAccessor.for_block(block).to_arrow()
        if not rows.num_rows:
            continue
        if first is None:
            first = pa.schema([_typed(field, known) for field in rows.schema])
        yield from _fitted(rows, first).to_batches()


def _typed(field: pa.Field[Any], known: pa.Schema) -> pa.Field[Any]:
    place = known.get_field_index(field.name)
    return known.field(place) if pa.types.is_null(field.type) and place >= 0 else field


def _fitted(rows: pa.Table, to: pa.Schema) -> pa.Table:
    if rows.schema.equals(to):
        return rows
    problem = "it has other columns"
    if sorted(rows.column_names) == sorted(to.names):
        try:
            return rows.select(to.names).cast(to)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            problem = str(error)
    raise SchemaMismatchError(
        f"the blocks of the Ray dataset have different schemas: {problem}; expected "
        f"{to.to_string()!r}, found {rows.schema.to_string()!r}"
    )
