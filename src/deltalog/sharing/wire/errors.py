"""Error bodies: `errorCode` and `message`.

Protocol: REST APIs (400, 401, 403, 404, 500)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deltalog._json import dumps
from deltalog.errors import MalformedMessageError
from deltalog.sharing.wire.codec import parse_object

# The first four and INTERNAL_ERROR are the reference server's (ledger SHARE-GEN-07); it has none
# for the other cases.
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
    """An error's code, for programs, and its message, for people."""

    error_code: str
    message: str


def parse_error(data: bytes) -> ErrorBody | None:
    """Return the error in a body, or None: proxies and gateways send bodies of their own."""
    try:
        node = parse_object(data, "error")
        code = node.optional("errorCode", str)
        message = node.optional("message", str)
    except MalformedMessageError:
        return None
    if code is None and message is None:
        return None
    return ErrorBody(error_code=code or "", message=message or "")


def encode_error(error: ErrorBody) -> bytes:
    """Return the body of an error."""
    return dumps({"errorCode": error.error_code, "message": error.message})
