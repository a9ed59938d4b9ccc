"""Choose the files of the log that make up one version: a checkpoint and all commits after it.

A missing commit is an error, so that a version is never incomplete. This module does no I/O, and
does not use the contents of files.

Protocol: Action Reconciliation, Checkpoints, Log Compaction Files
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from deltalog import errors
from deltalog._util.readable import epoch_hint
from deltalog.log.names import BEGINNINGS, MAX_VERSION, LogFile, LogFileKind, parse_log_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog._util.paths import FileInfo


class CheckpointKind(IntEnum):
    """The layout of a checkpoint. For each version, the highest is used (requirement B-16)."""

    CLASSIC = 1
    MULTI_PART = 2
    V2 = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """A complete checkpoint: all its top-level files, in the order of parts.

    A file with a classic name may contain a V2 checkpoint; its name does not show this.
    """

    version: int
    kind: CheckpointKind
    files: tuple[FileInfo, ...]

    @property
    def name(self) -> str:
        """The name of the first file, which identifies the checkpoint."""
        return self.files[0].name

    @property
    def order(self) -> tuple[int, int, int, str]:
        """The sort key: by version, then by kind, number of parts and name, as in Spark."""
        return self.version, self.kind, len(self.files), self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The files that make up one version.

    Args:
        version: the table's version.
        checkpoint: the checkpoint to start from; None means all commits from version 0.
        commits: all commits after the checkpoint up to `version`, ascending.
        compactions: compactions that may replace several of `commits`, by first version.
        target_commit: the commit file of `version`; None if it was cleaned up.
        checksum: the version checksum of `version`, or None.
    """

    version: int
    checkpoint: CheckpointFiles | None
    commits: tuple[LogFile, ...]
    compactions: tuple[LogFile, ...] = ()
    target_commit: FileInfo | None = None
    checksum: FileInfo | None = None

    @property
    def first_version(self) -> int:
        """The version of the first commit that the segment needs."""
        return 0 if self.checkpoint is None else self.checkpoint.version + 1

    @property
    def used_compactions(self) -> list[LogFile]:
        """The compactions that are read instead of commits."""
        chosen = self.files_newest_first() if self.compactions else ()
        return [file for file in chosen if file.end_version]

    @property
    def has_shortcuts(self) -> bool:
        """Whether a checkpoint or a compaction is read instead of commits."""
        return self.checkpoint is not None or bool(self.used_compactions)

    def files_newest_first(self) -> list[LogFile]:
        """Return commits and compactions that cover `commits` exactly once, newest first."""
        by_end: dict[int, LogFile] = {}
        # Compactions are ordered by first version. So the first of those with the same last version
        # replaces the most commits.
        for compaction in self.compactions:
            by_end.setdefault(compaction.end_version, compaction)
        commits = {commit.version: commit for commit in self.commits}
        chosen: list[LogFile] = []
        version = self.version
        while version >= self.first_version:
            best = by_end.get(version, commits[version])
            chosen.append(best)
            version = best.version - 1
        return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class LogListing:
    """A listing of the log, sorted by kind.

    Args:
        table: the table's location, for error messages.
        first: the version at which the listing starts.
        commits: version → published commit, or ratified commit of a catalog.
        checkpoints: complete checkpoints, in the order of `CheckpointFiles.order`.
        compactions: compactions, ordered by first version, then the longest first.
        checksums: version → version checksum.
        begins: whether there is a commit or a checkpoint, even an incomplete checkpoint.
    """

    table: str
    first: int
    commits: Mapping[int, LogFile] = field(default_factory=dict)
    checkpoints: tuple[CheckpointFiles, ...] = ()
    compactions: tuple[LogFile, ...] = ()
    checksums: Mapping[int, FileInfo] = field(default_factory=dict)
    begins: bool = False

    @property
    def latest_version(self) -> int | None:
        """The highest version that has a commit or a checkpoint."""
        versions = [max(self.commits, default=-1)]
        versions += [checkpoint.version for checkpoint in self.checkpoints[-1:]]
        return max(versions) if max(versions) >= 0 else None


