"""Error responses: status, `errorCode` and message.

This module contains the messages that recipients see. No message contains a storage location, a
token or another recipient. Messages of deltalog's own errors are only logged.

Protocol: REST APIs (400, 401, 403, 404, 500)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import (
    ChangeDataFeedNotEnabledError,
    DataFileMissingError,
    DeletionVectorError,
    DeltaError,
    InvalidInputError,
    MalformedMessageError,
    ObjectNotFoundError,
    StorageError,
    TableNotFoundError,
    UnsafePathError,
    UnsupportedFeatureError,
    UnsupportedProtocolError,
    UnsupportedTypeError,
    VersionNotFoundError,
)
from deltalog.sharing.wire import requests as codes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Fault(Exception):  # noqa: N818 -- an error response
    """An error response.

    Args:
        status: HTTP status.
        code: the `errorCode`.
        message: the message, which the recipient may read.
        headers: headers of the response.
        recipient: the recipient, for the audit log; None if unknown.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        recipient: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers: dict[str, str] = dict(headers or {})
        self.recipient = recipient


def not_found(what: str = "resource") -> Fault:
    """Return 404; the message does not show whether the object exists."""
    return Fault(404, codes.NOT_FOUND, f"the {what} does not exist or is not shared with you")


def invalid(message: str) -> Fault:
    """Return 400 for a parameter with a wrong value."""
    return Fault(400, codes.INVALID_PARAMETER, message)


def malformed(message: str) -> Fault:
    """Return 400 for a request that cannot be parsed."""
    return Fault(400, codes.MALFORMED_REQUEST, message)


def unsupported(message: str) -> Fault:
    """Return 400 for a feature that the server or the table does not offer."""
    return Fault(400, codes.UNSUPPORTED_OPERATION, message)


def unauthenticated(recipient: str | None = None) -> Fault:
    """Return 401; the message is the same for every fault of a token (SHARE-GEN-06)."""
    return Fault(
        401,
        codes.UNAUTHENTICATED,
        "a valid bearer token is required",
        {"WWW-Authenticate": "Bearer"},
        recipient,
    )


def forbidden(message: str, recipient: str | None = None) -> Fault:
    """Return 403 for an action that is not permitted to this recipient or URL."""
    return Fault(403, codes.FORBIDDEN, message, recipient=recipient)


def too_many_requests(seconds: int) -> Fault:
    """Return 429 with the time to wait."""
    message = "too many requests; try again later"
    return Fault(429, codes.TOO_MANY_REQUESTS, message, {"Retry-After": str(seconds)})


def unavailable(message: str) -> Fault:
    """Return 503 for a request that may succeed in a few seconds."""
    return Fault(503, codes.UNAVAILABLE, f"{message}; try again later", {"Retry-After": "5"})


def internal() -> Fault:
    """Return 500 without any detail."""
    return Fault(500, codes.INTERNAL_ERROR, "the server could not handle the request")


# `fault_of` uses the first matching row, so a subclass must be before its base class.
_Kinds = type[DeltaError] | tuple[type[DeltaError], ...]

_FAULTS: Final[tuple[tuple[_Kinds, Callable[[], Fault]], ...]] = (
    (TableNotFoundError, lambda: not_found("table")),
    (VersionNotFoundError, lambda: invalid("the table does not have this version (any more)")),
    (
        ChangeDataFeedNotEnabledError,
        lambda: invalid("cdf is not enabled on table in the requested versions"),
    ),
    (
        (
            UnsupportedFeatureError,
            UnsupportedProtocolError,
            UnsupportedTypeError,
            DeletionVectorError,
        ),
        lambda: unsupported("the table has a feature that cannot be shared"),
    ),
    (
        UnsafePathError,
        lambda: unsupported("the table has files outside of its directory, which are not shared"),
    ),
    (
        # This row must be before StorageError, which is the base class of ObjectNotFoundError.
        (ObjectNotFoundError, DataFileMissingError),
        lambda: Fault(404, codes.NOT_FOUND, "a file of the table is gone; query the table again"),
    ),
    (StorageError, lambda: unavailable("the table's storage does not respond")),
    (InvalidInputError, lambda: invalid("a parameter does not fit the table")),
)


def fault_of(error: BaseException) -> Fault:
    """Return the error response for any error."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, MalformedMessageError):
        return malformed(str(error))  # the message contains only parts of the recipient's request
    for kinds, make_fault in _FAULTS:
        if isinstance(error, kinds):
            return make_fault()
    return internal()
