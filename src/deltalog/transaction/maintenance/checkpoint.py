"""Create checkpoints: write, verify by reading back, then update `_last_checkpoint`.

This module chooses the layout, omits expired tombstones and transactions, and updates
`_last_checkpoint`.

Protocol: Checkpoints, Last Checkpoint File
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog._util.paths import LOG_DIRECTORY
from deltalog.errors import (
    AlreadyExistsError,
    CheckpointUnreadableError,
    InternalError,
    InvalidInputError,
    ObjectNotFoundError,
)
from deltalog.log.checkpoints.reader import Checkpoint
from deltalog.log.checkpoints.rows import SMALL_KINDS
from deltalog.log.checkpoints.writer import (
    CheckpointContent,
    CheckpointLayout,
    check_layout,
    write_checkpoint,
    write_sidecars,
)
from deltalog.log.listing import LastCheckpointHint, encode_hint, list_log, read_hint
from deltalog.log.names import (
    LAST_CHECKPOINT_PATH,
    commit_path,
    first_name_of,
)
from deltalog.log.segment import CheckpointFiles, CheckpointKind
from deltalog.protocol.actions.arrow import FILE_SCHEMA, REMOVE_SCHEMA, REMOVE_TYPE
from deltalog.protocol.features.support import check_writable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.log.checkpoints.writer import WrittenCheckpoint, WrittenSidecars
    from deltalog.log.snapshot import Snapshot
    from deltalog.log.snapshot.splits import CutSnapshot
    from deltalog.log.snapshot.state import LogState
    from deltalog.protocol.actions.model import SetTransaction
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """An existing checkpoint that was verified.

    Args:
        files: the top-level files of the checkpoint.
        num_actions: number of actions in all files of the checkpoint.
        num_adds: number of live files.
        num_removes: number of tombstones.
        size_bytes: total size of all files of the checkpoint.
    """

    files: CheckpointFiles
    num_actions: int
    num_adds: int
    num_removes: int
    size_bytes: int

    @property
    def version(self) -> int:
        """The table version of the checkpoint."""
        return self.files.version


class CheckpointWork(Protocol):
    """The part of creating a checkpoint that reads the whole file list; an engine may do it."""

    def write(
        self,
        state: LogState,
        content: CheckpointContent,
        layout: CheckpointLayout,
        part_rows: int | None,
        at_ms: int,
    ) -> WrittenCheckpoint:
        """Write the checkpoint of a log's state.

        Args:
            state: state of the version.
            content: all actions except live files and tombstones.
            layout: layout of the checkpoint.
            part_rows: maximum number of file actions in a part or sidecar.
            at_ms: tombstones that have expired at this time are omitted; milliseconds since 1970.
        """
        ...

    def count_files(self) -> int:
        """Return the number of live files."""
        ...


def create_checkpoint(
    snapshot: Snapshot,
    *,
    layout: CheckpointLayout | None = None,
    part_rows: int | None = None,
    at_ms: int | None = None,
    work: CheckpointWork | None = None,
) -> CheckpointInfo:
    """Write a checkpoint of this version, unless it exists, and update `_last_checkpoint`.

    The checkpoint is verified by reading it before `_last_checkpoint` is updated. A checkpoint that
    fails verification is deleted. `_last_checkpoint` is never set to an older checkpoint.

    Args:
        snapshot: the version.
        layout: layout of the checkpoint; None means that of `delta.checkpointPolicy`.
        part_rows: maximum number of file actions in a part or sidecar; None means one file for a
            classic checkpoint.
        at_ms: tombstones and application transactions that have expired at this time are omitted;
            None means the current time.
        work: reads the file list of the version; None means this process.

    Raises:
        DeltaProtocolError: the table needs a feature that deltalog cannot write.
        InvalidInputError: the version's commit is not published, or the table forbids the layout.

    Protocol: Checkpoints
    Cost: one pass over the file list, with a few batches in memory; cached columns are not read
    again.
    """
    check_can_checkpoint(snapshot)
    chosen = layout_of(snapshot.configuration) if layout is None else layout
    kind = _kind_of(chosen, part_rows)
    store = snapshot.store
    at_ms = snapshot.context.clock.now_ms() if at_ms is None else at_ms

    check_layout(store, snapshot.configuration, chosen, part_rows)

    def write(state: LogState) -> WrittenCheckpoint:
        if work is None or state.segment.used_compactions:
            state.files(["size"])  # raises if the files do not match the version's checksum
        if work is not None:
            content = _small_content(snapshot, state, at_ms)
            return work.write(state, content, chosen, part_rows, at_ms)
        content = _content_of(snapshot, state, at_ms)
        return write_checkpoint(store, content, layout=chosen, part_rows=part_rows)

    def count() -> int:
        return snapshot.num_files if work is None else work.count_files()

    info = _find_existing(snapshot, kind, count)
    if info is None:
        try:
            info = _verified(store, snapshot.read_log(write))
        except AlreadyExistsError:
            # Another writer has written the checkpoint, or a write was interrupted and has left an
            # empty file.
            info = _find_existing(snapshot, kind, count)
            if info is None and _remove_empty(store, snapshot.version):
                info = _verified(store, snapshot.read_log(write))
            if info is None:
                raise
    point_to(store, info)
    return info


def begin_log(snapshot: Snapshot, store: Store) -> None:
    """Begin another log with this version: write its commit and a checkpoint of it.

    Args:
        snapshot: the version.
        store: shows the other log, which must be empty.

    Raises:
        DeltaProtocolError: the table needs a feature that deltalog cannot write.
        ObjectNotFoundError: the commit of this version was cleaned up.

    Cost: see `create_checkpoint`.
    """
    check_can_checkpoint(snapshot)
    at_ms = snapshot.context.clock.now_ms()
    layout = layout_of(snapshot.configuration)

    def write(state: LogState) -> WrittenCheckpoint:
        return write_checkpoint(store, _content_of(snapshot, state, at_ms), layout=layout)

    path = commit_path(snapshot.version)
    data = snapshot.store.read(path)
    info = _verified(store, snapshot.read_log(write))
    store.put_if_absent(path, data)
    point_to(store, info)


def check_can_checkpoint(snapshot: Snapshot) -> None:
    """Raise for a checkpoint that would be wrong or unusable.

    Raises:
        DeltaProtocolError: the table needs a feature that deltalog cannot write.
        InvalidInputError: the version's commit is not published.
    """
    check_writable(
        snapshot.configuration,
        table=snapshot.store.root,
        version=snapshot.version,
        operation="write a checkpoint of",
        has_log_tail=snapshot.log_tail is not None,
    )
    commit = snapshot.segment.target_commit
    # If the catalog still lists the version, the snapshot contains the path of the staged commit,
    # even if the commit is already published.
    is_staged = commit is not None and commit.path != commit_path(snapshot.version)
    if is_staged and not _is_published(snapshot):
        raise InvalidInputError(
            f"cannot write a checkpoint of version {snapshot.version} of {snapshot.store.root}: "
            "its commit is not published yet"
        )


def _is_published(snapshot: Snapshot) -> bool:
    try:
        snapshot.store.stat(commit_path(snapshot.version))
    except ObjectNotFoundError:
        return False
    return True


def layout_of(configuration: TableConfiguration) -> CheckpointLayout:
    """Return the layout that the table's properties require.

    Protocol: V2 Spec (`delta.checkpointPolicy`)
    """
    policy = configuration.properties.checkpoint_policy
    v2 = policy == "v2" and configuration.supports("v2Checkpoint")
    return CheckpointLayout.V2_JSON if v2 else CheckpointLayout.CLASSIC


def point_to(store: Store, info: CheckpointInfo) -> None:
    """Set `_last_checkpoint` to a checkpoint, unless it names a newer existing checkpoint.

    Protocol: Last Checkpoint File
    Cost: one request to read and one to write; a listing if it names a newer checkpoint.
    """
    known = read_hint(store)
    if known is not None and known.version > info.version:
        newer = list_log(store, from_version=info.version + 1).checkpoints
        # Do not replace the hint if its checkpoint or a newer checkpoint exists. But replace a hint
        # to a missing checkpoint, because it costs every reader a second listing.
        if any(files.version >= known.version for files in newer):
            return
    files = info.files
    hint = LastCheckpointHint(
        version=info.version,
        size_actions=info.num_actions,
        parts=len(files.files) if files.kind is CheckpointKind.MULTI_PART else None,
        size_bytes=info.size_bytes,
        num_add_files=info.num_adds,
    )
    v2_file = files.files[0] if files.kind is CheckpointKind.V2 else None
    store.put(LAST_CHECKPOINT_PATH, encode_hint(hint, v2_file=v2_file))


def inspect_checkpoint(store: Store, files: CheckpointFiles) -> CheckpointInfo:
    """Verify a checkpoint by reading it, and return its facts.

    Raises:
        CheckpointUnreadableError: the checkpoint is damaged, or lacks protocol or metadata.

    Cost: reads the footers, all actions except file actions, and one small column of file actions.
    """
    checkpoint = Checkpoint(store, files)
    values = checkpoint.values(SMALL_KINDS)
    if len(values["protocol"]) != 1 or len(values["metaData"]) != 1:
        raise CheckpointUnreadableError(
            f"checkpoint {files.name} of {store.root} has {len(values['protocol'])} protocol and "
            f"{len(values['metaData'])} metaData actions, expected one of each"
        )
    adds, removes = checkpoint.num_actions("add"), checkpoint.num_actions("remove")
    sidecars = sum(row["sizeInBytes"] for row in values["sidecar"])
    return CheckpointInfo(
        files=files,
        num_actions=adds + removes + sum(map(len, values.values())),
        num_adds=adds,
        num_removes=removes,
        size_bytes=sidecars + sum(file.size_bytes for file in files.files),
    )


def _kind_of(layout: CheckpointLayout, part_rows: int | None) -> CheckpointKind:
    if layout is not CheckpointLayout.CLASSIC:
        return CheckpointKind.V2
    return CheckpointKind.CLASSIC if part_rows is None else CheckpointKind.MULTI_PART


def _find_existing(
    snapshot: Snapshot, kind: CheckpointKind, count_files: Callable[[], int]
) -> CheckpointInfo | None:
    """Find a valid checkpoint of this version; delete a damaged checkpoint with the same name."""
    store, version = snapshot.store, snapshot.version
    for files in list_log(store, from_version=version).checkpoints:
        if files.version != version or files.kind is not kind:
            continue
        try:
            info = inspect_checkpoint(store, files)
        except CheckpointUnreadableError as error:
            logger.warning("removing a damaged checkpoint of %s: %s", store.root, error)
            store.delete_many([file.path for file in files.files])
            continue
        if info.num_adds == count_files():
            return info
    return None


def _remove_empty(store: Store, version: int) -> bool:
    """Delete the empty checkpoint files of a version; return whether there were any."""
    empty = [
        info.path
        for info in store.list_from(LOG_DIRECTORY, first_name_of(version))
        if info.name.startswith(f"{first_name_of(version)}checkpoint.") and not info.size_bytes
    ]
    store.delete_many(empty)
    return bool(empty)


def _verified(store: Store, written: WrittenCheckpoint) -> CheckpointInfo:
    """Read the checkpoint back; if the number of actions is wrong, delete it and raise."""
    expected = (written.num_adds, written.num_removes)
    try:
        info = inspect_checkpoint(store, written.files)
        found: object = (info.num_adds, info.num_removes)
        if found == expected:
            return info
    except CheckpointUnreadableError as error:
        found = error
    # Delete the top-level files first, so that none of them refers to a deleted sidecar.
    store.delete_many([file.path for file in written.files.files])
    store.delete_many(written.paths)
    raise InternalError(
        f"deleted the new checkpoint {written.files.name} of {store.root}: expected {expected} "
        f"adds and removes when reading it back, found {found}"
    )


def content_of_files(snapshot: Snapshot, state: LogState, at_ms: int) -> CheckpointContent:
    """Return the live files and tombstones of a checkpoint, without other actions.

    Args:
        snapshot: the version, or a piece of the version.
        state: state of the same version or piece.
        at_ms: tombstones that have expired at this time are omitted; milliseconds since 1970.
    """
    return CheckpointContent(
        version=snapshot.version,
        configuration=snapshot.configuration,
        time_zone=snapshot.context.time_zone,
        transactions=(),
        domains=(),
        high_water_mark=None,
        tombstones=_unexpired(snapshot, state, at_ms),
        paths=lambda: state.files(["path"]).column("path"),
        iter_adds=lambda leaves, rows: state.iter_live_adds(leaves, batch_rows=rows),
    )


def content_of_piece(cut: CutSnapshot, number: int, at_ms: int) -> CheckpointContent:
    """Return the live files and tombstones of a piece of a version; see `content_of_files`."""
    piece = cut.piece(number)
    return piece.read_log(lambda state: content_of_files(piece, state, at_ms))


def write_piece(
    cut: CutSnapshot, number: int, *, at_ms: int, part_rows: int | None
) -> WrittenSidecars:
    """Write the live files and tombstones of a piece to sidecars, in a task.

    Args:
        cut: the pieces of the version.
        number: the number of the piece.
        at_ms: tombstones that have expired at this time are omitted; milliseconds since 1970.
        part_rows: maximum number of file actions in a sidecar; None means the default.
    """
    content = content_of_piece(cut, number, at_ms)
    return write_sidecars(cut.snapshot.store, content, part_rows=part_rows)


def _small_content(snapshot: Snapshot, state: LogState, at_ms: int) -> CheckpointContent:
    """Return the actions of a checkpoint except live files and tombstones."""
    return CheckpointContent(
        version=snapshot.version,
        configuration=snapshot.configuration,
        time_zone=snapshot.context.time_zone,
        transactions=_remembered(snapshot, state, at_ms),
        domains=list(state.domains.values()),
        high_water_mark=state.draft_high_water_mark,
        tombstones=REMOVE_SCHEMA.empty_table(),
        paths=lambda: FILE_SCHEMA.empty_table().column("path"),
        iter_adds=lambda _leaves, _rows: iter(()),
    )


def _content_of(snapshot: Snapshot, state: LogState, at_ms: int) -> CheckpointContent:
    small = _small_content(snapshot, state, at_ms)
    files = content_of_files(snapshot, state, at_ms)
    return replace(small, tombstones=files.tombstones, paths=files.paths, iter_adds=files.iter_adds)


def _remembered(snapshot: Snapshot, state: LogState, at_ms: int) -> Sequence[SetTransaction]:
    """Return unexpired application transactions; without `lastUpdated`, none expires (D-62)."""
    retention_ms = snapshot.configuration.properties.set_transaction_retention_ms
    return [
        txn
        for txn in state.app_transactions.values()
        if retention_ms is None
        or txn.last_updated_ms is None
        or txn.last_updated_ms >= at_ms - retention_ms
    ]


def _unexpired(snapshot: Snapshot, state: LogState, at_ms: int) -> pa.Table:
    """Return unexpired tombstones, which vacuum and readers of old versions need (D-17)."""
    tombstones = state.tombstones([field.name for field in REMOVE_TYPE])
    oldest_ms = at_ms - snapshot.configuration.properties.deleted_file_retention_ms
    times = compute.coalesce(tombstones.column("deletionTimestamp"), pa.scalar(0, pa.int64()))
    return tombstones.filter(compute.greater_equal(times, pa.scalar(oldest_ms, pa.int64())))
