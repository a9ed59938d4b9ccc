"""JSON Web Tokens of an OAuth issuer, verified with the issuer's public keys.

Owns where the keys are (`jwksUrl`, or what the issuer says of itself) and their cache. A token with
an unknown key causes them to be fetched again, but only once a minute: forged tokens must not make
this server flood the issuer.

Protocol: RFC 7519, RFC 7517, OpenID Connect Discovery 1.0
"""

from __future__ import annotations

import logging
import threading
import time
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from deltalog._json import loads
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.sharing.server.recipients import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.sharing.server.config import OAuthConfig

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
        config: the issuer that is trusted.
        clock: monotonic seconds.
    """

    def __init__(self, config: OAuthConfig, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            import jwt  # noqa: PLC0415 -- needed only with an issuer
        except ModuleNotFoundError:
            raise InvalidInputError("oauth needs PyJWT: pip install 'deltalog[sharing]'") from None
        self._jwt = jwt
        self._config = config
        self._clock = clock
        self._keys: dict[str | None, Any] = {}
        self._fetched_at: float | None = None
        self._lock = threading.Lock()

    def subject(self, token: str) -> str | None:
        """Return the recipient's claim in a token, or None if the token is not valid."""
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
                # PyJWT verifies only claims that are present.
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
            # Asked anew with the keys: an issuer may move them.
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
    """Return where an issuer says that its public keys are.

    Raises:
        InvalidInputError: its description is of another issuer, or names no safe URL.
        OSError, HTTPException, DeltaError: there is no description.

    Cost: one request.
    """
    with urllib.request.urlopen(  # noqa: S310 -- an https URL, see `is_safe_url`
        issuer.rstrip("/") + _DISCOVERY, timeout=_TIMEOUT_SECONDS
    ) as response:
        found = loads(response.read(_MOST_BYTES), "OpenID configuration")
    # "The issuer value returned MUST be identical to the Issuer URL": else one issuer speaks for
    # another.
    if not isinstance(found, dict) or found.get("issuer") != issuer:
        raise InvalidInputError("the OpenID configuration is that of another issuer")
    url = found.get("jwks_uri")
    if not isinstance(url, str) or not is_safe_url(url):
        raise InvalidInputError("the OpenID configuration names no https URL of keys")
    return url


def is_safe_url(url: str) -> bool:
    """Whether what comes from a URL cannot be changed on its way: https, or this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    )
