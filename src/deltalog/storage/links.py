"""Protection against links in a local table: no file outside the table is written or deleted.

The root's own path may contain links, because the caller passed it. If the operating system can
open files relative to an open directory, the check remains valid until the operation ends, even if
another process replaces a directory by a link meanwhile.

Protocol: none
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog._util.paths import absolute_numbers
from deltalog.errors import UnsafePathError
from deltalog.storage import atomic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# The flags for opening parent directories. O_PATH needs no read permission for them, but macOS has
# no O_PATH.
_THROUGH: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)

_NO_LINK: Final = _THROUGH | getattr(os, "O_NOFOLLOW", 0)

_NO_DIRECTORY: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EMLINK})

_WAS_REPLACED: Final = frozenset({errno.ENOENT, errno.EINVAL})

_LOOKS: Final = 100


@dataclass(frozen=True, slots=True)
class Home:
    """The directory in which the files of a local table may be written and deleted.

    Args:
        given: the directory that the caller passed, with links resolved.
        below: the table's directory relative to `given`; no part of this path may be a link.
    """

    given: str
    below: str = ""

    @property
    def root(self) -> str:
        """The table's directory."""
        return _joined(self.given, self.below)

    @property
    def name(self) -> str:
        """The name of the table's directory."""
        return self.root.rpartition("/")[2]

    @property
    def parent(self) -> Home:
        """The parent of the table's directory."""
        if not self.below:
            return Home(os.path.dirname(self.given))  # noqa: PTH120  # a string
        return Home(self.given, self.below.rpartition("/")[0])

    def check(self, paths: Sequence[str]) -> None:
        """Raise if a path leaves the table through a link.

        Vacuum, for example, deletes files by path, and a path does not show whether it contains a
        link.

        Args:
            paths: decoded paths relative to the root; absolute paths are not checked.

        Raises:
            UnsafePathError: a path leaves the table through a link.

        Cost: a few system calls for each directory.
        """
        if absolute := set(absolute_numbers(paths)):
            paths = [path for number, path in enumerate(paths) if number not in absolute]
        if not paths:
            return
        real = self._real()
        for directory in {path.rpartition("/")[0] for path in paths}:
            if directory or self.below:
                self._real_below(real, directory)

    @contextlib.contextmanager
    def open(self, directory: str, *, makes: bool = False, syncs: bool) -> Iterator[atomic.Folder]:
        """Open a directory within a `with` block.

        Args:
            directory: an absolute path. The caller is responsible for paths outside of the root.
            makes: whether to create a missing directory.
            syncs: whether the names of created directories are synced to the disk.

        Raises:
            UnsafePathError: the path leaves the table through a link.
            FileNotFoundError: the directory does not exist.
        """
        home, inner = self, self._inner(directory)
        if inner is None:
            home, inner = Home(directory), ""
        if os.open not in os.supports_dir_fd:
            home.check([f"{inner}/*" if inner else "*"])
            if makes:
                atomic.make_directories(directory, syncs=syncs)
            yield atomic.Folder(directory)
            return
        descriptor = home.descend(inner, makes=makes, syncs=syncs)
        try:
            yield atomic.Folder(directory, descriptor)
        finally:
            os.close(descriptor)

    def descend(self, inner: str, *, makes: bool, syncs: bool) -> int:
        """Return a new descriptor of a directory below the root; see `open`."""
        given = self._open_given(makes=makes, syncs=syncs)
        try:
            home = _walk(given, self.below, makes=makes, syncs=syncs)
        except _LinkFoundError as found:
            raise self._refusal(self.below) from found
        finally:
            os.close(given)
        try:
            return _walk(home, inner, makes=makes, syncs=syncs)
        except _LinkFoundError:
            # The link may lead to a directory in the table. If so, open this directory by its path
            # without links.
            real = self._real()
            way = os.path.relpath(self._real_below(real, inner), real)
            try:
                return _walk(home, way, makes=makes, syncs=syncs)
            except _LinkFoundError as found:
                raise self._refusal(inner) from found
        finally:
            os.close(home)

    def _open_given(self, *, makes: bool, syncs: bool) -> int:
        try:
            return os.open(self.given, _THROUGH)
        except FileNotFoundError:
            if not makes:
                raise
        atomic.make_directories(self.given, syncs=syncs)
        return os.open(self.given, _THROUGH)

    def _inner(self, directory: str) -> str | None:
        """Return a directory's path relative to the root; None if it is outside of the root."""
        root = self.root
        if directory == root:
            return ""
        start = root.rstrip("/") + "/"
        return directory.removeprefix(start) if directory.startswith(start) else None

    def _real(self) -> str:
        return _joined(real_path(self.given), self.below)

    def _real_below(self, real: str, inner: str) -> str:
        found = real_path(_joined(self.root, inner))
        if found != real and not found.startswith(real.rstrip(os.sep) + os.sep):
            raise self._refusal(inner)
        return found

    def _refusal(self, inner: str) -> UnsafePathError:
        return UnsafePathError(
            f"files in {inner or self.root!r} are refused: a link leads from there out of the "
            f"table at {self.root!r}, and nothing is written or deleted behind such a link; put a "
            "directory in its place, or open the table by the link's target"
        )


class _LinkFoundError(Exception):
    """An element of a path is a link, or is `..`."""


def real_path(path: str) -> str:
    """Resolve all links in a path.

    `os.path.realpath` of Python 3.11 and 3.12 fails if a link is replaced during the call.
    """
    for _ in range(_LOOKS):
        try:
            return os.path.realpath(path)
        except OSError as error:
            if error.errno not in _WAS_REPLACED:
                raise
    return os.path.realpath(path)


class RealPaths:
    """Resolves the links in paths of files, and those of each directory only once."""

    def __init__(self) -> None:
        self._directories: dict[str, str] = {}

    def __getitem__(self, path: str) -> str:
        """Return a path without links."""
        directory, name = os.path.split(path)
        if name in {"", ".", ".."} or os.path.islink(path):  # noqa: PTH114  # Path is slower
            return real_path(path)
        if directory not in self._directories:
            self._directories[directory] = real_path(directory)
        return _joined(self._directories[directory], name)


def _joined(directory: str, inner: str) -> str:
    return f"{directory.rstrip('/')}/{inner}" if inner else directory


def _walk(start: int, way: str, *, makes: bool, syncs: bool) -> int:
    """Return a new descriptor of the directory at a path without links.

    Raises:
        _LinkFoundError: the path contains a link.
    """
    parts = [part for part in way.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise _LinkFoundError(way)
    here = os.dup(start)
    try:
        for part in parts:
            there = _step(here, part, makes=makes, syncs=syncs)
            os.close(here)
            here = there
    except BaseException:
        os.close(here)
        raise
    return here


def _step(here: int, part: str, *, makes: bool, syncs: bool) -> int:
    try:
        return os.open(part, _NO_LINK, dir_fd=here)
    except FileNotFoundError:
        if not makes:
            raise
    except OSError as error:
        if error.errno in _NO_DIRECTORY and _is_link(part, here):
            raise _LinkFoundError(part) from None
        raise
    with contextlib.suppress(FileExistsError):  # another writer may have created it
        os.mkdir(part, dir_fd=here)
    if syncs:
        atomic.Folder("", here).sync()
    return _step(here, part, makes=False, syncs=False)


def _is_link(part: str, here: int) -> bool:
    return stat.S_ISLNK(os.stat(part, dir_fd=here, follow_symlinks=False).st_mode)
