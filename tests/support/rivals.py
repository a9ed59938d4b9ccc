"""A store on which another writer is faster, so that commits lose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltalog import DeltaTable
from deltalog.storage import open_store
from deltalog.testing import CountingStore


class RivalStore(CountingStore):
    """A local store; another writer deletes a row before each of the first commits through it.

    Args:
        place: of a table with the column `id`.
        rivals: how many commits lose; the row with the id -1 is deleted last.
    """

    def __init__(self, place: Path, rivals: int) -> None:
        super().__init__(open_store(place))
        self._place = place
        self.rivals_left = rivals

    def __reduce__(self) -> tuple[Any, ...]:
        return RivalStore, (self._place, 0)

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self.rivals_left and path.startswith("_delta_log/0"):
            number, self.rivals_left = self.rivals_left, self.rivals_left - 1
            DeltaTable(self._place).delete(f"id = {-number}")
        super().put_if_absent(path, data)
