"""Signed URLs of a table's files, and new ones for those that have expired.

Owns when URLs are requested again: shortly before they expire, and when a store refuses one.

Protocol: Read Data from a Table (`refreshToken`, `expirationTimestamp`); ledger SHARE-CLI-03
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import ObjectNotFoundError, SharingAccessError, SharingError
from deltalog.http.client import run
from deltalog.sharing.client.answers import fetch_changes, fetch_file_list
from deltalog.sharing.wire.requests import ChangesQuery, TableQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalog.sharing.client.answers import TableAnswer
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.wire.listing import Table

_MARGIN_MS: Final = 60_000
_NUMBERS: Final = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuery:
    """A query that a server has answered, so that it can be sent again.

    Args:
        version: that the answer was about.
        refresh_token: that came with the answer.
    """

    rest: AsyncRestClient
    table: Table
    query: TableQuery | ChangesQuery
    version: int
    refresh_token: str | None = None

    def answers(self) -> Iterator[TableAnswer]:
        """Yield answers with new URLs, the one that is most likely about the same files first.

        Raises:
            SharingError: the server refused all of the queries.
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
                # The same files whatever was committed since, if the server shares history.
                yield replace(
                    query, version=self.version, timestamp_ms=None, include_refresh_token=False
                )
        yield query


class UrlBook:
    """The signed URLs of one answer; threads may share it.

    Attributes:
        number: tells this answer from others of the process.

    Args:
        query: that was answered.
        urls: by path.
        expires_ms: when the first of them expires; None is unknown.
    """

    def __init__(self, query: AnsweredQuery, urls: dict[str, str], expires_ms: int | None) -> None:
        self.number: int = next(_NUMBERS)
        self._query = query
        self._urls = urls
        self._lock = threading.Lock()
        self._set_expiry(expires_ms)

    @property
    def endpoint(self) -> str:
        """The URL of the server that named the files."""
        return self._query.rest.profile.endpoint

    def url(self, path: str) -> str:
        """Return the URL of a file; new URLs are requested first if it is about to expire.

        Raises:
            ObjectNotFoundError: the server named no such file.
        """
        url = self._known(path)
        if self._is_expiring():
            with self._lock:
                if self._is_expiring():
                    self._request_again(path)
            url = self._known(path)
        return url

    def renew(self, path: str, refused: str) -> str:
        """Return a URL in place of one that a store refused; the same one if there is no other."""
        with self._lock:
            if self._urls.get(path) == refused:
                self._request_again(path)
        return self._known(path)

    def part(self, paths: Iterable[str]) -> UrlBook:
        """Return a book with some of the URLs."""
        some = {path: self._urls[path] for path in paths if path in self._urls}
        return UrlBook(self._query, some, self._expires_ms)

    def __reduce__(self) -> tuple[Any, ...]:
        return UrlBook, (self._query, self._urls, self._expires_ms)

    def _set_expiry(self, expires_ms: int | None) -> None:
        now = self._query.rest.clock.now_ms()
        self._expires_ms = expires_ms
        # URLs that last only for minutes are used for four fifths of that time.
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
                "gave no URL for it"
            )
        return url

    def _request_again(self, path: str) -> None:
        """Take the URLs of the first answer that still has the file."""
        for answer in self._query.answers():
            # The id of a file is the same in every response, and with it the path.
            known = {name: url for name, url in answer.urls.items() if name in self._urls}
            if path in known:
                self._urls = {**self._urls, **known}
                self._set_expiry(answer.expires_ms)
                if answer.refresh_token is not None:
                    self._query = replace(self._query, refresh_token=answer.refresh_token)
                return
        self._renew_at_ms = None  # the file is no longer shared, so there is nothing to renew
