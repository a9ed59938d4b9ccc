"""The key index of a table: finding the rows that may have some keys, without reading data files.

This module computes key hashes, finds the keys that a predicate allows, and looks them up in the
table's packs (`storage.key_packs`). `key_building` writes packs. The index is a preview.

A pack only narrows a read: the log decides which files are live, and the reader applies deletion
vectors and the complete predicate to the rows that are found. A file without a usable entry is read
as without an index.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.json import dumps
from deltalog._util.kernels import compute, pc
from deltalog._util.paths import LOG_DIRECTORY, canonical_paths
from deltalog.data.scan.task import IndexedRows
from deltalog.errors import DeltaError, InvalidInputError, ObjectNotFoundError
from deltalog.expressions import conjuncts
from deltalog.expressions.comparing import keys as collation_keys
from deltalog.expressions.literals import array_of, to_scalar
from deltalog.expressions.nodes import Collate, Column, Comparison, In, IsNull, Literal, Or
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.schema import find_field
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.collations import own_collation
from deltalog.schema.primitives import Family
from deltalog.schema.types import BY_BYTES, RULES, STRING, PrimitiveType
from deltalog.storage.key_packs import (
    FILE_FIELDS,
    SUFFIX,
    DamagedPackError,
    Hashes,
    KeyPack,
    PackedKey,
)
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import Field
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
KEYS_DIRECTORY: Final = f"{LOG_DIRECTORY}/_keys"
_MOST_KEYS: Final = 100_000
"""If a predicate allows more keys, the index is not used."""
_MOST_ROWS: Final = 1_000_000
"""If the index finds more rows, it is not used, because reading whole files is faster."""


# --- The key of a table


@dataclass(frozen=True, slots=True)
class TableKey:
    """The key columns of a table.

    Args:
        fields: the columns, with their logical names.
        packed: what packs state about them.
    """

    fields: tuple[Field, ...]
    packed: PackedKey

    @property
    def directory(self) -> str:
        """The directory of the packs of these columns, relative to the table's root."""
        named = hashlib.blake2b(dumps(list(self.packed.columns)), digest_size=8).hexdigest()
        return f"{KEYS_DIRECTORY}/{named}"

    @property
    def names(self) -> tuple[str, ...]:
        """The logical names of the columns."""
        return tuple(one.name for one in self.fields)


def key_of(configuration: TableConfiguration) -> TableKey | None:
    """Return the key of a table; None if it has none, or a key column was dropped.

    Raises:
        InvalidMetadataError: the property of the key cannot be parsed.
    """
    paths = configuration.properties.key_index_columns
    if paths is None:
        return None
    columns = tuple(path[0] for path in paths if len(path) == 1)
    schema, mode = configuration.data_schema, configuration.column_mapping_mode
    if mode is Mode.NONE:
        fields = tuple(one for name in columns for one in schema.fields_named(name)[:1])
    else:
        data = {physical_name(one, mode): one for one in schema}
        fields = tuple(data[name] for name in columns if name in data)
    families = tuple(filter(None, map(family_of, fields)))
    if len(families) < len(paths):
        return None
    return TableKey(
        fields, PackedKey(table_id=configuration.metadata.id, columns=columns, families=families)
    )


def check_key(configuration: TableConfiguration, names: Sequence[str]) -> tuple[str, ...]:
    """Return the physical names of columns that shall be a key.

    Raises:
        InvalidInputError: a column does not exist, is a partition column, occurs twice, or has a
            type or a collation that has no key hashes.
    """
    mode = configuration.column_mapping_mode
    found: list[str] = []
    for name in names:
        column = find_field(configuration.schema, (name,))
        if column.name in configuration.partition_columns:
            raise InvalidInputError(
                f"cannot use {name!r} as a key: it is a partition column, whose values prune files"
            )
        if family_of(column) is None:
            raise InvalidInputError(
                f"cannot use {name!r} as a key: expected a column of numbers, booleans, dates, "
                f"timestamps, strings or binary values, found {column.type}"
            )
        found.append(physical_name(column, mode))
    if not found or len(set(found)) < len(found):
        raise InvalidInputError(f"expected different columns of a key, found {list(names)!r}")
    return tuple(found)


