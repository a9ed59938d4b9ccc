"""What a worker must know to write files of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.configuration import TableConfiguration
    from deltalog.storage.store import Store
    from deltalog.write.options import WriterProperties

DEFAULT_TARGET_FILE_SIZE_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSpec:
    """Where rows go, and by which rules; it can be pickled.

    Args:
        store: of the table.
        configuration: protocol and metadata that the rows must fit.
        time_zone: of timestamps without a zone.
        target_file_size_bytes: a file that has reached it is closed, and another one opened.
        writer_properties: how Parquet is written; what is None follows the table's properties.
        identity_starts: identity column → the first value to give; what is not named goes on
            after the column's high water mark. For several workers that write at once.
        data_change: False if the rows were in the table before.
        now_ms: the moment that `current_timestamp()` means; None is when the write begins.
    """

    store: Store
    configuration: TableConfiguration
    time_zone: str
    target_file_size_bytes: int = DEFAULT_TARGET_FILE_SIZE_BYTES
    writer_properties: WriterProperties | None = None
    identity_starts: Mapping[str, int] = field(default_factory=dict)
    data_change: bool = True
    now_ms: int | None = None
