"""The mutants of which somebody has found that they change nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.mutation.operators import Mutant


class Identity(NamedTuple):
    """What tells a mutant from the others of the source, wherever its line moves."""

    module: str
    function: str
    was: str
    now: str


def identity(mutant: Mutant) -> Identity:
    """Return what tells a mutant from others."""
    return Identity(mutant.module, mutant.function, mutant.was, mutant.now)


def equivalents() -> dict[Identity, str]:
    """Return the mutants that change nothing, each with its reason."""
    listed = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text("utf-8"))
    return {
        Identity(module, entry["in"], entry["was"], now): entry["because"]
        for module, entries in listed.items()
        for entry in entries
        for now in entry["now"]
    }
