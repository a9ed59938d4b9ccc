"""The file system of a location: how it is chosen, made and called.

Owns the step from the row of a store kind to its calls, the sharing of clients between stores, and
the use of file systems that the user passes.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.paths import LOG_DIRECTORY
from deltalog._util.store_kinds import LOCAL, Address, StoreKind, kind_named
from deltalog.errors import InvalidInputError, StorageError, UnsafePathError
from deltalog.storage.options import check_spelling, translate
from deltalog.storage.store import is_local, native_home
from deltalog.storage.stores.fsspec_files import FsspecFiles
from deltalog.storage.stores.local_files import LocalFiles

if TYPE_CHECKING:
    from deltalog.storage.store import Store

CommitLock = Callable[[], AbstractContextManager[Any]]
Files = FsspecFiles | LocalFiles
_MODULES: Final = {
    "FsspecFiles": "deltalog.storage.stores.fsspec_files",
    "LocalFiles": "deltalog.storage.stores.local_files",
    "MemoryFiles": "deltalog.storage.stores.memory",
    "S3Files": "deltalog.storage.stores.s3",
    "ObstoreFiles": "deltalog.storage.stores.obstore_files",
    "GoogleFiles": "deltalog.storage.stores.google",
    "AzureFiles": "deltalog.storage.stores.azure",
    "WebFiles": "deltalog.storage.stores.web",
}
"""The classes that rows of store kinds name → their modules, imported on first use."""


def open_files(
    kind: StoreKind, arguments: Mapping[str, Any], location: str, lock: CommitLock | None
) -> Files:
    """The calls of a kind over the quickest client that can do what the arguments say.

    Args:
        kind: of the store.
        arguments: of the class of the file system.
        location: as in `make_filesystem`.
        lock: as in `files_over`.

    Raises:
        InvalidInputError: as `make_filesystem`, or the user wants a client that cannot do it.
        StorageError: as `make_filesystem`.
    """
    make = partial(make_filesystem, kind, arguments, location)
    if kind.quicker:
        quicker = class_named(kind.quicker)
        settings = quicker.settings(arguments)
        if settings is not None:
            files: Files = quicker(_shared.get(quicker.clients, settings), make, kind, lock)
            return files
    return files_over(make(), kind, lock)


def files_over(filesystem: Any, kind: StoreKind, lock: CommitLock | None) -> Files:
    """The calls over an fsspec file system: those of its kind, if it is the class they rely on."""
    modules = {cls.__module__ for cls in type(filesystem).__mro__}
    if kind.filesystem and kind.filesystem not in modules:
        # It has only the name: pyarrow's S3 file system, for example, checks first and then writes.
        kind = StoreKind(kind.name, has_directories=kind.has_directories)
    files: Files = files_class(kind)(filesystem, kind, lock)
    return files


def files_class(kind: StoreKind) -> Any:
    """The class of the calls of a kind of store, as its row names it."""
    return class_named(kind.files)


def class_named(name: str) -> Any:
    """Return the class of calls that a row names."""
    name = name.rpartition(":")[2]  # rows in pickles of deltalog 0.2 have `module:class`
    return getattr(import_module(_MODULES[name]), name)


def filesystem_options(
    kind: StoreKind, options: Mapping[str, Any], location: str, *, own: bool = True
) -> dict[str, Any]:
    """The keyword arguments of the fsspec class of a kind.

    Args:
        kind: of the store.
        options: the user's, in any of the known spellings.
        location: the URL to open; an Azure URL names its account.
        own: whether these options were given for this kind; else unknown ones are left out.

    Raises:
        InvalidInputError: a value is no number, duration, truth value or JSON where one is due.
    """
    files = files_class(kind)
    arguments = translate(kind, files.option_names, options, own=own)
    finished: dict[str, Any] = files.finish(arguments, location)
    return finished


def make_filesystem(kind: StoreKind, arguments: Mapping[str, Any], location: str) -> Any:
    """An fsspec file system without a listings cache, shared by all who ask for the same one.

    Args:
        kind: of the store.
        arguments: of the file system's class.
        location: a URL, from which HDFS and others take host and port.

    Raises:
        InvalidInputError: fsspec does not know this kind, or an argument is misspelt.
        StorageError: its package is not installed.
    """
    try:
        import fsspec  # noqa: PLC0415  # slow, and local files do without

        made = fsspec.get_filesystem_class(kind.name)
    except ImportError as error:
        package = f"pip install 'deltalog[{kind.extra}]'"
        advice = package if kind.extra else "install its fsspec package"
        raise StorageError(f"cannot open {kind.name!r} locations: {error}; {advice}") from error
    except ValueError:
        raise InvalidInputError(f"no file system is known for {kind.name!r} locations") from None
    files = files_class(kind)
    _check_names(made, arguments, files.option_names)
    made, arguments = files.prepare(made, arguments)
    if kind.address in {Address.HOST, Address.UNKNOWN}:
        from_url = made._get_kwargs_from_urls(location)  # noqa: SLF001  # fsspec has no other way
        arguments = {**from_url, **arguments}
    arguments = {"use_listings_cache": False, "skip_instance_cache": True, **arguments}
    return _shared.get(made, arguments)


def _check_names(made: type, arguments: Mapping[str, Any], options: Mapping[str, str]) -> None:
    """Refuse an argument that the class drops, and that is nearly one of its own or an option."""
    if not options:  # a class that may hand on whatever it does not know
        return
    makers = [vars(cls)["__init__"] for cls in made.__mro__[:-1] if "__init__" in vars(cls)]
    own = {name for maker in makers for name in signature(maker).parameters}
    for name in arguments.keys() - own:
        if not name.startswith("!"):
            check_spelling(
                name, name.lower(), [*options, *sorted(own - {"self", "args", "kwargs"})]
            )


def own_path(kind: StoreKind, authority: str, path: str) -> str:
    """The path that the file system of a kind takes for a URL, which `split_location` split."""
    match kind.address:
        case Address.PATH:
            return path
        case Address.HOST:
            return f"/{path}"
        case Address.ACCOUNT:
            return f"{authority.partition('@')[0]}/{path}"
        case _:
            return f"{authority}/{path}"


def renewed(filesystem: Any) -> Any:
    """The user's file system; after a fork one that is made with the same arguments."""
    if getattr(filesystem, "_pid", os.getpid()) == os.getpid():
        return filesystem
    arguments = {**filesystem.storage_options, "skip_instance_cache": True}
    return type(filesystem)(*filesystem.storage_args, **arguments)


