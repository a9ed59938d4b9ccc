"""The state of an open table, and the methods of `DeltaTable` that read it.

The classes of this module, `changing` and `maintaining` have no use of their own: they divide the
methods of `DeltaTable` by theme.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, overload

from deltalog._util.argument_types import checks_types, wrong_argument
from deltalog._util.call_errors import called_first
from deltalog._util.cards import Progress, shown
from deltalog._util.readable import FILE, counted
from deltalog._util.similar_names import NoSequence, suggests_arguments
from deltalog.catalogs import table_uri as locations
from deltalog.errors import InvalidInputError
from deltalog.expressions.sql_session import SqlSession
from deltalog.log.branches import branch_of, named_root
from deltalog.log.context import TableContext
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations import arguments
from deltalog.schema.columns import naming_the_attempt
from deltalog.table.inspect.display import ShownList, with_card

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date, datetime

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from deltalog._util.clock import Clock
    from deltalog.data.scan.changes import Changes
    from deltalog.data.scan.dataset import DeltaDataset
    from deltalog.data.scan.plan import Scan
    from deltalog.data.scan.rows import DtypeBackend
    from deltalog.expressions import Expression
    from deltalog.operations.engine import Engine
    from deltalog.query.results import SqlResult
    from deltalog.schema import Schema
    from deltalog.table.inspect.description import TableDescription
    from deltalog.table.inspect.diff import TableDiff
    from deltalog.table.inspect.doctor import Report
    from deltalog.table.inspect.follow import Follower, Offset

    Version = int | str | datetime | date
    Parameters = Sequence[object] | Mapping[str, object] | None


@called_first(
    *("version", "schema", "file_uris", "count", "head", "partitions"),
    *("to_pandas", "to_polars", "to_arrow", "to_pyarrow_table", "to_pyarrow_dataset", "scan"),
)
@checks_types
@suggests_arguments
class ReadableTable(NoSequence):
    """An open table at one version: what `DeltaTable` reads of it."""

    _block = "; `with table.transaction() as tx:` commits several changes at once"
    _counted = "count()"
    _datafusion = "register_table(name, table.to_pyarrow_dataset()) of the context"
    _internal = frozenset({"do", "engine", "execute", "from_context", "if_any", "run", "snapshot"})
    _items = (
        "to_pandas() for a dataframe, to_pyarrow_table(columns=[…]) for columns, "
        "to_pyarrow_table().to_pylist() for rows, or scan(), which yields batches"
    )
    _engine: Engine | None
    _travelled: bool
    _snapshot: Snapshot

    def _open(self, context: TableContext, engine: Engine | None, version: Version | None) -> None:
        given: object = engine
        if isinstance(given, type) or not (given is None or hasattr(given, "plan_change")):
            raise InvalidInputError(
                f"cannot open a table with engine={engine!r}: expected an engine, such as "
                "deltalog.ray.RayEngine() or deltalog.dask.DaskEngine(); on Spark, use "
                "deltalog.spark.DeltaTable"
            )
        self._hold(self._load(context, version), engine, is_latest=version is None)

    def _hold(self, snapshot: Snapshot, engine: Engine | None, *, is_latest: bool) -> None:
        self._engine = engine
        self._travelled = not is_latest
        self._snapshot = snapshot

    @classmethod
    def from_context(cls, context: TableContext, engine: Engine | None = None) -> Self:
        """Open the latest version of the table of a context.

        Args:
            context: context of the table.
            engine: reads and writes rows and files; None means threads of this process.
        """
        table = cls.__new__(cls)
        cls._open(table, context, engine, None)
        return table

    @property
    def snapshot(self) -> Snapshot:
        """The version that this object shows now; a snapshot never changes."""
        return self._snapshot

    @property
    def engine(self) -> Engine:
        """The engine, which reads and writes rows and files, in this process or on a cluster."""
        if self._engine is None:
            from deltalog.operations.engine import LocalEngine

            self._engine = LocalEngine()
        return self._engine

    @property
    def table_uri(self) -> str:
        """The location of the table; for a branch, `table@name`."""
        return named_root(self._snapshot.store)

    def version(self) -> int:
        """Return the number of the version that this object shows."""
        return self._snapshot.version

    @property
    def is_pinned(self) -> bool:
        """Whether this object was opened at a version or timestamp, which SQL then reads, too."""
        return self._travelled

    def load_as_version(self, version: Version) -> None:
        """Load another version, which this object shows from now on.

        Raises:
            VersionNotFoundError: the version does not exist. The message contains the first and the
                last existing version.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://travel", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://travel")
            >>> write_deltalake(table, [{"id": 3, "n": 9}], mode="append")
            >>> table.load_as_version(0)
            >>> table.count()
            2
            >>> table.update_incremental()
            >>> table.count()
            3
        """
        if version is None:
            raise InvalidInputError(
                "cannot load version None: expected a number, an ISO 8601 string, a datetime or a "
                "date; update_incremental() loads the latest version"
            )
        self._snapshot = self._load(self._snapshot.context, version)
        self._travelled = True

    def update_incremental(self, *, same_table: bool = True) -> None:
        """Load the latest version, which this object shows from now on.

        Args:
            same_table: whether to raise if the directory was deleted and another table was created
                in it. False shows the new table.

        Raises:
            TableNotFoundError: the table no longer exists, or was replaced by another table.

        Cost: one listing, and reading the new commits. One more request if the id of the table is
        another one.
        """
        with locations.naming(self.table_uri):
            self._snapshot = self._snapshot.refresh(same_table=same_table)
        self._travelled = False

    def _load(self, context: TableContext, version: Version | None) -> Snapshot:
        with locations.naming(context.store.root):
            number = arguments.as_whole_number(version)
            if version is None or number is not None:
                return load_snapshot(context, version=number)
            return load_snapshot(context, timestamp_ms=arguments.as_timestamp_ms(version))

    @property
    def _session(self) -> SqlSession:
        return self._snapshot.context.session

    def _check_latest(self, operation: str) -> None:
        if self._travelled:
            of_branch = branch_of(self._snapshot.context.store) is not None
            check = "a check of publish cannot change the branch; otherwise, " if of_branch else ""
            raise InvalidInputError(
                f"cannot {operation} at version {self.version()} of {self.table_uri}: the table "
                f"was opened at this version; {check}update_incremental() loads the latest version"
            )

    def schema(self) -> Schema:
        """Return the schema of the table."""
        return self._snapshot.configuration.schema

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        *,
        parameters: Parameters = None,
        limit: int | None = None,
        order_by: Any = None,
    ) -> Scan:
        """Read some columns and rows, lazily: nothing is read before you request a result.

        Iterate over the `Scan` to get batches, or call `to_pandas()`, `to_polars()` or
        `to_table()`. `count()` counts rows, `explain()` states which files are read, and `tasks()`
        splits the read for other processes.

        Args:
            columns: names of columns; None means all columns of the table. `a.b` returns the struct
                `a` with only the field `b`. Metadata columns are `_metadata.file_path`,
                `.row_index`, `.row_id`, `.row_commit_version` and `.file_modification_time`.
            limit: maximum number of rows.
            order_by: with a limit: return the first rows in this order. SQL such as `at DESC, id`,
                or a list of column names and pairs such as `("at", "descending")`. NULL is first
                and NaN last; with DESC, NaN is first and NULL last, as in Spark.

        Raises:
            InvalidInputError: a column does not exist, or the predicate is invalid.
            UnsupportedFeatureError: reading rows requires a table feature that deltalog lacks.

        Cost: none until a result is requested. With `order_by`, files are read in the order of
        their statistics, until no other file can contain one of the first rows.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://scan", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> scan = DeltaTable("memory://scan").scan(["id"], "n > 5")
            >>> scan.to_table().to_pylist()
            [{'id': 2}]
        """
        from deltalog.data.scan.plan import plan_scan

        chosen, most = arguments.as_columns(columns), arguments.as_limit(limit)
        with naming_the_attempt("scan", self.table_uri):
            condition = arguments.as_condition(
                self.schema(), predicate, session=self._session, parameters=parameters
            )
            return plan_scan(
                self._snapshot,
                columns=chosen,
                predicate=condition,
                limit=most,
                order_by=order_by,
                is_resolved=True,
            )

    def count(self, predicate: Any = None, *, parameters: Parameters = None) -> int:
        """Return the number of rows, without deleted rows.

        Args:
            predicate: counts only the rows for which it is true.

        Cost: reads `numRecords` of every file from the log; reads data only of files without it,
            and of files of which only some rows may match.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://count", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://count")
            >>> table.count(), table.count("n > 5")
            (2, 1)
        """
        return self.scan(predicate=predicate, parameters=parameters).count()

    def head(
        self,
        num_rows: int = 5,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        *,
        parameters: Parameters = None,
    ) -> pa.Table:
        """Return a few arbitrary rows, as a preview.

        Args:
            num_rows: maximum number of rows.

        Cost: reads one file after the other until there are enough rows.
        """
        rows = self.scan(columns, predicate, parameters=parameters, limit=num_rows)
        return with_card(rows.to_table())

    def describe(self) -> TableDescription:
        """Return the number of rows, and for each column the nulls, minimum and maximum.

        The values are computed from the statistics in the log. A value that cannot be computed
        exactly is in `missing`, with the reason.

        Returns:
            A `TableDescription`: `num_rows`, `columns`, `to_table()`, `to_pandas()`; a notebook
            shows it as a card.

        Cost: reads all statistics of all files from the log, but no data.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://describe", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://describe")
            >>> print(table.describe())
            memory:///describe at version 0: 2 rows
              id: long, nulls 0, min 1, max 2
              n: long, nulls 0, min 5, max 7
        """
        from deltalog.table.inspect.description import describe_columns

        return describe_columns(self._snapshot)

    def to_pyarrow_dataset(
        self,
        partitions: Sequence[Any] | None = None,
        filesystem: Any = None,
        parquet_read_options: Any = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        file_pruning_predicate: Any = None,
        *,
        parameters: Parameters = None,
    ) -> DeltaDataset:
        """Return the rows as a `pyarrow.dataset.Dataset`, for DuckDB, Polars and pyarrow.

        Args:
            parquet_read_options: pyarrow's `ParquetReadOptions`. Columns in `dictionary_columns`
                are returned dictionary-encoded. `coerce_int96_timestamp_unit` has no effect,
                because timestamps are always read exactly.
            schema: the Arrow types of the result, if they differ from the default types.
            as_large_types: whether to return large strings, binaries and lists.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://dataset", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://dataset")
            >>> import duckdb
            >>> numbers = table.to_pyarrow_dataset()
            >>> duckdb.sql("SELECT sum(n) FROM numbers").fetchall()
            [(12,)]
        """
        from deltalog.data.scan.dataset import DeltaDataset  # this import takes half a second

        arguments.warn_of_deprecated(partitions=partitions)
        with naming_the_attempt("make a dataset of", self.table_uri):
            schema = arguments.as_arrow_schema(schema, self.schema(), as_large_types=as_large_types)
            schema = arguments.with_dictionaries(schema, self.schema(), parquet_read_options)
            predicate = self._pruning(partitions, file_pruning_predicate, parameters=parameters)
        return DeltaDataset(self._read_from(filesystem), predicate=predicate, schema=schema)

    def to_pyarrow_table(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
        *,
        parameters: Parameters = None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Return the rows as an Arrow table; `filters` is a predicate.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://arrow", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://arrow")
            >>> table.to_pyarrow_table(columns=["n"], filters="id = 1").to_pylist()
            [{'n': 5}]
        """
        _check_partitions("to_pyarrow_table", partitions)
        arguments.warn_of_deprecated(partitions=partitions)
        found = self._filtered(partitions, columns, filters, filesystem, parameters)
        with shown(progress, "reading files") as tell:
            return found.to_table(on_progress=tell)

    def to_arrow(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
        *,
        parameters: Parameters = None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Return the rows as an Arrow table; another name of `to_pyarrow_table`."""
        _check_partitions("to_arrow", partitions)
        return self.to_pyarrow_table(
            partitions, columns, filesystem, filters, parameters=parameters, progress=progress
        )

    def to_pandas(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
        types_mapper: Callable[..., Any] | None = None,
        *,
        dtype_backend: DtypeBackend | None = None,
        parameters: Parameters = None,
        progress: Progress | None = None,
    ) -> pd.DataFrame:
        """Return the rows as a pandas dataframe.

        Args:
            types_mapper: see pyarrow's `Table.to_pandas`.
            dtype_backend: see `pandas.read_parquet`. `pyarrow` uses Arrow dtypes. `numpy_nullable`
                uses pandas' nullable dtypes, and Arrow dtypes for other types. None uses NumPy
                dtypes, in which integers with NULL become floating-point numbers.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://pandas", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://pandas")
            >>> table.to_pandas(columns=["id"], filters="n > 5")
               id
            0   2
        """
        from deltalog.data.scan.rows import require_library, to_frame

        require_library("pandas")
        _check_partitions("to_pandas", partitions)
        rows = self.to_pyarrow_table(
            partitions, columns, filesystem, filters, parameters=parameters, progress=progress
        )
        return to_frame(rows, dtype_backend, types_mapper=types_mapper)

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = ...,
        filters: Any = ...,
        *,
        lazy: Literal[False] = ...,
        parameters: Parameters = ...,
    ) -> pl.DataFrame: ...

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = ...,
        filters: Any = ...,
        *,
        lazy: Literal[True],
        parameters: Parameters = ...,
    ) -> pl.LazyFrame: ...

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filters: Any = None,
        *,
        lazy: bool = False,
        parameters: Parameters = None,
    ) -> pl.DataFrame | pl.LazyFrame:
        """Return the rows as a Polars dataframe.

        Args:
            lazy: whether to return a lazy frame, which reads only the columns, files and rows that
                its query needs, in batches. It always reads the version that this object shows now.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://polars", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://polars")
            >>> table.to_polars(filters="n > 5").to_dicts()
            [{'id': 2, 'n': 7}]
            >>> lazy = table.to_polars(lazy=True)
            >>> lazy.select("n").sum().collect().item()
            12
        """
        if not lazy:
            return self._filtered(None, columns, filters, parameters=parameters).to_polars()
        from deltalog.data.scan.polars_files import lazy_frame

        chosen = arguments.as_columns(columns)
        with naming_the_attempt("read", self.table_uri):
            condition = arguments.as_condition(
                self.schema(), filters, session=self._session, parameters=parameters
            )
            return lazy_frame(self._snapshot, columns=chosen, predicate=condition)

    def to_duckdb(
        self,
        connection: Any = None,
        columns: Sequence[str] | None = None,
        filters: Any = None,
        *,
        parameters: Parameters = None,
    ) -> Any:
        """Return a DuckDB relation, which reads only the columns and files that a query needs.

        DuckDB reads the Parquet files of a local table itself if it reads them exactly and may open
        them. For this it registers small tables, named `deltalog_rows_…`, on the connection if rows
        are deleted or partition values differ.

        Args:
            connection: a connection of DuckDB; None makes a new in-memory connection.
            columns: see `scan`.
            filters: a predicate. deltalog reads the files, because DuckDB's dialect differs.

        Raises:
            InvalidInputError: DuckDB is not installed, the connection is closed, or a column does
                not exist.

        Cost: reads the log's file columns, and the footers of files that were not read before. A
            field of a struct or a metadata column in `columns`: reads all requested rows.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://duckdb", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://duckdb")
            >>> table.to_duckdb().filter("n > 5").fetchall()
            [(2, 7)]
        """
        from deltalog.data.scan.rows import (
            duckdb_connection,
            duckdb_relation,
            duckdb_selection,
            naming_pending_results,
        )
        from deltalog.query.duckdb_files import can_open_files, native_rows

        connection = duckdb_connection(connection)
        if columns is not None or filters is not None or parameters:
            chosen = self._filtered(None, columns, filters, parameters=parameters)
            dataset = self.to_pyarrow_dataset(file_pruning_predicate=filters, parameters=parameters)
            return duckdb_selection(chosen, dataset, connection)
        rows = native_rows(self.scan()) if can_open_files(connection) else None
        if rows is not None:
            with naming_pending_results():
                return rows.to_relation(connection)
        return duckdb_relation(self.to_pyarrow_dataset(), connection)

    def sql(self, query: str, parameters: Mapping[str, object] | None = None) -> SqlResult:
        """Return the result of an SQL query, in which `this` is the version that this object shows.

        The rows can be read once: by `to_pandas()`, `to_arrow()` or others, or batch by batch, as
        from a `pyarrow.RecordBatchReader`.

        Args:
            query: a query in Spark's dialect, such as `SELECT count(*) FROM this`, or
                `SELECT * FROM this VERSION AS OF 3`. `deltalog.sql` supports several tables.
            parameters: values for `:name`.

        Raises:
            InvalidInputError: DuckDB is not installed, or rejects the query.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://query", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://query")
            >>> table.sql("SELECT sum(n) AS n FROM this WHERE id < :id", {"id": 9}).to_pylist()
            [{'n': 12}]
        """
        from deltalog.query.results import SqlResult
        from deltalog.query.tables import query_table  # sqlglot is slow to import

        return SqlResult(query_table(self, query, arguments.as_named(parameters)), query)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as an Arrow C stream, for any library that supports Arrow."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def load_cdf(  # noqa: PLR0917  # deltalake's signature
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | date | None = None,
        ending_timestamp: str | datetime | date | None = None,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        allow_out_of_range: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
    ) -> Changes:
        """Return the changed rows of a range of versions: the change data feed.

        Columns and predicate may also name `_change_type`, `_commit_version` and
        `_commit_timestamp`.

        Args:
            starting_version: the first version; 0 if no start is given.
            ending_version: the last version, inclusive. The default, and the maximum, is the latest
                version.
            starting_timestamp: instead of `starting_version`: start with the first version at or
                after this time.
            ending_timestamp: instead of `ending_version`: end with the last version at or before
                this time.
            allow_out_of_range: whether a range after the latest version returns no rows instead of
                raising.

        Raises:
            VersionNotFoundError: versions of the range are not in the log.
            ChangeDataFeedNotEnabledError: the feed was disabled in a version of the range.
            IncompatibleChangesError: the schema changed incompatibly within the range.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> feed = {"delta.enableChangeDataFeed": "true"}
            >>> write_deltalake("memory://cdf", [{"id": 1}, {"id": 2}], configuration=feed)
            >>> table = DeltaTable("memory://cdf")
            >>> _ = table.delete("id = 1")
            >>> table.load_cdf(1, columns=["id", "_change_type"]).read_all().to_pylist()
            [{'id': 1, '_change_type': 'delete'}]
        """
        bound = arguments.as_one_bound
        first = bound(starting_version=starting_version, starting_timestamp=starting_timestamp)
        last = bound(ending_version=ending_version, ending_timestamp=ending_timestamp)
        start, end = arguments.as_range(first, last, newest=self.version())
        from deltalog.data.scan.changes import open_changes

        with naming_the_attempt("read the changes of", self.table_uri):
            return open_changes(
                self._snapshot,
                start=start,
                end=end,
                columns=arguments.as_columns(columns),
                predicate=arguments.as_changes_condition(
                    self.schema(), predicate, session=self._session
                ),
                allow_out_of_range=allow_out_of_range,
            )

    def _read_from(self, filesystem: Any) -> Snapshot:
        if filesystem is None:
            return self._snapshot
        return self._snapshot.with_data_of(locations.at_root_of(filesystem))

    def _filtered(
        self,
        partitions: Sequence[Any] | None,
        columns: Sequence[str] | None,
        filters: Any,
        filesystem: Any = None,
        parameters: Parameters = None,
    ) -> Scan:
        known, session = self._snapshot.configuration.partition_columns, self._session
        blank = arguments.with_blanks_as_nulls(partitions, known)
        chosen = arguments.as_columns(columns)
        from deltalog.data.scan.plan import plan_scan

        with naming_the_attempt("read", self.table_uri):
            # Only `filters` may be SQL.
            predicate = arguments.as_condition(
                self.schema(), blank, filters, session=session, parameters=parameters
            )
            shown = self._read_from(filesystem)
            return plan_scan(shown, columns=chosen, predicate=predicate, is_resolved=True)

    def _pruning(self, *given: Any, parameters: Parameters = None) -> Expression | None:
        known = self._snapshot.configuration.partition_columns
        found = [arguments.with_blanks_as_nulls(condition, known) for condition in given]
        return arguments.as_condition(
            self.schema(), *found, session=self._session, parameters=parameters
        )

    def file_uris(
        self,
        partition_filters: Sequence[Any] | None = None,
        *,
        file_pruning_predicate: Any = None,
        parameters: Parameters = None,
    ) -> list[str]:
        """Return the locations of the data files that may contain a matching row.

        The order has no meaning; for one version, it is that of `get_add_actions`.

        Cost: reads from the log the paths, and the statistics of the columns in the predicate.
        """
        arguments.warn_of_deprecated(partition_filters=partition_filters)
        with naming_the_attempt("list the files of", self.table_uri):
            predicate = self._pruning(
                partition_filters, file_pruning_predicate, parameters=parameters
            )
        from deltalog.data.scan import file_reports

        found = file_reports.file_uris(self._snapshot, predicate)
        return ShownList(found, title=counted(len(found), FILE))

    def partitions(
        self,
        partition_filters: Sequence[Any] | None = None,
        *,
        file_pruning_predicate: Any = None,
        parameters: Parameters = None,
    ) -> list[dict[str, str | None]]:
        """Return the partitions that may contain a matching row, with values as in the log.

        They are sorted by the values of their columns, as numbers or dates if the columns have such
        types; NULL is first.
        """
        arguments.warn_of_deprecated(partition_filters=partition_filters)
        with naming_the_attempt("list the partitions of", self.table_uri):
            predicate = self._pruning(
                partition_filters, file_pruning_predicate, parameters=parameters
            )
        from deltalog.data.scan import file_reports

        found = file_reports.partitions(self._snapshot, predicate)
        names = self._snapshot.configuration.partition_columns
        title = counted(len(found), "partition")
        return ShownList(found, title=title, names=names, row_of=lambda one: list(one.values()))

    def get_add_actions(self, flatten: bool = False) -> pa.Table:  # noqa: FBT001, FBT002  # deltalake's signature
        """Return one row per data file: path, size, time, partition values, statistics.

        Args:
            flatten: whether to return a column for each statistic instead of structs.

        Cost: reads all statistics of all files from the log.
        """
        from deltalog.data.scan import file_reports

        return with_card(file_reports.add_actions(self._snapshot, flatten=flatten))

    def deletion_vectors(self) -> pa.RecordBatchReader:
        """Return the deletion vectors of all files that have deleted rows.

        Columns: `filepath`; `selection_vector`: for each physical row, false if it is deleted.

        Cost: one request for each deletion vector.
        """
        from deltalog.data.scan import file_reports

        return file_reports.selection_vectors(self._snapshot)

    def diff(
        self,
        before: Version,
        after: Version | None = None,
        *,
        key: str | Sequence[str] = (),
        columns: Sequence[str] | None = None,
    ) -> TableDiff:
        """Compare two versions: rows, schema, settings. No change feed is needed.

        Args:
            before: the first version.
            after: the second version; None means the version that this object shows.
            key: columns that identify a row. Without a key, row ids identify a row if both versions
                have row ids; otherwise a changed row appears as a removed and an added row.

        Returns:
            A `TableDiff`: rows with `_change_type`, and tables of schema and setting changes.

        Raises:
            VersionNotFoundError: a version does not exist.
            InvalidInputError: a column does not exist.

        Cost: reads all files except those that are in both versions with the same deletion vector.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://diff", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://diff")
            >>> _ = table.update({"n": "8"}, predicate="id = 2")
            >>> table.diff(0, key="id").summary()
            {'added': 0, 'removed': 0, 'changed': 1}
        """
        from deltalog.table.inspect.diff import diff_snapshots

        first = self._load(self._snapshot.context, before)
        last = self._snapshot if after is None else self._load(self._snapshot.context, after)
        versions = f"versions {first.version} and {last.version}"
        with naming_the_attempt(f"compare {versions} of", self.table_uri):
            return diff_snapshots(
                first,
                last,
                key=arguments.as_columns([key] if isinstance(key, str) else key) or (),
                columns=arguments.as_columns(columns),
            )

    def doctor(
        self,
        *,
        checks: Sequence[str] | str | None = None,
        samples: int = 8,
        progress: Progress | None = None,
    ) -> Report:
        """Check the table, and report problems with their severity and a remedy.

        The checks compare the log with the protocol, features with properties, checkpoints and
        checksums with the log, and statistics with samples of the data. They also find damaged
        deletion vectors, missing files and unknown files, and report which engines can read and
        write the table.

        Args:
            checks: names of the checks to run; None means all.
            samples: the number of data files and deletion vectors to read.

        Returns:
            A `Report`: `findings`, `is_healthy`, `to_table()`.

        Cost: two listings, the newest commits, the newest checkpoints, and the samples.
        """
        from deltalog.table.inspect.doctor import examine

        arguments.check_number("samples", samples)
        names = [checks] if isinstance(checks, str) else checks
        with shown(progress, "examining") as tell:
            return examine(
                self._snapshot.context,
                snapshot=self._snapshot,
                checks=names,
                num_samples=samples,
                progress=tell,
            )

    def follow(  # noqa: PLR0913  # callers need each parameter
        self,
        start: Offset | Mapping[str, Any] | Version | None = None,
        *,
        changes: bool = False,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        max_files_per_step: int = 1000,
        max_bytes_per_step: int | None = None,
        ignore_deletes: bool = False,
        ignore_changes: bool = False,
        skip_change_commits: bool = False,
        on_schema_change: Literal["raise", "evolve"] = "raise",
        poll_seconds: float = 1.0,
        clock: Clock | None = None,
    ) -> Follower:
        """Stream the rows of the table in steps, then the rows of new commits, each exactly once.

        `for step in table.follow()` and `async for` wait for new commits; `available()` ends when
        there are no more commits. A step returns its rows like a `Scan`. After processing the rows,
        store `step.offset.to_json()`, and pass it as `start` to continue after this step.

        Args:
            start: a stored offset, or the first version whose changes to return. `latest` starts
                with the next commit. None first returns all existing rows.
            changes: whether to return the change data feed, with `_change_type` and other columns,
                instead of new rows.
            columns: see `scan`.
            predicate: see `scan`.
            max_files_per_step: maximum number of files in a step.
            max_bytes_per_step: maximum size of the files in a step, in bytes; a step contains at
                least one file.
            ignore_deletes: whether to skip commits that only delete rows.
            ignore_changes: whether to return all rows of rewritten files, including unchanged rows.
            skip_change_commits: whether to skip commits that delete or update rows.
            on_schema_change: `raise` raises before the first row with another schema; a new
                follower can continue from the offset. `evolve` continues with the new schema.
            poll_seconds: seconds between two polls if there are no new commits.
            clock: the clock that waits between two polls.

        Raises:
            InvalidInputError: the offset belongs to another table, or a column does not exist.
            VersionNotFoundError: the version does not exist.

        Cost: one listing for each poll, one request for each commit, and reading the files whose
        rows are requested.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://follow", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://follow")
            >>> for step in table.follow().available():
            ...     print(step.to_table().num_rows, "rows")
            ...     offset = step.offset.to_json()
            2 rows
            >>> write_deltalake("memory://follow", [{"id": 3, "n": 9}], mode="append")
            >>> [step.to_table().num_rows for step in table.follow(offset).available()]
            [1]
        """
        from deltalog.table.inspect.follow import Follower, FollowOptions, as_start

        self.update_incremental()
        options = FollowOptions(
            changes=changes,
            columns=arguments.as_columns(columns),
            predicate=arguments.for_each_version(predicate, changes=changes),
            max_files=max_files_per_step,
            max_bytes=max_bytes_per_step,
            ignore_deletes=ignore_deletes,
            ignore_changes=ignore_changes,
            skip_change_commits=skip_change_commits,
            on_schema_change=on_schema_change,
            poll_seconds=poll_seconds,
        )
        return Follower(self._snapshot, start=as_start(start), options=options, clock=clock)


def _check_partitions(method: str, partitions: Sequence[Any] | None) -> None:
    """Raise for names of columns as the first argument, which deltalake uses for filters."""
    is_name = isinstance(partitions, str) and partitions.isidentifier()
    are_names = isinstance(partitions, list) and any(isinstance(one, str) for one in partitions)
    if is_name or are_names:
        expected = "filters, such as [('day', '=', '2024-01-31')]; columns=[…] selects columns"
        raise wrong_argument(method, "partitions", partitions, expected)
