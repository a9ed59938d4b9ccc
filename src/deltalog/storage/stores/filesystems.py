"""The file system of a location: how it is chosen, created and called.

This module chooses the class of file operations for a store kind, lets stores share clients, and
adapts file systems that the user passes.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import metadata
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Final

from deltalog._util.argument_types import kind_of
from deltalog._util.paths import LOG_DIRECTORY
from deltalog._util.similar_names import similar_to
from deltalog._util.store_kinds import KINDS, LOCAL, Address, StoreKind, kind_named
from deltalog.errors import InvalidInputError, StorageError, UnsafePathError
from deltalog.storage.faults import redact
from deltalog.storage.options import check_spelling, translate
from deltalog.storage.store import Store, is_local, native_home
from deltalog.storage.stores.fsspec_files import FsspecFiles
from deltalog.storage.stores.local_files import LocalFiles

CommitLock = Callable[[], AbstractContextManager[Any]]
Files = FsspecFiles | LocalFiles
_MODULES: Final = {
    "FsspecFiles": "deltalog.storage.stores.fsspec_files",
    "LocalFiles": "deltalog.storage.stores.local_files",
    "MemoryFiles": "deltalog.storage.stores.fsspec_files",
    "S3Files": "deltalog.storage.stores.s3",
    "ObstoreFiles": "deltalog.storage.stores.obstore_files",
    "GoogleFiles": "deltalog.storage.stores.google",
    "AzureFiles": "deltalog.storage.stores.azure",
    "WebFiles": "deltalog.storage.stores.fsspec_files",
}
"""The modules of the classes that a `StoreKind` names. They are imported on first use."""


def open_files(
    kind: StoreKind, arguments: Mapping[str, Any], location: str, lock: CommitLock | None
) -> Files:
    """Return the file operations of a store, with the fastest client that supports the arguments.

    Args:
        kind: the kind of the store.
        arguments: the arguments of the file system's class.
        location: see `make_filesystem`.
        lock: see `files_over`.

    Raises:
        InvalidInputError: see `make_filesystem`; or the client that the user chose does not support
            the arguments.
        StorageError: see `make_filesystem`.
    """
    make = partial(make_filesystem, kind, arguments, location)
    if kind.quicker:
        quicker = class_named(kind.quicker)
        settings = quicker.settings(arguments)
        if settings is not None:
            files: Files = quicker(_shared.get(quicker.clients, settings), make, kind, lock)
            return files
    return files_over(make(), kind, lock)


def files_over(filesystem: Any, kind: StoreKind, lock: CommitLock | None) -> Files:
    """Return the file operations for an fsspec file system; the class must match its kind."""
    modules = {cls.__module__ for cls in type(filesystem).__mro__}
    if kind.filesystem and kind.filesystem not in modules:
        # The file system has the protocol name of this kind, but another class. For example,
        # pyarrow's S3 file system has no put-if-absent.
        kind = StoreKind(kind.name, has_directories=kind.has_directories)
    files: Files = files_class(kind)(filesystem, kind, lock)
    return files


def files_class(kind: StoreKind) -> Any:
    """Return the class of the file operations of a store kind."""
    return class_named(kind.files)


def option_names(kind: StoreKind) -> Mapping[str, str]:
    """Return the known options of a store kind, without prefixes."""
    names: Mapping[str, str] = files_class(kind).option_names
    return names


def class_named(name: str) -> Any:
    """Return the class with a name in a `StoreKind` row."""
    name = name.rpartition(":")[2]  # in pickles of deltalog 0.2, the name is `module:class`
    return getattr(import_module(_MODULES[name]), name)


def filesystem_options(
    kind: StoreKind, options: Mapping[str, Any], location: str, *, own: bool = True
) -> dict[str, Any]:
    """Return the keyword arguments of the fsspec class of a kind.

    Args:
        kind: the kind of the store.
        options: the user's options, with any of the known names.
        location: the URL to open; an Azure URL names its account.
        own: whether the user passed these options for this kind; otherwise unknown options are
            ignored.

    Raises:
        InvalidInputError: a value is not the expected number, duration, boolean or JSON.
    """
    files = files_class(kind)
    if own and kind.option_prefixes:
        _check_owner(kind, options)
    arguments = translate(kind, files.option_names, options, own=own)
    finished: dict[str, Any] = files.finish(arguments, location)
    return finished


def _check_owner(kind: StoreKind, options: Mapping[str, Any]) -> None:
    """Raise if an option without a prefix is one of another service, such as an account name."""
    for name in options:
        named = _OF_SERVICES.get(name.lower())
        if named is not None and named != kind:
            raise InvalidInputError(
                f"cannot use storage option {name!r} for {kind.name}:// locations: it is an option "
                f"of {named.name}:// locations; remove it, or check the location"
            )


_OF_SERVICES: Final = {
    option: kind for kind in KINDS.values() for option in kind.own_options.split()
}
"""Option without a prefix → the store kind that alone has it."""


def make_filesystem(kind: StoreKind, arguments: Mapping[str, Any], location: str) -> Any:
    """Return an fsspec file system without listings cache; equal arguments share a file system.

    Args:
        kind: the kind of the store.
        arguments: the arguments of the file system's class.
        location: a URL; for HDFS and other kinds, it contains host and port.

    Raises:
        InvalidInputError: fsspec does not know this kind, or an argument is misspelt.
        StorageError: the package of the file system is not installed.
    """
    try:
        import fsspec  # noqa: PLC0415  # slow, and not for local files

        made = fsspec.get_filesystem_class(kind.name)
    except ImportError as error:
        advice = _package_of(kind)
        raise StorageError(f"cannot open {kind.name!r} locations: {error}; {advice}") from error
    except ValueError:
        known = ", ".join(name for name, one in KINDS.items() if one.put_if_absent is not None)
        # SQLAlchemy writes database+driver://
        advice = _ADVICE.get(
            kind.name.partition("+")[0], f"known are {known}, and the schemes of fsspec"
        )
        meant = similar_to(kind.name, [*KINDS, *fsspec.available_protocols()]).removeprefix(": ")
        if meant and kind.name not in _ADVICE:
            advice = f"{meant} {advice[0].upper()}{advice[1:]}"
        raise InvalidInputError(
            f"cannot open {redact(location)!r}: no file system is known for {kind.name!r} "
            f"locations; {advice}"
        ) from None
    scheme, colon, rest = location.partition(":")
    if colon and kind.extra and kind_named(scheme) is kind and not rest.startswith("//"):
        raise InvalidInputError(
            f"cannot open {location!r}: a URL has two slashes, as in {scheme}://{rest.lstrip('/')}"
        )
    _check_complete(made, kind, arguments, location)
    files = files_class(kind)
    _check_names(made, arguments, files.option_names)
    made, arguments = files.prepare(made, arguments)
    if kind.address in {Address.HOST, Address.UNKNOWN}:
        from_url = made._get_kwargs_from_urls(location)  # noqa: SLF001  # not public in fsspec
        arguments = {**from_url, **arguments}
    arguments = {"use_listings_cache": False, "skip_instance_cache": True, **arguments}
    return _shared.get(made, arguments)


def _package_of(kind: StoreKind) -> str:
    """Return what installs the file system of a kind."""
    if kind.extra:
        return f"pip install 'deltalog[{kind.extra}]'"
    extras: list[str] = metadata("fsspec").get_all("Provides-Extra") or []
    # The longest name that begins the scheme: the one of HTTP is also that of HTTPS.
    extra = max((one for one in extras if kind.name.startswith(one)), key=len, default="")
    return f"pip install 'fsspec[{extra}]'" if extra else "install its fsspec package"


_OF_S3: Final = (
    "open a table in a service with the API of S3 as s3://bucket/table, with "
    "storage_options={'aws_endpoint_url': 'https://host:port'}"
)
_OF_DATABASE: Final = (
    "this is the address of a database, and deltalog opens Delta tables: read the rows with "
    "polars.read_database_uri(query, uri) or pandas.read_sql(query, connection), and pass them to "
    "write_deltalake"
)
_ADVICE: Final = {
    **dict.fromkeys(
        (
            *("postgresql", "postgres", "mysql", "mariadb", "mssql", "sqlserver", "oracle"),
            *("snowflake", "sqlite", "duckdb", "motherduck", "bigquery", "redshift", "trino"),
            *("presto", "clickhouse", "cockroachdb", "odbc", "jdbc", "adbc"),
        ),
        _OF_DATABASE,
    ),
    "databricks": "a table of Unity Catalog is uc://catalog.schema.table",
    **dict.fromkeys(("minio", "b2", "wasabi", "ceph", "spaces", "do", "s3c"), _OF_S3),
    "r2": "open a table in R2 as s3://bucket/table, with "
    "storage_options={'aws_endpoint_url': 'https://<account>.r2.cloudflarestorage.com'}",
    **dict.fromkeys(
        ("delta-sharing", "delta_sharing", "sharing", "share"),
        "deltalog.sharing.SharedTable('profile.share#share.schema.table') opens a shared table",
    ),
    "unity": "a table of Unity Catalog is uc://catalog.schema.table",
    "glue": "a table of AWS Glue has the name schema.table in connect(catalog='glue')",
    **dict.fromkeys(
        ("hive", "hms", "iceberg", "polaris", "nessie", "rest"),
        "deltalog has no client for this kind of catalog: pass the location of the table",
    ),
    "dbfs": "pass the location in the cloud, which DESCRIBE DETAIL shows in Databricks, or open "
    "the table by its name in Unity Catalog",
}
"""What users of a scheme can do instead."""


def check_no_database(location: str) -> None:
    """Refuse an address of a database driver such as `jdbc:…`, which would mean a directory.

    Raises:
        InvalidInputError: the location is such an address, and there is no such directory.
    """
    if _DRIVER.match(location) and not Path(location).exists():
        raise InvalidInputError(f"cannot open {redact(location)!r}: {_OF_DATABASE}")


_DRIVER: Final = re.compile(r"(?:jdbc|odbc|adbc):|Driver=\{", re.IGNORECASE)


def _check_complete(
    made: Any, kind: StoreKind, arguments: Mapping[str, Any], location: str
) -> None:
    """Raise if an argument is missing without which the class cannot be created."""
    if kind.address in {Address.HOST, Address.UNKNOWN}:
        arguments = {**made._get_kwargs_from_urls(location), **arguments}  # noqa: SLF001  # not public in fsspec
    missing = [
        repr(name)
        for name, parameter in [*signature(made.__init__).parameters.items()][1:]
        if parameter.default is Parameter.empty
        and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
        and name not in arguments
    ]
    if missing:
        advice = f"; or {_ADVICE[kind.name]}" if kind.name in _ADVICE else ""
        raise InvalidInputError(
            f"cannot open {location!r}: storage_options need {' and '.join(missing)}{advice}"
        )


def _check_names(made: type, arguments: Mapping[str, Any], options: Mapping[str, str]) -> None:
    """Raise if the class would ignore an argument that is probably misspelt."""
    if not options:  # the class may accept any argument
        return
    makers = [vars(cls)["__init__"] for cls in made.__mro__[:-1] if "__init__" in vars(cls)]
    own = {name for maker in makers for name in signature(maker).parameters}
    # Classes accept some arguments, such as the profile of AWS, without naming them.
    own |= {target.partition("!")[0].partition(".")[0] for target in options.values()}
    for name in arguments.keys() - own:
        if not name.startswith("!"):
            check_spelling(
                name, name.lower(), [*options, *sorted(own - {"self", "args", "kwargs"})]
            )


def own_path(kind: StoreKind, authority: str, path: str) -> str:
    """Return the path inside a file system, given the parts of a URL (`split_location`)."""
    match kind.address:
        case Address.PATH:
            return path
        case Address.HOST:
            return f"/{path}"
        case Address.ACCOUNT:
            return f"{authority.partition('@')[0]}/{path}"
        case _:
            return f"{authority}/{path}"


def renewed(filesystem: Any) -> Any:
    """Return the user's file system; after a fork, create a new one with the same arguments."""
    if getattr(filesystem, "_pid", os.getpid()) == os.getpid():
        return filesystem
    arguments = {**filesystem.storage_options, "skip_instance_cache": True}
    return type(filesystem)(*filesystem.storage_args, **arguments)


