"""Merge a stream into a table with `foreachBatch`.

Owns idempotence: a batch is merged once, however often Spark repeats it.

Protocol: Transaction Identifiers
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.spark.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from deltalog.spark.merge import DeltaMergeBuilder


def merge_batches(
    table: str,
    condition: str,
    clauses: Callable[[DeltaMergeBuilder], DeltaMergeBuilder],
    *,
    app_id: str,
    prepare: Callable[[DataFrame], DataFrame] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that merges each batch into a table exactly once.

    Args:
        table: its location; its alias in conditions is `t`.
        condition: Spark SQL, which rows match; the alias of batches is `s`.
        clauses: adds them, such as `lambda m: m.whenMatchedUpdateAll().whenNotMatchedInsertAll()`.
        app_id: unique for the query: it is recorded in the table with the batch's number, so that
            a repeated batch is skipped.
        prepare: makes the source of a batch, such as `lambda df: df.dropDuplicates(["id"])`: a
            batch may hold several rows of a key, and a merge takes one.
        storage_options: credentials and settings for the store.
    """

    def merge(batch: DataFrame, number: int) -> None:
        source = batch if prepare is None else prepare(batch)
        found = DeltaTable.forPath(batch.sparkSession, table, storage_options=storage_options)
        begun = found.inTransaction(app_id, number).alias("t").merge(source.alias("s"), condition)
        clauses(begun).execute()

    return merge
