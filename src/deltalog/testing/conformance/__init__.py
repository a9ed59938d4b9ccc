"""Scoring readers by tables with known rows: `python -m deltalog.testing.conformance DIRECTORY`.

`corpus` knows the layouts of directories, `readers` who can be asked, `digest` when rows are the
same, and `board` judges and counts. Nothing here is about deltalog alone: peers are scored by the
same program.
"""

from __future__ import annotations

from deltalog.testing.conformance.board import Ruling, Score, Verdict, judge, scores
from deltalog.testing.conformance.corpus import Corpus, Trial, load_corpus
from deltalog.testing.conformance.digest import digest
from deltalog.testing.conformance.readers import READERS, Reader

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
