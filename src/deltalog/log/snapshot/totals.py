"""Check that a version's files match its checksum in number and size.

A checkpoint or compacted log that was truncated after a line or row group looks complete. So its
totals are compared with the version's checksum, if there is one. Totals from commits alone are not
compared, because the log wins over a checksum.

Protocol: Version Checksum File (State Validation)
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from deltalog._util.kernels import compute
from deltalog.errors import CheckpointUnreadableError, MalformedLogError, ObjectNotFoundError
from deltalog.log.checksum import VersionChecksum, parse_checksum
from deltalog.log.listing import list_log, read_hint
from deltalog.log.segment import LogSegment, build_segment
from deltalog.storage.pool import while_waiting
from deltalog.storage.store import Store, is_local

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from deltalog.log.checkpoints.reader import Checkpoint
    from deltalog.protocol.actions import model

logger: logging.Logger = logging.getLogger(__name__)


class CountedState(Protocol):
    """The parts of a log's state that the check needs; implemented by `LogState`.

    Attributes:
        store: the table's store.
        segment: the files that make up the version.
        checkpoint: the segment's checkpoint.
        totals: number and size of the files, according to other files of the log.
    """

    store: Store
    segment: LogSegment
    checkpoint: Checkpoint | None
    totals: tuple[int, int] | None

    def keep(self, adds: pa.Table) -> pa.Table:
        """Return the checkpoint's adds that are live."""
        ...

    @property
    def names_files(self) -> bool:
        """Whether the commits after the checkpoint name any file."""
        ...

    @property
    def live_commit_adds(self) -> pa.Table:
        """The live adds of the commits after the checkpoint."""
        ...

    @property
    def app_transactions(self) -> Mapping[str, model.SetTransaction]:
        """The latest transaction of each application."""
        ...

    @property
    def domains(self) -> Mapping[str, model.DomainMetadata]:
        """The latest metadata of each domain."""
        ...


def check_totals(state: CountedState, names: Sequence[str] = ()) -> None:
    """Compare the live files of a version with its checksum.

    Args:
        state: the state of the log, read from a checkpoint or a compaction.
        names: columns that are needed next; they are read together with those needed here.

    Raises:
        CheckpointUnreadableError: they differ, and no other file confirms the log.

    Cost: the sizes of all files, and a request for the checksum while they are read.
    """
    checkpoint = state.checkpoint
    if checkpoint is None or is_local(state.store):
        checksum = _checksum_of(state)
    else:
        wanted = [*names, "size", *(("path", "deletionVector") if state.names_files else ())]
        checksum = while_waiting(
            lambda: _checksum_of(state),
            lambda: checkpoint.columns("add", list(dict.fromkeys(wanted))),
        )
    if checksum is None:
        return
    tables = [state.live_commit_adds.select(["size"])]
    if state.checkpoint is not None:
        tables.append(state.keep(state.checkpoint.columns("add", ["size"])))
    found = (
        sum(table.num_rows for table in tables),
        sum(compute.sum(table.column("size")).as_py() or 0 for table in tables),
    )
    stated = checksum.num_files, checksum.table_size_bytes
    if found == stated and _has_small(state, checksum):
        return
    text = (
        f"version {state.segment.version} of {state.store.root} has {found[0]} files of {found[1]} "
        f"bytes by {_shortcuts(state)}, and {stated[0]} files of {stated[1]} bytes by its checksum"
    )
    if found == stated:
        text += ", and other application transactions or domains"
    # If two ways through the log agree, nothing is missing. If no other files are left, the log
    # cannot be replaced. In both cases, the checksum is considered wrong.
    if found == state.totals or _is_as_written(state) or _is_all_there_is(state):
        logger.warning("%s; using the log", text)
        return
    state.totals = found
    raise CheckpointUnreadableError(text)


def check_table(state: CountedState, protocol: model.Protocol, metadata: model.Metadata) -> None:
    """Compare protocol and metadata from compactions with the version's checksum.

    Raises:
        CheckpointUnreadableError: they differ.

    Cost: a request for the checksum.
    """
    checksum = _checksum_of(state)
    if checksum is not None and (checksum.protocol, checksum.metadata) != (protocol, metadata):
        raise CheckpointUnreadableError(
            f"version {state.segment.version} of {state.store.root} has another protocol or other "
            f"metadata by {_shortcuts(state)} than by its checksum"
        )


def _has_small(state: CountedState, checksum: VersionChecksum) -> bool:
    """Whether a state has the application transactions and domains that a checksum has.

    It may have more: expired ones.
    """
    known = {txn.app_id: txn.version for txn in state.app_transactions.values()}
    return all(
        known.get(txn.app_id) == txn.version for txn in checksum.set_transactions or ()
    ) and all(state.domains.get(one.domain) == one for one in checksum.domain_metadata or ())


def _is_as_written(state: CountedState) -> bool:
    """Whether a checkpoint has as many files as its writer recorded in `_last_checkpoint`."""
    checkpoint = state.checkpoint
    if checkpoint is None or state.segment.used_compactions:
        return False
    hint = read_hint(state.store)
    if hint is None or hint.version != checkpoint.version:
        return False
    return hint.num_add_files == checkpoint.num_actions("add")


def _is_all_there_is(state: CountedState) -> bool:
    """Whether no other files can replace a checkpoint that contradicts the checksum.

    Cost: the hint, and one listing.
    """
    checkpoint, segment = state.checkpoint, state.segment
    if checkpoint is None or segment.used_compactions:
        return False
    hint = read_hint(state.store)
    if hint is not None and hint.version == checkpoint.version and hint.num_add_files is not None:
        return False
    listing = list_log(state.store, from_version=0)
    try:
        build_segment(listing, segment.version, unreadable={checkpoint.files.name: "its checksum"})
    except MalformedLogError:
        return True
    return False


def _checksum_of(state: CountedState) -> VersionChecksum | None:
    file = state.segment.checksum
    try:
        return None if file is None else parse_checksum(state.store.read(file.path))
    except ObjectNotFoundError:
        return None


def _shortcuts(state: CountedState) -> str:
    names = [file.info.name for file in state.segment.used_compactions]
    if state.checkpoint is not None:
        names.append(state.checkpoint.files.name)
    return ", ".join(names)
