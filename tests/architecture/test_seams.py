"""What stands once: a table's context, the doors of commits, the engine, names of classes."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "deltalog"
MODULES = sorted(SOURCE.rglob("*.py"))
# Users know both by this name: delta.tables' class on Spark, deltalake's here.
TWICE = {"DeltaTable"}


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def _trees() -> list[tuple[str, ast.Module]]:
    return [(_name(path), ast.parse(path.read_text("utf-8"))) for path in MODULES]


def _importers(module: str) -> set[str]:
    """Files that take something from a module, but for type checkers."""
    found = set()
    for name, tree in _trees():
        guarded = {
            id(node)
            for block in ast.walk(tree)
            if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
            for node in ast.walk(block)
        }
        for node in ast.walk(tree):
            is_it = isinstance(node, ast.ImportFrom) and node.module == module
            if is_it and id(node) not in guarded:
                found.add(name)
    return found


def test_the_zone_of_a_table_is_named_by_its_constructors_alone() -> None:
    lines = [
        f"{_name(path)}: {line.strip()}"
        for path in MODULES
        for line in path.read_text("utf-8").splitlines()
        if "default_timezone" in line
    ]
    assert len(lines) <= 20


def test_no_signature_has_a_default_for_a_zone() -> None:
    wrong = []
    for name, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = node.args
                named = [*arguments.posonlyargs, *arguments.args]
                named = named[len(named) - len(arguments.defaults) :]
                pairs = [
                    *zip(named, arguments.defaults, strict=True),
                    *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
                ]
                wrong += [
                    f"{name}:{node.lineno}"
                    for argument, default in pairs
                    if argument.arg == "time_zone" and default is not None
                ]
    assert wrong == []


@pytest.mark.parametrize(
    "module", ["deltalog.transaction.commit", "deltalog.transaction.commit_loop"]
)
def test_commits_are_made_in_one_place(module: str) -> None:
    # `table.run` gives what `run` gives; the package re-exports.
    places = {
        "operations/execute.py",
        "table/delta_table.py",
        "transaction/commit.py",
        "transaction/__init__.py",
    }
    assert _importers(module) <= places


def test_an_engine_is_one_protocol_with_two_implementations() -> None:
    methods = {"plan_change", "write_rows", "rewrite_bins", "write_checkpoint", "list_files"}
    homes = {
        f"{name}: {node.name}"
        for name, tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and methods <= {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    }
    assert homes == {
        "operations/engine.py: Engine",
        "operations/engine.py: LocalEngine",
        "spark/engine/engine.py: SparkEngine",
    }


def test_engines_know_no_operation() -> None:
    below = ("engine", "changes", "arguments")
    wrong = [
        f"{name}: {node.module}"
        for name, tree in _trees()
        if name.startswith(("operations/engine.py", "spark/engine/", "operations/changes/"))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("deltalog.operations")
        and (node.module or "").split(".")[2] not in below
    ]
    assert wrong == []


def test_a_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for name, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in TWICE} == {}


def test_retired_names_stay_retired() -> None:
    retired = re.compile(
        r"\b(fates|touched_files|lanes|telling|Standing|TendedTable|ClusterTable)\b"
    )
    found = [
        f"{_name(path)}: {match[0]}"
        for path in MODULES
        for match in retired.finditer(path.read_text("utf-8"))
    ]
    assert found == []
