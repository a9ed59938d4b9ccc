"""How far long work is: what it calls, and a bar for people who wait.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

OnProgress = Callable[[int, int], None]
"""Told how many parts of how many are done; what it raises ends the work."""


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
        with tqdm.tqdm(desc=title) as shown:
            yield lambda done, total: _show_tqdm(shown, done, total)
        return
    rich = _find("rich.progress")
    if rich is None:
        yield lambda _done, _total: None
        return
    console = import_module("rich.console").Console(stderr=True)  # the answer goes to stdout
    with rich.Progress(transient=True, console=console) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def _show_tqdm(shown: Any, done: int, total: int) -> None:
    shown.total = total
    shown.n = done
    shown.refresh()


def _find(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
