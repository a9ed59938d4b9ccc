"""Directories that belong to one process, and are removed by the next one after a kill.

Owns how a directory's owner is known to be at work: by a lock on the directory, which the system
releases with the process. Where there are no such locks nothing is removed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final

_has_locks = True
try:
    import fcntl
except ImportError:  # pragma: no cover -- Windows
    _has_locks = False

# Not that of earlier releases, whose directories have no locks while they are in use.
_PREFIX: Final = "deltalog-sharing-cache-"
# Of directories that are not locked yet; others look at those of the first prefix only.
_NEW_PREFIX: Final = "deltalog-new-sharing-"


def make_owned(directory: str | None) -> tuple[Path, int | None]:
    """Return a new directory that belongs to this process, and the descriptor that says so.

    Args:
        directory: in which it is made; None is that of temporary files.
    """
    made = Path(mkdtemp(prefix=_NEW_PREFIX, dir=directory))
    home = made.with_name(_PREFIX + made.name.removeprefix(_NEW_PREFIX))
    descriptor = _lock(made)
    return made.rename(home), descriptor


def remove_owned(home: Path, descriptor: int | None) -> None:
    """Remove a directory of this process."""
    rmtree(home, ignore_errors=True)
    if descriptor is not None:
        os.close(descriptor)


def remove_left_over(directory: Path) -> None:
    """Remove the directories whose processes have ended without doing so."""
    if not _has_locks:
        return
    for found in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            # In a directory for everybody's temporary files, others have such ones, too.
            if found.is_symlink() or found.stat().st_uid != os.geteuid():
                continue
            descriptor = _lock(found)
            if descriptor is not None:
                rmtree(found, ignore_errors=True)
                os.close(descriptor)


def _lock(directory: Path) -> int | None:
    """Return the descriptor that holds the lock; None if another one does."""
    if not _has_locks:
        return None
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
