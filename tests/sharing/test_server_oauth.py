"""Recipients whom an OAuth issuer names."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.sharing.server.config import OAuthConfig
from deltalog.sharing.server.recipients import TokenVerifier
from tests.support.asgi import ask_async
from tests.support.sharing import PREFIX, TOKEN, Caller, sharing

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed")
ec = pytest.importorskip(
    "cryptography.hazmat.primitives.asymmetric.ec", reason="cryptography is not installed"
)


class _Issuer:
    """Keys, and a server that shows their public halves."""

    def __init__(self) -> None:
        self.keys = {"k1": ec.generate_private_key(ec.SECP256R1())}
        self.num_requests = 0
        self.is_down = False
        self.before: Callable[[], object] = lambda: None  # what happens before it answers
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.num_requests += 1
                issuer.before()
                self.send_response(500 if issuer.is_down else 200)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": issuer.public()}).encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/jwks"

    def public(self) -> list[dict[str, Any]]:
        algorithm = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
        return [
            {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "alg": "ES256"}
            for name, key in self.keys.items()
        ]

    def token(
        self, key: str = "k1", *, headers: dict[str, str] | None = None, **claims: Any
    ) -> str:
        now = int(time.time())
        values = {"sub": "alice-client", "iss": "me", "aud": "us", "exp": now + 60, **claims}
        present = {name: value for name, value in values.items() if value is not None}
        fields = {"kid": key} if headers is None else headers
        return str(jwt.encode(present, self.keys[key], algorithm="ES256", headers=fields))


@pytest.fixture
def issuer() -> Iterator[_Issuer]:
    found = _Issuer()
    yield found
    found.server.shutdown()
    found.server.server_close()
    found.thread.join()


def _caller(issuer: _Issuer) -> Caller:
    oauth = {"issuer": "me", "audience": "us", "jwksUrl": issuer.url}
    recipients = [
        {"name": "alice", "subjects": ["alice-client"], "token": TOKEN, "shares": "all"},
        {"name": "bob", "subjects": ["bob-client"], "shares": "all"},
    ]
    return sharing({"s.d.t": "/x"}, oauth=oauth, recipients=recipients)


def _status(issuer: _Issuer, token: str) -> int:
    return Caller(_caller(issuer).app, token).get("/shares").status


@pytest.mark.protocol("SHARE-GEN-05", "SHARE-SEC-04")
def test_a_signed_token_names_a_recipient(issuer: _Issuer) -> None:
    assert _status(issuer, issuer.token()) == 200
    assert _status(issuer, issuer.token(sub="bob-client")) == 200
    assert _status(issuer, TOKEN) == 200


@pytest.mark.protocol("SHARE-GEN-06")
@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "nobody"},
        {"sub": None},
        {"iss": "somebody"},
        {"iss": None},
        {"aud": "them"},
        {"aud": None},
        {"exp": 1},
        {"exp": None},
        {"nbf": 2**31},
    ],
)
def test_other_claims_let_nobody_in(issuer: _Issuer, claims: dict[str, Any]) -> None:
    assert _status(issuer, issuer.token(**claims)) == 401


def test_other_signatures_let_nobody_in(issuer: _Issuer) -> None:
    good = issuer.token()
    head, body, signature = good.split(".")
    unsigned = jwt.encode({"sub": "alice-client", "iss": "me", "aud": "us"}, "", algorithm="none")
    public = issuer.public()[0]["x"] * 2
    symmetric = jwt.encode(
        {"sub": "alice-client", "iss": "me", "aud": "us", "exp": 2**31},
        public,
        algorithm="HS256",
        headers={"kid": "k1"},
    )
    forged = _Issuer()
    try:
        wrong = [
            unsigned,
            symmetric,
            forged.token(),
            issuer.token(headers={"kid": "other"}),
            issuer.token(headers={}),
            f"{head}.{body}.{signature[:-4]}AAAA",
            f"{head}.{body}.",
            "a.b.c",
            "..",
        ]
    finally:
        forged.server.shutdown()
        forged.server.server_close()
    assert [_status(issuer, token) for token in wrong] == [401] * len(wrong)


def test_keys_are_fetched_when_they_change_but_not_for_everybody(issuer: _Issuer) -> None:
    moments = iter(range(0, 100_000, 10))
    now = [0.0]

    def clock() -> float:
        return now[0]

    config = OAuthConfig(issuer="me", audience="us", jwks_url=issuer.url)
    verifier = TokenVerifier(config, clock)
    assert verifier.subject(issuer.token()) == "alice-client"
    assert verifier.subject(issuer.token()) == "alice-client"
    assert issuer.num_requests == 1
    for _ in range(5):
        now[0] = float(next(moments))
        assert verifier.subject(issuer.token(headers={"kid": "forged"})) is None
    assert issuer.num_requests == 1
    issuer.keys["k2"] = ec.generate_private_key(ec.SECP256R1())
    assert verifier.subject(issuer.token("k2")) is None
    now[0] = 70.0
    assert verifier.subject(issuer.token("k2")) == "alice-client"
    assert issuer.num_requests == 2
    issuer.is_down = True
    now[0] = 10_000.0
    assert verifier.subject(issuer.token()) == "alice-client"


def test_others_are_answered_while_an_issuer_takes_its_time(issuer: _Issuer) -> None:
    app = _caller(issuer).app
    headers = {"Authorization": f"Bearer {issuer.token()}"}

    async def ask_both() -> tuple[int, int]:
        loop, asked, may_answer = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def wait() -> None:
            loop.call_soon_threadsafe(asked.set)
            may_answer.wait(60)

        issuer.before = wait
        slow = asyncio.create_task(ask_async(app, "GET", f"{PREFIX}/shares", headers=headers))
        await asked.wait()
        quick = await ask_async(app, "GET", "/health")
        may_answer.set()
        return quick.status, (await slow).status

    assert asyncio.run(ask_both()) == (200, 200)


class _Discovered(_Issuer):
    """An issuer that says where its keys are."""

    def __init__(self) -> None:
        super().__init__()
        self.description: dict[str, Any] = {"issuer": self.issuer, "jwks_uri": self.url}
        answer_keys = self.server.RequestHandlerClass.do_GET  # type: ignore[attr-defined]
        issuer = self

        def do_get(handler: BaseHTTPRequestHandler) -> None:
            if handler.path != "/realm/.well-known/openid-configuration":
                answer_keys(handler)
                return
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(json.dumps(issuer.description).encode())

        self.server.RequestHandlerClass.do_GET = do_get  # type: ignore[attr-defined]

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/realm"


@pytest.fixture
def discovered() -> Iterator[_Discovered]:
    found = _Discovered()
    yield found
    found.server.shutdown()
    found.server.server_close()
    found.thread.join()


def _discovering(issuer: _Discovered) -> Caller:
    oauth = {"issuer": issuer.issuer, "audience": "us"}
    recipients = [{"name": "alice", "subjects": ["alice-client"], "shares": "all"}]
    token = issuer.token(iss=issuer.issuer)
    return Caller(sharing({"s.d.t": "/x"}, oauth=oauth, recipients=recipients).app, token)


def test_an_issuer_says_where_its_keys_are(discovered: _Discovered) -> None:
    caller = _discovering(discovered)
    assert caller.get("/shares").status == 200
    assert caller.get("/shares").status == 200
    assert discovered.num_requests == 1  # of keys


@pytest.mark.protocol("SHARE-GEN-06")
@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://login.example"},  # one issuer speaks for another
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://login.example/keys"},
        {"jwks_uri": 7},
    ],
)
def test_descriptions_that_are_not_believed(
    discovered: _Discovered, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    discovered.description |= change
    assert _discovering(discovered).get("/shares").status == 401
    assert discovered.num_requests == 0
    assert "cannot fetch the issuer's keys: InvalidInputError" in caplog.text


def test_where_keys_are_is_asked_of_safe_issuers_only() -> None:
    for issuer in ("me", "http://login.example", "ftp://127.0.0.1", "https://"):
        oauth = {"issuer": issuer, "audience": "us"}
        recipients = [{"name": "a", "subjects": ["s"], "shares": "all"}]
        with pytest.raises(InvalidInputError, match=r"oauth\.jwksUrl: is missing"):
            sharing({"s.d.t": "/x"}, oauth=oauth, recipients=recipients)
