"""Read tables as DataFrames: `read` in one call, or `scan` to add conditions step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.argument_types import kind_of
from deltalog._util.cached import cached_property
from deltalog._util.paths import store_kind
from deltalog._util.readable import FILE, counted
from deltalog._util.similar_names import suggests_options
from deltalog.data.scan import ReadSpec, Scan, ScanTask, plan_scan
from deltalog.data.scan.plan import TASK_COLUMNS, make_task
from deltalog.data.scan.prune import Pruned, prune
from deltalog.data.scan.reader import read_tasks
from deltalog.errors import InvalidInputError
from deltalog.log.snapshot.splits import SHARE_BYTES, cut_snapshot, holds_more_files
from deltalog.operations.arguments import as_columns
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.schema import StructType, canonical_path_of, from_arrow_schema
from deltalog.schema.columns import naming_the_attempt
from deltalog.schema.metadata_columns import metadata_columns_of
from deltalog.spark.reading.batch_source import (
    OPEN_COST_BYTES,
    metadata_struct,
    with_metadata_struct,
)
from deltalog.spark.reading.conditions import RowCondition, as_spark_condition
from deltalog.spark.reading.native import (
    ReadPlan,
    output_rows,
    plan_read,
    rows_frame,
    with_comments,
)
from deltalog.spark.reading.options import (
    MAX_PARTITION_BYTES,
    asked_metadata_columns,
    parse_metadata_columns,
)
from deltalog.spark.reading.state import (
    DEFAULT_FILES_HERE,
    NUM_RECORDS,
    PrunedOnCluster,
    files_of,
    most_files_here,
    prune_on_cluster,
)
from deltalog.spark.session.failures import as_spark_does, session_first
from deltalog.spark.session.opening import load_version, session_time_zone
from deltalog.spark.session.settings import check_reads
from deltalog.spark.session.tasks import numbered_frame
from deltalog.spark.session.types import as_spark_batches, quoted, to_spark_arrow, to_spark_schema
from deltalog.spark.session.workers import mapped
from deltalog.storage import FsspecStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import date, datetime
    from pathlib import PurePath

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.storage.store import Store


@dataclass(frozen=True)
class SparkScan:
    """A read of one version, to which conditions can be added before it becomes a DataFrame.

    Args:
        spark: the session.
        snapshot: the version.
        columns: the top-level columns to return; None means all columns.
        conditions: the conditions, which are all true for the returned rows.
        metadata_columns: names of `METADATA_COLUMNS`, returned as one struct (`metadata_struct`).
        objection: the reason why Spark's own Parquet reader must not be used; None if it may be
            used.
        most_files: the maximum number of files that the driver handles. If the version has more
            files, tasks read its state. If more files remain after pruning, tasks list them.
        lists_files: whether the driver lists all files that remain after pruning, with all columns
            and in any number. Operations that change rows need this list.
        weighs_sizes: whether the number and sizes of the files decide between Spark's own Parquet
            reader and deltalog's tasks; see `plan_read`.
    """

    spark: SparkSession
    snapshot: Snapshot
    columns: tuple[str, ...] | None = None
    conditions: tuple[RowCondition, ...] = ()
    metadata_columns: tuple[str, ...] = ()
    objection: str | None = None
    most_files: int = DEFAULT_FILES_HERE
    lists_files: bool = False
    weighs_sizes: bool = False

    def select(self, *columns: str) -> SparkScan:
        """Return a copy of the scan that returns only these columns."""
        schema = self.snapshot.configuration.schema
        with naming_the_attempt("scan", self.snapshot.store.root):
            found = tuple(self._top_level(schema, name) for name in as_columns(columns) or ())
        return replace(self, columns=found)

    @staticmethod
    def _top_level(schema: Any, name: str) -> str:
        path = canonical_path_of(schema, (name,))
        return str(path[0])

    def where(self, condition: Any) -> SparkScan:
        """Return a copy of the scan with a further condition.

        Args:
            condition: Spark SQL, an expression, deltalake's filter tuples, or a Spark column. A
                Spark column prunes no files.
        """
        schema = self.snapshot.configuration.schema
        with naming_the_attempt("scan", self.snapshot.store.root):
            more = as_spark_condition(condition, schema, self.snapshot.context.session)
        return replace(self, conditions=(*self.conditions, more))

    def explain(self) -> str:
        """Return a description of the plan: which reader reads how many files, and why.

        Cost: the cost of planning.
        """
        plan = self._plan
        lines: list[str] = [plan.scan.explain()]
        if self._is_on_cluster:
            lines.append(f"  files pruned by tasks: more than {self.most_files} are in the table")
        lines += [
            f"  filtered by Spark: {one.text}" for one in self.conditions if one.pruning is None
        ]
        return "\n".join([*lines, *(f"  {line}" for line in plan.explain())])

    def files(self) -> DataFrame:
        """Return the files that the scan reads, with one row per file.

        The columns are the fields of an `add` action, and `numRecords`. A missing field is NULL.

        Cost: tasks read the checkpoint, even of a small table; the driver reads the commits after
            it.
        """
        scan = self._scan
        return files_frame(self.spark, self.snapshot, scan.spec.predicate)

    def to_df(self) -> DataFrame:
        """Return the rows as a DataFrame.

        Cost: planning reads the log's columns of the files that remain after pruning. They are read
        by the driver, or by tasks if the table has more than `most_files` files.
        """
        plan = self._plan
        if isinstance(plan, ClusterPlan):
            frame = cluster_frame(self.spark, plan)
        else:
            frame = rows_frame(self.spark, plan)
        for condition in self.conditions:
            frame = frame.where(condition.column)
        shown = list(self.columns or self.snapshot.configuration.schema.names)
        read, hidden = self._read_columns()
        if (read, hidden) == (shown, list(self.metadata_columns)):
            return frame
        columns = [F.col(quoted(name)) for name in shown]
        if self.metadata_columns:
            whole = F.col(metadata_struct(read))
            names = [name.partition(".")[2] for name in self.metadata_columns]
            parts = [whole[name].alias(name) for name in names]
            columns.append(F.struct(*parts).alias(metadata_struct(shown)))
        return frame.select(*columns)

    @property
    def pruned(self) -> Pruned:
        """The files that may contain matching rows."""
        return self._plan.scan.pruned

    @property
    def uses_native_reader(self) -> bool:
        """Whether Spark's own Parquet reader reads at least one file.

        Also true if there are no files, or if tasks plan the read. If this property is false, the
        format's Python source reads the same files but is better, because Spark pushes filters to
        it.
        """
        plan = self._plan
        return isinstance(plan, ClusterPlan) or bool(plan.groups) or not plan.unfit.num_rows

    @cached_property
    def _is_on_cluster(self) -> bool:
        return holds_more_files(self.snapshot, self.most_files)

    @cached_property
    def _scan(self) -> Scan:
        pruning = [one.pruning for one in self.conditions if one.pruning is not None]
        names, hidden = self._read_columns()
        return plan_scan(
            self.snapshot,
            columns=names,
            hidden=hidden,
            predicate=reduce(and_, pruning) if pruning else None,
        )

    @cached_property
    def _plan(self) -> ReadPlan | ClusterPlan:
        scan = self._scan
        if self._is_on_cluster:
            pruned = prune_on_cluster(
                self.spark,
                self.snapshot,
                scan.spec.predicate,
                names=FILE_SCHEMA.names if self.lists_files else TASK_COLUMNS,
                most_files=None if self.lists_files else self.most_files,
            )
            scan = scan.with_pruned(pruned)
            if pruned.left is None:
                return ClusterPlan(scan=scan, pruned=pruned, most_files=self.most_files)
        return plan_read(self.spark, scan, objection=self.objection, weighs_sizes=self.weighs_sizes)

    def _read_columns(self) -> tuple[list[str], list[str]]:
        """Return the columns and the metadata columns that the output or a condition uses."""
        schema = self.snapshot.configuration.schema
        used: set[str] = set()
        shown = list(schema.names if self.columns is None else self.columns)
        for condition in self.conditions:
            if condition.used is None:
                shown = list(schema.names)
            else:
                used |= condition.used
        hidden = [*self.metadata_columns]
        known = metadata_columns_of(schema)
        hidden += [name for name in known if name in used and name not in hidden]
        more = [name for name in schema.names if name in used and name not in shown]
        return [*shown, *more], hidden


_OPTIONS: Final = {
    **dict.fromkeys(("versionAsOf", "version_as_of", "at"), "version=…"),
    **dict.fromkeys(("timestampAsOf", "timestamp_as_of", "datetime"), "timestamp=…"),
    **dict.fromkeys(("options", "storageOptions"), "storage_options=…"),
    **dict.fromkeys(
        ("readChangeFeed", "startingVersion", "starting_version"),
        "spark.read.format('deltalog').option('readChangeFeed', 'true')",
    ),
}
"""Option of other functions → what to use instead."""
_OF_SCAN: Final = {
    **_OPTIONS,
    **dict.fromkeys(("where", "predicate", "filters", "filter"), "scan(…).where(condition)"),
    **dict.fromkeys(("columns", "select"), "read(spark, table, columns=…)"),
}
_OF_READ: Final = {
    **_OPTIONS,
    **dict.fromkeys(("predicate", "filters", "filter"), "where=…"),
    "select": "columns=…",
}


@session_first
@suggests_options("deltalog.spark.scan()", _OF_SCAN)
def scan(
    spark: SparkSession,
    table: str | PurePath | Store | NamedTable,
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    metadata_columns: Sequence[str] = (),
    storage_options: Mapping[str, Any] | None = None,
    native: bool | None = None,
    state_on_spark_files: int | None = None,
) -> SparkScan:
    """Begin a read of a table, to which conditions can be added before files are planned.

    Args:
        spark: the session, classic or remote.
        table: a path, a URL, `uc://catalog.schema.table`, a store, or a `NamedTable` of any
            catalog. A path or URL may end in a version, such as `@v3`.
        version: the version to read; None means the latest unless `timestamp` is set.
        timestamp: the timestamp of the version to read. A timestamp without a time zone is in the
            session's time zone.
        metadata_columns: the names of metadata columns to return in the struct `_metadata`, such as
            `row_id` or `file_name`; `*` means all metadata columns of the table.
        storage_options: credentials and settings for reading the log, and the files that Python
            workers read.
        native: whether Spark's own Parquet reader may read the files that it reads correctly. None
            means yes, unless storage options are set, because Spark does not receive them, or a
            thousand files or more have at most 32 KiB on average, which tasks with deltalog's
            reader read faster.
        state_on_spark_files: the maximum number of files for which the driver reads the table's
            state. If the table has more files, tasks read and prune the state, and the driver needs
            less memory. None means the session's setting `spark.deltalog.stateOnSparkFiles`, or
            200,000.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: there is no such version, or the timestamp is after the last commit.
    """
    if not hasattr(spark, "conf"):
        raise InvalidInputError(
            f"cannot read with {kind_of(spark)} as the session: the session comes first, as in "
            "deltalog.spark.read(spark, location)"
        )
    check_reads(spark)
    time_zone = session_time_zone(spark)
    with as_spark_does():
        snapshot = load_version(
            table, storage_options, version=version, timestamp=timestamp, time_zone=time_zone
        )
    return SparkScan(
        spark=spark,
        snapshot=snapshot,
        metadata_columns=asked_metadata_columns(parse_metadata_columns(metadata_columns), snapshot),
        objection=objection_to_native(snapshot.store, native=native),
        most_files=most_files_here(spark, state_on_spark_files),
        weighs_sizes=native is None,
    )


@session_first
@suggests_options("deltalog.spark.read()", _OF_READ)
def read(
    spark: SparkSession,
    table: str | PurePath | Store | NamedTable,
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    columns: Sequence[str] | None = None,
    where: Any = None,
    metadata_columns: Sequence[str] = (),
    storage_options: Mapping[str, Any] | None = None,
    native: bool | None = None,
    state_on_spark_files: int | None = None,
) -> DataFrame:
    """Read a version of a table as a DataFrame.

    Args:
        spark: the session, classic or remote.
        table: a path, a URL, `uc://catalog.schema.table`, a store, or a `NamedTable` of any
            catalog. A path or URL may end in a version, such as `@v3`.
        version: the version to read; None means the latest unless `timestamp` is set.
        timestamp: the timestamp of the version to read. A timestamp without a time zone is in the
            session's time zone.
        columns: the top-level columns to return; None means all columns. Usually unnecessary,
            because Spark does not read columns that a query does not use.
        where: a condition on the rows, which also prunes files: Spark SQL, an expression, or
            deltalake's filter tuples.
        metadata_columns: the names of metadata columns to return in the struct `_metadata`, such as
            `row_id` or `file_name`; `*` means all metadata columns of the table.
        storage_options: see `scan`.
        native: see `scan`.
        state_on_spark_files: see `scan`.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: there is no such version, or the timestamp is after the last commit.
        UnsupportedFeatureError: deltalog cannot read the table's rows.
    """
    found = scan(
        spark,
        table,
        version=version,
        timestamp=timestamp,
        metadata_columns=metadata_columns,
        storage_options=storage_options,
        native=native,
        state_on_spark_files=state_on_spark_files,
    )
    if where is not None:
        found = found.where(where)
    if columns is not None:
        found = found.select(*columns)
    return found.to_df()


def objection_to_native(store: Store, *, native: bool | None = None) -> str | None:
    """Return the reason why Spark's own Parquet reader must not be used; None if it may be used.

    Args:
        store: the store of the table.
        native: the caller's choice.
    """
    if native is not None:
        return None if native else "native=False requires it"
    if store_kind(store.root).is_native:
        return None
    if not isinstance(store, FsspecStore):
        return "the table is given as a store, which Spark cannot use"
    if store.has_settings:
        return (
            "storage options are given, or credentials lent by a catalog, which Spark cannot "
            "use; native=True tries it"
        )
    return None


# --- versions with too many files for the driver, so that tasks list the files and read the rows


_MOST_TASKS: Final = 20_000


def files_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    predicate: Expression | None = None,
    *,
    names: Sequence[str] = tuple(FILE_SCHEMA.names),
    share_bytes: int = SHARE_BYTES,
) -> DataFrame:
    """Return a row for each file that may contain rows for which `predicate` is true.

    Args:
        spark: the session.
        snapshot: the version.
        predicate: the predicate, resolved against the schema of the snapshot. None selects all
            files.
        names: the columns of `FILE_SCHEMA` to return, followed by `numRecords`.
        share_bytes: the number of bytes of the checkpoint that one task reads.

    Cost: the driver reads the commits after the checkpoint. One task per `share_bytes` of the
    checkpoint reads it.
    """
    cut = snapshot.read_log(lambda state: cut_snapshot(snapshot, state, share_bytes=share_bytes))
    schema = _schema(names)

    def find(number: int) -> Iterator[pa.RecordBatch]:
        arrow = to_spark_arrow(schema)
        for piece in cut.small_pieces(number):
            files = files_of(prune(piece, predicate), names)
            yield from as_spark_batches(files.to_batches(max_chunksize=1 << 14), arrow)

    return numbered_frame(spark, cut.num_pieces, find, to_spark_schema(schema))


def _schema(names: Sequence[str]) -> StructType:
    fields = [FILE_SCHEMA.field(name) for name in names]
    return from_arrow_schema(pa.schema([*fields, pa.field(NUM_RECORDS, pa.int64())]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The plan of a scan that reads more files than the driver may list.

    Args:
        scan: the scan.
        pruned: the outcome of pruning, with the number of remaining files.
        most_files: the maximum number of files that the driver lists.
    """

    scan: Scan
    pruned: PrunedOnCluster
    most_files: int

    def explain(self) -> list[str]:
        """Return lines that report how many files each reader reads, and why."""
        return [
            f"read by Python workers: {counted(self.pruned.num_left, FILE)}",
            f"because they are more than {self.most_files}, and their list stays on the cluster",
        ]


def cluster_frame(spark: SparkSession, plan: ClusterPlan) -> DataFrame:
    """Return all rows of a plan's files. The predicate has pruned files, but filters no rows.

    Args:
        spark: the session.
        plan: the plan of the read.
    """
    spec, snapshot = plan.scan.spec, plan.scan.snapshot
    files = files_frame(spark, snapshot, spec.predicate, names=TASK_COLUMNS)
    cost = plan.pruned.left_bytes + plan.pruned.num_left * OPEN_COST_BYTES
    count = max(1, min(_MOST_TASKS, cost // MAX_PARTITION_BYTES))
    rows = output_rows(spec)
    read = _reading(snapshot, spec, rows)
    return with_comments(mapped(files.repartition(count), read, to_spark_schema(rows)), rows)


def _reading(
    snapshot: Snapshot, spec: ReadSpec, rows: StructType
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def tasks(files: Iterable[pa.RecordBatch]) -> Iterator[ScanTask]:
        for batch in files:
            for row in batch.to_pylist():
                yield make_task(snapshot, spec, row)

    def read(files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = (with_metadata_struct(batch, rows) for batch in read_tasks(tasks(files)))
        yield from as_spark_batches(batches, to_spark_arrow(rows))

    return read
