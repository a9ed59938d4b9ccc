"""The shares of a server, whole: every page of every listing.

Owns how a listing ends, and the way around servers that cannot list a share's tables at once.

Protocol: List Shares, List Schemas in a Share, List Tables in a Schema, List all Tables in a Share
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from deltalog.errors import MalformedMessageError, ShareNotFoundError
from deltalog.sharing.wire.listing import ListingPage, Schema, Share, Table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deltalog.sharing.client.rest import AsyncRestClient

T = TypeVar("T")


async def all_shares(rest: AsyncRestClient) -> list[Share]:
    """Every share of this recipient."""
    return await _all(lambda token: rest.list_shares(page_token=token))


async def all_schemas(rest: AsyncRestClient, share: Share | str) -> list[Schema]:
    """Every schema of a share."""
    name = share.name if isinstance(share, Share) else share
    return await _all(lambda token: rest.list_schemas(name, page_token=token))


async def all_tables(rest: AsyncRestClient, schema: Schema) -> list[Table]:
    """Every table of a schema."""
    return await _all(lambda token: rest.list_tables(schema.share, schema.name, page_token=token))


async def every_table(rest: AsyncRestClient, share: Share | str | None = None) -> list[Table]:
    """Every table of a share, or of all shares."""
    shares = await all_shares(rest) if share is None else [share]
    found = await asyncio.gather(*(_tables_of(rest, one) for one in shares))
    return [table for tables in found for table in tables]


async def _tables_of(rest: AsyncRestClient, share: Share | str) -> list[Table]:
    name = share.name if isinstance(share, Share) else share
    try:
        return await _all(lambda token: rest.list_all_tables(name, page_token=token))
    except ShareNotFoundError:
        # Old servers do not have the endpoint; if the share is gone, this tells.
        schemas = await all_schemas(rest, name)
        found = await asyncio.gather(*(all_tables(rest, schema) for schema in schemas))
        return [table for tables in found for table in tables]


async def _all(page: Callable[[str | None], Awaitable[ListingPage[T]]]) -> list[T]:
    items: list[T] = []
    token: str | None = None
    seen: set[str] = set()
    while True:
        found = await page(token)
        items.extend(found.items)
        token = found.next_page_token
        if not token:
            return items
        if token in seen:
            raise MalformedMessageError("listing: the server gave the same page token twice")
        seen.add(token)
