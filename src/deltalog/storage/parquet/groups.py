"""Stored row groups: finding them in a footer, checking them, and describing them for another file.

A footer is not trusted. Ranges must be within the file, and the stated positions must have pages
with the stated number of values. Damaged indexes and Bloom filters are optional, so they are not
copied.

Protocol: none; Apache Parquet's `parquet.thrift`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from deltalog.errors import DataFileUnreadableError
from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.thrift import Struct, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.storage.store import ByteRange

DAMAGES: Final = (LookupError, TypeError, AttributeError, ValueError, RecursionError)
_FIRST_BYTE: Final = 4  # the first position after the magic bytes
_LONGEST_INDEX_BYTES: Final = 64 * 1024 * 1024
_MOST_ROWS: Final = 1 << 31
_MOST_ORDINALS: Final = 1 << 15
_DOUBLE, _FLOAT, _TEXT = 5, 4, 6
# Fields of FileMetaData.
_VERSION, _SCHEMA, _NUM_ROWS, _GROUPS, _NOTES, _CREATED_BY, _ORDERS, _CIPHER = range(1, 9)
# Fields of RowGroup.
_COLUMNS, _GROUP_ROWS, _GROUP_START, _GROUP_STORED, _ORDINAL = 1, 3, 5, 6, 7
# Fields of ColumnChunk.
_OTHER_FILE, _CHUNK_START, _META, _OFFSETS_AT, _OFFSETS_BYTES = range(1, 6)
_BOUNDS_AT, _BOUNDS_BYTES, _CRYPTO, _ENCRYPTED = range(6, 10)
# Fields of ColumnMetaData.
_TYPE, _ENCODINGS, _PATH, _CODEC, _NUM_VALUES, _PLAIN_BYTES, _STORED_BYTES = range(1, 8)
_DATA_AT, _INDEX_PAGE_AT, _DICTIONARY_AT, _STATISTICS = range(9, 13)
_BLOOM_AT, _BLOOM_BYTES = 14, 15
_NULL_COUNT = 3
_BOUNDS: Final = frozenset({1, 2, 5, 6, 7, 8})  # fields of Statistics about bounds
_ARE_EXACT: Final = (7, 8)


class ByteSource(Protocol):
    """The bytes of a file, or its fetched parts."""

    @property
    def size_bytes(self) -> int:
        """The file's length."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes of a range; raise DataFileUnreadableError if the file is too short."""
        ...

    def copy(self, start: int, end: int, out: Any) -> None:
        """Append these bytes to a file that is open for writing."""
        ...


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A column chunk.

    Args:
        fields: the fields of the `ColumnChunk` in the footer.
        start: the start of the chunk's pages in the file.
        end: the end of the chunk's pages in the file.
        num_values: the number of values, including NULLs and empty lists.
    """

    fields: Struct
    start: int
    end: int
    num_values: int

    @property
    def meta(self) -> Struct:
        """Return the fields of `ColumnMetaData`."""
        return thrift.struct(self.fields, _META)

    @property
    def plain_bytes(self) -> int:
        """Return the uncompressed length of the pages; 0 if the footer lacks it."""
        return max(0, thrift.number(self.meta, _PLAIN_BYTES) or 0)

    @property
    def codec(self) -> int | None:
        """Return the number of the compression codec."""
        return thrift.number(self.meta, _CODEC)

    @property
    def null_count(self) -> int | None:
        """Return the number of NULLs; None if the footer lacks it."""
        if _STATISTICS not in self.meta:
            return None
        count = thrift.number(thrift.struct(self.meta, _STATISTICS), _NULL_COUNT)
        return count if count is not None and 0 <= count <= self.num_values else None

    @property
    def statistics(self) -> Struct:
        """Return the fields of `Statistics`."""
        return thrift.struct(self.meta, _STATISTICS) if _STATISTICS in self.meta else {}

    @property
    def is_floating(self) -> bool:
        """Whether the values are floating-point numbers."""
        return thrift.number(self.meta, _TYPE) in {_DOUBLE, _FLOAT}

    @property
    def is_text(self) -> bool:
        """Whether the values are strings or bytes of variable length."""
        return thrift.number(self.meta, _TYPE) == _TEXT

    @property
    def are_bounds_exact(self) -> bool:
        """Whether the footer states that both bounds are exact, not truncated."""
        found = self.statistics
        return all(number in found and found[number].value is True for number in _ARE_EXACT)


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A row group.

    Args:
        fields: the fields of the `RowGroup` in the footer.
        num_rows: the number of rows.
        chunks: the column chunks.
    """

    fields: Struct
    num_rows: int
    chunks: tuple[StoredChunk, ...]

    @property
    def stored_bytes(self) -> int:
        """Return the stored length of the pages of all columns."""
        return sum(chunk.end - chunk.start for chunk in self.chunks)

    @property
    def codecs(self) -> frozenset[int | None]:
        """Return the numbers of the compression codecs."""
        return frozenset(chunk.codec for chunk in self.chunks)

    @property
    def has_its_values(self) -> bool:
        """Whether each column has a value for each row, and there are fewer than 2**31 rows."""
        has_all = all(chunk.num_values >= self.num_rows for chunk in self.chunks)
        return has_all and self.num_rows < _MOST_ROWS

    def ranges(self, size_bytes: int) -> list[ByteRange]:
        """Return the sorted ranges of pages, indexes and Bloom filters in a file of this length."""
        found = [(chunk.start, chunk.end) for chunk in self.chunks]
        for chunk in self.chunks:
            spots = (extra_range(chunk, place) for place in _EXTRAS)
            found += [spot for spot in spots if spot is not None and spot[1] <= size_bytes]
        return sorted(found)


