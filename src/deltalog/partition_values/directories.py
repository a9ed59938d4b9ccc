"""Hive-style directories, `a=1/b=x`.

The protocol reads nothing from them; they are kept as other engines name them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"

# What Hive escapes, so that other engines give the same paths.
_ESCAPED: Final = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")


def escape_directory(text: str) -> str:
    """Return a column name or partition value as part of a directory's name."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def hive_directory(columns: Sequence[str], values: Mapping[str, str | None]) -> str:
    """Return the directory of a partition, `a=1/b=x`, not yet encoded as a URI.

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
    """Return the partition columns and serialised values that a directory's name holds.

    Parts without `=` hold none.
    """
    values: dict[str, str | None] = {}
    for part in directory.split("/"):
        name, equals, text = part.partition("=")
        if equals and name:
            values[unquote(name)] = None if text in {"", NULL_DIRECTORY} else unquote(text)
    return values
