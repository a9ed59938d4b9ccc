"""Bins of files that tasks rewrite, one task for each bin.

Owns how a bin travels. Which files are in it, and how its rows are arranged, the verb says.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from deltalog.rows.bins import BinReader
from deltalog.spark.session.tasks import decode_all, numbers_in, report, run_tasks
from deltalog.transaction import PendingTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from deltalog.configuration import TableConfiguration
    from deltalog.rows.bins import Bin, BinRewrite, Rewrite, Rewritten
    from deltalog.rows.files import FileOptions
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class BinSpec:
    """What tasks must know to rewrite bins.

    Args:
        snapshot: of the table.
        configuration: of the table, as it will be.
        operation: for which they are rewritten.
        files: how new files are written.
        bins: by number.
        rewrite: makes new files of a bin's rows.
    """

    snapshot: Snapshot
    configuration: TableConfiguration
    operation: str
    files: FileOptions
    bins: tuple[Bin, ...]
    rewrite: Rewrite


def rewrite_by_tasks(spark: SparkSession, job: BinRewrite) -> list[Rewritten]:
    """Rewrite all bins of a job, whatever its interval: one Spark job does them at once."""
    transaction = job.transaction
    spec = BinSpec(
        snapshot=transaction.base,
        configuration=transaction.configuration,
        operation=transaction.operation,
        files=job.options.files,
        bins=tuple(job.bins),
        rewrite=job.rewrite,
    )
    count, store = len(job.bins), transaction.store
    messages = run_tasks(
        spark.range(0, count, 1, count), partial(rewrite_task, spec), f"optimizing {store.root}"
    )
    found: dict[int, Rewritten] = {}
    for done in decode_all(messages, store, _paths):
        found.update(done)
    return [found[number] for number in range(count)]


def rewrite_task(spec: BinSpec, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Rewrite the bins whose numbers are in the batches; report number → `Rewritten`."""
    transaction = PendingTransaction(
        spec.snapshot.context,
        spec.snapshot,
        operation=spec.operation,
        configuration=spec.configuration,
    )
    rows = BinReader(transaction, spec.files, _show_nothing, num_tasks=1)
    return report(
        lambda: {number: spec.rewrite(rows, spec.bins[number]) for number in numbers_in(batches)}
    )


def _paths(done: dict[int, Rewritten]) -> list[str]:
    return [path for one in done.values() for path in one.written.paths]


def _show_nothing() -> None:
    """Progress is Spark's to show."""
