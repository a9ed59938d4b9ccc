"""Compare libraries on tables with known rows: `python -m deltalog.testing.conformance DIRECTORY`.

`board` loads the cases of a directory, reads them with each library, and counts correct results.
`digest` determines whether rows are equal. deltalog and other libraries are scored in the same way.
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
