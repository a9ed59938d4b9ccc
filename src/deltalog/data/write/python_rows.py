"""Rows and columns of Python values as Arrow tables."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa

from deltalog._util.argument_types import kind_of, shortened
from deltalog._util.previews import enabled_previews
from deltalog._util.readable import counted
from deltalog.data.write.polars_frames import column_of_series
from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.moments import LIKE_UTC, is_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger: logging.Logger = logging.getLogger(__name__)

_NOT_A_TIME: Final = "NaT"
_MIXED: Final = (
    ({"dates", "timestamps"}, "pass dates only, or datetimes only"),
    ({"timestamps", "timestamps with a time zone"}, "give all of them a tzinfo, or none"),
)
"""Kinds of values that Arrow would convert to one type, changing their meaning."""


def table_of_columns(data: Mapping[Any, Any]) -> pa.Table:
    """Return a table of a dict of columns.

    Raises:
        InvalidInputError: a column is no list or array, the columns have different lengths, or the
            values of a column have no common type.
    """
    columns = {str(name): _column(name, values) for name, values in data.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise InvalidInputError(
            "cannot write the data, a dict of columns: expected columns of the same length, found "
            f"{found}"
        )
    return pa.table(list(columns.values()), names=list(columns))


def table_of_rows(
    items: Sequence[Any], typed: Callable[[str, list[Any]], Any] | None = None
) -> pa.Table:
    """Return dicts as a table with the keys of all rows; Arrow would use only the first row.

    Args:
        items: the rows.
        typed: returns the values of a column by its name, as an array if their type is known.

    Raises:
        InvalidInputError: an item is no row, no row has a key, or the values of a column have no
            common type.
    """
    names: dict[str, None] = {}
    rows = []
    for number, item in enumerate(items):
        row = as_mapping(item)
        if row is None:
            raise InvalidInputError(
                f"cannot write item {number} of the list: expected a dict, a dataclass or a "
                f"pydantic model as the first one, found {kind_of(item)}"
            )
        names.update(dict.fromkeys(row))
        rows.append(row)
    if rows and not names:
        raise InvalidInputError(
            f"cannot write {counted(len(rows), 'row')} without keys: expected the names of columns "
            "as keys, such as {'id': 1}; pass [] for no rows"
        )
    given = {name: [row.get(name) for row in rows] for name in names}
    columns = [
        _column(name, values if typed is None else typed(name, values))
        for name, values in given.items()
    ]
    return pa.table(columns, names=[str(name) for name in names])


def as_mapping(row: Any) -> Mapping[str, Any] | None:
    """Return a dict, a dataclass or a pydantic model as a mapping; None for any other type."""
    if isinstance(row, Mapping):
        return row
    if is_dataclass(row) and not isinstance(row, type):
        return asdict(row)
    dump = getattr(row, "model_dump", None)
    return dump() if callable(dump) and hasattr(type(row), "model_fields") else None


def check_moments(name: object, items: Any, kind: pa.DataType) -> bool:
    """Check that Python values are all dates, all naive or all aware timestamps.

    Arrow would cut the time of timestamps after a date, take naive timestamps as UTC, and convert
    NaT among dates to the year 1.

    Args:
        name: the name of the column.
        items: the values.
        kind: the type that Arrow gives to them.

    Returns:
        Whether NaT is among the values.

    Raises:
        InvalidInputError: values of two kinds are mixed, or NaT is in a nested value.

    Cost: nothing if the type has neither dates nor timestamps.
    """
    if not _has_moments(kind):
        return False
    kinds: dict[tuple[str, ...], set[str]] = {}
    for value in items:
        for path, what in _moments(value, ()):
            kinds.setdefault(path, set()).add(what)
    for path, found in kinds.items():
        shown = ".".join((str(name), *path))
        if _NOT_A_TIME in found and path:
            raise InvalidInputError(
                f"cannot write the values of {shown!r}: NaT is in a nested value; use None"
            )
        for mixed, advice in _MIXED:
            if mixed <= found:
                raise InvalidInputError(
                    f"cannot write the values of {shown!r}: they are {' and '.join(sorted(mixed))}"
                    f"; {advice}"
                )
    return any(_NOT_A_TIME in found for found in kinds.values())


def _column(name: object, values: Any) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if (series := column_of_series(values, str(name))) is not None:
        return series
    if type(values).__name__ in {"Array", "ChunkedArray"}:  # not a table, which is a struct
        if hasattr(values, "__arrow_c_array__"):  # of arro3 or nanoarrow
            column: pa.Array[Any] = pa.array(values)
            return column
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
    if isinstance(values, str | bytes | Mapping | AbstractSet) or not isinstance(values, Iterable):
        advice = "to write rows, pass a list of dicts"
        if isinstance(values, Mapping):
            advice = "to write a DataFrame, pass the frame itself, or frame.to_dict('list')"
        elif isinstance(values, AbstractSet):
            advice = "a set has no order, and each value only once"
        raise InvalidInputError(
            f"cannot write the column {name!r} of a dict: expected a list or an array of values, "
            f"found {kind_of(values)}; {advice}"
        )
    items: Any = values if hasattr(values, "__len__") else list(values)
    found: pa.Array[Any] | pa.ChunkedArray[Any] = _array(name, items)
    has_objects = isinstance(items, list | tuple) or str(getattr(items, "dtype", "")) == "object"
    if has_objects and check_moments(name, items, found.type):
        found = pa.array(items, from_pandas=True)
    return in_own_zone(with_nanoseconds(name, items, found), items) if has_objects else found


def with_nanoseconds(name: object, items: Any, found: Any) -> Any:
    """Return timestamps in nanoseconds if a value of pandas has some, which Arrow cuts off.

    So the write stores them, or tells that it cuts them off. Nanoseconds of nested values, and of
    columns with years that nanoseconds cannot express, are cut off here, with the same notice.

    Args:
        name: the name of the column.
        items: its values.
        found: the values as an array.

    Cost: nothing if the type has neither dates nor timestamps.
    """
    kind: pa.DataType = found.type
    if not _has_moments(kind) or not any(map(_has_fine_part, items)):
        return found
    is_flat = pa.types.is_timestamp(kind)
    if is_flat or "timestampNanos" in enabled_previews():
        with suppress(pa.ArrowException):  # for years before 1678 or after 2261
            return pa.array(items, _in_nanoseconds(kind), from_pandas=is_flat)
    logger.warning(
        "column %r: timestamps are stored in microseconds; nanoseconds were cut off", name
    )
    return found


def _has_fine_part(value: Any) -> bool:
    if isinstance(value, datetime):
        return bool(getattr(value, "nanosecond", 0)) and not is_missing(value)
    if isinstance(value, Mapping):
        return any(map(_has_fine_part, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_fine_part, value))


def _in_nanoseconds(kind: Any) -> Any:
    """Return a type with nanoseconds in all its timestamps."""
    match kind:
        case pa.TimestampType():
            return pa.timestamp("ns", kind.tz)
        case pa.StructType():
            return pa.struct(
                [field.with_type(_in_nanoseconds(field.type)) for field in kind.fields]
            )
        case pa.ListType():
            return pa.list_(kind.value_field.with_type(_in_nanoseconds(kind.value_type)))
        case _:
            return kind


def in_own_zone(found: Any, items: Iterable[Any]) -> Any:
    """Return timestamps with a zone that is not UTC if any value has one.

    Arrow takes the zone of the first value. A column without zones stores timestamps in UTC, but
    refuses those of other zones.
    """
    kind: Any = found.type
    if not pa.types.is_timestamp(kind) or kind.tz not in LIKE_UTC - {None}:
        return found
    moments = (one for one in items if isinstance(one, datetime) and not is_missing(one))
    other: Any = next((one for one in moments if one.utcoffset()), None)
    if other is None:
        return found
    own: Any = pa.array([other]).type
    return found.cast(pa.timestamp(kind.unit, own.tz))


def has_uuids(kind: pa.DataType) -> bool:
    """Whether a type is, or contains, Arrow's type of UUIDs."""
    if isinstance(kind, pa.UuidType):
        return True
    return any(has_uuids(kind.field(number).type) for number in range(kind.num_fields))


