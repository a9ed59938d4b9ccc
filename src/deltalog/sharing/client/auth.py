"""Authentication: the `Authorization` header for a profile, and the tokens that are fetched for it.

Owns fetching, keeping and renewing tokens. No error message holds a secret.

Protocol: Profile File Format; RFC 6749 (client credentials), RFC 7523 (private-key JWT)
"""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from deltalog.errors import InvalidInputError, MalformedMessageError, SharingAccessError
from deltalog.sharing.client.http import Request
from deltalog.sharing.client.replies import Reply
from deltalog.sharing.client.texts import printable
from deltalog.sharing.wire.codec import parse_object
from deltalog.sharing.wire.profile import BasicLogin, BearerToken, ClientCredentials, PrivateKeyJwt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.clock import Clock
    from deltalog.sharing.client.http import Http
    from deltalog.sharing.wire.profile import Profile

_RENEWAL_MARGIN_MS: Final = 600_000
_ASSERTION_LIFETIME_S: Final = 120
_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@dataclass(frozen=True, slots=True)
class FixedHeader:
    """Authenticates every request with the same header."""

    header: str

    async def headers(self, http: Http) -> Mapping[str, str]:
        """Return the headers that are sent with a request."""
        del http
        return {"Authorization": self.header}

    def renew(self) -> bool:
        """Return False: there is no other secret than the refused one."""
        return False


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    renew_at_ms: int


class FetchedTokens:
    """Authenticates requests with tokens from the profile's token endpoint.

    A token is kept until shortly before it expires.
    """

    def __init__(self, credentials: ClientCredentials | PrivateKeyJwt, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._token: _Token | None = None

    async def headers(self, http: Http) -> Mapping[str, str]:
        """Return the headers that are sent with a request."""
        token = self._token
        if token is None or self._clock.now_ms() >= token.renew_at_ms:
            self._token = token = await self._fetch(http)
        return {"Authorization": f"Bearer {token.text}"}

    def renew(self) -> bool:
        """Drop a token that was refused, and return True: the next one is another."""
        self._token = None
        return True

    async def _fetch(self, http: Http) -> _Token:
        credentials = self._credentials
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        if isinstance(credentials, ClientCredentials):
            headers["Authorization"] = _basic(credentials.client_id, credentials.client_secret)
            form = {"grant_type": "client_credentials"}
            if credentials.scope:
                form["scope"] = credentials.scope
        else:
            form = {"grant_type": _JWT_BEARER, "assertion": self._assertion(credentials)}
        request = Request(
            what="get a token from the profile's token endpoint",
            url=credentials.token_endpoint,
            method="POST",
            headers=headers,
            body=urlencode(form).encode(),
            is_secret=True,
        )
        return self._parse(await http.fetch(request, Reply.read, _refused))

    def _parse(self, body: bytes) -> _Token:
        node = parse_object(body, "token")
        lifetime = node.values.get("expires_in")
        # RFC 6749, 5.1: `expires_in` is RECOMMENDED. Some issuers write the number as a text.
        try:
            lifetime_ms = 3_600_000 if lifetime is None else int(lifetime) * 1000
        except (TypeError, ValueError, OverflowError):
            raise MalformedMessageError(
                f"token.expires_in: expected seconds, found {str(lifetime)[:40]!r}"
            ) from None
        early_ms = min(_RENEWAL_MARGIN_MS, lifetime_ms // 2)
        text = _one_word(node.required("access_token", str), "token.access_token")
        return _Token(text, self._clock.now_ms() + lifetime_ms - early_ms)

    def _assertion(self, credentials: PrivateKeyJwt) -> str:
        """Return a signed statement of who asks, which is valid for two minutes."""
        now_s = self._clock.now_ms() // 1000
        claims = {
            "aud": credentials.issuer,
            "iss": credentials.client_id,
            "iat": now_s,
            "exp": now_s + _ASSERTION_LIFETIME_S,
            "jti": str(uuid.uuid4()),
            "scope": credentials.scope,
            # RFC 8707 calls the audience of the requested token its `resource`.
            "resource": credentials.audience,
        }
        return _sign({name: value for name, value in claims.items() if value}, credentials)


def make_authenticator(profile: Profile, clock: Clock) -> FixedHeader | FetchedTokens:
    """Return what authenticates the requests for a profile."""
    match profile.credentials:
        case BearerToken(token=token):
            return FixedHeader(f"Bearer {_one_word(token, 'profile.bearerToken')}")
        case BasicLogin(username=username, password=password):
            return FixedHeader(_basic(username, password))
        case ClientCredentials() | PrivateKeyJwt() as credentials:
            return FetchedTokens(credentials, clock)


def _one_word(token: str, where: str) -> str:
    """Return a token that can stand in a header.

    Raises:
        MalformedMessageError: it would begin a header of its own, or cannot be sent.
    """
    if not (token.isascii() and token.isprintable()):
        raise MalformedMessageError(f"{where}: expected a token of printable ASCII characters")
    return token


def _basic(name: str, secret: str) -> str:
    return f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"


def _sign(claims: Mapping[str, object], credentials: PrivateKeyJwt) -> str:
    try:
        import jwt  # noqa: PLC0415  # needed for this kind of profile alone
    except ImportError as error:  # pragma: no cover -- the tests' environment has it
        raise InvalidInputError(
            "cannot sign in with a private key: PyJWT is not installed; "
            "pip install 'deltalog[sharing]'"
        ) from error
    path = Path(credentials.private_key_file)
    try:
        key = path.read_bytes()
        return jwt.encode(
            dict(claims), key, algorithm=credentials.algorithm, headers={"kid": credentials.key_id}
        )
    except OSError as error:
        raise InvalidInputError(
            f"cannot sign in with the private key {path.name!r}: {error.strerror}"
        ) from None
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInputError(
            f"cannot sign in with the private key {path.name!r} and {credentials.algorithm!r}: "
            f"{type(error).__name__}; expected a PEM file with a key for that algorithm"
        ) from None


def _refused(status: int, headers: Mapping[str, str], body: bytes) -> SharingAccessError:
    del headers
    return SharingAccessError(
        f"cannot get a token: the token endpoint answered {status}{_reason(body)}; ask the "
        "provider for a new profile if its secret has expired",
        status=status,
    )


def _reason(body: bytes) -> str:
    """Return OAuth's error code (RFC 6749, 5.2), which holds no secret."""
    try:
        found = parse_object(body, "token").optional("error", str)
    except MalformedMessageError:
        return ""
    return f" ({printable(found, 60)})" if found else ""
