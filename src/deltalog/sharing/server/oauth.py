"""JSON Web Tokens of an OAuth issuer, verified with the issuer's public keys.

Owns the cache of the keys. A token with an unknown key causes them to be fetched again, but only
once a minute: forged tokens must not make this server flood the issuer.

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
_KEYS_SECONDS: Final = 3600
_REFETCH_SECONDS: Final = 60
_TIMEOUT_SECONDS: Final = 5
_LEEWAY_SECONDS: Final = 30


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
        self._client = jwt.PyJWKClient(
            config.jwks_url, cache_keys=False, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS
        )
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
            keys = self._client.get_signing_keys(refresh=True)
        except self._jwt.PyJWTError as error:
            _LOG.warning("cannot fetch the issuer's keys: %s", type(error).__name__)
            return
        self._keys = {key.key_id: key.key for key in keys}
