"""`DeltaTable`: the public facade of one table.

Each method runs an operation, or calls a function of another package with the current snapshot.
Methods with the same semantics as in deltalake have the same names.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeVar, cast, overload

from deltalog._util.cards import Progress, shown
from deltalog.catalogs import table_uri as locations
from deltalog.errors import InvalidInputError
from deltalog.expressions.sql_session import SqlSession
from deltalog.log.branches import named_root
from deltalog.log.context import LogTail, TableContext
from deltalog.log.listing import has_table
from deltalog.log.snapshot import Snapshot, checked_in_place, load_if_any, load_snapshot
from deltalog.operations import arguments
from deltalog.table.inspect.display import as_facts, card, describe, with_card

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta
    from pathlib import PurePath

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from deltalog._util.clock import Clock
    from deltalog.catalogs.protocol import NamedTable
    from deltalog.data.scan.changes import Changes
    from deltalog.data.scan.dataset import DeltaDataset
    from deltalog.data.scan.plan import Scan
    from deltalog.data.scan.rows import DtypeBackend
    from deltalog.data.write.options import WriterProperties, WriteSpec
    from deltalog.data.write.source import Rows
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions import Expression
    from deltalog.iceberg import IcebergVersion
    from deltalog.log.branches import Branch
    from deltalog.operations.engine import Engine
    from deltalog.operations.operation import Operation, Outcome, OutcomeT_co
    from deltalog.operations.vacuum import VacuumPlan
    from deltalog.protocol.actions.model import Metadata, Protocol
    from deltalog.protocol.actions.properties import TableProperties
    from deltalog.schema import Field, Schema
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.table.alter import TableAlterer
    from deltalog.table.appender import Appender
    from deltalog.table.branches import PublishOutcome
    from deltalog.table.inspect.description import CommitHistory, TableDescription
    from deltalog.table.inspect.diff import TableDiff
    from deltalog.table.inspect.doctor import Report
    from deltalog.table.inspect.follow import Follower, Offset
    from deltalog.table.inspect.plot import TablePlots
    from deltalog.table.merge import TableMerger
    from deltalog.table.optimize import TableOptimizer
    from deltalog.table.transaction import TableTransaction
    from deltalog.transaction import (
        AddAction,
        CommitOptions,
        CommitProperties,
        PendingTransaction,
        PostCommitHookProperties,
        RemoveAction,
    )
    from deltalog.transaction.commit import Committed, Ran

    T = TypeVar("T")
    ResultT = TypeVar("ResultT")
    Version = int | str | datetime
    Parameters = Sequence[object] | Mapping[str, object] | None


class DeltaTable:
    """A Delta table: reads and changes its rows, metadata and history.

    The object shows one version of the table. Reads use this version until `update_incremental` or
    `load_as_version` loads another version. After an operation that changes the table, the object
    shows the committed version. Use `write_deltalake` or `transaction()` to append or overwrite
    rows. The object can be shared by threads, pickled, and used after a fork.

    These arguments occur in many methods and are explained only here:

    - `Version`: a version number, a timestamp string (ISO 8601; UTC by default) or a datetime.
    - `predicate`: a Spark SQL string, an expression (`col("id") > 1`), deltalake's filter tuples or
      a pyarrow expression. None means all rows.
    - `parameters`: values for `?` or `:name` in SQL.
    - `file_pruning_predicate`: a predicate that selects files. In filter tuples such as
      `[("year", "=", 2024)]`, the value `''` means a null partition value; a list of lists is an OR
      of ANDs. `partitions` and `partition_filters` are deprecated names of this argument.
    - `columns`: column names in the order of the result; None means all columns.
    - `filesystem` of methods that read: a file system for data files, whose root is the table. The
      `filesystem` of the constructor is also used for the log.
    - `commit_properties`: metadata, application transactions and retries of the commit.
    - `post_commithook_properties`: options of the maintenance after the commit.
    - `writer_properties`: Parquet options of new files.
    - `use_deletion_vectors`: whether to mark rows as deleted instead of rewriting files. With None,
      files are rewritten unless `delta.enableDeletionVectors` is set; if it is set, the share of
      deleted rows decides for each file (`deltalog.maxDeletedRowsRatio`).
    - `dry_run`: whether to change nothing. The result then also contains `files`: an Arrow table of
      the files that would change, with the kind of change and its reason.
    - `progress`: True shows a progress bar. A function is called with the number of finished parts
      and the total number of parts. If it raises, the operation stops and deletes its new files.

    Args:
        table_uri: path or URL (`file:///a%20b` is `/a b`). `table@v3` and
            `table@20240131120000000` select a version or a timestamp, unless a directory has
            exactly this name. `uc://catalog.schema.table` is a table of the Unity Catalog that the
            environment configures. A `Store`, or a `NamedTable` of any catalog, is also accepted.
        version: the version to load; None means the latest.
        storage_options: options with the names of the cloud SDKs, of deltalake or of fsspec; or a
            function that returns new options when credentials expire.
        without_files: deprecated and ignored: file columns are read on demand.
        log_buffer_size: deprecated and ignored.
        skip_stats: deprecated and ignored.
        filesystem: an fsspec or pyarrow file system to use instead of `storage_options`.
        log_tail: the newest commits, for a table whose commits a catalog manages.
        default_timezone: the time zone of values without a zone: of timestamps in partition values,
            and of `timestamp_ntz` in a comparison with `timestamp`.
        engine: runs the work on rows and files, such as `deltalog.ray.RayEngine()` or
            `deltalog.dask.DaskEngine()`. None means threads of this process.

    Raises:
        TableNotFoundError: there is no Delta table at the location.
        VersionNotFoundError: the version does not exist, or was cleaned up.
        MalformedLogError: the log violates the protocol; subclasses name the kind of fault.

    Cost: reads `_last_checkpoint`, lists the log once, and reads the commits after the checkpoint
    and a few columns of the checkpoint.
    """

    def __init__(
        self,
        table_uri: str | PurePath | Store | NamedTable,
        version: Version | None = None,
        storage_options: StorageOptions | None = None,
        without_files: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        log_buffer_size: int | None = None,
        skip_stats: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        filesystem: Any = None,
        log_tail: LogTail | None = None,
        default_timezone: str = "UTC",
        engine: Engine | None = None,
    ) -> None:
        arguments.warn_of_deprecated(
            without_files=without_files, log_buffer_size=log_buffer_size, skip_stats=skip_stats
        )
        context, at = locations.open_table_context(
            table_uri, storage_options, filesystem, time_zone=default_timezone
        )
        version = locations.one_version(context.store.root, version, at)
        context = context if log_tail is None else context.with_log_tail(log_tail)
        self._open(context, engine, version)

    def _open(self, context: TableContext, engine: Engine | None, version: Version | None) -> None:
        self._hold(self._load(context, version), engine, is_latest=version is None)

    def _hold(self, snapshot: Snapshot, engine: Engine | None, *, is_latest: bool) -> None:
        self._engine = engine
        self._travelled = not is_latest
        self._snapshot = snapshot

    @classmethod
    def if_any(cls, context: TableContext) -> Self | None:
        """Open the latest version of the table of a context; return None if there is no table."""
        with locations.naming(context.store.root):
            snapshot = load_if_any(context)
        if snapshot is None:
            return None
        table = cls.__new__(cls)
        cls._hold(table, snapshot, None, is_latest=True)
        return table

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

    @staticmethod
    def is_deltatable(
        table_uri: str | PurePath | NamedTable, storage_options: StorageOptions | None = None
    ) -> bool:
        """Return whether there is a Delta table at a location, even if deltalog cannot read it.

        Cost: one listing, which stops at the first commit.
        """
        if (named := locations.named_table(table_uri, storage_options)) is not None:
            return named.is_delta_table()
        context, _ = locations.open_table_context(table_uri, storage_options, None, time_zone="UTC")
        return has_table(context.store)

    @classmethod
    def create(  # noqa: PLR0913, PLR0917  # deltalake's parameters, and more
        cls,
        table_uri: str | PurePath | Store | NamedTable,
        schema: Schema | Sequence[Field] | Any,
        mode: Literal["error", "append", "overwrite", "ignore"] = "error",
        partition_by: Sequence[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | None] | None = None,
        storage_options: StorageOptions | None = None,
        *,
        cluster_by: Sequence[str | tuple[str, ...]] | None = None,
        features: Sequence[str] = (),
        constraints: Mapping[str, str] | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        raise_if_key_not_exists: bool = True,
        filesystem: Any = None,
    ) -> Self:
        """Create an empty table.

        Args:
            table_uri: location of the new table.
            schema: a `Schema`, a list of fields, or an Arrow schema of any library. Field metadata
                declares comments, defaults, generated columns and identity columns.
            mode: what to do if the table already exists: `error` raises, `ignore` opens the table,
                and `overwrite` replaces its schema, properties and rows.
            partition_by: partition columns.
            name: name of the table.
            description: description of the table.
            configuration: table properties; the value None removes a default of `table_defaults`.
            cluster_by: clustering columns; not together with partition columns.
            features: additional table features to enable in the protocol.
            constraints: CHECK constraints (name → Spark SQL). Column names may be in double quotes.
            raise_if_key_not_exists: whether to raise for an unknown `delta.` property.

        Raises:
            TableExistsError: the table already exists, and the mode is `error`.
            InvalidInputError: schema, columns and properties contradict each other.
        """
        from deltalog.operations.create import as_schema
        from deltalog.table.creating import TableDefinition, TablePlace, create_table

        if constraints:
            constraints = arguments.as_constraints(constraints, as_schema(schema).names)
        place = TablePlace.of(table_uri, storage_options, filesystem)
        definition = TableDefinition(
            schema=schema,
            partition_by=[partition_by] if isinstance(partition_by, str) else partition_by or (),
            cluster_by=cluster_by,
            constraints=constraints,
            configuration=configuration,
            name=name,
            description=description,
            features=features,
            arbitrary_properties=not raise_if_key_not_exists,
        )
        options = _options(commit_properties, post_commithook_properties)
        context = create_table(place, definition, mode=mode, options=options)
        return cls.from_context(context)

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
        """
        if version is None:
            raise InvalidInputError(
                "cannot load version None: expected a number, an ISO 8601 string or a datetime; "
                "update_incremental() loads the latest version"
            )
        self._snapshot = self._load(self._snapshot.context, version)
        self._travelled = True

    def update_incremental(self, *, same_table: bool = False) -> None:
        """Load the latest version; with `same_table`, raise if the table was replaced by another.

        Cost: one listing, and reading the new commits.
        """
        with locations.naming(self.table_uri):
            self._snapshot = self._snapshot.refresh(same_table=same_table)
        self._travelled = False

    def _load(self, context: TableContext, version: Version | None) -> Snapshot:
        with locations.naming(context.store.root):
            if version is None or arguments.is_number(version):
                return load_snapshot(context, version=None if version is None else index(version))
            return load_snapshot(context, timestamp_ms=arguments.as_timestamp_ms(version))

    @property
    def _session(self) -> SqlSession:
        return self._snapshot.context.session

    def _check_latest(self, operation: str) -> None:
        if self._travelled:
            raise InvalidInputError(
                f"cannot {operation} at version {self.version()} of {self.table_uri}: the table "
                "was opened at this version; update_incremental() loads the latest version"
            )

    def schema(self) -> Schema:
        """Return the schema of the table."""
        return self._snapshot.configuration.schema

    def metadata(self) -> Metadata:
        """Return name, description, partitioning and properties, as stored in the log."""
        return self._snapshot.metadata

    def protocol(self) -> Protocol:
        """Return the protocol: the versions and features that readers and writers must support."""
        return self._snapshot.protocol

    @property
    def properties(self) -> TableProperties:
        """The table properties, as typed values."""
        return self._snapshot.configuration.properties

    def domain_metadata(self) -> dict[str, str]:
        """Return domain name → configuration of all metadata domains.

        A configuration that is a JSON object, as in the protocol's draft, is returned as a string.
        """
        domains = self._snapshot.domain_metadata
        return {name: domain.text for name, domain in domains.items()}

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last version that an application has recorded, or None."""
        found = self._snapshot.app_transactions.get(app_id)
        return None if found is None else found.version

    def history(self, limit: int | None = None) -> CommitHistory:
        """Return the commits, newest first, as a list of dictionaries.

        Each dictionary contains the version, the timestamp in milliseconds, and the members of
        `commitInfo`. The method `to_pandas()` of the list returns timestamps as datetimes.

        Cost: one request for each commit, several at a time.
        """
        from deltalog.table.inspect.description import CommitHistory

        return CommitHistory(self._snapshot.history(arguments.as_limit(limit)))

    def detail(self) -> dict[str, Any]:
        """Return a summary of the table: Spark's `DESCRIBE DETAIL`.

        Cost: reads the sizes of all files from the log.
        """
        return describe(self._snapshot)

    @property
    def plot(self) -> TablePlots:
        """Plots of the version that this object shows: `commits()`, `file_sizes()` and others.

        Plots need matplotlib (extra `plot`).
        """
        from deltalog.table.inspect.plot import TablePlots

        return TablePlots(self._snapshot)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        *,
        parameters: Parameters = None,
        limit: int | None = None,
        order_by: Any = None,
    ) -> Scan:
        """Plan a read of rows. The `Scan` streams, counts or explains it, or splits it into tasks.

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
        """
        condition = arguments.as_condition(
            self.schema(), predicate, session=self._session, parameters=parameters
        )
        chosen, most = arguments.as_columns(columns), arguments.as_limit(limit)
        from deltalog.data.scan.plan import plan_scan

        return plan_scan(
            self._snapshot,
            columns=chosen,
            predicate=condition,
            limit=most,
            order_by=order_by,
            is_resolved=True,
        )

    def count(self) -> int:
        """Return the number of rows, without deleted rows.

        Cost: reads `numRecords` of every file from the log; reads data only of files without it.
        """
        return self.scan().count()

    def head(
        self, num_rows: int = 5, columns: Sequence[str] | None = None, predicate: Any = None
    ) -> pa.Table:
        """Return a few arbitrary rows, as a preview.

        Args:
            num_rows: maximum number of rows.

        Cost: reads one file after the other until there are enough rows.
        """
        return with_card(self.scan(columns, predicate, limit=num_rows).to_table())

    def describe(self) -> TableDescription:
        """Return the number of rows, and for each column the nulls, minimum and maximum.

        The values are computed from the statistics in the log. A value that cannot be computed
        exactly is in `missing`, with the reason.

        Returns:
            A `TableDescription`: `num_rows`, `columns`, `to_table()`, `to_pandas()`; a notebook
            shows it as a card.

        Cost: reads all statistics of all files from the log, but no data.
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
    ) -> DeltaDataset:
        """Return the rows as a `pyarrow.dataset.Dataset`, for DuckDB, Polars and pyarrow.

        Args:
            parquet_read_options: pyarrow's `ParquetReadOptions`. Columns in `dictionary_columns`
                are returned dictionary-encoded. `coerce_int96_timestamp_unit` has no effect,
                because timestamps are always read exactly.
            schema: the Arrow types of the result, if they differ from the default types.
            as_large_types: whether to return large strings, binaries and lists.
        """
        from deltalog.data.scan.dataset import DeltaDataset  # this import takes half a second

        arguments.warn_of_deprecated(partitions=partitions)
        schema = arguments.as_arrow_schema(schema, self.schema(), as_large_types=as_large_types)
        schema = arguments.with_dictionaries(schema, self.schema(), parquet_read_options)
        predicate = self._pruning(partitions, file_pruning_predicate)
        return DeltaDataset(self._read_from(filesystem), predicate=predicate, schema=schema)

    def to_pyarrow_table(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
    ) -> pa.Table:
        """Return the rows as an Arrow table; `filters` is a predicate."""
        arguments.warn_of_deprecated(partitions=partitions)
        return self._filtered(partitions, columns, filters, filesystem).to_table()

    def to_pandas(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
        types_mapper: Any = None,
        *,
        dtype_backend: DtypeBackend | None = None,
    ) -> pd.DataFrame:
        """Return the rows as a pandas data frame.

        Args:
            types_mapper: see pyarrow's `Table.to_pandas`.
            dtype_backend: see `pandas.read_parquet`. `pyarrow` uses Arrow dtypes. `numpy_nullable`
                uses pandas' nullable dtypes, and Arrow dtypes for other types. None uses NumPy
                dtypes, in which integers with NULL become floating-point numbers.
        """
        arguments.warn_of_deprecated(partitions=partitions)
        found = self._filtered(partitions, columns, filters, filesystem)
        return found.to_pandas(dtype_backend, types_mapper=types_mapper)

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = ...,
        filters: Any = ...,
        *,
        lazy: Literal[False] = ...,
    ) -> pl.DataFrame: ...

    @overload
    def to_polars(
        self, columns: Sequence[str] | None = ..., filters: Any = ..., *, lazy: Literal[True]
    ) -> pl.LazyFrame: ...

    def to_polars(
        self, columns: Sequence[str] | None = None, filters: Any = None, *, lazy: bool = False
    ) -> pl.DataFrame | pl.LazyFrame:
        """Return the rows as a Polars data frame.

        Args:
            lazy: whether to return a lazy frame, which reads only the columns, files and rows that
                its query needs, in batches. It always reads the version that this object shows now.
        """
        if not lazy:
            return self._filtered(None, columns, filters).to_polars()
        from deltalog.data.scan.polars import lazy_frame

        condition = arguments.as_condition(self.schema(), filters, session=self._session)
        return lazy_frame(
            self._snapshot, columns=arguments.as_columns(columns), predicate=condition
        )

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return a DuckDB relation, which reads only the columns and files that a query needs.

        DuckDB reads the Parquet files of a local table itself if it reads them exactly and may open
        them. For this it registers small tables, named `deltalog_rows_…`, on the connection if rows
        are deleted or partition values differ.

        Args:
            connection: a connection of DuckDB; None makes a new in-memory connection.

        Raises:
            InvalidInputError: DuckDB is not installed.

        Cost: reads the log's file columns, and the footers of files that were not read before.
        """
        from deltalog.data.scan.rows import duckdb_relation, require_library
        from deltalog.query.duckdb_files import can_open_files, native_rows

        connection = require_library("duckdb").connect() if connection is None else connection
        rows = native_rows(self.scan()) if can_open_files(connection) else None
        if rows is not None:
            return rows.to_relation(connection)
        return duckdb_relation(self.to_pyarrow_dataset(), connection)

    def sql(
        self, query: str, parameters: Mapping[str, object] | None = None
    ) -> pa.RecordBatchReader:
        """Return the result of an SQL query, in which `this` is the version that this object shows.

        Args:
            query: a query in Spark's dialect, such as `SELECT count(*) FROM this`, or
                `SELECT * FROM this VERSION AS OF 3`. `deltalog.sql` supports several tables.
            parameters: values for `:name`.

        Raises:
            InvalidInputError: DuckDB is not installed, or rejects the query.
        """
        from deltalog.query.tables import query_table  # sqlglot is slow to import

        return query_table(self, query, parameters or {})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as an Arrow C stream, for any library that supports Arrow."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def load_cdf(  # noqa: PLR0917  # deltalake's signature
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | None = None,
        ending_timestamp: str | datetime | None = None,
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
        """
        bound = arguments.as_one_bound
        first = bound(starting_version=starting_version, starting_timestamp=starting_timestamp)
        last = bound(ending_version=ending_version, ending_timestamp=ending_timestamp)
        start, end = arguments.as_range(first, last, newest=self.version())
        from deltalog.data.scan.changes import open_changes

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
    ) -> Scan:
        known, session = self._snapshot.configuration.partition_columns, self._session
        blank = arguments.with_blanks_as_nulls(partitions, known)
        predicate = arguments.as_condition(self.schema(), blank, filters, session=session)
        shown = self._read_from(filesystem)
        chosen = arguments.as_columns(columns)
        from deltalog.data.scan.plan import plan_scan

        return plan_scan(shown, columns=chosen, predicate=predicate, is_resolved=True)

    def _pruning(self, *given: Any) -> Expression | None:
        known = self._snapshot.configuration.partition_columns
        found = [arguments.with_blanks_as_nulls(condition, known) for condition in given]
        return arguments.as_condition(self.schema(), *found, session=self._session)

    def file_uris(
        self, partition_filters: Sequence[Any] | None = None, *, file_pruning_predicate: Any = None
    ) -> list[str]:
        """Return the locations of the data files that may contain a matching row.

        Cost: reads from the log the paths, and the statistics of the columns in the predicate.
        """
        arguments.warn_of_deprecated(partition_filters=partition_filters)
        predicate = self._pruning(partition_filters, file_pruning_predicate)
        from deltalog.data.scan import file_reports

        return file_reports.file_uris(self._snapshot, predicate)

    def partitions(
        self, partition_filters: Sequence[Any] | None = None, *, file_pruning_predicate: Any = None
    ) -> list[dict[str, str | None]]:
        """Return the partitions that may contain a matching row, with values as in the log."""
        arguments.warn_of_deprecated(partition_filters=partition_filters)
        predicate = self._pruning(partition_filters, file_pruning_predicate)
        from deltalog.data.scan import file_reports

        return file_reports.partitions(self._snapshot, predicate)

    def get_add_actions(self, flatten: bool = False) -> pa.Table:  # noqa: FBT001, FBT002  # deltalake's signature
        """Return one row per data file: path, size, time, partition values, statistics.

        Args:
            flatten: whether to return a column for each statistic instead of structs.

        Cost: reads all statistics of all files from the log.
        """
        from deltalog.data.scan import file_reports

        return file_reports.add_actions(self._snapshot, flatten=flatten)

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
        """
        from deltalog.table.inspect.diff import diff_snapshots

        return diff_snapshots(
            self._load(self._snapshot.context, before),
            self._snapshot if after is None else self._load(self._snapshot.context, after),
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

    def do(
        self,
        operation: Operation[Outcome[ResultT]],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
        *,
        dry_run: bool = False,
        on_conflict: Literal["retry", "raise"] = "retry",
    ) -> ResultT:
        """Run an operation of `deltalog.operations`, and load the committed version.

        Args:
            operation: the operation.
            on_conflict: `retry` stages the operation again after a conflict; `raise` raises.

        Returns:
            The operation's result; an empty dictionary if the application transaction of the commit
            is already recorded.

        Raises:
            InvalidInputError: this object was opened at an old version.
        """
        options = _options(commit_properties, post_commithook_properties, on_conflict)
        if dry_run:
            from deltalog.operations.execute import preview

            # A dry run uses the latest version, unless the table was opened at an old version.
            is_old = self._travelled or not operation.needs_latest
            seen = self._snapshot if is_old else self._snapshot.refresh(same_table=True)
            return as_facts(cast("ResultT", preview(operation, seen, self.engine)), operation.name)
        done = self.execute(operation, options, progress=progress)
        found = cast("ResultT", {}) if done.value is None else done.value.result()
        return as_facts(found, operation.name)

    def execute(
        self,
        operation: Operation[OutcomeT_co],
        options: CommitOptions | None = None,
        *,
        progress: Progress | None = None,
        engine: Engine | None = None,
        is_fresh: bool = False,
    ) -> Ran[OutcomeT_co]:
        """Run an operation, load the committed version, and return outcome and commit.

        See `execute_on` for the arguments.
        """
        from deltalog.operations.execute import execute_on

        self._check_latest(operation.name)
        options, engine = options or _options(), engine or self.engine
        done = execute_on(
            operation, self._snapshot, engine, options, is_fresh=is_fresh, progress=progress
        )
        self.show(done.committed)
        return done

    def run(
        self,
        operation: str,
        stage: Callable[[PendingTransaction], T],
        *,
        parameters: Mapping[str, Any] | None = None,
        refresh: bool = True,
        on_conflict: Literal["retry", "raise"] = "retry",
        commit_properties: CommitProperties | None = None,
        hooks: PostCommitHookProperties | None = None,
        skip_empty: bool = False,
    ) -> Ran[T]:
        """Stage an operation with a function of your own, commit it, and load its version.

        The interface of `PendingTransaction` is not stable.

        Args:
            operation: name of the operation in the history.
            stage: stages the operation. After a conflict, it is called again on the newest version.
            parameters: parameters of the operation in the history.
            refresh: whether to refresh the table first; not necessary for an append.
            on_conflict: see `do`.
            hooks: the `post_commithook_properties`.
            skip_empty: whether to skip the commit if nothing was staged.

        Raises:
            InvalidInputError: this object was opened at an old version.
        """
        from deltalog.operations.operation import CustomOperation
        from deltalog.transaction.commit import Ran

        custom = CustomOperation(
            name=operation,
            plan=stage,
            parameters=parameters,
            needs_latest=refresh,
            skips_empty=skip_empty,
        )
        options = _options(commit_properties, hooks, on_conflict)
        done = self.execute(custom, options)
        return Ran(value=None if done.value is None else done.value.value, committed=done.committed)

    def show(self, committed: Committed) -> None:
        """Make the version of a new commit the current version of this object."""
        self._snapshot = committed.snapshot
        self._travelled = False

    def transaction(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> TableTransaction:
        """Begin a transaction with one commit: `with table.transaction() as tx: tx.append(…)`.

        All operations see the table as it was at the beginning of the transaction.
        """
        from deltalog.table.transaction import TableTransaction

        self._check_latest("begin a transaction")
        options = _options(commit_properties, post_commithook_properties)
        return TableTransaction(self, options)

    def branch(
        self,
        name: str,
        *,
        version: int | None = None,
        exist_ok: bool = False,
        expires_after: timedelta | None = None,
    ) -> Self:
        """Create a branch, and return it as a table of its own; a preview feature.

        Commits to the branch are not visible in main until `publish()`. Operations, SQL, engines
        and time travel work on a branch; `DeltaTable("table@name")` opens it. Data files are in the
        table's directory, and nothing is copied. `vacuum` keeps the files of branches, but the
        vacuum of another engine deletes them after its retention period.

        Args:
            name: letters, digits, `_` and `-`.
            version: the version of main at which the branch starts; None means the latest.
            exist_ok: whether to open the branch if it exists.
            expires_after: after this time, vacuum deletes the branch; None means never.

        Raises:
            BranchExistsError: the branch exists.
            InvalidInputError: the name is not valid, or the table is a branch.

        Cost: writes a checkpoint of the version, which lists its files.
        """
        from deltalog.log.branches import find_branch, on_branch
        from deltalog.table.branches import create_branch

        found = find_branch(self._snapshot.store, name) if exist_ok else None
        branch = found or create_branch(self, name, version=version, expires_after=expires_after)
        return type(self).from_context(on_branch(self._snapshot.context, branch), self._engine)

    def branches(self) -> list[Branch]:
        """Return the branches of the table, in the order of their names.

        Cost: one listing, and one request for each branch.
        """
        from deltalog.log.branches import list_branches, on_main

        return list_branches(on_main(self._snapshot.context).store)

    def publish(
        self,
        checks: Sequence[str | Callable[[DeltaTable], object]] = (),
        *,
        commit_properties: CommitProperties | None = None,
    ) -> PublishOutcome:
        """Commit the net changes of this branch to main, as one version, and delete the branch.

        Files and rows that the branch has changed several times appear once. The conflict rules are
        those of any commit: rows that main has changed in the meantime must not be rows that the
        branch has changed or read. After a conflict, the branch remains.

        Args:
            checks: conditions in SQL that all rows of the branch must match (NULL does not match),
                and functions of the branch, which raise `AssertionError`, or return False or a
                string, if it must not be published.

        Raises:
            AuditFailedError: a check fails; the error has examples, and main is unchanged.
            CommitConflictError: a commit of main conflicts with the branch.
            DataFileMissingError: files of the branch no longer exist.
            InvalidInputError: this table is no branch.

        Cost: reads the file lists of both versions and the commits of both since the branch began;
        one request for each new file.
        """
        from deltalog.table.branches import publish

        return publish(self, checks, commit_properties)

    def discard(self) -> None:
        """Delete this branch; its data files are deleted by vacuum."""
        from deltalog.table.branches import discard

        discard(self)

    def audit(
        self,
        checks: Sequence[str | Callable[[DeltaTable], object]] = (),
        *,
        name: str | None = None,
    ) -> AbstractContextManager[DeltaTable]:
        """Write, audit, publish: `with table.audit(["price > 0"]) as draft: draft.merge(…)`.

        The block gets a new branch. After the block, the branch is checked and published, see
        `publish`, and this object shows the new version. If the block raises, the branch is
        discarded. If a check fails or the publish conflicts, the branch remains.

        Args:
            checks: see `publish`.
            name: name of the branch; None means a random name.
        """
        from deltalog.table.branches import audited

        return audited(self, checks, name)

    def appender(
        self,
        *,
        wait_ms: float = 2.0,
        most_rows: int = 1_000_000,
        most_bytes: int = 128 * 1024 * 1024,
        waiting_bytes: int = 256 * 1024 * 1024,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> Appender:
        """Return an appender, which commits the rows of many threads or tasks in few versions.

        `with table.appender() as appender: version = appender.append(rows).result()`; in a
        coroutine: `await appender.append_async(rows)`. Each caller gets its own result: the version
        that durably contains its rows, or an error. At the end of the block, all queued rows are
        committed.

        Args:
            wait_ms: how long the first rows of a version wait for further rows. With 0, they do not
                wait, but rows that arrive during a commit still share the next version.
            most_rows: maximum number of rows in a version. The rows of one call are never split, so
                they may exceed it.
            most_bytes: maximum size of the rows of a version in memory, in bytes. The rows of one
                call may exceed it.
            waiting_bytes: maximum size of uncommitted rows, in bytes. At this limit, callers block.

        Cost: for each version, one commit, and one data file for each partition.
        """
        from deltalog.table.appender import Appender, AppendWindow

        self._check_latest("append")
        window = AppendWindow(
            wait_ms=wait_ms,
            most_rows=most_rows,
            most_bytes=most_bytes,
            waiting_bytes=waiting_bytes,
        )
        options = _options(commit_properties, post_commithook_properties)
        return Appender(self, window, writer_properties=writer_properties, options=options)

    def delete(
        self,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        parameters: Parameters = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Delete the rows for which a predicate is true; without a predicate, delete all rows.

        Returns:
            Counts of rows and files, and times in milliseconds.

        Cost: after pruning, reads the predicate's columns of the remaining files. Then writes
        deletion vectors of a few kilobytes, or rewrites the files with matching rows.
        """
        from deltalog.operations.changes.file_options import FileOptions
        from deltalog.operations.delete import Delete

        arguments.check_given(predicate)
        operation = Delete.where(
            predicate,
            parameters=parameters,
            use_deletion_vectors=use_deletion_vectors,
            file_options=FileOptions(writer_properties=writer_properties),
        )
        return self.do(
            operation, commit_properties, post_commithook_properties, progress, dry_run=dry_run
        )

    def update(  # noqa: PLR0913  # callers need each parameter
        self,
        updates: Mapping[str, str | Expression] | None = None,
        new_values: Mapping[str, object] | None = None,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Parameters = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Update the rows for which a predicate is true; without a predicate, update all rows.

        Args:
            updates: column → Spark SQL string or expression, computed from the values before the
                update. A dotted name is a field of a struct. SQL may use parameters as `:name`.
            new_values: column → Python value, which is never interpreted as SQL.
            error_on_type_mismatch: whether to raise for a value that cannot be converted to the
                column's type. False replaces such values with NULL.

        Returns:
            Counts of rows and files, and times in milliseconds.

        Raises:
            InvalidInputError: a column does not exist, or cannot be assigned.
            ConstraintViolationError: new rows violate a constraint of the table.

        Cost: after pruning, reads the predicate's columns of the remaining files. Then reads all
        columns of the row groups with matching rows, or of the whole files without deletion
        vectors.
        """
        from deltalog.operations.changes.file_options import FileOptions
        from deltalog.operations.update import Update

        arguments.check_given(predicate)
        values = arguments.as_updates(updates, new_values, parameters, self.schema().names)
        operation = Update.where(
            predicate,
            values,
            parameters=arguments.left_for_predicate(parameters, predicate, updates),
            error_on_type_mismatch=error_on_type_mismatch,
            use_deletion_vectors=use_deletion_vectors,
            file_options=FileOptions(writer_properties=writer_properties),
        )
        return self.do(
            operation, commit_properties, post_commithook_properties, progress, dry_run=dry_run
        )

    def merge(  # noqa: PLR0913, PLR0917  # deltalake's parameters, and more
        self,
        source: Rows,
        predicate: str | Expression,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,  # noqa: ARG002, FBT001, FBT002  # deltalake's signature
        max_spill_size: int | None = None,  # noqa: ARG002  # deltalake's signature
        max_temp_directory_size: int | None = None,  # noqa: ARG002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> TableMerger:
        """Begin a merge: update, delete and insert rows of the table with the rows of a source.

        Add clauses to the result, then call `execute()`.

        Args:
            source: rows of any type that `write_deltalake` accepts; they may be larger than memory.
            predicate: the condition for a match of a source row and a table row, as a Spark SQL
                string or an expression.
            source_alias: additional name of the source in SQL; `source` is always a name.
            target_alias: additional name of the table in SQL; `target` is always a name.
            merge_schema: whether to add columns to the table that only the source has.
            error_on_type_mismatch: whether to raise for a value that cannot be converted to the
                column's type. False replaces such values with NULL.
            streamed_exec: ignored; accepted for compatibility with deltalake.
            max_spill_size: ignored; accepted for compatibility with deltalake.
            max_temp_directory_size: ignored; accepted for compatibility with deltalake.
        """
        from deltalog.operations.changes.file_options import FileOptions
        from deltalog.operations.changes.request import ChangeRequest
        from deltalog.operations.merge import Merge
        from deltalog.table.merge import TableMerger, check_condition

        request = ChangeRequest(
            condition=check_condition(predicate),
            clauses=(),
            source=source,
            source_alias=source_alias,
            target_alias=target_alias,
            merge_schema=merge_schema,
            error_on_type_mismatch=error_on_type_mismatch,
            parameters=parameters,
            use_deletion_vectors=use_deletion_vectors,
            file_options=FileOptions(writer_properties=writer_properties),
        )
        return TableMerger(
            self,
            Merge(request),
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )

    def upsert(
        self,
        data: Rows,
        key: str | Sequence[str],
        *,
        null_safe: bool = False,
        merge_schema: bool = False,
        commit_properties: CommitProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Update the rows whose key is in the data, and insert rows with new keys.

        Args:
            data: rows of any type that `write_deltalake` accepts.
            key: the columns that identify a row.
            null_safe: whether NULL keys match each other. Otherwise rows with a NULL key are always
                inserted.
            merge_schema: whether to add columns to the table that only the data has.

        Returns:
            The counts of a merge; see `TableMerger.execute`.
        """
        from deltalog.operations.merge import upsert
        from deltalog.table.merge import TableMerger

        operation = upsert(data, key, null_safe=null_safe, merge_schema=merge_schema)
        merger = TableMerger(self, operation, commit_properties=commit_properties)
        return merger.execute(progress=progress)

    def truncate(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Remove all rows without reading them.

        Returns:
            Number and size of the removed files.
        """
        from deltalog.operations.delete import Truncate

        found = self.do(Truncate(), commit_properties, post_commithook_properties)
        counts = {"num_removed_files": 0, "num_removed_bytes": 0, **found}
        return as_facts(counts, "TRUNCATE")

    def write_spec(
        self,
        *,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> WriteSpec:
        """Return a picklable description of the table, for `write_files` on another machine."""
        from deltalog.operations.changes.file_options import FileOptions

        options = FileOptions(
            target_file_size_bytes=target_file_size,
            writer_properties=writer_properties,
            casts=True,
        )
        return options.spec(self._snapshot.context, self._snapshot.configuration)

    def commit(
        self,
        written: WrittenFiles | Sequence[WrittenFiles],
        *,
        mode: Literal["append", "overwrite"] = "append",
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> int:
        """Commit files that `write_files` has written, on any machine; return the new version.

        With application transactions in `commit_properties`, a repeated call is skipped.

        Args:
            written: the result of one `write_files` call, or a list of results.
            mode: `append`, or `overwrite`, which removes all existing rows.

        Raises:
            InvalidInputError: the files were written for another table or schema.
            CommitFailedError: a concurrent commit conflicts. The files are not deleted, so that you
                can commit them again.
        """
        from deltalog.data.write.written import WrittenFiles
        from deltalog.operations.commit_files import CommitFiles

        parts = [written] if isinstance(written, WrittenFiles) else list(written)
        options = _options(commit_properties, post_commithook_properties)
        return self.execute(CommitFiles(parts=parts, mode=mode), options).committed.version

    def create_write_transaction(
        self,
        actions: Sequence[AddAction | RemoveAction],
        mode: str,
        schema: Schema | Any,
        partition_by: Sequence[str] | str | None = None,
        partition_filters: Any = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit Parquet files that already exist in the table's directory.

        The files are not read, so the caller is responsible for their columns and statistics.
        `commit` is the safe alternative for files of `write_files`.

        Args:
            actions: the files to add (`deltalog.transaction.AddAction`) and, with `append`, to
                remove (`RemoveAction`).
            mode: `append`, or `overwrite`, which removes the existing files.
            schema: schema of the files; it must be the table's schema.
            partition_by: the table's partition columns.
            partition_filters: with `overwrite`: remove only the files of these partitions.

        Raises:
            InvalidInputError: an action is not valid for the table; or the table has constraints,
                generated columns or identity columns, which cannot be checked here.
            DataFileMissingError: a file does not exist.

        Cost: one request for each added file.
        """
        from deltalog.operations.commit_files import CommitActions
        from deltalog.operations.create import as_schema

        operation = CommitActions(
            actions=list(actions),
            mode=mode,
            schema=as_schema(schema),
            partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
            partition_filters=partition_filters,
        )
        self.do(operation, commit_properties, post_commithook_properties)

    @property
    def alter(self) -> TableAlterer:
        """Changes of schema, properties, constraints and protocol."""
        from deltalog.table.alter import TableAlterer

        return TableAlterer(self)

    def set_domain_metadata(
        self,
        domain: str,
        configuration: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set a user-controlled metadata domain; the table needs the feature `domainMetadata`."""
        from deltalog.operations.alter import SetDomainMetadata

        operation = SetDomainMetadata(domain, configuration)
        self.do(operation, commit_properties, post_commithook_properties)

    def remove_domain_metadata(
        self,
        domain: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove a user-controlled metadata domain."""
        from deltalog.operations.alter import RemoveDomainMetadata

        self.do(RemoveDomainMetadata(domain), commit_properties, post_commithook_properties)

    @property
    def optimize(self) -> TableOptimizer:
        """Operations that rewrite files without changing rows: `compact`, `z_order`, and others."""
        from deltalog.table.optimize import TableOptimizer

        return TableOptimizer(self)

    def vacuum(
        self,
        retention_hours: float | None = None,
        dry_run: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        enforce_retention_duration: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: Rows | None = None,
        progress: Progress | None = None,
    ) -> list[str]:
        """Delete files that no version within the retention period needs; by default, list them.

        Vacuum never deletes live files, files that were removed within the retention period, their
        deletion vectors, or files younger than the retention period, which a concurrent writer may
        need. Afterwards, versions older than the retention period cannot be read.

        Args:
            retention_hours: retention period of removed files; None means
                `delta.deletedFileRetentionDuration`, by default one week.
            dry_run: whether to only list the files.
            enforce_retention_duration: whether to raise for a retention period shorter than the
                table's.
            full: whether to list all files below the root, to also find files of failed writes.
                Otherwise only files with a `remove` action in the log are found.
            keep_versions: versions that must remain readable, whatever their age.
            inventory: a table of all files that replaces the listing, of any type that
                `write_deltalake` accepts. Columns: `path`, `length`, `modificationTime`, `isDir`.

        Returns:
            The paths of the files, relative to the root. `vacuum_report()` returns the reasons.

        Raises:
            InvalidInputError: the retention period is too short, or this object was opened at an
                old version.
            DeltaProtocolError: the table has a feature that deltalog does not support.

        Protocol: Vacuum Protocol Check
        Cost: reads the commits since the last such vacuum; with `full`, lists the whole table.
        """
        from deltalog.table.optimize import TableVacuum

        plan = self._plan_vacuum(
            retention_hours,
            enforce_retention_duration=enforce_retention_duration,
            full=full,
            keep_versions=keep_versions,
            inventory=inventory,
        )
        if dry_run:
            return plan.paths
        options = _options(commit_properties, post_commithook_properties)
        return TableVacuum(self).execute(plan, options, progress=progress)

    def vacuum_report(
        self,
        retention_hours: float | None = None,
        *,
        enforce_retention_duration: bool = True,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: Rows | None = None,
    ) -> pa.Table:
        """Return the files that `vacuum` would delete with these arguments.

        Returns:
            One row for each file. Columns: `path`; `size_bytes` and `modification_time`, which may
            be NULL unless `full` is set; `reason`.
        """
        return self._plan_vacuum(
            retention_hours,
            enforce_retention_duration=enforce_retention_duration,
            full=full,
            keep_versions=keep_versions,
            inventory=inventory,
        ).files

    def _plan_vacuum(self, retention_hours: float | None, **options: Any) -> VacuumPlan:
        from deltalog.table.optimize import TableVacuum

        self._check_latest("vacuum")
        return TableVacuum(self).plan(retention_hours, **options)

    def restore(
        self,
        target: Version,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Restore an older version of the table, by committing a new version.

        Args:
            target: the version to restore.
            ignore_missing_files: whether to omit files that vacuum has deleted, instead of raising.
            protocol_downgrade_allowed: whether to remove table features that were added later.

        Returns:
            The number and size of restored and removed files.

        Raises:
            VersionNotFoundError: the version does not exist.
            DataFileMissingError: vacuum has deleted files of the version.

        Cost: reads the file lists of both versions, and makes one request for each restored file.
        The commit contains only the files that differ.
        """
        from deltalog.operations.restore import Restore

        self.update_incremental(same_table=True)
        arguments.as_bound(target)  # raises an error if the target is None
        operation = Restore(
            target=self._load(self._snapshot.context, target),
            asked=target,
            ignore_missing_files=ignore_missing_files,
            protocol_downgrade_allowed=protocol_downgrade_allowed,
        )
        return self.do(operation, commit_properties, post_commithook_properties, progress)

    def repair(
        self,
        dry_run: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Remove files from the table that no longer exist in storage.

        Returns:
            A dictionary: `dry_run`; `files_removed`; `files_without_deletion_vector`: files whose
            deletion vector file is missing. They cannot be read, but are not removed.

        Cost: one listing of the table.
        """
        from deltalog.operations.repair import Repair

        self._check_latest("repair")
        if dry_run:
            self.update_incremental(same_table=True)
        found = self.do(
            Repair(), commit_properties, post_commithook_properties, progress, dry_run=dry_run
        )
        return found or {"dry_run": False, "files_removed": []}

    def clone(
        self,
        target: str | PurePath | Store | NamedTable,
        *,
        shallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        storage_options: StorageOptions | None = None,
        filesystem: Any = None,
        allow_foreign_files: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Clone the version that this object shows to another location, and return the clone.

        The clone assigns its own row ids.

        Args:
            target: location of the clone.
            shallow: whether to reference this table's files instead of copying them. Vacuum of this
                table does not know the clone, and may delete files that the clone needs.
            replace: whether to replace an existing table at the target, by a new version in its
                history. A repeated clone copies only files that the target lacks.
            properties: table properties of the clone, in addition to those of this table.
            storage_options: storage options of the target.
            filesystem: file system of the target.
            allow_foreign_files: whether to also clone files outside of this table's directory. They
                exist if this table is a shallow clone. The log of an untrusted table could name any
                file that you can read.

        Raises:
            TableExistsError: a table already exists at the target, and `replace` is False.
            UnsafePathError: the log names files outside of the table's directory.
        """
        from deltalog.table.creating import TablePlace, clone_table

        place = TablePlace.of(target, storage_options, filesystem)
        locations.check_elsewhere(target, place.context.store.root, self.table_uri)
        context = clone_table(
            self._snapshot,
            place,
            self.engine,
            is_shallow=shallow,
            allows_foreign_files=allow_foreign_files,
            replaces=replace,
            properties=properties,
            options=_options(commit_properties, post_commithook_properties),
            progress=progress,
        )
        return type(self).from_context(context, self._engine)

    def generate(self) -> None:
        """Write symlink manifests of the version that this object shows.

        The manifests list the live files, for engines that read Parquet but not Delta. Commits do
        not update the manifests.

        Raises:
            InvalidInputError: files have deletion vectors.
        """
        from deltalog.operations.generate import generate_symlink_manifest

        generate_symlink_manifest(checked_in_place(self._snapshot, "write manifests of"))

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version that this object shows.

        Cost: reads all columns of the file list once; see `deltalog.transaction.maintenance`.
        """
        snapshot = checked_in_place(self._snapshot, "write a checkpoint of")
        self.engine.write_checkpoint(snapshot, snapshot.context.clock.now_ms())

    def sync_iceberg(self) -> IcebergVersion:
        """Write Iceberg metadata of the newest version, if it is missing.

        With the property `delta.universalFormat.enabledFormats = iceberg`, each commit writes
        Iceberg metadata. Use this method if such a write failed, or without the property. It needs
        the extra `iceberg`.

        Returns:
            The newest Iceberg version; Iceberg readers open its `metadata_location`.

        Raises:
            InvalidInputError: the table is not compatible with Iceberg, or a file has a deletion
                vector.

        Protocol: Iceberg Compatibility V1, V2
        Cost: at first, a pass over the list of all files; later, only over the changed files.
        """
        self.update_incremental(same_table=True)
        try:
            from deltalog.iceberg import sync
        except ImportError as error:
            raise InvalidInputError(
                f"cannot write Iceberg metadata of {self.table_uri}: PyIceberg is not installed; "
                "pip install 'deltalog[iceberg]'"
            ) from error
        return sync(self._snapshot)

    def cleanup_metadata(self) -> list[str]:
        """Delete log files that are older than `delta.logRetentionDuration` and no longer needed.

        Returns:
            The deleted paths, relative to the table.
        """
        from deltalog.transaction.maintenance.cleanup import cleanup_metadata

        # The newest version defines the retention period, even if this object shows an old version.
        return cleanup_metadata(self._snapshot.refresh(same_table=True))

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write one compacted log file for a range of commits; the commits are not deleted."""
        from deltalog.transaction.maintenance.cleanup import compact_logs

        snapshot = checked_in_place(self._snapshot, "compact the log up to")
        compact_logs(snapshot, starting_version, ending_version)

    def __repr__(self) -> str:
        """Show the location, the version and the number of columns."""
        return (
            f"DeltaTable({self.table_uri!r}, version {self.version()}, "
            f"{len(self.schema())} columns)"
        )

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        return card(self._snapshot)

    if not TYPE_CHECKING:  # so that type checkers report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that suggests deltalake's new name, or a similar name."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise AttributeError(arguments.explain_missing(name, dir(type(self))))


def _options(
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    on_conflict: Literal["retry", "raise"] = "retry",
) -> CommitOptions:
    from deltalog.transaction.properties import CommitOptions  # reads do not need this import

    return CommitOptions(
        properties=commit_properties, hooks=post_commithook_properties, on_conflict=on_conflict
    )
