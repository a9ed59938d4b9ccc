"""The client for asynchronous programs: methods that never block the event loop.

Listings run in the caller's event loop. Planning and decoding need processor time, so they run in
threads.

Protocol: REST APIs
"""

from __future__ import annotations

import asyncio
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

from deltalog._util.argument_types import wrong_argument
from deltalog.errors import MalformedMessageError, ShareNotFoundError
from deltalog.sharing.client.profile import ProfileSource, read_profile
from deltalog.sharing.client.rest import AsyncRestClient
from deltalog.sharing.client.table import SharedTable
from deltalog.sharing.wire.lines import ListingPage, Schema, Share, Table
from deltalog.storage.http.replies import shown_location

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
    from datetime import date, datetime

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from deltalog.data.scan.rows import Rows
    from deltalog.sharing.wire.profile import Profile
    from deltalog.storage.http.client import HttpOptions

P = ParamSpec("P")
T = TypeVar("T")


class AsyncSharingClient:
    """A client of one sharing server; as a context manager, it closes its connections at the end.

    Arguments and errors are those of `SharingClient`.
    """

    def __init__(self, profile: ProfileSource, *, options: HttpOptions | None = None) -> None:
        self._rest = AsyncRestClient(read_profile(profile), options)

    def __repr__(self) -> str:
        """Show the server."""
        return f"AsyncSharingClient({shown_location(self.profile.endpoint)!r})"

    @property
    def profile(self) -> Profile:
        """Return the server's address and the recipient's credentials."""
        return self._rest.profile

    @property
    def rest(self) -> AsyncRestClient:
        """Return the client for the server's endpoints, whose methods are coroutines."""
        return self._rest

    async def list_shares(self) -> list[Share]:
        """Return the shares that this recipient can access, in the order of the server."""
        return await self._all_items("list the shares", self._rest.list_shares)

    async def get_share(self, share: str) -> Share:
        """Return one share by its name."""
        return await self._rest.get_share(share)

    async def list_schemas(self, share: Share | str) -> list[Schema]:
        """Return the schemas of a share, in the order of the server."""
        name = share.name if isinstance(share, Share) else share
        return await self._all_items(
            f"list the schemas of share {name!r}", partial(self._rest.list_schemas, name)
        )

    async def list_tables(self, schema: Schema) -> list[Table]:
        """Return the tables of a schema, in the order of the server."""
        given: object = schema
        if not isinstance(given, Schema):
            expected = "an item of list_schemas, or Schema(name='default', share='sales')"
            raise wrong_argument("SharingClient.list_tables", "schema", schema, expected)
        return await self._all_items(
            f"list the tables of schema {schema.share}.{schema.name}",
            partial(self._rest.list_tables, schema.share, schema.name),
        )

    async def list_all_tables(self, share: Share | str | None = None) -> list[Table]:
        """Return the tables of a share, or of all shares, in the order of the server."""
        shares = await self.list_shares() if share is None else [share]
        found = await asyncio.gather(*map(self._tables_of_share, shares))
        return [table for tables in found for table in tables]

    async def _tables_of_share(self, share: Share | str) -> list[Table]:
        name = share.name if isinstance(share, Share) else share
        try:
            return await self._all_items(
                f"list the tables of share {name!r}", partial(self._rest.list_all_tables, name)
            )
        except ShareNotFoundError:
            # Old servers do not have this endpoint (SHARE-CLI-02). If the share is unknown,
            # `list_schemas` raises the error.
            found = await asyncio.gather(*map(self.list_tables, await self.list_schemas(name)))
            return [table for tables in found for table in tables]

    async def _all_items(
        self, what: str, get_page: Callable[..., Awaitable[ListingPage[T]]]
    ) -> list[T]:
        """Return the items of all pages of a listing."""
        items: list[T] = []
        token: str | None = None
        seen: set[str] = set()
        budget = self._rest.http.budget()
        while True:
            budget.count_page(what)
            page = await get_page(page_token=token, budget=budget)
            items.extend(page.items)
            token = page.next_page_token
            # The protocol about this token: "May be an empty string or missing when there are no
            # additional results."
            if not token:
                return items
            # A faulty server may send the same token forever.
            if token in seen:
                raise MalformedMessageError("listing: the server sent the same page token twice")
            seen.add(token)

    def table(
        self, table: Table | str, version: int | str | datetime | date | None = None
    ) -> AsyncSharedTable:
        """Return a table to read: an item of a listing, or `share.schema.table`."""
        return AsyncSharedTable(table, version, client=self._rest)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        await self._rest.close()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()


