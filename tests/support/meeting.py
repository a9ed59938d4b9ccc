"""A store whose requests must be under way at once."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from deltalog.testing import CountingStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.store import ByteRange, Store


class MeetingStore(CountingStore):
    """A store that answers the first reads of some data files when they are under way at once.

    Args:
        store: with the files.
        meeting: how many reads meet.
        turn: which read of a file it is: its footer, its first columns, the others.
    """

    def __init__(self, store: Store, meeting: int, *, turn: int) -> None:
        super().__init__(store)
        self._turn = turn
        self._turns: Counter[str] = Counter()
        self.still_to_meet = meeting
        self._meeting = threading.Barrier(meeting)

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        with self._lock:
            self._turns[path] += 1
            meets = self._turns[path] == self._turn and self.still_to_meet > 0
            self.still_to_meet -= meets
        if meets:
            self._meeting.wait(60)
        return super().read_ranges(path, ranges)
