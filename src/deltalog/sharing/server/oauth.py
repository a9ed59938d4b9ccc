"""Tokens that an OAuth issuer has signed: JSON Web Tokens, checked with the issuer's public keys.

Owns the keys' cache: an unknown key makes them be fetched again, but not more often than once a
minute, so that forged tokens cannot make the server knock at the issuer's door.

Protocol: RFC 7519, RFC 7517
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.sharing.server.config import OAuthConfig

_LOG: Final = logging.getLogger("deltalog.sharing")
_KEEP_SECONDS: Final = 3600
_LEAST_SECONDS: Final = 60
_TIMEOUT_SECONDS: Final = 5
_LEEWAY_SECONDS: Final = 30


class TokenVerifier:
    """Checks signed tokens.

    Args:
        config: whose tokens are believed.
        clock: seconds that only grow.
    """

    def __init__(self, config: OAuthConfig, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            import jwt  # noqa: PLC0415 -- only who has an issuer needs it
        except ModuleNotFoundError:
            raise InvalidInputError("oauth needs PyJWT: pip install 'deltalog[sharing]'") from None
        self._jwt = jwt
        self._config = config
        self._clock = clock
        self._client = jwt.PyJWKClient(
            config.jwks_url, cache_keys=False, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS
        )
        self._keys: dict[str | None, Any] = {}
        self._fetched_at: float | None = None
        self._lock = threading.Lock()

    def subject(self, token: str) -> str | None:
        """Whom a token names; None if it is not valid."""
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
            if age is None or age > _KEEP_SECONDS or (is_unknown and age > _LEAST_SECONDS):
                self._fetch(now)
            return self._keys.get(key_id)

    def _fetch(self, now: float) -> None:
        self._fetched_at = now
        try:
            keys = self._client.get_signing_keys(refresh=True)
        except self._jwt.PyJWTError as error:
            _LOG.warning("the issuer's keys cannot be fetched: %s", type(error).__name__)
            return
        self._keys = {key.key_id: key.key for key in keys}
