"""Statistics that `pyarrow.json` refuses, read value by value.

Owns what a value may look like in the JSON of any writer, and the rounding that keeps a bound a
bound. What is no value of the asked type is NULL.

Protocol: Per-file Statistics
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DecimalException
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
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


def read_by_row(texts: Array, wire: pa.Schema) -> pa.Table:
    """Return the leaves of every text, NULL where it has no such value.

    Args:
        texts: without NULL.
        wire: nested schema of whole numbers, floats, decimals, texts and booleans.

    Cost: some microseconds a row.
    """
    leaves = leaves_of_schema(wire)
    exact = any(pt.is_decimal(data_type) for _, data_type in leaves)
    rows = [_document(text, exact=exact) for text in texts.to_pylist()]
    columns: dict[Path, Array] = {}
    for path, leaf in leaves:
        convert = next(convert for applies, convert in _CONVERT if applies(leaf))
        columns[path] = pa.array([convert(_dig(row, path), path, leaf) for row in rows], leaf)
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


_CONVERT: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Path, Any], Any]], ...]] = (
    (pt.is_integer, _to_whole),
    (pt.is_floating, _to_float),
    (pt.is_decimal, _to_decimal),
    (pt.is_string, _to_text),
    (pt.is_boolean, _to_boolean),
)
