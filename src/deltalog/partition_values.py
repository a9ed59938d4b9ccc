"""Partition values: texts in the log, typed values everywhere else.

Owns their serialised form by type, both ways, and the names of Hive-style directories. Knows
nothing of column mapping: names are taken as they come.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.errors import InvalidInputError, InvalidPartitionValueError
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.types import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deltalog.schema.types import DataType

    Texts = pa.StringArray
    Parser = Callable[[Texts, pa.DataType], pa.Array[Any]]
    Encoder = Callable[[Any], str]

NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # wall clock; the zone is added by hand
_MICROSECOND: Final = dt.timedelta(microseconds=1)


@lru_cache(maxsize=4096)
def parse_value(
    text: str | None, data_type: DataType, *, column: str = "", default_timezone: str = "UTC"
) -> Any:
    """The value of one serialised partition value; None and "" are NULL for every type.

    Args:
        text: as it stands in the log.
        data_type: of the column.
        column: its name, for messages.
        default_timezone: of timestamps that do not name one: an IANA name or `+02:00`.

    Raises:
        InvalidPartitionValueError: the text is no value of the type.

    Protocol: Partition Value Serialization
    """
    texts = pa.array([text], pa.string())
    typed = parse_column(texts, data_type, column=column, default_timezone=default_timezone)
    try:
        return typed[0].as_py()
    except (OverflowError, ValueError) as error:
        raise _invalid(text, data_type, column) from error


def parse_column(
    texts: pa.StringArray | pa.ChunkedArray[Any],
    data_type: DataType,
    *,
    column: str = "",
    default_timezone: str = "UTC",
) -> pa.Array[Any]:
    """The typed values of many serialised partition values; null and "" are NULL.

    Args:
        texts: one per file.
        data_type: of the column.
        column: its name, for messages.
        default_timezone: of timestamps that do not name one: an IANA name or `+02:00`.

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
    parser = _parser_of(data_type, default_timezone)
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


def extract(
    partition_values: pa.MapArray[Any, Any] | pa.ChunkedArray[Any], name: str
) -> pa.StringArray:
    """The serialised value of one partition column, from each row's map; NULL where it is missing.

    Args:
        partition_values: `map<string, string>`.
        name: the physical name of the column.
    """
    key = pa.scalar(name, partition_values.type.key_type)
    found: Any = pc.map_lookup(partition_values, key, "last")  # a repeated JSON key: the last wins
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    result: pa.StringArray = found.cast(pa.string())
    return result


def encode_value(value: Any, data_type: DataType, *, default_timezone: str = "UTC") -> str | None:
    """The serialised form of a partition value; None, "" and b"" are NULL.

    Args:
        value: as Arrow's `as_py` gives it.
        data_type: of the column.
        default_timezone: of a naive datetime for a `timestamp` column.

    Raises:
        InvalidInputError: the value is none of the type, or bytes are no UTF-8 (the protocol has
            no text for those).

    Protocol: Partition Value Serialization
    """
    if value is None or (isinstance(value, str | bytes) and not value):
        return None
    encoder = _encoder_of(data_type, default_timezone)
    try:
        if encoder is not None:
            return encoder(value)
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise InvalidInputError(
            f"cannot write {value!r} as a partition value of type {data_type}: {error}"
        ) from error
    raise InvalidInputError(f"a column of type {data_type} cannot be a partition column")


# What Hive escapes, so that other engines give the same paths.
_ESCAPED: Final = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")


