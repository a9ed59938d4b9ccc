"""Functions that print the steps of the demonstration."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def say(what: str) -> None:
    """Print the title of a step."""
    print(f"\n--- {what}", flush=True)


def timed(what: str, call: Callable[[], T]) -> T:
    """Print the title of a step, run it, and print its duration."""
    say(what)
    start = time.perf_counter()
    result = call()
    print(f"  ({(time.perf_counter() - start) * 1000:,.0f} ms)")
    return result


def check(what: str, found: object, expected: object) -> None:
    """Print a result; exit if it is not as expected."""
    if found != expected:
        raise SystemExit(f"{what}: expected {expected!r}, found {found!r}")
    print(f"  {what}: {found}")
