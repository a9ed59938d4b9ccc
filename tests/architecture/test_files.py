"""The shape of the source: files that say what they are, and nothing of anybody's machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
MODULES = sorted(SOURCE.rglob("*.py"))

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


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_module_says_what_it_owns(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def test_packages_state_what_they_offer() -> None:
    bare = [
        _name(path)
        for path in MODULES
        if path.name == "__init__.py"
        and not any(
            isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node)
            for node in ast.parse(path.read_text("utf-8")).body
        )
    ]
    assert bare == []


def test_packages_offer_what_they_import() -> None:
    """A package's `__init__.py` re-exports; it defines nothing of its own."""
    wrong = [
        f"{_name(path)}:{node.lineno}"
        for path in MODULES
        if path.name == "__init__.py" and path.parent != SOURCE / "deltalog"
        for node in ast.parse(path.read_text("utf-8")).body
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
