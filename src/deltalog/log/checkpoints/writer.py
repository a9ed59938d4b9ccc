"""Write a checkpoint: the state of one version as one file, as parts, or as a V2 checkpoint.

This module chooses the files and their names, and distributes the rows. Rows are streamed, so that
memory does not grow with the number of live files. The caller provides the state, decides when to
write a checkpoint, and updates `_last_checkpoint`.

Protocol: Checkpoints, V2 Spec, Multi-part checkpoint, Sidecar Files
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass
from enum import Enum
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.clock import now_ms
from deltalog._util.kernels import arrow, compute
from deltalog._util.paths import LOG_DIRECTORY, FileInfo
from deltalog.errors import InvalidInputError
from deltalog.log import names
from deltalog.log.checkpoints.rows import FILE_KINDS, ActionRows, RowFile, Sidecars
from deltalog.log.segment import CheckpointFiles, CheckpointKind
from deltalog.protocol.actions.codec import encode_actions
from deltalog.protocol.actions.model import CheckpointMetadata
from deltalog.storage.pool import read_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog.protocol.actions.model import (
        Action,
        DomainMetadata,
        RowIdHighWaterMark,
        SetTransaction,
        Sidecar,
    )
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.protocol.stats.parse import AddBatch, StatsLeaf
    from deltalog.storage.store import Store


_BATCH_ROWS: Final = 1 << 15
# The number of batches that are encoded while a row group is written. Encoding them takes about as
# long as writing the row group.
_BATCHES_AHEAD: Final = 3
_SIDECAR_ROWS: Final = 1_000_000
_CLASSIC_KINDS: Final = ("txn", "add", "remove", "metaData", "protocol", "domainMetadata")
AFTER_ALL_PATHS: Final = "\U0010ffff"


class CheckpointLayout(Enum):
    """The layouts that can be written."""

    CLASSIC = "classic"  # one Parquet file, or several parts
    V2_JSON = "v2 json"
    V2_PARQUET = "v2 parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointContent:
    """The state that a checkpoint contains.

    Args:
        version: the table's version.
        configuration: the configuration of the table at this version.
        time_zone: time zone of partition values without a zone.
        transactions: the latest transaction of each application, without expired transactions.
        domains: the metadata domains, without removed domains.
        high_water_mark: the action `rowIdHighWaterMark` of the protocol's draft; None without it.
        tombstones: the unexpired tombstones; the columns are the members of `REMOVE_TYPE`.
        paths: returns the paths of the live files; called only for multi-part checkpoints.
        iter_adds: returns the live files in batches, with the requested statistics.
    """

    version: int
    configuration: TableConfiguration
    time_zone: str
    transactions: Sequence[SetTransaction]
    domains: Sequence[DomainMetadata]
    high_water_mark: RowIdHighWaterMark | None
    tombstones: pa.Table
    paths: Callable[[], pa.ChunkedArray[Any]]
    iter_adds: Callable[[Sequence[StatsLeaf], int], Iterator[AddBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCheckpoint:
    """The result of writing a checkpoint.

    Args:
        files: the top-level files of the checkpoint.
        sidecars: the sidecars of a V2 checkpoint.
        num_adds: number of live files.
        num_removes: number of tombstones.
    """

    files: CheckpointFiles
    sidecars: tuple[Sidecar, ...] = ()
    num_adds: int
    num_removes: int

    @property
    def paths(self) -> list[str]:
        """The paths of top-level files and sidecars, relative to the table's root."""
        return [*(file.path for file in self.files.files), *_paths_of(self.sidecars)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSidecars:
    """Sidecars to which no checkpoint refers yet.

    Args:
        sidecars: the `sidecar` actions for the top-level file.
        num_adds: number of live files.
        num_removes: number of tombstones.
    """

    sidecars: tuple[Sidecar, ...]
    num_adds: int
    num_removes: int

    @property
    def paths(self) -> list[str]:
        """The paths of the sidecars, relative to the table's root."""
        return _paths_of(self.sidecars)


def _paths_of(sidecars: Sequence[Sidecar]) -> list[str]:
    return [f"{names.SIDECAR_DIRECTORY}/{sidecar.path}" for sidecar in sidecars]


def write_checkpoint(
    store: Store,
    content: CheckpointContent,
    *,
    layout: CheckpointLayout = CheckpointLayout.CLASSIC,
    part_rows: int | None = None,
) -> WrittenCheckpoint:
    """Write a checkpoint.

    A V2 checkpoint is valid when its top-level file is written, after the sidecars. A multi-part
    checkpoint is valid when all parts are written.

    Args:
        store: the table's store.
        content: the checkpoint's content.
        layout: the checkpoint's layout.
        part_rows: maximum number of rows in a part or sidecar. None means one file for a classic
            checkpoint, and a default size for sidecars.

    Raises:
        AlreadyExistsError: the checkpoint already exists.
        InvalidInputError: the table does not allow the layout.

    Protocol: Checkpoints
    Cost: one pass over the live files, with a few batches in memory. For a remote store, one file
    is also in memory.
    """
    check_layout(store, content.configuration, layout, part_rows)
    if layout is CheckpointLayout.CLASSIC:
        return _write_classic(store, content, part_rows)
    sidecars = write_sidecars(store, content, part_rows=part_rows)
    # If writing the top-level file fails, do not delete the sidecars, because the file may exist
    # nevertheless. The cleanup of the log deletes sidecars to which no checkpoint refers.
    return write_v2_top(store, content, layout, [sidecars])


def check_layout(
    store: Store,
    configuration: TableConfiguration,
    layout: CheckpointLayout,
    part_rows: int | None,
) -> None:
    """Raise if the table does not allow the layout.

    Raises:
        InvalidInputError: the layout is V2, but the table lacks the feature `v2Checkpoint`; or the
            checkpoint has several parts, and the table has this feature.
    """
    v2 = configuration.supports("v2Checkpoint")
    if layout is not CheckpointLayout.CLASSIC and not v2:
        raise InvalidInputError(
            f"cannot write a V2 checkpoint of {store.root}: the table does not have the table "
            "feature v2Checkpoint"
        )
    if layout is CheckpointLayout.CLASSIC and part_rows is not None and v2:
        raise InvalidInputError(
            f"cannot write a checkpoint of {store.root} in parts: the table feature v2Checkpoint "
            "forbids it"
        )


def small_actions(content: CheckpointContent) -> list[Action]:
    """Return all actions except file actions, in an order that depends only on the actions."""
    configuration = content.configuration
    marks = [] if content.high_water_mark is None else [content.high_water_mark]
    return [
        configuration.protocol,
        configuration.metadata,
        *sorted(content.transactions, key=lambda txn: txn.app_id),
        *sorted(content.domains, key=lambda domain: domain.domain),
        *marks,
    ]


def _write_classic(
    store: Store, content: CheckpointContent, part_rows: int | None
) -> WrittenCheckpoint:
    small, rows = small_actions(content), classic_rows(content)
    starts = [] if part_rows is None else _part_starts(store, content, part_rows)
    version = content.version
    if part_rows is None:
        paths = [names.log_path(names.checkpoint_name(version))]
    else:
        paths = part_paths(version, len(starts) + 1)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(RowFile(store, path, rows.schema)) for path in paths]
        files[0].write(rows.values(small))
        for tables in file_rows(content, rows):
            for file in files:
                file.begin_kind()
            for table in tables:
                _spread(files, starts, table)
        num_adds = sum(file.num_rows for file in files) - len(small) - content.tombstones.num_rows
    kind = CheckpointKind.CLASSIC if part_rows is None else CheckpointKind.MULTI_PART
    return WrittenCheckpoint(
        files=CheckpointFiles(version=version, kind=kind, files=tuple(file.info for file in files)),
        num_adds=num_adds,
        num_removes=content.tombstones.num_rows,
    )


