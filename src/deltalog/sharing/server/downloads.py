"""Downloads of whole files or ranges, through URLs that this server has signed.

This module handles ranges and conditional requests. It also checks that a file is in the table's
directory (after following links) and not in the log.

Protocol: RFC 9110 (Range, If-Range, If-None-Match)
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final
from weakref import finalize

from deltalog._util.paths import encode_path
from deltalog.errors import UnsafePathError
from deltalog.sharing.server.faults import Fault, not_found
from deltalog.sharing.server.file_lines import path_in_table
from deltalog.sharing.wire.requests import INVALID_PARAMETER
from deltalog.storage import NativeStore, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_PIECE_BYTES: Final = 1 << 20
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True)
class Download:
    """The response to a download.

    Args:
        status: 200, 206 or 304.
        headers: headers that describe the body.
        chunks: the body.
    """

    status: int
    headers: dict[str, str]
    chunks: Iterator[bytes]


def check_inside(store: Store, path: str) -> None:
    """Raise unless a path is a data file of the table, after following links (SHARE-SEC-02).

    Raises:
        Fault: 404 for any other path.
    """
    try:
        path_in_table(encode_path(path), store.root)
    except UnsafePathError:
        raise not_found("file") from None
    if not isinstance(store, NativeStore):
        return
    native, root = store.native_path(path), store.native_path("")
    if native is None or root is None:
        return
    if not Path(native).resolve().is_relative_to(Path(root).resolve()):
        raise not_found("file")


def download(
    store: Store, path: str, headers: Mapping[str, str], *, with_body: bool = True
) -> Download:
    """Return a file, or the requested range of it.

    Args:
        store: store of the file.
        path: decoded path of the file.
        headers: headers of the request, with names in lower case.
        with_body: whether to send the body; False for HEAD.

    Raises:
        ObjectNotFoundError: the file does not exist.

    Cost: one request for the size, and one request for each mebibyte.
    """
    found = store.stat(path)

    def read(start: int, end: int) -> bytes:
        (piece,) = store.read_ranges(path, [(start, end)])
        return bytes(piece)

    return _response(headers, found.size_bytes, found.modified_ms, read, with_body=with_body)


def download_open(file: BinaryIO, headers: Mapping[str, str], *, with_body: bool) -> Download:
    """Return an open file, or the requested range of it; the file is closed after sending."""
    found = os.fstat(file.fileno())

    def read(start: int, end: int) -> bytes:
        file.seek(start)
        return file.read(end - start)

    modified_ms = found.st_mtime_ns // 10**6
    try:
        response = _response(headers, found.st_size, modified_ms, read, with_body=with_body)
    except Fault:
        file.close()
        raise
    chunks = _closing(file, response.chunks)
    # `_closing` does not close the file if the client disconnects before the first chunk.
    finalize(chunks, file.close)
    return replace(response, chunks=chunks)


def _closing(file: BinaryIO, chunks: Iterator[bytes]) -> Iterator[bytes]:
    with file:
        yield from chunks


def _response(
    headers: Mapping[str, str],
    size: int,
    modified_ms: int,
    read: Callable[[int, int], bytes],
    *,
    with_body: bool,
) -> Download:
    # The tag consists of the size and time of the file. It detects a replaced file, although the
    # files of a Delta table should never change.
    tag = f'"{size:x}-{modified_ms:x}"'
    common = {"Accept-Ranges": "bytes", "ETag": tag, "Cache-Control": "private, no-transform"}
    if tag in headers.get("if-none-match", ""):
        return Download(304, common, iter(()))
    span = _span(headers, tag, size)
    if span is None:
        whole = {**common, "Content-Length": str(size)}
        return Download(200, whole, _pieces(read, 0, size if with_body else 0))
    start, end = span
    if start >= end:
        raise Fault(
            416,
            INVALID_PARAMETER,
            "the range is outside of the file",
            {"Content-Range": f"bytes */{size}"},
        )
    part = {
        **common,
        "Content-Length": str(end - start),
        "Content-Range": f"bytes {start}-{end - 1}/{size}",
    }
    return Download(206, part, _pieces(read, start, end if with_body else start))


def _span(headers: Mapping[str, str], tag: str, size: int) -> tuple[int, int] | None:
    """Return the requested range; None means the whole file, also if the header is unsupported."""
    found = _RANGE.fullmatch(headers.get("range", "").strip())
    # RFC 9110: ignore a range of an unknown form, and a range whose `If-Range` header is not the
    # tag of the file.
    if found is None or headers.get("if-range", tag) != tag:
        return None
    first, last = found[1], found[2]
    if first:
        return int(first), min(int(last) + 1, size) if last else size
    if not last:
        return None
    return max(0, size - int(last)), size


def _pieces(read: Callable[[int, int], bytes], start: int, end: int) -> Iterator[bytes]:
    while start < end:
        stop = min(start + _PIECE_BYTES, end)
        piece = read(start, stop)
        if len(piece) != stop - start:
            raise OSError("the file became shorter during the download")
        yield piece
        start = stop


_LOG = logging.getLogger("deltalog.sharing")
