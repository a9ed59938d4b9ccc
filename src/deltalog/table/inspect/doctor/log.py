"""Check the files of the log: missing or invalid files, contradictions, and too many commits.

Protocol: Delta Log Entries, Action Reconciliation, In-Commit Timestamps
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import loads
from deltalog._util.kernels import compute
from deltalog._util.readable import FILE, counted
from deltalog.errors import DeltaError, MalformedLogError, ObjectNotFoundError
from deltalog.log.checksum import parse_checksum
from deltalog.log.listing import parse_hint
from deltalog.log.names import LAST_CHECKPOINT_PATH, LogFile, LogFileKind, parse_log_name
from deltalog.log.reader import VERSION_COLUMN, CommitTable, read_commits
from deltalog.log.replay import file_keys, reconcile
from deltalog.log.segment import CheckpointFiles, build_segment
from deltalog.log.snapshot.state import LogState
from deltalog.protocol.actions.model import Protocol
from deltalog.protocol.features.protocol_change import normalise
from deltalog.table.inspect.doctor.report import Finding, Patient, Severity
from deltalog.transaction.maintenance.checksum import count_checksum
from deltalog.transaction.maintenance.cleanup import plan_cleanup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog._util.paths import FileInfo

_TOGETHER: Final = 100
_BLANK_BYTES: Final = 64


def check_gaps(patient: Patient) -> Iterator[Finding]:
    """Check for missing commits between others, and for incomplete checkpoints."""
    versions = list(patient.listing.commits)
    for before, after in pairwise(versions):
        if after != before + 1:
            missing = f"{before + 1} to {after - 1}" if after > before + 2 else str(before + 1)
            newest = max((found.version for found in patient.listing.checkpoints), default=-1)
            yield Finding(
                check="log-gap",
                severity=Severity.WARNING if newest >= after - 1 else Severity.ERROR,
                message=f"commits are missing: {missing}",
                advice="restore them from a backup; or create a checkpoint after the gap, "
                "which loses the versions before it",
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
            message=f"{num_commits} commits lie after the newest checkpoint; opening the table "
            "reads all of them",
            advice="create_checkpoint()",
        )
    try:
        expired = sum(map(len, plan_cleanup(snapshot, at_ms=patient.now_ms)))
    except DeltaError:
        return  # the table's catalog cleans up the log, or deltalog cannot write the table
    if expired:
        yield Finding(
            check="log-expired",
            severity=Severity.INFO,
            message=f"no version needs {counted(expired, FILE)} of the log any more, and "
            "delta.logRetentionDuration has passed",
            advice="cleanup_metadata() deletes them",
        )


def _is_blank(patient: Patient, file: FileInfo) -> bool:
    """Return whether a commit has no actions. Cost: reads the commit if it is very short."""
    if file.size_bytes > _BLANK_BYTES:
        return False
    try:
        return not file.size_bytes or not patient.store.read(file.path).strip()
    except DeltaError:
        return False  # another check reports unreadable commits


def check_commits(patient: Patient) -> Iterator[Finding]:
    """Check commits for invalid lines, repeated actions and in-commit timestamps that decrease."""
    files = list(patient.listing.commits.values())[-patient.num_commits :]
    infos: dict[int, Mapping[str, Any]] = {}
    for file in files:
        if _is_blank(patient, file.info):
            yield Finding(
                check="commit-empty",
                severity=Severity.WARNING,
                message=f"the commit of version {file.version} is empty: it counts as a version "
                "without actions",
                advice="if its writer was killed, or it was emptied later, restore the file from "
                "a backup; otherwise nothing is missing",
                path=file.info.path,
                version=file.version,
            )
    for start in range(0, len(files), _TOGETHER):
        some = files[start : start + _TOGETHER]
        try:
            tables = [read_commits(patient.store, some, commit_infos=True)]
        except DeltaError:
            tables = []
            for file in some:  # read each commit separately to find the damaged commit
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
    """Check for several actions for the same file in one commit (requirements B-02, B-03)."""
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
                    advice="readers disagree on which one counts; rewrite the rows of the file",
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
            advice="readers disagree on whether the file is live; for deltalog it is removed",
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
    """Check for in-commit timestamps that are missing or decrease."""
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
                message=f"version {version} has the in-commit timestamp {time_ms}: expected "
                f"a timestamp after the previous one ({last_ms})",
                advice="time travel by timestamp is not reliable around this version",
                version=version,
            )
        last_ms = time_ms if isinstance(time_ms, int) else last_ms


def check_live_paths(patient: Patient) -> Iterator[Finding]:
    """Check for live files with more than one deletion vector (requirement B-02)."""
    paths = patient.snapshot.files(["path"]).column("path")
    counts = compute.value_counts(paths)
    for found in counts.to_pylist() if len(counts) < len(paths) else ():
        if found["counts"] > 1:
            yield Finding(
                check="live-twice",
                severity=Severity.ERROR,
                message=f"a file is live {found['counts']} times, with different deletion vectors",
                advice="its rows are read more than once: rewrite them",
                path=found["values"],
            )


# --- Checks of checkpoints, `_last_checkpoint` and checksums against the log


_MOST: Final = 5
_MOST_TEXT: Final = 200
_ADVICE: Final = "no reader needs it: delete it, create_checkpoint() rewrites it"


def check_hint(patient: Patient) -> Iterator[Finding]:
    """Check that `_last_checkpoint` is valid and refers to the newest checkpoint."""
    newest = max((found.version for found in patient.listing.checkpoints), default=None)
    try:
        data = patient.store.read(LAST_CHECKPOINT_PATH)
    except ObjectNotFoundError:
        if newest is not None:
            yield _hint(f"it is missing, but there is a checkpoint of version {newest}")
        return
    hint = parse_hint(data)
    if hint is None:
        yield _hint("it is incomplete, or its checksum does not match")
    elif all(found.version != hint.version for found in patient.listing.checkpoints):
        yield _hint(f"it names version {hint.version}, which has no complete checkpoint")
    elif newest is not None and hint.version < newest:
        yield _hint(f"it names version {hint.version}, but the newest checkpoint is {newest}")


def _hint(message: str) -> Finding:
    return Finding(
        check="last-checkpoint",
        severity=Severity.WARNING,
        message=f"_last_checkpoint: {message}",
        advice="readers list more than they have to; create_checkpoint() rewrites it",
        path=LAST_CHECKPOINT_PATH,
    )


def check_checkpoints(patient: Patient) -> Iterator[Finding]:
    """Check that the newest checkpoints agree with the commits before them."""
    for files in patient.listing.checkpoints[-_MOST:]:
        try:
            differences = list(_differences(patient, files))
        except DeltaError as error:
            yield Finding(
                check="checkpoint",
                severity=Severity.ERROR,
                message=f"{files.name} cannot be read: {error}",
                advice=_ADVICE if files.version in patient.listing.commits else "restore it",
                path=files.files[0].path,
                version=files.version,
            )
            continue
        for message in differences:
            yield Finding(
                check="checkpoint",
                severity=Severity.ERROR,
                message=f"{files.name} differs from the log before it: {message}",
                advice=_ADVICE,
                path=files.files[0].path,
                version=files.version,
            )


def _differences(patient: Patient, files: CheckpointFiles) -> Iterator[str]:
    listing, store, version = patient.listing, patient.store, files.version
    others = {found.name: "" for found in listing.checkpoints if found.version == version}
    mine = build_segment(
        listing, version, unreadable={name: "" for name in others if name != files.name}
    )
    held = LogState(store, mine)
    facts = _facts(held)
    try:
        expected = _facts(LogState(store, build_segment(listing, version, unreadable=others)))
    except DeltaError:
        return  # the checkpoint cannot be compared without the earlier commits
    for name, value in facts.items():
        if name == "files":
            extra, missing = value - expected[name], expected[name] - value
            if extra or missing:
                sample = min(extra or missing).partition("\0")[0]
                too_many = counted(len(extra), FILE)
                yield f"{too_many} too many, {len(missing)} missing, such as {sample}"
        elif value != expected[name]:
            yield f"{name} {_short(value)}, expected {_short(expected[name])}"


def check_compactions(patient: Patient) -> Iterator[Finding]:
    """Check that the newest compacted logs agree with their commits."""
    commits = patient.listing.commits
    for file in patient.listing.compactions[-_MOST:]:
        covered = [commits.get(at) for at in range(file.version, file.end_version + 1)]
        known = [commit for commit in covered if commit is not None]
        message = ""
        try:
            if len(known) < len(covered):
                message = "covers commits that no longer exist"
            elif _live_keys(patient, [file]) != _live_keys(patient, known):
                message = "lists other files than its commits"
        except DeltaError as error:
            message = f"cannot be read: {error}"
        if message:
            yield Finding(
                check="compaction",
                severity=Severity.WARNING,
                message=f"{file.info.name} {message}",
                advice="readers may trust it: delete it; "
                f"compact_logs({file.version}, {file.end_version}) writes it again",
                path=file.info.path,
                version=file.version,
            )


def _live_keys(patient: Patient, files: Sequence[LogFile]) -> tuple[set[str], set[str]]:
    """Return the keys of the files that some commits add, and of those that they remove."""
    table = read_commits(patient.store, files)
    root = patient.store.root
    adds, removes = (
        file_keys(one.column("path"), one.column("deletionVector"), root)
        for one in (table.adds, table.removes)
    )
    left = reconcile(
        adds, table.adds.column(VERSION_COLUMN), removes, table.removes.column(VERSION_COLUMN)
    )
    added: Any = adds.take(left.adds)
    removed: Any = removes.take(left.removes)
    return set(added.to_pylist()), set(removed.to_pylist())


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def _facts(state: LogState) -> dict[str, Any]:
    """Return the facts of a version that must be the same from a checkpoint and from commits.

    Application transactions are not included, because a checkpoint may omit expired ones.
    """
    protocol, metadata = state.read_protocol_and_metadata()
    live = state.files(["path", "deletionVector"])
    keys = file_keys(live.column("path"), live.column("deletionVector"), state.store.root)
    return {
        "protocol": protocol,
        "metadata": metadata,
        "files": frozenset(keys.to_pylist()),
        "domains": dict(state.domains),
    }


def check_checksum(patient: Patient) -> Iterator[Finding]:
    """Check that the version's `.crc` agrees with the log."""
    snapshot = patient.snapshot
    info = snapshot.segment.checksum
    if info is None:
        return
    data = patient.store.read(info.path)
    stated = parse_checksum(data)
    counted = count_checksum(snapshot)
    advice = "Spark fails or recounts because of it; delete the file"
    if stated is None:
        old = _is_of_old_form(data)  # old versions of Delta Spark wrote only counts
        what = "lacks protocol or metadata, as files of old writers do" if old else "is damaged"
        yield Finding(
            check="checksum",
            severity=Severity.INFO if old else Severity.WARNING,
            message=f"{info.name} {what}",
            advice=advice,
            path=info.path,
            version=snapshot.version,
        )
        return
    for name in (
        "table_size_bytes",
        "num_files",
        "protocol",
        "metadata",
        "num_deleted_records",
        "num_deletion_vectors",
    ):
        said, found = getattr(stated, name), getattr(counted, name)
        if isinstance(said, Protocol):  # its lists are sets, which Delta Spark writes in any order
            said, found = normalise(said), normalise(found)
        if said != found and said is not None and found is not None:
            yield Finding(
                check="checksum",
                severity=Severity.WARNING,
                message=f"in {info.name} {name} is {said}, but in the log it is {found}",
                advice=advice,
                path=info.path,
                version=snapshot.version,
            )
    if stated.domain_metadata is not None:
        said_domains = {domain.domain for domain in stated.domain_metadata}
        if said_domains != set(snapshot.domain_metadata):
            yield Finding(
                check="checksum",
                severity=Severity.WARNING,
                message=f"{info.name} has the domains {sorted(said_domains)}, but the log has "
                f"{sorted(snapshot.domain_metadata)}",
                advice=advice,
                path=info.path,
                version=snapshot.version,
            )


def _is_of_old_form(data: bytes) -> bool:
    try:
        node = loads(data, "checksum")
    except DeltaError:
        return False
    return isinstance(node, dict) and "numFiles" in node
