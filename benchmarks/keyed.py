"""The subjects of the key index: one function for each library and operation, as in `subjects`.

The ids of the tables are in no order, so statistics exclude no file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from benchmarks.writers import APPENDERS, COMMITS, copy_table, merge_rows

Call = Callable[[], object]

KEYS = 1_000


def _changed(path: Path, needle: int, count: int) -> pa.Table:
    """Return rows with existing ids, spread over all files."""
    rows = ds.dataset(sorted(map(str, path.glob("*.parquet")))).head(count)
    pa.default_memory_pool().release_unused()
    step = max(1, needle * 3 // 2 // count)
    ids = np.arange(count, dtype=np.int64) * step
    return rows.set_column(0, "id", pa.array(ids))


def deltalog_key_merge(path: Path, needle: int) -> Call:
    return _merge_here(path, _changed(path, needle, KEYS))


def deltalog_key_merge_one(path: Path, needle: int) -> Call:
    return _merge_here(path, _changed(path, needle, 1))


def _merge_here(path: Path, source: pa.Table) -> Call:
    from deltalog import DeltaTable

    target = copy_table(path)
    return lambda: merge_rows(DeltaTable(target), source)


def deltalake_key_merge(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    source, target = _changed(path, needle, KEYS), copy_table(path)
    return lambda: merge_rows(DeltaTable(target), source)


def deltalake_key_merge_one(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    source, target = _changed(path, needle, 1), copy_table(path)
    return lambda: merge_rows(DeltaTable(target), source)


def deltalog_key_upserts(path: Path, needle: int) -> Call:
    """Return a call that upserts single rows by several threads, each of which waits for it."""
    from deltalog import DeltaTable

    rows, table = _changed(path, needle, COMMITS), DeltaTable(copy_table(path))

    def call() -> object:
        with (
            table.appender(upsert="id") as appender,
            ThreadPoolExecutor(APPENDERS) as threads,
        ):
            one = [rows.slice(number, 1) for number in range(COMMITS)]
            list(threads.map(lambda row: appender.append(row).result(), one))
        return COMMITS

    return call


def deltalog_key_build(path: Path, needle: int) -> Call:
    """Return a call that indexes all rows again."""
    from deltalog import DeltaTable

    del needle
    table_path = copy_table(path)
    table = DeltaTable(table_path)
    table.alter.set_key_index(None)
    shutil.rmtree(table_path / "_delta_log" / "_keys", ignore_errors=True)
    table.alter.set_key_index(["id"])

    def call() -> object:
        num_rows = table.optimize.key_index()["numRowsAdded"]
        packs = (table_path / "_delta_log" / "_keys").rglob("*.keys")
        num_bytes = sum(pack.stat().st_size for pack in packs)
        return {"rows": num_rows, "bytes per row": num_bytes / num_rows}

    return call


def deltalog_open_lookup(path: Path, needle: int) -> Call:
    """Return a call that opens the table, and finds one row by its key."""
    from deltalog import DeltaTable, col

    return lambda: DeltaTable(path).scan(predicate=col("id") == needle).to_table().num_rows


def _appended(path: Path, *, is_indexed: bool) -> Call:
    from deltalog import DeltaTable, write_deltalake

    file = min(path.glob("*.parquet"))
    rows = ds.dataset(str(file)).to_table()
    table = DeltaTable(copy_table(path))
    if not is_indexed:
        table.alter.set_key_index(None)

    def call() -> object:
        write_deltalake(table, rows, mode="append")
        return rows.num_rows

    return call


def deltalog_key_append(path: Path, needle: int) -> Call:
    del needle
    return _appended(path, is_indexed=True)


def deltalog_key_append_without(path: Path, needle: int) -> Call:
    del needle
    return _appended(path, is_indexed=False)


KEYED: Mapping[str, Callable[[Path, int], Call]] = {
    function.__name__: function
    for function in (
        deltalog_key_merge,
        deltalake_key_merge,
        deltalog_key_merge_one,
        deltalake_key_merge_one,
        deltalog_key_upserts,
        deltalog_key_build,
        deltalog_open_lookup,
        deltalog_key_append,
        deltalog_key_append_without,
    )
}