def _check_version(file: LogFile, table: str) -> None:
    if file.version > MAX_VERSION:
        raise errors.MalformedLogError(
            f"cannot read the log of {table}: expected versions up to {MAX_VERSION}, the largest "
            f"64-bit integer, found the file {file.info.name!r}; remove it"
        )


def sort_listing(
    files: Iterable[FileInfo],
    *,
    table: str,
    first: int = 0,
    ratified: Sequence[LogFile] = (),
    last: int | None = None,
) -> LogListing:
    """Sort the files of a listing by kind; unknown names and empty checkpoints are ignored.

    Args:
        files: the files, in any order.
        table: the table's location, for error messages.
        first: the version at which the listing starts.
        ratified: commits of a catalog; they replace published commits of the same versions.
        last: the catalog's latest version; later versions are ignored.

    Raises:
        MalformedLogError: a file names a version above 64 bits.
    """
    commits: dict[int, LogFile] = {file.version: file for file in ratified}
    checkpoints: list[CheckpointFiles] = []
    parts: defaultdict[tuple[int, int], dict[int, FileInfo]] = defaultdict(dict)
    compactions: list[LogFile] = []
    checksums: dict[int, FileInfo] = {}
    begins = False
    for file in map(parse_log_name, files):
        if file is None or file.version < first or (last is not None and file.version > last):
            continue
        _check_version(file, table)
        info = file.info
        begins = begins or file.kind in BEGINNINGS
        if file.kind is LogFileKind.COMMIT:
            # The protocol: "Readers must use that catalog-supplied commit and ignore any published
            # Delta file".
            commits.setdefault(file.version, file)
        elif file.kind is LogFileKind.CHECKSUM:
            checksums[file.version] = info
        elif info.size_bytes == 0:
            continue  # an interrupted write has left an empty file (requirement B-17)
        elif file.kind is LogFileKind.COMPACTION:
            compactions.append(file)
        elif file.kind is LogFileKind.CHECKPOINT_PART:
            parts[file.version, file.parts][file.part] = info
        else:
            is_v2 = file.kind is LogFileKind.CHECKPOINT_V2
            kind = CheckpointKind.V2 if is_v2 else CheckpointKind.CLASSIC
            checkpoints.append(CheckpointFiles(version=file.version, kind=kind, files=(info,)))
    for (version, count), found in parts.items():
        # The protocol: "Readers must only use a complete checkpoint, wherein all fragments are
        # present."
        if len(found) == count:
            in_order = tuple(found[part] for part in sorted(found))
            kind = CheckpointKind.MULTI_PART
            checkpoints.append(CheckpointFiles(version=version, kind=kind, files=in_order))
    return LogListing(
        table=table,
        first=first,
        commits=dict(sorted(commits.items())),
        checkpoints=tuple(sorted(checkpoints, key=lambda checkpoint: checkpoint.order)),
        compactions=tuple(sorted(compactions, key=lambda file: (file.version, -file.end_version))),
        checksums=checksums,
        begins=begins,
    )


