"""Which files can hold tests of a tier: the others need not be imported, which takes its time."""

from __future__ import annotations

import ast
import functools
import re
from itertools import product
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parents[1]
MARKS: Final = ("spark", "emulator", "corpus", "slow", "cluster")
"""The marks that decide on a test's tier."""
FOLDERS: Final = {"spark": "spark", "reference": "spark", "cluster": "cluster"}
"""Folder → the mark that all its tests have."""
_OF_THE_FILE = re.compile(r"^pytestmark = (?:\[.*?^\]|[^\n]*)", re.MULTILINE | re.DOTALL)


def can_hold(path: Path, expression: str) -> bool:
    """Whether `-m expression` may select a test of a file, or of a file in a folder."""
    names = {node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name)}
    if not names or not names <= set(MARKS):
        return True
    least, most = marks_of(path)
    return any(
        eval(expression, {}, dict(zip(MARKS, has, strict=True)))  # noqa: S307 - names and operators
        for has in product((False, True), repeat=len(MARKS))
        if least <= {mark for mark, it_has in zip(MARKS, has, strict=True) if it_has} <= most
    )


@functools.cache
def _parsed(expression: str) -> ast.Expression:
    return ast.parse(expression or "True", mode="eval")


@functools.cache
def marks_of(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The marks that all tests of a file have, and those that some may have."""
    if mark := mark_of_folder(path):
        return frozenset({mark}), frozenset(MARKS)
    if path.is_dir():
        return frozenset(), frozenset(MARKS)
    text = path.read_text("utf-8")
    of_all = _OF_THE_FILE.search(text)
    return _named(of_all[0] if of_all else ""), _named(text)


def _named(text: str) -> frozenset[str]:
    return frozenset(mark for mark in MARKS if f"pytest.mark.{mark}" in text)


@functools.cache
def mark_of_folder(path: Path) -> str:
    """The mark that a folder gives to all its tests; empty if it gives none."""
    marks = [mark for name, mark in FOLDERS.items() if path.is_relative_to(TESTS / name)]
    return marks[0] if marks else ""
