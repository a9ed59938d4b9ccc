"""The subjects of writes: one function for each library and operation, as in `subjects`.

Each uses a copy of the table, which is created before the measurement. Data files are hard links,
because no library changes existing files.
"""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.processes import Told

Call = Callable[[], object]

PARTITIONS = 100
CHANGED_PART = 1_000  # one row in so many, side by side, at the end of one file and in the next
COMMITS = 1_000
APPENDERS = 16
MERGED_PART = 50  # of the rows
MERGED_ROWS = 200_000  # at most
RANGES = 100


def _scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="written-", dir=os.environ["DELTALOG_SCRATCH"]))


def copy_table(path: Path) -> Path:
    target = _scratch() / "table"
    shutil.copytree(path, target, copy_function=os.link)
    for file in (target / "_delta_log").glob("*.*"):  # the log is written to
        data = file.read_bytes()
        file.unlink()
        file.write_bytes(data)
    return target


def _rows(path: Path) -> pa.Table:
    return ds.dataset(sorted(map(str, path.glob("*.parquet")))).to_table()


def _partitioned_rows(path: Path) -> pa.Table:
    rows = _rows(path)
    return rows.append_column("day", pa.array(np.arange(rows.num_rows) % PARTITIONS))


def deltalog_append(path: Path, needle: int) -> Call:
    from deltalog import write_deltalake

    del needle
    rows, target = _rows(path), _scratch() / "table"

    def call() -> object:
        write_deltalake(target, rows)
        return rows.num_rows

    return call


def deltalake_append(path: Path, needle: int) -> Call:
    from deltalake import write_deltalake

    del needle
    rows, target = _rows(path), _scratch() / "table"

    def call() -> object:
        write_deltalake(target, rows)
        return rows.num_rows

    return call


def pyarrow_write(path: Path, needle: int) -> Call:
    del needle
    rows, target = _rows(path), _scratch() / "rows.parquet"

    def call() -> object:
        pq.write_table(rows, target)
        return rows.num_rows

    return call


def deltalog_partitioned(path: Path, needle: int) -> Call:
    from deltalog import write_deltalake

    del needle
    rows, target = _partitioned_rows(path), _scratch() / "table"

    def call() -> object:
        write_deltalake(target, rows, partition_by=["day"])
        return rows.num_rows

    return call


def deltalake_partitioned(path: Path, needle: int) -> Call:
    from deltalake import write_deltalake

    del needle
    rows, target = _partitioned_rows(path), _scratch() / "table"

    def call() -> object:
        write_deltalake(target, rows, partition_by=["day"])
        return rows.num_rows

    return call


def deltalog_small_commits(path: Path, needle: int) -> Call:
    del path, needle
    return _small_commits(syncs=True)


def deltalog_small_commits_unsynced(path: Path, needle: int) -> Call:
    del path, needle
    return _small_commits(syncs=False)


def _small_commits(*, syncs: bool) -> Call:
    from deltalog import DeltaTable, write_deltalake

    row, target = pa.table({"id": [1], "name": ["one"]}), _scratch() / "table"
    options = {"fsync": str(syncs).lower()}
    write_deltalake(target, row, storage_options=options)
    table = DeltaTable(target, storage_options=options)

    def call() -> object:
        for _ in range(COMMITS):
            write_deltalake(table, row, mode="append")
        return table.version()

    return call


