"""Converts exceptions of other libraries to `deltalog.errors`; nothing else in this package does.

This module recognises exceptions of the operating system, botocore, azure.core, google, aiohttp,
requests and Arrow without importing these libraries. Each `StoreKind` lists the error names of its
service. Any other exception becomes a `StorageError`. A message never contains secrets.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import socket
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.paths import split_location
from deltalog._util.store_kinds import KINDS
from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    DeltaError,
    InvalidInputError,
    ObjectNotFoundError,
    StorageError,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

_UNEXPECTED: Final = re.compile(r"got an unexpected keyword argument '(\w+)'")
"""How Python refuses an argument. Options that deltalog does not know are passed to the client."""
_NATIVE_HADOOP: Final = re.compile("libhdfs|libjvm|CLASSPATH")


def storage_error(
    error: Exception, *, operation: str, path: str, secrets: Iterable[str] = ()
) -> DeltaError:
    """Return the error of `deltalog.errors` for an exception of a file system.

    Args:
        error: the exception.
        operation: what was attempted (`read`, `list`, …).
        path: the file or directory.
        secrets: strings to hide in the message, in addition to strings that look like a secret.
    """
    if isinstance(error, DeltaError):
        return error
    if isinstance(error, TypeError) and (unknown := _UNEXPECTED.search(str(error))):
        return InvalidInputError(
            f"cannot {operation} {redact(path, secrets)!r}: the store's client does not know the "
            f"storage option {unknown[1]!r}"
        )
    # Looking for a local file that does not exist yet is part of many operations.
    if "://" in path and (container := absent_container(error)):
        name = split_location(path)[1].partition("@")[0]
        return ObjectNotFoundError(
            f"cannot {operation} {redact(path, secrets)!r}: the {container} {name!r} does not "
            f"exist; check its name, and the endpoint and account in storage_options; deltalog "
            f"does not create a {container}"
        )
    detail = denial(error, path) or _no_directory(error, operation, path)
    if not detail:
        detail = _TEMPORARY.sub("", redact(f"{type(error).__name__}: {error}", secrets))
    advice = _advice(error)
    return _meaning(error)(f"cannot {operation} {redact(path, secrets)!r}: {detail}{advice}")


def absent_container(error: BaseException) -> str:
    """Return "bucket" or "container" if an error says that there is none; otherwise ""."""
    messages = [f"{one} {' '.join(_names(one))}" for one in _chain(error)]
    for kind in KINDS.values():
        pattern = kind.says_no_container
        if pattern and any(re.search(pattern, message) for message in messages):
            return kind.container
    return ""


def _advice(error: Exception) -> str:
    """Return what to do about a failure that the client's message does not explain."""
    for kind in {kind.name: kind for kind in KINDS.values()}.values():
        if kind.credentials and says(error, kind.says_unconfigured.split()):
            return f"; {kind.credentials}"
    if any(_NO_TLS.search(str(one)) for one in _chain(error)):
        return (
            "; the endpoint in storage_options is https://, but its port does not use TLS: write "
            "http://"
        )
    if found := next((text for name, text in _ADVICE.items() if says(error, [name])), None):
        return found
    if any(isinstance(one, socket.gaierror) for one in _chain(error)):
        return "; check the host in the location, and the network"
    if "Invalid endpoint" in str(error):
        return "; an endpoint is a URL, such as http://localhost:9000"
    if isinstance(error, OSError) and error.errno in _ADVICE_BY_NUMBER:
        return _ADVICE_BY_NUMBER[error.errno]
    if _NATIVE_HADOOP.search(str(error)):
        return (
            "; pyarrow reads HDFS with Hadoop's libraries: install Java and Hadoop's client, and "
            "set JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob), or open "
            "webhdfs://"
        )
    return ""


