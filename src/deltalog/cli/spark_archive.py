"""Archives of deltalog and its requirements for the Python workers of a Spark cluster.

An archive holds copies of what is installed for the running Python, because workers must have the
driver's version of deltalog. It has no Python and no PySpark: a cluster has both. Nothing in it
depends on its location, so workers find its packages by `PYTHONPATH`.
"""

from __future__ import annotations

import re
import tarfile
from collections import defaultdict
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SELF: Final = "deltalog"
_PACKAGES: Final = ("deltalog", "pyspark_deltalog", "pyspark_deltalog_sharing")
"""The packages of deltalog's distribution. An editable installation does not list their files."""
_ON_THE_CLUSTER: Final = frozenset({"pyspark", "py4j"})
"""Not archived. But what they require is: Spark without pip brings no Python libraries."""
_LEFT_OUT: Final = re.compile(
    r"""
    (^|/)__pycache__/
    | ^[^/]+/tests/                                         # of the packages themselves
    | \.(a|c|cc|cpp|h|hpp|pxd|pxi|pyc|pyi|pyx)$             # for compilers and type checkers
    | ^pyarrow/(include|src)/
    | ^pyarrow/(_flight\.|flight\.py$|lib\w*_flight\.)      # RPC, which deltalog never uses
    | \.dist-info/(RECORD|INSTALLER|REQUESTED|direct_url\.json)$
    | ^[^/]+\.pth$                                          # has no effect on PYTHONPATH
    """,
    re.VERBOSE,
)
"""The files, relative to the directory of packages, that no task of deltalog can import or read."""
_LEVEL: Final = 1
"""gzip's default, 6, takes four times as long, for an archive that is a tenth smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedPackage:
    """A distribution in an archive. `size_bytes` is the size of its unpacked files."""

    package: str
    version: str
    size_bytes: int


def write_spark_archive(path: Path, extras: Iterable[str]) -> list[ArchivedPackage]:
    """Write an archive for `spark.archives`, and return what it contains.

    Args:
        path: of the archive, which ends with `.tar.gz` or `.tgz`. An existing file is replaced.
        extras: deltalog's extras that tasks need, such as `s3`.

    Raises:
        InvalidInputError: the path has another ending, or its directory does not exist; deltalog
            has no such extra; a requirement is not installed, or its files are not known.
    """
    if not path.name.endswith((".tar.gz", ".tgz")):
        raise InvalidInputError(
            f"cannot write the archive {str(path)!r}: Spark needs a name that ends with .tar.gz "
            "or .tgz"
        )
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"cannot write the archive {str(path)!r}: there is no directory {str(path.parent)!r}"
        )
    contents = [(found, list(_files_of(found))) for found in _required(set(extras))]
    partial = path.with_name(f".{path.name}.partial")
    try:
        with tarfile.open(partial, "w:gz", compresslevel=_LEVEL) as archive:
            for _, files in contents:
                for name, file in files:
                    archive.add(file, name, recursive=False, filter=_without_owner)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return [
        ArchivedPackage(
            package=found.name,
            version=found.version,
            size_bytes=sum(file.stat().st_size for _, file in files),
        )
        for found, files in contents
    ]


def _required(extras: set[str]) -> list[Distribution]:
    """Return the distributions that deltalog with these extras requires, and itself, by name."""
    known = set(_installed(_SELF, _SELF).metadata.get_all("Provides-Extra") or ())
    if unknown := extras - known:
        raise InvalidInputError(
            f"deltalog has no extra {min(unknown)!r}: expected one of {', '.join(sorted(known))}"
        )
    found: dict[str, Distribution] = {}
    done: defaultdict[str, set[str]] = defaultdict(set)
    pending = [(_SELF, {"", *extras}, _SELF)]
    while pending:
        name, wanted, needed_by = pending.pop()
        if wanted <= done[name]:
            continue
        found[name] = _installed(name, needed_by)
        requirements = [Requirement(text) for text in found[name].requires or ()]
        pending += [
            (canonicalize_name(one.name), {"", *one.extras}, name)
            for one in requirements
            for extra in wanted - done[name]
            if one.marker is None or one.marker.evaluate({"extra": extra})
        ]
        done[name] |= wanted
    return [found[name] for name in sorted(found.keys() - _ON_THE_CLUSTER)]


def _installed(name: str, needed_by: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise InvalidInputError(
            f"cannot archive {name}, which {needed_by} requires: it is not installed for this "
            "Python; install deltalog with the same extras, for example deltalog[s3]"
        ) from None


def _files_of(found: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the files that tasks may need, with their names in the archive."""
    if found.files is None:
        raise InvalidInputError(
            f"cannot archive {found.name}: its files are not known, because pip did not install "
            "it; install it in a virtual environment"
        )
    is_own = canonicalize_name(found.name) == _SELF
    listed = {file.as_posix(): Path(str(found.locate_file(file))) for file in found.files}
    if is_own:
        listed = {name: file for name, file in listed.items() if ".dist-info/" in name}
        listed |= _own_files()
    for name, file in sorted(listed.items()):
        is_outside = name.startswith(("../", "/"))  # scripts and data of the environment
        if not is_outside and not _LEFT_OUT.search(name):
            yield name, file


def _own_files() -> dict[str, Path]:
    found = {}
    for package in _PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:  # pragma: no cover -- deltalog is being imported
            continue
        root = Path(spec.origin).parent
        for file in root.rglob("*"):
            if file.is_file():
                found[f"{package}/{file.relative_to(root).as_posix()}"] = file
    return found


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out the name of the user, which a cluster need not know."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
