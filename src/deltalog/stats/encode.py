"""Statistics as JSON text, with texts and times cut as Delta cuts them.

Owns the stored form of each value, and the truncation of long texts. What collects the values is
`collect`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from deltalog._json import Lexeme, dumps, parse_lexemes
from deltalog.errors import InternalError, MalformedLogError
from deltalog.stats.schema import NUM_RECORDS, TIGHT_BOUNDS

DEFAULT_PREFIX_LENGTH: Final = 32

_GREATEST_ASCII: Final = "\x7f"
_GREATEST_CHARACTER: Final = "\U0010ffff"


def truncate_min(text: str, length: int = DEFAULT_PREFIX_LENGTH) -> str:
    """A prefix of the text: it is not above the text.

    Args:
        text: the smallest value.
        length: how many characters to keep.
    """
    return text[:length]


def truncate_max(text: str, length: int = DEFAULT_PREFIX_LENGTH) -> str | None:
    """A short text that is not below the given one, or None if there is none.

    A prefix is below the text; a character that is above the next one of the text makes it greater.
    Lengths are UTF-16's, as in Delta, and no surrogate pair is torn.

    Args:
        text: the greatest value.
        length: how many UTF-16 units to keep; up to twice as many where no character is greater.
    """
    size = 0
    for position, char in enumerate(text):
        if size >= length:
            if size > 2 * length:
                return None
            if char < _GREATEST_ASCII:
                return text[:position] + _GREATEST_ASCII
            if char < _GREATEST_CHARACTER:
                return text[:position] + _GREATEST_CHARACTER
        size += 1 if char <= "\uffff" else 2
    return text if size <= 2 * length else None


def encode_stats(stats: Mapping[str, Any]) -> str:
    """The JSON text of one file's statistics.

    Args:
        stats: as `StatsCollector.finish` gives them; None leaves a statistic out.
    """
    return _encode(stats)


def with_wide_bounds(text: str | None, *, num_records: int) -> str:
    """The statistics of a file that gets a deletion vector: its bounds are bounds no longer tight.

    Args:
        text: the statistics so far; None or a malformed text has none.
        num_records: physical rows of the file, deleted ones too.

    Protocol: Per-file Statistics (`tightBounds`), Deletion Vectors (Writer Requirements)
    """
    try:
        known = parse_lexemes(text) if text else {}
    except MalformedLogError:
        known = {}
    stats = known if isinstance(known, dict) else {}
    return _encode({**stats, NUM_RECORDS: num_records, TIGHT_BOUNDS: False})


def _encode(value: Any) -> str:  # one line per kind
    match value:
        case Mapping():
            members = (
                f"{_encode(str(name))}:{_encode(part)}"
                for name, part in value.items()
                if part is not None
            )
            return "{" + ",".join(members) + "}"
        case Lexeme() | Decimal():
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        case float() if not math.isfinite(value):
            # JSON has no word for them; Delta quotes Java's.
            return '"NaN"' if math.isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'
        case bool() | int() | float() | str() | list():
            return dumps(value).decode()
        case datetime():
            return f'"{_moment_text(value)}"'
        case date():
            return f'"{value.isoformat()}"'
        case _:
            raise InternalError(f"no statistic has a value like {value!r}")


def _moment_text(moment: datetime) -> str:
    """Cut down to milliseconds: earlier than the moment, or equal."""
    if moment.tzinfo is None:
        return moment.isoformat(timespec="milliseconds")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
