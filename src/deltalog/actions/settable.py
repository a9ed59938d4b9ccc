"""Checks of the table properties that a user sets.

Owns the spelling of keys, and which values are refused; `properties` lists the properties.

Protocol: Table Properties
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from deltalog.actions.properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    IGNORE_PROTOCOL_DEFAULTS,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    PROPERTIES,
    TableProperties,
)
from deltalog.errors import InvalidInputError, InvalidMetadataError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Keys of other engines and tools: deltalog stores them without checking them.
_OPEN_PREFIXES: Final = (
    "delta.universalFormat.",
    "delta.compatibility.",
    "delta.coordinatedCommits.",
    "delta.sharing.",
    "delta.workloadBasedColumns.",
)

PARQUET_CODECS: Final = (
    *("uncompressed", "none", "snappy", "gzip", "brotli", "lz4", "zstd", "lz4_raw"),
)
"""The compressions of data files that deltalog writes, by Spark's names."""

_BY_FOLDED: Final = {
    **{alias.lower(): found.key for found in PROPERTIES.values() for alias in found.aliases},
    **{key.lower(): key for key in PROPERTIES},
    **{
        key.lower(): key
        for key in (MIN_READER_VERSION, MIN_WRITER_VERSION, IGNORE_PROTOCOL_DEFAULTS)
    },
}


def canonical_key(key: str) -> str:
    """The key in its canonical spelling: known keys are case-insensitive (ledger D-38).

    A constraint's name becomes lower case, as in Spark (ledger CON-03); a key without the prefix
    `delta.` or `deltalog.` stays as it is.

    Raises:
        InvalidInputError: the key has such a prefix, but is unknown.
    """
    folded = key.lower()
    if (known := _BY_FOLDED.get(folded)) is not None:
        return known
    if folded.startswith(CONSTRAINT_PREFIX):
        return folded
    if folded.startswith(FEATURE_PREFIX):
        return FEATURE_PREFIX + key[len(FEATURE_PREFIX) :]
    if not folded.startswith(("delta.", "deltalog.")) or key.startswith(_OPEN_PREFIXES):
        return key
    close = difflib.get_close_matches(folded, _BY_FOLDED, n=1)
    hint = f"; did you mean {_BY_FOLDED[close[0]]!r}?" if close else ""
    raise InvalidInputError(f"there is no table property {key!r}{hint}")


def check_settable(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that a user sets, with canonical keys and checked values.

    Raises:
        InvalidInputError: a key is unknown or set by writers only, or a value is invalid.
    """
    checked: dict[str, str] = {}
    for key, text in properties.items():
        canonical = canonical_key(key)
        if canonical in checked:
            raise InvalidInputError(f"table property {canonical!r} is given twice")
        _check_value(canonical, text)
        checked[canonical] = text
    return checked


def _check_value(key: str, text: str) -> None:
    found = PROPERTIES.get(key)
    if found is None:
        if key in {MIN_READER_VERSION, MIN_WRITER_VERSION} and not text.strip().isdecimal():
            raise InvalidInputError(
                f"table property {key}: expected a whole number, found {text!r}"
            )
        return
    if not found.settable:
        raise InvalidInputError(f"table property {key} is set by writers themselves")
    try:
        value = found.value_of(text)
    except InvalidMetadataError as error:
        raise InvalidInputError(str(error)) from None
    if found is TableProperties.parquet_compression_codec and text.lower() not in PARQUET_CODECS:
        # Spark knows LZO too: a table may have it, but deltalog could not write rows any more.
        raise InvalidInputError(
            f"table property {key}: expected one of {', '.join(PARQUET_CODECS)}, found {text!r}"
        )
    if found is TableProperties.isolation_level and value != "Serializable":
        raise InvalidInputError(
            f"table property {key}: expected Serializable, found {text!r}; "
            "other levels are an argument of a transaction"
        )
