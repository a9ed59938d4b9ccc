"""Files that callers commit themselves, under deltalake's names: `AddAction`, `RemoveAction`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class AddAction:
    """A Parquet file in the table's directory that becomes part of the table.

    Args:
        path: relative to the table, not encoded.
        size: bytes.
        partition_values: column → its text, as in `partitions()`.
        modification_time: milliseconds since 1970, UTC.
        data_change: False if its rows were in the table before.
        stats: JSON text, such as `{"numRecords": 3}`; whoever gives it answers for it.
    """

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    data_change: bool
    stats: str


@dataclass(slots=True)
class RemoveAction:
    """A file that leaves the table.

    Args:
        path: relative to the table, not encoded.
        data_change: False if its rows stay in the table, in another file.
        deletion_timestamp: accepted for deltalake's users; the commit's time is told.
        size: accepted likewise; the table knows it.
        partition_values: accepted likewise.
    """

    path: str
    data_change: bool
    deletion_timestamp: int
    size: int | None = None
    partition_values: Mapping[str, str | None] | None = None
