"""Row groups of a checkpoint that are read for a predicate, and those that are not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest

from deltalog.data.scan import Pruned, plan_scan, prune
from deltalog.expressions import parse_sql, resolve_predicate
from deltalog.log.checkpoints.writer import CheckpointLayout
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support import logs

pruning = import_module("deltalog.data.scan.prune")  # the room has a function of that name

SIDECARS = 4
FILES_PER_SIDECAR = 10


@dataclass
class RecordingStore(logs.DictStore):
    """Remembers of which files ranges were read, and how many bytes."""

    read_bytes: dict[str, int] = field(default_factory=dict)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """As `Store`."""
        size = sum(end - start for start, end in ranges)
        self.read_bytes[path] = self.read_bytes.get(path, 0) + size
        return super().read_ranges(path, ranges)


SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in [
                ("id", "long"),
                ("name", "string"),
                ("x", "double"),
                ("day", "date"),
                ("at", "timestamp"),
            ]
        ],
    }
)


def add(number: int, **stats: Any) -> dict[str, Any]:
    bounds = {"id": number, "name": f"n{number:04d}", "x": float(number)}
    found = {"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": {"id": 0}}
    day = number // FILES_PER_SIDECAR + 1
    partition = {"day": f"2024-01-{day:02d}", "at": f"2024-01-{day:02d} 00:00:00"}
    text = json.dumps({**found, **stats})
    # As large as paths are where there are many: what is skipped is seen in bytes.
    return logs.add(f"{number:04d}-{'x' * 40}", partitionValues=partition, stats=text)


def table(*adds: dict[str, Any], later: Sequence[dict[str, Any]] = ()) -> RecordingStore:
    """A table whose checkpoint has sidecars, with typed statistics, in the order of `id`."""
    features = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    configuration = {"delta.checkpoint.writeStatsAsStruct": "true"}
    metadata = logs.metadata(
        schemaString=SCHEMA, partitionColumns=["day", "at"], configuration=configuration
    )
    store = RecordingStore()
    logs.commit(store, 0, protocol, metadata, *adds)
    create_checkpoint(
        load_snapshot(utc_context(store)),
        layout=CheckpointLayout.V2_JSON,
        part_rows=FILES_PER_SIDECAR,
    )
    if later:
        logs.commit(store, 1, *later)
    return store


def pruned(store: RecordingStore, where: str) -> Pruned:
    snapshot = load_snapshot(utc_context(store))
    predicate = resolve_predicate(parse_sql(where), snapshot.configuration.schema)
    store.read_bytes.clear()
    return prune(snapshot, predicate)


def paths(found: Pruned) -> list[int]:
    texts: list[Any] = found.files(["path"])["path"].to_pylist()
    return [int(text[:4]) for text in texts]


def sidecars_read(store: RecordingStore, footers: int) -> int:
    """How many sidecars more was read of than the footer."""
    return sum(
        size > footers for path, size in store.read_bytes.items() if path.endswith(".parquet")
    )


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_LARGE_BYTES", 0)
    # A small file comes whole with its footer.
    monkeypatch.setattr("deltalog.storage.parquet.footer._SMALL_FILE_BYTES", 0)
    monkeypatch.setattr("deltalog.storage.parquet.footer._TAIL_BYTES", 16)


ADDS = [add(number) for number in range(SIDECARS * FILES_PER_SIDECAR)]


def footer_bytes(store: RecordingStore) -> int:
    """The most that is read of a sidecar for its footer alone."""
    sizes = []
    for path, data in store.files.items():
        if path.endswith(".parquet"):
            sizes.append(int.from_bytes(data[-8:-4], "little") + 24)
    return max(sizes)


@pytest.mark.parametrize(
    ("where", "read", "left"),
    [
        ("id = 15", 1, [15]),
        ("id = 1000", 0, []),
        ("id >= 28 and id < 32", 2, [28, 29, 30, 31]),
        ("name = 'n0015'", 1, [15]),
        ("id in (3, 39)", 2, [3, 39]),
        ("not id > 0", 1, [0]),
        ("day = date'2024-01-02'", 1, list(range(10, 20))),
        ("day = date'2024-01-02' and id = 15", 1, [15]),
        ("day = date'2024-01-03' and id = 15", 0, []),
        ("day = date'2024-01-03' or id = 15", 2, [15, *range(20, 30)]),
        ("x = 15", 4, [15]),  # NaN would not be among the bounds
        ("at = timestamp'2024-01-02 00:00:00'", 4, list(range(10, 20))),
        ("id is null", 4, []),
        ("length(name) > 100", 4, list(range(40))),
    ],
)
def test_sidecars_without_matches_are_not_read(where: str, read: int, left: list[int]) -> None:
    store = table(*ADDS)
    found = pruned(store, where)
    assert sidecars_read(store, footer_bytes(store)) == read
    assert paths(found) == left
    assert found.explain()[0] == f"files: 40 in the table, {len(left)} to read"
    snapshot = load_snapshot(utc_context(store))
    assert len(list(plan_scan(snapshot, predicate=parse_sql(where)).tasks())) == len(left)


def test_a_missing_bound_keeps_its_row_group() -> None:
    adds = list(ADDS)
    adds[25] = add(25, minValues={}, maxValues={"id": 25})
    store = table(*adds)
    found = pruned(store, "id = 3")
    assert sidecars_read(store, footer_bytes(store)) == 2
    assert paths(found) == [3, 25]
    assert paths(pruned(store, "id > 39")) == []  # the maximum is there


def test_files_that_a_later_commit_names_are_counted_once() -> None:
    gone = {"remove": {"path": ADDS[3]["add"]["path"], "dataChange": True}}
    store = table(*ADDS, later=[gone, add(5), add(50)])
    found = pruned(store, "id = 15")
    assert sidecars_read(store, footer_bytes(store)) == 1
    assert paths(found) == [15]
    lines = found.explain()
    assert lines[0] == "files: 40 in the table, 1 to read"
    assert "in row groups of the checkpoint that were not read: 28" in lines
    assert paths(pruned(store, "id < 6")) == [0, 1, 2, 4, 5]
    assert paths(pruned(store, "id = 50")) == [50]


def test_paths_of_files_that_cannot_match_are_not_read() -> None:
    store = table(*ADDS, later=[add(50)])
    assert paths(pruned(store, "x = 15 and id > 0")) == [15]
    read = sorted(size for path, size in store.read_bytes.items() if path.endswith(".parquet"))
    assert len(read) == SIDECARS
    assert read[-1] > read[-2] + FILES_PER_SIDECAR * 40


@pytest.mark.parametrize(
    "where",
    ["id = 15", "id < 25", "x = 15", "day = date'2024-01-02'", "id in (3, 17, 39)", "id>=0"],
)
@pytest.mark.parametrize("gone", [(), (15,), (3, 17), tuple(range(10, 20)), tuple(range(40))])
def test_the_same_files_are_kept_as_at_once(
    where: str, gone: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    removes = [{"remove": {"path": ADDS[n]["add"]["path"], "dataChange": True}} for n in gone]
    store = table(*ADDS, later=[*removes, add(50)])
    found = pruned(store, where)
    kept, lines = sorted(paths(found)), found.explain()
    monkeypatch.setattr(pruning, "_LARGE_BYTES", 1 << 40)
    at_once = pruned(store, where)
    assert kept == sorted(paths(at_once))
    assert set(kept).isdisjoint(gone)
    assert lines[0] == at_once.explain()[0]


def test_what_row_groups_hold_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_HELD_BYTES", 300)
    store = table(*ADDS)
    snapshot = load_snapshot(utc_context(store))
    predicate = resolve_predicate(parse_sql("id >= 0"), snapshot.configuration.schema)
    found = prune(snapshot, predicate)
    assert paths(found) == list(range(40))
    assert found.num_records().to_pylist() == [1] * 40

    def held(state: Any) -> int:
        return sum(piece.held_bytes for piece in state.pieces)

    assert snapshot.read_log(held) <= 300
    monkeypatch.setattr(pruning, "_HELD_BYTES", 1 << 30)
    for _ in range(2):  # at first, of few files only what they are asked for is read
        assert paths(prune(snapshot, predicate)) == list(range(40))
    assert snapshot.read_log(held) > 300
    store.read_bytes.clear()
    assert paths(prune(snapshot, predicate)) == list(range(40))
    assert store.read_bytes == {}


def test_another_checkpoint_stands_in_for_a_damaged_one() -> None:
    store = table(*ADDS)
    found = pruned(store, "id >= 15 and id < 25")
    for path in [path for path in store.files if path.endswith(".parquet")]:
        del store.files[path]
    found.snapshot.read_log(lambda state: [p.forget(statistics=True) for p in state.pieces or ()])
    assert paths(found) == list(range(15, 25))


def test_a_column_of_one_type_is_compared_in_another() -> None:
    wide = [add(number, minValues={"id": number}, maxValues={"id": number}) for number in range(20)]
    store = table(*wide)
    assert paths(pruned(store, "id = 7.0")) == [7]


def test_a_limit_reads_as_much_of_the_log_as_it_needs() -> None:
    store = table(*ADDS, later=[add(50), logs.remove(f"0003-{'x' * 40}")])
    scan = plan_scan(load_snapshot(utc_context(store)), limit=5)
    footers = footer_bytes(store)
    store.read_bytes.clear()
    tasks = scan._tasks_in_turn()
    first = [next(tasks).path[:4] for _ in range(8)]
    assert first == ["0000", "0001", "0002", "0004", "0005", "0006", "0007", "0008"]
    assert sidecars_read(store, footers) == 1
    assert [task.path[:4] for task in tasks] == [f"{n:04d}" for n in [*range(9, 40), 50]]


def test_a_sidecar_that_is_damaged_while_its_turn_comes_loses_no_file_and_repeats_none() -> None:
    store = table(*ADDS)
    scan = plan_scan(load_snapshot(utc_context(store)), limit=5)
    tasks = scan._tasks_in_turn()
    found = [next(tasks).path[:4] for _ in range(10)]
    for path in [path for path in store.files if path.endswith(".parquet")][2:]:
        store.files[path] = b"PAR1 damaged PAR1"
    found += [task.path[:4] for task in tasks]
    assert sorted(found) == [f"{n:04d}" for n in range(40)]
