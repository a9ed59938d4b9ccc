"""Reads and writes whose parts are done by the tasks of another engine: Dask, Ray, Daft.

Owns what these engines share, and knows none of them. `reading` opens a version and narrows a read
to what a query needs, `groups` shares its files out among tasks, `writing` has tasks write files
and makes one commit of them, `sending` pickles what goes to tasks.

Protocol: none
"""

from __future__ import annotations

from deltalog.distributed.groups import TaskGroup, share_by_bytes, share_by_number
from deltalog.distributed.reading import VersionRead, open_version
from deltalog.distributed.sending import Sent
from deltalog.distributed.writing import (
    DistributedRows,
    Report,
    own_errors,
    reported,
    write_rows,
)

__all__ = [
    "DistributedRows",
    "Report",
    "Sent",
    "TaskGroup",
    "VersionRead",
    "open_version",
    "own_errors",
    "reported",
    "share_by_bytes",
    "share_by_number",
    "write_rows",
]