def write_sidecars(
    store: Store, content: CheckpointContent, *, part_rows: int | None = None
) -> WrittenSidecars:
    """Write live files and tombstones to sidecars, to which no checkpoint refers yet.

    Args:
        store: the table's store.
        content: contains all or some live files and tombstones of the version. Other actions are
            not written.
        part_rows: maximum number of rows in a sidecar; None means the default.

    Protocol: Sidecar Files
    """
    rows = ActionRows(content.configuration, FILE_KINDS, time_zone=content.time_zone)
    sidecars = Sidecars(store, rows.schema, part_rows or _SIDECAR_ROWS)
    try:
        for tables in file_rows(content, rows):
            sidecars.begin_kind()
            for table in tables:
                sidecars.write(table)
        written = sidecars.close()
    except BaseException:
        sidecars.abandon()
        raise
    removes = content.tombstones.num_rows
    return WrittenSidecars(
        sidecars=tuple(written), num_adds=sidecars.num_rows - removes, num_removes=removes
    )


def write_v2_top(
    store: Store,
    content: CheckpointContent,
    layout: CheckpointLayout,
    written: Sequence[WrittenSidecars],
) -> WrittenCheckpoint:
    """Write the top-level file of a V2 checkpoint, which makes the checkpoint valid.

    Args:
        store: the table's store.
        content: contains the actions of the top-level file. Live files and tombstones are not used.
        layout: whether the file is JSON or Parquet.
        written: the sidecars with live files and tombstones.

    Protocol: V2 Spec
    """
    sidecars = tuple(sidecar for part in written for sidecar in part.sidecars)
    version = content.version
    top = [CheckpointMetadata(version=version), *sidecars, *small_actions(content)]
    info = _write_top(store, content, layout, top)
    return WrittenCheckpoint(
        files=CheckpointFiles(version=version, kind=CheckpointKind.V2, files=(info,)),
        sidecars=sidecars,
        num_adds=sum(part.num_adds for part in written),
        num_removes=sum(part.num_removes for part in written),
    )


