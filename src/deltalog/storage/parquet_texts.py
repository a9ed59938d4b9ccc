"""Texts that repeat: Arrow reads them as entries of a dictionary, which are made texts at the end.

Of a column chunk whose values are all in a small dictionary, that takes half as long as to let
Arrow append one text after the other.

Protocol: none; Apache Parquet's dictionary pages
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.storage.parquet_pages import DamagedPageError, num_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from deltalog.storage.parquet_facts import Footer
    from deltalog.storage.parquet_footer import ColumnChunks
    from deltalog.storage.store import ByteRange

_LEAST_ROWS: Final = 16_384
_MOST_ENTRIES: Final = 0.2  # of the rows; from a quarter on, it takes longer
_HEADER_BYTES: Final = 64  # more than the header of a dictionary has


def repeated_texts(
    footer: Footer,
    groups: Sequence[int],
    chunks: ColumnChunks,
    leaves: Collection[int],
    read_ranges: Callable[[Sequence[ByteRange]], Sequence[bytes]],
) -> list[str]:
    """Names of the columns that are quicker read as dictionaries.

    Args:
        footer: of the file, whose bytes are known.
        groups: row groups that are read.
        chunks: what the footer says of these columns.
        leaves: numbers of columns.
        read_ranges: gives parts of the file.

    Cost: one read of some bytes of each column chunk of texts with nothing but a dictionary.
    """
    num_rows = sum(footer.metadata.row_group(group).num_rows for group in groups)
    if num_rows < _LEAST_ROWS:
        return []
    try:
        encoded = [
            leaf
            for leaf in leaves
            if leaf in footer.texts
            and all(
                footer.described.details(chunks[group][leaf].details_at).has_only_dictionary
                for group in groups
            )
        ]
        starts = [chunks[group][leaf].start or 0 for leaf in encoded for group in groups]
        if not starts:
            return []
        headers = read_ranges([(start, start + _HEADER_BYTES) for start in starts])
        entries = list(map(num_entries, headers))
    except DamagedPageError:
        return []  # what Arrow says of the column chunks is the answer
    found = []
    for place, leaf in enumerate(encoded):
        own = entries[place * len(groups) : (place + 1) * len(groups)]
        if sum(own) <= _MOST_ENTRIES * num_rows:
            found.append(footer.texts[leaf])
    return found


def as_texts(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The table with texts in place of entries of dictionaries, in the columns of these names.

    Raises:
        pa.ArrowException: an entry is not in its dictionary, or the texts do not fit into an array.
    """
    for name in names:
        index = table.schema.get_field_index(name)
        column: pa.ChunkedArray[Any] = table.column(index)
        kind: Any = column.type
        if pa.types.is_dictionary(kind):
            field = table.schema.field(index).with_type(kind.value_type)
            table = table.set_column(index, field, column.cast(kind.value_type))
    return table
