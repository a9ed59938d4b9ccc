"""The HTTP client of the sharing client and the catalogs, with retries, redirects and limits."""

from __future__ import annotations

from deltalog.storage.http.client import Http, HttpOptions, Request, Retry, is_retryable, run, start
from deltalog.storage.http.replies import AnswerLimits, Budget, HttpFaults, Reply

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
