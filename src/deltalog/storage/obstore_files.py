"""Amazon S3 and the services that speak its protocol, over obstore, where that is installed.

What obstore cannot do (a bucket in another region than said, names
with empty parts, one level of directories, signed URLs, uploads in parts) s3fs does, which is made
when that is asked for.
"""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalog.paths import FileInfo
from deltalog.storage import atomic
from deltalog.storage.fsspec_files import milliseconds
from deltalog.storage.obstore_settings import obstore_settings
from deltalog.storage.pool import interruptibly, send_together
from deltalog.storage.s3 import S3Files
from deltalog.storage.unreached import ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from deltalog.storage.store import ByteRange
    from deltalog.store_kinds import StoreKind

_Result = TypeVar("_Result")

# As many names as the service puts into a page of a listing.
_PAGE_NAMES: Final = 1000
# s3fs sends more than this in parts, several at once.
_MOST_IN_ONE_PUT: Final = 50 * 1024 * 1024
_USUAL_BUCKET: Final = re.compile(r"(?!.*--(?:x|xa|ol)-s3$)[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
"""No ARN; no S3 Express, whose listings have no order."""
_UNSENT: Final = "error sending request"
_REPEATED: Final = f"after {ATTEMPTS - 1} retries"
_IN_HOST: Final = re.compile(r"(?!xn--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
"""Other names cannot be part of a host's: an upper-case letter would name another bucket."""
# Sorts after every other character.
_LAST: Final = "\U0010ffff"


class _AnsweredError(Exception):
    """A first request failed after fewer repeats than are usual, and the service is there."""


class ObstoreClients:
    """The clients of buckets, which share credentials and settings.

    Args:
        config: of obstore's S3Store.
        is_plain_http: whether the service is reached without TLS.
        accepts_any_certificate: whether certificates are not checked.
        is_virtual: whether a bucket is part of the host's name, where it can be.
        connect_seconds: until a connection is given up.
        read_seconds: until an answer that has stopped is given up.
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
        """The client of a bucket; None where s3fs has to do it."""
        with self._lock:
            if bucket in self._left or not _USUAL_BUCKET.fullmatch(bucket):
                return None
            made = self._made.get((bucket, writes))
            if made is None:
                made = self._made[bucket, writes] = self._make(bucket, writes=writes)
            return made

    @property
    def is_reached(self) -> bool:
        """Whether the service has answered."""
        return self._is_reached

    def note_answer(self) -> None:
        """Repeat requests from now on, as it is usual."""
        with self._lock:
            if not self._is_reached:
                self._is_reached = True
                self._made.clear()

    def leave(self, bucket: str) -> None:
        """Let s3fs do everything in a bucket from now on."""
        with self._lock:
            self._left.add(bucket)

    def _make(self, bucket: str, *, writes: bool) -> Any:
        # While a body is sent nothing is read: a slow upload is no stopped answer.
        timeouts = {} if writes else {"read_timeout": self._read_timeout}
        return import_module("obstore.store").S3Store(
            bucket,
            config={
                **self._config,
                # A certificate for `*.s3.…` does not hold for `a.b.s3.…` either.
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
    """The calls of a store over obstore, and over s3fs what obstore cannot do.

    obstore repeats a conditional put that failed on its way, as s3fs does: whoever is told that the
    name is taken has to look whether his own first request took it, and does.

    Args:
        clients: of the buckets.
        later: makes the s3fs file system with the same arguments.
        kind: its row.
        lock: as in `FsspecFiles`.
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
        """As `list_directory`.

        Cost: one request per 1,000 names from `first` on, and one for each empty file. Of a
        directory inside at most one page is read.
        """

        def ask(client: Any, key: str) -> list[FileInfo]:
            found = [file for page, _ in self._level_pages(client, key, first) for file in page]
            return self._without_markers(client, key, found)

        otherwise = super().list_names
        return self._with(directory, ask, lambda: otherwise(directory, first))

    def short_names(self, directory: str, most: int) -> list[FileInfo] | None:
        """As `list_short`. Cost: usually one request, which answers up to 1,000 names."""

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
        """Size and time of a file."""

        def ask(client: Any, key: str) -> FileInfo:
            return _file_info(path, self._obstore.head(client, key))

        otherwise = super().stat
        return self._with(path, ask, lambda: otherwise(path))

    def read(self, path: str) -> bytes:
        """The whole file."""

        def ask(client: Any, key: str) -> bytes:
            return bytes(self._obstore.get(client, key).bytes())

        otherwise = super().read
        return self._with(path, ask, lambda: otherwise(path))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file; sent together."""
        return send_together(lambda part: self._read_range(path, *part), ranges)

    def _read_range(self, path: str, start: int, end: int) -> bytes:
        if start >= end:
            return b""

        def ask(client: Any, key: str) -> bytes:
            return bytes(self._obstore.get_range(client, key, start=start, end=end))

        otherwise = super().read_ranges
        return self._with(path, ask, lambda: otherwise(path, [(start, end)])[0])

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Whole files; sent together."""
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
        """Delete objects; gone ones are no error. Cost: one request per 1,000 of a bucket."""
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
            except FileNotFoundError:  # some services say so of one that is gone, and stop there
                otherwise(paths)
        else:
            otherwise(paths)

    def _forget(self, path: str) -> None:
        """Do nothing: neither client keeps listings."""

    def _level_pages(
        self, client: Any, directory: str, first: str
    ) -> Iterator[tuple[list[FileInfo], bool]]:
        """The files directly in a directory, page by page, and whether a page is full.

        obstore lists all depths from a name on. A page that ends inside another directory is
        followed by what comes after that directory.
        """
        prefix = f"{directory}/" if directory else ""
        # A listing begins after a name, so it gets a text that sorts before it.
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
        """The files without directories' markers, whose names obstore shows without their slash."""
        found = {file.path: file for file in files}
        for file in files:
            if not file.size_bytes:
                try:
                    self._obstore.head(client, f"{key}/{file.path}".lstrip("/"))
                except FileNotFoundError:
                    del found[file.path]
        return list(found.values())

    def _ask(self, client: Any, key: str, ask: Callable[[Any, str], _Result]) -> _Result:
        """What obstore answers.

        Raises:
            _AnsweredError: it is to be asked again, as the service has answered for the first time.
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
        """What obstore answers, or s3fs where obstore cannot know."""
        bucket, _, key = path.partition("/")
        client = self._clients.client(bucket, writes=writes) if _is_plain(key) else None
        if client is None:
            return otherwise()
        errors: Any = import_module("obstore.exceptions")
        try:
            return self._ask(client, key, ask)
        except _AnsweredError:
            return self._with(path, ask, otherwise, writes=writes)
        except errors.InvalidPathError:  # an object with such a name is among those listed
            return otherwise()
        except FileNotFoundError as error:
            raise _fault(error) from None
        except errors.BaseError as error:
            fault = _fault(error, is_taken=isinstance(error, errors.AlreadyExistsError))
            if not _is_elsewhere(fault):
                raise fault from None
        # s3fs asks where the bucket is and goes there.
        self._clients.leave(bucket)
        return otherwise()


class ObstoreFaultError(OSError):
    """What obstore raised, without its inner state.

    Args:
        message: of the service, or of obstore.
        error_code: the service's name of the error.
        status: of the answer.
    """

    def __init__(self, message: str, error_code: str | None, status: str | None) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.status = status


class _MadeLater:
    """A file system that is made when it is first used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        made = self.__dict__.get("_filesystem")
        if made is None:
            made = self.__dict__["_filesystem"] = self._make()
        return getattr(made, name)


def _is_plain(key: str) -> bool:
    """Whether obstore takes a key as it is: it drops slashes at the ends and refuses others."""
    parts = key.split("/")
    return key == "" or (
        not any(part in {"", ".", ".."} for part in parts)
        and not any(character < " " or character == "\x7f" for character in key)
    )


def _file_info(path: str, entry: Mapping[str, Any]) -> FileInfo:
    return FileInfo(path, int(entry["size"]), milliseconds(entry["last_modified"]))


def _fault(error: Exception, *, is_taken: bool = False) -> OSError:
    """What obstore raised, as the exception that says the same of any file."""
    text = str(error).partition("\n\nDebug source")[0]
    if _UNSENT in text:
        text = f"{text} (no connection: see that the endpoint is right and reached from here)"
    # obstore tells reads, deletions and listings apart only by what the service answered.
    code = re.search(r"<Code>(\w+)</Code>|\(code: (\w+)\)", text)
    status = re.search(r"status code: (\d{3})\b", text)
    name = (code[1] or code[2]) if code else None
    number = status[1] if status else None
    reason = re.search(r"<Message>(.*?)</Message>", text, re.DOTALL)
    if reason is not None:
        text = f"{re.split(r'<[?]xml|<Error', text)[0].strip()} {name}: {reason[1]}"
    if isinstance(error, FileNotFoundError) or number == "404" or name == "NoSuchKey":
        return FileNotFoundError(text)
    if is_taken and number != "409":  # what 409 means is said by the name
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
