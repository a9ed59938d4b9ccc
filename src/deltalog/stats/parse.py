"""Statistics from JSON: a column of texts becomes struct columns of the leaves asked for.

Owns the traps of `pyarrow.json`, measured: it drops an empty text (rows would shift), and one row
that it cannot convert fails them all (`"NaN"`, a whole number written `1.0`, a key that stands
twice, a torn text). So rows are made tidy first, dates and times come in as texts, the count is
checked, and rows that still fail are narrowed down and read one by one.

A statistic that cannot be read is NULL, and NULL never prunes: nothing here fails a read.

Protocol: Per-file Statistics
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DecimalException
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

from deltalog._json import loads, parse_lexemes
from deltalog.errors import MalformedLogError
from deltalog.stats.schema import (
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NULL_COUNT_ALIAS,
    cast_or_null,
    leaves_of_schema,
    schema_of_leaves,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.stats.schema import Path


# pyarrow's stubs leave most kernels untyped, so arrays are too.
Array = Any

# Large enough to keep both cores busy, small enough that the copy of the texts stays small.
_SLICE_BYTES: Final = 32 << 20
_BLOCK_BYTES: Final = 1 << 20
_FEW_ROWS: Final = 16
_PIECES: Final = 8

_QUOTED_FLOAT: Final = r'"[+-]?(NaN|Infinity)"'
_FLOATS: Final = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
}
_WHOLE_DIGITS: Final = 20
_MAX_FLOAT32: Final = 3.4028235677973366e38
_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,18}))?)?)?"
    r"\s*(Z|UTC|[+-]\d\d(?::?\d\d(?::\d\d)?)?)?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_stats(json: pa.Array[Any] | pa.ChunkedArray[Any], schema: pa.Schema) -> pa.Table:
    """The statistics of every row, restricted to the leaves of `schema`.

    Args:
        json: one text per file; null, empty and malformed texts have no statistics.
        schema: the leaves wanted (`stats_schema`, `project_stats`, `Skipping.stats_schema`).

    Returns:
        One row per row of `json`, in order, with `schema`.

    Cost: one pass of `pyarrow.json`; rows that it refuses cost some microseconds each.
    """
    if not len(schema):
        rows = pa.repeat(pa.scalar({}, pa.struct([])), len(json))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
    wire = _wire_schema(schema)
    tables = [
        _to_asked(_read(_tidy(texts), wire), schema)
        for chunk in (json.chunks if isinstance(json, pa.ChunkedArray) else [json])
        for texts in _slices(chunk)
    ]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _wire_schema(schema: pa.Schema) -> pa.Schema:
    """What JSON is read as: wide integers, and texts where a value may be odd."""
    leaves: list[tuple[Path, pa.DataType]] = []
    for path, data_type in leaves_of_schema(schema):
        leaves.append((path, _wire_type(data_type)))
        if path[0] == NULL_COUNT:
            leaves.append(((NULL_COUNT_ALIAS, *path[1:]), pa.int64()))
    return schema_of_leaves(leaves)


def _wire_type(data_type: pa.DataType) -> pa.DataType:
    if pt.is_integer(data_type):
        return pa.int64()
    if pt.is_temporal(data_type) or pt.is_string(data_type):
        return pa.string()
    return data_type


def _slices(chunk: Array) -> Iterator[Array]:
    step = max(1, len(chunk) * _SLICE_BYTES // max(chunk.nbytes, 1))
    for start in range(0, len(chunk), step):
        part = chunk.slice(start, step)
        yield part if pt.is_string(part.type) else part.cast(pa.string())


def _tidy(texts: Array) -> Array:
    """Every row as one `{…}`: what is none has no statistics.

    A row that starts with `{` and ends with `}` can neither vanish nor join the next one, so that
    as many documents as rows means one document per row.
    """
    texts = pc.fill_null(texts, "{}")
    if _is_tidy(texts):
        return texts
    texts = pc.utf8_trim_whitespace(texts)
    ends = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    return pc.if_else(ends, texts, "{}")


def _is_tidy(texts: Array) -> bool:
    starts, ends = pc.all(pc.starts_with(texts, "{")), pc.all(pc.ends_with(texts, "}"))
    return bool(starts.as_py()) and bool(ends.as_py())


def _read(texts: Array, wire: pa.Schema) -> pa.Table:
    table = _read_at_once(texts, wire)
    if table is not None:
        return table
    if len(texts) <= _FEW_ROWS:
        return _read_by_row(texts, wire)
    if any(pt.is_floating(leaf) for _, leaf in leaves_of_schema(wire)):
        odd: Array = pc.match_substring_regex(texts, _QUOTED_FLOAT)
        if 0 < (count := odd.true_count) < len(texts):
            return _read_apart(texts, odd, wire)
        if count:
            return _read_by_row(texts, wire)
    step = -(-len(texts) // _PIECES)
    pieces = [texts.slice(start, step) for start in range(0, len(texts), step)]
    tables = [_read_at_once(piece, wire) for piece in pieces]
    # A fault in every piece is a writer's habit: looking for the good rows would cost more.
    narrow = _read if any(tables) else _read_by_row
    return pa.concat_tables(
        [
            narrow(piece, wire) if table is None else table
            for piece, table in zip(pieces, tables, strict=True)
        ]
    )


def _read_apart(texts: Array, odd: Array, wire: pa.Schema) -> pa.Table:
    """The odd rows by row and the others at once, put back in order."""
    even: Array = pc.invert(odd)
    both = pa.concat_tables(
        [_read(texts.filter(even), wire), _read_by_row(texts.filter(odd), wire)]
    )
    order = pa.concat_arrays([pc.indices_nonzero(even), pc.indices_nonzero(odd)])
    return both.take(pc.sort_indices(order))


def _read_at_once(texts: Array, wire: pa.Schema) -> pa.Table | None:
    """All rows through `pyarrow.json`, or None if it refuses one of them."""
    lines = pc.binary_join_element_wise(texts, "", "\n")
    offsets, data = lines.buffers()[1:]
    if lines.offset or offsets is None or data is None:
        lines = pa.concat_arrays([lines])
        data = lines.buffers()[2]
    lengths: Array = pc.binary_length(texts)
    longest = pc.max(lengths).as_py()
    try:
        table = pj.read_json(
            pa.BufferReader(data),  # type: ignore[arg-type]  # stubs: any file but Arrow's
            # A row longer than a block would be refused.
            read_options=pj.ReadOptions(block_size=max(_BLOCK_BYTES, 2 * longest + 2)),
            parse_options=pj.ParseOptions(explicit_schema=wire, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(texts) else None


def _read_by_row(texts: Array, wire: pa.Schema) -> pa.Table:
    leaves = leaves_of_schema(wire)
    exact = any(pt.is_decimal(data_type) for _, data_type in leaves)
    rows = [_document(text, exact=exact) for text in texts.to_pylist()]
    columns = {
        path: pa.array([_CONVERT[_kind(leaf)](_dig(row, path), path, leaf) for row in rows], leaf)
        for path, leaf in leaves
    }
    arrays = [_nest((field.name,), field, columns) for field in wire]
    return pa.table(arrays, schema=wire)


def _document(text: str, *, exact: bool) -> Any:
    try:
        return parse_lexemes(text) if exact else loads(text)
    except MalformedLogError:
        return None


def _dig(row: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(row, dict):
            return None
        row = row.get(name)
    return row


def _nest(path: Path, field: pa.Field[Any], columns: dict[Path, Array]) -> Array:
    if not pt.is_struct(field.type):
        return columns[path]
    children = list(field.type)
    arrays = [_nest((*path, child.name), child, columns) for child in children]
    return pa.StructArray.from_arrays(arrays, fields=children)


def _kind(data_type: pa.DataType) -> str:
    if pt.is_integer(data_type):
        return "whole"
    if pt.is_floating(data_type):
        return "float"
    if pt.is_decimal(data_type):
        return "decimal"
    return "text" if pt.is_string(data_type) else "boolean"


def _to_whole(value: Any, _path: Path, _leaf: pa.DataType) -> int | None:
    if isinstance(value, bool) or value is None or type(value) is str:
        return None
    try:
        number = Decimal(value)
        whole = int(number) if number.adjusted() < _WHOLE_DIGITS else 0
    except (DecimalException, TypeError, ValueError, OverflowError):
        return None
    return whole if whole == number and -(1 << 63) <= whole < 1 << 63 else None


def _to_float(value: Any, _path: Path, leaf: pa.DataType) -> float | None:
    if type(value) is str:
        return _FLOATS.get(value)
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if pt.is_float32(leaf) and abs(number) >= _MAX_FLOAT32:
        return None
    return number if math.isfinite(number) else None


def _to_decimal(value: Any, path: Path, leaf: Any) -> Decimal | None:
    """A decimal; a minimum with too many digits is rounded down, a maximum up."""
    if value is None or isinstance(value, bool):
        return None
    rounding = {MIN_VALUES: ROUND_FLOOR, MAX_VALUES: ROUND_CEILING}.get(path[0], ROUND_FLOOR)
    try:
        number = Decimal(value).quantize(
            Decimal(1).scaleb(-leaf.scale), rounding, Context(prec=leaf.precision)
        )
    except (DecimalException, TypeError, ValueError):
        return None
    return number if number.is_finite() else None


def _to_text(value: Any, _path: Path, _leaf: pa.DataType) -> str | None:
    if type(value) is not str:
        return None
    # A lone surrogate is no text that a column could hold.
    return value if value.isascii() or value.encode(errors="ignore").decode() == value else None


def _to_boolean(value: Any, _path: Path, _leaf: pa.DataType) -> bool | None:
    return value if isinstance(value, bool) else None


_CONVERT: Final[dict[str, Callable[[Any, Path, Any], Any]]] = {
    "whole": _to_whole,
    "float": _to_float,
    "decimal": _to_decimal,
    "text": _to_text,
    "boolean": _to_boolean,
}


def _to_asked(table: pa.Table, schema: pa.Schema) -> pa.Table:
    batches = [
        pa.RecordBatch.from_arrays(
            [_convert(_column(batch, field.name), field.type) for field in schema], schema=schema
        )
        for batch in table.to_batches()
    ]
    return pa.Table.from_batches(batches, schema)


def _column(batch: pa.RecordBatch, name: str) -> Array:
    column = batch.column(name)
    if name == NULL_COUNT:
        alias = batch.column(NULL_COUNT_ALIAS)
        if alias.null_count < len(alias):
            return _merge(column, alias)
    return column


def _merge(first: Array, second: Array) -> Array:
    if not pt.is_struct(first.type):
        return pc.coalesce(first, second)
    pairs = zip(first.flatten(), second.flatten(), strict=True)
    return pa.StructArray.from_arrays([_merge(*pair) for pair in pairs], fields=list(first.type))


def _convert(array: Array, to: pa.DataType) -> Array:
    if array.type == to:
        return array
    if pt.is_struct(to):
        children = list(to)
        arrays = [_convert(pc.struct_field(array, [child.name]), child.type) for child in children]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(arrays, fields=children, mask=mask)
    if pt.is_temporal(to):
        return _parse_moments(array, to)
    return cast_or_null(array, to)


def _parse_moments(texts: Array, to: Any) -> Array:
    try:
        return texts.cast(to)
    except pa.ArrowInvalid:
        pass
    # Odd forms repeat: a writer has one, and few moments are distinct.
    encoded = texts.dictionary_encode()
    parse = _date_days if pt.is_date(to) else _moment_us
    naive = pt.is_timestamp(to) and to.tz is None
    numbers = [parse(text, naive=naive) for text in encoded.dictionary.to_pylist()]
    wide = pa.array(numbers, pa.int32() if pt.is_date(to) else pa.int64())
    return wide.cast(to).take(encoded.indices)


def _date_days(text: str, *, naive: bool) -> int | None:
    moment = _moment_us(text, naive=not naive)
    return None if moment is None else moment // 86_400_000_000


def _moment_us(text: str, *, naive: bool) -> int | None:
    """Microseconds since 1970 of an ISO text; without a zone it is UTC.

    Args:
        text: digits below microseconds are cut off.
        naive: for a time without zone; some writers append a `Z` that means nothing.
    """
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    offset = _offset(zone)
    if naive and offset:
        return None
    try:
        midnight = date(int(year), int(month), int(day))
        passed = timedelta(hours=int(hour or 0), minutes=int(minute or 0), seconds=int(second or 0))
    except ValueError:
        return None
    start = datetime(midnight.year, midnight.month, midnight.day, tzinfo=UTC)
    micros = int((fraction or "").ljust(6, "0")[:6])
    return ((start - _EPOCH) + passed - offset) // timedelta(microseconds=1) + micros


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in {"Z", "UTC"}:
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(6, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:]))
    return -offset if zone[0] == "-" else offset
