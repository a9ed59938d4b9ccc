"""Pages of the listings of shares, schemas and tables.

Protocol: List Shares, Get Share, List Schemas in a Share, List Tables in a Schema, List all Tables
in a Share
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.tables import tables_of
from deltalog.sharing.server.tokens import InvalidTokenError
from deltalog.sharing.wire.listing import ListingPage, Schema, Share, Table
from deltalog.sharing.wire.requests import parse_number_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.sharing.server.config import SchemaConfig, ShareConfig, TableConfig
    from deltalog.sharing.server.recipients import Recipient
    from deltalog.sharing.server.tables import Tables
    from deltalog.sharing.server.tokens import Sealer

T = TypeVar("T")

# The reference server's bound and default.
_MOST_RESULTS: Final = 500
_LIST: Final = "list"
_TOKEN_MS: Final = 24 * 3600 * 1000


class Listings:
    """The listings for one request.

    Args:
        tables: of the server.
        sealer: of page tokens.
        recipient: who sent the request.
        now_ms: when it came.
    """

    def __init__(self, tables: Tables, sealer: Sealer, recipient: Recipient, now_ms: int) -> None:
        self._tables = tables
        self._sealer = sealer
        self._recipient = recipient
        self._now_ms = now_ms

    def shares(self, parameters: Mapping[str, str]) -> ListingPage[Share]:
        """Return the shares that the recipient can access."""
        found = [config.share for config in self._tables.shares(self._recipient)]
        return self._page(found, "shares", parameters)

    def share(self, name: str) -> Share:
        """Return one share."""
        return self._tables.share(self._recipient, name).share

    def schemas(self, share: str, parameters: Mapping[str, str]) -> ListingPage[Schema]:
        """Return the schemas of a share."""
        config = self._tables.share(self._recipient, share)
        found = [Schema(name=schema.name, share=config.name) for schema in config.schemas]
        return self._page(found, f"schemas/{config.name}", parameters)

    def tables(self, share: str, schema: str, parameters: Mapping[str, str]) -> ListingPage[Table]:
        """Return the tables of a schema."""
        config = self._tables.share(self._recipient, share)
        found = self._tables.schema(self._recipient, share, schema)
        tables = [_table_of(config, found, table) for table in found.tables]
        return self._page(tables, f"tables/{config.name}/{found.name}", parameters)

    def all_tables(self, share: str, parameters: Mapping[str, str]) -> ListingPage[Table]:
        """Return the tables of all schemas of a share."""
        config = self._tables.share(self._recipient, share)
        tables = [_table_of(config, schema, table) for schema, table in tables_of(config)]
        return self._page(tables, f"all-tables/{config.name}", parameters)

    def _page(
        self, items: Sequence[T], listing: str, parameters: Mapping[str, str]
    ) -> ListingPage[T]:
        """Return a page; its token is bound to the listing by the configured spelling of names."""
        count = parse_number_parameter(parameters, "maxResults")
        count = _MOST_RESULTS if count is None else count
        if count > _MOST_RESULTS:
            raise invalid(f"maxResults: expected {_MOST_RESULTS} or less")
        start = self._start(listing, parameters.get("pageToken") or "")
        end = start + count
        token = None
        if end < len(items):
            values: dict[str, Any] = {"r": self._recipient.name, "l": listing, "o": end}
            token = self._sealer.seal(_LIST, values, self._now_ms + _TOKEN_MS)
        return ListingPage(items=tuple(items[start:end]), next_page_token=token)

    def _start(self, listing: str, token: str) -> int:
        if not token:
            return 0
        try:
            values = self._sealer.open(_LIST, token, self._now_ms)
        except InvalidTokenError as error:
            raise invalid(f"pageToken: {error}") from None
        if (values["r"], values["l"]) != (self._recipient.name, listing):
            raise invalid("pageToken: the token belongs to another listing")
        return int(values["o"])


def _table_of(share: ShareConfig, schema: SchemaConfig, table: TableConfig) -> Table:
    has_directory = table.credentials is not None
    return Table(
        name=table.name,
        schema=schema.name,
        share=share.name,
        share_id=share.share.id,
        id=table.id,
        # A recipient without credentials for the directory does not need it (SHARE-SEC-08).
        location=table.location if has_directory else None,
        access_modes=("url", "dir") if has_directory else (),
    )
