"""A shared table as a `Store`: a small log in memory, and data files behind signed URLs.

Owns ranged reads over HTTP and what their refusals mean. It is the seam by which snapshots, scans
and change feeds read a shared table as any other. Nothing can be written.

Protocol: File (`url`), API Response Format in Delta
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
from collections import OrderedDict
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, Protocol, TypeVar

from deltalog.errors import (
    AccessDeniedError,
    DeltaError,
    ObjectNotFoundError,
    SharingUnavailableError,
    StorageError,
)
from deltalog.log.names import LOG_DIRECTORY
from deltalog.paths import FileInfo
from deltalog.sharing.client.bridge import run, start
from deltalog.sharing.client.http import Reply, Request
from deltalog.sharing.client.retry import is_passing
from deltalog.storage.ranged_file import open_ranged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from deltalog.sharing.client.http import Http
    from deltalog.sharing.client.urls import Urls
    from deltalog.storage.store import ByteRange

_PART_BYTES: Final = 8 << 20


_T = TypeVar("_T", covariant=True)  # noqa: PLC0105  # one for the protocol and its user


class _Reading(Protocol[_T]):
    """One way of reading a file by its URL."""

    async def read(self, http: Http, request: Request) -> _T:
        """What is there."""
        ...


class _Held:
    """The last small files that were fetched whole: their footer is read, then their columns."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._files: OrderedDict[tuple[int, str], bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[int, str]) -> bytes | None:
        """What is held, if it still is."""
        with self._lock:
            return self._files.get(key)

    def put(self, key: tuple[int, str], data: bytes) -> bytes:
        """Hold a file; the oldest ones go."""
        with self._lock:
            self._size += len(data) - len(self._files.pop(key, b""))
            self._files[key] = data
            while self._size > self._most_bytes:
                self._size -= len(self._files.popitem(last=False)[1])
        return data


_HELD: Final = _Held(64 << 20)