def with_uuids_as_text(value: Any) -> Any:
    """Return a Python value in which the canonical string replaces each UUID.

    Delta has no UUIDs, and SQL returns their strings, too; 16 bytes would not be readable.
    """
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {with_uuids_as_text(key): with_uuids_as_text(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [with_uuids_as_text(one) for one in value]
    return value


def _array(name: object, items: Any) -> Any:
    try:
        found: Any = pa.array(items)
        return pa.array(list(map(with_uuids_as_text, items))) if has_uuids(found.type) else found
    except (pa.ArrowException, TypeError, OverflowError, ValueError) as error:
        _check_decimals(name, items)
        try:
            # As from pandas: NaN, NaT and NA among other values are missing values.
            return pa.array(
                [_without_day(with_uuids_as_text(one)) for one in items], from_pandas=True
            )
        except (pa.ArrowException, TypeError, OverflowError, ValueError):
            pass
        raise InvalidInputError(
            f"cannot write the values of {name!r}: "
            + (
                too_large(items)
                if isinstance(error, OverflowError)
                else f"they have no common Arrow type: {_mixed(items) or error}; "
                f"{_advice_on(items, error)}"
            )
        ) from error


def _check_decimals(name: object, items: Iterable[Any]) -> None:
    """Raise for a decimal that is not a number, which Arrow would take as a missing value."""
    for one in items:
        if isinstance(one, Mapping):
            _check_decimals(name, one.values())
        elif isinstance(one, list | tuple):
            _check_decimals(name, one)
        elif isinstance(one, Decimal) and not one.is_finite():
            raise InvalidInputError(
                f"cannot write the values of {name!r}: {one!r} is not a finite number, and a "
                "decimal column has no such value; use None, or float for a double column"
            )


def _without_day(value: Any) -> Any:
    """Return NumPy's `datetime64` of a day as a date, which Arrow expects, and others unchanged."""
    if type(value).__name__ != "datetime64":
        return value
    moment = value.item()
    return moment if moment is None or type(moment) is date else value


def _advice_on(items: Iterable[Any], error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "a string column stores valid Unicode, without lone surrogates"
    if any(isinstance(one, Enum) for one in items):
        return "write the values of an enum, as in color.value, or its names"
    return "convert them to one type, such as str"


def too_large(items: Any) -> str:
    """Return an error about the first whole number that needs more than 64 bits."""
    numbers = (one for one in items if isinstance(one, int))
    large = next((str(one) for one in numbers if not -(2**63) <= one < 2**63), "a number")
    return (
        f"{large} is too large for a long, which has 64 bits; only a decimal column can store it, "
        "for which the values are of decimal.Decimal"
    )


def _mixed(items: Any) -> str:
    """Return an example of each type of the values; empty if it is only one type."""
    found = {type(one): one for one in reversed(list(items)) if one is not None}
    shown = [f"{shortened(one)} ({kind.__name__})" for kind, one in reversed(found.items())]
    return f"found {' and '.join(shown[:3])}" if len(shown) > 1 else ""


def _has_moments(kind: pa.DataType) -> bool:
    """Whether a type is, or contains, dates or timestamps."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return True
    return any(_has_moments(kind.field(number).type) for number in range(kind.num_fields))


def _moments(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path and the kind of each date and timestamp in a value."""
    if isinstance(value, datetime):
        if is_missing(value):  # NaT is a datetime
            yield path, _NOT_A_TIME
        else:
            yield path, "timestamps with a time zone" if value.tzinfo else "timestamps"
    elif isinstance(value, date):
        yield path, "dates"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _moments(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _moments(inner, path)
