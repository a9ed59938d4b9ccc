"""The line of a file of a view, in queries and in the change data feed.

Protocol: File, Data Change Files, File in Delta Format
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog._json import dumps
from deltalog.sharing.wire.lines import encode_file_line

if TYPE_CHECKING:
    from deltalog.sharing.server.formats import ResponseFormat
    from deltalog.sharing.server.views import ViewFile


def encode_view_line(
    response_format: ResponseFormat,
    kind: str,
    file: ViewFile,
    *,
    url: str,
    expires_ms: int,
    change: dict[str, int] | None = None,
) -> bytes:
    """Return the line of a file of a view.

    Args:
        response_format: of the answer.
        kind: `file`, `add`, `cdf` or `remove`.
        file: whose name is its id.
        url: of the file.
        expires_ms: when the URL expires.
        change: `version` and `timestamp` of a change.
    """
    change = change or {}
    values: dict[str, Any] = {"partitionValues": {}, "size": file.size_bytes}
    if kind in {"file", "add"}:
        # Other statistics would be of rows that the view does not show.
        values["stats"] = dumps({"numRecords": file.num_rows}).decode()
    if response_format.is_delta:
        values["dataChange"] = kind != "cdf"
        if kind == "remove":
            values |= {"deletionTimestamp": change["timestamp"], "extendedFileMetadata": True}
        elif kind != "cdf":
            values["modificationTime"] = change.get("timestamp", 0)
    return encode_file_line(
        kind,
        is_delta=response_format.is_delta,
        file_id=file.name,
        url=url,
        values=values,
        change=change,
        expires_ms=expires_ms,
    )
