"""Streaming queries as PySpark's runner drives them, without Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pytest

from tests.support.spark_workers import sent

try:
    from pyspark.sql.streaming import datasource as limits

    EVERYTHING: Any = limits.ReadAllAvailable()
except ImportError:  # PySpark 4.1: a batch has all that is there
    EVERYTHING = None
needs_limits = pytest.mark.skipif(EVERYTHING is None, reason="this PySpark knows no limits")

Batch = list[Any]
Offset = dict[str, Any]


class StreamingQuery(ABC):
    """Batches from checkpointed offsets on, each planned and then read by a worker."""

    def __init__(self) -> None:
        self.offset: Offset | None = None
        self.start()

    @abstractmethod
    def open_reader(self) -> Any:
        """The reader of a process that has just begun."""

    def row(self, values: dict[str, Any]) -> Any:
        """What the test sees of a row."""
        return tuple(values.values())

    def start(self) -> None:
        """The query again, in another process, from where its checkpoint is."""
        self.reader = self.open_reader()
        if self.offset is None:
            self.offset = self.reader.initialOffset()

    def batch(self, limit: Any = None) -> Batch | None:
        """The rows of the next batch; None if there is none."""
        assert self.offset is not None
        if limit is None and EVERYTHING is not None:
            limit = self.reader.getDefaultReadLimit()
        end = self.reader.latestOffset(self.offset, limit)
        if end == self.offset:
            return None
        rows = self.rows_between(self.offset, end)
        self.reader.commit(end)
        self.offset = end
        return rows

    def rows_between(self, start: Offset, end: Offset) -> Batch:
        """The rows from one offset to another."""
        partitions = self.reader.partitions(start, end)
        worker = sent(self.reader)
        return [
            self.row(row)
            for partition in partitions
            for batch in worker.read(sent(partition))
            for row in batch.to_pylist()
        ]

    def batches(self, limit: Any = None) -> list[Batch]:
        """Batches until nothing is left."""
        found = []
        while (batch := self.batch(limit)) is not None:
            found.append(batch)
        return found
