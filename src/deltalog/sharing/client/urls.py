"""Signed URLs of a table's files, and new ones for those that have ended.

Owns when URLs are asked for again: shortly before they end, and when a store refuses one.

Protocol: Read Data from a Table (`refreshToken`, `expirationTimestamp`); ledger SHARE-CLI-03
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from deltalog.errors import ObjectNotFoundError, SharingAccessError, SharingError
from deltalog.sharing.client.answers import ask_changes, ask_files
from deltalog.sharing.client.bridge import run
from deltalog.sharing.wire import ChangesQuery, TableQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.sharing.client.answers import TableAnswer
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.wire import Table

_MARGIN_MS: Final = 60_000
_NUMBERS: Final = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked of a server, so that it can be asked again.

    Args:
        version: that the answer was about.
        refresh_token: that came with it.
    """

    rest: AsyncRestClient
    table: Table
    query: TableQuery | ChangesQuery
    version: int
    time_zone: str
    refresh_token: str | None = None

    def answers(self) -> Iterator[TableAnswer]:
        """Answers with new URLs, the surest first; refusals end in the last one's error."""
        queries = list(self._queries())
        for number, query in enumerate(queries):
            try:
                if isinstance(query, TableQuery) and query.starting_version is None:
                    yield run(ask_files, self.rest, self.table, query)
                else:
                    yield run(ask_changes, self.rest, self.table, query)
            except SharingAccessError:
                raise
            except SharingError:
                if number == len(queries) - 1:
                    raise

    def _queries(self) -> Iterator[TableQuery | ChangesQuery]:
        query = self.query
        if isinstance(query, ChangesQuery) or query.starting_version is not None:
            yield query
            return
        if self.refresh_token is not None:
            yield replace(query, refresh_token=self.refresh_token)
        if query.version is None:
            # The same files whatever was committed since, if the server shares history.
            yield replace(
                query, version=self.version, timestamp_ms=None, include_refresh_token=False
            )
        yield query


class Urls(Protocol):
    """Gives the URL of a path.

    Attributes:
        number: of the answer they came with, in this process.
    """

    number: int

    def url(self, path: str) -> str:
        """The URL at present.

        Raises:
            ObjectNotFoundError: the server named no such file.
        """
        ...

    def renew(self, path: str, refused: str) -> str:
        """A URL instead of one that was refused; the same one if there is no other."""
        ...

    def only(self, paths: Sequence[str]) -> Urls:
        """The same URLs, of which only some go along when it is pickled."""
        ...


class UrlBook:
    """The URLs of one answer; for any number of threads.

    Args:
        question: that was answered.
        urls: by path.
        expires_ms: when the first of them ends; None is unknown.
    """

    def __init__(self, question: Question, urls: dict[str, str], expires_ms: int | None) -> None:
        self.number = next(_NUMBERS)
        self._question = question
        self._urls = urls
        self._lock = threading.Lock()
        self._note(expires_ms)

    def _note(self, expires_ms: int | None) -> None:
        now = self._question.rest.clock.now_ms()
        self._expires_ms = expires_ms
        # URLs that are given for less than a few minutes are used for most of that time.
        self._renew_at_ms = (
            None if expires_ms is None else expires_ms - min(_MARGIN_MS, (expires_ms - now) // 5)
        )

    def url(self, path: str) -> str:
        """The URL at present; new ones are asked for if it is about to end."""
        found = self._found(path)
        if self._is_late():
            with self._lock:
                if self._is_late():
                    self._ask_again({path})
            found = self._found(path)
        return found

    def renew(self, path: str, refused: str) -> str:
        """A URL instead of one that was refused; the same one if there is no other."""
        with self._lock:
            if self._urls.get(path) == refused:
                self._ask_again({path})
        return self._found(path)

    def only(self, paths: Sequence[str]) -> Urls:
        """The same URLs, of which only some go along when it is pickled."""
        return Excerpt(self, tuple(paths))

    def part(self, paths: Iterable[str]) -> UrlBook:
        """A book of its own with some of the URLs."""
        some = {path: self._urls[path] for path in paths if path in self._urls}
        return UrlBook(self._question, some, self._expires_ms)

    def __reduce__(self) -> tuple[Any, ...]:
        return UrlBook, (self._question, self._urls, self._expires_ms)

    def _is_late(self) -> bool:
        late = self._renew_at_ms
        return late is not None and self._question.rest.clock.now_ms() >= late

    def _found(self, path: str) -> str:
        found = self._urls.get(path)
        if found is None:
            table = self._question.table
            raise ObjectNotFoundError(
                f"cannot read {path!r} of shared table {table.share}.{table.schema}.{table.name}: "
                "the server gave no URL for it"
            )
        return found

    def _ask_again(self, paths: set[str]) -> None:
        """Take the URLs of an answer that has these files, or of the last one there is."""
        for answer in self._question.answers():
            known = {path: url for path, url in answer.urls.items() if path in self._urls}
            if paths <= known.keys():
                self._urls = {**self._urls, **known}
                self._note(answer.expires_ms)
                if answer.refresh_token is not None:
                    self._question = replace(self._question, refresh_token=answer.refresh_token)
                return
        self._renew_at_ms = None  # what is asked for is no longer shared: no use to ask again


class Excerpt:
    """Some URLs of a book: in this process the book itself answers."""

    def __init__(self, book: UrlBook, paths: tuple[str, ...]) -> None:
        self.number = book.number
        self._book = book
        self._paths = paths

    def url(self, path: str) -> str:
        """As that of the book."""
        return self._book.url(path)

    def renew(self, path: str, refused: str) -> str:
        """As that of the book."""
        return self._book.renew(path, refused)

    def only(self, paths: Sequence[str]) -> Urls:
        """Fewer of them."""
        return self._book.only(paths)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._book.part(self._paths).__reduce__()
