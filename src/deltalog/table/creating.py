"""Create and clone tables.

`defaults` builds the configuration of new tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from deltalog._util.previews import keeps_nanoseconds
from deltalog.catalogs.protocol import NamedTable, NewNamedTable, shown_name
from deltalog.catalogs.table_uri import named_table, open_table_context
from deltalog.data.write.source import is_rereadable
from deltalog.errors import InvalidInputError, TableExistsError
from deltalog.expressions.render import simple_name
from deltalog.log.context import TableContext
from deltalog.log.listing import has_table
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.create import Create, Replace, WithRows, as_schema
from deltalog.operations.engine import Engine, LocalEngine
from deltalog.operations.execute import execute, make_table
from deltalog.operations.write import Write
from deltalog.protocol.actions.properties import CONSTRAINT_PREFIX, check_settable
from deltalog.schema import from_arrow_schema
from deltalog.schema.columns import naming_the_attempt
from deltalog.table.defaults import new_table_with_defaults
from deltalog.transaction.properties import USUAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import PurePath

    from deltalog._util.cards import Progress
    from deltalog.operations.clone import Origin
    from deltalog.operations.operation import Operation
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.transaction import CommitOptions, Committed, Ran


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """The location of an existing or new table, and its new name in a catalog.

    Args:
        context: context of the table.
        new: the catalog entry of a table that does not exist yet; None without a catalog.
    """

    context: TableContext
    new: NewNamedTable | None = None

    @classmethod
    def of(
        cls,
        table_uri: str | PurePath | Store | NamedTable,
        storage_options: StorageOptions | None = None,
        filesystem: Any = None,
    ) -> Self:
        """Return the place for a location or for a name in a catalog.

        Raises:
            InvalidInputError: the location contains a version.
        """
        named = named_table(table_uri, storage_options, filesystem)
        if named is not None and named.at is None and named.catalog.find(named.name) is None:
            new = named.stage()
            return cls(context=new.staged.context, new=new)
        context, at = open_table_context(table_uri, storage_options, filesystem, time_zone="UTC")
        if at is not None:
            raise InvalidInputError(
                f"cannot create a table at {table_uri!r}: expected a location without a version"
            )
        return cls(context=context)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """Definition of a new table; see `DeltaTable.create` for the fields.

    Args:
        schema: schema of the table; None means the schema of the rows.
    """

    schema: Any = None
    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str | tuple[str, ...]] | None = None
    constraints: Mapping[str, str] | None = None
    configuration: Mapping[str, str | None] | None = None
    name: str | None = None
    description: str | None = None
    features: Sequence[str] = ()
    arbitrary_properties: bool = False

    def configured(self, schema: Any, new: NewNamedTable | None = None) -> TableConfiguration:
        """Return the configuration of the defined table, with the current defaults.

        Args:
            schema: schema of the table.
            new: the table's entry in a catalog, which may require properties and features.
        """
        given = self.constraints or {}
        checks = {f"{CONSTRAINT_PREFIX}{key}": text for key, text in given.items()}
        return new_table_with_defaults(
            as_schema(schema),
            partition_columns=self.partition_by,
            configuration={**(self.configuration or {}), **checks},
            name=self.name,
            description=self.description,
            clustering_columns=self.cluster_by,
            features=self.features,
            arbitrary_properties=self.arbitrary_properties,
            place=new,
        )


def create_table(
    place: TablePlace,
    definition: TableDefinition,
    *,
    mode: str = "error",
    options: CommitOptions = USUAL,
    rows: Any = None,
    engine: Engine | None = None,
    file_options: FileOptions | None = None,
) -> TableContext:
    """Create a table, or replace one, in one commit.

    If a table already exists at the location of a new catalog entry, the existing table gets the
    name. As in Spark, it must match the definition.

    Args:
        place: location of the table.
        definition: definition of the table.
        mode: what to do if the table already exists: `error` raises, `ignore` does nothing, and
            `overwrite` replaces its schema, properties and rows.
        options: options of the commit.
        rows: rows of any type that `Engine.open_rows` accepts; None means no rows.
        engine: writes the rows; None means this process.
        file_options: options of the data files.

    Returns:
        The context of the table.

    Raises:
        TableExistsError: the table already exists, and the mode is `error`; or a new catalog entry
            with rows refers to an existing table.
        InvalidInputError: the existing table differs from the definition.
    """
    context, store = place.context, place.context.store
    if mode not in {"error", "overwrite", "ignore"}:
        raise InvalidInputError(
            f"cannot create a table at {store.root} with mode={mode!r}: expected 'error', "
            "'overwrite' or 'ignore'"
        )
    exists = has_table(store)
    if exists and place.new is not None and mode != "overwrite":
        if rows is not None:
            raise TableExistsError(
                f"cannot create {shown_name(place.new.staged.name)} from rows: a table already "
                f"exists at {store.root}; omit the query to give this name to the existing table"
            )
        snapshot = load_snapshot(context)
        check_same(shown_name(place.new.staged.name), definition, snapshot)
        return place.new.register(snapshot)
    if exists and mode == "ignore":
        return context
    if exists and mode == "error":
        raise TableExistsError(
            f"cannot create a table at {store.root}: a table already exists; use mode='overwrite' "
            "to replace it or mode='ignore' to open it"
        )
    engine = engine or LocalEngine()
    schema = definition.schema
    with naming_the_attempt("create a table at", store.root):
        source = None if rows is None else engine.open_rows(rows)
        if schema is None and source is not None:
            schema = from_arrow_schema(source.schema, fine=keeps_nanoseconds())
        wanted = definition.configured(schema, place.new)
    clusters = definition.cluster_by
    made = Replace(wanted, clusters) if exists else Create(clusters)
    data = rows if is_rereadable(rows) else source
    operation: Operation[Any] = (
        made
        if source is None
        else WithRows(made, Write(data=data, file_options=file_options or FileOptions(casts=True)))
    )
    if exists:
        ran = execute(operation, lambda: load_snapshot(context), engine, options)
    else:
        ran = make_table(operation, context, wanted, engine, options)
    return context if place.new is None else place.new.register(ran.committed.snapshot)


def keep_table(place: TablePlace) -> TableContext:
    """Return the context of an existing table; register its new catalog entry, if there is one."""
    if place.new is None:
        return place.context
    return place.new.register(load_snapshot(place.context))


def check_same(name: str, definition: TableDefinition, snapshot: Snapshot) -> None:
    """Raise if a definition differs from the existing table at its location.

    Args:
        name: the new name of the existing table.
        definition: the definition; what it omits, the existing table may have.
        snapshot: the existing table.

    Raises:
        InvalidInputError: columns, partition columns or properties differ.
    """
    found, schema = snapshot.configuration, as_schema(definition.schema)
    given = definition.configuration or {}
    wanted = check_settable({key: text for key, text in given.items() if text is not None})
    pairs: list[tuple[str, Any, Any]] = []
    if len(schema):
        pairs.append(("the columns", simple_name(schema), simple_name(found.schema)))
    if definition.partition_by:
        partitions = list(definition.partition_by), list(found.partition_columns)
        pairs.append(("the partition columns", *partitions))
    held = snapshot.metadata.configuration
    pairs += [(f"the property {key}", text, held.get(key)) for key, text in wanted.items()]
    for what, one, other in pairs:
        if one != other:
            raise InvalidInputError(
                f"cannot create {name} at {snapshot.store.root}: {what} of "
                f"the existing table differ: expected {one!r}, found {other!r}; omit them from the "
                "definition to give this name to the existing table"
            )


def clone_table(
    source: Snapshot,
    place: TablePlace,
    engine: Engine,
    *,
    is_shallow: bool,
    origin: Origin | None = None,
    allows_foreign_files: bool = False,
    replaces: bool = False,
    properties: Mapping[str, str] | None = None,
    options: CommitOptions = USUAL,
    progress: Progress | None = None,
) -> TableContext:
    """Clone a version of a table to a location; see `DeltaTable.clone` for the arguments.

    Returns:
        The context of the clone, with the default time zone of the source.

    Raises:
        TableExistsError: a table already exists at the target, and `replaces` is false.
        InvalidInputError: the target is a managed table, for which the catalog requires features.
    """
    from deltalog.operations.clone import DELTA, Clone, cloned_configuration

    new = place.new
    if new is not None and (new.staged.features or new.staged.properties):
        raise InvalidInputError(
            f"cannot clone {source.store.root} to a managed table: its catalog requires table "
            "features that a clone may lack; clone to a location, or use CREATE TABLE … AS SELECT"
        )
    store = place.context.store
    context = replace(place.context, time_zone=source.context.time_zone, clock=source.context.clock)
    operation = Clone(
        source=source,
        is_shallow=is_shallow,
        origin=origin or DELTA,
        properties=properties,
        allows_foreign_files=allows_foreign_files,
    )
    exists = has_table(store)
    if exists and not replaces:
        raise TableExistsError(
            f"cannot clone to {store.root}: a table already exists; replace=True replaces it"
        )
    if exists:
        ran = execute(operation, lambda: load_snapshot(context), engine, options, progress=progress)
    else:
        ran = make_table(
            operation,
            context,
            cloned_configuration(source.configuration, properties=properties),
            engine,
            options,
            progress=progress,
        )
    return context if new is None else new.register(ran.committed.snapshot)


# --- Interfaces through which builders such as `TableMerger` run operations


class OperationTarget(Protocol):
    """An object that runs operations: a `DeltaTable`, or a transaction of a table."""

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot on which operations run."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine, which reads and writes rows and files."""
        ...

    @property
    def do(self) -> Callable[..., Any]:
        """Run an operation and return its result; see `DeltaTable.do`."""
        ...


class LatestTable(OperationTarget, Protocol):
    """A `DeltaTable`, which commits each operation."""

    @property
    def execute(self) -> Callable[..., Ran[Any]]:
        """Run an operation, and return its outcome and its commit; see `DeltaTable.execute`."""
        ...

    def _show(self, committed: Committed) -> None:
        """Make the version of a new commit the current version of this object."""
        ...

    def update_incremental(self, *, same_table: bool = True) -> None:
        """Refresh to the latest version; see `DeltaTable.update_incremental`."""
        ...
