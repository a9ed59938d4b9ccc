"""The threads of the process: many small requests at once, files read ahead, files encoded.

There are three pools, and a few threads beside the first; an appender has a thread of its own, and
there are no others in deltalog. The first waits for stores: its threads are many, whatever the
cores. There `map_in_pool` sends requests that a file system can only send one by one, and
`read_ahead` opens the next files of a store that is reached by requests; `send_together` has the
few threads for what those threads send. The second computes: its threads are few, as the cores are.
There `read_ahead` decodes the next files while the caller works on the current batches, and
`Background` encodes files while the caller makes the next rows. The third does parts of one
computation at once (`compute_together`): its work waits for no other thread.

No thread waits for a pool whose threads may wait for it. Threads of the second pool may wait for
the first, all may wait for the third, and nothing else. Arrow's own pools come before ours: Arrow,
DuckDB and Polars call the generator of a dataset in threads of Arrow's, which then wait for the
second pool. So nothing that runs here may wait for a thread of Arrow's: Parquet is decoded without
pre-buffering and without threads, and so on (`tests/architecture/test_pools.py` has the list). A
forked child makes its own threads. A thread that wants everything done in one order does all of it
itself, inside `alone`.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_pool(
    function: Callable[[_Item], _Result], items: Sequence[_Item], *, batch_size: int = 1
) -> list[_Result]:
    """The results of `function` for all items, in order; the first exception is raised.

    Args:
        function: sends one request. If it calls `map_in_pool` itself, that call runs in its own
            thread, because waiting there for other threads of the pool could last for ever.
        items: what it is called with.
        batch_size: how many items one thread takes at a time.
    """
    if len(items) <= batch_size or _REQUESTS.is_inside():
        return [function(item) for item in items]
    batches = [items[start : start + batch_size] for start in range(0, len(items), batch_size)]
    results = _REQUESTS.map(lambda batch: [function(item) for item in batch], batches)
    return [result for batch in results for result in batch]


def send_together(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """As `map_in_pool`, of single requests, which wait for nothing but the store.

    In a thread of the first pool they go to threads of their own, which nobody else uses: there
    `map_in_pool` would send one after the other.
    """
    if not _REQUESTS.is_inside():
        return map_in_pool(function, items)
    if len(items) <= 1 or _SENDERS.is_inside():
        return [function(item) for item in items]
    return _SENDERS.map(function, items)


def compute_together(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """The results of `function` for all items, in order, computed at once on all cores.

    The calling thread computes, too: it does what no other thread has begun. So a busy pool delays
    nobody, and any thread may call this. The first exception is raised.

    Args:
        function: computes, or reads a local file. It must wait for no other thread.
        items: what it is called with.
    """
    if len(items) <= 1 or CORES == 1 or _DECODERS.is_inside():
        return [function(item) for item in items]
    futures = [_DECODERS.submit(function, item) for item in items[1:]]
    try:
        results = [function(items[0])]
        # From the end, as the pool's threads begin at the other one.
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
    """The result of `wait`, for clients that look for no signals while they wait for a store.

    The main thread leaves it to another one: that wait ends with Ctrl-C. It is none of a pool,
    because the process waits for those when it ends.
    """
    if threading.current_thread() is not threading.main_thread() or _REQUESTS.is_inside():
        return wait()
    answer: Future[_Result] = Future()
    threading.Thread(target=_answer, args=(answer, wait), name="deltalog-wait", daemon=True).start()
    return answer.result()


def while_waiting(wait: Callable[[], _Result], work: Callable[[], object]) -> _Result:
    """The result of `wait`, which waits for a store, and meanwhile `work` is done in this thread.

    A thread of the pool, whose work has one order, leaves `work` out: it must be dispensable.
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
    """Let a thread that waits for a store call `ask`, while the caller does what is in the block.

    A thread of the pool, whose work has one order, leaves `ask` out: it must be dispensable, and
    its exceptions are dropped.
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
    """The results of `function` for all items, in order, up to `depth` of them computed ahead.

    The first exception is raised in place of its result. When the caller stops early, items that
    have not begun are dropped.

    Args:
        function: must not call `read_ahead`.
        items: taken one by one in the caller's thread, only as far as needed.
        depth: how many results may be computed before they are requested.
        sends_requests: whether `function` waits for a store most of the time. Then it must not
            call `Background` either.
        bytes_of: the memory that an item's result takes. All calls together compute no more results
            ahead than fit into `MOST_BYTES`, but each call always one.
    """
    # As `Background`: a thread must not wait for its own pool, nor one of the first for the second.
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
    """The items up to an exception, which is left to be raised after the results before it."""
    try:
        yield from items
    except Exception as error:  # noqa: BLE001  # raised later
        failures.append(error)


@contextmanager
def alone() -> Iterator[None]:
    """Let the calling thread do by itself, in order, what threads of the pools would do for it."""
    with (
        _REQUESTS.as_inside(),
        _SENDERS.as_inside(),
        _FILES.as_inside(),
        _DECODERS.as_inside(),
    ):
        yield


class Background(Generic[_Result]):
    """Work done by other threads while the caller prepares the next.

    Work begins in the order in which it was submitted. In a thread of either pool it is done at
    once, because waiting there for other threads could last for ever.

    Args:
        depth: how many submissions may be unfinished before `submit` waits.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._waiting: deque[Future[_Result]] = deque()

    def submit(self, work: Callable[[], _Result]) -> list[_Result]:
        """Add work; raises what earlier work raised.

        Returns:
            The results of the earliest work that were not returned before, of as much as was waited
            for; in the order of submission.
        """
        if _FILES.is_inside() or _REQUESTS.is_inside():
            return [work()]
        results = []
        while len(self._waiting) >= self._depth:
            results.append(self._waiting.popleft().result())
        self._waiting.append(_FILES.submit(work))
        return results

    def wait(self) -> list[_Result]:
        """Wait until all work is done, and return its results; raises the first exception."""
        results = []
        while self._waiting:
            results.append(self._waiting.popleft().result())
        return results

    def cancel(self) -> None:
        """Drop work that has not begun and wait for the rest, whose exceptions are dropped."""
        for future in self._waiting:
            future.cancel()
        wait_for(self._waiting)
        self._waiting.clear()