class AsyncRows:
    """Rows that are read in a thread, so that other coroutines run: `async for batch in rows`."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        """Show the rows."""
        return f"AsyncRows({self.rows!r})"

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        return self.rows.schema

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield the rows, batch by batch."""
        batches = self.rows.to_batches()
        while (batch := await asyncio.to_thread(_next, batches)) is not None:
            yield batch

    async def to_table(self) -> pa.Table:
        """Return all rows in memory."""
        return await asyncio.to_thread(self.rows.to_table)

    async def to_arrow(self) -> pa.Table:
        """Return all rows as a pyarrow Table: see `to_table`."""
        return await self.to_table()

    async def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows as a pandas dataframe."""
        return await asyncio.to_thread(self.rows.to_pandas, **options)

    async def to_polars(self) -> pl.DataFrame:
        """Return all rows as a Polars dataframe."""
        return await asyncio.to_thread(self.rows.to_polars)


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next(batches, None)


def _in_thread(
    method: Callable[Concatenate[SharedTable, P], T],
) -> Callable[Concatenate[AsyncSharedTable, P], Coroutine[Any, Any, T]]:
    """Return a method of `SharedTable` as a coroutine method that runs it in a thread."""

    @wraps(method)
    async def call(self: AsyncSharedTable, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self._table, *args, **kwargs)

    return call


def _rows_in_thread(
    method: Callable[Concatenate[SharedTable, P], Rows],
) -> Callable[Concatenate[AsyncSharedTable, P], Coroutine[Any, Any, AsyncRows]]:
    """Return a method of `SharedTable` as a method that returns `AsyncRows`."""
    in_thread = _in_thread(method)

    @wraps(method)
    async def call(self: AsyncSharedTable, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRows:
        return AsyncRows(await in_thread(self, *args, **kwargs))

    return call


class AsyncSharedTable:
    """A shared table whose methods are coroutines, with the arguments of `SharedTable`."""

    def __init__(
        self,
        table: str | Table,
        version: int | str | datetime | date | None = None,
        *,
        profile: ProfileSource | None = None,
        options: HttpOptions | None = None,
        client: AsyncRestClient | None = None,
        default_timezone: str = "UTC",
    ) -> None:
        self._table = SharedTable(
            table,
            version,
            profile=profile,
            options=options,
            client=client,
            default_timezone=default_timezone,
        )

    @property
    def table_uri(self) -> str:
        """Return the server's endpoint and the table's name."""
        return self._table.table_uri

    version: Final = _in_thread(SharedTable.version)
    schema: Final = _in_thread(SharedTable.schema)
    metadata: Final = _in_thread(SharedTable.metadata)
    protocol: Final = _in_thread(SharedTable.protocol)
    latest_version: Final = _in_thread(SharedTable.latest_version)
    scan: Final = _rows_in_thread(SharedTable.scan)
    load_cdf: Final = _rows_in_thread(SharedTable.load_cdf)
    to_pyarrow_table: Final = _in_thread(SharedTable.to_pyarrow_table)
    to_arrow: Final = _in_thread(SharedTable.to_arrow)
    to_pandas: Final = _in_thread(SharedTable.to_pandas)
    count: Final = _in_thread(SharedTable.count)

    def __repr__(self) -> str:
        """Show the server and the table."""
        return f"AsyncSharedTable({self.table_uri!r})"
