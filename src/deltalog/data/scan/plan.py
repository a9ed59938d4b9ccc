"""Planning a scan: the columns, files and rows that a read of a snapshot needs.

This module contains `Scan`, and makes its tasks. Planning reads only the log; `scan.reader` reads
data files.

Protocol: Per-file Statistics, Column Mapping, Deletion Vectors
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count, islice, repeat
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.argument_types import checks_types
from deltalog._util.cached import cached_property
from deltalog._util.call_errors import called_first
from deltalog._util.cards import (
    CardPiece,
    OnProgress,
    ProgressCount,
    card,
    cell_of_row,
    folding,
    grid,
    plain,
)
from deltalog._util.escaping import printable
from deltalog._util.kernels import FALSE, compute, pc
from deltalog._util.lazy_names import higher
from deltalog._util.paths import check_confined, decode_path
from deltalog._util.readable import counted
from deltalog._util.similar_names import suggests_arguments
from deltalog.data.scan.prune import Pruned, files_in_turn, prune
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.scan.rows import CALLED, Rows, with_names_of_rows
from deltalog.data.scan.task import Allowance, ReadSpec, read_spec
from deltalog.data.scan.transform import load_bitmap
from deltalog.errors import (
    DataFileMissingError,
    DeletionVectorError,
    DeltaError,
    InvalidInputError,
    InvalidMetadataError,
)
from deltalog.expressions.render import shown_sql
from deltalog.log.snapshot import find_version
from deltalog.protocol.actions.model import DeletionVectorDescriptor
from deltalog.protocol.deletion_vectors import INLINE
from deltalog.protocol.features import check_deletion_vectors, check_readable, row_ids
from deltalog.protocol.partition_values import value_of
from deltalog.schema.metadata_columns import FILE_NUMBER, ROW_TRACKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from deltalog.data.keys.lookup import FoundFiles
    from deltalog.expressions import Expression
    from deltalog.expressions.ordering import SortKey
    from deltalog.log.snapshot import Snapshot
    from deltalog.schema import StructType
    from deltalog.storage.parquet.facts import FetchedFooters

logger: logging.Logger = logging.getLogger(__name__)

_DESCRIPTOR_PARTS: Final = ("pathOrInlineDv", "sizeInBytes", "cardinality")
TASK_COLUMNS: Final = (
    "path",
    "partitionValues",
    "size",
    "modificationTime",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
)

_MEANT: Final = {
    **dict.fromkeys(("filter", "where", "query"), "scan(predicate=…) of the table"),
    **dict.fromkeys(("select", "project"), "scan(columns) of the table"),
    **dict.fromkeys(("head", "limit", "take", "first", "top_k"), "scan(limit=…) of the table"),
    **dict.fromkeys(
        ("sort", "sort_by", "order_by", "orderBy", "order"),
        "scan(order_by=…, limit=…) of the table",
    ),
    **dict.fromkeys(("group_by", "groupby", "groupBy", "agg", "join"), "sql(query) of the table"),
    **dict.fromkeys(("lazy", "to_lazy"), "to_polars(lazy=True) of the table"),
    "to_pyarrow_dataset": "to_pyarrow_dataset() of the table",
    "to_dask": "deltalog.dask.read_deltalake(table)",
    "to_ray": "deltalog.ray.read(table)",
    **dict.fromkeys(("len", "num_rows", "shape", "height", "size", "count_rows"), "count()"),
    **dict.fromkeys(("is_empty", "isEmpty", "empty"), "count() == 0"),
    **dict.fromkeys(("plan_files", "get_fragments", "files"), "tasks(), or explain()"),
    **dict.fromkeys(("projection", "projected_schema"), "schema"),
    "version": "snapshot.version",
    **dict.fromkeys(
        ("delete", "update", "merge", "upsert", "append", "insert", "overwrite", "alter"),
        "the table's methods; a scan only reads",
    ),
    **dict.fromkeys(("vacuum", "optimize", "history", "metadata", "detail"), "the table's method"),
}
"""What to use instead of names of other libraries, in addition to those of all rows."""


@called_first(*CALLED, "count", "explain")
@checks_types
@suggests_arguments
@dataclass(frozen=True)
class Scan(Rows):
    """A lazy read of one snapshot; no data is read until a result is requested.

    A scan can be read any number of times, from any thread. It is picklable, and so are its tasks.
    It supports the Arrow C stream interface, so any library that accepts Arrow data can read it.

    Args:
        snapshot: the version to read.
        spec: the columns and the predicate, resolved against the snapshot's schema.
        most_rows: maximum number of rows.
        row_order: the order of the rows; requires `most_rows`.
    """

    _meant = with_names_of_rows(_MEANT)
    _counted = "count()"
    _internal = frozenset({"found_keys", "most_rows", "pruned", "row_order", "spec", "with_pruned"})

    snapshot: Snapshot
    spec: ReadSpec
    most_rows: int | None = None
    row_order: RowOrder | None = None

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        return self.spec.output

    @property
    def table_schema(self) -> StructType:
        """Return the schema of the table."""
        return self.snapshot.configuration.schema

    @cached_property
    def pruned(self) -> Pruned:
        """Return the files that may have matching rows, and the reasons for skipping other files.

        Cost: reads the statistics of the predicate's columns from the log.
        """
        return prune(self.snapshot, self.spec.predicate)

    @cached_property
    def found_keys(self) -> FoundFiles | None:
        """The rows that the key index finds in these files; None if it cannot narrow the scan."""
        return find_pruned_keys(self.snapshot, self.spec, self.pruned)

    def with_pruned(self, pruned: Pruned) -> Scan:
        """Return the same scan with a known result of pruning."""
        scan = replace(self)
        Scan.pruned.set(scan, pruned)
        return scan

    def tasks(self, *, with_rows: bool = False) -> Iterator[ScanTask]:
        """Yield a picklable task per file that may have matching rows; limit and order are ignored.

        Args:
            with_rows: whether each task states its maximum number of rows (`most_rows`), for
                callers that distribute the work.

        Raises:
            MalformedLogError: with `with_rows`, the log contains an invalid number of rows for a
                file.

        Cost: reads the log's columns for the files that remain after pruning; with `with_rows`,
            also their `numRecords`.
        """
        files = self.pruned.files(TASK_COLUMNS)
        if not with_rows:
            yield from _tasks_of(self.snapshot, self.spec, files, self.found_keys)
            return
        tasks = (make_task(self.snapshot, self.spec, row) for row in _rows(files))
        for task, most_rows in zip(tasks, self.pruned.live_rows(), strict=True):
            yield replace(task, most_rows=most_rows.as_py())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches; the required memory does not depend on the table's size."""
        with naming_complete_versions(self.snapshot):
            yield from self._batches()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        missing = self.most_rows
        if missing == 0:
            return
        if self.row_order is not None and missing is not None:
            yield from self._first_rows(self.row_order, missing)
            return
        if missing is None:
            found = higher("read_large")(self)
            yield from read_tasks(self.tasks()) if found is None else found
            return
        # Open no files in advance, because the first file may have enough rows.
        for batch in read_tasks(self._tasks_in_turn(), files_ahead=0, pieces_ahead=0):
            yield batch.slice(0, missing)
            missing -= min(missing, batch.num_rows)
            if not missing:
                return

    def to_table(self, *, on_progress: OnProgress | None = None) -> pa.Table:
        """Return all rows in memory.

        Args:
            on_progress: is called after each file with the number of files that were read and the
                number of all files; not if the scan has a limit, which may end it at any file.
        """
        if on_progress is None or self.most_rows is not None:
            return super().to_table()
        files = ProgressCount(on_progress)
        files.expect(self.pruned.num_left)
        with naming_complete_versions(self.snapshot):
            return pa.Table.from_batches(read_tasks(files.each(self.tasks())), schema=self.schema)

    def _tasks_in_turn(self) -> Iterator[ScanTask]:
        """Yield the tasks; without a predicate, the log is read only as far as needed."""
        if self.spec.predicate is not None:
            yield from self.tasks()
            return
        for files in files_in_turn(self.snapshot, TASK_COLUMNS):
            yield from make_tasks(self.snapshot, self.spec, files)

    def _first_rows(self, order: RowOrder, limit: int) -> Iterator[pa.RecordBatch]:

        def tasks(spec: ReadSpec, files: pa.Table) -> Iterator[ScanTask]:
            return make_tasks(self.snapshot, spec, files)

        from deltalog.data.scan.top_rows import first_rows  # noqa: PLC0415  # few scans need it

        rows = first_rows(
            self.snapshot,
            order.spec,
            order.keys,
            limit,
            pruned=self.pruned,
            names=TASK_COLUMNS,
            tasks=tasks,
        )
        yield from rows.select(self.schema.names).cast(self.schema).to_batches()

    def count(self) -> int:
        """Return the number of rows.

        Cost: reads only the log, if every file has `numRecords`, and partition values and
            statistics decide the predicate exactly. The number of deleted rows is then the
            cardinality of the deletion vectors, of which inline vectors are checked. Otherwise,
            reads footers or the predicate's columns.
        """
        total = self._count_unlimited()
        return total if self.most_rows is None else min(total, self.most_rows)

    def _count_unlimited(self) -> int:
        pruned = self.pruned
        if self.spec.predicate is None or pruned.is_exact:
            known = pruned.num_live_rows()
            if known is not None:
                _check_inline_vectors(pruned)
                return known
        bare = replace(self, spec=self.spec.without_output(), most_rows=None, row_order=None)
        Scan.pruned.set(bare, pruned)  # the result is the same, because the predicate is the same
        return sum(batch.num_rows for batch in bare.to_batches())

    def explain(self) -> Explanation:
        """Return an explanation of what the scan would read and why: a string with `facts`.

        Cost: see `pruned`.
        """
        lines = [f"Scan of {self.spec.table} at version {self.snapshot.version}"]
        names = ", ".join(self.schema.names) or "no column"
        lines.append(f"  columns: {names}")
        if self.spec.predicate is not None:
            lines.append(f"  predicate: {shown_sql(self.spec.predicate)}")
        if self.most_rows is not None:
            lines.append(f"  limit: {self.most_rows}")
        if self.row_order is not None:
            lines.append(f"  order: {', '.join(map(str, self.row_order.keys))}")

        lines += (f"  {line}" for line in self.pruned.explain())
        if self.found_keys is not None:
            lines += (f"  {line}" for line in self.found_keys.explain())
        text = "\n".join(map(printable, lines))
        return Explanation(text, self.pruned)

    def __repr__(self) -> str:
        """Show table, version and predicate."""
        where = "" if self.spec.predicate is None else f", {shown_sql(self.spec.predicate)}"
        return f"Scan({self.spec.table!r}, version {self.snapshot.version}{where})"

    def _repr_html_(self) -> str:
        """Return the notebook card: what the scan would read and why, and some of its rows.

        Cost: see `pruned`; reads rows of one file at most.
        """
        title, *rest = str(self.explain()).split("\n")
        return card(title, plain("\n".join(rest)), *some_rows(self._first_batches))

    def _first_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield rows of the first file; with an order, its rows would be other ones."""
        if self.row_order is None:
            for task in islice(self._tasks_in_turn(), 1):
                yield from read_tasks([task], files_ahead=0, pieces_ahead=0)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the scan without its result of pruning, which is computed again on demand."""
        return {
            key: value
            for key, value in self.__dict__.items()
            if key in {"snapshot", "spec", "most_rows", "row_order"}
        }


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order of rows.

    Args:
        keys: the sort keys.
        spec: a read of the columns of the scan and of the sort keys.
    """

    keys: tuple[SortKey, ...]
    spec: ReadSpec


def plan_scan(
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
    hidden: Sequence[str] = (),
    limit: int | None = None,
    order_by: object = None,
    is_resolved: bool = False,
) -> Scan:
    """Plan a scan of some columns and rows.

    Args:
        snapshot: the version to read.
        columns: column names in the order of the result. `a.b` selects only the field `b` of the
            struct `a`. Names of `METADATA_COLUMNS` add metadata of files and rows. None means all
            columns of the table.
        predicate: a condition; only rows for which it is true are returned. It is resolved here.
        hidden: see `read_spec`.
        limit: maximum number of rows, 0 or more.
        order_by: the order of the rows, see `sort_keys`; requires a limit.
        is_resolved: whether the predicate is already resolved, against the columns of this table
            and of `_metadata`.

    Raises:
        UnsupportedFeatureError, UnsupportedTypeError: deltalog cannot read the table's rows.
        InvalidInputError: a column is unknown, or the predicate is invalid for the schema.
        DeltaProtocolError: row ids or row commit versions are requested, but the table has none.
    """
    check_rows_readable(snapshot)
    if limit is not None and limit < 0:
        raise InvalidInputError(f"cannot scan {limit} rows: expected a limit of 0 or more")
    spec = read_spec(
        snapshot, columns=columns, predicate=predicate, hidden=hidden, is_resolved=is_resolved
    )
    check_row_ids(snapshot, spec)
    order = None
    if order_by is not None:
        if limit is None:
            raise InvalidInputError(
                "order_by needs a limit, because it returns the first rows of an order; to sort "
                "all rows, use to_table().sort_by(…)"
            )
        from deltalog.expressions.ordering import sort_keys  # noqa: PLC0415  # few scans need it

        keys = sort_keys(order_by, snapshot.configuration.schema)
        asked = list(snapshot.configuration.schema.names if columns is None else columns)
        unseen = {key.path[0] for key in keys} - set(spec.output.names)
        asked_again = read_spec(
            snapshot,
            columns=[*asked, *sorted(unseen)],
            predicate=predicate,
            is_resolved=is_resolved,
        )
        order = RowOrder(keys, asked_again)
    return Scan(snapshot=snapshot, spec=spec, most_rows=limit, row_order=order)


def check_rows_readable(snapshot: Snapshot) -> None:
    """Raise if deltalog cannot read the rows of a snapshot; called before any data is read."""
    check_readable(
        snapshot.configuration,
        table=snapshot.store.root,
        version=snapshot.version,
        has_log_tail=snapshot.log_tail is not None,
    )


def check_row_ids(snapshot: Snapshot, spec: ReadSpec) -> None:
    """Raise if row ids or row commit versions are requested, but the table has none.

    Raises:
        DeltaProtocolError: the table has no row tracking.
    """
    configuration = snapshot.configuration
    # Raise only if row tracking is not supported. If it is supported but not enabled, rows have ids
    # that are not stable.
    if configuration.row_id_dialect is None and not ROW_TRACKING.isdisjoint(spec.metadata_columns):
        row_ids.check_enabled(None, configuration.properties, snapshot.store.root)


def make_tasks(
    snapshot: Snapshot, spec: ReadSpec, files: pa.Table, *, footers: FetchedFooters | None = None
) -> Iterator[ScanTask]:
    """Yield the tasks of `files`, which must have `TASK_COLUMNS`; each task is made on request."""
    yield from _tasks_of(snapshot, spec, files, find_keys(snapshot, spec, files), footers)


def _tasks_of(
    snapshot: Snapshot,
    spec: ReadSpec,
    files: pa.Table,
    found: FoundFiles | None,
    footers: FetchedFooters | None = None,
) -> Iterator[ScanTask]:
    """Yield the tasks of the files that the key index has found, or of all files without it."""
    rows = _rows(files if found is None else found.files)
    indexed = repeat(None) if found is None else found.rows
    for row, known in zip(rows, indexed, strict=False):
        yield make_task(snapshot, spec, row, footers=footers, indexed=known)


def find_keys(
    snapshot: Snapshot, spec: ReadSpec, files: pa.Table, *, keys: pa.Table | None = None
) -> FoundFiles | None:
    """Return the files and rows that the key index finds; None if it cannot narrow the read.

    Args:
        snapshot: the version of the files.
        spec: the read; its predicate may restrict the keys. Without a predicate, all rows are read.
        files: live files, with `TASK_COLUMNS`.
        keys: values of key columns, by logical name; only rows with these values are needed.

    Cost: see `lookup.look_up`.
    """
    if spec.predicate is None or not has_key(snapshot):
        return None
    try:
        from deltalog.data.keys.lookup import look_up  # noqa: PLC0415  # needs NumPy
    except ModuleNotFoundError as error:
        logger.warning("cannot use the key index of %s: %s", snapshot.store.root, error)
        return None
    return look_up(snapshot, spec.predicate, files, keys)


def find_pruned_keys(
    snapshot: Snapshot, spec: ReadSpec, pruned: Pruned, *, keys: pa.Table | None = None
) -> FoundFiles | None:
    """Return what `find_keys` finds in the files that remain after pruning.

    Cost: nothing without a key, not even the list of these files; otherwise see `find_keys`.
    """
    if not has_key(snapshot):
        return None
    return find_keys(snapshot, spec, pruned.files(TASK_COLUMNS), keys=keys)


def has_key(snapshot: Snapshot) -> bool:
    """Return whether a version has a key index, which needs the predicate of a scan."""
    try:
        return snapshot.configuration.properties.key_index_columns is not None
    except InvalidMetadataError as error:
        logger.warning("cannot use the key index of %s: %s", snapshot.store.root, error)
        return False


def make_numbered_tasks(
    snapshot: Snapshot,
    spec: ReadSpec,
    files: pa.Table,
    *,
    are_read: Sequence[bool] | None = None,
    along: Allowance | None = None,
    footers: FetchedFooters | None = None,
    keys: pa.Table | None = None,
) -> Iterator[ScanTask]:
    """Yield tasks whose rows have the number of their file in the column `FILE_NUMBER`.

    Args:
        snapshot: the version of the files.
        spec: the spec of the read; the file number becomes the last column.
        files: the files, with at least the columns `TASK_COLUMNS`.
        are_read: for each file, whether to yield a task; None means all files.
        along: see `FileTask`; shared by all tasks.
        footers: see `FileTask`; shared by all tasks.
        keys: see `find_keys`.
    """
    spec = replace(spec, output=spec.output.append(pa.field(FILE_NUMBER, pa.int64())))
    found = find_keys(snapshot, spec, files, keys=keys)
    rows = _rows(files if found is None else found.files)
    numbers: Iterable[int] = count() if found is None else found.numbers
    indexed = repeat(None) if found is None else found.rows
    for number, row, known in zip(numbers, rows, indexed, strict=False):
        if are_read is None or are_read[number]:
            constants = ((FILE_NUMBER, pa.array([number])),)
            more: dict[str, Any] = {"constants": constants, "along": along, "indexed": known}
            yield make_task(snapshot, spec, row, footers=footers, **more)


def _check_inline_vectors(pruned: Pruned) -> None:
    """Check that the inline deletion vectors are readable and mark only existing rows.

    Otherwise a count that reads no file could return a wrong number without an error.

    Raises:
        DeletionVectorError: a vector is damaged, or marks a row that its file does not have.

    Cost: no request; some microseconds for each inline vector.
    """
    files = pruned.files(["path", "deletionVector"])
    kinds = compute.struct_field(files.column("deletionVector"), "storageType")
    is_inline = compute.fill_null(compute.equal(kinds, INLINE), FALSE)
    if not compute.any(is_inline).as_py():
        return
    files = files.append_column("numRecords", pruned.num_records()).filter(is_inline)
    store = pruned.snapshot.store
    for batch in files.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            descriptor = descriptor_of(row["deletionVector"])
            if descriptor is None:
                continue
            try:
                load_bitmap(store, descriptor, num_rows=row["numRecords"])
            except DeletionVectorError as error:
                error.add_note(f"while counting {row['path']!r} of table {store.root!r}")
                raise


def _rows(files: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in files.select(TASK_COLUMNS).to_batches(max_chunksize=4096):
        yield from batch.to_pylist()


def make_task(snapshot: Snapshot, spec: ReadSpec, row: dict[str, Any], **more: Any) -> ScanTask:
    """Return the task for a row of a table with `TASK_COLUMNS`."""
    path = decode_path(row["path"])
    check_confined(path)
    vector = descriptor_of(row["deletionVector"])
    if vector is not None:
        check_deletion_vectors(
            snapshot.configuration, table=snapshot.store.root, version=snapshot.version
        )
    return ScanTask(
        store=snapshot.store,
        spec=spec,
        path=path,
        partition_values=_spelled(row["partitionValues"], spec.physical_names.values()),
        size_bytes=row["size"],
        modification_time_ms=row.get("modificationTime"),
        deletion_vector=vector,
        base_row_id=row.get("baseRowId"),
        default_row_commit_version=row.get("defaultRowCommitVersion"),
        **more,
    )


def _spelled(pairs: Any, names: Iterable[str]) -> dict[str, str | None]:
    """Return partition values with the schema's keys; keys in the log may differ in case."""
    values: dict[str, str | None] = dict(pairs or ())
    missing = [name for name in names if name not in values]
    return {**values, **{name: value_of(values, name) for name in missing}} if missing else values