@dataclass(frozen=True, slots=True)
class StoredFooter:
    """A footer.

    Args:
        fields: the fields of `FileMetaData`.
        groups: the row groups.
        schema: the schema elements without the root.
        created_by: the writer and its version.
        has_orders: whether the bounds of every column use the order of the logical type.
    """

    fields: Struct
    groups: tuple[StoredGroup, ...]
    schema: tuple[SchemaElement, ...]
    created_by: str
    has_orders: bool


def read_stored(footer: bytes, size_bytes: int) -> StoredFooter | None:
    """Parse a footer; return None if it is encrypted, or refers to columns in other files.

    Args:
        footer: the stored bytes.
        size_bytes: the file's length.

    Raises:
        DataFileUnreadableError: the footer is damaged.

    Cost: some tens of microseconds per column chunk.
    """
    try:
        fields, _ = thrift.read_struct(footer)
        if _CIPHER in fields:
            return None
        end = size_bytes - len(footer) - 8
        schema = tuple(element_of(element) for element in thrift.structs(fields, _SCHEMA)[1:])
        groups = []
        for group in thrift.structs(fields, _GROUPS):
            columns = thrift.structs(group, _COLUMNS)
            if any({_OTHER_FILE, _CRYPTO, _ENCRYPTED} & column.keys() for column in columns):
                return None
            chunks = tuple(_chunk(column, end) for column in columns)
            groups.append(StoredGroup(group, thrift.natural(group, _GROUP_ROWS), chunks))
        num_leaves = len(list(flat_leaves(schema)))
        if any(len(group.chunks) != num_leaves for group in groups):
            raise ValueError("the row groups do not match the schema's columns")
        orders = thrift.structs(fields, _ORDERS) if _ORDERS in fields else []
        return StoredFooter(
            fields=fields,
            groups=tuple(groups),
            schema=schema,
            created_by=thrift.text(fields, _CREATED_BY).decode() if _CREATED_BY in fields else "",
            has_orders=len(orders) == num_leaves and all(1 in order for order in orders),
        )
    except DAMAGES as error:
        raise DataFileUnreadableError(f"cannot read a Parquet footer: {error!r}") from error


def make_footer(template: StoredFooter, groups: Sequence[Struct]) -> bytes:
    """Encode a footer with the given row groups, and with all other fields of `template`.

    Args:
        template: the footer of a file with the same schema.
        groups: the results of `moved_group`, in the order of the file.
    """
    numbered = []
    for number, group in enumerate(groups):
        fields = {key: value for key, value in group.items() if key != _ORDINAL}
        if len(groups) < _MOST_ORDINALS:
            fields[_ORDINAL] = Value(thrift.INT16, number)
        numbered.append(fields)
    rows = sum(group[_GROUP_ROWS].value for group in groups)
    fields = {
        **template.fields,
        _NUM_ROWS: Value(thrift.INT64, rows),
        _GROUPS: Value(thrift.LIST, thrift.Elements(thrift.STRUCT, numbered)),
    }
    return thrift.write_struct(fields)


