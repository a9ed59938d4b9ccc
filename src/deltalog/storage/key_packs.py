"""Packs: the files of a key index, which contain key hashes and rows of many data files.

This is a preview of deltalog, and the only module that knows the format. A pack consists of these
parts, with all numbers in little-endian order:

- the magic bytes;
- the entries, ascending: numbers of 64 bits, which consist of the first bits of the hash, and of a
  row. Rows are numbered through all data files of the pack, and have as many bits as the largest
  number needs. The first bits of an entry are the number of its bucket;
- the directory: for each bucket, the number of entries up to its end (4 bytes), then for each
  bucket the CRC-32 of its entries (4 bytes);
- the data files, as an Arrow IPC stream with `FILE_FIELDS`;
- the footer, a JSON object, its length (4 bytes) and the magic bytes.

The name of a pack is the digest of its footer, and the footer contains the digests of the directory
and of the files. So a pack is complete and unchanged, or damage is found.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import numpy as np
import pyarrow as pa

from deltalog._util.json import JsonObject, dumps, loads
from deltalog.errors import DeltaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.storage.store import ByteRange, Store

Hashes: TypeAlias = Any
"""A NumPy array of 64-bit hashes; pyarrow's stubs do not know NumPy's types."""
Numbers: TypeAlias = Any
"""A NumPy array of row or file numbers."""

SUFFIX: Final = ".keys"
_FIELDS: Final[list[tuple[str, pa.DataType]]] = [
    ("path", pa.string()),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("num_rows", pa.int64()),
]
FILE_FIELDS: Final = pa.schema(_FIELDS)
"""The data files of a pack, by canonical path, in the order in which their rows are numbered."""
MOST_ROWS: Final = 1 << 24
"""The number of rows after which a new pack begins. Building needs about 24 bytes for each.

