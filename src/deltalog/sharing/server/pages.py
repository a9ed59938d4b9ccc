"""Pages of files, and the tokens for requesting the next page or new URLs.

A token is valid only for its recipient, table and version; a page token also only for its query.
All pages of a query describe one version, even if newer versions are committed meanwhile.

Protocol: Read Data from a Table (maxFiles, pageToken, refreshToken)
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import deltalog.expressions.arrow  # noqa: F401  # slow: imported before the first query
from deltalog.data.scan.prune import Pruned, prune
from deltalog.errors import DeltaError
from deltalog.expressions import TextRules, resolve_predicate
from deltalog.expressions.trees import all_of, walk
from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.middleware import check_client
from deltalog.sharing.server.tokens import InvalidTokenError, checksum
from deltalog.sharing.wire.hints import MOST_OPERATIONS, parse_json_hint, parse_sql_hint
from deltalog.sharing.wire.lines import EndStreamAction
from deltalog.sharing.wire.requests import ChangesQuery, TableQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.schema import StructType
    from deltalog.sharing.server.answers import TableRequest
    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.formats import ResponseFormat

_PAGE: Final = "page"
_REFRESH: Final = "refresh"


@dataclass(frozen=True, slots=True)
class PageStart:
    """The start of a page.

    Args:
        version: version of the table, or the last version of a range.
        offset: number of files on the previous pages.
        after: for views, the key of the last file on the previous page; empty for tables.
        num_read_hints: number of hints that were read for the first page; None if not in the token.
        until_ms: when the token expires; None without a token.
        key: position of the signing key with which the files of the first page were named.
    """

    version: int
    offset: int = 0
    after: str = ""
    num_read_hints: int | None = None
    until_ms: int | None = None
    key: int = 0


@dataclass(frozen=True, slots=True)
class FilePage:
    """The files of one page, as rows of a table of files.

    Args:
        indices: indices of the files of all pages, in the order of the answer; None means all files
            in their order.
        offset: number of rows on the previous pages.
        num_rows: number of rows on this page.
        total: number of rows on all pages.
        after: for views, the key after which the next page begins; None if the next page begins at
            a row number.
    """

    indices: pa.UInt64Array | None
    offset: int
    num_rows: int
    total: int
    after: str | None = None

    @property
    def next_start(self) -> dict[str, Any] | None:
        """Return the values for the token of the next page; None on the last page."""
        if self.after is not None:
            return {"a": self.after}
        end = self.offset + self.num_rows
        return {"o": end} if end < self.total else None

    def of(self, files: pa.Table) -> pa.Table:
        """Return the files of this page."""
        if self.indices is None:
            return files.slice(self.offset, self.num_rows)
        return files.take(self.indices.slice(self.offset, self.num_rows))


def start_of_page(request: TableRequest, query: TableQuery | ChangesQuery) -> PageStart | None:
    """Return the start of the page that the query's token requests; None without a token.

    Raises:
        Fault: 400 if the token is for another recipient, table or query, or has expired.
    """
    refresh_token = getattr(query, "refresh_token", None)
    kind, token = (_PAGE, query.page_token) if query.page_token else (_REFRESH, refresh_token)
    if token is None:
        return None
    try:
        sealed = request.services.sealer.unseal(kind, token, request.now_ms)
    except InvalidTokenError as error:
        raise invalid(str(error)) from None
    values = sealed.values
    # A token is valid only for its recipient, table and query (requirement SHARE-SEC-03).
    expected = _owner(request)
    if kind == _PAGE:
        expected["c"] = _checksum(query)
    if any(values.get(key) != value for key, value in expected.items()):
        raise invalid("the token belongs to another query: send the parameters of the first page")
    _check_shared(request, query, values["v"])
    # All pages of a listing must use the same key for the names of files. A refresh token starts a
    # new listing, which uses the newest key.
    key = sealed.key if kind == _PAGE else 0
    return PageStart(
        version=values["v"],
        offset=values.get("o", 0),
        after=values.get("a", ""),
        num_read_hints=values.get("h"),
        until_ms=sealed.expires_ms,
        key=key,
    )


def _check_shared(request: TableRequest, query: TableQuery | ChangesQuery, version: int) -> None:
    """Raise if the version of a token is no longer shared."""
    table = request.table
    if version < table.config.start_version:
        raise invalid(f"You can only query table data since version {table.config.start_version}.")
    asked = (getattr(query, "version", None), getattr(query, "timestamp_ms", None))
    if any(value is not None for value in asked):
        table.check_history("reading a version")


def end_of_page(
    request: TableRequest,
    query: TableQuery | ChangesQuery,
    response_format: ResponseFormat,
    version: int,
    page: Callable[[], FilePage],
    *,
    num_read_hints: int | None = None,
    start: PageStart | None = None,
) -> Callable[[], EndStreamAction] | None:
    """Return a function that makes the last line of a page; None if the client needs no such line.

    Args:
        request: a recipient's request.
        query: query of the request.
        response_format: response format of the answer.
        version: the version for the tokens: the table's version, or the last version of a range.
        page: returns the page; called after its lines were sent.
        num_read_hints: number of hints that were read to select the files.
        start: the page that the request's token requests; None without a token.
    """
    config, sealer = request.services.config, request.services.sealer
    refreshes = getattr(query, "include_refresh_token", False) or bool(
        getattr(query, "refresh_token", None)
    )
    is_paged = query.max_files is not None or query.page_token is not None
    if not (response_format.ends or is_paged or refreshes):
        return None
    # If history is not shared, a new token must not expire later than the old one. Otherwise, the
    # client could read an old version forever.
    is_bound = start is not None and not request.table.config.history_shared
    until_ms = start.until_ms if start is not None and is_bound else None

    def end_ms(seconds: int) -> int:
        own = request.now_ms + seconds * 1000
        return own if until_ms is None else min(own, until_ms)

    def make() -> EndStreamAction:
        owner = {**_owner(request), "v": version}
        rows = page()
        # The refresh token has no offset, because it is for the files of all pages.
        next_page = refresh = None
        if (next_start := rows.next_start) is not None:
            values = {**owner, "c": _checksum(query), **next_start}
            if num_read_hints is not None:
                values["h"] = num_read_hints
            next_page = sealer.seal(_PAGE, values, end_ms(config.page_token_seconds))
        if refreshes:
            refresh = sealer.seal(_REFRESH, owner, end_ms(config.refresh_token_seconds))
        return EndStreamAction(
            next_page_token=next_page,
            refresh_token=refresh,
            min_url_expiration_timestamp_ms=request.url_expiry_ms if rows.num_rows else None,
        )

    return make


def _owner(request: TableRequest) -> dict[str, Any]:
    return {"r": request.recipient.name, "t": request.table.token_key}


def _checksum(query: TableQuery | ChangesQuery) -> str:
    """Return a hash of the parameters that must be the same for all pages of a query."""
    same: Any = replace(query, page_token=None, max_files=None)
    if isinstance(same, TableQuery):
        same = replace(same, refresh_token=None, include_refresh_token=False, idempotency_key=None)
    return checksum(same)


# --- Predicate hints of a query, resolved against the table's columns


# The maximum number of hints that the server evaluates, because it evaluates each hint for every
# file. Ignoring the other hints only makes the answer longer.
_MOST_HINTS: Final = 100
# The maximum product of the number of operations in hints and the number of files. Evaluating so
# many operations takes about a second.
_MOST_EVALUATIONS: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of a query that are evaluated.

    Args:
        predicate: a condition that is true for all rows that the client wants; None without hints.
        num_read: number of hints that were read, in order, the JSON hint last. All pages of a query
            must read the same number, so that they contain the same files.
        num_used: number of hints in the predicate.
    """

    predicate: Expression | None
    num_read: int
    num_used: int