def denial(error: BaseException, path: str) -> str:
    """Return which local file or directory this user may not use, and what to do.

    The string is empty for other errors, and for files that are not local. The operating system
    names the file, or a temporary file, but usually a directory above it lacks the permission.

    Args:
        error: the exception of the operating system.
        path: the absolute path of the file or directory.
    """
    # Windows refuses for other reasons, too, such as another process that has the file open.
    if not isinstance(error, PermissionError) or os.name == "nt" or not path.startswith("/"):
        return ""
    named = error.filename  # a listing of a tree names a directory in it
    if isinstance(named, str) and named.startswith(f"{path.rstrip('/')}/"):
        path = named
    action, place = _barrier(Path(path))
    what = "the directory" if place.is_dir() else "the file"
    if action == "write to" and _may(place, os.W_OK):  # refused by an access list, or by a mount
        return (
            f"permission denied ({error.strerror}): the system does not let this user write to "
            f"{what} {str(place)!r}{_owned(place)}; check the permissions of the file and of the "
            "directory, access lists, and how the file system is mounted"
        )
    return (
        f"permission denied: this user may not {action} {what} {str(place)!r}{_owned(place)}; "
        "change its permissions, or run as a user who may"
    )


def _no_directory(error: Exception, operation: str, path: str) -> str:
    """Return which local directory the system did not create for a new file."""
    is_new = operation in {"write", "create", "rename"} and path.startswith("/")
    if not (is_new and isinstance(error, FileNotFoundError)):
        return ""
    missing = [place for place in Path(path).parents if not place.exists()]
    if not missing:
        return ""
    return (
        f"the system does not create the directory {str(missing[-1])!r}: {error.strerror}; choose "
        "a location in a directory for files"
    )


def _owned(place: Path) -> str:
    """Return the owner and the mode of a directory or file, for messages about permissions."""
    try:
        state = place.lstat()
    except OSError:
        return ""
    return f", which belongs to {_owner(state.st_uid)} (mode {stat.filemode(state.st_mode)})"


def _owner(uid: int) -> str:
    try:
        import pwd  # noqa: PLC0415  # does not exist on Windows

        return repr(pwd.getpwuid(uid).pw_name)
    except (ImportError, KeyError):
        return f"the user {uid}"


def _may(place: Path, mode: int) -> bool:
    """Return whether this process, not the user who started it, may use a directory or file."""
    effective = os.access in os.supports_effective_ids
    return os.access(place, mode, effective_ids=effective)


def _barrier(last: Path) -> tuple[str, Path]:
    """Return what the user may not do on the way to a path, and with which directory or file."""
    above = last
    for place in (*reversed(last.parents), last):
        if not os.path.lexists(place):
            return "write to", above
        search = os.X_OK if place.is_dir() else 0
        if not _may(place, search | (os.R_OK if place == last else 0)):
            return "open", place
        above = place
    return "write to", last if last.is_dir() else last.parent


_TEMPORARY: Final = re.compile(r": '[^']*\.[0-9a-f]{32}\.tmp'(?: -> '[^']*')?")
"""How the operating system names a temporary file, which the user does not know."""

_NO_TLS: Final = re.compile("WRONG_VERSION_NUMBER|wrong version number|InvalidContentType")
"""How clients describe an answer that is not TLS."""
_ADVICE: Final = {
    **dict.fromkeys(
        ("EndpointConnectionError", "ClientConnectorDNSError", "ClientConnectorError"),
        "; check the endpoint in storage_options, and the network",
    ),
    "ProfileNotFound": "; profiles are in ~/.aws/config and ~/.aws/credentials, and `aws configure "
    "list-profiles` lists them",
    "InvalidRegionError": "; a region is such as eu-west-1",
}
"""Name of a client's error → what to do."""
_FULL: Final = "; free space, or choose another location; what was written before is unchanged"
_ADVICE_BY_NUMBER: Final = {
    errno.ENOTDIR: "; the location, or a directory above it, is a file",
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "; raise the limit of the file size of this process (ulimit -f)",
    errno.EROFS: "; the file system is mounted read-only: mount it for writing, or choose another "
    "location",
    errno.ENAMETOOLONG: "; shorten the location, or the values of the partition columns, which "
    "name directories",
    errno.EMFILE: "; this process has too many open files: raise its limit (ulimit -n), or close "
    "readers",
    errno.ENFILE: "; the system has too many open files: close some, or raise its limit",
    errno.EIO: "; the disk or its network connection failed: check the system's log",
    errno.ESTALE: "; the network file system lost the file: mount it again",
    errno.ELOOP: "; a symbolic link in the location leads to itself",
}
"""Number of an error of the operating system → what to do."""


