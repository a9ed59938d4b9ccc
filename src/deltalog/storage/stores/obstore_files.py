"""Amazon S3 and compatible services over obstore, if that is installed.

s3fs is created on demand for everything that obstore does not support: buckets in a region that is
not configured, names with empty elements, listings of one level, signed URLs and uploads in parts.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import sys
import threading
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from deltalog._util.paths import FileInfo
from deltalog.errors import InvalidInputError
from deltalog.storage import atomic
from deltalog.storage.faults import ATTEMPTS
from deltalog.storage.pool import interruptibly, send_together
from deltalog.storage.stores.fsspec_files import milliseconds
from deltalog.storage.stores.s3 import CLIENT, S3Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from deltalog._util.store_kinds import StoreKind
    from deltalog.storage.store import ByteRange


# --- Deciding whether to use obstore, and its settings


_logger = logging.getLogger("deltalog.storage")


def obstore_settings(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert arguments of s3fs to arguments of `ObstoreClients`; None if s3fs must be used.

    Raises:
        InvalidInputError: the user chose obstore, but it does not support the arguments.
    """
    wanted = arguments.get(CLIENT)
    if wanted == "s3fs" or _process.was_forked:
        return None
    try:
        _check_process()
        return _settings({name: arguments[name] for name in arguments if name != CLIENT})
    except _BeyondObstoreError as beyond:
        if wanted is not None:
            raise InvalidInputError(
                f"storage option 's3_client': obstore cannot be used: {beyond}"
            ) from None
        _logger.debug("s3fs is used, not obstore: %s", beyond)
        return None


class _BeyondObstoreError(Exception):
    """The reason why s3fs has to be used."""


class _Process:
    """Records the process that has obstore's threads; a forked child does not have them."""

    was_forked = False

    def note_fork(self) -> None:
        self.was_forked = self.was_forked or "obstore" in sys.modules


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.note_fork)

# The prefix of environment variables for AWS. obstore reads all of them, even variables that s3fs
# ignores.
_PREFIX: Final = "AWS_"
_KNOWN_NAMES: Final = (
    "ACCESS_KEY_ID SECRET_ACCESS_KEY SESSION_TOKEN REGION DEFAULT_REGION ENDPOINT_URL"
    " ENDPOINT_URL_S3 CONFIG_FILE SHARED_CREDENTIALS_FILE CA_BUNDLE PAGER DEFAULT_OUTPUT"
    " EXECUTION_ENV EC2_METADATA_DISABLED ROLE_ARN ROLE_SESSION_NAME WEB_IDENTITY_TOKEN_FILE"
    " CONTAINER_CREDENTIALS_RELATIVE_URI CONTAINER_CREDENTIALS_FULL_URI"
    " CONTAINER_AUTHORIZATION_TOKEN"
)
_KNOWN_VARIABLES: Final = frozenset(_PREFIX + name for name in _KNOWN_NAMES.split())
_KNOWN_PREFIXES: Final = (f"{_PREFIX}LAMBDA_", f"{_PREFIX}XRAY_")
_PROXIES: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
_CERTIFICATES: Final = (f"{_PREFIX}CA_BUNDLE", "REQUESTS_CA_BUNDLE")
# The settings in configuration files of the AWS SDK that do not affect obstore's requests:
# credentials, and settings of the console.
_KNOWN_LINES: Final = re.compile(
    r"aws_\w+|region|output|cli_\w+|sso_\w+|role_arn|role_session_name|source_profile"
    r"|credential_\w+|web_identity_token_file|mfa_serial|external_id|duration_seconds"
)
# The regions in which the service has the usual domain name.
_USUAL_REGION: Final = re.compile(r"(?:af|ap|ca|eu|il|me|mx|sa|us)-(?!iso)(?:gov-)?[a-z]+-\d+")
_USUAL_TEXT: Final = re.compile(r"[\x21-\x7e]+")
# The default timeouts of s3fs.
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 15


