"""Rows of many callers in few versions: windows, answers, limits."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from deltalog import (
    AppTransaction,
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    write_deltalake,
)
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
    StorageError,
)
from deltalog.testing import FaultyStore, Harm, InjectedFault
from tests.support.facade import BusyStore, last, make, rows, store_of
from tests.support.logs import DictStore

LONG_MS = 60_000.0
"""As good as for ever: a window ends because it is full, or because of `flush`."""


IDENTITY = Schema(
    [
        Field(
            "n",
            "long",
            metadata={
                "delta.identity.start": 1,
                "delta.identity.step": 1,
                "delta.identity.allowExplicitInsert": False,
            },
        ),
        Field("a", "long"),
        Field("b", "string"),
    ]
)


def numbers(*values: int | None) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


@pytest.fixture
def table() -> DeltaTable:
    return make(numbers(0))


class HeldStore(DictStore):
    """A store whose commits wait until they are let through."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = threading.Event()
        self.let_through = threading.Event()
        self.let_through.set()

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path.startswith("_delta_log/"):
            self.arrived.set()
            assert self.let_through.wait(60)
        super().put_if_absent(path, data)


def test_rows_of_many_threads_are_few_versions(table: DeltaTable) -> None:
    answers: dict[int, int] = {}
    hooks = PostCommitHookProperties(cleanup_expired_logs=False)
    with table.appender(post_commithook_properties=hooks) as appender:

        def work(first: int) -> None:
            for number in range(first, 201, 8):
                answers[number] = appender.append(numbers(number)).result(60)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert rows(table, "id") == list(range(201))
    assert table.version() < 200
    for version in set(answers.values()):
        told = {number for number, found in answers.items() if found == version}
        before, then = (rows(DeltaTable(store_of(table), at)) for at in (version - 1, version))
        assert set(then) - set(before) == told


def test_what_comes_during_a_commit_is_the_next_version() -> None:
    store = HeldStore()
    table = DeltaTable.create(store, numbers().schema)
    store.let_through.clear()
    store.arrived.clear()
    with table.appender(wait_ms=0) as appender:
        first = appender.append(numbers(1))
        assert store.arrived.wait(60)
        others = [appender.append(numbers(number)) for number in range(2, 10)]
        assert not any(answer.done() for answer in (first, *others))
        store.let_through.set()
        assert first.result(60) == 1
        assert {answer.result(60) for answer in others} == {2}
    assert last(table)["operationMetrics"]["numOutputRows"] == "8"


def test_a_window_ends_when_it_is_full(table: DeltaTable) -> None:
    with table.appender(wait_ms=LONG_MS, most_rows=4) as appender:
        answers = [appender.append(numbers(number)) for number in range(1, 5)]
        assert {answer.result(60) for answer in answers} == {1}
        large = appender.append(numbers(*range(5, 15)))  # of one caller
        assert large.result(60) == 2
    with table.appender(wait_ms=LONG_MS, most_bytes=16) as appender:
        answers = [appender.append(numbers(number)) for number in (20, 21)]
        assert {answer.result(60) for answer in answers} == {3}


def test_flush_and_close_do_not_wait_for_the_window(table: DeltaTable) -> None:
    with table.appender(wait_ms=LONG_MS) as appender:
        first = appender.append(numbers(1))
        appender.flush()
        assert first.result(0) == 1
        appender.flush()
        second = appender.append(numbers(2))
    assert second.result(0) == 2
    appender.close()
    with pytest.raises(InvalidInputError, match="the appender is closed"):
        appender.append(numbers(3))
    assert rows(table, "id") == [0, 1, 2]


def test_what_was_handed_over_is_committed_though_the_block_fails(table: DeltaTable) -> None:
    with suppress(ZeroDivisionError), table.appender(wait_ms=LONG_MS) as appender:
        answer = appender.append(numbers(1))
        1 / 0  # noqa: B018
    assert answer.result(0) == 1


def test_rows_that_are_refused_are_the_error_of_their_caller_alone() -> None:
    table = make([{"id": 0, "s": "x"}])
    table.alter.add_constraint({"positive": "id >= 0"})
    with table.appender(wait_ms=LONG_MS) as appender:
        good = [appender.append([{"id": number, "s": "x"}]) for number in (1, 2)]
        negative = appender.append([{"id": -1, "s": "x"}])
        unknown = appender.append([{"id": 3, "t": 7}])
        text = appender.append([{"id": "three", "s": "x"}])
        without = appender.append([{"id": 4}])
        nothing = appender.append([])
        half = appender.append([{"id": 5, "s": "x"}, {"id": -5, "s": "x"}])
    assert {answer.result(0) for answer in (*good, without, nothing)} == {2}
    for answer, kind in (
        (negative, ConstraintViolationError),
        (unknown, SchemaMismatchError),
        (text, SchemaMismatchError),
        (half, ConstraintViolationError),
    ):
        with pytest.raises(kind):
            answer.result(0)
    assert rows(table, "id") == [0, 1, 2, 4]
    assert last(table)["operationMetrics"]["numOutputRows"] == "3"


