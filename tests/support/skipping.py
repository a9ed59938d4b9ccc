"""Tables that are judged by their statistics alone."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from deltalog.expressions import Expression, parse_sql, resolve_predicate
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.stats.skipping import Skipping, plan_skipping
from deltalog.schema import ArrayType, Field, StructType


@dataclass(frozen=True)
class FakeTable:
    """What skipping asks a table for."""

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: Mode = Mode.NONE


TABLE = FakeTable(
    StructType(
        [
            Field("x", "long"),
            Field("i", "integer"),
            Field("s", "string"),
            Field("f", "double"),
            Field("t", "timestamp"),
            Field("n", "timestamp_ntz"),
            Field("d", "date"),
            Field("b", "boolean"),
            Field("st", StructType([Field("a", "integer")])),
            Field("l", ArrayType("long")),
            Field("p", "integer"),
            Field("q", "string"),
        ]
    ),
    partition_columns=("p", "q"),
)


def plan(predicate: str | Expression, table: FakeTable = TABLE) -> Skipping | None:
    """What decides about files; None if nothing can."""
    tree = parse_sql(predicate) if isinstance(predicate, str) else predicate
    return plan_skipping(resolve_predicate(tree, table.schema), table)


def keep(
    predicate: str | Expression,
    *stats: str | None,
    partitions: pa.Table | None = None,
    table: FakeTable = TABLE,
) -> list[bool]:
    """Which files may hold rows that match."""
    skipping = plan(predicate, table)
    if skipping is None:
        return [True] * len(stats)
    parsed = parse_stats(pa.array(list(stats), pa.string()), skipping.stats_schema)
    return [bool(kept) for kept in skipping.keep(parsed, partitions).to_pylist()]


def stats(column: str, low: str, high: str, *, nulls: int = 0, rows: int = 10) -> str:
    """Statistics of a file with bounds in one column."""
    return (
        f'{{"numRecords":{rows},"minValues":{{"{column}":{low}}},'
        f'"maxValues":{{"{column}":{high}}},"nullCount":{{"{column}":{nulls}}}}}'
    )


ONE_TO_FIVE = stats("x", "1", "5")


ALL_NULL = '{"numRecords":10,"minValues":{},"maxValues":{},"nullCount":{"x":10}}'