def build_segment(
    listing: LogListing,
    version: int | None = None,
    *,
    unreadable: Mapping[str, str] | None = None,
) -> LogSegment:
    """Return the files that make up `version`, or the latest version.

    Args:
        listing: a listing of the log from its start, or from a checkpoint at or before `version`.
        version: the version; None means the latest.
        unreadable: name of a checkpoint or compaction that must not be used → reason.

    Raises:
        TableNotFoundError: the log is empty.
        VersionNotFoundError: `version` is after the latest version.
        LogGapError: a commit that the version needs is missing.
        CheckpointMissingError: the first commits no longer exist, and no complete checkpoint
            replaces them.
        CheckpointUnreadableError: the first commits no longer exist, and the checkpoints that
            replace them are unreadable.

    Protocol: Action Reconciliation
    """
    latest = listing.latest_version
    if latest is None:
        found = (
            "no commit and no complete checkpoint in its _delta_log"
            if listing.begins
            else "no log there; check the location, and whether the table was deleted"
        )
        missing = errors.TableNotFoundError(
            f"cannot open {listing.table}: expected a Delta table, found {found}"
        )
        missing.log_begins = listing.begins
        raise missing
    if version is None:
        version = latest
    if version < 0:
        raise errors.InvalidInputError(
            f"cannot read version {version} of {listing.table}: versions count from 0"
        )
    if version > latest:
        raise errors.VersionNotFoundError(
            f"cannot read version {version} of {listing.table}: the latest version is {latest}"
            f"{epoch_hint(version)}"
        )
    unreadable = unreadable or {}
    checkpoint = _checkpoint_for(listing, version, unreadable)
    commits = _commits_after(listing, checkpoint, version, unreadable)
    start = 0 if checkpoint is None else checkpoint.version + 1
    target = listing.commits.get(version)
    return LogSegment(
        version=version,
        checkpoint=checkpoint,
        commits=commits,
        compactions=tuple(
            file
            for file in listing.compactions
            if start <= file.version
            and file.end_version <= version
            and file.info.name not in unreadable
        ),
        target_commit=None if target is None else target.info,
        checksum=listing.checksums.get(version),
    )


def _checkpoint_for(
    listing: LogListing, version: int, unreadable: Mapping[str, str]
) -> CheckpointFiles | None:
    for checkpoint in reversed(listing.checkpoints):
        if checkpoint.version <= version and checkpoint.name not in unreadable:
            return checkpoint
    return None


def _commits_after(
    listing: LogListing,
    checkpoint: CheckpointFiles | None,
    version: int,
    unreadable: Mapping[str, str],
) -> tuple[LogFile, ...]:
    start = 0 if checkpoint is None else checkpoint.version + 1
    found = tuple(file for at, file in listing.commits.items() if start <= at <= version)
    if len(found) == version - start + 1:
        return found
    present = {file.version for file in found}
    missing = next(at for at in range(start, version + 1) if at not in present)
    what = f"cannot read version {version} of {listing.table}"
    if unreadable:
        reasons = "; ".join(unreadable.values())
        raise errors.CheckpointUnreadableError(
            f"{what}: commit {missing} is gone, and the checkpoint that replaces it is unusable "
            f"({reasons}){_FROM_BACKUP}"
        )
    if checkpoint is None and not any(at <= missing for at in listing.commits):
        first = min(listing.commits, default=None)
        begins = "there are no commits" if first is None else f"the commits begin at {first}"
        earliest = min((found.version for found in listing.checkpoints), default=None)
        left = (
            _FROM_BACKUP if earliest is None else f"; the earliest readable version is {earliest}"
        )
        raise errors.CheckpointMissingError(
            f"{what}: {begins}, and no complete checkpoint replaces earlier commits{left}"
        )
    since = "the start" if checkpoint is None else f"the checkpoint of version {checkpoint.version}"
    raise errors.LogGapError(
        f"{what}: expected every commit from {since} on, but commit {missing} is missing"
        f"{_FROM_BACKUP}{readable_versions(listing, missing)}"
    )


_FROM_BACKUP: Final = "; restore the lost files of _delta_log from a backup"


def readable_versions(listing: LogListing, broken: int) -> str:
    """Return a phrase for error messages: which versions are readable despite a damaged commit.

    Args:
        listing: a listing of the whole log.
        broken: the first version whose commit is missing or damaged.
    """
    runs: list[tuple[int, int]] = []
    for start in [-1, *(checkpoint.version for checkpoint in listing.checkpoints)]:
        if runs and start <= runs[-1][1]:
            continue  # these versions are already in the previous range
        last = start
        while last + 1 in listing.commits and last + 1 != broken:
            last += 1
        if runs and start <= runs[-1][1] + 1:
            runs[-1] = runs[-1][0], last
        elif last >= 0:
            runs.append((max(start, 0), last))
    shown = ", ".join(f"{first} to {last}" if first < last else f"{first}" for first, last in runs)
    return f"; versions that can be opened: {shown}" if shown else ""
