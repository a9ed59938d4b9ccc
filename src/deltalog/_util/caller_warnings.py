"""Warnings that name the line of the user's code.

Protocol: none
"""

from __future__ import annotations

import sys
import warnings


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the first frame outside of deltalog as the place of the warning."""
    warnings.warn(message, category, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return the `stacklevel` of the first frame outside of deltalog, for the caller's warning."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001  # the function for this purpose
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("deltalog."):
        level, frame = level + 1, frame.f_back
    return level