def moved_group(
    group: StoredGroup, starts: Sequence[int], *, has_orders: bool, may_be_cut: bool = False
) -> tuple[Struct, tuple[Struct, ...]]:
    """Return the fields of a row group at its new position, and the fields of its column chunks.

    The fields have no positions of indexes and Bloom filters; `put_spot` adds these positions.

    Args:
        group: the stored row group.
        starts: the new position of the pages of each column chunk.
        has_orders: whether the bounds follow the order of the logical type. If not, bounds are
            omitted, because the new footer states this order.
        may_be_cut: whether the writer of the row group truncates long bounds in indexes. If so,
            bounds of strings are not marked as exact, because the new footer states another writer.
    """
    columns = tuple(
        _moved_chunk(
            chunk,
            start - chunk.start,
            keeps_bounds=has_orders and not chunk.is_floating,
            forgets_exactness=may_be_cut and chunk.is_text,
        )
        for chunk, start in zip(group.chunks, starts, strict=True)
    )
    fields = {
        **group.fields,
        _COLUMNS: Value(thrift.LIST, thrift.Elements(thrift.STRUCT, list(columns))),
        _GROUP_STORED: Value(thrift.INT64, group.stored_bytes),
    }
    if starts:
        fields[_GROUP_START] = Value(thrift.INT64, min(starts))
    return fields, columns


def put_spot(column: Struct, place: str, start: int, num_bytes: int) -> None:
    """Set the position of `bloom`, `bounds` or `offsets` in the fields of a column chunk."""
    at, length, is_inner = _EXTRAS[place]
    fields: Struct = column[_META].value if is_inner else column
    fields[at] = Value(thrift.INT64, start)
    fields[length] = Value(thrift.INT32, num_bytes)


def extra_range(chunk: StoredChunk, place: str) -> ByteRange | None:
    """Return the range of `bloom`, `bounds` or `offsets` of a column chunk; None if missing."""
    at, length, is_inner = _EXTRAS[place]
    fields = chunk.meta if is_inner else chunk.fields
    try:
        start, num_bytes = thrift.number(fields, at), thrift.number(fields, length)
    except TypeError:
        return None
    if start is None or num_bytes is None:
        return None
    if start < _FIRST_BYTE or not 0 < num_bytes <= _LONGEST_INDEX_BYTES:
        return None
    return start, start + num_bytes


# For each optional part: the fields of its position and length, and whether these fields are in
# ColumnMetaData instead of ColumnChunk.
_EXTRAS: Final = {
    "bloom": (_BLOOM_AT, _BLOOM_BYTES, True),
    "bounds": (_BOUNDS_AT, _BOUNDS_BYTES, False),
    "offsets": (_OFFSETS_AT, _OFFSETS_BYTES, False),
}


def _moved_chunk(
    chunk: StoredChunk, shift: int, *, keeps_bounds: bool, forgets_exactness: bool
) -> Struct:
    places = {at for at, _, _ in _EXTRAS.values()} | {length for _, length, _ in _EXTRAS.values()}
    meta = {key: value for key, value in chunk.meta.items() if key not in {_BLOOM_AT, _BLOOM_BYTES}}
    for place in (_DATA_AT, _INDEX_PAGE_AT, _DICTIONARY_AT):
        at = thrift.number(meta, place)
        if at is None:
            continue
        if chunk.start <= at < chunk.end:
            meta[place] = Value(thrift.INT64, at + shift)
        else:  # old writers store 0 if there is no such page
            del meta[place]
    if _STATISTICS in meta:
        lost = set() if keeps_bounds else {*_BOUNDS}
        if forgets_exactness:  # flags that say "not exact" remain
            found = chunk.statistics
            lost |= {key for key in _ARE_EXACT if key in found and found[key].value is True}
        kept = {key: value for key, value in chunk.statistics.items() if key not in lost}
        meta[_STATISTICS] = Value(thrift.STRUCT, kept)
    column = {
        key: value
        for key, value in chunk.fields.items()
        if key not in places - {_BLOOM_AT, _BLOOM_BYTES}
    }
    column[_CHUNK_START] = Value(thrift.INT64, 0)  # a deprecated field, which must be 0
    column[_META] = Value(thrift.STRUCT, meta)
    return column


