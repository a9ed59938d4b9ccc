"""Local files that another writer completes in a directory of their own, until a table takes them.

Owns the names of such directories, which begin with a dot below the table's root: no reader looks
into them, and a full vacuum deletes the files that a writer has left there that was killed.

Protocol: none
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalog.errors import InternalError, StorageError
from deltalog.storage.atomic import sync_directory, take_name
from deltalog.storage.store import native_path, syncs_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.store import Store

STAGING_NAME: Final = r"\.staged\.[0-9a-f]{32}\.tmp"
"""Names of `staging_directory`, as a regular expression."""


def staging_directory() -> str:
    """Return the name of a new staging directory."""
    return f".staged.{uuid.uuid4().hex}.tmp"


def take_staged(store: Store, directory: str, names: Sequence[str]) -> None:
    """Move files from a staging directory to the table's root, and delete all else that is in it.

    Args:
        store: of the table, with paths of the operating system.
        directory: of `staging_directory`.
        names: of complete files in it.

    Raises:
        StorageError: there is no such directory.
        OSError: a file cannot be moved, such as FileExistsError for a name that is taken. Those
            that were moved are deleted.
    """
    root, staged = _native(store, ""), _native(store, directory)
    if not Path(staged).is_dir():
        raise StorageError(
            f"cannot take the files of {directory!r} into {store.root}: the writer has put them on "
            "another machine; keep the table where all of them reach it"
        )
    moved: list[str] = []
    try:
        for name in names:
            take_name(f"{staged}/{name}", f"{root}/{name}", syncs=False)
            moved.append(name)
        if syncs_files(store):
            sync_directory(root)
    except BaseException:
        store.delete_many(moved)
        raise
    # An attempt that Spark has given up may put a file there meanwhile: a vacuum deletes it.
    discard_staged(store, directory)


def discard_staged(store: Store, directory: str) -> None:
    """Delete a staging directory with all that is in it, as far as it can be deleted."""
    shutil.rmtree(_native(store, directory), ignore_errors=True)


def _native(store: Store, path: str) -> str:
    native = native_path(store, path)
    if native is None:
        raise InternalError(f"staged files in {store.root}, whose files have no local paths")
    return native