def cleanup_level(error: DeltaError) -> int:
    """Return the level to log that new files could not be deleted after a failure.

    If the failure that is being handled has the same reason, a missing permission or bucket,
    usually no files were written. Then the level is INFO.
    """
    failure = sys.exception()
    is_same = isinstance(error, _NOTHING_WRITTEN) and type(failure) is type(error)
    numbers = {getattr(one.__cause__, "errno", None) for one in (error, failure) if one}
    is_same |= numbers == {errno.ENAMETOOLONG}
    return logging.INFO if is_same else logging.WARNING


_NOTHING_WRITTEN: Final = (AccessDeniedError, ObjectNotFoundError)


@contextlib.contextmanager
def naming_the_operation(attempt: str, table: str) -> Iterator[None]:
    """Add what was attempted to errors of the store in the block, which name a file.

    Args:
        attempt: the operation, such as `run DELETE on`.
        table: the location of the table.
    """
    try:
        yield
    except StorageError as error:
        message = f"cannot {attempt} {table}"
        is_named = f"{table}: cannot " in str(error)
        if is_named or type(error) not in _OF_FILES:
            raise
        raise error.with_message(f"{message}: {error.args[0]}") from error.__cause__


_OF_FILES: Final = (StorageError, AccessDeniedError, ObjectNotFoundError)
"""The errors of `storage_error` that end an operation; those of catalogs are other classes."""


@contextlib.contextmanager
def disk_errors(purpose: str) -> Iterator[None]:
    """Convert errors of temporary files, such as a full disk, to `StorageError`.

    Args:
        purpose: the purpose of the files, as in "cannot write temporary files to sort".
    """
    try:
        yield
    except DeltaError:
        raise
    except OSError as error:
        raise StorageError(
            f"cannot write temporary files to {purpose}: {error}{_advice(error)}"
        ) from error


def holds_secret(error: BaseException, secrets: Iterable[str] = ()) -> bool:
    """Return whether the message of an exception, or of its causes, must not be shown."""
    secrets = tuple(secrets)
    return any(redact(str(one), secrets) != str(one) for one in _chain(error))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without passwords, keys, signatures and tokens."""
    for secret in secrets:
        text = text.replace(secret, "***")
    for pattern, replacement in _SECRET_PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def has_login(url: str) -> bool:
    """Whether a URL of an object store has a user and a password before its bucket."""
    return _LOGIN_OF_BUCKET.match(url) is not None and "://arn:" not in url


def says(error: BaseException, names: Container[str]) -> bool:
    """Whether an exception or one of its causes has one of these class names or error codes."""
    return any(name in names for one in _chain(error) for name in _names(one))


def _meaning(error: Exception) -> type[StorageError]:
    known = dict(_COMMON)
    for kind in KINDS.values():
        known |= dict.fromkeys(kind.says_missing.split(), ObjectNotFoundError)
        known |= dict.fromkeys(kind.says_exists.split(), AlreadyExistsError)
        known |= dict.fromkeys(kind.says_denied.split(), AccessDeniedError)
    names = (name for one in _chain(error) for name in _names(one))
    return next((known[name] for name in names if name in known), StorageError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, because libraries wrap exceptions of other libraries."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def _names(error: BaseException) -> Iterator[str]:
    """Yield the error's class names, its error code (AWS, Azure), and the HTTP status."""
    yield from (cls.__name__ for cls in type(error).__mro__)
    yield from (str(getattr(code, "value", code)) for code in _codes(error))


def _codes(error: BaseException) -> Iterator[object]:
    yield getattr(error, "error_code", None)
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # an error of botocore
        yield response.get("Error", {}).get("Code")
        yield response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    elif response is not None:  # an error of the package requests
        yield getattr(response, "status_code", None)
    # The errors of azure.core, aiohttp and gcsfs. Stop at the first attribute that is set, because
    # reading `code` of an aiohttp error causes a warning.
    for name in ("status_code", "status", "code"):
        if (value := getattr(error, name, None)) is not None:
            yield value
            return


_COMMON: Final[dict[str, type[StorageError]]] = {
    **dict.fromkeys(
        ("FileNotFoundError", "NotADirectoryError", "NotFound", "404", "410"), ObjectNotFoundError
    ),
    # 409 is not listed here. In S3, it means that two conditional writes collided, and both may
    # have failed.
    **dict.fromkeys(("FileExistsError", "PreconditionFailed", "412"), AlreadyExistsError),
    **dict.fromkeys(("PermissionError", "Forbidden", "401", "403"), AccessDeniedError),
}

