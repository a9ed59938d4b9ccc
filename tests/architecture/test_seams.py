"""What stands once: a table's context, the doors of commits, the engine, names of classes."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

import pytest

from tests.support.source import Source

# Users know both by this name: delta.tables' class on Spark, deltalake's here.
TWICE = {"DeltaTable"}


def _importers(source: Source, module: str) -> set[str]:
    """Files that take something from a module, but for type checkers."""
    guarded = {
        id(node)
        for _, block in source.find(ast.If)
        if "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    return {
        name
        for name, node in source.find(ast.ImportFrom)
        if node.module == module and id(node) not in guarded
    }


def test_the_zone_of_a_table_is_named_by_its_constructors_alone(source: Source) -> None:
    lines = [
        f"{name}: {line.strip()}"
        for name, text in source.texts.items()
        for line in text.splitlines()
        if "default_timezone" in line
    ]
    assert len(lines) <= 20


def test_no_signature_has_a_default_for_a_zone(source: Source) -> None:
    wrong = []
    for name, arguments in source.find(ast.arguments):
        named = [*arguments.posonlyargs, *arguments.args]
        named = named[len(named) - len(arguments.defaults) :]
        pairs = [
            *zip(named, arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        wrong += [
            f"{name}:{argument.lineno}"
            for argument, default in pairs
            if argument.arg == "time_zone" and default is not None
        ]
    assert wrong == []


@pytest.mark.parametrize(
    "module", ["deltalog.transaction.commit", "deltalog.transaction.commit_loop"]
)
def test_commits_are_made_in_one_place(module: str, source: Source) -> None:
    # `table.run` gives what `run` gives; the package re-exports.
    places = {
        "operations/execute.py",
        "table/changing.py",
        "transaction/commit.py",
        "transaction/__init__.py",
    }
    assert _importers(source, module) <= places


def test_an_engine_is_one_protocol_with_two_implementations(source: Source) -> None:
    methods = {"plan_change", "write_rows", "rewrite_bins", "write_checkpoint", "list_files"}
    homes = {
        f"{name}: {node.name}"
        for name, node in source.find(ast.ClassDef)
        if methods <= {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    }
    assert homes == {
        "operations/engine.py: Engine",
        "operations/engine.py: LocalEngine",
        "spark/engine/engine.py: SparkEngine",
    }


def test_engines_know_no_operation(source: Source) -> None:
    below = ("engine", "changes", "arguments")
    wrong = [
        f"{name}: {node.module}"
        for name, node in source.find(ast.ImportFrom)
        if name.startswith(("operations/engine.py", "spark/engine/", "operations/changes/"))
        and (node.module or "").startswith("deltalog.operations")
        and (node.module or "").split(".")[2] not in below
    ]
    assert wrong == []


def test_a_class_has_a_name_of_its_own(source: Source) -> None:
    places = defaultdict(list)
    for name, node in source.find(ast.ClassDef):
        places[node.name].append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in TWICE} == {}


def test_retired_names_stay_retired(source: Source) -> None:
    retired = re.compile(
        r"\b(fates|touched_files|lanes|telling|Standing|TendedTable|ClusterTable)\b"
    )
    found = [
        f"{name}: {match[0]}"
        for name, text in source.texts.items()
        for match in retired.finditer(text)
    ]
    assert found == []