_NUMBERS: Final = frozenset({Family.INTEGRAL, Family.FLOATING, Family.DECIMAL})


def family_of(column: Field) -> str | None:
    """Return the kind of the canonical values of a column; None if it cannot be a key column."""
    if not isinstance(column.type, PrimitiveType) or column.type.primitive.is_opaque:
        return None
    if column.type.primitive.family in _NUMBERS:
        return "numbers"
    if column.type == STRING:
        collation = own_collation(column)
        return f"texts {collation}" if collation in {BY_BYTES, *RULES} else None
    kind: Any = to_arrow_type(column.type)
    if pt.is_timestamp(kind) and kind.unit == "us":
        return "local times" if kind.tz is None else "instants"
    if pt.is_date(kind):
        return "local times"  # a column of dates can be widened to timestamps without a zone
    if pt.is_boolean(kind):
        return "booleans"
    return "bytes" if pt.is_binary(kind) else None


# --- Hashes of keys; the ADR 47 describes them


_SEED: Final = np.uint64(0x243F6A8885A308D3)
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xFF51AFD7ED558CCD)
_SECOND: Final = np.uint64(0xC4CEB9FE1A85EC53)
_NAN: Final = np.uint64(0x7FF8000000000000)
_DAY_MICROS: Final = 86_400_000_000
_LONG_BYTES: Final = 128
_HALF: Final = np.uint64(33)


def hashes_of(columns: Sequence[pa.Array[Any]], fields: Sequence[Field]) -> Hashes:
    """Return the hash of each row of the key columns.

    Args:
        columns: the logical values of the key columns.
        fields: the columns.

    Cost: some vectorised passes for each column; for strings, one for every eight bytes. Python
        handles only strings and binary values of more than 128 bytes.
    """
    state = np.full(len(columns[0]), _SEED, np.uint64)
    for array, column in zip(columns, fields, strict=True):
        _add(state, array, column)
    return state


def _add(state: Hashes, array: pa.Array[Any], column: Field) -> None:
    kind = array.type
    if pt.is_decimal(kind):
        _add_decimals(state, array)
        return
    if pt.is_string(kind) or pt.is_binary(kind):
        if pt.is_string(kind):
            array = collation_keys(array, own_collation(column))
        _add_bytes(state, array)
        return
    words = _words(array)
    if array.null_count:
        words[_mask(array.is_null())] = _NULL
    _mix(state, words)


def _mix(state: Hashes, words: Hashes) -> None:
    """Change the state by one word for each row: the finalizer of MurmurHash3, in place."""
    state ^= words
    state ^= state >> _HALF
    state *= _FIRST
    state ^= state >> _HALF
    state *= _SECOND
    state ^= state >> _HALF


def _words(array: pa.Array[Any]) -> Hashes:
    """Return the word of each value; the words of NULLs have no meaning."""
    kind = array.type
    if pt.is_floating(kind):
        return _float_words(compute.fill_null(array, 0.0))
    if pt.is_date(kind):
        days = compute.fill_null(array.cast(pa.int32()), 0).cast(pa.int64())
        return (days.to_numpy() * np.int64(_DAY_MICROS)).view(np.uint64)
    counts = compute.fill_null(array.cast(pa.int64()), 0)
    return np.array(counts.to_numpy()).view(np.uint64)


def _float_words(array: pa.Array[Any]) -> Hashes:
    values = array.cast(pa.float64()).to_numpy() + 0.0
    with np.errstate(invalid="ignore"):
        whole = values.astype(np.int64)
    is_whole = (whole == values) & (np.abs(values) < 2.0**63)
    bits = np.where(np.isnan(values), _NAN, values.view(np.uint64))
    return np.where(is_whole, whole.view(np.uint64), bits)