def _chunk(fields: Struct, end: int) -> StoredChunk:
    meta = thrift.struct(fields, _META)
    start, dictionary = (
        thrift.natural(meta, _DATA_AT),
        thrift.number(meta, _DICTIONARY_AT),
    )
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    stored, num_values = (
        thrift.natural(meta, _STORED_BYTES),
        thrift.natural(meta, _NUM_VALUES),
    )
    if start < _FIRST_BYTE or start + stored > end:
        raise ValueError(f"a column chunk of {stored} bytes at {start}, where {end} are")
    return StoredChunk(fields, start, start + stored, num_values)


# --- Elements of a Parquet schema, with converted types or logical types


_REPEATED: Final = 2
_FIXED: Final = 7
Annotation = tuple[Any, ...] | None
# Maps each converted type, which older writers use, to its logical type.
_CONVERTED: Final[dict[int, Annotation]] = {
    0: (1, ()),
    1: (2, ()),
    2: None,
    3: (3, ()),
    4: (4, ()),
    5: (5,),
    6: (6, ()),
    9: (8, ((1, True), (2, ((1, ()),)))),
    10: (8, ((1, True), (2, ((2, ()),)))),
    17: None,
    18: None,
    19: (12, ()),
    20: (13, ()),
}
_PLAIN_INTEGERS: Final = {1: b"\x20", 2: b"\x40"}  # physical type → encoded width in bits


class SchemaElement(NamedTuple):
    """The properties of a schema element that determine the meaning of its stored values.

    Attributes:
        name: the name of the column.
        physical: the number of the physical type; None for a group.
        length: the length of values of fixed length.
        repetition: whether the column is required, optional or repeated.
        num_children: the number of children of a group.
        field_id: the field id, or None.
        annotation: the logical type, or the logical type of the converted type.
    """

    name: bytes
    physical: int | None
    length: int | None
    repetition: int | None
    num_children: int
    field_id: int | None
    annotation: Annotation


def element_of(fields: Struct) -> SchemaElement:
    """Return a schema element of a footer."""
    physical = thrift.number(fields, 1)
    field_id = thrift.number(fields, 9)
    return SchemaElement(
        name=thrift.text(fields, 4),
        physical=physical,
        length=thrift.number(fields, 2) if physical == _FIXED else None,
        repetition=thrift.number(fields, 3),
        num_children=thrift.number(fields, 5) or 0,
        field_id=None if field_id is None or field_id < 0 else field_id,
        annotation=_annotation(fields, physical),
    )


def _annotation(fields: Struct, physical: int | None) -> Annotation:
    logical = fields.get(10)
    converted = thrift.number(fields, 6)
    if logical is not None:
        ((kind, value),) = _plain(logical.value)
        if kind == 5:
            return (
                5,
                *(thrift.number(thrift.struct(logical.value, 5), n) or 0 for n in (1, 2)),
            )
        if kind == 10 and value == ((1, _PLAIN_INTEGERS.get(physical or 0)), (2, True)):
            return None
        return (kind, value)
    if converted is None:
        return None
    if converted == 5:
        return (5, thrift.number(fields, 7) or 0, thrift.number(fields, 8) or 0)
    return _CONVERTED.get(converted, ("converted", converted))


def _plain(value: Any) -> Any:
    """Return a Thrift value without the widths of its integers, so that it can be compared."""
    if isinstance(value, dict):
        return tuple((number, _plain(value[number].value)) for number in sorted(value))
    if isinstance(value, thrift.Elements):
        return tuple(map(_plain, value.values))
    return value


def flat_leaves(schema: Sequence[SchemaElement]) -> Iterator[bool]:
    """Yield, for each leaf column, whether it has exactly one value per row."""

    def below(position: int, *, is_flat: bool) -> tuple[list[bool], int]:
        element = schema[position]
        is_flat = is_flat and element.repetition != _REPEATED
        position += 1
        if not element.num_children:
            return [is_flat], position
        found: list[bool] = []
        for _ in range(element.num_children):
            inner, position = below(position, is_flat=is_flat)
            found += inner
        return found, position

    position = 0
    while position < len(schema):
        found, position = below(position, is_flat=True)
        yield from found
