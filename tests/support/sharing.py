"""Servers for tests: tables in a share, and recipients who may see it."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow.parquet as pq

from deltalog.sharing.server import app
from tests.support.asgi import Json, Reply, ask

if TYPE_CHECKING:
    from starlette.types import ASGIApp

TOKEN = "token-of-alice"  # noqa: S105 - of a test
PREFIX = "/delta-sharing"
KEY = "a key of sixteen bytes or more"


@dataclass(frozen=True)
class Caller:
    """A recipient with an application to ask."""

    app: ASGIApp
    token: str | None = TOKEN
    prefix: str = PREFIX

    def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request below the prefix; a body that is no bytes goes as JSON."""
        fields = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        if body is not None and not isinstance(body, bytes):
            body = orjson.dumps(body)
        data = body if isinstance(body, bytes) else b""
        return ask(
            self.app, method, self.prefix + target, headers={**fields, **(headers or {})}, body=data
        )

    def get(self, target: str, **headers: str) -> Reply:
        """`GET`; underscores in names of headers stand for hyphens."""
        return self.ask("GET", target, headers=_named(headers))

    def query(self, table: str, body: object = None, **headers: str) -> Reply:
        """`POST …/query` of `share.schema.table`."""
        return self.ask("POST", f"{path_of(table)}/query", body, _named(headers))

    def download(self, url: str, **headers: str) -> Reply:
        """A file by its URL, without a token."""
        target = url.partition("://")[2].partition("/")[2]
        return ask(self.app, "GET", f"/{target}", headers=_named(headers))


def path_of(table: str) -> str:
    """The path of `share.schema.table` in URLs."""
    share, schema, name = table.split(".")
    return f"/shares/{share}/schemas/{schema}/tables/{name}"


def config_of(tables: Mapping[str, str | Path | Json], **more: Any) -> Json:
    """A configuration that gives every table to Alice.

    Args:
        tables: location, or settings, by `share.schema.table`.
        more: settings that are added or replaced.
    """
    shares: dict[str, dict[str, list[Json]]] = {}
    for name, place in tables.items():
        share, schema, table = name.split(".")
        settings = place if isinstance(place, dict) else {"location": str(place)}
        shares.setdefault(share, {}).setdefault(schema, []).append({"name": table, **settings})
    return {
        "shares": [
            {
                "name": share,
                "schemas": [{"name": schema, "tables": found} for schema, found in schemas.items()],
            }
            for share, schemas in shares.items()
        ],
        "recipients": [{"name": "alice", "token": TOKEN, "shares": list(shares)}],
        "signingKey": KEY,
        **more,
    }


def sharing(tables: Mapping[str, str | Path | Json], **more: Any) -> Caller:
    """Alice, with a server that shares these tables."""
    return Caller(app(config_of(tables, **more)))


def actions(reply: Reply, kind: str) -> Sequence[Json]:
    """What stands under one kind in the lines of an answer."""
    assert reply.status == 200, reply.body
    return [line[kind] for line in reply.lines() if kind in line]


def write_profile(path: Path, endpoint: str, token: str = TOKEN) -> Path:
    """A profile of version 1."""
    profile = {"shareCredentialsVersion": 1, "endpoint": endpoint, "bearerToken": token}
    path.write_bytes(orjson.dumps(profile))
    return path


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def commit_at(table: Path, *moments: str) -> None:
    """Let the commits of a table have been made at these times, in order."""
    for version, moment in enumerate(moments):
        seconds = datetime.fromisoformat(moment).timestamp()
        os.utime(table / "_delta_log" / f"{version:020d}.json", (seconds, seconds))


POST = {
    "type": "http",
    "method": "POST",
    "raw_path": b"",
    "query_string": b"",
    "headers": [(b"authorization", f"Bearer {TOKEN}".encode()), (b"host", b"x")],
    "client": ("127.0.0.1", 1),
    "server": ("x", 80),
    "scheme": "http",
    "http_version": "1.1",
}
"""An ASGI scope of Alice's, without a path."""


def file_url(caller: Caller) -> str:
    """The URL of the first file of `s.d.t`."""
    return str(actions(caller.query("s.d.t"), "file")[0]["url"])


def status_of(caller: Caller, url: str, method: str = "GET") -> int:
    """The status of a request for a file, without a token."""
    target = "/" + url.partition("://")[2].partition("/")[2]
    return ask(caller.app, method, target).status


def name_file(table: Path, path: str) -> None:
    """Let version 1 of a table name a file that need not be there."""
    add = {
        "path": path,
        "partitionValues": {},
        "size": 10,
        "modificationTime": 1,
        "dataChange": True,
    }
    log = table / "_delta_log" / f"{1:020d}.json"
    log.write_bytes(orjson.dumps({"add": add}) + b"\n")


def changes(caller: Caller, parameters: str, **headers: str) -> Reply:
    """`GET …/changes` of `s.d.t`."""
    return caller.get(f"{path_of('s.d.t')}/changes?{parameters}", **headers)


def kinds_and_versions(reply: Reply) -> list[tuple[str, int]]:
    """Kind and version of each file line, in order."""
    assert reply.status == 200, reply.body
    kinds = ("add", "cdf", "remove", "file")
    return [
        (kind, line[kind]["version"]) for line in reply.lines() for kind in kinds if kind in line
    ]


def view_of(table: Path, settings: Json | None = None, /, **more: Any) -> Caller:
    """Settings of the table by position or by name; of the server beside a position."""
    own, server = (more, {}) if settings is None else (settings, more)
    return sharing({"s.d.t": {"location": str(table), "historyShared": True, **own}}, **server)


def shown_rows(caller: Caller, body: object = None) -> list[dict[str, Any]]:
    """The rows in the files of an answer, by `id`."""
    found = []
    for file in actions(caller.query("s.d.t", body), "file"):
        reply = caller.download(file["url"])
        assert reply.status == 200
        assert len(reply.body) == file["size"]
        found += pq.read_table(io.BytesIO(reply.body)).to_pylist()
    return sorted(found, key=lambda row: row["id"])


def small_config(**more: Any) -> Json:
    """A configuration with one table; `more` are added or replaced settings."""
    return {
        "shares": [
            {
                "name": "s",
                "schemas": [{"name": "d", "tables": [{"name": "t", "location": "/x"}]}],
            }
        ],
        "recipients": [{"name": "alice", "token": TOKEN, "shares": "all"}],
        **more,
    }


def capabilities(formats: str, features: str = "") -> str:
    """The header's value."""
    return f"responseformat={formats}" + (f";readerfeatures={features}" if features else "")
