"""`write_deltalake`, and distributed writes in two steps: `write_files` and `DeltaTable.commit`.

The `mode` argument defines what happens if the table already exists.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import wraps
from inspect import Parameter, signature
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, Unpack

from deltalog._util.argument_types import check_type, kind_of
from deltalog._util.call_errors import WrongCallError, called_with, hide_internal_frames
from deltalog._util.escaping import name_key
from deltalog._util.previews import keeps_nanoseconds
from deltalog._util.similar_names import known_arguments, similar_argument, similar_to
from deltalog.catalogs.table_uri import named_table, open_table_context
from deltalog.data.write import files
from deltalog.data.write.fit import check_index
from deltalog.data.write.options import WriterProperties, WriteSpec
from deltalog.errors import (
    CommitConflictError,
    DeltaError,
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
from deltalog.schema.columns import naming_the_attempt
from deltalog.schema.types import VOID
from deltalog.storage.http.replies import shown_location
from deltalog.storage.store import Store, is_local
from deltalog.table.defaults import new_table_with_defaults
from deltalog.table.delta_table import DeltaTable
from deltalog.transaction.properties import CommitOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from deltalog.catalogs.protocol import NamedTable, NewNamedTable
    from deltalog.data.write.source import Rows
    from deltalog.data.write.written import WrittenFiles
    from deltalog.log.context import TableContext
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.transaction import CommitProperties, Committed, PostCommitHookProperties

    Mode = Literal["error", "append", "overwrite", "ignore"]
    PartitionOverwrite = Literal["static", "dynamic"]

logger: logging.Logger = logging.getLogger(__name__)
_Function = TypeVar("_Function", bound="Callable[..., Any]")

# Value of the argument `mode` → name of the mode in the history.
_MODES: Final = {
    "error": "ErrorIfExists",
    "append": "Append",
    "overwrite": "Overwrite",
    "ignore": "Ignore",
}


class WriteArguments(TypedDict, total=False):
    """The arguments of `write_deltalake` except the table and the rows; see there."""

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
"""The default values of arguments. Arguments that are missing here default to None."""


_NUM_POSITIONAL: Final = 2


def _showing_arguments(function: _Function) -> _Function:
    """Set a function's signature to one that lists all `WriteArguments`, for `help()`.

    The error about more positional arguments than two says to write their names.
    """
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

    names = {parameter.name for parameter in parameters}

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython does not show this frame
        if len(args) < _NUM_POSITIONAL and not options.keys() <= names:
            unknown = {name: value for name, value in options.items() if name not in names}
            _check_arguments(unknown, [one.name for one in parameters])
        if len(args) > _NUM_POSITIONAL:
            raise WrongCallError(
                f"{function.__name__}() takes {_NUM_POSITIONAL} positional arguments (location, "
                f"data), found {len(args)}; write the names of the others, such as mode='append'"
            )
        try:
            return called_with(function, *args, **options)
        except DeltaError as error:
            hide_internal_frames(error)
            raise

    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return called  # type: ignore[return-value]  # of the same signature


@_showing_arguments
def write_deltalake(
    table_or_uri: str | PurePath | Store | NamedTable | DeltaTable,
    data: Rows,
    **given: Unpack[WriteArguments],
) -> None:
    """Write rows to a Delta table. If the table does not exist, it is created.

    Args:
        table_or_uri: the table. A `DeltaTable` shows the new version afterwards.
        data: a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars
            dataframe, a Polars lazy frame, a DuckDB relation, any object with `__arrow_c_stream__`
            or `__arrow_c_array__`, a list of dicts, or an iterable of batches. It may be larger
            than memory. A reader or a generator has no rows left after one write. If a column's
            type differs from the table, its values are converted; a value that would change is an
            error.
        partition_by: partition columns of a new table. For an existing table, they must be the same
            as the table's, unless `mode` and `schema_mode` are `overwrite`.
        mode: `append` adds rows; `overwrite` replaces rows. If the table already exists, `error`
            raises, and `ignore` does nothing.
        name: name of a new table; an existing table keeps its name.
        description: description of a new table; an existing table keeps its description.
        configuration: properties of a new table; the value None removes a default of
            `table_defaults`.
        schema_mode: `merge` adds the columns that only the data has. `overwrite` replaces the
            table's schema with that of the data; it needs `mode="overwrite"`. With a predicate,
            `overwrite` only adds columns.
        storage_options: see `DeltaTable`.
        predicate: with `mode="overwrite"`: replace only the rows that match this condition. Every
            new row must match it (`replaceWhere`).
        partition_overwrite: with `mode="overwrite"`: `dynamic` replaces only the partitions that
            the new rows belong to.
        target_file_size: size of new files in bytes. None means `delta.targetFileSize`, or 128 MiB
            without the property.
        writer_properties: Parquet options of the new files.
        commit_properties: see `DeltaTable`. With application transactions, a repeated write is
            skipped.
        post_commithook_properties: see `DeltaTable`.
        parameters: values for `?` or `:name` in an SQL predicate.
        filesystem: see `DeltaTable`.
        default_timezone: the time zone of values without one in columns of type `timestamp`, and
            see `DeltaTable`; None means UTC, or the time zone of a given `DeltaTable`.

    Raises:
        TableExistsError: `mode="error"`, and the table already exists.
        SchemaMismatchError: the rows do not match the table's schema.
        ConstraintViolationError: rows violate a constraint, or do not match `predicate`.
        CommitFailedError: a concurrent commit conflicts; subclasses name the reason. The table is
            unchanged.
        UnsupportedFeatureError: the table needs a feature that deltalog does not support.

    Cost: one pass over the data. An append reads no file of the table.

    Examples:
        >>> from deltalog import DeltaTable, write_deltalake
        >>> write_deltalake("memory://write", [{"id": 1}, {"id": 2}])
        >>> write_deltalake("memory://write", [{"id": 3}], mode="append")
        >>> DeltaTable("memory://write").count()
        3
    """
    write_by(None, table_or_uri, data, **given)


_MODES_MEANT: Final = {
    **dict.fromkeys(
        ("upsert", "merge", "update"), "; DeltaTable.upsert(data, key) updates and inserts rows"
    ),
    **{mode.lower(): f"; use {name!r}" for name, mode in _MODES.items()},
    **{name: f"; use {name!r}" for name in _MODES},
    **dict.fromkeys(("w", "replace", "truncate"), "; use 'overwrite'"),
    **dict.fromkeys(("a", "insert"), "; use 'append'"),
    **dict.fromkeys(("fail", "x"), "; use 'error'"),
}
"""Mode in other libraries, in small letters → the hint about ours."""
_OTHER_NAMES: Final = {
    "engine": "it has one writer; DeltaTable(location, engine=…) changes a table on a cluster",
    **dict.fromkeys(("overwrite_schema", "overwriteSchema"), "use schema_mode='overwrite'"),
    **dict.fromkeys(("merge_schema", "mergeSchema", "schema_evolution"), "use schema_mode='merge'"),
    **dict.fromkeys(
        ("replaceWhere", "replace_where", "partition_filters", "overwrite_filter", "where"),
        "use predicate with mode='overwrite'",
    ),
    **dict.fromkeys(
        ("partitionOverwriteMode", "partition_overwrite_mode", "dynamic"),
        "use partition_overwrite='dynamic'",
    ),
    **dict.fromkeys(("if_exists", "save_mode", "saveMode", "write_mode"), "use mode"),
    "overwrite": "use mode='overwrite'",
    "append": "use mode='append'",
    **dict.fromkeys(("exist_ok", "if_not_exists"), "use mode='ignore'"),
    **dict.fromkeys(("properties", "tblproperties", "table_properties"), "use configuration"),
    "comment": "use description",
    **dict.fromkeys(
        ("cluster_by", "clusterBy"), "create the table with DeltaTable.create(…, cluster_by=…)"
    ),
    **dict.fromkeys(
        ("sort_by", "sortBy", "zorder", "z_order"),
        "sort the rows first, or call DeltaTable.optimize.z_order(columns) afterwards",
    ),
    "partitionBy": "use partition_by",
    "schema": "convert the rows, as with .cast(schema)",
    "index": "convert the frame first, as with .reset_index(drop=True)",
    **dict.fromkeys(
        (
            *("max_rows_per_file", "max_rows_per_group", "min_rows_per_group", "max_open_files"),
            *("max_records_per_file", "maxRecordsPerFile", "row_group_size"),
        ),
        "target_file_size limits files, and writer_properties row groups",
    ),
    **dict.fromkeys(
        ("compression", "codec", "compression_level"),
        "use writer_properties=WriterProperties(compression=…)",
    ),
    "use_dictionary": "use writer_properties",
    "large_dtypes": "it makes no difference; leave it out",
    "file_options": "use writer_properties",
    **dict.fromkeys(
        ("custom_metadata", "metadata", "commit_metadata", "snapshot_properties"),
        "use commit_properties=CommitProperties(custom_metadata=…)",
    ),
    **dict.fromkeys(
        ("userMetadata", "user_metadata"),
        "use commit_properties=CommitProperties({'userMetadata': …})",
    ),
    **dict.fromkeys(
        ("txnAppId", "txnVersion", "app_id"),
        "use commit_properties=CommitProperties(app_transactions=[Transaction(app_id, version)])",
    ),
    "retries": "use commit_properties=CommitProperties(max_commit_retries=…)",
    **dict.fromkeys(
        ("upsert", "on", "key", "keys", "delta_merge_options"),
        "DeltaTable.upsert(data, key) updates and inserts rows, and merge(…) has other clauses",
    ),
    **dict.fromkeys(
        ("primary_key", "merge_keys"),
        "tables have no primary keys; DeltaTable.upsert(data, key) keeps a key unique",
    ),
    **dict.fromkeys(("dtype", "dtypes"), "convert the rows first, as with .astype(…) or .cast(…)"),
    **dict.fromkeys(
        ("chunksize", "batch_size"), "the rows are written in batches of the data; omit it"
    ),
    **dict.fromkeys(
        ("safe_cast", "ignore_index", "format"),
        "it makes no difference; omit it",
    ),
    **dict.fromkeys(
        ("coerce_times", "coerce_timestamps"),
        "convert the timestamps first, as with .cast(…)",
    ),
    **dict.fromkeys(("path", "table", "location", "uri"), "the location is the first argument"),
    "checkpoint": "use post_commithook_properties=PostCommitHookProperties(create_checkpoint=…)",
    "delta_write_options": "pass its items as arguments",
    "use_deletion_vectors": "set the property delta.enableDeletionVectors by configuration",
    "version": "a write always makes the next version",
}
"""The names that other libraries, or deltalake's older releases, have for arguments."""


