"""A shared table as a `Store`: a small log in memory, and data files behind signed URLs.

This module sends range requests over HTTP and raises the errors of refused requests. Snapshots,
scans and change feeds read a shared table through this store, like any other table. It is
read-only.

Protocol: File (`url`), API Response Format in Delta
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import threading
from collections import OrderedDict
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, TypeVar

from deltalog._util.paths import LOG_DIRECTORY, FileInfo
from deltalog.errors import (
    AccessDeniedError,
    DeltaError,
    ObjectNotFoundError,
    SharingAccessError,
    SharingError,
    SharingUnavailableError,
    StorageError,
)
from deltalog.sharing.client.answers import TableAnswer, fetch_changes, fetch_file_list
from deltalog.sharing.wire.requests import ChangesQuery, TableQuery
from deltalog.storage.http.client import Http, Request, is_retryable, run, start
from deltalog.storage.http.replies import Reply
from deltalog.storage.stores.fsspec_files import open_ranged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.wire.lines import Table
    from deltalog.storage.store import ByteRange

T = TypeVar("T")

_PIECE_BYTES: Final = 8 << 20


class _RecentFiles:
    """Cache of small whole files: readers first need the footer of a file, then its columns."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._files: OrderedDict[tuple[int, str], bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[int, str]) -> bytes | None:
        """Return a file, or None if it is no longer cached."""
        with self._lock:
            return self._files.get(key)

    def put(self, key: tuple[int, str], data: bytes) -> bytes:
        """Cache a file, and drop the oldest files if the cache is full."""
        with self._lock:
            self._size += len(data) - len(self._files.pop(key, b""))
            self._files[key] = data
            while self._size > self._most_bytes:
                self._size -= len(self._files.popitem(last=False)[1])
        return data


# All stores share this cache, because each task of a scan has its own store.
_RECENT: Final = _RecentFiles(64 << 20)


