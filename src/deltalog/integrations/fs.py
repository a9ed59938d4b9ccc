"""A table's store as a pyarrow file system, with the class name of deltalake.

`pyarrow.fs.PyFileSystem(DeltaStorageHandler("s3://bucket/table", options))` reads and writes files
in the directory of a table, with deltalog's storage options. It does not use the Delta log: files
that it writes are not part of the table.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType

from deltalog.catalogs.table_uri import open_table_store
from deltalog.errors import InvalidInputError, ObjectNotFoundError
from deltalog.storage.store import native_home, native_path
from deltalog.storage.stores.filesystems import remove_folders
from deltalog.storage.stores.fsspec_files import RangedFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.storage import Store
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.table import DeltaTable

__all__ = ["DeltaStorageHandler"]


class DeltaStorageHandler(FileSystemHandler):
    """File system handler for the directory of a table, for `pyarrow.fs.PyFileSystem`.

    The path `/` is the root. Object stores have no directories: a directory exists if it contains
    files, and `create_dir` has no effect.

    Args:
        table_uri: the root; see `DeltaTable`. There need not be a table.
        options: the storage options.
        known_sizes: path → size in bytes. No request is sent for the size of such a file.

    Raises:
        InvalidInputError: a path is outside of the root.


    Cost: a file that is open for writing is in memory. One request writes it when it is closed.
    """

    def __init__(
        self,
        table_uri: str | PurePath | Store,
        options: StorageOptions | None = None,
        known_sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._store, _ = open_table_store(table_uri, options, None)
        self._sizes = {_clean(path): size for path, size in (known_sizes or {}).items()}
        given = {} if options is None or callable(options) else options
        self._buffer: object = given.get("max_buffer_size")

    @classmethod
    def from_table(
        cls,
        table: DeltaTable,
        options: StorageOptions | None = None,
        known_sizes: Mapping[str, int] | None = None,
    ) -> Self:
        """Return the handler for the directory of a table.

        With `options`, the directory is opened with them; otherwise the table's store is used.
        """
        store = table.snapshot.store
        return cls(store if options is None else store.root, options, known_sizes)

    def get_type_name(self) -> str:
        """Return the name of the file system for pyarrow's messages."""
        return "deltalog"

    def normalize_path(self, path: str) -> str:
        """Return the path relative to the root."""
        return _clean(path)

    def get_file_info(self, paths: Sequence[str]) -> list[FileInfo]:
        """Return the type, size and time of each path. The type of a missing file is `NotFound`."""
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        """Return the entries of a directory, at any depth if the selector is recursive.

        Cost: one listing of all files below the directory.
        """
        base = _clean(selector.base_dir)
        start = f"{base}/" if base else ""
        files = list(self._store.list_all(base))
        if not files and not self._is_directory(base):
            if selector.allow_not_found:
                return []
            raise FileNotFoundError(f"there is no directory {base!r} in {self._store.root}")
        inner = [file.path.removeprefix(start) for file in files]
        parents = {parent for path in inner for parent in _parents(path)} | self._empty(base)
        names = [*sorted(parents), *sorted(inner)]
        shown = (name for name in names if selector.recursive or "/" not in name)
        prefix = selector.base_dir.rstrip("/") + "/" if selector.base_dir else ""
        return [
            FileInfo(prefix + name, FileType.Directory)
            if name in parents
            else self._info(prefix + name)
            for name in shown
        ]

    def create_dir(self, path: str, recursive: bool = True) -> None:  # noqa: FBT001, FBT002  # deltalake's signature
        """Create a directory, unless it exists already."""
        native = native_path(self._store, _clean(path))
        if native is None:
            return
        if not recursive and not Path(native).parent.is_dir():
            raise FileNotFoundError(f"no parent directory of {path!r} in {self._store.root}")
        with native_home(self._store).open(native, makes=True, syncs=False):
            pass

    def delete_dir(self, path: str) -> None:
        """Delete a directory with its contents. A missing directory is no error."""
        self.delete_dir_contents(path, missing_dir_ok=True)
        native = native_path(self._store, _clean(path))
        if native is not None and Path(native).is_dir():
            remove_folders(native)

    def delete_dir_contents(
        self,
        path: str,
        missing_dir_ok: bool = False,  # noqa: FBT001, FBT002  # pyarrow's signature
        *,
        accept_root_dir: bool = False,
    ) -> None:
        """Delete the contents of a directory; of the root only with `accept_root_dir`."""
        inner = _clean(path)
        if not inner and not accept_root_dir:
            raise InvalidInputError(
                f"cannot delete all contents of {self._store.root}: use delete_root_dir_contents"
            )
        self._empty_out(inner, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        """Delete everything below the root."""
        self._empty_out("", missing_dir_ok=True)

    def delete_file(self, path: str) -> None:
        """Delete a file."""
        self._stat(path)
        self._store.delete_many([_clean(path)])

    def move(self, src: str, dest: str) -> None:
        """Move a file, or all files of a directory. The files are copied and then deleted."""
        source, target = _clean(src), _clean(dest)
        if self._info(source).type == FileType.File:
            self.copy_file(source, target)
            self._store.delete_many([source])
            return
        for file in list(self._store.list_all(source)):
            self.copy_file(file.path, f"{target}/{file.path.removeprefix(f'{source}/')}")
        self.delete_dir(source)

    def copy_file(self, src: str, dest: str) -> None:
        """Copy a file through this process. An existing file is replaced."""
        self._stat(src)
        self._store.put(_clean(dest), self._store.read(_clean(src)))

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """Open a file for reading."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file for reading at any position. Cost: one request per megabyte that is read."""
        inner = _clean(path)
        size = self._sizes.get(inner)
        if size is None:
            self._stat(inner)
            native = native_path(self._store, inner)
            if native is not None:
                return pa.OSFile(native, "r")
            opened: Any = self._store.open(inner)
            return pa.PythonFile(opened, mode="r")

        def read(start: int, end: int) -> bytes:
            return self._store.read_ranges(inner, [(start, end)])[0]

        return pa.PythonFile(io.BufferedReader(RangedFile(read, size)), mode="r")

    def open_output_stream(
        self, path: str, metadata: Mapping[str, str] | None = None
    ) -> pa.PythonFile:
        """Open a file for writing, which is created when it is closed. `metadata` has no effect."""
        del metadata
        if self._buffer is not None:
            warnings.warn(
                f"max_buffer_size={self._buffer!r} has no effect: a file is written by one request "
                "when it is closed; leave the option out",
                UserWarning,
                stacklevel=2,
            )
        return pa.PythonFile(_Upload(self._store, _clean(path)), mode="w")

    def open_append_stream(
        self, path: str, metadata: Mapping[str, str] | None = None
    ) -> pa.PythonFile:
        """Raise an error, because stores cannot append to files."""
        raise NotImplementedError(f"cannot append to {path!r}: stores only replace whole files")

    def equals(self, other: object) -> bool:
        """Return whether both handlers have the same root."""
        return self == other

    def __eq__(self, other: object) -> bool:
        """Return whether both handlers have the same root."""
        return isinstance(other, DeltaStorageHandler) and self._store.root == other._store.root

    def __hash__(self) -> int:
        """Return the hash of the root."""
        return hash(self._store.root)

    def __repr__(self) -> str:
        """Return a string that contains the root."""
        return f"DeltaStorageHandler({self._store.root!r})"

    def _info(self, path: str) -> FileInfo:
        inner = _clean(path)
        if (native := native_path(self._store, inner)) is not None and Path(native).is_file():
            found = Path(native).stat()  # in nanoseconds, unlike the times of the store
            return FileInfo(path, FileType.File, size=found.st_size, mtime_ns=found.st_mtime_ns)
        try:
            file = self._store.stat(inner)
        except ObjectNotFoundError:
            kind = FileType.Directory if self._is_directory(inner) else FileType.NotFound
            return FileInfo(path, kind)
        time_ns = file.modified_ms * 1_000_000
        return FileInfo(path, FileType.File, size=file.size_bytes, mtime_ns=time_ns)

    def _stat(self, path: str) -> None:
        if self._info(path).type != FileType.File:
            raise FileNotFoundError(f"there is no file {path!r} in {self._store.root}")

    def _is_directory(self, inner: str) -> bool:
        native = native_path(self._store, inner)
        if native is not None:
            return Path(native).is_dir()
        return not inner or next(iter(self._store.list_all(inner)), None) is not None

    def _empty(self, base: str) -> set[str]:
        """Return all directories below `base`, including empty ones; none for an object store."""
        native = native_path(self._store, base)
        if native is None:
            return set()
        found = (path for path in Path(native).rglob("*") if path.is_dir())
        return {path.relative_to(native).as_posix() for path in found}

    def _empty_out(self, inner: str, *, missing_dir_ok: bool) -> None:
        if not self._is_directory(inner):
            if missing_dir_ok:
                return
            raise FileNotFoundError(f"there is no directory {inner!r} in {self._store.root}")
        native = native_path(self._store, inner)
        if native is not None:
            native_home(self._store).check([f"{inner}/*" if inner else "*"])
        self._store.delete_many([file.path for file in self._store.list_all(inner)])
        if native is not None:
            remove_folders(native, itself=False)


class _Upload(io.BytesIO):
    """Buffer whose content is written to a store when the buffer is closed."""

    def __init__(self, store: Store, path: str) -> None:
        super().__init__()
        self._store = store
        self._path = path

    def close(self) -> None:
        """Write the content to the store. Further calls have no effect."""
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._store.put(self._path, data)


def _clean(path: str) -> str:
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise InvalidInputError(f"cannot use the path {path!r}: it is outside of the table's root")
    return "/".join(parts)


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
