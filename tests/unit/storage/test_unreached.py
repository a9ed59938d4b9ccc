"""An object store that was never reached is told after two attempts, in whatever client."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from deltalog import DeltaTable
from deltalog.catalogs import GlueCatalog
from deltalog.errors import CatalogUnavailableError, ObjectNotFoundError, StorageError
from deltalog.storage import open_store
from deltalog.storage.faults import ATTEMPTS, impatient_client

KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
S3 = {**KEYS, "aws_region": "us-east-1", "aws_allow_http": "true"}


@pytest.fixture
def closed() -> str:
    """A place on this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


class Attempts:
    """Counts what Python's sockets are asked for."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.connections = 0
        self.names = 0
        waiting = asyncio.selector_events.BaseSelectorEventLoop.sock_connect
        resolve = socket.getaddrinfo

        async def connect(loop: Any, *given: Any) -> Any:
            self.connections += 1
            return await waiting(loop, *given)

        def named(host: Any, *given: Any, **more: Any) -> Any:
            self.names += str(host).endswith(".invalid")
            return resolve(host, *given, **more)

        patch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", connect)
        patch.setattr(socket, "getaddrinfo", named)


def place(service: str, endpoint: str) -> tuple[str, dict[str, str]]:
    if service in {"s3fs", "obstore"}:
        return "s3://bucket/t", {**S3, "aws_endpoint_url": endpoint, "s3_client": service}
    if service == "gcs":
        return "gs://bucket/t", {"google_skip_signature": "true", "google_endpoint": endpoint}
    if service == "web":
        return f"{endpoint}/t", {}
    account = {"account_name": "acc", "account_key": "YWJj", "endpoint": f"{endpoint}/acc"}
    return "az://c/t", {f"azure_storage_{name}": value for name, value in account.items()}


@pytest.mark.parametrize("service", ["s3fs", "gcs", "azure"])
def test_where_nobody_listens(service: str, closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch)
    location, options = place(service, closed)
    with pytest.raises(StorageError, match=r"(?i)(cannot|could not) connect to"):
        open_store(location, options).read("x")
    assert attempts.connections == ATTEMPTS


@pytest.mark.parametrize("service", ["s3fs", "gcs", "azure"])
def test_where_a_name_does_not_resolve(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch)
    location, options = place(service, "https://store.invalid")
    with pytest.raises(StorageError, match=r"store\.invalid"):
        open_store(location, options).put("x", b"1")
    assert attempts.names == ATTEMPTS


def test_obstore_says_how_often_it_asked(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    for endpoint in (closed, "http://store.invalid", "https://store.invalid"):
        location, options = place("obstore", endpoint)
        with pytest.raises(StorageError, match=r"after 1 retries.*see that the endpoint"):
            DeltaTable(location, storage_options=options)


def test_glue(closed: str) -> None:
    options = {"region_name": "us-east-1", "endpoint_url": closed, **KEYS}
    client: Any = impatient_client(boto3.client("glue", **options), "glue")
    sent: list[object] = []
    client.meta.events.register("before-send", lambda **_: sent.append(1))
    with pytest.raises(Exception, match="Could not connect"):
        client.get_databases()
    assert len(sent) == ATTEMPTS
    with pytest.raises(CatalogUnavailableError, match="Could not connect"):
        GlueCatalog(client_options=options).list_schemas()


@pytest.fixture
def busy() -> Iterator[tuple[str, list[bytes]]]:
    """A server that is busy, and the first line of each request.

    It answers 503 more often than an unreachable service is tried, and then that there is nothing:
    clients wait for seconds before they ask a fourth and a fifth time.
    """
    listening, lines = socket.create_server(("127.0.0.1", 0)), []

    def answer() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                lines.append(connection.recv(65536).partition(b"\r\n")[0])
                status = b"503 Slow Down" if len(lines) <= ATTEMPTS else b"404 Not Found"
                head = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n"
                connection.sendall(head + b"Connection: close\r\n\r\n")

    thread = threading.Thread(target=answer)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", lines
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


@pytest.mark.parametrize("service", ["s3fs", "obstore"])
def test_a_service_that_answers_is_asked_as_often_as_ever(
    service: str, busy: tuple[str, list[bytes]]
) -> None:
    endpoint, lines = busy
    location, options = place(service, endpoint)
    with pytest.raises(ObjectNotFoundError):
        open_store(location, options).read("x")
    assert len(lines) > ATTEMPTS
