"""The requirement map and the tests that claim its rows."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the map."""

    id: str
    section: str
    title: str
    who: tuple[str, ...]
    status: str


@functools.cache
def load_rows() -> tuple[Row, ...]:
    """All rows, in the map's order."""
    text = (TESTS / "conformance" / "requirements.toml").read_text("utf-8")
    return tuple(
        Row(
            id=identifier,
            section=section,
            title=row["title"],
            who=tuple(row["who"].split(", ")),
            status=row["status"],
        )
        for section, rows in tomllib.loads(text).items()
        for identifier, row in rows.items()
    )


@functools.cache
def known_ids() -> frozenset[str]:
    """The ids that a marker may name."""
    return frozenset(row.id for row in load_rows())


@functools.cache
def find_claims() -> Mapping[str, list[str]]:
    """Test functions by the id that they claim with `@pytest.mark.protocol(…)`.

    Read from the source, so that it does not matter which tests a run selects. A test that is
    always skipped or expected to fail claims nothing.
    """
    claims: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "mark.protocol" not in text:
            continue
        tree = ast.parse(text)
        where = path.relative_to(TESTS).as_posix()
        for name, identifier in _claims_of(tree):
            claims.setdefault(identifier, []).append(f"{where}::{name}")
    return claims


def _claims_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    shared = [
        identifier
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        )
        for identifier in _marked_ids(node.value)
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
            continue
        if any(_is_waived(decorator) for decorator in node.decorator_list):
            continue
        own = [name for decorator in node.decorator_list for name in _marked_ids(decorator)]
        for identifier in (*shared, *own):
            yield node.name, identifier


def _marked_ids(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "protocol"
            and ast.unparse(node.func) == "pytest.mark.protocol"
        ):
            for argument in node.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise TypeError(
                        f"protocol marker with {ast.unparse(argument)}: write the ids out"
                    )
                yield argument.value


def _is_waived(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(function) in {"pytest.mark.skip", "pytest.mark.xfail"}
