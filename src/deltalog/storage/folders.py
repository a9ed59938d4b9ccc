"""Whole folders of tables: they are deleted with all that is in them, and renamed.

Protocol: none
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from deltalog.errors import UnsafePathError
from deltalog.paths import LOG_DIRECTORY
from deltalog.storage.store import is_local, native_home

if TYPE_CHECKING:
    from deltalog.storage.store import Store

_SOME_FILE: Final = "*"


def check_deletable(store: Store) -> None:
    """Refuse a table whose folder or log is a link: what is behind it may be another table's.

    Raises:
        UnsafePathError: it is.

    Cost: a few system calls; no request.
    """
    if not is_local(store):
        return
    home = native_home(store)
    home.check([_SOME_FILE, f"{LOG_DIRECTORY}/{_SOME_FILE}"])
    # That a caller has named a link for the folder allows to write there, not to delete it all.
    if os.path.islink(home.root):  # noqa: PTH114  # a string
        raise UnsafePathError(
            f"cannot delete the table at {store.root}: its folder is a link, and nothing is "
            "deleted behind it; delete the link, or the table where it is"
        )


def delete_table_files(store: Store) -> None:
    """Delete all files of a table; the log goes first, so that no table is left that lacks files.

    Local folders and links go too; links are not followed.

    Raises:
        UnsafePathError: as `check_deletable`; nothing is deleted.

    Cost: a listing of all files, and their deletions.
    """
    check_deletable(store)
    store.delete_many([file.path for file in store.list_all(LOG_DIRECTORY)])
    store.delete_many([file.path for file in store.list_all("")])
    if is_local(store):
        remove_folders(native_home(store).root)


def make_folder(store: Store) -> None:
    """Make the local folder that is a store's root.

    Raises:
        UnsafePathError: it would be behind a link where none may be.
    """
    home = native_home(store)
    with home.open(home.root, makes=True, syncs=True):
        pass


def remove_folder(store: Store) -> None:
    """Remove the local folder that is a store's root, if nothing is in it.

    Raises:
        UnsafePathError: it is a link, where none may be.
    """
    home = native_home(store)
    home.check([_SOME_FILE])
    with suppress(OSError):
        os.rmdir(home.root)  # noqa: PTH106  # a string


def rename_table_folder(store: Store, target: Store) -> None:
    """Rename the local folder of a table.

    Raises:
        UnsafePathError: the folder, or one above one of both, is a link where none may be.
        OSError: there are files.
    """
    native_home(store).check([_SOME_FILE])
    old, new = native_home(store), native_home(target)
    with (
        new.parent.open(new.parent.root, makes=True, syncs=False) as to,
        old.parent.open(old.parent.root, syncs=False) as source,
    ):
        source.rename(old.name, to, new.name)


def remove_folders(folder: str, *, itself: bool = True) -> None:
    """Delete the folders below a local one that hold no files; links go, and are not followed.

    Args:
        folder: absolute.
        itself: whether it is deleted too.
    """
    with suppress(OSError):  # somebody put a file there meanwhile
        if hasattr(os, "fwalk"):
            for _, directories, _, descriptor in os.fwalk(folder, topdown=False):
                for name in directories:
                    _remove(name, descriptor)
        else:
            for directory, directories, _ in os.walk(folder, topdown=False):
                for name in directories:
                    _remove(f"{directory}/{name}")
        if itself:
            _remove(folder)


def _remove(path: str, descriptor: int | None = None) -> None:
    try:
        os.rmdir(path, dir_fd=descriptor)
    except NotADirectoryError:  # a link
        os.unlink(path, dir_fd=descriptor)
