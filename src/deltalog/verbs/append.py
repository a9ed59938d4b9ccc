"""Append: new rows in new files; nothing that exists is looked at.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.rows.gather import optimizes_writes, write_optimized
from deltalog.schema import from_arrow_schema
from deltalog.schema.evolve import merge_schemas
from deltalog.table_change import changed_table
from deltalog.write.files import write_files
from deltalog.write.options import WriterProperties
from deltalog.write.spec import DEFAULT_TARGET_FILE_SIZE_BYTES, WriteSpec
from deltalog.write.written import WrittenFiles, rules_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.context import TableContext
    from deltalog.expressions import Expression
    from deltalog.transaction import PendingTransaction

SchemaMode = Literal["merge", "overwrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How data files are to be written.

    Args:
        target_file_size_bytes: None follows `delta.targetFileSize`, then 128 MiB.
        writer_properties: of Parquet.
    """

    target_file_size_bytes: int | None = None
    writer_properties: WriterProperties | None = None

    def __post_init__(self) -> None:
        """Refuse what would fail in the middle of a write."""
        size: object = self.target_file_size_bytes
        writer = self.writer_properties
        if size is not None and (not isinstance(size, int) or size < 1):
            raise InvalidInputError(
                f"target_file_size: expected a number of bytes above 0, found {size!r}"
            )
        if not isinstance(writer, WriterProperties | None):
            raise InvalidInputError(
                f"writer_properties: expected WriterProperties(…), found a {type(writer).__name__}"
            )

    def spec_for(self, pending: PendingTransaction, *, data_change: bool = True) -> WriteSpec:
        """What the writer of a transaction's files must know."""
        return self.spec(
            pending.context,
            pending.configuration,
            data_change=data_change,
            now_ms=pending.context.clock.now_ms(),
        )

    def spec(
        self,
        context: TableContext,
        configuration: TableConfiguration,
        *,
        data_change: bool = True,
        now_ms: int | None = None,
    ) -> WriteSpec:
        """What the writer of a table's files must know."""
        target = self.target_file_size_bytes or configuration.properties.target_file_size_bytes
        return WriteSpec(
            store=context.store,
            configuration=configuration,
            time_zone=context.time_zone,
            target_file_size_bytes=target or DEFAULT_TARGET_FILE_SIZE_BYTES,
            writer_properties=self.writer_properties,
            data_change=data_change,
            now_ms=now_ms,
        )


class DistantRows(Protocol):
    """Rows that are not here: they are written where they are, by whoever has them."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        ...

    def write_to(
        self, spec: WriteSpec, *, predicate: Expression | None = None, tells_changes: bool = False
    ) -> WrittenFiles:
        """Write them as files that no commit names yet.

        Args:
            spec: of the table.
            predicate: which every row must match.
            tells_changes: whether files for the change feed are written as well.
        """
        ...


Rows = pa.RecordBatchReader | DistantRows


def stage_append(
    pending: PendingTransaction,
    rows: Rows,
    *,
    options: FileOptions,
    schema_mode: SchemaMode | None = None,
) -> WrittenFiles:
    """Write rows into new files and add them to the transaction.

    Args:
        pending: of the table, or of a table that is to be made.
        rows: read once.
        options: of the files.
        schema_mode: `merge` adds the columns that only the data has.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows do not fit; nothing is left behind.
    """
    if schema_mode == "overwrite":
        raise InvalidInputError(
            "an append keeps the table's schema: schema_mode='overwrite' goes with mode='overwrite'"
        )
    if schema_mode == "merge" and pending.snapshot is not None:
        pending.set_configuration(with_columns_of(pending.configuration, rows.schema))
    written = write_rows(options.spec_for(pending), rows)
    pending.add_files(written)
    set_write_metrics(pending, written)
    return written


def write_rows(spec: WriteSpec, rows: Rows) -> WrittenFiles:
    """Write rows as the table wants it: gathered by partition, or as they come."""
    if not isinstance(rows, pa.RecordBatchReader):
        return rows.write_to(spec)
    write = write_optimized if optimizes_writes(spec.configuration) else write_files
    return write(spec, rows)


def stage_commit(
    pending: PendingTransaction,
    parts: Sequence[WrittenFiles],
    *,
    mode: Literal["append", "overwrite"],
) -> None:
    """Add files that workers have written to the transaction.

    Args:
        pending: of the table that they were written for.
        parts: what each worker gave.
        mode: `overwrite` removes every file that is there.

    Raises:
        InvalidInputError: they were written for another table, or for a schema or rules that the
            table has no more.
    """
    if mode not in {"append", "overwrite"}:
        raise InvalidInputError(f"mode: expected 'append' or 'overwrite', found {mode!r}")
    written = WrittenFiles.merge(parts)
    if written.schema_string != pending.configuration.metadata.schema_string:
        raise InvalidInputError(
            f"cannot commit these files to {pending.store.root}: they were written for a schema "
            "that the table has no more; write them again"
        )
    if written.rules and written.rules != rules_of(pending.configuration):
        raise InvalidInputError(
            f"cannot commit these files to {pending.store.root}: the table's properties, "
            "constraints, partition columns or protocol have changed since they were written; "
            "write them again"
        )
    pending.add_files(written)
    more = {}
    if mode == "overwrite" and pending.snapshot is not None:
        removed = pending.snapshot.files()
        pending.read(None)
        pending.remove_files(removed, data_change=True)
        more = {"numRemovedFiles": removed.num_rows}
    set_write_metrics(pending, written, **more)


def with_columns_of(configuration: TableConfiguration, schema: pa.Schema) -> TableConfiguration:
    """The configuration with the columns that only the data has.

    Raises:
        SchemaMismatchError: a column has another type than the table's.
    """
    merged = merge_schemas(
        configuration.schema,
        from_arrow_schema(schema),
        allow_widening=configuration.is_active("typeWidening"),
    )
    if merged == configuration.schema:
        return configuration
    return changed_table(configuration, schema=merged)


def set_write_metrics(pending: PendingTransaction, written: WrittenFiles, **more: Any) -> None:
    """What the history says of a write."""
    pending.set_metrics(
        {
            "numFiles": len(written.adds),
            "numOutputRows": written.num_rows,
            "numOutputBytes": sum(add.size_bytes for add in written.adds),
            **more,
        }
    )
