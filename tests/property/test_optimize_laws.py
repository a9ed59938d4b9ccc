"""Laws: an optimization changes no row, no row id and nothing in the change feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.operations.changes.bins import RunOptions
from deltalog.operations.changes.external_sort import SortLimits
from deltalog.operations.operation import Operation
from deltalog.operations.optimize import (
    Cluster,
    Compact,
    CubeSizes,
    Optimized,
    Purge,
    ZOrder,
)
from tests.support.optimizing import IDS, OptimizedTable, run_options
from tests.support.statements import FEED, ROW_IDS, VECTORS, in_order

pytestmark = pytest.mark.slow("tables are written anew for each example")

COLUMNS = {"k": "long", "g": "string", "x": "double", "s": "struct<a:long,b:string>"}
SHOWN = (*COLUMNS, *IDS)

Step = Callable[[OptimizedTable], Any]

LONGS = st.none() | st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)
TEXTS = st.none() | st.sampled_from(["", "a", "b", "c/ d", "ä"]) | st.text(max_size=3)
DOUBLES = st.none() | st.floats(allow_nan=False)
STRUCTS = st.none() | st.fixed_dictionaries({"a": LONGS, "b": TEXTS})
ROWS = st.fixed_dictionaries({"k": LONGS, "g": TEXTS, "x": DOUBLES, "s": STRUCTS})
FILES = st.lists(st.lists(ROWS, min_size=1, max_size=6), min_size=1, max_size=5)
TARGETS = st.sampled_from([None, 1, 2000, 4000])
TASKS = st.sampled_from([None, 1, 3])
MEMORY = st.sampled_from([1, 300, 1 << 30]).map(lambda size: SortLimits(memory_bytes=size))


@st.composite
def options(draw: st.DrawFn) -> RunOptions:
    return run_options(
        draw(TARGETS),
        max_concurrent_tasks=draw(TASKS),
        min_commit_interval_s=draw(st.sampled_from([None, 0])),
    )


def all_of(
    table: OptimizedTable, stage: type[Operation[Optimized]], *given: Any, **more: Any
) -> None:
    """Every commit of an optimization."""
    done = table.optimize(stage, *given, **more)
    while done.left:
        done = table.optimize(stage, *given, left=done.left, **more)


@st.composite
def tables(draw: st.DrawFn) -> tuple[OptimizedTable, str]:
    """A table, and whether it is plain, partitioned or clustered."""
    kind = draw(st.sampled_from(["plain", "partitioned", "clustered"]))
    properties = {**FEED, **ROW_IDS}
    if draw(st.booleans()):
        properties |= VECTORS
    if draw(st.booleans()):
        properties |= {"delta.columnMapping.mode": draw(st.sampled_from(["name", "id"]))}
    table = OptimizedTable(
        COLUMNS,
        *draw(FILES),
        properties=properties,
        partition_by=["g"] if kind == "partitioned" else [],
    )
    if kind == "clustered":
        table.cluster_by("k", "s.b", "x")
    return table, kind


@st.composite
def optimizations(draw: st.DrawFn, kind: str) -> Step:
    """Anything that rewrites files."""
    run, limits = draw(options()), draw(MEMORY)
    match draw(st.sampled_from(["compact", "order", "purge"])):
        case "compact":
            share = draw(st.floats(0, 1))
            return lambda table: all_of(table, Compact, options=run, max_deleted_share=share)
        case "purge":
            return lambda table: all_of(table, Purge, options=run)
        case _ if kind == "clustered":
            sizes = CubeSizes(full_bytes=draw(st.sampled_from([1, 1 << 40])), target_bytes=1)
            full = draw(st.booleans())
            return lambda table: all_of(
                table, Cluster, full=full, sizes=sizes, limits=limits, options=run
            )
        case _:
            columns = st.lists(st.sampled_from(["k", "x", "s.b"]), min_size=1, unique=True)
            wanted = draw(columns)
            return lambda table: all_of(table, ZOrder, wanted, limits=limits, options=run)


@settings(deadline=None)
@given(data=st.data())
def test_an_optimization_changes_no_row_and_no_id(data: st.DataObject) -> None:
    table, kind = data.draw(tables())
    for _ in range(data.draw(st.integers(1, 3), label="steps")):
        condition = data.draw(st.sampled_from([None, "k > 0", "s.a IS NULL", "g = 'a'"]))
        if condition is not None:
            table.delete(condition)
        before, start = table.rows(*SHOWN), table.version
        data.draw(optimizations(kind), label="optimization")(table)
        assert table.rows(*SHOWN) == before
        for version in range(start + 1, table.version + 1):
            assert table.changes(version) == []
        if data.draw(st.booleans()):
            table.append(data.draw(st.lists(ROWS, min_size=1, max_size=3), label="appended"))


@settings(deadline=None)
@given(files=FILES, target=TARGETS, masked=st.booleans())
def test_a_second_compaction_of_full_files_finds_nothing(
    files: list[list[dict[str, Any]]],
    target: int | None,
    masked: bool,
) -> None:
    table = OptimizedTable(COLUMNS, *files, properties=VECTORS if masked else {})
    table.delete("k > 0")
    rows = in_order(table.rows())
    table.optimize(Compact)
    version = table.version
    table.optimize(Compact, options=run_options(target))
    assert table.version == version
    assert table.rows() == rows
