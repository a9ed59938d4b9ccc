"""What codecs ask of a text or a value before they convert it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltalog.kernels import compute


def check_match(texts: pa.StringArray, pattern: str) -> None:
    """Refuse texts of which one does not match as a whole; NULL does.

    Raises:
        ValueError: one does not.
    """
    if not all_match(texts, pattern):
        raise ValueError(f"expected {pattern}")


def all_match(texts: pa.StringArray, pattern: str) -> bool:
    """Return whether every text that is not NULL matches as a whole."""
    matches = compute.all(compute.match_substring_regex(texts, f"^(?:{pattern})$"))
    return matches.as_py() is True


def check_kind(value: Any, kind: type | tuple[type, ...]) -> None:
    """Refuse a Python value of another class; True and False are no numbers.

    Raises:
        TypeError: it is of another class.
    """
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"found a {type(value).__name__}")
