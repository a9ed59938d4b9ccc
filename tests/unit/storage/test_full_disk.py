"""A disk that fills up at any byte: our error, a table as it was, and no half files.

The limit on the size of a file stands in for the disk: the system refuses the same calls, with
another number. It holds for a whole process, so each test has one of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

needs_limits = pytest.mark.skipif(sys.platform == "win32", reason="no limits of a process")

_BEGIN = """
import gc
import resource
import sys
from pathlib import Path

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError, StorageError

def limited(size_bytes, work):
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, old[1]))
    try:
        work()
    finally:
        gc.collect()  # writers that are collected must not write a footer
        resource.setrlimit(resource.RLIMIT_FSIZE, old)

def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}

home = Path(sys.argv[1])
"""

_WRITES = """
rows = pa.table({"p": ["a", "b"] * 500, "x": list(range(1000))})
table = home / "t"
write_deltalake(table, rows, configuration={"deltalog.fsync": "false"})
works = {
    "append": lambda: write_deltalake(table, rows, mode="append"),
    "partitions": lambda: write_deltalake(
        table, rows, mode="overwrite", partition_by=["p"], schema_mode="overwrite"
    ),
    "delete": lambda: DeltaTable(table).delete("x < 10"),
    "checkpoint": lambda: DeltaTable(table).create_checkpoint(),
}
failed = dict.fromkeys(works, 0)
for size_bytes in [*range(0, 120, 6), *range(120, 6000, 490)]:
    for name, work in works.items():
        before, version = files(table), DeltaTable(table).version()
        try:
            limited(size_bytes, work)
        except StorageError as error:
            assert "file" in str(error).lower(), error
            failed[name] += 1
            assert DeltaTable(table).version() == version
            assert files(table) == before, (size_bytes, name, files(table) - before)
        assert not [path for path in files(table) if path.endswith(".tmp")], (size_bytes, name)
assert all(count > 6 for count in failed.values()), failed
"""

_SPILLS = """
from deltalog.operations.changes.external_sort import SortLimits, sort_batches
from deltalog.operations.changes.merge.source import MergeSource
from deltalog.operations.changes.row_diff import match_rows

batch = pa.record_batch({"x": list(range(5000))})
reader = lambda: pa.RecordBatchReader.from_batches(batch.schema, [batch] * 3)
works = {
    "sort": lambda: list(sort_batches([batch] * 3, "x", SortLimits(memory_bytes=10))),
    "merge": lambda: MergeSource(reader(), memory_bytes=10),
    "diff": lambda: list(
        match_rows([batch], [batch], schema=batch.schema, keys=(), memory_bytes=10)
    ),
}
for name, work in works.items():
    for size_bytes in (0, 100, 300):
        try:
            limited(size_bytes, work)
        except StorageError as error:
            assert "temporary files" in str(error)
        else:
            raise AssertionError((name, size_bytes))
assert not list(home.glob("deltalog-*")), list(home.iterdir())
"""


def _run(script: str, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _BEGIN + script, str(home)],
        env={**os.environ, "TMPDIR": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow("a disk fills up at every size")
@needs_limits
def test_a_disk_that_fills_up_leaves_no_half_files(tmp_path: Path) -> None:
    _run(_WRITES, tmp_path)


@needs_limits
def test_a_disk_that_fills_up_with_temporary_rows_is_our_error(tmp_path: Path) -> None:
    _run(_SPILLS, tmp_path)
