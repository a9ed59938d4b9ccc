"""Optimizations whose store fails: the table is what it was or better, with the same rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from deltalog.errors import DeltaError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.changes.bins import RunOptions
from deltalog.operations.optimize import (
    Cluster,
    Compact,
    Purge,
    ZOrder,
)
from deltalog.testing import FaultyStore, Harm, InjectedFault
from tests.support.logs import DictStore
from tests.support.optimizing import IDS, OptimizedTable
from tests.support.statements import FEED, ROW_IDS, VECTORS

COLUMNS = {"id": "long", "p": "string"}
STAGES: dict[str, Callable[[OptimizedTable], object]] = {
    "compact": lambda table: table.optimize(Compact),
    "side by side": lambda table: table.optimize(
        Compact, options=RunOptions(max_concurrent_tasks=3)
    ),
    "z-order": lambda table: table.optimize(ZOrder, ["id"]),
    "purge": lambda table: table.optimize(Purge),
    "cluster": lambda table: table.optimize(Cluster, full=True),
}


def state(table: OptimizedTable) -> Any:
    return table.rows("id", "p", *IDS)


@pytest.mark.slow("a fault at each call of the store")
@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("harm", [Harm.CRASH, Harm.REFUSE])
def test_every_call_may_fail(name: str, harm: Harm) -> None:
    made = DictStore()
    table = OptimizedTable(
        COLUMNS,
        *([{"id": n, "p": "ab"[n % 2]}, {"id": n + 9, "p": "ab"[n % 2]}] for n in range(4)),
        partition_by=[] if name == "cluster" else ["p"],
        properties={**VECTORS, **ROW_IDS, **FEED},
        store=made,
    )
    if name == "cluster":
        table.cluster_by("id", "p")
    table.delete("id IN (1, 11)")
    before, version, committed = state(table), table.version, []
    for call in range(1, 300):
        inner = DictStore(files=dict(made.files))
        faulty = FaultyStore(inner, InjectedFault(call=call, harm=harm))
        with contextlib.suppress(DeltaError):
            STAGES[name](OptimizedTable.reopened(faulty))
        after = OptimizedTable.reopened(inner)
        assert state(after) == before
        committed.append(load_snapshot(utc_context(inner)).version > version)
        if harm is Harm.REFUSE and not committed[-1]:
            # The store works again: what was written for nothing is removed.
            assert {path for path in inner.files if is_data(path)} == {
                path for path in made.files if is_data(path)
            }
        if faulty.faults[0].seen < call:
            break
    assert not all(committed)
    assert committed[-1]


def is_data(path: str) -> bool:
    return path.endswith(".parquet")