def _check_process() -> None:
    if importlib.util.find_spec("obstore") is None:
        raise _BeyondObstoreError("it is not installed; pip install 'deltalog[s3]'")
    for name, value in os.environ.items():
        if name.startswith(_PREFIX):
            if not value:  # obstore would use the empty string
                raise _BeyondObstoreError(f"the variable {name} is empty")
            if name not in _KNOWN_VARIABLES and not name.startswith(_KNOWN_PREFIXES):
                raise _BeyondObstoreError(f"the variable {name} is set")
        elif name.upper() in _PROXIES or name.startswith("FSSPEC_"):
            raise _BeyondObstoreError(f"the variable {name} is set")
    if Path("~/.config/fsspec").expanduser().exists():
        raise _BeyondObstoreError("fsspec has a configuration")
    for variable, usual in (("CONFIG_FILE", "config"), ("SHARED_CREDENTIALS_FILE", "credentials")):
        _check_file(Path(os.environ.get(f"{_PREFIX}{variable}") or f"~/.aws/{usual}").expanduser())


def _check_file(path: Path) -> None:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise _BeyondObstoreError(f"{path} cannot be read") from error
    for name in re.findall(r"(?m)^\s*([\w.-]+)\s*=", text):
        if not _KNOWN_LINES.fullmatch(name):
            raise _BeyondObstoreError(f"{path} sets {name!r}")


def _settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in arguments.items() if value is not None}
    given.pop("skip_instance_cache", None)
    if given.pop("use_listings_cache", False):
        raise _BeyondObstoreError("listings are kept")
    for_client = _part(given, "client_kwargs")
    for_config = _part(given, "config_kwargs")
    for_buckets = _part(for_config, "s3")
    endpoint = _endpoint(given.pop("endpoint_url", None), for_client.pop("endpoint_url", None))
    config = _credentials(given)
    config["region"] = _region(for_client.pop("region_name", None), has_endpoint=endpoint != "")
    style = for_buckets.pop("addressing_style", "auto")
    verify = for_client.pop("verify", True)
    if given.pop("requester_pays", False) is not False:
        raise _BeyondObstoreError("the requester pays")
    if for_config.pop("signature_version", "s3v4") != "s3v4":
        raise _BeyondObstoreError("URLs are signed in another way")
    connect_seconds = _seconds(for_config.pop("connect_timeout", _CONNECT_SECONDS))
    read_seconds = _seconds(for_config.pop("read_timeout", _READ_SECONDS))
    for name in (*given, *for_client, *for_config, *for_buckets):
        raise _BeyondObstoreError(f"the argument {name!r} is given")
    if style not in ({"auto", "path"} if endpoint else {"auto", "path", "virtual"}):
        raise _BeyondObstoreError(f"the addressing style is {style!r}")
    if not isinstance(verify, bool):
        raise _BeyondObstoreError("certificates are given")
    is_plain = endpoint.startswith("http://")
    if not is_plain and any(os.environ.get(name) for name in _CERTIFICATES):
        raise _BeyondObstoreError("the environment gives certificates")
    if endpoint:
        config["endpoint"] = config["aws_endpoint_url_s3"] = endpoint
    return {
        "config": config,
        "is_plain_http": is_plain,
        "accepts_any_certificate": not verify,
        "is_virtual": not endpoint and style != "path",
        "connect_seconds": connect_seconds,
        "read_seconds": read_seconds,
    }