class _Budget:
    """The remaining budget for the hints of one query.

    Args:
        config: configuration of the server.
        num_files: number of files for which hints are evaluated.
        num_read: number of hints that were read for the first page, and must be read for this page.
    """

    def __init__(self, config: ServerConfig, num_files: int, num_read: int | None) -> None:
        limits = config.limits
        self._bytes = limits.hint_bytes
        self._operations = min(MOST_OPERATIONS, _MOST_EVALUATIONS // max(1, num_files))
        self._end_s = time.monotonic() + limits.hint_milliseconds / 1000
        self._agreed = num_read

    def may_read(self, number: int, text: str) -> bool:
        """Subtract the cost of reading the next hint; return False if the budget is exhausted."""
        if self._agreed is not None:
            return number < self._agreed
        self._bytes -= len(text.encode("utf-8", "surrogatepass"))
        is_left = self._bytes >= 0 and self._operations > 0
        # Always read the first hint. Otherwise, a busy server would return all files for every
        # query.
        return is_left and (number == 0 or time.monotonic() < self._end_s)

    def take(self, hint: Expression) -> bool:
        """Subtract the cost of evaluating a hint; return False if the budget is exhausted."""
        self._operations -= sum(1 for _ in walk(hint))
        return self._operations >= 0


def read_hints(
    query: TableQuery,
    schema: StructType,
    config: ServerConfig,
    num_files: int,
    num_read: int | None = None,
) -> Hints:
    """Return the condition from a query's hints, as far as the budget allows.

    Args:
        query: the query with its hints.
        schema: the columns that hints may use.
        config: configuration of the server, with the limits on hints.
        num_files: number of files for which hints will be evaluated.
        num_read: number of hints that were read for the first page; None on the first page.
    """
    budget = _Budget(config, num_files, num_read)
    found: list[Expression] = []
    number = -1
    for number, (text, parse) in enumerate(_texts(query, config)):
        check_client()
        if not budget.may_read(number, text):
            break
        try:
            hint = resolve_predicate(parse(text), schema, text_rules=TextRules.NONE)
        except (DeltaError, RecursionError):
            continue
        if budget.take(hint):
            found.append(hint)
    else:
        number += 1
    return Hints(all_of(found), number, len(found))


def _texts(
    query: TableQuery, config: ServerConfig
) -> Iterator[tuple[str, Callable[[str], Expression]]]:
    if config.evaluate_predicate_hints:
        for text in query.predicate_hints[:_MOST_HINTS]:
            yield text, parse_sql_hint
    if config.evaluate_json_predicate_hints and query.json_predicate_hints is not None:
        yield query.json_predicate_hints, parse_json_hint


def prune_by(snapshot: Snapshot, predicate: Expression | None) -> Pruned:
    """Return the files that may contain wanted rows, or all files if the condition is invalid.

    Cost: reads the log's columns that the predicate needs.
    """
    try:
        return prune(snapshot, predicate)
    except (DeltaError, pa.ArrowException, OverflowError, RecursionError):
        if predicate is None:
            raise
        return replace(prune(snapshot, None), is_exact=False)
