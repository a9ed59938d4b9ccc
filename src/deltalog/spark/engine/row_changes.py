"""Changes of rows, planned on the driver and done on the cluster.

Owns what is common to deletes, updates and merges: a frame tells for each row what is done to it,
tasks write new versions and say where the old ones are, and the driver decides what becomes of the
files that hold them: vectors are small and written here, rows that stay are copied by tasks. No row
passes the driver.

Protocol: Deletion Vectors, Add File and Remove File, Add CDC File
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog import metadata_columns
from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.deletion_vectors import DeletionBitmap
from deltalog.errors import AmbiguousMergeError, DeltaError, InternalError
from deltalog.kernels import compute
from deltalog.metadata_columns import METADATA
from deltalog.paths import decode_path, locations
from deltalog.rows.apply import Applied, mask_files
from deltalog.rows.changes import Action
from deltalog.rows.decide import FileDecision, decide_files
from deltalog.rows.find import MatchingFiles
from deltalog.scan.plan import TASK_COLUMNS, make_task, read_spec
from deltalog.spark.engine.row_tasks import (
    FILE,
    ROW,
    ROW_ID,
    CopySpec,
    RowsDone,
    RowSpec,
    change_task,
    copy_task,
)
from deltalog.spark.reading.conditions import Condition
from deltalog.spark.reading.options import MAX_PARTITION_BYTES
from deltalog.spark.reading.splits import split_tasks
from deltalog.spark.session.parts import no_files, run_tasks, told
from deltalog.spark.session.types import quoted
from deltalog.storage.parquet import read_footer
from deltalog.write.written import WrittenFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from deltalog.expressions import Expression
    from deltalog.rows.files import FileOptions
    from deltalog.snapshot import Snapshot
    from deltalog.spark.reading.scan import SparkScan
    from deltalog.transaction import PendingTransaction
    from deltalog.write.spec import WriteSpec

_IDS: Final = (metadata_columns.ROW_ID, metadata_columns.ROW_COMMIT_VERSION)
TARGET: Final = "__deltalog_target"
"""The struct of a row of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Rows of the table that may be concerned.

    Args:
        frame: the table's columns, `FILE`, `ROW`, and `ROW_ID` where the table has row ids.
        files: rows of `snapshot.files` that pruning left.
        pruning: true of every row that may be concerned; None is any row.
        num_records: physical rows of each file; NULL where the log does not tell.
        num_table_files: how many files the table has.
    """

    frame: DataFrame
    files: pa.Table
    pruning: Expression | None
    num_records: pa.ChunkedArray[Any]
    num_table_files: int


def find_rows(scan: SparkScan, pruning: Expression | None, alias: str | None) -> Found:
    """The rows of a version as a frame that says where each of them is.

    Args:
        scan: of the version, without conditions.
        pruning: true of every row that may be concerned; None is any row.
        alias: under which conditions know the table.
    """
    snapshot = scan.snapshot
    ids = _IDS[:1] if snapshot.configuration.row_ids_enabled else ()
    wanted = replace(
        scan,
        metadata_columns=(metadata_columns.FILE_PATH, metadata_columns.ROW_INDEX, *ids),
        lists_files=True,
    )
    if pruning is not None:
        all_rows = F.expr("true")
        prunes = Condition(column=all_rows, pruning=pruning, used=frozenset(), text="true")
        wanted = replace(wanted, conditions=(prunes,))
    frame = wanted.to_df()
    names = snapshot.configuration.schema.names
    hidden = [
        F.col(METADATA)["file_path"].alias(FILE),
        F.col(METADATA)["row_index"].alias(ROW),
        *([F.col(METADATA)["row_id"].alias(ROW_ID)] if ids else []),
    ]
    frame = frame.select(*(F.col(quoted(name)) for name in names), *hidden)
    pruned = wanted.pruned
    return Found(
        frame=frame if alias is None else frame.alias(alias),
        files=pruned.files(FILE_SCHEMA.names),
        pruning=pruning,
        num_records=pruned.num_records(),
        num_table_files=pruned.num_files,
    )


def row_struct(names: Sequence[str]) -> Column:
    """A row of the frame as one struct."""
    return F.struct(*(F.col(quoted(name)).alias(name) for name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What has been done to rows and files.

    Args:
        counts: rows by step.
        applied: what was done to files that hold old versions.
        num_touched_files: those.
        num_added_files: new data files.
        num_added_bytes: size of those.
        num_change_files: files for the change feed.
    """

    counts: tuple[int, ...]
    applied: Applied = field(default_factory=Applied)
    num_touched_files: int = 0
    num_added_files: int = 0
    num_added_bytes: int = 0
    num_change_files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of rows that is about to happen.

    Args:
        pending: of an existing table.
        options: of new files.
        found: rows that may be concerned.
        frame: for each row that changes: `STEP`, `FILE` and `ROW`, and what the step needs.
        steps: what is done to rows, by number.
        allows_repeats: whether a row may be named more than once.
        use_deletion_vectors: None chooses, as the core does.
    """

    pending: PendingTransaction
    options: FileOptions
    found: Found
    frame: DataFrame
    steps: tuple[Action, ...]
    allows_repeats: bool = True
    use_deletion_vectors: bool | None = None

    def run(self) -> tuple[MatchingFiles, Done]:
        """Do it, and stage what was done.

        Raises:
            AmbiguousMergeError: a row is named more than once, and must not be.
            ConstraintViolationError: new rows break a rule of the table.
        """
        pending, snapshot = self.pending, snapshot_of(self.pending)
        spec = self.options.spec_for(pending)
        tells = snapshot.configuration.change_data_feed_enabled
        rows = RowSpec(spec=spec, steps=self.steps, tells_changes=tells)
        done = united(
            spec,
            run_tasks(
                self.frame, partial(change_task, rows), f"changing rows of {snapshot.store.root}"
            ),
        )
        pending.add_files(done.written)
        if not self.allows_repeats:
            self._check_repeats(done.places)
        matching = self._matching(snapshot, done.places)
        decisions = decide_files(snapshot, matching, asked=self.use_deletion_vectors)
        copied = self._apply(spec, matching, decisions)
        return matching, Done(
            counts=done.counts or (0,) * len(self.steps),
            applied=_applied(matching, decisions, sum(copied.counts)),
            num_touched_files=matching.files.num_rows,
            num_added_files=len(done.written.adds) + len(copied.written.adds),
            num_added_bytes=sum(
                add.size_bytes for add in (*done.written.adds, *copied.written.adds)
            ),
            num_change_files=len(pending.cdc),
        )

    def _check_repeats(self, places: Mapping[str, tuple[int, DeletionBitmap]]) -> None:
        repeated = {name: n - len(rows) for name, (n, rows) in places.items() if n > len(rows)}
        if repeated:
            name = next(iter(repeated))
            raise AmbiguousMergeError(
                f"cannot merge into {self.pending.store.root}: several rows of the source match "
                f"the same row of the table, {sum(repeated.values())} times, for example in "
                f"{name!r}; make the source's keys unique, or the condition more exact"
            )

    def _matching(
        self, snapshot: Snapshot, places: Mapping[str, tuple[int, DeletionBitmap]]
    ) -> MatchingFiles:
        files = self.found.files
        where = locations(files.column("path"), snapshot.store.root)
        names = pa.array(list(places), pa.string())
        found = compute.index_in(names, value_set=where)
        if found.null_count:
            raise InternalError(f"rows were found in files that {snapshot.store.root} has not")
        order = compute.sort_indices(found)
        numbers = found.take(order)
        matching = files.take(numbers)
        named: list[Any] = names.take(order).to_pylist()
        paths: list[Any] = matching.column("path").to_pylist()
        known: list[int | None] = self.found.num_records.take(numbers).to_pylist()
        return MatchingFiles(
            files=matching,
            positions=tuple(places[name][1].to_arrow() for name in named),
            num_records=tuple(
                read_footer(snapshot.store, decode_path(path)).num_rows if rows is None else rows
                for path, rows in zip(paths, known, strict=True)
            ),
            num_candidates=files.num_rows,
        )

    def _apply(
        self, spec: WriteSpec, matching: MatchingFiles, decisions: Sequence[FileDecision]
    ) -> RowsDone:
        """Stage what becomes of the files that hold old versions."""
        masked = [
            number for number, decision in enumerate(decisions) if decision is FileDecision.MASKED
        ]
        gone = [
            number
            for number, decision in enumerate(decisions)
            if decision is not FileDecision.MASKED
        ]
        self.pending.remove_files(matching.files.take(pa.array(gone, pa.int64())), data_change=True)
        if masked:
            mask_files(self.pending, matching, masked)
        cut = [
            number
            for number, decision in enumerate(decisions)
            if decision is FileDecision.REWRITTEN
        ]
        if not cut:
            return RowsDone(written=no_files(spec), counts=(0,))
        copied = self._copy(spec, matching, cut)
        self.pending.add_files(copied.written)
        return copied

    def _copy(self, spec: WriteSpec, matching: MatchingFiles, cut: Sequence[int]) -> RowsDone:
        """Let tasks write the rows that stay."""
        snapshot = snapshot_of(self.pending)
        ids = _IDS if snapshot.configuration.row_ids_enabled else ()
        reads = read_spec(
            snapshot,
            columns=[*snapshot.configuration.schema.names, *ids],
            predicate=None,
        )
        rows = matching.files.take(pa.array(cut, pa.int64())).select(TASK_COLUMNS).to_pylist()
        tasks = [make_task(snapshot, reads, row) for row in rows]
        gone = {}
        for number, task in zip(cut, tasks, strict=True):
            positions = matching.positions[number]
            gone[task.path] = (
                DeletionBitmap() if positions is None else DeletionBitmap.from_arrow(positions)
            )
        groups = split_tasks(tasks, MAX_PARTITION_BYTES)
        copy = CopySpec(
            spec=spec,
            groups=tuple(tuple((task, gone[task.path]) for task in group) for group in groups),
        )
        spark = self.frame.sparkSession
        numbers = spark.range(0, len(groups), 1, len(groups))
        return united(
            spec,
            run_tasks(numbers, partial(copy_task, copy), f"copying rows of {snapshot.store.root}"),
        )


def united(spec: WriteSpec, messages: Iterable[bytes]) -> RowsDone:
    """What all tasks have done together.

    Raises:
        DeltaError: what is wrong with the rows of some task; the others' files are removed.
    """
    parts: list[RowsDone] = []
    errors: list[DeltaError] = []
    for message in messages:
        try:
            parts.append(told(message))
        except DeltaError as error:
            errors.append(error)
    if errors:
        spec.store.delete_many([path for part in parts for path in part.written.paths])
        raise errors[0]
    places: dict[str, tuple[int, DeletionBitmap]] = {}
    for part in parts:
        for name, (count, rows) in part.places.items():
            known = places.get(name)
            places[name] = (count, rows) if known is None else (known[0] + count, known[1] | rows)
    if not parts:
        return RowsDone(written=no_files(spec), counts=())
    return RowsDone(
        written=WrittenFiles.merge([part.written for part in parts]),
        counts=tuple(sum(numbers) for numbers in zip(*(p.counts for p in parts), strict=True)),
        places=places,
    )


def _applied(matching: MatchingFiles, decisions: Sequence[FileDecision], copied: int) -> Applied:
    vectors: list[Any] = matching.files.column("deletionVector").to_pylist()
    had = [vector is not None for vector in vectors]
    masked = [decision is FileDecision.MASKED for decision in decisions]
    gone = matching.files.filter(pa.array([not one for one in masked], pa.bool_()))
    return Applied(
        num_copied_rows=copied,
        num_removed_files=gone.num_rows,
        num_removed_bytes=compute.sum(gone.column("size")).as_py() or 0,
        num_rewritten_files=sum(decision is FileDecision.REWRITTEN for decision in decisions),
        num_vectors_added=sum(masked),
        num_vectors_updated=sum(one and two for one, two in zip(masked, had, strict=True)),
        num_vectors_removed=sum(had),
    )


def snapshot_of(pending: PendingTransaction) -> Snapshot:
    """The version that a change stands on."""
    if pending.snapshot is None:
        raise InternalError("there is nothing to change in a table that is to be made")
    return pending.snapshot
