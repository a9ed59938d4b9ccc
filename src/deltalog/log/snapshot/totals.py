"""Check that the number and the total size of a version's files match its checksum.

A checkpoint or compaction that was truncated after a line or row group looks complete. So the
totals that were computed from it are compared with the version's checksum, if there is one. Totals
that were computed from commits alone are not compared, because commits are more reliable than a
checksum.

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
    """The part of a log's state that the check needs; `LogState` implements it.

    Attributes:
        store: the table's store.
        segment: the log files that make up the version.
        checkpoint: the segment's checkpoint.
        totals: number and total size of the live files, as computed before from other log files
            that were then considered damaged; None without an earlier attempt.
    """

    store: Store
    segment: LogSegment
    checkpoint: Checkpoint | None
    totals: tuple[int, int] | None

    def keep(self, adds: pa.Table) -> pa.Table:
        """Return the adds of the checkpoint that are still live."""
        ...

    @property
    def names_files(self) -> bool:
        """Whether the commits after the checkpoint add or remove files."""
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
        names: names of columns that the caller needs next. They are read together with the columns
            that this check needs.

    Raises:
        CheckpointUnreadableError: they differ, and nothing shows that the checksum is wrong.

    Cost: reads the sizes of all files and, at the same time, the checksum.
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
    # Consider the checksum wrong if other log files lead to the same totals, if the checkpoint has
    # the number of files that its writer recorded, or if no other log files can be used.
    if found == state.totals or _is_as_written(state) or _is_all_there_is(state):
        logger.warning("%s; using the log", text)
        return
    state.totals = found
    raise CheckpointUnreadableError(text)


def check_table(state: CountedState, protocol: model.Protocol, metadata: model.Metadata) -> None:
    """Compare protocol and metadata that were read from compactions with the version's checksum.

    Raises:
        CheckpointUnreadableError: they differ.

    Cost: one request for the checksum.
    """
    checksum = _checksum_of(state)
    if checksum is not None and (checksum.protocol, checksum.metadata) != (protocol, metadata):
        raise CheckpointUnreadableError(
            f"version {state.segment.version} of {state.store.root} has another protocol or other "
            f"metadata by {_shortcuts(state)} than by its checksum"
        )


def _has_small(state: CountedState, checksum: VersionChecksum) -> bool:
    """Return whether a state contains the application transactions and domains of a checksum.

    The state may contain more, because a checksum may omit expired transactions.
    """
    known = {txn.app_id: txn.version for txn in state.app_transactions.values()}
    return all(
        known.get(txn.app_id) == txn.version for txn in checksum.set_transactions or ()
    ) and all(state.domains.get(one.domain) == one for one in checksum.domain_metadata or ())


def _is_as_written(state: CountedState) -> bool:
    """Return whether the number of adds in the checkpoint is the number in `_last_checkpoint`."""
    checkpoint = state.checkpoint
    if checkpoint is None or state.segment.used_compactions:
        return False
    hint = read_hint(state.store)
    if hint is None or hint.version != checkpoint.version:
        return False
    return hint.num_add_files == checkpoint.num_actions("add")


def _is_all_there_is(state: CountedState) -> bool:
    """Return whether no other log files can replace a checkpoint that contradicts the checksum.

    Cost: reads `_last_checkpoint`, and makes one listing.
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
