"""Requests that go past fsspec's own methods, and what file systems tell about files.

fsspec can neither begin a listing at a name nor delete many objects of S3 by exact names with one
request; the clients below it can.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError
from deltalog.paths import FileInfo

if TYPE_CHECKING:
    from collections.abc import Sequence


def is_s3fs(filesystem: Any) -> bool:
    """Whether a file system is s3fs, or has its methods."""
    return hasattr(filesystem, "call_s3")


def list_s3(filesystem: Any, directory: str, first: str) -> list[FileInfo]:
    """A listing that starts near `first`: s3fs itself would list the whole directory.

    Cost: one request per 1,000 names from `first` on.
    """
    bucket, _, key = directory.partition("/")
    prefix = f"{key}/" if key else ""
    # `StartAfter` leaves out the name itself, so it gets a text that sorts before it.
    query = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/", **filesystem.req_kw}
    if first:
        query["StartAfter"] = prefix + first[:-1]
    found: list[FileInfo] = []
    while True:
        page = filesystem.call_s3("list_objects_v2", **query)
        for entry in page.get("Contents", []):
            name = entry["Key"][len(prefix) :]
            if name and name >= first:
                moment = milliseconds(entry["LastModified"])
                found.append(FileInfo(name, int(entry["Size"]), moment))
        if not page.get("NextContinuationToken"):
            return found
        query["ContinuationToken"] = page["NextContinuationToken"]


def list_google(filesystem: Any, directory: str, first: str) -> list[FileInfo]:
    """A listing that starts at `first`: gcsfs itself would list the whole directory.

    Cost: one request per 1,000 names from `first` on.
    """
    bucket, _, key = directory.partition("/")
    prefix = f"{key}/" if key else ""
    query = {"prefix": prefix, "delimiter": "/", "startOffset": prefix + first}
    found: list[FileInfo] = []
    while True:
        page = filesystem.call("GET", "b/{}/o", bucket, json_out=True, **query)
        for entry in page.get("items", []):
            name = entry["name"][len(prefix) :]
            if name:
                found.append(FileInfo(name, int(entry["size"]), milliseconds(entry["updated"])))
        if not page.get("nextPageToken"):
            return found
        query["pageToken"] = page["nextPageToken"]


def delete_s3(filesystem: Any, paths: Sequence[str]) -> None:
    """Delete up to 1,000 objects of one bucket with one request."""
    keys = [{"Key": path.partition("/")[2]} for path in paths]
    answer = filesystem.call_s3(
        "delete_objects",
        Bucket=paths[0].partition("/")[0],
        Delete={"Objects": keys, "Quiet": True},
    )
    for failure in answer.get("Errors", []):
        if failure.get("Code") not in {"NoSuchKey", "NoSuchVersion"}:
            kind = PermissionError if failure.get("Code") == "AccessDenied" else OSError
            raise kind(f"{failure.get('Key')}: {failure.get('Code')}: {failure.get('Message')}")


def milliseconds(moment: object) -> int:
    """What file systems tell as a time: a datetime, seconds, or a text of RFC 3339."""
    match moment:
        case None:
            return 0
        case datetime():
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1000)
        case int() | float():
            return round(moment * 1000)
        case str():
            return milliseconds(datetime.fromisoformat(moment))
        case _:
            raise InvalidInputError(f"expected a time of a file, found {moment!r}")
