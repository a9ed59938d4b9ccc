"""Answers that are no success: which status, which code, which words.

Owns what a recipient is told of an error. Nothing that is said names a place of the storage, a
token or another recipient; what deltalog's own errors say goes to the log only.

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
from deltalog.sharing.wire import errors as codes

if TYPE_CHECKING:
    from collections.abc import Mapping


class Fault(Exception):  # noqa: N818 -- what the recipient did or met, told by a status
    """An answer that is no success.

    Args:
        status: of HTTP.
        code: the `errorCode`.
        message: for a person; holds nothing but what the recipient may know.
        headers: to be sent with it.
    """

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def not_found(what: str = "resource") -> Fault:
    """404: it is not there, or not for this recipient; nobody can tell which."""
    return Fault(404, codes.NOT_FOUND, f"the {what} does not exist or is not shared with you")


def invalid(message: str) -> Fault:
    """400: a parameter cannot be followed."""
    return Fault(400, codes.INVALID_PARAMETER, message)


def malformed(message: str) -> Fault:
    """400: the request cannot be understood."""
    return Fault(400, codes.MALFORMED_REQUEST, message)


def unsupported(message: str) -> Fault:
    """400: the server or the table does not offer this."""
    return Fault(400, codes.UNSUPPORTED_OPERATION, message)


def unauthenticated() -> Fault:
    """401: the same words whatever is wrong with the token (ledger SHARE-GEN-06)."""
    return Fault(
        401,
        codes.UNAUTHENTICATED,
        "a valid bearer token is required",
        {"WWW-Authenticate": "Bearer"},
    )


def forbidden(message: str = "the request is not allowed") -> Fault:
    """403."""
    return Fault(403, codes.FORBIDDEN, message)


def too_large(message: str) -> Fault:
    """413."""
    return Fault(413, codes.TOO_LARGE, message)


def too_many(seconds: int) -> Fault:
    """429: come back later."""
    return Fault(
        429,
        codes.TOO_MANY_REQUESTS,
        "too many requests; come back later",
        {"Retry-After": str(seconds)},
    )


def unavailable() -> Fault:
    """503: it may work soon."""
    return Fault(
        503,
        codes.UNAVAILABLE,
        "the file cannot be given now; come back later",
        {"Retry-After": "5"},
    )


def internal() -> Fault:
    """500: nothing is told."""
    return Fault(500, codes.INTERNAL_ERROR, "the server could not handle the request")


_WORDS: Final[tuple[tuple[tuple[type[DeltaError], ...], int, str, str], ...]] = (
    (
        (TableNotFoundError,),
        404,
        codes.NOT_FOUND,
        "the table does not exist or is not shared with you",
    ),
    (
        (VersionNotFoundError,),
        400,
        codes.INVALID_PARAMETER,
        "the table does not have what was asked for at that version or time (any more)",
    ),
    (
        (ChangeDataFeedNotEnabledError,),
        400,
        codes.INVALID_PARAMETER,
        "cdf is not enabled on table in the versions asked for",
    ),
    (
        (
            UnsupportedFeatureError,
            UnsupportedProtocolError,
            UnsupportedTypeError,
            DeletionVectorError,
        ),
        400,
        codes.UNSUPPORTED_OPERATION,
        "the table has a feature that cannot be shared",
    ),
    (
        (UnsafePathError,),
        400,
        codes.UNSUPPORTED_OPERATION,
        "the table has files outside of its directory, which cannot be shared",
    ),
    (
        (ObjectNotFoundError, DataFileMissingError),
        404,
        codes.NOT_FOUND,
        "a file of the table is not there any more; ask for the table again",
    ),
    (
        (StorageError,),
        503,
        codes.UNAVAILABLE,
        "the table cannot be reached now; come back later",
    ),
)


def fault_of(error: DeltaError) -> Fault:
    """What a recipient is told of an error of deltalog."""
    if isinstance(error, MalformedMessageError):
        return malformed(str(error))  # it tells of the recipient's own message only
    for kinds, status, code, message in _WORDS:
        if isinstance(error, kinds):
            headers = {"Retry-After": "5"} if status == 503 else None
            return Fault(status, code, message, headers)
    if isinstance(error, InvalidInputError):
        return invalid("a parameter does not fit the table")
    return internal()
