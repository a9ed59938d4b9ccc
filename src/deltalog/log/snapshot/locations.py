"""Errors for a location: its content if it has no table, and a table around it.

Protocol: none
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from deltalog._util.paths import LOG_DIRECTORY, FileInfo
from deltalog.errors import DeltaError, InvalidInputError, TableNotFoundError
from deltalog.log.listing import has_table, was_table
from deltalog.log.names import BEGINNINGS, LAST_CHECKPOINT_PATH, parse_log_name
from deltalog.protocol.partition_values import NULL_DIRECTORY
from deltalog.storage.faults import absent_container
from deltalog.storage.store import LevelStore, Store, is_local, is_peeking, native_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Directories inside a table that no other table may use, besides partition directories.
_INTERNAL: Final = {LOG_DIRECTORY, "_change_data"}


def blanks_around(store: Store) -> str | None:
    """Return the warning about a new table whose location contains stray blanks; None without.

    Existing directories do not count, because their names were chosen before.

    Args:
        store: store of the new table.
    """
    local = native_path(store, "")
    if local is None:
        names = store.root.split("/")
    else:
        path = Path(local)
        names = [
            one.name
            for one in (path, *path.parents)
            if one.name != one.name.strip() and not one.exists()
        ]
    name = next((one for one in names if one != one.strip()), None)
    if name is None:
        return None
    return (
        f"the new table is at {store.root!r}, where the name {name!r} begins or ends with a blank; "
        "if it is a mistake, delete the table, and write it again without the blank"
    )


def check_new_location(store: Store) -> None:
    """Raise if a new table would lie in a partition directory, or in the log, of a table.

    Writers of the outer table would not see its rows, and VACUUM of the outer table would delete
    its files.

    Args:
        store: store of the new table.

    Raises:
        InvalidInputError: the location belongs to another table, or is the name of a shared table,
            or a local file has the name of the directory or of a parent directory.

    Cost: nothing, unless a directory of the location has such a name; then a listing for each.
    """
    if ".share#" in store.root:
        raise InvalidInputError(
            f"cannot create a table at {store.root}: it is the name of a shared table, which is "
            "read-only; deltalog.sharing.SharedTable reads it"
        )
    _check_no_file(store)
    names = store.root.rstrip("/").split("/")
    for number, (before, name) in enumerate(pairwise(names), 1):
        above = "/".join(names[:number])
        is_partition = "=" in name and "=" not in before
        if not (is_partition or name in _INTERNAL) or not above or above.endswith(("/", ":")):
            continue
        if not _has_table_at(store, above):
            continue
        text = f"cannot create a table at {store.root}: it is in"
        if not is_partition:
            raise InvalidInputError(
                f"{text} the directory {name} of the table {above}; choose another location, or "
                f"write to {above}"
            )
        rows = _predicate("/".join(names[number:]))
        raise InvalidInputError(
            f"{text} a partition directory of the table {above}; write to {above}, with the "
            f'partition columns in the rows; mode="overwrite" with predicate="{rows}" replaces the '
            "rows of this partition"
        )


def _check_no_file(store: Store) -> None:
    """Raise if a local file has the name of the table's directory, or of one above it."""
    local = native_path(store, "")
    if local is None:
        return
    path = Path(local)
    with suppress(OSError):
        above = next((place for place in (path, *path.parents) if place.exists()), path)
        if above.is_file():
            raise InvalidInputError(
                f"cannot create a table at {store.root}: {above} is a file, and a table is a "
                "directory; choose another location"
            )


def files_beside(store: Store, now_ms: int) -> str | None:
    """Return the warning about Parquet files where a new table is created; None without any.

    New files with names as of Delta writers do not count, because another writer may be creating
    the same table; except where this process has seen a table, whose log must have been lost. In a
    remote store, files in partition directories are not found.

    Args:
        store: store of the new table.
        now_ms: the time.

    Cost: one short listing; on a local disk, also one for each partition column.
    """
    name = _parquet_in(store, now_ms - _RUNNING_MS)
    if name is None and was_table(store.root):
        name = _parquet_in(store, _FAR_MS)
        # Another thread may have created the table in the meantime.
        if name is not None and not has_table(store):
            return (
                f"the new table at {store.root} replaces one whose _delta_log was removed, and "
                f"does not contain its files, such as {name}; if that is not meant, restore the "
                "lost files of _delta_log from a backup, and remove those of the new table"
            )
        return None
    if name is None:
        return None
    return (
        f"the new table at {store.root} does not contain the Parquet files that are already "
        f"there, such as {name}, and VACUUM will delete them; "
        f"convert_to_deltalake({store.root!r}) makes a table of such files, if it is called before "
        "the first write; or choose another location"
    )


_RUNNING_MS: Final = 60 * 60 * 1000
_FAR_MS: Final = 1 << 62
_OF_WRITERS: Final = re.compile(r"part-\d{5}-[0-9a-f]{8}-[0-9a-f-]+.*\.parquet")
_MOST_LISTED: Final = 1000
"""The number of names that one request lists."""