@pytest.mark.parametrize("options", [{}, {"upsert": "id"}])
@pytest.mark.parametrize(
    "data", [pa.table({"nope": [1]}), pa.table({"id": ["x"]}), [1], {"id": [1, 2], "b": ["x"]}]
)
def test_errors_name_the_table(table: DeltaTable, options: Any, data: Any) -> None:
    root = table.table_uri
    with table.appender(**options) as appender:
        with pytest.raises(DeltaError, match=f"^cannot .* {re.escape(root)}: ") as of_future:
            appender.append(data).result()
        with pytest.raises(DeltaError) as of_task:
            asyncio.run(appender.append_async(data))
    assert str(of_task.value) == str(of_future.value)


def test_futures_show_their_state(table: DeltaTable) -> None:
    root = table.table_uri
    with table.appender(wait_ms=LONG_MS) as appender:
        good, bad = appender.append(numbers(1)), appender.append({"nope": [1]})
        gone = appender.append(numbers(2))
        gone.cancel()
        assert repr(good) == f"<rows for {root}: not committed yet; result() waits for the version>"
        appender.flush()
        assert repr(good) == f"<rows for {root}: committed as version {table.version()}>"
        assert "failed with SchemaMismatchError; result() raises it>" in repr(bad)
        assert repr(gone) == f"<rows for {root}: cancelled>"
        with pytest.raises(SchemaMismatchError):
            bad.result()


def test_nothing_is_committed_if_all_rows_are_refused(table: DeltaTable) -> None:
    before = set(store_of(table).files)
    with table.appender(wait_ms=LONG_MS) as appender:
        answers = [appender.append([{"other": number}]) for number in range(3)]
    for answer in answers:
        with pytest.raises(SchemaMismatchError):
            answer.result(0)
    assert table.version() == 0
    assert set(store_of(table).files) == before


def test_a_store_that_fails_is_everybody_s_error(table: DeltaTable) -> None:
    faulty = FaultyStore(
        store_of(table), InjectedFault(verb="put_if_absent", harm=Harm.REFUSE, path=".parquet")
    )
    with DeltaTable(faulty).appender(wait_ms=LONG_MS) as appender:
        answers = [appender.append(numbers(number)) for number in (1, 2)]
        appender.flush()
        for answer in answers:
            with pytest.raises(StorageError):
                answer.result(0)
        third = appender.append(numbers(3))
        appender.flush()
        assert third.result(0) == 1
    assert rows(DeltaTable(store_of(table)), "id") == [0, 3]


def test_rows_are_checked_by_the_rules_of_the_version_that_they_are_in() -> None:
    store = BusyStore()
    table = DeltaTable.create(store, numbers().schema)
    other = DeltaTable(store)
    store.before_commit = lambda: other.alter.add_constraint({"small": "id < 10"})
    with table.appender(wait_ms=LONG_MS) as appender:
        small, large = (appender.append(numbers(number)) for number in (5, 50))
    assert small.result(0) == 2
    with pytest.raises(ConstraintViolationError, match="small"):
        large.result(0)
    assert rows(table, "id") == [5]


def test_another_writer_s_rows_are_no_conflict() -> None:
    store = BusyStore()
    table = DeltaTable.create(store, numbers().schema)
    store.before_commit = lambda: write_deltalake(store, numbers(7), mode="append")
    with table.appender() as appender:
        assert appender.append(numbers(1)).result(60) == 2
    assert rows(table, "id") == [1, 7]


def test_identity_values_are_given_once() -> None:
    table = DeltaTable.create(DictStore(), IDENTITY)
    with table.appender(wait_ms=LONG_MS) as appender:
        for part in ([{"a": 1}, {"a": 2}], [{"a": 3, "b": "x"}], [{"a": "no"}], [{"a": 4}]):
            appender.append(part)
        with pytest.raises(SchemaMismatchError, match="'no'"):
            appender.flush()
        appender.append([{"a": 5}])
    found = rows(table, "n", "a")
    numbers_given = [number for number, _ in found]
    assert [value for _, value in found] == [1, 2, 3, 4, 5]
    assert len(set(numbers_given)) == 5
    mark = table.schema().fields[0].metadata["delta.identity.highWaterMark"]
    assert mark >= max(numbers_given)