def _part(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    """Remove the dictionary with this name from the arguments, and return it."""
    found = arguments.pop(name, None) or {}
    if not isinstance(found, dict):
        raise _BeyondObstoreError(f"the argument {name!r} is not a dictionary")
    return {inner: value for inner, value in found.items() if value is not None}


def _credentials(given: dict[str, Any]) -> dict[str, Any]:
    key, secret, token = (given.pop(name, None) for name in ("key", "secret", "token"))
    if (anonymous := given.pop("anon", False)) is True:
        return {"skip_signature": True}
    if anonymous is not False:
        raise _BeyondObstoreError("it is not stated whether requests are signed")
    variables = [f"{_PREFIX}{name}" for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")]
    inherited = os.environ.get(f"{_PREFIX}SESSION_TOKEN")
    if key is None and secret is None and token is None:
        # Read only access keys from the environment. Other sources of credentials need botocore.
        key, secret = map(os.environ.get, variables)
        token = inherited or None
    elif token is None and inherited is not None:
        raise _BeyondObstoreError("the environment has a session token of other keys")
    config = {"access_key_id": key, "secret_access_key": secret, "session_token": token}
    found = {name: value for name, value in config.items() if value is not None}
    if len(found) < (2 if token is None else 3):
        raise _BeyondObstoreError("the keys are neither given nor in the environment")
    if not all(isinstance(one, str) and _USUAL_TEXT.fullmatch(one) for one in found.values()):
        raise _BeyondObstoreError("a key is not a string")
    return found


def _region(given: Any, *, has_endpoint: bool) -> str:
    names = ("DEFAULT_REGION", "REGION")
    inherited = (os.environ.get(f"{_PREFIX}{name}") for name in names)
    found = given or next(filter(None, inherited), None)
    if not isinstance(found, str) or not _USUAL_TEXT.fullmatch(found):
        raise _BeyondObstoreError("the region is neither given nor in the environment")
    if not has_endpoint and not _USUAL_REGION.fullmatch(found):
        raise _BeyondObstoreError(f"the region is {found!r}")
    return found


def _endpoint(*given: Any) -> str:
    """Return the URL of the service; an empty string for Amazon's service."""
    names = ("ENDPOINT_URL_S3", "ENDPOINT_URL")
    inherited = [os.environ.get(f"{_PREFIX}{name}") for name in names]
    found = next(filter(None, [*given, *inherited]), "")
    if not isinstance(found, str):
        raise _BeyondObstoreError("the endpoint is not a string")
    if not found:
        return ""
    parts = urlsplit(found)
    plain = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in {"http", "https"} or "@" in plain or found.rstrip("/") != plain:
        raise _BeyondObstoreError("the endpoint is more than a host")
    return plain


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 3600:
        raise _BeyondObstoreError("a timeout is not a plain number")
    return float(value)


# --- The calls over obstore


_Result = TypeVar("_Result")

# The number of names per page of a listing.
_PAGE_NAMES: Final = 1000
# The maximum length of a body that obstore sends. s3fs sends longer bodies in concurrent parts.
_MOST_IN_ONE_PUT: Final = 50 * 1024 * 1024
_USUAL_BUCKET: Final = re.compile(r"(?!.*--(?:x|xa|ol)-s3$)[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
"""Matches bucket names, except ARNs and S3 Express buckets, whose listings are not ordered."""
_UNSENT: Final = "error sending request"
_REPEATED: Final = f"after {ATTEMPTS - 1} retries"
_IN_HOST: Final = re.compile(r"(?!xn--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
"""Matches bucket names that may be in a host name: lower case, because host names ignore case."""
# The Unicode character that sorts after all other characters.
_LAST: Final = "\U0010ffff"


class _AnsweredError(Exception):
    """The first request failed after few retries, but the service has answered."""


class ObstoreClients:
    """The clients of buckets, which share credentials and settings.

    Args:
        config: the settings of obstore's S3Store.
        is_plain_http: whether to connect without TLS.
        accepts_any_certificate: whether to accept invalid certificates.
        is_virtual: whether the bucket is part of the host name, if possible.
        connect_seconds: the time limit for connecting.
        read_seconds: the time limit between two pieces of an answer.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, Any],
        is_plain_http: bool,
        accepts_any_certificate: bool,
        is_virtual: bool,
        connect_seconds: float,
        read_seconds: float,
    ) -> None:
        self._config = config
        self._is_virtual = is_virtual
        self._read_timeout = timedelta(seconds=read_seconds)
        self._options = {
            "allow_http": is_plain_http,
            "allow_invalid_certificates": accepts_any_certificate,
            "connect_timeout": timedelta(seconds=connect_seconds),
            "timeout": timedelta(hours=1),
        }
        self._lock = threading.Lock()
        self._made: dict[tuple[str, bool], Any] = {}
        self._is_reached = False
        self._left: set[str] = set()

    def client(self, bucket: str, *, writes: bool) -> Any:
        """Return the client of a bucket; None if s3fs must be used."""
        with self._lock:
            if bucket in self._left or not _USUAL_BUCKET.fullmatch(bucket):
                return None
            made = self._made.get((bucket, writes))
            if made is None:
                made = self._made[bucket, writes] = self._make(bucket, writes=writes)
            return made

    @property
    def is_reached(self) -> bool:
        """Whether the service has ever answered."""
        return self._is_reached

    def note_answer(self) -> None:
        """Use the usual number of retries from now on, because the service has answered."""
        with self._lock:
            if not self._is_reached:
                self._is_reached = True
                self._made.clear()

    def leave(self, bucket: str) -> None:
        """Use s3fs for all further calls for this bucket."""
        with self._lock:
            self._left.add(bucket)

    def _make(self, bucket: str, *, writes: bool) -> Any:
        # Set no read timeout for writes, because the client receives no data while it sends a long
        # body.
        timeouts = {} if writes else {"read_timeout": self._read_timeout}
        return import_module("obstore.store").S3Store(
            bucket,
            config={
                **self._config,
                # Do not use the bucket as a host name if it contains a dot: a certificate for
                # `*.s3.…` is not valid for `a.b.s3.…`.
                "virtual_hosted_style_request": self._is_virtual
                and _IN_HOST.fullmatch(bucket) is not None,
            },
            client_options={**self._options, **timeouts},
            retry_config={
                "max_retries": 5 if self._is_reached else ATTEMPTS - 1,
                "retry_timeout": timedelta(minutes=2),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=5),
                    "base": 2,
                },
            },
        )


class ObstoreFiles(S3Files):
    """The file operations of a store over obstore; s3fs does what obstore does not support.

    Like s3fs, obstore repeats a conditional put after a network failure. If the name exists then,
    the caller must check whether the first request created it.

    Args:
        clients: the clients of the buckets.
        later: returns the s3fs file system with the same arguments.
        kind: the kind of the store.
        lock: see `FsspecFiles`.
    """

    clients = ObstoreClients
    settings: Final = staticmethod(obstore_settings)

    def __init__(
        self,
        clients: ObstoreClients,
        later: Callable[[], Any],
        kind: StoreKind,
        lock: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> None:
        super().__init__(_MadeLater(later), kind, lock)
        self._clients = clients
        self._obstore = import_module("obstore")

    def list_names(self, directory: str, first: str) -> list[FileInfo]:
        """Like `list_directory`, for an existing directory.

        Cost: one request per 1,000 names from `first`, and one request for each empty file. Of each
            subdirectory, at most one page is read.
        """

        def ask(client: Any, key: str) -> list[FileInfo]:
            found = [file for page, _ in self._level_pages(client, key, first) for file in page]
            return self._without_markers(client, key, found)

        otherwise = super().list_names
        return self._with(directory, ask, lambda: otherwise(directory, first))

    def short_names(self, directory: str, most: int) -> list[FileInfo] | None:
        """Like `list_short`, for an existing directory. Cost: usually one request."""

        def ask(client: Any, key: str) -> list[FileInfo] | None:
            found: list[FileInfo] = []
            for page, is_full in self._level_pages(client, key, ""):
                found += page
                if is_full and len(found) > most:
                    return None
            return self._without_markers(client, key, found)

        otherwise = super().short_names
        return self._with(directory, ask, lambda: otherwise(directory, most))

    def stat(self, path: str) -> FileInfo:
        """Return size and time of a file."""

        def ask(client: Any, key: str) -> FileInfo:
            return _file_info(path, self._obstore.head(client, key))

        otherwise = super().stat
        return self._with(path, ask, lambda: otherwise(path))

    def read(self, path: str) -> bytes:
        """Return the whole file."""

        def ask(client: Any, key: str) -> bytes:
            return bytes(self._obstore.get(client, key).bytes())

        otherwise = super().read
        return self._with(path, ask, lambda: otherwise(path))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return ranges of a file, fetched concurrently."""
        return send_together(lambda part: self._read_range(path, *part), ranges)

    def _read_range(self, path: str, start: int, end: int) -> bytes:
        if start >= end:
            return b""

        def ask(client: Any, key: str) -> bytes:
            return bytes(self._obstore.get_range(client, key, start=start, end=end))

        otherwise = super().read_ranges
        return self._with(path, ask, lambda: otherwise(path, [(start, end)])[0])

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Return whole files, fetched concurrently."""
        return send_together(self.read, paths)

    def create(self, path: str, data: bytes) -> None:
        """Create an object, or raise `FileExistsError`."""
        otherwise = super().create
        if self._lock is not None or len(data) > _MOST_IN_ONE_PUT:
            otherwise(path, data)
            return

        def ask(client: Any, key: str) -> None:
            self._obstore.put(client, key, data, mode="create", use_multipart=False)

        def send() -> None:
            self._with(path, ask, lambda: otherwise(path, data), writes=True)

        atomic.send_until_decided(send, self.kind)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        otherwise = super().put
        if len(data) > _MOST_IN_ONE_PUT:
            otherwise(path, data)
            return

        def ask(client: Any, key: str) -> None:
            self._obstore.put(client, key, data, use_multipart=False)

        self._with(path, ask, lambda: otherwise(path, data), writes=True)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects, 1,000 per request; a missing object is not an error."""
        groups: dict[str, list[str]] = {}
        for path in paths:
            groups.setdefault(path.partition("/")[0], []).append(path)
        for group in groups.values():
            self._delete_group(group)

    def _delete_group(self, paths: list[str]) -> None:
        keys = [path.partition("/")[2] for path in paths]
        otherwise = super().delete_many

        def ask(client: Any, _: str) -> None:
            self._obstore.delete(client, keys)

        if all(map(_is_plain, keys)):
            try:
                self._with(paths[0], ask, lambda: otherwise(paths))
            except FileNotFoundError:  # some services stop at a missing file
                otherwise(paths)
        else:
            otherwise(paths)

    def _forget(self, path: str) -> None:
        """Do nothing, because neither obstore nor s3fs caches listings here."""

    def _level_pages(
        self, client: Any, directory: str, first: str
    ) -> Iterator[tuple[list[FileInfo], bool]]:
        """Yield the files directly in a directory, page by page, and whether the page is full.

        obstore lists all depths. If a page ends within a subdirectory, the next page begins after
        that subdirectory.
        """
        prefix = f"{directory}/" if directory else ""
        # The listing begins after the given name, so use a string that sorts just before `first`.
        start: str | None = f"{prefix}{first[:-1]}" if first else None
        while True:
            skip = ""
            listing = self._obstore.list(
                client, directory or None, offset=start, chunk_size=_PAGE_NAMES
            )
            for page in listing:
                names = ((entry["path"].removeprefix(prefix), entry) for entry in page)
                files = [
                    _file_info(name, entry)
                    for name, entry in names
                    if "/" not in name and name >= first and entry["path"] != directory
                ]
                yield files, (is_full := len(page) == _PAGE_NAMES)
                last = page[-1]["path"] if page else ""
                inner, slash, _ = last.removeprefix(prefix).partition("/")
                skip = f"{prefix}{inner}/{_LAST}" if is_full and slash else ""
                if last < skip:
                    break
            else:
                return
            start = skip

    def _without_markers(self, client: Any, key: str, files: list[FileInfo]) -> list[FileInfo]:
        """Return the files without directory markers, which obstore lists without final slash."""
        found = {file.path: file for file in files}
        for file in files:
            if not file.size_bytes:
                try:
                    self._obstore.head(client, f"{key}/{file.path}".lstrip("/"))
                except FileNotFoundError:
                    del found[file.path]
        return list(found.values())

    def _ask(self, client: Any, key: str, ask: Callable[[Any, str], _Result]) -> _Result:
        """Call obstore.

        Raises:
            _AnsweredError: the service has answered for the first time; repeat the call.
        """
        is_first = not self._clients.is_reached
        try:
            found = interruptibly(lambda: ask(client, key))
        except (import_module("obstore.exceptions").BaseError, OSError) as error:
            if is_first and _UNSENT not in str(error):
                self._clients.note_answer()
                if _REPEATED in str(error):
                    raise _AnsweredError from error
            raise
        if is_first:
            self._clients.note_answer()
        return found

    def _with(
        self,
        path: str,
        ask: Callable[[Any, str], _Result],
        otherwise: Callable[[], _Result],
        *,
        writes: bool = False,
    ) -> _Result:
        """Call obstore, or s3fs if obstore does not support the request."""
        bucket, _, key = path.partition("/")
        client = self._clients.client(bucket, writes=writes) if _is_plain(key) else None
        if client is None:
            return otherwise()
        errors: Any = import_module("obstore.exceptions")
        try:
            return self._ask(client, key, ask)
        except _AnsweredError:
            return self._with(path, ask, otherwise, writes=writes)
        except errors.InvalidPathError:  # obstore does not support this name
            return otherwise()
        except FileNotFoundError as error:
            raise _fault(error) from None
        except errors.BaseError as error:
            fault = _fault(error, is_taken=isinstance(error, errors.AlreadyExistsError))
            if not _is_elsewhere(fault):
                raise fault from None
        # s3fs can determine the region of the bucket.
        self._clients.leave(bucket)
        return otherwise()


class ObstoreFaultError(OSError):
    """An error of obstore: its message, code and status.

    Args:
        message: the message of the service or of obstore.
        error_code: the service's name of the error.
        status: the HTTP status of the answer.
    """

    def __init__(self, message: str, error_code: str | None, status: str | None) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.status = status


class _MadeLater:
    """A file system that is created on first use."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        made = self.__dict__.get("_filesystem")
        if made is None:
            made = self.__dict__["_filesystem"] = self._make()
        return getattr(made, name)


def _is_plain(key: str) -> bool:
    """Whether obstore uses a key unchanged; it removes outer slashes and rejects some keys."""
    parts = key.split("/")
    return key == "" or (
        not any(part in {"", ".", ".."} for part in parts)
        and not any(character < " " or character == "\x7f" for character in key)
    )


def _file_info(path: str, entry: Mapping[str, Any]) -> FileInfo:
    return FileInfo(path, int(entry["size"]), milliseconds(entry["last_modified"]))


def _fault(error: Exception, *, is_taken: bool = False) -> OSError:
    """Convert an error of obstore to the built-in exception with the same meaning."""
    text = str(error).partition("\n\nDebug source")[0]
    if _UNSENT in text:
        text = f"{text} (no connection: see that the endpoint is right and reached from here)"
    # obstore uses one class for all these errors. They differ only in the service's answer, which
    # is in the message.
    code = re.search(r"<Code>(\w+)</Code>|\(code: (\w+)\)", text)
    status = re.search(r"status code: (\d{3})\b", text)
    name = (code[1] or code[2]) if code else None
    number = status[1] if status else None
    reason = re.search(r"<Message>(.*?)</Message>", text, re.DOTALL)
    if reason is not None:
        text = f"{re.split(r'<[?]xml|<Error', text)[0].strip()} {name}: {reason[1]}"
    if isinstance(error, FileNotFoundError) or number == "404" or name == "NoSuchKey":
        return FileNotFoundError(text)
    if is_taken and number != "409":  # the meaning of 409 depends on the error code
        return FileExistsError(text)
    return ObstoreFaultError(text, name, number)


def _is_elsewhere(fault: OSError) -> bool:
    """Whether the bucket is in another region."""
    return "incorrectly configured region" in str(fault) or getattr(fault, "error_code", None) in {
        "AuthorizationHeaderMalformed",
        "PermanentRedirect",
        "TemporaryRedirect",
        "IllegalLocationConstraintException",
    }