def _parquet_in(store: Store, since_ms: int) -> str | None:
    """Return the path of a Parquet file in the location, or in its first partition directories."""
    with suppress(DeltaError):
        if not is_local(store):
            found = store.list_short("", _MOST_LISTED) if is_peeking(store) else None
            return _first_parquet(found or (), since_ms)
        directory: str | None = ""
        while directory is not None and isinstance(store, LevelStore):
            files, directories = store.list_level(directory)
            if (name := _first_parquet(files, since_ms)) is not None:
                return name
            directory = next((path for path in directories if "=" in _name(path)), None)
    return None


def _first_parquet(files: Iterable[FileInfo], since_ms: int) -> str | None:
    for file in files:
        name = _name(file.path)
        if name.startswith(("_", ".")) or not name.endswith(_PARQUET):  # others ignore them, too
            continue
        if file.modified_ms < since_ms or not _OF_WRITERS.fullmatch(name):
            return file.path
    return None


_SHOWN: Final = 3
_YEAR: Final = len("2024")
_VARIABLE: Final = re.compile(r"\$\{?[A-Za-z_]\w*\}?|%[A-Za-z_]\w*%")
_NUMBER: Final = re.compile(r"-\d+|v-\d+|v?\d+\.\d+")
_WILDCARD: Final = re.compile(r"[*?\[{]")
_ODD: Final = re.compile(r"(?:\A|/)\s|\s(?:/|\Z)|[$*?\[{\x00-\x1f]")
"""Names in a location that are shown in quotes: with blanks at an end, or with signs of a shell."""
_SLASHES: Final = re.compile("/{2,}")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){1,2}")
_MOST_PARTITION_COLUMNS: Final = 5
_PARQUET: Final = (".parquet", ".parq")
_FILE_ENDS: Final = (*_PARQUET, ".csv", ".json", ".delta", ".db", ".avro", ".orc", ".txt", ".gz")
"""Ends of names that are not those of a schema and a table."""
# Directory that another table format creates in a table's directory → its owner in the message.
_OTHER_FORMATS: Final = {"metadata": "an Iceberg table's", ".hoodie": "a Hudi table's"}


def absent_table(store: Store) -> TableNotFoundError:
    """Return the error for a location without a table; its message describes the location.

    Args:
        store: store of the location.

    Cost: one request for a file of this name; a listing of each parent directory that may be a
    table; two listings of the directory, and one for each partition column.
    """
    found, advice = content_of(store)
    if ".share#" in store.root:
        advice = "deltalog.sharing.SharedTable opens a table of a share"
    shown = repr(store.root) if _ODD.search(store.root) else store.root
    text = f"cannot open {shown}: expected a Delta table, found {found}"
    return TableNotFoundError(f"{text}; {advice}" if advice else text)


def content_of(store: Store) -> tuple[str, str]:
    """Return a description of the location's content, and advice."""
    root = store.root.rstrip("/")
    parent, _, name = root.rpartition("/")
    if name == LOG_DIRECTORY and _has_table_at(store, parent):
        return "the log of one", f"open {parent}"
    is_file = _is_file(store)
    what = "a file" if is_file else f"the directory {name} of one"
    for above in _above(root, is_file=is_file):
        if _has_table_at(store, above):
            inside = root.removeprefix(above).strip("/")
            partition = inside.rpartition("/")[0] if is_file else inside
            rows = f", and read its rows where {_predicate(partition)}" if "=" in partition else ""
            return f"{what} of the table {above}" if is_file else what, f"open {above}{rows}"
    if is_file:
        kind = "a Parquet file" if name.endswith(_PARQUET) else "a file"
        return kind, "a table is a directory with a _delta_log in it"
    return _found_in_directory(store)


def _found_in_directory(store: Store) -> tuple[str, str]:
    files, directories = _level(store, "")
    if LOG_DIRECTORY in files:
        return f"a file {LOG_DIRECTORY}, not a directory", "a table's log is a directory"
    if LOG_DIRECTORY in directories or _level(store, LOG_DIRECTORY)[0]:
        return _found_empty_log(store)
    for directory, owner in _OTHER_FORMATS.items():
        if directory in directories:
            converts = "convert_to_deltalake or `deltalog convert` converts it to a Delta table"
            advice = converts if directory == "metadata" else ""
            return f"no _delta_log, but {owner} directory {directory}", advice
    if _holds_parquet(store, files, directories):
        return (
            "Parquet files without a _delta_log",
            "convert_to_deltalake converts them to a table",
        )
    if files or directories:
        names = ", ".join(sorted([*files, *directories])[:_SHOWN])
        return f"no _delta_log, but {names}", "write_deltalake or DeltaTable.create makes a table"
    return _found_nothing(store)


def _found_empty_log(store: Store) -> tuple[str, str]:
    if found := _doubled_slash(store):  # some services ignore a second slash in listings
        return f"no commit there, but a table at {found}", "remove the second slash"
    return (
        "no commit and no complete checkpoint in its _delta_log",
        "if files of its log were lost, restore them from a backup",
    )