def _add_decimals(state: Hashes, array: pa.Array[Any]) -> None:
    """Add decimals: whole numbers as integers, others by their digits without trailing zeros."""
    kind: Any = array.type
    scale = kind.scale
    array = array.cast(pa.decimal128(38, scale))
    words = np.full(len(array), _NULL)
    left = np.array(_mask(array.is_valid()))
    for digits in range(scale + 1):
        if not left.any():
            break
        cut = pc.round(array, digits, round_mode="towards_zero")
        is_exact = left & _mask(compute.equal(cut, array))
        places = np.nonzero(is_exact)[0]
        left &= ~is_exact
        if not len(places):
            continue
        some = array.take(pa.array(places, pa.int64()))
        low, high = _halves(some.cast(pa.decimal128(38, digits)))
        if digits == 0:
            fits = high == (low.view(np.int64) >> np.int64(63)).view(np.uint64)
            words[places[fits]] = low[fits]
            places, low, high = places[~fits], low[~fits], high[~fits]
        rest = state[places]
        _mix(rest, low)
        _mix(rest, high)
        state[places] = rest
        words[places] = np.uint64(digits)
    _mix(state, words)


def _halves(array: Any) -> tuple[Hashes, Hashes]:
    """Return the low and high 64 bits of 128-bit decimals."""
    both = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset :][: 2 * len(array)]
    return both[::2].copy(), both[1::2].copy()


def _add_bytes(state: Hashes, array: pa.Array[Any]) -> None:
    """Add strings or binary values: their length, and their bytes in words of eight."""
    is_null = _mask(array.is_null())
    array = compute.fill_null(array.cast(pa.large_binary()), b"")
    buffers: list[Any] = array.buffers()
    _, bounds, content = buffers
    offsets = np.frombuffer(bounds, np.int64)[array.offset :][: len(array) + 1]
    lengths = np.diff(offsets)
    _mix(state, np.where(is_null, _NULL, lengths.astype(np.uint64)))
    is_long = lengths > _LONG_BYTES
    first = int(offsets[0]) if len(offsets) else 0
    data = b"" if content is None or not len(array) else content[first : int(offsets[-1])]
    padded = np.frombuffer(bytes(data) + bytes(8), np.uint8)
    view = np.ndarray((len(padded) - 7,), "<u8", padded.data, strides=(1,))
    starts = offsets[:-1] - first
    rows = np.nonzero(~is_long & (lengths > 0))[0]
    done = 0
    while len(rows):
        words = view[starts[rows] + done]
        rest = lengths[rows] - done
        unused = (8 * np.maximum(8 - rest, 0)).astype(np.uint64)
        words &= np.uint64(0xFFFFFFFFFFFFFFFF) >> unused
        some = state[rows]
        _mix(some, words)
        state[rows] = some
        done += 8
        rows = rows[rest > 8]
    for row in np.nonzero(is_long)[0].tolist():
        value = padded[starts[row] : starts[row] + lengths[row]].tobytes()
        digest = np.frombuffer(hashlib.blake2b(value, digest_size=16).digest(), "<u8")
        for word in digest:
            _mix(state[row : row + 1], word)


def _mask(array: pa.BooleanArray) -> Any:
    """Return a mask as a NumPy array; NULL is false."""
    return compute.fill_null(array, pa.scalar(value=False)).to_numpy(zero_copy_only=False)


# --- The keys that a predicate allows


def hashes_in(predicate: Expression, key: TableKey) -> Hashes | None:
    """Return the ascending hashes of all keys for which a predicate can be true.

    Returns:
        The hashes; None if the predicate does not restrict every key column to some values, or
        allows too many keys.
    """
    parts = conjuncts(predicate)
    values: list[list[Any]] = []
    for column in key.fields:
        found = [some for part in parts if (some := _values(part, column)) is not None]
        if not found:
            return None
        values.append(min(found, key=len))
    count = 1
    for some in values:
        count *= len(some)
    if count > _MOST_KEYS:
        return None
    # All combinations of the values: each column repeats its values for those of later columns.
    columns: list[Any] = []
    before = 1
    for some, column in zip(values, key.fields, strict=True):
        array = _array(some, column)
        after = count // max(1, before * len(some))
        places = np.tile(np.repeat(np.arange(len(some)), after), before)
        columns.append(array.take(pa.array(places, pa.int64())))
        before *= max(1, len(some))
    return np.unique(hashes_of(columns, key.fields))


