"""Batches of add actions with their statistics, of a checkpoint or of commits.

Who streams the files of a version, to write a checkpoint of it, takes both alike, and decodes them
when and where it has use for them.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.kernels import compute
from deltalog.stats.parse import parsed_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from deltalog.stats.leaves import StatsLeaf


@dataclass(frozen=True, slots=True)
class AddBatch:
    """A batch of add actions, not decoded yet.

    Args:
        num_rows: of the batch.
        decode: returns a table of `FILE_SCHEMA` and a column per statistics leaf; may be called in
            another thread.
    """

    num_rows: int
    decode: Callable[[], tuple[pa.Table, list[pa.ChunkedArray[Any]]]]

    def filter(self, kept: pa.ChunkedArray[pa.BooleanScalar]) -> AddBatch:
        """The batch without the actions for which `kept`, a value for each, is false."""

        def decode() -> tuple[pa.Table, list[pa.ChunkedArray[Any]]]:
            adds, columns = self.decode()
            return adds.filter(kept), [column.filter(kept) for column in columns]

        return AddBatch(compute.sum(kept).as_py() or 0, decode)


def unread_adds(adds: pa.Table, leaves: Sequence[StatsLeaf]) -> AddBatch:
    """The batch of actions of commits, whose statistics are parsed when it is decoded.

    Args:
        adds: of `FILE_SCHEMA`.
        leaves: of the statistics.
    """
    return AddBatch(adds.num_rows, lambda: (adds, parsed_leaves(adds.column("stats"), leaves)))
