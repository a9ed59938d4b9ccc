"""Prune files in tasks: in tables with very many files, tasks read the checkpoint, not the driver.

This module decides when tasks prune, and sends the pieces of a version's state to tasks. The core
decides which log entries belong to a piece, which files are live, and which may contain matching
rows.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog.data.scan.prune import Pruned, PruningParts, prune
from deltalog.errors import CheckpointUnreadableError, InvalidInputError, ObjectNotFoundError
from deltalog.log.snapshot.splits import SHARE_BYTES, CutSnapshot, cut_snapshot
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.spark.session.tasks import decode_message, run_numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.log.snapshot.state import LogState

MOST_FILES_HERE: Final = "spark.deltalog.stateOnSparkFiles"
"""Session setting: the maximum number of files for which the driver reads a version's state. If a
version has more files, tasks read the state."""
DEFAULT_FILES_HERE: Final = 200_000
NUM_RECORDS: Final = "numRecords"


def most_files_here(spark: SparkSession, asked: int | None = None) -> int:
    """Return the maximum number of files of a version whose state the driver reads itself.

    Args:
        spark: the session, whose setting is the default.
        asked: the number that the caller requests; None means the session's setting.

    Raises:
        InvalidInputError: the setting is not a whole number.
    """
    text = spark.conf.get(MOST_FILES_HERE, None) if asked is None else str(asked)
    if text is None:
        return DEFAULT_FILES_HERE
    if not text.strip().isdecimal():
        raise InvalidInputError(
            f"cannot use {text!r} for {MOST_FILES_HERE}: expected a whole number of files, 0 or "
            "more"
        )
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneSpec:
    """The input of the tasks that prune the files of pieces.

    Args:
        cut: the pieces of the version.
        predicate: the resolved predicate; None selects all files.
        names: the columns to return for the files that remain after pruning.
        most_rows: the maximum number of files that a task returns. For a piece with more files, the
            task returns only their number and total size.
    """

    cut: CutSnapshot
    predicate: Expression | None
    names: tuple[str, ...]
    most_rows: int | None


@dataclass(slots=True, kw_only=True)
class PieceAccount:
    """The outcome of pruning one piece.

    Args:
        number: the number of the piece.
        files: the remaining files, with the columns `PruneSpec.names` and `numRecords`; None if
            there are too many files.
    """

    number: int
    files: pa.Table | None = None
    num_files: int = 0
    num_by_partition: int = 0
    num_by_statistics: int = 0
    num_left: int = 0
    left_bytes: int = 0
    is_exact: bool = True
    parts: PruningParts = field(default_factory=PruningParts)

    def add(self, pruned: Pruned) -> None:
        """Add the outcome of pruning a part of the piece."""
        self.num_files += pruned.num_files
        self.num_by_partition += pruned.num_by_partition
        self.num_by_statistics += pruned.num_by_statistics
        self.num_left += _num_left(pruned)
        self.is_exact &= pruned.is_exact
        self.parts = max(self.parts, pruned.parts, key=lambda parts: parts.number)


@dataclass(frozen=True, slots=True)
class PrunedOnCluster(Pruned):
    """The outcome of pruning all pieces, on the driver.

    Args:
        left: the remaining files, with the column `numRecords`; None if there are too many files
            for the driver.
        num_left: the number of remaining files.
        left_bytes: the total size of the remaining files.
    """

    left: pa.Table | None = field(default=None, kw_only=True)
    num_left: int = field(default=0, kw_only=True)
    left_bytes: int = field(default=0, kw_only=True)

    def files(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the files that remain after pruning."""
        return self._here().select(list(names))

    def num_records(self) -> pa.ChunkedArray[Any]:
        """Return the number of physical rows of each file; NULL if the file has no statistics."""
        counts: pa.ChunkedArray[Any] = self._here().column(NUM_RECORDS)
        return counts

    def _here(self) -> pa.Table:
        if self.left is None:
            raise InvalidInputError(
                f"cannot list {self.num_left} files of {self.snapshot.store.root} on the driver: "
                f"increase {MOST_FILES_HERE}, or use a condition that selects fewer files"
            )
        return self.left