With 24 bits for rows, 40 bits of the hash remain: one lookup in 65,536 finds a wrong row in a pack.
"""
_BUCKET_ENTRIES: Final = 512
_MAGIC: Final = b"DLKEYS01"
_FORMAT: Final = 1
_LAST_BYTES: Final = 4 + len(_MAGIC)
_TAIL_BYTES: Final = 64 * 1024
_MOST_FOOTER_BYTES: Final = 1 << 20
_ENTRY_BYTES: Final = 8
_MOST_RANGES: Final = 4096


class DamagedPackError(ValueError):
    """A pack is not as it was written; its files must be read without the index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedKey:
    """The key whose hashes a pack contains.

    Args:
        table_id: the id of the table.
        columns: the physical names of the columns.
        families: for each column, the kind of its canonical values.
    """

    table_id: str
    columns: tuple[str, ...]
    families: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PackBody:
    """The entries of a pack, which do not depend on the files of the rows.

    Args:
        num_rows: the number of entries.
        entries: the sorted entries.
        directory: the ends and the checksums of the buckets.
        bits: see `KeyPack`.
        row_bits: see `KeyPack`.
    """

    num_rows: int
    entries: memoryview
    directory: bytes
    bits: int
    row_bits: int

    @classmethod
    def of(cls, hashes: Hashes, *, least_row_bits: int = 1) -> Self:
        """Return the entries for the hashes of rows, in the order of the rows.

        Args:
            hashes: one hash for each row.
            least_row_bits: the minimum number of last bits of the hashes that are not stored. If
                the hashes are from other packs, they lack these bits.

        Cost: a sort of the hashes; memory for about 32 bytes per row.
        """
        count = len(hashes)
        row_bits = max(least_row_bits, (max(1, count) - 1).bit_length())
        entries = _first_bits(hashes, row_bits) | np.arange(count, dtype=np.uint64)
        entries = _sorted(entries)
        bits = max(0, (max(0, count - 1) // _BUCKET_ENTRIES).bit_length())
        edges = np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(max(0, 64 - bits) % 64)
        ends = np.append(np.searchsorted(entries, edges), count)
        data: Any = memoryview(entries.astype("<u8", copy=False)).cast("B")
        places = [0, *(int(end) * _ENTRY_BYTES for end in ends)]
        checks = [zlib.crc32(data[start:end]) for start, end in pairwise(places)]
        directory = ends.astype("<u4").tobytes() + np.array(checks, "<u4").tobytes()
        return cls(count, data, directory, bits, row_bits)


def encode_pack(key: PackedKey, files: pa.Table, body: PackBody) -> tuple[str, bytes]:
    """Return the name and the content of a pack.

    Args:
        key: the key of the hashes.
        files: the data files, with `FILE_FIELDS`.
        body: the entries of the rows of these files, in order.
    """
    listed = _written(files)
    footer = dumps(
        {
            "format": _FORMAT,
            "table": key.table_id,
            "columns": list(key.columns),
            "families": list(key.families),
            "rows": body.num_rows,
            "bits": body.bits,
            "rowBits": body.row_bits,
            "directory": _digest(body.directory),
            "filesBytes": len(listed),
            "files": _digest(listed),
        }
    )
    length = len(footer).to_bytes(4, "little")
    parts: list[bytes | memoryview] = [_MAGIC, body.entries, body.directory]
    parts += [listed, footer, length, _MAGIC]
    return f"{_digest(footer)}{SUFFIX}", b"".join(parts)


def _sorted(entries: Hashes) -> Hashes:
    """Sort numbers that are evenly distributed.

    NumPy sorts numbers of 16 bits in linear time, and then numbers that are nearly in order. That
    takes half the time of sorting them directly.
    """
    first = (entries >> np.uint64(48)).astype(np.uint16)
    entries = entries[first.argsort(kind="stable")]
    entries.sort(kind="stable")
    return entries


def _first_bits(hashes: Hashes, row_bits: int) -> Hashes:
    """Return hashes whose last `row_bits` bits are 0."""
    return (hashes >> np.uint64(row_bits)) << np.uint64(row_bits)


def _written(files: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, FILE_FIELDS) as writer:
        writer.write_table(files.select(FILE_FIELDS.names).cast(FILE_FIELDS))
    return sink.getvalue().to_pybytes()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyPack:
    """An open pack: everything except its entries.

    Args:
        path: the path of the pack.
        key: the key of the hashes.
        files: the data files, with `FILE_FIELDS`.
        starts: the number of the first row of each file, followed by the number of all rows.
        bits: the number of bits of the hash that are the number of the bucket.
        row_bits: the number of bits of a row in an entry.
        ends: for each bucket, the number of entries up to its end.
        checks: for each bucket, the CRC-32 of its entries.
    """

    path: str
    key: PackedKey
    files: pa.Table
    starts: Numbers
    bits: int
    row_bits: int
    ends: Numbers
    checks: Numbers

    @classmethod
    def open(cls, store: Store, info: FileInfo) -> Self:
        """Read a pack without its entries.

        Raises:
            DamagedPackError: the pack is damaged, or has an unknown format.
            ObjectNotFoundError: the pack was deleted.

        Cost: one request; for a pack of more than about five million rows, two.
        """
        first = max(0, info.size_bytes - _TAIL_BYTES)
        tail = _ranges(store, info.path, [(first, info.size_bytes)])[0]

        def read(start: int, end: int) -> bytes:
            if start >= first:
                return tail[start - first : end - first]
            return _ranges(store, info.path, [(start, end)])[0]

        return cls._opened(info.path, info.size_bytes, read)

    @classmethod
    def of_content(cls, path: str, data: bytes) -> Self:
        """Open a pack that was just written.

        Args:
            path: the path of the pack.
            data: its content.
        """
        return cls._opened(path, len(data), lambda start, end: data[start:end])

    @classmethod
    def _opened(cls, path: str, size: int, read: Callable[[int, int], bytes]) -> Self:
        def cut(start: int, end: int) -> bytes:
            if start < 0 or end > size or start > end:
                raise DamagedPackError("a part of it is outside of the file")
            return read(start, end)

        footer_end = size - _LAST_BYTES
        last = read(max(0, footer_end), size)
        if len(last) < _LAST_BYTES or last[-len(_MAGIC) :] != _MAGIC:
            raise DamagedPackError("it does not end with the magic bytes")
        footer_bytes = int.from_bytes(last[: -len(_MAGIC)], "little")
        if footer_bytes > min(footer_end, _MOST_FOOTER_BYTES):
            raise DamagedPackError("the footer is longer than the file")
        footer_start = footer_end - footer_bytes
        stored = cut(footer_start, footer_end)
        if f"{_digest(stored)}{SUFFIX}" != path.rpartition("/")[2]:
            raise DamagedPackError("the footer does not match the name")
        return cls._parsed(path, stored, footer_start, cut)

    @classmethod
    def _parsed(cls, path: str, stored: bytes, footer_start: int, cut: Any) -> Self:
        try:
            node = JsonObject(loads(stored, "footer"), "footer")
            if node.required("format", int) != _FORMAT:
                raise DamagedPackError("its format is unknown")
            count, bits = node.required("rows", int), node.required("bits", int)
            row_bits = node.required("rowBits", int)
            listed_bytes = node.required("filesBytes", int)
            digests = node.required("directory", str), node.required("files", str)
            key = PackedKey(
                table_id=node.required("table", str),
                columns=tuple(map(str, node.required("columns", list))),
                families=tuple(map(str, node.required("families", list))),
            )
        except DeltaError as error:
            raise DamagedPackError(f"the footer cannot be parsed: {error}") from error
        if not 0 <= bits <= 32 or not 1 <= row_bits <= 32 or listed_bytes < 0:
            raise DamagedPackError("a number in the footer is not valid")
        listed_start = footer_start - listed_bytes
        directory_start = len(_MAGIC) + count * _ENTRY_BYTES
        if not 0 <= count <= 1 << row_bits or listed_start - directory_start != 8 << bits:
            raise DamagedPackError("its parts do not have the stated lengths")
        both = cut(directory_start, footer_start)
        directory, listed = both[: 8 << bits], both[8 << bits :]
        if (_digest(directory), _digest(listed)) != digests:
            raise DamagedPackError("a digest does not match")
        ends, checks = np.split(np.frombuffer(directory, "<u4"), 2)
        files = _listed(listed)
        starts = np.concatenate(([0], np.cumsum(files.column("num_rows").to_numpy())))
        if starts[-1] != count or ends[-1] != count or (np.diff(ends.astype("i8")) < 0).any():
            raise DamagedPackError("the numbers of rows do not agree")
        return cls(
            path=path,
            key=key,
            files=files,
            starts=starts,
            bits=bits,
            row_bits=row_bits,
            ends=ends,
            checks=checks,
        )

    @property
    def num_rows(self) -> int:
        """The number of rows of all files."""
        return int(self.starts[-1])

    @property
    def held_bytes(self) -> int:
        """The memory of the open pack, in bytes."""
        return int(self.ends.nbytes + self.checks.nbytes + self.starts.nbytes + self.files.nbytes)

    def find(self, store: Store, hashes: Hashes) -> tuple[Numbers, Numbers]:
        """Return the files and the rows with some hashes: file numbers, and positions in the file.

        A few of the rows may have other hashes with the same first bits.

        Args:
            store: the store of the pack.
            hashes: ascending hashes.

        Raises:
            DamagedPackError: a bucket is damaged.
            ObjectNotFoundError: the pack was deleted.

        Cost: one read of 2 to 4 KB for each bucket with such hashes, all in one request.
        """
        if len(hashes) == 1:
            return self._located(self._rows_of(store, int(hashes[0])))
        numbers = np.zeros(len(hashes), np.int64)
        if self.bits:
            numbers = (hashes >> np.uint64(64 - self.bits)).astype(np.int64)
        entries = self._entries(store, np.unique(numbers))
        first = np.unique(_first_bits(hashes, self.row_bits))
        left = np.searchsorted(entries, first)
        counts = np.searchsorted(entries, first | self._row_mask, side="right") - left
        # The places of all entries with these hashes: counts[i] places from left[i] on, for each i.
        offsets = np.repeat(left - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        chosen = entries[offsets + np.arange(int(counts.sum()))]
        return self._located(np.sort((chosen & self._row_mask).astype(np.int64)))

    def _rows_of(self, store: Store, one: int) -> Numbers:
        """Return the rows of one hash; `find` needs three times as long for it."""
        bucket = one >> (64 - self.bits)
        start, end = int(self.ends[bucket - 1]) if bucket else 0, int(self.ends[bucket])
        if start == end:
            return np.empty(0, np.int64)
        (part,) = _ranges(store, self.path, [_place(start, end)])
        if zlib.crc32(part) != self.checks[bucket]:
            raise DamagedPackError("the checksum of a bucket does not match")
        entries = np.frombuffer(part, "<u8")
        first = one >> self.row_bits << self.row_bits
        left = entries.searchsorted(np.uint64(first))
        right = entries.searchsorted(np.uint64(first) | self._row_mask, "right")
        return (entries[left:right] & self._row_mask).astype(np.int64)

    @property
    def _row_mask(self) -> Any:
        return np.uint64((1 << self.row_bits) - 1)

    def hashes(self, store: Store) -> Hashes:
        """Return the hash of each row, without the last `row_bits` bits.

        Raises:
            DamagedPackError, ObjectNotFoundError: see `find`.

        Cost: reads the whole pack.
        """
        entries = self._entries(store, np.arange(len(self.ends)))
        rows = (entries & self._row_mask).astype(np.int64)
        if len(rows) and rows.max() >= self.num_rows:
            raise DamagedPackError("an entry has a row that does not exist")
        hashes = np.empty(self.num_rows, np.uint64)
        hashes[rows] = _first_bits(entries, self.row_bits)
        return hashes

    def _located(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        if not len(rows):
            return rows, rows
        if rows[-1] >= self.num_rows:
            raise DamagedPackError("an entry has a row that does not exist")
        files = np.searchsorted(self.starts, rows, side="right") - 1
        return files, rows - self.starts[files]

    def _entries(self, store: Store, buckets: Numbers) -> Any:
        """Return the entries of ascending buckets, after comparing their checksums."""
        ends = self.ends[buckets].astype(np.int64)
        starts = np.where(buckets > 0, self.ends[buckets - 1].astype(np.int64), 0)
        filled = ends > starts
        buckets, starts, ends = buckets[filled], starts[filled], ends[filled]
        if not len(buckets):
            return np.empty(0, np.uint64)
        width = _ENTRY_BYTES
        if len(buckets) > _MOST_RANGES:
            first, last = int(starts[0]), int(ends[-1])
            whole = memoryview(_ranges(store, self.path, [_place(first, last)])[0])
            parts: list[Any] = [
                whole[(start - first) * width : (end - first) * width]
                for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            ]
        else:
            places = [_place(*run) for run in zip(starts.tolist(), ends.tolist(), strict=True)]
            parts = list(_ranges(store, self.path, places))
        for part, check in zip(parts, self.checks[buckets].tolist(), strict=True):
            if zlib.crc32(part) != check:
                raise DamagedPackError("the checksum of a bucket does not match")
        return np.frombuffer(b"".join(parts), "<u8")


def _place(start: int, end: int) -> ByteRange:
    return len(_MAGIC) + start * _ENTRY_BYTES, len(_MAGIC) + end * _ENTRY_BYTES


def _ranges(store: Store, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
    parts = store.read_ranges(path, ranges)
    if [len(part) for part in parts] != [end - start for start, end in ranges]:
        raise DamagedPackError("it is shorter than listed")
    return parts


def _listed(data: bytes) -> pa.Table:
    try:
        with pa.ipc.open_stream(data) as reader:
            files = reader.read_all()
        files.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise DamagedPackError(f"the list of files cannot be read: {error}") from error
    if not files.schema.equals(FILE_FIELDS) or (files.column("num_rows").to_numpy() < 0).any():
        raise DamagedPackError("the list of files is not valid")
    return files.combine_chunks()
