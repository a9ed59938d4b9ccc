"""Pages of files, and the tokens that get the next page or new URLs.

Owns what a token is bound to: recipient, table, version, and for pages the query itself. All pages
of a query are about one version, whatever is committed meanwhile.

Protocol: Read Data from a Table (maxFiles, pageToken, refreshToken)
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import deltalog.expressions.arrow  # noqa: F401  # no first query waits for the kernels
from deltalog.data.scan.prune import Pruned, prune
from deltalog.errors import DeltaError
from deltalog.expressions import TextRules, resolve_predicate
from deltalog.expressions.trees import all_of, walk
from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.middleware import check_client
from deltalog.sharing.server.tokens import InvalidTokenError, checksum
from deltalog.sharing.wire.hints import MOST_OPERATIONS, parse_json_hint, parse_sql_hint
from deltalog.sharing.wire.lines import EndStreamAction
from deltalog.sharing.wire.requests import TableQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.schema import StructType
    from deltalog.sharing.server.answers import TableRequest
    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.formats import ResponseFormat
    from deltalog.sharing.wire.requests import ChangesQuery

_PAGE: Final = "page"
_REFRESH: Final = "refresh"


@dataclass(frozen=True, slots=True)
class PageStart:
    """Where a page starts.

    Args:
        version: of the table, or the last one of a range.
        offset: files on the pages before.
        after: key of the last file on the page before, for views; empty without one.
        num_read_hints: hints that the first page looked at; None if the token does not say.
        until_ms: when the token ends; None without one.
        key: position of the signing key by which the files of the first page were named.
    """

    version: int
    offset: int = 0
    after: str = ""
    num_read_hints: int | None = None
    until_ms: int | None = None
    key: int = 0


@dataclass(frozen=True, slots=True)
class FilePage:
    """Some rows of a table of files.

    Args:
        indices: of the rows, in the order of the answer; None is all rows as they are.
        offset: rows on the pages before.
        num_rows: rows on this page.
        total: rows on all pages.
        after: key behind which the next page begins, for views; None is by row numbers.
    """

    indices: pa.UInt64Array | None
    offset: int
    num_rows: int
    total: int
    after: str | None = None

    @property
    def next_start(self) -> dict[str, Any] | None:
        """The values by which a token says where the next page starts; None on the last page."""
        if self.after is not None:
            return {"a": self.after}
        end = self.offset + self.num_rows
        return {"o": end} if end < self.total else None

    def of(self, files: pa.Table) -> pa.Table:
        """Return the rows of this page."""
        if self.indices is None:
            return files.slice(self.offset, self.num_rows)
        return files.take(self.indices.slice(self.offset, self.num_rows))


def start_of_page(request: TableRequest, query: TableQuery | ChangesQuery) -> PageStart | None:
    """Return where the page starts that the query's token asks for; None without a token.

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
    # A token of another recipient, table or query selects nothing here (ledger SHARE-SEC-03).
    expected = _owner(request)
    if kind == _PAGE:
        expected["c"] = _checksum(query)
    if any(values.get(key) != value for key, value in expected.items()):
        raise invalid("the token belongs to another query: send the parameters of the first page")
    _check_shared(request, query, values["v"])
    # With a refresh token files are told anew, so that the newest key can name them.
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
    """Refuse a token for what was shared when it was made, and is not any more."""
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
    """Return a function that makes the last line of a page, or None if the client needs none.

    Args:
        request: of a recipient.
        query: of the request; whoever pages or refreshes needs the tokens in the last line.
        response_format: of the answer.
        version: that the tokens are bound to: of the table, or the last one of a range.
        page: returns the rows of the page, after they were sent.
        num_read_hints: hints that decided which rows there are.
        start: the token of the request; None without one.
    """
    config, sealer = request.services.config, request.services.sealer
    refreshes = getattr(query, "include_refresh_token", False) or bool(
        getattr(query, "refresh_token", None)
    )
    is_paged = query.max_files is not None or query.page_token is not None
    if not (response_format.ends or is_paged or refreshes):
        return None
    # Where only the latest version is shared, a chain of tokens must not keep an older one.
    is_bound = start is not None and not request.table.config.history_shared
    until_ms = start.until_ms if start is not None and is_bound else None

    def end_ms(seconds: int) -> int:
        own = request.now_ms + seconds * 1000
        return own if until_ms is None else min(own, until_ms)

    def make() -> EndStreamAction:
        owner = {**_owner(request), "v": version}
        rows = page()
        # The refresh token has no offset: it is for the files of all pages.
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
    return {"r": request.recipient.name, "t": request.table.name.key}


def _checksum(query: TableQuery | ChangesQuery) -> str:
    """Return a hash of the parameters that must not change from page to page."""
    same: Any = replace(query, page_token=None, max_files=None)
    if isinstance(same, TableQuery):
        same = replace(same, refresh_token=None, include_refresh_token=False, idempotency_key=None)
    return checksum(same)


# Predicate hints of a query, resolved against the table's columns.


# Each hint is evaluated for every file. Ignored ones only make the answer longer.
_MOST_HINTS: Final = 100
# Operations times files: about a second of work.
_MOST_EVALUATIONS: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of a query as far as they are evaluated.

    Args:
        predicate: that holds for all rows that the client wants; None without one.
        num_read: hints that were looked at, in their order, the JSON hint last. The pages of a
            query must agree on it, as on the files that are left.
        num_used: hints of which the predicate is made.
    """

    predicate: Expression | None
    num_read: int
    num_used: int


class _Budget:
    """What is left of the limits on the hints of one query.

    Args:
        config: of the server.
        num_files: for which hints are evaluated.
        num_read: hints that an earlier page looked at, which this one does in any case.
    """

    def __init__(self, config: ServerConfig, num_files: int, num_read: int | None) -> None:
        limits = config.limits
        self._bytes = limits.hint_bytes
        self._operations = min(MOST_OPERATIONS, _MOST_EVALUATIONS // max(1, num_files))
        self._end_s = time.monotonic() + limits.hint_milliseconds / 1000
        self._agreed = num_read

    def may_read(self, number: int, text: str) -> bool:
        """Whether there is a budget for the next hint, which is taken from it."""
        if self._agreed is not None:
            return number < self._agreed
        self._bytes -= len(text.encode("utf-8", "surrogatepass"))
        is_left = self._bytes >= 0 and self._operations > 0
        # One hint is always read: a busy server must not answer each query with all files.
        return is_left and (number == 0 or time.monotonic() < self._end_s)

    def take(self, hint: Expression) -> bool:
        """Whether there is a budget for evaluating a hint, which is taken from it."""
        self._operations -= sum(1 for _ in walk(hint))
        return self._operations >= 0


def read_hints(
    query: TableQuery,
    schema: StructType,
    config: ServerConfig,
    num_files: int,
    num_read: int | None = None,
) -> Hints:
    """Return the condition that a query's hints make, as far as the budget goes.

    Args:
        query: with its hints.
        schema: of the columns that hints may name.
        config: which hints are evaluated, and within which limits.
        num_files: for which they will be evaluated.
        num_read: hints that the first page looked at; None is the first page.
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
    """Return the files that may hold wanted rows; all files if the condition cannot be evaluated.

    Cost: the log's columns that the predicate needs.
    """
    try:
        return prune(snapshot, predicate)
    except (DeltaError, pa.ArrowException, OverflowError, RecursionError):
        if predicate is None:
            raise
        return replace(prune(snapshot, None), is_exact=False)
