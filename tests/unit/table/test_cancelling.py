"""Long work tells how far it is, and whoever is told can end it: the table stays as it was."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Self

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.facade import FEED, NO_VECTORS, VECTORS, make, rows, store_of
from tests.support.logs import DictStore

Job = Callable[[DeltaTable, DictStore, Any], Any]


Told = list[tuple[int, int]]


SOURCE = pa.table({"id": [1, 4, 30], "v": [9, 9, 9]})


class Enough(Exception):  # noqa: N818  # it is no error
    """Somebody has waited long enough."""


def _table() -> DeltaTable:
    """Four files, two of them with a deletion vector."""
    table = make([{"id": n, "v": 0} for n in range(5)], configuration={**VECTORS, **FEED})
    for start in (5, 10, 15):
        more = [{"id": n, "v": 0} for n in range(start, start + 5)]
        write_deltalake(table, more, mode="append")
    table.delete("id in (0, 19)")
    return table


def _merge(table: DeltaTable, _: DictStore, progress: Any) -> None:
    merger = table.merge(SOURCE, "target.id = source.id")
    merger = merger.when_matched_update_all().when_not_matched_insert_all()
    merger.when_not_matched_by_source_delete("target.id > 16").execute(progress=progress)


JOBS: dict[str, Job] = {
    "delete by vectors": lambda table, _, tell: table.delete("id % 2 = 1", progress=tell),
    "delete by rewriting": lambda table, _, tell: table.delete(
        "id % 2 = 1", use_deletion_vectors=False, progress=tell
    ),
    "update by vectors": lambda table, _, tell: table.update(
        {"v": "1"}, predicate="id % 2 = 1", progress=tell
    ),
    "update by rewriting": lambda table, _, tell: table.update(
        {"v": "1"}, predicate="id % 2 = 1", use_deletion_vectors=False, progress=tell
    ),
    "merge": _merge,
    "upsert": lambda table, _, tell: table.upsert(SOURCE, "id", progress=tell),
    "compact": lambda table, _, tell: table.optimize.compact(progress=tell),
    "z-order": lambda table, _, tell: table.optimize.z_order(["id"], progress=tell),
    "purge": lambda table, _, tell: table.optimize.purge(progress=tell),
    "clone": lambda table, place, tell: table.clone(place, shallow=False, progress=tell),
    "restore": lambda table, _, tell: table.restore(3, progress=tell),
    "doctor": lambda table, _, tell: table.doctor(progress=tell),
}


ALL = pytest.mark.parametrize("job", list(JOBS.values()), ids=list(JOBS))


@ALL
def test_what_is_told_rises_to_the_end(job: Job) -> None:
    told: Told = []
    job(_table(), DictStore(), lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert all(done <= total for done, total in told)
    assert told[-1][0] == told[-1][1]
    assert [total for _, total in told] == sorted(total for _, total in told)


def _ends(job: Job, call: int, error: BaseException) -> bool:
    """Whether the work came to the call that ends it; then nothing is left of it."""
    told: Told = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == call:
            raise error

    table, place = _table(), DictStore()
    before = dict(store_of(table).files)
    try:
        job(table, place, tell)
    except type(error):
        assert store_of(table).files == before
        assert not place.files
        assert rows(table) == rows(DeltaTable(store_of(table)))
        return True
    assert len(told) < call
    return False


@pytest.mark.slow("ends an operation at each of its steps")
@ALL
@pytest.mark.parametrize("error", [Enough(), KeyboardInterrupt()], ids=["exception", "Ctrl-C"])
def test_ended_at_any_step_it_leaves_nothing(job: Job, error: BaseException) -> None:
    call = 1
    while _ends(job, call, error):
        call += 1
    assert call > 2


def test_a_repair_tells_of_the_files_that_it_asks_for() -> None:
    told: Told = []
    table = _table()
    lost = [name for name in store_of(table).files if name.endswith(".parquet")][:2]
    for name in lost:
        del store_of(table).files[name]
    table.repair(progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert len(told) >= len(lost)
    assert told[-1][0] == told[-1][1]


@pytest.mark.parametrize("progress", [True, False, None])
def test_a_bar_is_shown_where_it_is_asked_for(
    progress: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    class Bar:
        def __init__(self, desc: str, total: int | None) -> None:
            assert total == 1
            made.append(desc)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            made.append("closed")

        def refresh(self) -> None:
            made.append("shown")

    module: Any = ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    table = make([{"id": 1}, {"id": 2}], configuration=NO_VECTORS)
    table.delete("id = 1", progress=progress)
    assert made[:2] + made[-1:] == (["deleting", "shown", "closed"] if progress else [])
