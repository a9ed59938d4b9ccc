"""Authentication: the `Authorization` header for a profile, or the requests for its tokens.

Owns what each kind of profile proves, and how. No error message holds a secret.

Protocol: Profile File Format; RFC 6749 (client credentials), RFC 7523 (private-key JWT)
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalog.errors import (
    InvalidInputError,
    MalformedMessageError,
    SharingAccessError,
    SharingError,
    SharingUnavailableError,
)
from deltalog.http.faults import HttpFaults
from deltalog.http.tokens import (
    FetchedTokens,
    FixedHeader,
    basic,
    client_credentials_form,
    one_word,
    token_request,
)
from deltalog.sharing.wire.profile import BasicLogin, BearerToken, ClientCredentials, PrivateKeyJwt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.clock import Clock
    from deltalog.http.client import Request
    from deltalog.sharing.wire.profile import Profile

_ASSERTION_LIFETIME_S: Final = 120
_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_WHAT: Final = "get a token from the profile's token endpoint"
_HINT: Final = "ask the provider for a new profile if its secret has expired"
SHARING_FAULTS: Final = HttpFaults(
    refused=SharingError,
    unavailable=SharingUnavailableError,
    denied=SharingAccessError,
    malformed=MalformedMessageError,
)
"""The errors of requests to a sharing server."""


def make_authenticator(profile: Profile, clock: Clock) -> FixedHeader | FetchedTokens:
    """Return what authenticates the requests for a profile."""
    match profile.credentials:
        case BearerToken(token=token):
            return FixedHeader(f"Bearer {one_word(token, 'profile.bearerToken')}")
        case BasicLogin(username=username, password=password):
            return FixedHeader(basic(username, password))
        case ClientCredentials() as client:
            return FetchedTokens(lambda: _token_request(client), clock, hint=_HINT)
        case PrivateKeyJwt() as key:
            return FetchedTokens(lambda: _signed_request(key, clock), clock, hint=_HINT)


def _token_request(credentials: ClientCredentials) -> Request:
    login = basic(credentials.client_id, credentials.client_secret)
    form = client_credentials_form(credentials.scope)
    return token_request(_WHAT, credentials.token_endpoint, form, login)


def _signed_request(credentials: PrivateKeyJwt, clock: Clock) -> Request:
    form = {"grant_type": _JWT_BEARER, "assertion": _assertion(credentials, clock)}
    return token_request(_WHAT, credentials.token_endpoint, form, None)


def _assertion(credentials: PrivateKeyJwt, clock: Clock) -> str:
    """Return a signed statement of who asks, which is valid for two minutes."""
    now_s = clock.now_ms() // 1000
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
