"""The client for asynchronous programs."""

from __future__ import annotations

import asyncio
from typing import Any

from deltalog.sharing.client import AsyncSharedTable, AsyncSharingClient
from deltalog.sharing.wire.lines import Table
from tests.support.shared_files import QUICK
from tests.support.sharing_server import Answer, ScriptedServer, listed


def test_listings_do_not_block(url: str, scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", listed([{"name": "s"}]))
    scripted.on("GET /shares/s", Answer(200, b'{"share": {"name": "s"}}'))
    scripted.on("GET /shares/s/schemas", listed([{"name": "d", "share": "s"}]))
    tables = listed([{"name": "t", "schema": "d", "share": "s"}])
    scripted.on("GET /shares/s/schemas/d/tables", tables)
    scripted.on("GET /shares/s/all-tables", tables)

    async def list_all() -> list[Table]:
        async with AsyncSharingClient(url.partition("#")[0], options=QUICK) as client:
            (share,) = await client.list_shares()
            assert (await client.get_share("s")).name == "s"
            (schema,) = await client.list_schemas(share)
            found = await client.list_tables(schema)
            assert found == await client.list_all_tables()
            assert await client.table(found[0]).count() == 3
            assert "token" not in repr(client.profile).replace("BearerToken", "")
            return found

    assert [table.name for table in asyncio.run(list_all())] == ["t"]


def test_batches_are_awaited(url: str) -> None:
    async def read() -> list[Any]:
        table = AsyncSharedTable(url, options=QUICK)
        assert await table.version() == await table.latest_version() == 4
        assert (await table.schema()).names == ("id",)
        assert (await table.protocol()).min_reader_version == 1
        assert (await table.metadata()).partition_columns == ()
        assert (await table.to_pyarrow_table()).num_rows == 3
        assert (await table.to_arrow()).num_rows == 3
        assert len(await table.to_pandas()) == 3
        rows = await table.scan(["id"], "id > 1")
        assert rows.schema.names == ["id"]
        assert await rows.to_arrow() == await rows.to_table()
        assert (await rows.to_table()).num_rows == 2
        assert len(await rows.to_pandas()) == 2
        assert (await rows.to_polars()).shape == (2, 1)
        changes = await (await table.load_cdf(4)).to_table()
        assert changes["_change_type"].to_pylist() == ["insert"] * 3
        assert "s.d.t" in repr(table)
        found: list[Any] = []
        async for batch in rows:
            found += batch["id"].to_pylist()
        return found

    assert asyncio.run(read()) == [2, 3]


def test_the_loop_goes_on_while_a_table_is_read(url: str, scripted: ScriptedServer) -> None:
    """The server answers only after another coroutine of the same loop has run."""
    went_on = asyncio.Event
    seen: list[str] = []

    async def read() -> None:
        event = went_on()
        loop = asyncio.get_running_loop()
        answered = scripted._answers["POST /delta-sharing/shares/s/schemas/d/tables/t/query"]
        answer = answered[0]
        assert isinstance(answer, Answer)

        def wait(_: Any) -> Answer:
            asyncio.run_coroutine_threadsafe(_set(event), loop).result(10)
            seen.append("went on")
            return answer

        scripted.on_table("POST query", wait)
        assert await AsyncSharedTable(url, options=QUICK).count() == 3
        await event.wait()

    asyncio.run(read())
    assert seen == ["went on"]


async def _set(event: asyncio.Event) -> None:
    event.set()