class _BytesAhead:
    """The bytes of results that nobody has asked for yet."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._held = 0

    def has_space(self, num_bytes: int) -> bool:
        """Whether as many more may be held; others may take them meanwhile."""
        return self._held + num_bytes <= MOST_BYTES

    def take(self, num_bytes: int) -> None:
        with self._lock:
            self._held += num_bytes

    def give_back(self, num_bytes: int) -> None:
        with self._lock:
            self._held -= num_bytes


class HeldBytes:
    """Bytes that are kept for later, of those that scans may fetch; given back with this object.

    Args:
        most: to be held by it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = [0]
        finalize(self, _give_back, self._held, os.getpid())

    def take(self, num_bytes: int) -> bool:
        """Hold as many more, if the budget allows it; returns whether it does."""
        if self._held[0] + num_bytes > self._most or not _AHEAD.has_space(num_bytes):
            return False
        _AHEAD.take(num_bytes)
        self._held[0] += num_bytes
        return True


def _give_back(held: list[int], process: int) -> None:
    if process == os.getpid():  # a forked child has begun to count anew
        _AHEAD.give_back(held[0])


class _Threads:
    """A pool that is made when first used, and again after a fork."""

    def __init__(self, name: str, workers: int) -> None:
        self._name = name
        self._workers = workers
        self._inside = threading.local()
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        # The parent's threads do not exist in the child, and its lock may be held for ever.
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
        """Let a thread call `function`; while the interpreter ends, the calling thread does."""
        try:
            return self.pool().submit(function, *arguments)
        except RuntimeError:  # no thread begins anything any more
            answer: Future[_Result] = Future()
            _answer(answer, lambda: function(*arguments))
            return answer

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """The results for all items, in order; after an exception the others are not begun."""
        futures = [self.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def is_inside(self) -> bool:
        """Whether the calling thread is one of these."""
        return getattr(self._inside, "yes", False)

    @contextmanager
    def as_inside(self) -> Iterator[None]:
        """Count the calling thread as one of these, for a while."""
        before, self._inside.yes = self.is_inside(), True
        try:
            yield
        finally:
            self._inside.yes = before

    def _mark(self) -> None:
        self._inside.yes = True


def _answer(answer: Future[_Result], act: Callable[[], _Result]) -> None:
    """Do something, and make its result or exception that of `answer`."""
    try:
        result = act()
    except BaseException as error:  # noqa: BLE001  # whoever waits gets it
        answer.set_exception(error)
    else:
        answer.set_result(result)


CORES: Final = os.cpu_count() or 1
MOST_REQUESTS: Final = 64
"""How many requests are under way at once."""
MOST_BYTES: Final = 256 * 1024 * 1024
"""How many bytes scans fetch before they decode them."""
_AHEAD: Final = _BytesAhead()
_REQUESTS: Final = _Threads("deltalog-io", MOST_REQUESTS)
_SENDERS: Final = _Threads("deltalog-send", 16)
_FILES: Final = _Threads("deltalog-scan", max(4, 2 * CORES))
_DECODERS: Final = _Threads("deltalog-decode", CORES)
