"""The subjects of sharing: clients and the server, in processes of their own."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Call = Callable[[], object]
TOKEN = "a-token-for-measuring"  # noqa: S105  # of nothing
QUERY = "/delta-sharing/shares/s/schemas/s/tables/t/query"
_FIRST_FILE = 2  # after the protocol and the metadata


def _run_server(path: str, config: str, port: int) -> None:
    from deltalog.sharing.server.serving import serve

    tables = [{"name": "t", "location": path}]
    shares = [{"name": "s", "schemas": [{"name": "s", "tables": tables}]}]
    recipients = [{"name": "all", "shares": "all", "tokens": [{"token": TOKEN}]}]
    Path(config).write_text(json.dumps({"shares": shares, "recipients": recipients}), "utf-8")
    with Path(config).with_suffix(".log").open("w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 2)
        serve(config, host="127.0.0.1", port=port)


def _start(path: Path) -> int:
    """Start a server that shares the table and ends with this process; return its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    config = str(Path(os.environ["DELTALOG_SCRATCH"]) / "shares.yaml")
    context = multiprocessing.get_context("spawn")
    context.Process(target=_run_server, args=(str(path), config, port), daemon=True).start()
    for _ in range(600):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.request("GET", "/health")
            connection.getresponse().read()
        except OSError:
            time.sleep(0.05)
        else:
            return port
        finally:
            connection.close()
    raise RuntimeError("the server does not answer")


def _url(path: Path) -> str:
    profile = Path(os.environ["DELTALOG_SCRATCH"]) / "profile.share"
    endpoint = f"http://127.0.0.1:{_start(path)}/delta-sharing"
    told = {"shareCredentialsVersion": 1, "endpoint": endpoint, "bearerToken": TOKEN}
    profile.touch(mode=0o600)  # it has a token
    profile.write_text(json.dumps(told), "utf-8")
    return f"{profile}#s.s.t"


def _hint(needle: int) -> str:
    children = [
        {"op": "column", "name": "id", "valueType": "long"},
        {"op": "literal", "value": str(needle), "valueType": "long"},
    ]
    return json.dumps({"op": "equal", "children": children})


def deltalog_share_load(path: Path, needle: int) -> Call:
    from deltalog.sharing import load_as_pandas

    del needle
    url = _url(path)
    return lambda: len(load_as_pandas(url))


def official_share_load(path: Path, needle: int) -> Call:
    from delta_sharing import load_as_pandas

    del needle
    url = _url(path)
    return lambda: len(load_as_pandas(url))


def deltalog_share_column(path: Path, needle: int) -> Call:
    from deltalog.sharing import SharedTable

    del needle
    url = _url(path)
    return lambda: int(SharedTable(url).to_pandas(columns=["id"])["id"].max())


def official_share_column(path: Path, needle: int) -> Call:
    from delta_sharing import load_as_pandas

    del needle
    url = _url(path)
    return lambda: int(load_as_pandas(url)["id"].max())


def deltalog_share_point(path: Path, needle: int) -> Call:
    from deltalog.sharing import load_as_pandas

    url = _url(path)
    return lambda: len(load_as_pandas(url, jsonPredicateHints=_hint(needle)))


def official_share_point(path: Path, needle: int) -> Call:
    from delta_sharing import load_as_pandas

    url = _url(path)

    def call() -> object:
        found = load_as_pandas(url, jsonPredicateHints=_hint(needle))
        return len(found[found["id"] == needle])

    return call


def deltalog_serve_first_line(path: Path, needle: int) -> Call:
    del needle
    port = _start(path)
    return lambda: bool(_lines(port, _FIRST_FILE + 1))


def deltalog_serve_lines(path: Path, needle: int) -> Call:
    del needle
    port = _start(path)
    return lambda: _lines(port, None)


def _lines(port: int, most: int | None) -> int:
    """Read all or the first lines of a query's response; return their number."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    connection.request("POST", QUERY, "{}", headers)
    response = connection.getresponse()
    assert response.status == http.HTTPStatus.OK, response.read()
    count = 0
    while (most is None or count < most) and response.readline():
        count += 1
    return count


SHARERS: Mapping[str, Callable[[Path, int], Call]] = {
    function.__name__: function
    for function in (
        deltalog_share_load,
        official_share_load,
        deltalog_share_column,
        official_share_column,
        deltalog_share_point,
        official_share_point,
        deltalog_serve_first_line,
        deltalog_serve_lines,
    )
}
