"""Hostile requests, tables and URLs: a defined answer, and nothing told."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import orjson
import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.clock import now_ms
from deltalog.sharing.server import app
from deltalog.sharing.server import endpoints as endpoints_module
from deltalog.sharing.server.faults import Fault
from deltalog.sharing.server.recipients import RateLimit, Recipient
from deltalog.sharing.server.tables import TableName
from deltalog.sharing.server.tokens import InvalidTokenError, Sealer, encode_base64
from deltalog.sharing.server.urls import UrlSigner
from tests.support.asgi import ask
from tests.support.sharing import KEY, PREFIX, TOKEN, Caller, actions, config_of, path_of, sharing

T = "s.d.t"
SCOPE = {
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


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "t", pa.table({"id": range(100)}))
    return tmp_path / "t"


@pytest.fixture
def caller(table: Path) -> Caller:
    return sharing({T: {"location": str(table), "historyShared": True}})


def _url(caller: Caller) -> str:
    return str(actions(caller.query(T), "file")[0]["url"])


def _fetch(caller: Caller, url: str, method: str = "GET") -> int:
    target = "/" + url.partition("://")[2].partition("/")[2]
    return ask(caller.app, method, target).status


# -- signed URLs


@pytest.mark.protocol("SHARE-SEC-01")
def test_a_url_opens_one_file_and_nothing_else(caller: Caller) -> None:
    url = _url(caller)
    assert _fetch(caller, url) == 200
    assert _fetch(caller, url, "HEAD") == 200
    for method in ("POST", "PUT", "DELETE"):
        assert _fetch(caller, url, method) == 405
    start, query = url.split("?")
    head, name = start.rsplit("/", 1)
    base, _ = head.rsplit("/", 1)
    expires = query.partition("X-Amz-Expires=")[2].partition("&")[0]
    other = encode_base64(b"other.parquet")
    longer = query.replace(expires, str(int(expires) + 1))
    wrong = [
        f"{head}/{other}?{query}",
        f"{base}/{encode_base64(b'alice')}/{name}?{query}",
        f"{start}?{longer}",
        f"{start}?{query[:-1]}{'0' if query[-1] != '0' else '1'}",
        f"{start}?{query}x",
        f"{start}?{query.upper()}",
        start,
        f"{start}?X-Amz-Expires={expires}",
        f"{head}/{name}=?{query}",
        f"{start}?X-Amz-Signature=&X-Amz-Expires=",
    ]
    assert [_fetch(caller, one) for one in wrong] == [403] * len(wrong)


@pytest.mark.protocol("SHARE-SEC-01")
def test_urls_end(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    before = now_ms()
    file = actions(caller.query(T), "file")[0]
    assert 3_600_000 <= file["expirationTimestamp"] - before < 3_660_000
    monkeypatch.setattr(endpoints_module, "now_ms", lambda: file["expirationTimestamp"] - 1)
    assert _fetch(caller, file["url"]) == 200
    monkeypatch.setattr(endpoints_module, "now_ms", lambda: file["expirationTimestamp"])
    assert _fetch(caller, file["url"]) == 403


@pytest.mark.protocol("SHARE-SEC-01")
def test_the_length_of_life_is_configurable(table: Path) -> None:
    before = now_ms()
    caller = sharing({T: table}, preSignedUrlTimeoutSeconds=5)
    ends = actions(caller.query(T), "file")[0]["expirationTimestamp"]
    assert 5000 <= ends - before < 65_000


@pytest.mark.protocol("SHARE-SEC-01", "SHARE-SEC-03")
def test_urls_die_with_their_recipient_share_and_key(table: Path) -> None:
    caller = sharing({T: table})
    url = _url(caller)
    bob = {"name": "bob", "token": "token-of-bob", "shares": ["s"]}
    alice_without = {"name": "alice", "token": TOKEN, "shares": ["x"]}
    without = {"recipients": [alice_without, bob]}
    for other, status in (
        (sharing({T: table}), 200),
        (sharing({T: table}, recipients=[bob]), 404),
        (Caller(app(config_of({T: table, "x.d.t": table}, **without))), 404),
        (sharing({"s.d.other": table}), 404),
        (sharing({T: table}, signingKey="another key of 16 bytes"), 403),
    ):
        assert _fetch(other, url) == status


def test_a_url_is_what_the_official_kernel_takes_for_remote(caller: Caller) -> None:
    assert "X-Amz-Signature=" in _url(caller)


# -- tables that name files elsewhere


def _write(table: Path, path: str) -> None:
    add = {
        "path": path,
        "partitionValues": {},
        "size": 10,
        "modificationTime": 1,
        "dataChange": True,
    }
    log = table / "_delta_log" / f"{1:020d}.json"
    log.write_bytes(orjson.dumps({"add": add}) + b"\n")


@pytest.mark.protocol("SHARE-SEC-02", "SHARE-SEC-07")
@pytest.mark.parametrize(
    "path",
    [
        "../other.parquet",
        "a/../../other.parquet",
        "%2e%2e/other.parquet",
        "%252e%252e/other.parquet",
        "..%5Cother.parquet",
        "/etc/passwd",
        "file:///etc/passwd",
        "s3://bucket/key",
        "http://internal/x",
        "//host/x",
        "a%00b",
        "_delta_log/00000000000000000000.json",
        "./_delta_log/00000000000000000000.json",
        "a/%2e%2e/%2e%2e/x",
    ],
)
@pytest.mark.parametrize("body", [{}, {"startingVersion": 1}, {"maxFiles": 1}])
def test_paths_that_lead_out_get_no_url(
    table: Path, caller: Caller, path: str, body: object
) -> None:
    _write(table, path)
    reply = caller.query(T, body)
    assert reply.status == 400
    assert b"_files" not in reply.body
    assert b"passwd" not in reply.body
    assert str(table).encode() not in reply.body


@pytest.mark.protocol("SHARE-SEC-02")
def test_absolute_paths_inside_of_the_table_are_its_own(table: Path, caller: Caller) -> None:
    (own,) = [file.name for file in table.iterdir() if file.suffix == ".parquet"]
    _write(table, f"file://{quote(str(table / own))}")
    urls = [file["url"] for file in actions(caller.query(T), "file")]
    assert {_fetch(caller, url) for url in urls} == {200}


@pytest.mark.protocol("SHARE-SEC-02")
def test_links_out_of_the_table_are_not_followed(table: Path, caller: Caller) -> None:
    (table.parent / "secret.parquet").write_bytes(b"secret")
    (table / "link.parquet").symlink_to(table.parent / "secret.parquet")
    (table / "up").symlink_to(table.parent)
    statuses = []
    for path in ("link.parquet", "up/secret.parquet"):
        _write(table, path)
        replies = [_fetch(caller, file["url"]) for file in actions(caller.query(T), "file")]
        statuses.append(sorted(replies))
        (table / "_delta_log" / f"{1:020d}.json").unlink()
    assert statuses == [[200, 404], [200, 404]]


@pytest.mark.protocol("SHARE-SEC-02")
@pytest.mark.parametrize(
    "path", ["../t/x.parquet", "/etc/passwd", "_delta_log/00000000000000000000.json", ""]
)
def test_even_a_url_that_we_signed_leads_nowhere_else(
    table: Path, caller: Caller, path: str
) -> None:
    """The last door: whatever was signed, the file is looked at again."""
    (table / "x.parquet").write_bytes(b"x")
    signer = UrlSigner(KEY.encode(), 60)
    alice = Recipient("alice", None)
    name = TableName("s", "d", "t")
    base = f"http://sharing.test{PREFIX}"
    sign = signer.signer(name, alice, base, now_ms() + 60_000)
    assert _fetch(caller, sign("x.parquet")) == 200
    assert _fetch(caller, sign(path)) == 404


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


# -- recipients


def _two(table: Path, **more: object) -> Caller:
    recipients = [
        {"name": "alice", "token": TOKEN, "shares": ["s"]},
        {"name": "bob", "token": "token-of-bob", "shares": ["x"], **more},
    ]
    return Caller(app(config_of({T: table, "x.d.t": table}, recipients=recipients)))


@pytest.mark.protocol("SHARE-SEC-03")
@pytest.mark.parametrize(
    ("method", "suffix"),
    [
        ("GET", "/version"),
        ("HEAD", ""),
        ("GET", "/metadata"),
        ("POST", "/query"),
        ("GET", "/changes?startingVersion=0"),
        ("POST", "/queries/x"),
        ("POST", "/temporary-table-credentials"),
    ],
)
def test_tables_of_others_are_not_there(table: Path, method: str, suffix: str) -> None:
    alice = _two(table)
    bob = replace(alice, token="token-of-bob")  # noqa: S106
    foreign, absent = path_of("x.d.t"), path_of("nowhere.d.t")
    one, other = alice.ask(method, foreign + suffix), alice.ask(method, absent + suffix)
    assert (one.status, one.body) == (other.status, other.body)
    assert one.status == 404
    assert bob.ask(method, foreign + suffix).body != one.body or method == "HEAD"


@pytest.mark.protocol("SHARE-GEN-05", "SHARE-SEC-04")
def test_tokens_expire(table: Path) -> None:
    from deltalog.sharing.server.tokens import token_digest

    def with_end(moment: str) -> Caller:
        token = {"hash": f"sha256:{token_digest(TOKEN)}", "expires": moment}
        recipient = {"name": "alice", "tokens": [token]}
        return Caller(app(config_of({T: table}, recipients=[recipient])))

    assert with_end("2999-01-01T00:00:00Z").get("/shares").status == 200
    assert with_end("2020-01-01T00:00:00Z").get("/shares").status == 401


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("10.1.2.3", 200),
        ("::ffff:10.1.2.3", 200),
        ("fd00::1", 200),
        ("11.0.0.1", 403),
        ("testclient", 403),
    ],
)
@pytest.mark.protocol("SHARE-GEN-05")
def test_addresses(table: Path, address: str, status: int) -> None:
    caller = _two(table, ipRanges=["10.0.0.0/8", "fd00::/8"])
    headers = {"Authorization": "Bearer token-of-bob"}
    reply = ask(caller.app, "GET", f"{PREFIX}/shares", headers=headers, client=address)
    assert reply.status == status
    if status == 403:
        assert reply.json()["errorCode"] == "PERMISSION_DENIED"


# -- tokens of our own


@pytest.mark.protocol("SHARE-SEC-05")
def test_seals_hold() -> None:
    sealer = Sealer(KEY.encode())
    token = sealer.seal("page", {"o": 5}, 1000)
    assert sealer.open("page", token, 999) == {"o": 5}
    others = [
        token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        for place in range(len(token))
    ]
    for wrong in (*others, token + "A", token[:-1], "", "é", "A" * 10_000, token + "="):
        with pytest.raises(InvalidTokenError):
            sealer.open("page", wrong, 0)
    for kind, time_ms in (("refresh", 0), ("page", 1000)):
        with pytest.raises(InvalidTokenError):
            sealer.open(kind, token, time_ms)
    with pytest.raises(InvalidTokenError):
        Sealer(b"another key of sixteen").open("page", token, 0)


# -- sizes and times


@pytest.mark.protocol("SHARE-SEC-06")
def test_sizes_are_bounded(table: Path) -> None:
    caller = sharing({T: table}, limits={"bodyBytes": 1000, "urlBytes": 500})
    assert caller.query(T, b" " * 1001).status == 413
    assert caller.query(T, b" " * 1000).status == 200
    assert caller.get(f"/shares?x={'a' * 500}").status == 414
    lying = ask(
        caller.app,
        "POST",
        f"{PREFIX}{path_of(T)}/query",
        headers={"Authorization": f"Bearer {TOKEN}", "transfer-encoding": "chunked"},
        body=b" " * 5000,
    )
    assert lying.status == 413
    for length in ("-1", "x", "9" * 30):
        reply = caller.ask("POST", f"{path_of(T)}/query", headers={"content-length": length})
        assert reply.status == 413


@pytest.mark.protocol("SHARE-SEC-06", "SHARE-JP-09")
def test_huge_hints_filter_nothing(caller: Caller) -> None:
    deep = '{"op":"not","children":[' * 101 + '{"op":"isNull"}' + "]}" * 101
    hints = [deep, "[" * 50_000, "x" * (1 << 20 | 1)]
    for hint in hints:
        reply = caller.query(T, {"jsonPredicateHints": hint})
        assert len(actions(reply, "file")) == 1
    wide = " OR ".join(["id = 1"] * 100_000)
    assert len(actions(caller.query(T, {"predicateHints": [wide]}), "file")) == 1


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

    scope = {**SCOPE, "path": f"{PREFIX}{path_of(T)}/query"}
    asyncio.run(caller.app(scope, silent, send))  # type: ignore[arg-type]  # a plain dict
    assert statuses == [408]


@pytest.mark.protocol("SHARE-SEC-06")
def test_a_client_that_takes_nothing_is_given_up(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import asyncio

    caller = sharing({T: table}, limits={"sendSeconds": 1})
    started = []

    bodies = [{"type": "http.request", "body": b"{}", "more_body": False}]

    async def receive() -> dict[str, object]:
        if not bodies:
            await asyncio.sleep(60)
        return bodies.pop()

    async def send(message: dict[str, object]) -> None:
        started.append(message["type"])
        if message["type"] == "http.response.body":
            await asyncio.sleep(60)

    scope = {**SCOPE, "path": f"{PREFIX}{path_of(T)}/query"}
    with caplog.at_level(logging.INFO):
        asyncio.run(caller.app(scope, receive, send))  # type: ignore[arg-type]  # plain dicts
    assert started == ["http.response.start", "http.response.body"]
    told = " ".join(caplog.messages)
    assert '"complete":false' in told
    assert "TimeoutError" in told


@pytest.mark.protocol("SHARE-SEC-06")
def test_rates_are_bounded(table: Path) -> None:
    caller = sharing({T: table}, limits={"requestsPerMinute": 3})
    replies = [caller.get("/shares") for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429]
    assert 1 <= int(replies[3].headers["retry-after"]) <= 20
    assert replies[3].json()["errorCode"] == "TOO_MANY_REQUESTS"


def test_rates_recover_and_are_each_recipients_own() -> None:
    now = [0.0]
    limit = RateLimit(2, lambda: now[0])
    for name in ("alice", "alice", "bob"):
        limit.take(name)
    with pytest.raises(Fault) as caught:
        limit.take("alice")
    assert caught.value.headers == {"Retry-After": "30"}
    now[0] = 30.0
    limit.take("alice")
    with pytest.raises(Fault):
        limit.take("alice")
    now[0] = 1000.0
    for _ in range(2):
        limit.take("alice")
    with pytest.raises(Fault):
        limit.take("alice")


# -- what is told and logged


@pytest.mark.protocol("SHARE-GEN-05", "SHARE-SEC-07", "SHARE-GEN-07")
def test_an_unforeseen_error_tells_nothing(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("/secret/path of token-of-alice")

    monkeypatch.setattr(endpoints_module, "answer_query", fail)
    with caplog.at_level(logging.INFO):
        reply = caller.query(T)
    assert reply.status == 500
    assert reply.json() == {
        "errorCode": "INTERNAL_ERROR",
        "message": "the server could not handle the request",
    }
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.protocol("SHARE-SEC-07")
def test_an_answer_that_breaks_is_not_taken_for_complete(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalog.errors import StorageError
    from deltalog.sharing.server.file_lines import FileLines

    def fail(*_: object, **__: object) -> None:
        raise StorageError("cannot read /secret/path")

    monkeypatch.setattr(FileLines, "chunks", fail)
    reply = caller.query(T)
    assert not reply.is_complete
    header = "includeendstreamaction=true"
    told = caller.query(T, delta_sharing_capabilities=header)
    assert told.is_complete
    (end,) = actions(told, "endStreamAction")
    assert end == {"errorMessage": "the table's storage does not respond; try again later"}


@pytest.mark.protocol("SHARE-SEC-07")
def test_the_audit_log(caller: Caller, table: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="deltalog.sharing.audit"):
        url = _url(caller)
        caller.download(url)
        caller.get("/shares/nowhere")
        replace(caller, token="wrong-token-here").get("/shares")  # noqa: S106
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [(line["action"], line["recipient"], line["status"]) for line in lines] == [
        ("query", "alice", 200),
        ("get_file", "alice", 200),
        ("get_share", "alice", 404),
        ("list_shares", None, 401),
    ]
    query = lines[0]
    assert (query["table"], query["version"], query["files"]) == ("s/d/t", 0, 1)
    assert query["complete"]
    assert query["bytes"] > 0
    text = caplog.text
    for secret in (TOKEN, "wrong-token-here", str(table), ".parquet", "X-Amz-Signature", "nowhere"):
        assert secret not in text
