"""The client under the official names, and for asynchronous programs."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog.sharing
from deltalog.errors import InvalidInputError
from deltalog.sharing.client import (
    AsyncSharedTable,
    AsyncSharingClient,
    HttpOptions,
    Retry,
    SharedTable,
    get_table_metadata,
    get_table_protocol,
    get_table_version,
    load_as_pandas,
    load_table_changes_as_pandas,
)
from deltalog.sharing.wire.listing import Table
from tests.support.shared_files import PROTOCOL, file_line, metadata, parquet, stats
from tests.support.sharing_server import Answer, ScriptedServer, lines, listed

QUICK = HttpOptions(retry=Retry(attempts=2, first_delay_ms=1))


@pytest.fixture
def url(scripted: ScriptedServer, tmp_path: Path) -> str:
    meta = metadata(columns={"id": "long"}, configuration={"enableChangeDataFeed": "true"})
    data = parquet(id=pa.array([1, 2, 3], pa.int64()))
    line = file_line(scripted, "f", data, stats=stats(3, id=(1, 3)))
    change = {**line["file"], "version": 4, "timestamp": 1652140000000}
    scripted.on_table("GET metadata", lines(PROTOCOL, meta, version=4))
    scripted.on_table("POST query", lines(PROTOCOL, meta, line, version=4))
    scripted.on_table("GET changes", lines(PROTOCOL, meta, {"add": change}, version=4))
    scripted.on_table("GET version", Answer(headers={"Delta-Table-Version": "4"}))
    profile = tmp_path / "p.share"
    profile.write_text(json.dumps(scripted.profile()), "utf-8")
    return f"{profile}#s.d.t"


def test_rows_are_loaded(url: str, scripted: ScriptedServer) -> None:
    assert load_as_pandas(url)["id"].tolist() == [1, 2, 3]
    assert load_as_pandas(url, limit=2)["id"].tolist() == [1, 2]
    assert len(load_as_pandas(url, version=3)) == 3
    assert len(load_as_pandas(url, timestamp="2022-01-01T00:00:00Z")) == 3
    bodies = [asked.json for asked in scripted.find("/query")]
    assert [body.get("version") for body in bodies] == [None, None, 3, None]
    assert bodies[3]["timestamp"] == "2022-01-01T00:00:00Z"


@pytest.mark.protocol("SHARE-QT-06", "SHARE-QT-19")
def test_official_hints_filter_rows(url: str, scripted: ScriptedServer) -> None:
    hint = {
        "op": "greaterThan",
        "children": [
            {"op": "column", "name": "id", "valueType": "long"},
            {"op": "literal", "value": "1", "valueType": "long"},
        ],
    }
    frame = load_as_pandas(url, jsonPredicateHints=json.dumps(hint))
    assert frame["id"].tolist() == [2, 3]
    assert scripted.find("/query")[0].json["jsonPredicateHints"] == json.dumps(hint)
    assert scripted.find("/metadata") == []  # the hint says its types itself
    with pytest.raises(InvalidInputError, match="JSON predicate"):
        load_as_pandas(url, jsonPredicateHints='{"op": "no such"}')


@pytest.mark.protocol("SHARE-CAP-03")
@pytest.mark.parametrize(
    ("use_delta_format", "formats"), [(None, "delta,parquet"), (True, "delta"), (False, "parquet")]
)
def test_a_format_can_be_chosen(
    url: str, scripted: ScriptedServer, *, use_delta_format: bool | None, formats: str
) -> None:
    load_as_pandas(url, use_delta_format=use_delta_format)
    told = scripted.asked[0].headers["delta-sharing-capabilities"]
    assert told.split(";")[0] == f"responseformat={formats}"


def test_a_table_is_described(url: str, scripted: ScriptedServer) -> None:
    assert get_table_version(url) == 4
    assert get_table_version(url, starting_timestamp="2022-01-01T00:00:00Z") == 4
    assert scripted.find("/version")[1].query == {"startingTimestamp": "2022-01-01T00:00:00Z"}
    assert get_table_metadata(url).configuration == {"delta.enableChangeDataFeed": "true"}
    assert get_table_protocol(url).min_reader_version == 1


def test_signatures_are_the_official_ones() -> None:
    official = pytest.importorskip("delta_sharing", reason="delta-sharing is not installed")
    ours: list[Callable[..., Any]] = [load_as_pandas, load_table_changes_as_pandas]
    for function in ours:
        names = list(inspect.signature(getattr(official, function.__name__)).parameters)
        assert list(inspect.signature(function).parameters) == names
    methods = {name for name in dir(official.SharingClient) if name.startswith("list_")}
    assert methods <= set(dir(deltalog.sharing.SharingClient))


def test_public_names_are_loaded_when_they_are_used() -> None:
    for name in deltalog.sharing.__all__:
        assert getattr(deltalog.sharing, name).__doc__
    assert dir(deltalog.sharing) == deltalog.sharing.__all__
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = deltalog.sharing.no_such_name


def test_a_listed_table_is_opened(url: str, scripted: ScriptedServer) -> None:
    item = {"name": "t", "schema": "d", "share": "s"}
    scripted.on("GET /shares", listed([{"name": "s"}]))
    scripted.on("GET /shares/s/all-tables", listed([item]))
    client = deltalog.sharing.SharingClient(url.partition("#")[0])
    (listed_table,) = client.list_all_tables()
    for table in (client.table(listed_table), client.table("s.d.t"), SharedTable(url)):
        assert table.count() == 3


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
        assert len(await table.to_pandas()) == 3
        rows = await table.scan(["id"], "id > 1")
        assert rows.schema.names == ["id"]
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
