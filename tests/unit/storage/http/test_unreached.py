"""A server that was never reached is asked a few times; one that answered before is waited for."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import aiohttp
import pytest

from deltalog.catalogs import UnityCatalog
from deltalog.errors import CatalogUnavailableError, DeltaError, SharingUnavailableError
from deltalog.sharing.client import HttpOptions, SharingClient
from deltalog.sharing.client.rest import SHARING_FAULTS
from deltalog.storage.http.client import Http, Request, Retry, run
from deltalog.storage.http.replies import Reply

WORD = "t"
PATIENT = Retry(attempts=6, first_delay_ms=1)


@pytest.fixture
def closed() -> str:
    """A place on this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


class Attempts:
    """Counts the connections that are begun."""

    def __init__(self) -> None:
        self.count = 0

    def session(self) -> aiohttp.ClientSession:
        async def begun(*_: object) -> None:
            self.count += 1

        trace = aiohttp.TraceConfig()
        trace.on_connection_create_start.append(begun)
        return aiohttp.ClientSession(trace_configs=[trace], auto_decompress=False)


def options(counted: Attempts, **retry: int) -> HttpOptions:
    return HttpOptions(session=counted.session, retry=replace(PATIENT, **retry))


def places(closed: str) -> list[str]:
    return [f"http://{closed}", "https://catalog.invalid"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_catalog_that_is_not_there_is_told_soon(closed: str, number: int) -> None:
    attempts = Attempts()
    url = places(closed)[number]
    catalog = UnityCatalog(url, catalog="c", token=WORD, http_options=options(attempts))
    with pytest.raises(CatalogUnavailableError, match=r"after 3 attempts.*check that the address"):
        catalog.list_schemas()
    assert attempts.count == 3


@pytest.mark.parametrize("number", [0, 1])
def test_a_server_of_shares_that_is_not_there_is_told_soon(closed: str, number: int) -> None:
    attempts = Attempts()
    profile = {"shareCredentialsVersion": 1, "endpoint": places(closed)[number], "bearerToken": "t"}
    with pytest.raises(SharingUnavailableError, match="after 3 attempts"):
        SharingClient(profile, options=options(attempts)).list_shares()
    assert attempts.count == 3


def test_a_token_endpoint_that_is_not_there_is_told_soon(closed: str) -> None:
    attempts = Attempts()
    profile = {
        "shareCredentialsVersion": 2,
        "type": "oauth_client_credentials",
        "endpoint": f"http://{closed}",
        "tokenEndpoint": f"http://{closed}/token",
        "clientId": "me",
        "clientSecret": "hush",
    }
    with pytest.raises(SharingUnavailableError, match=r"token.*after 3 attempts"):
        SharingClient(profile, options=options(attempts)).list_shares()
    assert attempts.count == 3


def test_fewer_attempts_are_the_callers_choice(closed: str) -> None:
    for retry, expected in (({"attempts": 1}, 1), ({"unreached_attempts": 5}, 5)):
        attempts = Attempts()
        catalog = UnityCatalog(
            f"http://{closed}", catalog="c", token=WORD, http_options=options(attempts, **retry)
        )
        with pytest.raises(CatalogUnavailableError):
            catalog.list_schemas()
        assert attempts.count == expected


@pytest.fixture
def once() -> Iterator[str]:
    """A server that answers one request, and is gone then."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = listening.accept()
        listening.close()
        with connection:
            connection.recv(65536)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
            )

    thread = threading.Thread(target=answer)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    thread.join()


def fetch(http: Http, url: str) -> bytes:
    def no_success(status: int, *_: object) -> DeltaError:
        return SHARING_FAULTS.unavailable(str(status))

    return run(http.fetch, Request(what="look", url=url), Reply.read, no_success)


def test_one_that_answered_before_is_waited_for(once: str) -> None:
    attempts = Attempts()
    http = Http(options(attempts), SHARING_FAULTS)
    assert fetch(http, once) == b"{}"
    with pytest.raises(SharingUnavailableError, match="after 6 attempts") as raised:
        fetch(http, once)
    assert attempts.count == 1 + 6
    assert "check that the address" not in str(raised.value)


def test_where_a_redirect_leads_is_another_server(closed: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def redirect() -> None:
        for _ in range(3):
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                head = f"HTTP/1.1 307 x\r\nLocation: http://{closed}/\r\nContent-Length: 0\r\n"
                connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        listening.close()

    thread = threading.Thread(target=redirect)
    thread.start()
    port = listening.getsockname()[1]
    with pytest.raises(SharingUnavailableError, match="after 3 attempts"):
        fetch(Http(options(Attempts()), SHARING_FAULTS), f"http://127.0.0.1:{port}/")
    thread.join()


def test_a_time_limit_is_waited_for_once() -> None:
    """Nobody accepts: the queue of the listener is full."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=0)
    address = listening.getsockname()
    waiting = []
    try:
        for _ in range(8):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(address)
            waiting.append(one)
        http = Http(HttpOptions(connect_timeout_s=0.2, retry=PATIENT), SHARING_FAULTS)
        with pytest.raises(SharingUnavailableError, match="after 1 attempt: ConnectionTimeout"):
            fetch(http, f"http://127.0.0.1:{address[1]}/")
    finally:
        for one in [*waiting, listening]:
            one.close()


def test_a_name_is_resolved_within_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", never)
    http = Http(HttpOptions(connect_timeout_s=0.1, retry=PATIENT), SHARING_FAULTS)
    with pytest.raises(SharingUnavailableError, match=r"after 1 attempt: ConnectionTimeout"):
        fetch(http, "https://catalog.invalid/")
