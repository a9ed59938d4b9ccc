"""The settings with which a worker writes data files of a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.configuration import TableConfiguration
    from deltalog.storage.store import Store
    from deltalog.write.options import WriterProperties

DEFAULT_TARGET_FILE_SIZE_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSpec:
    """The settings with which a worker writes data files of a table; it can be pickled.

    Args:
        store: of the table.
        configuration: protocol and metadata that the rows must fit.
        time_zone: of timestamps without a zone.
        target_file_size_bytes: a file that has reached it is closed, and another one opened.
        max_rows_per_file: so many rows at most in each file; None is no limit.
        writer_properties: Parquet options; None uses the table's properties.
        identity_starts: identity column → the first value to assign, for workers that write at the
            same time; other columns continue after their high water mark.
        data_change: False if the rows were in the table before.
        now_ms: the value of `current_timestamp()`; None is the start of the write.
        casts: whether columns are cast, see `fit.Fit`.
    """

    store: Store
    configuration: TableConfiguration
    time_zone: str
    target_file_size_bytes: int = DEFAULT_TARGET_FILE_SIZE_BYTES
    max_rows_per_file: int | None = None
    writer_properties: WriterProperties | None = None
    identity_starts: Mapping[str, int] = field(default_factory=dict)
    data_change: bool = True
    now_ms: int | None = None
    casts: bool = False

    def starting_at(self, identity_starts: Mapping[str, int]) -> Self:
        """The same, with other first values of identity columns."""
        return replace(self, identity_starts=dict(identity_starts))
