"""Parsers for the values of table properties.

Owns the syntax of each kind of value; a parser raises ValueError with what it expects. `properties`
says which property has which kind.

Protocol: Table Properties
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_UNIT_US: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_MOST_MICROSECONDS: Final = (1 << 63) - 1
_MOST_BYTES: Final = (1 << 63) - 1
_INTERVAL_PART: Final = re.compile(r"([+-]?\d+)(?:\.(\d{1,6}))?\s+([a-z]+?)s?(?:\s+|$)")
_COLUMN_PART: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.,]+?))\s*([.,]|$)")


def parse_boolean(text: str) -> bool:
    """`true` or `false`, in any case."""
    folded = text.strip().lower()
    if folded not in {"true", "false"}:
        raise ValueError("expected true or false")
    return folded == "true"


def parse_interval_ms(text: str) -> int:
    """Milliseconds of an interval such as `interval 1 week` or `2 days 12 hours`.

    Months and years have no fixed length and are refused, as in all Delta engines.

    Raises:
        ValueError: it is not an interval, or it is negative.
    """
    words = text.strip().lower().removeprefix("interval").strip()
    total_us = position = 0
    while position < len(words):
        part = _INTERVAL_PART.match(words, position)
        if part is None or (part[2] is not None and part[3] != "second"):
            raise ValueError("expected an interval such as 'interval 2 weeks'")
        if part[3] in {"month", "year"}:
            raise ValueError("expected an interval of weeks or less ('365 days' for a year)")
        if part[3] not in _UNIT_US:
            raise ValueError(f"expected units {', '.join(f'{unit}s' for unit in _UNIT_US)}")
        total_us += int(part[1]) * _UNIT_US[part[3]]
        fraction_us = int((part[2] or "").ljust(6, "0"))
        total_us += -fraction_us if part[1].startswith("-") else fraction_us
        position = part.end()
    if not words or total_us < 0:
        raise ValueError("expected an interval that is not negative, such as 'interval 2 weeks'")
    if total_us > _MOST_MICROSECONDS:  # of an interval of Spark
        raise ValueError(f"expected an interval of at most {_MOST_MICROSECONDS} microseconds")
    return total_us // 1_000


def parse_column_list(text: str) -> tuple[tuple[str, ...], ...]:
    """Column paths of a comma-separated list; backticks quote a name, a dot separates fields."""
    paths: list[tuple[str, ...]] = []
    path: list[str] = []
    position = 0
    while True:
        part = _COLUMN_PART.match(text, position)
        if part is None:
            raise ValueError("expected column names separated by commas")
        path.append(part[2] if part[1] is None else part[1].replace("``", "`"))
        position = part.end()
        if part[3] != ".":
            paths.append(tuple(path))
            path = []
        if not part[3]:
            return tuple(paths)


def parse_whole(least: int, most: int = 2**63 - 1) -> Callable[[str], int]:
    """An integer of `least` to `most`; without `most`, the highest that 64 bits hold."""
    upwards = f"{least} or more" if most == 2**63 - 1 else f"{least} to {most}"

    def parse(text: str) -> int:
        is_number = re.fullmatch(r"\s*[+-]?\d{1,40}\s*", text, re.ASCII)
        if not is_number or not least <= int(text) <= most:
            raise ValueError(f"expected a whole number of {upwards}")
        return int(text)

    return parse


def parse_ratio(text: str) -> float:
    """A number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError("expected a number from 0 to 1")
    return number


def parse_bytes(text: str) -> int:
    """A number of bytes, or a size such as `128mb`."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)i?b?\s*", text.lower(), re.ASCII)
    if match is None or int(match[1]) == 0:
        raise ValueError("expected a size such as 134217728 or 128mb")
    size = int(match[1]) << (10 * " kmgt".index(match[2] or " "))
    if size > _MOST_BYTES:
        raise ValueError(f"expected a size of at most {_MOST_BYTES} bytes")
    return size


def parse_one_of(*words: str) -> Callable[[str], str]:
    """One of some words, in any case; the result is spelled as in `words`."""
    by_folded = {word.lower(): word for word in words}

    def parse(text: str) -> str:
        found = by_folded.get(text.strip().lower())
        if found is None:
            raise ValueError(f"expected one of {', '.join(words)}")
        return found

    return parse


def parse_names(text: str) -> tuple[str, ...]:
    """Names separated by commas, in lower case."""
    return tuple(part.strip().lower() for part in text.split(",") if part.strip())


def parse_text(text: str) -> str:
    """Any text."""
    return text


def parse_auto_compact(text: str) -> bool:
    """A boolean; Databricks also writes `auto` and the older `legacy`, which both mean true."""
    return text.strip().lower() in {"auto", "legacy"} or parse_boolean(text)
