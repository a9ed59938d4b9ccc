"""Rewriting bins of files, one task for each bin.

Owns how a bin is sent to its task. The verb decides which files are in it and how rows are ordered.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from deltalog.rows.bins import BinReader
from deltalog.spark.session.tasks import decode_all, run_numbered
from deltalog.transaction import PendingTransaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltalog.configuration import TableConfiguration
    from deltalog.rows.bins import Bin, BinRewrite, Rewrite, Rewritten
    from deltalog.rows.file_options import FileOptions
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class BinSpec:
    """What tasks need to rewrite bins.

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
    """Rewrite all bins in one Spark job; the job's commit interval does not apply."""
    transaction = job.transaction
    spec = BinSpec(
        snapshot=transaction.read_snapshot,
        configuration=transaction.configuration,
        operation=transaction.operation,
        files=job.options.files,
        bins=tuple(job.bins),
        rewrite=job.rewrite,
    )
    root, work = transaction.store.root, partial(rewrite_task, spec)
    messages = run_numbered(spark, len(job.bins), work, f"optimizing {root}")
    return decode_all(messages, transaction.store, lambda done: done.written.paths)


def rewrite_task(spec: BinSpec, number: int) -> Rewritten:
    """Rewrite the bin of a number; runs in a task."""
    transaction = PendingTransaction(
        spec.snapshot.context,
        spec.snapshot,
        operation=spec.operation,
        configuration=spec.configuration,
    )
    rows = BinReader(transaction, spec.files, _show_nothing, num_tasks=1)
    return spec.rewrite(rows, spec.bins[number])


def _show_nothing() -> None:
    """Show nothing: Spark shows the progress."""
