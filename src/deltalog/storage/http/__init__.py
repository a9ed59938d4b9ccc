"""The HTTP client of the sharing client and the catalogs, with retries, redirects and limits.

`client` needs aiohttp, so its names are loaded on first use; `replies` needs no other package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.storage.http.client import (
        Http,
        HttpOptions,
        Request,
        Retry,
        is_retryable,
        run,
        start,
    )
    from deltalog.storage.http.replies import AnswerLimits, Budget, HttpFaults, Reply

_ORIGINS = {
    "deltalog.storage.http.client": [
        "Http",
        "HttpOptions",
        "Request",
        "Retry",
        "is_retryable",
        "run",
        "start",
    ],
    "deltalog.storage.http.replies": ["AnswerLimits", "Budget", "HttpFaults", "Reply"],
}

__all__ = [
    "AnswerLimits",
    "Budget",
    "Http",
    "HttpFaults",
    "HttpOptions",
    "Reply",
    "Request",
    "Retry",
    "is_retryable",
    "run",
    "start",
]

if not TYPE_CHECKING:  # so that type checkers report unknown names
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
