"""Foreign exceptions become `deltalog.errors` here, and nowhere else in this room.

Knows the shapes of the exceptions of the operating system, botocore, azure.core, google, aiohttp,
requests and Arrow without importing any of those libraries. The mapping is total: what it does not
know is a `StorageError`. Secrets never get into a message.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    DeltaError,
    ObjectNotFoundError,
    StorageError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def storage_error(
    error: Exception, *, operation: str, path: str, secrets: Iterable[str] = ()
) -> DeltaError:
    """The error of ours that says what `error` says.

    Args:
        error: whatever a file system raised.
        operation: what was attempted, as a verb (`read`, `list`, …).
        path: on what.
        secrets: texts that must not be shown, besides what looks like a secret.
    """
    if isinstance(error, DeltaError):
        return error
    kind = _kind(error)
    detail = redact(f"{type(error).__name__}: {error}", secrets)
    return kind(f"cannot {operation} {redact(path, secrets)!r}: {detail}")


def holds_secret(error: BaseException, secrets: Iterable[str] = ()) -> bool:
    """Whether the text of an exception, or of one that caused it, must not be shown."""
    secrets = tuple(secrets)
    return any(redact(str(one), secrets) != str(one) for one in _chain(error))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without passwords, keys, signatures and tokens."""
    for secret in secrets:
        text = text.replace(secret, "***")
    for pattern, replacement in _SECRET_PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def _kind(error: Exception) -> type[StorageError]:
    for one in _chain(error):
        for names, kind in _BY_NAME:
            if not names.isdisjoint(_class_names(one)):
                return kind
        if (code := _code(one)) is not None:
            return _BY_CODE[code]
    return StorageError


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it says it was caused by; libraries wrap one another."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def _class_names(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def _code(error: BaseException) -> str | None:
    """A code that `_BY_CODE` knows: of an AWS or Azure answer, or an HTTP status."""
    for candidate in _candidates(error):
        text = str(getattr(candidate, "value", candidate))
        if text in _BY_CODE:
            return text
    return None


def _candidates(error: BaseException) -> Iterator[object]:
    yield getattr(error, "error_code", None)
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        yield response.get("Error", {}).get("Code")
        yield response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    elif response is not None:  # requests
        yield getattr(response, "status_code", None)
    # azure.core, aiohttp, gcsfs; one by one, since aiohttp has an old name too and warns of it
    for name in ("status_code", "status", "code"):
        if (value := getattr(error, name, None)) is not None:
            yield value
            return


_BY_NAME: Final[tuple[tuple[frozenset[str], type[StorageError]], ...]] = (
    (
        frozenset(
            {"FileNotFoundError", "NotADirectoryError", "ResourceNotFoundError", "NoSuchBucket"}
        ),
        ObjectNotFoundError,
    ),
    (frozenset({"FileExistsError", "ResourceExistsError"}), AlreadyExistsError),
    (
        frozenset(
            {
                "PermissionError",
                "ClientAuthenticationError",
                "CredentialUnavailableError",
                "NoCredentialsError",
                "PartialCredentialsError",
                "CredentialRetrievalError",
                "TokenRetrievalError",
                "UnauthorizedSSOTokenError",
                "SSOTokenLoadError",
                "DefaultCredentialsError",
                "RefreshError",
                "InvalidAccessKeyError",
            }
        ),
        AccessDeniedError,
    ),
)

_BY_CODE: Final[dict[str, type[StorageError]]] = {
    **dict.fromkeys(
        (
            "404",
            "410",
            "NoSuchKey",
            "NoSuchBucket",
            "NotFound",
            "BlobNotFound",
            "ContainerNotFound",
            "PathNotFound",
            "FilesystemNotFound",
        ),
        ObjectNotFoundError,
    ),
    **dict.fromkeys(
        # No plain 409: S3 means by it that two conditional writes met, and neither may be there.
        ("412", "PreconditionFailed", "BlobAlreadyExists", "PathAlreadyExists"),
        AlreadyExistsError,
    ),
    **dict.fromkeys(
        (
            "401",
            "403",
            "AccessDenied",
            "Forbidden",
            "ExpiredToken",
            "ExpiredTokenException",
            "InvalidAccessKeyId",
            "InvalidToken",
            "SignatureDoesNotMatch",
            "TokenRefreshRequired",
            "AuthenticationFailed",
            "AuthorizationFailure",
            "AuthorizationPermissionMismatch",
            "InvalidAuthenticationInfo",
        ),
        AccessDeniedError,
    ),
}

_HIDDEN_NAMES: Final = (  # names, no secrets
    r"(?:account[_-]?key|sharedaccesskey|shared[_-]?access[_-]?signature|sas[_-]?token|"
    r"secret(?:[_-]?access)?[_-]?key|session[_-]?token|security[_-]?token|client[_-]?secret|"
    r"access[_-]?token|refresh[_-]?token|private[_-]?key|password|"
    r"x-amz-(?:signature|credential|security-token)|x-goog-signature|sig|signature|token)"
)
_SECRET_PATTERNS: Final = (
    # scheme://user:password@host
    (re.compile(r"(?P<head>[A-Za-z][\w+.-]*://[^/\s:@]*):[^/\s@]+@"), r"\g<head>:***@"),
    (re.compile(r"(?i)(?P<head>\bBearer\s+)[\w.~+/=-]+"), r"\g<head>***"),
    (
        re.compile(
            rf"(?i)(?P<head>(?<![a-z0-9]){_HIDDEN_NAMES}['\"]?\s*[=:]\s*['\"]?)[^\s&;,'\"<>)]+"
        ),
        r"\g<head>***",
    ),
)