def _check_arguments(given: Mapping[str, object], missing: Collection[str] = ()) -> None:
    """Raise for arguments with unknown names, or values of the wrong type.

    Args:
        given: the arguments.
        missing: names of arguments that are not among the given, and may be meant.
    """
    known = WriteArguments.__annotations__
    for name in given.keys() - known.keys():
        meant = [*missing, *known]
        hint = f": {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else similar_argument(name, meant)
        hint = hint or known_arguments(known)
        raise WrongCallError(f"write_deltalake() got an unexpected keyword argument {name!r}{hint}")
    for name, value in given.items():
        check_type("write_deltalake", name, value, known[name].__forward_arg__)


def write_by(
    engine: Engine | None,
    table_or_uri: str | PurePath | Store | NamedTable | DeltaTable,
    data: object,
    /,
    **given: Unpack[WriteArguments],
) -> Committed | None:
    """Write rows with an engine, as `write_deltalake` does.

    Args:
        engine: opens and writes the rows; None means the table's engine, or this process.
        table_or_uri: the table.
        data: rows of any type that `Engine.open_rows` accepts.
        given: other arguments.

    Returns:
        The commit; None if the table already exists and the mode is `ignore`.

    Raises:
        DeltaError: see `write_deltalake`.
        TypeError: an argument is not one of `WriteArguments`.
    """
    _check_arguments(given)
    if isinstance(data, str | PurePath) and _is_rows(table_or_uri):
        raise InvalidInputError(
            f"cannot write to {kind_of(table_or_uri)}: the location comes first: "
            f"write_deltalake({str(data)!r}, data)"
        )
    given = {**_DEFAULTS, **given}
    with naming_the_attempt("write to", _shown_place(table_or_uri)):
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
            # Another writer has created the table in the meantime. So write to that table.
            if mode in {"append", "overwrite"} and not write.is_repeatable:
                raise
            table = DeltaTable.from_context(context)
    if mode == "ignore":
        return None
    if mode == "error":
        raise TableExistsError(
            f"cannot create a table at {table.table_uri}: a table already exists, at version "
            f"{table.version()}; use mode='append' or mode='overwrite'"
        )
    _check_fits(write, table, configuration)
    _warn_of_ignored(table, given)
    is_fresh = table is not table_or_uri
    return table.execute(write, options, engine=engine, is_fresh=is_fresh).committed


