"""A shared table with the reading methods of `DeltaTable`.

This module contains the methods' names and arguments; `data.scan` plans and reads. The client
applies every predicate and limit to the rows, because the server may ignore hints.

Protocol: Read Data from a Table, Query Table Metadata, Query Table Version
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, overload

from deltalog._util.argument_types import checks_types, kind_of, wrong_argument
from deltalog._util.cards import card, folding, grid, plain
from deltalog._util.clock import now_ms, utc_moment
from deltalog._util.readable import counted
from deltalog._util.similar_names import NoSequence, SimilarNames, suggests_arguments
from deltalog.data.scan.file_reports import add_actions, file_uris, partitions
from deltalog.data.scan.plan import plan_scan
from deltalog.data.scan.polars_files import lazy_frame
from deltalog.data.scan.rows import DtypeBackend, duckdb_relation, duckdb_selection
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions.sql_session import SqlSession
from deltalog.operations.arguments import (
    as_arrow_schema,
    as_columns,
    as_condition,
    as_limit,
    with_blanks_as_nulls,
)
from deltalog.schema.columns import naming_the_attempt
from deltalog.sharing.client.follow import (
    SharedChanges,
    SharedFollower,
    SharedFollowOptions,
    load_changes,
    no_changes,
)
from deltalog.sharing.client.profile import parse_table_name, parse_table_url, read_profile
from deltalog.sharing.client.rest import AsyncRestClient
from deltalog.sharing.client.shown_version import (
    Conditions,
    ShownVersion,
    VersionOrTimestamp,
    as_json_hint,
    as_version,
)
from deltalog.sharing.client.snapshots import SharedScan, table_root
from deltalog.sharing.wire.lines import Table
from deltalog.sharing.wire.requests import ChangesQuery
from deltalog.storage.http.client import HttpOptions, run
from deltalog.table.inspect.follow import Offset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from deltalog.data.scan.dataset import DeltaDataset
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions.model import Metadata, Protocol
    from deltalog.schema import Schema
    from deltalog.sharing.client.answers import VersionHead
    from deltalog.sharing.client.profile import ProfileSource

    Parameters = Sequence[object] | Mapping[str, object] | None


_MEANT: Final = {
    **dict.fromkeys(("filter", "where", "query", "limit", "take"), "scan(predicate=…, limit=…)"),
    **dict.fromkeys(("load_as_pandas", "load"), "to_pandas()"),
    **dict.fromkeys(
        ("to_spark", "toSpark", "load_as_spark"), "deltalog.spark, which reads shared tables"
    ),
    **dict.fromkeys(("changes", "cdf", "read_changes"), "load_cdf(starting_version=…)"),
    **dict.fromkeys(("show", "display", "print"), "print(table.scan(limit=…).to_polars())"),
    **dict.fromkeys(
        ("sql", "group_by", "groupby", "groupBy", "join"), "deltalog.sql(query, t=table)"
    ),
    **dict.fromkeys(("column_names", "names", "printSchema"), "schema()"),
    **dict.fromkeys(("refresh", "reload"), "update_incremental()"),
    **dict.fromkeys(("select", "project", "read"), "scan(columns, predicate=…)"),
    **dict.fromkeys(("rows", "collect", "to_table"), "to_arrow()"),
    **dict.fromkeys(("toDF", "toPandas", "to_df", "df"), "to_pandas()"),
    **dict.fromkeys(("columns", "dtypes", "fields"), "schema()"),
    **dict.fromkeys(("len", "num_rows", "shape"), "count()"),
    **dict.fromkeys(
        ("history", "versions"),
        "version() and latest_version(), or load_cdf(…) for changed rows; servers do not share the "
        "commits",
    ),
    **dict.fromkeys(
        (
            "delete",
            "update",
            "merge",
            "upsert",
            "write",
            "append",
            "alter",
            "transaction",
            "overwrite",
            "truncate",
            "repair",
            "clone",
            "appender",
            "optimize",
            "vacuum",
            "restore",
        ),
        "a table of your own, such as write_deltalake(location, rows); shares are read-only",
    ),
}
"""What to use instead of names of other libraries."""


@checks_types
@suggests_arguments
class SharedTable(SimilarNames, NoSequence):
    """A table of a share, read through a sharing server.

    The object shows one version until `update_incremental` is called. If the server does not share
    the table's history, it returns only the latest version. After a commit, the object then shows
    the new version.

    Args:
        table: `<profile>#<share>.<schema>.<table>`, or `<share>.<schema>.<table>` with `profile` or
            `client`.
        version: number, timestamp string, datetime or date of the shown version; the server must
            share its history.
        profile: profile of the server (see `read_profile`), if `table` does not contain one.
        options: options of the connections.
        client: an open client, instead of a profile.
        default_timezone: the zone of partition values that have no zone.

    Raises:
        InvalidInputError: the URL or the profile is malformed.

    Cost: no request until the first method is called.
    """

    _meant = _MEANT
    _frames = "to_polars() or to_pandas()"
    _counted = "count()"
    _items = (
        "to_pandas() for a dataframe, to_pyarrow_table() for columns, or "
        "to_pyarrow_table().to_pylist() for rows"
    )

    def __init__(
        self,
        table: str | Table,
        version: int | str | datetime | date | None = None,
        *,
        profile: ProfileSource | None = None,
        options: HttpOptions | None = None,
        client: AsyncRestClient | None = None,
        default_timezone: str = "UTC",
    ) -> None:
        given: Any = table
        if not isinstance(given, str | Table) and (profile is not None or client is not None):
            raise InvalidInputError(
                f"cannot open a shared table with {kind_of(given)} as its name: expected "
                "'<share>.<schema>.<table>' and then the profile"
            )
        if isinstance(table, str):
            if profile is None and client is None:
                profile, table = parse_table_url(table)
            else:
                table = parse_table_name(table)
        other: Any = client
        if other is not None and not isinstance(other, AsyncRestClient):
            expected = "a client of this table's server, such as SharingClient(profile).rest"
            raise wrong_argument("SharedTable", "client", other, expected)
        if client is None:
            if profile is None:
                # Not the value itself, which may be a profile with its token.
                shown = repr(given) if isinstance(given, Table) else kind_of(given)
                raise InvalidInputError(
                    f"cannot open a shared table with {shown}: expected also a profile or a "
                    "client, or the string '<profile>#<share>.<schema>.<table>' alone"
                )
            client = AsyncRestClient(read_profile(profile), options)
        self._shown = ShownVersion(
            client, table, as_version(version=version), time_zone=default_timezone
        )

    @property
    def name(self) -> str:
        """Return the name as `share.schema.table`."""
        return self._shown.table.full_name

    @property
    def table_uri(self) -> str:
        """Return the server's endpoint and the table's name."""
        return table_root(self.client.profile.endpoint, self._shown.table)

    @property
    def client(self) -> AsyncRestClient:
        """Return the client of the server."""
        return self._shown.client

    def version(self) -> int:
        """Return the version that this object shows."""
        return self._shown.head.version

    def schema(self) -> Schema:
        """Return the table's schema."""
        return self._shown.configuration.schema

    @property
    def head(self) -> VersionHead:
        """Return version, protocol and metadata of the shown version, without its files.

        Cost: one query, the first time.
        """
        return self._shown.head

    def metadata(self) -> Metadata:
        """Return name, description, partitioning and properties, if the server sends them."""
        return self._shown.head.metadata

    def protocol(self) -> Protocol:
        """Return the table's protocol; for the format `parquet`, the lowest sufficient one."""
        return self._shown.head.protocol

    @property
    def snapshot(self) -> Snapshot:
        """Return a snapshot of the version with all of its files.

        Cost: one query without hints, the first time.
        """
        return self._shown.snapshot

    def load_as_version(self, version: int | str | datetime | date) -> None:
        """Show another version: a number, an ISO 8601 string, a datetime or a date."""
        self._shown = self._shown_at(as_version(version=version))

    def update_incremental(self) -> None:
        """Show the latest version."""
        self._shown = self._shown_at(VersionOrTimestamp())

    def latest_version(self, starting_timestamp_ms: int | None = None) -> int:
        """Return the latest version of the table, or the first version at or after a time.

        Cost: one small request.
        """
        return run(self.client.table_version, self._shown.table, starting_timestamp_ms)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        *,
        parameters: Parameters = None,
        limit: int | None = None,
        version: int | None = None,
        timestamp: str | datetime | date | None = None,
        json_predicate_hints: str | None = None,
    ) -> SharedScan:
        """Return a scan, which can stream or count rows, explain its plan, or yield tasks.

        Args:
            columns: names in the order of the result; `a.b` selects only the field `b` of the
                struct `a`.
            predicate: anything that `DeltaTable.scan` accepts. It is sent to the server as hints,
                and the client filters the rows.
            parameters: values for `?` or `:name` in a SQL condition.
            limit: maximum number of rows to return.
            version: the version to read, instead of the shown version.
            timestamp: read the version that was current at this time.
            json_predicate_hints: a predicate in the protocol's JSON. It is sent to the server
                unchanged, and the client filters the rows with it.

        Raises:
            InvalidInputError: a column does not exist, or a predicate is malformed.
            SharingError: the server refuses the request, such as time travel without shared
                history.

        Cost: one query, unless all files are already known. Data files are read when rows are
            requested.
        """
        at = as_version(version=version, timestamp=timestamp)
        hint = None if json_predicate_hints is None else as_json_hint(json_predicate_hints)
        return self._scan(
            columns,
            [hint, predicate],
            parameters=parameters,
            limit=as_limit(limit),
            at=None if at.is_latest else at,
            json_hint=json_predicate_hints,
        )

    def count(self, predicate: Any = None, *, parameters: Parameters = None) -> int:
        """Return the number of rows, or of the rows for which a predicate is true.

        Cost: one query; data files are read only if the server sends no statistics for them, or if
            only some of their rows may match.
        """
        return self.scan(predicate=predicate, parameters=parameters).count()

    def to_pyarrow_dataset(
        self,
        partitions: Sequence[Any] | None = None,
        schema: pa.Schema | None = None,
        *,
        as_large_types: bool = False,
        file_pruning_predicate: Any = None,
    ) -> DeltaDataset:
        """Return the table as a `pyarrow.dataset.Dataset`, for DuckDB, Polars and pyarrow.

        The dataset shows one version: the client requests all files of this version, and prunes
        them.

        Args:
            partitions: filter tuples; `''` matches null partition values.
            schema: Arrow types for the columns, instead of the default types.
            as_large_types: whether to return Arrow's large strings, binaries and lists.
            file_pruning_predicate: a predicate; the dataset contains only rows for which it is
                true.
        """
        from deltalog.data.scan.dataset import DeltaDataset  # noqa: PLC0415  # slow to import

        snapshot = self.snapshot
        with naming_the_attempt("make a dataset of", self.table_uri):
            schema = as_arrow_schema(schema, self.schema(), as_large_types=as_large_types)
            predicate = self._pruning(partitions, file_pruning_predicate)
        return DeltaDataset(snapshot, predicate=predicate, schema=schema)

    def to_pyarrow_table(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filters: Any = None,
        *,
        parameters: Parameters = None,
    ) -> pa.Table:
        """Return the rows in memory; the arguments are those of `DeltaTable.to_pyarrow_table`."""
        given = [self._blanks_as_nulls(partitions), filters]
        return self._scan(columns, given, parameters=parameters).to_table()

    def to_arrow(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filters: Any = None,
        *,
        parameters: Parameters = None,
    ) -> pa.Table:
        """Return the rows in memory; another name of `to_pyarrow_table`."""
        return self.to_pyarrow_table(partitions, columns, filters, parameters=parameters)

    def to_pandas(
        self,
        partitions: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        filters: Any = None,
        types_mapper: Any = None,
        *,
        dtype_backend: DtypeBackend | None = None,
        parameters: Parameters = None,
    ) -> pd.DataFrame:
        """Return the rows as a pandas dataframe; see `DeltaTable.to_pandas` for the arguments."""
        given = [self._blanks_as_nulls(partitions), filters]
        scan = self._scan(columns, given, parameters=parameters)
        return scan.to_pandas(dtype_backend, types_mapper=types_mapper)

    @overload
    def to_polars(
        self, columns: Sequence[str] | None = ..., filters: Any = ..., *, lazy: Literal[False] = ...
    ) -> pl.DataFrame: ...

    @overload
    def to_polars(
        self, columns: Sequence[str] | None = ..., filters: Any = ..., *, lazy: Literal[True]
    ) -> pl.LazyFrame: ...

    def to_polars(
        self, columns: Sequence[str] | None = None, filters: Any = None, *, lazy: bool = False
    ) -> pl.DataFrame | pl.LazyFrame:
        """Return the rows as a Polars dataframe.

        Args:
            columns: see `scan`.
            filters: a predicate.
            lazy: whether to return a lazy frame, as in `DeltaTable`. It shows one version: the
                client requests all files of this version now, and prunes them later.
        """
        if not lazy:
            return self._scan(columns, [filters]).to_polars()
        with naming_the_attempt("read", self.table_uri):
            condition = self._pruning(None, filters)
            return lazy_frame(self.snapshot, columns=as_columns(columns), predicate=condition)

    def to_duckdb(
        self, connection: Any = None, columns: Sequence[str] | None = None, filters: Any = None
    ) -> Any:
        """Return the table as a DuckDB relation; queries read only the data that they need."""
        if columns is None and filters is None:
            return duckdb_relation(self.to_pyarrow_dataset(), connection)
        rows = self.to_pyarrow_dataset(file_pruning_predicate=filters)
        return duckdb_selection(self._scan(columns, [filters]), rows, connection)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows for any library that accepts Arrow streams."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def load_cdf(  # noqa: PLR0917  # DeltaTable's signature
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | date | None = None,
        ending_timestamp: str | datetime | date | None = None,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        allow_out_of_range: bool = False,  # noqa: FBT001, FBT002  # DeltaTable's signature
    ) -> SharedChanges:
        """Return the changed rows of a range of versions, with change type, version and time.

        Arguments, results and errors are those of `DeltaTable.load_cdf`, except that this method
        raises `SharingError` if the server refuses the range.

        Cost: one request for the changes and one for the table's schema.
        """
        start = as_version(
            starting_version=starting_version, starting_timestamp=starting_timestamp, default=0
        )
        end = as_version(ending_version=ending_version, ending_timestamp=ending_timestamp)
        names = as_columns(columns)
        shown = self._shown.head
        attempt = naming_the_attempt("read the changes of", self.table_uri)
        # The server returns an error for a range that begins after the latest version.
        if allow_out_of_range:
            latest = self.latest_version()
            if start.is_after(latest):
                with attempt:
                    return no_changes(
                        self.client,
                        self._shown.table,
                        shown,
                        columns=names,
                        time_zone=self._shown.time_zone,
                    )
            end = VersionOrTimestamp(version=latest) if end.is_after(latest) else end
        query = ChangesQuery(
            starting_version=start.version,
            starting_timestamp_ms=start.timestamp_ms,
            ending_version=end.version,
            ending_timestamp_ms=end.timestamp_ms,
            include_historical_metadata=True,
        )
        with attempt:
            return load_changes(
                self.client,
                self._shown.table,
                query,
                shown,
                columns=names,
                predicate=predicate,
                time_zone=self._shown.time_zone,
            )

    def follow(
        self,
        start: Offset | int | str | datetime | date | None = None,
        *,
        options: SharedFollowOptions | None = None,
    ) -> SharedFollower:
        """Return an iterator over all rows, then over later rows. Requires shared history.

        Args:
            start: the offset of an earlier step; or the first version or time whose changes are
                returned; or `latest` for later changes only. If None, the first step returns all
                rows of the table.
            options: which rows to return, and how often to ask the server.
        """
        begin: Offset | VersionOrTimestamp | Literal["latest"] | None
        if start is None or isinstance(start, Offset):
            begin = start
        else:
            begin = "latest" if start == "latest" else as_version(start=start)
        return SharedFollower(self._shown_at(VersionOrTimestamp()), start=begin, options=options)

    def file_uris(
        self,
        partition_filters: Sequence[Any] | None = None,
        *,
        file_pruning_predicate: Any = None,
    ) -> list[str]:
        """Return the URIs (table URI and file id) of the files that may contain a matching row."""
        with naming_the_attempt("list the files of", self.table_uri):
            predicate = self._pruning(partition_filters, file_pruning_predicate)
        return file_uris(self.snapshot, predicate)

    def partitions(
        self, partition_filters: Sequence[Any] | None = None
    ) -> list[dict[str, str | None]]:
        """Return the partitions that may have a matching row; values are strings, as in the log.

        They are sorted by the values of their columns; NULL is first.
        """
        with naming_the_attempt("list the partitions of", self.table_uri):
            predicate = self._pruning(partition_filters)
        return partitions(self.snapshot, predicate)

    def files(self) -> pa.Table:
        """Return one row per file: path (from its id), size, time, partition values, statistics."""
        return self.get_add_actions()

    def get_add_actions(self, *, flatten: bool = False) -> pa.Table:
        """Return one row per file, as in `DeltaTable`; the paths are made from file ids."""
        return add_actions(self.snapshot, flatten=flatten)

    def __repr__(self) -> str:
        """Show the server and the table."""
        return f"SharedTable({self.table_uri!r})"

    def _repr_html_(self) -> str:
        """Return the notebook card: version, protocol and columns, or why the server refuses them.

        Cost: one request, if the table was not read yet.
        """
        try:
            protocol, metadata = self.protocol(), self.metadata()
            facts = {
                "location": self.table_uri,
                "version": self.version(),
                "partitioned by": ", ".join(metadata.partition_columns),
                "protocol": f"reader {protocol.min_reader_version}",
                "features": ", ".join(protocol.reader_features or ()),
            }
            columns = [(field.name, str(field.type)) for field in self.schema()]
        except DeltaError as error:
            return card(self.name, plain(str(error)))
        shown = grid((name, fact) for name, fact in facts.items() if fact != "")
        return card(self.name, shown, folding(counted(len(columns), "column"), grid(columns)))

    def _shown_at(self, at: VersionOrTimestamp) -> ShownVersion:
        return ShownVersion(self.client, self._shown.table, at, time_zone=self._shown.time_zone)

    def _scan(
        self,
        columns: Sequence[str] | None,
        conditions: Sequence[Any],
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        limit: int | None = None,
        at: VersionOrTimestamp | None = None,
        json_hint: str | None = None,
    ) -> SharedScan:
        wanted = Conditions(
            given=tuple(one for one in conditions if one is not None),
            parameters=parameters,
            session=SqlSession(now=utc_moment(now_ms()), time_zone=self._shown.time_zone),
        )
        with naming_the_attempt("read", self.table_uri):
            snapshot = self._shown.snapshot_for(wanted, limit=limit, at=at, json_hint=json_hint)
            scan = plan_scan(
                snapshot,
                columns=as_columns(columns),
                predicate=wanted.resolved(snapshot.configuration),
                limit=limit,
            )
        return SharedScan(scan.snapshot, scan.spec, scan.most_rows)

    def _pruning(self, partition_filters: Any, *conditions: Any) -> Expression | None:
        """Return all conditions as one; in partition filters, `''` means null, as in deltalake."""
        configuration = self.snapshot.configuration
        filters = self._blanks_as_nulls(partition_filters)
        return as_condition(
            configuration.schema, filters, *conditions, session=self.snapshot.context.session
        )

    def _blanks_as_nulls(self, filters: Any) -> Any:
        if filters is None:
            return None
        return with_blanks_as_nulls(filters, self._shown.configuration.partition_columns)
