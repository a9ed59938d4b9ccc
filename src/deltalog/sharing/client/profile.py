"""Profiles from files, URLs, open files and dictionaries; names and URLs of shared tables.

This module finds and reads profiles; `wire.profile` parses them.

Protocol: Profile File Format
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, runtime_checkable

import fsspec

from deltalog._util.argument_types import kind_of
from deltalog._util.json import dumps
from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.sharing.wire.lines import Table
from deltalog.sharing.wire.profile import Profile, parse_profile
from deltalog.storage.http.replies import shown_location

logger: logging.Logger = logging.getLogger(__name__)

_WARNED: Final[set[str]] = set()  # profiles for which a warning about the file mode was logged
_MOST_BYTES: Final = 1 << 20


@runtime_checkable
class Readable(Protocol):
    """An open file."""

    def read(self) -> str | bytes:
        """Return the whole content."""
        ...


ProfileSource = str | PathLike[str] | Mapping[str, Any] | Readable | Profile


def read_profile(source: ProfileSource) -> Profile:
    """Return the profile at `source`.

    Args:
        source: path or URL of a profile file (any URL that fsspec can read), an open file, a
            dictionary with the profile, or a `Profile`.

    Raises:
        InvalidInputError: the file does not exist, or its version or type is unknown.
        MalformedMessageError: the content is not a profile.
    """
    if isinstance(source, Profile):
        return source
    if isinstance(source, Mapping):
        return _parse(dumps(dict(source)))
    if isinstance(source, Readable):
        text = source.read()
        return _parse(text.encode() if isinstance(text, str) else text)
    if isinstance(source, str | PathLike):
        location = fspath(source)
        return _parse(_read_file(location), f" {shown_location(location)!r}")
    raise InvalidInputError(
        f"cannot read a profile from {kind_of(source)}: expected a path, a URL, an open "
        "file, a dictionary or a Profile"
    )


def _parse(data: bytes, name: str = "") -> Profile:
    try:
        return parse_profile(data)
    except MalformedMessageError as error:
        raise MalformedMessageError(f"cannot read the profile{name}: {error}") from error


def parse_table_url(url: str) -> tuple[str, Table]:
    """Return the profile's location and the table of `<profile>#<share>.<schema>.<table>`.

    Raises:
        InvalidInputError: the string has another form.
    """
    # Split at the last `#`, because the path of a profile may also contain `#` (SHARE-CLI-01).
    location, hash_sign, name = url.rpartition("#")
    try:
        if hash_sign and location:
            return location, parse_table_name(name)
    except InvalidInputError:
        pass  # the error below also shows the location of the profile
    parts = name.split(".") if hash_sign else []
    missing = ""
    if hash_sign and location and len(parts) < len(_PARTS) and all(parts):
        missing = f", found {shown_location(name)!r}, which has no {_PARTS[len(parts)]}"
        missing += "; SharingClient(profile).list_all_tables() lists the names"
    elif not hash_sign:
        missing = ", found no '#'"
    raise InvalidInputError(  # begins like the official client's message
        f"Invalid 'url': {shown_location(url)}: expected "
        f"'<path or URL of a profile>#<share>.<schema>.<table>'{missing}"
    )


_PARTS: Final = ("share", "schema", "table")


def parse_table_name(name: str) -> Table:
    """Return the table of `<share>.<schema>.<table>`.

    Raises:
        InvalidInputError: the string has another form.
    """
    parts = name.split(".")
    if len(parts) != 3 or not all(parts):
        raise InvalidInputError(
            f"cannot open shared table {shown_location(name)!r}: expected "
            "'<share>.<schema>.<table>'"
        )
    share, schema, table = parts
    return Table(name=table, schema=schema, share=share)


_PROBLEMS: Final[dict[type[Exception], str]] = {
    FileNotFoundError: "there is no such file; it is the file that the provider of the share sends "
    "or offers for download",
    IsADirectoryError: "it is a directory; expected a JSON file",
    PermissionError: "this user may not read the file",
}


def _read_file(location: str) -> bytes:
    try:
        with _opened(location) as file:
            data = file.read(_MOST_BYTES + 1)
    # A file system may raise any error. Its message may contain secrets from the location.
    except Exception as error:  # noqa: BLE001
        problem = _PROBLEMS.get(type(error), type(error).__name__)
        if isinstance(error, ValueError):  # such as an unknown scheme of a URL
            problem = "it is neither a file nor the URL of one in a known store"
        if "://" in location:
            problem += "; the address of a server is the endpoint in this file"
        raise InvalidInputError(
            f"cannot read the profile {shown_location(location)!r}: {problem}"
        ) from None
    _warn_of_mode(location)
    if len(data) > _MOST_BYTES:
        raise InvalidInputError(
            f"cannot read the profile {shown_location(location)!r}: expected a small JSON file"
        )
    return data


def _opened(location: str) -> BinaryIO:
    if "://" in location or "::" in location:
        opened: BinaryIO = fsspec.open(location, "rb").open()
        return opened
    # Open local paths without fsspec: choosing its file system takes longer than reading the file.
    return Path(location).expanduser().open("rb")


def _warn_of_mode(location: str) -> None:
    """Log a warning if other users of the machine can read the file (SHARE-PRO-05)."""
    if location in _WARNED:
        return
    with contextlib.suppress(OSError, ValueError):
        mode = Path(location.removeprefix("file://")).stat().st_mode
        if os.name == "posix" and mode & 0o077:
            _WARNED.add(location)
            logger.warning(
                "other users can read the profile %s: run chmod 600 on it", shown_location(location)
            )