def _array(values: Sequence[Literal | None], column: Field) -> pa.Array[Any]:
    kind: Any = to_arrow_type(column.type)
    known = [to_scalar(one.value, column.type) for one in values if one is not None]
    nulls = pa.nulls(len(values) - len(known), kind)
    return pa.concat_arrays([array_of(known, kind), nulls])


def _values(part: Expression, column: Field) -> list[Literal | None] | None:
    """Return the values that a condition allows for a column, None for NULL; None if any value."""
    if isinstance(part, Or):
        each = [_values(one, column) for one in part.operands]
        if any(one is None for one in each):
            return None
        return [value for one in each if one is not None for value in one]
    if isinstance(part, IsNull):
        inner = part.operand.operand if isinstance(part.operand, Collate) else part.operand
        return [None] if _is_column(inner, column) else None
    if isinstance(part, In):
        options = part.options
        if not _is(part.operand, column) or not all(_fits(one, column) for one in options):
            return None
        return [one for one in options if isinstance(one, Literal) and one.value is not None]
    if isinstance(part, Comparison) and part.operator in {"=", "<=>"}:
        for one, other in ((part.left, part.right), (part.right, part.left)):
            if _is(one, column) and isinstance(other, Literal) and _fits(other, column):
                if other.value is not None:
                    return [other]
                return [None] if part.operator == "<=>" else []
    return None


def _is(operand: Expression, column: Field) -> bool:
    """Whether an operand is the column, compared by the column's own collation."""
    collation = own_collation(column)
    if isinstance(operand, Collate):
        return operand.collation == collation and _is_column(operand.operand, column)
    return collation == BY_BYTES and _is_column(operand, column)


def _is_column(operand: Expression, column: Field) -> bool:
    return isinstance(operand, Column) and operand.path == (column.name,)


def _fits(option: Expression, column: Field) -> bool:
    return isinstance(option, Literal) and option.type == column.type and not option.nanos


