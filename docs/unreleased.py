"""What the next release brings: the fragments in `changes/`, as towncrier puts them together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def unreleased_changes() -> str:
    """The draft of the next section of the changelog; the fragments stay where they are."""
    drafted = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "Unreleased"],
        cwd=_ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    head, mark, rest = drafted.stdout.partition("## Unreleased")
    assert mark, f"towncrier drafted no section: {head}"
    _, _, sections = rest.partition("\n")  # the day on which it was drafted says nothing
    return f"{mark}\n{sections}"