class SharedStore:
    """The files of one answer of a sharing server.

    Args:
        root: the URI of the table, for error messages.
        http: the HTTP connections.
        urls: URLs of data files and deletion vectors.
        log: content and time (in milliseconds) of the log files, by path.
    """

    def __init__(
        self,
        root: str,
        http: Http,
        urls: UrlBook,
        log: Mapping[str, tuple[bytes, int]],
    ) -> None:
        self._root = root
        self._http = http
        self._urls = urls
        self._log = log
        self._paths: Sequence[str] | None = None
        self._whole: str | None = None
        self._prefetch: Future[bytes] | None = None

    @property
    def root(self) -> str:
        """Return the URI of the table, for error messages and absolute paths."""
        return self._root

    def only(self, paths: Sequence[str], *, whole: bool = False) -> SharedStore:
        """Return a store of some data files; its pickle contains only their URLs.

        Args:
            paths: the paths of the files: the data file first, then its deletion vectors.
            whole: whether to fetch the whole data file with one request, and cache it.
        """
        found = SharedStore(self._root, self._http, self._urls, {})
        found._paths = paths
        found._whole = paths[0] if whole else None
        return found

    def __getstate__(self) -> dict[str, Any]:
        urls = self._urls if self._paths is None else self._urls.part(self._paths)
        return {**self.__dict__, "_urls": urls, "_prefetch": None}

    def log_info(self, path: str) -> FileInfo:
        """Return size and time of a log file."""
        data, modified_ms = self._log[path]
        return FileInfo(path, len(data), modified_ms)

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """Return log files; data files cannot be listed."""
        if directory != LOG_DIRECTORY:
            return iter(())
        found = sorted(path for path in self._log if path.rpartition("/")[2] >= first)
        return map(self.log_info, found)

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """Return all log files."""
        return self.list_from(directory, "")

    def stat(self, path: str) -> FileInfo:
        """Return the size of one file; the time of a data file is unknown."""
        if path in self._log:
            return self.log_info(path)
        return FileInfo(path, self._fetch(path, _fetch_size), 0)

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        if path in self._log:
            return self._log[path][0]
        return self._fetch(path, _fetch_all)

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the requested ranges `[start, end)` of a file, fetched concurrently."""
        if path in self._log:
            data = self._log[path][0]
        elif path == self._whole:
            key = self._urls.number, path
            data = _RECENT.get(key) or _RECENT.put(key, self._prefetched() or self.read(path))
        else:
            return self._fetch(path, partial(_fetch_ranges, ranges))
        return [data[start:end] for start, end in ranges]

    def fetches_whole(self, path: str) -> bool:
        """Return whether a request for a range of the file fetches the whole file."""
        return path == self._whole

    def start_prefetch(self) -> None:
        """Start fetching the file if it was selected by `only` with `whole`."""
        if self._whole is not None and _RECENT.get((self._urls.number, self._whole)) is None:
            request = self._request(self._whole, self._urls.url(self._whole))
            self._prefetch = start(_fetch_all(self._http, request))

    def cancel_prefetch(self) -> None:
        """Cancel the request that `start_prefetch` started."""
        if self._prefetch is not None:
            self._prefetch.cancel()

    def _prefetched(self) -> bytes | None:
        """Return the prefetched file; None if no file was prefetched, or if its URL has expired."""
        prefetch, self._prefetch = self._prefetch, None
        if prefetch is not None:
            # Ignore the error of the prefetch. The caller then sends its own request and reports
            # its error.
            with contextlib.suppress(DeltaError, CancelledError):
                return prefetch.result()
        return None

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Return whole files, in the requested order."""
        return [self.read(path) for path in paths]

    def open(self, path: str) -> BinaryIO:
        """Return a seekable file for reading."""
        if path in self._log:
            return io.BytesIO(self._log[path][0])
        return open_ranged(self, path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Raise `StorageError`: a shared table is read-only."""
        del data
        self._refuse_to_write(path)

    def put(self, path: str, data: bytes) -> None:
        """Raise `StorageError`: a shared table is read-only."""
        del data
        self._refuse_to_write(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Raise `StorageError`: a shared table is read-only."""
        self._refuse_to_write(", ".join(paths[:1]))

    def _refuse_to_write(self, path: str) -> NoReturn:
        raise StorageError(f"cannot change {path!r} of {self._root}: shared tables are read-only")

    def _fetch(self, path: str, fetch: Callable[[Http, Request], Awaitable[T]]) -> T:
        """Fetch from a file's URL; if the URL is refused, request a new URL and try again."""
        url = self._urls.url(path)
        try:
            return run(fetch, self._http, self._request(path, url))
        except AccessDeniedError:
            renewed = self._urls.renew(path, url)
            if renewed == url:
                raise
        return run(fetch, self._http, self._request(path, renewed))

    def _request(self, path: str, url: str) -> Request:
        # Request the file without compression. Otherwise, ranges would refer to compressed bytes.
        return Request(
            what=f"read {path!r} of {self._root}",
            url=url,
            headers={"Accept-Encoding": "identity"},
            named_by=self._urls.endpoint,
        )

    def __repr__(self) -> str:
        return f"SharedStore({self._root!r})"


async def _fetch_all(http: Http, request: Request) -> bytes:
    return await _fetch(http, request, Reply.read_file)


async def _fetch(http: Http, request: Request, read: Callable[[Reply], Awaitable[T]]) -> T:
    return await http.fetch(request, read, _error_maker(request), http.budget(for_file=True))


async def _fetch_size(http: Http, request: Request) -> int:
    """Return the length of a file from a GET of one byte, because URLs are not signed for HEAD."""

    async def read(reply: Reply) -> int:
        total = reply.headers.get("Content-Range", "").rpartition("/")[2]
        if _is_size(total):
            await reply.read_start(1)
            return int(total)
        async for _ in reply.pieces():
            pass  # a server that does not support ranges sends the whole file
        return reply.num_bytes

    return await _fetch(http, _ranged(request, 0, 1), read)


async def _fetch_ranges(ranges: Sequence[ByteRange], http: Http, request: Request) -> list[bytes]:
    """Return ranges of a file, fetched concurrently; long ranges are split."""

    async def fetch(start: int, end: int) -> bytes:
        starts = range(start, end, _PIECE_BYTES)
        if len(starts) == 1:
            return await _fetch_range(http, request, start, end)
        pieces = [_fetch_range(http, request, at, min(at + _PIECE_BYTES, end)) for at in starts]
        return b"".join(await asyncio.gather(*pieces))

    return list(await asyncio.gather(*(fetch(start, end) for start, end in ranges)))


async def _fetch_range(http: Http, request: Request, start: int, end: int) -> bytes:
    async def read(reply: Reply) -> bytes:
        if reply.status == 206:
            return await reply.read_start(end - start)
        # A server that does not support ranges sends the whole file.
        return (await reply.read_start(end))[start:]

    try:
        return await _fetch(http, _ranged(request, start, end), read)
    except _BeyondEndError:
        return b""


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def _ranged(request: Request, start: int, end: int) -> Request:
    headers = {**request.headers, "Range": f"bytes={start}-{end - 1}"}
    return replace(request, headers=headers)


class _BeyondEndError(DeltaError):
    """The requested range begins after the end of the file."""


def _error_maker(request: Request) -> Callable[[int, Mapping[str, str], bytes], DeltaError]:
    def make_error(status: int, headers: Mapping[str, str], body: bytes) -> DeltaError:
        del headers, body  # the body may contain parts of the signed URL
        text = f"cannot {request.what}: its store answered {status}"
        match status:
            case 404:
                return ObjectNotFoundError(text)
            case 400 | 401 | 403 | 410:
                return AccessDeniedError(f"{text}; the signed URL may have expired")
            case 416:
                return _BeyondEndError(text)
        if is_retryable(status):
            return SharingUnavailableError(text, status=status)
        return StorageError(text)

    return make_error


# --- Signed URLs of a table's files, and their renewal


_MARGIN_MS: Final = 60_000
_NUMBERS: Final = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuery:
    """A query that was answered and can be sent again.

    Args:
        version: the version of the answer.
        refresh_token: the token in the answer.
    """

    rest: AsyncRestClient
    table: Table
    query: TableQuery | ChangesQuery
    version: int
    refresh_token: str | None = None

    def answers(self) -> Iterator[TableAnswer]:
        """Send the query again in several forms, and yield each answer, which has new URLs.

        Raises:
            SharingError: the server refused all queries.
        """
        queries = list(self._queries())
        for number, query in enumerate(queries):
            try:
                if isinstance(query, TableQuery) and query.starting_version is None:
                    yield run(fetch_file_list, self.rest, self.table, query)
                else:
                    yield run(fetch_changes, self.rest, self.table, query)
            except SharingAccessError:
                raise
            except SharingError:
                if number == len(queries) - 1:
                    raise

    def _queries(self) -> Iterator[TableQuery | ChangesQuery]:
        query = self.query
        if isinstance(query, TableQuery) and query.starting_version is None:
            if self.refresh_token is not None:
                yield replace(query, refresh_token=self.refresh_token)
            if query.version is None:
                # If the server shares history, this query returns the same files even after newer
                # commits.
                yield replace(
                    query, version=self.version, timestamp_ms=None, include_refresh_token=False
                )
        yield query


class UrlBook:
    """The signed URLs of one answer; safe to use from several threads.

    Attributes:
        number: the number of the answer, unique in this process.

    Args:
        query: the answered query.
        urls: signed URLs by path.
        expires_ms: when the first URL expires; None if unknown.
    """

    def __init__(self, query: AnsweredQuery, urls: dict[str, str], expires_ms: int | None) -> None:
        self.number: int = next(_NUMBERS)
        self._query = query
        self._urls = urls
        self._lock = threading.Lock()
        self._set_expiry(expires_ms)

    @property
    def endpoint(self) -> str:
        """Return the URL of the server that listed the files."""
        return self._query.rest.profile.endpoint

    def url(self, path: str) -> str:
        """Return the URL of a file; request new URLs first if the URL expires soon.

        Raises:
            ObjectNotFoundError: the server has sent no URL for this path.
        """
        url = self._known(path)
        if self._is_expiring():
            with self._lock:
                if self._is_expiring():
                    self._request_again(path)
            url = self._known(path)
        return url

    def renew(self, path: str, refused: str) -> str:
        """Return a new URL for a file whose URL was refused; the old URL if there is no new one."""
        with self._lock:
            if self._urls.get(path) == refused:
                self._request_again(path)
        return self._known(path)

    def part(self, paths: Iterable[str]) -> UrlBook:
        """Return a `UrlBook` with the URLs of some paths."""
        some = {path: self._urls[path] for path in paths if path in self._urls}
        return UrlBook(self._query, some, self._expires_ms)

    def __reduce__(self) -> tuple[Any, ...]:
        return UrlBook, (self._query, self._urls, self._expires_ms)

    def _set_expiry(self, expires_ms: int | None) -> None:
        now = self._query.rest.clock.now_ms()
        self._expires_ms = expires_ms
        # Renew URLs one minute before they expire. If they expire in less than five minutes, renew
        # them after four fifths of that time.
        self._renew_at_ms = (
            None if expires_ms is None else expires_ms - min(_MARGIN_MS, (expires_ms - now) // 5)
        )

    def _is_expiring(self) -> bool:
        time_ms = self._renew_at_ms
        return time_ms is not None and self._query.rest.clock.now_ms() >= time_ms

    def _known(self, path: str) -> str:
        url = self._urls.get(path)
        if url is None:
            raise ObjectNotFoundError(
                f"cannot read {path!r} of shared table {self._query.table.full_name}: the server "
                "sent no URL for it"
            )
        return url

    def _request_again(self, path: str) -> None:
        """Request new URLs, and use those of the first answer that still contains the file."""
        for answer in self._query.answers():
            # The path is made from the file's id, which is the same in every response.
            known = {name: url for name, url in answer.urls.items() if name in self._urls}
            if path in known:
                self._urls = {**self._urls, **known}
                self._set_expiry(answer.expires_ms)
                if answer.refresh_token is not None:
                    self._query = replace(self._query, refresh_token=answer.refresh_token)
                return
        self._renew_at_ms = None  # no answer contains the file: do not renew again
