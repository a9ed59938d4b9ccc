"""Work on the next items while the current one is used.

Scans read files this way: the next files are opened and decoded while a caller looks at the
current batches. The threads here may wait for the I/O pool (`storage.pool`), never the other way
round, so that neither can starve the other. A forked child makes its threads anew.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def read_ahead(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, depth: int
) -> Iterator[_Result]:
    """`function` of every item, in order, with up to `depth` items under way.

    The first exception is raised where its result was due. When the caller stops early, what has
    not begun is dropped.

    Args:
        function: must not call `read_ahead` of the same stage.
        items: taken one by one in the caller's thread, only as far as needed.
        depth: how many results may be computed before they are asked for.
    """
    source = iter(items)
    waiting: deque[Future[_Result]] = deque()
    pool = _state.pool()
    try:
        for item in source:
            waiting.append(pool.submit(function, item))
            if len(waiting) > depth:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


class _State:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                workers = max(4, 2 * (os.cpu_count() or 1))
                self._pool = ThreadPoolExecutor(workers, thread_name_prefix="deltalog-scan")
            return self._pool

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._pool = None


_state = _State()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.forget)
