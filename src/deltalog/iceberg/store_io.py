"""PyIceberg's file interface for a table's store. A file is written to memory, then stored.

This module converts locations in Iceberg metadata to paths of the table. Metadata is not trusted: a
location outside of the table's `metadata/` is an error.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from deltalog._util.paths import canonical_path, check_confined, container_of, is_absolute, join
from deltalog.errors import ObjectNotFoundError, UnsafePathError
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from deltalog.storage.store import Store

METADATA_DIRECTORY = "metadata"


def location_of(store: Store) -> str:
    """Return the table's location in Iceberg's form: with a scheme, without a trailing slash."""
    return as_location(store.root.rstrip("/"))


def as_location(path: str) -> str:
    """Return a location with a scheme; a local path gets `file:`."""
    return path if "://" in path else f"{container_of(path)}/{path.lstrip('/')}"


def metadata_path(location: str, store: Store) -> str:
    """Return the path, relative to the table, of a metadata file at a location.

    Raises:
        UnsafePathError: the location is not in the table's `metadata/`.
    """
    path = canonical_path(location, store.root)
    if is_absolute(path) or not path.startswith(f"{METADATA_DIRECTORY}/"):
        raise UnsafePathError(
            f"cannot use the Iceberg metadata of {store.root}: it refers to {location!r}, which is "
            f"not in the table's {METADATA_DIRECTORY}/; delete that directory, and the next commit "
            "writes it again"
        )
    check_confined(path, allow_absolute=False)
    return path


class _Bytes(BytesIO):
    """A file in memory. Its bytes can be read after the file is closed."""

    data: bytes = b""

    def close(self) -> None:
        if not self.closed:
            self.data = self.getvalue()
        super().close()


class StoredInput(InputFile):
    """A metadata file that is read as a whole."""

    def __init__(self, location: str, store: Store) -> None:
        super().__init__(location)
        self._store = store
        self._data: bytes | None = None

    def _read(self) -> bytes:
        if self._data is None:
            self._data = self._store.read(metadata_path(self.location, self._store))
        return self._data

    def __len__(self) -> int:
        return len(self._read())

    def exists(self) -> bool:
        """Return whether the file exists."""
        try:
            self._read()
        except ObjectNotFoundError:
            return False
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: FBT001, FBT002  # PyIceberg's API
        """Read the file into memory and open it."""
        del seekable
        return BytesIO(self._read())


class StoredOutput(OutputFile):
    """A metadata file, written to memory; `StoreIO.flush` stores it."""

    def __init__(self, location: str, store: Store) -> None:
        super().__init__(location)
        self._store = store
        self._file = _Bytes()

    @property
    def data(self) -> bytes:
        """The bytes of the file, after it is closed."""
        return self._file.data

    def __len__(self) -> int:
        return len(self.data)

    def exists(self) -> bool:
        """Return False, because every written file has a new name."""
        return False

    def to_input_file(self) -> InputFile:
        """Return the same file for reading."""
        return StoredInput(self.location, self._store)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: FBT001, FBT002  # PyIceberg's API
        """Return a new file in memory."""
        del overwrite
        self._file = _Bytes()
        return self._file


class StoreIO(FileIO):
    """PyIceberg's access to the metadata files of one table."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self._written: list[StoredOutput] = []
        self._stored: list[str] = []

    def location(self, name: str) -> str:
        """Return the location of a metadata file by its name."""
        return join(location_of(self.store), f"{METADATA_DIRECTORY}/{name}")

    def new_input(self, location: str) -> StoredInput:
        """Return a metadata file to read."""
        return StoredInput(location, self.store)

    def new_output(self, location: str) -> StoredOutput:
        """Return a metadata file to write."""
        output = StoredOutput(location, self.store)
        self._written.append(output)
        return output

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a metadata file."""
        name = location if isinstance(location, str) else location.location
        self.store.delete_many([metadata_path(name, self.store)])

    def flush(self) -> None:
        """Store the files written since the last call.

        Cost: one request for each file, sent together.
        """
        written = [(metadata_path(one.location, self.store), one.data) for one in self._written]
        self._stored += [path for path, _ in written]
        map_in_pool(lambda file: self.store.put(*file), written)
        self._written.clear()

    def discard(self) -> None:
        """Delete the files that `flush` stored, because no table metadata will refer to them."""
        self.store.delete_many(self._stored)
        self._stored.clear()
