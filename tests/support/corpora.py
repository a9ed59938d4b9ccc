"""The tables of other writers, as parameters of tests."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.support.reference_scenarios import FULL

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


def covering(entries: Iterable[Entry]) -> Sequence[Entry]:
    """Tables enough to show each thing that manifests tell of, and each pair of features.

    For what every table goes through elsewhere as well, and what takes long: about a third of the
    tables have nothing that others lack. `make test-long` takes all.
    """
    every = list(entries)
    if FULL:
        return every
    shown = {entry: _shown(entry) for entry in every}
    missing = set[Any]().union(*shown.values())
    kept = set[Entry]()
    while missing:
        best = max(every, key=lambda entry: len(shown[entry] & missing))
        kept.add(best)
        missing -= shown[best]
    return [entry for entry in every if entry in kept]


def _shown(entry: Entry) -> set[Any]:
    facts, latest = entry.facts, entry.expected("latest")
    single = {
        ("project", entry.id.partition("/")[0]),
        ("outcome", latest.get("outcome")),
        *(("error", kind) for kind in latest.get("error", ())),
        *(
            (name, value)
            for name in ("types", "partition_types", "configuration")
            for value in facts.get(name, ())
        ),
    }
    return {*single, *combinations(sorted(facts.get("features", ())), 2)}
