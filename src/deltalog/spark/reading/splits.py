"""Splits: distribute files among tasks so that each has about the same work.

Protocol: none
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.scan import ScanTask

OPEN_COST_BYTES: Final = 1 << 19
"""The cost of opening a file, in bytes that could be read in that time.

Spark's own estimate is 4 MiB. A small file takes a Python worker 0.8 ms, and each task 70 ms, of
which Spark looks for new modules for 55: small files are put into fewer tasks.
"""
_FEWEST_BYTES: Final = 32 << 20
_MANY: Final = 64
"""Number of splits that keeps a usual cluster busy; with more bytes, splits grow first."""


def split_tasks(
    tasks: Sequence[ScanTask], max_bytes: int, *, in_order: bool = False
) -> list[list[ScanTask]]:
    """Group tasks by about the same size; no group is empty.

    Args:
        tasks: one per file.
        max_bytes: most bytes of a group; a single file may be larger.
        in_order: keep the order of files, so that neighbours stay together.
    """
    costs = [(task.size_bytes or 0) + OPEN_COST_BYTES for task in tasks]
    wanted = min(max_bytes, max(_FEWEST_BYTES, sum(costs) // _MANY))
    count = -(-sum(costs) // wanted)
    return _runs(tasks, costs, count, max_bytes) if in_order else _balanced(tasks, costs, count)


def _runs(
    tasks: Sequence[ScanTask], costs: Sequence[int], count: int, max_bytes: int
) -> list[list[ScanTask]]:
    """Cut the files into equal shares: a task with what the others left would keep them waiting."""
    groups: list[list[ScanTask]] = []
    total, before, filled, last = sum(costs), 0, 0, -1
    for task, cost in zip(tasks, costs, strict=True):
        share = (2 * before + cost) * count // (2 * total)  # in which the file's middle lies
        if share != last or filled + cost > max_bytes:
            groups.append([])
            filled, last = 0, share
        groups[-1].append(task)
        filled += cost
        before += cost
    return groups


def _balanced(tasks: Sequence[ScanTask], costs: Sequence[int], count: int) -> list[list[ScanTask]]:
    """Assign the largest first, each to the group that has the least so far."""
    groups: list[list[ScanTask]] = [[] for _ in range(min(count, len(tasks)))]
    least = [(0, number) for number in range(len(groups))]
    for position in sorted(range(len(tasks)), key=lambda at: -costs[at]):
        filled, number = heapq.heappop(least)
        groups[number].append(tasks[position])
        heapq.heappush(least, (filled + costs[position], number))
    return groups
