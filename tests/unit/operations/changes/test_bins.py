"""Bins of files that are rewritten, several at a time."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations.changes.bins import RunOptions
from deltalog.operations.optimize import Compact
from deltalog.testing import CountingStore
from tests.support.logs import DictStore
from tests.support.meeting import MeetingStore
from tests.support.optimizing import IDS, OptimizedTable, numbered
from tests.support.statements import ROW_IDS

COLUMNS = {"id": "long", "p": "string"}


def test_several_bins_at_a_time_are_the_same_as_one() -> None:
    files = [[{"id": n, "p": str(n % 7)}] for n in range(21)]
    found = []
    for tasks in (1, 4):
        table = OptimizedTable(COLUMNS, *files, partition_by=["p"], properties=ROW_IDS)
        table.optimize(Compact, options=RunOptions(max_concurrent_tasks=tasks))
        found.append(table.rows("id", "p", *IDS))
        assert table.files().num_rows == 7
    assert found[0] == found[1]


def test_progress_is_told_and_may_end_the_work() -> None:
    store = DictStore()
    files = [[{"id": n, "p": str(n % 2)}] for n in range(6)]
    table = OptimizedTable(COLUMNS, *files, partition_by=["p"], store=store)
    paths, told = set(store.files), list[tuple[int, int]]()

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if done == 5:
            raise InvalidInputError("enough")

    with pytest.raises(InvalidInputError, match="enough"):
        table.do(Compact(), progress=stop)
    assert told == [(n, 6) for n in range(1, 6)]
    assert set(store.files) == paths


def test_every_file_is_opened_once() -> None:
    kept = DictStore()
    OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(20)), store=kept)
    counted = CountingStore(kept)
    OptimizedTable.reopened(counted).optimize(Compact)
    data = [call for call in counted.calls if call.paths and call.paths[0].endswith(".parquet")]
    verbs = [call.verb for call in data]
    # A footer and the columns of each small file, and one file that is written.
    assert verbs.count("put_if_absent") == 1
    assert verbs.count("read_ranges") == 20


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("num_tasks", [1, 2])
def test_requests_of_a_bin_are_under_way_at_once(
    is_small: bool, num_tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_small:
        monkeypatch.setattr("deltalog.operations.changes.bins.SMALL_BYTES", 0)
    kept = DictStore()
    files = [[{"id": n, "p": str(n % 2)}] for n in range(80)]
    OptimizedTable(COLUMNS, *files, partition_by=["p"], store=kept)
    store = MeetingStore(kept, 30, turn=1)
    table = OptimizedTable.reopened(store)
    table.optimize(Compact, options=RunOptions(max_concurrent_tasks=num_tasks))
    assert store.still_to_meet == 0
    assert table.files().num_rows == 2


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_concurrent_tasks": 0}, "max_concurrent_tasks"),
        ({"min_commit_interval_s": -1}, "min_commit_interval"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(options: dict[str, int], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        RunOptions(**options)  # type: ignore[arg-type]
    table = OptimizedTable(COLUMNS)
    with pytest.raises(InvalidInputError, match="max_deleted_share"):
        table.optimize(Compact, max_deleted_share=2)