def descriptor_of(row: dict[str, Any] | None) -> DeletionVectorDescriptor | None:
    """Return the descriptor in a value of the column `deletionVector`; None without a vector."""
    # Instead of NULL, a checkpoint may contain a struct whose fields are all NULL.
    if row is None or row["storageType"] is None:
        return None
    missing = [name for name in _DESCRIPTOR_PARTS if row[name] is None]
    if missing:
        raise DeletionVectorError(
            f"cannot use the deletion vector descriptor {row!r}: it lacks {', '.join(missing)}"
        )
    return DeletionVectorDescriptor(
        storage_type=row["storageType"],
        path_or_inline_dv=row["pathOrInlineDv"],
        offset=row["offset"],
        size_bytes=row["sizeInBytes"],
        cardinality=row["cardinality"],
        max_row_index=row.get("maxRowIndex"),
    )


# --- Cards, and explanations of the files that a scan reads


PREVIEW_ROWS: Final = 5
"""The number of rows that a notebook card shows of a table or a scan."""
_MOST_SHOWN: Final = 100
_MOST_COLUMNS: Final = 20


def some_rows(batches: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[CardPiece]:
    """Yield the first rows if there are any, or the reason why rows cannot be shown."""
    try:
        found: list[pa.RecordBatch] = []
        for batch in batches():
            found.append(batch.slice(0, PREVIEW_ROWS - sum(one.num_rows for one in found)))
            if sum(one.num_rows for one in found) == PREVIEW_ROWS:
                break
    except DeltaError as error:
        yield folding("rows cannot be shown", plain(str(error)))
        return
    if any(one.num_rows for one in found):
        yield folding("some rows", grid_of_rows(pa.Table.from_batches(found)))


def grid_of_rows(rows: pa.Table) -> CardPiece:
    """Return the first rows and columns as a table for a notebook."""
    from deltalog.schema.check import readable_tuples  # noqa: PLC0415  # only notebooks need it

    shown = rows.slice(0, _MOST_SHOWN).select(list(range(min(rows.num_columns, _MOST_COLUMNS))))
    lines = [list(map(cell_of_row, row)) for row in readable_tuples(shown)]
    pieces = [grid(lines, shown.column_names)]
    if rows.num_rows > shown.num_rows or rows.num_columns > shown.num_columns:
        pieces.append(
            plain(f"of {counted(rows.num_rows, 'row')} and {counted(rows.num_columns, 'column')}")
        )
    return CardPiece("".join(pieces))


class Explanation(str):
    """The result of `Scan.explain`: a string whose `repr` is the string without quotes.

    Args:
        text: the text of the explanation.
        pruned: the result of pruning that the text explains.
    """

    __slots__ = ("_pruned",)
    _pruned: Pruned

    def __new__(cls, text: str, pruned: Pruned) -> Self:
        """Return a string with the result of pruning."""
        made = super().__new__(cls, text)
        made._pruned = pruned
        return made

    @property
    def facts(self) -> dict[str, Any]:
        """Return the numbers of read and skipped files, the reasons, and the bytes to read.

        Cost: reads the sizes of the remaining files from the log.
        """
        exact = self._pruned.counted()
        return {
            "version": self._pruned.snapshot.version,
            "files": exact.num_files,
            "files_to_read": exact.num_left,
            "bytes_to_read": pc.sum(self._pruned.files(["size"])["size"]).as_py() or 0,
            "pruned_by_partition_values": exact.num_by_partition,
            "pruned_by_statistics": exact.num_by_statistics,
            "reasons": list(exact.reasons),
        }

    def __repr__(self) -> str:
        """Return the string without quotes, so that its lines are readable."""
        return str(self)

    def __str__(self) -> str:
        """Return the string as a plain `str`."""
        return str.__str__(self)

    def _repr_html_(self) -> str:
        """Return the explanation as HTML for notebooks."""
        title, *rest = str(self).split("\n")
        return card(title, plain("\n".join(rest)))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle only the string, because the result of pruning may be large."""
        return str, (str(self),)


# --- the versions that a vacuum has left complete, for errors about missing files


_NEWEST_COMMITS: Final = 100


@contextmanager
def naming_complete_versions(snapshot: Snapshot) -> Iterator[None]:
    """Say more about a missing file: another table, or the versions that a vacuum kept complete.

    Args:
        snapshot: the version that is read.

    Cost: none without an error; otherwise one listing, and requests for up to 100 commits.
    """
    try:
        yield
    except DataFileMissingError as error:
        # The history of another writer may have other members.
        with suppress(DeltaError, OSError, LookupError, TypeError, ValueError):
            latest = snapshot.refresh()
            if latest.metadata.id != snapshot.metadata.id and not snapshot.is_in_place():
                message = (
                    f"cannot read version {snapshot.version} of {snapshot.store.root}: the opened "
                    f"table with id {snapshot.metadata.id!r} was replaced by a table with id "
                    f"{latest.metadata.id!r}; open the table again"
                )
                error.args = (message,)
            elif (
                first := _first_complete(snapshot, latest)
            ) is not None and first > snapshot.version:
                error.add_note(f"since the last vacuum, versions from {first} on are complete")
        raise


def _first_complete(snapshot: Snapshot, latest: Snapshot) -> int | None:
    """Return the oldest version whose files the last vacuum kept; None if there was no vacuum."""
    for commit in latest.history(_NEWEST_COMMITS):
        if commit.get("operation") == "VACUUM START":
            given = commit["operationParameters"]
            kept_ms = int(given.get("specifiedRetentionMillis", given["defaultRetentionMillis"]))
            # The vacuum chose its files before this commit.
            kept_since_ms = commit["timestamp"] - 1 - kept_ms
            return find_version(snapshot.context, kept_since_ms, latest=latest)
    return None
