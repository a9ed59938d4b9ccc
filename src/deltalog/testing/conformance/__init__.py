"""Scores of readers on tables with known rows: `python -m deltalog.testing.conformance DIRECTORY`.

`board` loads the cases of a directory, calls the readers, judges and counts the results. `digest`
decides whether rows are equal. The same program scores deltalog and other libraries.
"""

from __future__ import annotations

from deltalog.testing.conformance.board import (
    READERS,
    Corpus,
    Reader,
    Ruling,
    Score,
    Trial,
    Verdict,
    judge,
    load_corpus,
    scores,
)
from deltalog.testing.conformance.digest import digest

__all__ = [
    "READERS",
    "Corpus",
    "Reader",
    "Ruling",
    "Score",
    "Trial",
    "Verdict",
    "digest",
    "judge",
    "load_corpus",
    "scores",
]
