"""The threads of the process: they send requests, read in advance, and encode files.

There are three pools, and a few extra threads for requests. Each appender has its own thread.
deltalog has no other threads.

The first pool sends requests; its number of threads does not depend on the number of cores.
`map_in_pool` uses it for file systems that block a thread per request, and `read_ahead` for opening
the next files of a remote store. `send_together` has a few extra threads for requests that are sent
from a thread of this pool.

The second pool computes; it has about one thread per core. `read_ahead` uses it to decode the next
files while the caller processes the current batches. `Background` uses it to encode files while the
caller makes the next rows.

The third pool computes parts of one result concurrently (`compute_together`). Its threads never
wait for other threads.

To avoid deadlocks, a thread may only wait for threads that are later in this order: Arrow's
threads, second pool, first pool, third pool. Arrow's threads are first, because Arrow, DuckDB and
Polars run the generator of a dataset in them, and the generator waits for the second pool. So no
thread of these pools may wait for a thread of Arrow. For example, Parquet is decoded without
pre-buffering and without Arrow's threads (`tests/architecture/test_pools.py` has the list).

A forked child creates its own threads. Within `alone`, the calling thread does all the work itself,
in order.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import finalize

from deltalog._util.clock import WaitMeter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_pool(
    function: Callable[[_Item], _Result], items: Sequence[_Item], *, batch_size: int = 1
) -> list[_Result]:
    """Return the results of `function` for all items, in order; raise the first exception.

    Args:
        function: sends one request. If it calls `map_in_pool`, that call runs in the same thread,
            because waiting for other threads of the pool could cause a deadlock.
        items: the arguments of the calls.
        batch_size: the number of items that a thread processes per task.
    """
    if len(items) <= batch_size or _REQUESTS.is_inside():
        return [function(item) for item in items]
    batches = [items[start : start + batch_size] for start in range(0, len(items), batch_size)]
    results = _REQUESTS.map(lambda batch: [function(item) for item in batch], batches)
    return [result for batch in results for result in batch]


def map_a_few(
    function: Callable[[_Item], _Result], items: Sequence[_Item], *, batch_size: int
) -> list[_Result]:
    """Like `map_in_pool`, but in the calling thread as long as it does not wait for a disk.

    Starting threads takes longer than reading a few small parts of files that are in memory.
    """
    meter, found = WaitMeter(), list[_Result]()
    for item in items:
        if meter.mostly_waits:
            break
        with meter.measuring():
            found.append(function(item))
    return [*found, *map_in_pool(function, items[len(found) :], batch_size=batch_size)]


def send_together(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Like `map_in_pool`, for functions that wait for the store and for nothing else.

    If the caller is a thread of the first pool, extra threads send the requests concurrently;
    `map_in_pool` would send them one after the other.
    """
    if not _REQUESTS.is_inside():
        return map_in_pool(function, items)
    if len(items) <= 1 or _SENDERS.is_inside():
        return [function(item) for item in items]
    return _SENDERS.map(function, items)


