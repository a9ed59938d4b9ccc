"""The profile: a small JSON file by which a recipient finds a server and proves who he is.

Owns versions 1 and 2. Secrets are never shown.

Protocol: Profile File Format
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import JsonObject, dumps
from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.sharing.wire.codec import encode_timestamp, parse_timestamp
from deltalog.sharing.wire.lines import whole_number
from deltalog.sharing.wire.listing import message_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NEWEST_VERSION: Final = 2

BEARER_TOKEN: Final = "bearer_token"  # noqa: S105 -- the name of a kind
BASIC: Final = "basic"
CLIENT_CREDENTIALS: Final = "oauth_client_credentials"
PRIVATE_KEY_JWT: Final = "oauth_jwt_bearer_private_key_jwt"


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """A token that goes with every request."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicLogin:
    """A name and a password that go with every request."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """Tokens are fetched with a client's secret.

    Protocol: OAuth 2.0 client credentials grant
    """

    token_endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateKeyJwt:
    """Tokens are fetched with an assertion that a private key has signed.

    Args:
        private_key_file: path of a PEM file.
        key_id: which of the client's keys it is.
        algorithm: of the signature.

    Protocol: RFC 7523
    """

    token_endpoint: str
    issuer: str
    client_id: str
    audience: str
    private_key_file: str
    key_id: str
    algorithm: str = "RS256"
    scope: str | None = None


Credentials = BearerToken | BasicLogin | ClientCredentials | PrivateKeyJwt


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Where a server is and how to be let in.

    Args:
        endpoint: of the server, without a slash at its end.
        expiration_ms: when a bearer token ends; None is never.
    """

    version: int
    endpoint: str
    credentials: Credentials
    expiration_ms: int | None = None


def parse_profile(data: bytes) -> Profile:
    """The profile of a file's bytes.

    Raises:
        InvalidInputError: its version or its type is not known here: upgrade.
        MalformedMessageError: it is no profile.
    """
    node = message_object(data, "profile")
    version = whole_number(node, "shareCredentialsVersion")
    if version is None:
        raise MalformedMessageError("profile.shareCredentialsVersion: the number is missing")
    if not 1 <= version <= NEWEST_VERSION:
        raise InvalidInputError(
            f"cannot use a profile of version {version}: this release knows versions 1 to "
            f"{NEWEST_VERSION}; upgrade deltalog"
        )
    kind = BEARER_TOKEN if version == 1 else node.required("type", str)
    parse = _CREDENTIALS.get(kind)
    if parse is None:
        raise InvalidInputError(
            f"cannot use a profile of type {kind!r}: this release knows "
            f"{', '.join(_CREDENTIALS)}; upgrade deltalog"
        )
    expiration = node.optional("expirationTime", str)
    return Profile(
        version=version,
        endpoint=node.required("endpoint", str).removesuffix("/"),
        credentials=parse(node),
        expiration_ms=(
            None if expiration is None else parse_timestamp(expiration, "profile.expirationTime")
        ),
    )


def encode_profile(profile: Profile) -> bytes:
    """The file's bytes, secrets and all: write it so that nobody else reads it."""
    kind, values = _credentials_to_json(profile.credentials)
    body: dict[str, Any] = {"shareCredentialsVersion": profile.version}
    if profile.version > 1:
        body["type"] = kind
    body["endpoint"] = profile.endpoint
    body |= {key: value for key, value in values.items() if value is not None}
    if profile.expiration_ms is not None:
        body["expirationTime"] = encode_timestamp(profile.expiration_ms)
    return dumps(body)


def _bearer_from_json(node: JsonObject) -> Credentials:
    return BearerToken(token=node.required("bearerToken", str))


def _basic_from_json(node: JsonObject) -> Credentials:
    return BasicLogin(
        username=node.required("username", str), password=node.required("password", str)
    )


def _client_credentials_from_json(node: JsonObject) -> Credentials:
    return ClientCredentials(
        token_endpoint=node.required("tokenEndpoint", str).removesuffix("/"),
        client_id=node.required("clientId", str),
        client_secret=node.required("clientSecret", str),
        scope=node.optional("scope", str),
    )


def _private_key_from_json(node: JsonObject) -> Credentials:
    auth = JsonObject(node.values.get("auth"), "profile.auth", MalformedMessageError)
    key = JsonObject(
        auth.values.get("privateKey"), "profile.auth.privateKey", MalformedMessageError
    )
    return PrivateKeyJwt(
        token_endpoint=auth.required("tokenEndpoint", str).removesuffix("/"),
        issuer=auth.required("issuer", str),
        client_id=auth.required("clientId", str),
        audience=auth.required("audience", str),
        private_key_file=key.required("privateKeyFile", str),
        key_id=key.required("keyId", str),
        algorithm=key.optional("algorithm", str) or "RS256",
        scope=auth.optional("scope", str),
    )


_CREDENTIALS: Final[Mapping[str, Callable[[JsonObject], Credentials]]] = {
    BEARER_TOKEN: _bearer_from_json,
    BASIC: _basic_from_json,
    CLIENT_CREDENTIALS: _client_credentials_from_json,
    PRIVATE_KEY_JWT: _private_key_from_json,
}


def _credentials_to_json(credentials: Credentials) -> tuple[str, dict[str, Any]]:
    match credentials:
        case BearerToken():
            return BEARER_TOKEN, {"bearerToken": credentials.token}
        case BasicLogin():
            return BASIC, {"username": credentials.username, "password": credentials.password}
        case ClientCredentials():
            return CLIENT_CREDENTIALS, {
                "tokenEndpoint": credentials.token_endpoint,
                "clientId": credentials.client_id,
                "clientSecret": credentials.client_secret,
                "scope": credentials.scope,
            }
        case PrivateKeyJwt():
            auth = {
                "tokenEndpoint": credentials.token_endpoint,
                "issuer": credentials.issuer,
                "clientId": credentials.client_id,
                "audience": credentials.audience,
                "scope": credentials.scope,
                "privateKey": {
                    "privateKeyFile": credentials.private_key_file,
                    "keyId": credentials.key_id,
                    "algorithm": credentials.algorithm,
                },
            }
            return PRIVATE_KEY_JWT, {
                "auth": {key: value for key, value in auth.items() if value is not None}
            }