def escape_directory(text: str) -> str:
    """A column name or a partition value as part of a directory's name."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def hive_directory(columns: Sequence[str], values: Mapping[str, str | None]) -> str:
    """The directory of a partition, `a=1/b=x`, not yet encoded as a URI.

    Args:
        columns: the partition columns in order.
        values: their serialised values; None and "" are NULL.
    """
    parts: list[str] = []
    for column in columns:
        text = values[column]
        parts.append(f"{escape_directory(column)}={escape_directory(text or '') or NULL_DIRECTORY}")
    return "/".join(parts)


def parse_hive_directory(directory: str) -> dict[str, str | None]:
    """Partition columns and serialised values that a directory's name holds.

    Parts without `=` hold none.
    """
    values: dict[str, str | None] = {}
    for part in directory.split("/"):
        name, equals, text = part.partition("=")
        if equals and name:
            values[unquote(name)] = None if text in {"", NULL_DIRECTORY} else unquote(text)
    return values


def _invalid(text: str | None, data_type: DataType, column: str) -> InvalidPartitionValueError:
    where = f" of column {column!r}" if column else ""
    return InvalidPartitionValueError(
        f"cannot read the partition value {text!r}{where}: expected {data_type}"
    )


def _is_decimal(data_type: DataType) -> bool:
    return isinstance(data_type, PrimitiveType) and data_type.is_decimal


def _first(texts: Any) -> str | None:
    value: str | None = texts.drop_null()[0].as_py()
    return value


def _parser_of(data_type: DataType, zone: str) -> Parser | None:
    if _is_decimal(data_type):
        return _parse_decimal
    name = str(data_type)
    return partial(_parse_timestamp, zone=zone) if name == "timestamp" else _PARSERS.get(name)


def _all_match(texts: Texts, pattern: str) -> bool:
    matches: Any = pc.all(pc.match_substring_regex(texts, f"^(?:{pattern})$"))
    return matches.as_py() is True


def _check_match(texts: Texts, pattern: str) -> None:
    if not _all_match(texts, pattern):
        raise ValueError(f"expected {pattern}")


_NUMBER: Final = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_MOMENT: Final = _DATE + r"[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z?"
_ANY_MOMENT: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?(Z|UTC|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)


def _parse_integer(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    _check_match(texts, r"[+-]?\d+")  # Arrow takes hexadecimal too
    return texts.cast(arrow_type)


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
    micros = [None if text is None else _instant(text, zone) for text in texts.to_pylist()]
    return pa.array(micros, pa.int64()).cast(arrow_type)


def _parse_timestamp_ntz(texts: Texts, arrow_type: pa.DataType) -> pa.Array[Any]:
    if _all_match(texts, _MOMENT):
        return _wall_clock(texts)
    micros = [None if text is None else _naive_micros(text)[0] for text in texts.to_pylist()]
    return pa.array(micros, pa.int64()).cast(arrow_type)


def _wall_clock(texts: Texts) -> pa.Array[Any]:
    plain: Any = pc.ascii_rtrim(texts, "Z")
    moments = plain.cast(pa.timestamp("us"))
    _check_years(moments)
    result: pa.Array[Any] = moments
    return result


def _instant(text: str, default_timezone: str) -> int:
    micros, zone = _naive_micros(text)
    offset = _offset(zone or default_timezone, _EPOCH + dt.timedelta(microseconds=micros))
    return micros - offset // _MICROSECOND


def _naive_micros(text: str) -> tuple[int, str | None]:
    """Microseconds of the wall clock since 1970, and the zone that the text names."""
    match = _ANY_MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no date and time")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction = (match[7] or "").ljust(6, "0")
    if fraction[6:].strip("0"):
        raise ValueError(f"{text!r} is finer than a microsecond")
    moment = dt.datetime(year, month, day, hour, minute, second)  # noqa: DTZ001  # wall clock
    return (moment - _EPOCH) // _MICROSECOND + int(fraction[:6]), match[8]


def _offset(zone: str, wall_clock: dt.datetime) -> dt.timedelta:
    if zone in {"Z", "UTC"}:
        return dt.timedelta(0)
    fixed = re.fullmatch(r"([+-])(\d{2}):?(\d{2})", zone)
    if fixed is not None:
        size = dt.timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        if size > dt.timedelta(hours=18):
            raise ValueError(f"{zone} is no offset from UTC")
        return -size if fixed[1] == "-" else size
    # In a gap, Python's offset is the one before it: the clock is put forward, as Java does.
    return wall_clock.replace(tzinfo=_zone(zone)).utcoffset() or dt.timedelta(0)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError) as error:
        raise InvalidInputError(
            f"there is no time zone {name!r}: expected an IANA name such as 'Europe/Berlin', "
            "or an offset such as '+02:00'"
        ) from error


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


def _expect(value: Any, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"found a {type(value).__name__}")


def _encoder_of(data_type: DataType, zone: str) -> Encoder | None:
    if _is_decimal(data_type):
        return partial(_encode_decimal, arrow_type=to_arrow_type(data_type))
    name = str(data_type)
    return partial(_encode_timestamp, zone=zone) if name == "timestamp" else _ENCODERS.get(name)


def _encode_integer(value: Any, *, bits: int) -> str:
    _expect(value, int)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError("the value is out of range")
    return str(int(value))


def _encode_float(value: Any, *, bits: int) -> str:
    _expect(value, (float, int))
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    # The shortest digits that give the number again: fewer of them in 32 bits than in 64.
    shortest = (
        str(pa.scalar(number, pa.float32()).cast(pa.string())) if bits == 32 else repr(number)
    )
    return _java_float(Decimal(shortest))


def _java_float(number: Decimal) -> str:
    # As Java prints it, so that Spark and deltalog give one text for one value.
    sign, digits, _ = number.as_tuple()
    minus = "-" if sign else ""
    exponent = number.adjusted()
    text = "".join(map(str, digits)).rstrip("0")
    if not text:
        return f"{minus}0.0"
    if -3 <= exponent < 7:
        plain = f"{abs(number.normalize()):f}"
        return f"{minus}{plain}" if "." in plain else f"{minus}{plain}.0"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{exponent}"


def _encode_decimal(value: Any, *, arrow_type: pa.DataType) -> str:
    _expect(value, (Decimal, int))
    scalar: Any = pa.scalar(Decimal(value)).cast(arrow_type)
    return f"{scalar.as_py():f}"


def _encode_boolean(value: Any) -> str:
    _expect(value, bool)
    return "true" if value else "false"


def _encode_string(value: Any) -> str:
    _expect(value, str)
    value.encode()  # a lone surrogate is no text
    return str(value)


def _encode_binary(value: Any) -> str:
    _expect(value, (bytes, bytearray, memoryview))
    return bytes(value).decode()


def _encode_date(value: Any) -> str:
    _expect(value, dt.date)
    if isinstance(value, dt.datetime):
        raise TypeError("found a datetime")
    return str(value.isoformat())


def _encode_timestamp(value: Any, *, zone: str) -> str:
    _expect(value, dt.datetime)
    offset = value.utcoffset()
    moment = value.replace(tzinfo=None) - (_offset(zone, value) if offset is None else offset)
    return f"{moment.isoformat(timespec='microseconds')}Z"


def _encode_timestamp_ntz(value: Any) -> str:
    _expect(value, dt.datetime)
    if value.utcoffset() is not None:
        raise TypeError("found a datetime with a time zone")
    return str(
        value.isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds")
    )


_ENCODERS: Final[dict[str, Encoder]] = {
    "string": _encode_string,
    "binary": _encode_binary,
    "byte": partial(_encode_integer, bits=8),
    "short": partial(_encode_integer, bits=16),
    "integer": partial(_encode_integer, bits=32),
    "long": partial(_encode_integer, bits=64),
    "float": partial(_encode_float, bits=32),
    "double": partial(_encode_float, bits=64),
    "boolean": _encode_boolean,
    "date": _encode_date,
    "timestamp_ntz": _encode_timestamp_ntz,
}
