"""Writing Parquet files: all at once, or row by row until they are closed.

A file is either complete or does not exist: a local file gets its name when it is closed, and any
other file is created by a single request.
"""

from __future__ import annotations

import contextlib
import io
import os
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq  # noqa: TID251  # this and `parquet` are the places

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
"""Whether pyarrow can limit the rows of a page: since version 23."""


def write_parquet(store: Store, path: str, table: pa.Table, **options: Any) -> FileInfo:
    """Write `table` as one new Parquet file.

    Args:
        store: the store of the new file.
        path: the decoded path; missing directories are created.
        table: the rows.
        options: the options of `pyarrow.parquet.ParquetWriter` (`compression`, …), and
            `row_group_size`.

    Raises:
        AlreadyExistsError: there is a file of that name.

    Cost: one request; local files are written without a copy in memory.
    """
    row_group_size = options.pop("row_group_size", None)
    with ParquetSink(store, path, table.schema, **options) as sink:
        sink.write(table, row_group_size=row_group_size)
    return sink.file


def encode_parquet(
    table: pa.Table, *, row_group_size: int | None = None, **options: Any
) -> pa.Buffer:
    """Encode a Parquet file in memory, to move its row groups to another file.

    Args:
        table: the rows; without rows, the file has no row group.
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
    """Writes one Parquet file piece by piece; a context manager.

    The file appears at `path` when the `with` block ends without an exception. It never replaces
    another file, see `NewFile`.

    Args:
        store: the store of the new file.
        path: the decoded path.
        schema: the schema of the pieces.
        is_unsought: as in `NewFile`.
        options: the options of `pyarrow.parquet.ParquetWriter`. Floating-point columns never get
            bounds, see `with_exact_bounds`.

    Attributes:
        file: path, size and time, once closed.
        metadata: the footer, once closed.

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
        """Bytes encoded so far."""
        return self._file.size_bytes

    def close(self) -> FileInfo:
        """Write the footer and give the file its name.

        Raises:
            AlreadyExistsError: there is a file of that name.
        """
        with self._whole_or_gone() as writer:
            writer.close()
            info = self._file.finish()
        self.metadata = self._collected[0]
        self.file = info
        return self.file

    def abandon(self) -> None:
        """Delete what was written so far."""
        self._file.abandon()
        if self._writer is not None:
            # Otherwise the writer would write a footer when it is garbage-collected.
            self._writer.is_open = False

    @contextlib.contextmanager
    def _whole_or_gone(self) -> Iterator[Any]:
        """Yield the writer; a failure deletes the file and makes all later calls fail."""
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
    """A file that gets its name when it is complete, and never replaces another.

    A local file is written under a temporary name in the same directory; elsewhere the file is kept
    in memory.

    Args:
        store: the store of the new file.
        path: the decoded path.
        is_unsought: whether nobody reads this name before a commit contains it. A local file is
            then named before it is synced, so that the disk writes content and name together.
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
        """Open the file, and return its stream; call it inside `whole_or_gone`.

        Args:
            for_arrow: whether Arrow writes the file. Otherwise a local file has a descriptor.
        """
        if self._native is not None:
            with self._folder(makes=True) as folder:  # the directory may be new
                self._temporary, descriptor = open_temporary(folder, self._name)
            if not for_arrow:
                self._out = io.FileIO(descriptor, "wb")
                return self._out
            try:
                # Arrow cannot use a descriptor, but this path always leads to the file.
                path = f"/dev/fd/{descriptor}"
                is_known = os.path.exists(path)  # noqa: PTH110  # of each file; a string
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
        """Bytes written so far."""
        return int(self._out.tell())

    def finish(self) -> FileInfo:
        """Give the file its name; call it inside `whole_or_gone`.

        Raises:
            AlreadyExistsError: there is a file of that name.
        """
        return FileInfo(self._path, self._finish(), now_ms())

    def _finish(self) -> int:
        if self._temporary is not None:
            size = int(self._out.tell())
            self._out.close()
            # A commit must not name a file that a power cut could remove.
            syncs = syncs_files(self._store)
            with self._folder() as folder:
                if not syncs or not self._is_unsought:
                    if syncs:
                        folder.sync_file(self._temporary)
                    take_name(folder, self._temporary, folder, self._name, syncs=syncs)
                else:
                    take_name(folder, self._temporary, folder, self._name, syncs=False)
                    self._temporary = self._name  # `abandon` deletes this name
                    folder.sync_file(self._name)
                    folder.sync()
            return size
        data = self._out.getvalue().to_pybytes()
        try:
            self._store.put_if_absent(self._path, data)
        except AlreadyExistsError:
            # A repeated request may have failed because its first attempt succeeded.
            if self._store.read(self._path) != data:
                raise
        return len(data)

    def abandon(self) -> None:
        """Delete what was written so far."""
        if self._temporary is not None:
            with contextlib.suppress(OSError):  # a full disk may fail here again
                self._out.close()
            with contextlib.suppress(OSError, UnsafePathError), self._folder() as folder:
                folder.unlink(self._temporary)

    @contextlib.contextmanager
    def whole_or_gone(self) -> Iterator[None]:
        """Delete the file after a failure, and make all later calls raise that failure.

        After one failure, Arrow's writer would raise unrelated errors.
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
