"""Keys of S3 that a catalog lends, of which the emulator takes some only."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.support.emulators import Emulator, _OneByOne

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Issuer:
    """Lends keys of S3, and lets an emulator refuse those that ended.

    Attributes:
        refused: keys that the emulator refuses.
        seen: keys of the requests that it got.
        lifetime_ms: after which it refuses a key; None is never.
    """

    def __init__(self, emulator: Emulator) -> None:
        self.number = 0
        self.refused: set[str] = set()
        self.seen: list[str] = []
        self.lifetime_ms: int | None = None
        self._lent_ms: dict[str, int] = {}
        served = _OneByOne.running[emulator.endpoint]
        self._served, self._inner = served, served._application
        served._application = self._checked

    def close(self) -> None:
        self._served._application = self._inner

    @property
    def key(self) -> str:
        """The one that was lent last."""
        return f"LENTKEY{self.number:04}"

    def lend(self, location: str) -> list[tuple[str, dict[str, str]]]:
        self.number += 1
        self._lent_ms[self.key] = _now_ms()
        return [
            (
                location,
                {
                    "s3.access-key-id": self.key,
                    "s3.secret-access-key": f"a-secret-that-was-lent-{self.number}",
                    "s3.session-token": f"a-session-that-was-lent-{self.number}",
                },
            )
        ]

    def _has_ended(self, key: str) -> bool:
        if key in self.refused:
            return True
        lent_ms = self._lent_ms.get(key)
        if self.lifetime_ms is None or lent_ms is None:
            return False
        return _now_ms() >= lent_ms + self.lifetime_ms

    def _checked(
        self, environ: dict[str, Any], start_response: Callable[..., object]
    ) -> Iterable[bytes]:
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        key = authorization.partition("Credential=")[2].partition("/")[0]
        self.seen.append(key)
        if self._has_ended(key):
            body = b"<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>"
            headers = [("Content-Length", str(len(body))), ("Content-Type", "application/xml")]
            start_response("400 Bad Request", headers)
            return [body]
        return self._inner(environ, start_response)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
