"""List `_delta_log`: from the checkpoint in `_last_checkpoint`, or from the start.

This module also requests a few commits by name instead of listing. `segment` chooses the files that
a version needs.

Protocol: Last Checkpoint File, Checkpoints
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise, takewhile
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from deltalog._util.json import Lexeme, dumps, parse_lexemes
from deltalog._util.paths import LOG_DIRECTORY, FileInfo
from deltalog.errors import DeltaError, LogGapError, ObjectNotFoundError
from deltalog.log.names import (
    BEGINNINGS,
    LAST_CHECKPOINT_PATH,
    LogFile,
    LogFileKind,
    commit_path,
    first_name_of,
    parse_log_name,
)
from deltalog.log.segment import LogListing, sort_listing
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import Store, is_local, is_peeking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from deltalog.log.context import LogTail

# The maximum number of commits missing from a listing that are looked up by name. They may have
# been written during the listing. If more commits are missing, the log is damaged.
_MAX_MISSING: Final = 100
_NAMES_AT_ONCE: Final = (4, 10)
# If the log has at most this number of files, it is listed while `_last_checkpoint` is read.
_SHORT: Final = 100


_MOST_KNOWN: Final = 10_000
_known: Final[set[str]] = set()


def remember_table(root: str) -> None:
    """Record that this process has seen a table, so that the loss of its log can be noticed."""
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known.add(root)


def was_table(root: str) -> bool:
    """Whether this process has seen a table at a location. False if it saw very many others."""
    return root in _known


def has_table(store: Store) -> bool:
    """Return whether the log contains a commit or a checkpoint, even if it is unreadable.

    Cost: one listing, which stops at the first such file.
    """
    found = map(parse_log_name, store.list_from(LOG_DIRECTORY, ""))
    return any(file is not None and file.kind in BEGINNINGS for file in found)


def list_log(store: Store, *, from_version: int = 0, log_tail: LogTail | None = None) -> LogListing:
    """List the files of the log from a version on.

    Args:
        store: the table's store.
        from_version: list the files of this version and of later versions.
        log_tail: a catalog's newest commits; commits after them are ignored.

    Cost: one listing.
    """
    found = store.list_from(LOG_DIRECTORY, first_name_of(from_version))
    return _listing_of(found, store, from_version, log_tail)


def list_for_version(
    store: Store, version: int | None = None, *, log_tail: LogTail | None = None
) -> LogListing:
    """List the files that a version needs, from the checkpoint in `_last_checkpoint` if possible.

    Args:
        store: the table's store.
        version: the version to load; None means the latest.
        log_tail: a catalog's newest commits; commits after them are ignored.

    Returns:
        A listing that starts at an existing checkpoint, or at version 0.

    Cost: reads `_last_checkpoint`, and lists once; twice if that checkpoint does not exist. On a
    remote store, the start of the log is listed at the same time as `_last_checkpoint` is read, so
    a short log needs one round trip.
    """
    hint, short = _hint_and_short_listing(store)
    if short is not None:
        return _listing_of(short, store, 0, log_tail)
    if hint is not None and hint.version > 0 and (version is None or hint.version <= version):
        listing = list_log(store, from_version=hint.version, log_tail=log_tail)
        if any(version is None or found.version <= version for found in listing.checkpoints):
            return listing
        # The checkpoint in `_last_checkpoint` was cleaned up, or is incomplete.
    return list_log(store, log_tail=log_tail)


def _hint_and_short_listing(
    store: Store,
) -> tuple[LastCheckpointHint | None, list[FileInfo] | None]:
    if is_local(store) or not is_peeking(store):
        return read_hint(store), None
    first: list[Callable[[], Any]] = [
        partial(read_hint, store),
        partial(store.list_short, LOG_DIRECTORY, _SHORT),
    ]
    hint, short = map_in_pool(lambda ask: ask(), first)
    return hint, short


def list_newer(
    store: Store, version: int, *, log_tail: LogTail | None = None, expected: int = 2
) -> LogListing:
    """Return the commits from `version` on, for a caller that expects few new commits.

    Commits are first requested by name, because some stores cannot start a listing in the middle of
    a directory and would list the whole log.

    Args:
        store: the table's store.
        version: the version of the first commit.
        log_tail: a catalog's newest commits; commits after them are ignored.
        expected: the number of commits to request first.

    Returns:
        If there are few new commits, the commits up to the first missing version. If there are many
        commits, or there is a catalog, all files that a listing shows.

    Cost: one request for each new commit, and for a few versions that do not exist yet, several at
    a time. On a local disk, the requests stop at the first missing version. If there are many new
    commits, also a listing.
    """
    if log_tail is not None:
        return list_log(store, from_version=version, log_tail=log_tail)
    commits: dict[int, LogFile] = {}
    for count in (expected, *_NAMES_AT_ONCE):
        first = version + len(commits)
        found = _find_commits(store, range(first, first + count))
        commits |= {file.version: file for file in takewhile(bool, found) if file is not None}
        if None in found:
            return LogListing(table=store.root, first=version, commits=commits)
    return list_log(store, from_version=version, log_tail=log_tail)


def list_commits(store: Store, version: int, *, log_tail: LogTail | None = None) -> list[LogFile]:
    """Return the commits from `version` on, oldest first, up to the first gap.

    Args:
        store: the table's store.
        version: the version of a commit that exists, even if a listing does not show it yet.
        log_tail: a catalog's newest commits; commits after them are ignored.

    Raises:
        ObjectNotFoundError: `version` does not exist.

    Cost: see `list_newer`.
    """
    commits = dict(list_newer(store, version, log_tail=log_tail).commits)
    if version not in commits:
        commits[version] = _commit_by_name(store, version)
    run: list[LogFile] = []
    while version + len(run) in commits:
        run.append(commits[version + len(run)])
    return run


def _find_commits(store: Store, versions: Sequence[int]) -> list[LogFile | None]:
    """Return the commits of some versions; None for missing ones.

    May stop at the first missing version.
    """
    if not is_local(store):
        return map_in_pool(partial(_find_commit, store), versions)
    found: list[LogFile | None] = []
    for version in versions:  # on a local disk, threads would be slower
        found.append(_find_commit(store, version))
        if found[-1] is None:
            break
    return found


def _find_commit(store: Store, version: int) -> LogFile | None:
    try:
        return _commit_by_name(store, version)
    except ObjectNotFoundError:
        return None


def _commit_by_name(store: Store, version: int) -> LogFile:
    return LogFile(LogFileKind.COMMIT, version, store.stat(commit_path(version)))


def _listing_of(
    found: Iterable[FileInfo], store: Store, first: int, log_tail: LogTail | None
) -> LogListing:
    ratified = () if log_tail is None else log_tail.commits
    listing = sort_listing(
        found,
        table=store.root,
        first=first,
        ratified=[
            LogFile(LogFileKind.COMMIT, commit.version, commit.file)
            for commit in ratified
            if commit.version >= first
        ],
        last=None if log_tail is None else log_tail.last_version,
    )
    listing = _with_missed_commits(store, listing)
    _check_reaches(listing, log_tail)
    return listing


def _check_reaches(listing: LogListing, log_tail: LogTail | None) -> None:
    """Raise if the log ends before the catalog's latest version.

    Otherwise an old version would appear to be the latest.

    Raises:
        LogGapError: the catalog's latest version has neither a commit nor a checkpoint.
    """
    last = None if log_tail is None else log_tail.last_version
    found = listing.latest_version
    if last is None or last < listing.first or (found is not None and found >= last):
        return
    raise LogGapError(
        f"cannot read the log of {listing.table}: expected version {last}, the latest in its "
        f"catalog, found {'nothing' if found is None else f'versions up to {found}'} from version "
        f"{listing.first} on; the catalog must list commits that are not published"
    )


def _with_missed_commits(store: Store, listing: LogListing) -> LogListing:
    """Return the listing with existing commits that it does not show.

    During concurrent writes, a listing may show a commit but not an earlier commit. So commits that
    appear to be missing after the newest checkpoint are requested by name.
    """
    start = listing.checkpoints[-1].version if listing.checkpoints else listing.first
    seen = [version for version in listing.commits if version >= start]
    if not seen or len(seen) == seen[-1] - seen[0] + 1:
        return listing
    # Iterate lazily, because a malicious log may contain only commit 0 and commit 3,000,000,000.
    gaps = chain.from_iterable(range(one + 1, other) for one, other in pairwise(seen))
    missing = list(islice(gaps, _MAX_MISSING))
    found: dict[int, LogFile] = {}
    for version in missing:
        try:
            found[version] = _commit_by_name(store, version)
        except ObjectNotFoundError:
            # The commit does not exist. `build_segment` raises if the version needs it.
            return listing
    return replace(listing, commits=dict(sorted({**listing.commits, **found}.items())))


# --- `_last_checkpoint`: a hint from which version to list the log


logger: logging.Logger = logging.getLogger(__name__)

_CHECKSUM_KEY: Final = "checksum"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheckpointHint:
    """The newest checkpoint according to `_last_checkpoint`, which may be out of date.

    Args:
        version: version of the checkpoint.
        size_actions: number of actions in the checkpoint.
        parts: number of files of a multi-part checkpoint.
        size_bytes: total size of the checkpoint's files.
        num_add_files: number of `add` actions in the checkpoint.
    """

    version: int
    size_actions: int | None = None
    parts: int | None = None
    size_bytes: int | None = None
    num_add_files: int | None = None


def read_hint(store: Store) -> LastCheckpointHint | None:
    """Read `_last_checkpoint`; None if it is missing or invalid.

    Cost: one request.
    """
    try:
        data = store.read(LAST_CHECKPOINT_PATH)
    except ObjectNotFoundError:
        return None
    except DeltaError as error:
        logger.info("ignoring _last_checkpoint of %s: %s", store.root, error)
        return None
    hint = parse_hint(data)
    if hint is None:
        logger.info("ignoring _last_checkpoint of %s: it is damaged", store.root)
    return hint


def parse_hint(data: bytes) -> LastCheckpointHint | None:
    """Parse a hint; None if it is truncated, or has duplicate keys or a wrong checksum."""
    try:
        tree = parse_lexemes(data.decode("utf-8"))
    except (DeltaError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(tree, dict):
        return None
    version = _integer(tree.get("version"))
    if version is None or version < 0:
        return None
    stated = tree.get(_CHECKSUM_KEY)
    if isinstance(stated, str) and stated.lower() not in _digests(tree):
        return None
    return LastCheckpointHint(
        version=version,
        size_actions=_integer(tree.get("size")),
        parts=_integer(tree.get("parts")),
        size_bytes=_integer(tree.get("sizeInBytes")),
        num_add_files=_integer(tree.get("numOfAddFiles")),
    )


def encode_hint(hint: LastCheckpointHint, *, v2_file: FileInfo | None = None) -> bytes:
    """Return the content of `_last_checkpoint`, including its checksum.

    Args:
        hint: the values to write; values that are None are omitted.
        v2_file: the top-level file of a V2 checkpoint.

    Protocol: Last Checkpoint File
    """
    members: dict[str, Any] = {
        "version": hint.version,
        "size": hint.size_actions,
        "parts": hint.parts,
        "sizeInBytes": hint.size_bytes,
        "numOfAddFiles": hint.num_add_files,
    }
    if v2_file is not None:
        members["v2Checkpoint"] = {
            "path": v2_file.name,
            "sizeInBytes": v2_file.size_bytes,
            "modificationTime": v2_file.modified_ms,
        }
    present = {name: value for name, value in members.items() if value is not None}
    return dumps({**present, _CHECKSUM_KEY: checksum_of(dumps(present).decode())})


def checksum_of(text: str) -> str:
    """Return the checksum of the JSON object `text`, with pairs in the order of Spark.

    Raises:
        MalformedLogError: `text` is not JSON, or contains a key twice.

    Protocol: JSON Checksum
    """
    return _md5(sorted(_pairs(parse_lexemes(text))))


def canonical_form(text: str) -> str:
    """Return the string whose MD5 is the checksum: `path=value` pairs in the protocol's order."""
    return ",".join(_by_path(_pairs(parse_lexemes(text))))


