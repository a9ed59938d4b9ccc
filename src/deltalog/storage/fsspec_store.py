"""The store that everyone uses: local files, memory, and whatever fsspec can reach.

Owns which file system serves which path, credentials that are renewed, and that every method
raises `deltalog.errors` only. Refuses to know what the files hold.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar
from urllib.parse import quote

from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    DeltaError,
    InvalidInputError,
    StorageError,
    UnsafePathError,
)
from deltalog.paths import FileInfo, canonical_scheme, is_absolute, join, split_location
from deltalog.storage.faults import holds_secret, redact, storage_error
from deltalog.storage.filesystems import (
    CommitLock,
    Files,
    files_over,
    kind_of_filesystem,
    make_filesystem,
    own_filesystem,
    renewed,
)
from deltalog.storage.fsspec_files import FsspecFiles, RangedFile
from deltalog.storage.local_files import LocalFiles, local_path
from deltalog.storage.options import commit_objection, filesystem_options, secrets_of
from deltalog.storage.store import ByteRange, Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

StorageOptions = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
Place = tuple[str, str]
_Result = TypeVar("_Result")


def open_store(
    table: str | PurePath | Store,
    storage_options: StorageOptions | None = None,
    filesystem: Any = None,
    *,
    commit_lock: CommitLock | None = None,
) -> Store:
    """The store for a table's location.

    Args:
        table: a path or URL, taken literally (`%41` is three characters), or a store.
        storage_options: credentials and settings, in fsspec's or the native libraries'
            spellings; or a callable that gives fresh ones, called again when access is denied.
        filesystem: an fsspec or pyarrow file system, in which `table` is a path.
        commit_lock: makes a lock that all writers of the table share, for file systems that
            cannot create a file atomically.

    Raises:
        InvalidInputError: the location or the file system is none that can be used.

    Cost: no request.
    """
    if isinstance(table, str | PurePath):
        return FsspecStore(
            str(table), storage_options, filesystem=filesystem, commit_lock=commit_lock
        )
    if isinstance(table, Store):
        return table
    raise InvalidInputError(
        f"expected a table's location as a text, a path or a Store, found {type(table).__name__}"
    )


class FsspecStore:
    """A `Store` over local files, memory or an fsspec file system.

    Paths that name other places (`s3://other/…`, `file:///…`) are served by a sibling file
    system that is made with the same options.

    Args:
        location: path or URL of the table.
        storage_options: as in `open_store`.
        filesystem: as in `open_store`.
        commit_lock: as in `open_store`.
    """

    def __init__(
        self,
        location: str,
        storage_options: StorageOptions | None = None,
        *,
        filesystem: Any = None,
        commit_lock: CommitLock | None = None,
    ) -> None:
        self._options = storage_options if storage_options is not None else {}
        self._given, location = own_filesystem(filesystem, location)
        self._commit_lock = commit_lock
        self._location = location
        self._root, self._base = _root_and_base(location, self._given)
        if self._given is None:
            self._kind = canonical_scheme(split_location(self._root)[0])
        else:
            self._kind = kind_of_filesystem(self._given)
        self._forget_files()

    @property
    def root(self) -> str:
        """The table's location, without secrets: for messages and for absolute paths."""
        return self._root

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """The files directly in `directory` whose name is at least `first`, by name ascending."""
        found = self._run("list", directory, lambda files, path: files.list_directory(path, first))
        found.sort(key=lambda file: file.path)
        prefix = directory.rstrip("/") + "/" if directory else ""
        return (FileInfo(prefix + f.path, f.size_bytes, f.modified_ms) for f in found)

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """Every file at any depth below `directory`, in no order."""
        found = self._run("list", directory, lambda files, path: list(files.list_tree(path)))
        prefix = directory.rstrip("/") + "/" if directory else ""
        return (FileInfo(prefix + f.path, f.size_bytes, f.modified_ms) for f in found)

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """The files directly in a directory, and the directories; paths relative to the root."""
        files, directories = self._run("list", directory, lambda files, p: files.list_level(p))
        prefix = directory.rstrip("/") + "/" if directory else ""
        found = [FileInfo(prefix + f.path, f.size_bytes, f.modified_ms) for f in files]
        return found, [prefix + name for name in directories]

    def stat(self, path: str) -> FileInfo:
        """Size and time of one file."""
        found = self._run("stat", path, lambda files, full: files.stat(full))
        return FileInfo(path, found.size_bytes, found.modified_ms)

    def read(self, path: str) -> bytes:
        """The whole file."""
        return self._run("read", path, lambda files, full: files.read(full))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file, `[start, end)` each, in the order asked; sent together."""
        return self._run("read", path, lambda files, full: files.read_ranges(full, ranges))

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Whole files, in the order asked; sent together."""
        groups = self._by_files(paths)
        results: list[bytes] = [b""] * len(paths)
        for place, numbers in groups.items():
            asked = [paths[number] for number in numbers]
            for number, data in zip(numbers, self._read_group(place, asked), strict=True):
                results[number] = data
        return results

    def open(self, path: str) -> BinaryIO:
        """A seekable file for reading.

        Cost: elsewhere than local, a `stat` now and one ranged read per megabyte that is read.
        """
        native = self.native_path(path)
        if native is not None:
            return self._run("open", path, lambda _, full: io.BufferedReader(io.FileIO(full)))
        file = RangedFile(
            lambda start, end: self.read_ranges(path, [(start, end)])[0],
            self.stat(path).size_bytes,
        )
        return io.BufferedReader(file, buffer_size=_BUFFER_BYTES)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file with all of `data`, or raise `AlreadyExistsError`; never half of it."""
        options = self._options if isinstance(self._options, Mapping) else {}
        if (objection := commit_objection(self._kind, options)) is not None:
            raise StorageError(f"cannot create {join(self._root, path)!r}: {objection}")
        try:
            self._run("create", path, lambda files, full: files.create(full, data))
        except AlreadyExistsError:
            raise AlreadyExistsError(
                f"cannot create {join(self._root, path)!r}: it exists"
            ) from None

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file."""
        self._run("write", path, lambda files, full: files.put(full, data))

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete files; one that is gone already is no error."""
        for place, numbers in self._by_files(paths).items():
            self._delete_group(place, [paths[number] for number in numbers])

    def native_path(self, path: str) -> str | None:
        """The operating system's name of a file, or None where it has none."""
        return self._own_path(path) if self._place(path)[0] == "file" else None

    @property
    def can_sign(self) -> bool:
        """Whether the service has signed URLs."""
        return self._kind in _SIGNING

    def signed_url(self, path: str, seconds: int) -> str:
        """A URL by which anybody can read one file for a while."""

        def sign(files: Files, full: str) -> str:
            if not isinstance(files, FsspecFiles):
                raise StorageError(f"cannot sign URLs of {self._kind!r} files")
            return files.sign(full, seconds)

        return self._run("sign", path, sign)

    def __repr__(self) -> str:
        return f"FsspecStore({self._root!r})"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("_files", "_lock", "_process", "_secrets"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_files()

    def _forget_files(self) -> None:
        self._files: dict[Place, Files] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._secrets: tuple[str, ...] = ()

    def _run(
        self,
        operation: str,
        path: str,
        act: Callable[[Files, str], _Result],
        place: Place | None = None,
    ) -> _Result:
        place = place or self._place(path)
        try:
            return self._attempt(operation, path, act, place)
        except AccessDeniedError:
            if not callable(self._options):
                raise
        # The credentials may have expired: ask for new ones, once.
        with self._lock:
            self._files.clear()
        return self._attempt(operation, path, act, place)

    def _attempt(
        self,
        operation: str,
        path: str,
        act: Callable[[Files, str], _Result],
        place: Place,
    ) -> _Result:
        try:
            files = self._open_files(place)
            return act(files, self._own_path(path))
        except DeltaError:
            raise
        except Exception as error:  # noqa: BLE001  # the mapping is total
            mapped = storage_error(
                error, operation=operation, path=join(self._root, path), secrets=self._secrets
            )
            # A foreign message that holds a secret must not show up in a traceback either.
            raise mapped from (None if holds_secret(error, self._secrets) else error)

    def _read_group(self, place: Place, paths: Sequence[str]) -> list[bytes]:
        return self._run(
            "read",
            paths[0],
            lambda files, _: files.read_many([self._own_path(path) for path in paths]),
            place=place,
        )

    def _delete_group(self, place: Place, paths: Sequence[str]) -> None:
        self._run(
            "delete",
            paths[0],
            lambda files, _: files.delete_many([self._own_path(path) for path in paths]),
            place=place,
        )

    def _by_files(self, paths: Sequence[str]) -> dict[Place, list[int]]:
        groups: dict[Place, list[int]] = {}
        for number, path in enumerate(paths):
            groups.setdefault(self._place(path), []).append(number)
        return groups

    def _place(self, path: str) -> Place:
        """Which file system serves a path: its kind, and the account where kinds have those."""
        if not is_absolute(path):
            return self._kind, ""
        scheme, authority, _ = split_location(path)
        kind = canonical_scheme(scheme)
        if kind == "file" and self._kind not in {"file", "memory"}:
            raise UnsafePathError(
                f"path {path!r} is refused: a table at {self._root!r} names a local file"
            )
        if kind == self._kind and self._given is not None:
            return kind, ""
        account = authority.partition("@")[2] if kind == "az" else ""
        own = split_location(self._root)[1].partition("@")[2] if self._kind == "az" else ""
        return kind, "" if kind == self._kind and account in {"", own} else account

    def _own_path(self, path: str) -> str:
        """The path that the file system of `_place` understands."""
        if not is_absolute(path):
            if not path:
                return self._base
            if self._kind in _WEB:
                path = quote(path)
            return f"{self._base}/{path}" if self._base != "/" else f"/{path}"
        scheme, authority, inner = split_location(path)
        match canonical_scheme(scheme):
            case "file" | "memory":
                return inner
            case "http" | "https":
                return self._base + quote(path.removeprefix(self._base))
            case "az":
                return f"{authority.partition('@')[0]}/{inner}"
            case "hdfs" | "viewfs":
                return f"/{inner}"
            case kind if kind == self._kind and self._given is not None and kind not in _BUCKETS:
                return str(self._given._strip_protocol(path))  # noqa: SLF001  # no public name
            case _:
                return f"{authority}/{inner}"

    def _open_files(self, place: Place) -> Files:
        if self._process != os.getpid():
            self._forget_files()  # file systems with event loops and sockets do not survive a fork
        with self._lock:
            files = self._files.get(place)
        if files is None:
            files = self._make_files(*place)
            with self._lock:
                files = self._files.setdefault(place, files)
        return files

    def _make_files(self, kind: str, account: str) -> Files:
        if isinstance(self._given, LocalFiles) and kind == "file":
            return self._given
        if self._given is not None and kind == self._kind:
            return files_over(renewed(self._given), kind, self._commit_lock)
        if kind == "file":
            return LocalFiles()
        own = kind == self._kind
        if kind in _NEVER_SIBLINGS and not own:
            raise UnsafePathError(
                f"a table at {self._root!r} names files of scheme {kind!r}, which is refused"
            )
        options = self._options() if callable(self._options) else self._options
        self._secrets = secrets_of(options)
        location = self._location if own and not account else f"{kind}://_@{account}/"
        arguments = filesystem_options(kind, options, location, own=own)
        self._secrets = tuple({*self._secrets, *secrets_of(arguments)})
        filesystem = make_filesystem(kind, arguments, location)
        return files_over(filesystem, kind, self._commit_lock)


_BUFFER_BYTES: Final = 1024 * 1024
_WEB: Final = frozenset({"http", "https"})
_BUCKETS: Final = frozenset({"s3", "gs"})
_SIGNING: Final = frozenset({"s3", "gs", "az"})
_NEVER_SIBLINGS: Final = frozenset({"http", "https", "ftp", "sftp", "ssh", "smb", "github"})


def _root_and_base(location: str, filesystem: Any) -> tuple[str, str]:
    """The location for people and logs, and the root in the file system's own spelling."""
    if not location:
        raise InvalidInputError("expected a table's location, found an empty text")
    if isinstance(filesystem, LocalFiles):
        location = location.removeprefix("file://")
        path = local_path(location)
        return path, path
    if filesystem is not None:
        base = filesystem._strip_protocol(location).rstrip("/")  # noqa: SLF001  # no public name
        return filesystem.unstrip_protocol(base), base
    scheme, authority, inner = split_location(location)
    kind = canonical_scheme(scheme)
    if kind == "file":
        path = local_path(inner)
        return path, path
    root = redact(location).rstrip("/")
    if kind == "memory":
        return f"memory://{inner}", inner
    if kind in {"http", "https"}:
        return root, location.rstrip("/")
    if kind in {"hdfs", "viewfs"}:
        return root, f"/{inner}".rstrip("/")
    bucket = authority.partition("@")[0] if kind == "az" else authority
    return root, f"{bucket}/{inner}".rstrip("/")
