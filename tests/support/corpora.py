"""The tables of other writers, as parameters of tests."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VARIABLES = ("DELTALOG_CORPUS", "DELTALOG_REFERENCE")


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A table and what its manifest says of it."""

    root: Path
    facts: dict[str, Any] = field(repr=False)

    @property
    def id(self) -> str:
        """The table's name in its manifest."""
        return str(self.facts["id"])

    @property
    def path(self) -> Path:
        """Where the table is."""
        return self.root / str(self.facts["path"])

    def expected(self, case: str) -> dict[str, Any]:
        """What a read of `latest` or `v3` gives; nothing for other kinds of cases."""
        expected = self.facts["expected"]
        if case == "latest":
            if "version" not in expected["latest"]:
                return dict(expected["latest"])
            case = f"v{expected['latest']['version']}"
        return dict(expected["versions"].get(case.removeprefix("v"), {}))

    @property
    def has_rows(self) -> bool:
        """Whether a read of the latest version gives rows."""
        latest = self.expected("latest")
        return bool(latest["outcome"] == "rows" and not latest.get("optional"))

    def __str__(self) -> str:
        """The id of a test."""
        return self.id


@functools.cache
def load_entries(variable: str) -> tuple[Entry, ...]:
    """The tables that a variable names; none where it is not set."""
    directory = os.environ.get(variable)
    if not directory:
        return ()
    manifest = json.loads((Path(directory) / "manifest.json").read_text("utf-8"))
    return tuple(Entry(Path(directory), facts) for facts in manifest["tables"])


def readable_entries() -> list[Entry]:
    """All tables whose latest version gives rows."""
    return [entry for name in VARIABLES for entry in load_entries(name) if entry.has_rows]
