"""Tasks change a table as this process does: the same rows, metrics, history and change data."""

from __future__ import annotations

import datetime as dt
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deltalog
from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import (
    AmbiguousMergeError,
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
)
from deltalog.operations.changes.apply import balanced
from deltalog.operations.changes.merge import shares
from deltalog.operations.changes.merge.pairs import KeyIndex
from deltalog.operations.changes.merge.source import MergeSource
from deltalog.operations.engine import LocalEngine
from tests.support.engines import files_of
from tests.support.sharded import (
    CHANGES,
    FEATURES,
    FEED,
    UPKEEP,
    VECTORS,
    PickledTasks,
    make,
    make_many_files,
    outcome,
    source,
    twins,
)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("features", FEATURES)
def test_tasks_change_what_the_local_engine_changes(
    tmp_path: Path, features: str, change: str
) -> None:
    make(tmp_path / "table", FEATURES[features], partitioned=len(change) % 2 == 0)
    engine = PickledTasks(num_tasks=3)
    here, there = twins(tmp_path / "table", engine)
    assert outcome(there, CHANGES[change]) == outcome(here, CHANGES[change])
    assert [(name, len(sizes)) for name, _, sizes in engine.sent] == [("_change_shard", 3)]


def test_sql_changes_a_table_in_tasks(tmp_path: Path) -> None:
    make(tmp_path / "table", VECTORS, partitioned=True)
    engine = PickledTasks(num_tasks=3)
    here, there = twins(tmp_path / "table", engine)
    for text in (
        "OPTIMIZE t ZORDER BY (v)",
        "UPDATE t SET v = v + 1000 WHERE v % 5 = 1",
        "DELETE FROM t WHERE v % 11 = 3",
        "MERGE INTO t USING s ON s.id = t.id WHEN MATCHED THEN UPDATE SET v = s.v",
    ):

        def change(table: DeltaTable, text: str = text) -> dict[str, Any]:
            (row,) = deltalog.sql(text, t=table, s=source()).to_arrow().to_pylist()
            return {name: value for name, value in row.items() if name.startswith("num_")}

        assert outcome(there, change) == outcome(here, change)
    names = [name for name, _, _ in engine.sent]
    assert names == ["_rewrite_group", "_change_shard", "_change_shard", "_change_shard"]


def test_an_identity_column_goes_on_where_it_was(tmp_path: Path) -> None:
    make(tmp_path / "table", {}, partitioned=False)
    _, there = twins(tmp_path / "table", PickledTasks(num_tasks=3))
    CHANGES["upsert"](there)
    write_deltalake(there, {"id": [300], "p": [0], "v": [0], "s": [""]}, mode="append")
    numbers = there.to_pyarrow_table(filters="id >= 72").sort_by("id")["n"].to_pylist()
    assert numbers == [73, 74, 75, 76, 77]


def test_deletion_vectors_of_all_tasks_are_written_once(tmp_path: Path) -> None:
    path = tmp_path / "table"
    for file in range(4):
        rows = {"id": list(range(file * 5000, file * 5000 + 5000))}
        write_deltalake(path, rows, mode="append", configuration=VECTORS)
    table = DeltaTable(path, engine=PickledTasks(num_tasks=4))
    table.delete("id % 13 in (1, 4, 9)")
    assert len(list(path.glob("*.bin"))) == 1
    assert table.count() == 20_000 - len([n for n in range(20_000) if n % 13 in {1, 4, 9}])


def test_the_log_or_one_file_needs_no_task(tmp_path: Path) -> None:
    make(tmp_path / "table", {}, partitioned=True)
    engine = PickledTasks(num_tasks=3)
    _, there = twins(tmp_path / "table", engine)
    there.delete("p = 1")
    there.delete("id = 3")
    there.update({"v": "0"}, predicate="id = 4")
    merger = there.merge(source(), "s.id = t.id and t.id < 0", source_alias="s", target_alias="t")
    merger.when_matched_delete().execute()
    assert engine.sent == []
    few = PickledTasks()
    DeltaTable(there.table_uri, engine=few).delete("v % 2 = 0")
    assert few.sent == []


