"""What is at a location that has no log: the mistake that was made, and what to do.

Owns the texts. It is asked for when a table was not found, never before; what it cannot look at, it
does not guess.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from deltalog.errors import DeltaError, TableNotFoundError
from deltalog.log.names import BEGINNINGS, parse_log_name
from deltalog.partition_values.directories import NULL_DIRECTORY
from deltalog.paths import LOG_DIRECTORY
from deltalog.storage.store import LevelStore, native_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.storage.store import Store

_SHOWN: Final = 3
_MOST_PARTITION_COLUMNS: Final = 5
_PARQUET: Final = (".parquet", ".parq")
# Directories of other table formats, directly in the table's.
_OTHER_FORMATS: Final = {"metadata": "an Iceberg table's", ".hoodie": "a Hudi table's"}


def absent_table(store: Store) -> TableNotFoundError:
    """Return the error for a location without a table, which says what was found there.

    Args:
        store: of the location.

    Cost: one request for the file of that name, a listing of each directory above that may be the
    table's, and of the directory: two, and one for each partition column.
    """
    found, advice = _found(store)
    text = f"cannot open {store.root}: expected a Delta table, found {found}"
    return TableNotFoundError(f"{text}; {advice}" if advice else text)


def _found(store: Store) -> tuple[str, str]:
    """What is there, and what to do."""
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
            rows = (
                f", and ask for its rows with {_predicate(partition)}" if "=" in partition else ""
            )
            return f"{what} of the table {above}" if is_file else what, f"open {above}{rows}"
    if is_file:
        kind = "a Parquet file" if name.endswith(_PARQUET) else "a file"
        return kind, "a table is a directory with a _delta_log in it"
    return _found_in_directory(store)


def _found_in_directory(store: Store) -> tuple[str, str]:
    files, directories = _level(store, "")
    if LOG_DIRECTORY in directories or _level(store, LOG_DIRECTORY)[0]:
        return (
            "no commit and no complete checkpoint in its _delta_log",
            "if files of its log were lost, restore them from a backup",
        )
    for directory, owner in _OTHER_FORMATS.items():
        if directory in directories:
            return f"no _delta_log, but {owner} directory {directory}", ""
    if _holds_parquet(store, files, directories):
        return (
            "Parquet files without a _delta_log",
            "convert_to_deltalake makes a table of them",
        )
    if files or directories:
        names = ", ".join(sorted([*files, *directories])[:_SHOWN])
        return f"no _delta_log, but {names}", "write_deltalake or DeltaTable.create makes a table"
    local = native_path(store, "")
    if local is not None and Path(local).is_dir():
        return "an empty directory", "write_deltalake or DeltaTable.create makes a table in it"
    return "nothing there", "see that the location is right; write_deltalake makes a new table"


def _holds_parquet(store: Store, files: Sequence[str], directories: Sequence[str]) -> bool:
    """Whether there are Parquet files, directly or in directories of partition values."""
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
    """The names of files and of directories in a directory."""
    with suppress(DeltaError):
        if isinstance(store, LevelStore):
            files, directories = store.list_level(directory)
            return [_name(file.path) for file in files], [_name(path) for path in directories]
        return [_name(file.path) for file in store.list_from(directory, "")], []
    return [], []


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _above(root: str, *, is_file: bool) -> Iterator[str]:
    """The directories above that may be a table's: those of a file, or of partition values."""
    parent, _, name = root.rpartition("/")
    while parent and not parent.endswith(("/", ":")) and (is_file or "=" in name):
        yield parent
        is_file = False
        parent, _, name = parent.rpartition("/")


def _predicate(directories: str) -> str:
    """What holds for the rows of directories that are named after partition values."""
    conditions = []
    for column, equals, value in (name.partition("=") for name in directories.split("/")):
        if equals:
            text = unquote(value).replace("'", "\\'")
            condition = "IS NULL" if value == NULL_DIRECTORY else f"= '{text}'"
            conditions.append(f"{unquote(column)} {condition}")
    return " AND ".join(conditions)


def _is_file(store: Store) -> bool:
    with suppress(DeltaError):
        return bool(store.stat("").size_bytes)
    return False


def _has_table_at(store: Store, location: str) -> bool:
    with suppress(DeltaError):
        names = map(parse_log_name, store.list_from(f"{location}/{LOG_DIRECTORY}", ""))
        return any(file is not None and file.kind in BEGINNINGS for file in names)
    return False
