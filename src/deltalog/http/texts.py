"""Texts that are shown to people: what servers say, and where things lie.

Owns that no text of a server moves a terminal's cursor or looks like a line of its own, and that no
location shows the secrets that people write into URLs.
"""

from __future__ import annotations

import re
from typing import Final

from deltalog.storage.faults import redact

_MOST_CHARACTERS: Final = 2000
# `user:password@`, in which the secret may hold slashes, as those of S3 do; then a name alone.
_LOGINS: Final = (
    (re.compile(r"(://)[^/\s:@#?]*:[^\s@#?]*@"), r"\1***@"),
    (re.compile(r"(://)[^/\s@#?]+@"), r"\1***@"),
)
# Signatures and tokens have many names.
_QUERY: Final = re.compile(r"(://[^\s?#'\"]*\?)[^\s#'\"]+")


def printable(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Return what a server said on one line, without control characters and marks of direction."""
    return "".join(one if one.isprintable() else " " for one in text[:most]).strip()


def shown_location(location: str) -> str:
    """Return a path or URL without logins, keys and parameters, on one line."""
    for pattern, shown in _LOGINS:
        location = pattern.sub(shown, location)
    return printable(redact(_QUERY.sub(r"\1***", location)))
