"""The profile: the JSON file with a sharing server's address and a recipient's credentials.

Versions 1 and 2 are supported. A `repr` contains no secrets.

Protocol: Profile File Format
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import JsonObject, dumps
from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.sharing.wire.codec import (
    Member,
    MessageCodec,
    optional_text,
    parse_object,
    required_text,
    timestamp,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

NEWEST_VERSION: Final = 2

BEARER_TOKEN: Final = "bearer_token"  # noqa: S105 -- not a password
BASIC: Final = "basic"
CLIENT_CREDENTIALS: Final = "oauth_client_credentials"
PRIVATE_KEY_JWT: Final = "oauth_jwt_bearer_private_key_jwt"


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """A token that is sent with every request."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicLogin:
    """A user name and a password that are sent with every request."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """A client id and a secret, for requesting tokens from a token endpoint.

    Protocol: OAuth 2.0 client credentials grant
    """

    token_endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateKeyJwt:
    """A private key, which signs assertions that are exchanged for tokens.

    Args:
        private_key_file: path of a PEM file.
        key_id: identifies the signing key for the issuer.
        algorithm: algorithm of the signature.

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
    """The address of a sharing server and the credentials of a recipient.

    Args:
        endpoint: URL of the server, without a trailing slash.
        expiration_ms: when the bearer token expires, in milliseconds since 1970; None means never.
    """

    version: int
    endpoint: str
    credentials: Credentials
    expiration_ms: int | None = None


def parse_profile(data: bytes) -> Profile:
    """Return the profile in a file's bytes.

    Raises:
        InvalidInputError: the profile's version or type is unknown: "it should show an error
            message instructing the user to upgrade to a newer version of their client".
        MalformedMessageError: the bytes are not a profile.
    """
    try:
        node = parse_object(data, "profile")
    except MalformedMessageError as error:
        raise MalformedMessageError(
            f"{error}; a profile is a JSON file such as "
            '{"shareCredentialsVersion": 1, "endpoint": "…", "bearerToken": "…"}: ask the provider '
            "of the share for the file, or download it again"
        ) from None
    version = whole_number(node, "shareCredentialsVersion")
    if version is None:
        raise MalformedMessageError(
            "profile.shareCredentialsVersion is missing; expected a "
            'number, as in {"shareCredentialsVersion": 1, "endpoint": "…", "bearerToken": "…"}'
        )
    if version < 1:
        raise InvalidInputError(
            f"cannot use a profile of version {version}: this release supports versions 1 to "
            f"{NEWEST_VERSION}; upgrade deltalog"
        )
    if version > NEWEST_VERSION:
        raise InvalidInputError(  # begins like the official client's message
            f"'shareCredentialsVersion' in the profile is {version} which is too new: this release "
            f"supports versions 1 to {NEWEST_VERSION}; upgrade deltalog"
        )
    try:
        return _parse_members(node, version)
    except MalformedMessageError as error:
        names = ", ".join(map(str, node.values))
        raise MalformedMessageError(f"{error}; the profile has {names}") from None


def _parse_members(node: JsonObject, version: int) -> Profile:
    # Profiles of version 1 have no `type`.
    kind = BEARER_TOKEN if version == 1 else node.required("type", str)
    codec = _CREDENTIALS.get(kind)
    if codec is not None:
        credentials = codec.parse(node)
    elif kind == PRIVATE_KEY_JWT:
        auth = _object(node, "auth")
        credentials = _PRIVATE_KEY_JWT.parse(
            auth, **_PRIVATE_KEY.parse(_object(auth, "privateKey"))
        )
    else:
        raise InvalidInputError(
            f"cannot use a profile of type {kind!r}: this release supports "
            f"{', '.join(_CREDENTIALS)}, {PRIVATE_KEY_JWT}; upgrade deltalog"
        )
    return _PROFILE.parse(node, version=version, credentials=credentials)


def encode_profile(profile: Profile) -> bytes:
    """Return the bytes of a profile file, with the secrets in plain text."""
    credentials = profile.credentials
    if isinstance(credentials, PrivateKeyJwt):
        kind, auth = PRIVATE_KEY_JWT, _PRIVATE_KEY_JWT.encode(credentials)
        values = {"auth": {**auth, "privateKey": _PRIVATE_KEY.encode(credentials)}}
    else:
        kind = _KINDS[type(credentials)]
        values = _CREDENTIALS[kind].encode(credentials)
    typed = {"type": kind} if profile.version > 1 else {}
    version = {"shareCredentialsVersion": profile.version}
    return dumps({**version, **typed, **_PROFILE.encode(profile), **values})


def _object(node: JsonObject, name: str) -> JsonObject:
    return JsonObject(node.values.get(name), f"{node.where}.{name}", node.error)


def _url(name: str) -> Member:
    """Return a member that is a URL, without a trailing slash."""
    return Member(name, _read_url, required=True)


def _read_url(node: JsonObject, name: str) -> str:
    text = node.required(name, str).removesuffix("/")
    if "://" not in text:
        # The value is not shown, because it may contain a secret.
        raise MalformedMessageError(
            f"{node.where}.{name}: expected a URL that begins with https:// or http://, such as "
            "https://sharing.example/delta-sharing/"
        )
    return text


_PROFILE: Final = MessageCodec(
    Profile, endpoint=_url("endpoint"), expiration_ms=timestamp("expirationTime")
)
_PRIVATE_KEY_JWT: Final = MessageCodec(
    PrivateKeyJwt,
    token_endpoint=_url("tokenEndpoint"),
    issuer=required_text("issuer"),
    client_id=required_text("clientId"),
    audience=required_text("audience"),
    scope=optional_text("scope"),
)
_PRIVATE_KEY: Final[MessageCodec[Any]] = MessageCodec(
    dict[str, Any],
    private_key_file=required_text("privateKeyFile"),
    key_id=required_text("keyId"),
    algorithm=Member("algorithm", lambda node, name: node.optional(name, str) or "RS256"),
)
_CREDENTIALS: Final[Mapping[str, MessageCodec[Any]]] = {
    BEARER_TOKEN: MessageCodec(BearerToken, token=required_text("bearerToken")),
    BASIC: MessageCodec(
        BasicLogin, username=required_text("username"), password=required_text("password")
    ),
    CLIENT_CREDENTIALS: MessageCodec(
        ClientCredentials,
        token_endpoint=_url("tokenEndpoint"),
        client_id=required_text("clientId"),
        client_secret=required_text("clientSecret"),
        scope=optional_text("scope"),
    ),
}
_KINDS: Final[Mapping[type, str]] = {
    BearerToken: BEARER_TOKEN,
    BasicLogin: BASIC,
    ClientCredentials: CLIENT_CREDENTIALS,
}
