"""Which file system serves a place, and how it is made.

Owns the fsspec protocols, sharing of clients between stores, and what becomes of file systems that
the user hands in.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

import fsspec

from deltalog.errors import InvalidInputError, StorageError
from deltalog.paths import FileInfo, canonical_scheme
from deltalog.storage.fsspec_files import FsspecFiles, HttpFiles, MemoryFiles
from deltalog.storage.local_files import LocalFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.storage.store import ByteRange

CommitLock = Callable[[], AbstractContextManager[Any]]


class Files(Protocol):
    """The verbs over one file system's own paths."""

    kind: str

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Files directly in a directory from name `first` on; `path` is the name."""
        ...

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """Files and directories directly in a directory; their paths are names."""
        ...

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Files at any depth; `path` is relative to the directory."""
        ...

    def stat(self, path: str) -> FileInfo:
        """Size and time."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file."""
        ...

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file."""
        ...

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Whole files."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Create, or raise `FileExistsError`."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or replace."""
        ...

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete; gone ones are no error."""
        ...


def files_over(filesystem: Any, kind: str, lock: CommitLock | None) -> Files:
    """The verbs over an fsspec file system."""
    if kind == "memory":
        return MemoryFiles(filesystem)
    if kind in {"http", "https"}:
        return HttpFiles(filesystem, kind, lock)
    return FsspecFiles(filesystem, kind, lock)


def make_filesystem(kind: str, arguments: Mapping[str, Any], location: str) -> Any:
    """An fsspec file system without a listings cache, shared by all who ask for the same one.

    Args:
        kind: canonical scheme, as in `paths`.
        arguments: of the file system's class.
        location: a URL, from which HDFS and others take host and port.

    Raises:
        InvalidInputError: nobody knows this kind.
        StorageError: its package is not installed.
    """
    if kind == "memory":
        return fsspec.filesystem("memory")
    try:
        made = fsspec.get_filesystem_class(_PROTOCOL.get(kind, kind))
    except ImportError as error:
        extra = _EXTRA.get(kind)
        advice = f"pip install 'deltalog[{extra}]'" if extra else "install its fsspec package"
        raise StorageError(f"cannot open {kind!r} locations: {error}; {advice}") from error
    except ValueError:
        raise InvalidInputError(f"no file system is known for {kind!r} locations") from None
    if kind == "gs" and "endpoint_url" in arguments:
        # gcsfs asks Google over gRPC what kind of bucket it has, for a minute where nobody answers.
        made = next((cls for cls in made.__mro__ if cls.__module__ == "gcsfs.core"), made)
    if kind == "s3":
        # botocore still signs URLs in the old way, which no new region and no Delta client takes.
        config = {"signature_version": "s3v4", **arguments.get("config_kwargs", {})}
        arguments = {**arguments, "config_kwargs": config}
    if kind not in _PROTOCOL:
        from_url = made._get_kwargs_from_urls(location)  # noqa: SLF001  # fsspec has no other way
        arguments = {**from_url, **arguments}
    arguments = {"use_listings_cache": False, "skip_instance_cache": True, **arguments}
    return _shared.get(made, arguments)


def renewed(filesystem: Any) -> Any:
    """The user's file system, or one made like it when this process is not the user's."""
    if getattr(filesystem, "_pid", os.getpid()) == os.getpid():
        return filesystem
    arguments = {**filesystem.storage_options, "skip_instance_cache": True}
    return type(filesystem)(*filesystem.storage_args, **arguments)


def own_filesystem(filesystem: Any, location: str) -> tuple[Any, str]:
    """An fsspec file system or `LocalFiles` for what the user gave, and the path in it.

    Raises:
        InvalidInputError: it is neither fsspec's nor pyarrow's.
    """
    if filesystem is None or isinstance(filesystem, LocalFiles):
        return filesystem, location
    if isinstance(filesystem, fsspec.AbstractFileSystem):
        if type(filesystem).__name__ == "LocalFileSystem":
            return LocalFiles(), location
        return filesystem, location
    if type(filesystem).__module__.startswith("pyarrow"):
        return _from_arrow(filesystem, location)
    raise InvalidInputError(
        f"expected an fsspec or pyarrow file system, found {type(filesystem).__name__}"
    )


def kind_of_filesystem(filesystem: Any) -> str:
    """Canonical scheme of a file system that the user gave."""
    if isinstance(filesystem, LocalFiles):
        return "file"
    protocol = filesystem.protocol
    return canonical_scheme(protocol if isinstance(protocol, str) else protocol[0])


_PROTOCOL: Final = {"az": "abfs", "s3": "s3", "gs": "gs", "http": "http", "https": "https"}
_EXTRA: Final = {"az": "azure", "s3": "s3", "gs": "gcs"}
_PLAIN: Final = (str, int, float, bool, bytes, type(None))


class _SharedFilesystems:
    """Clients of object stores cost tenths of a second to make; equal ones are made once."""

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
    """A hashable equal of plain options; None when there is something else among them."""
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
    if filesystem.type_name == "local":
        return LocalFiles(), location
    from fsspec.implementations.arrow import ArrowFSWrapper  # noqa: PLC0415  # rare and slow

    return ArrowFSWrapper(filesystem), location
