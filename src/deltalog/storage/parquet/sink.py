"""Writing Parquet files: a whole table at once, or in several parts.

A file is either complete or does not exist: a local file gets its final name when it is closed, and
a remote file is created by a single request.
"""

from __future__ import annotations

import contextlib
import io
import os
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq  # noqa: TID251  # allowed in this package

from deltalog._util.clock import now_ms
from deltalog._util.paths import FileInfo, join
from deltalog.errors import AlreadyExistsError, DeltaError, UnsafePathError
from deltalog.storage.atomic import Folder, open_temporary, take_name
from deltalog.storage.faults import storage_error
from deltalog.storage.parquet.parts import with_exact_bounds
from deltalog.storage.store import Store, native_home, native_path, syncs_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


LIMITS_PAGE_ROWS: Final = "max_rows_per_page" in signature(pq.ParquetWriter).parameters
"""Whether pyarrow can limit the number of rows per page, as it can since version 23."""


def write_parquet(store: Store, path: str, table: pa.Table, **options: Any) -> FileInfo:
    """Write `table` as one new Parquet file.

    Args:
        store: the store of the new file.
        path: the decoded path; missing directories are created.
        table: the rows.
        options: the options of `pyarrow.parquet.ParquetWriter` (`compression`, …), and
            `row_group_size`.

    Raises:
        AlreadyExistsError: a file of this name exists.

    Cost: one request, for which the file is in memory; a local file is written directly.
    """
    row_group_size = options.pop("row_group_size", None)
    with ParquetSink(store, path, table.schema, **options) as sink:
        sink.write(table, row_group_size=row_group_size)
    return sink.file


def encode_parquet(
    table: pa.Table, *, row_group_size: int | None = None, **options: Any
) -> pa.Buffer:
    """Encode a Parquet file in memory, so that its row groups can be copied to another file.

    Args:
        table: the rows; the file of an empty table has no row group.
        row_group_size: the maximum number of rows of a row group.
        options: the options of `ParquetSink`.
    """
    out = pa.BufferOutputStream()
    statistics = with_exact_bounds(table.schema, options.pop("write_statistics", True))
    with pq.ParquetWriter(out, table.schema, write_statistics=statistics, **options) as writer:
        if table.num_rows:
            writer.write(table, row_group_size=row_group_size)
    return out.getvalue()


class ParquetSink:
    """Context manager that writes a Parquet file in several parts.

    The file is created at `path` when the `with` block ends without an exception. An existing file
    is never replaced; see `NewFile`.

    Args:
        store: the store of the new file.
        path: the decoded path.
        schema: the schema of the parts.
        is_unsought: see `NewFile`.
        options: the options of `pyarrow.parquet.ParquetWriter`. Floating-point columns never have
            bounds; see `with_exact_bounds`.

    Attributes:
        file: path, size and time of the file, after `close`.
        metadata: the footer, after `close`.

    Protocol: Add File and Remove File (data files have unique names)
    """

    file: FileInfo
    metadata: pq.FileMetaData

    def __init__(
        self,
        store: Store,
        path: str,
        schema: pa.Schema,
        *,
        is_unsought: bool = False,
        **options: Any,
    ) -> None:
        self._file = NewFile(store, path, is_unsought=is_unsought)
        self._writer: pq.ParquetWriter | None = None
        self._collected: list[pq.FileMetaData] = []
        statistics = with_exact_bounds(schema, options.pop("write_statistics", True))
        with self._whole_or_gone():
            self._writer = pq.ParquetWriter(
                self._file.open(),
                schema,
                metadata_collector=self._collected,
                write_statistics=statistics,
                **options,
            )

    def write(self, data: pa.Table | pa.RecordBatch, *, row_group_size: int | None = None) -> None:
        """Append rows as one or more row groups."""
        with self._whole_or_gone() as writer:
            writer.write(data, row_group_size=row_group_size)

    @property
    def size_bytes(self) -> int:
        """Return the number of bytes encoded so far."""
        return self._file.size_bytes

    def close(self) -> FileInfo:
        """Write the footer, and rename the temporary file to its final name.

        Raises:
            AlreadyExistsError: a file of this name exists.
        """
        with self._whole_or_gone() as writer:
            writer.close()
            info = self._file.finish()
        self.metadata = self._collected[0]
        self.file = info
        return self.file

    def abandon(self) -> None:
        """Delete the incomplete file."""
        self._file.abandon()
        if self._writer is not None:
            # Mark the writer as closed. Otherwise, it would write a footer when it is
            # garbage-collected.
            self._writer.is_open = False

    @contextlib.contextmanager
    def _whole_or_gone(self) -> Iterator[Any]:
        """Yield the writer; after an error, delete the file and make all later calls fail."""
        try:
            with self._file.whole_or_gone():
                yield self._writer
        except BaseException:
            self.abandon()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


