"""Warnings: at the caller's line, and about builders that were never run.

Without the latter, `table.merge(…).when_matched_update_all()` without `.execute()` would do
nothing, in silence.

Protocol: none
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

_Value = TypeVar("_Value")


class RunsOnce(ABC):
    """Base class of builders: an object that was configured, but never run, warns at its end.

    As for a coroutine that was never awaited, the warning comes when the object is freed: in
    CPython, usually in the line that forgot the call. It does not come if the process ends before.
    A call that was refused is also a try, so an error is not followed by a warning.
    """

    __slots__ = ()

    @abstractmethod
    def _left_undone(self) -> str | None:
        """Return the warning if the builder was never run; None if there is nothing to warn of."""

    def __del__(self) -> None:
        """Warn if the builder was never run."""
        if sys.is_finalizing():
            return
        try:
            warning = self._left_undone()
        except AttributeError:  # the constructor has failed
            return
        if warning is not None:
            warnings.warn(warning, RuntimeWarning, stacklevel=2)


class Block(RunsOnce, AbstractContextManager[_Value]):
    """A context manager that warns if its block is never entered.

    Args:
        inner: the context manager.
        warning: what a call without a block did not do.
        shown: the call that made it, and how to use it.
    """

    def __init__(self, inner: AbstractContextManager[_Value], warning: str, shown: str) -> None:
        self._inner, self._warning, self._shown = inner, warning, shown
        self._is_entered = False

    def __repr__(self) -> str:
        """Show the call that made this object, and how to use it."""
        return self._shown

    def __enter__(self) -> _Value:
        """Begin the block."""
        self._is_entered = True
        return self._inner.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """End the block."""
        return self._inner.__exit__(kind, error, traceback)

    def _left_undone(self) -> str | None:
        return None if self._is_entered else self._warning


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the first frame outside of deltalog as the place of the warning."""
    warnings.warn(message, category, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return the `stacklevel` of the first frame outside of deltalog, for the caller's warning."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001  # the function for this purpose
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("deltalog."):
        level, frame = level + 1, frame.f_back
    return level
