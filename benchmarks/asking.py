"""Run a subject in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
_Asked = TypeVar("_Asked")


def in_turns(asked: Sequence[_Asked], count: int) -> Iterator[_Asked]:
    """Yield each item `count` times, in turns, so that other work of the machine affects all alike.

    Every second turn is reversed, so that an item does not always follow the same other one.
    """
    for turn in range(count):
        yield from reversed(asked) if turn % 2 else asked


def ask(subject: str, path: Path, needle: int, scratch: str) -> dict[str, Any]:
    """Return the results of `benchmarks.measure` for a subject.

    Args:
        subject: name of the subject.
        path: path of the table.
        needle: the value to search.
        scratch: a directory for temporary files of the subject.
    """
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.measure", subject, str(path), str(needle)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=_environment(path, scratch),
    )
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def _environment(path: Path, scratch: str) -> dict[str, str]:
    """The environment's variables; with modules compiled once, as those of installed packages are.

    A checkout has none where `PYTHONDONTWRITEBYTECODE` is set: each of Spark's Python processes
    would compile deltalog anew.
    """
    found = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled = str(path.parent / "bytecode")
    return {**found, "PYTHONPYCACHEPREFIX": compiled, "DELTALOG_SCRATCH": scratch}
