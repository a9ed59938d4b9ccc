"""Packs: the files of a key index, which contain key hashes and rows of many data files.

This is a preview of deltalog, and the only module that knows the format. A pack consists of these
parts, with all numbers in little-endian order:

- the magic bytes;
- the entries, sorted by hash: the hash (8 bytes) and the row (4 bytes). Rows are numbered through
  all data files of the pack. The first bits of the hash are the number of the entry's bucket;
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
    from collections.abc import Sequence

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
"""The number of rows after which a new pack begins. Building needs about 40 bytes for each."""
_BUCKET_ENTRIES: Final = 1024
_MAGIC: Final = b"DLKEYS01"
_FORMAT: Final = 1
_LAST_BYTES: Final = 4 + len(_MAGIC)
_TAIL_BYTES: Final = 64 * 1024
_MOST_FOOTER_BYTES: Final = 1 << 20
_ENTRY: Final = np.dtype([("hash", "<u8"), ("row", "<u4")])
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


def encode_pack(key: PackedKey, files: pa.Table, hashes: Hashes) -> tuple[str, bytes]:
    """Return the name and the content of a pack.

    Args:
        key: the key of the hashes.
        files: the data files, with `FILE_FIELDS`.
        hashes: one hash for each row of these files, in order.

    Cost: a sort of the hashes; memory for about 40 bytes per row.
    """
    count = len(hashes)
    order = np.argsort(hashes)
    entries = np.empty(count, _ENTRY)
    entries["hash"] = hashes[order]
    entries["row"] = order
    del order
    bits = max(0, (max(0, count - 1) // _BUCKET_ENTRIES).bit_length())
    edges = np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(max(0, 64 - bits) % 64)
    ends = np.append(np.searchsorted(np.ascontiguousarray(entries["hash"]), edges), count)
    flat: Any = entries.view(np.uint8)
    data: Any = memoryview(flat)
    places = [0, *(int(end) * _ENTRY.itemsize for end in ends)]
    checks = [zlib.crc32(data[start:end]) for start, end in pairwise(places)]
    directory = ends.astype("<u4").tobytes() + np.array(checks, "<u4").tobytes()
    listed = _written(files)
    footer = dumps(
        {
            "format": _FORMAT,
            "table": key.table_id,
            "columns": list(key.columns),
            "families": list(key.families),
            "rows": count,
            "bits": bits,
            "directory": _digest(directory),
            "filesBytes": len(listed),
            "files": _digest(listed),
        }
    )
    parts = [_MAGIC, data, directory, listed, footer, len(footer).to_bytes(4, "little"), _MAGIC]
    return f"{_digest(footer)}{SUFFIX}", b"".join(parts)


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
        ends: for each bucket, the number of entries up to its end.
        checks: for each bucket, the CRC-32 of its entries.
    """

    path: str
    key: PackedKey
    files: pa.Table
    starts: Numbers
    bits: int
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
        size = info.size_bytes
        first = max(0, size - _TAIL_BYTES)
        tail = _ranges(store, info.path, [(first, size)])[0]
        footer_end = size - _LAST_BYTES
        if len(tail) < _LAST_BYTES or tail[-len(_MAGIC) :] != _MAGIC:
            raise DamagedPackError("it does not end with the magic bytes")
        footer_bytes = int.from_bytes(tail[-_LAST_BYTES : -len(_MAGIC)], "little")
        if footer_bytes > min(footer_end, _MOST_FOOTER_BYTES):
            raise DamagedPackError("the footer is longer than the file")

        def cut(start: int, end: int) -> bytes:
            if start < 0 or end > size or start > end:
                raise DamagedPackError("a part of it is outside of the file")
            if start >= first:
                return tail[start - first : end - first]
            return _ranges(store, info.path, [(start, end)])[0]

        footer_start = footer_end - footer_bytes
        stored = cut(footer_start, footer_end)
        if f"{_digest(stored)}{SUFFIX}" != info.name:
            raise DamagedPackError("the footer does not match the name")
        return cls._parsed(info.path, stored, footer_start, cut)

    @classmethod
    def _parsed(cls, path: str, stored: bytes, footer_start: int, cut: Any) -> Self:
        try:
            node = JsonObject(loads(stored, "footer"), "footer")
            if node.required("format", int) != _FORMAT:
                raise DamagedPackError("its format is unknown")
            count, bits = node.required("rows", int), node.required("bits", int)
            listed_bytes = node.required("filesBytes", int)
            digests = node.required("directory", str), node.required("files", str)
            key = PackedKey(
                table_id=node.required("table", str),
                columns=tuple(map(str, node.required("columns", list))),
                families=tuple(map(str, node.required("families", list))),
            )
        except DeltaError as error:
            raise DamagedPackError(f"the footer cannot be parsed: {error}") from error
        if not 0 <= bits <= 32 or not 0 <= count < 1 << 32 or listed_bytes < 0:
            raise DamagedPackError("a number in the footer is not valid")
        listed_start = footer_start - listed_bytes
        directory_start = len(_MAGIC) + count * _ENTRY.itemsize
        if listed_start - directory_start != 8 << bits:
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
            path=path, key=key, files=files, starts=starts, bits=bits, ends=ends, checks=checks
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

        Args:
            store: the store of the pack.
            hashes: ascending distinct hashes.

        Raises:
            DamagedPackError: a bucket is damaged.
            ObjectNotFoundError: the pack was deleted.

        Cost: one read of 6 to 12 KB for each bucket with such hashes, all in one request.
        """
        numbers = np.zeros(len(hashes), np.int64)
        if self.bits:
            numbers = (hashes >> np.uint64(64 - self.bits)).astype(np.int64)
        entries = self._entries(store, np.unique(numbers))
        known = np.ascontiguousarray(entries["hash"])
        left = np.searchsorted(known, hashes, side="left")
        counts = np.searchsorted(known, hashes, side="right") - left
        # The places of all entries with these hashes: counts[i] places from left[i] on, for each i.
        offsets = np.repeat(left - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        rows = np.sort(entries["row"][offsets + np.arange(int(counts.sum()))].astype(np.int64))
        return self._located(rows)

    def entries(self, store: Store) -> tuple[Hashes, Numbers]:
        """Return all hashes and rows, sorted by hash. Cost: reads the whole pack."""
        entries = self._entries(store, np.arange(len(self.ends)))
        return entries["hash"], entries["row"]

    def _located(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        if len(rows) and rows[-1] >= self.num_rows:
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
            return np.empty(0, _ENTRY)
        width = _ENTRY.itemsize
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
        return np.frombuffer(b"".join(parts), _ENTRY)


def _place(start: int, end: int) -> ByteRange:
    return len(_MAGIC) + start * _ENTRY.itemsize, len(_MAGIC) + end * _ENTRY.itemsize


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
