"""How many bytes are sent to the tasks of a cluster; no session is needed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable
from deltalog._util.json import dumps
from deltalog.data.scan.plan import TASK_COLUMNS
from deltalog.errors import ObjectNotFoundError
from deltalog.integrations.tasks import Sent, share_by_number
from deltalog.log.context import utc_context
from deltalog.log.snapshot.splits import cut_snapshot
from deltalog.operations.changes.bins import Bin, BinGroup
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.task_writes import WriteJob
from deltalog.operations.engine import SeenTable
from deltalog.protocol.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.spark.engine.engine import SparkEngine, delete_task, groups_of, list_task
from deltalog.spark.reading.batch_source import BatchReader, resolve, split_tasks
from deltalog.spark.reading.file_values import FileKey
from deltalog.spark.reading.native import named_files
from deltalog.spark.reading.options import parse_any_read_options, parse_read_options
from deltalog.spark.reading.positions import MOST_READ_HERE, without_deleted
from deltalog.spark.reading.scan import SparkScan
from deltalog.spark.reading.state import PruneSpec, prune_piece
from deltalog.spark.session.tasks import encode_message, run_for_each
from deltalog.spark.session.types import to_spark_schema
from deltalog.storage import open_store
from deltalog.transaction import PendingTransaction
from tests.support.sharded import PickledTasks
from tests.support.spark_workers import packed, sent

FEW, MANY = 100, 400
FILES_PER_PARTITION = 8
FIXED_BYTES = 200_000
"""The most that is sent once, or with each of some dozen tasks, however many files there are."""
VECTOR = inline_descriptor(DeletionBitmap([1]))


class JobSeenError(Exception):
    """Ends an operation when it starts its job."""


class TasksSession:
    """A session of Spark that only notes what it would send to tasks.

    Attributes:
        bytes_of: for each job, the bytes of the function that is sent to each executor.
        columns: the columns of its frames.
    """

    def __init__(self) -> None:
        self.bytes_of: list[int] = []
        self.columns = ["id"]

    @property
    def conf(self) -> TasksSession:
        return self

    @property
    def sparkSession(self) -> TasksSession:  # noqa: N802  # PySpark's name
        return self

    def get(self, name: str, default: str | None = None) -> str | None:
        return "false" if name == "spark.deltalog.checkWorkers" else default

    def range(self, *_: int) -> TasksSession:
        return self

    def mapInArrow(self, function: Any, _: object) -> None:  # noqa: N802  # PySpark's name
        self.bytes_of.append(len(packed(function)))
        raise JobSeenError


def table_of(path: Path, num_partitions: int, *, vectors: bool = False) -> DeltaTable:
    """A table whose files are only in the log."""
    fields: list[Any] = [
        {"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("p", "id")
    ]
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions: list[Any] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}},
            "schemaString": dumps({"type": "struct", "fields": fields}).decode(),
            "partitionColumns": ["p"], "configuration": {"delta.enableDeletionVectors": "true"},
        }},
    ]  # fmt: skip
    assert VECTOR is not None
    vector = {
        "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1,
        "sizeInBytes": 40, "cardinality": MOST_READ_HERE,
    }  # fmt: skip
    for number in range(num_partitions * FILES_PER_PARTITION):
        partition = number // FILES_PER_PARTITION
        actions.append({"add": {
            "path": f"p={partition}/part-{number:05d}-0123456789abcdef.snappy.parquet",
            "partitionValues": {"p": str(partition)}, "size": 1000, "modificationTime": 1,
            "dataChange": True, "stats": '{"numRecords":1000000}',
            **({"deletionVector": vector} if vectors else {}),
        }})  # fmt: skip
    (path / "_delta_log").mkdir(parents=True)
    log = path / "_delta_log" / f"{0:020}.json"
    log.write_bytes(b"\n".join(map(dumps, actions)))
    return DeltaTable.from_context(utc_context(open_store(str(path))))


def on_spark(act: Callable[[DeltaTable, Any], object]) -> Callable[[DeltaTable], int]:
    """Return how many bytes the function of a Spark job has."""

    def count(table: DeltaTable) -> int:
        session: Any = TasksSession()
        engine = SparkEngine(session)
        with pytest.raises(JobSeenError):
            act(DeltaTable.from_context(table.snapshot.context, engine), session)
        (num_bytes,) = session.bytes_of
        return int(num_bytes)

    return count


def on_dask(act: Callable[[DeltaTable], object]) -> Callable[[DeltaTable], int]:
    """Return how many bytes are sent to all tasks of Dask or Ray."""

    class Noting(PickledTasks):
        def run(self, work: Any, shared: Any, inputs: Sequence[Any]) -> Iterator[Any]:
            next(super().run(lambda *_: None, shared, inputs), None)
            raise JobSeenError(work)

    def count(table: DeltaTable) -> int:
        engine = Noting(num_tasks=50)
        with pytest.raises(JobSeenError):
            act(DeltaTable.from_context(table.snapshot.context, engine))
        ((_, shared, own),) = engine.sent
        assert len(own) == 50
        return shared + sum(own)

    return count


def read_in_workers(table: DeltaTable, session: Any) -> None:
    SparkScan(spark=session, snapshot=table.snapshot, objection="of the test").to_df()


def read_vectors(table: DeltaTable, session: Any) -> None:
    snapshot = table.snapshot
    files = named_files(snapshot.files(TASK_COLUMNS), snapshot.store.root)
    frame: Any = None
    without_deleted(frame, session, snapshot.store, files, FileKey("file_name"))


def copy_rows(table: DeltaTable, session: Any) -> None:
    """As copy-on-write sends the files that it rewrites."""
    tasks = list(table.scan().tasks())
    gone = DeletionBitmap([5])
    groups = [[(task, gone) for task in group] for group in split_tasks(tasks, 1 << 27)]
    run_for_each(session, groups, len, "copying")


def partitions_of_format(table: DeltaTable) -> int:
    given = {"path": table.table_uri}
    _, shown = resolve(parse_any_read_options(given))
    reader = BatchReader(parse_read_options(given), to_spark_schema(shown))
    return len(packed(reader)) + sum(len(packed(one)) for one in reader.partitions())


def groups_of_ray(table: DeltaTable) -> int:
    scan = table.scan()
    groups = share_by_number(scan.tasks(with_rows=True), scan.schema, most_groups=50)
    return sum(len(packed(Sent(group))) for group in groups)


OPERATIONS: dict[str, Callable[[DeltaTable], int]] = {
    "compact": on_spark(lambda table, _: table.optimize.compact()),
    "z-order": on_spark(lambda table, _: table.optimize.z_order(["id"])),
    "read in workers": on_spark(read_in_workers),
    "copy": on_spark(copy_rows),
    "format": partitions_of_format,
    "Dask compact": on_dask(lambda table: table.optimize.compact()),
    "Dask z-order": on_dask(lambda table: table.optimize.z_order(["id"])),
    "Dask delete": on_dask(lambda table: table.delete("id = 3")),
    "Ray read": groups_of_ray,
}


def check_linear(sizes: dict[int, int], *, per_file: int = 200) -> None:
    more_files = (MANY - FEW) * FILES_PER_PARTITION
    assert (sizes[MANY] - sizes[FEW]) / more_files < per_file
    assert sizes[FEW] < per_file * FEW * FILES_PER_PARTITION + FIXED_BYTES


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int, DeltaTable]:
    path = tmp_path_factory.mktemp("tables")
    return {number: table_of(path / str(number), number) for number in (FEW, MANY)}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_less_than_200_bytes_are_sent_per_file(
    tables: dict[int, DeltaTable], operation: str
) -> None:
    count = OPERATIONS[operation]
    check_linear({number: count(table) for number, table in tables.items()})


def test_deletion_vectors_are_sent_once(tmp_path: Path) -> None:
    count = on_spark(read_vectors)
    sizes = {
        number: count(table_of(tmp_path / str(number), number, vectors=True))
        for number in (FEW, MANY)
    }
    check_linear(sizes)


def test_what_tasks_write_by_has_no_files(tables: dict[int, DeltaTable]) -> None:
    sizes = []
    for table in tables.values():
        transaction = PendingTransaction(table.snapshot.context, table.snapshot, operation="WRITE")
        spec = FileOptions().spec_for(transaction)
        sizes.append(len(packed(WriteJob(spec=spec, predicate=None, tells_changes=False))))
    assert max(sizes) - min(sizes) < 50


def list_in_tasks(table: DeltaTable, session: Any) -> None:
    snapshot = table.snapshot
    SparkEngine(session).list_files(snapshot.store, snapshot.configuration)


def test_a_vacuum_sends_names_and_gets_the_listing(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1)
    sizes, asked = {}, {}
    for number in (FEW, MANY):
        directories = tuple(f"p={one}" for one in range(number))
        for name in directories:
            (tmp_path / name).mkdir(exist_ok=True)
            for file in range(FILES_PER_PARTITION):
                (tmp_path / name / f"part-{file:05d}-0123456789abcdef.snappy.parquet").touch()
        seen = SeenTable.of(table.snapshot.store)
        assert seen is not None
        listed = list_task(seen, table.snapshot.configuration, directories)
        assert isinstance(listed, pa.Table)
        assert listed.num_rows == number * FILES_PER_PARTITION
        sizes[number] = len(encode_message(listed))
        asked[number] = on_spark(list_in_tasks)(table)
        assert len(packed((seen, delete_task))) < 20_000
    check_linear(sizes)
    check_linear(asked, per_file=20)  # a task is sent only the names of its own directories


def test_a_task_returns_the_files_that_are_left_alone(tmp_path: Path) -> None:
    """Adjacent files are a slice of all files, and pyarrow pickles a slice with all of them."""
    table = table_of(tmp_path, MANY)
    table.create_checkpoint()
    snapshot = DeltaTable(tmp_path).snapshot
    scan = DeltaTable(tmp_path).scan(predicate="p = 7")
    cut = snapshot.read_log(partial(cut_snapshot, snapshot))
    names = tuple(TASK_COLUMNS)
    spec = PruneSpec(cut=cut, predicate=scan.spec.predicate, names=names, most_rows=None)
    account = prune_piece(spec, 0)
    assert account.num_left == FILES_PER_PARTITION
    assert len(encode_message(account)) < 10_000


def test_tasks_read_many_commits_themselves(tmp_path: Path) -> None:
    """The commits after a checkpoint are not sent, however many files they add."""
    few, many = table_of(tmp_path / "few", MANY), table_of(tmp_path / "many", 20 * MANY)
    for table in (few, many):
        snapshot = table.snapshot
        cut = snapshot.read_log(partial(cut_snapshot, snapshot))
        size = cut.commits.actions.adds.nbytes
        data = pickle.dumps(Sent(cut))
        assert len(data) < (20_000 if table is many else min(size, 200 * snapshot.num_files))
        there = pickle.loads(data).value
        assert there.piece(0).files(["path"]) == cut.piece(0).files(["path"])
    (tmp_path / "many" / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(ObjectNotFoundError):
        pickle.loads(data).value.piece(0)


def bins_of(*files: tuple[int, int]) -> list[Bin]:
    """Bins, each with a number of files of a size."""
    sizes = [pa.array([size] * number, pa.int64()) for number, size in files]
    return [Bin(partition=place, files=pa.table({"size": one})) for place, one in enumerate(sizes)]


def test_a_task_finds_its_own_bins() -> None:
    bins = bins_of((3, 10), (1, 20), (2, 30))
    group: BinGroup = sent(BinGroup.of(bins))
    assert group.bins == bins


@pytest.mark.parametrize(
    ("bins", "tasks"),
    [
        (bins_of((2, 1000)), 1),
        (bins_of(*[(8, 1000)] * 7), 1),
        (bins_of(*[(8, 1000)] * 400), 51),
        (bins_of(*[(8, 1000)] * 2500), 64),
        (bins_of((1, 100 << 20), (1, 200 << 20), (1, 10 << 20)), 3),
        (bins_of(*[(2, 60 << 20)] * 200), 200),
    ],
)
def test_small_bins_share_a_task(bins: list[Bin], tasks: int) -> None:
    groups = groups_of(bins)
    assert [one.partition for group in groups for one in group.bins] == list(range(len(bins)))
    assert len(groups) == tasks
