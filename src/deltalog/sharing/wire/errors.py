"""The body of an answer that is an error.

Protocol: REST APIs (400, 401, 403, 404, 500)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from deltalog._json import JsonObject, dumps, loads
from deltalog.errors import MalformedLogError, MalformedMessageError

# The words of the reference server (ledger SHARE-GEN-07), and where it has none, of its kind.
NOT_FOUND: Final = "RESOURCE_DOES_NOT_EXIST"
INVALID_PARAMETER: Final = "INVALID_PARAMETER_VALUE"
MALFORMED_REQUEST: Final = "MALFORMED_REQUEST"
UNSUPPORTED_OPERATION: Final = "UNSUPPORTED_OPERATION"
UNAUTHENTICATED: Final = "UNAUTHENTICATED"
FORBIDDEN: Final = "PERMISSION_DENIED"
METHOD_NOT_ALLOWED: Final = "METHOD_NOT_ALLOWED"
TOO_LARGE: Final = "REQUEST_TOO_LARGE"
TOO_MANY_REQUESTS: Final = "TOO_MANY_REQUESTS"
INTERNAL_ERROR: Final = "INTERNAL_ERROR"
UNAVAILABLE: Final = "TEMPORARILY_UNAVAILABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """What went wrong, for a program and for a person."""

    error_code: str
    message: str


def error_from_json(data: bytes) -> ErrorBody | None:
    """The error that a body tells, or None: proxies and gateways answer in their own ways."""
    try:
        values: Any = loads(data, "error")
        node = JsonObject(values, "error", MalformedMessageError)
        code = node.optional("errorCode", str)
        message = node.optional("message", str)
    except MalformedLogError:
        return None
    if code is None and message is None:
        return None
    return ErrorBody(error_code=code or "", message=message or "")


def encode_error(error: ErrorBody) -> bytes:
    """The body's bytes."""
    return dumps({"errorCode": error.error_code, "message": error.message})
