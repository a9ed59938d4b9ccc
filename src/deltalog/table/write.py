"""`write_deltalake`, and a write in two halves for workers and their driver.

Owns the modes: what happens where a table is, and where none is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from deltalog.actions.settable import canonical_key
from deltalog.arguments import as_condition, check_given, has_table, open_table_store
from deltalog.context import TableContext
from deltalog.errors import CommitConflictError, InvalidInputError, TableExistsError
from deltalog.schema import from_arrow_schema
from deltalog.table.creating import make_table, new_table_with_defaults
from deltalog.table.delta_table import DeltaTable
from deltalog.table_change import changed_table
from deltalog.verbs.append import FileOptions, stage_append
from deltalog.verbs.overwrite import (
    stage_overwrite,
    stage_overwrite_partitions,
    stage_replace_where,
)
from deltalog.write import files
from deltalog.write.source import is_rereadable, open_source
from deltalog.write.spec import WriteSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import PurePath

    import pyarrow as pa

    from deltalog.schema import Schema
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.transaction import (
        CommitProperties,
        PendingTransaction,
        PostCommitHookProperties,
    )
    from deltalog.verbs.append import SchemaMode
    from deltalog.write.options import WriterProperties
    from deltalog.write.written import WrittenFiles

    Mode = Literal["error", "append", "overwrite", "ignore"]
    PartitionOverwrite = Literal["static", "dynamic"]

# As deltalake calls them, and as the history of a table does.
_MODES: Final = {
    "error": "ErrorIfExists",
    "append": "Append",
    "overwrite": "Overwrite",
    "ignore": "Ignore",
}


def write_deltalake(  # noqa: PLR0913  # deltalake's signature and some more
    table_or_uri: str | PurePath | Store | DeltaTable,
    data: object,
    *,
    partition_by: Sequence[str] | str | None = None,
    mode: Mode = "error",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    schema_mode: SchemaMode | None = None,
    storage_options: StorageOptions | None = None,
    predicate: Any = None,
    partition_overwrite: PartitionOverwrite = "static",
    target_file_size: int | None = None,
    writer_properties: WriterProperties | None = None,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    filesystem: Any = None,
    default_timezone: str | None = None,
) -> None:
    """Write rows to a Delta table; it is made if it is not there.

    Args:
        table_or_uri: where; a `DeltaTable` stands at the new version afterwards.
        data: a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars data
            frame, a DuckDB relation, any object with `__arrow_c_stream__` or `__arrow_c_array__`,
            a list of dicts, or an iterable of batches. It may be larger than memory.
        partition_by: partition columns of a new table, or with `mode="overwrite"` and
            `schema_mode="overwrite"` the new ones; otherwise they must be the table's.
        mode: `error` if there is a table, `append`, `overwrite`, or `ignore`: do nothing if there
            is a table.
        name: of a new table.
        description: of a new table.
        configuration: properties of a new table; None takes a default of `table_defaults` away.
        schema_mode: `merge` adds the columns that only the data has; `overwrite` gives the table
            the data's schema (`mode="overwrite"` without a predicate).
        storage_options: for the file system, as for `DeltaTable`.
        predicate: with `mode="overwrite"`: only the rows for which it is true are replaced, and
            every new row must match it (`replaceWhere`).
        partition_overwrite: `dynamic` with `mode="overwrite"`: only the partitions that the new
            rows fall into are replaced.
        target_file_size: bytes; None follows `delta.targetFileSize`, then 128 MiB.
        writer_properties: how Parquet is written.
        commit_properties: of the commit; with application transactions a repeated write is skipped.
        post_commithook_properties: what follows the commit.
        parameters: values for `?` or `:name` in an SQL predicate.
        filesystem: as for `DeltaTable`.
        default_timezone: of times without a zone; None is UTC. A `DeltaTable` has its own.

    Raises:
        TableExistsError: `mode="error"`, and there is a table.
        SchemaMismatchError: the rows do not fit the table's schema.
        ConstraintViolationError: rows break a rule of the table, or do not match `predicate`.
        CommitFailedError: another writer won; the leaves say why. The table is as it was.
        UnsupportedFeatureError: the table needs what deltalog cannot honour.

    Cost: one pass over the data. An append looks at no file of the table.
    """
    columns = [partition_by] if isinstance(partition_by, str) else partition_by
    write = _Write(
        data=data,
        mode=mode,
        schema_mode=schema_mode,
        predicate=predicate,
        parameters=parameters,
        dynamic=partition_overwrite == "dynamic",
        partition_by=columns,
        options=FileOptions(
            target_file_size_bytes=target_file_size,
            writer_properties=writer_properties,
        ),
    )
    write.check(partition_overwrite)
    table = _open(table_or_uri, storage_options, filesystem, default_timezone)
    if not isinstance(table, DeltaTable):
        rows = open_source(data)
        try:
            make_table(
                table,
                new_table_with_defaults(
                    _schema_of(rows, table.store),
                    partition_columns=columns or (),
                    configuration=configuration,
                    name=name,
                    description=description,
                ),
                lambda pending: stage_append(pending, rows, options=write.options),
                operation="WRITE",
                parameters=write.shown,
                commit_properties=commit_properties,
                hooks=post_commithook_properties,
            )
        except CommitConflictError:
            # Somebody else made a table there first: the write goes on as a write to that one.
            if mode in {"append", "overwrite"} and not is_rereadable(data):
                raise
            table = DeltaTable(table.store, default_timezone=table.time_zone)
        else:
            return
    if mode == "ignore":
        return
    if mode == "error":
        raise TableExistsError(
            f"cannot create a table at {table.table_uri}: there is one, at version "
            f"{table.version()}; use mode='append' or mode='overwrite'"
        )
    write.check_fits(table, configuration)
    table.run(
        "WRITE",
        write.stage,
        parameters=write.shown,
        refresh=mode == "overwrite",
        on_conflict="retry" if is_rereadable(data) else "raise",
        commit_properties=commit_properties,
        hooks=post_commithook_properties,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """What a call asks for, apart from the table."""

    data: object
    mode: str
    schema_mode: SchemaMode | None
    predicate: Any
    parameters: Sequence[object] | Mapping[str, object] | None
    dynamic: bool
    partition_by: Sequence[str] | None
    options: FileOptions

    @property
    def shown(self) -> dict[str, Any]:
        """The parameters of the operation, as the history shows them."""
        found = {"mode": _MODES[self.mode], "partitionBy": list(self.partition_by or ())}
        return found if self.predicate is None else {**found, "predicate": str(self.predicate)}

    def check(self, partition_overwrite: str) -> None:
        """Refuse what does not go together."""
        check_given(self.predicate)
        for name, value, known in (
            ("mode", self.mode, tuple(_MODES)),
            ("schema_mode", self.schema_mode, (None, "merge", "overwrite")),
            ("partition_overwrite", partition_overwrite, ("static", "dynamic")),
        ):
            if value not in known:
                expected = ", ".join(map(repr, known))
                raise InvalidInputError(f"{name}: expected one of {expected}, found {value!r}")
        for name, given in (
            ("predicate", self.predicate is not None),
            ("partition_overwrite='dynamic'", self.dynamic),
        ):
            if given and self.mode != "overwrite":
                raise InvalidInputError(
                    f"{name} goes with mode='overwrite', found mode={self.mode!r}"
                )
        if self.dynamic and (self.predicate is not None or self.schema_mode == "overwrite"):
            raise InvalidInputError(
                "partition_overwrite='dynamic' goes neither with a predicate nor with "
                "schema_mode='overwrite': the rows decide what is replaced"
            )

    def check_fits(self, table: DeltaTable, configuration: Mapping[str, str | None] | None) -> None:
        """Refuse partition columns and properties that the existing table does not have."""
        own = table.metadata().partition_columns
        replaces = self.mode == "overwrite" and self.schema_mode == "overwrite"
        if self.partition_by is not None and not replaces:
            asked = [name.lower() for name in self.partition_by]
            if asked != [name.lower() for name in own]:
                raise InvalidInputError(
                    f"cannot write to {table.table_uri} by partitions {list(self.partition_by)}: "
                    f"the table has {list(own)}; mode='overwrite' with schema_mode='overwrite' "
                    "changes them"
                )
        current = table.snapshot.configuration
        known = current.metadata.configuration
        for key, value in (configuration or {}).items():
            if value is None or known.get(key) == value:
                continue
            # Some properties ask for features and are not kept; they may be asked for again.
            if (
                changed_table(current, configuration={**known, canonical_key(key): value})
                != current
            ):
                raise InvalidInputError(
                    f"cannot write to {table.table_uri} with {key}={value!r}: the table has "
                    f"{known.get(key)!r}; table.alter.set_table_properties changes it"
                )

    def stage(self, pending: PendingTransaction) -> object:
        """Write the files and plan the commit."""
        rows = open_source(self.data)
        options, schema_mode = self.options, self.schema_mode
        if self.mode == "append":
            return stage_append(pending, rows, options=options, schema_mode=schema_mode)
        if self.dynamic:
            return stage_overwrite_partitions(pending, rows, options=options)
        predicate = as_condition(
            pending.configuration.schema, self.predicate, parameters=self.parameters
        )
        if predicate is not None:
            return stage_replace_where(
                pending, rows, predicate, options=options, schema_mode=schema_mode
            )
        return stage_overwrite(
            pending,
            rows,
            options=options,
            schema_mode=schema_mode,
            partition_by=self.partition_by,
        )


def _schema_of(rows: pa.RecordBatchReader, store: Store) -> Schema:
    """The schema of a table that is made of data."""
    if not rows.schema.names:
        raise InvalidInputError(
            f"cannot make a table at {store.root} of the data: it has no columns; "
            "DeltaTable.create makes an empty table of a schema"
        )
    return from_arrow_schema(rows.schema)


def _open(
    table_or_uri: str | PurePath | Store | DeltaTable,
    storage_options: StorageOptions | None,
    filesystem: Any,
    time_zone: str | None,
) -> DeltaTable | TableContext:
    """The table, or where it is to be."""
    if isinstance(table_or_uri, DeltaTable):
        own = table_or_uri.snapshot.context.time_zone
        if time_zone not in {None, own}:
            raise InvalidInputError(
                f"cannot write to {table_or_uri!r} with default_timezone={time_zone!r}: the table "
                f"was opened with {own!r}; open it with the other zone"
            )
        return table_or_uri
    store, at = open_table_store(table_or_uri, storage_options, filesystem)
    if at is not None:
        raise InvalidInputError(
            f"cannot write to {table_or_uri!r}: it names a version, and writes go to the latest"
        )
    zone = time_zone or "UTC"
    if has_table(store):
        return DeltaTable(store, default_timezone=zone)
    return TableContext(store=store, time_zone=zone)


def write_files(table: DeltaTable | WriteSpec, data: object) -> WrittenFiles:
    """Write rows as data files that no commit names yet: the worker's half of an append.

    Args:
        table: the table, or what its `write_spec()` gave; both can be pickled.
        data: as for `write_deltalake`.

    Returns:
        What `DeltaTable.commit` takes, on any machine. If that never happens, `vacuum` removes
        the files.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows do not fit; no file is left.
    """
    if not isinstance(table, DeltaTable | WriteSpec):
        raise InvalidInputError(
            f"cannot write files of {table!r}: expected a DeltaTable, or what write_spec() gave"
        )
    spec = table.write_spec() if isinstance(table, DeltaTable) else table
    return files.write_files(spec, data)