def classic_rows(content: CheckpointContent) -> ActionRows:
    """Return the object that converts actions to rows of a classic checkpoint."""
    return _rows(content, *_CLASSIC_KINDS)


def _rows(content: CheckpointContent, *kinds: str) -> ActionRows:
    draft = () if content.high_water_mark is None else ("rowIdHighWaterMark",)
    return ActionRows(
        content.configuration,
        (*kinds, *draft),
        time_zone=content.time_zone,
        domains=content.domains,
    )


def part_paths(version: int, parts: int) -> list[str]:
    """Return the paths of the parts of a multi-part checkpoint."""
    return [
        names.log_path(names.checkpoint_part_name(version, number + 1, parts))
        for number in range(parts)
    ]


def _write_top(
    store: Store, content: CheckpointContent, layout: CheckpointLayout, actions: Sequence[Action]
) -> FileInfo:
    suffix = "json" if layout is CheckpointLayout.V2_JSON else "parquet"
    path = names.log_path(names.v2_checkpoint_name(content.version, str(uuid.uuid4()), suffix))
    if layout is CheckpointLayout.V2_JSON:
        data = encode_actions(actions)
        store.put_if_absent(path, data)
        return FileInfo(path, len(data), now_ms())
    rows = _rows(content, "checkpointMetadata", "sidecar", *_CLASSIC_KINDS)
    with RowFile(store, path, rows.schema) as file:
        file.write(rows.values(actions))
    return file.info


def file_rows(
    content: CheckpointContent, rows: ActionRows
) -> tuple[Iterator[pa.Table], Iterator[pa.Table]]:
    """Return the rows of the tombstones, and those of the live files."""
    return _remove_rows(content, rows), _add_rows(content, rows)


def _remove_rows(content: CheckpointContent, rows: ActionRows) -> Iterator[pa.Table]:
    for start in range(0, content.tombstones.num_rows, _BATCH_ROWS):
        yield rows.removes(content.tombstones.slice(start, _BATCH_ROWS))


def _add_rows(content: CheckpointContent, rows: ActionRows) -> Iterator[pa.Table]:
    """Yield the rows of the live files. The next batches are encoded while a batch is written."""

    def encode(batch: AddBatch) -> pa.Table:
        return rows.adds(*batch.decode())

    batches = content.iter_adds(rows.leaves, _BATCH_ROWS)
    head = list(islice(batches, 2))
    if len(head) < 2:
        yield from map(encode, head)  # for one batch, a thread would save no time
    else:
        yield from read_ahead(encode, chain(head, batches), depth=_BATCHES_AHEAD)


def _part_starts(store: Store, content: CheckpointContent, part_rows: int) -> list[str]:
    """Return the first path of every part except the first part.

    The paths depend only on the live files, so that two writers of the same version write equal
    parts.
    """
    paths = content.paths()
    parts = count_parts(store, content.version, len(paths), part_rows)
    if not len(paths):
        return [AFTER_ALL_PATHS] * (parts - 1)
    order = compute.sort_indices(paths)
    return [paths[order[place].as_py()].as_py() for place in part_places(len(paths), parts)]


def count_parts(store: Store, version: int, num_files: int, part_rows: int) -> int:
    """Return the number of parts of a multi-part checkpoint."""
    parts = max(1, -(-num_files // max(part_rows, 1)))
    # A failed attempt may have written parts with other ranges of paths. File names contain the
    # number of parts, so choose a number for which there are no files.
    taken = {
        file.parts
        for info in store.list_from(LOG_DIRECTORY, names.first_name_of(version))
        if (file := names.parse_log_name(info)) and file.version == version
    }
    while parts in taken:
        parts += 1
    return parts


def part_places(num_files: int, parts: int) -> list[int]:
    """Return the positions in the sorted paths at which parts begin, except the first part."""
    return [num_files * number // parts for number in range(1, parts)]


def _spread(files: Sequence[RowFile], starts: Sequence[str], rows: pa.Table) -> None:
    """Write each row to the part whose range contains its path.

    Protocol: Multi-part checkpoint (rows are clustered by path; one logical file has one path)
    """
    # The protocol: "The data must be clustered (either through hash or range partitioning) by the
    # 'path' of an added or removed file, or null otherwise."
    if not starts:
        files[0].write(rows)
        return
    part = part_numbers(starts, rows)
    for number, file in enumerate(files):
        chosen = rows.filter(compute.equal(part, number))
        if chosen.num_rows:
            file.write(chosen)


def part_numbers(starts: Sequence[str], rows: pa.Table) -> Any:
    """Return for each row the number of its part, counted from 0.

    Args:
        starts: the first path of every part except the first part.
        rows: rows of live files or tombstones.

    Protocol: Multi-part checkpoint
    """
    paths = compute.coalesce(
        *(compute.struct_field(rows.column(kind), "path") for kind in FILE_KINDS)
    )
    part = arrow.repeat(pa.scalar(0), len(paths))
    for start in starts:
        part = compute.add(part, compute.greater_equal(paths, start).cast(pa.int64()))
    return part
