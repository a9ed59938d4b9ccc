"""How far long work is: what it calls, and a bar for people who wait.

Protocol: none
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

OnProgress = Callable[[int, int], None]
"""Told how many parts of how many are done; what it raises ends the work."""

Progress = OnProgress | bool
"""What callers may hand in: a callback, or True for a bar."""

T = TypeVar("T")


class Steps:
    """Counts the parts of some work, from any thread. More may be expected as it goes on.

    Args:
        tell: told after every part; None is nobody. It is called by one thread at a time.
    """

    def __init__(self, tell: OnProgress | None) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._done = 0
        self._total = 0

    def expect(self, count: int) -> None:
        """So many parts more are to be done."""
        with self._lock:
            self._total += count

    def done(self) -> None:
        """One more part is done; raises what the callback raises."""
        with self._lock:
            self._done += 1
            if self._tell is not None:
                self._tell(self._done, max(self._done, self._total))

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items; one is done when the next is asked for."""
        for item in items:
            yield item
            self.done()


@contextmanager
def shown(progress: Progress | None, title: str) -> Iterator[OnProgress | None]:
    """What work is to call: the caller's callback, a bar where it is True, or nothing.

    Args:
        progress: as callers hand it in.
        title: what is done.
    """
    if progress is True:
        with progress_bar(title) as tell:
            yield tell
    else:
        yield progress or None


@contextmanager
def progress_bar(title: str) -> Iterator[OnProgress]:
    """A bar in a terminal or notebook: tqdm's, else rich's, else none.

    Examples:
        >>> with progress_bar("copying") as progress:
        ...     progress(1, 2)

    Args:
        title: what is done.
    """
    tqdm = _find("tqdm.auto")
    if tqdm is not None:
        with tqdm.tqdm(desc=title) as bar:
            yield lambda done, total: _show_tqdm(bar, done, total)
        return
    rich = _find("rich.progress")
    if rich is None:
        yield lambda _done, _total: None
        return
    console = import_module("rich.console").Console(stderr=True)  # the answer goes to stdout
    with rich.Progress(transient=True, console=console) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show_tqdm(bar: Any, done: int, total: int) -> None:
    bar.total = total
    bar.n = done
    bar.refresh()


def _find(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
