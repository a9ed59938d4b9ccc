"""Escape strings from tables, so that they cannot control a terminal or reorder a line.

Writers choose the names, comments, values and commit information of a table, so a log may contain
any character. This module decides which characters are printed unchanged.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from deltalog.errors import CONTROLS, printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["name_key", "path_key", "printable", "printable_json", "printable_lines"]


def printable_json(text: str) -> str:
    r"""Return equivalent JSON in which control characters are written as `\u` escapes."""
    if text.isprintable():
        return text
    return "".join(
        _json_escape(letter) if unicodedata.category(letter) in CONTROLS else letter
        for letter in text
    )


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    pairs = (units[place : place + 2].hex() for place in range(0, len(units), 2))
    return "".join(f"\\u{pair}" for pair in pairs)


# --- Comparison of names without regard to case


def name_key(name: str) -> str:
    """Return a key that is equal for names that differ only in case.

    Pass a single name, not several names joined by dots, because the lower case of Σ depends on the
    adjacent letters.
    """
    return name.lower()


def path_key(path: Iterable[str]) -> tuple[str, ...]:
    """Return a key that is equal for paths whose names differ only in case."""
    return tuple(map(name_key, path))