def _found_nothing(store: Store) -> tuple[str, str]:
    local = native_path(store, "")
    if local is not None and Path(local).is_dir():
        return "an empty directory", "write_deltalake or DeltaTable.create makes a table in it"
    if absent := _absent_container(store):
        return f"no such {absent}", f"check the name of the {absent}, and the endpoint and account"
    if found := _doubled_slash(store):
        return f"nothing there, but a table at {found}", "remove the second slash"
    if found := _decoded(store):
        return (
            f"nothing there, but a table at {found}",
            "write its name as it is; escapes such as %20 are decoded in file: URLs only",
        )
    bare, at, version = store.root.rpartition("@")
    if at and version.isdecimal() and _has_table_at(store, bare):
        advice = f"a version is written with v, as in {bare}@v{int(version)}"
        is_date = len(version) >= _YEAR
        return "nothing there", advice + f", and a date as in {bare}@2024-01-31" * is_date
    if at and _NUMBER.fullmatch(version) and _has_table_at(store, bare):
        return "nothing there", f"versions are v and a whole number from 0, as in {bare}@v0"
    return "nothing there", _advice_on(store.root)


def _absent_container(store: Store) -> str:
    """Return "bucket" or "container" if the location's does not exist. Some clients list it."""
    if not is_local(store):
        try:
            store.read(LAST_CHECKPOINT_PATH)
        except DeltaError as error:
            return absent_container(error)
    return ""


def _doubled_slash(store: Store) -> str:
    """Return the location without doubled slashes if a table is there."""
    scheme, colon, path = store.root.rpartition("://")
    single = f"{scheme}{colon}{_SLASHES.sub('/', path)}"
    return single if single != store.root and _has_table_at(store, single) else ""


def _decoded(store: Store) -> str:
    """Return the location without the escapes of URLs if a table is there."""
    try:
        decoded = unquote(store.root, errors="strict")
    except UnicodeDecodeError:
        return ""
    return decoded if decoded != store.root and _has_table_at(store, decoded) else ""


def _advice_on(root: str) -> str:
    """Return what to do about a location where nothing is."""
    if any(name != name.strip() for name in root.split("/")):
        return "a name in the location begins or ends with a blank; remove it"
    if found := _VARIABLE.search(root):
        return (
            f"variables such as {found[0]} are not replaced in a location; "
            "os.path.expandvars(location) replaces them"
        )
    if _WILDCARD.search(root):
        return "a location has no wildcards; open each table by its own location"
    name = root.rpartition("/")[2]
    if _DOTTED.fullmatch(name) and not root.lower().endswith(_FILE_ENDS):
        catalogs = "connect(catalog=…) opens tables of catalogs by name"
        if name.count(".") == 1:
            return f"if it is a name in a catalog, {catalogs}; write_deltalake makes a new table"
        return f"a table of Unity Catalog is uc://{name}; {catalogs}"
    return "check the location; write_deltalake makes a new table"


def _holds_parquet(store: Store, files: Sequence[str], directories: Sequence[str]) -> bool:
    """Return whether there are Parquet files, directly or in partition directories."""
    directory = ""
    for _ in range(_MOST_PARTITION_COLUMNS):
        if any(name.endswith(_PARQUET) for name in files):
            return True
        below = next((name for name in directories if "=" in name), None)
        if below is None:
            return False
        directory = f"{directory}/{below}" if directory else below
        files, directories = _level(store, directory)
    return False


def _level(store: Store, directory: str) -> tuple[list[str], list[str]]:
    """Return the names of files and of directories in a directory."""
    with suppress(DeltaError):
        if isinstance(store, LevelStore):
            files, directories = store.list_level(directory)
            return [_name(file.path) for file in files], [_name(path) for path in directories]
        return [_name(file.path) for file in store.list_from(directory, "")], []
    return [], []


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _above(root: str, *, is_file: bool) -> Iterator[str]:
    """Yield the parent directories of a file or partition directory that may be a table."""
    parent, _, name = root.rpartition("/")
    while parent and not parent.endswith(("/", ":")) and (is_file or "=" in name):
        yield parent
        is_file = False
        parent, _, name = parent.rpartition("/")


def _predicate(directories: str) -> str:
    """Return the SQL condition for the rows in a partition directory such as `year=2024`."""
    conditions = []
    for column, equals, value in (name.partition("=") for name in directories.split("/")):
        if equals:
            text = unquote(value).replace("'", "\\'")
            condition = "IS NULL" if value == NULL_DIRECTORY else f"= '{text}'"
            conditions.append(f"{unquote(column)} {condition}")
    return " AND ".join(conditions)


def _is_file(store: Store) -> bool:
    with suppress(DeltaError):
        # In a store of objects, an empty object may stand for a directory.
        local = native_path(store, "")
        return Path(local).is_file() if local else bool(store.stat("").size_bytes)
    return False


def _has_table_at(store: Store, location: str) -> bool:
    with suppress(DeltaError):
        names = map(parse_log_name, store.list_from(f"{location}/{LOG_DIRECTORY}", ""))
        return any(file is not None and file.kind in BEGINNINGS for file in names)
    return False
