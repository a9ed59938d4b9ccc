"""Rewrite the rows of a bin in the order of a space-filling curve through some columns.

Protocol: none; Delta Spark's OPTIMIZE … ZORDER BY and clustered tables
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog.kernels import compute
from deltalog.metadata_columns import METADATA
from deltalog.rows.bins import Rewritten
from deltalog.rows.external_sort import SortLimits, sort_batches
from deltalog.verbs.optimize.curves import Curve, bits_for, curve_keys
from deltalog.verbs.optimize.ranks import Ranges, sample_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from deltalog.rows.bins import Bin, BinReader
    from deltalog.schema.columns import Path

_KEY: Final = f"{METADATA}.sort_key"  # no column of a table has this name
_BYTES_PER_ROW: Final = 64
_MOST_SAMPLED_ROWS: Final = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The sort order of the rows.

    Args:
        paths: the columns; they have equal weight.
        curve: through them.
        limits: of sorting; bins that are rewritten at the same time share the memory.
    """

    paths: tuple[Path, ...]
    curve: Curve
    limits: SortLimits

    def rewrite(self, rows: BinReader, one: Bin) -> Rewritten:
        """Write the rows of a bin to new files in this order.

        Cost: the columns are read twice, first for a sample; see also `sort_batches`.
        """
        bits = bits_for(len(self.paths))
        ranges = self._ranges(rows, one, 1 << bits)
        batches = rows.read(one.files)
        limits = replace(
            self.limits, memory_bytes=max(1, self.limits.memory_bytes // rows.num_tasks)
        )
        keyed = self._keyed(batches, ranges, bits)
        with rows.writer() as writer:
            for batch in sort_batches(keyed, _KEY, limits):
                rows.write(writer, batch.drop_columns([_KEY]))
            return Rewritten(written=writer.finish(), num_batches=batches.count)

    def _ranges(self, rows: BinReader, one: Bin, num_ranks: int) -> Sequence[Ranges]:
        counts = compute.coalesce(
            one.files.column("numRecords"),
            compute.divide(one.files.column("size"), _BYTES_PER_ROW),
        )
        num_rows = compute.sum(counts).as_py() or 0
        step = max(1, num_rows // _MOST_SAMPLED_ROWS)
        files = one.files.take(list(range(0, one.files.num_rows, step)))
        columns = list(dict.fromkeys(path[0] for path in self.paths))
        sampled = rows.read(files, columns)
        return sample_ranges(sampled, self.paths, num_rows // step, num_ranks)

    def _keyed(
        self, batches: Iterable[pa.RecordBatch], ranges: Sequence[Ranges], bits: int
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ranks = [column.ranks(batch) for column in ranges]
            keys = curve_keys(ranks, bits, self.curve)
            yield batch.append_column(_KEY, keys)
