"""Check checkpoints, `_last_checkpoint` and checksums against the log.

Protocol: Checkpoints, Last Checkpoint File, Version Checksum File
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog._json import loads
from deltalog.errors import DeltaError, ObjectNotFoundError
from deltalog.insight.doctor.report import Finding, Severity
from deltalog.log.checksum import parse_checksum
from deltalog.log.hint import parse_hint
from deltalog.log.names import LAST_CHECKPOINT_PATH
from deltalog.log.reader import VERSION_COLUMN, read_commits
from deltalog.log.segment import build_segment
from deltalog.replay import file_keys, reconcile
from deltalog.snapshot.state import LogState
from deltalog.upkeep.checksum import count_checksum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.insight.doctor.patient import Patient
    from deltalog.log.names import LogFile
    from deltalog.log.segment import CheckpointFiles

_MOST: Final = 5
_MOST_TEXT: Final = 200
_ADVICE: Final = "no reader needs it: delete it, create_checkpoint() writes it anew"


def check_hint(patient: Patient) -> Iterator[Finding]:
    """Check that `_last_checkpoint` is valid and names the newest checkpoint."""
    newest = max((found.version for found in patient.listing.checkpoints), default=None)
    try:
        data = patient.store.read(LAST_CHECKPOINT_PATH)
    except ObjectNotFoundError:
        if newest is not None:
            yield _hint(f"it is missing, and there is a checkpoint of version {newest}")
        return
    hint = parse_hint(data)
    if hint is None:
        yield _hint("it is torn, or its checksum does not fit")
    elif all(found.version != hint.version for found in patient.listing.checkpoints):
        yield _hint(f"it names version {hint.version}, which has no complete checkpoint")
    elif newest is not None and hint.version < newest:
        yield _hint(f"it names version {hint.version}, and the newest checkpoint is {newest}")


def _hint(message: str) -> Finding:
    return Finding(
        check="last-checkpoint",
        severity=Severity.WARNING,
        message=f"_last_checkpoint: {message}",
        advice="readers list more than they have to; create_checkpoint() writes it anew",
        path=LAST_CHECKPOINT_PATH,
    )


def check_checkpoints(patient: Patient) -> Iterator[Finding]:
    """Check that the newest checkpoints agree with the log before them."""
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
        told = _facts(LogState(store, build_segment(listing, version, unreadable=others)))
    except DeltaError:
        return  # the log before was cleaned up: there is nothing to compare with
    for name, value in facts.items():
        if name == "files":
            extra, missing = value - told[name], told[name] - value
            if extra or missing:
                sample = min(extra or missing).partition("\0")[0]
                yield f"{len(extra)} files too many, {len(missing)} missing, such as {sample}"
        elif value != told[name]:
            yield f"{name} {_short(value)}, expected {_short(told[name])}"


def check_compactions(patient: Patient) -> Iterator[Finding]:
    """Check that the newest compacted logs say what their commits say."""
    commits = patient.listing.commits
    for file in patient.listing.compactions[-_MOST:]:
        covered = [commits.get(at) for at in range(file.version, file.end_version + 1)]
        known = [commit for commit in covered if commit is not None]
        message = ""
        try:
            if len(known) < len(covered):
                message = "covers commits that are gone"
            elif _live_keys(patient, [file]) != _live_keys(patient, known):
                message = "names other files than its commits"
        except DeltaError as error:
            message = f"cannot be read: {error}"
        if message:
            yield Finding(
                check="compaction",
                severity=Severity.WARNING,
                message=f"{file.info.name} {message}",
                advice="readers may trust it: delete it, compact_logs() writes it anew",
                path=file.info.path,
                version=file.version,
            )


def _live_keys(patient: Patient, files: Sequence[LogFile]) -> tuple[set[str], set[str]]:
    """The files that some commits leave added, and removed."""
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
    """The facts that must be equal, whichever files a version is built from.

    Transactions are left out: they may have expired in one of them.
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
        old = _is_of_old_form(data)  # old versions of Spark wrote only counts
        what = "lacks protocol or metadata, as those of old writers do" if old else "is damaged"
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
        if said != found and said is not None and found is not None:
            yield Finding(
                check="checksum",
                severity=Severity.WARNING,
                message=f"{info.name} says {name} is {said}, and the log says {found}",
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
                message=f"{info.name} has the domains {sorted(said_domains)}, and the log has "
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
