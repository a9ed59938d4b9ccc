"""The reading half of `DeltaTable`.

Owns the current snapshot of one table and hands every question to the room that answers it; each
method is a few lines. Names and meanings are `deltalake`'s where the meaning is the same.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from deltalog.arguments import (
    as_arrow_schema,
    as_bound,
    as_columns,
    as_condition,
    as_limit,
    as_timestamp_ms,
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
from deltalog.scan.changes import CHANGE_COLUMNS, Changes, open_changes
from deltalog.scan.files import add_actions, file_uris, partitions, selection_vectors
from deltalog.scan.plan import Scan, plan_scan
from deltalog.scan.rows import duckdb_relation
from deltalog.schema import Field, StructType, from_arrow_type
from deltalog.snapshot import load_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import PurePath

    import pandas as pd
    import polars as pl

    from deltalog.actions.model import Metadata, Protocol
    from deltalog.actions.properties import TableProperties
    from deltalog.catalog import LogTail
    from deltalog.expressions import Expression
    from deltalog.scan.dataset import DeltaDataset
    from deltalog.schema import Schema
    from deltalog.snapshot import Snapshot
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store


class ReadingTable:
    """Everything that `DeltaTable` tells of one snapshot; arguments are explained there."""

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
        if version is not None and at is not None:
            raise InvalidInputError(
                f"cannot open {self.table_uri} at {version!r}: its location names a version "
                "already; give one of them"
            )
        wanted = version if version is not None else at
        self._travelled = wanted is not None
        self._snapshot = self._load(wanted)

    @staticmethod
    def is_deltatable(
        table_uri: str | PurePath, storage_options: StorageOptions | None = None
    ) -> bool:
        """Whether a Delta table is at this location, be it one that can be read or not.

        Cost: one listing, which ends at the first commit.
        """
        return has_table(open_table_store(table_uri, storage_options, filesystem=None)[0])

    @property
    def snapshot(self) -> Snapshot:
        """The version that this object shows now; it never changes itself."""
        return self._snapshot

    @property
    def table_uri(self) -> str:
        """Where the table is."""
        return self._context.store.root

    def version(self) -> int:
        """The version that this object shows."""
        return self._snapshot.version

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

    def _pruning(self, *conditions: Any) -> Expression | None:
        """All conditions of a call that lists files; `''` is null there, as in deltalake."""
        return as_condition(self.schema(), *map(self._blanks_as_nulls, conditions))

    def _blanks_as_nulls(self, filters: Any) -> Any:
        return with_blanks_as_nulls(filters, self._snapshot.configuration.partition_columns)

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

    def _filtered(
        self, partitions: Sequence[Any] | None, columns: Sequence[str] | None, filters: Any
    ) -> Scan:
        return plan_scan(
            self._snapshot,
            columns=as_columns(columns),
            predicate=as_condition(self.schema(), self._blanks_as_nulls(partitions), filters),
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table's rows for any library that takes Arrow streams."""
        return self.scan().__arrow_c_stream__(requested_schema)

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

    def _changes_predicate(self, predicate: Any) -> Expression:
        fields = [Field(name, from_arrow_type(kind)) for name, kind in CHANGE_COLUMNS.items()]
        return as_expression(predicate, StructType([*self.schema(), *fields]))

    def detail(self) -> dict[str, Any]:
        """What the table is, in one dictionary: Spark's `DESCRIBE DETAIL`.

        Cost: the sizes of all files, from the log.
        """
        return describe(self._snapshot)

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
