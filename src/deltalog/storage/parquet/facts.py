"""Caches of footers and other facts about Parquet files, for later readers of the same file.

Footers of local files are cached, because otherwise a repeated query for few rows would spend half
of its time on footers. A file that has just changed is not cached, because it could change again
within the resolution of the modification time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.kernels import compute, pc
from deltalog.errors import DataFileUnreadableError
from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.footer import ColumnChunk, ColumnChunks, FileTail, has_column_orders
from deltalog.storage.parquet.pages import (
    DICTIONARY_ENCODINGS,
    DamagedPageError,
    dictionary_bytes,
    num_entries,
)
from deltalog.storage.parquet.parts import LeafNumbers
from deltalog.storage.pool import HeldBytes
from deltalog.storage.stores.local_files import FileState, Recent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import pyarrow.parquet as pq  # noqa: TID251  # only for annotations

    from deltalog.storage.parquet.pages import Pages, RowRange
    from deltalog.storage.store import ByteRange

_LEAST_ROWS: Final = 16_384
# Strings are read as dictionaries only if the number of entries is at most this share of the number
# of rows. From 0.25 on, reading dictionaries is slower than reading plain values.
_MOST_ENTRIES: Final = 0.2
# The maximum number of dictionaries of a file whose headers are read for their number of entries.
_MOST_DICTIONARIES: Final = 1_000
_HEADER_BYTES: Final = 64  # a dictionary page's header is shorter
_MOST_CHUNKS: Final = 32
_MOST_ROWS: Final = 1 << 31  # a row group must have fewer rows
_MOST_PAGES: Final = 4096
_MOST_FACTS: Final = 16
_MOST_DETAILS: Final = 1024
_MOST_FOOTERS: Final = 64
_MOST_FOOTER_BYTES: Final = 64 * 1024
_MOST_SCHEMA_BYTES: Final = 64 * 1024
MOST_FETCHED_BYTES: Final = 64 * 1024 * 1024
"""The maximum memory of a `FetchedFooters`, in bytes."""
# The numbers of fields of Parquet's Thrift structs.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_META_DATA = 3
_TYPE, _ENCODINGS, _PATH, _CODEC, _NUM_VALUES = 1, 2, 3, 4, 5
_UNCOMPRESSED_BYTES, _DATA_PAGES, _DICTIONARY_PAGE, _ENCODING_STATS = 6, 9, 11, 13
_PAGE_TYPE, _ENCODING, _NUM_PAGES = 1, 2, 3
_DATA_PAGE_TYPES: Final = frozenset({0, 3})


class ChunkDetails(NamedTuple):
    """The description of a column chunk in a footer.

    Args:
        start: the stored bytes of the fields for type, encodings, path and codec.
        num_values: the number of values, including NULLs.
        uncompressed_bytes: the decompressed size of the chunk's pages.
        data_pages: the position of the first data page.
        dictionary: the position of the dictionary page; 0 if there is no dictionary.
        has_only_dictionary: whether the footer states that all values are in the dictionary.
        codec: the number of the codec.
    """

    start: bytes
    num_values: int
    uncompressed_bytes: int
    data_pages: int
    dictionary: int
    has_only_dictionary: bool
    codec: int


class Described:
    """The parts of a footer that are copied to excerpts, parsed on demand.

    Args:
        footer: the stored bytes of the footer.
    """

    def __init__(self, footer: bytes) -> None:
        self._footer = footer
        self._details: dict[int | None, ChunkDetails] = {}

    @cached_property
    def frame(self) -> tuple[bytes, bytes]:
        """Return the footer's bytes before the number of rows, and the bytes after the row groups.

        Raises:
            DamagedPageError: the footer is damaged, or its fields have an unusual order.
        """
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        position = number = 0
        data = self._footer
        try:
            while head := data[position]:
                if not head >> 4:
                    raise DamagedPageError("a footer whose fields are not in order")
                number += head >> 4
                starts[number] = position
                position = ends[number] = thrift.pass_value(data, position + 1, head & 15)
            if ends[_NUM_ROWS - 1] != starts[_NUM_ROWS] or ends[_NUM_ROWS] != starts[_ROW_GROUPS]:
                raise DamagedPageError("a footer whose fields are not in order")
        except (LookupError, TypeError, RecursionError) as error:
            raise DamagedPageError(f"cannot read a footer: {error!r}") from error
        return data[: starts[_NUM_ROWS]], data[ends[_ROW_GROUPS] :]

    def details(self, at: int | None) -> ChunkDetails:
        """Return the description of the column chunk at this position of the footer.

        Raises:
            DamagedPageError: the description is damaged.
        """
        if (known := self._details.get(at)) is not None:
            return known
        try:
            fields: thrift.Struct = thrift.read_struct(self._footer, at or 0)[0][_META_DATA].value
            kept = {number: fields[number] for number in (_TYPE, _ENCODINGS, _PATH, _CODEC)}
            found = ChunkDetails(
                thrift.write_struct(kept)[:-1],
                _integer(fields, _NUM_VALUES),
                _integer(fields, _UNCOMPRESSED_BYTES),
                _integer(fields, _DATA_PAGES),
                _integer(fields, _DICTIONARY_PAGE) if _DICTIONARY_PAGE in fields else 0,
                _has_only_dictionary(fields),
                _integer(fields, _CODEC),
            )
        except (LookupError, TypeError, RecursionError, AttributeError) as error:
            raise DamagedPageError(
                f"cannot read a column chunk's description: {error!r}"
            ) from error
        if len(self._details) >= _MOST_DETAILS:
            self._details.clear()
        self._details[at] = found
        return found


def _has_only_dictionary(details: thrift.Struct) -> bool:
    """Whether the page counts by encoding, which are optional, prove that all values are in it."""
    if _ENCODING_STATS not in details:
        return False
    pages = [
        page[_ENCODING].value
        for page in details[_ENCODING_STATS].value.values
        if page[_PAGE_TYPE].value in _DATA_PAGE_TYPES and page[_NUM_PAGES].value
    ]
    return bool(pages) and DICTIONARY_ENCODINGS.issuperset(pages)


def _integer(details: thrift.Struct, number: int) -> int:
    value = details.get(number, thrift.Value(thrift.INT64, None)).value
    if not isinstance(value, int) or value < 0:
        raise DamagedPageError(f"expected a number of 0 or more in a column chunk, found {value!r}")
    return value


@dataclass
class Footer:
    """A footer, and cached facts that are derived from it; all readers of the file share it.

    Args:
        metadata: pyarrow's metadata.
        arrow_schema: the Arrow schema of all columns.
        data: the stored bytes of the footer; None until they are needed.
        tail: the end of the file that was fetched with the footer; None for a local file.
        chunks: the facts about column chunks, by the set of requested leaves.
        pages: the positions of pages, by row group and leaf; None if unknown.
        bounds: the facts about the values of each page, by row group and leaf; None if unknown.
        num_pages: the number of pages whose positions are known.
        page_facts: ranges of rows and their statistics, which pruning derives from `bounds`.
        projections: for each request, a mapping of the file's columns to the table's columns.
        row_bytes: the size of a decoded row, by row group and leaf (`RowSizes`).
    """

    metadata: pq.FileMetaData
    arrow_schema: pa.Schema
    data: bytes | None = None
    tail: FileTail | None = None
    chunks: dict[frozenset[int] | None, ColumnChunks] = field(default_factory=dict)
    pages: dict[tuple[int, int], Pages | None] = field(default_factory=dict)
    bounds: dict[tuple[int, int], list[ColumnChunk] | None] = field(default_factory=dict)
    num_pages: int = 0
    page_facts: dict[object, tuple[list[RowRange], pa.Table]] = field(default_factory=dict)
    projections: dict[object, Any] = field(default_factory=dict)
    row_bytes: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def whole(self) -> FileTail | None:
        """Return the whole file, if it was fetched together with the footer."""
        return None if self.tail is None or self.tail.start else self.tail

    @cached_property
    def described(self) -> Described:
        """Return the parts that are copied to excerpts; `data` must not be None."""
        return Described(self.data or b"")

    @cached_property
    def texts(self) -> Mapping[int, str]:
        """Return top-level columns of strings or bytes whose names are unique, by leaf number."""
        fields = {field.name: field.type for field in self.arrow_schema}
        times = Counter(self.leaf_paths)
        return {
            number: path
            for number, (path, parts) in enumerate(zip(self.leaf_paths, self.leaves, strict=True))
            if len(parts) == times[path] == 1 and fields[path] in {pa.string(), pa.binary()}
        }

    @cached_property
    def has_column_orders(self) -> bool:
        """Whether the footer states the order of bounds; `data` must not be None."""
        return has_column_orders(self.data or b"")

    @cached_property
    def row_group_starts(self) -> list[int]:
        """Return the first row number of each row group, followed by the total number of rows.

        Raises:
            DataFileUnreadableError: a row group has 2**31 rows or more.
        """
        groups = range(self.metadata.num_row_groups)
        counts = [self.metadata.row_group(number).num_rows for number in groups]
        for number, count in enumerate(counts):
            if not 0 <= count < _MOST_ROWS:
                raise DataFileUnreadableError(
                    f"cannot read row group {number}: expected fewer than {_MOST_ROWS} rows, found "
                    f"{count}"
                )
        return [0, *accumulate(counts)]

    def forget_much(self) -> None:
        """Drop cached facts until they fit in their memory limit; the footer is not dropped."""
        if len(self.chunks) > _MOST_CHUNKS:
            self.chunks.clear()
        if len(self.row_bytes) > _MOST_PAGES:
            self.row_bytes.clear()
        if self.num_pages > _MOST_PAGES:
            self.pages.clear()
            self.bounds.clear()
            self.num_pages = 0
        for kept in (self.page_facts, self.projections):
            if len(kept) > _MOST_FACTS:
                kept.clear()

    @cached_property
    def leaf_paths(self) -> tuple[str, ...]:
        """Return Parquet's dotted path of every leaf column (`add.tags.key_value.key`)."""
        schema = self.metadata.schema
        return tuple(schema.column(number).path for number in range(len(schema)))

    def rows_of(self, groups: Sequence[int]) -> int:
        """Return the number of rows of some row groups."""
        return sum(self.metadata.row_group(group).num_rows for group in groups)

    def total_bytes(self, groups: Sequence[int]) -> int:
        """Return the uncompressed size of row groups in bytes."""
        return sum(self.metadata.row_group(group).total_byte_size for group in groups)

    @property
    def leaves(self) -> tuple[tuple[str, ...], ...]:
        """Return the path of every leaf, without levels of lists and maps (`("add", "tags")`)."""
        return self.leaf_numbers.leaves

    @cached_property
    def leaf_numbers(self) -> LeafNumbers:
        """Return the numbers of the leaf columns, by the fields to which they belong."""
        stored = self.arrow_schema.serialize().to_pybytes()
        find = _recent_numbers if len(stored) <= _MOST_SCHEMA_BYTES else _recent_numbers.__wrapped__
        return find(stored, self.leaf_paths)


