"""Staging directories: another program writes local files there, which deltalog moves to a table.

This module defines the names of these directories. They are in the table's root and begin with a
dot: readers ignore them, and a full vacuum deletes files that a killed writer left there.

Protocol: none
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Final

from deltalog.errors import StorageError, UnsafePathError
from deltalog.storage.atomic import take_name
from deltalog.storage.store import Store, native_home, syncs_files

if TYPE_CHECKING:
    from collections.abc import Sequence


STAGING_NAME: Final = r"\.staged\.[0-9a-f]{32}\.tmp"
"""Matches the names that `staging_directory` returns."""


def staging_directory() -> str:
    """Return the name of a new staging directory."""
    return f".staged.{uuid.uuid4().hex}.tmp"


def take_staged(store: Store, directory: str, names: Sequence[str]) -> None:
    """Move files from a staging directory to the table's root, and delete everything else in it.

    Args:
        store: the local store of the table.
        directory: the result of `staging_directory`.
        names: the names of the complete files in the directory.

    Raises:
        StorageError: the directory does not exist.
        OSError: a file cannot be moved; FileExistsError if its name exists in the table. Files that
            were already moved are deleted.
    """
    home, syncs = native_home(store), syncs_files(store)
    moved: list[str] = []
    try:
        with (
            home.open(home.root, syncs=syncs) as root,
            home.open(f"{home.root}/{directory}", syncs=syncs) as staged,
        ):
            for name in names:
                take_name(staged, name, root, name, syncs=False)
                moved.append(name)
            if syncs:
                root.sync()
    except BaseException as error:
        store.delete_many(moved)
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not moved:
            raise StorageError(
                f"cannot move the files of {directory!r} to {store.root}: the writer has put "
                "them on another machine; keep the table where all machines can reach it"
            ) from error
        raise
    # An abandoned task attempt of Spark may still write a file later. A vacuum deletes this file.
    discard_staged(store, directory)


def discard_staged(store: Store, directory: str) -> None:
    """Delete a staging directory and its content, as far as possible."""
    home = native_home(store)
    with contextlib.suppress(UnsafePathError, OSError), home.open(home.root, syncs=False) as root:
        root.remove_tree(directory)
