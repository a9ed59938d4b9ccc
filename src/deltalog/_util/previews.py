"""The previews that are enabled in this process: an environment variable, which children inherit.

Protocol: none
"""

from __future__ import annotations

import os
from typing import Final

PREVIEWS_VARIABLE: Final = "DELTALOG_PREVIEWS"
"""The environment variable with the names of the enabled previews, separated by commas."""
_FINE_COLUMNS: Final = "timestampNanos-columns"
"""A name in this variable that is no preview: new columns keep the nanoseconds of the data."""


def enabled_previews() -> frozenset[str]:
    """Return the names of the previews that are enabled in this process."""
    return frozenset(_names()) - {_FINE_COLUMNS}


def enable(*names: str) -> None:
    """Enable previews in this process and its child processes."""
    os.environ[PREVIEWS_VARIABLE] = ",".join(dict.fromkeys((*_names(), *names)))


def keep_nanoseconds() -> None:
    """Make new columns keep the nanoseconds of the data; see `keeps_nanoseconds`."""
    enable(_FINE_COLUMNS)


def keeps_nanoseconds() -> bool:
    """Return whether new columns keep the nanoseconds of the data."""
    return _FINE_COLUMNS in _names()


def _names() -> list[str]:
    text = os.environ.get(PREVIEWS_VARIABLE, "")
    return [name.strip() for name in text.split(",") if name.strip()]
