"""Vacuum's work on files, done by tasks: listing directories, deleting files.

Owns the distribution, and the rule that a task works only if it sees the table: on another machine
a local path may be another directory, or none. A task first looks for a file of the log as the
driver sees it; if it is not there, the driver does the task's work.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.engine.listing import listed_below, listed_files, listing_of
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.log.listing import list_for_version
from deltalog.log.names import commit_path
from deltalog.spark.session.tasks import decode_message, run_numbered, run_tasks
from deltalog.storage import LevelStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from deltalog.configuration import TableConfiguration
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store

FILES_PER_TASK: Final = "spark.deltalog.vacuum.filesPerTask"
"""Session setting: files that a task deletes; up to this number the driver deletes them."""
_FILES_PER_TASK: Final = 5_000
_MOST_TASKS: Final = 256
_LOG: Final = "_delta_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec:
    """What tasks need to list directories or to delete files.

    Args:
        store: of the table.
        witness: a file of the log, as the driver sees it.
        configuration: of the table, where it is listed.
        groups: directories for each task of a listing.
    """

    store: Store
    witness: FileInfo
    configuration: TableConfiguration | None = None
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether this process sees the table that the driver sees."""
        try:
            return self.store.stat(self.witness.path) == self.witness
        except DeltaError:
            return False


def list_by_tasks(spark: SparkSession, store: Store, configuration: TableConfiguration) -> pa.Table:
    """List the files of a table like `engine.listing.listed_files`.

    Cost: the driver lists the first levels of directories, and tasks everything below.
    """
    files_per_task(spark)  # raises for a wrong setting before anything is listed
    witness = _witness(store)
    if witness is None or not isinstance(store, LevelStore):
        return listed_files(store, configuration)
    infos, directories = _first_levels(store)
    found = [listing_of(infos, configuration)]
    if directories:
        count = min(len(directories), _MOST_TASKS)
        spec = SweepSpec(
            store=store,
            configuration=configuration,
            witness=witness,
            groups=tuple(tuple(directories[start::count]) for start in range(count)),
        )
        what = f"listing {store.root}"
        for message in run_numbered(spark, count, partial(list_task, spec), what):
            part = decode_message(message)
            if isinstance(part, tuple):  # of a task that does not see the table
                found += [listed_below(store, one, configuration) for one in part]
            else:
                found.append(part)
    return pa.concat_tables(found)


def delete_by_tasks(spark: SparkSession, store: Store, paths: Sequence[str]) -> None:
    """Delete files; missing ones are no error.

    Raises:
        StorageError: some could not be deleted.
    """
    together = files_per_task(spark)
    witness = None if len(paths) <= together else _witness(store)
    if witness is None:
        store.delete_many(paths)
        return
    # As rows: a closure would bring all of them to every task.
    frame = spark.createDataFrame(pa.table({"path": pa.array(paths, pa.string())}))
    frame = frame.repartition(-(-len(paths) // together))
    spec = SweepSpec(store=store, witness=witness)
    what = f"deleting {len(paths)} files of {store.root}"
    errors: list[DeltaError] = []
    for message in run_tasks(frame, partial(delete_task, spec), what):
        try:
            left: list[str] = decode_message(message)
            if left:
                store.delete_many(left)
        except DeltaError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _witness(store: Store) -> FileInfo | None:
    """Return the newest published commit; None if there is none."""
    try:
        commits = list_for_version(store).commits
        return store.stat(commit_path(max(commits))) if commits else None
    except DeltaError:
        return None


def list_task(spec: SweepSpec, number: int) -> pa.Table | tuple[str, ...]:
    """List the directories of a task.

    Returns:
        A table as of `listed_files`, or the directories, if the driver has to list them.
    """
    wanted = spec.groups[number]
    if not spec.is_there or spec.configuration is None:
        return wanted
    return pa.concat_tables([listed_below(spec.store, name, spec.configuration) for name in wanted])


def delete_task(spec: SweepSpec, batches: Iterable[pa.RecordBatch]) -> list[str] | DeltaError:
    """Delete the files of a task.

    Returns:
        The paths that the driver has to delete, or an error that Spark must not retry.
    """
    paths = [str(path) for batch in batches for path in batch.column(0).to_pylist()]
    if not paths or not spec.is_there:
        return paths
    try:
        spec.store.delete_many(paths)
    except DeltaError as error:
        return error
    return []


def _first_levels(store: LevelStore) -> tuple[list[FileInfo], list[str]]:
    """Return the files of the first levels, and the directories below which tasks list."""
    files, level = store.list_level("")
    level = [name for name in level if name != _LOG]
    while len(level) == 1:  # a single task would do all the work
        infos, level = store.list_level(level[0])
        files += infos
    return files, level


def files_per_task(spark: SparkSession) -> int:
    """Return how many files a task deletes.

    Raises:
        InvalidInputError: the session's setting is no number above 0.
    """
    text = spark.conf.get(FILES_PER_TASK, None) or str(_FILES_PER_TASK)
    if not text.isdecimal() or not int(text):
        raise InvalidInputError(f"cannot take {FILES_PER_TASK}={text!r}: expected a number above 0")
    return int(text)
