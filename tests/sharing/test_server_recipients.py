"""Recipients: tokens, addresses, tenants and rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deltalog.sharing.server import app
from deltalog.sharing.server.faults import Fault
from deltalog.sharing.server.recipients import RateLimit
from tests.support.asgi import ask
from tests.support.sharing import PREFIX, TOKEN, Caller, config_of, path_of, sharing


@pytest.mark.protocol("SHARE-GEN-05", "SHARE-GEN-06", "SHARE-GEN-04", "SHARE-SEC-04")
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic x",
        "Bearer",
        "Bearer ",
        "Bearer wrong-token",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        TOKEN,
        "Bearer a.b.c",
    ],
)
def test_without_a_valid_token(vaccine: Caller, header: str | None) -> None:
    for method, target in (
        ("GET", "/shares"),
        ("GET", "/shares/vaccine_share"),
        ("POST", f"{path_of('vaccine_share.more.t')}/query"),
        ("GET", "/shares/nowhere/schemas"),
    ):
        fields = {} if header is None else {"Authorization": header}
        reply = ask(vaccine.app, method, PREFIX + target, headers=fields)
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.headers["content-type"] == "application/json"
        assert reply.json() == {
            "errorCode": "UNAUTHENTICATED",
            "message": "a valid bearer token is required",
        }


@pytest.mark.protocol("SHARE-GEN-13")
def test_the_scheme_of_the_token_is_in_any_case(vaccine: Caller) -> None:
    reply = ask(
        vaccine.app, "GET", f"{PREFIX}/shares", headers={"AUTHORIZATION": f"bEaReR {TOKEN}"}
    )
    assert reply.status == 200


T = "s.d.t"


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
        recipient = {"name": "alice", "tokens": [token], "shares": "all"}
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
