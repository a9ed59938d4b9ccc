"""Progress of long operations: the callback that they call, and a progress bar."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

OnProgress = Callable[[int, int], None]
"""Called with the number of parts done and of all parts; an exception ends the operation."""

Progress = OnProgress | bool
"""What users pass: a callback, or True for a progress bar."""

T = TypeVar("T")


class ProgressCount:
    """Counts the parts of an operation that are done; safe for threads.

    Args:
        on_progress: called after every part, by one thread at a time; None is no callback.
    """

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._done = 0
        self._total = 0

    def expect(self, count: int) -> None:
        """Add parts that are still to be done."""
        with self._lock:
            self._total += count

    def done(self) -> None:
        """Record that one more part is done; raises what the callback raises."""
        with self._lock:
            self._done += 1
            if self._on_progress is not None:
                self._on_progress(self._done, max(self._done, self._total))

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items; one counts as done when the next is requested."""
        for item in items:
            yield item
            self.done()


@contextmanager
def shown(progress: Progress | None, title: str) -> Iterator[OnProgress | None]:
    """The callback to call: the user's own, that of a progress bar, or None.

    Args:
        progress: as the user passed it.
        title: of the bar.
    """
    if progress is True:
        with progress_bar(title) as on_progress:
            yield on_progress
    else:
        yield progress or None


@contextmanager
def progress_bar(title: str) -> Iterator[OnProgress]:
    """A progress bar in a terminal or notebook: tqdm's, else rich's, else none.

    Examples:
        >>> with progress_bar("copying") as progress:
        ...     progress(1, 2)

    Args:
        title: of the bar.
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
    console = import_module("rich.console").Console(stderr=True)  # stdout is for results
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
