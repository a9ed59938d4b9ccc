"""`write_deltalake`, and distributed writes in two steps: `write_files` and `DeltaTable.commit`.

This module owns the modes: what happens if a table exists, and if none does.
"""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, Unpack

from deltalog._util.escaping import name_key
from deltalog.catalogs.table_uri import named_table, open_table_context
from deltalog.data.write import files
from deltalog.data.write.options import WriterProperties, WriteSpec
from deltalog.errors import (
    CommitConflictError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.log.listing import has_table
from deltalog.operations.arguments import check_given
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.engine import Engine, LocalEngine, RowSource
from deltalog.operations.execute import make_table
from deltalog.operations.write import SchemaMode, Write
from deltalog.protocol.actions.properties import canonical_key
from deltalog.protocol.table_change.change import changed_table
from deltalog.schema import Schema, from_arrow_schema
from deltalog.storage.store import Store, is_local
from deltalog.table.defaults import new_table_with_defaults
from deltalog.table.delta_table import DeltaTable
from deltalog.transaction.properties import CommitOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import PurePath

    from deltalog.catalogs.protocol import NamedTable, NewNamedTable
    from deltalog.data.write.source import Rows
    from deltalog.data.write.written import WrittenFiles
    from deltalog.log.context import TableContext
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.transaction import CommitProperties, Committed, PostCommitHookProperties

    Mode = Literal["error", "append", "overwrite", "ignore"]
    PartitionOverwrite = Literal["static", "dynamic"]

_Function = TypeVar("_Function", bound="Callable[..., Any]")

# Names of deltalake and of a table's history.
_MODES: Final = {
    "error": "ErrorIfExists",
    "append": "Append",
    "overwrite": "Overwrite",
    "ignore": "Ignore",
}


class WriteArguments(TypedDict, total=False):
    """What `write_deltalake`, which explains it, takes besides the table and the rows."""

    partition_by: Sequence[str] | str | None
    mode: Mode
    name: str | None
    description: str | None
    configuration: Mapping[str, str | None] | None
    schema_mode: SchemaMode | None
    storage_options: StorageOptions | None
    predicate: Any
    partition_overwrite: PartitionOverwrite
    target_file_size: int | None
    writer_properties: WriterProperties | None
    commit_properties: CommitProperties | None
    post_commithook_properties: PostCommitHookProperties | None
    parameters: Sequence[object] | Mapping[str, object] | None
    filesystem: Any
    default_timezone: str | None


_DEFAULTS: Final[WriteArguments] = {"mode": "error", "partition_overwrite": "static"}
"""The defaults; None is that of the others."""


def _showing_arguments(function: _Function) -> _Function:
    """Give a function that takes `WriteArguments` a signature with each of them, for `help`."""
    own = signature(function)
    parameters = [
        parameter
        for parameter in own.parameters.values()
        if parameter.kind is not Parameter.VAR_KEYWORD
    ]
    parameters += [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(name),
            annotation=kind.__forward_arg__,
        )
        for name, kind in WriteArguments.__annotations__.items()
    ]
    function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


@_showing_arguments
def write_deltalake(
    table_or_uri: str | PurePath | Store | NamedTable | DeltaTable,
    data: Rows,
    **given: Unpack[WriteArguments],
) -> None:
    """Write rows to a Delta table; a table that does not exist is created.

    Args:
        table_or_uri: the table; a `DeltaTable` shows the new version afterwards.
        data: a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars data
            frame, a Polars lazy frame, a DuckDB relation, any object with `__arrow_c_stream__` or
            `__arrow_c_array__`, a list of dicts, or an iterable of batches. It may be larger than
            memory. Columns of another type than the table's are cast if each value can be
            converted: strings to numbers and times and back, decimals to floating-point numbers
            and back.
        partition_by: partition columns of a new table, or with `mode="overwrite"` and
            `schema_mode="overwrite"` the new columns; otherwise they must be the table's.
        mode: `append` and `overwrite` write rows; if there is a table, `error` raises, and `ignore`
            does nothing.
        name: name of a new table.
        description: description of a new table.
        configuration: properties of a new table; None removes a default of `table_defaults`.
        schema_mode: `merge` adds the columns that only the data has. `overwrite` changes the schema
            to the data's (`mode="overwrite"`); with a predicate it only adds columns.
        storage_options: as for `DeltaTable`.
        predicate: with `mode="overwrite"`: replace only the rows for which it is true;
            every new row must match it (`replaceWhere`).
        partition_overwrite: `dynamic` with `mode="overwrite"`: only the partitions that the new
            rows belong to are replaced.
        target_file_size: bytes; None means `delta.targetFileSize`, or else 128 MiB.
        writer_properties: Parquet options of the new files.
        commit_properties: as for `DeltaTable`; with application transactions a repeated write is
            skipped.
        post_commithook_properties: which maintenance runs after the commit.
        parameters: values for `?` or `:name` in an SQL predicate.
        filesystem: as for `DeltaTable`.
        default_timezone: zone of times without one; None means UTC. A `DeltaTable` has its own.

    Raises:
        TableExistsError: `mode="error"`, and there is a table.
        SchemaMismatchError: the rows do not fit the table's schema.
        ConstraintViolationError: rows violate a constraint, or do not match `predicate`.
        CommitFailedError: another writer won; subclasses name the reason. The table is unchanged.
        UnsupportedFeatureError: the table needs a feature that deltalog does not support.

    Cost: one pass over the data. An append reads no file of the table.
    """
    write_by(None, table_or_uri, data, **given)


