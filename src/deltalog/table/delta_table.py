"""`DeltaTable`: the public facade of one table.

It has the current snapshot. Each method runs an operation or calls a function of another package.
Names are deltalake's where the semantics are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeVar, cast, overload

from deltalog._util.cards import Progress, shown
from deltalog.catalogs import table_uri as locations
from deltalog.errors import InvalidInputError
from deltalog.expressions.sql_session import SqlSession
from deltalog.log.context import LogTail, TableContext
from deltalog.log.listing import has_table
from deltalog.log.snapshot import Snapshot, checked_in_place, load_if_any, load_snapshot
from deltalog.operations import arguments
from deltalog.table.inspect.display import as_facts, card, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
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

    The object shows one version at a time. Reads use that version until `update_incremental` or
    `load_as_version` shows another one. An operation that changes the table shows the version that
    it commits. `write_deltalake` or a `transaction()` appends and overwrites rows. The object can
    be shared by threads, pickled, and used after a fork.

    These arguments occur in many methods and are explained only here:

    - a `Version` is a number, a timestamp string (ISO 8601; without a zone: UTC) or a datetime.
    - `predicate`: Spark SQL, an expression (`col("id") > 1`), deltalake's filter tuples or a
      pyarrow expression. None means all rows.
    - `parameters`: values for `?` or `:name` in SQL.
    - `file_pruning_predicate`: a predicate that chooses files. Filter tuples, such as
      `[("year", "=", 2024)]`, match null partition values with `''`; a list of lists is an OR of
      ANDs. `partitions` and `partition_filters` are deprecated names of it.
    - `columns`: names in the order of the result; None means all.
    - `filesystem` of methods that read: a file system whose root is the table; data files are read
      from it. The constructor's `filesystem` reads the log, too.
    - `commit_properties`: metadata, application transactions and retries of the commit.
    - `post_commithook_properties`: which maintenance runs after the commit.
    - `writer_properties`: Parquet options of new files.
    - `use_deletion_vectors`: whether to mark rows as deleted instead of rewriting files. With None,
      if `delta.enableDeletionVectors` is set, the cost decides for each file
      (`deltalog.maxDeletedRowsRatio`); otherwise files are rewritten.
    - `dry_run`: change nothing; the result also has `files`, an Arrow table of the files that would
      change: how, and why.
    - `progress`: True shows a bar. A function is called with the number of finished parts and
      the total; an exception in it stops the work and deletes its new files.

    Args:
        table_uri: path or URL (`file:///a%20b` is `/a b`). `table@v3` and
            `table@20240131120000000` name a version or a timestamp, unless a directory has exactly
            that name. `uc://catalog.schema.table` is a table of the environment's Unity Catalog. A
            `Store` works too, and a `NamedTable` of any catalog.
        version: None means the latest.
        storage_options: the usual names of the cloud SDKs and of deltalake, or fsspec's own; or a
            callable that returns fresh options when credentials expire.
        without_files: deprecated, and without effect: file columns are read on demand.
        log_buffer_size: likewise.
        skip_stats: likewise.
        filesystem: an fsspec or pyarrow file system to use instead.
        log_tail: the newest commits of a table whose commits a catalog manages.
        default_timezone: the zone of values without one where a zone matters: partition values,
            and `timestamp_ntz` compared with `timestamp`.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: the version does not exist, or was cleaned up.
        MalformedLogError: the log breaks the protocol; its subclasses name the fault.

    Cost: one hint, one listing, the commits after the checkpoint, a few leaves of the checkpoint.
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
    ) -> None:
        arguments.warn_of_deprecated(
            without_files=without_files, log_buffer_size=log_buffer_size, skip_stats=skip_stats
        )
        context, at = locations.open_table_context(
            table_uri, storage_options, filesystem, time_zone=default_timezone
        )
        version = locations.one_version(context.store.root, version, at)
        context = context if log_tail is None else context.with_log_tail(log_tail)
        self._open(context, None, version)

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
            engine: works on rows and files; None means threads of this process.
        """
        table = cls.__new__(cls)
        cls._open(table, context, engine, None)
        return table

    @staticmethod
    def is_deltatable(
        table_uri: str | PurePath | NamedTable, storage_options: StorageOptions | None = None
    ) -> bool:
        """Return whether a Delta table is at a location, even one that deltalog cannot read.

        Cost: one listing, which ends at the first commit.
        """
        if (named := locations.named_table(table_uri, storage_options)) is not None:
            return named.is_delta_table()
        context, _ = locations.open_table_context(table_uri, storage_options, None, time_zone="UTC")
        return has_table(context.store)

    @classmethod
    def create(  # noqa: PLR0913, PLR0917  # deltalake's signature and some more
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
            schema: a `Schema`, fields, or an Arrow schema of any library. Field metadata declares
                comments, defaults, generated and identity columns.
            mode: if there is a table, `error` fails, `ignore` opens it, and `overwrite` replaces
                its schema, properties and rows.
            partition_by: partition columns.
            name: name of the table.
            description: description of the table.
            configuration: table properties; None removes a default of `table_defaults`.
            cluster_by: clustering columns, instead of partitions.
            features: table features to support beyond what is needed.
            constraints: CHECK constraints, name → Spark SQL; columns may be in double quotes.
            raise_if_key_not_exists: whether an unknown `delta.` property raises.

        Raises:
            TableExistsError: there is a table, and the mode is `error`.
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
        """The engine for work on rows and files: threads of this process, or tasks of a cluster."""
        if self._engine is None:
            from deltalog.operations.engine import LocalEngine

            self._engine = LocalEngine()
        return self._engine

    @property
    def table_uri(self) -> str:
        """The location of the table."""
        return self._snapshot.store.root

    def version(self) -> int:
        """Return the number of the version that this object shows."""
        return self._snapshot.version

    def load_as_version(self, version: Version) -> None:
        """Show another version from now on.

        Raises:
            VersionNotFoundError: the version does not exist; the message names the first and last
                one.
        """
        if version is None:
            raise InvalidInputError(
                "cannot load version None: expected a number, an ISO 8601 string or a datetime; "
                "update_incremental() goes to the latest version"
            )
        self._snapshot = self._load(self._snapshot.context, version)
        self._travelled = True

    def update_incremental(self, *, same_table: bool = False) -> None:
        """Show the latest version; with `same_table`, raise if another table has replaced this one.

        Cost: one listing and the new commits.
        """
        with locations.naming(self.table_uri):
            self._snapshot = self._snapshot.refresh(same_table=same_table)
        self._travelled = False

    def _load(self, context: TableContext, version: Version | None) -> Snapshot:
        with locations.naming(context.store.root):
            if version is None or (isinstance(version, int) and not isinstance(version, bool)):
                return load_snapshot(context, version=version)
            return load_snapshot(context, timestamp_ms=arguments.as_timestamp_ms(version))

    @property
    def _session(self) -> SqlSession:
        return self._snapshot.context.session

    def _check_latest(self, operation: str) -> None:
        if self._travelled:
            raise InvalidInputError(
                f"cannot {operation} at version {self.version()} of {self.table_uri}: the table "
                "was opened at that version; update_incremental() moves it to the latest"
            )

    def schema(self) -> Schema:
        """Return the schema of the table."""
        return self._snapshot.configuration.schema

    def metadata(self) -> Metadata:
        """Return name, description, partitioning and properties, as stored in the log."""
        return self._snapshot.metadata

    def protocol(self) -> Protocol:
        """Return what readers and writers of the table must support."""
        return self._snapshot.protocol

    @property
    def properties(self) -> TableProperties:
        """The table properties, typed."""
        return self._snapshot.configuration.properties

    def domain_metadata(self) -> dict[str, str]:
        """Return the configuration of each metadata domain, including unknown domains.

        A domain in the form of the protocol draft is a mapping; it is returned as JSON.
        """
        domains = self._snapshot.domain_metadata
        return {name: domain.text for name, domain in domains.items()}

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last version that an application has recorded; None if there is none."""
        found = self._snapshot.app_transactions.get(app_id)
        return None if found is None else found.version

    def history(self, limit: int | None = None) -> CommitHistory:
        """Return the commits, newest first: version, timestamp (ms), operation and its details.

        The result is a list of dictionaries with `to_pandas()`, which converts timestamps to
        datetimes.

        Cost: one request per commit, sent together.
        """
        from deltalog.table.inspect.description import CommitHistory

        return CommitHistory(self._snapshot.history(arguments.as_limit(limit)))

    def detail(self) -> dict[str, Any]:
        """Return a summary of the table: Spark's `DESCRIBE DETAIL`.

        Cost: the sizes of all files, from the log.
        """
        return describe(self._snapshot)

    @property
    def plot(self) -> TablePlots:
        """Plots of the version that this object shows: `commits()`, `file_sizes()` and others.

        They need matplotlib, which the extra `plot` installs.
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
        """Plan a read of rows: to be streamed, counted, explained, or split into picklable tasks.

        Args:
            columns: `a.b` keeps only that part of the struct `a`; `_metadata.file_path`,
                `.row_index`, `.row_id`, `.row_commit_version` and `.file_modification_time` return
                the position of a row. None means all columns of the table.
            limit: most rows to return.
            order_by: with a limit, returns the first rows of an order: SQL such as `at DESC, id`,
                or a list of columns and of pairs `("at", "descending")`. NULL comes first and NaN
                last; DESC reverses both, as in Spark.

        Raises:
            InvalidInputError: a column does not exist, or the predicate is invalid.
            UnsupportedFeatureError: reading rows requires a table feature that deltalog lacks.

        Cost: none before a result is requested. With `order_by`, files are read in the order of
        their bounds, until no other file can contain one of the first rows.
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
        """Return the number of rows, without deleted ones.

        Cost: no data where the log has the number of rows of every file.
        """
        return self.scan().count()

    def head(
        self, num_rows: int = 5, columns: Sequence[str] | None = None, predicate: Any = None
    ) -> pa.Table:
        """Return some arbitrary rows in memory, as a preview.

        Args:
            num_rows: most rows to return.

        Cost: files are read one after the other until there are enough rows.
        """
        return self.scan(columns, predicate, limit=num_rows).to_table()

    def describe(self) -> TableDescription:
        """Return number of rows, and nulls, minimum and maximum of each column, from the log.

        A statistic is returned only if the log has its exact value; `missing` names the others,
        with the reason.

        Returns:
            A `TableDescription`: `num_rows`, `columns`, `to_table()`, `to_pandas()`, and a card.

        Cost: no data; every statistic of every file.
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
            parquet_read_options: pyarrow's options; `dictionary_columns` are
                dictionary-encoded. Timestamps are read exactly as stored, in any unit.
            schema: other Arrow types for the columns.
            as_large_types: whether to return Arrow's large strings, binaries and lists.
        """
        from deltalog.data.scan.dataset import DeltaDataset  # takes half a second

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
        """Return the rows in memory; `filters` is a predicate."""
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
            types_mapper: as in pyarrow's `to_pandas`.
            dtype_backend: as in pandas' readers. `pyarrow` keeps each column in Arrow.
                `numpy_nullable` uses dtypes with NA, and Arrow where there is none. None uses
                NumPy's dtypes, where integers with NULL become floating-point numbers.
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
            lazy: return a lazy frame, which reads only the columns, files and rows that its query
                needs, batch by batch. It keeps the version that this object shows now.
        """
        if not lazy:
            return self._filtered(None, columns, filters).to_polars()
        from deltalog.data.scan.polars import lazy_frame

        condition = arguments.as_condition(self.schema(), filters, session=self._session)
        return lazy_frame(
            self._snapshot, columns=arguments.as_columns(columns), predicate=condition
        )

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return the table as a DuckDB relation, which reads only what a query needs."""
        from deltalog.data.scan.rows import duckdb_relation

        return duckdb_relation(self.to_pyarrow_dataset(), connection)

    def sql(
        self, query: str, parameters: Mapping[str, object] | None = None
    ) -> pa.RecordBatchReader:
        """Return the result of a query over the version that this object shows, named `this`.

        Args:
            query: in Spark's dialect, such as `SELECT count(*) FROM this`, or
                `FROM this VERSION AS OF 3`; `deltalog.sql` runs statements over several tables.
            parameters: values for `:name`.

        Raises:
            InvalidInputError: DuckDB is not installed, or rejects the query.
        """
        from deltalog.query.tables import query_table  # sqlglot is slow to import

        return query_table(self, query, parameters or {})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows for any library that accepts Arrow streams."""
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
            ending_version: the last version, inclusive; the latest if no end is given, or if this
                version does not exist yet.
            starting_timestamp: instead of a version: start at the first version from this time on.
            ending_timestamp: instead of a version: end at the last version up to this time.
            allow_out_of_range: whether a range after the latest version is empty instead of an
                error.

        Raises:
            VersionNotFoundError: the range is not in the log.
            ChangeDataFeedNotEnabledError: the feed was off in a version of the range.
            IncompatibleChangesError: the schema changed in between.
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

        Cost: the paths, and the statistics of the columns in the filters.
        """
        arguments.warn_of_deprecated(partition_filters=partition_filters)
        predicate = self._pruning(partition_filters, file_pruning_predicate)
        from deltalog.data.scan import file_reports

        return file_reports.file_uris(self._snapshot, predicate)

    def partitions(
        self, partition_filters: Sequence[Any] | None = None, *, file_pruning_predicate: Any = None
    ) -> list[dict[str, str | None]]:
        """Return the partitions that may contain a matching row; values are as in the log."""
        arguments.warn_of_deprecated(partition_filters=partition_filters)
        predicate = self._pruning(partition_filters, file_pruning_predicate)
        from deltalog.data.scan import file_reports

        return file_reports.partitions(self._snapshot, predicate)

    def get_add_actions(self, flatten: bool = False) -> pa.Table:  # noqa: FBT001, FBT002  # deltalake's signature
        """Return one row per data file: path, size, time, partition values, statistics.

        Args:
            flatten: return a column for each statistic instead of structs.

        Cost: every statistic of every file.
        """
        from deltalog.data.scan import file_reports

        return file_reports.add_actions(self._snapshot, flatten=flatten)

    def deletion_vectors(self) -> pa.RecordBatchReader:
        """Return `filepath` and `selection_vector` (true: live) of each file with deleted rows.

        Cost: one request per deletion vector.
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
            before: one version.
            after: the other version; None means the version that this object shows.
            key: columns that identify a row. Without them row ids identify rows, if both versions
                have them; otherwise a changed row is one removed and one added row.

        Returns:
            A `TableDiff`: rows with `_change_type`, and tables of schema and setting changes.

        Raises:
            VersionNotFoundError: a version does not exist.
            InvalidInputError: a column does not exist.

        Cost: a file is not read if both versions have it with the same deletion vector.
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

        The log is checked against the protocol, features against properties, checkpoints and
        checksums against the log, statistics against samples of the data; then deletion vectors,
        missing and unknown files, and which engines can read and write the table.

        Args:
            checks: one or several names of checks; None means all.
            samples: how many data files and deletion vectors are read.

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

    def follow(  # noqa: PLR0913  # each is the caller's choice
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
        """Stream the table in steps: its rows, then those of new commits; each row exactly once.

        `for step in table.follow()` waits for new commits, and so does `async for`; `available()`
        ends when no commit is left. A step returns rows as a scan does. After processing them,
        store `step.offset.to_json()`, and pass it as `start` to continue there.

        Args:
            start: a stored offset, or the first version whose changes to return; `latest` starts
                with the next commit. None returns all rows first.
            changes: return the change data feed (`_change_type` and so on) instead of new rows.
            columns: as for `scan`.
            predicate: as for `scan`.
            max_files_per_step: most files of a step.
            max_bytes_per_step: most bytes of a step; a single file may be larger.
            ignore_deletes: skip commits that only delete.
            ignore_changes: return all rows of rewritten files, including unchanged rows.
            skip_change_commits: skip commits that delete or rewrite.
            on_schema_change: `raise` stops before the first row of another schema, and a new
                follower continues from the offset; `evolve` continues.
            poll_seconds: seconds between two polls when there is nothing new.
            clock: sleeps between two polls.

        Raises:
            InvalidInputError: the offset is of another table, or a column does not exist.
            VersionNotFoundError: the version does not exist.

        Cost: one listing per poll, one request per commit, and the files whose rows are requested.
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
        """Run an operation of `deltalog.operations`, and show the committed version.

        Args:
            operation: the operation.
            on_conflict: `raise` does not stage the operation again after a conflict.

        Returns:
            The operation's result; an empty dictionary if the table already contains the
            application transaction.

        Raises:
            InvalidInputError: the table shows an old version.
        """
        options = _options(commit_properties, post_commithook_properties, on_conflict)
        if dry_run:
            from deltalog.operations.execute import preview

            # A dry run uses the newest version, unless the table was opened at an old one.
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
        """Execute an operation, and return its outcome and its commit; see `execute_on`."""
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
        """Stage an operation of your own, commit it, and show its version.

        Its interface is only as stable as the modules that `stage` uses.

        Args:
            operation: name for the history.
            stage: stages the operation; called again on the newest version after a conflict.
            parameters: parameters for the history.
            refresh: whether to refresh the table first; not necessary for an append.
            on_conflict: as for `do`.
            hooks: the `post_commithook_properties`.
            skip_empty: skip the commit if nothing was staged.

        Raises:
            InvalidInputError: the table shows an old version.
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
        """Show the version of a new commit."""
        self._snapshot = committed.snapshot
        self._travelled = False

    def transaction(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> TableTransaction:
        """Begin several operations in one commit: `with table.transaction() as tx: tx.append(…)`.

        All of them see the table as it was at the beginning.
        """
        from deltalog.table.transaction import TableTransaction

        self._check_latest("begin a transaction")
        options = _options(commit_properties, post_commithook_properties)
        return TableTransaction(self, options)

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
        """Begin to append rows of many threads or tasks, in a version per window.

        `with table.appender() as appender: version = appender.append(rows).result()`; in a
        coroutine `await appender.append_async(rows)`. Each caller gets its own result; once that is
        a version, the rows are durable. Leaving the block commits all queued rows.

        Args:
            wait_ms: how long the first rows of a version wait for others. Rows that arrive during a
                commit go into the next version, also with 0.
            most_rows: most rows of a version; only a single call may exceed it.
            most_bytes: most bytes in memory of the rows of a version, likewise.
            waiting_bytes: most bytes of uncommitted rows; above it, callers wait.

        Cost: one data file per window and partition, and one commit.
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
        """Delete the rows for which a predicate is true; all rows without one.

        Returns:
            Counts of rows and files, and times in milliseconds.

        Cost: the predicate's columns of the files that pruning leaves; then deletion vectors of
        some kilobytes, or a rewrite of the files with matching rows.
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

    def update(  # noqa: PLR0913  # each is the caller's choice
        self,
        updates: Mapping[str, str | Expression] | None = None,
        new_values: Mapping[str, object] | None = None,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Parameters = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Update the rows for which a predicate is true; all rows without one.

        Args:
            updates: column → Spark SQL or expression, computed from the row as it was; a dotted
                name reaches into a struct. The SQL may use `parameters` as `:name`.
            new_values: column → Python value; never interpreted as SQL.
            error_on_type_mismatch: False replaces values that do not fit the column's type by NULL.

        Returns:
            Counts of rows and files, and times in milliseconds.

        Raises:
            InvalidInputError: a column does not exist, or cannot be assigned.
            ConstraintViolationError: new rows break a rule of the table.

        Cost: the predicate's columns of the files that pruning leaves; then all columns of the
        row groups with matching rows, or of their files where there are no deletion vectors.
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

    def merge(  # noqa: PLR0913, PLR0917  # deltalake's signature and some more
        self,
        source: Rows,
        predicate: str | Expression,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,  # noqa: FBT001, FBT002  # deltalake's
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,  # noqa: ARG002, FBT001, FBT002  # deltalake's
        max_spill_size: int | None = None,  # noqa: ARG002  # deltalake's
        max_temp_directory_size: int | None = None,  # noqa: ARG002  # deltalake's
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> TableMerger:
        """Begin a merge: rows of a source update, delete and insert rows of the table.

        Args:
            source: anything that `write_deltalake` accepts; it may be larger than memory.
            predicate: Spark SQL or expression over both rows: the condition of a match.
            source_alias: name of the source in SQL, besides `source`.
            target_alias: name of the table in SQL, besides `target`.
            merge_schema: whether to add columns to the table that only the source has.
            error_on_type_mismatch: False replaces values that do not fit a column's type by NULL.
            streamed_exec: accepted as in deltalake; the table is always streamed and pruned.
            max_spill_size: accepted likewise.
            max_temp_directory_size: accepted likewise.
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
        """Replace rows of the table with new rows of the same key, and insert the other new rows.

        Args:
            data: anything that `write_deltalake` accepts.
            key: the columns that identify a row.
            null_safe: NULL is a key like any other; otherwise rows without a key are inserted.
            merge_schema: whether to add columns to the table that only the data has.

        Returns:
            The counts of a merge.
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
        from deltalog.operations.truncate import Truncate

        found = self.do(Truncate(), commit_properties, post_commithook_properties)
        counts = {"num_removed_files": 0, "num_removed_bytes": 0, **found}
        return as_facts(counts, "TRUNCATE")

    def write_spec(
        self,
        *,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> WriteSpec:
        """Return picklable settings for `write_files` on another machine."""
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
        """Commit files that `write_files` wrote, on any machines; return the new version.

        With application transactions in `commit_properties`, a repeated call is skipped.

        Args:
            written: results of one worker or of many.
            mode: `append`, or `overwrite`, which removes all previous rows.

        Raises:
            InvalidInputError: the files were written for another table or schema.
            CommitFailedError: another writer has won; the files stay, and you can commit them
                again.
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
        """Commit Parquet files that are in the table's directory already.

        Their rows are not read: the caller is responsible for columns and statistics. `commit` is
        the safe alternative: it checks the files of `write_files`.

        Args:
            actions: `deltalog.transaction.AddAction` and, with `append`, `RemoveAction`.
            mode: `append`, or `overwrite`, which removes the current files.
            schema: schema of the files; it must be the table's.
            partition_by: the table's partition columns.
            partition_filters: with `overwrite`, only the files of these partitions are removed.

        Raises:
            InvalidInputError: the files do not fit the table, or the table has constraints,
                generated or identity columns, for which rows would have to be checked.
            DataFileMissingError: a file does not exist.

        Cost: one request per added file.
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
        """Set a user-controlled metadata domain; the table needs `domainMetadata`."""
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

    def vacuum(  # deltalake's signature and some more
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
        """Delete files that no version within the retention needs; by default only list them.

        These files stay: live files; files that were removed within the retention, and their
        deletion vectors; and all files younger than the retention, because a concurrent writer may
        need them. Versions older than the retention can't be read afterwards.

        Args:
            retention_hours: how long removed files are kept; None means
                `delta.deletedFileRetentionDuration`, a week by default.
            dry_run: delete nothing.
            enforce_retention_duration: whether a retention shorter than the table's raises.
            full: list all files below the root, to also find files of failed writes. Otherwise only
                files with a `remove` action in the log are found.
            keep_versions: versions that stay readable, whatever their age.
            inventory: a table of all files (`path`, `length`, `modificationTime`, `isDir`) that
                replaces the listing, in any form that `write_deltalake` accepts.

        Returns:
            The paths of the files, relative to the root; `vacuum_report()` has the reasons.

        Raises:
            InvalidInputError: the retention is too short, or the table shows an old version.
            DeltaProtocolError: the table has a feature that deltalog does not support.

        Protocol: Vacuum Protocol Check
        Cost: commits since the last such vacuum; with `full`, a listing of the whole table.
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
            One row per file: `path`, `size_bytes`, `modification_time` (both may be NULL if only
            the log was read) and `reason`.
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
    ) -> dict[str, Any]:
        """Restore an older version of the table, by committing a new version.

        Args:
            target: the version.
            ignore_missing_files: leave out files that vacuum has deleted, instead of raising.
            protocol_downgrade_allowed: whether to remove table features that were added later.

        Returns:
            Numbers and sizes of restored and removed files.

        Raises:
            VersionNotFoundError: the version does not exist.
            DataFileMissingError: vacuum has deleted files of that version.

        Cost: paths of both versions, and a request for each restored file; the commit contains only
        the difference.
        """
        from deltalog.operations.restore import Restore

        self.update_incremental(same_table=True)
        arguments.as_bound(target)  # None is nothing to go back to
        operation = Restore(
            target=self._load(self._snapshot.context, target),
            asked=target,
            ignore_missing_files=ignore_missing_files,
            protocol_downgrade_allowed=protocol_downgrade_allowed,
        )
        return self.do(operation, commit_properties, post_commithook_properties)

    def repair(
        self,
        dry_run: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Remove files from the table that are missing in the store.

        Returns:
            `dry_run`, `files_removed`, and `files_without_deletion_vector`: files whose deletion
            vector is missing. These cannot be read, but stay in the table.

        Cost: one listing of the table.
        """
        from deltalog.operations.repair import Repair

        self._check_latest("repair")
        if dry_run:
            self.update_incremental(same_table=True)
        found = self.do(Repair(), commit_properties, post_commithook_properties, dry_run=dry_run)
        return found or {"dry_run": False, "files_removed": []}

    def clone(  # each is the caller's choice
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
            shallow: reference this table's files instead of copying them. They must exist as long
                as the clone is read, but vacuum of this table ignores the clone.
            replace: whether to replace a table at the target; its history stays. A repeated
                clone is incremental: only files that the target lacks are copied.
            properties: set on the clone in addition to this table's.
            storage_options: storage options of the target.
            filesystem: file system of the target.
            allow_foreign_files: whether to clone files outside of this table that its log names,
                such as the files of a shallow clone. A malicious log could name any file that you
                can read.

        Raises:
            TableExistsError: there is a table, and `replace` is False.
            UnsafePathError: the log names files outside of the table.
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

        The manifests list the live files for engines that read Parquet but not Delta. Commits do
        not update them.

        Raises:
            InvalidInputError: files have deletion vectors.
        """
        from deltalog.operations.generate import generate_symlink_manifest

        generate_symlink_manifest(checked_in_place(self._snapshot, "write manifests of"))

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version that this object shows.

        Cost: every column of the log's files, once; see `deltalog.transaction.maintenance`.
        """
        from deltalog.transaction.maintenance.checkpoint import create_checkpoint

        create_checkpoint(checked_in_place(self._snapshot, "write a checkpoint of"))

    def sync_iceberg(self) -> IcebergVersion:
        """Write Iceberg metadata of the newest version, if it is missing.

        Tables with `delta.universalFormat.enabledFormats = iceberg` get Iceberg metadata after each
        commit. This method repeats a failed write, or writes metadata for a table without the
        property. It needs the extra `iceberg`.

        Returns:
            The current state; Iceberg readers open its `metadata_location`.

        Raises:
            InvalidInputError: the table is not compatible with Iceberg, or a file has a deletion
                vector.

        Protocol: Iceberg Compatibility V1, V2
        Cost: as `deltalog.iceberg.sync`: small after a commit, a pass over all files at first.
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
        """Delete log files that are older than `delta.logRetentionDuration` and not needed.

        Returns:
            The deleted paths, relative to the table.
        """
        from deltalog.transaction.maintenance.cleanup import cleanup_metadata

        # The newest version defines the retention, also if this object shows an old one.
        return cleanup_metadata(self._snapshot.refresh(same_table=True))

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write one compacted log file for a range of commits; the commit files stay."""
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
        """Return the notebook card."""
        return card(self._snapshot)

    if not TYPE_CHECKING:  # a `__getattr__` would hide wrong names from type checkers

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that suggests deltalake's new name, or a similar name."""
            raise AttributeError(arguments.explain_missing(name, dir(type(self))))


def _options(
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    on_conflict: Literal["retry", "raise"] = "retry",
) -> CommitOptions:
    from deltalog.transaction.properties import CommitOptions  # the package for commits

    return CommitOptions(
        properties=commit_properties, hooks=post_commithook_properties, on_conflict=on_conflict
    )