def own_filesystem(filesystem: Any, location: str) -> tuple[Any, str]:
    """Return the fsspec file system or `LocalFiles` for the user's file system, and the path.

    Raises:
        InvalidInputError: the file system is neither fsspec's nor pyarrow's.
    """
    if filesystem is None or isinstance(filesystem, LocalFiles):
        return filesystem, location
    from fsspec import AbstractFileSystem  # noqa: PLC0415  # slow, and not for local files

    if isinstance(filesystem, AbstractFileSystem):
        if type(filesystem).__name__ == "LocalFileSystem":
            return LocalFiles(), location
        return filesystem, location
    if type(filesystem).__module__.startswith("pyarrow"):
        return _from_arrow(filesystem, location)
    # Options that were passed by the wrong name may contain credentials, so they are not shown.
    advice = "; pass options as storage_options" if isinstance(filesystem, Mapping) else ""
    raise InvalidInputError(
        f"cannot open {location!r}: expected as filesystem a file system of fsspec or pyarrow, "
        "such as fsspec.filesystem('s3') or pyarrow.fs.S3FileSystem(), "
        f"found {kind_of(filesystem)}{advice}"
    )


def kind_of_filesystem(filesystem: Any) -> StoreKind:
    """Return the kind for a user's file system by protocol name; `files_over` checks the class."""
    if isinstance(filesystem, LocalFiles):
        return LOCAL
    protocol = filesystem.protocol
    return kind_named(protocol if isinstance(protocol, str) else protocol[0])


