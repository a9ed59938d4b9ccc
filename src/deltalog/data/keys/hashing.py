"""The key of a table, and the hashes of keys; ADR 47 describes the hash.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.json import dumps
from deltalog._util.kernels import FALSE, compute, pc
from deltalog._util.paths import KEYS_DIRECTORY
from deltalog.errors import InvalidInputError
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.schema import find_field
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.collations import own_collation
from deltalog.schema.primitives import Family
from deltalog.schema.types import BY_BYTES, RULES, STRING, PrimitiveType
from deltalog.storage.key_packs import PackedKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import Field
    from deltalog.storage.key_packs import Hashes


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
        outer = configuration.schema.fields_named(name.partition(".")[0])
        if "." in name and outer and not configuration.schema.fields_named(name):
            raise InvalidInputError(
                f"cannot use {name!r} as a key: only top-level columns can be key columns"
            )
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
    if not found:
        raise InvalidInputError(
            "cannot use an empty list as a key: expected the names of the key columns, such as "
            "['id']; None removes the key"
        )
    if len(set(found)) < len(found):
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
        return f"strings {collation}" if collation in {BY_BYTES, *RULES} else None
    kind: Any = to_arrow_type(column.type)
    if pt.is_timestamp(kind) and kind.unit == "us":
        return "local times" if kind.tz is None else "instants"
    if pt.is_date(kind):
        return "local times"  # a column of dates can be widened to timestamps without a zone
    if pt.is_boolean(kind):
        return "booleans"
    return "bytes" if pt.is_binary(kind) else None


# --- Hashes of keys


_SEED: Final = np.uint64(0x243F6A8885A308D3)
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xFF51AFD7ED558CCD)
_SECOND: Final = np.uint64(0xC4CEB9FE1A85EC53)
_NAN: Final = np.uint64(0x7FF8000000000000)
_DAY_MICROS: Final = 86_400_000_000
_LONG_BYTES: Final = 128
_HALF: Final = np.uint64(33)
_ROWS_AT_ONCE: Final = 1 << 16


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


def hashes_of_rows(rows: pa.RecordBatch | pa.Table, names: Sequence[str], key: TableKey) -> Hashes:
    """Return the hash of each row.

    Args:
        rows: rows with the key columns, in their logical types.
        names: the names of the key columns in these rows.
        key: the key.

    Cost: see `hashes_of`; the temporary arrays stay in the processor's cache.
    """
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    found = [np.empty(0, np.uint64)]
    for batch in batches:
        columns = [batch.column(name) for name in names]
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            some = [column.slice(start, _ROWS_AT_ONCE) for column in columns]
            found.append(hashes_of(some, key.fields))
    return np.concatenate(found)


def _add(state: Hashes, array: pa.Array[Any], column: Field) -> None:
    kind = array.type
    if pt.is_decimal(kind):
        _add_decimals(state, array)
        return
    if pt.is_string(kind) or pt.is_binary(kind):
        if pt.is_string(kind):
            from deltalog.expressions.comparing import keys as collation_keys  # noqa: PLC0415  # only for strings

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
    return compute.fill_null(array, FALSE).to_numpy(zero_copy_only=False)
