"""A Parquet file made of row groups that were encoded before: by this process, or in other files.

Their bytes are copied, and a new footer says where they are. The file is whole or not there, as
with `ParquetSink`.

Protocol: none; Apache Parquet's `parquet.thrift`
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog.storage.byte_sources import EncodedBytes, write_all
from deltalog.storage.parquet_groups import (
    StoredFooter,
    make_footer,
    moved_group,
    put_spot,
    read_stored,
)
from deltalog.storage.parquet_indexes import moved_indexes
from deltalog.storage.parquet_page_headers import check_pages
from deltalog.storage.parquet_sink import NewFile, encode_parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from deltalog.paths import FileInfo
    from deltalog.storage.parquet_groups import ByteSource, StoredGroup
    from deltalog.storage.parquet_page_headers import Pages
    from deltalog.storage.store import Store
    from deltalog.storage.thrift import Struct

_MAGIC: Final = b"PAR1"
CUTS_NOTHING: Final = ("parquet-cpp-arrow ",)
"""Writers that leave out a long bound instead of cutting it off."""


@dataclass(frozen=True, slots=True)
class GroupsToCopy:
    """Row groups of one file, whose pages were looked at.

    Args:
        source: the file.
        footer: its footer.
        numbers: of the row groups, ascending.
        pages: of each of them; None was not looked at, because this process has written it.
        unproven: row group and leaf column of each column chunk of which only decoding shows that
            it can be read.
    """

    source: ByteSource
    footer: StoredFooter
    numbers: tuple[int, ...]
    pages: tuple[Pages | None, ...]
    unproven: tuple[tuple[int, int], ...] = ()

    @property
    def num_rows(self) -> int:
        """Rows of all of them."""
        return sum(self.footer.groups[number].num_rows for number in self.numbers)


def checked_groups(
    source: ByteSource, footer: StoredFooter, numbers: Sequence[int]
) -> GroupsToCopy:
    """Row groups of a file, after a look at their pages.

    Raises:
        DataFileUnreadableError: pages are not where the footer says, or not what was written.
    """
    found = [check_pages(footer.groups[n], footer.schema, source) for n in numbers]
    return GroupsToCopy(
        source,
        footer,
        tuple(numbers),
        tuple(tuple(chunk.pages for chunk in chunks) for chunks in found),
        unproven=tuple(
            (number, leaf)
            for number, chunks in zip(numbers, found, strict=True)
            for leaf, chunk in enumerate(chunks)
            if not chunk.is_proven
        ),
    )


def encoded_groups(
    rows: pa.Table, *, row_group_size: int | None = None, **options: Any
) -> GroupsToCopy:
    """Rows as row groups; see `encode_parquet`."""
    source = EncodedBytes(encode_parquet(rows, row_group_size=row_group_size, **options))
    footer = _own_footer(source)
    numbers = tuple(range(len(footer.groups)))
    return GroupsToCopy(source, footer, numbers, (None,) * len(numbers))


def empty_footer(schema: pa.Schema, **options: Any) -> StoredFooter:
    """The footer of a file without rows, as this process writes it; see `encode_parquet`."""
    return _own_footer(EncodedBytes(encode_parquet(schema.empty_table(), **options)))


def _own_footer(source: EncodedBytes) -> StoredFooter:
    footer = read_stored(source.footer(), source.size_bytes)
    if footer is None:
        raise ValueError("a file of this process is encrypted")
    return footer


class SplicedFile:
    """Writes a data file row group by row group.

    Args:
        store: where the file is to be.
        path: decoded.
        template: footer of a file of the same schema, see `empty_footer`.

    Attributes:
        size_bytes: bytes written so far.
    """

    def __init__(self, store: Store, path: str, template: StoredFooter) -> None:
        self._file = NewFile(store, path, is_unsought=True)
        self._template = template
        self.size_bytes: int = 0
        self._groups: list[Struct] = []
        # Indexes go behind all row groups, as readers expect them beside the footer.
        self._later: list[tuple[Struct, str, bytes]] = []
        with self._file.whole_or_gone():
            self._out = self._file.open(for_arrow=False)
            self._write(_MAGIC)

    def append(self, groups: GroupsToCopy) -> None:
        """Append row groups.

        Raises:
            DataFileUnreadableError: the source ends early.
        """
        with self._file.whole_or_gone():
            for number, pages in zip(groups.numbers, groups.pages, strict=True):
                self._append(groups, groups.footer.groups[number], pages)

    def close(self) -> FileInfo:
        """Write indexes and footer, and give the file its name.

        Raises:
            AlreadyExistsError: there is a file of that name.
        """
        with self._file.whole_or_gone():
            for column, place, data in self._later:
                put_spot(column, place, self.size_bytes, len(data))
                self._write(data)
            footer = make_footer(self._template, self._groups)
            self._write(footer + struct.pack("<I", len(footer)) + _MAGIC)
            return self._file.finish()

    def abandon(self) -> None:
        """Delete what was written so far."""
        self._file.abandon()

    def _append(self, groups: GroupsToCopy, group: StoredGroup, pages: Pages | None) -> None:
        source, chunks = groups.source, group.chunks
        starts = [0] * len(chunks)
        position = self.size_bytes
        runs: list[tuple[int, int]] = []
        for number in sorted(range(len(chunks)), key=lambda number: chunks[number].start):
            start, end = chunks[number].start, chunks[number].end
            starts[number] = position
            position += end - start
            if runs and runs[-1][1] == start:
                start = runs.pop()[0]
            runs.append((start, end))
        for start, end in runs:
            source.copy(start, end, self._out)
            self.size_bytes += end - start
        fields, columns = moved_group(
            group,
            starts,
            has_orders=groups.footer.has_orders,
            may_be_cut=pages is not None and not groups.footer.created_by.startswith(CUTS_NOTHING),
        )
        for number, (chunk, column) in enumerate(zip(chunks, columns, strict=True)):
            shift = starts[number] - chunk.start
            found = moved_indexes(chunk, None if pages is None else pages[number], source, shift)
            if found.bloom is not None:
                put_spot(column, "bloom", self.size_bytes, len(found.bloom))
                self._write(found.bloom)
            for place, data in (("bounds", found.bounds), ("offsets", found.offsets)):
                if data is not None:
                    self._later.append((column, place, data))
        self._groups.append(fields)

    def _write(self, data: bytes) -> None:
        write_all(self._out, data)
        self.size_bytes += len(data)