def test_callers_wait_while_too_many_rows_wait() -> None:
    store = HeldStore()
    table = DeltaTable.create(store, numbers().schema)
    store.let_through.clear()
    store.arrived.clear()
    with table.appender(wait_ms=0, waiting_bytes=24) as appender:
        inside = [appender.append(numbers(number)) for number in range(3)]
        assert store.arrived.wait(60)
        returned = threading.Event()
        answers: list[Future[int]] = []

        def more() -> None:
            answers.append(appender.append(numbers(3)))
            returned.set()

        thread = threading.Thread(target=more)
        thread.start()
        assert not returned.wait(0.2)
        store.let_through.set()
        assert returned.wait(60)
        thread.join(60)
        appender.flush()
        assert all(answer.done() for answer in (*inside, *answers))
    assert rows(table, "id") == [0, 1, 2, 3]


def test_callers_that_wait_for_room_are_told_that_it_is_closed() -> None:
    store = HeldStore()
    table = DeltaTable.create(store, numbers().schema)
    store.let_through.clear()
    store.arrived.clear()
    appender = table.appender(wait_ms=0, waiting_bytes=8)
    first = appender.append(numbers(1))
    assert store.arrived.wait(60)
    failures: list[Exception] = []

    def more() -> None:
        try:
            appender.append(numbers(2))
        except InvalidInputError as error:
            failures.append(error)

    waiting = threading.Thread(target=more)
    waiting.start()
    while not appender._outside:
        time.sleep(0.001)
    closing = threading.Thread(target=appender.close)
    closing.start()
    waiting.join(60)
    store.let_through.set()
    closing.join(60)
    assert "closed" in str(failures[0])
    assert first.result(0) == 1
    assert rows(table, "id") == [1]


def test_a_promise_may_be_cancelled_before_its_version_is_begun(table: DeltaTable) -> None:
    with table.appender(wait_ms=LONG_MS) as appender:
        first, second = (appender.append(numbers(number)) for number in (1, 2))
        assert first.cancel()
    assert second.result(0) == 1
    with pytest.raises(CancelledError):
        first.result(0)
    assert rows(table, "id") == [0, 2]


def test_an_answer_s_callback_may_append(table: DeltaTable) -> None:
    more: list[Future[int]] = []
    with table.appender(wait_ms=LONG_MS, waiting_bytes=8) as appender:
        first = appender.append(numbers(1))
        done = threading.Event()

        def then(_: Future[int]) -> None:
            more.append(appender.append(numbers(2)))
            done.set()

        first.add_done_callback(then)
        appender.flush()
        assert done.wait(60)
    assert more[0].result(0) == 2
    assert rows(table, "id") == [0, 1, 2]


@pytest.mark.parametrize("method", ["flush", "close"])
def test_a_callback_cannot_wait_for_its_own_thread(table: DeltaTable, method: str) -> None:
    refused: list[InvalidInputError] = []
    with table.appender(wait_ms=LONG_MS) as appender:
        first, second = (appender.append(numbers(number)) for number in (1, 2))

        def then(_: Future[int]) -> None:
            try:
                getattr(appender, method)()
            except InvalidInputError as error:
                refused.append(error)

        first.add_done_callback(then)
        appender.flush()
        assert second.result(0) == 1
    assert "callback" in str(refused[0])
    assert rows(table, "id") == [0, 1, 2]


def test_tasks_of_an_event_loop(table: DeltaTable) -> None:
    async def work() -> list[int | BaseException]:
        async with table.appender(wait_ms=LONG_MS, most_rows=10, waiting_bytes=40) as appender:
            tasks = [appender.append_async(numbers(number)) for number in range(1, 20)]
            refused = appender.append_async([{"other": 1}])
            return list(await asyncio.gather(*tasks, refused, return_exceptions=True))

    *versions, refused = asyncio.run(work())
    assert isinstance(refused, SchemaMismatchError)
    assert all(isinstance(version, int) for version in versions)
    assert rows(table, "id") == list(range(20))


def test_a_task_that_is_cancelled_takes_its_rows_back(table: DeltaTable) -> None:
    async def work() -> None:
        async with table.appender(wait_ms=LONG_MS) as appender:
            task = asyncio.create_task(appender.append_async(numbers(1)))
            kept = asyncio.create_task(appender.append_async(numbers(2)))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            appender.flush()
            assert await kept == 1

    asyncio.run(work())
    assert rows(table, "id") == [0, 2]


