"""How profiles prove themselves."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from deltalog.errors import InvalidInputError, MalformedMessageError, SharingAccessError
from deltalog.sharing.client import AsyncRestClient, HttpOptions, Retry, read_profile
from deltalog.storage.http.client import run
from tests.support.sharing_server import Answer, Asked, ScriptedServer, fault, listed

pytestmark = pytest.mark.protocol("SHARE-PRO-04", "B-97")
QUICK = HttpOptions(retry=Retry(attempts=3, first_delay_ms=1))
SHARES = listed([{"name": "s"}])


class SlowClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


def _token(text: str = "t-1", **more: Any) -> Answer:
    return Answer(200, json.dumps({"access_token": text, "token_type": "Bearer", **more}).encode())


def _client(
    server: ScriptedServer, clock: SlowClock | None = None, **profile: Any
) -> AsyncRestClient:
    values = {"shareCredentialsVersion": 2, "endpoint": server.endpoint, **profile}
    return AsyncRestClient(read_profile(values), QUICK, clock=clock)


def _list(client: AsyncRestClient) -> None:
    assert len(run(client.list_shares).items) == 1


def _oauth(server: ScriptedServer) -> dict[str, Any]:
    return {
        "type": "oauth_client_credentials",
        "tokenEndpoint": f"{server.url}/oauth/token",
        "clientId": "id:1",
        "clientSecret": "geheim",
        "scope": "read all",
    }


def _secrets(server: ScriptedServer) -> list[str]:
    return [asked.headers["authorization"] for asked in server.find("/shares")]


def _form(asked: Asked) -> dict[str, str]:
    return dict(parse_qsl(asked.body.decode()))


@pytest.mark.protocol("SHARE-GEN-01")
def test_a_bearer_token_goes_with_every_request(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", SHARES)
    client = _client(scripted, type="bearer_token", bearerToken="abc")
    _list(client)
    _list(client)
    assert _secrets(scripted) == ["Bearer abc"] * 2


def test_a_name_and_a_password_go_with_every_request(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", SHARES)
    login: dict[str, Any] = {"username": "u", "password": "ä:b"}
    _list(_client(scripted, type="basic", **login))
    assert _secrets(scripted) == ["Basic " + base64.b64encode("u:ä:b".encode()).decode()]


def test_a_token_is_fetched_once_and_kept(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", SHARES)
    scripted.at("/oauth/token", _token(expires_in=3600))
    client = _client(scripted, **_oauth(scripted))
    _list(client)
    _list(client)
    (asked,) = scripted.find("/oauth/token")
    assert _form(asked) == {"grant_type": "client_credentials", "scope": "read all"}
    assert asked.headers["authorization"] == "Basic " + base64.b64encode(b"id:1:geheim").decode()
    assert _secrets(scripted) == ["Bearer t-1"] * 2


@pytest.mark.parametrize(
    ("lifetime", "kept_s"), [(3600, 2999), ("3600", 2999), (100, 49), (None, 2999)]
)
def test_a_token_is_renewed_before_it_ends(
    scripted: ScriptedServer, lifetime: Any, kept_s: int
) -> None:
    scripted.on("GET /shares", SHARES)
    more = {} if lifetime is None else {"expires_in": lifetime}
    scripted.at("/oauth/token", _token("t-1", **more), _token("t-2", **more))
    clock = SlowClock()
    client = _client(scripted, clock, **_oauth(scripted))
    _list(client)
    clock.sleep(kept_s)
    _list(client)
    clock.sleep(2)
    _list(client)
    assert _secrets(scripted) == ["Bearer t-1", "Bearer t-1", "Bearer t-2"]


def test_a_token_that_is_refused_is_renewed_once(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", fault(401), SHARES, fault(401))
    scripted.at("/oauth/token", _token("t-1"), _token("t-2"), _token("t-3"))
    client = _client(scripted, **_oauth(scripted))
    _list(client)
    assert _secrets(scripted) == ["Bearer t-1", "Bearer t-2"]
    with pytest.raises(SharingAccessError):
        _list(client)
    assert _secrets(scripted)[2:] == ["Bearer t-2", "Bearer t-3"]


def test_an_issuer_that_refuses_is_told_without_secrets(scripted: ScriptedServer) -> None:
    body = b'{"error": "invalid_client", "error_description": "geheim is wrong"}'
    scripted.at("/oauth/token", Answer(401, body))
    with pytest.raises(SharingAccessError, match=r"answered 401 \(invalid_client\)") as caught:
        _list(_client(scripted, **_oauth(scripted)))
    assert "geheim" not in str(caught.value)
    assert scripted.find("/shares") == []


def test_an_issuer_that_is_busy_is_asked_again(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", SHARES)
    scripted.at("/oauth/token", fault(503), _token())
    _list(_client(scripted, **_oauth(scripted)))
    assert len(scripted.find("/oauth/token")) == 2


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"access_token": 7}', b'{"access_token":"a","expires_in":"x"}']
)
def test_what_is_no_token_is_refused(scripted: ScriptedServer, body: bytes) -> None:
    scripted.at("/oauth/token", Answer(200, body))
    with pytest.raises(MalformedMessageError, match="token"):
        _list(_client(scripted, **_oauth(scripted)))


def _key_profile(server: ScriptedServer, key: Path, **more: Any) -> dict[str, Any]:
    return {
        "type": "oauth_jwt_bearer_private_key_jwt",
        "auth": {
            "tokenEndpoint": f"{server.url}/oauth/token",
            "issuer": "https://issuer.example/",
            "clientId": "client-1",
            "audience": "https://sharing.example",
            "scope": "sharing:read",
            "privateKey": {"privateKeyFile": str(key), "keyId": "k-1", **more},
        },
    }


@pytest.fixture(scope="module")
def rsa_key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path = tmp_path_factory.mktemp("keys") / "rsa.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path, key.public_key()


def test_an_assertion_is_signed_with_the_private_key(
    scripted: ScriptedServer, rsa_key: tuple[Path, Any]
) -> None:
    scripted.on("GET /shares", SHARES)
    scripted.at("/oauth/token", _token("t-9", expires_in=60))
    clock = SlowClock()
    path, public = rsa_key
    _list(_client(scripted, clock, **_key_profile(scripted, path)))
    form = _form(scripted.find("/oauth/token")[0])
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert jwt.get_unverified_header(form["assertion"])["kid"] == "k-1"
    claims = jwt.decode(
        form["assertion"],
        public,
        ["RS256"],
        audience="https://issuer.example/",
        options={"verify_exp": False, "verify_iat": False},
    )
    assert claims.pop("jti")
    now_s = clock.ms // 1000
    assert claims == {
        "aud": "https://issuer.example/",
        "iss": "client-1",
        "iat": now_s,
        "exp": now_s + 120,
        "scope": "sharing:read",
        "resource": "https://sharing.example",
    }
    assert _secrets(scripted) == ["Bearer t-9"]


def test_other_algorithms_sign_too(scripted: ScriptedServer, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    path = tmp_path / "ec.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    scripted.on("GET /shares", SHARES)
    scripted.at("/oauth/token", _token())
    _list(_client(scripted, **_key_profile(scripted, path, algorithm="ES256")))
    assertion = _form(scripted.find("/oauth/token")[0])["assertion"]
    assert jwt.get_unverified_header(assertion)["alg"] == "ES256"


@pytest.mark.parametrize("algorithm", ["ES256", "XX999"])
def test_a_key_that_cannot_sign_is_named(
    scripted: ScriptedServer, rsa_key: tuple[Path, Any], algorithm: str
) -> None:
    client = _client(scripted, **_key_profile(scripted, rsa_key[0], algorithm=algorithm))
    with pytest.raises(InvalidInputError, match=r"rsa\.pem"):
        _list(client)


def test_a_key_that_is_not_there_is_named(scripted: ScriptedServer, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"gone\.pem.*No such file"):
        _list(_client(scripted, **_key_profile(scripted, tmp_path / "gone.pem")))


def test_a_file_that_is_no_key_is_named(scripted: ScriptedServer, tmp_path: Path) -> None:
    path = tmp_path / "text.pem"
    path.write_text("geheim", "utf-8")
    with pytest.raises(InvalidInputError, match=r"text\.pem") as caught:
        _list(_client(scripted, **_key_profile(scripted, path)))
    assert "geheim" not in str(caught.value)