def _files_with_one_id(path: Path, properties: dict[str, str]) -> None:
    for file in range(40):
        write_deltalake(path, {"id": [file]}, mode="append", configuration=properties)


def _merge_many(table: DeltaTable) -> None:
    """Merge 10,000 rows of 60 bytes; those with the ids 0 to 39 are in the table."""
    rows = pa.table({"id": list(range(10_000)), "s": ["0123456789" * 5] * 10_000})
    merger = table.merge(rows, "s.id = t.id", "s", "t").when_matched_update({"id": "-s.id"})
    merger.execute()


def test_a_source_is_sent_once_and_each_task_gets_its_own_files(tmp_path: Path) -> None:
    """Without statistics, any row of the source may match in any file."""
    path = tmp_path / "table"
    _files_with_one_id(path, {**VECTORS, "delta.dataSkippingNumIndexedCols": "0"})
    sizes = {}
    for tasks in (2, 20):
        engine = PickledTasks(num_tasks=tasks)
        _merge_many(DeltaTable(path, engine=engine))
        ((_, shared, own),) = engine.sent
        assert len(own) == tasks
        assert 10_000 * 55 < shared < 10_000 * 75
        sizes[tasks] = own
        DeltaTable(path).restore(39)
    assert max(sizes[2]) < 20 * 700
    assert max(sizes[20]) < 6_000


def test_a_task_gets_the_source_rows_that_its_files_can_match(tmp_path: Path) -> None:
    path = tmp_path / "table"
    _files_with_one_id(path, VECTORS)
    for tasks in (2, 20):
        engine = PickledTasks(num_tasks=tasks)
        table = DeltaTable(path, engine=engine)
        _merge_many(table)
        ((_, shared, own),) = engine.sent
        assert len(own) == tasks
        assert shared < 20_000
        assert max(own) < 40 // tasks * (700 + 60) + 6_000
        assert table.to_pyarrow_table().sort_by("id")["id"].to_pylist() == list(range(-39, 1))
        table.restore(39)


