"""The shape of the source: files that say what they are, and nothing of anybody's machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.source import Source

ROOT = Path(__file__).resolve().parents[2]

# Home directories and mounts of the machines where this is developed, and package registries.
OF_A_MACHINE = re.compile(rb"(?<![\w.])/(?:work|farm|root|home/\w+|Users/\w+)/")
REGISTRIES = re.compile(rb"(?:pypi\.org/simple|files\.pythonhosted|registry\.npmjs)")


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - whichever git the developer uses
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_modules_say_what_they_own(source: Source) -> None:
    assert [name for name, tree in source.trees.items() if not ast.get_docstring(tree)] == []


def test_packages_state_what_they_offer(source: Source) -> None:
    bare = [
        name
        for name, tree in source.trees.items()
        if name.endswith("__init__.py")
        and not any(
            isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node)
            for node in tree.body
        )
    ]
    assert bare == []


def test_packages_offer_what_they_import(source: Source) -> None:
    """A package's `__init__.py` re-exports; it defines nothing of its own."""
    wrong = [
        f"{name}:{node.lineno}"
        for name, tree in source.trees.items()
        if name.endswith("/__init__.py")
        for node in tree.body
        for inner in (node, *ast.iter_child_nodes(node))
        if isinstance(inner, ast.FunctionDef | ast.ClassDef)
    ]
    assert wrong == []


@pytest.mark.parametrize("pattern", [OF_A_MACHINE, REGISTRIES], ids=["machine paths", "registries"])
def test_tracked_files_know_no_machine(pattern: re.Pattern[bytes]) -> None:
    here = Path(__file__).resolve()
    found = [
        f"{_name(path)}: {match[0].decode()}"
        for path in _tracked()
        if path != here
        for match in pattern.finditer(path.read_bytes())
    ]
    assert found == []
