"""The input of the checks: one table, and how thoroughly to examine it.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.cached import cached_property
from deltalog.errors import InternalError
from deltalog.paths import LOG_DIRECTORY, decode_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.log.segment import LogListing
    from deltalog.paths import FileInfo
    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store

MANY: Final = 20
"""Most findings of one kind that are reported one by one; the rest is only counted."""


@dataclass(frozen=True)
class Patient:
    """A table to examine.

    Args:
        store: of the table.
        listing: the whole log.
        opened: the version; None if it cannot be opened.
        now_ms: the current time.
        num_samples: how many data files are read.
        num_commits: how many of the newest commits are read.
    """

    store: Store
    listing: LogListing
    opened: Snapshot | None
    now_ms: int
    num_samples: int
    num_commits: int

    @property
    def snapshot(self) -> Snapshot:
        """The version, for checks that need one."""
        if self.opened is None:
            raise InternalError("a check of an open table was made of one that is not")
        return self.opened

    @cached_property
    def log_files(self) -> Sequence[FileInfo]:
        """The files directly in the log's directory. Cost: one listing."""
        return list(self.store.list_from(LOG_DIRECTORY, ""))

    @cached_property
    def all_files(self) -> dict[str, int]:
        """Sizes of all files of the table, including the log, by path. Cost: one listing."""
        return {info.path: info.size_bytes for info in self.store.list_all("")}

    def sample(self, files: pa.Table) -> pa.Table:
        """A sample of the rows, evenly spread, with the first and the last."""
        count = files.num_rows
        if count <= self.num_samples:
            return files
        if self.num_samples <= 1:
            return files.slice(0, self.num_samples)
        last = self.num_samples - 1
        chosen = [number * (count - 1) // last for number in range(self.num_samples)]
        return files.take(pa.array(chosen, pa.int64()))


def decoded(column: Any) -> list[str]:
    """Decode a column of paths as they stand in the log."""
    return [decode_path(text) for text in column.to_pylist()]
