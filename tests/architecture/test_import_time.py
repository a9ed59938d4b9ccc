"""`import deltalog` is quick, and loads nothing slow."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import deltalog

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
    [("import deltalog", 20), ("from deltalog import DeltaTable", 97)],
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


# What a first write of rows to a new table has no use for: who needs it imports it then.
OF_OTHERS = (
    "deltalog.log.checkpoints",  # read, or written by one commit in many
    "deltalog.protocol.deletion_vectors",
    "deltalog.expressions.analyze",  # of tables with rules, and of conditions
    "deltalog.expressions.arrow",
    "deltalog.expressions.casts",
    "deltalog.expressions.filters",
    "deltalog.expressions.nodes",
    "deltalog.expressions.sql",
    "deltalog.protocol.features.rule_sql",
    "deltalog.operations.changes.bins",
    "deltalog.operations.changes.local",
    "deltalog.operations.changes.request",  # of verbs that change rows
    "deltalog.data.scan",
    "deltalog.protocol.stats.parse",
    "deltalog.protocol.stats.ranges",  # to skip files
    "deltalog.protocol.stats.rewrite",
    "deltalog.protocol.stats.skipping",
    "deltalog.storage.parquet.reader",  # to read
    "deltalog.storage.parquet.facts",
    "deltalog.table.creating",  # of tables without rows
    "deltalog.protocol.table_change.drop",
    "deltalog.transaction.conflicts",  # of lost races
    "deltalog.transaction.masks",
    "deltalog.transaction.rebase",
    "deltalog.transaction.maintenance.checkpoint",
    "deltalog.schema.variant",
    "deltalog.data.write.deletion_vectors",
    "deltalog.data.write.rules",
    "pyarrow.json",
    "sqlglot",
)


@pytest.fixture(scope="module")
def loaded_by_a_first_write(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    place = str(tmp_path_factory.mktemp("first") / "table")
    return set(
        _run(
            "import sys, pyarrow as pa; from deltalog import write_deltalake; "
            f"write_deltalake({place!r}, pa.table({{'id': [1]}})); print(*sys.modules)"
        ).split()
    )


def test_a_first_write_loads_no_operation_that_it_does_not_do(
    loaded_by_a_first_write: set[str],
) -> None:
    below = {"arguments", "changes", "conditions", "engine"}
    operations = {
        name.split(".")[2]
        for name in loaded_by_a_first_write
        if name.startswith("deltalog.operations.")
    }
    assert operations - below == {"execute", "operation", "write"}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_first_write_loads_nothing_that_only_others_need(
    name: str, loaded_by_a_first_write: set[str]
) -> None:
    assert name not in loaded_by_a_first_write
    assert importlib.util.find_spec(name) is not None  # it has not been renamed


def test_a_first_write_loads_few_of_our_modules(loaded_by_a_first_write: set[str]) -> None:
    ours = {name for name in loaded_by_a_first_write if name.partition(".")[0] == "deltalog"}
    assert len(ours) <= 160


SOURCE = Path(str(deltalog.__file__)).parent
ON_DEMAND = [
    ".".join(("deltalog", *path.parent.relative_to(SOURCE).parts))
    for path in sorted(SOURCE.rglob("__init__.py"))
    if "\n_ORIGINS" in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", ON_DEMAND)
def test_what_a_package_loads_on_demand_is_there_and_is_no_file_of_it(name: str) -> None:
    """Once a file of that name is imported, the package gives the file, not what is meant."""
    package = importlib.import_module(name)
    directory = Path(str(package.__file__)).parent
    named = {one for names in package._ORIGINS.values() for one in names}
    files = {path.stem for path in directory.iterdir() if path.suffix in {".py", ""}}
    assert named & files == set()
    assert named == set(package.__all__)
    assert sorted(dir(package)) == sorted(set(package.__all__))
    assert all(hasattr(package, one) for one in package.__all__)


@pytest.mark.parametrize("name", ON_DEMAND)
def test_a_name_of_a_package_is_the_one_of_the_file_that_has_it(name: str) -> None:
    """Named in full, and kept by the package once it has been asked for."""
    package = importlib.import_module(name)
    for origin, names in package._ORIGINS.items():
        for one in names:
            value = getattr(package, one)
            assert value is getattr(importlib.import_module(origin), one)
            assert vars(package)[one] is value


@pytest.mark.parametrize("name", ON_DEMAND)
def test_a_package_refuses_other_names_as_python_does(name: str) -> None:
    package = importlib.import_module(name)
    message = f"^module '{name}' has no attribute 'no_such_name': (it has|dir\\({name}\\) lists) "
    with pytest.raises(AttributeError, match=message):
        _ = package.no_such_name


def test_a_package_loads_names_on_demand_in_one_way() -> None:
    ways = {
        ".".join(("deltalog", *path.parent.relative_to(SOURCE).parts))
        for path in SOURCE.rglob("__init__.py")
        if "__getattr__" in (text := path.read_text("utf-8")) and "explain_names" not in text
    }
    assert ways == set(ON_DEMAND)
    assert {"deltalog", "deltalog.spark", "deltalog.table"} <= ways
