"""`DeltaTable`: the public facade of one table.

Each method runs an operation, or calls a function of another package with the current snapshot.
Methods with the same semantics as in deltalake have the same names.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Self

from deltalog._util.argument_types import checks_types, wrong_argument
from deltalog._util.call_errors import UnknownNameError, called_first
from deltalog._util.readable import counted
from deltalog._util.similar_names import suggests_arguments
from deltalog.catalogs import table_uri as locations
from deltalog.errors import BranchNotFoundError
from deltalog.log.context import LogTail, TableContext
from deltalog.log.listing import has_table
from deltalog.log.snapshot import load_if_any
from deltalog.operations import arguments
from deltalog.table.changing import commit_options
from deltalog.table.inspect.display import ShownFacts, card, describe
from deltalog.table.maintaining import MaintainableTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime
    from pathlib import PurePath

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.operations.engine import Engine
    from deltalog.protocol.actions.model import Metadata, Protocol
    from deltalog.protocol.actions.properties import TableProperties
    from deltalog.schema import Field, Schema
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.table.inspect.description import CommitHistory
    from deltalog.table.inspect.plot import TablePlots
    from deltalog.transaction import (
        CommitProperties,
        PostCommitHookProperties,
    )

    Version = int | str | datetime | date


class _NamesOfTheClass(ABCMeta):
    """The metaclass of `DeltaTable`: errors about attributes of the class suggest names, too.

    With ABCMeta as its base, users' classes can inherit from `DeltaTable` and an abstract class.
    """

    if not TYPE_CHECKING:  # so that type checkers report unknown names

        def __getattr__(cls, name: str) -> NoReturn:
            """Raise the error of an object with the same unknown attribute."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise UnknownNameError(_explain_missing(name, dir(cls)))


