from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import pytest

from deltalog._util.clock import WaitMeter
from deltalog.storage import pool
from deltalog.storage.pool import (
    Background,
    alone,
    map_a_few,
    map_in_pool,
    meanwhile,
    read_ahead,
    send_together,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_results_come_in_order() -> None:
    assert map_in_pool(lambda number: number * 2, range(100)) == list(range(0, 200, 2))
    assert map_in_pool(lambda number: number * 2, range(100), batch_size=7) == [*range(0, 200, 2)]
    assert map_in_pool(str, []) == []


def test_single_items_stay_in_the_callers_thread() -> None:
    assert map_in_pool(lambda _: threading.current_thread(), [1]) == [threading.current_thread()]
    names = map_in_pool(lambda _: threading.current_thread().name, range(4))
    assert all(name.startswith("deltalog-io") for name in names)


class _Meter(WaitMeter):
    """A thread that waits after some items."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most

    @property
    def mostly_waits(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize("num_here", [0, 3, 10])
def test_a_few_items_stay_in_the_callers_thread_until_it_waits(
    monkeypatch: pytest.MonkeyPatch, num_here: int
) -> None:
    monkeypatch.setattr(pool, "WaitMeter", lambda: _Meter(num_here))
    own, found = threading.get_ident(), list[int]()

    def noted(number: int) -> int:
        if threading.get_ident() == own:
            found.append(number)
        return -number

    assert map_a_few(noted, range(10), batch_size=2) == [-number for number in range(10)]
    assert found == list(range(num_here))


def test_the_first_failure_is_raised() -> None:
    def fail(number: int) -> int:
        if number >= 3:
            raise ValueError(str(number))
        return number

    with pytest.raises(ValueError, match="3"):
        map_in_pool(fail, range(10))


def test_calls_from_within_do_not_wait_for_one_another() -> None:
    def outer(number: int) -> int:
        return sum(map_in_pool(lambda inner: inner + number, range(50)))

    assert map_in_pool(outer, range(200)) == [1225 + 50 * number for number in range(200)]


def test_requests_of_a_waiting_thread_are_sent_together() -> None:
    def outer(number: int) -> list[int]:
        together = threading.Barrier(4)

        def inner(other: int) -> int:
            together.wait(timeout=30)  # breaks unless four threads get here at once
            return number + other

        return send_together(inner, range(4))

    assert send_together(outer, [5]) == [[5, 6, 7, 8]]
    assert map_in_pool(outer, [1, 2]) == [[1, 2, 3, 4], [2, 3, 4, 5]]
    with alone():
        names = send_together(lambda _: threading.current_thread().name, range(3))
    assert names == [threading.current_thread().name] * 3


def test_requests_of_many_waiting_threads_come_to_an_end() -> None:
    def outer(number: int) -> int:
        return sum(send_together(lambda inner: inner + number, range(50)))

    assert map_in_pool(outer, range(200)) == [1225 + 50 * number for number in range(200)]


def test_reading_ahead_keeps_the_order_and_its_distance() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            yield number

    results = read_ahead(lambda number: number * number, items(), depth=2)
    assert taken == []
    assert next(results) == 0
    assert taken == [0, 1, 2]
    assert list(results) == [number * number for number in range(1, 10)]


@pytest.mark.parametrize(
    ("sizes", "taken"),  # of the last one that was taken nothing is computed
    [
        ([60, 60, 60], [2, 3, 3]),
        ([60, 40, 60], [3, 3, 3]),
        ([30, 30, 30, 500, 1], [4, 4, 4, 5, 5]),  # a large one alone, in its turn
        ([0] * 9, [6, 7, 8, 9, 9, 9, 9, 9, 9]),  # the depth bounds, too
    ],
)
def test_results_ahead_fit_into_the_memory(
    sizes: list[int], taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.storage.pool.MOST_BYTES", 100)
    begun = 0

    def items() -> Iterator[int]:
        nonlocal begun
        for size in sizes:
            begun += 1
            yield size

    results = read_ahead(str, items(), depth=5, sends_requests=True, bytes_of=int)
    found = [(result, begun) for result in results]
    assert found == list(zip(map(str, sizes), taken, strict=True))


def test_what_is_read_ahead_by_all_fits_into_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltalog.storage.pool.MOST_BYTES", 100)
    begun: list[str] = []

    def items(name: str) -> Iterator[str]:
        for _ in range(4):
            begun.append(name)
            yield name

    def ahead(name: str) -> Iterator[str]:
        return read_ahead(str, items(name), depth=9, sends_requests=True, bytes_of=lambda _: 40)

    first, second = ahead("a"), ahead("b")
    assert next(first) == "a"
    assert begun == ["a"] * 3
    assert next(second) == "b"
    assert begun == ["a"] * 3 + ["b"] * 2  # always one of its own
    assert list(first) == ["a"] * 3
    assert list(second) == ["b"] * 3
    third = ahead("c")
    assert next(third) == "c"
    del third  # what it held ahead is free again
    assert next(ahead("d")) == "d"
    assert begun[-6:] == ["c"] * 3 + ["d"] * 3


def test_reading_ahead_fails_where_the_result_was_due() -> None:
    def reciprocal(number: int) -> float:
        return 1 / number

    results = read_ahead(reciprocal, [1, 2, 0, 4], depth=3)
    assert [next(results), next(results)] == [1, 0.5]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_stages_do_not_wait_for_one_another() -> None:
    def outer(number: int) -> int:
        return sum(map_in_pool(lambda inner: inner + number, range(20)))

    found = list(read_ahead(outer, range(100), depth=50))
    assert found == [190 + 20 * number for number in range(100)]


def test_work_in_the_background_begins_in_order_and_waits_at_its_depth() -> None:
    background: Background[None] = Background(depth=2)
    gate = threading.Event()
    done: list[int] = []

    def work(number: int) -> None:
        gate.wait(30)
        done.append(number)

    for number in range(2):
        background.submit(partial(work, number))
    assert done == []
    gate.set()
    for number in range(2, 20):
        background.submit(partial(work, number))
    background.wait()
    assert sorted(done) == list(range(20))


def test_work_that_fails_is_told_when_more_comes_or_at_the_end() -> None:
    background: Background[int] = Background(depth=1)
    background.submit(partial(int, "x"))
    with pytest.raises(ValueError, match="'x'"):
        background.submit(partial(int, "1"))
    background.submit(partial(int, "y"))
    with pytest.raises(ValueError, match="'y'"):
        background.wait()
    background.submit(partial(int, "z"))
    background.cancel()
    background.wait()


@pytest.mark.parametrize("is_alone", [False, True])
def test_the_results_of_work_come_once_and_in_its_order(*, is_alone: bool) -> None:
    background: Background[int] = Background(depth=3)
    found: list[int] = []
    with alone() if is_alone else nullcontext():
        for number in range(20):
            found += background.submit(partial(int, number))
        assert len(found) == (20 if is_alone else 17)
        found += background.wait()
        assert background.wait() == []
    assert found == list(range(20))


def test_work_within_work_is_done_at_once() -> None:
    found: list[int] = []

    def outer() -> None:
        inner: Background[None] = Background(depth=1)
        for number in range(50):
            inner.submit(partial(found.append, number))

    background: Background[None] = Background(depth=50)
    for _ in range(50):
        background.submit(outer)
    background.wait()
    assert len(found) == 2_500


def test_alone_a_thread_does_everything_itself_and_in_order() -> None:
    done: list[tuple[str, int]] = []

    def work(name: str, item: int) -> int:
        assert threading.current_thread() is threading.main_thread()
        done.append((name, item))
        return item

    with alone():
        assert map_in_pool(partial(work, "request"), range(40)) == list(range(40))
        ahead = read_ahead(partial(work, "file"), range(3), depth=2)
        assert (next(ahead), done[-1]) == (0, ("file", 0))
        background: Background[int] = Background(depth=1)
        background.submit(partial(work, "encode", 7))
        assert done[-1] == ("encode", 7)
        assert list(ahead) == [1, 2]
    found = map_in_pool(lambda _: threading.current_thread(), range(2))
    assert threading.main_thread() not in found


def test_results_before_a_failure_of_an_earlier_stage_are_not_lost() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise ZeroDivisionError

    results = read_ahead(str, items(), depth=9, sends_requests=True)
    assert [next(results) for _ in range(5)] == list("01234")
    with pytest.raises(ZeroDivisionError):
        next(results)


LATE = """
import threading, time
from deltalog.storage.pool import map_in_pool, read_ahead

def late():
    threading.main_thread().join()
    time.sleep(0.3)
    print(map_in_pool(str, [1, 2]), list(read_ahead(str, [3, 4], depth=2, sends_requests=True)))

map_in_pool(str, [1, 2])
threading.Thread(target=late).start()
"""


def test_a_thread_that_outlives_the_main_one_works_alone() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.strip() == "['1', '2'] ['3', '4']"


WAITING = """
import signal, sys, threading, time
from deltalog.storage.pool import interruptibly

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have ignored it
main = threading.main_thread().ident
threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
try:
    interruptibly(lambda: time.sleep(600))
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_a_process_ends_though_an_interrupted_wait_goes_on() -> None:
    run = subprocess.run([sys.executable, "-c", WAITING], timeout=60, check=False)
    assert run.returncode == 7


def test_what_is_dispensable_is_not_waited_for_before_it_has_begun() -> None:
    held = threading.Event()
    threads = [threading.Thread(target=map_in_pool, args=(lambda _: held.wait(60), range(64)))]
    threads[0].start()
    asked: list[int] = []
    try:
        with meanwhile(lambda: asked.append(1)):
            pass
    finally:
        held.set()
        threads[0].join(60)
    assert asked == []


def test_held_bytes_are_given_back_with_their_holder() -> None:
    before = pool._AHEAD._held
    held = pool.HeldBytes(100)
    assert held.take(60)
    assert not held.take(50)
    assert held.take(40)
    assert pool._AHEAD._held == before + 100
    assert not pool.HeldBytes(pool.MOST_BYTES).take(pool.MOST_BYTES - before - 99)
    del held
    assert pool._AHEAD._held == before