@lru_cache(maxsize=64)
def _recent_numbers(stored_schema: bytes, leaf_paths: tuple[str, ...]) -> LeafNumbers:
    """Return the leaf numbers of a schema, cached for other files with the same schema."""
    schema = pa.ipc.read_schema(pa.py_buffer(stored_schema))
    return LeafNumbers(schema, leaf_paths)


def repeated_texts(
    footer: Footer,
    groups: Sequence[int],
    leaves: Sequence[int],
    chunks_of: Callable[[Collection[int]], ColumnChunks],
    read_ranges: Callable[[Sequence[ByteRange]], Sequence[bytes]],
) -> list[str]:
    """Return the string columns that are faster to decode as dictionaries.

    If a column has few distinct strings, decoding them as plain strings takes Arrow twice as long.

    Args:
        footer: the footer of the file.
        groups: the row groups to read.
        leaves: the numbers of the columns to read.
        chunks_of: returns the facts about the column chunks of some columns; loads the footer's
            bytes first.
        read_ranges: reads parts of the file.

    Cost: one read of some bytes of each string column chunk whose values are all in a dictionary.
    """
    num_rows = footer.rows_of(groups)
    if num_rows < _LEAST_ROWS:
        return []
    texts = [leaf for leaf in leaves if leaf in footer.texts]
    if not texts or len(texts) * len(groups) > _MOST_DICTIONARIES:
        return []
    chunks = chunks_of(texts)

    def has_few(leaf: int) -> bool:
        own = [chunks[group][leaf] for group in groups]
        details = footer.described.details
        if not all(details(chunk.details_at).has_only_dictionary for chunk in own):
            return False
        places = [(chunk.start or 0, min(_HEADER_BYTES, chunk.stored_bytes or 0)) for chunk in own]
        headers = read_ranges([(start, start + length) for start, length in places])
        return sum(map(num_entries, headers)) <= _MOST_ENTRIES * num_rows

    try:
        return [footer.texts[leaf] for leaf in texts if has_few(leaf)]
    except DamagedPageError:
        return []  # the file is damaged; Arrow then raises the error