def compute_together(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Return the results of `function` for all items, in order, computed on all cores.

    The calling thread also computes items that no other thread has begun, so it makes progress even
    if the pool is busy. Every thread may call this function. The first exception is raised.

    Args:
        function: computes, or reads a local file. It must not wait for other threads.
        items: the arguments of the calls.
    """
    if len(items) <= 1 or CORES == 1 or _DECODERS.is_inside():
        return [function(item) for item in items]
    futures = [_DECODERS.submit(function, item) for item in items[1:]]
    try:
        results = [function(items[0])]
        # The caller works from the end of the list, because the threads of the pool work from its
        # beginning.
        late = [
            function(item) if future.cancel() else future.result()
            for item, future in zip(reversed(items[1:]), reversed(futures), strict=True)
        ]
        return results + late[::-1]
    finally:
        for future in futures:
            future.cancel()
        wait_for(futures)


def interruptibly(wait: Callable[[], _Result]) -> _Result:
    """Return the result of `wait`; Ctrl-C works even if a client ignores signals while waiting.

    From the main thread, `wait` is called in another thread. That thread does not belong to a pool,
    because a process waits for its pools when it ends.
    """
    if threading.current_thread() is not threading.main_thread() or _REQUESTS.is_inside():
        return wait()
    answer: Future[_Result] = Future()
    threading.Thread(target=_answer, args=(answer, wait), name="deltalog-wait", daemon=True).start()
    return answer.result()


def while_waiting(wait: Callable[[], _Result], work: Callable[[], object]) -> _Result:
    """Return the result of `wait`, which waits for a store; call `work` in this thread meanwhile.

    A thread of the first pool does not call `work`, so `work` must be optional.
    """
    if _REQUESTS.is_inside():
        return wait()
    future = _REQUESTS.submit(wait)
    try:
        work()
    finally:
        wait_for([future])
    return future.result()


@contextmanager
def meanwhile(ask: Callable[[], object]) -> Iterator[None]:
    """Call `ask`, which waits for a store, in another thread during the `with` block.

    In a thread of the first pool, `ask` is not called, so it must be optional. Its exceptions are
    ignored.
    """
    if _REQUESTS.is_inside():
        yield
        return
    future = _REQUESTS.submit(ask)
    try:
        yield
    finally:
        if not future.cancel():
            wait_for([future])


def read_ahead(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    depth: int,
    sends_requests: bool = False,
    bytes_of: Callable[[_Item], int] | None = None,
) -> Iterator[_Result]:
    """Yield the results of `function` for all items, in order; compute up to `depth` in advance.

    An exception is raised at the position of its result. If the caller stops early, items that have
    not begun are dropped.

    Args:
        function: computes a result; it must not call `read_ahead`.
        items: the arguments; the caller's thread iterates over them, only as far as needed.
        depth: the maximum number of results that are computed before the caller requests them.
        sends_requests: whether `function` mostly waits for a store. If so, it must not use
            `Background`.
        bytes_of: returns the size of an item's result. All calls in the process together compute at
            most `MOST_BYTES` of results in advance, but each call always computes one result.
    """
    # To avoid deadlocks, a thread of `_REQUESTS` does not wait for a pool, and a thread of `_FILES`
    # waits only for `_REQUESTS`.
    if _REQUESTS.is_inside() or (_FILES.is_inside() and not sends_requests):
        yield from map(function, items)
        return
    waiting: deque[tuple[Future[_Result], int]] = deque()
    pool = _REQUESTS if sends_requests else _FILES

    def oldest() -> _Result:
        future, num_bytes = waiting.popleft()
        _AHEAD.give_back(num_bytes)
        return future.result()

    failures: list[Exception] = []
    try:
        for item in _until_failure(items, failures):
            num_bytes = 0 if bytes_of is None else bytes_of(item)
            while waiting and not _AHEAD.has_space(num_bytes):
                yield oldest()
            _AHEAD.take(num_bytes)
            waiting.append((pool.submit(function, item), num_bytes))
            if len(waiting) > depth:
                yield oldest()
        while waiting:
            yield oldest()
        for failure in failures:
            raise failure
    finally:
        for future, num_bytes in waiting:
            future.cancel()
            _AHEAD.give_back(num_bytes)


def _until_failure(items: Iterable[_Item], failures: list[Exception]) -> Iterator[_Item]:
    """Yield the items; if their iterator raises an exception, stop and add it to `failures`."""
    try:
        yield from items
    except Exception as error:  # noqa: BLE001  # the caller raises it
        failures.append(error)


@contextmanager
def alone() -> Iterator[None]:
    """Within the `with` block, do the work of the pools in the calling thread, in order."""
    with (
        _REQUESTS.as_inside(),
        _SENDERS.as_inside(),
        _FILES.as_inside(),
        _DECODERS.as_inside(),
    ):
        yield


class Background(Generic[_Result]):
    """Runs work in other threads while the caller prepares more work.

    Work begins in the order of submission. A thread of a pool runs the work itself in `submit`,
    because waiting for other threads could cause a deadlock.

    Args:
        depth: the maximum number of unfinished submissions before `submit` waits.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._waiting: deque[Future[_Result]] = deque()

    def submit(self, work: Callable[[], _Result]) -> list[_Result]:
        """Add work; raise the first exception of earlier work.

        Returns:
            The results of finished work that were not returned before, in the order of submission.
        """
        if _FILES.is_inside() or _REQUESTS.is_inside():
            return [work()]
        results = []
        while len(self._waiting) >= self._depth:
            results.append(self._waiting.popleft().result())
        self._waiting.append(_FILES.submit(work))
        return results

    def wait(self) -> list[_Result]:
        """Wait until all work is done, and return its results; raise the first exception."""
        results = []
        while self._waiting:
            results.append(self._waiting.popleft().result())
        return results

    def cancel(self) -> None:
        """Drop work that has not begun, and wait for running work; ignore exceptions."""
        for future in self._waiting:
            future.cancel()
        wait_for(self._waiting)
        self._waiting.clear()


class _BytesAhead:
    """Counter of the bytes that scans have fetched but not yet used, in all threads."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._held = 0

    def has_space(self, num_bytes: int) -> bool:
        """Whether this number of bytes is available now; another thread may reserve them."""
        return self._held + num_bytes <= MOST_BYTES

    def take(self, num_bytes: int) -> None:
        with self._lock:
            self._held += num_bytes

    def give_back(self, num_bytes: int) -> None:
        with self._lock:
            self._held -= num_bytes


class HeldBytes:
    """Reserves a part of the bytes that scans may fetch; deleting the object releases them.

    Args:
        most: the maximum number of bytes of this part.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = [0]
        finalize(self, _give_back, self._held, os.getpid())

    def take(self, num_bytes: int) -> bool:
        """Reserve further bytes if they are available; return whether they were reserved."""
        if self._held[0] + num_bytes > self._most or not _AHEAD.has_space(num_bytes):
            return False
        _AHEAD.take(num_bytes)
        self._held[0] += num_bytes
        return True


def _give_back(held: list[int], process: int) -> None:
    if process == os.getpid():  # a forked child has its own counter
        _AHEAD.give_back(held[0])


class _Threads:
    """A thread pool that is created when first used, and again after a fork."""

    def __init__(self, name: str, workers: int) -> None:
        self._name = name
        self._workers = workers
        self._inside = threading.local()
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        # A forked child has none of the parent's threads. It would wait forever for a lock that was
        # locked during the fork.
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    self._workers, thread_name_prefix=self._name, initializer=self._mark
                )
            return self._pool

    def submit(self, function: Callable[..., _Result], *arguments: Any) -> Future[_Result]:
        """Call `function` in a thread of the pool, or here if the interpreter is shutting down."""
        try:
            return self.pool().submit(function, *arguments)
        except RuntimeError:  # the interpreter is shutting down
            answer: Future[_Result] = Future()
            _answer(answer, lambda: function(*arguments))
            return answer

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the results for all items, in order; after an exception, skip further items."""
        futures = [self.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def is_inside(self) -> bool:
        """Whether the calling thread belongs to this pool."""
        return getattr(self._inside, "yes", False)

    @contextmanager
    def as_inside(self) -> Iterator[None]:
        """Within the `with` block, treat the calling thread as a thread of this pool."""
        before, self._inside.yes = self.is_inside(), True
        try:
            yield
        finally:
            self._inside.yes = before

    def _mark(self) -> None:
        self._inside.yes = True


def _answer(answer: Future[_Result], act: Callable[[], _Result]) -> None:
    """Call `act`, and store its result or exception in `answer`."""
    try:
        result = act()
    except BaseException as error:  # noqa: BLE001  # `result()` raises it
        answer.set_exception(error)
    else:
        answer.set_result(result)


CORES: Final = os.cpu_count() or 1
MOST_REQUESTS: Final = 64
"""The maximum number of concurrent requests."""
MOST_BYTES: Final = 256 * 1024 * 1024
"""The maximum number of bytes of results that all scans together compute in advance."""
_AHEAD: Final = _BytesAhead()
_REQUESTS: Final = _Threads("deltalog-io", MOST_REQUESTS)
_SENDERS: Final = _Threads("deltalog-send", 16)
_FILES: Final = _Threads("deltalog-scan", max(4, 2 * CORES))
_DECODERS: Final = _Threads("deltalog-decode", CORES)