_PLAIN: Final = (str, int, float, bool, bytes, type(None))


class _SharedFilesystems:
    """A cache of file systems by class and arguments, because making one may take 0.1 s or more."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._made: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()

    def get(self, made: Any, arguments: Mapping[str, Any]) -> Any:
        key = _frozen(arguments)
        if key is None:
            return made(**arguments)
        with self._lock:
            filesystem = self._made.get((made, key))
            if filesystem is None:
                filesystem = made(**arguments)
                self._made[made, key] = filesystem
            return filesystem


_shared = _SharedFilesystems()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.forget)


def _frozen(value: Any) -> Any:
    """Return options in a hashable form; None if a value cannot be hashed."""
    if isinstance(value, Mapping):
        parts = [(name, _frozen(inner)) for name, inner in sorted(value.items())]
        return None if any(part[1] is None for part in parts) else tuple(parts)
    return (type(value), value) if isinstance(value, _PLAIN) else None


def _from_arrow(filesystem: Any, location: str) -> tuple[Any, str]:
    base = getattr(filesystem, "base_path", None)
    if base is not None:  # a SubTreeFileSystem
        return _from_arrow(filesystem.base_fs, f"{base.rstrip('/')}/{location.lstrip('/')}")
    handler = getattr(filesystem, "handler", None)
    if handler is not None and hasattr(handler, "fs"):  # a PyFileSystem(FSSpecHandler)
        return own_filesystem(handler.fs, location)
    if kind_named(filesystem.type_name).is_native:
        return LocalFiles(), location
    from fsspec.implementations.arrow import ArrowFSWrapper  # noqa: PLC0415  # slow, rarely used

    return ArrowFSWrapper(filesystem), location


# --- Deleting and renaming the folders of tables


_SOME_FILE: Final = "*"


def check_deletable(store: Store) -> None:
    """Raise if a table's folder or log is a link, because another table may use the link's target.

    Raises:
        UnsafePathError: the folder or the log is a link.

    Cost: a few system calls; no request.
    """
    if not is_local(store):
        return
    home = native_home(store)
    home.check([_SOME_FILE, f"{LOG_DIRECTORY}/{_SOME_FILE}"])
    # Other operations allow the folder to be a link. Here, it is probably a mistake to delete the
    # link's target.
    if os.path.islink(home.root):  # noqa: PTH114  # a string
        raise UnsafePathError(
            f"cannot delete the table at {store.root}: its folder is a link, and nothing is "
            "deleted behind it; delete the link, or the table where it is"
        )


def delete_table_files(store: Store) -> None:
    """Delete all files of a table, the log first.

    If the deletion is interrupted, no log without data files remains. Local folders and links are
    deleted, too; links are not followed.

    Raises:
        UnsafePathError: see `check_deletable`; nothing is deleted.

    Cost: a listing of all files, and their deletions.
    """
    check_deletable(store)
    store.delete_many([file.path for file in store.list_all(LOG_DIRECTORY)])
    store.delete_many([file.path for file in store.list_all("")])
    if is_local(store):
        remove_folders(native_home(store).root)


def make_folder(store: Store) -> None:
    """Make the local folder that is a store's root.

    Raises:
        UnsafePathError: the path contains a link that is not allowed.
    """
    home = native_home(store)
    with home.open(home.root, makes=True, syncs=True):
        pass


def remove_folder(store: Store) -> None:
    """Remove the local folder that is a store's root, if it is empty.

    Raises:
        UnsafePathError: the folder is a link that is not allowed.
    """
    home = native_home(store)
    home.check([_SOME_FILE])
    with suppress(OSError):
        os.rmdir(home.root)  # noqa: PTH106  # a string


def rename_table_folder(store: Store, target: Store) -> None:
    """Rename the local folder of a table.

    Raises:
        UnsafePathError: one of the folders, or a parent, is a link that is not allowed.
        OSError: the target contains files.
    """
    native_home(store).check([_SOME_FILE])
    old, new = native_home(store), native_home(target)
    with (
        new.parent.open(new.parent.root, makes=True, syncs=False) as to,
        old.parent.open(old.parent.root, syncs=False) as source,
    ):
        source.rename(old.name, to, new.name)


def remove_folders(folder: str, *, itself: bool = True) -> None:
    """Delete empty folders and links below a local folder; links are not followed.

    Args:
        folder: an absolute path.
        itself: whether to delete the folder itself, too.
    """
    with suppress(OSError):  # another process may have created a file in the folder
        if hasattr(os, "fwalk"):
            for _, directories, _, descriptor in os.fwalk(folder, topdown=False):
                for name in directories:
                    _remove(name, descriptor)
        else:
            for directory, directories, _ in os.walk(folder, topdown=False):
                for name in directories:
                    _remove(f"{directory}/{name}")
        if itself:
            _remove(folder)


def _remove(path: str, descriptor: int | None = None) -> None:
    try:
        os.rmdir(path, dir_fd=descriptor)
    except NotADirectoryError:  # a link to a directory
        os.unlink(path, dir_fd=descriptor)