class RecentFooters(Recent[Footer]):
    """A cache of the footers of recently read local files."""

    def get(self, *states: FileState) -> Footer | None:
        """Return the footer of a file in this state, or None."""
        footer = super().get(*states)
        if footer is not None:
            footer.forget_much()
        return footer

    def keep(self, fact: Footer, *states: FileState) -> None:
        """Cache a footer if it is small.

        The file's state must have been settled before the footer was read; see `is_settled`.
        """
        if fact.metadata.serialized_size <= _MOST_FOOTER_BYTES:
            super().keep(fact, *states)


RECENT_FOOTERS: Final = RecentFooters(_MOST_FOOTERS)


class FetchedFooters:
    """A thread-safe cache of footers and small files that were fetched and will be read again.

    Local files use `RECENT_FOOTERS` instead. Entries are never dropped; a full cache accepts no
    more.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Footer] = {}
        self._bytes = HeldBytes(MOST_FETCHED_BYTES)
        self._lock = Lock()

    def get(self, path: str) -> Footer | None:
        """Return the footer of a file, or None."""
        return self._kept.get(path)

    def keep(self, path: str, footer: Footer) -> None:
        """Cache a footer and the data that was fetched with it, unless the cache is full."""
        if footer.tail is None:
            return
        with self._lock:
            if path not in self._kept and self._bytes.take(len(footer.tail.data)):
                self._kept[path] = footer


# --- Estimating the bytes of a decoded row


MOST_DECODED_BYTES: Final = 1024 * 1024 * 1024
"""The maximum decoded size of a result that is decoded at once, instead of in parts."""
PART_BYTES: Final = 64 * 1024 * 1024
"""The maximum decoded size of a part, unless it has only one row."""

_FEW_ROWS: Final = 16_384

_FIXED_BYTES: Final = 8
_LONGEST_FIXED_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class RowSizes:
    """Estimates the size of decoded rows of a file.

    Args:
        footer: the footer of the file.
        chunks_of: returns the facts about the column chunks of some columns; loads the footer's
            bytes first.
        read_ranges: reads parts of the file.
        first_row: reads the first row of a row group and leaf, with strings as dictionaries.
    """

    footer: Footer
    chunks_of: Callable[[Sequence[int]], ColumnChunks]
    read_ranges: Callable[[Sequence[ByteRange]], Sequence[bytes]]
    first_row: Callable[[int, int], pa.RecordBatch]

    def of(self, groups: Sequence[int], leaves: Sequence[int]) -> int:
        """Return the approximate maximum size of a row in bytes.

        For lists, and for strings outside of dictionaries, the mean length is used, because the
        file contains all of their bytes. For dictionary entries, the maximum length is used,
        because many rows may have the longest entry.

        Args:
            groups: the row groups to read.
            leaves: the numbers of the columns to read.

        Cost: for strings, one read of some bytes of each column chunk, cached with the footer. A
            dictionary is decoded if its size times the number of rows exceeds `MOST_DECODED_BYTES`.
        """
        footer = self.footer
        num_rows = footer.rows_of(groups)
        schema = footer.metadata.schema
        fixed = sum(_fixed_bytes(schema.column(leaf)) for leaf in leaves)
        unsure = [leaf for leaf in leaves if not is_fixed(schema.column(leaf))]
        if not unsure or not num_rows:
            return fixed
        few = num_rows < _FEW_ROWS and not any(
            schema.column(leaf).max_repetition_level for leaf in unsure
        )
        if few and num_rows * footer.total_bytes(groups) <= MOST_DECODED_BYTES:
            return fixed  # even with the longest entries, the result is small enough
        chunks = self.chunks_of(unsure)
        return fixed + max(
            sum(self._leaf(group, leaf, chunks[group][leaf]) for leaf in unsure) for group in groups
        )

    def _leaf(self, group: int, leaf: int, chunk: ColumnChunk) -> int:
        known = self.footer.row_bytes.get((group, leaf))
        if known is not None:
            return known
        try:
            found = self._measured(group, leaf, chunk)
        except (DamagedPageError, pa.ArrowException, OSError):
            return 0  # the chunk is damaged; Arrow then raises the error
        self.footer.row_bytes[group, leaf] = found
        return found

    def _measured(self, group: int, leaf: int, chunk: ColumnChunk) -> int:
        num_rows = max(1, self.footer.metadata.row_group(group).num_rows)
        details = self.footer.described.details(chunk.details_at)
        values = -(-details.num_values // num_rows)
        found = details.uncompressed_bytes // num_rows + values * _FIXED_BYTES
        if self.footer.metadata.schema.column(leaf).physical_type != "BYTE_ARRAY":
            return found
        start, length = chunk.start or 0, min(_HEADER_BYTES, chunk.stored_bytes or 0)
        [header] = self.read_ranges([(start, start + length)])
        longest = dictionary_bytes(header)
        if longest * details.num_values > MOST_DECODED_BYTES:
            longest = _longest(self.first_row(group, leaf))
        return found + values * longest


def is_fixed(column: Any) -> bool:
    """Whether each row has exactly one value of this leaf, and all values have the same length."""
    return column.physical_type != "BYTE_ARRAY" and not column.max_repetition_level


def _fixed_bytes(column: Any) -> int:
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return max(_LONGEST_FIXED_BYTES, int(column.length))
    return _FIXED_BYTES


def _longest(batch: pa.RecordBatch) -> int:
    """Return the maximum length of an entry in the dictionaries of a batch, at any depth."""
    return max((_longest_below(column) for column in batch.columns), default=0)


def _longest_below(column: Any) -> int:
    kind = column.type
    if pa.types.is_dictionary(kind):
        longest: int | None = compute.max(pc.binary_length(column.dictionary)).as_py()
        return longest or 0
    if pa.types.is_struct(kind):
        return max((_longest_below(column.field(n)) for n in range(kind.num_fields)), default=0)
    if pa.types.is_map(kind):
        return max(_longest_below(column.keys), _longest_below(column.items))
    return _longest_below(column.values) if kind.num_fields else 0
