"""Partition values, read: texts of the log as typed values.

Owns which texts stand for which values, and is strict: another text is corruption, not NULL.
Knows nothing of column mapping: names are taken as they come.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.errors import InvalidPartitionValueError
from deltalog.partition_values.moments import (
    EPOCH,
    instant_micros,
    offset_of,
    wall_clock_micros,
)
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.types import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.schema.types import DataType

    Texts = pa.StringArray
    Parser = Callable[[Texts, pa.DataType], pa.Array[Any]]


@lru_cache(maxsize=4096)
def parse_value(
    text: str | None, data_type: DataType, *, column: str = "", time_zone: str = "UTC"
) -> Any:
    """The value of one serialised partition value; None and "" are NULL for every type.

    Args:
        text: as it stands in the log.
        data_type: of the column.
        column: its name, for messages.
        time_zone: of timestamps that do not name one: an IANA name or `+02:00`.

    Raises:
        InvalidPartitionValueError: the text is no value of the type.

    Protocol: Partition Value Serialization
    """
    texts = pa.array([text], pa.string())
    typed = parse_column(texts, data_type, column=column, time_zone=time_zone)
    try:
        return typed[0].as_py()
    except (OverflowError, ValueError) as error:
        raise _invalid(text, data_type, column) from error


def parse_column(
    texts: pa.Array[Any] | pa.ChunkedArray[Any],
    data_type: DataType,
    *,
    column: str = "",
    time_zone: str = "UTC",
) -> pa.Array[Any]:
    """The typed values of many serialised partition values; null and "" are NULL.

    Args:
        texts: one per file.
        data_type: of the column.
        column: its name, for messages.
        time_zone: of timestamps that do not name one: an IANA name or `+02:00`.

    Returns:
        An array of the column's Arrow type, as long as `texts`.

    Raises:
        InvalidPartitionValueError: a text is no value of the type.
        UnsupportedTypeError: the type is not known.

    Protocol: Partition Value Serialization
    Cost: each distinct text is parsed once.
    """
    arrow_type = to_arrow_type(data_type)
    encoded: Any = texts.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    dictionary = encoded.dictionary.cast(pa.string())
    distinct = pc.replace_with_mask(
        dictionary, pc.equal(dictionary, pa.scalar("")), pa.scalar(None, pa.string())
    )
    if distinct.null_count == len(distinct):
        return pa.array([None] * len(texts), arrow_type)
    parser = _parser_of(data_type, time_zone)
    if parser is None:
        raise _invalid(_first(distinct), data_type, column)
    try:
        typed = parser(distinct, arrow_type)
    except (pa.ArrowInvalid, ValueError, OverflowError) as error:
        for text in distinct.drop_null():
            try:
                parser(pa.array([text.as_py()]), arrow_type)
            except (pa.ArrowInvalid, ValueError, OverflowError):
                raise _invalid(text.as_py(), data_type, column) from error
        raise
    return typed.take(encoded.indices)


def extract(partition_values: pa.Array[Any] | pa.ChunkedArray[Any], name: str) -> pa.StringArray:
    """The serialised value of one partition column, from each row's map; NULL where it is missing.

    Args:
        partition_values: `map<string, string>`.
        name: the physical name of the column.
    """
    kind: Any = partition_values.type
    key = pa.scalar(name, kind.key_type)
    found: Any = pc.map_lookup(partition_values, key, "last")  # a repeated JSON key: the last wins
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    result: pa.StringArray = found.cast(pa.string())
    return result


def _invalid(text: str | None, data_type: DataType, column: str) -> InvalidPartitionValueError:
    where = f" of column {column!r}" if column else ""
    return InvalidPartitionValueError(
        f"cannot read the partition value {text!r}{where}: expected {data_type}"
    )


def is_decimal(data_type: DataType) -> bool:
    """Whether the type is a decimal of any precision."""
    return isinstance(data_type, PrimitiveType) and data_type.is_decimal


def _first(texts: Any) -> str | None:
    value: str | None = texts.drop_null()[0].as_py()
    return value


def _parser_of(data_type: DataType, zone: str) -> Parser | None:
    if is_decimal(data_type):
        return _parse_decimal
    name = str(data_type)
    if name != "timestamp":
        return _PARSERS.get(name)
    offset_of(zone, EPOCH)  # an unknown zone is the caller's mistake, not the table's
    return partial(_parse_timestamp, zone=zone)


def _all_match(texts: Texts, pattern: str) -> bool:
    matches: Any = pc.all(pc.match_substring_regex(texts, f"^(?:{pattern})$"))
    return matches.as_py() is True


def _check_match(texts: Texts, pattern: str) -> None:
    if not _all_match(texts, pattern):
        raise ValueError(f"expected {pattern}")


_NUMBER: Final = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_MOMENT: Final = _DATE + r"[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z?"


def _parse_integer(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    _check_match(texts, r"[+-]?\d+")  # Arrow takes hexadecimal too, and no plus sign
    unsigned: Any = pc.ascii_ltrim(texts, "+")
    integers: pa.Array[Any] = unsigned.cast(arrow_type)
    return integers


def _parse_float(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    _check_match(texts, f"(?i:{_NUMBER}|nan|[+-]?inf(?:inity)?)")
    return texts.cast(arrow_type)


def _parse_decimal(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    _check_match(texts, _NUMBER)
    return texts.cast(arrow_type)


def _parse_boolean(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    del arrow_type
    _check_match(texts, "(?i:true|false)")
    lower: Any = pc.utf8_lower(texts)
    answer: pa.Array[Any] = pc.equal(lower, pa.scalar("true"))
    return answer


def _parse_text(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    return texts.cast(arrow_type)


def _parse_date(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    _check_match(texts, r"\d{4}-\d{1,2}-\d{1,2}")
    if _all_match(texts, _DATE):
        days = texts.cast(arrow_type)
    else:
        days = pa.array([None if text is None else _day(text) for text in texts.to_pylist()])
    _check_years(days)
    return days


def _check_years(values: Any) -> None:
    # The texts have four digits, so 9999 needs no check.
    years: Any = pc.year(values)
    if pc.any(pc.less(years, pa.scalar(1))).as_py():
        raise ValueError("expected a year from 1 to 9999")


def _day(text: str) -> dt.date:
    year, month, day = text.split("-")
    return dt.date(int(year), int(month), int(day))


def _parse_timestamp(texts: Texts, arrow_type: pa.DataType, *, zone: str) -> pa.Array[Any]:
    if zone == "UTC" and _all_match(texts, _MOMENT):
        return _wall_clock(texts).cast(arrow_type)
    micros = [None if text is None else instant_micros(text, zone) for text in texts.to_pylist()]
    return pa.array(micros, pa.int64()).cast(arrow_type)


def _parse_timestamp_ntz(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    if _all_match(texts, _MOMENT):
        return _wall_clock(texts)
    micros = [None if text is None else _wall_clock_only(text) for text in texts.to_pylist()]
    return pa.array(micros, pa.int64()).cast(arrow_type)


def _wall_clock_only(text: str) -> int:
    micros, zone = wall_clock_micros(text)
    if zone not in {None, "Z", "UTC"}:
        raise ValueError(f"{text!r} has a time zone")
    return micros


def _wall_clock(texts: Texts) -> pa.Array[Any]:
    plain: Any = pc.ascii_rtrim(texts, "Z")
    moments = plain.cast(pa.timestamp("us"))
    _check_years(moments)
    result: pa.Array[Any] = moments
    return result


_PARSERS: Final[dict[str, Parser]] = {
    "string": _parse_text,
    "binary": _parse_text,
    "byte": _parse_integer,
    "short": _parse_integer,
    "integer": _parse_integer,
    "long": _parse_integer,
    "float": _parse_float,
    "double": _parse_float,
    "boolean": _parse_boolean,
    "date": _parse_date,
    "timestamp_ntz": _parse_timestamp_ntz,
}
