"""The work that a vacuum does on files, done by tasks: listing directories, deleting files.

Owns how it is shared out, and that a task works only where it sees the table: one that runs on
another machine may see another directory of that name, or none. Before it does anything it looks
for a file of the log, as the driver sees it; what it must leave undone the driver does.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.log.names import commit_path
from deltalog.spark.session.parts import run_tasks, telling, told
from deltalog.storage import LevelStore
from deltalog.verbs.vacuum_candidates import listed_below, listed_files, listing_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from deltalog.configuration import TableConfiguration
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store

FILES_PER_TASK: Final = "spark.deltalog.vacuum.filesPerTask"
"""The session's setting: files that a task deletes; no more of them are deleted by the driver."""
_FILES_PER_TASK: Final = 5_000
_MOST_TASKS: Final = 256
_LOG: Final = "_delta_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec:
    """What tasks must know.

    Args:
        store: of the table.
        configuration: of the table.
        witness: a file of the log, as the driver sees it.
        groups: directories for each task of a listing.
    """

    store: Store
    configuration: TableConfiguration
    witness: FileInfo
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether this process sees the table that the driver sees."""
        try:
            return self.store.stat(self.witness.path) == self.witness
        except DeltaError:
            return False


class SparkHands:
    """Lists and deletes by tasks of a session.

    Args:
        spark: the session.
        version: of the table, whose commit tells tasks that they see it.
    """

    def __init__(self, spark: SparkSession, version: int) -> None:
        self._spark = spark
        self._version = version
        self._files_per_task = _number(spark, FILES_PER_TASK, _FILES_PER_TASK)

    def list_files(self, store: Store, configuration: TableConfiguration) -> pa.Table:
        """What the core's `listed_files` returns.

        Cost: the driver lists what lies directly in the table's directory, and tasks all that is
        below; without directories nothing is.
        """
        witness = self._witness(store)
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
            numbers = self._spark.range(0, count, 1, count)
            what = f"listing {store.root}"
            for message in run_tasks(numbers, partial(list_task, spec), what):
                part = told(message)
                if isinstance(part, list):  # of a task that does not see the table
                    found += [listed_below(store, one, configuration) for one in part]
                else:
                    found.append(part)
        return pa.concat_tables(found)

    def delete(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files; gone ones are no error.

        Raises:
            StorageError: some could not be deleted.
        """
        witness = self._witness(store)
        if witness is None or len(paths) <= self._files_per_task:
            store.delete_many(paths)
            return
        # As rows: a closure would bring all of them to every task.
        frame = self._spark.createDataFrame(pa.table({"path": pa.array(paths, pa.string())}))
        frame = frame.repartition(-(-len(paths) // self._files_per_task))
        configuration: Any = None
        spec = SweepSpec(store=store, configuration=configuration, witness=witness)
        what = f"deleting {len(paths)} files of {store.root}"
        errors: list[DeltaError] = []
        for message in run_tasks(frame, partial(delete_task, spec), what):
            try:
                left: list[str] = told(message)
                if left:
                    store.delete_many(left)
            except DeltaError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _witness(self, store: Store) -> FileInfo | None:
        try:
            return store.stat(commit_path(self._version))
        except DeltaError:  # a catalog has it
            return None


def list_task(spec: SweepSpec, batches: Iterable[pa.RecordBatch]) -> bytes:
    """List the directories of this task, whose number is in the batches.

    Returns:
        What `told` understands: a table as of `listed_files`, or the directories themselves.
    """
    wanted = [name for number in _values(batches) for name in spec.groups[int(number)]]
    if not spec.is_there:
        return telling(wanted)
    found = [listing_of((), spec.configuration)]
    found += [listed_below(spec.store, name, spec.configuration) for name in wanted]
    return telling(pa.concat_tables(found))


def delete_task(spec: SweepSpec, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Delete the files of this task.

    Returns:
        What `told` understands: the paths that are left to do, or an error.
    """
    paths = [str(path) for path in _values(batches)]
    if not paths or not spec.is_there:
        return telling(paths)
    try:
        spec.store.delete_many(paths)
    except DeltaError as error:
        return telling(error)
    return telling([])


def _first_levels(store: LevelStore) -> tuple[list[FileInfo], list[str]]:
    """Files of the first level, and directories below which everything is left to list."""
    files, level = store.list_level("")
    level = [name for name in level if name != _LOG]
    while len(level) == 1:  # one task would do all
        infos, level = store.list_level(level[0])
        files += infos
    return files, level


def _values(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _number(spark: SparkSession, name: str, default: int) -> int:
    text = spark.conf.get(name, str(default)) or ""
    if not text.isdecimal() or not int(text):
        raise InvalidInputError(f"cannot take {name}={text!r}: expected a number above 0")
    return int(text)
