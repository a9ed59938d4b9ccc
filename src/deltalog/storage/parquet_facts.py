"""What was read of Parquet files once, for further readers of the same file.

Footers of local files are kept for a while: a query of a table that was asked before spends as long
on them as on the rows. A file that changed just now is not kept, because it could change again
before its time does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from deltalog.clock import now_ms
from deltalog.storage.parquet_excerpt import Described
from deltalog.storage.parquet_footer import has_column_orders
from deltalog.storage.parquet_parts import walk_leaves

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.parquet as pq  # noqa: TID251  # for its name alone

    from deltalog.storage.parquet_footer import ColumnChunk, ColumnChunks, FileTail
    from deltalog.storage.parquet_pages import Pages

_MOST_CHUNKS: Final = 32
_MOST_PAGES: Final = 4096
_MOST_FOOTERS: Final = 128
_MOST_FOOTER_BYTES: Final = 64 * 1024
_SETTLED_MS: Final = 3_000


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
    """

    metadata: pq.FileMetaData
    arrow_schema: pa.Schema
    data: bytes | None = None
    tail: FileTail | None = None
    chunks: dict[frozenset[int] | None, ColumnChunks] = field(default_factory=dict)
    pages: dict[tuple[int, int], Pages | None] = field(default_factory=dict)
    bounds: dict[tuple[int, int], list[ColumnChunk] | None] = field(default_factory=dict)

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
        if len(self.pages) > _MOST_PAGES:
            self.pages.clear()
            self.bounds.clear()

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
