"""Tables and changes by which an engine with tasks is compared with the local engine."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import ConstraintViolationError
from deltalog.integrations.tasks import DistributedEngine
from deltalog.log.checkpoints.writer import CheckpointLayout
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support.dying import DyingStore
from tests.support.engines import files_of

FILES = 6
ROWS_OF_FILE = 12
IDENTITY = {
    "delta.identity.start": 1,
    "delta.identity.step": 1,
    "delta.identity.allowExplicitInsert": False,
}
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
FEATURES: dict[str, dict[str, str]] = {
    "nothing": {},
    "vectors": VECTORS,
    "feed": FEED,
    "feed and vectors": VECTORS | FEED,
    "feed and few vectors": VECTORS | FEED | {"deltalog.maxDeletedRowsRatio": "0.3"},
    "mapping": VECTORS | {"delta.columnMapping.mode": "name"},
    "row ids": VECTORS | FEED | {"delta.enableRowTracking": "true"},
}


class PickledTasks(DistributedEngine):
    """An engine whose tasks run in this process, on copies of what would be sent.

    Attributes:
        sent: for each run, the function, the bytes of the shared input, and those of each input.
    """

    num_slots = 2

    def __init__(self, *, num_tasks: int | None = None) -> None:
        super().__init__(num_tasks=num_tasks)
        self.sent: list[tuple[str, int, list[int]]] = []

    def run(self, work: Any, shared: Any, inputs: Sequence[Any]) -> Iterator[Any]:
        common, own = pickle.dumps(shared), [pickle.dumps(one) for one in inputs]
        self.sent.append((work.__name__, len(common), list(map(len, own))))
        for one in own:
            yield pickle.loads(pickle.dumps(work(pickle.loads(common), pickle.loads(one))))


def make(path: Path, properties: dict[str, str], *, partitioned: bool) -> None:
    """A table of six files, whose column `n` is an identity column."""
    schema = Schema(
        [
            Field("n", "long", nullable=True, metadata=IDENTITY),
            Field("id", "long"),
            Field("p", "long"),
            Field("v", "long"),
            Field("s", "string"),
        ]
    )
    by = ["p"] if partitioned else []
    DeltaTable.create(path, schema, partition_by=by, configuration=properties)
    for file in range(FILES):
        ids = list(range(file * ROWS_OF_FILE, (file + 1) * ROWS_OF_FILE))
        rows = {
            "id": ids,
            "p": [file // 2 for _ in ids],
            "v": [one * 7 % 31 for one in ids],
            "s": [f"s{one}" for one in ids],
        }
        write_deltalake(path, rows, mode="append")


def source() -> pa.Table:
    """Rows of which some are in the table, and some are not."""
    ids = [*range(0, 80, 4), 200, 201]
    return pa.table(
        {"id": ids, "p": [one % 3 for one in ids], "v": [-one for one in ids], "s": ["new"] * 22}
    )


def _upsert(table: DeltaTable) -> Any:
    merger = table.merge(source(), "s.id = t.id", source_alias="s", target_alias="t")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


def _every_clause(table: DeltaTable) -> Any:
    return (
        table.merge(source(), "s.id = t.id", source_alias="s", target_alias="t")
        .when_matched_delete("s.id % 8 = 0")
        .when_matched_update({"v": "t.v + s.v"}, "t.id < 40")
        .when_not_matched_insert({"id": "s.id", "p": "s.p", "s": "'first'"}, "s.id < 201")
        .when_not_matched_insert({"id": "s.id", "p": "9"})
        .when_not_matched_by_source_update({"s": "concat(t.s, '!')"}, "t.id % 9 = 1")
        .when_not_matched_by_source_delete("t.id % 9 = 2")
        .execute()
    )


def _deletes_only(table: DeltaTable) -> Any:
    merger = table.merge(source(), "s.id = t.id and t.id < 30", source_alias="s", target_alias="t")
    return merger.when_matched_delete().execute()


def _evolving(table: DeltaTable) -> Any:
    wider = source().append_column("more", pa.array([1.5] * 22))
    merger = table.merge(
        wider, "s.id = t.id", source_alias="s", target_alias="t", merge_schema=True
    )
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


CHANGES: dict[str, Callable[[DeltaTable], Any]] = {
    "delete of few rows": lambda table: table.delete("v % 11 = 3"),
    "delete of many rows": lambda table: table.delete("v % 5 <> 0 or id < 12"),
    "update": lambda table: table.update({"v": "v + 1000", "p": "p + 1"}, predicate="v % 5 = 1"),
    "update of all rows": lambda table: table.update({"s": "concat(s, id)"}),
    "upsert": _upsert,
    "merge with every clause": _every_clause,
    "merge that only deletes": _deletes_only,
    "merge that adds a column": _evolving,
}
SMALL_CUBES: dict[str, Any] = {"full_cube_size": 1000, "target_cube_size": 5000}
"""So that the table's six files become two ZCubes."""
UPKEEP: dict[str, Callable[[DeltaTable], Any]] = {
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["v"]),
    "cluster": lambda table: table.optimize.cluster(full=True, **SMALL_CUBES),
    "vacuum": lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False),
}
FEW_CHANGES = ("delete of many rows", "update", "merge with every clause")


