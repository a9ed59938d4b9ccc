"""What was read of Parquet files once, for further readers of the same file.

Footers of local files are kept for a while: a query of a table that was asked before spends as long
on them as on the rows. A file that changed just now is not kept, because it could change again
before its time does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from deltalog.cached import cached_property
from deltalog.clock import now_ms
from deltalog.storage import thrift
from deltalog.storage.parquet_footer import has_column_orders
from deltalog.storage.parquet_pages import DamagedPageError
from deltalog.storage.parquet_parts import walk_leaves

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.parquet as pq  # noqa: TID251  # for its name alone

    from deltalog.storage.parquet_footer import ColumnChunk, ColumnChunks, FileTail
    from deltalog.storage.parquet_pages import Pages, Rows

_MOST_CHUNKS: Final = 32
_MOST_PAGES: Final = 4096
_MOST_FACTS: Final = 8
_MOST_DETAILS: Final = 1024
_MOST_FOOTERS: Final = 64
_MOST_FOOTER_BYTES: Final = 64 * 1024
_SETTLED_MS: Final = 3_000
# Numbers of fields.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_META_DATA = 3
_TYPE, _ENCODINGS, _PATH, _CODEC, _NUM_VALUES = 1, 2, 3, 4, 5
_UNCOMPRESSED_BYTES, _DATA_PAGES, _DICTIONARY_PAGE = 6, 9, 11


class ChunkDetails(NamedTuple):
    """What a footer says of a column chunk.

    Args:
        start: type, encodings, path and codec, as they are stored.
        num_values: NULL or not.
        uncompressed_bytes: of its pages.
        data_pages: where they begin.
        dictionary: where it is; 0 where there is none.
    """

    start: bytes
    num_values: int
    uncompressed_bytes: int
    data_pages: int
    dictionary: int


class Described:
    """What excerpts take over from a footer, read when it is needed.

    Args:
        footer: as it is stored.
    """

    def __init__(self, footer: bytes) -> None:
        self._footer = footer
        self._details: dict[int | None, ChunkDetails] = {}

    @cached_property
    def frame(self) -> tuple[bytes, bytes]:
        """What stands before the number of rows and behind the row groups.

        Raises:
            DamagedPageError: the footer is damaged, or of another order than any writer's.
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
        """The description of the column chunk that begins there.

        Raises:
            DamagedPageError: it is damaged.
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
            )
        except (LookupError, TypeError, RecursionError, AttributeError) as error:
            raise DamagedPageError(
                f"cannot read a column chunk's description: {error!r}"
            ) from error
        if len(self._details) >= _MOST_DETAILS:
            self._details.clear()
        self._details[at] = found
        return found


def _integer(details: thrift.Struct, number: int) -> int:
    value = details.get(number, thrift.Value(thrift.INT64, None)).value
    if not isinstance(value, int) or value < 0:
        raise DamagedPageError(f"expected a number of 0 or more of a column chunk, found {value!r}")
    return value


@dataclass
class Footer:
    """A footer that was read, which further readers of the file can use: it is read in pieces.

    Args:
        metadata: as pyarrow knows it.
        arrow_schema: what reading all columns gives.
        data: as it is stored; None before it was needed.
        tail: the end of the file that came with it; None for a local file.
        chunks: what it says of column chunks, by the leaves that were asked for.
        pages: where the pages are, by row group and leaf; None where it is not known.
        bounds: what is known of the values of each page, likewise.
        num_pages: whose places are known.
        page_facts: runs of rows and statistics of them, that pruning made of bounds.
    """

    metadata: pq.FileMetaData
    arrow_schema: pa.Schema
    data: bytes | None = None
    tail: FileTail | None = None
    chunks: dict[frozenset[int] | None, ColumnChunks] = field(default_factory=dict)
    pages: dict[tuple[int, int], Pages | None] = field(default_factory=dict)
    bounds: dict[tuple[int, int], list[ColumnChunk] | None] = field(default_factory=dict)
    num_pages: int = 0
    page_facts: dict[object, tuple[list[Rows], pa.Table]] = field(default_factory=dict)

    @property
    def whole(self) -> FileTail | None:
        """The whole file, if it came with the footer."""
        return None if self.tail is None or self.tail.start else self.tail

    @cached_property
    def described(self) -> Described:
        """What excerpts take over from it; `data` must be known."""
        return Described(self.data or b"")

    @cached_property
    def texts(self) -> Mapping[int, str]:
        """The leaves that are texts or bytes in columns of their own, and their names."""
        fields = {field.name: field.type for field in self.arrow_schema}
        return {
            number: path
            for number, (path, parts) in enumerate(zip(self.leaf_paths, self.leaves, strict=True))
            if len(parts) == 1 and (fields[path] in {pa.string(), pa.binary()})
        }

    @cached_property
    def has_column_orders(self) -> bool:
        """Whether it says which order bounds follow; `data` must be known."""
        return has_column_orders(self.data or b"")

    @cached_property
    def row_group_starts(self) -> list[int]:
        """The row number at which each row group starts, and the number of rows at the end."""
        groups = range(self.metadata.num_row_groups)
        counts = (self.metadata.row_group(number).num_rows for number in groups)
        return [0, *accumulate(counts)]

    def forget_much(self) -> None:
        """Bound the memory of what is known besides the footer itself."""
        if len(self.chunks) > _MOST_CHUNKS:
            self.chunks.clear()
        if self.num_pages > _MOST_PAGES:
            self.pages.clear()
            self.bounds.clear()
            self.num_pages = 0
        if len(self.page_facts) > _MOST_FACTS:
            self.page_facts.clear()

    @cached_property
    def leaf_paths(self) -> tuple[str, ...]:
        """Parquet's dotted path of every leaf column (`add.tags.key_value.key`)."""
        schema = self.metadata.schema
        return tuple(schema.column(number).path for number in range(len(schema)))

    @cached_property
    def leaves(self) -> tuple[tuple[str, ...], ...]:
        """The same as parts, containers' own levels left out (`("add", "tags", "key")`)."""
        leaves = tuple(walk_leaves(self.arrow_schema))
        if len(leaves) != len(self.leaf_paths):  # a type whose leaves we do not know
            return tuple(tuple(path.split(".")) for path in self.leaf_paths)
        return leaves


class FileState(NamedTuple):
    """What changes when another file takes the place of a local one."""

    path: str
    size_bytes: int
    changed_ns: int
    number: int


def local_state(native: str) -> FileState:
    """The state of a local file."""
    found = Path(native).stat()
    return FileState(native, found.st_size, found.st_mtime_ns, found.st_ino)


class RecentFooters:
    """Footers of local files that were read lately."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):  # the parent's lock may be held for ever
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Keep none."""
        self._kept: dict[FileState, Footer] = {}
        self._lock = Lock()

    def get(self, state: FileState) -> Footer | None:
        """The footer of a file in this state."""
        footer = self._kept.get(state)
        if footer is not None:
            footer.forget_much()
        return footer

    def keep(self, state: FileState, footer: Footer) -> None:
        """Keep the footer of a file that was in this state before it was read, if it is small."""
        is_small = footer.metadata.serialized_size <= _MOST_FOOTER_BYTES
        if not is_small or now_ms() - state.changed_ns // 1_000_000 < _SETTLED_MS:
            return
        with self._lock:
            if len(self._kept) >= _MOST_FOOTERS:
                del self._kept[next(iter(self._kept))]
            self._kept[state] = footer


RECENT_FOOTERS: Final = RecentFooters()