def test_the_data_is_read_at_once(table: DeltaTable) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from numbers(1, 2).to_batches()

    with table.appender() as appender:
        assert appender.append(batches()).result(60) == 1
        with pytest.raises(InvalidInputError, match="expected"):
            appender.append(cast("Any", 5))
    assert rows(table, "id") == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"wait_ms": -1}, "wait_ms"),
        ({"wait_ms": float("nan")}, "wait_ms"),
        ({"most_rows": 0}, "most_rows"),
        ({"most_bytes": 0}, "most_bytes"),
        ({"waiting_bytes": 1.5}, "waiting_bytes"),
        (
            {"commit_properties": CommitProperties(app_transactions=[AppTransaction("a", 1)])},
            "application",
        ),
    ],
)
def test_options_that_are_refused(table: DeltaTable, options: Any, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        table.appender(**options)


def test_the_end_of_a_block_raises_an_error_that_nobody_reads(
    table: DeltaTable, caplog: pytest.LogCaptureFixture
) -> None:
    appender = table.appender()
    appender.append({"id": ["x"]})
    appender.append({"id": ["y"]})
    kept = appender.append({"id": ["z"]})
    appender.append({"id": [2]})
    with pytest.raises(SchemaMismatchError, match=r"'[xy]'") as raised, appender:
        pass
    assert rows(table, "id") == [0, 2]
    with pytest.raises(SchemaMismatchError, match="'z'"):
        kept.result()
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("rows of an appender were not written: ")
    assert ("'x'" in message) == ("'y'" in str(raised.value))


def test_threads_that_drop_their_futures_get_the_error(table: DeltaTable) -> None:
    with (
        pytest.raises(SchemaMismatchError, match="'x'"),
        table.appender() as appender,
        ThreadPoolExecutor(2) as threads,
    ):
        threads.map(appender.append, [{"id": [1]}, {"id": ["x"]}, {"id": [2]}])
    assert rows(table, "id") == [0, 1, 2]


@pytest.mark.parametrize("upsert", [False, "id"])
def test_flush_raises_an_error_that_nobody_reads_once(
    table: DeltaTable, upsert: bool | str
) -> None:
    with table.appender(wait_ms=LONG_MS, upsert=upsert) as appender:
        appender.append({"id": ["x"]})
        with pytest.raises(SchemaMismatchError, match="'x'"):
            appender.flush()
        appender.append({"id": [1]})
        appender.flush()
        kept = appender.append({"id": ["y"]})
        appender.flush()
        with pytest.raises(SchemaMismatchError, match="'y'"):
            kept.result()
    assert rows(table, "id") == [0, 1]


def test_the_error_of_a_block_hides_no_other_error(
    table: DeltaTable, caplog: pytest.LogCaptureFixture
) -> None:
    appender = table.appender()
    appender.append({"id": ["x"]})
    with pytest.raises(ZeroDivisionError), appender:
        raise ZeroDivisionError
    assert "rows of an appender were not written: " in caplog.text


def test_the_end_of_an_asynchronous_block_raises_an_error_that_nobody_reads(
    table: DeltaTable,
) -> None:
    async def work() -> None:
        async with table.appender() as appender:
            appender.append({"id": ["x"]})

    with pytest.raises(SchemaMismatchError, match="'x'"):
        asyncio.run(work())


def test_an_error_that_nobody_reads_after_the_end_is_logged(
    table: DeltaTable, caplog: pytest.LogCaptureFixture
) -> None:
    with table.appender() as appender:
        kept = appender.append({"id": ["x"]})
    assert not caplog.records
    del kept
    gc.collect()
    assert "rows of an appender were not written: " in caplog.text


def _in_child(act: Callable[[], object], told: Any) -> None:
    try:
        act()
    except InvalidInputError as error:
        told.send(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told_that_it_has_no_thread(table: DeltaTable) -> None:
    with table.appender() as appender:
        appender.append(numbers(1)).result(60)
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(
            target=_in_child, args=(lambda: appender.append(numbers(2)), there)
        )
        child.start()
        assert here.poll(60)
        assert "after the fork" in here.recv()
        child.join(60)


WRITER = """
import sys, threading
import pyarrow as pa
from deltalog import DeltaTable

def work(appender, first):
    for number in range(first, 100_000, 4):
        version = appender.append(pa.table({"id": [number]})).result()
        sys.stdout.write(f"{number} {version}\\n")
        sys.stdout.flush()

with DeltaTable(sys.argv[1]).appender() as appender:
    threads = [threading.Thread(target=work, args=(appender, k)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_no_row_is_lost_that_was_acknowledged_before_the_process_was_killed(tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    DeltaTable.create(place, numbers().schema)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, place], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    told = [writer.stdout.readline() for _ in range(60)]
    writer.send_signal(signal.SIGKILL)
    told += writer.stdout.read().splitlines()
    writer.wait(60)
    writer.stdout.close()
    acknowledged = {int(line.split()[0]) for line in told if len(line.split()) == 2}
    found = DeltaTable(place).to_pyarrow_table().column("id").to_pylist()
    assert acknowledged <= set(found)
    assert len(found) == len(set(found))
