"""When a failed request is sent again, and how long to wait before that.

Owns the numbers and what `Retry-After` means. Knows nothing of any HTTP library.

Protocol: none (ledger SHARE-GEN-10)
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_RETRYABLE: Final = frozenset({408, 425, 429})
_LASTING: Final = frozenset({501, 505})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and how soon a failed request is sent again.

    Args:
        attempts: in all, the first one included.
        first_delay_ms: before the second attempt; each following delay is twice as long.
        longest_delay_ms: no delay grows beyond this.
        longest_wait_ms: the request fails at once if the server asks to wait longer than this.
        unreached_attempts: as `attempts`, where no connection can be made to a server that has
            answered nothing yet: its name may be misspelt. Once a time limit is over, there is no
            further one.
    """

    # The numbers of the official Python client.
    attempts: int = 10
    first_delay_ms: int = 100
    longest_delay_ms: int = 20_000
    longest_wait_ms: int = 120_000
    unreached_attempts: int = 3

    def delay_ms(
        self,
        failures: int,
        asked_ms: int | None = None,
        *,
        is_unreached: bool = False,
        jitter: Callable[[], float] = random.random,
    ) -> int | None:
        """Return the milliseconds until the next attempt, or None if there is none.

        Args:
            failures: attempts that failed so far, 1 or more.
            asked_ms: what the server asks for.
            is_unreached: whether the server has never answered.
            jitter: a number from 0 to 1, so that many clients do not come back together.
        """
        attempts = min(self.attempts, self.unreached_attempts) if is_unreached else self.attempts
        if failures >= attempts:
            return None
        if asked_ms is not None:
            return asked_ms if asked_ms <= self.longest_wait_ms else None
        doublings: int = 1 << min(failures - 1, 30)
        grown = min(self.longest_delay_ms, self.first_delay_ms * doublings)
        return round(grown * (0.5 + jitter() / 2))


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in _RETRYABLE or (status >= 500 and status not in _LASTING)


def retry_after_ms(header: str | None, now_ms: int) -> int | None:
    """Return the wait that a `Retry-After` header asks for (seconds or a date), or None."""
    text = (header or "").strip()
    if text.isascii() and text.isdecimal():
        return int(text[:12]) * 1000
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round(moment.timestamp() * 1000) - now_ms)