# --- Looking keys up


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files that may have rows with the keys of a predicate.

    Args:
        files: the files to read.
        rows: for each of them, the rows that may have such a key; None if the index does not know
            the file.
        numbers: for each of them, its index among the given files.
        names: the logical names of the key columns.
        num_without: the number of given files without an entry in the index.
        num_given: the number of given files.
    """

    files: pa.Table
    rows: list[IndexedRows | None]
    numbers: list[int]
    names: tuple[str, ...]
    num_without: int
    num_given: int

    def explain(self) -> list[str]:
        """Return lines that explain the result."""
        count = sum(len(one.positions) for one in self.rows if one is not None)
        found = sum(one is not None for one in self.rows)
        names, rest = ", ".join(self.names), self.num_given - len(self.rows)
        lines = [f"key index of {names}: {count} rows in {found} files, {rest} files are not read"]
        if self.num_without:
            lines.append(f"files without an entry in the key index: {self.num_without}")
        return lines


def look_up(snapshot: Snapshot, predicate: Expression, files: pa.Table) -> FoundFiles | None:
    """Look the keys that a predicate allows up in the packs of a table.

    Args:
        snapshot: the version of the files.
        predicate: a resolved predicate.
        files: live files, with at least `path`, `size` and `modificationTime`.

    Returns:
        The files to read; None if the index cannot narrow the read.

    Cost: one bucket of each pack per key; see `KeyPack.find`. The first time, also a listing of the
        packs, and their directories.
    """
    key = key_of(snapshot.configuration)
    if key is None or not files.num_rows:
        return None
    name = f"hashes of {key.directory} {key.packed.families}"
    hashes = predicate.fact(name, lambda: hashes_in(predicate, key))
    if hashes is None:
        return None
    index = TableIndex(snapshot, key)
    packs = index.packs(files)
    places = placed(files, packs, snapshot.store.root)
    found: dict[int, IndexedRows] = {}
    used = [number for number in np.unique(places[0]).tolist() if number >= 0]
    answers = index.each(lambda number: _rows_in(index, packs[number], hashes), used)
    if sum(len(answer[1]) for answer in answers if answer is not None) > _MOST_ROWS:
        return None
    is_read = places[0] < 0
    num_without = int(is_read.sum())
    for number, answer in zip(used, answers, strict=True):
        if answer is not None and not len(answer[0]):
            continue
        own = np.nonzero(places[0] == number)[0]
        if answer is None:  # the pack is damaged or missing
            is_read[own] = True
            num_without += len(own)
            continue
        pack_files, positions = answer
        for place in own[np.isin(places[1][own], pack_files)].tolist():
            in_pack = int(places[1][place])
            rows = positions[slice(*np.searchsorted(pack_files, [in_pack, in_pack + 1]))]
            num_rows = packs[number].files.column("num_rows")[in_pack].as_py()
            found[place] = IndexedRows(pa.array(np.unique(rows)), num_rows)
            is_read[place] = True
    numbers: Any = np.nonzero(is_read)[0]
    return FoundFiles(
        files=files.take(pa.array(numbers, pa.int64())),
        rows=[found.get(place) for place in numbers.tolist()],
        numbers=numbers.tolist(),
        names=key.names,
        num_without=num_without,
        num_given=files.num_rows,
    )


def _rows_in(index: TableIndex, pack: KeyPack, hashes: Hashes) -> tuple[Any, Any] | None:
    try:
        return pack.find(index.store, hashes)
    except (DamagedPackError, DeltaError) as error:
        index.drop(pack.path, error)
        return None


def placed(files: pa.Table, packs: Sequence[KeyPack], root: str) -> tuple[Any, Any]:
    """Return for each file the number of its pack, and its number in the pack; -1 without a pack.

    A file is identified by its canonical path, its size and its modification time.
    """
    known = _listed(tuple(packs))
    if not known.num_rows:
        return np.full(files.num_rows, -1), np.full(files.num_rows, -1)
    named: Any = files.column("path")
    paths = canonical_paths(named, root)
    found: Any = compute.index_in(paths, value_set=known.column("path"))
    places = compute.fill_null(found, -1).to_numpy()
    is_known = places >= 0
    for name in ("size", "modificationTime"):
        is_known &= known.column(name).to_numpy()[places] == files.column(name).to_numpy()
    return (
        np.where(is_known, known.column("pack").to_numpy()[places], -1),
        np.where(is_known, known.column("number").to_numpy()[places], -1),
    )


@lru_cache(maxsize=8)
def _listed(packs: tuple[KeyPack, ...]) -> pa.Table:
    """Return the files of all packs, with the number of the pack and the number in the pack."""
    none = pa.schema([*FILE_FIELDS, ("pack", pa.int64()), ("number", pa.int64())]).empty_table()
    tables = [none]
    for number, pack in enumerate(packs):
        count = pack.files.num_rows
        files = pack.files.append_column("pack", pa.array(np.full(count, number)))
        files = files.append_column("number", pa.array(np.arange(count)))
        tables.append(files.cast(none.schema))
    return pa.concat_tables(tables).combine_chunks()


# --- The packs of a table


_MOST_HELD_BYTES: Final = 64 << 20


@dataclass(slots=True)
class _Held:
    """Open packs, by name: the name is the digest of the content. The oldest are dropped."""

    packs: OrderedDict[str, KeyPack] = field(default_factory=OrderedDict)
    listings: OrderedDict[tuple[str, str], tuple[int, tuple[FileInfo, ...]]] = field(
        default_factory=OrderedDict
    )
    lock: Lock = field(default_factory=Lock)
    num_bytes: int = 0

    def get(self, name: str) -> KeyPack | None:
        with self.lock:
            if (found := self.packs.get(name)) is not None:
                self.packs.move_to_end(name)
            return found

    def keep(self, name: str, pack: KeyPack) -> None:
        with self.lock:
            if name in self.packs:
                return
            self.packs[name] = pack
            self.num_bytes += pack.held_bytes
            while self.num_bytes > _MOST_HELD_BYTES and len(self.packs) > 1:
                self.num_bytes -= self.packs.popitem(last=False)[1].held_bytes

    def listed(self, place: tuple[str, str]) -> tuple[int, tuple[FileInfo, ...]] | None:
        with self.lock:
            return self.listings.get(place)

    def keep_listing(
        self, place: tuple[str, str], version: int, infos: tuple[FileInfo, ...]
    ) -> None:
        with self.lock:
            self.listings[place] = (version, infos)
            self.listings.move_to_end(place)
            while len(self.listings) > 256:
                self.listings.popitem(last=False)

    def forget(self, place: tuple[str, str], path: str | None = None) -> None:
        with self.lock:
            known = self.listings.pop(place, None)
            if known is not None and path is not None:
                left = tuple(info for info in known[1] if info.path != path)
                self.listings[place] = (known[0], left)


_HELD: Final = _Held()


class TableIndex:
    """The packs of a table's key.

    Args:
        snapshot: a version of the table.
        key: the table's key.
    """

    def __init__(self, snapshot: Snapshot, key: TableKey) -> None:
        self.store: Store = snapshot.store
        self._root = snapshot.store.root
        self._version = snapshot.version
        self._key = key
        # Stores in memory may have the same root. A pack of another table is not used.
        self._place = (f"{self._root} {key.packed.table_id}", key.directory)

    def packs(self, files: pa.Table | None = None) -> list[KeyPack]:
        """Return the usable packs.

        Args:
            files: if known packs contain all of these files, the packs are not listed again; None
                always lists them.

        Raises:
            StorageError: the packs cannot be listed; only without `files`.

        Cost: nothing for packs that are held in memory. Otherwise, see `KeyPack.open`.
        """
        known = _HELD.listed(self._place)
        if files is not None and known is not None:
            packs = self._opened(known[1])
            is_newest = known[0] >= self._version
            if is_newest or (placed(files, packs, self._root)[0] >= 0).all():
                return packs
        try:
            listed = list(self.store.list_from(self._key.directory, ""))
        except DeltaError as error:
            if files is None:
                raise
            logger.warning(
                "cannot list the key index of %s: %s; files are read without it", self._root, error
            )
            return []
        infos = tuple(info for info in listed if info.name.endswith(SUFFIX))
        _HELD.keep_listing(self._place, self._version, infos)
        return self._opened(infos)

    def _opened(self, infos: Iterable[FileInfo]) -> list[KeyPack]:
        return [pack for pack in self.each(self._open, list(infos)) if pack is not None]

    def each(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the results for all items; of a remote store, several at a time."""
        if is_local(self.store):
            return [function(item) for item in items]
        return map_in_pool(function, items)

    def _open(self, info: FileInfo) -> KeyPack | None:
        pack = _HELD.get(info.name)
        if pack is None or pack.path != info.path:
            try:
                pack = KeyPack.open(self.store, info)
            except (DamagedPackError, DeltaError) as error:
                self.drop(info.path, error)
                return None
            _HELD.keep(info.name, pack)
        return pack if pack.key == self._key.packed else None

    def drop(self, path: str, error: Exception) -> None:
        """Do not use a pack, because it is damaged or missing, until packs are listed again."""
        if isinstance(error, ObjectNotFoundError):  # other packs may have replaced it
            _HELD.forget(self._place)
            return
        logger.warning(
            "cannot use %s of the key index of %s: %s; its files are read without the index, until "
            "optimize.key_index() replaces it",
            path,
            self._root,
            error,
        )
        _HELD.forget(self._place, path)

    def forget(self) -> None:
        """List the packs again when they are needed next."""
        _HELD.forget(self._place)
