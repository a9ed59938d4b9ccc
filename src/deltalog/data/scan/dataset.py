"""A table as a `pyarrow.dataset.Dataset`, which DuckDB, Polars and pyarrow itself can scan.

The projection and the filter that an engine pushes down become a `Scan`, which applies deletion
vectors, column mapping and partition values. Column names in filters are case-sensitive.

C++ code of pyarrow cannot call the methods of a Python dataset. If it scanned one (for a union of
datasets, `Scanner.from_dataset` or acero), it would follow a null pointer. So this class has a
C++ dataset with a single placeholder file. Opening that file raises an error with advice.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Final, NoReturn, SupportsIndex

import pyarrow as pa
import pyarrow.dataset as ds  # noqa: TID251  # only this module imports it, on demand
import pyarrow.fs as pafs
import pyarrow.types as pt

from deltalog._util.argument_types import kind_of
from deltalog._util.call_errors import UnknownNameError, WrongCallError
from deltalog._util.kernels import compute
from deltalog._util.similar_names import frame_method, known_arguments, similar_to
from deltalog.data.scan.native import PYARROW, plan_native
from deltalog.data.scan.plan import Scan, plan_scan
from deltalog.data.scan.prune import estimate_rows
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.expressions import resolve_predicate
from deltalog.expressions.arrow_filters import (
    filter_text,
    for_arrow,
    from_arrow_expression,
    weaker_than_arrow_expression,
)
from deltalog.expressions.coercion import is_ordered
from deltalog.expressions.substrait import as_meant
from deltalog.schema import StructType, find_field
from deltalog.schema.collations import collation_below
from deltalog.schema.columns import naming_the_attempt
from deltalog.schema.primitives.moments import NAMED_MONTHS, calendar_intervals, named_months
from deltalog.schema.types import BINARY, STRING
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltalog.data.scan.native import FileGroup, NativePlan, StoredFile
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.storage.store import Store


_BATCH_ROWS: Final = 131_072
_FILE: Final = "rows.arrow"
_OF_FILES: Final = frozenset({"files", "filesystem", "format", "from_paths", "partitioning"})


def _of_files(name: str) -> UnknownNameError:
    return UnknownNameError(
        f"a DeltaDataset has no attribute {name!r}, because it is not a list of files; "
        "DeltaTable.file_uris() lists the files"
    )


_UNKNOWN_FIELD: Final = re.compile(r"No match for FieldRef\.Name\((\w+)\)")
"""How pyarrow reports an unknown column."""


_MEANT: Final = {
    "to_pandas": "to_table().to_pandas(), or to_pandas() of the table",
    "to_polars": "polars.scan_pyarrow_dataset(dataset), or to_polars(lazy=True) of the table",
    "to_duckdb": "duckdb.from_arrow(dataset), or to_duckdb() of the table",
    **dict.fromkeys(("to_pylist", "to_dicts", "rows"), "to_table().to_pylist()"),
    **dict.fromkeys(("to_arrow", "read_all", "collect", "to_pyarrow_table"), "to_table()"),
    **dict.fromkeys(("to_reader", "read_next_batch"), "scanner().to_reader()"),
    **dict.fromkeys(("count", "num_rows", "shape", "len"), "count_rows()"),
    **dict.fromkeys(("columns", "column_names", "names"), "schema.names"),
    **dict.fromkeys(("select", "project"), "to_table(columns=[…])"),
    **dict.fromkeys(("where", "query"), "filter(expression)"),
    **dict.fromkeys(("limit", "first"), "head(num_rows)"),
    "sql": "duckdb.sql('SELECT … FROM dataset'), or sql(query) of the table",
    "version": "version() of the table",
}
"""What to use instead of names of tables and dataframes."""


class DeltaDataset(ds.FileSystemDataset):
    """One version of a table as a dataset.

    Args:
        snapshot: the version.
        predicate: an unresolved condition; only rows for which it is true are in the dataset.
        arrow_filter: another such condition, as a pyarrow expression.
        schema: the Arrow schema of the rows, whose columns may be in any order.

    Cost: no I/O until the dataset is scanned.

    Attributes:
        failure: the error of the last failed scan; C++ engines pass on only its message.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        predicate: Expression | None = None,
        arrow_filter: ds.Expression | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        self.failure: DeltaError | None = None
        self._snapshot = snapshot
        self._predicate = predicate
        self._arrow_filter = arrow_filter
        self._shown = plan_scan(snapshot).schema if schema is None else schema
        form, nowhere = ds.IpcFileFormat(), pafs.PyFileSystem(_Nowhere(snapshot.store.root))
        fragment = form.make_fragment(_FILE, nowhere)
        make: Any = super().__init__  # the stubs declare no constructor
        make([fragment], self._shown, form, nowhere)

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute; raise AttributeError for attributes of datasets of files."""
        if name in _OF_FILES:
            raise _of_files(name)
        return super().__getattribute__(name)

    if not TYPE_CHECKING:  # type checkers must report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that names what to use instead, or a similar name."""
            __tracebackhide__ = True  # IPython does not show this frame
            if name in _OF_FILES:  # `__getattribute__` has refused it
                raise _of_files(name)
            other = _MEANT.get(name) or frame_method(name, "to_table().to_pandas()")
            hint = f": use {other}" if other else similar_to(name, dir(type(self)))
            raise UnknownNameError(f"a DeltaDataset has no attribute {name!r}{hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments of the constructor, not the rows."""
        return _rebuild, (
            self._snapshot,
            self._predicate,
            self._arrow_filter,
            self._shown,
        )

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        return self._shown

    @property
    def table_schema(self) -> StructType:
        """Return the schema of the table."""
        return self._snapshot.configuration.schema

    def estimated_rows(self) -> int | None:
        """Return the approximate number of rows, for engines that order joins; None if unknown."""
        return estimate_rows(self._snapshot)

    @property
    def partition_expression(self) -> ds.Expression:
        """Return `true`, because the dataset has no partition expression."""
        return ds.scalar(True)  # noqa: FBT003  # pyarrow's signature

    def scanner(  # type: ignore[override]  # the stubs declare other options
        self,
        columns: list[str] | dict[str, ds.Expression] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002  # pyarrow's signature
        batch_size: int = _BATCH_ROWS,
        **options: Any,
    ) -> ds.Scanner:
        """Return a pyarrow scanner of the rows; pyarrow's other options are hints, and ignored.

        Raises:
            InvalidInputError: the filter is no expression of pyarrow.
            TypeError: pyarrow has no such option.
        """
        _check_scan(filter, options)
        given: object = columns
        if isinstance(given, str):
            raise InvalidInputError(
                f"cannot read {self._snapshot.store.root} with columns={given!r}: expected a "
                f"list of names, such as {[given]!r}, or a dictionary of expressions"
            )
        batch_size = _whole("batch_size", batch_size, self._snapshot.store.root)
        try:
            return self._scanner(columns, filter, batch_size)
        except pa.ArrowNotImplementedError as error:
            if "no kernel matching" not in str(error):
                raise
            raise pa.ArrowNotImplementedError(
                f"cannot filter {self._snapshot.store.root} by {filter}: {error}; compare each "
                "column with a value of its type, as in pyarrow.compute.field('id') == 1; "
                "scan(predicate=…) of the table also takes SQL"
            ) from None
        except pa.ArrowInvalid as error:
            unknown = _UNKNOWN_FIELD.match(str(error))
            if unknown is None:
                raise
            raise self._unknown_field(unknown[1]) or error from None

    def _unknown_field(self, name: str) -> pa.ArrowInvalid | None:
        """Return pyarrow's error about an unknown column, with the table and similar columns."""
        try:
            with naming_the_attempt("read", self._snapshot.store.root):
                find_field(self._snapshot.configuration.schema, (name,))
        except InvalidInputError as error:
            return pa.ArrowInvalid(str(error))
        return None

    def _scanner(
        self,
        columns: list[str] | dict[str, ds.Expression] | None,
        filter: ds.Expression | None,  # noqa: A002  # pyarrow's signature
        batch_size: int,
    ) -> ds.Scanner:
        wanted = filter if self._arrow_filter is None else self._arrow_filter
        if filter is not None and self._arrow_filter is not None:
            wanted = self._arrow_filter & filter
        names = self._needed(columns, wanted)
        scan = self._scan(names, wanted)
        shown = pa.schema([self._shown.field(name) for name in names])
        filtered = None if wanted is None else self._for_arrow(wanted)
        is_plain = names and self._predicate is None and shown.equals(scan.schema)
        if is_plain and (wanted is None or filtered is not None):
            files = arrow_files(scan, is_filtered=wanted is not None)
            if files is not None:
                scanner: Any = files.dataset.scanner  # the stubs lack columns by expressions
                rows = min(batch_size, files.batch_rows)
                found: ds.Scanner = scanner(columns, filter=filtered, batch_size=rows)
                return found
        batches = self._noting(_cast(scan, shown, batch_size))
        return ds.Scanner.from_batches(
            batches, schema=shown, columns=columns, filter=filtered, batch_size=batch_size
        )

    def _for_arrow(self, wanted: ds.Expression) -> ds.Expression | None:
        """Return the filter that pyarrow must apply; None if the scan applies all of it."""
        try:
            return for_arrow(wanted)
        except InvalidInputError:
            if self._understood(from_arrow_expression(wanted, self._shown)) is None:
                raise
            return None

    def _noting(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except DeltaError as error:
            self.failure = error
            raise

    def _needed(
        self, columns: list[str] | dict[str, ds.Expression] | None, wanted: ds.Expression | None
    ) -> list[str]:
        """Return the columns to read: the selected columns and the columns of the filter."""
        every = self._shown.names
        if columns is None or not isinstance(columns, list):
            return every
        unknown = [name for name in columns if name not in every]
        if unknown:
            return every  # pyarrow resolves a name such as `a.b`, or raises
        used = set(columns) | (_field_names(wanted, every) if wanted is not None else set())
        return [name for name in every if name in used]

    def _scan(self, names: list[str], wanted: ds.Expression | None) -> Scan:
        predicate = self._predicate
        if wanted is not None:
            # The pushed filter may be weaker or None, because pyarrow also filters the rows.
            pushed = weaker_than_arrow_expression(wanted, self._shown)
            if pushed is not None and (understood := self._understood(pushed)) is not None:
                predicate = understood if predicate is None else predicate & understood
        return self._plan(predicate, names)

    def _understood(self, pushed: Expression) -> Expression | None:
        """Resolve a filter to the table's types; return None if only the engine can evaluate it."""
        schema = self._snapshot.configuration.schema
        if self._asks_of_collations(pushed):
            return None
        found = as_meant(pushed, schema)
        if any(is_ordered(find_field(schema, path).type) for path in columns_of(found)):
            try:
                resolve_predicate(found, schema)
            except InvalidInputError:  # for example a filter on months, which are numbers in Arrow
                return None
        return found

    def _asks_of_collations(self, predicate: Expression) -> bool:
        schema = self._snapshot.configuration.schema
        return any(collation_below(schema, path) for path in columns_of(predicate))

    def _plan(self, predicate: Expression | None, names: list[str] | None = None) -> Scan:
        return plan_scan(
            self._snapshot,
            columns=names,
            predicate=predicate,
        )

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # the stubs declare other options
        """Yield the rows, batch by batch."""
        return self.scanner(**options).to_batches()

    def to_table(self, **options: Any) -> pa.Table:  # type: ignore[override]  # the stubs declare other options
        """Return the rows in memory."""
        return self.scanner(**options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:  # type: ignore[override]  # the stubs declare other options
        """Return the first rows."""
        num_rows = _whole("num_rows", num_rows, self._snapshot.store.root)
        return self.scanner(**options).head(num_rows)

    def take(self, indices: Any, **options: Any) -> pa.Table:  # type: ignore[override]  # the stubs declare other options
        """Return rows by position."""
        return self.scanner(**options).take(indices)

    def count_rows(self, filter: ds.Expression | None = None, **options: Any) -> int:  # type: ignore[override]  # the stubs declare other options  # noqa: A002  # pyarrow's signature
        """Count the rows; without a filter, from the log's statistics if possible."""
        if filter is None and self._arrow_filter is None:
            return self._plan(self._predicate).count()
        return self.scanner(columns=[], filter=filter, **options).count_rows()

    def filter(self, expression: ds.Expression) -> DeltaDataset:
        """Return a dataset of the matching rows."""
        _check_scan(expression, {})
        both = expression if self._arrow_filter is None else self._arrow_filter & expression
        return DeltaDataset(
            self._snapshot,
            predicate=self._predicate,
            arrow_filter=both,
            schema=self._shown,
        )

    def replace_schema(self, schema: pa.Schema) -> DeltaDataset:  # type: ignore[override]  # the stubs declare another result
        """Return a dataset with other column types; the names must be names of the table."""
        unknown = [name for name in schema.names if name not in self._shown.names]
        if unknown:
            raise InvalidInputError(
                f"cannot show {self._snapshot.store.root} with columns {unknown!r}: "
                f"expected some of {self._shown.names!r}"
            )
        return DeltaDataset(
            self._snapshot,
            predicate=self._predicate,
            arrow_filter=self._arrow_filter,
            schema=schema,
        )

    def get_fragments(
        self,
        filter: ds.Expression | None = None,  # noqa: A002  # pyarrow's signature
    ) -> Iterator[DeltaFragment]:
        """Yield parts of the dataset, for engines that scan parts at the same time (DataFusion).

        A part is a file. It is the whole dataset if deltalog must read the files, as with deletion
        vectors, nested columns or very long strings. If no file may match, there are no parts.

        Args:
            filter: skips files without matching rows; it is not applied to the rows.
        """
        files = None
        if self._predicate is None and self._arrow_filter is None:
            scan = self._scan(self._shown.names, filter)
            if not scan.pruned.files(["size"]).num_rows:
                return
            if self._shown.equals(scan.schema):
                files = arrow_files(scan, is_filtered=False)
        if files is None:
            yield DeltaFragment(self._shown, self.scanner)
            return
        for fragment in files.dataset.get_fragments():
            scan_file = partial(self._scan_file, fragment, files.batch_rows)
            yield DeltaFragment(self._shown, scan_file, fragment.partition_expression)

    def _scan_file(
        self,
        fragment: Any,
        most_rows: int,
        columns: list[str] | dict[str, ds.Expression] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002  # pyarrow's signature
        batch_size: int = _BATCH_ROWS,
        **options: Any,
    ) -> ds.Scanner:
        """Return a scanner of a file that pyarrow reads."""
        del options
        found: ds.Scanner = fragment.scanner(
            schema=self._shown,
            columns=columns,
            filter=None if filter is None else for_arrow(filter),
            batch_size=min(batch_size, most_rows),
        )
        return found

    def sort_by(self, sorting: Any, **options: Any) -> ds.InMemoryDataset:
        """Return the rows sorted, in memory."""
        return _in_memory(self.to_table(**options).sort_by(sorting))

    def join(self, right_dataset: ds.Dataset, keys: Any, **options: Any) -> ds.InMemoryDataset:  # type: ignore[override]  # the stubs declare other options
        """Return the rows joined with the rows of another dataset, in memory."""
        return _in_memory(self.to_table().join(right_dataset.to_table(), keys, **options))

    def join_asof(  # type: ignore[override]  # the stubs declare other options
        self, right_dataset: ds.Dataset, on: str, by: Any, tolerance: int, **options: Any
    ) -> ds.InMemoryDataset:
        """Return the rows joined with the nearest rows of another dataset, in memory."""
        right = right_dataset.to_table()
        return _in_memory(self.to_table().join_asof(right, on, by, tolerance, **options))

    def __repr__(self) -> str:
        """Show the table and the version."""
        return f"DeltaDataset({self._snapshot.store.root!r}, version {self._snapshot.version})"


class DeltaFragment:
    """A part of a dataset, with those methods of `pyarrow.dataset.Fragment` that read rows.

    Args:
        schema: the Arrow schema of the rows.
        scan: returns a scanner, like `DeltaDataset.scanner`.
        partition: the partition values that all rows have, as an expression.
    """

    def __init__(
        self,
        schema: pa.Schema,
        scan: Callable[..., ds.Scanner],
        partition: ds.Expression | None = None,
    ) -> None:
        self._schema = schema
        self._scan = scan
        self._partition = partition

    if not TYPE_CHECKING:  # type checkers must report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that says where the files are."""
            raise UnknownNameError(
                f"a part of a Delta table has no attribute {name!r}, because it may be rows of "
                "several files, or without deleted rows; DeltaTable.file_uris() lists the files"
            )

    @property
    def physical_schema(self) -> pa.Schema:
        """The Arrow schema of the rows, in contrast to that of the file."""
        return self._schema

    @property
    def partition_expression(self) -> ds.Expression:
        """The partition values of a file; `true` if the part may have rows of several files."""
        return ds.scalar(True) if self._partition is None else self._partition  # noqa: FBT003  # pyarrow's signature

    def scanner(self, schema: pa.Schema | None = None, **options: Any) -> ds.Scanner:
        """Return a pyarrow scanner of the rows.

        Args:
            schema: the schema of the dataset; None means the same.
            options: `columns`, `filter` and `batch_size`; pyarrow's other options are ignored.

        Raises:
            InvalidInputError: the schema is another one.
        """
        if schema is not None and not schema.equals(self._schema):
            raise InvalidInputError(
                f"cannot scan a part of a Delta table as {schema}: expected the dataset's schema, "
                f"{self._schema}"
            )
        return self._scan(**options)

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows, batch by batch."""
        return self.scanner(**options).to_batches()

    def to_table(self, **options: Any) -> pa.Table:
        """Return the rows in memory."""
        return self.scanner(**options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Return the first rows."""
        return self.scanner(**options).head(num_rows)

    def count_rows(self, **options: Any) -> int:
        """Count the rows."""
        return self.scanner(**options).count_rows()


_HINTS: Final = (
    *("batch_readahead", "fragment_readahead", "fragment_scan_options", "use_threads"),
    *("cache_metadata", "memory_pool"),
)
"""Options of pyarrow's scanners that do not change the rows."""
_OPTIONS: Final = ("columns", "filter", "batch_size", *_HINTS)


def _whole(name: str, value: object, table: str) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InvalidInputError(
            f"cannot read {table} with {name}={value!r}: expected a whole number, found "
            f"{kind_of(value)}"
        )
    return index(value)


def _check_scan(filter_: object, options: Mapping[str, object]) -> None:
    """Raise for a filter that is no expression, and for an option that pyarrow does not have."""
    for name in options:
        if name not in _HINTS:
            meant = "filter" if name in {"filters", "predicate", "where"} else ""
            hint = f": did you mean {meant!r}?" if meant else similar_to(name, _OPTIONS)
            hint = hint or known_arguments(_OPTIONS)
            raise WrongCallError(f"a scan got an unexpected keyword argument {name!r}{hint}")
    if filter_ is not None and not isinstance(filter_, ds.Expression):
        raise InvalidInputError(
            f"cannot filter a dataset by {filter_!r}: expected an expression of pyarrow, such as "
            "pyarrow.compute.field('id') == 1; file_pruning_predicate of to_pyarrow_dataset, and "
            "scan(predicate=…) of the table, also take SQL"
        )


class _Nowhere(pafs.FileSystemHandler):
    """The file system of the placeholder file, which cannot be opened.

    Args:
        table: location of the table, for the error message.
    """

    def __init__(self, table: str) -> None:
        self._table = table

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidInputError(
            f"cannot scan {self._table} from within pyarrow, which only supports files: a "
            "union of datasets, Scanner.from_dataset and acero need tables; pass them to_table() "
            "of the dataset, and use pa.concat_tables instead of a union"
        )

    open_input_file = open_input_stream = open_output_stream = open_append_stream = _refuse
    get_file_info = get_file_info_selector = create_dir = delete_dir = delete_file = _refuse
    delete_dir_contents = delete_root_dir_contents = move = copy_file = _refuse

    def get_type_name(self) -> str:
        """Return the kind of file system."""
        return "deltalog"

    def normalize_path(self, path: str) -> str:
        """Return the path unchanged."""
        return path


def _in_memory(table: pa.Table) -> ds.InMemoryDataset:
    make: Any = ds.InMemoryDataset  # the stubs declare no constructor
    return make(table)  # type: ignore[no-any-return]  # `make` has no declared result


def _rebuild(*parts: Any) -> DeltaDataset:
    snapshot, predicate, arrow_filter, schema = parts
    return DeltaDataset(
        snapshot,
        predicate=predicate,
        arrow_filter=arrow_filter,
        schema=schema,
    )


def _field_names(wanted: ds.Expression, every: list[str]) -> set[str]:
    """Return the columns that a pyarrow filter uses; the result may contain other columns, too."""
    text = filter_text(wanted)
    if text is None or "FieldPath(" in text:  # the filter refers to columns by position
        return set(every)
    return {name for name in every if name in text}


def _cast(scan: Scan, schema: pa.Schema, batch_size: int) -> Iterator[pa.RecordBatch]:
    same = scan.schema.equals(schema)
    for batch in scan.to_batches():
        shown = batch if same else _in_schema(batch, schema)
        for start in range(0, max(shown.num_rows, 1), batch_size):
            yield shown.slice(start, batch_size)


def _in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast rows to other types; this includes intervals and months, which Arrow cannot cast."""
    for place, (part, wanted) in enumerate(zip(batch.schema, schema, strict=True)):
        if pt.is_interval(wanted.type) and pt.is_duration(part.type):
            spans = calendar_intervals(batch.column(place))
            batch = batch.set_column(place, part.with_type(wanted.type), spans)
        elif wanted.type == NAMED_MONTHS:
            months = named_months(batch.column(place))
            batch = batch.set_column(place, part.with_type(wanted.type), months)
    return batch.cast(schema)


LEAST_FILTERED_BYTES: Final = 64 * 1024 * 1024
"""From this size of the files on, Arrow's scanner filters faster than deltalog's reader.

For less, the pages that deltalog's reader skips save more than Arrow's threads.
"""


_MOST_BATCH_BYTES: Final = 16 * 1024 * 1024
_LEAST_BATCH_ROWS: Final = 1024


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """Files that pyarrow reads.

    Args:
        dataset: a dataset of all rows of the files.
        batch_rows: the maximum number of rows of a batch, which limits the memory of a scan: Arrow
            decodes up to 16 batches of a file ahead, however long their strings are.
    """

    dataset: ds.Dataset
    batch_rows: int


def arrow_files(scan: Scan, *, is_filtered: bool) -> ArrowFiles | None:
    """Return the files of a scan for pyarrow; None if deltalog must read some of them.

    Args:
        scan: the scan. Its predicate has pruned files; the dataset has all of their rows.
        is_filtered: whether the rows will be filtered.

    Cost: see `plan_native`; for columns of strings, also the dictionaries of files that were not
        read before.
    """
    if any(pt.is_nested(column.type) for column in scan.schema):
        return None
    if is_filtered:
        sizes: Any = compute.sum(scan.pruned.files(["size"]).column("size"))
        if (sizes.as_py() or 0) < LEAST_FILTERED_BYTES:
            return None
    plan = plan_native(scan, PYARROW)
    if plan.reasons or not plan.groups or plan.is_renamed:
        return None
    if any(group.vectors for group in plan.groups):
        return None
    batch_rows = _MOST_BATCH_BYTES // max(1, _row_bytes(plan))
    if batch_rows < _LEAST_BATCH_ROWS:
        return None
    paths = [path for group in plan.groups for path in group.paths]
    partitions = [part for group in plan.groups for part in _partitions(group)]
    options: Any = {"partitions": partitions} if scan.spec.partition_columns.names else {}
    make: Any = ds.FileSystemDataset.from_paths  # the stubs require a root partition
    # Otherwise Arrow would read INT96 as nanoseconds, which overflow after the year 2262.
    read_options: Any = ds.ParquetReadOptions
    found: ds.Dataset = make(
        paths,
        schema=scan.schema,
        format=ds.ParquetFileFormat(read_options(coerce_int96_timestamp_unit="us")),
        filesystem=pafs.LocalFileSystem(),
        **options,
    )
    return ArrowFiles(found, batch_rows)


def _row_bytes(plan: NativePlan) -> int:
    """Return the size in bytes of the largest decoded row of a plan, with all constants."""
    store, columns = plan.scan.snapshot.store, plan.scan.spec.data_columns
    of_constants = plan.constant_bytes
    if not any(column.type in {STRING, BINARY} for column in columns):
        return 8 * len(columns) + of_constants
    sizes = [
        size for group in plan.groups
        for size in map_in_pool(
            partial(_file_row_bytes, store, frozenset(one.name for one in group.columns if one)),
            group.files, batch_size=16,
        )
    ]  # fmt: skip
    return max(sizes, default=0) + of_constants


def _file_row_bytes(store: Store, names: frozenset[str], file: StoredFile) -> int:
    return file.row_bytes(store, names)


def _partitions(group: FileGroup) -> Iterator[ds.Expression]:
    """Yield for each file the expression that its partition values fulfil."""
    always = ds.scalar(True)  # noqa: FBT003  # pyarrow's signature
    for number in range(len(group.paths)):
        known = always
        for name, values in group.constants.items():
            column, value = ds.field(name), values[number]
            known &= column == value if value.is_valid else column.is_null()
        yield known
