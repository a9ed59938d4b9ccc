"""Links in a local table: whether what is replaced or deleted lies where its path says.

Protocol: none
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deltalog.errors import UnsafePathError
from deltalog.paths import LOG_DIRECTORY, absolute_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence


def check_inside(root: str, paths: Sequence[str]) -> None:
    """Refuse relative paths that leave a local table through a link to a directory.

    A log names what a vacuum deletes, and names alone do not show where they lead. `_delta_log`
    itself may be a link.

    Args:
        root: of the table.
        paths: decoded; absolute ones are not looked at.

    Raises:
        UnsafePathError: a link leads out of the table.

    Cost: a few system calls for each directory.
    """
    if absolute := set(absolute_numbers(paths)):
        paths = [path for number, path in enumerate(paths) if number not in absolute]
    homes: dict[str, str] = {}
    for directory in {path.rpartition("/")[0] for path in paths}:
        home, _, below = directory.partition("/")
        if home != LOG_DIRECTORY:
            home, below = "", directory
        if home not in homes:
            homes[home] = os.path.realpath(f"{root}/{home}")
        real = homes[home]
        if below and not _is_below(os.path.realpath(f"{real}/{below}"), real):
            raise UnsafePathError(
                f"files in {directory!r} are refused: a link leads from there out of the table at "
                f"{root!r}"
            )


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
