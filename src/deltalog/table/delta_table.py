"""`DeltaTable`: what users hold.

Owns the current snapshot of one table. Each method makes a verb and does it, or hands the question to
the room that answers it. Names and meanings are deltalake's where the meaning is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

import pyarrow as pa

from deltalog.arguments import (
    as_arrow_schema,
    as_bound,
    as_columns,
    as_condition,
    as_limit,
    as_timestamp_ms,
    as_updates,
    check_elsewhere,
    check_given,
    check_number,
    explain_missing,
    has_table,
    naming,
    open_table_store,
    refuse,
    refuse_both,
    with_blanks_as_nulls,
)
from deltalog.context import TableContext
from deltalog.display import card, describe
from deltalog.errors import InvalidInputError
from deltalog.expressions import as_expression
from deltalog.progress import shown
from deltalog.scan.changes import CHANGE_COLUMNS, Changes, open_changes
from deltalog.scan.files import add_actions, file_uris, partitions, selection_vectors
from deltalog.scan.plan import Scan, plan_scan
from deltalog.scan.rows import duckdb_relation
from deltalog.schema import Field, StructType, from_arrow_type
from deltalog.snapshot import load_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import PurePath
    from typing import TypeVar

    import pandas as pd
    import polars as pl

    from deltalog.actions.model import Metadata, Protocol
    from deltalog.actions.properties import TableProperties
    from deltalog.catalog import LogTail
    from deltalog.clock import Clock
    from deltalog.engine import Engine
    from deltalog.expressions import Expression
    from deltalog.insight.diff import TableDiff
    from deltalog.insight.doctor import Report
    from deltalog.insight.follow import Follower
    from deltalog.insight.follow_steps import Offset
    from deltalog.progress import Progress
    from deltalog.scan.changes import Moment
    from deltalog.scan.dataset import DeltaDataset
    from deltalog.schema import Schema
    from deltalog.snapshot import Snapshot
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.table.alter import TableAlterer
    from deltalog.table.merge import TableMerger
    from deltalog.table.optimize import TableOptimizer
    from deltalog.table.transaction import TableTransaction
    from deltalog.transaction import (
        CommitProperties,
        PendingTransaction,
        PostCommitHookProperties,
    )
    from deltalog.transaction.commit import Committed, Ran
    from deltalog.verbs.do import VerbDone
    from deltalog.verbs.verb import OutcomeT, Verb
    from deltalog.write.options import WriterProperties
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles

    T = TypeVar("T")


class DeltaTable:
    """A Delta table: its rows, its history, and what changes them.

    The object stands on one snapshot at a time. Reads see that snapshot until
    `update_incremental` or `load_as_version` moves the object on; what changes the table moves it
    on to the version that it made. It may be shared by threads, pickled, and used after a fork.

    Args:
        table_uri: path or URL; `table@v3` and `table@20240131120000000` name a version or a
            moment, unless a directory of that very name is there. A `Store` works too.
        version: number, timestamp text (ISO 8601) or datetime; None is the latest.
        storage_options: for the file system: the usual names of the cloud SDKs and of deltalake,
            or fsspec's own; or a callable that gives them anew when credentials expire.
        filesystem: an fsspec or pyarrow file system to use instead.
        log_tail: the newest commits, for a table whose commits a catalog decides on.
        default_timezone: of partition values that carry no zone.
        without_files: accepted for deltalake's users; file columns are read on demand anyway.
        log_buffer_size: accepted likewise.
        skip_stats: accepted likewise.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: the version is not there, or not any more.
        MalformedLogError: the log breaks the protocol; the leaves say how.

    Cost: one hint, one listing, the commits after the checkpoint, a few leaves of the checkpoint.
    """

    def __init__(
        self,
        table_uri: str | PurePath | Store,
        version: int | str | datetime | None = None,
        storage_options: StorageOptions | None = None,
        without_files: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        log_buffer_size: int | None = None,
        skip_stats: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        filesystem: Any = None,
        log_tail: LogTail | None = None,
        default_timezone: str = "UTC",
    ) -> None:
        del without_files, log_buffer_size, skip_stats
        store, at = open_table_store(table_uri, storage_options, filesystem)
        self._context = TableContext(store=store, time_zone=default_timezone, log_tail=log_tail)
        self._engine: Engine | None = None
        if version is not None and at is not None:
            raise InvalidInputError(
                f"cannot open {self.table_uri} at {version!r}: its location names a version "
                "already; give one of them"
            )
        wanted = version if version is not None else at
        self._travelled = wanted is not None
        self._snapshot = self._load(wanted)

    @classmethod
    def from_context(cls, context: TableContext, engine: Engine | None = None) -> Self:
        """The latest version of the table of a context.

        Args:
            context: of the table.
            engine: does the work on rows and files; None is threads of this process.
        """
        table = cls.__new__(cls)
        table._context = context
        table._engine = engine
        table._travelled = False
        table._snapshot = table._load(None)
        return table

    @staticmethod
    def is_deltatable(
        table_uri: str | PurePath, storage_options: StorageOptions | None = None
    ) -> bool:
        """Whether a Delta table is at this location, be it one that can be read or not.

        Cost: one listing, which ends at the first commit.
        """
        return has_table(open_table_store(table_uri, storage_options, filesystem=None)[0])

    @classmethod
    def create(  # noqa: PLR0913, PLR0917  # deltalake's signature and some more
        cls,
        table_uri: str | PurePath | Store,
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
        """Make an empty table.

        Args:
            table_uri: where.
            schema: of the table: a `Schema`, fields, or an Arrow schema of any library. Field
                metadata declares comments, defaults, generated and identity columns.
            mode: `error` if there is a table, `ignore`: open the one that is there, `overwrite`:
                replace its schema, properties and rows.
            partition_by: partition columns.
            name: of the table.
            description: of the table.
            configuration: table properties; None takes a default of `table_defaults` away.
            storage_options: for the file system, as for `DeltaTable`.
            cluster_by: clustering columns, instead of partitions.
            features: table features to support beyond what is needed.
            constraints: CHECK constraints, name → Spark SQL.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            raise_if_key_not_exists: whether an unknown `delta.` property is refused.
            filesystem: as for `DeltaTable`.

        Raises:
            TableExistsError: there is a table, and the mode is `error`.
            InvalidInputError: schema, columns and properties do not go together.
        """
        from deltalog.table.creating import create_table

        return cls.from_context(
            create_table(
                table_uri,
                schema,
                mode=mode,
                partition_by=[partition_by]
                if isinstance(partition_by, str)
                else partition_by or (),
                name=name,
                description=description,
                configuration=configuration,
                storage_options=storage_options,
                cluster_by=cluster_by,
                features=features,
                constraints=constraints,
                commit_properties=commit_properties,
                hooks=post_commithook_properties,
                arbitrary_properties=not raise_if_key_not_exists,
                filesystem=filesystem,
            )
        )

    # --- which version

    @property
    def snapshot(self) -> Snapshot:
        """The version that this object shows now; it never changes itself."""
        return self._snapshot

    @property
    def engine(self) -> Engine:
        """Who does the work on rows and files: threads of this process, or tasks of a cluster."""
        if self._engine is None:
            from deltalog.engine import LocalEngine

            self._engine = LocalEngine()
        return self._engine

    @property
    def table_uri(self) -> str:
        """Where the table is."""
        return self._context.store.root

    def version(self) -> int:
        """The version that this object shows."""
        return self._snapshot.version

    def load_as_version(self, version: int | str | datetime) -> None:
        """Show another version from now on.

        Args:
            version: number, timestamp text (ISO 8601; without a zone: UTC) or datetime.

        Raises:
            VersionNotFoundError: it is not there; the message names the bounds.
        """
        if version is None:
            raise InvalidInputError(
                "cannot load version None: expected a number, an ISO 8601 text or a datetime; "
                "update_incremental() goes to the latest version"
            )
        self._snapshot = self._load(version)
        self._travelled = True

    def update_incremental(self) -> None:
        """Show the latest version from now on.

        Cost: one listing and the new commits.
        """
        with naming(self.table_uri):
            self._snapshot = self._snapshot.refresh()
        self._travelled = False

    def _load(self, version: int | str | datetime | None) -> Snapshot:
        with naming(self.table_uri):
            if version is None or (isinstance(version, int) and not isinstance(version, bool)):
                return load_snapshot(self._context, version=version)
            moment_ms = as_timestamp_ms(version)
            return load_snapshot(self._context, timestamp_ms=moment_ms)

    def _check_latest(self, operation: str) -> None:
        if self._travelled:
            raise InvalidInputError(
                f"cannot {operation} at version {self.version()} of {self.table_uri}: the table "
                "was asked for at that version; update_incremental() goes to the latest"
            )

    # --- what it is

    def schema(self) -> Schema:
        """The table's schema."""
        return self._snapshot.configuration.schema

    def metadata(self) -> Metadata:
        """The table's name, description, partitioning and properties, as the log has them."""
        return self._snapshot.metadata

    def protocol(self) -> Protocol:
        """What readers and writers of the table must understand."""
        return self._snapshot.protocol

    @property
    def properties(self) -> TableProperties:
        """The table properties, typed."""
        return self._snapshot.configuration.properties

    def domain_metadata(self) -> dict[str, Any]:
        """The configuration of each metadata domain, unknown ones too."""
        return {
            name: domain.configuration for name, domain in self._snapshot.domain_metadata.items()
        }

    def transaction_version(self, app_id: str) -> int | None:
        """How far an application has written; None if it has not."""
        found = self._snapshot.app_transactions.get(app_id)
        return None if found is None else found.version

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commits, newest first: version, timestamp (ms), operation and what it recorded.

        Cost: one request per commit, sent together.
        """
        return self._snapshot.history(as_limit(limit))

    def detail(self) -> dict[str, Any]:
        """What the table is, in one dictionary: Spark's `DESCRIBE DETAIL`.

        Cost: the sizes of all files, from the log.
        """
        return describe(self._snapshot)

    # --- its rows

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Rows of the table: streamed, counted, explained, or split into picklable tasks.

        Args:
            columns: names in the order wanted; `a.b` keeps only that part of the struct `a`;
                `_metadata.file_path`, `.row_index`, `.row_id`, `.row_commit_version`,
                `.file_modification_time` tell where a row lies. None is all columns of the table.
            predicate: an expression, a Spark-SQL condition, deltalake's filter tuples, or a
                pyarrow expression.
            parameters: values for `?` or `:name` in a SQL condition.
            limit: at most so many rows.

        Raises:
            InvalidInputError: an unknown column, or a predicate that is not understood.
            UnsupportedFeatureError: the rows of the table can't be honoured.

        Cost: none before a result is asked for.
        """
        return plan_scan(
            self._snapshot,
            columns=as_columns(columns),
            predicate=as_condition(self.schema(), predicate, parameters=parameters),
            limit=as_limit(limit),
        )

    def count(self) -> int:
        """Rows of the table, deleted ones left out.

        Cost: nothing is read where the log tells the rows of every file.
        """
        return self.scan().count()

    def to_pyarrow_dataset(
        self,
        partitions: Sequence[Any] | None = None,
        filesystem: Any = None,
        parquet_read_options: Any = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        file_pruning_predicate: Any = None,
    ) -> DeltaDataset:
        """The table as a `pyarrow.dataset.Dataset`, for DuckDB, Polars and pyarrow.

        Args:
            partitions: filter tuples; `''` matches null partition values.
            filesystem: refused; give it to the `DeltaTable`.
            parquet_read_options: refused; timestamps are read exactly as they are.
            schema: other Arrow types for the columns.
            as_large_types: large strings, binaries and lists.
            file_pruning_predicate: only rows for which it is true.
        """
        from deltalog.scan.dataset import DeltaDataset  # takes half a second

        refuse(filesystem=filesystem, parquet_read_options=parquet_read_options)
        schema = as_arrow_schema(schema, self.schema(), as_large_types=as_large_types)
        predicate = self._pruning(partitions, file_pruning_predicate)
        return DeltaDataset(self._snapshot, predicate=predicate, schema=schema)

    def to_pyarrow_table(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
    ) -> pa.Table:
        """The table's rows in memory.

        Args:
            partitions: filter tuples; `''` matches null partition values.
            columns: which, in this order; None is all.
            filesystem: refused; give it to the `DeltaTable`.
            filters: filter tuples, a pyarrow expression, or anything that `scan` takes.
        """
        refuse(filesystem=filesystem)
        return self._filtered(partitions, columns, filters).to_table()

    def to_pandas(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
        types_mapper: Any = None,
    ) -> pd.DataFrame:
        """The table's rows as a pandas data frame; arguments as in `to_pyarrow_table`."""
        refuse(filesystem=filesystem)
        return self._filtered(partitions, columns, filters).to_pandas(types_mapper=types_mapper)

    def to_polars(self, columns: Sequence[str] | None = None, filters: Any = None) -> pl.DataFrame:
        """The table's rows as a Polars data frame."""
        return self._filtered(None, columns, filters).to_polars()

    def to_duckdb(self, connection: Any = None) -> Any:
        """The table as a DuckDB relation, which reads only what a query needs."""
        return duckdb_relation(self.to_pyarrow_dataset(), connection)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table's rows for any library that takes Arrow streams."""
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
        """The changed rows of a range of versions, with what happened to them and when.

        Args:
            starting_version: the first version, 0 if no start is given.
            ending_version: the last version, included; the latest if no end is given.
            starting_timestamp: or the first version at or after this moment.
            ending_timestamp: or the last version at or before this moment.
            columns: of the table and `_change_type`, `_commit_version`, `_commit_timestamp`.
            predicate: a condition over the same columns.
            allow_out_of_range: a range after the latest version is empty instead of an error.

        Returns:
            Changes, which give batches, an Arrow reader, a table.

        Raises:
            VersionNotFoundError: the range is not in the log.
            ChangeDataFeedNotEnabledError: the feed was off in a version of the range.
            IncompatibleChangesError: the schema changed in between.
        """
        start = starting_version if starting_timestamp is None else starting_timestamp
        end = ending_version if ending_timestamp is None else ending_timestamp
        refuse_both(starting_version=starting_version, starting_timestamp=starting_timestamp)
        refuse_both(ending_version=ending_version, ending_timestamp=ending_timestamp)
        return open_changes(
            self._snapshot,
            start=0 if start is None else as_bound(start),
            end=None if end is None else as_bound(end),
            columns=as_columns(columns),
            predicate=predicate if predicate is None else self._changes_predicate(predicate),
            allow_out_of_range=allow_out_of_range,
        )

    def _filtered(
        self, partitions: Sequence[Any] | None, columns: Sequence[str] | None, filters: Any
    ) -> Scan:
        return plan_scan(
            self._snapshot,
            columns=as_columns(columns),
            predicate=as_condition(self.schema(), self._blanks_as_nulls(partitions), filters),
        )

    def _pruning(self, *conditions: Any) -> Expression | None:
        """All conditions of a call that lists files; `''` is null there, as in deltalake."""
        return as_condition(self.schema(), *map(self._blanks_as_nulls, conditions))

    def _blanks_as_nulls(self, filters: Any) -> Any:
        return with_blanks_as_nulls(filters, self._snapshot.configuration.partition_columns)

    def _changes_predicate(self, predicate: Any) -> Expression:
        fields = [Field(name, from_arrow_type(kind)) for name, kind in CHANGE_COLUMNS.items()]
        return as_expression(predicate, StructType([*self.schema(), *fields]))

    # --- its files

    def file_uris(
        self,
        partition_filters: Sequence[Any] | None = None,
        *,
        file_pruning_predicate: Any = None,
    ) -> list[str]:
        """Locations of the data files that may hold a matching row.

        Args:
            partition_filters: filter tuples, such as `[("year", "=", 2024)]`; a list of lists is
                an OR of ANDs. `''` matches null partition values.
            file_pruning_predicate: anything that `scan` takes as a predicate.

        Cost: the paths, and the statistics of the columns that the filters name.
        """
        predicate = self._pruning(partition_filters, file_pruning_predicate)
        return file_uris(self._snapshot, predicate)

    def partitions(
        self,
        partition_filters: Sequence[Any] | None = None,
        *,
        file_pruning_predicate: Any = None,
    ) -> list[dict[str, str | None]]:
        """The table's partitions that may hold a matching row, values as the log has them.

        Arguments are those of `file_uris`.
        """
        predicate = self._pruning(partition_filters, file_pruning_predicate)
        return partitions(self._snapshot, predicate)

    def get_add_actions(self, flatten: bool = False) -> pa.Table:  # noqa: FBT001, FBT002  # deltalake's signature
        """One row per data file: path, size, time, partition values, statistics.

        Args:
            flatten: a column for each statistic instead of structs.

        Cost: every statistic of every file.
        """
        return add_actions(self._snapshot, flatten=flatten)

    def deletion_vectors(self) -> pa.RecordBatchReader:
        """`filepath` and `selection_vector` (true: alive) of each file with deleted rows.

        Cost: one request per deletion vector.
        """
        return selection_vectors(self._snapshot)

    # --- doing verbs

    def do(
        self,
        verb: Verb[Any],
        *,
        dry_run: bool = False,
        on_conflict: Literal["retry", "raise"] = "retry",
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """Do a verb of `deltalog.verbs`; what it tells its caller.

        Args:
            verb: what is to be done.
            dry_run: only look what it would do.
            on_conflict: `raise` never stages it again where another writer won.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            progress: True for a bar, or told how many files of how many are read; what it raises
                ends the work, and leaves nothing behind.

        Returns:
            The verb's result; an empty dictionary if the application's transaction was in the
            table already.

        Raises:
            InvalidInputError: the table shows an old version.
        """
        if dry_run:
            from deltalog.verbs.do import preview

            return preview(verb, self._snapshot, self.engine)
        done = self.carry_out(
            verb,
            on_conflict=on_conflict,
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
            progress=progress,
        )
        return {} if done.outcome is None else done.outcome.result()

    def carry_out(
        self,
        verb: Verb[OutcomeT],
        *,
        on_conflict: Literal["retry", "raise"] = "retry",
        commit_properties: CommitProperties | None = None,
        hooks: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> VerbDone[OutcomeT]:
        """Do a verb, and show the version that it made; its outcome and its commit."""
        from deltalog.verbs.do import do

        self._check_latest(verb.name)
        first = [] if verb.needs_latest else [self._snapshot]
        done = do(
            verb,
            lambda: first.pop() if first else self._snapshot.refresh(),
            self.engine,
            on_conflict=on_conflict,
            commit_properties=commit_properties,
            hooks=hooks,
            progress=progress,
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
        """Stage one operation of `deltalog.verbs`, commit it, and show its version.

        The verbs below are this with their stage. For operations of your own it is as stable as
        the modules that it takes its pieces from.

        Args:
            operation: for the history.
            stage: plans the operation; called again on the newest version if another writer won.
            parameters: of the operation, for the history.
            refresh: whether to look for newer versions first; an append need not.
            on_conflict: `raise` never calls `stage` again.
            commit_properties: of the commit.
            hooks: what follows it.
            skip_empty: commit nothing where nothing was staged.

        Raises:
            InvalidInputError: the table shows an old version.
        """
        from deltalog.transaction.commit import Ran
        from deltalog.verbs.verb import Operation

        done = self.carry_out(
            Operation(
                name=operation,
                plan=stage,
                parameters=parameters,
                needs_latest=refresh,
                skips_empty=skip_empty,
            ),
            on_conflict=on_conflict,
            commit_properties=commit_properties,
            hooks=hooks,
        )
        value = None if done.outcome is None else done.outcome.value
        return Ran(value=value, committed=done.committed)

    def show(self, committed: Committed) -> None:
        """Stand on the version of a commit from now on."""
        self._snapshot = committed.snapshot
        self._travelled = False

    def transaction(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> TableTransaction:
        """Several operations in one commit: `with table.transaction() as tx: tx.append(…)`.

        All of them see the table as it was at the beginning.
        """
        from deltalog.table.transaction import TableTransaction

        self._check_latest("begin a transaction")
        return TableTransaction(self, commit_properties, post_commithook_properties)

    # --- changing rows

    def delete(
        self,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Delete the rows for which a predicate is true; all rows without one.

        Args:
            predicate: anything that `scan` takes.
            writer_properties: of files that are rewritten.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            parameters: values for `?` or `:name` in an SQL predicate.
            use_deletion_vectors: whether rows are marked instead of files rewritten; None
                chooses for each file by its cost where `delta.enableDeletionVectors` is set
                (`deltalog.maxDeletedRowsRatio`), and rewrites elsewhere.
            dry_run: only find the rows and files that would change.
            progress: True for a bar, or told how many files of how many are read; what it raises
                ends the work, and leaves nothing behind.

        Returns:
            Counts of rows and files, and times in milliseconds. A dry run also has `files`, an
            Arrow table of the files that would change: how, and why.

        Cost: the predicate's columns of the files that pruning leaves; then kilobytes of deletion
        vectors, or the files that hold such rows once more.
        """
        from deltalog.rows.files import FileOptions
        from deltalog.verbs.delete import Delete

        check_given(predicate)
        verb = Delete.where(
            predicate,
            parameters=parameters,
            use_deletion_vectors=use_deletion_vectors,
            files=FileOptions(writer_properties=writer_properties),
        )
        found: dict[str, Any] = self.do(
            verb,
            dry_run=dry_run,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
            progress=progress,
        )
        return found

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
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Give new values to the rows for which a predicate is true; to all rows without one.

        Args:
            updates: column → Spark SQL or expression, computed from the row as it was; a dotted
                name reaches into a struct.
            new_values: column → Python value; never read as SQL.
            predicate: anything that `scan` takes.
            writer_properties: of new files.
            error_on_type_mismatch: False makes NULL of what does not fit the column's type.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            parameters: values for `?` or `:name` in the predicate, for `:name` in `updates`.
            use_deletion_vectors: whether old rows are marked instead of files rewritten; None
                chooses for each file, as `delete` does.
            dry_run: only count the rows and files that would change.
            progress: as for `delete`.

        Returns:
            Counts of rows and files, and times in milliseconds. A dry run also has `files`, an
            Arrow table of the files that would change: how, and why.

        Raises:
            InvalidInputError: an unknown column, or one that cannot be assigned.
            ConstraintViolationError: new rows break a rule of the table.

        Cost: the predicate's columns of the files that pruning leaves; then all columns of the
        row groups with such rows, or of their files where there are no deletion vectors.
        """
        from deltalog.rows.files import FileOptions
        from deltalog.verbs.update import Update

        check_given(predicate)
        values = as_updates(updates, new_values, parameters)
        if predicate is None and updates and isinstance(parameters, Mapping):
            parameters = None  # they are for the new values
        verb = Update.where(
            predicate,
            values,
            parameters=parameters,
            error_on_type_mismatch=error_on_type_mismatch,
            use_deletion_vectors=use_deletion_vectors,
            files=FileOptions(writer_properties=writer_properties),
        )
        found: dict[str, Any] = self.do(
            verb,
            dry_run=dry_run,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
            progress=progress,
        )
        return found

    def merge(  # noqa: PLR0913, PLR0917  # deltalake's signature and some more
        self,
        source: object,
        predicate: str | Expression,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,  # noqa: FBT001, FBT002  # deltalake's
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,  # noqa: ARG002, FBT001, FBT002  # deltalake's: pruning never depends on it
        max_spill_size: int | None = None,  # noqa: ARG002  # deltalake's
        max_temp_directory_size: int | None = None,  # noqa: ARG002  # deltalake's
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> TableMerger:
        """Begin a merge: rows of a source change, remove and add rows of the table.

        Args:
            source: anything that `write_deltalake` takes; it may be larger than memory.
            predicate: Spark SQL or expression over both rows: which of them match.
            source_alias: of the source in SQL, besides `source`.
            target_alias: of the table in SQL, besides `target`.
            merge_schema: columns that only the source has are added to the table.
            error_on_type_mismatch: False makes NULL of what does not fit a column's type.
            writer_properties: of new files.
            streamed_exec: taken for deltalake's sake; the table is always streamed and pruned.
            max_spill_size: taken for deltalake's sake.
            max_temp_directory_size: taken for deltalake's sake.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            parameters: values for `:name` in SQL.
            use_deletion_vectors: whether old rows are marked instead of files rewritten; None
                chooses for each file, as `delete` does.
        """
        from deltalog.rows.changes import RowChanges
        from deltalog.rows.files import FileOptions
        from deltalog.table.merge import TableMerger, check_condition
        from deltalog.verbs.merge import Merge

        changes = RowChanges(
            condition=check_condition(predicate),
            clauses=(),
            source=source,
            source_alias=source_alias,
            target_alias=target_alias,
            merge_schema=merge_schema,
            error_on_type_mismatch=error_on_type_mismatch,
            parameters=parameters,
            use_deletion_vectors=use_deletion_vectors,
            files=FileOptions(writer_properties=writer_properties),
        )
        return TableMerger(
            self,
            Merge(changes),
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )

    def upsert(
        self,
        data: object,
        key: str | Sequence[str],
        *,
        null_safe: bool = False,
        merge_schema: bool = False,
        commit_properties: CommitProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Rows replace those of the table that have the same key; the others are added.

        Args:
            data: anything that `write_deltalake` takes.
            key: the columns that identify a row.
            null_safe: NULL is a key like any other; otherwise rows without a key are added.
            merge_schema: columns that only the data has are added to the table.
            commit_properties: of the commit.
            progress: as for `delete`.
        """
        from deltalog.table.merge import TableMerger
        from deltalog.verbs.merge import upsert

        verb = upsert(data, key, null_safe=null_safe, merge_schema=merge_schema)
        return TableMerger(self, verb, commit_properties=commit_properties).execute(
            progress=progress
        )

    def truncate(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Remove all rows; nothing is read for it.

        Returns:
            Count and size of the files that left the table.
        """
        from deltalog.verbs.truncate import Truncate

        found = self.do(
            Truncate(),
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        return {"num_removed_files": 0, "num_removed_bytes": 0, **found}

    def write_spec(
        self,
        *,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> WriteSpec:
        """What `write_files` needs to know on another machine; it can be pickled."""
        from deltalog.rows.files import FileOptions

        options = FileOptions(
            target_file_size_bytes=target_file_size,
            writer_properties=writer_properties,
        )
        return options.spec(self._context, self._snapshot.configuration)

    def commit(
        self,
        written: WrittenFiles | Sequence[WrittenFiles],
        *,
        mode: Literal["append", "overwrite"] = "append",
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> int:
        """Commit what `write_files` has written, on whatever machines.

        Args:
            written: of one worker or of many.
            mode: `append`, or `overwrite`: every row that was there goes.
            commit_properties: of the commit; with application transactions a repeated call is
                skipped.
            post_commithook_properties: what follows it.

        Returns:
            The new version.

        Raises:
            InvalidInputError: the files were written for another table or schema.
            CommitFailedError: another writer won; the files stay, and may be committed again.
        """
        from deltalog.verbs.write import CommitFiles
        from deltalog.write.written import WrittenFiles

        parts = [written] if isinstance(written, WrittenFiles) else list(written)
        done = self.carry_out(
            CommitFiles(parts=parts, mode=mode),
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
        )
        return done.committed.version

    # --- changing and keeping the table

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
        """Set the configuration of a metadata domain of yours; the table needs `domainMetadata`."""
        from deltalog.verbs.alter import SetDomainMetadata

        self.do(
            SetDomainMetadata(domain, configuration),
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )

    def remove_domain_metadata(
        self,
        domain: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove a metadata domain of yours."""
        from deltalog.verbs.alter import RemoveDomainMetadata

        self.do(
            RemoveDomainMetadata(domain),
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )

    @property
    def optimize(self) -> TableOptimizer:
        """The same rows in better files: `compact`, `z_order`, `cluster`, `purge`."""
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
        inventory: object = None,
        progress: Progress | None = None,
    ) -> list[str]:
        """Delete files that no version within the retention needs; by default only name them.

        Live files stay, and so do files that left the table within the retention, with their
        deletion vectors; and whatever is younger than that, since a writer under way may need it.
        Versions older than the retention can't be read afterwards.

        Args:
            retention_hours: how long removed files stay; None is what the table says
                (`delta.deletedFileRetentionDuration`, a week by default).
            dry_run: delete nothing.
            enforce_retention_duration: whether a shorter time than the table's is refused.
            commit_properties: of the two commits that say in the history what was deleted.
            post_commithook_properties: what follows them.
            full: list all files below the root, and find what failed writes have left as well;
                otherwise only files are found that the log says have left the table.
            keep_versions: versions that stay readable, whatever their age.
            inventory: a table of all files (`path`, `length`, `modificationTime`, `isDir`) in any
                form that `write_deltalake` takes, to be used instead of a listing.
            progress: True for a bar, or told after each batch how many files of how many are
                deleted; what it raises ends the deletion.

        Returns:
            The paths of the files, relative to the root. `vacuum_report()` tells more.

        Raises:
            InvalidInputError: the time is too short or negative, or this object shows an old
                version.
            DeltaProtocolError: the table needs something of writers that deltalog does not know.

        Protocol: Vacuum Protocol Check
        Cost: commits behind the last such vacuum; with `full`, a listing of the whole table.
        """
        from deltalog.table.vacuum import TableVacuum

        self._check_latest("vacuum")
        vacuum = TableVacuum(self)
        plan = vacuum.plan(
            retention_hours,
            enforce_retention_duration=enforce_retention_duration,
            full=full,
            keep_versions=keep_versions,
            inventory=inventory,
        )
        if dry_run:
            return plan.paths
        return vacuum.carry_out(
            plan,
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
            progress=progress,
        )

    def vacuum_report(
        self,
        retention_hours: float | None = None,
        *,
        enforce_retention_duration: bool = True,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: object = None,
    ) -> pa.Table:
        """What `vacuum` would delete, with sizes and reasons.

        Args:
            retention_hours: as for `vacuum`; so are the others.
            enforce_retention_duration: as for `vacuum`.
            full: as for `vacuum`.
            keep_versions: as for `vacuum`.
            inventory: as for `vacuum`.

        Returns:
            One row per file: `path`, `size_bytes`, `modification_time` (both may be NULL where
            only the log was read) and `reason`.
        """
        from deltalog.table.vacuum import TableVacuum

        self._check_latest("vacuum")
        return (
            TableVacuum(self)
            .plan(
                retention_hours,
                enforce_retention_duration=enforce_retention_duration,
                full=full,
                keep_versions=keep_versions,
                inventory=inventory,
            )
            .files
        )

    def restore(
        self,
        target: int | datetime | str,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Make the table what it was at a version or a moment, by a new version.

        Args:
            target: number, timestamp text (ISO 8601; without a zone: UTC) or datetime.
            ignore_missing_files: restore what is left where vacuum has deleted files.
            protocol_downgrade_allowed: whether table features that came later go.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.

        Returns:
            Counts and sizes of files that came back and that went.

        Raises:
            VersionNotFoundError: the version is not there.
            DataFileMissingError: vacuum has deleted files of that version.

        Cost: paths of both versions, and a request for each file that comes back. Only the
        difference is committed.
        """
        from deltalog.verbs.restore import Restore

        self.update_incremental()
        as_bound(target)  # None is nothing to go back to
        verb = Restore(
            target=self._load(target),
            asked=target,
            ignore_missing_files=ignore_missing_files,
            protocol_downgrade_allowed=protocol_downgrade_allowed,
        )
        found: dict[str, Any] = self.do(
            verb,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        return found

    def repair(
        self,
        dry_run: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Remove files from the table that the store has lost.

        Args:
            dry_run: only look.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.

        Returns:
            `dry_run`, `files_removed`, and `files_without_deletion_vector`: files that nobody can
            read since it is not known which of their rows are deleted. Those stay in the table.

        Cost: one listing of the table.
        """
        from deltalog.verbs.repair import Repair

        self._check_latest("repair")
        if dry_run:
            self.update_incremental()
        found = self.do(
            Repair(),
            dry_run=dry_run,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        return found or {"dry_run": False, "files_removed": []}

    def clone(  # each is the caller's choice
        self,
        target: str | PurePath | Store,
        *,
        shallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        storage_options: StorageOptions | None = None,
        filesystem: Any = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Make another table of the version that this object shows.

        Args:
            target: where.
            shallow: name this table's files instead of copying them. They must be there as long
                as the clone is read: vacuum here does not know of it.
            replace: whether a table at the target may be replaced; it keeps its history. Cloned
                again, a table gets the difference: only files that it lacks are copied.
            properties: set on the clone besides this table's.
            storage_options: of the target, as for `DeltaTable`.
            filesystem: of the target, as for `DeltaTable`.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            progress: True for a bar, or told after each file how many of how many are copied.

        Returns:
            The clone. Rows have new row ids there.

        Raises:
            TableExistsError: there is a table, and `replace` is False.
        """
        from deltalog.table.creating import clone_table

        store, at = open_table_store(target, storage_options, filesystem)
        if at is not None:
            raise InvalidInputError(f"cannot clone to {target!r}: it names a version")
        check_elsewhere(target, store.root, self.table_uri)
        context = clone_table(
            self._snapshot,
            store,
            self.engine,
            is_shallow=shallow,
            replaces=replace,
            properties=properties,
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
            progress=progress,
        )
        return type(self).from_context(context, self._engine)

    def generate(self) -> None:
        """Write symlink manifests of the version that this object shows.

        Engines that read Parquet and know no Delta find the live files there; the manifests do
        not change with the table.

        Raises:
            InvalidInputError: files have deletion vectors.
        """
        from deltalog.verbs.generate import generate_symlink_manifest

        generate_symlink_manifest(self._snapshot)

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version that this object shows.

        Cost: every column of the log's files, once; see `deltalog.upkeep`.
        """
        from deltalog.upkeep import create_checkpoint

        create_checkpoint(self._snapshot)

    def cleanup_metadata(self) -> list[str]:
        """Delete log files that are older than `delta.logRetentionDuration` and not needed.

        Returns:
            What was deleted, relative to the table.
        """
        from deltalog.upkeep import cleanup_metadata

        # The newest version decides, also where this object shows an old one.
        return cleanup_metadata(self._snapshot.refresh())

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write one compacted log file for a range of commits; the commits stay."""
        from deltalog.upkeep import compact_logs

        compact_logs(self._snapshot, starting_version, ending_version)

    # --- what differs, what is wrong, what comes

    def diff(
        self,
        before: int | str | datetime,
        after: int | str | datetime | None = None,
        *,
        key: str | Sequence[str] = (),
        columns: Sequence[str] | None = None,
    ) -> TableDiff:
        """What differs between two versions: rows, schema, settings. No change feed is needed.

        Args:
            before: version, timestamp text (ISO 8601) or datetime.
            after: likewise; None is the version that this object shows.
            key: columns that identify a row. Without them rows are known by their row ids, if
                both versions have them; otherwise a changed row is one removed and one added.
            columns: only these are compared and shown; None is all.

        Returns:
            A `TableDiff`: rows with `_change_type`, and tables of schema and setting changes.

        Raises:
            VersionNotFoundError: a version is not there.
            InvalidInputError: unknown columns.

        Cost: files that both versions have with the same deletion vector are not read.
        """
        from deltalog.insight.diff import diff_snapshots

        return diff_snapshots(
            self._load(before),
            self._snapshot if after is None else self._load(after),
            key=as_columns([key] if isinstance(key, str) else key) or (),
            columns=as_columns(columns),
        )

    def doctor(
        self,
        *,
        checks: Sequence[str] | str | None = None,
        samples: int = 8,
        progress: Progress | None = None,
    ) -> Report:
        """Look at the table from all sides and say what is wrong, how bad, and what to do.

        The log against the protocol, features against properties, checkpoints and checksums
        against the log, statistics against samples of the data, deletion vectors, files that are
        gone or too many, and which engines can read and write the table.

        Args:
            checks: names of checks, or one; None is all.
            samples: how many data files and deletion vectors are read.
            progress: True for a bar, or told after each check how many of how many are done.

        Returns:
            A `Report`: `findings`, `is_healthy`, `to_table()`.

        Cost: two listings, the newest commits, the newest checkpoints, and the samples.
        """
        from deltalog.insight.doctor import examine

        check_number("samples", samples)
        with shown(progress, "examining") as tell:
            return examine(
                self._context,
                snapshot=self._snapshot,
                checks=[checks] if isinstance(checks, str) else checks,
                num_samples=samples,
                progress=tell,
            )

    def follow(  # noqa: PLR0913  # each is the caller's choice
        self,
        start: Offset | Mapping[str, Any] | int | str | datetime | None = None,
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
        """What is in the table, then what comes, in steps: each row once.

        `for step in table.follow()` waits for what comes, and so does `async for`; `available()`
        ends where nothing is left. A step gives rows as a scan does; when they are dealt with,
        `step.offset.to_json()` is to be stored, and `start` takes it back.

        Args:
            start: a stored offset; or a version, timestamp text or datetime, with whose changes
                to start; `latest` starts with what comes. None gives all rows first.
            changes: give the change data feed (`_change_type` and so on) instead of new rows.
            columns: which; None is all.
            predicate: anything that `scan` takes.
            max_files_per_step: most files of a step.
            max_bytes_per_step: most bytes of a step, though one file at least.
            ignore_deletes: pass over commits that only delete.
            ignore_changes: give all rows of rewritten files, unchanged ones among them.
            skip_change_commits: pass over commits that delete or rewrite.
            on_schema_change: `raise` stops before the first row of another schema, and a new
                follower goes on from the offset; `evolve` goes on.
            poll_seconds: how long to wait when there is nothing new.
            clock: lets time pass.

        Raises:
            InvalidInputError: an offset of another table, or unknown columns.
            VersionNotFoundError: the version is not there.

        Cost: one listing per look, one request per commit, and the files whose rows are asked for.
        """
        from deltalog.insight.follow import Follower
        from deltalog.insight.follow_steps import FollowOptions

        self.update_incremental()

        def condition(snapshot: Snapshot) -> Expression | None:
            return as_condition(snapshot.configuration.schema, predicate)

        return Follower(
            self._snapshot,
            start=_as_start(start),
            options=FollowOptions(
                changes=changes,
                columns=as_columns(columns),
                predicate=None if predicate is None else condition,
                max_files=max_files_per_step,
                max_bytes=max_bytes_per_step,
                ignore_deletes=ignore_deletes,
                ignore_changes=ignore_changes,
                skip_change_commits=skip_change_commits,
                on_schema_change=on_schema_change,
                poll_seconds=poll_seconds,
            ),
            clock=clock,
        )

    # --- how it looks

    def __repr__(self) -> str:
        """Where, which version, how many columns."""
        return (
            f"DeltaTable({self.table_uri!r}, version {self.version()}, "
            f"{len(self.schema())} columns)"
        )

    def _repr_html_(self) -> str:
        """The notebook card."""
        return card(self._snapshot)

    if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves

        def __getattr__(self, name: str) -> NoReturn:
            """Point to what replaced a name that deltalake dropped, or to what was meant."""
            raise AttributeError(explain_missing(name, dir(type(self))))


def _as_start(
    start: Offset | Mapping[str, Any] | int | str | datetime | None,
) -> Offset | int | Moment | Literal["latest"] | None:
    """A start in any form that people store it in."""
    from deltalog._json import dumps
    from deltalog.insight.follow_steps import Offset

    if start is None or isinstance(start, Offset):
        return start
    if isinstance(start, str):
        if start == "latest":
            return "latest"
        return Offset.from_json(start) if start.lstrip().startswith("{") else as_bound(start)
    if isinstance(start, Mapping):
        return Offset.from_json(dumps(dict(start)))
    if isinstance(start, bool):
        raise InvalidInputError(f"cannot follow from {start!r}: expected a version or an offset")
    return as_bound(start)