def prune_on_cluster(
    spark: SparkSession,
    snapshot: Snapshot,
    predicate: Expression | None,
    *,
    names: Sequence[str] = tuple(FILE_SCHEMA.names),
    most_files: int | None = None,
    share_bytes: int = SHARE_BYTES,
) -> PrunedOnCluster:
    """Prune files in tasks, for a version with very many files.

    Args:
        spark: the session.
        snapshot: the version.
        predicate: the predicate, resolved against the schema of the snapshot. None selects all
            files.
        names: the columns of `FILE_SCHEMA` to send to the driver.
        most_files: the maximum number of remaining files to send to the driver; None means no
            limit.
        share_bytes: the number of bytes of the checkpoint that one task reads.

    Raises:
        CheckpointUnreadableError: the checkpoint is damaged, and no other log files can replace it.

    Cost: one job, whose tasks read from the checkpoint the columns of the predicate for all files,
        and
    the columns `names` for the remaining files. The driver reads the commits after the checkpoint,
    and needs memory for the remaining files.
    """

    def run(state: LogState) -> PrunedOnCluster:
        cut = cut_snapshot(snapshot, state, share_bytes=share_bytes)
        spec = PruneSpec(
            cut=cut,
            predicate=predicate,
            names=tuple(names),
            # With this limit per piece, the total of all pieces cannot exceed `most_files`.
            most_rows=None if most_files is None else most_files // cut.num_pieces,
        )
        accounts = _ask(spark, spec, range(cut.num_pieces))
        num_left = sum(one.num_left for one in accounts)
        withheld = [one.number for one in accounts if one.files is None]
        if withheld and most_files is not None and num_left <= most_files:
            again = _ask(spark, replace(spec, most_rows=None), withheld)
            found = {one.number: one for one in [*accounts, *again]}
            accounts = [found[number] for number in range(cut.num_pieces)]
        return united(snapshot, accounts)

    return snapshot.read_log(run)


def on_pieces(
    spark: SparkSession, numbers: Sequence[int], work: Callable[[int], Any], what: str
) -> list[Any]:
    """Evaluate a function for some pieces, one task per piece.

    Args:
        spark: the session.
        numbers: the numbers of the pieces.
        work: a function that returns the result for the number of a piece.
        what: a description of the job for Spark's UI.

    Raises:
        CheckpointUnreadableError, ObjectNotFoundError: log files cannot be read. If the caller runs
            within `Snapshot.read_log`, that method then tries other log files.
    """
    given = list(numbers)
    messages = run_numbered(spark, len(given), partial(_answer, given, work), what)
    return [decode_message(message) for message in messages]


def _answer(numbers: Sequence[int], work: Callable[[int], Any], place: int) -> Any:
    try:
        return work(numbers[place])
    except (CheckpointUnreadableError, ObjectNotFoundError) as error:
        return error  # the driver raises the error; Spark would retry a task that raises it


def _ask(spark: SparkSession, spec: PruneSpec, numbers: Sequence[int]) -> list[PieceAccount]:
    what = f"pruning files of {spec.cut.snapshot.store.root}"
    found = on_pieces(spark, numbers, partial(prune_piece, spec), what)
    return sorted(found, key=lambda one: one.number)


def prune_piece(spec: PruneSpec, number: int) -> PieceAccount:
    """Prune the files of one piece, in a task.

    Cost: memory for one row group and the remaining files.
    """
    account = PieceAccount(number=number)
    tables: list[pa.Table] = []
    for piece in spec.cut.small_pieces(number):
        pruned = prune(piece, spec.predicate)
        account.add(pruned)
        if not _num_left(pruned):
            continue
        account.left_bytes += compute.sum(pruned.files(["size"]).column("size")).as_py() or 0
        if spec.most_rows is None or account.num_left <= spec.most_rows:
            tables.append(files_of(pruned, spec.names))
        else:
            tables = []
    if spec.most_rows is None or account.num_left <= spec.most_rows:
        account.files = pa.concat_tables([_no_files(spec.names), *tables])
    return account


def files_of(pruned: Pruned, names: Sequence[str]) -> pa.Table:
    """Return columns of the files that remain after pruning, followed by their `numRecords`."""
    return pruned.files(names).append_column(NUM_RECORDS, pruned.num_records())


def united(snapshot: Snapshot, accounts: Sequence[PieceAccount]) -> PrunedOnCluster:
    """Combine the outcomes of all pieces."""
    tables = [one.files for one in accounts if one.files is not None]
    is_here = len(tables) == len(accounts)
    return PrunedOnCluster(
        snapshot,
        None,
        sum(one.num_files for one in accounts),
        sum(one.num_by_partition for one in accounts),
        sum(one.num_by_statistics for one in accounts),
        is_exact=all(one.is_exact for one in accounts),
        parts=max((one.parts for one in accounts), key=lambda parts: parts.number),
        left=pa.concat_tables(tables) if is_here else None,
        num_left=sum(one.num_left for one in accounts),
        left_bytes=sum(one.left_bytes for one in accounts),
    )


def _num_left(pruned: Pruned) -> int:
    return pruned.num_files - pruned.num_by_partition - pruned.num_by_statistics


def _no_files(names: Sequence[str]) -> pa.Table:
    fields = [FILE_SCHEMA.field(name) for name in names]
    return pa.schema([*fields, pa.field(NUM_RECORDS, pa.int64())]).empty_table()
