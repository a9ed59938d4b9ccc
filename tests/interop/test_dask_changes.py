"""Tasks of Dask change tables as this process does; a killed worker loses nothing."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.dataframe as dd
import pandas as pd
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.dask import DaskEngine, write
from deltalog.integrations.tasks import INLINE_BYTES, Sent
from tests.support.dying import DyingStore
from tests.support.engines import files_of
from tests.support.sharded import (
    CHANGES,
    FEATURES,
    FEW_CHANGES,
    KILLED,
    UPKEEP,
    check_a_killed_worker_leaves_a_checkpoint,
    check_a_killed_worker_loses_nothing,
    check_an_error_leaves_no_file,
    check_sidecars,
    check_vacuum,
    make,
    outcome,
    twins,
)

cloudpickle.register_pickle_by_value(sys.modules[DyingStore.__module__])
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class TwoWorkers:
    """Two worker processes; an earlier test may have killed one, which starts again."""

    def __init__(self) -> None:
        # The extra does not include `dask.distributed`.
        self._library = pytest.importorskip("distributed", reason="it is not installed")
        self._open()

    def client(self) -> Any:
        """Return a client of two workers that answer; of new ones if one does not start again."""
        try:
            self._client.wait_for_workers(2, timeout=60)
            while not self._answer():
                self._client.wait_for_workers(2, timeout=60)
        except TimeoutError:
            self.close()
            self._open()
        return self._client

    def close(self) -> None:
        self._client.close()
        self._cluster.close()

    def _open(self) -> None:
        self._cluster = self._library.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
        self._client = self._library.Client(self._cluster, set_as_default=False)

    def _answer(self) -> bool:
        workers = list(self._client.nthreads())
        asked = [self._client.submit(os.getpid, workers=[worker], pure=False) for worker in workers]
        try:
            return len([one.result(timeout=10) for one in asked]) == 2
        except (TimeoutError, CancelledError, OSError):
            return False
        finally:
            self._client.cancel(asked)


@pytest.fixture(scope="module")
def two_workers() -> Iterator[TwoWorkers]:
    workers = TwoWorkers()
    yield workers
    workers.close()


@pytest.fixture
def client(two_workers: TwoWorkers) -> Any:
    return two_workers.client()


@pytest.mark.parametrize("change", FEW_CHANGES)
@pytest.mark.parametrize("features", ["feed", "mapping", "row ids"])
def test_delayed_tasks_change_what_the_local_engine_changes(
    tmp_path: Path, features: str, change: str
) -> None:
    make(tmp_path / "table", FEATURES[features], partitioned=True)
    here, there = twins(tmp_path / "table", DaskEngine(num_tasks=2))
    with dask.config.set(scheduler="threads", num_workers=2):
        assert outcome(there, CHANGES[change]) == outcome(here, CHANGES[change])


def test_other_processes_write_a_checkpoint(tmp_path: Path) -> None:
    with dask.config.set(scheduler="processes", num_workers=2):
        check_sidecars(tmp_path / "table", DaskEngine(num_tasks=2))


def test_other_processes_change_optimize_and_vacuum(tmp_path: Path) -> None:
    make(tmp_path / "table", FEATURES["vectors"], partitioned=True)
    here, there = twins(tmp_path / "table", DaskEngine(num_tasks=2))
    steps: list[Any] = [UPKEEP["compact"], UPKEEP["z-order"], CHANGES["upsert"]]
    with dask.config.set(scheduler="processes", num_workers=2):
        for step in steps:
            assert outcome(there, step) == outcome(here, step)
        check_vacuum(here, there)


def test_an_error_in_one_task_leaves_no_file(tmp_path: Path) -> None:
    check_an_error_leaves_no_file(tmp_path / "table", DaskEngine(num_tasks=3))


def test_a_table_with_an_engine_can_be_pickled(tmp_path: Path) -> None:
    make(tmp_path / "table", {}, partitioned=False)
    table = DeltaTable(tmp_path / "table", engine=DaskEngine(num_tasks=2))
    again = pickle.loads(pickle.dumps(table))
    assert isinstance(again.engine, DaskEngine)
    with dask.config.set(scheduler="synchronous"):
        assert again.delete("v % 5 = 0")["num_deleted_rows"] > 0


@pytest.mark.slow("starts two workers of dask.distributed")
@pytest.mark.parametrize("change", FEW_CHANGES)
def test_workers_change_what_the_local_engine_changes(
    tmp_path: Path, client: Any, change: str
) -> None:
    make(tmp_path / "table", FEATURES["row ids"], partitioned=True)
    here, there = twins(tmp_path / "table", DaskEngine(client, num_tasks=2))
    assert outcome(there, CHANGES[change]) == outcome(here, CHANGES[change])


@pytest.mark.slow("starts two workers of dask.distributed")
@pytest.mark.parametrize("change", KILLED)
def test_the_task_of_a_killed_worker_runs_again(tmp_path: Path, client: Any, change: str) -> None:
    check_a_killed_worker_loses_nothing(tmp_path / "table", DaskEngine(client, num_tasks=2), change)


@pytest.mark.slow("starts two workers of dask.distributed")
def test_a_killed_worker_leaves_a_checkpoint(tmp_path: Path, client: Any) -> None:
    check_a_killed_worker_leaves_a_checkpoint(tmp_path / "table", DaskEngine(client, num_tasks=2))


class DyingInput(Sent[Any]):
    """A large input of tasks; the process that receives it as the given one dies, once.

    Args:
        flags: an empty directory, for a file of each process that has received the input.
        dying: the number of the process that dies.
    """

    __slots__ = ("given",)

    def __init__(self, flags: Path, dying: int) -> None:
        super().__init__(None)
        self.given = (flags, dying)

    @property
    def size_bytes(self) -> int:
        return INLINE_BYTES

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, self.given


def _received(flags: Path, dying: int) -> DyingInput:
    for number in range(20):
        try:
            (flags / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        if number == dying:
            os.kill(os.getpid(), signal.SIGKILL)
        break
    return DyingInput(flags, dying)


def _use(shared: Any, number: Any) -> int:
    return int(number.value) + len(shared.given)


@pytest.mark.slow("starts two workers of dask.distributed")
@pytest.mark.parametrize("dying", [0, 1])
def test_a_worker_is_lost_while_it_receives_the_input_of_all_tasks(
    tmp_path: Path, client: Any, dying: int
) -> None:
    engine = DaskEngine(client, num_tasks=2)
    shared = DyingInput(tmp_path, dying)
    assert list(engine.run(_use, shared, [Sent(1), Sent(2)])) == [3, 4]
    assert (tmp_path / str(dying)).exists()


class NotedInput:
    """A small input of tasks; each process that unpickles it makes a file.

    Args:
        flags: an empty directory for these files.
    """

    def __init__(self, flags: Path) -> None:
        self.flags = flags

    def __reduce__(self) -> tuple[Any, ...]:
        return _noted, (self.flags,)


def _noted(flags: Path) -> NotedInput:
    (flags / str(os.getpid())).touch()
    return NotedInput(flags)


def _have_noted(shared: Any, own: Any) -> int:
    return int(shared.value.flags == own.value.flags)


@pytest.mark.slow("starts two workers of dask.distributed")
def test_only_workers_unpickle_inputs(tmp_path: Path, client: Any) -> None:
    """The scheduler is in this process."""
    shared, inputs = NotedInput(tmp_path), [Sent(NotedInput(tmp_path)) for _ in range(4)]
    assert list(DaskEngine(client).run(_have_noted, Sent(shared), inputs)) == [1, 1, 1, 1]
    assert not (tmp_path / str(os.getpid())).exists()
    assert any(tmp_path.iterdir())


def _die_or_measure(shared: Any, own: Any) -> tuple[int, int]:
    flag, dying = shared.value
    number, data = own.value
    if number == dying:
        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return number, len(data)
        os.kill(os.getpid(), signal.SIGKILL)
    return number, len(data)


@pytest.mark.slow("starts two workers of dask.distributed")
@pytest.mark.parametrize("dying", [0, 3])
def test_a_worker_is_lost_that_holds_large_inputs_of_tasks(
    tmp_path: Path, client: Any, dying: int
) -> None:
    """Each of these inputs is sent to one worker."""
    engine = DaskEngine(client, num_tasks=4)
    inputs = [Sent((number, bytes(INLINE_BYTES + number))) for number in range(4)]
    found = list(engine.run(_die_or_measure, Sent((tmp_path / "killed", dying)), inputs))
    assert found == [(number, INLINE_BYTES + number) for number in range(4)]
    assert (tmp_path / "killed").exists()


class LosingClient:
    """A client of workers that are lost after each result."""

    def __init__(self) -> None:
        self.cancelled: list[Any] = []

    def submit(self, work: Any, shared: Any, own: Any, *, key: str, pure: bool) -> Any:
        del pure
        return LostTask(partial(work, shared, own), is_lost=not key.endswith("-0"))

    def cancel(self, tasks: list[Any]) -> None:
        self.cancelled += tasks

    def nthreads(self) -> dict[str, int]:
        return {"one": 1}

    def scatter(self, value: Any) -> Any:
        return value


class LostTask:
    """A task whose input may be lost."""

    def __init__(self, run: Any, *, is_lost: bool) -> None:
        self._run = run
        self._is_lost = is_lost

    def result(self) -> Any:
        if self._is_lost:
            raise CancelledError
        return self._run()


def _number_of(_shared: Any, own: Any) -> int:
    return int(own.value)


def test_many_workers_may_be_lost_one_after_another() -> None:
    """Only losses without a result between them end the operation."""
    client = LosingClient()
    numbers = [Sent(number) for number in range(8)]
    assert list(DaskEngine(client).run(_number_of, Sent(None), numbers)) == [*range(8)]
    assert len(client.cancelled) == sum(range(9))


def _slow_or_failing(part: pd.DataFrame) -> pd.DataFrame:
    if 3 in set(part["id"]):
        raise RuntimeError("the caller's own code")
    time.sleep(1)
    return part


@pytest.mark.slow("starts two workers of dask.distributed")
def test_a_failed_write_deletes_also_what_a_later_task_writes(tmp_path: Path, client: Any) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, {"id": [1]})
    before = files_of(path)
    frame = dd.from_pandas(pd.DataFrame({"id": [2, 3]}), npartitions=2)
    frame = frame.map_partitions(_slow_or_failing, meta=frame._meta)
    with dask.config.set(scheduler=client), pytest.raises(RuntimeError, match="own code"):
        write(frame, path, mode="append")
    assert files_of(path) == before
    assert all(not running for running in client.processing().values())
    assert files_of(path) == before
