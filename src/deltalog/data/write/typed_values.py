"""Python values as Arrow values of a table's types, where Arrow would choose other types.

Without a type, Arrow makes a struct of a dict, and a list of lists of pairs; a table may have a
column of maps. A UUID may be stored as bytes or as a string.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa

from deltalog._util.argument_types import shortened
from deltalog._util.escaping import name_key
from deltalog.data.write.python_rows import as_mapping, table_of_columns, table_of_rows
from deltalog.errors import SchemaMismatchError
from deltalog.schema import MapType, to_arrow_type
from deltalog.schema.columns import walk_types
from deltalog.schema.primitives.moments import is_missing
from deltalog.schema.types import BINARY

if TYPE_CHECKING:
    from deltalog.schema import StructType

_LARGEST_FLOAT: Final = 3.4028235677973366e38
"""From here on, a number is infinite as a float of 32 bits."""


def with_typed_values(data: Any, schema: StructType) -> Any:
    """Return rows whose Python values have the types of a table's columns with maps or UUIDs.

    A binary column stores the 16 bytes of a UUID; other columns and new tables store its string.

    Values that do not fit remain as they are, so that the write raises the usual error.

    Args:
        data: rows in any form that a write accepts; only frames of pandas, dicts of columns, and
            lists of rows are changed.
        schema: the schema of the table.

    Raises:
        InvalidInputError: see `table_of_rows` and `table_of_columns`.
        SchemaMismatchError: Arrow would change a value in a map.

    Cost: none for Arrow data, and if the table has no map and no binary column.
    """
    own = type(data)
    is_frame = own.__module__.partition(".")[0] == "pandas" and own.__name__ == "DataFrame"
    is_rows = isinstance(data, list | tuple) and data and as_mapping(data[0]) is not None
    if not (is_frame or is_rows or isinstance(data, Mapping)):
        return data
    kinds = {
        name_key(field.name): kind
        for field in schema
        if (
            field.type == BINARY
            or any(isinstance(part, MapType) for _, part in walk_types(field.type))
        )
        # Arrow would take timestamps without a zone as UTC.
        and not _has_moments(kind := to_arrow_type(field.type))
    }
    if not kinds:
        return data
    if is_frame:
        return _frame(data, kinds)
    if is_rows:
        return table_of_rows(data, lambda name, values: _typed(name, values, kinds))
    return table_of_columns({name: _typed(name, data[name], kinds) for name in data})


def _frame(frame: Any, kinds: Mapping[str, Any]) -> Any:
    import pandas as pd  # noqa: PLC0415  # installed, because `frame` is one of its frames

    names = [name for name in frame.columns if isinstance(name, str)]
    if len(set(names)) < len(frame.columns):
        return frame
    typed = {}
    for name in names:
        if str(frame[name].dtype) == "object":
            values = _typed(name, frame[name].to_list(), kinds)
            if isinstance(values, pa.Array):
                kept = pd.arrays.ArrowExtensionArray(values)
                typed[name] = pd.Series(kept, index=frame.index)
    return frame.assign(**typed) if typed else frame


def _typed(name: object, values: Any, kinds: Mapping[str, Any]) -> Any:
    """Return values as an array of the column's type; unchanged if they do not fit."""
    kind = kinds.get(name_key(str(name)))
    if kind is None or not isinstance(values, list | tuple):
        return values
    if kind == pa.binary():
        if not any(isinstance(value, UUID) for value in values):
            return values
        values = [one.bytes if isinstance(one, UUID) else one for one in values]
    if not all(_fits(value, kind) for value in values):
        return values
    check_unchanged(name, values, kind)
    for from_pandas in (False, True):  # from pandas, NaN means NULL
        try:
            return pa.array(values, kind, from_pandas=from_pandas)
        except (pa.ArrowException, TypeError, OverflowError, ValueError):
            pass
    return values


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value has no struct field that the type lacks; Arrow would drop its values."""
    if value is None:
        return True
    match kind:
        case pa.StructType():
            if not isinstance(value, Mapping):
                return False
            known = {kind.field(at).name: kind.field(at).type for at in range(kind.num_fields)}
            return all(name in known and _fits(one, known[name]) for name, one in value.items())
        case pa.MapType():
            items = value.values() if isinstance(value, Mapping) else _seconds(value)
            return all(_fits(one, kind.item_type) for one in items)
        case pa.ListType():
            return not hasattr(value, "__iter__") or all(
                _fits(one, kind.value_type) for one in value
            )
        case _:
            return True


def check_unchanged(name: object, values: Iterable[Any], kind: pa.DataType) -> None:
    """Check that Arrow changes no value that it converts to a given type.

    Args:
        name: the name of the column.
        values: Python values of the column.
        kind: the type that Arrow is asked for.

    Raises:
        SchemaMismatchError: it would round a number, or cut a time.
    """
    for row, value in enumerate(values, 1):
        for one, advice in _changed(value, kind):
            raise SchemaMismatchError(
                f"cannot write the data: cannot store {shortened(one)} in column {name!r} without "
                f"changing it: {advice}; in row {row} of the data"
            )


def _changed(value: Any, kind: Any) -> Iterator[tuple[Any, str]]:
    """Yield the values in a value that Arrow would change, at any depth, and what to do."""
    if value is None:
        return
    match kind:
        case pa.StructType():
            for field in kind if isinstance(value, Mapping) else ():
                yield from _changed(value.get(field.name), field.type)
        case pa.MapType():
            pairs = value.items() if isinstance(value, Mapping) else value
            for pair in pairs if hasattr(pairs, "__iter__") else ():
                if isinstance(pair, tuple) and len(pair) == 2:
                    yield from _changed(pair[0], kind.key_type)
                    yield from _changed(pair[1], kind.item_type)
        case pa.ListType():
            for one in value if hasattr(value, "__iter__") else ():
                yield from _changed(one, kind.value_type)
        case _:
            if (advice := _advice_on(value, kind)) is not None:
                yield value, advice


def _advice_on(value: Any, kind: Any) -> str | None:
    """Return what to do about a value that Arrow would change; None if it would not, or refuses."""
    is_finite = isinstance(value, float | Decimal) and isfinite(value)
    if pa.types.is_integer(kind) and is_finite and value % 1:
        return "round it to a whole number"
    if kind == pa.float32() and is_finite and abs(value) > _LARGEST_FLOAT:
        return "it is out of range of float"
    if kind == pa.date32() and isinstance(value, datetime) and not is_missing(value):
        return "pass value.date()"
    if kind == pa.date32() and isinstance(value, int):
        return "pass a date"
    is_local = pa.types.is_timestamp(kind) and kind.tz is None
    if is_local and isinstance(value, datetime) and not is_missing(value) and value.utcoffset():
        return "remove its time zone, as with value.replace(tzinfo=None), or convert it to UTC"
    if pa.types.is_floating(kind) and isinstance(value, bool):
        return f"pass {float(value)}"
    return None


def _seconds(pairs: Any) -> list[Any]:
    """Return the values of pairs; other values are left to Arrow."""
    if not hasattr(pairs, "__iter__"):
        return []
    return [pair[1] for pair in pairs if isinstance(pair, tuple) and len(pair) == 2]


def _has_moments(kind: Any) -> bool:
    if pa.types.is_timestamp(kind):
        return True
    return any(_has_moments(kind.field(at).type) for at in range(kind.num_fields))
