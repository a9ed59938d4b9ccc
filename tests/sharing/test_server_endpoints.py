"""Routes, prefixes, bodies and compression."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from tests.support.sharing import POST, PREFIX, Caller, actions, path_of, sharing


@pytest.mark.protocol("SHARE-GEN-01", "SHARE-CFG-01")
@pytest.mark.parametrize("prefix", ["/delta-sharing", "/x/y", ""])
def test_the_prefix_is_configurable(prefix: str) -> None:
    caller = sharing({"s.d.t": "/x"}, endpoint=f"{prefix}/")
    assert replace(caller, prefix=prefix).get("/shares").status == 200
    assert replace(caller, prefix="/elsewhere").get("/shares").status == 404


@pytest.mark.protocol("SHARE-GEN-08")
def test_unknown_parameters_are_ignored(vaccine: Caller) -> None:
    assert vaccine.get("/shares?foo=1&maxresults=x").status == 200


T = "s.d.t"


def test_answers_are_compressed_for_who_takes_that(daily_caller: Caller) -> None:
    import gzip

    reply = daily_caller.query(T, None, accept_encoding="gzip, deflate")
    assert reply.headers["content-encoding"] == "gzip"
    plain = daily_caller.query(T)
    assert len(gzip.decompress(reply.body).splitlines()) == len(plain.lines())


def test_urls_lead_where_the_configuration_says(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    alice = sharing({T: tmp_path / "t"}, publicUrl="https://data.example/share/")
    url = actions(alice.query(T), "file")[0]["url"]
    assert url.startswith("https://data.example/share/delta-sharing/_files/")


@pytest.mark.protocol("SHARE-SEC-02")
def test_names_cannot_climb(caller: Caller) -> None:
    for target in (
        "/shares/..%2F..%2Fetc/schemas",
        "/shares/../../etc/passwd",
        "/shares/s/schemas/..%2fd/tables/t/version",
        "/shares/s%00/schemas",
        "/shares/%E2%80%AE/schemas",
    ):
        assert caller.get(target).status == 404


@pytest.mark.protocol("SHARE-SEC-06")
def test_a_body_that_does_not_come(table: Path) -> None:
    import asyncio

    caller = sharing({T: table}, requestTimeoutSeconds=1)
    statuses = []

    async def silent() -> dict[str, object]:
        await asyncio.sleep(60)
        return {}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {**POST, "path": f"{PREFIX}{path_of(T)}/query"}
    asyncio.run(caller.app(scope, silent, send))  # type: ignore[arg-type]  # a plain dict
    assert statuses == [408]
