"""When a request is tried again, and how long to wait before.

Owns the numbers and what `Retry-After` means. Knows nothing of any HTTP library.

Protocol: none (ledger SHARE-GEN-10)
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER: Final = frozenset({501, 505})
_SOMETIMES: Final = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and how soon a failed request is sent again.

    Args:
        attempts: in all, the first one included.
        first_delay_ms: before the second attempt; each following delay is twice as long.
        longest_delay_ms: no delay grows beyond this.
        longest_wait_ms: a server that asks for more patience than this is given up.
    """

    attempts: int = 10
    first_delay_ms: int = 100
    longest_delay_ms: int = 20_000
    longest_wait_ms: int = 120_000

    def delay_ms(
        self,
        failures: int,
        asked_ms: int | None = None,
        *,
        jitter: Callable[[], float] = random.random,
    ) -> int | None:
        """Milliseconds until the next attempt; None is to give up.

        Args:
            failures: attempts that failed so far, 1 or more.
            asked_ms: what the server asks for.
            jitter: a number from 0 to 1, so that many clients do not come back together.
        """
        if failures >= self.attempts:
            return None
        if asked_ms is not None:
            return asked_ms if asked_ms <= self.longest_wait_ms else None
        doublings: int = 1 << min(failures - 1, 30)
        grown = min(self.longest_delay_ms, self.first_delay_ms * doublings)
        return round(grown * (0.5 + jitter() / 2))


def is_passing(status: int) -> bool:
    """Whether the same request may be answered better later."""
    return status in _SOMETIMES or (status >= 500 and status not in _NEVER)


def retry_after_ms(header: str | None, now_ms: int) -> int | None:
    """What a `Retry-After` header asks for: seconds or a date; None if it says nothing."""
    text = (header or "").strip()
    if text.isascii() and text.isdecimal():
        return int(text[:12]) * 1000
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round((moment - _EPOCH).total_seconds() * 1000) - now_ms)
