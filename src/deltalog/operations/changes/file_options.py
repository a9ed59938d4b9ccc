"""Options for the data files that an operation writes."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deltalog._util.argument_types import kind_of
from deltalog.data.write.options import (
    DEFAULT_TARGET_FILE_SIZE_BYTES,
    MAX_LONG,
    WriterProperties,
    WriteSpec,
)
from deltalog.errors import InvalidInputError
from deltalog.storage.store import unsynced

if TYPE_CHECKING:
    from deltalog.log.context import TableContext
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """Options for the data files that an operation writes.

    Args:
        target_file_size_bytes: the target size of new files; None means the property
            `delta.targetFileSize`, or 128 MiB if it is not set.
        max_rows_per_file: the maximum number of rows in each file; None means no limit.
        writer_properties: Parquet options.
        casts: whether columns of new rows are cast to the types of the table, see `write.fit.Fit`.
    """

    target_file_size_bytes: int | None = None
    max_rows_per_file: int | None = None
    writer_properties: WriterProperties | None = None
    casts: bool = False

    def __post_init__(self) -> None:
        """Raise for invalid values, which would otherwise fail in the middle of a write."""
        rows: object = self.max_rows_per_file
        size: object = self.target_file_size_bytes
        writer: object = self.writer_properties
        if size is not None and (not isinstance(size, int) or not 1 <= size <= MAX_LONG):
            raise InvalidInputError(
                "target_file_size: expected a number of bytes above 0 and below 2^63, found "
                f"{size!r}"
            )
        if rows is not None and (not isinstance(rows, int) or rows < 1):
            raise InvalidInputError(
                f"max_rows_per_file: expected a number of rows above 0, found {rows!r}"
            )
        if not isinstance(writer, WriterProperties | None):
            raise InvalidInputError(
                f"writer_properties: expected WriterProperties(…), found {kind_of(writer)}"
                f"{_meant_by(writer)}"
            )

    def spec_for(self, transaction: PendingTransaction, *, data_change: bool = True) -> WriteSpec:
        """Return the spec for writing data files of a transaction."""
        spec = self.spec(
            transaction.context,
            transaction.configuration,
            data_change=data_change,
            now_ms=transaction.context.clock.now_ms(),
        )
        return spec if transaction.job_id is None else replace(spec, job=transaction.job_id)

    def spec(
        self,
        context: TableContext,
        configuration: TableConfiguration,
        *,
        data_change: bool = True,
        now_ms: int | None = None,
    ) -> WriteSpec:
        """Return the spec for writing data files of a table."""
        target = self.target_file_size_bytes or configuration.properties.target_file_size_bytes
        return WriteSpec(
            store=context.store if configuration.properties.fsync else unsynced(context.store),
            configuration=configuration,
            time_zone=context.time_zone,
            target_file_size_bytes=target or DEFAULT_TARGET_FILE_SIZE_BYTES,
            max_rows_per_file=self.max_rows_per_file,
            writer_properties=self.writer_properties,
            data_change=data_change,
            now_ms=now_ms,
            casts=self.casts,
        )


def _meant_by(writer: object) -> str:
    """Return what to write instead of a value that is no `WriterProperties`."""
    names = inspect.signature(WriterProperties).parameters
    if isinstance(writer, dict) and writer and writer.keys() <= names.keys():
        given = ", ".join(f"{name}={value!r}" for name, value in writer.items())
        return f"; write WriterProperties({given})"
    if isinstance(writer, list | tuple | dict):
        return "; pass values for ? or :name as parameters=…"
    if isinstance(writer, str):
        is_codec = writer.isidentifier()  # a condition is longer
        if is_codec:
            return f"; write WriterProperties(compression={writer!r})"
        return "; a condition is one string: join conditions with AND"
    return ""
