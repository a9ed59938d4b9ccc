"""Reading Parquet files: footers, and the requested columns.

Arrow itself reads local files. For a remote file, the footer costs one range request (two if it is
larger than 64 KiB), and the requested column chunks cost one batch of range requests. `int96`
timestamps are read as microseconds, because nanoseconds overflow silently (9999-12-31 would be
1816).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq  # noqa: TID251  # allowed in this package

from deltalog.errors import DataFileUnreadableError
from deltalog.storage.parquet.facts import RECENT_FOOTERS, Footer, RowSizes, repeated_texts
from deltalog.storage.parquet.footer import (
    ColumnChunks,
    NullCounts,
    as_file,
    column_chunks,
    fetch_tail,
    local_footer,
)
from deltalog.storage.parquet.parts import (
    Column,
    FetchedParts,
    Segments,
    as_texts,
    coalesce,
    guarded,
    open_file,
    read_groups,
    read_side_by_side,
    stream_group,
)
from deltalog.storage.store import ByteRange, Store, native_path
from deltalog.storage.stores.fsspec_files import RangedFile
from deltalog.storage.stores.local_files import is_settled, local_state

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from deltalog.storage.parquet.footer import FileTail

_THREADED_BYTES: Final = 1024 * 1024
_CHUNK_GAP_BYTES: Final = 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
"""The minimum mean size of the column chunks that several threads decode."""


def open_parquet(
    store: Store,
    path: str,
    *,
    size_bytes: int | None = None,
    footer: Footer | None = None,
    footer_only: bool = False,
) -> ParquetReader:
    """Open a Parquet file and read its footer.

    Args:
        store: the store of the file.
        path: the decoded path.
        size_bytes: the file's length, if known, which saves a request on object stores.
        footer: the file's footer, if it was read before, which saves a request.
        footer_only: whether no rows will be read. If False, a small remote file is fetched whole,
            and a local one is opened with Arrow at once.

    Raises:
        DataFileMissingError: there is no such file.
        DataFileUnreadableError: the file is not a Parquet file.

    Cost: for a local file, one open. For a remote file, one range request, and without
        `size_bytes` also one `stat`.
    """
    return guarded(
        store,
        path,
        lambda: ParquetReader(store, path, size_bytes, footer, footer_only=footer_only),
    )


def _read_footer(native: str) -> Footer | None:
    """Read the footer of a local file without opening the file with Arrow, which takes longer.

    Returns:
        None if Arrow must open the file: it is damaged, or has timestamps of 96 bits, which
        `open_file` reads as microseconds.
    """
    data = local_footer(native)
    if data is None:
        return None
    metadata = pq.read_metadata(pa.BufferReader(as_file(data)))
    schema = metadata.schema.to_arrow_schema()
    return None if "[ns" in str(schema.types) else Footer(metadata, schema, data=data)


class ParquetReader:
    """A Parquet file whose footer was read; for one thread at a time.

    Attributes:
        path: the decoded path.
        footer: the footer, which other readers of the file may also use.
        metadata: pyarrow's metadata. Do not access its column chunks, because pyarrow crashes the
            process if a chunk is damaged. Use `column_chunks` instead.
        arrow_schema: the Arrow schema of all columns.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        size_bytes: int | None,
        footer: Footer | None,
        *,
        footer_only: bool = False,
    ) -> None:
        self.path = path
        self._store = store
        self._native = native_path(store, path)
        self._fetched = FetchedParts()
        # Use the true length of the file if it is known, because the length in the log may be
        # wrong.
        tail = None if footer is None else footer.tail
        self._size = tail.size_bytes if tail is not None else size_bytes or 0
        self._opened: pq.ParquetFile | None = None
        if self._native is None and size_bytes is None and tail is None:
            self._size = store.stat(path).size_bytes
        self.footer: Footer = footer or (
            self._fetch_footer(footer_only=footer_only)
            if self._native is None
            else self._local_footer(self._native, footer_only=footer_only)
        )
        self.metadata: pq.FileMetaData = self.footer.metadata
        self.arrow_schema: pa.Schema = self.footer.arrow_schema

    def _fetch_footer(self, *, footer_only: bool) -> Footer:
        tail = fetch_tail(self._store, self.path, self._size, footer_only=footer_only)
        self._size = tail.size_bytes
        whole = None if tail.start else tail
        footer = None if whole else pq.read_metadata(pa.BufferReader(as_file(tail.footer)))
        file = self._opened = self._open(footer, whole)
        return Footer(file.metadata, file.schema_arrow, data=tail.footer, tail=tail)

    def _local_footer(self, native: str, *, footer_only: bool) -> Footer:
        state = local_state(native)
        stays = is_settled(state)  # determined before the file is read
        self._size = state.size_bytes
        if (known := RECENT_FOOTERS.get(state)) is not None:
            return known
        footer = _read_footer(native) if footer_only else None
        if footer is None:
            self._opened = self._open(None, None)
            footer = Footer(self._opened.metadata, self._opened.schema_arrow)
        if stays:
            RECENT_FOOTERS.keep(footer, state)
        return footer

    @property
    def leaf_paths(self) -> tuple[str, ...]:
        """See `Footer.leaf_paths`."""
        return self.footer.leaf_paths

    @property
    def leaves(self) -> tuple[tuple[str, ...], ...]:
        """See `Footer.leaves`."""
        return self.footer.leaves

    @property
    def size_bytes(self) -> int:
        """Return the file's true length, even if the caller passed another length."""
        return self._size

    @property
    def num_rows(self) -> int:
        """Return the number of rows of the file."""
        return self.metadata.num_rows

    @property
    def row_group_starts(self) -> list[int]:
        """See `Footer.row_group_starts`."""
        return self.footer.row_group_starts

    def null_counts(self) -> NullCounts:
        """Return the number of NULLs by row group and leaf column; None if not in the footer.

        Raises:
            DataFileUnreadableError: the footer is damaged.

        Cost: for a local file, one read. For a remote file, one request if `open_parquet` received
            a footer, otherwise nothing.
        """
        groups = self.column_chunks()
        return [[chunk.null_count for chunk in group] for group in groups]

    def column_chunks(self, leaves: Collection[int] | None = None) -> ColumnChunks:
        """Return the footer's facts about column chunks, by row group and leaf column.

        Args:
            leaves: the numbers of the leaf columns; None means all.

        Raises:
            DataFileUnreadableError: the footer is damaged.

        Cost: see `null_counts`.
        """
        return guarded(self._store, self.path, lambda: self._column_chunks(leaves))

    def leaf_indices(self, columns: Sequence[Column] | None) -> list[int]:
        """Return the numbers of the leaf columns of `columns`, ascending.

        A tuple is the path of a field; it selects all leaves below the field. A string is the name
        of a top-level column or, if there is no such column, Parquet's dotted path of a field.
        Unknown columns are ignored.
        """
        if columns is None:
            return list(range(len(self.leaf_paths)))
        return self.footer.leaf_numbers.of(columns)

    def read(
        self, columns: Sequence[Column] | None = None, row_groups: Sequence[int] | None = None
    ) -> pa.Table:
        """Read some columns of some row groups; columns that are not in the file are left out.

        Args:
            columns: see `leaf_indices`; None means all, an empty list returns rows without columns.
            row_groups: the numbers of the row groups; None means all.

        Returns:
            Columns in the file's order, with the types of `arrow_schema`.

        Raises:
            DataFileMissingError: the file was deleted meanwhile.
            DataFileUnreadableError: the file is damaged.

        Cost: for a remote file, one batch of range requests.
        """
        return self.read_leaves(self.leaf_indices(columns), row_groups)

    def read_leaves(
        self,
        leaf_indices: Sequence[int],
        row_groups: Sequence[int] | None = None,
        segments: Segments | None = None,
    ) -> pa.Table:
        """Read leaf columns by number; see `read` for the result, errors and cost.

        Args:
            leaf_indices: the numbers of the columns, ascending.
            row_groups: the numbers of the row groups; None means all.
            segments: the result of `fetch` for these column chunks; None fetches them now.
        """
        groups = self._all_groups if row_groups is None else list(row_groups)
        indices = list(leaf_indices)
        return guarded(self._store, self.path, lambda: self._read(groups, indices, segments))

    def missing_ranges(
        self, leaf_indices: Sequence[int], row_groups: Sequence[int]
    ) -> list[ByteRange]:
        """Return the sorted byte ranges of column chunks that must be fetched before a read.

        For a local file or a file that was fetched whole, the list is empty.

        Raises:
            DataFileUnreadableError: the footer is damaged.
        """
        if self._native is not None or self.footer.whole is not None:
            return []
        return guarded(self._store, self.path, lambda: self._missing(row_groups, leaf_indices))

    def fetch(
        self, ranges: Sequence[ByteRange], *, max_gap_bytes: int = _CHUNK_GAP_BYTES
    ) -> Segments:
        """Fetch ranges of the file; close ranges share a request, and long ranges are split.

        Args:
            ranges: the result of `missing_ranges`.
            max_gap_bytes: the maximum gap between ranges that share a request.

        Raises:
            See `read`.

        Cost: one batch of range requests; nothing for no ranges.
        """
        return guarded(self._store, self.path, lambda: self._fetch(ranges, max_gap_bytes))

    def iter_batches(
        self,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[Column] | None = None,
        batch_size: int = 131_072,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `read` in batches of at most `batch_size`, one row group at a time.

        Cost: for a local file, the memory of a few batches, or of a small row group. For a remote
            file, one batch of range requests per row group, and the memory of the columns of one
            row group.
        """
        indices = self.leaf_indices(columns)
        for group in self._all_groups if row_groups is None else row_groups:
            is_streamed = self._native is not None and bool(indices)
            if is_streamed and self.footer.total_bytes([group]) > _THREADED_BYTES:
                yield from self._stream(group, indices, batch_size)
                continue

            def read_group(number: int = group) -> pa.Table:
                return self._read([number], indices)

            table = guarded(self._store, self.path, read_group)
            yield from table.to_batches(max_chunksize=batch_size)

    def stream_leaves(
        self, leaf_indices: Sequence[int], group: int, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `read_leaves` for one row group in batches, in case rows are large.

        Cost: for a remote file, one batch of range requests; the memory of a few batches.
        """
        indices = list(leaf_indices)
        self._fetched.segments = self.fetch(self.missing_ranges(indices, [group]))
        yield from self._stream(group, indices, batch_rows)

    def row_bytes(
        self, leaf_indices: Sequence[int], groups: Sequence[int], segments: Segments | None = None
    ) -> int:
        """Return the size of a decoded row in bytes; see `RowSizes`.

        Args:
            leaf_indices: the numbers of the columns.
            groups: the numbers of the row groups.
            segments: the result of `fetch` for these column chunks; None if no fetch is needed.
        """
        if self._native is None:
            self._fetched.segments = self._fetch([]) if segments is None else segments

        def first_row(group: int, leaf: int) -> pa.RecordBatch:
            with self._open(self.metadata, self.footer.whole, self.leaf_paths[leaf]) as file:
                return next(stream_group(file, group, [leaf], 1))

        def read(ranges: Sequence[ByteRange]) -> Sequence[bytes]:
            if self._native is None:
                return self._fetched.read_ranges(ranges)
            return self._store.read_ranges(self.path, ranges)

        sizes = RowSizes(self.footer, self._column_chunks, read, first_row)
        return guarded(self._store, self.path, lambda: sizes.of(groups, leaf_indices))

    def _stream(self, group: int, indices: list[int], batch_size: int) -> Iterator[pa.RecordBatch]:
        batches = stream_group(self._file, group, indices, batch_size)

        def next_batch() -> pa.RecordBatch | None:
            return next(batches, None)

        rows = 0
        while (batch := guarded(self._store, self.path, next_batch)) is not None:
            rows += batch.num_rows
            yield batch
        expected = self.metadata.row_group(group).num_rows
        if rows != expected:
            raise DataFileUnreadableError(
                f"cannot read row group {group} of {self.path!r}: expected {expected} rows, found "
                f"{rows}"
            )

    def close(self) -> None:
        """Close the file; the reader cannot be used afterwards."""
        if self._opened is not None:
            self._opened.close(force=True)

    def stored_footer(self) -> bytes:
        """Return the stored bytes of the footer. Cost: see `null_counts`."""
        if self.footer.data is None:
            if self._native is None:
                tail = fetch_tail(self._store, self.path, self._size, footer_only=True)
                self.footer.data = tail.footer
            else:
                data = local_footer(self._native)
                if data is None:
                    raise pa.ArrowInvalid("the file has changed: it has no footer any more")
                self.footer.data = data
        return self.footer.data

    def _column_chunks(self, leaves: Collection[int] | None) -> ColumnChunks:
        asked = None if leaves is None else frozenset(leaves)
        if (known := self.footer.chunks.get(asked)) is not None:
            return known
        found = column_chunks(self.stored_footer(), asked)
        shape = [len(self.leaf_paths)] * self.metadata.num_row_groups
        if [len(columns) for columns in found] != shape:
            raise pa.ArrowInvalid("the footer's row groups do not match its columns")
        self.footer.chunks[asked] = found
        return found

    @property
    def _file(self) -> pq.ParquetFile:
        if self._opened is None:
            self._opened = self._open(self.metadata, self.footer.whole)
        return self._opened

    @property
    def _all_groups(self) -> list[int]:
        return list(range(self.metadata.num_row_groups))

    def _open(
        self, footer: pq.FileMetaData | None, whole: FileTail | None, *texts: str
    ) -> pq.ParquetFile:
        source: Any
        if self._native is not None:
            source = pa.OSFile(self._native, "rb")
        elif whole is not None:  # reading from a buffer needs no Python calls
            source = pa.BufferReader(whole.data)
        else:
            source = pa.PythonFile(RangedFile(self._fetched.read, self._size), mode="r")
        return open_file(source, metadata=footer, texts=texts)

    def _read(
        self, groups: list[int], indices: list[int], segments: Segments | None = None
    ) -> pa.Table:
        if not indices:
            rows = self.footer.rows_of(groups)
            return pa.table({"_": pa.nulls(rows)}).select([])
        if self._native is None:
            if segments is None:
                is_whole = self.footer.whole is not None
                segments = self._fetch([] if is_whole else self._missing(groups, indices))
            self._fetched.segments = segments
        try:
            read: Callable[[Sequence[ByteRange]], Sequence[bytes]] = self._fetched.read_ranges
            if self._native is not None:
                read = partial(self._store.read_ranges, self.path)
            texts = repeated_texts(self.footer, groups, indices, self._column_chunks, read)
            try:
                found = self._decode(groups, indices, texts)
            except (pa.ArrowException, OSError):
                if not texts:
                    raise
                found = self._decode(groups, indices, [])  # decode without dictionaries
        finally:
            self._fetched.segments = Segments()
        # In a damaged file, columns may have different numbers of rows, which Arrow does not check.
        rows = self.footer.rows_of(groups)
        for name, column in zip(found.column_names, found.columns, strict=True):
            if len(column) != rows:
                raise pa.ArrowInvalid(f"expected {rows} values in {name!r}, found {len(column)}")
        return found

    def _decode(self, groups: list[int], indices: list[int], texts: list[str]) -> pa.Table:
        """Decode row groups; `texts` are read as dictionaries, then converted to strings."""
        # Opening the file again, and parsing the sizes of its chunks, takes time for each column.
        num_chunks = len(self.leaf_paths) * len(groups)
        if self.footer.total_bytes(groups) <= max(_THREADED_BYTES, num_chunks * _CHUNK_BYTES):
            file = self._file
            if texts:
                file = self._open(self.metadata, self.footer.whole, *texts)
            return as_texts(read_groups(file, groups, indices), texts)
        leaves = self.footer.leaves
        return read_side_by_side(
            lambda: self._open(self.metadata, self.footer.whole, *texts),
            groups,
            indices,
            [leaves[index][0] for index in indices],
            self._leaf_bytes(groups, indices),
            texts,
        )

    def _leaf_bytes(self, groups: Sequence[int], indices: Sequence[int]) -> list[int]:
        """Return the size of each column in these row groups."""
        chunks = self._column_chunks(indices)
        return [
            sum(chunks[group][index].stored_bytes or 0 for group in groups) for index in indices
        ]

    def _missing(self, groups: Sequence[int], indices: Sequence[int]) -> list[ByteRange]:
        chunks = self._column_chunks(indices)
        wanted = sorted(
            chunks[group][index].byte_range(self._size) for group in groups for index in indices
        )
        return self.outside_tail(wanted)

    def outside_tail(self, ranges: Iterable[ByteRange]) -> list[ByteRange]:
        """Return the parts of the ranges that were not fetched with the footer."""
        if (tail := self.footer.tail) is None:
            return list(ranges)
        return [(start, min(end, tail.start)) for start, end in ranges if start < tail.start]

    def _fetch(
        self, ranges: Sequence[ByteRange], max_gap_bytes: int = _CHUNK_GAP_BYTES
    ) -> Segments:
        segments = Segments()
        if (tail := self.footer.tail) is not None:
            segments.add(tail.start, tail.data)
        if not ranges:
            return segments
        merged = coalesce(ranges, max_gap_bytes=max_gap_bytes)
        parts = self._store.read_ranges(self.path, merged)
        for (start, end), data in zip(merged, parts, strict=True):
            if len(data) != end - start:
                raise pa.ArrowInvalid(f"expected {end - start} bytes at {start}, found {len(data)}")
            segments.add(start, data)
        return segments


def read_footer(store: Store, path: str, *, size_bytes: int | None = None) -> pq.FileMetaData:
    """Return the footer of a Parquet file.

    See `open_parquet` for errors and cost.
    """
    return open_parquet(store, path, size_bytes=size_bytes, footer_only=True).metadata


def check_is_parquet(data: bytes, location: str) -> None:
    """Raise DataFileUnreadableError unless the data is a complete Parquet file.

    Args:
        data: the content of the file.
        location: the location, for the message.
    """
    try:
        pq.read_metadata(pa.BufferReader(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataFileUnreadableError(
            f"cannot use {location!r} as a data file: expected a Parquet file ({error})"
        ) from error
