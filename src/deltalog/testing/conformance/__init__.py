"""Scoring readers by tables with known rows: `python -m deltalog.testing.conformance DIRECTORY`.

`corpus` knows the layouts of directories, `readers` who can be asked, `digest` when rows are the
same, and `board` judges and counts. Nothing here is about deltalog alone: peers are scored by the
same program.
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
