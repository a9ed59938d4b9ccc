"""How the demonstration talks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def say(what: str) -> None:
    """Announce a step."""
    print(f"\n--- {what}", flush=True)


def timed(what: str, call: Callable[[], T]) -> T:
    """Announce a step, take it, and tell how long it took."""
    say(what)
    start = time.perf_counter()
    result = call()
    print(f"  ({(time.perf_counter() - start) * 1000:,.0f} ms)")
    return result


def check(what: str, found: object, expected: object) -> None:
    """Print a result, and stop if it is not what it must be."""
    if found != expected:
        raise SystemExit(f"{what}: expected {expected!r}, found {found!r}")
    print(f"  {what}: {found}")
