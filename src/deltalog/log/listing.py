"""Listing `_delta_log`: from the hint, from the start, or a few commits by name.

Owns how the log is listed and from where. `segment` chooses among the files.

Protocol: Last Checkpoint File, Checkpoints
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise, takewhile
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import LogGapError, ObjectNotFoundError
from deltalog.log.hint import read_hint
from deltalog.log.names import (
    BEGINNINGS,
    LogFile,
    LogFileKind,
    commit_path,
    first_name_of,
    parse_log_name,
)
from deltalog.log.segment import LogListing, sort_listing
from deltalog.paths import LOG_DIRECTORY
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import PeekingStore, is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deltalog.catalog import LogTail
    from deltalog.log.hint import LastCheckpointHint
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store

# A log with more holes than this is damaged, not seen in the middle of a write.
_MAX_MISSING: Final = 100
_NAMES_AT_ONCE: Final = (4, 10)
# More names take the service and the client longer than another round.
_SHORT: Final = 100


def has_table(store: Store) -> bool:
    """Whether a log begins here: a commit or a checkpoint, readable or not.

    Cost: one listing, which ends at the first such file.
    """
    found = map(parse_log_name, store.list_from(LOG_DIRECTORY, ""))
    return any(file is not None and file.kind in BEGINNINGS for file in found)


def list_log(store: Store, *, from_version: int = 0, log_tail: LogTail | None = None) -> LogListing:
    """List the log from a version on.

    Args:
        store: of the table.
        from_version: list files of this version and later.
        log_tail: a catalog's newest commits; commits after them are ignored.

    Cost: one listing.
    """
    found = store.list_from(LOG_DIRECTORY, first_name_of(from_version))
    return _listing_of(found, store, from_version, log_tail)


def list_for_version(
    store: Store, version: int | None = None, *, log_tail: LogTail | None = None
) -> LogListing:
    """List what a version needs: from the checkpoint of the hint on, or a short log whole.

    Args:
        store: of the table.
        version: the version to load; None is the latest.
        log_tail: a catalog's newest commits; commits after them are ignored.

    Returns:
        A listing that starts at an existing checkpoint, or at version 0.

    Cost: the hint and one listing; two if the checkpoint of the hint does not exist. Of a store
    that is reached by requests the first names are asked for together with the hint: if there are
    no others, this is one round.
    """
    hint, short = _hint_and_short_listing(store)
    if short is not None:
        return _listing_of(short, store, 0, log_tail)
    if hint is not None and hint.version > 0 and (version is None or hint.version <= version):
        listing = list_log(store, from_version=hint.version, log_tail=log_tail)
        if any(version is None or found.version <= version for found in listing.checkpoints):
            return listing
        # The hint is out of date or wrong: its checkpoint was cleaned up, or is incomplete.
    return list_log(store, log_tail=log_tail)


def _hint_and_short_listing(
    store: Store,
) -> tuple[LastCheckpointHint | None, list[FileInfo] | None]:
    if is_local(store) or not isinstance(store, PeekingStore):
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
    """The commits from `version` on, for a caller that expects few of them.

    Few commits are requested by name: not every store can list from the middle of a directory, and
    a long log would be listed whole for two or three commits.

    Args:
        store: of the table.
        version: of the first commit.
        log_tail: a catalog's newest commits; commits after them are ignored.
        expected: how many names are requested first. Most readers are at the latest version or one
            behind, and ask for the first one as their own.

    Returns:
        If they are few, only the commits up to the first missing one. If they are many, or there is
        a catalog, everything that a listing shows.

    Cost: a request for each commit, for one more, and for some that do not exist yet: several are
    requested at once, because writers would overtake a reader that asks for one after the other. On
    a local disk, one after the other up to the first that is missing. If they are many, also a
    listing.
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
    """The commits from `version` on, oldest first, without a gap.

    Args:
        store: of the table.
        version: of a commit that exists, even if a listing does not show it yet.
        log_tail: a catalog's newest commits; commits after them are ignored.

    Raises:
        ObjectNotFoundError: `version` does not exist.

    Cost: as `list_newer`.
    """
    commits = dict(list_newer(store, version, log_tail=log_tail).commits)
    if version not in commits:
        commits[version] = _commit_by_name(store, version)
    run: list[LogFile] = []
    while version + len(run) in commits:
        run.append(commits[version + len(run)])
    return run


def _find_commits(store: Store, versions: Sequence[int]) -> list[LogFile | None]:
    """The commits of some versions, with None for those that do not exist, or the first of them."""
    if not is_local(store):
        return map_in_pool(partial(_find_commit, store), versions)
    found: list[LogFile | None] = []
    for version in versions:  # a look at a local disk takes less time than a change of threads
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
    """Refuse a log that ends before its catalog says: an older version would pass for the latest.

    Raises:
        LogGapError: the last version has neither a commit nor a checkpoint.
    """
    last = None if log_tail is None else log_tail.last_version
    found = listing.latest_version
    if last is None or last < listing.first or (found is not None and found >= last):
        return
    raise LogGapError(
        f"cannot read the log of {listing.table}: its catalog says that version {last} is the "
        f"latest, found {'nothing' if found is None else f'versions up to {found}'} from version "
        f"{listing.first} on; the catalog must list commits that are not published"
    )


def _with_missed_commits(store: Store, listing: LogListing) -> LogListing:
    """The listing with existing commits that it does not show.

    A listing that runs while others write may show a later file but not an earlier one. So each
    commit that seems to be missing after the newest checkpoint is requested by name.
    """
    start = listing.checkpoints[-1].version if listing.checkpoints else listing.first
    seen = [version for version in listing.commits if version >= start]
    if not seen or len(seen) == seen[-1] - seen[0] + 1:
        return listing
    # Lazily: a hostile log may hold commit 0 and commit 3,000,000,000, and nothing in between.
    gaps = chain.from_iterable(range(one + 1, other) for one, other in pairwise(seen))
    missing = list(islice(gaps, _MAX_MISSING))
    found: dict[int, LogFile] = {}
    for version in missing:
        try:
            found[version] = _commit_by_name(store, version)
        except ObjectNotFoundError:
            # A real gap. Whether the version needs this commit is for `build_segment` to say.
            return listing
    return replace(listing, commits=dict(sorted({**listing.commits, **found}.items())))