class SharedStore:
    """The files of one answer of a sharing server.

    Args:
        root: the table, for messages.
        http: the connections.
        urls: of data files and deletion vectors.
        log: files of the log by path, with their times.
    """

    def __init__(
        self,
        root: str,
        http: Http,
        urls: Urls,
        log: Mapping[str, tuple[bytes, int]],
    ) -> None:
        self._root = root
        self._http = http
        self._urls = urls
        self._log = log
        self._whole: str | None = None
        self._coming: Future[bytes] | None = None

    @property
    def root(self) -> str:
        """The table, for messages and absolute paths."""
        return self._root

    def only(self, paths: Sequence[str], *, whole: bool = False) -> SharedStore:
        """Some data files alone: little goes along when it is pickled.

        Args:
            paths: of the files; the first one is read most.
            whole: fetch all of the first one at once, and hold it for a while.
        """
        found = SharedStore(self._root, self._http, self._urls.only(paths), {})
        found._whole = paths[0] if whole else None
        return found

    def log_info(self, path: str) -> FileInfo:
        """Size and time of a file of the log."""
        data, modified_ms = self._log[path]
        return FileInfo(path, len(data), modified_ms)

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """The files of the log; a server lists no data files."""
        if directory != LOG_DIRECTORY:
            return iter(())
        found = sorted(path for path in self._log if path.rpartition("/")[2] >= first)
        return map(self.log_info, found)

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """As `list_from`."""
        return self.list_from(directory, "")

    def stat(self, path: str) -> FileInfo:
        """Size of one file; of data files the time is not known."""
        if path in self._log:
            return self.log_info(path)
        return FileInfo(path, self._at(path, _Size()), 0)

    def read(self, path: str) -> bytes:
        """The whole file."""
        if path in self._log:
            return self._log[path][0]
        return self._at(path, _Whole())

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file, `[start, end)` each, in the order asked; sent together."""
        if path in self._log:
            data = self._log[path][0]
            return [data[start:end] for start, end in ranges]
        if path == self._whole:
            key = self._urls.number, path
            data = _HELD.get(key) or _HELD.put(key, self._arrived() or self.read(path))
            return [data[start:end] for start, end in ranges]
        return self._at(path, _Ranges(ranges))

    def fetch_ahead(self) -> None:
        """Begin to fetch the file that is fetched whole, if there is one."""
        if self._whole is not None and _HELD.get((self._urls.number, self._whole)) is None:
            request = self._ask(self._whole, self._urls.url(self._whole))
            self._coming = start(_Whole().read(self._http, request))

    def forget_ahead(self) -> None:
        """Nobody will read what was begun."""
        if self._coming is not None:
            self._coming.cancel()

    def _arrived(self) -> bytes | None:
        """What was begun to be fetched; None if it was not, or its URL has ended meanwhile."""
        coming, self._coming = self._coming, None
        if coming is not None:
            with contextlib.suppress(
                DeltaError, CancelledError
            ):  # asked for once more, it says why
                return coming.result()
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_coming": None}

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Whole files, in the order asked."""
        return [self.read(path) for path in paths]

    def open(self, path: str) -> BinaryIO:
        """A seekable file for reading."""
        if path in self._log:
            return io.BytesIO(self._log[path][0])
        return open_ranged(self, path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Refused."""
        del data
        self._refuse_to_write(path)

    def put(self, path: str, data: bytes) -> None:
        """Refused."""
        del data
        self._refuse_to_write(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Refused."""
        self._refuse_to_write(", ".join(paths[:1]))

    def _refuse_to_write(self, path: str) -> NoReturn:
        raise StorageError(f"cannot change {path!r} of {self._root}: shared tables are read only")

    def _at(self, path: str, reading: _Reading[_T]) -> _T:
        """What is read at the path's URL, or at a new one if that was refused."""
        url = self._urls.url(path)
        try:
            return run(reading.read, self._http, self._ask(path, url))
        except AccessDeniedError:
            renewed = self._urls.renew(path, url)
            if renewed == url:
                raise
        return run(reading.read, self._http, self._ask(path, renewed))

    def _ask(self, path: str, url: str) -> Request:
        # A compressed answer to a range would be a range of something else.
        return Request(
            what=f"read {path!r} of {self._root}", url=url, headers={"Accept-Encoding": "identity"}
        )

    def __repr__(self) -> str:
        return f"SharedStore({self._root!r})"


@dataclass(frozen=True, slots=True)
class _Whole:
    """All bytes."""

    async def read(self, http: Http, request: Request) -> bytes:
        return await http.fetch(request, Reply.read, _refused(request))


@dataclass(frozen=True, slots=True)
class _Size:
    """The length, by way of one byte: signed URLs are good for GET alone."""

    async def read(self, http: Http, request: Request) -> int:
        async def size(reply: Reply) -> int:
            data = await reply.read()
            total = reply.headers.get("Content-Range", "").rpartition("/")[2]
            return int(total) if total.isdecimal() else len(data)

        return await http.fetch(_ranged(request, 0, 1), size, _refused(request))


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Parts, all at the same time; long ones in several pieces."""

    ranges: Sequence[ByteRange]

    async def read(self, http: Http, request: Request) -> list[bytes]:
        async def part(start: int, end: int) -> bytes:
            starts = range(start, end, _PART_BYTES)
            if len(starts) == 1:
                return await _fetch_range(http, request, start, end)
            pieces = [_fetch_range(http, request, at, min(at + _PART_BYTES, end)) for at in starts]
            return b"".join(await asyncio.gather(*pieces))

        return list(await asyncio.gather(*(part(start, end) for start, end in self.ranges)))


async def _fetch_range(http: Http, request: Request, start: int, end: int) -> bytes:
    async def read(reply: Reply) -> bytes:
        data = await reply.read()
        # A server that knows no ranges sends everything.
        return data if reply.status == 206 else data[start:end]

    try:
        return await http.fetch(_ranged(request, start, end), read, _refused(request))
    except _BeyondEndError:
        return b""


def _ranged(request: Request, start: int, end: int) -> Request:
    headers = {**request.headers, "Range": f"bytes={start}-{end - 1}"}
    return replace(request, headers=headers)


class _BeyondEndError(DeltaError):
    """The file ends before the range begins."""


def _refused(request: Request) -> Callable[[int, Mapping[str, str], bytes], DeltaError]:
    def refuse(status: int, headers: Mapping[str, str], body: bytes) -> DeltaError:
        del headers, body  # what a store says of a signed URL may hold parts of it
        text = f"cannot {request.what}: its store answered {status}"
        match status:
            case 404:
                return ObjectNotFoundError(text)
            case 400 | 401 | 403 | 410:
                return AccessDeniedError(f"{text}; the signed URL may have ended")
            case 416:
                return _BeyondEndError(text)
        if is_passing(status):
            return SharingUnavailableError(text, status=status)
        return StorageError(text)

    return refuse
