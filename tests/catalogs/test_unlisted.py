"""If a catalog cannot be listed, the error names the address, the cause, and what to do."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from deltalog import connect
from deltalog.catalogs import GlueCatalog, UnityCatalog
from deltalog.errors import CatalogAccessError, CatalogError, CatalogUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTINGS = ("SHOW TABLES", "SHOW SCHEMAS", "SHOW CATALOGS", "SHOW TABLES IN main.sales")


class _Refusals(BaseHTTPRequestHandler):
    """Answers each request with the status in its path, such as `/401/…`."""

    def do_GET(self) -> None:
        status = int(self.path.split("/")[1])
        text = b"<html>" if status == 200 else b'{"error_code": "NO", "message": "not you"}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusals) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.parametrize("statement", LISTINGS)
def test_a_catalog_that_does_not_respond(statement: str) -> None:
    place = f"127.0.0.1:{_closed_port()}"
    with (
        connect(catalog=f"http://{place}") as connection,
        pytest.raises(CatalogUnavailableError, match=f"{place}.*check that the address is right"),
    ):
        connection.sql(statement)


@pytest.mark.parametrize("statement", LISTINGS)
@pytest.mark.parametrize(
    ("status", "token", "kind", "advice"),
    [
        (401, None, CatalogAccessError, "set UNITY_CATALOG_TOKEN"),
        (401, "hidden-token", CatalogAccessError, "check the token"),
        (403, "hidden-token", CatalogAccessError, "owner can grant"),
        (404, "hidden-token", CatalogError, "answered 404"),
        (200, "hidden-token", CatalogError, "expected the address of a Unity Catalog"),
    ],
)
def test_a_catalog_that_refuses(  # noqa: PLR0917  # each case has these
    address: str,
    statement: str,
    status: int,
    token: str | None,
    kind: type[CatalogError],
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("UNITY_CATALOG_URL", "DATABRICKS_HOST"):
        monkeypatch.delenv(name, raising=False)
    url = f"{address}/{status}/api/2.1/unity-catalog"
    with (
        connect(catalog=UnityCatalog(url, token=token)) as connection,
        pytest.raises(kind, match=advice) as caught,
    ):
        connection.sql(statement)
    assert url in str(caught.value)
    assert "hidden-token" not in str(caught.value)


@pytest.mark.parametrize("statement", ["SHOW TABLES", "SHOW SCHEMAS", "SHOW TABLES IN sales"])
def test_a_glue_that_does_not_respond(statement: str) -> None:
    place = f"http://127.0.0.1:{_closed_port()}"
    options = {
        "region_name": "eu-west-1",
        "endpoint_url": place,
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
    }
    with (
        connect(catalog=GlueCatalog(client_options=options)) as connection,
        pytest.raises(CatalogUnavailableError, match=f"at {place}: .*check the region"),
    ):
        connection.sql(statement)
