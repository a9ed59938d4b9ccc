"""Pages of files, and the tokens that lead to the next one or to fresh URLs.

Owns what a token is bound to: recipient, table, version, and for pages the query itself. A page
stays on its version whatever is committed meanwhile.

Protocol: Read Data from a Table (maxFiles, pageToken, refreshToken)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.tokens import InvalidTokenError, Sealer, checksum
from deltalog.sharing.wire.lines import EndStreamAction

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalog.sharing.server.answers import Asked, Tools
    from deltalog.sharing.server.formats import Format
    from deltalog.sharing.wire.requests import ChangesQuery, TableQuery

_PAGE: Final = "page"
_REFRESH: Final = "refresh"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a page starts.

    Args:
        version: of the table, or the last one of a range.
        offset: lines before it.
    """

    version: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a table of files.

    Args:
        indices: which rows, in which order; None is all as they are.
        offset: how many of them came on pages before.
        num_rows: how many are on this page.
        total: how many there are.
    """

    indices: pa.UInt64Array | None
    offset: int
    num_rows: int
    total: int

    @property
    def goes_on(self) -> bool:
        """Whether there are more pages."""
        return self.offset + self.num_rows < self.total

    def of(self, files: pa.Table) -> pa.Table:
        """The rows of this page."""
        if self.indices is None:
            return files.slice(self.offset, self.num_rows)
        return files.take(self.indices.slice(self.offset, self.num_rows))


def ends_with_action(query: TableQuery | ChangesQuery, form: Format) -> bool:
    """Whether the last line is an `endStreamAction`: who pages or refreshes needs its tokens."""
    wants = getattr(query, "include_refresh_token", False) or getattr(query, "refresh_token", None)
    return form.ends or query.max_files is not None or bool(query.page_token or wants)


def start_of(asked: Asked, query: TableQuery | ChangesQuery, sealer: Sealer) -> Start | None:
    """What the query's token says; None if it has none.

    Raises:
        Fault: 400: the token is not for this recipient, this table and this query, or too old.
    """
    refresh = getattr(query, "refresh_token", None)
    if query.page_token is None and refresh is None:
        return None
    kind, token = (_PAGE, query.page_token) if query.page_token else (_REFRESH, refresh)
    try:
        values = sealer.open(kind, token or "", asked.now_ms)
    except InvalidTokenError as error:
        raise invalid(str(error)) from None
    expected = _owner(asked)
    if kind == _PAGE:
        expected["c"] = _parameters(query)
    if any(values.get(key) != value for key, value in expected.items()):
        raise invalid("the token belongs to another query: send the parameters of the first page")
    return Start(values["v"], values.get("o", 0))


def next_tokens(
    asked: Asked,
    query: TableQuery | ChangesQuery,
    tools: Tools,
    version: int,
    page: Page,
    expires_ms: int,
) -> EndStreamAction:
    """The last line of a page."""
    owner = {**_owner(asked), "v": version}
    config = tools.config
    next_page = refresh = None
    if page.goes_on:
        values = {**owner, "c": _parameters(query), "o": page.offset + page.num_rows}
        until_ms = asked.now_ms + config.page_token_seconds * 1000
        next_page = tools.sealer.seal(_PAGE, values, until_ms)
    if getattr(query, "include_refresh_token", False) or getattr(query, "refresh_token", None):
        until_ms = asked.now_ms + config.refresh_token_seconds * 1000
        refresh = tools.sealer.seal(_REFRESH, owner, until_ms)
    return EndStreamAction(
        next_page_token=next_page,
        refresh_token=refresh,
        min_url_expiration_timestamp_ms=expires_ms if page.num_rows else None,
    )


def _owner(asked: Asked) -> dict[str, Any]:
    return {"r": asked.recipient.name, "t": asked.table.name.key}


def _parameters(query: TableQuery | ChangesQuery) -> str:
    """What must not change from page to page."""
    bare: Any = replace(query, page_token=None, max_files=None)
    if hasattr(bare, "refresh_token"):
        bare = replace(bare, refresh_token=None, include_refresh_token=False, idempotency_key=None)
    return checksum(bare)