_HIDDEN_NAMES: Final = (  # names of secret settings and parameters
    r"(?:account[_-]?key|api[_-]?key|sharedaccesskey|shared[_-]?access[_-]?signature|"
    r"sas[_-]?token|secret(?:[_-]?access)?(?:[_-]?key)?|session[_-]?token|security[_-]?token|"
    r"client[_-]?secret|access[_-]?token|refresh[_-]?token|private[_-]?key|password|passwd|"
    r"x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|"
    r"sig|signature|token)"
)
# A name must not be the end of a longer word. `%26` and `%3f` may be before it, because a URL may
# be a percent-encoded parameter of another URL.
_BEFORE_NAME: Final = r"(?:(?<![a-z0-9])|(?<=%26)|(?<=%3f))"
_LOGIN: Final = r"://[^/\s:@\[]*"
# The schemes whose authority is a bucket or a container. A colon in it is never followed by a port.
_WITHOUT_PORTS: Final = r"\b(?:s3[an]?|gcs|gs|az|abfss?|wasbs?|adl|oss|cosn?|obs|r2)"
_LOGIN_OF_BUCKET: Final = re.compile(rf"(?i)(?P<head>{_WITHOUT_PORTS}{_LOGIN}):[^\s@'\"]+@")
_SECRET_PATTERNS: Final = (
    # scheme://user:password@host. If the password is an S3 key, it often contains unencoded
    # slashes.
    (re.compile(rf"(?P<head>[A-Za-z][\w+.-]*{_LOGIN}):[^/\s]+@"), r"\g<head>:***@"),
    (_LOGIN_OF_BUCKET, r"\g<head>:***@"),
    (
        re.compile(rf"(?P<head>[A-Za-z][\w+.-]*{_LOGIN}):(?!\d{{1,5}}(?![^/?#\s'\"]))[^\s@'\"]+@"),
        r"\g<head>:***@",
    ),
    (
        re.compile(
            r"(?i)(?P<head>\bBearer\s+|\bauthorization['\"]?\s*[=:]\s*['\"]?Basic\s+)[\w.~+/=-]+"
        ),
        r"\g<head>***",
    ),
    (
        re.compile(
            rf"(?i)(?P<head>{_BEFORE_NAME}{_HIDDEN_NAMES}['\"]?\s*(?:[=:]|%3d)\s*)"
            r"""(?P<quote>['"])(?:(?!(?P=quote)).)+"""
        ),
        r"\g<head>\g<quote>***",
    ),
    (
        re.compile(
            rf"(?i)(?P<head>{_BEFORE_NAME}{_HIDDEN_NAMES}['\"]?\s*(?:[=:]|%3d)\s*)"
            r"(?!['\"])[^\s&;,'\"<>)]+"
        ),
        r"\g<head>***",
    ),
)


# --- Limiting the retries for services that were never reached


ATTEMPTS: Final = 2
"""The number of attempts to reach a service, if its client allows this number to be set."""
PAUSE_SECONDS: Final = 0.3
"""The wait before the second attempt, in which a name server may finish its restart."""
_UNREACHED: Final = "EndpointConnectionError"
_TIMED_OUT: Final = "ConnectTimeoutError"


def impatient_client(client: Any, service: str) -> Any:
    """Return a botocore client that fails early for a service that was never reached."""
    FirstContact(service).watch(client.meta.events)
    return client


class FirstContact:
    """A handler of botocore's event `needs-retry` that reduces the retries of the first request.

    Args:
        service: botocore's name of the service.
    """

    def __init__(self, service: str) -> None:
        self._event = f"needs-retry.{service}"
        self._is_reached = False

    def watch(self, events: Any) -> None:
        """Register the handler with the events of a client or session."""
        events.register_first(self._event, self._decide, unique_id=f"deltalog-{self._event}")

    def _decide(
        self,
        response: Any = None,
        caught_exception: Exception | None = None,
        attempts: int = 1,
        **_: object,
    ) -> None:
        if response is not None:
            self._is_reached = True
        if self._is_reached or caught_exception is None:
            return
        name = type(caught_exception).__name__
        if name == _TIMED_OUT or (name == _UNREACHED and attempts >= ATTEMPTS):
            raise caught_exception
