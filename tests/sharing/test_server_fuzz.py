"""Ten thousand requests that nobody should send: no defect, and nothing told.

Seeded, in this process: a failure prints the request that made it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.asgi import Reply, ask_async
from tests.support.sharing import KEY, PREFIX, TOKEN, Caller, actions, path_of, sharing

REQUESTS = int(os.environ.get("DELTALOG_FUZZ_REQUESTS", "10000"))
STATUSES = {200, 206, 304, 400, 401, 403, 404, 405, 413, 414, 416}
OTHER_TOKEN = "token-of-bob"  # noqa: S105 - of a test

NAMES = ["s", "S", "d", "t", "feed", "vectors", "view", "foreign", "nothing"]
NAMES += ["", ".", "..", "a/b", "%00", "é", "t.t", "'; drop", "x" * 300, "\u202e", "{share}"]
NUMBERS: list[Any] = [0, 1, 2, 3, -1, 2**31, 2**63 - 1, 2**63, 10**30, 1.5, "1", "x", "", None]
NUMBERS += [True, [], {}, "0x1", "\uff11", "1e3", " 1", "-0"]
MOMENTS: list[Any] = ["2022-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "1970-01-01T00:00:00Z"]
MOMENTS += ["", "x", "2022-01-01", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999+14:00", 5]
SQL = ["id = 1", "id > 'x'", "p IS NULL", "nothing = 1", "id = 1 AND", "(", "id IN (1, NULL)"]
SQL += ["CAST(id AS INT) = 1", "id = 99999999999999999999", "p = '\\", "1", "id", "p", "true"]
SQL += ["id <=> NULL", "p < id", "`", "p = ''''", "id / 0 = 1", "NOT id", "p BETWEEN 1 AND 2"]
CAPABILITIES = [
    "",
    "responseformat=delta",
    "responseformat=parquet",
    "responseformat=delta,parquet",
]
CAPABILITIES += ["responseformat=delta;readerfeatures=deletionvectors,columnmapping,timestampntz"]
CAPABILITIES += [
    "includeendstreamaction=true",
    "asyncquery=true",
    "responseformat=x",
    "=;=,;",
    "x" * 999,
]
METHODS = ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"]
SUFFIXES = ["version", "metadata", "query", "changes", "queries", "temporary-table-credentials"]


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Caller:
    root = tmp_path_factory.mktemp("fuzzed")
    rows = pa.table({"id": range(20), "p": ["a", "b", None, "d"] * 5})
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(root / "feed", rows, partition_by=["p"], configuration=feed)
    DeltaTable(root / "feed").update(updates={"id": "id + 1"}, predicate="p = 'a'")
    DeltaTable(root / "feed").delete("p = 'b'")
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(root / "vectors", rows, configuration=vectors)
    DeltaTable(root / "vectors").delete("id = 3")
    shared = {"historyShared": True}
    return sharing(
        {
            "s.d.t": str(root / "feed"),
            "s.d.feed": {"location": str(root / "feed"), **shared},
            "s.d.vectors": {"location": str(root / "vectors"), **shared},
            "s.d.view": {
                "location": str(root / "feed"),
                "columns": ["id"],
                "rowFilter": "id < 5",
                **shared,
            },
            "foreign.d.t": str(root / "feed"),
        },
        recipients=[
            {"name": "alice", "token": TOKEN, "shares": ["s"]},
            {"name": "bob-the-other", "token": OTHER_TOKEN, "shares": ["foreign"]},
        ],
    )


class _Fuzzer:
    """Makes requests, most of them near to sensible ones."""

    def __init__(self, seed: int, urls: list[str], tokens: list[str]) -> None:
        self.random = random.Random(seed)
        self.urls = urls
        self.tokens = tokens

    def request(self) -> tuple[str, str, dict[str, str], bytes]:
        """Method, target, headers and body."""
        pick = self.random.choice
        method, target = self._target()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        if self.random.random() < 0.05:
            headers["Authorization"] = pick(["", "Bearer", f"Bearer {TOKEN}x", "Basic x", "\x00é"])
        if self.random.random() < 0.6:
            headers["delta-sharing-capabilities"] = pick(CAPABILITIES)
        if self.random.random() < 0.1:
            headers[
                pick(["range", "if-range", "accept-encoding", "fileidhash", "content-length"])
            ] = pick(["bytes=0-5", "bytes=-", "gzip", "md5", "crc", "5", "-1", "x" * 100, "é"])
        body = self._body() if method == "POST" or self.random.random() < 0.05 else b""
        return method, target, headers, body

    def _target(self) -> tuple[str, str]:
        draw, pick = self.random.random(), self.random.choice
        if draw < 0.1:
            return pick(["GET", "GET", "HEAD", "POST"]), self._changed(pick(self.urls))
        if draw < 0.15:
            text = "".join(pick(string.printable) for _ in range(self.random.randint(0, 60)))
            return pick(METHODS), "/" + quote(text, safe=pick(["", "/?&=%"]))
        if draw < 0.3:
            listing = pick(["/shares", "/shares/{}", "/shares/{}/schemas", "/shares/{}/all-tables"])
            target = listing.replace("{}", self._name("s"))
            values = {"maxResults": self._number(), "pageToken": self._token()}
            return pick(["GET"] * 90 + METHODS), f"{PREFIX}{target}?{self._query(values)}"
        names = [
            self._name("s"),
            self._name("d"),
            self._name(pick(["t", "feed", "vectors", "view"])),
        ]
        suffix = pick([*SUFFIXES, "query", "query", "changes"])
        path = f"{PREFIX}/shares/{names[0]}/schemas/{names[1]}/tables/{names[2]}/{suffix}"
        if suffix == "queries":
            path += "/" + self._name("x")
        usual = "POST" if suffix in {"query", "queries", "temporary-table-credentials"} else "GET"
        values = {
            "startingVersion": self._number(),
            "endingVersion": self._number(),
            "startingTimestamp": pick(MOMENTS),
            "endingTimestamp": pick(MOMENTS),
            "version": self._number(),
            "timestamp": pick(MOMENTS),
            "maxFiles": self._number(),
            "pageToken": self._token(),
            "includeHistoricalMetadata": pick(["true", "false", "x", ""]),
        }
        return pick([usual] * 90 + METHODS), f"{path}?{self._query(values)}"

    def _name(self, usual: str) -> str:
        name = usual if self.random.random() < 0.95 else self.random.choice(NAMES)
        return quote(name, safe=self.random.choice(["", "/"]))

    def _number(self) -> Any:
        usual = self.random.random() < 0.7
        return self.random.choice([0, 0, 0, 1, 1, 2] if usual else NUMBERS)

    def _query(self, values: dict[str, Any]) -> str:
        count = min(len(values), self.random.choice([0, 0, 1, 1, 2, 3]))
        chosen = self.random.sample(sorted(values), count)
        return "&".join(f"{name}={quote(str(values[name]), safe='')}" for name in chosen)

    def _token(self) -> str:
        if self.random.random() < 0.5:
            return ""
        token = self.random.choice([*self.tokens, "", "x", "A" * 60])
        return self._changed(token) if self.random.random() < 0.3 else token

    def _changed(self, text: str) -> str:
        if self.random.random() < 0.4 or not text:
            return text
        place = self.random.randrange(len(text))
        middle = self.random.choice(["", "A", "0", "/", "%2e", "?", "&", "é"])
        return text[:place] + middle + text[place + self.random.randint(0, 2) :]

    def _body(self) -> bytes:
        pick = self.random.choice
        if self.random.random() < 0.1:
            return pick(
                [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}" * 9, b'{"a":' * 2000, b"0" * 70]
            )
        values = {
            "predicateHints": pick([[pick(SQL)], [pick(SQL), pick(SQL)], pick(SQL), [1], {}, []]),
            "jsonPredicateHints": pick([self._tree(3), "", "x", 5, "[" * 5000]),
            "limitHint": self._number(),
            "version": self._number(),
            "timestamp": pick(MOMENTS),
            "startingVersion": self._number(),
            "endingVersion": self._number(),
            "maxFiles": self._number(),
            "pageToken": self._token(),
            "refreshToken": self._token(),
            "includeRefreshToken": pick([True, False, "x", 1]),
            "idempotencyKey": pick(["k", "", 5, "é"]),
            "location": pick(["/", "s3://x", "../..", "", 5]),
        }
        chosen = self.random.sample(sorted(values), self.random.choice([0, 1, 1, 2, 2, 3, 4]))
        body = orjson.dumps(
            {name: str(values[name]) if _is_huge(values[name]) else values[name] for name in chosen}
        )
        return body if self.random.random() < 0.95 else self._changed(body.decode()).encode()

    def _tree(self, depth: int) -> str:
        return orjson.dumps(self._node(depth)).decode()

    def _node(self, depth: int) -> Any:
        pick = self.random.choice
        kinds = ["bool", "int", "long", "string", "date", "float", "double", "timestamp", "x"]
        operation = pick(
            ["and", "or", "not", "equal", "lessThan", "isNull", "column", "literal", "x"]
        )
        if depth == 0 or operation in {"column", "literal"}:
            return pick(
                [
                    {
                        "op": "column",
                        "name": pick(["id", "p", "nothing", ""]),
                        "valueType": pick(kinds),
                    },
                    {
                        "op": "literal",
                        "value": pick(["1", "x", "", 5, None]),
                        "valueType": pick(kinds),
                    },
                ]
            )
        count = self.random.choice([1, 2, 2, 2, 3])
        return {"op": operation, "children": [self._node(depth - 1) for _ in range(count)]}


def _is_huge(value: object) -> bool:
    return isinstance(value, int) and abs(value) >= 2**63


def _secrets(root: Path) -> Iterator[bytes]:
    yield from (b"bob-the-other", TOKEN.encode(), OTHER_TOKEN.encode(), KEY.encode())
    yield from (str(root).encode(), b"Traceback", b"deltalog/", b"rowFilter")


@pytest.mark.slow("a long property")
@pytest.mark.protocol("SHARE-SEC-06", "SHARE-SEC-07", "SHARE-GEN-05")
def test_no_defect_and_no_leak(
    caller: Caller, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path_factory.getbasetemp()
    urls = [
        "/" + file["url"].partition("://")[2].partition("/")[2]
        for name in ("feed", "view")
        for file in actions(caller.query(f"s.d.{name}"), "file")
    ]
    body = {"maxFiles": 1, "includeRefreshToken": True}
    (end,) = actions(caller.query("s.d.feed", body), "endStreamAction")
    listed = caller.get("/shares/s/all-tables?maxResults=1").json()["nextPageToken"]
    fuzzer = _Fuzzer(7, urls, [end["nextPageToken"], end["refreshToken"], listed])
    caplog.set_level(logging.INFO)
    asyncio.run(_run(caller, fuzzer, list(_secrets(root)), caplog))
    assert caller.query("s.d.feed").status == 200
    assert caller.get(f"{path_of('s.d.feed')}/version").status == 200


async def _run(
    caller: Caller, fuzzer: _Fuzzer, secrets: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    found: Counter[int] = Counter()
    for _ in range(REQUESTS):
        method, target, headers, body = fuzzer.request()
        reply: Reply = await ask_async(caller.app, method, target, headers=headers, body=body)
        said = (method, target, headers, body, reply.status, reply.body[:200])
        assert reply.status in STATUSES, said
        assert reply.is_complete, said
        if reply.status >= 400 and method != "HEAD":
            assert set(reply.json()) == {"errorCode", "message"}, said
        whole = reply.body + repr(reply.headers).encode()
        assert not [secret for secret in secrets if secret in whole], said
        found[reply.status] += 1
        if len(caplog.records) > 500:
            _check_log(caplog, secrets)
    _check_log(caplog, secrets)
    assert found[200] > REQUESTS / 10
    assert found[400] > REQUESTS / 10


def _check_log(caplog: pytest.LogCaptureFixture, secrets: list[bytes]) -> None:
    text = caplog.text.encode()
    hidden = [secret for secret in secrets if secret != b"deltalog/"]
    assert not [secret for secret in hidden if secret in text]
    assert " failed: " not in caplog.text, caplog.text[-2000:]
    caplog.clear()
