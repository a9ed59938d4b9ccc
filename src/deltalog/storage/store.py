"""The interface of a store: the methods through which deltalog reads and writes files.

Any object with these methods is a store: `FsspecStore`, the stores of `deltalog.testing` that count
requests or fail, or a user's own class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeGuard, cast, runtime_checkable

from deltalog._util.paths import FileInfo
from deltalog.errors import InternalError
from deltalog.storage.links import Home

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ByteRange = tuple[int, int]


@runtime_checkable
class Store(Protocol):
    """Reads and writes the files of one table.

    Paths are decoded (never percent-encoded), with `/` between elements. They are relative to the
    table's root, or absolute URLs or paths if the log refers to files elsewhere. Listings are never
    cached. Methods raise only `deltalog.errors`: `ObjectNotFoundError` for a missing file,
    `AccessDeniedError`, `AlreadyExistsError`, otherwise `StorageError`. Stores are thread-safe and
    picklable, and can be used after a fork.
    """

    @property
    def root(self) -> str:
        """The table's location without secrets, for error messages and absolute paths."""
        ...

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """Yield the files in `directory` with names from `first` on, in order of names.

        `FileInfo.path` is relative to the root (`directory/name`). A directory that does not exist
        has no files.

        Cost: one listing (paginated by the store).
        """
        ...

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """Yield every file at any depth below `directory`, in any order."""
        ...

    def stat(self, path: str) -> FileInfo:
        """Return size and time of one file."""
        ...

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        ...

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return ranges `[start, end)` of a file, in the requested order, fetched concurrently."""
        ...

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Return whole files, in the requested order, fetched concurrently."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Return a seekable file for reading."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically, or raise `AlreadyExistsError`."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file."""
        ...

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete files; a file that is already deleted is not an error."""
        ...


@runtime_checkable
class NativeStore(Store, Protocol):
    """A store whose files may have a path of the operating system.

    Arrow reads and writes such files itself, which is faster.
    """

    def native_path(self, path: str) -> str | None:
        """Return the operating system's path of a file; None if the file has no such path."""
        ...


def native_path(store: Store, path: str) -> str | None:
    """Return the operating system's path of a file; None for a remote file."""
    tell = getattr(store, "native_path", None)
    return cast("str | None", tell(path)) if tell is not None else None


def native_home(store: Store) -> Home:
    """Return the directory in which the local files of a store may be written and deleted.

    Raises:
        InternalError: the store's files have no local paths.
    """
    home = getattr(store, "native_home", None)
    if isinstance(home, Home):
        return home
    root = native_path(store, "")
    if root is None:
        raise InternalError(f"files in {store.root} have no local paths")
    return Home(root)


def is_local(store: Store) -> bool:
    """Whether a table's files are local; in a remote store, each operation sends a request."""
    return native_path(store, "") is not None


@runtime_checkable
class WholeFileStore(Store, Protocol):
    """A store that fetches some files whole, even if only a part is requested."""

    def fetches_whole(self, path: str) -> bool:
        """Whether the store fetches this file whole."""
        ...


def fetches_whole(store: Store, path: str) -> bool:
    """Whether a file is fetched whole, if the store is a `WholeFileStore`."""
    # `getattr` is 40 times as fast as `isinstance` with a protocol. This function is called several
    # times for each file.
    tell = getattr(store, "fetches_whole", None)
    return tell is not None and bool(tell(path))


@runtime_checkable
class DurableStore(Store, Protocol):
    """A store that can sync local files to the disk."""

    @property
    def syncs(self) -> bool:
        """Whether a created file survives a power cut."""
        ...

    def without_sync(self) -> Store:
        """Return the same store without syncing to the disk."""
        ...


def syncs_files(store: Store) -> bool:
    """Whether a store syncs local files to the disk before they get their final names."""
    return bool(getattr(store, "syncs", True))


def unsynced(store: Store) -> Store:
    """Return the same store without syncing to the disk."""
    # `getattr` is faster than `isinstance` with a protocol.
    without_sync = getattr(store, "without_sync", None)
    return cast("Store", without_sync()) if without_sync is not None else store


@runtime_checkable
class LevelStore(Store, Protocol):
    """A store that can list one level of directories, so that workers can share a listing."""

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """Return the files and directories in a directory, with paths relative to the root.

        For a directory that does not exist, both lists are empty.

        Cost: one listing.
        """
        ...


@runtime_checkable
class PeekingStore(Store, Protocol):
    """A remote store that needs only one request to list a small directory."""

    def list_short(self, directory: str, most: int) -> list[FileInfo] | None:
        """Return the files of a directory; may return None if there are more than `most` files."""
        ...


def is_peeking(store: Store) -> TypeGuard[PeekingStore]:
    """Whether a store is a `PeekingStore`."""
    return hasattr(store, "list_short")  # isinstance would look up all members of the protocol


@runtime_checkable
class SigningStore(Store, Protocol):
    """A store that may support signed URLs for its files."""

    @property
    def can_sign(self) -> bool:
        """Whether the service of the table supports signed URLs."""
        ...

    def signed_url(self, path: str, seconds: int) -> str:
        """Return a URL with which anybody can read one file for a limited time."""
        ...