@pytest.mark.parametrize("memory_bytes", [1 << 20, 1 << 19])
def test_shares_that_together_exceed_the_memory_are_not_made(
    tmp_path: Path, memory_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of four tasks can match 40 per cent of a source of 500 kB."""
    monkeypatch.setattr(shares, "MEMORY_BYTES", memory_bytes)
    path = tmp_path / "table"
    for file in range(4):
        write_deltalake(path, {"id": [file * 2000, file * 2000 + 4000]}, mode="append")
    engine = PickledTasks(num_tasks=4)
    table = DeltaTable(path, engine=engine)
    _merge_many(table)
    ((_, shared, own),) = engine.sent
    has_shares = memory_bytes == 1 << 20
    assert (shared < 20_000) is has_shares
    assert (min(own) > 4_000 * 50) is has_shares
    found: Any = table.to_pyarrow_table()["id"].to_pylist()
    assert sum(found) == -20_000


_MOMENT = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
_KEYS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "long": ("long", lambda n: n),
    "byte": ("byte", lambda n: n % 120),
    "date": ("date", lambda n: dt.date(2024, 2, 1) + dt.timedelta(days=n)),
    "timestamp": ("timestamp", lambda n: _MOMENT + dt.timedelta(microseconds=n * 7 + n % 3)),
    "timestamp_ntz": (
        "timestamp_ntz",
        lambda n: _MOMENT.replace(tzinfo=None) + dt.timedelta(microseconds=n * 997),
    ),
    "months": ("interval year to month", lambda n: n),
    "time span": ("interval day to second", lambda n: dt.timedelta(microseconds=n * 999_983)),
    "timestamp_nanos": ("timestamp_nanos", lambda n: n * 1_000_003),
    "string": ("string", lambda n: f"key {n:04}"),
    "double": ("double", lambda n: n / 3),
}


@pytest.mark.parametrize("equal", ["=", "<=>"])
@pytest.mark.parametrize("kind", _KEYS)
@pytest.mark.parametrize("is_ordered", [True, False])
def test_rows_of_shares_match_as_those_of_the_whole_source(
    tmp_path: Path, kind: str, equal: str, monkeypatch: pytest.MonkeyPatch, *, is_ordered: bool
) -> None:
    """NULLs on both sides, keys outside of all files, at their bounds, and several per row."""
    monkeypatch.setenv("DELTALOG_PREVIEWS", "timestampNanos,intervalTypes")
    path, rng = tmp_path / "table", random.Random(f"{kind} {equal} {is_ordered}")
    name, make_key = _KEYS[kind]
    schema = Schema(
        [Field("id", name), Field("k", "long"), Field("v", "long"), Field("s", "string")]
    )
    DeltaTable.create(path, schema, configuration=VECTORS if is_ordered else FEED)
    arrow = DeltaTable(path).schema().to_arrow()

    def rows(numbers: list[int | None]) -> pa.Table:
        data: dict[str, Any] = {
            "id": [None if n is None else make_key(n) for n in numbers],
            "k": [None if n is None else n % 5 for n in numbers],
            "v": list(range(len(numbers))),
            "s": [f"row {n}" for n in numbers],
        }
        return pa.table(data, schema=arrow)

    every: list[int | None] = [*range(10, 90)]
    if not is_ordered:
        rng.shuffle(every)
    for file in range(5):
        with_null: list[int | None] = [None] if file == 3 else []
        write_deltalake(path, rows(every[file * 16 : file * 16 + 16] + with_null), mode="append")
    wanted: list[int | None] = [*rng.sample(range(100), 40), 25, 26, 41, 42, None]
    given = rows(list(dict.fromkeys(wanted)))

    def change(table: DeltaTable) -> Any:
        merger = (
            table.merge(given, f"s.id {equal} t.id AND t.k {equal} s.k", "s", "t")
            .when_matched_delete("s.v % 7 = 0")
            .when_matched_update({"v": "s.v * 100 + t.v", "s": "concat(t.s, s.s)"})
            .when_not_matched_insert_all()
            .when_not_matched_by_source_update({"v": "-1"}, "t.v = 3")
        )
        return merger.execute()

    engine = PickledTasks(num_tasks=4)
    here, there = twins(path, engine)
    found = []
    for table in (here, there):
        metrics = change(table)
        shown = sorted(map(repr, table.to_pyarrow_table().to_pylist()))
        found.append((shown, _rows_of(metrics)))
    assert found[0] == found[1]
    assert len(engine.sent) == 1


def _rows_of(metrics: Any) -> dict[str, Any]:
    """The numbers of rows among the metrics of a merge."""
    return {name: value for name, value in dict(metrics).items() if "rows" in name}


def test_rows_of_a_share_are_named_in_an_error(tmp_path: Path) -> None:
    path = tmp_path / "table"
    _files_with_one_id(path, VECTORS)
    twice = pa.table({"id": [7, 33, 33, 5000], "s": ["a", "b", "c", "d"]})
    table = DeltaTable(path, engine=PickledTasks(num_tasks=4))
    merger = table.merge(twice, "s.id = t.id", "s", "t").when_matched_update({"id": "-s.id"})
    with pytest.raises(AmbiguousMergeError, match=r"'id': 33, 's': 'b'.*'id': 33, 's': 'c'"):
        merger.execute()
    assert table.count() == 40


@pytest.mark.parametrize("kind", [PickledTasks, LocalEngine])
def test_no_index_of_the_source_is_made_where_no_row_is_matched(
    tmp_path: Path, kind: type[PickledTasks | LocalEngine]
) -> None:
    """A client whose tasks match rows makes none, and nobody for keys that are in no file."""
    planned: list[Any] = []

    class Noting(kind):  # type: ignore[misc, valid-type]
        def plan_change(self, *given: Any) -> Any:
            planned.append(super().plan_change(*given))
            return planned[-1]

    make(tmp_path / "table", {}, partitioned=False)
    if kind is PickledTasks:
        table, rows = DeltaTable(tmp_path / "table", engine=Noting(num_tasks=3)), source()
    else:
        table = DeltaTable(tmp_path / "table", engine=Noting())
        rows = source().slice(20)
    merger = table.merge(rows, "s.id = t.id", source_alias="s", target_alias="t")
    found = merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert found["num_target_rows_inserted"] == (4 if kind is PickledTasks else 2)
    (change,) = planned
    finder = (change._here if kind is PickledTasks else change)._finder
    assert not any(isinstance(value, KeyIndex) for value in vars(finder._pairs).values())


class LosingTasks(PickledTasks):
    """An engine that loses the first attempt of each task, whose files nobody names then."""

    def run(self, work: Any, shared: Any, inputs: Sequence[Any]) -> Iterator[Any]:
        list(super().run(work, shared, inputs))
        return super().run(work, shared, inputs)


@pytest.mark.parametrize(
    ("change", "breaks_file"),
    [
        (lambda table: table.update({"v": "if(id = 70, 5000, 0)"}), False),
        (lambda table: table.optimize.compact(), True),
        (
            lambda table: (
                table.merge(source(), "s.id = t.id", source_alias="s", target_alias="t")
                .when_matched_update({"v": "0"})
                .when_not_matched_insert({"id": "s.id", "p": "s.p", "v": "5000"})
                .execute()
            ),
            False,
        ),
    ],
    ids=["update", "compact", "inserts of a merge"],
)
def test_a_failed_job_deletes_the_files_of_lost_attempts(
    tmp_path: Path,
    change: Callable[[DeltaTable], Any],
    breaks_file: bool,
) -> None:
    path = tmp_path / "table"
    make(path, FEED, partitioned=True)
    DeltaTable(path).alter.add_constraint({"small": "v < 1000"})
    if breaks_file:
        next(path.glob("p=1/*.parquet")).write_bytes(b"not what it was")
    before = files_of(str(path))
    engine = LosingTasks(num_tasks=3)
    with pytest.raises(DeltaError):
        change(DeltaTable(path, engine=engine))
    assert engine.sent
    assert files_of(str(path)) == before


def test_a_conflict_is_retried(tmp_path: Path) -> None:
    path = tmp_path / "table"
    make(path, {}, partitioned=False)

    class Interrupted(PickledTasks):
        has_lost = False

        def run(self, work: object, shared: object, inputs: object) -> object:  # type: ignore[override]
            yield from super().run(work, shared, inputs)  # type: ignore[arg-type]
            if not self.has_lost:
                self.has_lost = True
                DeltaTable(path).update({"v": "500"}, predicate="id = 17")

    engine = Interrupted(num_tasks=3)
    table = DeltaTable(path, engine=engine)
    assert table.update({"v": "v + 1"}, predicate="id >= 0")["num_updated_rows"] == 72
    assert len(engine.sent) == 2
    assert table.to_pyarrow_table(filters="id = 17")["v"].to_pylist() == [501]


def test_an_error_in_one_task_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "table"
    make(path, {}, partitioned=False)
    DeltaTable(path).alter.add_constraint({"small": "v < 1000"})
    before = files_of(str(path))
    engine = PickledTasks(num_tasks=3)
    table = DeltaTable(path, engine=engine)
    with pytest.raises(ConstraintViolationError, match="small"):
        table.update({"v": "if(id = 70, 5000, 0)"})
    with pytest.raises(AmbiguousMergeError):
        table.merge(
            {"id": [1, 70, 70], "v": [1, 2, 3]}, "s.id = t.id", "s", "t"
        ).when_matched_update({"v": "s.v"}).execute()
    with pytest.raises(ConstraintViolationError, match="small"):  # after all tasks
        table.merge(
            {"id": [1, 70, 99], "v": [1, 2, 5000]}, "s.id = t.id", "s", "t"
        ).when_matched_update({"v": "s.v"}).when_not_matched_insert(
            {"id": "s.id", "v": "s.v"}
        ).execute()
    assert [len(own) for _, _, own in engine.sent] == [3, 2, 2]
    assert files_of(str(path)) == before
    assert DeltaTable(path).version() == table.version()


def test_progress_counts_the_files_of_all_tasks(tmp_path: Path) -> None:
    make(tmp_path / "table", {}, partitioned=False)
    seen: list[tuple[int, int]] = []
    table = DeltaTable(tmp_path / "table", engine=PickledTasks(num_tasks=2))
    table.update({"v": "0"}, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(number, 6) for number in range(1, 7)]
    before = files_of(table.table_uri)

    def stop(done: int, total: int) -> None:
        raise KeyError(done, total)

    with pytest.raises(KeyError):
        table.update({"v": "1"}, progress=stop)
    assert files_of(table.table_uri) == before


@pytest.mark.parametrize("kind", ["compact", "z-order", "cluster", "one cube"])
def test_bins_are_rewritten_in_tasks(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "table"
    is_clustered = kind in {"cluster", "one cube"}
    make(path, VECTORS, partitioned=not is_clustered)
    if is_clustered:
        DeltaTable(path).alter.set_clustering_columns(["id"])
    engine = PickledTasks(num_tasks=2)
    here, there = twins(path, engine)
    optimize = UPKEEP["compact" if kind == "one cube" else kind]
    assert outcome(there, optimize) == outcome(here, optimize)
    count = 0 if kind == "one cube" else 1  # a single bin needs no task
    assert [(name, len(own)) for name, _, own in engine.sent] == [("_rewrite_group", 2)] * count


def test_a_task_gets_its_own_bins(tmp_path: Path) -> None:
    path = tmp_path / "table"
    numbers = list(range(60))
    for _ in range(2):
        write_deltalake(path, {"p": numbers, "v": numbers}, mode="append", partition_by=["p"])
    sizes = {}
    for tasks in (2, 30):
        engine = PickledTasks(num_tasks=tasks)
        _, there = twins(path, engine)
        there.optimize.compact()
        Path(there.table_uri).rename(tmp_path / f"{tasks}")
        ((_, _, sizes[tasks]),) = engine.sent
    assert len(sizes[30]) == 30
    assert sum(sizes[30]) < 5 * sum(sizes[2])
    assert max(sizes[30]) < max(sizes[2]) / 3
    assert max(sizes[2]) < 60 * 300


def test_a_commit_interval_of_zero_makes_one_commit_for_each_partition(tmp_path: Path) -> None:
    make(tmp_path / "table", {}, partitioned=True)
    engine = PickledTasks(num_tasks=2)
    here, there = twins(tmp_path / "table", engine)
    for table in (here, there):
        table.optimize.compact(min_commit_interval=0)
    assert there.version() == here.version()


def test_files_are_deleted_in_tasks(tmp_path: Path) -> None:
    make(tmp_path / "table", {}, partitioned=False)
    engine = PickledTasks(num_tasks=3)
    here, there = twins(tmp_path / "table", engine)
    for table in (here, there):
        table.delete("v % 3 = 1")
    engine.sent.clear()
    found = [
        table.vacuum(0, dry_run=False, enforce_retention_duration=False) for table in (here, there)
    ]
    assert len(found[0]) == len(found[1]) == 6
    assert [(name, len(own)) for name, _, own in engine.sent] == [("_delete_group", 3)]
    left = [{Path(file).suffix for file in files_of(table.table_uri)} for table in (here, there)]
    assert left[0] == left[1]
    named = {uri.rpartition("/")[2] for uri in there.file_uris()}
    assert files_of(there.table_uri) == named


class SmallCheckpoints(PickledTasks):
    """An engine whose tasks write the sidecars of any checkpoint."""

    files_per_checkpoint = 4


@pytest.mark.parametrize("policy", ["v2", "classic"])
def test_tasks_write_the_sidecars_of_a_checkpoint(tmp_path: Path, policy: str) -> None:
    path = tmp_path / "table"
    make_many_files(path, {"delta.feature.v2Checkpoint": "supported"})
    DeltaTable(path).alter.set_table_properties({"delta.checkpointPolicy": policy})
    engine = SmallCheckpoints(num_tasks=3)
    here, there = twins(path, engine)
    there.create_checkpoint()
    written = [(name, len(own)) for name, _, own in engine.sent]
    assert written == [("_write_piece", 5)]  # one of them for the commits after the checkpoint
    there.create_checkpoint()  # exists
    assert [name for name, _, _ in engine.sent[1:]] == ["_count_piece"]
    for commit in (Path(there.table_uri) / "_delta_log").glob("*.json"):
        if "checkpoint" not in commit.name and int(commit.name[:20]) < there.version():
            commit.unlink()
    again = DeltaTable(there.table_uri)
    assert again.to_pyarrow_table().sort_by("id") == here.to_pyarrow_table().sort_by("id")
    assert len(again.snapshot.tombstones()) == len(here.snapshot.tombstones()) == 3


def test_a_checkpoint_without_sidecars_is_written_by_the_client(tmp_path: Path) -> None:
    engine = SmallCheckpoints(num_tasks=3)
    make(tmp_path / "table", {}, partitioned=False)
    _, there = twins(tmp_path / "table", engine)
    there.create_checkpoint()
    assert engine.sent == []
    assert len(list(Path(there.table_uri).glob("_delta_log/*.checkpoint.parquet"))) == 1


@pytest.mark.parametrize("has_commits", [True, False])
def test_a_failed_task_leaves_no_sidecars(tmp_path: Path, *, has_commits: bool) -> None:
    path = tmp_path / "table"
    make_many_files(path, {"delta.feature.v2Checkpoint": "supported"})
    sidecars = list((path / "_delta_log" / "_sidecars").iterdir())

    class Elsewhere(SmallCheckpoints):
        def run(self, work: object, shared: object, inputs: object) -> object:  # type: ignore[override]
            found = super().run(work, shared, inputs)  # type: ignore[arg-type]
            yield next(found)
            for sidecar in sidecars:
                sidecar.rename(tmp_path / sidecar.name)
            rest = list(found)
            for sidecar in sidecars:
                (tmp_path / sidecar.name).rename(sidecar)
            yield from rest

    table = DeltaTable(path, engine=Elsewhere(num_tasks=3))
    if has_commits:  # they are read instead of the old checkpoint, in a second attempt
        table.create_checkpoint()
        (written,) = (path / "_delta_log").glob(f"{table.version():020}.checkpoint.*.json")
        left = set((path / "_delta_log" / "_sidecars").iterdir()) - set(sidecars)
        assert left
        assert all(sidecar.name in written.read_text() for sidecar in left)
        return
    for version in range(12):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    before = files_of(str(path))
    with pytest.raises(DeltaError, match="_sidecars"):
        table.create_checkpoint()
    assert files_of(str(path)) == before


def test_a_worker_without_the_table_deletes_nothing(tmp_path: Path) -> None:
    make(tmp_path / "table", {}, partitioned=False)
    path = tmp_path / "table"

    class Elsewhere(PickledTasks):
        def run(self, work: object, shared: object, inputs: object) -> object:  # type: ignore[override]
            log = path / "_delta_log"
            log.rename(path / "away")
            try:
                found = list(super().run(work, shared, inputs))  # type: ignore[arg-type]
            finally:
                (path / "away").rename(log)
            yield from found

    table = DeltaTable(path, engine=Elsewhere(num_tasks=3))
    DeltaTable(path).delete("v % 3 = 1")
    table.update_incremental()
    assert len(table.vacuum(0, dry_run=False, enforce_retention_duration=False)) == 6
    assert files_of(str(path)) == {uri.rpartition("/")[2] for uri in table.file_uris()}


def test_a_source_can_be_pickled() -> None:
    rows = source()
    for some in (rows, rows.slice(3, 4), pa.Table.from_batches(rows.to_batches(max_chunksize=5))):
        for memory_bytes in (1 << 20, 10):
            with MergeSource(some.to_reader(), memory_bytes=memory_bytes) as kept:
                again = pickle.loads(pickle.dumps(kept))
            batches = [batch for _, batch in again.batches(["id", "s"])]
            assert pa.Table.from_batches(batches) == some.select(["id", "s"])


@given(sizes=st.lists(st.integers(0, 100), max_size=30), most=st.integers(1, 10))
def test_groups_are_balanced(sizes: list[int], most: int) -> None:
    spans = balanced(sizes, most)
    assert [n for start, length in spans for n in range(start, start + length)] == list(
        range(len(sizes))
    )
    assert len(spans) <= most or len(spans) == len(sizes)
    assert all(length for _, length in spans)


def test_a_number_of_tasks_is_above_zero() -> None:
    with pytest.raises(InvalidInputError, match="num_tasks"):
        PickledTasks(num_tasks=0)
