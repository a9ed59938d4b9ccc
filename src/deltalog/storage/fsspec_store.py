"""The store of nearly all tables: local files, memory, and all file systems of fsspec.

This module chooses the file system of each path, renews credentials, and converts exceptions, so
that every method raises only `deltalog.errors`. It does not interpret the content of files.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Final, TypeVar
from urllib.parse import quote

from deltalog._util.argument_types import kind_of
from deltalog._util.paths import (
    FileInfo,
    absolute_numbers,
    canonical_path,
    container_of,
    is_absolute,
    is_foreign,
    join,
    split_location,
    store_kind,
)
from deltalog._util.store_kinds import KINDS, Address, StoreKind, kind_named, url_of_resource
from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    DeltaError,
    InvalidInputError,
    StorageError,
    UnsafePathError,
)
from deltalog.storage.faults import has_login, holds_secret, redact, storage_error
from deltalog.storage.links import Home
from deltalog.storage.options import (
    FSYNC,
    TRUSTED_LOCATIONS,
    ExpiringOptions,
    check_effect,
    commit_objection,
    secrets_of,
    trusted_locations,
    truth,
)
from deltalog.storage.store import ByteRange, Store
from deltalog.storage.stores.filesystems import (
    CommitLock,
    Files,
    check_no_database,
    files_over,
    filesystem_options,
    kind_of_filesystem,
    open_files,
    option_names,
    own_filesystem,
    own_path,
    renewed,
)
from deltalog.storage.stores.fsspec_files import FsspecFiles, open_ranged
from deltalog.storage.stores.local_files import LocalFiles, local_path

StorageOptions = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
Place = tuple[StoreKind, str]
_Result = TypeVar("_Result")


def open_store(
    table: str | PurePath | Store,
    storage_options: StorageOptions | None = None,
    filesystem: Any = None,
    *,
    commit_lock: CommitLock | None = None,
) -> Store:
    """Return the store for a table's location.

    Args:
        table: a path or URL, which is not percent-decoded; or a store.
        storage_options: credentials and settings, by their names in fsspec, deltalake or the cloud
            SDKs; or a function that returns them, which is called again if access is denied.
        filesystem: an fsspec or pyarrow file system; `table` is then a path in it.
        commit_lock: a function that returns a lock that all writers of the table share; required
            for commits to file systems that cannot create a file atomically.

    Raises:
        InvalidInputError: `table` is not a location, or `filesystem` is not a file system.

    Cost: no request.
    """
    if isinstance(table, str | PurePath):
        return FsspecStore(
            str(table), storage_options, filesystem=filesystem, commit_lock=commit_lock
        )
    if isinstance(table, Store):
        return table
    raise _no_location(table)


def _no_location(given: Any) -> InvalidInputError:
    kind, advice = type(given), ""
    if kind.__module__.partition(".")[0] == "deltalake" and kind.__name__ == "DeltaTable":
        advice = " of deltalake; pass its table_uri, and the storage_options"
    elif isinstance(given, type):
        return InvalidInputError(
            f"cannot open a table: found the class {given.__name__}; pass an object, such as "
            f"{given.__name__}(location), or the location"
        )
    elif kind.__name__ in {"TableTransaction", "TransactionTable"}:
        advice = "; use the methods of the transaction, such as tx.append(data)"
    elif isinstance(given, tuple) or hasattr(given, "list_tables"):
        advice = "; a table of a catalog is a NamedTable(catalog=catalog, name=(schema, table))"
    elif hasattr(given, "table_uri"):
        advice = "; the table is open: pass its table_uri"
    elif hasattr(given, "columns"):
        advice = "; write_deltalake(location, data) makes a table of rows"
    return InvalidInputError(
        "cannot open a table: expected a table's location as a string, a path or a Store, found "
        f"{kind.__name__}{advice}"
    )


_LIKE_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9]+)(?P<sign>:(?!/)|//|://(?!/|localhost/|[A-Za-z]:))(?P<rest>.+)",
    re.DOTALL,
)
"""A scheme without a colon or slashes, or with a host after `://`, which local URLs lack."""
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")


class FsspecStore:
    """A `Store` over local files, memory or an fsspec file system.

    Absolute paths in other stores (`s3://other/…`, `file:///…`) are refused, because a log is not
    trusted: it could make its reader fetch files that only the reader may access. The option
    `trusted_locations` allows such paths, for example for shallow clones. They are read through
    another file system with the same options.

    Args:
        location: path or URL of the table.
        storage_options: see `open_store`.
        filesystem: see `open_store`.
        commit_lock: see `open_store`.
        within: the directory that the caller passed, if it is a parent of the table. In a local
            path, no directory between it and the table may be a link.
    """

    def __init__(
        self,
        location: str,
        storage_options: StorageOptions | None = None,
        *,
        filesystem: Any = None,
        commit_lock: CommitLock | None = None,
        within: str | None = None,
    ) -> None:
        self._options = storage_options if storage_options is not None else {}
        # Determine this only once, because `isinstance` with a protocol looks up each method of the
        # protocol.
        self._expiring = storage_options if isinstance(storage_options, ExpiringOptions) else None
        self._given, location = own_filesystem(filesystem, location)
        self._commit_lock = commit_lock
        self._may_sync = True
        self._trusted: tuple[str, ...] | None = None
        self._location = location
        self._root, self._base = _root_and_base(location, self._given)
        if self._given is None:
            self._kind = store_kind(self._root)
        else:
            self._kind = kind_of_filesystem(self._given)
        if self._given is None and isinstance(self._options, Mapping):
            check_effect(self._kind, self._options, option_names)
        self._container = container_of(self._root)
        self._home = self._home_within(within)
        self._forget_files()

    @property
    def root(self) -> str:
        """The table's location without secrets, for error messages and absolute paths."""
        return self._root

    @property
    def has_settings(self) -> bool:
        """Whether the store was opened with options or a file system."""
        return self._given is not None or bool(self._options)

    @property
    def native_home(self) -> Home | None:
        """The directory in which local files may be written and deleted."""
        return self._home

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """Yield the files in `directory` with names from `first` on, in order of names."""
        found = self._run("list", directory, lambda files, path: files.list_directory(path, first))
        return _below(directory, sorted(found, key=lambda file: file.path))

    def list_short(self, directory: str, most: int) -> list[FileInfo] | None:
        """Return the files of a directory; may return None if there are more than `most` files."""
        found = self._run("list", directory, lambda files, path: files.list_short(path, most))
        if found is None:
            return None
        found.sort(key=lambda file: file.path)
        return list(_below(directory, found))

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """Yield every file at any depth below `directory`, in any order."""
        found = self._run("list", directory, lambda files, path: list(files.list_tree(path)))
        return _below(directory, found)

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """Return the files and directories in a directory, with paths relative to the root."""
        files, directories = self._run("list", directory, lambda files, p: files.list_level(p))
        return list(_below(directory, files)), [_prefix(directory) + name for name in directories]

    def stat(self, path: str) -> FileInfo:
        """Return size and time of one file."""
        found = self._run("stat", path, lambda files, full: files.stat(full))
        return FileInfo(path, found.size_bytes, found.modified_ms)

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        return self._run("read", path, lambda files, full: files.read(full))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return ranges `[start, end)` of a file, in the requested order, fetched concurrently."""
        return self._run("read", path, lambda files, full: files.read_ranges(full, ranges))

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Return whole files, in the requested order, fetched concurrently."""
        results: list[bytes] = [b""] * len(paths)
        read = self._run_many("read", paths, lambda files, own: files.read_many(own))
        for numbers, found in read:
            for number, data in zip(numbers, found, strict=True):
                results[number] = data
        return results

    def open(self, path: str) -> BinaryIO:
        """Return a seekable file for reading.

        Cost: nothing for local files; otherwise a `stat` now, and one range request per megabyte
            that is read.
        """
        native = self.native_path(path)
        if native is not None:
            return self._run("open", path, lambda _, full: io.BufferedReader(io.FileIO(full)))
        return open_ranged(self, path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically, or raise `AlreadyExistsError`.

        Raises:
            UnsafePathError: the path leaves the table through a link.
        """
        self._check_commits(path)
        try:
            self._run("create", path, lambda files, full: files.create(full, data))
        except AlreadyExistsError:
            raise AlreadyExistsError(
                f"cannot create {join(self._root, path)!r}: it exists"
            ) from None

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file.

        Raises:
            UnsafePathError: the path leaves the table through a link.
        """
        self._check_commits(path)
        self._run("write", path, lambda files, full: files.put(full, data))

    def _check_commits(self, path: str) -> None:
        """Raise before anything is written if the options forbid commits."""
        options = self._options if isinstance(self._options, Mapping) else {}
        if (objection := commit_objection(self._kind, options)) is not None:
            raise StorageError(f"cannot create {join(self._root, path)!r}: {objection}")

    @property
    def syncs(self) -> bool:
        """Whether writes sync local files and their directory entries to the disk."""
        options = self._options if isinstance(self._options, Mapping) else {}
        return self._may_sync and truth(FSYNC, options.get(FSYNC, True))

    def without_sync(self) -> Store:
        """Return the same store without syncing to the disk."""
        other = copy(self)
        other._may_sync = False  # noqa: SLF001  # the same class
        return other

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete files; a file that is already deleted is not an error.

        Raises:
            UnsafePathError: a path leaves the table through a link; no file is deleted.
        """
        if self._home is not None:  # check all paths before deleting any file
            self._home.check(paths)
        self._run_many("delete", paths, lambda files, own: files.delete_many(own))

    def native_path(self, path: str) -> str | None:
        """Return the operating system's path of a file; None if the file has no such path."""
        return self._own_path(path) if self._place(path)[0].is_native else None

    @property
    def can_sign(self) -> bool:
        """Whether the service supports signed URLs."""
        return self._kind.can_sign

    def signed_url(self, path: str, seconds: int) -> str:
        """Return a URL with which anybody can read one file for a limited time."""

        def sign(files: Files, full: str) -> str:
            if not isinstance(files, FsspecFiles):
                raise StorageError(f"cannot sign URLs of {self._kind.name!r} files")
            return files.sign(full, seconds)

        return self._run("sign", path, sign)

    def __repr__(self) -> str:
        return f"FsspecStore({self._root!r})"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("_files", "_lock", "_process", "_secrets"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_files()

    def _forget_files(self) -> None:
        self._files: dict[Place, Files] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._secrets: tuple[str, ...] = ()

    def _run(
        self,
        operation: str,
        path: str,
        act: Callable[[Files, str], _Result],
        place: Place | None = None,
    ) -> _Result:
        place = place or self._place(path)
        try:
            return self._attempt(operation, path, act, place)
        except AccessDeniedError:
            if not callable(self._options):
                raise
        # The credentials may have expired. Request new credentials and try again once.
        if self._expiring is not None:
            self._expiring.refuse()
        with self._lock:
            self._files.clear()
        return self._attempt(operation, path, act, place)

    def _attempt(
        self, operation: str, path: str, act: Callable[[Files, str], _Result], place: Place
    ) -> _Result:
        try:
            files = self._open_files(place)
            return act(files, self._own_path(path))
        except DeltaError:
            raise
        except Exception as error:  # noqa: BLE001  # `storage_error` maps any error
            mapped = storage_error(
                error, operation=operation, path=join(self._root, path), secrets=self._secrets
            )
            # If the original message contains a secret, omit the cause, because tracebacks show it.
            raise mapped from (None if holds_secret(error, self._secrets) else error)

    def _run_many(
        self,
        operation: str,
        paths: Sequence[str],
        act: Callable[[Files, Sequence[str]], _Result],
    ) -> list[tuple[list[int], _Result]]:
        """Call `act` once per file system; return its path indices and result for each."""
        absolute = absolute_numbers(paths)
        relative = sorted({*range(len(paths))}.difference(absolute))  # usually all paths
        groups: dict[Place, list[int]] = {(self._kind, ""): relative} if relative else {}
        for number in absolute:
            groups.setdefault(self._place(paths[number]), []).append(number)
        results, base = [], _prefix(self._base)
        for place, numbers in groups.items():

            def act_on_all(files: Files, _: str, numbers: list[int] = numbers) -> _Result:
                if self._kind.is_native and not absolute:  # one call for all paths
                    return act(files, [base + paths[number] for number in numbers])
                return act(files, [self._own_path(paths[number]) for number in numbers])

            results.append((numbers, self._run(operation, paths[numbers[0]], act_on_all, place)))
        return results

    def _place(self, path: str) -> Place:
        """Return the store kind for a path, and the account in the path or an empty string."""
        if not is_absolute(path):
            return self._kind, ""
        kind = store_kind(path)
        if is_foreign(path, self._container) and not self._is_trusted(path):
            raise UnsafePathError(
                f"path {path!r} is refused: the log of a table at {self._root!r} names a file of "
                f"another store; if that is meant, open the table with storage_options="
                f"{{{TRUSTED_LOCATIONS!r}: [{container_of(path)!r}]}}"
            )
        if kind.address is not Address.ACCOUNT or (kind == self._kind and self._given is not None):
            return kind, ""
        account = _account(path)
        own = kind == self._kind and account in {"", _account(self._root)}
        return kind, "" if own else account

    def _home_within(self, within: str | None) -> Home | None:
        if not self._kind.is_native:
            return None
        given = self._base if within is None else _root_and_base(within, None)[1]
        return Home(given, self._base.removeprefix(given).strip("/"))

    def _is_trusted(self, path: str) -> bool:
        """Whether `trusted_locations` allows this path in another store."""
        # Cache the locations. This method runs for each file, and a function that returns options
        # may be slow.
        if self._trusted is None:
            options = self._current_options()
            self._trusted = trusted_locations(options)
        return any(not is_absolute(canonical_path(path, place)) for place in self._trusted)

    def _own_path(self, path: str) -> str:
        """Return the path inside the file system that `_place` determines."""
        if not is_absolute(path):
            if not path:
                return self._base
            if self._kind.address is Address.URL:
                path = quote(path)
            return f"{self._base}/{path}" if self._base != "/" else f"/{path}"
        scheme, authority, inner = split_location(path)
        kind = kind_named(scheme)
        if kind.address is Address.URL:
            return self._base + quote(path.removeprefix(self._base))
        if kind.address is Address.UNKNOWN and kind == self._kind and self._given is not None:
            return str(self._given._strip_protocol(path))  # noqa: SLF001  # not public
        return own_path(kind, authority, inner)

    def _current_options(self) -> Mapping[str, Any]:
        if not callable(self._options):
            return self._options
        found = self._options()
        if not isinstance(found, Mapping):
            raise InvalidInputError(
                f"cannot use storage_options: expected that {self._options!r} returns a dictionary "
                f"of options, found {kind_of(found)}"
            )
        return found

    def _open_files(self, place: Place) -> Files:
        if self._process != os.getpid():
            self._forget_files()  # a forked child cannot use the parent's event loops and sockets
        is_due = self._expiring is not None and self._expiring.is_due()
        with self._lock:
            if is_due:
                self._files.clear()
            files = self._files.get(place)
        if files is None:
            files = self._make_files(*place)
            with self._lock:
                files = self._files.setdefault(place, files)
        return files

    def _make_files(self, kind: StoreKind, account: str) -> Files:
        own = kind == self._kind
        if own and self._given is not None and not isinstance(self._given, LocalFiles):
            return files_over(renewed(self._given), kind, self._commit_lock)
        if kind.is_native:
            return LocalFiles(syncs=self.syncs, home=self._home)
        if not (own or kind.may_be_named):
            raise UnsafePathError(
                f"a table at {self._root!r} names files of scheme {kind.name!r}, which is refused"
            )
        options = self._current_options()
        self._secrets = secrets_of(options)
        location = self._location if own and not account else f"{kind.name}://_@{account}/"
        arguments = filesystem_options(kind, options, location, own=own)
        self._secrets = tuple({*self._secrets, *secrets_of(arguments)})
        return open_files(kind, arguments, location, self._commit_lock)


def _prefix(directory: str) -> str:
    return directory.rstrip("/") + "/" if directory else ""


def _below(directory: str, files: Sequence[FileInfo]) -> Iterator[FileInfo]:
    prefix = _prefix(directory)
    return (FileInfo(prefix + f.path, f.size_bytes, f.modified_ms) for f in files)


def _account(location: str) -> str:
    """Return the account in a URL, or an empty string."""
    return split_location(location)[1].partition("@")[2]


def _check_spelled(location: str) -> None:
    """Raise if a path that does not exist looks like a URL with a mistake, such as `s3//bucket/x`.

    Otherwise a write would create a directory of this name.
    """
    check_no_database(location)
    found = _LIKE_URL.match(location)
    is_drive = _DRIVE.match(location) is not None and os.name != "nt"
    if not (found or is_drive) or Path(location).exists():
        return
    if found is None:
        raise InvalidInputError(
            f"cannot open {location!r}: only Windows has drives; in WSL, the drive "
            f"{location[0].upper()}: is /mnt/{location[0].lower()}"
        )
    kind = kind_named(found["scheme"])
    if expected := url_of_resource(location):
        pass  # a name such as arn:aws:s3:::bucket/table
    elif kind.is_native:
        expected = f"{kind.name}:///{found['rest'].lstrip('/')}, or a path without a scheme"
    elif kind.address is Address.UNKNOWN or found["sign"] == "://":
        return
    else:
        expected = f"{found['scheme']}://{found['rest'].lstrip('/')}"
    raise InvalidInputError(f"cannot open {location!r}: expected {expected}")


_CHAINED: Final = re.compile(r"[a-z][a-z0-9+.-]*(?:://[^:]*)?::[a-z][a-z0-9+.-]*://")
_SERVICE: Final = re.compile(
    r"(?:(?P<scheme>https?):/*(?P<host>[^/@]+)|(?P<port>[^/@:]+:\d+)(?=/|$))/*(?P<rest>[^@]*)"
)
"""The host of a service instead of a bucket, in a location without its scheme."""


def _check_bucket(location: str, kind: StoreKind, authority: str, inner: str) -> None:
    """Raise if a URL has no bucket, or has the host of the service instead of a bucket."""
    if kind.address is Address.BUCKET and (service := _SERVICE.fullmatch(f"{authority}/{inner}")):
        host = service["host"] or service["port"]
        url = f"{service['scheme']}://{host}" if service["scheme"] else f"http://{host}"
        raise InvalidInputError(
            f"cannot open {redact(location)!r}: the name of the bucket follows {kind.name}://; "
            f"expected {kind.name}://{redact(service['rest']) or 'bucket/table'}, with "
            f"storage_options={{{kind.endpoint_option!r}: {url!r}}}"
        )
    if kind.address is Address.URL:
        _check_service(location, authority, inner)
        return
    found = re.fullmatch(kind.hosts, authority) if kind.hosts else None
    if found is not None and kind.address is Address.ACCOUNT:
        raise InvalidInputError(
            f"cannot open {redact(location)!r}: the container comes first, and the account follows "
            f"@; expected {_in_account(kind, authority, inner)}"
        )
    if found is not None:
        expected = "/".join(part for part in (found["bucket"], inner) if part) or "bucket/table"
    elif kind.address is Address.BUCKET and ":///" in location and not inner:
        expected = f"bucket/{authority}"
    else:
        return
    raise InvalidInputError(
        f"cannot open {redact(location)!r}: the name of the bucket follows {kind.name}://; "
        f"expected {kind.name}://{redact(expected)}"
    )


def _check_service(location: str, host: str, inner: str) -> None:
    """Raise if an HTTP URL has the host of an object store: HTTP cannot list directories."""
    for kind in KINDS.values():
        found = re.fullmatch(kind.hosts, host) if kind.hosts else None
        if found is None:
            continue
        if kind.address is Address.ACCOUNT:
            expected = _in_account(kind, host, inner)
        else:
            bucket = found["bucket"]
            expected = f"{kind.name}://{bucket}/{inner}" if bucket else f"{kind.name}://{inner}"
        raise InvalidInputError(
            f"cannot open {redact(location)!r}: a table in this service has no address with "
            f"https://; expected {redact(expected)}"
        )


def _in_account(kind: StoreKind, host: str, inner: str) -> str:
    container, _, rest = redact(inner).partition("/")
    host = host.replace(".blob.", ".dfs.", 1)
    return f"{kind.advised}://{container or 'container'}@{host}/{rest or 'table'}"


def _root_and_base(location: str, filesystem: Any) -> tuple[str, str]:
    """Return the location for messages and logs, and the path inside the file system."""
    if not location:
        raise InvalidInputError("expected a table's location, found an empty string")
    if _CHAINED.match(location) and filesystem is None:
        raise InvalidInputError(
            f"cannot open {redact(location)!r}: chained URLs of fsspec are not supported; pass the "
            "path inside, with filesystem=fsspec.url_to_fs(url)[0]"
        )
    if filesystem is not None and not isinstance(filesystem, LocalFiles):
        base = filesystem._strip_protocol(location).rstrip("/")  # noqa: SLF001  # not public
        return filesystem.unstrip_protocol(base), base
    scheme, authority, inner = split_location(location)
    kind = kind_named(scheme)
    if kind.is_native and filesystem is None:
        _check_spelled(location)
    if kind.is_native or filesystem is not None:
        path = local_path(inner if kind.is_native else location)
        return path, path
    if kind.address is Address.PATH:
        return f"{kind.name}://{inner}", inner
    if not authority and not inner.strip("/"):
        raise InvalidInputError(
            f"cannot open {location!r}: expected a URL with a bucket, such as "
            f"{kind.name}://bucket/table"
        )
    _check_bucket(location, kind, authority, inner)
    if kind.address in {Address.BUCKET, Address.ACCOUNT} and has_login(location):
        # The file systems of these kinds use the whole authority as the bucket, and would show the
        # keys in error messages.
        raise InvalidInputError(
            f"cannot open {redact(location)!r}: a table's location must not contain keys; pass "
            "them as storage_options"
        )
    base = location if kind.address is Address.URL else own_path(kind, authority, inner)
    return redact(location).rstrip("/"), base.rstrip("/")