def own_filesystem(filesystem: Any, location: str) -> tuple[Any, str]:
    """The fsspec file system or `LocalFiles` to use for what the user gave, and the path in it.

    Raises:
        InvalidInputError: it is neither fsspec's nor pyarrow's.
    """
    if filesystem is None or isinstance(filesystem, LocalFiles):
        return filesystem, location
    from fsspec import AbstractFileSystem  # noqa: PLC0415  # slow, and local files do without

    if isinstance(filesystem, AbstractFileSystem):
        if type(filesystem).__name__ == "LocalFileSystem":
            return LocalFiles(), location
        return filesystem, location
    if type(filesystem).__module__.startswith("pyarrow"):
        return _from_arrow(filesystem, location)
    raise InvalidInputError(
        f"expected an fsspec or pyarrow file system, found {type(filesystem).__name__}"
    )


def kind_of_filesystem(filesystem: Any) -> StoreKind:
    """The kind whose name a file system of the user's bears; `files_over` looks closer."""
    if isinstance(filesystem, LocalFiles):
        return LOCAL
    protocol = filesystem.protocol
    return kind_named(protocol if isinstance(protocol, str) else protocol[0])


_PLAIN: Final = (str, int, float, bool, bytes, type(None))


class _SharedFilesystems:
    """File systems by class and arguments: making a client can take tenths of a second."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._made: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()

    def get(self, made: Any, arguments: Mapping[str, Any]) -> Any:
        key = _frozen(arguments)
        if key is None:
            return made(**arguments)
        with self._lock:
            filesystem = self._made.get((made, key))
            if filesystem is None:
                filesystem = made(**arguments)
                self._made[made, key] = filesystem
            return filesystem


_shared = _SharedFilesystems()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.forget)


def _frozen(value: Any) -> Any:
    """Options in a hashable form; None when a value among them has none."""
    if isinstance(value, Mapping):
        parts = [(name, _frozen(inner)) for name, inner in sorted(value.items())]
        return None if any(part[1] is None for part in parts) else tuple(parts)
    return (type(value), value) if isinstance(value, _PLAIN) else None


def _from_arrow(filesystem: Any, location: str) -> tuple[Any, str]:
    base = getattr(filesystem, "base_path", None)
    if base is not None:  # SubTreeFileSystem
        return _from_arrow(filesystem.base_fs, f"{base.rstrip('/')}/{location.lstrip('/')}")
    handler = getattr(filesystem, "handler", None)
    if handler is not None and hasattr(handler, "fs"):  # PyFileSystem(FSSpecHandler)
        return own_filesystem(handler.fs, location)
    if kind_named(filesystem.type_name).is_native:
        return LocalFiles(), location
    from fsspec.implementations.arrow import ArrowFSWrapper  # noqa: PLC0415  # rare and slow

    return ArrowFSWrapper(filesystem), location


# Whole folders of tables: they are deleted with all that is in them, and renamed.


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
