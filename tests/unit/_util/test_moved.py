"""Modules that have moved, by their old names: imports, strings and pickles of version 0.2."""

from __future__ import annotations

import importlib
import pickle
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import (
    AppTransaction,
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    WriterProperties,
)
from deltalog._util.moved import MOVED, new_name
from deltalog.data.scan import read_task
from deltalog.expressions import parse_sql

HERE = Path(__file__).parent / "pickles"
"""Pickles of a table at `/tmp/pickled/table`, in a protocol without frames; and its files."""
PLACE = b"/tmp/pickled/table"

# Whole modules take seconds to parse: these are their imports.
IMPORT = re.compile(
    r"^[ \t]*(?:from [\w.]+ import (?:\([^)]*\)|[^\n(]+)|import [^\n]+)", re.MULTILINE
)

pytestmark = pytest.mark.filterwarnings("ignore:deltalog:DeprecationWarning")


@pytest.mark.parametrize("old", MOVED)
def test_old_names_are_the_modules_of_today(old: str) -> None:
    name = f"deltalog.{old}"
    today = new_name(name)
    assert today is not None
    assert today != name
    assert importlib.import_module(name) is importlib.import_module(today)


def test_an_old_name_warns() -> None:
    sys.modules.pop("deltalog.replay.state", None)
    with pytest.warns(DeprecationWarning, match=r"deltalog\.log\.replay;"):
        importlib.import_module("deltalog.replay.state")


def test_names_that_never_were_are_unknown() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        importlib.import_module("deltalog.scan.no_such")
    assert new_name("deltalog.table") is None
    assert new_name("json.decoder") is None


@pytest.fixture
def table(tmp_path: Path) -> Path:
    shutil.copytree(HERE / "table", tmp_path / "table")
    return tmp_path / "table"


def _load(name: str, table: Path) -> Any:
    place = str(table).encode()
    sized = len(PLACE).to_bytes(4, "little") + PLACE
    data = (HERE / f"{name}.pickle").read_bytes()
    return pickle.loads(data.replace(sized, len(place).to_bytes(4, "little") + place))


def test_tables_and_datasets(table: Path) -> None:
    loaded = _load("table", table)
    assert isinstance(loaded, DeltaTable)
    assert loaded.version() == 1
    assert set(loaded.to_pyarrow_table()["id"].to_pylist()) == {1, 3}
    assert _load("dataset", table).count_rows() == 2


def test_tasks_of_a_scan(table: Path) -> None:
    tasks = _load("scan_tasks", table)
    rows = pa.concat_tables(pa.Table.from_batches(read_task(task)) for task in tasks)
    assert set(rows["id"].to_pylist()) == {1, 3}


def test_what_a_writer_receives_and_returns(table: Path) -> None:
    delta = DeltaTable(table)
    assert _load("write_spec", table).configuration == delta.write_spec().configuration
    delta.commit(_load("written_files", table))
    assert delta.version() == 2
    assert delta.count() == 3


def test_values(table: Path) -> None:
    delta = DeltaTable(table)
    assert _load("schema", table) == delta.schema()
    assert _load("metadata", table) == delta.metadata()
    assert _load("protocol", table) == delta.protocol()
    expression = parse_sql("id > 1 AND upper(p) IN ('A', 'B') OR s.x IS NULL")
    assert _load("expression", table).same_as(expression)
    assert _load("commit_properties", table) == CommitProperties(
        custom_metadata={"by": "a test"}, app_transactions=[AppTransaction("app", 3)]
    )
    assert _load("post_commit_hook_properties", table) == PostCommitHookProperties(
        create_checkpoint=False
    )
    assert _load("writer_properties", table) == WriterProperties(compression="ZSTD")


def test_our_own_code_uses_the_names_of_today() -> None:
    root = Path(__file__).resolve().parents[3]
    found = [
        f"{path.relative_to(root)}:{name}"
        for folder in ("src", "tests", "docs", "benchmarks", "examples")
        for path in sorted((root / folder).rglob("*.py"))
        for statement in IMPORT.findall(path.read_text("utf-8"))
        for name in _imported(statement)
        if new_name(name) is not None
    ]
    assert found == []


def _imported(statement: str) -> list[str]:
    words = re.findall(r"[\w.]+", re.sub(r" as \w+", "", statement))
    first, module, *names = words
    return (
        [module, *(f"{module}.{name}" for name in names)] if first == "from" else [module, *names]
    )
