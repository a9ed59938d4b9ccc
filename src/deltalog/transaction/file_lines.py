"""`add` and `remove` lines for existing files, made from Arrow rows a batch at a time.

Paths are written as they stand in the log (encoded).

Protocol: Add File and Remove File
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps
from deltalog.actions.arrow import FILE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_ROWS_TOGETHER: Final = 8192
_REMOVED_COLUMNS: Final = (
    "path",
    "partitionValues",
    "size",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
)
_MAPS: Final = ("partitionValues", "tags")


def add_lines(files: pa.Table) -> Iterator[bytes]:
    """Yield the `add` lines of rows with `FILE_SCHEMA`."""
    for rows in _batches(files.select(FILE_SCHEMA.names)):
        yield b"".join(dumps({"add": row}) + b"\n" for row in rows)


def remove_lines(
    files: pa.Table, *, data_change: bool, deletion_timestamp_ms: int
) -> Iterator[bytes]:
    """Yield the `remove` lines of live files, without their statistics.

    Args:
        files: rows with at least path, partitionValues, size, tags, deletionVector, baseRowId and
            defaultRowCommitVersion of `FILE_SCHEMA`.
        data_change: whether the table loses rows by it.
        deletion_timestamp_ms: milliseconds since 1970, UTC.
    """
    common = {
        "deletionTimestamp": deletion_timestamp_ms,
        "dataChange": data_change,
        "extendedFileMetadata": True,
    }
    for rows in _batches(files.select(list(_REMOVED_COLUMNS))):
        yield b"".join(
            dumps({"remove": {"path": row.pop("path"), **common, **row}}) + b"\n" for row in rows
        )


def _batches(files: pa.Table) -> Iterator[list[dict[str, Any]]]:
    for batch in files.to_batches(max_chunksize=_ROWS_TOGETHER):
        yield [_present(row) for row in batch.to_pylist()]


def _present(row: dict[str, Any]) -> dict[str, Any]:
    """The row as a JSON action: maps become objects, nulls are left out."""
    found = {name: value for name, value in row.items() if value is not None}
    for name in _MAPS:
        if name in found:
            found[name] = dict(found[name])
    vector = found.get("deletionVector")
    if vector is not None:
        found["deletionVector"] = {
            name: value for name, value in vector.items() if value is not None
        }
    return found
