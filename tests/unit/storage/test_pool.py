from __future__ import annotations

import threading

import pytest

from deltalog.storage.pool import map_in_pool


def test_results_come_in_order() -> None:
    assert map_in_pool(lambda number: number * 2, range(100)) == list(range(0, 200, 2))
    assert map_in_pool(lambda number: number * 2, range(100), batch_size=7) == [*range(0, 200, 2)]
    assert map_in_pool(str, []) == []


def test_single_items_stay_in_the_callers_thread() -> None:
    assert map_in_pool(lambda _: threading.current_thread(), [1]) == [threading.current_thread()]
    names = map_in_pool(lambda _: threading.current_thread().name, range(4))
    assert all(name.startswith("deltalog-io") for name in names)


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