@called_first("metadata", "protocol", "history", "detail")
@checks_types
@suggests_arguments
class DeltaTable(MaintainableTable, metaclass=_NamesOfTheClass):
    """A Delta table: reads and changes its rows, metadata and history.

    The object shows one version of the table. Reads use this version until `update_incremental` or
    `load_as_version` loads another version. After an operation that changes the table, the object
    shows the committed version. Use `write_deltalake` or `transaction()` to append or overwrite
    rows. The object can be shared by threads, pickled, and used after a fork.

    These arguments occur in many methods and are explained only here:

    - `Version`: a version number, a timestamp string (ISO 8601; UTC by default), a datetime, or a
      date, which means its midnight.
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
        table_uri: path or URL (`file:///a%20b` is `/a b`). `table@v3` and `table@2024-01-31`
            select a version or a timestamp, unless a directory has exactly this name.
            `uc://catalog.schema.table` is a table of the Unity Catalog that the environment
            configures. A `Store`, or a `NamedTable` of any catalog, is also accepted.
        version: the version to load; None means the latest.
        storage_options: options with the names of the cloud SDKs, of deltalake or of fsspec; or a
            function that returns new options when credentials expire.
        without_files: deprecated and ignored: file columns are read on demand.
        log_buffer_size: deprecated and ignored.
        skip_stats: deprecated and ignored.
        filesystem: an fsspec or pyarrow file system to use instead of `storage_options`.
        log_tail: the newest commits, for a table whose commits a catalog manages.
        default_timezone: the time zone of values without a zone: of values that are written to a
            `timestamp` column, of timestamps in partition values, and of `timestamp_ntz` in a
            comparison with `timestamp`.
        engine: runs the work on rows and files, such as `deltalog.ray.RayEngine()` or
            `deltalog.dask.DaskEngine()`. None means threads of this process.

    Raises:
        TableNotFoundError: there is no Delta table at the location.
        VersionNotFoundError: the version does not exist, or was cleaned up.
        MalformedLogError: the log violates the protocol; subclasses name the kind of fault.

    Cost: reads `_last_checkpoint`, lists the log once, and reads the commits after the checkpoint
    and a few columns of the checkpoint.

    Examples:
        >>> from deltalog import DeltaTable, write_deltalake
        >>> write_deltalake("memory://open", [{"id": 1, "name": "Ann"}])
        >>> table = DeltaTable("memory://open")
        >>> table.version(), table.schema().names
        (0, ('id', 'name'))
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
        tail: object = log_tail
        if not isinstance(tail, LogTail | None):
            expected = "a LogTail of deltalog.log.context, which a catalog makes"
            raise wrong_argument("DeltaTable", "log_tail", log_tail, expected)
        context = context if log_tail is None else context.with_log_tail(log_tail)
        self._open(context, engine, version)

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

    @staticmethod
    def is_deltatable(
        table_uri: str | PurePath | NamedTable, storage_options: StorageOptions | None = None
    ) -> bool:
        """Return whether there is a Delta table at a location, even if deltalog cannot read it.

        Cost: one listing, which stops at the first commit.
        """
        if (named := locations.named_table(table_uri, storage_options)) is not None:
            return named.is_delta_table()
        try:
            context, _ = locations.open_table_context(
                table_uri, storage_options, None, time_zone="UTC"
            )
        except BranchNotFoundError:
            return False
        return has_table(context.store)

    @classmethod
    def create(  # noqa: PLR0913, PLR0917  # deltalake's parameters, and more
        cls,
        table_uri: str | PurePath | Store | NamedTable,
        schema: Schema | Sequence[Field | tuple[str, Any]] | Mapping[str, Any] | str | Any,
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
                declares comments, defaults, generated columns and identity columns. Short forms
                are a dictionary, name to type, and a string as in SQL, such as
                `id BIGINT NOT NULL, name STRING`.
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

        Examples:
            >>> from deltalog import DeltaTable, Field
            >>> fields = [Field("id", "long", nullable=False), Field("name", "string")]
            >>> table = DeltaTable.create("memory://create", fields, constraints={"real": "id > 0"})
            >>> table.count()
            0
        """
        from deltalog.operations.create import as_schema
        from deltalog.table.creating import TableDefinition, TablePlace, create_table

        arguments.check_location_first(table_uri, schema)
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
        options = commit_options(commit_properties, post_commithook_properties)
        context = create_table(place, definition, mode=mode, options=options)
        return cls.from_context(context)

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
        """Return domain name → configuration of all metadata domains, in the order of the names.

        A configuration that is a JSON object, as in the protocol's draft, is returned as a string.
        """
        domains = self._snapshot.domain_metadata
        texts = {name: domain.text for name, domain in sorted(domains.items())}
        return ShownFacts(texts, title="Metadata domains")

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last version that an application has recorded, or None."""
        found = self._snapshot.app_transactions.get(app_id)
        return None if found is None else found.version

    def history(self, limit: int | None = None) -> CommitHistory:
        """Return the commits, newest first, as a list of dictionaries.

        Each dictionary contains the version, the timestamp in milliseconds, and the members of
        `commitInfo`. The methods `to_pandas()` and `to_polars()` of the list return timestamps as
        datetimes.

        Cost: one request for each commit, several at a time.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://history", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://history")
            >>> _ = table.delete("id = 1")
            >>> [(commit["version"], commit["operation"]) for commit in table.history()]
            [(1, 'DELETE'), (0, 'WRITE')]
        """
        from deltalog.table.inspect.description import CommitHistory

        rows = self._snapshot.history(arguments.as_limit(limit))
        return CommitHistory(ShownFacts(row, title=f"Version {row['version']}") for row in rows)

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

    def __repr__(self) -> str:
        """Show the location, the version and the number of columns."""
        return (
            f"DeltaTable({self.table_uri!r}, version {self.version()}, "
            f"{counted(len(self.schema()), 'column')})"
        )

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        return card(self._snapshot)

    if not TYPE_CHECKING:  # so that type checkers report unknown names

        def __setattr__(self, name: str, value: object) -> None:
            """Raise an error for the assignment of a value to a method or property.

            A callable may replace a method, as mocks in tests of users do. Subclasses of users may
            have any attributes.
            """
            __tracebackhide__ = True  # IPython does not show this frame
            is_own = name in _OWN_NAMES and type(self).__module__.startswith("deltalog.")
            if is_own and not callable(value):
                raise UnknownNameError(_explain_assigned(name))
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that suggests deltalake's new name, or a similar name."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise UnknownNameError(_explain_missing(name, dir(type(self))))


_OWN_NAMES: Final = frozenset(name for name in dir(DeltaTable) if not name.startswith("_"))


def _explain_assigned(name: str) -> str:
    from deltalog.operations.names_elsewhere import explain_assigned  # for errors

    return explain_assigned(name)


def _explain_missing(name: str, names: list[str]) -> str:
    from deltalog.operations.names_elsewhere import explain_missing  # for errors

    return explain_missing(name, names)


def from_deltalake(table: Any) -> DeltaTable:
    """Open a table of the package deltalake at its version: deltalog reads all of its rows."""
    return DeltaTable(
        table.table_uri,
        version=table.version(),
        storage_options=getattr(table, "_storage_options", None),
    )