def write_by(
    engine: Engine | None,
    table_or_uri: str | PurePath | Store | NamedTable | DeltaTable,
    data: object,
    **given: Unpack[WriteArguments],
) -> Committed | None:
    """Write rows with an engine, as `write_deltalake` does.

    Args:
        engine: opens and writes the rows; None means the table's engine, or this process.
        table_or_uri: the table.
        data: in any form that the engine opens.
        given: other arguments.

    Returns:
        The commit; None if there is a table and the mode is `ignore`.

    Raises:
        DeltaError: as `write_deltalake`.
        TypeError: an argument is not one of `WriteArguments`.
    """
    for name in given.keys() - WriteArguments.__annotations__.keys():
        raise TypeError(f"write_deltalake() got an unexpected keyword argument {name!r}")
    given = {**_DEFAULTS, **given}
    write = _operation(data, given)
    mode = given["mode"]
    configuration = given.get("configuration")
    options = CommitOptions(
        properties=given.get("commit_properties"), hooks=given.get("post_commithook_properties")
    )
    context, table, place = _open(
        table_or_uri,
        given.get("storage_options"),
        given.get("filesystem"),
        given.get("default_timezone"),
    )
    if table is None:
        try:
            return _create(
                write,
                context,
                options,
                engine=engine or LocalEngine(),
                place=place,
                configuration=configuration,
                name=given.get("name"),
                description=given.get("description"),
            )
        except CommitConflictError:
            # Another writer created a table there first: continue as a write to that table.
            if mode in {"append", "overwrite"} and not write.is_repeatable:
                raise
            table = DeltaTable.from_context(context)
    if mode == "ignore":
        return None
    if mode == "error":
        raise TableExistsError(
            f"cannot create a table at {table.table_uri}: there is one, at version "
            f"{table.version()}; use mode='append' or mode='overwrite'"
        )
    _check_fits(write, table, configuration)
    is_fresh = table is not table_or_uri
    return table.execute(write, options, engine=engine, is_fresh=is_fresh).committed


def _operation(data: object, given: WriteArguments) -> Write:
    """Return the requested write.

    Raises:
        InvalidInputError: arguments contradict each other.
    """
    mode, partition_overwrite = given["mode"], given["partition_overwrite"]
    for what, value, known in (
        ("mode", mode, _MODES),
        ("partition_overwrite", partition_overwrite, ("static", "dynamic")),
    ):
        if value not in known:
            expected = ", ".join(map(repr, known))
            raise InvalidInputError(f"{what}: expected one of {expected}, found {value!r}")
    partition_by, predicate = given.get("partition_by"), given.get("predicate")
    columns = [partition_by] if isinstance(partition_by, str) else partition_by
    replaces = mode == "overwrite"
    if not replaces and predicate is not None:
        check_given(predicate)
        raise InvalidInputError(f"a predicate needs mode='overwrite', found mode={mode!r}")
    return Write(
        data=data,
        mode="overwrite" if replaces else "append",
        schema_mode=given.get("schema_mode"),
        predicate=predicate,
        parameters=given.get("parameters"),
        dynamic=partition_overwrite == "dynamic",
        partition_by=columns,
        file_options=FileOptions(
            target_file_size_bytes=given.get("target_file_size"),
            writer_properties=given.get("writer_properties"),
            casts=True,
        ),
        logged=_logged(mode, columns, predicate),
    )


