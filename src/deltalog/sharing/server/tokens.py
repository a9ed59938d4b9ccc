"""Sealed tokens: values that clients return unchanged, such as page tokens.

This module computes the seal (HMAC-SHA256 over kind and content), expiry, and hashes. Anybody can
read the content of a token, but only the server can change it. Each kind of token is accepted only
as that kind.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import dumps, loads
from deltalog.errors import DeltaError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_CHARACTERS: Final = 8192
_SEAL_BYTES: Final = 32
_PURPOSE: Final = b"deltalog sharing tokens"


class InvalidTokenError(DeltaError):
    """A token has expired, or this server did not issue it for this purpose."""

    code = "invalid-token"


@dataclass(frozen=True, slots=True)
class Sealed:
    """The content of a token.

    Args:
        values: the sealed values.
        expires_ms: when the token expires.
        key: position of the key that sealed the token; 0 is the newest key.
    """

    values: dict[str, Any]
    expires_ms: int
    key: int


class Sealer:
    """Seals tokens with one key, and opens tokens that this key or a previous key has sealed.

    Args:
        key: a secret of at least 16 bytes, which all processes of a server share.
        previous: keys whose tokens are still accepted, the newest first.
    """

    def __init__(self, key: bytes, *previous: bytes) -> None:
        self._secrets = (key, *previous)
        # Derive separate keys for tokens. Otherwise, the signature of a URL could be a valid seal.
        self._keys = [hmac.digest(one, _PURPOSE, "sha256") for one in self._secrets]

    def with_key(self, key: int) -> Sealer:
        """Return a sealer that uses only the key at this position."""
        return self if key == 0 else Sealer(self._secrets[key])

    def seal(self, kind: str, values: Mapping[str, Any], expires_ms: int) -> str:
        """Return a token that contains `values` and expires at `expires_ms`."""
        body = dumps({"e": expires_ms, **values})
        return encode_base64(_mac(self._keys[0], kind, body) + body)

    def open(self, kind: str, token: str, now_ms: int) -> dict[str, Any]:
        """Return the values of a token.

        Raises:
            InvalidTokenError: the token is forged, of another kind, or has expired.
        """
        return self.unseal(kind, token, now_ms).values

    def unseal(self, kind: str, token: str, now_ms: int) -> Sealed:
        """Return the values of a token, its expiry and its key.

        Raises:
            InvalidTokenError: the token is forged, of another kind, or has expired.
        """
        raw = decode_base64(token)
        if raw is None or len(raw) <= _SEAL_BYTES:
            raise InvalidTokenError("the token is malformed")
        mac, body = raw[:_SEAL_BYTES], raw[_SEAL_BYTES:]
        known = (hmac.compare_digest(mac, _mac(key, kind, body)) for key in self._keys)
        key = next((number for number, is_own in enumerate(known) if is_own), None)
        if key is None:
            raise InvalidTokenError("the token is not valid here")
        values: dict[str, Any] = loads(body, "token")
        expires_ms: int = values.pop("e")
        if expires_ms <= now_ms:
            raise InvalidTokenError("the token has expired; start from the first page")
        return Sealed(values, expires_ms, key)

    def keyed_hash(self, *parts: bytes) -> str:
        """Return a hash that cannot be computed without the key, in hexadecimal digits."""
        # The message contains the length of each part, so that ("a", "bc") and ("ab", "c") differ.
        message = b"mark\0" + b"".join(len(part).to_bytes(8) + part for part in parts)
        return hmac.digest(self._keys[0], message, "sha256").hex()


def _mac(key: bytes, kind: str, body: bytes) -> bytes:
    return hmac.digest(key, kind.encode() + b"\0" + body, "sha256")


def encode_base64(data: bytes) -> str:
    """Return URL-safe Base64 without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64(text: str) -> bytes | None:
    """Decode a string from `encode_base64`; return None for any other string."""
    if len(text) > _MOST_CHARACTERS or not text.isascii():
        return None
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    # Only one string may represent a value, so the unused bits of the last character must be zero.
    return data if encode_base64(data) == text else None


def checksum(*parts: object) -> str:
    """Return a short hash of values, for checking later that they are the same."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def token_digest(token: str) -> str:
    """Return the SHA-256 of a bearer token in hexadecimal digits; only this hash is stored.

    Tokens are long and random, so a hash without salt cannot be reversed.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
