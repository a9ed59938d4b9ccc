"""The one I/O thread pool of the process.

It is for requests that a file system can only make one by one; nothing else in deltalog has
threads of its own. A forked child makes a pool anew.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_pool(
    function: Callable[[_Item], _Result], items: Sequence[_Item], *, batch_size: int = 1
) -> list[_Result]:
    """`function` of every item, in order; the first exception is raised.

    Args:
        function: makes one request. When it calls this function itself, that runs in its thread:
            waiting there for other threads of the pool could be for ever.
        items: what it is called with.
        batch_size: how many items one thread takes at a time.
    """
    if len(items) <= batch_size or getattr(_inside, "pool", False):
        return [function(item) for item in items]
    batches = [items[start : start + batch_size] for start in range(0, len(items), batch_size)]
    results = _state.pool().map(lambda batch: [function(item) for item in batch], batches)
    return [result for batch in results for result in batch]


class _State:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                workers = min(32, 4 * (os.cpu_count() or 1))
                self._pool = ThreadPoolExecutor(
                    workers, thread_name_prefix="deltalog-io", initializer=_mark_thread
                )
            return self._pool

    def forget(self) -> None:
        # The parent's threads do not exist in the child, and its lock may be held for ever.
        self._lock = threading.Lock()
        self._pool = None


def _mark_thread() -> None:
    _inside.pool = True


_inside = threading.local()
_state = _State()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.forget)