def _create(
    write: Write,
    context: TableContext,
    options: CommitOptions,
    *,
    engine: Engine,
    place: NewNamedTable | None,
    configuration: Mapping[str, str | None] | None,
    **described: Any,
) -> Committed:
    """Create a table for the data, and write its rows as version 0."""
    rows = engine.open_rows(write.data)
    columns = write.partition_by or ()
    schema = _schema_of(rows, context.store)
    wanted = new_table_with_defaults(
        schema, place=place, configuration=configuration, partition_columns=columns, **described
    )
    ran = make_table(replace(write, data=rows), context, wanted, engine, options)
    if place is not None:
        place.register(ran.committed.snapshot)
    return ran.committed


def _logged(mode: str, columns: Sequence[str] | None, predicate: Any) -> dict[str, Any]:
    """Return the operationParameters for the history."""
    found = {"mode": _MODES[mode], "partitionBy": list(columns or ())}
    return found if predicate is None else {**found, "predicate": str(predicate)}


def _check_fits(
    write: Write, table: DeltaTable, configuration: Mapping[str, str | None] | None
) -> None:
    """Raise if the existing table has other partition columns or properties."""
    own = table.metadata().partition_columns
    if write.partition_by is not None and write.schema_mode != "overwrite":
        asked = [name_key(name) for name in write.partition_by]
        if asked != [name_key(name) for name in own]:
            raise InvalidInputError(
                f"cannot write to {table.table_uri} by partitions {list(write.partition_by)}: "
                f"the table has {list(own)}; mode='overwrite' with schema_mode='overwrite' "
                "changes them"
            )
    current = table.snapshot.configuration
    known = current.metadata.configuration
    for key, value in (configuration or {}).items():
        if value is None or known.get(key) == value:
            continue
        # The log does not store properties that request features: they may be passed again.
        if changed_table(current, configuration={**known, canonical_key(key): value}) != current:
            raise InvalidInputError(
                f"cannot write to {table.table_uri} with {key}={value!r}: the table has "
                f"{known.get(key)!r}; table.alter.set_table_properties changes it"
            )


def _schema_of(rows: RowSource, store: Store) -> Schema:
    """Return the schema of a new table for the data."""
    if not rows.schema.names:
        raise InvalidInputError(
            f"cannot create a table at {store.root} from the data: it has no columns; "
            "DeltaTable.create makes an empty table with a schema"
        )
    return from_arrow_schema(rows.schema)


def _open(
    table_or_uri: str | PurePath | Store | NamedTable | DeltaTable,
    storage_options: StorageOptions | None,
    filesystem: Any,
    time_zone: str | None,
) -> tuple[TableContext, DeltaTable | None, NewNamedTable | None]:
    """Return a table's context, and the table if it exists, or else its place in a catalog."""
    if isinstance(table_or_uri, DeltaTable):
        own = table_or_uri.snapshot.context.time_zone
        if time_zone not in {None, own}:
            raise InvalidInputError(
                f"cannot write to {table_or_uri!r} with default_timezone={time_zone!r}: the table "
                f"was opened with {own!r}; open the table with the new zone"
            )
        return table_or_uri.snapshot.context, table_or_uri, None
    zone = time_zone or "UTC"
    named = named_table(table_or_uri, storage_options, filesystem)
    if named is not None and named.at is None and named.catalog.find(named.name) is None:
        place = named.stage()
        return replace(place.staged.context, time_zone=zone), None, place
    context, at = open_table_context(table_or_uri, storage_options, filesystem, time_zone=zone)
    if at is not None:
        raise InvalidInputError(
            f"cannot write to {table_or_uri!r}: it names a version, but writes go to the latest"
        )
    table = DeltaTable.if_any(context) if named is None else DeltaTable.from_context(context)
    return context, table, None


def write_files(table: DeltaTable | WriteSpec, data: Rows) -> WrittenFiles:
    """Write rows as data files without a commit: a worker's part of a distributed append.

    Args:
        table: the table, or the result of its `write_spec()`; both can be pickled.
        data: as for `write_deltalake`.

    Returns:
        The input of `DeltaTable.commit`, which may run on any machine. `vacuum` removes files that
        are never committed.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows do not fit; no file is left.
        TableNotFoundError: the table is local and was deleted; its directory is not recreated.
    """
    if not isinstance(table, DeltaTable | WriteSpec):
        raise InvalidInputError(
            f"cannot write files of {table!r}: expected a DeltaTable, or the result of write_spec()"
        )
    spec = table.write_spec() if isinstance(table, DeltaTable) else table
    if is_local(spec.store) and not has_table(spec.store):
        raise TableNotFoundError(
            f"cannot write files of the table at {spec.store.root}: it was deleted in the meantime"
        )
    return files.write_files(spec, data)