def _digests(tree: Mapping[str, Any]) -> set[str]:
    # To compute the checksum, the protocol sorts pairs by path, but Spark sorts the strings
    # "path=value". The order differs if an array has more than ten members. Files exist with either
    # order (requirement D-03).
    pairs = list(_pairs(tree))
    return {_md5(sorted(pairs)), _md5(_by_path(pairs))}


def _md5(pairs: list[str]) -> str:
    text = ",".join(pairs).encode("utf-8", "surrogatepass")
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


def _by_path(pairs: Iterable[str]) -> list[str]:
    return sorted(pairs, key=lambda pair: pair.partition("=")[0].encode())


def _pairs(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        tree = {key: value for key, value in tree.items() if key != _CHECKSUM_KEY}
    yield from _walk(tree, "")


def _walk(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, dict):
        children = [(_quoted(key), value) for key, value in node.items()]
    elif isinstance(node, list):
        children = [(str(index), value) for index, value in enumerate(node)]
    else:
        yield f"{path}={_literal(node)}"
        return
    for name, value in children:
        yield from _walk(value, f"{path}+{name}" if path else name)


def _quoted(text: str) -> str:
    # Percent-encode `+` and `=` in names, because they separate the names of a path and end the
    # path.
    encoded = quote(text.encode("utf-8", "surrogatepass"), safe="")
    return f'"{encoded}"'


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if type(value) is str else str(value)


def _integer(value: Any) -> int | None:
    """Return a JSON number that is written as an integer; None for any other value."""
    if not isinstance(value, Lexeme):
        return None
    try:
        return int(value)
    except ValueError:
        return None