def outcome(table: DeltaTable, change: Callable[[DeltaTable], Any]) -> dict[str, Any]:
    """Change a table, and return what does not depend on the number of new files."""
    before = table.version()
    found = change(table)
    has_ids = table.metadata().configuration.get("delta.enableRowTracking") == "true"
    names = [*table.schema().names, *(["_metadata.row_id"] if has_ids else [])]
    # Row ids of new rows depend on the order of the files.
    rows = table.scan(names).to_table().to_pylist()
    for row in rows:
        if row["id"] >= FILES * ROWS_OF_FILE:
            row.pop("_metadata.row_id", None)
    (entry,) = [one for one in table.history() if one["version"] == table.version()]
    result = {
        "version": table.version() - before,
        "found": _numbers(found),
        "rows": _bag(rows),
        "operation": (entry["operation"], entry["operationParameters"]),
        "metrics": _numbers(entry["operationMetrics"]),
    }
    if table.metadata().configuration.get("delta.enableChangeDataFeed") == "true":
        changes = table.load_cdf(before + 1).read_all().drop_columns(["_commit_timestamp"])
        result["feed"] = _bag(changes.to_pylist())
    return result


def _bag(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(row) for row in rows)


def _numbers(found: Any) -> dict[str, Any]:
    """The metrics, without times, and without numbers and sizes of new files."""
    other = ("time", "ms", "files_added", "added_files", "filesadded", "addedfiles", "bytes")
    return {
        name: value
        for name, value in dict(found).items()
        if not any(part in name.lower() for part in (*other, "changefiles"))
    }


def twins(path: Path, engine: DistributedEngine) -> tuple[DeltaTable, DeltaTable]:
    """The table, and a copy of it that the engine changes."""
    copy = path.parent / f"{path.name}-copy"
    shutil.copytree(path, copy)
    return DeltaTable(path), DeltaTable(copy, engine=engine)


def check_vacuum(*tables: DeltaTable) -> None:
    """Vacuum tables; the files of the last one are then those of its version."""
    for table in tables:
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    check_only_named_files(table)


def check_only_named_files(table: DeltaTable) -> None:
    """The files of a table are those of its version."""
    left = {path.rpartition("/")[2] for path in files_of(table.table_uri) if "_log" not in path}
    assert {uri.rpartition("/")[2] for uri in table.file_uris()} == left


def make_many_files(path: Path, properties: dict[str, str]) -> DeltaTable:
    """A table of 14 files, of which 10 are in a checkpoint with sidecars of 3 files."""
    for file in range(12):
        write_deltalake(path, {"id": [file]}, mode="append", configuration=properties)
    table = DeltaTable(path)
    table.delete("id in (2, 7)")
    create_checkpoint(table.snapshot, layout=CheckpointLayout.V2_JSON, part_rows=3)
    for file in range(12, 17):
        write_deltalake(path, {"id": [file]}, mode="append")
    DeltaTable(path).delete("id = 5")
    return DeltaTable(path)


def check_sidecars(path: Path, engine: DistributedEngine, store: Any = None) -> None:
    """Write a checkpoint with sidecars in tasks; the table can be opened by it alone."""
    engine.files_per_checkpoint = 4
    before = make_many_files(path, {"delta.feature.v2Checkpoint": "supported"})
    table = DeltaTable(store or path, engine=engine)
    table.create_checkpoint()
    log = path / "_delta_log"
    assert len(list(log.glob(f"{table.version():020}.checkpoint.*.json"))) == 1
    for version in range(table.version()):
        (log / f"{version:020}.json").unlink()
    after = DeltaTable(path)
    assert after.to_pyarrow_table().sort_by("id") == before.to_pyarrow_table().sort_by("id")


def check_an_error_leaves_no_file(path: Path, engine: DistributedEngine) -> None:
    """Violate a constraint in one of several tasks."""
    make(path, {}, partitioned=False)
    DeltaTable(path).alter.add_constraint({"small": "v < 1000"})
    before = files_of(str(path))
    with pytest.raises(ConstraintViolationError, match="small"):
        DeltaTable(path, engine=engine).update({"v": "if(id = 70, 5000, 0)"})
    assert files_of(str(path)) == before


KILLED = (
    "delete of many rows",
    "update",
    "merge with every clause",
    "compact",
    "z-order",
    "cluster",
    "vacuum",
)


def check_a_killed_worker_loses_nothing(path: Path, engine: DistributedEngine, change: str) -> None:
    """Change a table by tasks, of which one kills its worker, and compare with the local engine."""
    run = CHANGES.get(change) or UPKEEP[change]
    features = VECTORS if change in {"merge with every clause", "compact"} else {}
    make(path, features, partitioned=change != "cluster")
    if change == "cluster":
        DeltaTable(path).alter.set_clustering_columns(["v"])
    here, there = twins(path, engine)
    if change == "vacuum":
        for one in (here.table_uri, there.table_uri):
            DeltaTable(one).delete("v % 3 = 1")
        here = DeltaTable(here.table_uri)
    flag = path.parent / "killed"
    table = DeltaTable(DyingStore(Path(there.table_uri), flag), engine=engine)
    run(table)
    run(here)
    assert flag.exists()
    assert table.version() == here.version()
    found = DeltaTable(there.table_uri).to_pyarrow_table().to_pylist()
    assert _bag(found) == _bag(here.to_pyarrow_table().to_pylist())
    if change == "vacuum":
        check_only_named_files(table)


def check_a_killed_worker_leaves_a_checkpoint(path: Path, engine: DistributedEngine) -> None:
    """Write a checkpoint by tasks, of which one kills its worker where it writes a sidecar."""
    check_sidecars(path, engine, DyingStore(path, path.parent / "killed", "_sidecars"))
    assert (path.parent / "killed").exists()
