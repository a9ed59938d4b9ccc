"""Check the files of the log: complete, allowed by the protocol, not too many.

Protocol: Delta Log Entries, Action Reconciliation, In-Commit Timestamps
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import DeltaError, MalformedLogError
from deltalog.insight.doctor.report import Finding, Severity
from deltalog.kernels import compute
from deltalog.log.names import LogFileKind, parse_log_name
from deltalog.log.reader import VERSION_COLUMN, read_commits
from deltalog.replay import file_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog.insight.doctor.patient import Patient
    from deltalog.log.reader import CommitTable
    from deltalog.paths import FileInfo

_TOGETHER: Final = 100
_BLANK_BYTES: Final = 64


def check_gaps(patient: Patient) -> Iterator[Finding]:
    """Check for gaps between commits, and for incomplete checkpoints."""
    versions = list(patient.listing.commits)
    for before, after in pairwise(versions):
        if after != before + 1:
            missing = f"{before + 1} to {after - 1}" if after > before + 2 else str(before + 1)
            newest = max((found.version for found in patient.listing.checkpoints), default=-1)
            yield Finding(
                check="log-gap",
                severity=Severity.WARNING if newest >= after - 1 else Severity.ERROR,
                message=f"commits are missing: {missing}",
                advice="restore them from a backup; versions before the gap need a checkpoint "
                "after it to be left behind",
                version=before + 1,
            )
    whole = {info.name for found in patient.listing.checkpoints for info in found.files}
    kinds = {LogFileKind.CHECKPOINT, LogFileKind.CHECKPOINT_PART, LogFileKind.CHECKPOINT_V2}
    for info in patient.log_files:
        file = parse_log_name(info)
        if file is not None and file.kind in kinds and info.name not in whole:
            yield Finding(
                check="checkpoint-incomplete",
                severity=Severity.WARNING,
                message=f"{info.name} is empty, or other parts of its checkpoint are missing",
                advice="delete it: no reader uses it",
                path=info.path,
                version=file.version,
            )


def check_length(patient: Patient) -> Iterator[Finding]:
    """Check for many commits after the newest checkpoint, and for expired commits."""
    snapshot = patient.snapshot
    properties = snapshot.configuration.properties
    num_commits = len(snapshot.segment.commits)
    if num_commits > max(10 * properties.checkpoint_interval, 100):
        yield Finding(
            check="log-length",
            severity=Severity.WARNING,
            message=f"{num_commits} commits lie after the newest checkpoint; who opens the table "
            "reads them all",
            advice="create_checkpoint()",
        )
    oldest_ms = patient.now_ms - properties.log_retention_ms
    covered = max((found.version for found in patient.listing.checkpoints), default=-1)
    expired = [
        version
        for version, file in patient.listing.commits.items()
        if version < covered and file.info.modified_ms < oldest_ms
    ]
    if len(expired) > 1:
        yield Finding(
            check="log-expired",
            severity=Severity.INFO,
            message=f"{len(expired)} commits are older than delta.logRetentionDuration and before "
            "a checkpoint",
            advice="cleanup_metadata() deletes them",
        )


def _is_blank(patient: Patient, file: FileInfo) -> bool:
    """Whether a commit has no action. Cost: reads very short ones."""
    if file.size_bytes > _BLANK_BYTES:
        return False
    try:
        return not file.size_bytes or not patient.store.read(file.path).strip()
    except DeltaError:
        return False  # what cannot be read is reported as such


def check_commits(patient: Patient) -> Iterator[Finding]:
    """Check commits: empty files, unreadable lines, files named twice, timestamps that go back."""
    files = list(patient.listing.commits.values())[-patient.num_commits :]
    infos: dict[int, Mapping[str, Any]] = {}
    for file in files:
        if _is_blank(patient, file.info):
            yield Finding(
                check="commit-empty",
                severity=Severity.WARNING,
                message=f"the commit of version {file.version} is empty: it counts as a version "
                "without actions",
                advice="if its writer was cut off, or it was emptied later, restore the file from "
                "a backup; if not, nothing is missing",
                path=file.info.path,
                version=file.version,
            )
    for start in range(0, len(files), _TOGETHER):
        some = files[start : start + _TOGETHER]
        try:
            tables = [read_commits(patient.store, some, commit_infos=True)]
        except DeltaError:
            tables = []
            for file in some:  # one by one, to find out which is damaged
                try:
                    tables.append(read_commits(patient.store, [file], commit_infos=True))
                except MalformedLogError as error:
                    yield Finding(
                        check="commit-unreadable",
                        severity=Severity.ERROR,
                        message=str(error),
                        advice="restore the file from a backup",
                        path=file.info.path,
                        version=file.version,
                    )
        for table in tables:
            yield from _repeated(patient, table)
            infos.update(table.commit_infos)
    yield from _own_times(patient, infos)


def _repeated(patient: Patient, table: CommitTable) -> Iterator[Finding]:
    """Check for files that a commit names too often for the protocol (ledger B-02, B-03)."""
    root = patient.store.root
    keys = []
    for kind, files in (("add", table.adds), ("remove", table.removes)):
        versions = files.column(VERSION_COLUMN).to_pylist()
        paths = files.column("path").to_pylist()
        for (version, path), count in Counter(zip(versions, paths, strict=True)).items():
            if count > 1:
                yield Finding(
                    check="commit-repeats",
                    severity=Severity.WARNING,
                    message=f"version {version} has {count} {kind} actions of one file",
                    advice="readers differ in which one they take; write the file's rows anew",
                    path=path,
                    version=version,
                )
        found = file_keys(files.column("path"), files.column("deletionVector"), root).to_pylist()
        keys.append(set(zip(versions, found, strict=True)))
    for version, key in sorted(keys[0] & keys[1], key=str):
        path = str(key).partition("\0")[0]
        yield Finding(
            check="commit-contradicts",
            severity=Severity.WARNING,
            message=f"version {version} adds and removes the same file",
            advice="readers differ in whether it is there; deltalog takes it for removed",
            path=path,
            version=version,
        )
    for kind, nodes in (("protocol", table.protocol_nodes), ("metaData", table.metadata_nodes)):
        for version, count in Counter(version for version, _ in nodes).items():
            if count > 1:
                yield Finding(
                    check="commit-contradicts",
                    severity=Severity.WARNING,
                    message=f"version {version} has {count} {kind} actions",
                    version=version,
                )


def _own_times(patient: Patient, infos: Mapping[int, Mapping[str, Any]]) -> Iterator[Finding]:
    """Check for in-commit timestamps that are missing or go back."""
    if patient.opened is None:
        return
    own = patient.snapshot.configuration.in_commit_timestamps
    last_ms: int | None = None
    for version in sorted(infos) if own is not None else ():
        if own is None or not own.covers(version):
            continue
        time_ms = infos[version].get("inCommitTimestamp")
        if not isinstance(time_ms, int) or (last_ms is not None and time_ms <= last_ms):
            yield Finding(
                check="commit-time",
                severity=Severity.ERROR,
                message=f"version {version} has the in-commit timestamp {time_ms}, which must be "
                f"there and after the one before ({last_ms})",
                advice="time travel by timestamp is not reliable around this version",
                version=version,
            )
        last_ms = time_ms if isinstance(time_ms, int) else last_ms


def check_live_paths(patient: Patient) -> Iterator[Finding]:
    """Check for files live more than once, with different deletion vectors (ledger B-02)."""
    paths = patient.snapshot.files(["path"]).column("path")
    counts = compute.value_counts(paths)
    for found in counts.to_pylist() if len(counts) < len(paths) else ():
        if found["counts"] > 1:
            yield Finding(
                check="live-twice",
                severity=Severity.ERROR,
                message=f"a file is live {found['counts']} times, with different deletion vectors",
                advice="its rows are read more than once: write them anew",
                path=found["values"],
            )
