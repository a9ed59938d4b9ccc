"""Field ids of Parquet columns, which Arrow keeps as a text in the metadata of a field.

A file can have any text there: it also stores an Arrow schema of its own, which Arrow reads after
the ids of Parquet.

Protocol: Writer Requirements for Column Mapping
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

PARQUET_FIELD_ID: Final = "PARQUET:field_id"
"""The key of the text."""
_KEY: Final = PARQUET_FIELD_ID.encode()
_MOST_DIGITS: Final = 10  # of a Parquet id, which has 32 bits


def parquet_field_id(field: pa.Field[Any]) -> int | None:
    """Return the id that a file has for a column; None if there is none, or it is no number."""
    text = (field.metadata or {}).get(_KEY, b"")
    return int(text) if text.isdigit() and len(text) <= _MOST_DIGITS else None


def parquet_id_metadata(number: int | None) -> dict[str, str] | None:
    """Return the metadata of an Arrow field whose column gets an id; None is no id."""
    return None if number is None else {PARQUET_FIELD_ID: str(number)}
