"""Error responses: status, `errorCode` and message.

Owns what a recipient learns of an error. No message names a storage location, a token or another
recipient; the strings of deltalog's own errors go to the log only.

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


class Fault(Exception):  # noqa: N818 -- an error response; the cause may be the recipient's
    """An error response.

    Args:
        status: of HTTP.
        code: the `errorCode`.
        message: for people; holds only what the recipient may know.
        headers: of the response.
        recipient: who was refused, for the audit log only; None is unknown.
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
    """404 for what does not exist, and in the same words for what is not shared."""
    return Fault(404, codes.NOT_FOUND, f"the {what} does not exist or is not shared with you")


def invalid(message: str) -> Fault:
    """400 for a parameter with a wrong value."""
    return Fault(400, codes.INVALID_PARAMETER, message)


def malformed(message: str) -> Fault:
    """400 for a request that cannot be parsed."""
    return Fault(400, codes.MALFORMED_REQUEST, message)


def unsupported(message: str) -> Fault:
    """400 for what the server or the table does not offer."""
    return Fault(400, codes.UNSUPPORTED_OPERATION, message)


def unauthenticated(recipient: str | None = None) -> Fault:
    """401 in the same words, whatever is wrong with the token (ledger SHARE-GEN-06)."""
    return Fault(
        401,
        codes.UNAUTHENTICATED,
        "a valid bearer token is required",
        {"WWW-Authenticate": "Bearer"},
        recipient,
    )


def forbidden(message: str, recipient: str | None = None) -> Fault:
    """403 for what this recipient, or this URL, may not do."""
    return Fault(403, codes.FORBIDDEN, message, recipient=recipient)


def too_many_requests(seconds: int) -> Fault:
    """429 with the time to wait."""
    message = "too many requests; try again later"
    return Fault(429, codes.TOO_MANY_REQUESTS, message, {"Retry-After": str(seconds)})


def unavailable(message: str) -> Fault:
    """503 for what may succeed in a few seconds."""
    return Fault(503, codes.UNAVAILABLE, f"{message}; try again later", {"Retry-After": "5"})


def internal() -> Fault:
    """500 without any detail."""
    return Fault(500, codes.INTERNAL_ERROR, "the server could not handle the request")


# The first match counts: some kinds of errors are special cases of later ones.
_Kinds = type[DeltaError] | tuple[type[DeltaError], ...]

_FAULTS: Final[tuple[tuple[_Kinds, Callable[[], Fault]], ...]] = (
    (TableNotFoundError, lambda: not_found("table")),
    (VersionNotFoundError, lambda: invalid("the table has no such version, or not any more")),
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
        # Before StorageError, of which the first one is a special case.
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
        return malformed(str(error))  # it quotes nothing but the recipient's own request
    for kinds, make_fault in _FAULTS:
        if isinstance(error, kinds):
            return make_fault()
    return internal()
