"""`import deltalog` is quick, and loads nothing slow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = (
    "pyarrow.compute",
    "pyarrow.dataset",
    "sqlglot",
    "asyncio",
    "fsspec",
    "s3fs",
    "adlfs",
    "gcsfs",
    "pandas",
    "polars",
    "duckdb",
    "deltalake",
    "pyspark",
)


def _run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


@pytest.mark.parametrize(
    ("statement", "most_modules"),
    [("import deltalog", 20), ("from deltalog import DeltaTable", 168)],
)
def test_importing_loads_few_of_our_modules(statement: str, most_modules: int) -> None:
    """About 2 ms each; a clock would tell how busy the machine is."""
    loaded = _run(f"import sys; {statement}; print(*sys.modules)").split()
    assert sum(name.partition(".")[0] == "deltalog" for name in loaded) <= most_modules


@pytest.mark.parametrize(
    "statement",
    ["import deltalog", "from deltalog import DeltaTable", "from deltalog import write_deltalake"],
)
def test_importing_loads_nothing_slow(statement: str) -> None:
    loaded = set(_run(f"import sys; {statement}; print(*sys.modules)").split())
    assert sorted(name for name in loaded if name.startswith(SLOW)) == []


def test_a_worker_that_reads_loads_little_of_what_a_driver_needs() -> None:
    code = "import sys, deltalog.spark.reading.batch_source; print(*sys.modules)"
    loaded = {name for name in _run(code).split() if name.startswith("deltalog.")}
    assert "deltalog.spark" in loaded
    assert not loaded & {"deltalog.table", "deltalog.spark.table", "deltalog.transaction.commit"}


def test_a_first_write_loads_no_verb_that_it_does_not_do(tmp_path: Path) -> None:
    code = (
        "import sys, pyarrow as pa; from deltalog import write_deltalake; "
        f"write_deltalake({str(tmp_path / 'table')!r}, pa.table({{'id': [1]}})); "
        "print(*sys.modules)"
    )
    verbs = {name for name in _run(code).split() if name.startswith("deltalog.verbs.")}
    assert "deltalog.verbs.create" in verbs
    assert not verbs & {
        f"deltalog.verbs.{name}" for name in ("alter", "delete", "merge", "optimize", "vacuum")
    }


def test_a_first_write_loads_nothing_that_rewrites_files(tmp_path: Path) -> None:
    """Nor what writes checkpoints, or the kernels of functions."""
    code = (
        "import sys, pyarrow as pa; from deltalog import write_deltalake; "
        f"write_deltalake({str(tmp_path / 'table')!r}, pa.table({{'id': [1]}})); "
        "print(*sys.modules)"
    )
    loaded = {name for name in _run(code).split() if name.partition(".")[0] == "deltalog"}
    assert not loaded & {
        "deltalog.expressions.arrow",
        "deltalog.expressions.mathematics",
        "deltalog.rows.bins",
        "deltalog.rows.local",
        "deltalog.upkeep.checkpoint",
        "deltalog.verbs.clone",
    }
    assert len(loaded) <= 252