class NewFile:
    """A new file that gets its final name when it is complete, and never replaces another file.

    A local file is first written to a temporary file in the same directory; a remote file is first
    collected in memory.

    Args:
        store: the store of the new file.
        path: the decoded path.
        is_unsought: whether nobody opens a file of this name before a commit contains it. If so, a
            local file gets its name before it is synced, so that one sync is enough for content and
            name.
    """

    def __init__(self, store: Store, path: str, *, is_unsought: bool = False) -> None:
        self._store = store
        self._path = path
        self._is_unsought = is_unsought
        self._native = native_path(store, path)
        self._directory, self._name = os.path.split(self._native or "")
        self._temporary: str | None = None
        self._failure: BaseException | None = None
        self._out: Any = pa.BufferOutputStream()

    def open(self, *, for_arrow: bool = True) -> Any:
        """Open the file, and return its stream; must be called inside of `whole_or_gone`.

        Args:
            for_arrow: whether Arrow writes the file. If not, the stream of a local file has a
                descriptor.
        """
        if self._native is not None:
            with self._folder(makes=True) as folder:  # the directory may not exist
                self._temporary, descriptor = open_temporary(folder, self._name)
            if not for_arrow:
                self._out = io.FileIO(descriptor, "wb")
                return self._out
            try:
                # Arrow cannot write to a descriptor, but it can open this path of the descriptor.
                path = f"/dev/fd/{descriptor}"
                is_known = os.path.exists(path)  # noqa: PTH110  # a string
                beside = f"{self._directory}/{self._temporary}"
                self._out = pa.OSFile(path if is_known else beside, "wb")
            finally:
                os.close(descriptor)
        return self._out

    def _folder(self, *, makes: bool = False) -> AbstractContextManager[Folder]:
        home = native_home(self._store)
        return home.open(self._directory, makes=makes, syncs=syncs_files(self._store))

    @property
    def size_bytes(self) -> int:
        """Return the number of bytes written so far."""
        return int(self._out.tell())

    def finish(self) -> FileInfo:
        """Give the file its final name; must be called inside of `whole_or_gone`.

        Raises:
            AlreadyExistsError: a file of this name exists.
        """
        return FileInfo(self._path, self._finish(), now_ms())

    def _finish(self) -> int:
        if self._temporary is not None:
            size = int(self._out.tell())
            self._out.close()
            # Sync the file before it can be in a commit, so that a power cut cannot lose a
            # committed file.
            syncs = syncs_files(self._store)
            with self._folder() as folder:
                if not syncs or not self._is_unsought:
                    if syncs:
                        folder.sync_file(self._temporary)
                    take_name(folder, self._temporary, folder, self._name, syncs=syncs)
                else:
                    take_name(folder, self._temporary, folder, self._name, syncs=False)
                    self._temporary = self._name  # now, `abandon` must delete this name
                    folder.sync_file(self._name)
                    folder.sync()
            return size
        data = self._out.getvalue().to_pybytes()
        try:
            self._store.put_if_absent(self._path, data)
        except AlreadyExistsError:
            # The store may have repeated the request after a first attempt that created the file.
            # Then the file has the same content.
            if self._store.read(self._path) != data:
                raise
        return len(data)

    def abandon(self) -> None:
        """Delete the incomplete file."""
        if self._temporary is not None:
            with contextlib.suppress(OSError):  # closing may fail again if the disk is full
                self._out.close()
            with contextlib.suppress(OSError, UnsafePathError), self._folder() as folder:
                folder.unlink(self._temporary)

    @contextlib.contextmanager
    def whole_or_gone(self) -> Iterator[None]:
        """If an error occurs, delete the file; all later calls raise the same error.

        Otherwise later calls of Arrow's writer would raise unrelated errors.
        """
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except BaseException as error:
            self.abandon()
            self._failure = error
            if isinstance(error, DeltaError) or not isinstance(error, OSError):
                raise
            where = join(self._store.root, self._path)
            self._failure = storage_error(error, operation="write", path=where)
            raise self._failure from error
