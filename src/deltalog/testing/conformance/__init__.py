"""Score readers by tables with known rows: `python -m deltalog.testing.conformance DIRECTORY`.

`board` loads the cases of a directory, calls the readers, judges the results and counts them.
`digest` decides whether rows are the same. The same program scores deltalog and other libraries.
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
