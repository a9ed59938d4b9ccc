"""Share the files of a scan out among the tasks of an engine.

Owns the grouping of small files. A file is never split: its rows are read by one task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.paths import join
from deltalog.scan.reader import read_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.scan.task import ScanTask


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGroup:
    """Files that one task of an engine reads; picklable.

    Args:
        schema: of the rows.
        tasks: one for each file, in the order of their rows.
    """

    schema: pa.Schema
    tasks: tuple[ScanTask, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Size of the files as they are stored, as far as the log tells it."""
        return sum(task.size_bytes or 0 for task in self.tasks)

    @property
    def num_rows(self) -> int | None:
        """How many rows these are; None if the log does not tell it, or a predicate decides."""
        if any(task.spec.predicate is not None for task in self.tasks):
            return None
        counts = [task.most_rows for task in self.tasks]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def locations(self) -> list[str]:
        """Where the files are."""
        return [join(task.store.root, task.path) for task in self.tasks]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, file by file; the next files are opened ahead.

        Cost: as `ScanTask.to_batches` of each.
        """
        return read_tasks(self.tasks)

    def to_table(self) -> pa.Table:
        """Return the rows in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def with_columns(self, names: Sequence[str]) -> TaskGroup:
        """The same rows with some of the columns, in the order wanted."""
        if not self.tasks:
            schema = pa.schema([self.schema.field(name) for name in names])
            return TaskGroup(schema=schema)
        spec = self.tasks[0].spec.with_columns(names)
        tasks = tuple(replace(task, spec=spec) for task in self.tasks)
        return TaskGroup(schema=spec.output, tasks=tasks)


def share_by_bytes(
    tasks: Iterable[ScanTask], schema: pa.Schema, *, most_bytes: int
) -> list[TaskGroup]:
    """Group files that follow each other, up to a size; a larger file is a group of its own.

    Args:
        tasks: of the files.
        schema: of the rows.
        most_bytes: of a group, as the files are stored.
    """
    groups: list[list[ScanTask]] = []
    num_bytes = 0
    for task in tasks:
        size = most_bytes if task.size_bytes is None else task.size_bytes
        if not groups or num_bytes + size > most_bytes:
            groups.append([])
            num_bytes = 0
        groups[-1].append(task)
        num_bytes += size
    return [TaskGroup(schema=schema, tasks=tuple(group)) for group in groups]


def share_by_number(
    tasks: Iterable[ScanTask], schema: pa.Schema, *, most_groups: int
) -> list[TaskGroup]:
    """Group files that follow each other, so that groups are of about the same size.

    Args:
        tasks: of the files.
        schema: of the rows.
        most_groups: 1 or more; with fewer files than that, each is a group.
    """
    found = list(tasks)
    if len(found) <= most_groups:
        return [TaskGroup(schema=schema, tasks=(task,)) for task in found]
    sizes = [max(1, task.size_bytes or 1) for task in found]
    total, before, placed = sum(sizes), 0, []
    for task, size in zip(found, sizes, strict=True):
        # By its middle, so that a large file at the end of a share goes to the next one.
        placed.append(
            (min(most_groups - 1, (2 * before + size) * most_groups // (2 * total)), task)
        )
        before += size
    return [
        TaskGroup(schema=schema, tasks=tuple(task for _, task in group))
        for _, group in groupby(placed, key=lambda one: one[0])
    ]
