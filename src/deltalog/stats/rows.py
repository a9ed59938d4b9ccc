"""Statistics that `pyarrow.json` refuses, value by value.

Owns what a value may look like in the JSON of any writer, and the rounding that keeps a bound a
bound. What is no value of the asked type is NULL.

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
import pyarrow.types as pt

from deltalog._json import loads, parse_lexemes
from deltalog.errors import MalformedLogError
from deltalog.kernels import Array
from deltalog.stats.schema import MAX_VALUES, MIN_VALUES, leaves_of_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.stats.schema import Path


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


def read_by_row(texts: Array, wire: pa.Schema) -> pa.Table:
    """The leaves of every text, NULL where it has no such value.

    Args:
        texts: without NULL.
        wire: nested schema of whole numbers, floats, decimals, texts and booleans.

    Cost: some microseconds a row.
    """
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


def parse_moments(texts: Array, to: Any) -> Array:
    """Dates or times of a column of texts; NULL where a text is none.

    Cost: one pass for ISO texts, else some microseconds per distinct text.
    """
    try:
        return texts.cast(to)
    except pa.ArrowInvalid:
        pass
    # Odd forms repeat: a writer has one, and few moments are distinct.
    encoded = texts.dictionary_encode()
    naive = pt.is_date(to) or to.tz is None
    micros = [_moment_us(text, naive=naive) for text in encoded.dictionary.to_pylist()]
    moments: Array = pa.array(micros, pa.int64()).cast(pa.timestamp("us"))
    # A time is no date, but the day that it is in is a bound all the same.
    days = pc.floor_temporal(moments, unit="day") if pt.is_date(to) else moments.cast(pa.int64())
    return days.cast(to).take(encoded.indices)


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
