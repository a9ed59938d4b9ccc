"""Commit times, `commitInfo`, and the version at a timestamp.

A commit's time is its in-commit timestamp if the table has them, otherwise the modification time of
its file, adjusted so that times increase. Time travel and the history use the same times.

Protocol: In-Commit Timestamps, Commit Provenance Information
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import iter_objects
from deltalog.errors import (
    DeltaError,
    MalformedLogError,
    ObjectNotFoundError,
    VersionNotFoundError,
)
from deltalog.log.checksum import parse_checksum
from deltalog.log.reader import advising_on_damage, read_in_batches
from deltalog.schema.check import readable_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog.log.context import LogTail
    from deltalog.log.names import LogFile
    from deltalog.log.segment import LogListing, LogSegment
    from deltalog.protocol.features.in_commit_timestamps import InCommitTimestamps
    from deltalog.storage.store import Store

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def file_times_ms(commits: Iterable[LogFile]) -> dict[int, int]:
    """Return version → commit time, from the modification times of files.

    A time that is not greater than the previous one is increased (requirement D-50).

    Args:
        commits: files of commits, in ascending order of versions.
    """
    times: dict[int, int] = {}
    last_ms = None
    for commit in commits:
        time_ms = commit.info.modified_ms
        if last_ms is not None and time_ms <= last_ms:
            time_ms = last_ms + 1
        times[commit.version] = last_ms = time_ms
    return times


def read_history(
    store: Store,
    listing: LogListing,
    *,
    version: int,
    limit: int | None = None,
    in_commit_timestamps: InCommitTimestamps | None = None,
    log_tail: LogTail | None = None,
) -> list[dict[str, Any]]:
    """Return the history of the table up to `version`, newest first.

    Args:
        store: the table's store.
        listing: a listing of the log. Commits that were cleaned up are not returned.
        version: the newest version to return.
        limit: maximum number of commits.
        in_commit_timestamps: from which version commits have in-commit timestamps; None without
            them.
        log_tail: the newest commits of a catalog-managed table.

    Returns:
        A dictionary for each commit: `version`, `timestamp` (the time that time travel uses, in
        milliseconds since 1970, UTC), and the members of `commitInfo`, if there is one.

    Cost: one request for each commit.
    """
    commits = [file for at, file in listing.commits.items() if at <= version]
    times = file_times_ms(commits)
    wanted = commits[::-1] if limit is None else commits[::-1][:limit]
    history: list[dict[str, Any]] = []
    timeless: set[int] = set()
    for batch in read_in_batches(store, wanted):
        for file, data in batch:
            with advising_on_damage(store, [file], log_tail):
                info = commit_info_of(data, file.version)
                own = own_time_ms(info, file.version, in_commit_timestamps)
            time_ms = times[file.version] if own is None else own
            head = {"version": file.version, "timestamp": time_ms}
            # Add `head` twice. Its keys must be first in the dictionary, and must override members
            # of `commitInfo` with the same names, such as `timestamp`.
            history.append({**head, **info, **head})
            if not data and in_commit_timestamps is not None:
                timeless.add(file.version)
    for before, after in pairwise(reversed(history)):
        if after["version"] in timeless:  # use the same time as `find_version_at`
            after["timestamp"] = before["timestamp"]
    return history


def commit_info_of(data: bytes, version: int) -> Mapping[str, Any]:
    """Return the `commitInfo` of a commit; empty if it is missing or not an object.

    Raises:
        MalformedLogError: the commit is not NDJSON.
    """
    for values in iter_objects(data, f"version {version}"):
        info = values.get("commitInfo")
        if isinstance(info, dict):
            return info
    return {}


def own_time_ms(
    info: Mapping[str, Any], version: int, in_commit_timestamps: InCommitTimestamps | None
) -> int | None:
    """Return the in-commit timestamp in a `commitInfo`, or None."""
    if in_commit_timestamps is None or not in_commit_timestamps.covers(version):
        return None
    own = info.get("inCommitTimestamp")
    return own if isinstance(own, int) else None


def read_commit_time_ms(
    store: Store, segment: LogSegment, in_commit_timestamps: InCommitTimestamps | None
) -> int:
    """Return the time of the segment's last commit.

    Cost: one request with in-commit timestamps, none without.
    """
    version, commit = segment.version, segment.target_commit
    if in_commit_timestamps is not None and in_commit_timestamps.covers(version):
        own = None
        if commit is not None:
            info = commit_info_of(store.read(commit.path), version)
            own = own_time_ms(info, version, in_commit_timestamps)
        if own is None and segment.checksum is not None:
            own = _time_in_checksum(store, segment.checksum.path)
        if own is not None:
            return own
    if commit is not None:
        return commit.modified_ms
    # The commit was cleaned up. The modification time of the version's checkpoint is an estimate of
    # its time.
    return segment.checkpoint.files[0].modified_ms if segment.checkpoint is not None else 0


def _time_in_checksum(store: Store, path: str) -> int | None:
    try:
        checksum = parse_checksum(store.read(path))
    except ObjectNotFoundError:
        return None
    return None if checksum is None else checksum.in_commit_timestamp_ms


def find_version_at(
    store: Store,
    listing: LogListing,
    timestamp_ms: int,
    *,
    in_commit_timestamps: InCommitTimestamps | None,
    now_ms: int,
) -> int:
    """Return the last version that was committed at or before a timestamp.

    Args:
        store: the table's store.
        listing: a listing of the whole log.
        timestamp_ms: milliseconds since 1970, UTC.
        in_commit_timestamps: from which version commits have in-commit timestamps, according to
            the latest version.
        now_ms: the current time. For a timestamp between the last commit and now, the last version
            is returned.

    Raises:
        VersionNotFoundError: the timestamp is before the first readable version; or it is in the
            future and after the last commit.

    Protocol: In-Commit Timestamps (recommendations for time travel)
    Cost: with in-commit timestamps, one request for each step of a binary search; otherwise none.
    """
    commits = _readable_commits(listing)
    times = file_times_ms(commits)
    own = in_commit_timestamps
    later = [commit for commit in commits if own is not None and own.covers(commit.version)]
    earlier = commits[: len(commits) - len(later)]
    since_ms = None if own is None else own.timestamp_ms
    if earlier and (not later or (since_ms is not None and timestamp_ms < since_ms)):
        found = bisect_right(earlier, timestamp_ms, key=lambda commit: times[commit.version])
        if found == 0:
            first = earlier[0].version
            raise _no_version(listing, timestamp_ms, _BEFORE_ALL, first, times[first])
        last, last_ms = earlier[-1].version, times[earlier[-1].version]
        if found < len(earlier) or later or timestamp_ms == last_ms or timestamp_ms <= now_ms:
            return earlier[found - 1].version
        raise _no_version(listing, timestamp_ms, _AFTER_ALL, last, last_ms)
    if not later:
        raise VersionNotFoundError(
            f"cannot read {listing.table} as of {_shown(timestamp_ms)}: the log no longer "
            "contains a commit that can be loaded"
        )
    return _search_own_times(store, listing, later, timestamp_ms, own, now_ms)


def _search_own_times(
    store: Store,
    listing: LogListing,
    commits: Sequence[LogFile],
    timestamp_ms: int,
    own: InCommitTimestamps | None,
    now_ms: int,
) -> int:
    known: dict[int, int] = {}

    def time_ms(commit: LogFile) -> int:
        if commit.version not in known:
            data = store.read(commit.info.path)
            info = commit_info_of(data, commit.version)
            if not data:  # an empty commit has no in-commit timestamp
                earlier = [file for file in commits if file.version < commit.version]
                before = next((file for file in earlier[::-1] if file.info.size_bytes), None)
                known[commit.version] = time_ms(before) if before else commit.info.modified_ms
                return known[commit.version]
            found = own_time_ms(info, commit.version, own)
            if found is None:
                raise MalformedLogError(
                    f"version {commit.version} of {listing.table}: expected an in-commit timestamp "
                    "in commitInfo, found none"
                )
            known[commit.version] = found
        return known[commit.version]

    last = commits[-1]
    if timestamp_ms >= time_ms(last):
        if timestamp_ms > max(time_ms(last), now_ms):
            raise _no_version(listing, timestamp_ms, _AFTER_ALL, last.version, time_ms(last))
        return last.version
    found = bisect_right(commits, timestamp_ms, key=time_ms)
    if found == 0:
        first = commits[0]
        raise _no_version(listing, timestamp_ms, _BEFORE_ALL, first.version, time_ms(first))
    return commits[found - 1].version


def _readable_commits(listing: LogListing) -> list[LogFile]:
    """Return the commits whose versions can still be loaded, ascending."""
    commits = list(listing.commits.values())
    start = len(commits)
    while start > 1 and commits[start - 2].version == commits[start - 1].version - 1:
        start -= 1
    run = commits[max(start - 1, 0) :]
    if not run or run[0].version == 0:
        return run
    # Without commit 0, only versions from the first checkpoint on can be loaded.
    starts = [c.version for c in listing.checkpoints if c.version >= run[0].version - 1]
    return [commit for commit in run if starts and commit.version >= starts[0]]


_BEFORE_ALL: Final = "the earliest version that can be read is"
_AFTER_ALL: Final = "that time is in the future; the latest version is"


def _no_version(
    listing: LogListing, timestamp_ms: int, why: str, version: int, time_ms: int
) -> VersionNotFoundError:
    return VersionNotFoundError(
        f"cannot read {listing.table} as of {_shown(timestamp_ms)}: {why} {version}, committed at "
        f"{_shown(time_ms)}"
    )


@contextmanager
def naming_the_use(use: str) -> Iterator[None]:
    """Name the use of an older version, such as `restore`, in errors of versions in the block."""
    try:
        yield
    except DeltaError as error:
        message: str = error.args[0]
        if not _OF_VERSIONS.match(message):
            raise
        changed = f"cannot {use}{message.removeprefix(_READ)}"
        raise error.with_message(changed) from error.__cause__


_READ: Final = "cannot read"
_OF_VERSIONS: Final = re.compile(rf"{_READ} (?:version -?\d+ of |.* as of )", re.DOTALL)


def _shown(time_ms: int) -> str:
    return readable_moment(time_ms, timespec="milliseconds").replace(" ", "T")
