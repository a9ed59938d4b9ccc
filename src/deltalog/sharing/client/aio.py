"""The client for asynchronous programs: the same, and nothing blocks the event loop.

Listings run in the caller's loop. Planning and decoding take processor time, so they run in
threads, and batches are handed over one by one.

Protocol: REST APIs
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from deltalog.sharing.client.listing import all_schemas, all_shares, all_tables, every_table
from deltalog.sharing.client.profile import read_profile
from deltalog.sharing.client.rest import AsyncRestClient
from deltalog.sharing.client.table import SharedTable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from datetime import datetime

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from deltalog.actions.model import Metadata, Protocol
    from deltalog.scan.rows import Rows
    from deltalog.schema import Schema as TableSchema
    from deltalog.sharing.client.http import HttpOptions
    from deltalog.sharing.client.profile import ProfileSource
    from deltalog.sharing.wire.listing import Schema, Share, Table
    from deltalog.sharing.wire.profile import Profile


class AsyncSharingClient:
    """The shares of one server; a context manager that closes its connections.

    Arguments and errors are those of `SharingClient`.
    """

    def __init__(self, profile: ProfileSource, *, options: HttpOptions | None = None) -> None:
        self._rest = AsyncRestClient(read_profile(profile), options)

    @property
    def profile(self) -> Profile:
        """Where the server is, and the way in."""
        return self._rest.profile

    @property
    def rest(self) -> AsyncRestClient:
        """Every endpoint as a coroutine."""
        return self._rest

    async def list_shares(self) -> list[Share]:
        """The shares of this recipient."""
        return await all_shares(self._rest)

    async def get_share(self, share: str) -> Share:
        """One share by its name."""
        return await self._rest.get_share(share)

    async def list_schemas(self, share: Share | str) -> list[Schema]:
        """The schemas of a share."""
        return await all_schemas(self._rest, share)

    async def list_tables(self, schema: Schema) -> list[Table]:
        """The tables of a schema."""
        return await all_tables(self._rest, schema)

    async def list_all_tables(self, share: Share | str | None = None) -> list[Table]:
        """The tables of a share, or of all shares."""
        return await every_table(self._rest, share)

    def table(
        self, table: Table | str, version: int | str | datetime | None = None
    ) -> AsyncSharedTable:
        """A table to read: one of a listing, or `share.schema.table`."""
        return AsyncSharedTable(table, version, client=self._rest)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        await self._rest.close()

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()


class AsyncSharedTable:
    """A shared table whose methods are coroutines; arguments are those of `SharedTable`."""

    def __init__(
        self,
        table: str | Table,
        version: int | str | datetime | None = None,
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
        """The server's endpoint and the table's name."""
        return self._table.table_uri

    async def version(self) -> int:
        """The version that this object shows."""
        return await asyncio.to_thread(self._table.version)

    async def schema(self) -> TableSchema:
        """The table's schema."""
        return await asyncio.to_thread(self._table.schema)

    async def metadata(self) -> Metadata:
        """The table's name, description, partitioning and properties."""
        return await asyncio.to_thread(self._table.metadata)

    async def protocol(self) -> Protocol:
        """What readers must understand."""
        return await asyncio.to_thread(self._table.protocol)

    async def latest_version(self) -> int:
        """The latest version that the server has."""
        return await asyncio.to_thread(self._table.latest_version)

    async def scan(self, *args: Any, **options: Any) -> AsyncRows:
        """Rows of the table; arguments are those of `SharedTable.scan`."""
        return AsyncRows(await asyncio.to_thread(self._table.scan, *args, **options))

    async def load_cdf(self, *args: Any, **options: Any) -> AsyncRows:
        """Changed rows; arguments are those of `SharedTable.load_cdf`."""
        return AsyncRows(await asyncio.to_thread(self._table.load_cdf, *args, **options))

    async def to_pyarrow_table(self, *args: Any, **options: Any) -> pa.Table:
        """All rows in memory; arguments are those of `SharedTable.to_pyarrow_table`."""
        return await asyncio.to_thread(self._table.to_pyarrow_table, *args, **options)

    async def to_pandas(self, *args: Any, **options: Any) -> pd.DataFrame:
        """All rows as a data frame; arguments are those of `SharedTable.to_pandas`."""
        return await asyncio.to_thread(self._table.to_pandas, *args, **options)

    async def count(self) -> int:
        """Rows of the table."""
        return await asyncio.to_thread(self._table.count)

    def __repr__(self) -> str:
        """Which table of which server."""
        return f"AsyncSharedTable({self.table_uri!r})"


class AsyncRows:
    """Rows that come while other coroutines run: `async for batch in rows`."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return self.rows.schema

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        batches = self.rows.to_batches()
        while (batch := await asyncio.to_thread(_next, batches)) is not None:
            yield batch

    async def to_table(self) -> pa.Table:
        """All rows in memory."""
        return await asyncio.to_thread(self.rows.to_table)

    async def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a pandas data frame."""
        return await asyncio.to_thread(self.rows.to_pandas, **options)

    async def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars data frame."""
        return await asyncio.to_thread(self.rows.to_polars)


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next(batches, None)