def deltalake_small_commits(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable, write_deltalake

    del path, needle
    row, target = pa.table({"id": [1], "name": ["one"]}), _scratch() / "table"
    write_deltalake(target, row)
    table = DeltaTable(target)

    def call() -> object:
        for _ in range(COMMITS):
            write_deltalake(table, row, mode="append")
        return table.version()

    return call


def deltalog_path_commits(path: Path, needle: int) -> Call:
    import deltalog

    del path, needle
    return _path_commits(deltalog)


def deltalog_path_commits_unsynced(path: Path, needle: int) -> Call:
    import deltalog

    del path, needle
    return _path_commits(deltalog, storage_options={"fsync": "false"})


def deltalake_path_commits(path: Path, needle: int) -> Call:
    import deltalake

    del path, needle
    return _path_commits(deltalake)


def _path_commits(library: Any, **options: Any) -> Call:
    row, target = pa.table({"id": [1], "name": ["one"]}), str(_scratch() / "table")
    library.write_deltalake(target, row, **options)

    def call() -> object:
        for _ in range(COMMITS):
            library.write_deltalake(target, row, mode="append", **options)
        return library.DeltaTable(target).version()

    return call


def deltalog_appender(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable, write_deltalake

    del path, needle
    row, target = pa.table({"id": [1], "name": ["one"]}), _scratch() / "table"
    write_deltalake(target, row)
    table = DeltaTable(target)

    def call() -> object:
        start = time.perf_counter()
        append_by_threads(table, row, COMMITS)
        seconds = time.perf_counter() - start
        appended = DeltaTable(target)
        rows = appended.count() - row.num_rows
        assert rows == COMMITS, f"{rows} rows of {COMMITS}"
        return Told(seconds, {"rows": rows, "versions": appended.version()})

    return call


def append_by_threads(table: Any, row: pa.Table, times: int) -> None:
    """Append single rows in threads that wait for the version of each."""
    with table.appender() as appender, ThreadPoolExecutor(APPENDERS) as threads:
        list(threads.map(lambda _: appender.append(row).result(), range(times)))


def deltalog_checkpoint(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    target = copy_table(path)
    return lambda: DeltaTable(target).create_checkpoint()


def deltalake_checkpoint(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    del needle
    target = copy_table(path)
    return lambda: DeltaTable(target).create_checkpoint()


def _range(path: Path, needle: int) -> str:
    """Return a condition on ids in two files."""
    rows = needle * 3 // 2
    files = len(list(path.glob("*.parquet")))
    count = rows // CHANGED_PART
    start = rows // files * (files // 2) - count // 2
    return f"id >= {start} and id < {start + count}"


def deltalog_delete(path: Path, needle: int) -> Call:
    return _delete(path, needle, syncs=True)


def deltalog_delete_unsynced(path: Path, needle: int) -> Call:
    return _delete(path, needle, syncs=False)


def _delete(path: Path, needle: int, *, syncs: bool) -> Call:
    from deltalog import DeltaTable

    target, where = copy_table(path), _range(path, needle)
    options = {"fsync": str(syncs).lower()}
    return lambda: DeltaTable(target, storage_options=options).delete(where)["num_deleted_rows"]


def deltalake_delete(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    target, where = copy_table(path), _range(path, needle)
    return lambda: DeltaTable(target).delete(where)["num_deleted_rows"]


def deltalog_update(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    target, where = copy_table(path), _range(path, needle)
    return lambda: DeltaTable(target).update({"quantity": "quantity + 1"}, predicate=where)[
        "num_updated_rows"
    ]


def deltalake_update(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    target, where = copy_table(path), _range(path, needle)
    return lambda: DeltaTable(target).update({"quantity": "quantity + 1"}, predicate=where)[
        "num_updated_rows"
    ]


def _changes(path: Path, needle: int, *, spread: bool) -> pa.Table:
    """Return rows, half of which exist in the table: spread over all files, or adjacent."""
    table = ds.dataset(sorted(map(str, path.glob("*.parquet"))))
    half = min(table.count_rows() // MERGED_PART, MERGED_ROWS) // 2
    # No more than these rows may be in memory: what a merge takes is measured on top.
    rows = table.head(2 * half)
    pa.default_memory_pool().release_unused()
    step = max(1, needle * 3 // 2 // half) if spread else 1
    ids = [number * step for number in range(half)] + [-1 - number for number in range(half)]
    return rows.set_column(0, "id", pa.array(ids, pa.int64()))


def merge_rows(table: object, source: pa.Table) -> object:
    merger = table.merge(  # type: ignore[attr-defined]  # either library's table
        source, "target.id = source.id", source_alias="source", target_alias="target"
    )
    merged = merger.when_matched_update_all().when_not_matched_insert_all().execute()
    return merged["num_target_rows_inserted"], merged["num_target_rows_updated"]


def deltalog_merge(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    source, target = _changes(path, needle, spread=True), copy_table(path)
    return lambda: merge_rows(DeltaTable(target), source)


def deltalake_merge(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    source, target = _changes(path, needle, spread=True), copy_table(path)
    return lambda: merge_rows(DeltaTable(target), source)


def deltalog_merge_near(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    source, target = _changes(path, needle, spread=False), copy_table(path)
    return lambda: merge_rows(DeltaTable(target), source)


def deltalake_merge_near(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    source, target = _changes(path, needle, spread=False), copy_table(path)
    return lambda: merge_rows(DeltaTable(target), source)


def _ranges(needle: int) -> pa.Table:
    """Return ranges of ten ids, evenly spread."""
    step = needle * 3 // 2 // RANGES
    lows = range(0, RANGES * step, step)
    quantities = pa.array(range(len(lows)), pa.int32())
    return pa.table({"low": lows, "high": [low + 10 for low in lows], "quantity": quantities})


def _merge_ranges(table: object, source: pa.Table) -> object:
    merger = table.merge(  # type: ignore[attr-defined]  # either library's table
        source,
        "target.id >= source.low and target.id < source.high",
        source_alias="source",
        target_alias="target",
    )
    done = merger.when_matched_update({"quantity": "source.quantity"}).execute()
    return done["num_target_rows_updated"]


def deltalog_merge_ranges(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    source, target = _ranges(needle), copy_table(path)
    return lambda: _merge_ranges(DeltaTable(target), source)


def deltalake_merge_ranges(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    source, target = _ranges(needle), copy_table(path)
    return lambda: _merge_ranges(DeltaTable(target), source)


def deltalog_append_wide(path: Path, needle: int) -> Call:
    import deltalog

    del needle
    return _append_wide(deltalog, path)


def deltalake_append_wide(path: Path, needle: int) -> Call:
    import deltalake

    del needle
    return _append_wide(deltalake, path)


def _append_wide(library: Any, path: Path) -> Call:
    rows, target = pq.read_table(min(path.glob("*.parquet"))), copy_table(path)

    def call() -> object:
        library.write_deltalake(target, rows, mode="append")
        return rows.num_rows

    return call


def _compact(table: object) -> object:
    found = table.optimize.compact()  # type: ignore[attr-defined]  # either library's table
    return found["numFilesRemoved"]


def deltalog_compact(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    target = copy_table(path)
    return lambda: _compact(DeltaTable(target))


def deltalake_compact(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    del needle
    target = copy_table(path)
    return lambda: _compact(DeltaTable(target))


def pyarrow_compact(path: Path, needle: int) -> Call:
    """Compact without a table: read its files, and write their rows to one file."""
    del needle
    target, files = _scratch() / "rows.parquet", sorted(map(str, path.glob("*.parquet")))

    def call() -> object:
        pq.write_table(ds.dataset(files).to_table(), target, row_group_size=1 << 18)
        return len(files)

    return call


def _z_order(table: object) -> object:
    found = table.optimize.z_order(["quantity", "name"])  # type: ignore[attr-defined]  # as above
    return found["numFilesRemoved"]


def deltalog_z_order(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    target = copy_table(path)
    return lambda: _z_order(DeltaTable(target))


def deltalake_z_order(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    del needle
    target = copy_table(path)
    return lambda: _z_order(DeltaTable(target))


def _vacuum(table: object) -> object:
    return len(table.vacuum(dry_run=False))  # type: ignore[attr-defined]  # as above


_ROW = pa.table({"id": [1], "mixed": [1], "day": pa.array([1], pa.int32())})


def deltalog_append_row(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable, write_deltalake

    del needle

    def call() -> object:
        write_deltalake(path, _ROW, mode="append")
        return DeltaTable(path).version()

    return call


def deltalog_iceberg_commit(path: Path, needle: int) -> Call:
    from deltalog import write_deltalake

    importlib.import_module("deltalog.iceberg")
    del needle
    row: dict[str, Any] = {
        "id": [1],
        "name": ["n"],
        "value": [0.5],
        "day": pa.array([7], pa.int32()),
    }

    def call() -> object:
        write_deltalake(path, pa.table(row), mode="append")
        return True

    return call


def deltalake_append_row(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable, write_deltalake

    del needle

    def call() -> object:
        write_deltalake(path, _ROW, mode="append")
        return DeltaTable(path).version()

    return call


def deltalog_vacuum_lite(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    target = copy_table(path)
    return lambda: _vacuum(DeltaTable(target))


def deltalake_vacuum_lite(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    del needle
    target = copy_table(path)
    return lambda: _vacuum(DeltaTable(target))


WRITERS: Mapping[str, Callable[[Path, int], Call]] = {
    function.__name__: function
    for function in (
        deltalog_append,
        deltalake_append,
        pyarrow_write,
        deltalog_partitioned,
        deltalake_partitioned,
        deltalog_path_commits,
        deltalog_path_commits_unsynced,
        deltalake_path_commits,
        deltalog_appender,
        deltalog_small_commits,
        deltalog_small_commits_unsynced,
        deltalake_small_commits,
        deltalog_checkpoint,
        deltalake_checkpoint,
        deltalog_delete,
        deltalog_delete_unsynced,
        deltalake_delete,
        deltalog_update,
        deltalake_update,
        deltalog_merge,
        deltalake_merge,
        deltalog_merge_near,
        deltalake_merge_near,
        deltalog_merge_ranges,
        deltalake_merge_ranges,
        deltalog_append_wide,
        deltalake_append_wide,
        deltalog_compact,
        deltalake_compact,
        pyarrow_compact,
        deltalog_z_order,
        deltalake_z_order,
        deltalog_append_row,
        deltalog_iceberg_commit,
        deltalake_append_row,
        deltalog_vacuum_lite,
        deltalake_vacuum_lite,
    )
}
