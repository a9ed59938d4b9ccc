"""Recipients: authentication by token, OAuth subject and address, and limits on their requests.

Only the SHA-256 of a token is stored, and it is compared in constant time. Every invalid token
causes the same error.
"""

from __future__ import annotations

import hmac
import logging
import math
import threading
import time
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from deltalog._util.escaping import name_key
from deltalog._util.json import loads
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.sharing.server.faults import forbidden, too_many_requests, unauthenticated
from deltalog.sharing.server.tokens import token_digest
from deltalog.storage.http.client import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.sharing.server.config import (
        OAuthConfig,
        RecipientConfig,
        ServerConfig,
        TokenConfig,
    )


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient and the shares that it can access.

    Args:
        name: name in the configuration.
        shares: case-folded names of shares; None means every share.
    """

    name: str
    shares: frozenset[str] | None

    def can_access(self, share: str) -> bool:
        """Return whether a share is shared with this recipient."""
        return self.shares is None or name_key(share) in self.shares


class Recipients:
    """All recipients of a server.

    Args:
        config: configuration of the server.
        verify: returns the subject of a signed token, or None if the token is not valid.
    """

    def __init__(
        self, config: ServerConfig, verify: Callable[[str], str | None] | None = None
    ) -> None:
        self._verify = verify
        self._by_digest: dict[str, tuple[RecipientConfig, TokenConfig]] = {}
        self._by_subject: dict[str, RecipientConfig] = {}
        self._by_name: dict[str, RecipientConfig] = {}
        for one in config.recipients:
            self._by_name[one.name] = one
            for token in one.tokens:
                self._by_digest[token.digest] = (one, token)
            for subject in one.subjects:
                self._by_subject[subject] = one

    def authenticate(
        self, authorization: str | None, address: str | None, now_ms: int
    ) -> Recipient:
        """Return the recipient who sent a request.

        Args:
            authorization: the header `Authorization`.
            address: source address of the request.
            now_ms: the current time.

        Raises:
            Fault: 401 without a valid token, 403 if the address is not in the recipient's ranges.
        """
        scheme, _, token = (authorization or "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise unauthenticated()
        found = self._by_token(token, now_ms) or self._by_signature(token)
        if found is None:
            raise unauthenticated()
        if found.networks and not _is_inside(address, found):
            raise forbidden("requests from this address are not allowed", found.name)
        return _recipient(found)

    def find(self, name: str) -> Recipient | None:
        """Return a recipient by name, for a signed URL; None if the recipient was removed."""
        found = self._by_name.get(name)
        return None if found is None else _recipient(found)

    def _by_token(self, token: str, now_ms: int) -> RecipientConfig | None:
        digest = token_digest(token)
        entry = self._by_digest.get(digest)
        if entry is None or not hmac.compare_digest(entry[1].digest, digest):
            return None
        expires_ms = entry[1].expires_ms
        if expires_ms is not None and expires_ms <= now_ms:
            raise unauthenticated(entry[0].name)
        return entry[0]

    def _by_signature(self, token: str) -> RecipientConfig | None:
        # JSON Web Tokens have three parts. Reject other tokens first, because the verification may
        # send a request to the issuer.
        if self._verify is None or token.count(".") != 2:
            return None
        subject = self._verify(token)
        return None if subject is None else self._by_subject.get(subject)


def _recipient(config: RecipientConfig) -> Recipient:
    shares = config.shares
    seen = None if shares is None else frozenset(name_key(name) for name in shares)
    return Recipient(config.name, seen)


def _is_inside(address: str | None, config: RecipientConfig) -> bool:
    try:
        found = ip_address(address or "")
    except ValueError:
        return False
    # A server that listens on IPv6 sees the addresses of IPv4 clients as `::ffff:10.1.2.3`.
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found.version == net.version and found in net for net in config.networks)


class RateLimit:
    """Limits the requests of each recipient by a token bucket; safe to use from several threads.

    Args:
        per_minute: maximum number of requests per recipient and minute; 0 means no limit.
        clock: returns monotonic seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Count one request.

        Raises:
            Fault: 429 if there were too many requests, with the time to wait in `Retry-After`.
        """
        if not self._per_minute:
            return
        now, rate = self._clock(), self._per_minute / 60
        with self._lock:
            left, since = self._left.get(name, (float(self._per_minute), now))
            left = min(self._per_minute, left + (now - since) * rate)
            if left >= 1:
                self._left[name] = (left - 1, now)
                return
            self._left[name] = (left, now)
        raise too_many_requests(math.ceil((1 - left) / rate))


# --- Verifying JSON Web Tokens of an OAuth issuer with its public keys


_LOG: Final = logging.getLogger("deltalog.sharing")
_KEYS_SECONDS: Final = 3600
_REFETCH_SECONDS: Final = 60
_TIMEOUT_SECONDS: Final = 5
_LEEWAY_SECONDS: Final = 30
_DISCOVERY: Final = "/.well-known/openid-configuration"
_MOST_BYTES: Final = 1 << 20


class TokenVerifier:
    """Verifies signed tokens.

    Args:
        config: the trusted issuer.
        clock: returns monotonic seconds.
    """

    def __init__(self, config: OAuthConfig, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            import jwt  # noqa: PLC0415 -- only OAuth needs it
        except ModuleNotFoundError:
            raise InvalidInputError("oauth needs PyJWT: pip install 'deltalog[sharing]'") from None
        self._jwt = jwt
        self._config = config
        self._clock = clock
        self._keys: dict[str | None, Any] = {}
        self._fetched_at: float | None = None
        self._lock = threading.Lock()

    def subject(self, token: str) -> str | None:
        """Return the claim that names the recipient, or None if the token is not valid."""
        jwt, config = self._jwt, self._config
        try:
            header = jwt.get_unverified_header(token)
            key = self._key(header.get("kid"))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=list(config.algorithms),
                audience=config.audience,
                issuer=config.issuer,
                leeway=_LEEWAY_SECONDS,
                # PyJWT verifies a claim only if it is present, so require these claims.
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        found = claims.get(config.claim)
        return found if isinstance(found, str) else None

    def _key(self, key_id: str | None) -> Any:
        with self._lock:
            now = self._clock()
            age = None if self._fetched_at is None else now - self._fetched_at
            is_unknown = key_id not in self._keys
            if age is None or age > _KEYS_SECONDS or (is_unknown and age > _REFETCH_SECONDS):
                self._fetch(now)
            return self._keys.get(key_id)

    def _fetch(self, now: float) -> None:
        self._fetched_at = now
        try:
            # Request the URL each time, because the issuer may have changed it.
            url = self._config.jwks_url or discovered_keys_url(self._config.issuer)
            client = self._jwt.PyJWKClient(
                url, cache_keys=False, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS
            )
            keys = client.get_signing_keys(refresh=True)
        except (self._jwt.PyJWTError, OSError, ValueError, HTTPException, DeltaError) as error:
            _LOG.warning("cannot fetch the issuer's keys: %s", type(error).__name__)
            return
        self._keys = {key.key_id: key.key for key in keys}


def discovered_keys_url(issuer: str) -> str:
    """Return the URL of an issuer's public keys.

    Raises:
        InvalidInputError: the OpenID configuration belongs to another issuer, or contains no safe
            URL.
        OSError, HTTPException, DeltaError: the OpenID configuration cannot be fetched.

    Cost: one request.
    """
    with urllib.request.urlopen(  # noqa: S310 -- an https URL, see `is_safe_url`
        issuer.rstrip("/") + _DISCOVERY, timeout=_TIMEOUT_SECONDS
    ) as response:
        found = loads(response.read(_MOST_BYTES), "OpenID configuration")
    # OpenID Connect: "The issuer value returned MUST be identical to the Issuer URL". Otherwise,
    # one issuer could provide the keys of another issuer.
    if not isinstance(found, dict) or found.get("issuer") != issuer:
        raise InvalidInputError("the OpenID configuration belongs to another issuer")
    url = found.get("jwks_uri")
    if not isinstance(url, str) or not is_safe_url(url):
        raise InvalidInputError("the OpenID configuration has no https URL of keys")
    return url


def is_safe_url(url: str) -> bool:
    """Return whether a URL is safe from tampering: it is https, or on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    )
