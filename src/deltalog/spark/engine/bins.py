"""Optimizations whose bins are rewritten by tasks: planned on the driver, committed there once.

Owns how a bin travels. What is in one, and how its rows are arranged, is the core's.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from deltalog.spark.session.parts import run_tasks, telling, told
from deltalog.transaction import PendingTransaction
from deltalog.verbs.optimize.run import Rewritten, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from deltalog.configuration import TableConfiguration
    from deltalog.rows.files import FileOptions
    from deltalog.snapshot import Snapshot
    from deltalog.verbs.optimize.bins import Bin
    from deltalog.verbs.optimize.run import Elsewhere, Rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class BinSpec:
    """What tasks must know to rewrite bins.

    Args:
        snapshot: of the table.
        configuration: of the table, as it will be.
        files: how new files are written.
        bins: by number.
        rewrite: makes new files of a bin's rows.
    """

    snapshot: Snapshot | None
    configuration: TableConfiguration
    files: FileOptions
    bins: tuple[Bin, ...]
    rewrite: Rewrite


def on_cluster(spark: SparkSession) -> Elsewhere:
    """Rewrites bins by tasks of a session, one bin each."""

    def rewrite_all(
        pending: PendingTransaction, files: FileOptions, bins: Sequence[Bin], rewrite: Rewrite
    ) -> list[Rewritten]:
        spec = BinSpec(
            snapshot=pending.snapshot,
            configuration=pending.configuration,
            files=files,
            bins=tuple(bins),
            rewrite=rewrite,
        )
        numbers = spark.range(0, len(bins), 1, len(bins))
        found: dict[int, Rewritten] = {}
        for message in run_tasks(
            numbers, partial(rewrite_task, spec), f"optimizing {pending.store.root}"
        ):
            found.update(told(message))
        return [found[number] for number in range(len(bins))]

    return rewrite_all


def rewrite_task(spec: BinSpec, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Rewrite the bins whose numbers are in the batches."""
    if spec.snapshot is None:
        return telling({})
    pending = PendingTransaction(
        spec.snapshot.context,
        spec.snapshot,
        operation="OPTIMIZE",
        configuration=spec.configuration,
    )
    rows = Rows(pending, spec.files, _tell_nobody, num_tasks=1)
    done = {}
    for batch in batches:
        for number in batch.column(0).to_pylist():
            done[int(number or 0)] = spec.rewrite(rows, spec.bins[int(number or 0)])
    return telling(done)


def _tell_nobody() -> None:
    """Progress is Spark's to show."""
