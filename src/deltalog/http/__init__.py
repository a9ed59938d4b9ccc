"""The one HTTP client: retries, redirects, limits on answers; for sharing's client and catalogs."""

from __future__ import annotations

from deltalog.http.client import Http, Request, run, start
from deltalog.http.faults import HttpFaults
from deltalog.http.options import HttpOptions
from deltalog.http.replies import AnswerLimits, Budget, Reply
from deltalog.http.retry import Retry, is_retryable

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