def _shown_place(given: str | PurePath | Store | NamedTable | DeltaTable) -> str:
    """Return the table's location or name for errors, without passwords."""
    if isinstance(given, DeltaTable):
        return given.table_uri
    return shown_location(str(given)) if isinstance(given, str | PurePath) else "the table"


def _is_rows(given: object) -> bool:
    return isinstance(given, list | dict) or hasattr(given, "columns") or hasattr(given, "schema")


def _operation(data: object, given: WriteArguments) -> Write:
    """Return the operation for the arguments of `write_deltalake`.

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
            meant = _MODES_MEANT.get(str(value).lower(), "") if what == "mode" else ""
            hint = meant or similar_to(str(value), known)
            raise InvalidInputError(f"{what}: expected one of {expected}, found {value!r}{hint}")
    partition_by, predicate = given.get("partition_by"), given.get("predicate")
    columns = [partition_by] if isinstance(partition_by, str) else partition_by
    replaces = mode == "overwrite"
    if not replaces and predicate is not None:
        check_given(predicate)
        raise InvalidInputError(
            f"a predicate needs mode='overwrite', found mode={mode!r}; to write only some rows of "
            "the data, filter them first"
        )
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
    columns = write.partition_by or ()
    with naming_the_attempt("create a table at", context.store.root):
        rows = engine.open_rows(write.data)
        check_index(rows.schema, (), f"create a table at {context.store.root}")
        schema = _schema_of(rows, context.store)
        wanted = new_table_with_defaults(
            schema, place=place, configuration=configuration, partition_columns=columns, **described
        )
    ran = make_table(replace(write, data=rows), context, wanted, engine, options)
    if place is not None:
        place.register(ran.committed.snapshot)
    return ran.committed


def _logged(mode: str, columns: Sequence[str] | None, predicate: Any) -> dict[str, Any]:
    """Return the `operationParameters` for the history."""
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
                f"cannot write to {table.table_uri} with partition_by={list(write.partition_by)}: "
                f"the table's partition columns are {list(own)}; mode='overwrite' with "
                "schema_mode='overwrite' changes them"
            )
    current = table.snapshot.configuration
    known = current.metadata.configuration
    for key, value in (configuration or {}).items():
        if value is None or known.get(key) == value:
            continue
        # A property that only requests a table feature is not stored. So check whether setting the
        # property would change the table.
        if changed_table(current, configuration={**known, canonical_key(key): value}) != current:
            raise InvalidInputError(
                f"cannot write to {table.table_uri} with {key}={value!r}: the table's value is "
                f"{known.get(key)!r}; table.alter.set_table_properties changes it"
            )


def _warn_of_ignored(table: DeltaTable, given: WriteArguments) -> None:
    """Log that a name or a description has no effect, because the table exists."""
    metadata = table.metadata()
    given_and_own = {
        "name": (given.get("name"), metadata.name),
        "description": (given.get("description"), metadata.description),
    }
    for what, (asked, own) in given_and_own.items():
        if asked is not None and asked != own:
            logger.warning(
                "%s=%r has no effect: the table exists, and its %s is %r; "
                "table.alter.set_table_%s changes it",
                *(what, asked, what, own, what),
            )


def _schema_of(rows: RowSource, store: Store) -> Schema:
    """Return the schema of a new table for the data."""
    if not rows.schema.names:
        raise InvalidInputError(
            f"cannot create a table at {store.root}: the data has no columns; "
            "DeltaTable.create creates an empty table with a schema"
        )
    found = from_arrow_schema(rows.schema, fine=keeps_nanoseconds())
    if empty := [field.name for field in found if field.type == VOID]:
        logger.warning(
            "the new table %s has columns with only NULLs, whose type is void: %s; cast them, as "
            "in df.astype({%r: 'string'}), to store values later",
            *(store.root, ", ".join(map(repr, empty)), empty[0]),
        )
    return found


def _open(
    table_or_uri: str | PurePath | Store | NamedTable | DeltaTable,
    storage_options: StorageOptions | None,
    filesystem: Any,
    time_zone: str | None,
) -> tuple[TableContext, DeltaTable | None, NewNamedTable | None]:
    """Return a table's context, the table if it exists, and its catalog entry if it is new."""
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
            f"cannot write to {table_or_uri!r}: expected a location without a version"
        )
    table = DeltaTable.if_any(context) if named is None else DeltaTable.from_context(context)
    return context, table, None


def write_files(table: DeltaTable | WriteSpec, data: Rows) -> WrittenFiles:
    """Write rows as data files without a commit: a worker's part of a distributed append.

    Args:
        table: the table, or the result of its `write_spec()`; both can be pickled.
        data: see `write_deltalake`.

    Returns:
        The argument for `DeltaTable.commit`, which may run on another machine. `vacuum` deletes
        files that are never committed.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows do not match the table's schema or
            constraints. New files are deleted.
        TableNotFoundError: the table's directory on a local disk was deleted.
    """
    if not isinstance(table, DeltaTable | WriteSpec):
        raise InvalidInputError(
            f"cannot write files for {table!r}: expected a DeltaTable or the result of write_spec()"
        )
    spec = table.write_spec() if isinstance(table, DeltaTable) else table
    if is_local(spec.store) and not has_table(spec.store):
        raise TableNotFoundError(
            f"cannot write files for the table at {spec.store.root}: it was deleted in the meantime"
        )
    return files.write_files(spec, data)
